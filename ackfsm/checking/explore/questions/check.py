"""``check``: which anomalies a configuration can reach, and which of these it promises absent."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from ackfsm.checking.explore.questions.left_undone import explore_nothing_owed
from ackfsm.checking.explore.questions.liveness import LivenessFinding, check_forever, find_liveness
from ackfsm.checking.explore.reduction.slice import Slicer
from ackfsm.checking.explore.replay.witness import CandidateWitness, Witness, replay_all
from ackfsm.checking.explore.search.explore import Exploration, exploration_of, explore, finished_search
from ackfsm.checking.explore.search.options import Reduction, SearchOptions
from ackfsm.checking.network import (
    Bounds,
    Network,
    NetworkEvent,
    Observer,
    compose,
    observers_named,
    observers_of,
    routes,
)
from ackfsm.tables import Promise, Specification
from ackfsm.terms import Anomaly, Configuration, InputError


class SearchFunction(Protocol):
    """Searches a whole state space, as :func:`ackfsm.checking.explore.explore` does in one process."""

    def __call__(
        self, network: Network, /, *, max_states: int | None, progress: Callable[[int], None] | None
    ) -> Exploration:
        """Return the exploration of ``network``, limits as for :func:`ackfsm.checking.explore.explore`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """The finding on one anomaly, or on one end of a message, by the name of its monitor.

    ``reachable`` is ``None`` where the search stopped before it could tell.  ``steps`` is a witness, empty without
    one, and a shortest one unless the search used reductions; ``promise`` is the sentence that promises it absent.
    Where it happens only as the application does not do what it should, ``left_undone`` has these events, and nobody
    promises anything.
    """

    anomaly: str
    reachable: bool | None
    promise: Promise | None
    steps: tuple[NetworkEvent, ...]
    left_undone: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Promised absent, and yet there is a witness."""
        return self.reachable is True and self.promise is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a check of one configuration.

    ``guarantees`` has for each whether it stands, ``None`` where the search or the tables leave that
    open; ``strongest`` are those that stand and have none above them that stands.  ``ends`` has what is known of the
    monitors that exclude guarantees.  ``liveness`` is empty if it was not asked for.  ``promises_not_asked`` are the
    anomalies that are promised absent, and were not looked for.
    """

    network: Network
    exploration: Exploration
    seconds: float
    findings: Mapping[Anomaly, Finding]
    ends: Mapping[str, Finding]
    guarantees: Mapping[str, bool | None]
    strongest: tuple[str, ...]
    liveness: Mapping[str, LivenessFinding] = dataclasses.field(default_factory=dict)
    promises_not_asked: tuple[Anomaly, ...] = ()

    @property
    def configuration(self) -> Configuration:
        """Return the configuration that was checked."""
        return self.network.configuration

    @property
    def bounds(self) -> Bounds:
        """Within what."""
        return self.network.bounds

    def witnesses(self) -> tuple[Witness, ...]:
        """Return every witness, performed by the reference executor; broken promises come first.

        Raises :class:`NotReplayedError` if one of them is none.
        """
        known = (*self.findings.values(), *self.ends.values())
        reached = sorted((f for f in known if f.reachable), key=lambda finding: not finding.violated)
        candidates = [CandidateWitness(f.anomaly, tuple(event.label for event in f.steps), f.promise) for f in reached]
        return tuple(replay_all(self.network, candidates)) if candidates else ()

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a promise."""
        return tuple(finding for finding in self.findings.values() if finding.violated)

    @property
    def keeps_promises(self) -> bool:
        """Whether no promise is broken, by an anomaly or by a deadlock or lasso."""
        return not self.violations and not any(finding.promised for finding in self.liveness.values())

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The faults and actions that were asked about, and that cannot happen in this configuration."""
        return without_effect(self.network)

    def as_json(self) -> dict[str, object]:
        """The answer as the command contract has it (``docs/commands.md``)."""
        return {
            "config": self.configuration.as_dict(),
            **self.bounds.as_dict(),
            **({"without_effect": list(names)} if (names := self.without_effect) else {}),
            "engine": self.exploration.engine,
            "complete": self.exploration.complete,
            **({} if self.exploration.stopped_by is None else {"stopped_by": self.exploration.stopped_by}),
            "states": self.exploration.states,
            "transitions": self.exploration.transitions,
            **({} if self.exploration.at_rest is None else {"at_rest": self.exploration.at_rest}),
            **({"reductions": list(self.exploration.reductions)} if self.exploration.reductions else {}),
            "seconds": round(self.seconds, 3),
            "anomalies": {
                anomaly.value: {
                    "reachable": finding.reachable,
                    "promised_absent": finding.promise is not None,
                    "steps": [event.label for event in finding.steps],
                    **({"left_undone": list(finding.left_undone)} if finding.left_undone else {}),
                }
                for anomaly, finding in self.findings.items()
            },
            "ends": {
                name: {"reachable": finding.reachable, "steps": [event.label for event in finding.steps]}
                for name, finding in self.ends.items()
            },
            "guarantees": dict(self.guarantees),
            "strongest": list(self.strongest),
            **({"promises_not_asked": list(self.promises_not_asked)} if self.promises_not_asked else {}),
            **({"progress": {n: f.as_json() for n, f in self.liveness.items()}} if self.liveness else {}),
        }


