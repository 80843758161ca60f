"""``decide``: each anomaly impossible for any number of messages, possible by a witness of few, or undecided.

A search of one message shows what can happen, and views what cannot; a search of two and of three messages then shows
some of what is left.  What happens where a small bound is full is performed with the bound as it is set.  Cheap ones
come first, and each looks only for what those before it have left.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.checking import explore
from ackfsm.checking.certificates import Certificate, Invariant, Way
from ackfsm.checking.explore import Answer, SmallBound, Witness
from ackfsm.checking.network import Bounds, Network, NetworkEvent, Observer, compose, observers_of
from ackfsm.checking.unbounded._certify import certificate_of
from ackfsm.checking.unbounded._filled import Filled, filled
from ackfsm.checking.unbounded._prove import MOST_VIEWS, Proof, prove
from ackfsm.checking.unbounded._steps import Level
from ackfsm.tables import Promise, Specification
from ackfsm.terms import Anomaly, Configuration

__all__ = ["Decision", "Finding", "decide"]

_MOST_STATES: Final = 10_000_000
"""A search of one message has seldom more; and what it has looked at to the end need not be proved."""

_MOST_AT_FIRST: Final = 2_000_000
"""A search of two messages, before related messages prove most of what is left."""

_BYTES_OF_A_VIEW: Final = 1_200
"""About so much memory a pair of messages takes, with its steps; other views take a quarter of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding(explore.Finding):
    """What is known of one anomaly, or of one end of a message, whatever the number of messages.

    Attributes:
        reachable: whether it can happen; ``None``: undecided.
        steps: the shortest known way there; empty without one.
        level: where it is impossible, how much of other messages the proof had to know.
        messages: where it can happen, how many messages ``steps`` take, else 0.
        filled: how ``steps`` were made, where they fill a bound that few messages do not.
        undecided: why nothing was decided, a clause; empty if something was.
    """

    level: Level | None = None
    messages: int = 0
    filled: Filled | None = None
    undecided: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of one configuration, for any number of messages and of faults.

    Attributes:
        configuration: what was asked about.
        bounds: the faults and actions; its numbers of messages and faults mean nothing.
        findings, ends: what is known of each anomaly, and of each monitor that excludes guarantees.
        guarantees: for each whether it stands; ``None`` where that is open.
        strongest: those that stand and have none above them that stands.
        promises_not_asked: the anomalies that are promised absent, and were not looked for.
        without_effect: the faults and actions that were asked about, and that cannot happen in this configuration.
        searches: the searches of few messages.
        views: how many views the proofs took.
        seconds: how long all of it took.
        invariants: the views that show what is impossible, if they were to be kept.
    """

    configuration: Configuration
    bounds: Bounds
    findings: Mapping[Anomaly, Finding]
    ends: Mapping[str, Finding]
    guarantees: Mapping[str, bool | None]
    strongest: tuple[str, ...]
    searches: tuple[Answer, ...]
    views: int
    seconds: float
    invariants: tuple[Invariant, ...] = ()
    promises_not_asked: tuple[Anomaly, ...] = ()
    without_effect: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything was decided."""
        return all(finding.reachable is not None for finding in [*self.findings.values(), *self.ends.values()])

    @property
    def keeps_promises(self) -> bool:
        """Whether nothing that is promised absent can happen, as far as that was decided."""
        return not any(finding.violated for finding in self.findings.values())

    @property
    def states(self) -> int:
        """How many states the searches of few messages met."""
        return sum(answer.exploration.states for answer in self.searches)

    def witnesses(self) -> tuple[Witness, ...]:
        """Every witness, performed by the reference executor.

        Raises :class:`ackfsm.checking.explore.NotReplayedError` if one of them is none.
        """
        return tuple(witness for answer in self.searches for witness in answer.witnesses())

    def certificate(self, specification: Specification) -> Certificate:
        """All of it as a certificate, with every way that a search has found; ``specification`` has decided it.

        Raises :class:`InputError` for a decision that did not keep the invariants.
        """
        every = {name: finding for found in (self.findings, self.ends) for name, finding in found.items()}
        return certificate_of(
            specification,
            self.configuration,
            self.bounds,
            proved=(str(name) for name, one in every.items() if one.reachable is False),
            ways=self._ways(),
            not_covered={str(name): why for name, finding in every.items() if (why := _not_covered(finding))},
            invariants=self.invariants,
        )

    def _ways(self) -> Iterator[Way]:
        for answer in self.searches:
            bounds = answer.bounds
            if answer.configuration != self.configuration:
                continue
            for finding in _reached(answer):
                steps = tuple(event.label for event in finding.steps)
                yield Way(str(finding.anomaly), bounds.messages, bounds.max_faults, steps)

    def as_json(self) -> dict[str, object]:
        """The answer as the command contract has it (``docs/commands.md``)."""
        return {
            "config": self.configuration.as_dict(),
            **self.bounds.as_dict(),
            "messages": "any",
            "max_faults": None,
            **({"without_effect": list(self.without_effect)} if self.without_effect else {}),
            "complete": self.complete,
            "states": self.states,
            "transitions": sum(answer.exploration.transitions for answer in self.searches),
            "views": self.views,
            "seconds": round(self.seconds, 3),
            "anomalies": {
                anomaly.value: {**_told(finding), "promised_absent": finding.promise is not None}
                for anomaly, finding in self.findings.items()
            },
            "ends": {name: _told(finding) for name, finding in self.ends.items()},
            "guarantees": dict(self.guarantees),
            "strongest": list(self.strongest),
            **({"promises_not_asked": list(self.promises_not_asked)} if self.promises_not_asked else {}),
        }


