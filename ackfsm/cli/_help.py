"""``ackfsm help``."""

from __future__ import annotations

import argparse
import functools

from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._groups import overview, overview_json, summaries
from ackfsm.cli._options import Commands, Parser, command
from ackfsm.cli._output import console, print_json, print_text
from ackfsm.terms import InputError
from ackfsm.text import meant, quoted


def add_help(commands: Commands) -> None:
    parser = command(
        commands,
        "help",
        functools.partial(_help, commands),
        words=("tell what there is, or what a command takes", "ackfsm help verify"),
        extra="all",
    )
    parser.add_argument("about", metavar="COMMAND", nargs="?", help="a command (default: all of them, in a line each)")


def _help(commands: Commands, arguments: argparse.Namespace) -> int:
    name, said = arguments.about, summaries(commands)
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
