"""The commands in groups, by what somebody wants to do: the table behind ``ackfsm``, ``ackfsm help``, ``--help``."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.cli._options import Commands

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "what can happen in a configuration": ("check", "certificate", "matrix", "claims"),
        "what it costs, and what to take": ("plan", "advise"),
        "what did happen in a recorded history": ("verify", "explain", "import"),
        "real brokers, and your own": ("live", "conform", "journal"),
        "look something up": ("systems", "where", "help"),
        "pictures, and models for other tools": ("draw", "export"),
    }
)
"""One that this version does not have is left out; one that is in no group stands at the end."""

_FIRST: Final = (
    "ackfsm check --profile artemis --fault broker_crash",
    "ackfsm verify last-night.jsonl.gz",
    "ackfsm where unflagged_duplicate",
    "ackfsm help verify",
)
"""What can be typed next."""

_INDENT: Final = 4


def summaries(commands: Commands) -> dict[str, str]:
    """What each command does, as it was said when it was added, in the order of the groups; then those in no group."""
    said = {action.dest: action.help or "" for action in commands._get_subactions()}  # noqa: SLF001 - argparse has no public way
    ordered = dict.fromkeys(name for names in GROUPS.values() for name in names if name in said)
    return {name: said[name] for name in (*ordered, *(name for name in said if name not in ordered))}


def _grouped(commands: Commands) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The title of each group that has a command, with the names and summaries of its commands, each command once."""
    said = summaries(commands)
    left = dict(said)
    for title, names in GROUPS.items():
        there = [(name, left.pop(name)) for name in names if name in left]
        if there:
            yield title, there
    if left:
        yield "others", [*left.items()]


def overview(commands: Commands, width: int) -> str:
    """What one can do, in lines of at most ``width`` characters."""
    lines = ["ackfsm: the executable reference of message acknowledgement", ""]
    column = max(map(len, commands.choices)) + 2 + _INDENT
    for title, its in _grouped(commands):
        lines.append(title)
        for name, summary in its:
            lines += textwrap.wrap(
                summary,
                max(width, 2 * column),
                initial_indent=f"{'':{_INDENT}}{name:{column - _INDENT}}",
                subsequent_indent=" " * column,
            )
        lines.append("")
    lines.append("to begin")
    lines += [f"  {typed}" for typed in _FIRST]
    return "\n".join(lines) + "\n"


def overview_json(commands: Commands) -> dict[str, object]:
    """The groups as plain values."""
    return {
        "groups": [
            {"title": title, "commands": [{"name": name, "summary": summary} for name, summary in its]}
            for title, its in _grouped(commands)
        ]
    }


def commands_of(parser: argparse.ArgumentParser) -> Commands:
    """The commands that were added to a parser."""
    return next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - as above
