"""The command line: ``ackfsm check``, ``explain``, ``claims``, ``matrix``, ``verify``, ``draw`` and the others.

Exit codes: 0 as promised, 1 a violation, 2 the input is at fault (one sentence on standard
error), 3 undetermined.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import ackfsm
from ackfsm.cli._check import add_check
from ackfsm.cli._claims import add_claims
from ackfsm.cli._common import USAGE, Parser
from ackfsm.cli._draw import add_draw
from ackfsm.cli._explain import add_explain
from ackfsm.cli._export import add_export
from ackfsm.cli._journal import add_journal
from ackfsm.cli._matrix import add_matrix
from ackfsm.cli._systems import add_systems
from ackfsm.cli._verify import add_verify
from ackfsm.terms import AckfsmError
from ackfsm.text import printable

__all__ = ["main"]

_OPTIONAL = frozenset({"numba", "numpy", "pandas", "pyarrow", "pyspark"})
"""What an extra brings; any other module that is missing is a fault of the installation."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except AckfsmError as error:
        print(f"ackfsm {arguments.command}: {printable(str(error))}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if error.name not in _OPTIONAL:
            raise
        remedy = f"this needs the Python package {error.name}; install it with pip install 'ackfsm[{arguments.extra}]'"
        print(f"ackfsm {arguments.command}: {remedy}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"ackfsm {arguments.command}: interrupted", file=sys.stderr)
    return USAGE


def _parser() -> argparse.ArgumentParser:
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
    add_journal(commands)
    return parser
