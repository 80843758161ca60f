"""Plain observations: lives without an anomaly and with nothing owed, which need only be counted.

No anomaly is defined here: one message of each observation is examined as a history of its own.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Ints
from ackfsm.history.clocks import Clocks
from ackfsm.history.columns import ABSENT, NAMED, Events, event_code
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.queues import Configurations, configurations_of
from ackfsm.history.read import History
from ackfsm.tables import Specification
from ackfsm.terms import AckScope, Configuration
from ackfsm.verify.conformance.messages import Kept
from ackfsm.verify.counting.watch import MESSAGES
from ackfsm.verify.findings.examine import Asked, examined
from ackfsm.verify.findings.findings import Findings
from ackfsm.verify.words import UNCONFIGURED

_MOST: Final = 1_000
"""So many different observations are examined; messages that have others are kept."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """What one message with a plain observation adds to the counters and ends.

    Attributes:
        configuration: what it is judged by.
        counts: what it adds.
        runs: whether it is a run of the model, in the order of its lines, with nothing happening around it.
    """

    configuration: Configuration | None
    counts: Mapping[str, int]
    runs: bool


class Observations:
    """A cache of examined observations; several threads may ask it, and it may go to another process."""

    def __init__(
        self, specification: Specification, configuration: Configurations | Configuration | None, *, hold: bool
    ) -> None:
        self._configurations = configurations_of(configuration)
        self._asked = Asked(specification=specification, configuration=self._configurations, hold=hold)
        self._known: dict[int, Plain | None] = {}
        self._begin()

    def _begin(self) -> None:
        """What stays in this process: the networks that were met, for one observation after the other."""
        self._lock, self._kept = threading.Lock(), (Kept(), Kept())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in {"_lock", "_kept"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def holds(self) -> bool:
        """Whether messages are held to the model."""
        return self._asked.hold and bool(self._configurations.known())

    @property
    def known(self) -> Mapping[int, Plain | None]:
        """All observations that were met; ``None`` if one is not plain."""
        return self._known

    def learn(self, known: Mapping[int, Plain | None]) -> None:
        """Take over what another has found; who had met too many to examine one more takes nothing back."""
        with self._lock:
            self._known |= {each: its for each, its in known.items() if its is not None or each not in self._known}

    def judged_by(self, queues: pa.Array) -> Ints:
        """For each of ``queues`` the number of what its messages are judged by, a part of their observations."""
        return self._configurations.numbers(queues)

    def examined(self, observation: int, events: Events, rows: Ints) -> Plain | None:
        """Return the answer on an ``observation``; ``rows`` of ``events`` are of one message that has it.

        ``None`` if it is not plain, whatever happens around the message.
        """
        with self._lock:
            if observation not in self._known:
                self._known[observation] = self._examined(events, rows) if len(self._known) < _MOST else None
            return self._known[observation]

    def plain(self, observation: int) -> Plain:
        """Return the answer on a plain ``observation``."""
        found = self._known[observation]
        if found is None:
            raise ValueError(f"observation {observation} is not plain")
        return found

    def _examined(self, events: Events, rows: Ints) -> Plain | None:
        """Return the contribution of one message with the observation; ``None`` if it is not plain."""
        rested, restless = (self._findings(_alone(events, rows, drained=drained)) for drained in (True, False))
        counts = _counts(rested)
        if not (_is_clean(rested, at_rest=True) and _is_clean(restless) and counts == _counts(restless)):
            return None
        its = rested.parts[0].findings if rested.parts else rested
        return Plain(its.configuration, counts, _runs(rested) and _runs(restless))

    def _findings(self, events: Events) -> Findings:
        history = History(path=Path(), header=None, events=events, unreadable=(), unreadable_count=0)
        return examined(history, dataclasses.replace(self._asked, kept=self._kept), Clocks(), 0).findings


def _counts(findings: Findings) -> Mapping[str, int]:
    return {MESSAGES: findings.messages, **findings.counters, **findings.ends}


def _is_clean(findings: Findings, *, at_rest: bool = False) -> bool:
    """Whether nothing was found; ``at_rest`` says that nothing may be open either."""
    for finding in findings.anomalies.values():
        if finding.found or finding.doubt or (at_rest and finding.unknown not in {None, UNCONFIGURED}):
            return False
    return True


def _runs(findings: Findings) -> bool:
    """Whether the life is a run in the order of its lines.

    Other orders are possible only as far as the times leave them, and these are not the same for all messages of one
    observation.
    """
    held = findings.explanation
    in_the_order_of_lines = held is None or held.searches == held.lives == 1
    return held is None or (in_the_order_of_lines and not held.contradicted and not held.undecided)


def _alone(events: Events, rows: Ints, *, drained: bool) -> Events:
    """A history of these rows alone; if ``drained``, with a line at the end that says so."""
    columns = {
        field.name: np.append(getattr(events, field.name)[rows], ABSENT)
        for field in dataclasses.fields(events)
        if field.name != "names"
    }
    columns["t"][-1], columns["event"][-1], columns["errs"][-1] = columns["t"][-2] + 1, event_code(Event.DRAINED), 0
    of_session = columns["scope"] == VOCABULARY["scope"].index(AckScope.SESSION)
    columns["message"][of_session] = ABSENT  # whatever it names, it covers the session
    names = {}
    for name in NAMED:
        used = np.unique(columns[name][:-1])
        used = used[used != ABSENT]
        own = np.searchsorted(used, columns[name])
        columns[name] = np.where(columns[name] == ABSENT, ABSENT, own).astype(np.int32)
        names[name] = events.names[name].take(pa.array(used))
    for name in ("process", "session"):
        columns[name][-1] = len(names[name])
        names[name] = pa.concat_arrays([names[name].cast(pa.string()), pa.array(["nemesis"], pa.string())])
    if not drained:
        columns = {name: column[:-1] for name, column in columns.items()}
    return Events(**columns, names=MappingProxyType(names))