def without_effect(network: Network) -> tuple[str, ...]:
    """The faults and actions of the bounds of ``network`` that cannot happen in it, whatever else happens."""
    bounds = network.bounds
    alive = {network.events[event].name for event in Slicer(network).parts().alive}
    faults = () if bounds.max_faults == 0 else bounds.faults
    return tuple(sorted({*faults, *bounds.actions} - alive))


def check(  # noqa: PLR0913 - the options of a check
    specification: Specification,
    configuration: Configuration,
    bounds: Bounds,
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    forever: Collection[str] | None = None,
    search: SearchFunction | None = None,
    reductions: Sequence[Reduction] = (),
    every_step: bool = False,
    only: Collection[str] | None = None,
    observers: Sequence[Observer] | None = None,
) -> Answer:
    """Explore everything that ``configuration`` can do within ``bounds``.

    With ``forever`` (perhaps empty) liveness is checked too; of the faults and actions those named in it may go on for
    ever.  ``search`` searches in place of this process; it gets ``max_states`` and ``progress`` alone, and liveness is
    not checked.  The other arguments are those of :class:`~ackfsm.checking.explore.SearchOptions`; with ``reductions``
    the verdicts are the same.  With ``only`` nothing but these anomalies and ends of a message are looked for, which
    takes fewer states; the machines that liveness waits for watch all the same.  Other ``observers`` may be given in
    place of those of the tables; an observer of no anomaly is then one of an end.

    Raises :class:`ackfsm.terms.InputError` for settings that the tables do not cover, for names in ``only`` that they
    do not define, and for ``reductions`` together with ``forever`` or ``search``.
    """
    options = SearchOptions(
        max_states=max_states,
        max_memory=max_memory,
        workers=workers,
        progress=progress,
        reductions=reductions,
        every_step=every_step or forever is not None,
    )
    if reductions and search is not None:
        raise InputError(f"only this process searches with {reductions[0]}; leave out the reductions, or the search")
    if forever is not None and reductions:
        raise InputError(
            f"a search with --reduce {reductions[0]} leaves out what may go on for ever; "
            "leave --reduce out, or --progress and --forever"
        )
    check_forever(bounds, forever or ())
    every = observers_of(specification) if observers is None else observers
    watched = {name for name, _ in (every if only is None else observers_of(specification, only))}
    asked = () if forever is None else specification.liveness.values()
    waits = {(one.anomaly, one.machine) for each in asked for one in each.waiting}
    watching = [(name, monitor) for name, monitor in every if name in watched or (name, monitor.machine.name) in waits]
    network = compose(specification, configuration, bounds, watching)
    made = [
        specification.promised_absent(one, bounds.sessions, consumers=bounds.consumers, actions=bounds.actions)
        for one in routes(configuration, bounds)
    ]
    promises = {anomaly: promise for anomaly, promise in made[0].items() if all(anomaly in each for each in made)}
    owed = bounds.without & specification.by_application(configuration)
    liveness: Mapping[str, LivenessFinding] = {}
    begun = time.perf_counter()
    if search is not None:
        exploration = search(network, max_states=max_states, progress=progress)
    elif forever is None:
        exploration = explore(network, options)
    else:
        finished, events = finished_search(network, options)
        promised = () if owed else promises
        liveness = find_liveness(finished, network, specification.liveness, forever=forever, promised=promised)
        exploration = exploration_of(finished, events)
    findings = {
        anomaly: _finding(anomaly, exploration, promises.get(anomaly))
        for anomaly in specification.properties
        if anomaly in watched
    }
    broken = {anomaly for anomaly, finding in findings.items() if finding.violated}
    if owed and broken:
        breaking = [observer for observer in watching if observer[0] in broken]
        plain = dataclasses.replace(options, reductions=(), every_step=False)
        provider = explore_nothing_owed(specification, network, owed, breaking, plain)
        findings |= {anomaly: _of_provider(findings[anomaly], provider, owed) for anomaly in broken}
        if not provider.complete:
            exploration = dataclasses.replace(exploration, complete=False, stopped_by=provider.stopped_by)
    seconds = time.perf_counter() - begun
    lattice = specification.guarantees
    ends = {
        str(name): _finding(str(name), exploration, None)
        for name, _ in every
        if name in watched and name not in specification.properties
    }
    guarantees = lattice.evaluate({name: finding.reachable for name, finding in [*findings.items(), *ends.items()]})
    strongest = lattice.strongest(guarantees)
    not_asked = tuple(anomaly for anomaly in specification.properties if anomaly in promises.keys() - watched)
    return Answer(network, exploration, seconds, findings, ends, guarantees, strongest, liveness, not_asked)


