"""Run a command, and turn every exception into an exit code and a message."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import functools
import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from types import FrameType, MappingProxyType
from typing import Final, NoReturn, TextIO

import ackfsm
from ackfsm.cli._exit_codes import FAILED, INTERRUPTED, USAGE, error_code
from ackfsm.cli._groups import commands_of, overview, overview_json
from ackfsm.cli._options import JSON, Parser
from ackfsm.cli._output import console, flush, flush_or_discard, note, prepare_streams, print_json, print_text
from ackfsm.terms import AckfsmError
from ackfsm.text import shown

_COMMANDS: Final = (
    *("check", "certificate", "explain", "claims", "matrix", "plan", "advise", "import", "verify", "conform", "draw"),
    *("export", "systems", "where", "live", "journal", "help"),
)
"""The module ``_NAME`` of each, loaded where the command may be wanted, has it as ``COMMAND``."""

_OPTIONAL: Final = frozenset({"matplotlib", "msgspec", "numba", "numpy", "pandas", "pyarrow", "pyspark"})
"""The packages of the extras; without any other module the installation is broken."""

_EXTRAS: Final[Mapping[str, str]] = MappingProxyType({"matplotlib": "plot", "msgspec": "importing"})
"""The extras of packages that not every call of a command needs; all others are in the extra of the command."""

_NO_MEMORY: Final = "there is not enough memory; ask for less (a limit, fewer messages or faults), or give it more"

_LATER: Final = 0.01
"""Seconds until an interrupt that was lost is raised again."""


def run_command(argv: Sequence[str], interrupted: Callable[[], bool] = lambda: False) -> int:
    """Run the command ``argv``, note why it failed if it did, and return the exit code.

    ``interrupted`` tells whether the process has been interrupted: whatever error the interrupt became on its way, it
    is reported as an interrupt.  Raises :class:`SystemExit` where :mod:`argparse` does: for help, and for wrong usage.
    """
    arguments = argparse.Namespace(command=None, extra="all", json=False)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _Notes(arguments)
            return _parse_and_run(argv, arguments)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - nothing is to pass here
        failure = KeyboardInterrupt() if interrupted() else error
        code, sentence = _code_and_sentence(failure, arguments)
    note(f"{_name(arguments)}: {sentence}")
    return code


def _parse_and_run(argv: Sequence[str], arguments: argparse.Namespace) -> int:
    parser = _make_parser(_wanted(argv))
    try:
        parser.parse_args(argv, arguments)
        if arguments.command is None:
            _show_overview(parser, arguments)
            parser.error("the following arguments are required: COMMAND")
    except SystemExit:
        flush()
        raise
    try:
        code = int(arguments.run(arguments))
    except SystemExit as end:
        raise RuntimeError(f"a library asked for the exit code {end.code}") from end
    flush()
    return code


def _wanted(argv: Sequence[str]) -> Collection[str]:
    """The commands that a command line may have: the one that it begins with, none before ``--version``, else any."""
    first = next((word for word in argv if word != "--json"), "")
    if first == "--version":
        return ()
    return (first,) if first in _COMMANDS and first != "help" else _COMMANDS


def _show_overview(parser: Parser, arguments: argparse.Namespace) -> None:
    """What one can do, for somebody who has said nothing yet."""
    commands = commands_of(parser)
    if arguments.json:
        print_json(overview_json(commands))
    else:
        print_text(overview(commands, console().width))


class _Parser(Parser):
    """The parser of the command line, whose help has the commands in groups."""

    def format_help(self) -> str:
        """Usage, the commands in groups, the options that stand before a command."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.start_section("options")
        formatter.add_arguments([each for each in self._actions if each.option_strings])
        formatter.end_section()
        usage, _, options = formatter.format_help().partition("\n\n")
        return f"{usage}\n\n{overview(commands_of(self), console().width)}\n{options}"


