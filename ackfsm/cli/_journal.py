"""``ackfsm journal``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Command, Option
from ackfsm.cli._output import emit, progress_line
from ackfsm.terms import InputError


def _journal(arguments: argparse.Namespace) -> int:
    from ackfsm.engine import journal
    from ackfsm.showing.views.journal import journal_json, journal_screen

    actions = {
        "inspect": journal.inspect_journal,
        "verify": journal.verify_journal,
        "compact": journal.compact_journal,
    }
    try:
        with progress_line("reading"):
            found = actions[arguments.action](arguments.path)
    except journal.JournalFailure as failure:
        raise InputError(str(failure)) from None
    emit(arguments, journal_json(found), lambda: journal_screen(found))
    return result_code(
        violated=found.integrity is journal.Integrity.DAMAGED,
        undetermined=found.integrity is journal.Integrity.UNDETERMINED,
    )


COMMAND: Final = Command(
    "journal",
    _journal,
    "tell what a journal holds, whether it is whole, or make it small",
    "ackfsm journal verify /var/lib/broker/journal",
    "all",
    (
        Option(
            "ACTION",
            "inspect: tell what it holds; verify: tell whether it is whole; compact: drop what no recovery needs",
            dest="action",
            choices=["inspect", "verify", "compact"],
        ),
        Option("PATH", "the directory of a journal, or its SQLite file", Path, dest="path"),
    ),
)
