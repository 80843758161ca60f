"""``ackfsm journal``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ackfsm.cli._common import Commands, command, say
from ackfsm.terms import InputError

__all__ = ["add_journal"]


def add_journal(commands: Commands) -> None:
    parser = command(
        commands,
        "journal",
        _journal,
        words=(
            "tell what a journal holds, whether it is whole, or make it small",
            "ackfsm journal verify /var/lib/broker/journal",
        ),
        extra="all",
    )
    parser.add_argument(
        "action",
        metavar="ACTION",
        choices=["inspect", "verify", "compact"],
        help="inspect: tell what it holds; verify: tell whether it is whole; compact: drop what no recovery needs",
    )
    parser.add_argument("path", metavar="PATH", type=Path, help="the directory of a journal, or its SQLite file")


def _journal(arguments: argparse.Namespace) -> int:
    from ackfsm.journal import JournalFailure
    from ackfsm.report import journal

    asked = {"inspect": journal.inspect, "verify": journal.verify, "compact": journal.compact}
    try:
        checked = asked[arguments.action](arguments.path)
    except JournalFailure as failure:
        raise InputError(str(failure)) from None
    say(arguments, journal.checked_json(checked), lambda: journal.journal_screen(checked))
    return checked.exit_code
