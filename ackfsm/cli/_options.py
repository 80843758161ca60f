"""Command-line options that several commands share."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

from ackfsm.cli._exit_codes import USAGE
from ackfsm.cli._output import note, print_text
from ackfsm.terms import Configuration, Fault, InputError, Profile
from ackfsm.text import meant, parse_size, printable, quoted, shown

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from ackfsm.checking.network import Bounds
    from ackfsm.tables import Specification

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - argparse names this type nowhere else


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option of commands, or an argument.

    Attributes:
        typed: its names, and the word that stands for its value: ``-o --output FILE``; without that word it is a flag,
            without a name an argument.
        help: what it is, for the help.
        read: what reads its value.
        default: the value without it.
        dest: the name of the value, where that is not the name of the option.
        repeated: it may be given more than once, and has the list of its values.
        choices: its values.
        action: what :mod:`argparse` does with it, where that is something else.
        nargs: how often an argument is given, as :mod:`argparse` has it.
    """

    typed: str
    help: str
    read: Callable[[str], Any] | None = None
    default: Any = None
    dest: str = ""
    repeated: bool = False
    choices: Sequence[str] | None = None
    action: str | type[argparse.Action] | None = None
    nargs: str | None = None

    @property
    def name(self) -> str:
        """The name of the option on the command line."""
        return next(word for word in reversed(self.typed.split()) if word.startswith("-"))

    @property
    def value(self) -> str:
        """The name of its value."""
        return self.dest or self.name.lstrip("-").replace("-", "_")

    def is_given(self, arguments: argparse.Namespace) -> bool:
        """Return whether it has another value than without it."""
        return bool(getattr(arguments, self.value) != self._unless_given)

    @property
    def _unless_given(self) -> Any:
        return [] if self.repeated else False if self._is_flag else self.default

    @property
    def _is_flag(self) -> bool:
        return self.typed.split()[-1].startswith("-") and self.default is self.action is None

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add it to a parser, or to a group of options."""
        words = self.typed.split()
        names = [word for word in words if word.startswith("-")]
        action = self.action or ("append" if self.repeated else "store_true" if self._is_flag else None)
        told = {
            "metavar": None if names == words else words[-1],
            "type": self.read,
            "action": action,
            "choices": self.choices,
            "nargs": self.nargs,
            "dest": self.dest,
        }
        given: dict[str, Any] = {name: value for name, value in told.items() if value}
        parser.add_argument(*names, help=self.help, default=self._unless_given, **given)


FORMAT: Final = Option("--format FORM", argparse.SUPPRESS, default=argparse.SUPPRESS, dest="form")
"""Another name of ``--as``, by which two commands were called first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Options under a title of their own in the help."""

    title: str
    options: tuple[Option, ...]
    description: str | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add them to a parser."""
        group = parser.add_argument_group(self.title, self.description)
        for option in self.options:
            option.add_to(group)


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        name: as it is typed.
        run: runs it, and returns the exit code.
        summary: what it does, a phrase.
        example: how it is typed, perhaps with lines that follow.
        extra: the extra of the package that has what it needs.
        options: in the order of the help.
    """

    name: str
    run: Callable[[argparse.Namespace], int]
    summary: str
    example: str
    extra: str
    options: tuple[Option | Group, ...]

    def add_to(self, commands: Commands) -> None:
        """Add its parser, with the options that all commands have."""
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=f"example:\n  {self.example}",
            formatter_class=_Formatter,
        )
        parser.set_defaults(run=self.run, extra=self.extra, commands=commands, noted=set(), max_faults_given=False)
        for option in (JSON, *self.options):
            option.add_to(parser)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help whose description fits, while examples stay as they can be typed."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return "\n".join(_example(line, width) for line in text.splitlines())
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


def _example(line: str, width: int) -> str:
    """A command, continued with backslashes where it is longer than a line."""
    room = max(width - 2, 20)
    lines = textwrap.wrap(line, room, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines)


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
"""A number with so many digits fits into 64 bits."""


def size(text: str) -> int:
    """Bytes, with a prefix of 1,024: ``512MiB``, ``8G``."""
    found = parse_size(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a size, as 512MiB or 8GiB are")
    return found


class _Noticed(argparse.Action):
    """An option that notes that it was given; its value is the same as without that."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        self.notice(parser, namespace, option_string)
        setattr(namespace, self.dest, values)

    def notice(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, option: str | None) -> None:
        raise NotImplementedError


