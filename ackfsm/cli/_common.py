"""What all commands share: options, exit codes, what is said to whom, and when."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from rich.console import Console, RenderableType
from rich.progress import MofNCompleteColumn, TaskID
from rich.progress import Progress as RichProgress
from rich.status import Status
from rich.text import Text

from ackfsm import tables
from ackfsm.cli._codes import USAGE
from ackfsm.cli._output import note, put, put_json, writing
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError, Profile
from ackfsm.text import printable, quoted, shown

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = [
    "Commands",
    "Parser",
    "add_bounds",
    "add_configuration",
    "asked",
    "at_least",
    "bars",
    "command",
    "console",
    "patience",
    "say",
    "settings_of",
    "size",
    "tables_of",
    "written_first",
    "written_lines",
]

_PATIENCE = 2.0
"""Seconds after which a person at a terminal is told that something is still going on."""


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse names this type nowhere else


def command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    words: tuple[str, str],
    extra: str,
) -> argparse.ArgumentParser:
    """A subcommand with the options that all have; ``words`` are its summary and an example of it."""
    summary, example = words
    made = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(run=run, extra=extra)
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def add_configuration(parser: argparse.ArgumentParser) -> None:
    profiles = ", ".join(profile.value for profile in Profile)
    parser.add_argument(
        "--profile",
        metavar="P",
        action=_Once,
        help=f"the system whose defaults apply: {profiles}, or a YAML file that describes another one",
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="one setting, by its key or by the system's own name of it; may be repeated",
    )


def tables_of(arguments: argparse.Namespace) -> Specification:
    """The tables; if ``--profile`` is a file, that profile is among them, and ``arguments.profile`` is its name.

    Raises :class:`InputError` or :class:`ackfsm.terms.SpecError` for a file that is missing or wrong.
    """
    specification, arguments.profile = tables.load().of_profile(arguments.profile)
    return specification


def settings_of(arguments: argparse.Namespace) -> dict[str, object]:
    """What ``--set`` says.  Raises :class:`InputError` for a setting that is said twice, even if twice the same."""
    settings: dict[str, object] = {}
    for setting in arguments.settings:
        name, equals, value = setting.partition("=")
        key = name.strip()
        if not equals:
            raise InputError(f"--set {quoted(setting)} is not KEY=VALUE, for example --set ack_mode=CLIENT_ACKNOWLEDGE")
        if key in settings:
            raise InputError(f"--set says {quoted(key)} more than once; say it once")
        settings[key] = value.strip()
    if "profile" in settings and arguments.profile is not None:
        raise InputError("--profile and --set profile= say the same thing; leave one of them out")
    return settings


def add_bounds(parser: argparse.ArgumentParser) -> None:
    faults = ", ".join(fault.value for fault in Fault)
    parser.add_argument(
        "--fault", metavar="F", action="append", dest="faults", help=f"what may fail (default: anything): {faults}"
    )
    parser.add_argument(
        "--max-faults",
        metavar="K",
        type=at_least(0, or_any=True),
        default=1,
        help="how many faults in all, or any (default: 1)",
    )
    parser.add_argument(
        "--action",
        metavar="A",
        action="append",
        default=[],
        dest="actions",
        help="what else applications do: recover, rollback, taken_elsewhere",
    )
    parser.add_argument(
        "--without",
        metavar="E",
        action="append",
        default=[],
        help="an event that never happens, for example acknowledge or timer_fires",
    )
    parser.add_argument("--messages", metavar="N", type=at_least(1), default=1, help="how many messages (default: 1)")


def asked(arguments: argparse.Namespace) -> tuple[Specification, Configuration, Bounds]:
    """The tables, and the configuration and bounds that :func:`add_configuration` and :func:`add_bounds` ask for."""
    specification = tables_of(arguments)
    vocabulary = specification.in_vocabulary(arguments.profile, settings_of(arguments))
    bounds = Bounds(
        messages=arguments.messages,
        faults=frozenset(Fault if arguments.faults is None else arguments.faults),
        max_faults=arguments.max_faults,
        actions=frozenset(arguments.actions),
        without=frozenset(arguments.without),
    )
    return specification, specification.configure(None, vocabulary), bounds


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave the error to whoever tells it; by default the process would end as if a promise were broken."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(*, errors: bool = False) -> Console:
    """Colours only on a terminal; when the output goes elsewhere, lines are not cut.  Text is text, not markup."""
    made = _Console(stderr=errors, highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else _Console(stderr=errors, highlight=False, markup=False, emoji=False, width=160)


def say(arguments: argparse.Namespace, machine: object, person: Callable[[], RenderableType]) -> None:
    if arguments.json:
        put_json(machine)
        return
    told = person()
    with writing():
        console().print(told)


def written_first(write: Callable[[], Sequence[Path]], tell: Callable[[Sequence[Path]], None]) -> None:
    """``write`` files and ``tell`` the result and what was written; what cannot be written is told all the same."""
    try:
        written = write()
    except Exception:
        tell(())
        raise
    tell(written)


def written_lines(written: Sequence[Path]) -> list[Text]:
    """A line for each file that was written."""
    return [Text(f"{shown(str(path))} written") for path in written]


@contextlib.contextmanager
def patience(what: str) -> Iterator[Callable[[int], None]]:
    """On a terminal, after two seconds, a line that says what goes on; the function given updates it."""
    screen, begun = console(errors=True), time.monotonic()
    status = Status(what, console=screen)

    def update(done: int) -> None:
        if screen.is_terminal and time.monotonic() - begun > _PATIENCE:
            status.update(f"{what}: {done:,}")
            status.start()

    try:
        yield update
    finally:
        status.stop()


@contextlib.contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """On a terminal a bar for each part of the work, with the time that it will still take."""
    shown = RichProgress(
        *RichProgress.get_default_columns(), MofNCompleteColumn(), console=console(errors=True), transient=True
    )
    shown.disable = not shown.console.is_terminal
    tasks: dict[str, TaskID] = {}

    def update(what: str, done: int, of: int) -> None:
        if what not in tasks:
            tasks[what] = shown.add_task(what, total=of)
        shown.update(tasks[what], completed=done, total=of)

    with shown:
        yield update


def at_least(least: int, *, or_any: bool = False) -> Callable[[str], int | None]:
    """A parser of whole numbers from ``least``; with ``or_any`` also of ``any``, which is ``None``."""
    legal = f"a whole number from {least}" + (", or any" if or_any else "")

    def number(text: str) -> int | None:
        if or_any and text == "any":
            return None
        if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not {legal}")
        return int(text)

    return number


_DIGITS = 18
"""Of numbers that fit into 64 bits."""

_SIZE = re.compile(r"(\d+) *(?:([KMGT])i?)?B?", re.IGNORECASE)


def size(text: str) -> int:
    """Bytes, with a prefix of 1,024: ``512MiB``, ``8G``."""
    found = _SIZE.fullmatch(text)
    if found is None or len(found[1]) > _DIGITS or int(found[1]) < 1:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a size, as 512MiB or 8GiB are")
    return int(found[1]) << 10 * (" KMGT".index(found[2].upper()) if found[2] else 0)


class _Once(argparse.Action):
    """An option that must not be given twice."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given more than once; give it once")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        note(f"{printable(f'{self.prog}: {message}')}; see {self.prog} --help")
        self.exit(USAGE)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help; argparse itself would not mind if it could not be written."""
        del file
        put(message)
