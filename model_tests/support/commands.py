"""The real command in processes of its own, with whatever streams, limits and signals a test gives them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from model_tests.support.places import SPEC

AS_PROMISED, VIOLATION, USAGE, UNDETERMINED, FAILED, INTERRUPTED = 0, 1, 2, 3, 70, 130

COMMAND = (sys.executable, "-m", "ackfsm.cli")
PACKAGE = SPEC.parent


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a command has ended."""

    code: int
    out: bytes
    err: str


def environment(**changes: str) -> dict[str, str]:
    """That of the tests, with this package in front and ``changes``."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **changes}


def ended(
    *line: str | bytes,
    before: Callable[[], object] | None = None,
    program: Sequence[str] = COMMAND,
    env: dict[str, str] | None = None,
    **streams: Any,
) -> Ended:
    """Run a command; ``before`` is called in its process before it begins."""
    done = subprocess.run(
        [*program, *line],
        stdin=subprocess.DEVNULL,
        stdout=streams.pop("stdout", subprocess.PIPE),
        stderr=streams.pop("stderr", subprocess.PIPE),
        check=False,
        env=env or environment(),
        preexec_fn=before,
        timeout=300,
        **streams,
    )
    return Ended(done.returncode, done.stdout or b"", (done.stderr or b"").decode())


LISTENING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background with it ignored
from ackfsm.cli import main
{before}
os.write({pipe}, b".")
sys.exit(main())
"""


@contextlib.contextmanager
def begun(*line: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command that has been begun, leader of a group of processes: interrupts are heard, nothing else is done yet.

    ``before`` is Python that it runs first.
    """
    reading, writing = os.pipe()
    program = [sys.executable, "-c", LISTENING.format(before=before, pipe=writing)]
    with subprocess.Popen(
        [*program, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[writing],
        start_new_session=True,
        env=environment(),
    ) as run:
        os.close(writing)
        try:
            assert os.read(reading, 1) == b".", run.communicate()[1]
            yield run
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)


def nobody_is_left(group: int) -> bool:
    """Whether no process of the group is left; Python's own helpers take a moment."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def workers_of(group: int) -> list[int]:
    """The worker processes in a group, by their numbers."""
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(process.name)) == group and b"spawn_main" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found