def _make_parser(names: Collection[str] = _COMMANDS) -> Parser:
    """The parser of a command line that has one of these commands, or of any."""
    parser = _Parser(prog="ackfsm")
    parser.add_argument("--version", action="version", version=f"ackfsm {ackfsm.__version__}")
    JSON.add_to(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name in names:
        importlib.import_module(f"ackfsm.cli._{name}").COMMAND.add_to(commands)
    return parser


def _name(arguments: argparse.Namespace) -> str:
    return "ackfsm" if arguments.command is None else f"ackfsm {arguments.command}"


class _Notes:
    """Warnings as notes of one line, each text once."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.noted: set[str] = set()

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
        if str(message) not in self.noted:
            self.noted.add(str(message))
            note(f"{_name(self.arguments)}: note: {message}")


def _code_and_sentence(error: BaseException, arguments: argparse.Namespace) -> tuple[int, str]:
    """The exit code of an error, and the sentence that reports it."""
    match error:
        case KeyboardInterrupt():
            return INTERRUPTED, "interrupted"
        case AckfsmError():
            return error_code(error), str(error)
        case ModuleNotFoundError(name=name) if name in _OPTIONAL:
            extra = _EXTRAS.get(name or "", arguments.extra)
            remedy = f"install it with pip install 'ackfsm[{extra}]'"
            return USAGE, f"this needs the Python package {name}; {remedy}"
        case _:
            return FAILED, _sentence(error)


def _sentence(error: BaseException) -> str:
    match error:
        case MemoryError() | OSError(errno=errno.ENOMEM):
            return _NO_MEMORY
        case ImportError(name=name) if not (name or "").startswith("ackfsm"):
            return f"a Python package cannot be loaded ({error}); reinstall it"
        case OSError(strerror=str(reason), filename=None):
            return f"the machine failed ({reason})"
        case OSError(strerror=str(reason), filename=name):
            return f"{shown(os.fsdecode(name)) if isinstance(name, str | bytes) else name}: {reason}"
        case RuntimeError(args=("can't start new thread",)):
            return "the machine has no thread left to give; use fewer with --jobs"
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


def run_process() -> int:
    """As :func:`run_command`, for the command line of this process, which has to end afterwards."""
    interrupts = _Interrupts()
    prepare_streams()
    _give_a_home()
    sys.meta_path.insert(0, _PandasForSpark())
    if "_ARGCOMPLETE" in os.environ:
        return _complete()
    threading.excepthook = functools.partial(_end_with_thread, interrupts)
    sys.unraisablehook = interrupts.raise_again
    try:
        code = run_command(sys.argv[1:], lambda: interrupts.seen)
    except SystemExit as end:
        code = int(end.code or 0)
    flush_or_discard()
    gc.freeze()  # else Python looks for cycles in all that is left before it ends, which takes as long as loading it
    interrupts.end_with(code)
    return code


def _complete() -> int:
    """Answer the shell that asks what may come next; nothing else may be done by a command that is not finished."""
    from ackfsm.cli._completion import complete

    try:
        complete(_make_parser())
    except ModuleNotFoundError:
        note("ackfsm: completion needs the Python package argcomplete; pip install 'ackfsm[completion]'")
    return USAGE


class _PandasForSpark:
    """Keeps PyArrow from importing pandas, for a third of a second, only to ask whether a value is one of its series.

    PyArrow does without; where it needs pandas itself it asks again.  No command has such a value, but Spark may.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """What Python asks before it looks for a module."""
        del path, target
        if name == "pandas" and "pyspark" not in sys.modules:
            raise ModuleNotFoundError("no command imports pandas without Spark", name=name)


def _give_a_home() -> None:
    """Without a home, caches would be kept in a folder called ``~`` here."""
    if not os.path.isabs(os.path.expanduser("~")):  # noqa: PTH111, PTH117 - Path.home() raises
        os.environ["HOME"] = "/nonexistent"


def _end_with_thread(interrupts: _Interrupts, failed: threading.ExceptHookArgs) -> None:
    """End the process: other threads would wait for ever for one that has failed."""
    error = failed.exc_value or failed.exc_type()
    note(f"ackfsm: {_sentence(error)}")
    interrupts.end(FAILED)


class _Interrupts:
    """What an interrupt does to this process: the first raises an exception, the second ends it.

    Where interrupts are ignored (a shell starts background processes so), they stay ignored.
    """

    def __init__(self) -> None:
        self.seen = False
        self.lost = False
        ours = threading.current_thread() is threading.main_thread()
        self.handled = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.handled:
            signal.signal(signal.SIGINT, self._interrupt)
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # runs last of all

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.seen and not self.lost:
            note("ackfsm: interrupted")
            self.end(INTERRUPTED)
        self.seen, self.lost = True, False
        raise KeyboardInterrupt

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """An exception was lost, in a callback or where an object is deleted; an interrupt is raised again, later."""
        if issubclass(lost.exc_type, KeyboardInterrupt) and self.handled:
            self.lost = True
            signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, _LATER)

    def end_with(self, code: int) -> None:
        """Ignore interrupts from here on, except that they end the process at once with its ``code``."""
        if self.lost:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self.handled:
            signal.signal(signal.SIGINT, lambda *_: self.end(code))

    @staticmethod
    def end(code: int) -> NoReturn:
        """End this process and the processes that it has started."""
        if "multiprocessing" in sys.modules:
            import multiprocessing

            for child in multiprocessing.active_children():
                child.kill()
        with contextlib.suppress(OSError):
            if os.isatty(2):
                os.write(2, b"\x1b[?25h")  # a progress bar hides the cursor
        os._exit(code)
