"""All commands."""

from __future__ import annotations

import ackfsm
from ackfsm.cli._check import add_check
from ackfsm.cli._claims import add_claims
from ackfsm.cli._common import Parser
from ackfsm.cli._draw import add_draw
from ackfsm.cli._explain import add_explain
from ackfsm.cli._export import add_export
from ackfsm.cli._journal import add_journal
from ackfsm.cli._matrix import add_matrix
from ackfsm.cli._systems import add_systems
from ackfsm.cli._verify import add_verify
from ackfsm.cli._where import add_where

__all__ = ["make_parser"]


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(prog="ackfsm", description="The executable reference of message acknowledgement.")
    parser.add_argument("--version", action="version", version=f"ackfsm {ackfsm.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_check(commands)
    add_explain(commands)
    add_claims(commands)
    add_matrix(commands)
    add_verify(commands)
    add_draw(commands)
    add_export(commands)
    add_systems(commands)
    add_where(commands)
    add_journal(commands)
    return parser
