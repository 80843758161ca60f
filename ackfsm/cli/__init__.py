"""The command line: ``ackfsm check``, ``explain``, ``claims``, ``matrix``, ``verify``, ``draw`` and the others.

Exit codes: 0 as promised, 1 a violation, 2 the input is at fault, 3 undetermined, 70 the machine or this package
failed, 130 interrupted.  Whatever is not 0, 1 or 3 is told in one sentence on standard error.

This module loads next to nothing, so that an interrupt while the rest is being loaded is told as any other is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

from ackfsm.cli._codes import INTERRUPTED

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code.

    Without ``argv`` the command line is that of the process, and the process is taken to have nothing else to do: its
    streams are made fit to be written to, and a second interrupt ends it on the spot.
    """
    try:
        if argv is not None:
            from ackfsm.cli._outermost import ended

            return ended(argv)
        with _nothing_to_undo():
            from ackfsm.cli._outermost import ended_process
        return ended_process()
    except KeyboardInterrupt:  # before anything could be said, or while it was
        _say_interrupted()
        return INTERRUPTED


@contextlib.contextmanager
def _nothing_to_undo() -> Iterator[None]:
    """An interrupt ends the process at once: as an exception in the midst of an import it can be lost, or be loud."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    _say_interrupted()
    os._exit(INTERRUPTED)


def _say_interrupted() -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"ackfsm: interrupted\n")
