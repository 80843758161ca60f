"""A program for the JVM that is asked by lines, and ended with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ackfsm.driving.live.java import compiled

__all__ = ["OPTIONS", "Jvm", "jvm"]

OPTIONS: Final = ("-Xms768m", "-Xmx768m", "-XX:MaxDirectMemorySize=256m", "-XX:TieredStopAtLevel=1")
"""Of every JVM.  The first compiler alone, since what the second does in the background would be measured too."""


class Jvm:
    """A program that answers each line of its input by a line."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def ask(self, line: str) -> str:
        """Its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a JVM has ended; its last words: {self._log.read_text()[-2000:]}")
        return answer.strip()


@contextlib.contextmanager
def jvm(jars: Path, folder: Path, source: Path) -> Iterator[Jvm]:
    """The program of ``source``, compiled against ``jars``, which keeps its log in ``folder``, until it is left."""
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    options = [*OPTIONS, f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", compiled([source], f"{jars}/*")]
    log = folder / f"{source.stem}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            ["java", *options, source.stem],  # noqa: S607 - the one on the path, as its javac
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield Jvm(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
