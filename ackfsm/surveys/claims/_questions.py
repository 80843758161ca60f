"""The questions that claims ask, searches, comparisons and simulations, as values, so that each is answered once.

A question has settings, bounds and names, and nothing of the tables, so that it is small enough to be sent to
another process, which reads the tables itself.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, Instance, Network, compose, observers_named
from ackfsm.rates.timing import Workload
from ackfsm.tables import EventRef, RowKind, Specification
from ackfsm.terms import Configuration, Fault, InputError

if TYPE_CHECKING:
    from ackfsm.checking.unbounded import Decision, Finding

__all__ = [
    "Answer",
    "AnyNumber",
    "AnyNumberResult",
    "EffectEquivalence",
    "Question",
    "Search",
    "SearchResult",
    "Simulation",
    "SimulationResult",
    "TraceEquivalence",
    "answer",
    "network_of",
    "observable",
]


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """Which of the ``watched`` can be reached: anomalies, monitors, ``happens(event)``.

    The search may end as soon as all of them were reached.
    """

    configuration: Configuration
    bounds: Bounds
    watched: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class TraceEquivalence:
    """Whether two configurations have the same traces over the ``observable`` events."""

    left: Configuration
    right: Configuration
    bounds: Bounds
    observable: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class EffectEquivalence:
    """Whether the traces after one event are those after another, wherever both can happen."""

    configuration: Configuration
    bounds: Bounds
    events: tuple[str, str]
    observable: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class AnyNumber:
    """Which of the ``watched`` are impossible for any number of messages, with any number of these faults.

    One is possible if a run shows it that has no more than ``max_faults``, if that is a number.
    """

    configuration: Configuration
    faults: frozenset[Fault]
    max_faults: int | None
    actions: frozenset[str]
    without: frozenset[str]
    watched: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Simulation:
    """How many messages a second producers get to the broker, of so many ``messages`` in virtual time."""

    configuration: Configuration
    work: Workload
    messages: int


@dataclasses.dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search; ``witnesses`` has the labels of a shortest run to each name that was reached."""

    states: int
    transitions: int
    complete: bool
    witnesses: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class SimulationResult:
    """Messages a second that the broker read; ``None`` without NumPy, which a simulation needs."""

    publish: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class Undecided:
    """Why a name is neither proved nor shown for any number of messages, and the last search that looked for it."""

    why: str
    messages: int
    max_faults: int | None
    states: int
    complete: bool


@dataclasses.dataclass(frozen=True, slots=True)
class AnyNumberResult:
    """What is not impossible for any number of messages: what is ``open``, and what is possible.

    Of the latter ``witnesses`` has the number of messages of a run, and the labels of its events.  ``certificate`` is
    the name of the file with the proof, where everything is proved and files were asked for.
    """

    open: Mapping[str, Undecided]
    witnesses: Mapping[str, tuple[int, tuple[str, ...]]]
    certificate: str = ""


Question: TypeAlias = "Search | AnyNumber | TraceEquivalence | EffectEquivalence | Simulation"
Answer: TypeAlias = "SearchResult | AnyNumberResult | explore.Comparison | SimulationResult | str"
"""An answer, or the sentence that says why there is none."""


def observable(specification: Specification) -> frozenset[str]:
    """Return the events that can be seen from outside: events of a history, and faults."""
    return frozenset(event.name for event in specification.events.values() if event.recorded) | frozenset(Fault)


def answer(
    specification: Specification, asked: Sequence[tuple[Question, Path | None]], *, max_states: int
) -> list[Answer]:
    """The answers of the tables to questions; a search gives up after ``max_states``.

    Beside a question there may be where the certificate of its proof is written.
    """
    return [_answer(specification, question, max_states, certificate) for question, certificate in asked]


def _answer(specification: Specification, question: Question, max_states: int, certificate: Path | None) -> Answer:
    try:
        if isinstance(question, Search):
            return _searches(specification.digest, max_states).of(network_of(specification, question))
        if isinstance(question, AnyNumber):
            return _decide(specification, question, max_states, certificate)
        if isinstance(question, Simulation):
            return _simulate(specification, question)
        return _compare(specification, question, max_states)
    except InputError as error:
        return str(error)


def network_of(specification: Specification, question: Search) -> Network:
    """The system that is searched, with the observers of the question."""
    return compose(
        specification, question.configuration, question.bounds, observers_named(specification, question.watched)
    )


