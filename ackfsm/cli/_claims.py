"""``ackfsm claims``."""

from __future__ import annotations

import argparse
import os

from ackfsm import tables
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import Commands, at_least, command
from ackfsm.cli._output import emit, progress_bars

__all__ = ["add_claims"]


def add_claims(commands: Commands) -> None:
    parser = command(
        commands,
        "claims",
        _claims,
        words=(
            "prove or refute every sentence of the vendors' documents on the tables, with evidence",
            "ackfsm claims --id C31 --id C32",
        ),
        extra="explore",
    )
    parser.add_argument("--id", metavar="C", action="append", default=[], dest="ids", help="one claim; may be repeated")
    parser.add_argument("--jobs", metavar="N", type=at_least(1), help="how many processes (default: one a processor)")
    parser.add_argument(
        "--max-states", metavar="N", type=at_least(1), help="a search gives up, undetermined, after so many"
    )


def _claims(arguments: argparse.Namespace) -> int:
    from ackfsm import claims
    from ackfsm.views.claims import claims_screen

    specification = tables.load()
    chosen = claims.choose(claims.read(specification), arguments.ids)
    with progress_bars() as progress_bar:
        results = claims.decide(
            specification,
            chosen,
            jobs=arguments.jobs or os.cpu_count() or 1,
            max_states=arguments.max_states or claims.MAX_STATES,
            progress_bar=progress_bar,
        )
    emit(arguments, [one.as_json() for one in results], lambda: claims_screen(results))
    found = {one.status for one in results}
    return result_code(violated=claims.Status.REFUTED in found, undetermined=claims.Status.UNKNOWN in found)