def _not_covered(finding: Finding) -> str:
    """Why a certificate does not show what is known; empty if it does."""
    if finding.filled is not None:
        return f"its run is of {finding.messages:,} messages, which a certificate does not perform"
    return finding.undecided


def _told(finding: Finding) -> dict[str, object]:
    return {
        "reachable": finding.reachable,
        "steps": [event.label for event in finding.steps],
        **({"messages": finding.messages} if finding.messages else {}),
        **({"made_from": finding.filled.as_json()} if finding.filled is not None else {}),
        **({"proved_at": finding.level.value} if finding.level is not None else {}),
        **({"undecided": finding.undecided} if finding.undecided else {}),
        **({"left_undone": list(finding.left_undone)} if finding.left_undone else {}),
    }


def decide(  # noqa: PLR0913 - what is asked, and with how much effort
    specification: Specification,
    configuration: Configuration,
    bounds: Bounds,
    *,
    only: Collection[str] | None = None,
    observers: Sequence[Observer] | None = None,
    max_faults: int | None = None,
    max_states: int | None = None,
    max_memory: int | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    keep_invariants: bool = False,
) -> Decision:
    """Decide each anomaly (or those in ``only``) for any number of messages, and of the faults of ``bounds``.

    ``bounds`` is of one consumer and one subscription; its numbers of messages and of faults are not asked.  Other
    ``observers`` may be given in place of those of ``only``; what is no anomaly is then an end.  With ``max_faults``
    nothing is said to be possible that takes more of them; what is impossible is so for any number.  No search meets
    more than ``max_states`` states, no proof more views; both stay within about ``max_memory`` bytes.  With
    ``keep_invariants`` the decision can be made a certificate.

    Raises :class:`ackfsm.terms.InputError` for settings that the tables do not cover, and for names in ``only`` that
    they do not define.
    """
    begun = time.perf_counter()
    effort = _Effort(max_states, max_memory, workers, progress, keep_invariants)
    watching = observers_of(specification, only) if observers is None else observers
    run = _Run(specification, configuration, dataclasses.replace(bounds, max_faults=max_faults), effort, watching)
    run.decide()
    return run.decision(time.perf_counter() - begun)


