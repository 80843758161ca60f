# PYTHON_ARGCOMPLETE_OK
"""The command line: ``ackfsm check``, ``explain``, ``claims``, ``matrix``, ``verify``, ``draw`` and the others.

Exit codes: 0 as promised, 1 a violation, 2 the input is at fault, 3 undetermined, 70 the machine or this package
failed, 130 interrupted.  With any but 0, 1 and 3 there is one sentence on standard error.

This module loads next to nothing, so that an interrupt while the rest is being loaded is reported as any other is.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final, NoReturn

from ackfsm.cli._exit_codes import INTERRUPTED

__all__ = ["main"]

_ALLOCATIONS: Final = 500_000
"""After so many Python looks for cycles: most of what a command makes stays, and is not to be looked at each time."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code.

    Without ``argv`` the command line is that of the process, and the process is taken to have nothing else to do: its
    streams are prepared for any text, and a second interrupt ends it at once.
    """
    try:
        if argv is not None:
            from ackfsm.cli._run import run_command

            return run_command(argv)
        gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
        with _interrupt_ends():
            from ackfsm.cli._run import run_process
        return run_process()
    except KeyboardInterrupt:  # before it could be reported, or meanwhile
        _report_interrupt()
        return INTERRUPTED


@contextlib.contextmanager
def _interrupt_ends() -> Iterator[None]:
    """An interrupt ends the process at once: as an exception during an import it can be lost, or print a traceback."""
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
    _report_interrupt()
    os._exit(INTERRUPTED)


def _report_interrupt() -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"ackfsm: interrupted\n")