class _Once(_Noticed):
    """An option that must not be given twice."""

    def notice(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, option: str | None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given more than once; give it once")


class _Told(_Noticed):
    """An option with a default that notes whether it was given."""

    def notice(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, option: str | None) -> None:
        del parser, option
        setattr(namespace, f"{self.dest}_given", True)


_NONE: Final = "none"
"""The value of ``--fault`` with which nothing fails."""


PROFILES: Final = ", ".join(profile.value for profile in Profile)
"""The shipped profiles, for the help."""

JSON: Final = Option("--json", "print JSON", default=argparse.SUPPRESS, action="store_true")
"""It may stand before a command or after it."""

JOBS: Final = Option("--jobs N", "how many processors take part (default: all)", at_least(1))
MARKDOWN: Final = Option(
    "--as FORM", "markdown: print the page as it would be written", dest="form", choices=["markdown"]
)
"""The screen printed as the page that would be written."""

CONFIGURATION: Final = (
    Option(
        "--profile P",
        f"the system whose defaults apply: {PROFILES}, or a YAML file that describes another one",
        action=_Once,
    ),
    Option(
        "--set KEY=VALUE",
        "one setting, by its key or by the system's own name of it; may be repeated",
        dest="settings",
        repeated=True,
    ),
    Option(
        "--url URL",
        "a connection URL, whose parameters are settings by the system's own names: "
        "'tcp://host:61616?blockOnDurableSend=false'",
        action=_Once,
    ),
    Option(
        "--api NAME",
        "the programming interface that the application uses, for example jms-1.1 or simplified: refuse what cannot be "
        "asked for through it (`ackfsm systems P` lists those of a system)",
        action=_Once,
    ),
)
"""What :func:`settings_of` reads."""


def fault_options(most: int | None = 1) -> tuple[Option, ...]:
    """What may fail, and how often: ``most`` times unless somebody says otherwise."""
    faults, told = ", ".join(fault.value for fault in Fault), "any" if most is None else most
    return (
        Option("--fault F", f"what may fail (default: anything), or {_NONE}: {faults}", dest="faults", action="append"),
        Option(
            "--max-faults K",
            f"how many faults in all, or any (default: {told})",
            at_least(0, or_any=True),
            most,
            action=_Told,
        ),
    )


def bound_options(*, any_messages: bool = False) -> tuple[Option, ...]:
    """The bounds of a system; with ``any_messages`` their number may be ``any``, which is ``None``."""
    return (
        *fault_options(),
        Option(
            "--action A",
            "what else applications do, and time: recover, consumer_close, rollback, forward, ask_at_once, "
            "settle_failed, settle_released, settle_undeliverable, settle_rejected, producer_close, "
            "producer_session_lost, consumer_session_lost, postpone, taken_elsewhere, send_timed_out, "
            "outcome_forgotten, consumer_cancel, returned, lease_expired",
            dest="actions",
            repeated=True,
        ),
        Option("--without E", "an event that never happens, for example acknowledge or timer_fires", repeated=True),
        Option(
            "--while MACHINE.STATE",
            "faults strike only while this machine of the first message is in this state, for example processing.busy",
            default="",
            dest="strikes_while",
        ),
        Option(
            "--messages N",
            f"how many messages{', or any, which is proved' * any_messages} (default: 1)",
            at_least(1, or_any=any_messages),
            1,
        ),
        Option("--consumers N", "how many consumers of the queue (default: 1)", at_least(1), 1),
        Option("--one-session", "the consumers belong to one session (default: each to one of its own)"),
        Option(
            "--subscriptions N",
            "to how many subscriptions, or queues, each message goes; each has its consumers (default: 1)",
            at_least(1),
            1,
        ),
        Option(
            "--non-durable N",
            "how many of these subscriptions are not durable, whatever the destination is (default: 0)",
            at_least(0),
            0,
        ),
    )


def tables_of(arguments: argparse.Namespace) -> Specification:
    """The tables; if ``--profile`` is a file, that profile is among them, and ``arguments.profile`` is its name.

    What was given is ``arguments.profile_given`` from then on.  Raises :class:`InputError` or
    :class:`ackfsm.terms.SpecError` for a file that is missing or wrong.
    """
    from ackfsm import tables

    arguments.profile_given = arguments.profile
    specification, arguments.profile = tables.load().of_profile(arguments.profile)
    return specification


def set_options(arguments: argparse.Namespace) -> dict[str, object]:
    """The settings of ``--set``.  Raises :class:`InputError` for one that is given twice, even with the same value."""
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


def settings_of(
    arguments: argparse.Namespace, specification: Specification, recorded: object = None
) -> dict[str, object]:
    """The settings of ``--url`` and ``--set``; a note names the parameters of the URL that the tables do not know.

    The names in a URL are those of the profile of the options, else of the one that is ``recorded``, else of ``jms``.
    Raises :class:`InputError` for one that is given twice, even with the same value.
    """
    settings = set_options(arguments)
    if arguments.url is None:
        return settings
    profile = arguments.profile or settings.get("profile") or recorded or Profile.JMS
    known, unknown = specification.url_settings(specification.profile_of(profile), arguments.url)
    if twice := sorted(known.keys() & settings.keys()):
        raise InputError(f"--url and --set both say {quoted(twice[0])}; say it once")
    if unknown:
        names = ", ".join(map(shown, unknown))
        _note(arguments, f"the tables do not know these parameters of the URL: {names}")
    return {**known, **settings}


def _note(arguments: argparse.Namespace, text: str) -> None:
    """Say ``text`` on standard error, once in a run."""
    if text not in arguments.noted:
        arguments.noted.add(text)
        note(f"ackfsm {arguments.command}: note: {text}")


def faults_from(arguments: argparse.Namespace) -> frozenset[Fault]:
    """What ``--fault`` says: any fault without it, none with ``none``.  A name that is no fault is left as it is."""
    names = frozenset(Fault if arguments.faults is None else arguments.faults)
    if _NONE not in names:
        return names
    if len(names) > 1:
        raise InputError(f"--fault {_NONE} is that nothing fails; leave it out, or the other --fault")
    return frozenset()


def names_in(options: Sequence[str]) -> list[str]:
    """The names of an option that may be repeated, and have several of them with commas."""
    return [name.strip() for option in options for name in option.split(",")]


def query_from(arguments: argparse.Namespace) -> tuple[Specification, Configuration, Bounds]:
    """The tables, and the configuration and bounds that the options of this module describe."""
    from ackfsm.checking.network import Bounds

    specification = tables_of(arguments)
    vocabulary = specification.resolve_aliases(arguments.profile, settings_of(arguments, specification))
    bounds = Bounds(
        messages=arguments.messages,
        faults=faults_from(arguments),
        max_faults=arguments.max_faults,
        actions=frozenset(arguments.actions),
        without=frozenset(arguments.without),
        consumers=arguments.consumers,
        one_session=arguments.one_session,
        subscriptions=arguments.subscriptions,
        non_durable=arguments.non_durable,
        strikes_while=arguments.strikes_while,
    )
    configuration = specification.configure(None, vocabulary, api=arguments.api)
    table = specification.profiles[configuration.profile]
    for option in table.without_effect(vocabulary, configuration.as_dict()):
        _note(arguments, f"{option.name} changes nothing in this configuration; it is for {option.when.text.strip()}")
    if arguments.api is not None:
        arguments.api = table.api(arguments.api)
    return specification, configuration, bounds


_Format = TypeVar("_Format", bound=StrEnum)


def format_of(
    option: str, name: str | None, output: Path | None, endings: Mapping[str, _Format], default: _Format
) -> _Format:
    """The format that ``option`` names; without a ``name`` that of the ending of ``output``, without both ``default``.

    Raises :class:`InputError` for an unknown one.
    """
    kinds = type(default)
    if name is None:
        found = default if output is None else endings.get(output.suffix)
    else:
        found = next((kind for kind in kinds if kind == name), None)
    if found is None:
        hint = meant(name, kinds)
        raise InputError(f"{shown(str(name or output))} names no format{hint}; {option} is one of {', '.join(kinds)}")
    return found


class Parser(argparse.ArgumentParser):
    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse does; of an option that there is not, the one that was meant perhaps is named."""
        found, strange = self.parse_known_args(args, namespace)
        if strange:
            self.error(f"unrecognized arguments: {' '.join(strange)}{self._meant(found, strange[0])}")
        return found

    def _meant(self, found: argparse.Namespace, strange: str) -> str:
        """The hint at an option of the command that was parsed."""
        subparsers = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - argparse has no public way
        chosen = getattr(found, "command", None)
        parser = next((each.choices[chosen] for each in subparsers if chosen in each.choices), self)
        options = [
            option
            for action in parser._actions  # noqa: SLF001 - as above
            if action.help != argparse.SUPPRESS
            for option in action.option_strings
        ]
        return meant(strange.partition("=")[0], options) if strange.startswith("-") else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a choice that there is not, with the one that was meant perhaps."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            legal = ", ".join(map(repr, choices))
            raise argparse.ArgumentError(
                action, f"invalid choice: {quoted(str(value))}{meant(value, choices)} (choose from {legal})"
            )

    def error(self, message: str) -> NoReturn:
        """Write one sentence that says where to read more."""
        note(f"{printable(f'{self.prog}: {message}')}; see {self.prog} --help")
        self.exit(USAGE)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help; argparse itself ignores it if that cannot be written."""
        del file
        print_text(message)