@dataclasses.dataclass(frozen=True, slots=True)
class _Effort:
    max_states: int | None
    max_memory: int | None
    workers: int | None
    progress: Callable[[int], None] | None
    keep_invariants: bool

    @property
    def max_views(self) -> int:
        most = self.max_states or MOST_VIEWS
        return max(1, most if self.max_memory is None else min(most, self.max_memory // _BYTES_OF_A_VIEW))


class _Run:
    """The steps of one decision; ``left`` has what is not decided yet, with the reason."""

    def __init__(
        self,
        specification: Specification,
        configuration: Configuration,
        bounds: Bounds,
        effort: _Effort,
        observers: Sequence[Observer],
    ) -> None:
        self._specification, self._configuration, self._bounds = specification, configuration, bounds
        self._effort = effort
        self._observers = observers
        self._promises: Mapping[str, Promise] = {
            str(name): promise
            for name, promise in specification.promised_absent(configuration, 1, actions=bounds.actions).items()
        }
        self._left = {str(name): "no level was tried" for name, _ in observers}
        self._found: dict[str, Finding] = {}
        self._evidence: dict[str, list[str]] = {}
        self._searches: list[Answer] = []
        self._least = 1
        self._views = 0
        self._invariants: list[Invariant] = []

    def decide(self) -> None:
        """From the cheapest to the dearest; a certificate has no searches, so that it proves the system of one too."""
        has_ended = self._search_alone()
        self._prove([Level.CHAOS])
        self._fill(self._search(2, _FEW_FAULTS, _MOST_AT_FIRST))
        self._search_sent_once()
        self._prove([Level.RELATED, Level.FOLLOWED])
        if not has_ended:
            self._search_alone()
        self._fill(self._search(2, None))
        self._search(3, _FEW_FAULTS)

    def decision(self, seconds: float) -> Decision:
        for name, why in self._left.items():
            known = "; ".join([why, *self._evidence.get(name, [])])
            self._found[name] = Finding(name, None, self._promises.get(name), (), undecided=known)
        lattice = self._specification.guarantees
        properties, asked = self._specification.properties, {str(name): None for name, _ in self._observers}
        findings = {each: self._found[each] for each in properties if each in self._found}
        ends = {name: self._found[name] for name in asked if name not in properties}
        any_faults = dataclasses.replace(self._bounds, max_faults=None)
        two = compose(self._specification, self._configuration, dataclasses.replace(any_faults, messages=2), ())
        guarantees = lattice.evaluate({name: finding.reachable for name, finding in self._found.items()})
        return Decision(
            configuration=self._configuration,
            bounds=dataclasses.replace(any_faults, messages=1),
            findings=MappingProxyType(findings),
            ends=MappingProxyType(ends),
            guarantees=guarantees,
            strongest=lattice.strongest(guarantees),
            searches=tuple(self._searches),
            views=self._views,
            seconds=seconds,
            invariants=tuple(self._invariants),
            promises_not_asked=tuple(each for each in properties if each in self._promises.keys() - asked.keys()),
            without_effect=explore.without_effect(two),
        )

    def _search(self, messages: int, max_faults: int | None, most: int = _MOST_STATES) -> Answer | None:
        """Whether something that is left happens with so few messages; ``None`` where nothing is left."""
        if not self._left:
            return None
        answer = self._checked(self._configuration, messages, max_faults, most)
        self._take(answer)
        return answer

    def _search_alone(self) -> bool:
        """Whether a search of one message comes to its end; what it has looked through need not be proved.

        The fewer anomalies are left, the fewer machines watch, and the fewer states it has.
        """
        answer = self._search(1, None)
        has_ended = answer is not None and answer.exploration.complete and self._bounds.max_faults is None
        if has_ended and not self._effort.keep_invariants:
            self._least = 2
        return has_ended

    def _search_sent_once(self) -> None:
        """Whether something that is left happens though no message is sent again, where one may be.

        That is a much smaller system, so that longer runs of it are met; they are performed with what was asked about.
        """
        if not self._left or not self._configuration.resend_in_doubt:
            return
        once = dataclasses.replace(self._configuration, resend_in_doubt=False)
        answer = self._checked(once, 2, _FEW_FAULTS, _MOST_AT_FIRST)
        network = compose(self._specification, self._configuration, answer.bounds, self._watching)
        performed = {
            str(one.anomaly): dataclasses.replace(one, promise=self._promise(one))
            for one in _reached(answer)
            if is_performed(network, one)
        }
        self._take(
            dataclasses.replace(
                answer,
                network=network,
                exploration=dataclasses.replace(answer.exploration, complete=False),
                findings={name: performed[name] for name in answer.findings if name in performed},
                ends={name: performed[name] for name in answer.ends if name in performed},
            )
        )

    def _checked(self, configuration: Configuration, messages: int, max_faults: int | None, most: int) -> Answer:
        allowed = (most_faults for most_faults in (max_faults, self._bounds.max_faults) if most_faults is not None)
        return explore.check(
            self._specification,
            configuration,
            dataclasses.replace(self._bounds, messages=messages, max_faults=min(allowed, default=None)),
            max_states=self._effort.max_states or most,
            max_memory=self._effort.max_memory,
            workers=self._effort.workers,
            progress=self._effort.progress,
            observers=self._watching,
        )

    @property
    def _watching(self) -> Sequence[Observer]:
        """What watches for what is left."""
        return [observer for observer in self._observers if observer[0] in self._left]

    def _take(self, answer: Answer) -> None:
        """Take over what a search has shown to happen."""
        self._searches.append(answer)
        for finding in _reached(answer):
            self._happens(finding, finding.steps, answer.bounds.messages)

    def _happens(
        self, finding: explore.Finding, steps: tuple[NetworkEvent, ...], messages: int, run: Filled | None = None
    ) -> None:
        name = str(finding.anomaly)
        self._found[name] = Finding(
            name,
            reachable=True,
            promise=self._promise(finding),
            steps=steps,
            left_undone=finding.left_undone,
            messages=messages,
            filled=run,
        )
        del self._left[name]

    def _promise(self, finding: explore.Finding) -> Promise | None:
        """Who promises that it never happens; nobody does where the application left undone what it should do."""
        return None if finding.left_undone else self._promises.get(str(finding.anomaly))

    def _fill(self, answer: Answer | None) -> None:
        """Whether something that is left happens where bounds are full that the messages of ``answer`` never fill."""
        if answer is None or not self._left:
            return
        tried = explore.small_bounds(
            self._specification,
            answer,
            max_states=self._effort.max_states or _MOST_AT_FIRST,
            max_memory=self._effort.max_memory,
            workers=self._effort.workers,
            progress=self._effort.progress,
            although_incomplete=True,
        )
        for small in tried:
            self._searches.append(small.answer)
            for finding in small.reached:
                self._carry_over(small, finding)

    def _carry_over(self, small: SmallBound, finding: explore.Finding) -> None:
        """What happens with a smaller bound happens with the one that is set if a run shows it; else it is a hint."""
        name = str(finding.anomaly)
        if name not in self._left:
            return
        run = filled(self._specification, self._configuration, small.answer.bounds, small, finding)
        if run is None:
            with_less = " and ".join(f"{setting}={bound}" for setting, bound in small.tried.items())
            hint = f"with {with_less} it happens in {len(finding.steps)} steps, not repeated with {small.value:,}"
            self._evidence.setdefault(name, []).append(hint)
            return
        self._happens(finding, run.steps, run.messages, run)

    def _prove(self, levels: Sequence[Level]) -> None:
        """Whether something that is left is impossible."""
        if not self._left:
            return
        proof: Proof = prove(
            self._specification,
            self._configuration,
            faults=self._bounds.faults,
            actions=self._bounds.actions,
            without=self._bounds.without,
            levels=levels,
            max_states=self._effort.max_views,
            progress=self._effort.progress,
            keep_invariants=self._effort.keep_invariants,
            observers=self._watching,
            least=self._least,
        )
        self._invariants += proof.invariants
        self._views += sum(proof.views.values())
        for name, verdict in proof.verdicts.items():
            if verdict.proved:
                promise = self._promises.get(name)
                self._found[name] = Finding(
                    name,
                    reachable=False,
                    promise=promise,
                    steps=(),
                    level=verdict.level,
                )
                del self._left[name]
            else:
                self._left[name] = verdict.undecided


_FEW_FAULTS: Final = 2


def is_performed(network: Network, finding: explore.Finding) -> bool:
    """Whether the steps of a finding are a run of another network, and show there what they show in its own."""
    try:
        explore.replay(network, str(finding.anomaly), [event.label for event in finding.steps])
    except explore.NotReplayedError:
        return False
    return True


def _reached(answer: Answer) -> Iterator[explore.Finding]:
    for finding in (*answer.findings.values(), *answer.ends.values()):
        if finding.reachable:
            yield finding
