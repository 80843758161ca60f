"""An advice on a terminal, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ackfsm.checking.network import Bounds
from ackfsm.showing.views.lines import hanging
from ackfsm.showing.views.plan import duration, rate_json, rate_text
from ackfsm.surveys.advice import Advice, Candidate, Failure, GivenUp, Proposal, Request, Snippet, snippets_of
from ackfsm.tables import Specification, format_value
from ackfsm.terms import Configuration, Fault


def advice_screen(specification: Specification, advice: Advice) -> RenderableType:
    """Return the proposals with their proofs, the failures of cheaper ones, and the needs to give up."""
    return Group(
        _heading(advice),
        *_proposals(specification, advice),
        *_failures(advice),
        *_given_up(specification, advice),
        Text(),
        _note(advice),
    )


def _heading(advice: Advice) -> Text:
    request, count = advice.request, len(advice.proposals)
    if not count and advice.undecided:
        return Text(
            f"undecided: {_of(request)} may give {_asked(request)}, as far as was searched", style="bold yellow"
        )
    if not count:
        return Text(_none(advice), style="bold red")
    return Text(f"{_of(request)}: to have {_asked(request)}, take", style="bold green")


def _of(request: Request) -> str:
    return request.profiles[0] if len(request.profiles) == 1 else "any system"


def _asked(request: Request) -> str:
    """``no-loss, order and 20,000 messages a second``."""
    names = [need.name for need in request.needs]
    if request.work.rate is not None:
        names.append(_rate_asked(request))
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def _rate_asked(request: Request) -> str:
    rate = request.work.rate
    return "" if rate is None else f"{float(rate):,.10g} messages a second"


def _proposals(specification: Specification, advice: Advice) -> Iterator[RenderableType]:
    for number, proposal in enumerate(advice.proposals, start=1):
        yield Text()
        yield Text.assemble((f"{number}  ", "bold"), _cost(proposal.candidate))
        yield Padding(_what(proposal.candidate), (0, 0, 0, 3))
        yield Padding(_proof(specification, advice.request, proposal), (0, 0, 0, 3))
        if number == 1:
            yield Padding(Group(*_snippets(specification, proposal.candidate)), (0, 0, 0, 3))


def _snippets(specification: Specification, candidate: Candidate) -> Iterator[Text]:
    for snippet in _written(specification, candidate):
        yield Text(f"{snippet.where}:")
        yield Text(snippet.text, style="green", overflow="fold")


def _written(specification: Specification, candidate: Candidate) -> tuple[Snippet, ...]:
    return snippets_of(
        specification,
        candidate.configuration,
        per_commit=candidate.work.messages_per_commit,
        per_acknowledge=candidate.work.messages_per_acknowledge,
        message_size=candidate.work.message_size,
    )


def _cost(candidate: Candidate) -> str:
    who = candidate.configuration.profile
    return f"{who}: {rate_text(candidate.rate)} messages a second, {duration(candidate.seconds)} each"


def _what(candidate: Candidate) -> Text:
    return Text(changes_text(candidate) or "as the system has it by default", style="cyan")


def changes_text(candidate: Candidate) -> str:
    """The settings and sizes that are not as they are by default, in the syntax of ``--set``."""
    return " ".join(f"{key}={format_value(value)}" for key, value in candidate.changes.items())


def _proof(specification: Specification, request: Request, proposal: Proposal) -> Text:
    line = check_line(specification, request, proposal.candidate.configuration)
    return Text(f"proved in {proposal.states:,} states:\n  {line}")


def check_line(specification: Specification, request: Request, configuration: Configuration) -> str:
    """Return the command that proves the needs of ``configuration`` again."""
    profile = configuration.profile
    values = configuration.as_dict()
    chosen = specification.profiles[profile].chosen(
        {key: getattr(configuration, key) for key in values if key != "profile"} | {"profile": profile}
    )
    words = ["ackfsm", "check", "--profile", specification.profile_option(profile)]
    for key, value in chosen.items():
        words += ["--set", f"{key}={format_value(value)}"]
    watched = sorted({name for need in request.needs for name in need.excluded_by})
    words += [*_bounds(request.bounds), *(word for name in watched for word in ("--only", name))]
    return " ".join([*map(shlex.quote, words), "--reduce", "partial-order"])


def _bounds(bounds: Bounds) -> Iterator[str]:
    if bounds.faults != set(Fault):
        for fault in sorted(bounds.faults):
            yield from ("--fault", fault)
    yield from ("--max-faults", "any" if bounds.max_faults is None else str(bounds.max_faults))
    yield from ("--messages", str(bounds.messages))
    if bounds.consumers > 1:
        yield from ("--consumers", str(bounds.consumers))


def _failures(advice: Advice) -> Iterator[RenderableType]:
    if not advice.failures and not advice.undecided:
        return
    yield Text()
    yield Text("nearest that fail" if advice.failures else "not decided", style="bold")
    for failure in advice.failures:
        yield hanging(_failure(advice.request, failure), "")
    if advice.undecided:
        first = advice.undecided[0]
        yield hanging(
            f"undecided: {len(advice.undecided)} more, for example {changes_text(first.candidate) or 'the defaults'}: "
            f"{first.states:,} states with {first.bounds.messages} messages were not all; raise --max-states",
            "yellow",
        )


def _failure(request: Request, failure: Failure) -> str:
    what, cost = changes_text(failure.candidate) or "the defaults", _cost(failure.candidate)
    if failure.need is None:
        binds = failure.candidate.plan.publish if _publish_binds(failure.candidate) else failure.candidate.plan.deliver
        return f"{_rate_asked(request)}: {what}: {rate_text(failure.candidate.rate)}/s, bound by {binds.binds}"
    return f"{failure.need.name}: {what} ({cost}): {_witness(failure)}"


def _publish_binds(candidate: Candidate) -> bool:
    publish, deliver = candidate.plan.publish.rate.low, candidate.plan.deliver.rate.low
    return publish is not None and (deliver is None or publish <= deliver)


def _witness(failure: Failure) -> str:
    faults = [label for label in failure.witness if label.partition("(")[0] in set(Fault)]
    after = f"after {', '.join(faults)}" if faults else "without any fault"
    return f"{failure.anomaly} {after}, in {len(failure.witness)} steps"


def _given_up(specification: Specification, advice: Advice) -> Iterator[RenderableType]:
    for each in advice.given_up:
        yield Text()
        yield Text(f"without {_without(advice.request, each)}: {_cost(each.proposal.candidate)}", style="bold")
        yield Padding(_what(each.proposal.candidate), (0, 0, 0, 3))
        if len(each.needs) < len(advice.request.needs):
            yield Padding(_proof(specification, advice.request, each.proposal), (0, 0, 0, 3))


def _without(request: Request, given_up: GivenUp) -> str:
    known = {need.name for need in request.needs}
    return " and ".join(name if name in known else _rate_asked(request) for name in given_up.needs)


def _note(advice: Advice) -> Text:
    counts = f"{advice.candidates:,} legal configurations, {advice.tried:,} looked at, the cheapest first. "
    return Text(counts + proved_for(advice.request), style="dim")


def proved_for(request: Request) -> str:
    """Return the scope of a proof, a sentence."""
    bounds = request.bounds
    faults = "any fault" if bounds.faults == set(Fault) else ", ".join(sorted(bounds.faults)) or "no fault"
    times = "any number of times" if bounds.max_faults is None else f"at most {bounds.max_faults} in all"
    messages = f"{bounds.messages} message" + "s" * (bounds.messages > 1)
    consumers = f", {bounds.consumers} consumers" if bounds.consumers > 1 else ""
    return f"A proof is of {messages}{consumers}; {faults}, {times}."


def _none(advice: Advice) -> str:
    request = advice.request
    least = " or ".join(_without(request, each) for each in advice.given_up[:2])
    return f"none: no configuration of {_of(request)} gives {_asked(request)}" + (f"; give up {least}" if least else "")


def advice_json(specification: Specification, advice: Advice) -> dict[str, Any]:
    """The advice as plain values: rates in messages a second, times in seconds."""
    request = advice.request
    return {
        "needs": [need.name for need in request.needs],
        "rate": None if request.work.rate is None else float(request.work.rate),
        "bounds": request.bounds.as_dict(),
        "candidates": advice.candidates,
        "tried": advice.tried,
        "proposals": [_proposal_json(specification, request, each) for each in advice.proposals],
        "failures": [_failure_json(each) for each in advice.failures],
        "undecided": [_failure_json(each) for each in advice.undecided],
        "given_up": [
            {"without": list(each.needs), **_proposal_json(specification, request, each.proposal)}
            for each in advice.given_up
        ],
    }


def candidate_json(candidate: Candidate) -> Mapping[str, Any]:
    """Return a configuration, its changes and its costs as plain values."""
    return {
        "config": candidate.configuration.as_dict(),
        "changes": {key: format_value(value) for key, value in candidate.changes.items()},
        "messages_per_commit": candidate.work.messages_per_commit,
        "messages_per_acknowledge": candidate.work.messages_per_acknowledge,
        **rate_json(candidate.rate),
        "seconds": float(candidate.seconds),
    }


def _proposal_json(specification: Specification, request: Request, proposal: Proposal) -> dict[str, Any]:
    line = check_line(specification, request, proposal.candidate.configuration)
    return {
        **candidate_json(proposal.candidate),
        "states": proposal.states,
        "proof": line,
        "snippets": [
            {"where": each.where, "text": each.text, "sets": sorted(each.sets)}
            for each in _written(specification, proposal.candidate)
        ],
    }


def _failure_json(failure: Failure) -> dict[str, Any]:
    return {
        **candidate_json(failure.candidate),
        "need": None if failure.need is None else failure.need.name,
        "anomaly": failure.anomaly or None,
        "witness": list(failure.witness),
        "states": failure.states,
        "searched": failure.bounds.as_dict(),
    }
