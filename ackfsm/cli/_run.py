"""The one place where whatever ends a command becomes an exit code and a sentence."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import functools
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final, NoReturn, TextIO

from ackfsm.cli._codes import FAILED, INTERRUPTED, USAGE
from ackfsm.cli._output import flush, make_fit, note, settle
from ackfsm.cli._parser import make_parser
from ackfsm.terms import AckfsmError, InputError, SpecError
from ackfsm.text import shown

__all__ = ["ended", "ended_process"]

_OPTIONAL: Final = frozenset({"numba", "numpy", "pandas", "pyarrow", "pyspark"})
"""What an extra brings; any other module that is missing is a fault of the installation."""

_NO_MEMORY: Final = "there is not enough memory; ask for less (a limit, fewer messages or faults), or give it more"

_LATER: Final = 0.01
"""Seconds until an interrupt that was lost comes once more."""


def ended(argv: Sequence[str], interrupted: Callable[[], bool] = lambda: False) -> int:
    """Run the command ``argv``, say why it ended unless that is its result, and return the exit code.

    ``interrupted`` tells whether somebody has interrupted the process: whatever error that became on its way, it is
    reported as an interrupt.  Raises :class:`SystemExit` where :mod:`argparse` does: for help, and for wrong usage.
    """
    asked = argparse.Namespace(command=None, extra="all")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Notes(asked)
            return _run(argv, asked)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nothing is to pass here
        failure = KeyboardInterrupt() if interrupted() else error
        code, sentence = _meaning(failure, asked)
    note(f"{_name(asked)}: {sentence}")
    return code


def _run(argv: Sequence[str], asked: argparse.Namespace) -> int:
    try:
        make_parser().parse_args(argv, asked)
    except SystemExit:
        flush()
        raise
    try:
        code = int(asked.run(asked))
    except SystemExit as end:
        raise RuntimeError(f"a library asked for the exit code {end.code}") from end
    flush()
    return code


def _name(asked: argparse.Namespace) -> str:
    return "ackfsm" if asked.command is None else f"ackfsm {asked.command}"


class _Notes:
    """Warnings as notes of one line, each text once."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.said: set[str] = set()

    def __call__(  # noqa: PLR0913, PLR0917 - what Python calls
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del category, filename, lineno, file, line
        if str(message) not in self.said:
            self.said.add(str(message))
            note(f"{_name(self.asked)}: note: {message}")


def _meaning(error: BaseException, asked: argparse.Namespace) -> tuple[int, str]:
    """The exit code and the sentence of an error."""
    match error:
        case KeyboardInterrupt():
            return INTERRUPTED, "interrupted"
        case InputError() | SpecError():
            return USAGE, str(error)
        case AckfsmError():
            return FAILED, str(error)
        case ModuleNotFoundError(name=name) if name in _OPTIONAL:
            remedy = f"install it with pip install 'ackfsm[{asked.extra}]'"
            return USAGE, f"this needs the Python package {name}; {remedy}"
        case _:
            return FAILED, _failure(error)


def _failure(error: BaseException) -> str:
    match error:
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return _NO_MEMORY
        case ImportError(name=name) if not (name or "").startswith("ackfsm"):
            return f"a Python package cannot be loaded ({error}); install it anew"
        case OSError(strerror=str(reason), filename=None):
            return f"the machine failed ({reason})"
        case OSError(strerror=str(reason), filename=name):
            return f"{shown(os.fsdecode(name)) if isinstance(name, str | bytes) else name}: {reason}"
        case RuntimeError(args=("can't start new thread",)):
            return "the machine has no thread left to give; use fewer with --workers or --jobs"
        case _:
            return _defect(error)


def _defect(error: BaseException) -> str:
    what = "; ".join(line.strip() for line in traceback.format_exception_only(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="ackfsm-traceback-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        return f"a defect of ackfsm: {what}; report it (for its traceback, set TMPDIR to a folder that can be written)"
    return f"a defect of ackfsm: {what}; report it with {file.name}, where its traceback is"


def ended_process() -> int:
    """As :func:`ended`, of the command line of this process; afterwards nothing but its end can come."""
    interrupts = _Interrupts()
    make_fit()
    _give_a_home()
    threading.excepthook = functools.partial(_end_with_thread, interrupts)
    sys.unraisablehook = interrupts.hear_again
    try:
        code = ended(sys.argv[1:], lambda: interrupts.seen)
    except SystemExit as end:
        code = int(end.code or 0)
    settle()
    interrupts.end_with(code)
    return code


def _give_a_home() -> None:
    """Without a home, caches would be kept in a folder called ``~`` here."""
    if not os.path.isabs(os.path.expanduser("~")):  # noqa: PTH111, PTH117 - Path.home() raises
        os.environ["HOME"] = "/nonexistent"


def _end_with_thread(interrupts: _Interrupts, failed: threading.ExceptHookArgs) -> None:
    """End the process: others would wait in vain for a thread that has failed."""
    error = failed.exc_value or failed.exc_type()
    note(f"ackfsm: {_failure(error)}")
    interrupts.end(FAILED)


class _Interrupts:
    """What an interrupt does to this process: the first is an exception, the second the end.

    Where interrupts are ignored (a shell starts what runs in the background so), they are.
    """

    def __init__(self) -> None:
        self.seen = False
        self.lost = False
        ours = threading.current_thread() is threading.main_thread()
        self.heard = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.heard:
            signal.signal(signal.SIGINT, self._hear)
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # it comes last, when Python hears no more

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.seen and not self.lost:
            note("ackfsm: interrupted")
            self.end(INTERRUPTED)
        self.seen, self.lost = True, False
        raise KeyboardInterrupt

    def hear_again(self, lost: sys.UnraisableHookArgs) -> None:
        """An exception was lost, in a callback or where an object is deleted; an interrupt comes once more, later."""
        if issubclass(lost.exc_type, KeyboardInterrupt) and self.heard:
            self.lost = True
            signal.signal(signal.SIGALRM, self._hear)
            signal.setitimer(signal.ITIMER_REAL, _LATER)

    def end_with(self, code: int) -> None:
        """Ignore interrupts from here on, except that they end the process at once with its ``code``: all is said."""
        if self.lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self.heard:
            signal.signal(signal.SIGINT, lambda *_: self.end(code))

    @staticmethod
    def end(code: int) -> NoReturn:
        """End this process and those that it has started."""
        if "multiprocessing" in sys.modules:
            import multiprocessing

            for child in multiprocessing.active_children():
                child.kill()
        with contextlib.suppress(OSError):
            if os.isatty(2):
                os.write(2, b"\x1b[?25h")  # a bar of progress hides the cursor
        os._exit(code)
