"""How often programs do what can be done: of every event of the tables, the share of the runs that have it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ackfsm.engine.core.model import EngineModel
from ackfsm.tables import EventRef, Fsm, RowKind
from ackfsm.terms import Configuration, Consumption
from model_tests.applications.reports import Report
from model_tests.support.tables import shipped

__all__ = ["EXCEPTIONS", "FEATS", "FEW", "Statistics", "possible"]

LEAST = 0.05
"""Of the runs whose configuration has an event so many perform it."""

FEW = 5
"""An event that so few runs have is performed too seldom, whatever its share is."""

EXCEPTIONS: Mapping[str, str] = {
    "producer_restart": "an engine has another session where the model starts a process again",
    "consumer_restart": "an engine has another session where the model starts a process again",
    **dict.fromkeys(
        (
            *("record_survives", "record_vanishes", "ack_record_survives", "ack_record_vanishes"),
            *("commit_survives", "consumer_commit_survives"),
        ),
        "an engine has its journal write and sync in one call, and tells the tables of both before it lets anybody die "
        "(Engine.finish_telling): no fault finds a record that is written and not synced",
    ),
}
"""What is not performed, and why, besides what ``spec/execution.yaml`` says to be not in an engine.

As soon as one of these is performed, its row is wrong (:meth:`Statistics.stale`).
"""

_NOT_IN_ENGINE = "not_in_engine"

FEATS = (
    "delivered",
    "redelivered",
    "acknowledged",
    "resent",
    "committed sends",
    "committed consumption",
    "committed consumption and sends",
    "committed several inputs",
    "rolled_back consumption",
    "rolled_back consumption and sends",
    "struck inside",
    "struck inside commit",
    "another broker with messages",
    "delivered by another broker",
)
"""What applications do, each with a share of all runs that is more than nothing (:data:`LEAST_FEATS`)."""

LEAST_FEATS = 0.01
_PRODUCERS = frozenset({"producer", "window", "unanswered"})
_BOUNDED = frozenset({"publish_window", "prefetch"})


@dataclasses.dataclass
class Statistics:
    """Of many runs."""

    runs: int = 0
    performed: Counter[str] = dataclasses.field(default_factory=Counter)
    had: Counter[str] = dataclasses.field(default_factory=Counter)
    feats: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, report: Report) -> None:
        """One more run."""
        self.runs += 1
        had = {event for s in report.sending for c in report.consuming or [s] for event in possible(s, c)}
        self.had.update(had | report.events.keys())
        self.performed.update(report.events.keys())
        self.feats.update(report.feats)

    def merge(self, other: Statistics) -> None:
        """Those of another process."""
        self.runs += other.runs
        self.performed += other.performed
        self.had += other.had
        self.feats += other.feats

    def share(self, event: str) -> float:
        """Of the runs that have ``event`` those that perform it."""
        return self.performed[event] / self.had[event] if self.had[event] else 0.0

    def rare(self) -> dict[str, float]:
        """The events and feats that are performed too seldom, each with its share."""
        events = {event: self.share(event) for event in _expected()}
        rare = {event: share for event, share in events.items() if share < LEAST or self.had[event] < FEW}
        feats = {feat: self.feats[feat] / max(1, self.runs) for feat in FEATS}
        return rare | {feat: share for feat, share in feats.items() if share < LEAST_FEATS}

    def stale(self) -> list[str]:
        """What is excepted and is none of that: what is performed, and what is no event of the tables."""
        agents = _wiring().table.agents
        absent = (event for event, agent in agents.items() if agent == _NOT_IN_ENGINE)
        return [event for event in (*EXCEPTIONS, *absent) if self.performed[event] or event not in agents]

    def __str__(self) -> str:
        lines = [f"{self.runs:,} runs; of those that have an event, how many perform it:"]
        events = sorted((self.share(event), event) for event in _expected())
        lines += [f"  {share:6.1%}  {event} (in {self.had[event]:,})" for share, event in events]
        lines += ["Of all runs:", *(f"  {n / max(1, self.runs):6.1%}  {feat}" for feat, n in self.feats.most_common())]
        return "\n".join(lines)


def _expected() -> list[str]:
    """The events that programs have to perform, those that have them."""
    agents = _wiring().table.agents
    return [event for event, agent in agents.items() if agent != _NOT_IN_ENGINE and event not in EXCEPTIONS]


@functools.lru_cache(maxsize=4096)
def possible(sent: Configuration, kept: Configuration) -> frozenset[str]:
    """The events that can happen to messages sent under one configuration and consumed under another.

    A machine by itself is followed to the states that it can come to, all together until nothing is taken away: what
    remains contains all that can happen, and possibly a little more.
    """
    merged = dataclasses.replace(kept, delivery_mode=sent.delivery_mode, queue_durable=sent.queue_durable)
    machines = list(_machines(sent, merged))
    agents = _wiring().table.agents
    names = {str(name) for fsm in machines for name in fsm.events}
    events = {name for name in names if agents.get(name, _NOT_IN_ENGINE) != _NOT_IN_ENGINE}
    if kept.consumption is not Consumption.LISTENER:
        events.discard("listener_exception")  # the tables do not ask: nobody calls a listener
    while True:
        refused = {event for fsm in machines for event in _refused(fsm, _reachable(fsm, events))} & events
        if not refused:
            return frozenset(events)
        events -= refused


def _machines(sent: Configuration, kept: Configuration) -> Iterator[Fsm]:
    model = _wiring()
    for part, names in model.table.groups.items():
        for name in names:
            if name not in _BOUNDED:
                producing = part in _PRODUCERS or model.table.index_scope.get(name) == "producer"
                yield model.specification.machines[name].fsm(model.environment(sent if producing else kept))


@functools.cache
def _wiring() -> EngineModel:
    return EngineModel(shipped())


def _reachable(fsm: Fsm, events: Iterable[str]) -> set[str]:
    known = set(events)
    seen, waiting = {fsm.initial}, [fsm.initial]
    refs = [ref for ref in fsm.alphabet if ref.name in known]
    while waiting:
        state = waiting.pop()
        for ref in refs:
            row = fsm.rows[state, ref]
            if row.kind is not RowKind.REFUSE and row.target not in seen:
                seen.add(row.target)
                waiting.append(row.target)
    return seen


def _refused(fsm: Fsm, states: set[str]) -> Iterator[str]:
    """The events that the machine refuses in all these states."""
    for name, refs in fsm.reactive_events.items():
        ref = EventRef(name)
        if ref in refs and all(fsm.rows[state, ref].kind is RowKind.REFUSE for state in states):
            yield name
