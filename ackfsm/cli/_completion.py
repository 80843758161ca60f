"""Completion of a command line in a shell, by argcomplete, which is the extra ``completion``."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ackfsm.cli._groups import commands_of
from ackfsm.terms import AckMode, Anomaly, Configuration, Fault, InputError, Profile, legal_values

if TYPE_CHECKING:
    from ackfsm.tables import ProfileTable

_Completer: TypeAlias = "Callable[..., Iterable[str]]"


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, which ends this process; return if no shell asks by the protocol of argcomplete."""
    import argcomplete

    add_completers(parser)
    argcomplete.autocomplete(parser, always_complete_options="long")


def add_completers(parser: argparse.ArgumentParser) -> None:
    """Add to each option and argument of each command its values; files are argcomplete's own default."""
    commands = commands_of(parser).choices
    for name, command in commands.items():
        for action in command._actions:  # noqa: SLF001 - argparse has no public way
            completer = _OF_COMMAND.get((name, action.dest)) or _OF_OPTION.get(action.dest)
            if action.dest == "about":
                completer = functools.partial(_one_of, [*commands])
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined] # where argcomplete looks for it


def _one_of(names: list[str], **_: Any) -> list[str]:
    return names


def _words(kind: type[StrEnum], *others: str) -> _Completer:
    return lambda **_: [*(each.value for each in kind), *others]


def _list_of(kind: type[StrEnum], *others: str) -> _Completer:
    """Words with commas between them: the last of them is completed."""

    def complete(prefix: str, **_: Any) -> list[str]:
        before, comma, _last = prefix.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{word}" for word in (*(each.value for each in kind), *others) if word not in taken]

    return complete


def _settings(prefix: str, **_: Any) -> list[str]:
    """Keys, then their values; the system's own names where ``--profile`` names one."""
    key, equals, _value = prefix.partition("=")
    keys = [field.name for field in dataclasses.fields(Configuration)]
    if not equals:
        own = [] if any(each.startswith(prefix) for each in keys) else _own_names()
        return [f"{each}=" for each in (*keys, *own)]
    try:
        values = legal_values(key)
    except InputError:
        return []
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for value in values]


def _dimensions(prefix: str, **more: Any) -> list[str]:
    """The options that can be swept, and what :func:`_settings` offers."""
    from ackfsm.rates.timing import SWEPT_OPTIONS

    return [*(f"{option}=" for option in SWEPT_OPTIONS), *_settings(prefix, **more)]


def _spreads(prefix: str, **_: Any) -> list[str]:
    """Times, then how each can be spread."""
    from ackfsm.cli._simulate import SPREADS
    from ackfsm.rates.timing import SPREAD_TIMES

    name, equals, _how = prefix.partition("=")
    return [f"{name}={how}" for how in SPREADS] if equals else [f"{each}=" for each in SPREAD_TIMES]


def _plan_faults(**_: Any) -> list[str]:
    from ackfsm.cli._simulate import FAULTS

    return [*FAULTS]


def _brokers(**_: Any) -> list[str]:
    from ackfsm.driving.live.brokers import BROKERS

    return [*BROKERS]


def _live_faults(**_: Any) -> list[str]:
    from ackfsm.driving.live.nemeses import NEMESES

    return [*(each.value for each in Fault), "none", *NEMESES]


def _own_names() -> list[str]:
    table = _profile()
    return [] if table is None else [name.name for name in table.names.values()]


def _profile() -> ProfileTable | None:
    """The profile that the line names, ``jms`` if none; argcomplete does not perform actions that it does not know."""
    from ackfsm import tables

    words = os.environ.get("COMP_LINE", "").replace("--profile=", "--profile ").split()
    after = [word for option, word in itertools.pairwise(words) if option == "--profile"]
    return tables.load().profiles.get(after[-1] if after else Profile.JMS)


def _claims(**_: Any) -> list[str]:
    from ackfsm import tables
    from ackfsm.surveys import claims

    return [claim.id for claim in claims.read(tables.load())]


def _events(**_: Any) -> list[str]:
    from ackfsm import tables

    return list(tables.load().events)


def _actions(**_: Any) -> list[str]:
    from ackfsm import tables

    return [event.name for event in tables.load().events.values() if event.optional]


def _machines(**_: Any) -> list[str]:
    from ackfsm import tables

    specification = tables.load()
    return [*specification.machines, *specification.properties]


def _lookup(**_: Any) -> list[str]:
    from ackfsm import tables
    from ackfsm.tables.lookup import Lookup

    return [word for word in Lookup(tables.load()).words() if " " not in word]


def _interfaces(**_: Any) -> list[str]:
    table = _profile()
    return [] if table is None else [name.casefold().replace(" ", "-") for name in table.apis]


def _reports(**_: Any) -> list[str]:
    from ackfsm.showing.views.reports import ReportFormat

    return [each.value for each in ReportFormat]


def _drawings(**_: Any) -> list[str]:
    from ackfsm.showing.draw import Format

    return [each.value for each in Format]


def _exports(**_: Any) -> list[str]:
    from ackfsm.checking.export import Format

    return [each.value for each in Format]


def _forms(**_: Any) -> list[str]:
    from ackfsm.cli._witnesses import Form

    return [each.value for each in Form]


_OF_OPTION: Final[Mapping[str, _Completer]] = MappingProxyType(
    {
        "profile": _words(Profile),
        "settings": _settings,
        "swept": _dimensions,
        "spreads": _spreads,
        "faults": _words(Fault),
        "fault": _words(Fault, "none"),
        "unrecorded": _list_of(Fault, "recorded", "any"),
        "never": _list_of(Anomaly),
        "anomaly": _words(Anomaly),
        "ids": _claims,
        "ack_mode": _words(AckMode),
        "actions": _actions,
        "without": _events,
        "forever": _events,
        "machine": _machines,
        "word": _lookup,
        "api": _interfaces,
        "report": _reports,
        "form": _forms,
    }
)

_OF_COMMAND: Final[Mapping[tuple[str, str], _Completer]] = MappingProxyType(
    {
        ("plan", "fault"): _plan_faults,
        ("live", "broker"): _brokers,
        ("live", "fault"): _live_faults,
        ("verify", "faults"): _list_of(Fault, "recorded", "any"),
        ("draw", "form"): _drawings,
        ("export", "form"): _exports,
        ("systems", "form"): lambda **_: ["markdown"],
        ("where", "form"): lambda **_: ["markdown"],
        ("claims", "form"): lambda **_: ["markdown"],
    }
)
"""Where an option or argument of that name is another one."""
