"""Programs for the JVM that are started, asked by lines, and ended with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from model_tests.support.maven import compiled

__all__ = ["OPTIONS", "Jvm", "begun", "jvm"]

OPTIONS: Final = ("-Xms768m", "-Xmx768m", "-XX:MaxDirectMemorySize=256m", "-XX:TieredStopAtLevel=1")
"""Of every JVM.  The first compiler alone, since what the second does in the background would be measured too."""


class Jvm:
    """A program that answers each line of its input by a line."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, line: str) -> str:
        """Its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        """The next line that it writes."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a JVM has ended; its last words: {self._log.read_text()[-2000:]}")
        return line.strip()


@contextlib.contextmanager
def jvm(jars: Path, folder: Path, source: Path, *arguments: str) -> Iterator[Jvm]:
    """The program of ``source``, compiled against ``jars``, which keeps its log in ``folder``, until it is left."""
    classes = compiled(jars, folder, [source])
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    command = [f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", classes, source.stem, *arguments]
    log = folder / f"{source.stem}.log"
    with log.open("w") as errors, begun(command, folder, errors) as process:
        yield Jvm(process, log)


@contextlib.contextmanager
def begun(
    command: list[str], folder: Path, errors: IO[str], output: IO[str] | int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A JVM with ``command``, in a group of its own, which is killed in the end."""
    process = subprocess.Popen(
        ["java", *OPTIONS, *command],  # noqa: S607 - the one on the path, as its javac
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
