"""What a check has shown of few messages, asked for any number of them and of faults (``spec/any.md``)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from ackfsm.claims._equivalence import Equal, SameEffect
from ackfsm.claims._evidence import Evidence
from ackfsm.claims._questions import Answer, AnyNumber, AnyNumberResult, Question, few_of, network_of
from ackfsm.claims._reachability import Never
from ackfsm.claims._read import Check
from ackfsm.claims._scope import configurations
from ackfsm.explore import perform
from ackfsm.tables import Specification
from ackfsm.terms import Configuration

__all__ = ["for_any_number", "questions_of"]


def questions_of(specification: Specification, check: Check) -> list[Question]:
    """The proofs that ``check`` needs; none if nothing has to be proved, or nothing can be."""
    if not isinstance(check, Never) or _not_covered(check):
        return []
    return [_proof(check, config) for config in configurations(specification, check.scope.groups)]


def for_any_number(
    specification: Specification, check: Check, evidence: Evidence, answers: Mapping[Question, Answer]
) -> Evidence:
    """The ``evidence`` of a check that holds for its own numbers; open if it is not proved for any number.

    It is refuted if a search of three messages shows what fewer do not.  A run shows that something is possible however
    many messages there are, and a row or a default is what it is; what never happens, and what is the same, has to be
    proved.
    """
    if not evidence.holds or not isinstance(check, Never | Equal | SameEffect):
        return evidence
    if not isinstance(check, Never):
        unequal = isinstance(check, Equal) and not check.wanted
        return evidence if unequal else _open(evidence, {}, "traces are compared for few messages only")
    if why := _not_covered(check):
        return _open(evidence, {}, why)
    settings = configurations(specification, check.scope.groups)
    found = [(_proof(check, config), settings[config]) for config in settings]
    refuted = (_refuted(specification, evidence, proof, its, answers[proof]) for proof, its in found)
    left = (_left(evidence, its, answers[proof]) for proof, its in found)
    return next(filter(None, itertools.chain(refuted, left)), _proved(evidence))


def _refuted(
    specification: Specification, evidence: Evidence, proof: AnyNumber, settings: Mapping[str, Any], answer: Answer
) -> Evidence | None:
    """What more messages than those of the check show, performed by the other executor."""
    if not isinstance(answer, AnyNumberResult) or not answer.witnesses:
        return None
    name, steps = min(answer.witnesses.items(), key=lambda way: len(way[1]))
    search = few_of(proof, answer.witnesses)
    perform(network_of(specification, search), name, steps)
    shown = {"proved": False, "configuration": dict(settings), "steps": list(steps)}
    sentence = f"with {search.bounds.messages} messages {name} can happen, by {' → '.join(steps)}"
    return Evidence(evidence.check, False, sentence, {**evidence.data, "any_number": shown})  # noqa: FBT003


def _left(evidence: Evidence, settings: Mapping[str, Any], answer: Answer) -> Evidence | None:
    """That something is not proved."""
    if not isinstance(answer, AnyNumberResult):
        return _open(evidence, settings, str(answer))
    whys = (_open(evidence, settings, f"{name}: {why}") for name, why in answer.open.items())
    return next(whys, None)


def _proved(evidence: Evidence) -> Evidence:
    sentence = f"{evidence.sentence}; proved for any number of messages and faults"
    return dataclasses.replace(evidence, sentence=sentence, data={**evidence.data, "any_number": {"proved": True}})


def _proof(check: Never, configuration: Configuration) -> AnyNumber:
    bounds = check.scope.bounds
    names = frozenset(check.names)
    return AnyNumber(configuration, bounds.faults, bounds.max_faults, bounds.actions, bounds.without, names)


def _not_covered(check: Never) -> str:
    """Why there is nothing to prove, or no proof is of such systems; empty if neither."""
    bounds = check.scope.bounds
    if bounds.consumers > 1 or bounds.subscriptions > 1:
        return "proofs are of one consumer and one subscription"
    return check.only_these_messages


def _open(evidence: Evidence, settings: Mapping[str, Any], why: str) -> Evidence:
    data = {**evidence.data, "any_number": {"proved": False, "configuration": dict(settings), "undecided": why}}
    sentence = f"{evidence.sentence}; not proved for any number of messages ({why})"
    return Evidence(evidence.check, None, sentence, data)
