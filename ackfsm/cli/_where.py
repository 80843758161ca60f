"""``ackfsm where``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from rich.text import Text

from ackfsm import tables
from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import MARKDOWN, PROFILES, Command, Option
from ackfsm.cli._output import console, emit, hand_out
from ackfsm.terms import InputError, Profile, parse_value


def _where(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views import where
    from ackfsm.showing.views.index import index_page
    from ackfsm.showing.views.page import page_screen
    from ackfsm.tables.lookup import Lookup

    lookup = Lookup(tables.load())
    if arguments.word is None:
        if arguments.profile is not None:
            raise InputError("the index is of all profiles; name a WORD, or leave --profile out")
        page = index_page(lookup)
        hand_out(arguments, page, {"index": page}, None if arguments.form else lambda: page_screen(page))
        return AS_PROMISED
    for option, value in (("--output", arguments.output), ("--as", arguments.form)):
        if value is not None:
            raise InputError(f"{option} is for the index of everything; leave WORD out, or leave {option} out")
    profile = Profile(str(parse_value("profile", arguments.profile or Profile.JMS)))
    answers = lookup.find(arguments.word, profile)
    emit(
        arguments,
        where.answers_json(arguments.word, profile, answers),
        lambda: Text(where.screen(answers, console().width)),
    )
    return AS_PROMISED


COMMAND: Final = Command(
    "where",
    _where,
    "find the rows of the tables that decide, each with its file and line",
    "\n  ".join(
        f"ackfsm where {word}"
        for word in ("redelivery_mark_persisted", "confirm", "DUPS_OK_ACKNOWLEDGE", "record.written")
    ),
    "draw",
    (
        Option(
            "WORD",
            "a setting (also by a system's own name), an event (also by an interface's name of it), a mode, a row "
            "(machine[.state[.event]]), a condition, an anomaly (default: the index of all of them)",
            dest="word",
            nargs="?",
        ),
        Option("--profile P", f"leave out rows that it never has (default: jms): {PROFILES}"),
        Option("--output FILE", "write the index of everything there", Path),
        MARKDOWN,
    ),
)
