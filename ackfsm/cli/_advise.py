"""``ackfsm advise``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ackfsm.cli._exit_codes import AS_PROMISED, UNDETERMINED, USAGE
from ackfsm.cli._options import (
    Commands,
    add_configuration,
    add_faults,
    add_jobs,
    at_least,
    command,
    settings_of,
    tables_of,
)
from ackfsm.cli._output import emit, note, progress_bars
from ackfsm.cli._workload import add_workload, workload_of
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Fault, InputError

__all__ = ["add_advise"]

_MOST_CONSUMERS = 2
"""Consumers of a search: two show what competing ones do to each other."""


def add_advise(commands: Commands) -> None:
    parser = command(
        commands,
        "advise",
        _advise,
        words=(
            "tell which configurations give what is needed, at which cost, and why cheaper ones do not",
            "ackfsm advise --profile artemis --need no-loss,no-unflagged-duplicate,order --rtt 2ms --rate 20000",
        ),
        extra="explore",
    )
    parser.add_argument(
        "--need",
        metavar="N,...",
        action="append",
        default=[],
        dest="needs",
        help="no- and an anomaly (no-loss), a guarantee (at-least-once, atomic), or order; may be repeated",
    )
    add_configuration(parser)
    add_workload(parser)
    proof = parser.add_argument_group("the proof")
    add_faults(proof, most=None)
    proof.add_argument("--messages", metavar="N", type=at_least(1), default=2, help="how many messages (default: 2)")
    proof.add_argument(
        "--max-states",
        metavar="N",
        type=at_least(1),
        default=4_000_000,
        help="a search that meets more decides nothing (default: 4,000,000)",
    )
    parser.add_argument(
        "--most", metavar="N", type=at_least(1), default=3, help="how many configurations to tell (default: 3)"
    )
    add_jobs(parser, "how many processors take part (default: all)")


def _advise(arguments: argparse.Namespace) -> int:
    from ackfsm import advice
    from ackfsm.views.advise import advice_json, advice_screen, refusal

    specification = tables_of(arguments)
    request = _request(arguments, specification)
    with progress_bars() as progress_bar:
        found = advice.advise(
            specification,
            request,
            cache=advice.AnswerCache(specification),
            jobs=arguments.jobs or os.cpu_count() or 1,
            progress_bar=progress_bar,
        )
    emit(arguments, advice_json(specification, found), lambda: advice_screen(specification, found))
    if found.proposals:
        return AS_PROMISED
    if found.undecided:
        return UNDETERMINED
    note(f"ackfsm advise: {refusal(found)}")
    return USAGE


def _request(arguments: argparse.Namespace, specification: Specification) -> Any:
    from ackfsm import advice

    if arguments.profile is None and arguments.api is not None:
        raise InputError("--api is an interface of one system; name that with --profile")
    given = settings_of(arguments, specification)
    profile = arguments.profile or given.get("profile")
    profiles = tuple(specification.profiles) if profile is None else (specification.profile_of(profile),)
    work = workload_of(arguments)
    return advice.Request(
        profiles=profiles,
        settings={each: specification.resolve_aliases(each, given) for each in profiles},
        api=arguments.api,
        needs=advice.read_needs(arguments.needs, advice.needs_of(specification)),
        work=work,
        bounds=Bounds(
            messages=arguments.messages,
            faults=frozenset(Fault if arguments.faults is None else arguments.faults),
            max_faults=arguments.max_faults,
            consumers=min(work.consumers, _MOST_CONSUMERS),
        ),
        most=arguments.most,
        max_states=arguments.max_states,
    )
