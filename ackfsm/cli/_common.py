"""What all commands share: options, exit codes, what is said to whom, and when."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn, TypeAlias

from rich.console import Console, RenderableType
from rich.progress import MofNCompleteColumn, TaskID
from rich.progress import Progress as RichProgress
from rich.status import Status

from ackfsm import tables
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError, Profile
from ackfsm.text import printable

__all__ = [
    "AS_PROMISED",
    "UNDETERMINED",
    "USAGE",
    "VIOLATION",
    "Commands",
    "Parser",
    "add_bounds",
    "add_configuration",
    "asked",
    "at_least_one",
    "bars",
    "command",
    "console",
    "count",
    "patience",
    "say",
    "settings_of",
    "size",
    "write_file",
]

AS_PROMISED, VIOLATION, USAGE, UNDETERMINED = 0, 1, 2, 3

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
    parser.add_argument("--profile", metavar="P", help=f"the system whose defaults apply: {profiles}")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="one setting, by its key or by the system's own name of it; may be repeated",
    )


def settings_of(arguments: argparse.Namespace) -> dict[str, object]:
    settings: dict[str, object] = {}
    for setting in arguments.settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting!r} is not KEY=VALUE, for example --set ack_mode=CLIENT_ACKNOWLEDGE")
        settings[key.strip()] = value.strip()
    return settings


def add_bounds(parser: argparse.ArgumentParser) -> None:
    faults = ", ".join(fault.value for fault in Fault)
    parser.add_argument(
        "--fault", metavar="F", action="append", dest="faults", help=f"what may fail (default: anything): {faults}"
    )
    parser.add_argument(
        "--max-faults", metavar="K", type=count, default=1, help="how many faults in all, or any (default: 1)"
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
    parser.add_argument("--messages", metavar="N", type=count, default=1, help="how many messages (default: 1)")


def asked(arguments: argparse.Namespace) -> tuple[Specification, Configuration, Bounds]:
    """The tables, and the configuration and bounds that :func:`add_configuration` and :func:`add_bounds` ask for."""
    specification = tables.load()
    vocabulary = specification.in_vocabulary(arguments.profile, settings_of(arguments))
    bounds = Bounds(
        messages=at_least_one(arguments.messages, "--messages"),
        faults=frozenset(Fault) if arguments.faults is None else frozenset(map(_fault, arguments.faults)),
        max_faults=arguments.max_faults,
        actions=frozenset(arguments.actions),
        without=frozenset(arguments.without),
    )
    return specification, specification.configure(None, vocabulary), bounds


def _fault(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        faults = ", ".join(fault.value for fault in Fault)
        raise InputError(f"there is no fault {name!r}; the faults are {faults}") from None


def write_file(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name another file") from None


def console(*, errors: bool = False) -> Console:
    """Colours only on a terminal; when the output goes elsewhere, lines are not cut.  Text is text, not markup."""
    made = Console(stderr=errors, highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else Console(stderr=errors, highlight=False, markup=False, emoji=False, width=160)


def say(arguments: argparse.Namespace, machine: object, person: Callable[[], RenderableType]) -> None:
    if arguments.json:
        print(json.dumps(machine, indent=2))
    else:
        console().print(person())


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


def count(text: str) -> int | None:
    if text == "any":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


_SIZE = re.compile(r"(\d+) *(?:([KMGT])i?)?B?", re.IGNORECASE)


def size(text: str) -> int:
    """Bytes, with a prefix of 1,024: ``512MiB``, ``8G``."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, as 512MiB or 8GiB are")
    return int(found[1]) << 10 * (" KMGT".index(found[2].upper()) if found[2] else 0)


def at_least_one(number: int | None, option: str) -> int:
    if not number:
        raise InputError(f"{option} is a whole number from 1")
    return number


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        self.exit(USAGE, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")
