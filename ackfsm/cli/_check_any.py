"""``ackfsm check --messages any``: decisions for any number of messages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import names_in, query_from
from ackfsm.cli._output import emit, is_standard_output, progress_line, write_then_report, written_lines
from ackfsm.cli._witnesses import form_of, show
from ackfsm.support.files import check_place
from ackfsm.tables import Specification
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from ackfsm.checking.unbounded import Decision


def check_any(arguments: argparse.Namespace) -> int:
    """Decide each anomaly for any number of messages and of faults, and show it; the exit code.

    Raises :class:`InputError` for options that only a search of so many messages has.
    """
    for option, remedy in _not_for_any(arguments):
        raise InputError(f"{option} is not for --messages any; {remedy}, or say how many messages")
    from ackfsm.checking import unbounded

    certificate: Path | None = arguments.certificate
    form = form_of(arguments)
    if certificate is not None:
        if form is not None:
            raise InputError("--as shows the ways and --certificate keeps them; leave one of them out")
        if is_standard_output(certificate):
            raise InputError("--certificate writes what is no text; name a file")
        check_place(certificate)
    arguments.messages = 1
    specification, configuration, bounds = query_from(arguments)
    with progress_line("views and states found") as progress:
        decision = unbounded.decide(
            specification,
            configuration,
            bounds,
            only=arguments.only and names_in(arguments.only),
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            workers=arguments.jobs,
            progress=progress,
            keep_invariants=certificate is not None,
        )
    witnesses = [one for one in decision.witnesses() if one.network.configuration == configuration]
    if form is not None:
        show(arguments, form, specification, decision, witnesses, told=_told(arguments, decision))
    else:
        write_then_report(
            lambda: _written(certificate, decision, specification),
            lambda written: _report(arguments, specification, decision, written),
        )
    return result_code(violated=not decision.keeps_promises, undetermined=not decision.complete)


def _written(certificate: Path | None, decision: Decision, specification: Specification) -> list[Path]:
    from ackfsm.checking.certificates import write_certificate

    if certificate is None:
        return []
    write_certificate(certificate, decision.certificate(specification))
    return [certificate]


def _report(
    arguments: argparse.Namespace, specification: Specification, decision: Decision, written: Sequence[Path]
) -> None:
    from ackfsm.showing.views.decision import decision_screen

    files = {"written": list(map(str, written))} if written else {}
    screen = decision_screen(decision, specification, arguments.api)
    emit(arguments, {**_told(arguments, decision), **files}, lambda: Group(screen, *written_lines(written)))


def _told(arguments: argparse.Namespace, decision: Decision) -> Mapping[str, object]:
    told = {} if arguments.api is None else {"api": arguments.api}
    return {**told, **decision.as_json()}


def _not_for_any(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the given options that do not apply, each with its replacement."""
    if arguments.max_faults_given and arguments.max_faults is not None:
        yield "--max-faults", "leave it out, since a proof is for any number of faults"
    if arguments.consumers > 1 or arguments.one_session:
        yield "--consumers", "leave it out, since a proof is for one consumer"
    if arguments.subscriptions > 1 or arguments.non_durable:
        yield "--subscriptions", "leave it out, since a proof is for one subscription"
    if arguments.strikes_while:
        yield "--while", "leave it out, since a proof is for faults at any time"
    if arguments.reductions:
        yield "--reduce", "leave it out"
    if arguments.progress or arguments.forever:
        yield "--progress", "leave it out, since what goes on for ever is not proved"
    if arguments.engine not in {None, "local"}:
        yield f"--engine {arguments.engine}", "leave it out"
