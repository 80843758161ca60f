"""``ackfsm check``: explore a configuration, and show the result or its witnesses."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ackfsm.checking import explore
from ackfsm.checking.explore import Answer, SmallBound, Witness
from ackfsm.cli._backend import search_of, search_options
from ackfsm.cli._check_any import check_any
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import (
    CONFIGURATION,
    JOBS,
    Command,
    Option,
    at_least,
    bound_options,
    names_in,
    query_from,
    size,
)
from ackfsm.cli._output import emit, progress_line
from ackfsm.cli._witnesses import FORM, Form, form_of, show
from ackfsm.tables import Specification
from ackfsm.terms import InputError

_NONE: Final = "none"
"""The value of ``--reduce`` that reduces nothing."""


def exploration_options(*, any_messages: bool = False) -> tuple[Option, ...]:
    """What a search explores, and how; with ``any_messages`` their number may be any."""
    return (
        *bound_options(any_messages=any_messages),
        *search_options(),
        Option("--max-states N", "stop, undetermined, after so many states", at_least(1, or_any=True)),
        Option("--max-memory M", "stop, undetermined, before the states take more: 512MiB, 8GiB", size),
        Option(
            "--reduce R",
            f"{', '.join(explore.Reduction)}: the same verdicts from fewer states, witnesses perhaps longer; "
            f"{_NONE}: also take the steps that are otherwise only counted, as other orders of the same events lead "
            "there",
            dest="reductions",
            repeated=True,
            choices=[_NONE, *(reduction.value for reduction in explore.Reduction)],
        ),
        Option(
            "--only A,...",
            "look for these anomalies alone, which takes fewer states; may be repeated",
            action="append",
        ),
        JOBS,
        Option("--progress", "tell also what happens in the end, or what may go on for ever instead"),
        Option(
            "--forever E",
            "--progress where this fault or action may happen without end, for example listener_exception",
            repeated=True,
        ),
    )


def _check(arguments: argparse.Namespace) -> int:
    if arguments.messages is None:
        return check_any(arguments)
    if arguments.certificate is not None:
        raise InputError("--certificate is for --messages any; add that, or leave it out")
    form = form_of(arguments)
    specification, answer, witnesses = _run_check(arguments)
    if form is None:
        from ackfsm.showing.views.check import check_screen

        tried = _with_small_bounds(arguments, specification, answer)
        confirmed = _of_what_was_confirmed(arguments, specification, answer)
        also = {"small_bounds": [one.as_json() for one in tried]} if tried else {}
        emit(
            arguments,
            {**_told(arguments, answer, confirmed), **also} if arguments.json else None,
            lambda: check_screen(answer, specification, arguments.api, tried, confirmed),
        )
    else:
        _show(arguments, form, specification, answer, witnesses)
    return _exit_code(answer)


def _show(
    arguments: argparse.Namespace,
    form: Form,
    specification: Specification,
    answer: Answer,
    witnesses: Sequence[Witness],
) -> None:
    """The witnesses; with ``--json`` beside all that the answer says without them."""
    confirmed = _of_what_was_confirmed(arguments, specification, answer) if arguments.json else {}
    show(arguments, form, specification, answer, witnesses, told=_told(arguments, answer, confirmed))


def _told(arguments: argparse.Namespace, answer: Answer, confirmed: Mapping[str, bool | None]) -> Mapping[str, object]:
    """The answer as JSON, but for what smaller bounds say."""
    told = {} if arguments.api is None else {"api": arguments.api}
    narrowed = {"of_what_was_confirmed": confirmed} if confirmed else {}
    return {**told, **answer.as_json(), **narrowed}


def _with_small_bounds(
    arguments: argparse.Namespace, specification: Specification, answer: Answer
) -> tuple[SmallBound, ...]:
    """What happens where bounds are full that this check never fills; each witness is replayed before it is shown."""
    if answer.liveness or arguments.engine == "spark":
        return ()
    with search_of(arguments) as search, progress_line("states found with smaller bounds") as progress:
        tried = explore.small_bounds(
            specification,
            answer,
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            workers=arguments.jobs,
            progress=progress,
            search=search,
            reductions=_reductions(arguments),
        )
    for one in tried:
        one.answer.witnesses()
    return tried


def _of_what_was_confirmed(
    arguments: argparse.Namespace, specification: Specification, answer: Answer
) -> dict[str, bool | None]:
    """Return whether each excluded guarantee stands for the messages that were reported as sent."""
    if arguments.engine == "spark":
        return {}
    with search_of(arguments) as search, progress_line("states found of what was confirmed") as progress:
        return explore.stand_of_confirmed(
            specification,
            answer,
            search=search,
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            progress=progress,
        )


def _reductions(arguments: argparse.Namespace) -> list[explore.Reduction]:
    return [explore.Reduction(name) for name in arguments.reductions if name != _NONE]


def explain_witnesses(arguments: argparse.Namespace) -> int:
    """Show the witnesses of the configuration that ``arguments`` describe; the exit code of its check."""
    form = form_of(arguments) or Form.STEPS
    specification, answer, witnesses = _run_check(arguments)
    _show(arguments, form, specification, answer, witnesses)
    return _exit_code(answer)


def _exit_code(answer: Answer) -> int:
    return result_code(violated=not answer.keeps_promises, undetermined=not answer.exploration.complete)


def _run_check(arguments: argparse.Namespace) -> tuple[Specification, Answer, tuple[Witness, ...]]:
    """The tables, the answer, and its witnesses, each replayed before anything is shown."""
    specification, configuration, bounds = query_from(arguments)
    every_step = _NONE in arguments.reductions
    if every_step and set(arguments.reductions) != {_NONE}:
        raise InputError(f"--reduce {_NONE} reduces nothing; leave it out, or the other --reduce")
    with search_of(arguments) as search, progress_line("states found") as progress:
        answer = explore.check(
            specification,
            configuration,
            bounds,
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            workers=arguments.jobs,
            progress=progress,
            search=search,
            reductions=_reductions(arguments),
            every_step=every_step,
            only=arguments.only and names_in(arguments.only),
            forever=arguments.forever if arguments.progress or arguments.forever else None,
        )
    return specification, answer, answer.witnesses()


COMMAND: Final = Command(
    "check",
    _check,
    "explore everything that a configuration can do when something fails",
    "ackfsm check --set ack_mode=PRE_ACKNOWLEDGE --fault broker_crash\n  ackfsm check --engine symbolic --messages 3",
    "explore",
    (
        *CONFIGURATION,
        *exploration_options(any_messages=True),
        *FORM,
        Option(
            "--certificate FILE",
            "with --messages any: write what was proved, so that `ackfsm certificate verify FILE` can check it",
            Path,
        ),
    ),
)
