"""``ackfsm advise``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rich import console

from ackfsm.checking.network import Bounds
from ackfsm.cli._exit_codes import AS_PROMISED, result_code
from ackfsm.cli._options import (
    CONFIGURATION,
    JOBS,
    Command,
    Group,
    Option,
    at_least,
    fault_options,
    faults_from,
    settings_of,
    tables_of,
)
from ackfsm.cli._output import emit, progress_bars, write_then_report, written_lines
from ackfsm.cli._plot import check_plot, plot_files, plot_on_screen
from ackfsm.cli._workload import WORKLOAD, workload_of
from ackfsm.support.files import write_files
from ackfsm.tables import Specification
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from ackfsm.surveys.advice import Request

_MOST_STATES, _MANY_STATES = 4_000_000, 1_000_000
"""States that a search may meet by default: one that decides what is told, and one of many."""

_MOST_CONSUMERS = 2
"""Consumers of a search: two show what competing ones do to each other."""


def _advise(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views.advise import advice_json, advice_screen
    from ackfsm.surveys import advice

    specification = tables_of(arguments)
    if arguments.plot is not None and not arguments.front:
        raise InputError("--plot draws a front; add --front, or leave --plot out")
    if arguments.front:
        return _front(arguments, specification)
    found = _found(arguments, specification, advice.advise)
    emit(arguments, advice_json(specification, found), lambda: advice_screen(specification, found))
    return result_code(violated=not found.proposals and not found.undecided, undetermined=not found.proposals)


_Found = TypeVar("_Found")


def _found(arguments: argparse.Namespace, specification: Specification, question: Callable[..., _Found]) -> _Found:
    """What :func:`ackfsm.surveys.advice.advise` or :func:`ackfsm.surveys.advice.front` says."""
    from ackfsm.surveys import advice

    request = _request(arguments, specification)
    with progress_bars(later=True) as progress_bar:
        return question(
            specification,
            request,
            cache=advice.AnswerCache(specification),
            jobs=arguments.jobs or os.cpu_count() or 1,
            progress_bar=progress_bar,
        )


def _front(arguments: argparse.Namespace, specification: Specification) -> int:
    from ackfsm.showing.views.front import curves_of_front, front_json, front_screen
    from ackfsm.surveys import advice

    check_plot(arguments)
    found = _found(arguments, specification, advice.front)
    files = plot_files(arguments, None if arguments.plot is None else curves_of_front(found))

    def write() -> Sequence[Path]:
        write_files(files)
        return [*files]

    def report(written: Sequence[Path]) -> None:
        document = {**front_json(found), "written": [str(path) for path in written]}
        plot = plot_on_screen(arguments, lambda: curves_of_front(found))
        emit(arguments, document, lambda: console.Group(front_screen(found), *plot, *written_lines(written)))

    write_then_report(write, report)
    return AS_PROMISED


def _request(arguments: argparse.Namespace, specification: Specification) -> Request:
    from ackfsm.surveys import advice

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
            faults=faults_from(arguments),
            max_faults=arguments.max_faults,
            consumers=min(work.consumers, _MOST_CONSUMERS),
        ),
        most=arguments.most,
        max_states=arguments.max_states or (_MANY_STATES if arguments.front else _MOST_STATES),
    )


COMMAND: Final = Command(
    "advise",
    _advise,
    "tell which configurations give what is needed, at which cost, and why cheaper ones do not",
    "ackfsm advise --profile artemis --need no-loss,no-unflagged-duplicate,order --rtt 2ms --rate 20000",
    "explore",
    (
        Option(
            "--need N,...",
            "no- and an anomaly (no-loss), a guarantee (at-least-once, atomic), or order; may be repeated",
            dest="needs",
            repeated=True,
        ),
        *CONFIGURATION,
        *WORKLOAD,
        Group(
            "the proof",
            (
                *fault_options(most=None),
                Option("--messages N", "how many messages (default: 2)", at_least(1), 2),
                Option(
                    "--max-states N",
                    "a search that meets more decides nothing (default: 4,000,000, and 1,000,000 with --front)",
                    at_least(1),
                ),
            ),
        ),
        Option("--most N", "how many configurations to tell (default: 3)", at_least(1), 3),
        Option("--front", "instead: the configurations of which none other gives more of the needs, faster or sooner"),
        Option("--plot FILE", "with --front: draw it, as .svg or .png, or - for characters on the screen"),
        JOBS,
    ),
)