class _Searches:
    """What was found in systems, each searched once: many configurations are the same system."""

    def __init__(self, max_states: int) -> None:
        self._options = explore.SearchOptions(max_states=max_states, only_witnesses=True)
        self._found: dict[str, SearchResult] = {}

    def of(self, network: Network) -> SearchResult:
        """Return what a search of ``network`` finds."""
        sliced = explore.Slicer(network).slice()
        if sliced.key not in self._found:
            found = explore.explore_sliced(sliced, self._options)
            witnesses = {name: tuple(event.label for event in steps) for name, steps in found.witnesses.items()}
            self._found[sliced.key] = SearchResult(found.states, found.transitions, found.complete, witnesses)
        return self._found[sliced.key]


@functools.lru_cache(maxsize=1)
def _searches(digest: str, max_states: int) -> _Searches:
    """Return the searches of this process, for all its tasks on the tables with this ``digest``."""
    del digest
    return _Searches(max_states)


def _decide(
    specification: Specification, question: AnyNumber, max_states: int, certificate: Path | None
) -> AnyNumberResult:
    """What is decided, with each witness performed by the reference executor."""
    from ackfsm.checking import unbounded
    from ackfsm.checking.certificates import write_certificate

    bounds = Bounds(faults=question.faults, actions=question.actions, without=question.without)
    decision = unbounded.decide(
        specification,
        question.configuration,
        bounds,
        observers=observers_named(specification, question.watched),
        max_faults=question.max_faults,
        max_states=max_states,
        keep_invariants=certificate is not None,
    )
    decision.witnesses()
    every = [*decision.findings.values(), *decision.ends.values()]
    if certificate is not None and all(finding.reachable is False for finding in every):
        write_certificate(certificate, decision.certificate(specification))
        return AnyNumberResult({}, {}, certificate.name)
    return AnyNumberResult(
        {str(one.anomaly): _undecided(decision, one) for one in every if one.reachable is None},
        {str(one.anomaly): (one.messages, tuple(event.label for event in one.steps)) for one in every if one.reachable},
    )


def _undecided(decision: Decision, finding: Finding) -> Undecided:
    last = decision.searches[-1]
    bounds, found = last.bounds, last.exploration
    return Undecided(finding.undecided, bounds.messages, bounds.max_faults, found.states, found.complete)


def _simulate(specification: Specification, question: Simulation) -> SimulationResult:
    """The producers have the broker for themselves, as they have in the arithmetic."""
    if importlib.util.find_spec("numpy") is None:
        return SimulationResult(None)
    from ackfsm.rates.simulation import simulate

    found = simulate(specification, question.configuration, question.work, question.messages, apart=True)
    return SimulationResult(found.publish)


def _compare(
    specification: Specification, question: TraceEquivalence | EffectEquivalence, max_states: int
) -> explore.Comparison:
    compared: Callable[[Configuration], Network] = functools.partial(
        compose, specification, bounds=question.bounds, observers=()
    )
    if isinstance(question, EffectEquivalence):
        network = compared(question.configuration)
        return explore.compare_after(network, question.events, question.observable, max_states=max_states)
    left, right = compared(question.left), compared(question.right)
    if _is_one_system(left, right):
        return _compare_with_itself(left, max_states)
    return explore.compare(left, right, question.observable, max_states=max_states)


def _is_one_system(left: Network, right: Network) -> bool:
    """Return whether the same rows decide in every state that a machine of either can come to."""
    pairs = list(zip(left.instances, right.instances, strict=False))
    same_events = len(left.instances) == len(right.instances) and left.events == right.events
    return same_events and all(_behaviour(one) == _behaviour(other) for one, other in pairs)


def _behaviour(instance: Instance) -> tuple[str, Mapping[tuple[str, EventRef], tuple[RowKind, str]]]:
    """Return the first state, and the decision in each state that rows lead to from there."""
    fsm = instance.fsm
    found: dict[tuple[str, EventRef], tuple[RowKind, str]] = {}
    known, waiting = {fsm.initial}, [fsm.initial]
    while waiting:
        state = waiting.pop()
        for event in fsm.alphabet:
            row = fsm.rows[state, event]
            found[state, event] = row.kind, row.target
            if row.kind is RowKind.TO and row.target not in known:
                known.add(row.target)
                waiting.append(row.target)
    return fsm.initial, found


def _compare_with_itself(network: Network, max_states: int) -> explore.Comparison:
    """Every state of it is compared with itself."""
    found = explore.explore(network, explore.SearchOptions(max_states=max_states))
    return explore.Comparison(found.complete or None, found.states, (found.states, found.states))