def _of_provider(finding: Finding, provider: Exploration, owed: Collection[str]) -> Finding:
    """Return the finding where the application owes nothing; else, if known, its omissions."""
    found = _finding(finding.anomaly, provider, finding.promise)
    if found.reachable:
        return found
    undone = () if found.reachable is None else tuple(sorted(owed))
    return dataclasses.replace(finding, promise=None, left_undone=undone)


def _finding(name: str, exploration: Exploration, promise: Promise | None) -> Finding:
    excluded = exploration.complete or name in exploration.unreachable
    reachable = True if name in exploration.witnesses else (False if excluded else None)
    return Finding(name, reachable, promise, exploration.witnesses.get(name, ()))


def stand_of_confirmed(  # noqa: PLR0913 - the options of a check
    specification: Specification,
    answer: Answer,
    *,
    search: SearchFunction | None = None,
    max_states: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, bool | None]:
    """For each guarantee that ``answer`` excludes and the tables narrow whether it stands then; ``None``: not known."""
    narrowed = {
        name: guarantee.of_what_was_confirmed
        for name, guarantee in specification.guarantees.items()
        if guarantee.of_what_was_confirmed and answer.guarantees[name] is False and answer.exploration.complete
    }
    if not narrowed:
        return {}
    watching = observers_named(specification, set(narrowed.values()))
    network = compose(specification, answer.configuration, answer.bounds, watching)
    if search is None:
        found = explore(network, SearchOptions(max_states=max_states, max_memory=max_memory, progress=progress))
    else:
        found = search(network, max_states=max_states, progress=progress)
    return {
        name: False if monitor in found.witnesses else True if found.complete else None
        for name, monitor in narrowed.items()
    }
