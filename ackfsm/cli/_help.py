"""``ackfsm help``."""

from __future__ import annotations

import argparse
from typing import Final

from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._groups import overview, overview_json, summaries
from ackfsm.cli._options import Command, Option, Parser
from ackfsm.cli._output import console, print_json, print_text
from ackfsm.terms import InputError
from ackfsm.text import meant, quoted


def _help(arguments: argparse.Namespace) -> int:
    name, commands = arguments.about, arguments.commands
    said = summaries(commands)
    if name is None:
        if arguments.json:
            print_json(overview_json(commands))
        else:
            print_text(overview(commands, console().width))
        return AS_PROMISED
    if name not in said:
        raise InputError(
            f"there is no command {quoted(name)}{meant(name, said)}; `ackfsm help` lists them, and "
            "`ackfsm where WORD` explains any word of a screen"
        )
    told: Parser = commands.choices[name]
    if arguments.json:
        print_json({"name": name, "summary": said[name], "help": told.format_help()})
    else:
        print_text(told.format_help())
    return AS_PROMISED


COMMAND: Final = Command(
    "help",
    _help,
    "tell what there is, or what a command takes",
    "ackfsm help verify",
    "all",
    (Option("COMMAND", "a command (default: all of them, in a line each)", dest="about", nargs="?"),),
)
