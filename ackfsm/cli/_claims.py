"""``ackfsm claims``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from ackfsm import tables
from ackfsm.cli._exit_codes import AS_PROMISED, result_code
from ackfsm.cli._options import JOBS, MARKDOWN, Command, Option, at_least
from ackfsm.cli._output import emit, hand_out, progress_bars
from ackfsm.support.files import make_folder
from ackfsm.terms import InputError


def _claims(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views.claims import claims_screen
    from ackfsm.surveys import claims

    if arguments.seeds or arguments.output is not None or arguments.form is not None:
        return _seeds(arguments)
    if arguments.certificates is not None:
        if arguments.messages is None:
            raise InputError("--certificates is for --messages any; add that, or leave it out")
        make_folder(arguments.certificates)
    specification = tables.load()
    chosen = claims.choose(claims.read(specification), arguments.ids)
    with progress_bars() as progress_bar:
        results = claims.decide(
            specification,
            chosen,
            jobs=arguments.jobs or os.cpu_count() or 1,
            max_states=arguments.max_states or claims.MAX_STATES,
            progress_bar=progress_bar,
            any_number=arguments.messages is not None,
            certificates=arguments.certificates,
        )
    emit(arguments, [one.as_json() for one in results], lambda: claims_screen(results))
    found = {one.status for one in results}
    return result_code(violated=claims.Status.REFUTED in found, undetermined=claims.Status.UNKNOWN in found)


def _seeds(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views.page import page_screen
    from ackfsm.showing.views.seeds import seeds_json, seeds_page
    from ackfsm.surveys import claims

    if not arguments.seeds:
        option = "--output" if arguments.output is not None else "--as"
        raise InputError(f"{option} is for the list of sentences; add --seeds, or leave {option} out")
    given = (arguments.jobs, arguments.max_states, arguments.messages, arguments.certificates)
    if arguments.ids or any(option is not None for option in given):
        raise InputError(
            "--seeds lists the sentences and proves none; leave --id, --jobs, --max-states, --messages and "
            "--certificates out"
        )
    tables.load()
    seeds = claims.seeds()
    page = seeds_page(seeds)
    hand_out(arguments, page, seeds_json(seeds), None if arguments.form else lambda: page_screen(page))
    return AS_PROMISED


COMMAND: Final = Command(
    "claims",
    _claims,
    "prove or refute every sentence of the vendors' documents on the tables, with evidence",
    "ackfsm claims --id C31 --id C32",
    "explore",
    (
        Option("--id C", "one claim; may be repeated", dest="ids", repeated=True),
        JOBS,
        Option("--max-states N", "a search gives up, undetermined, after so many", at_least(1)),
        Option(
            "--messages",
            "what never happens is proved for any number of messages and faults, or the claim is unknown",
            choices=["any"],
            action="store",
        ),
        Option(
            "--certificates DIR",
            "with --messages any: write the proofs there, so that `ackfsm certificate verify FILE` can check each",
            Path,
        ),
        Option("--seeds", "prove nothing: list every sentence of the documents with what carries it"),
        Option("--output FILE", "write that list there (default: print)", Path),
        MARKDOWN,
    ),
)
