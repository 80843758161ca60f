"""Of every anomaly the messages, or transactions, of one configuration that have it: by machines, and by joins."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask, States
from ackfsm.history.index import Index, Quiescence
from ackfsm.history.queues import Share
from ackfsm.tables import Property, Specification
from ackfsm.terms import Anomaly, Configuration
from ackfsm.verify.counting.count import (
    count_regressions,
    over_delivered,
    prefetch_overruns,
    reordered,
    torn_transactions,
    window_overruns,
)
from ackfsm.verify.counting.machines import Machines, fold
from ackfsm.verify.counting.observables import Stream
from ackfsm.verify.counting.shown import countable, missing_events
from ackfsm.verify.counting.watch import (
    folded_properties,
    machines_of,
    needs_configuration,
    prefetch_of,
    window_of,
)
from ackfsm.verify.words import UNCONFIGURED, undrained

_NOTHING: Final[Ints] = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Count:
    """The messages or transactions that have an anomaly, by code, ascending, and why there may be more."""

    codes: Ints
    unknown: str | None = None
    unshown: bool = False
    """Whether it is unknown since the source cannot show it."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Counted:
    """One share of a history, from which all is counted.

    Attributes:
        stream: what the machines see of ``events``.
        within: for each message whether its sends are within a window.
        unshown: what the source of the history cannot show.
    """

    specification: Specification
    share: Share
    events: Index
    stream: Stream
    within: Mask
    unshown: Collection[str]

    @functools.cached_property
    def machines(self) -> Machines:
        """Return the machines that watch the messages of the share."""
        return machines_of(self.specification, self.configuration)

    @functools.cached_property
    def states(self) -> States:
        """The last state of every machine, for each message."""
        return _final_states(self.machines, self.stream, self.events.count_of("message"))

    @functools.cached_property
    def missing(self) -> frozenset[str]:
        """Return the events that the source cannot show of the share."""
        return missing_events(self.unshown, self.specification, self.configuration)

    @property
    def quiescence(self) -> Quiescence:
        """Return the messages at rest."""
        return self.events.quiescence

    @property
    def configuration(self) -> Configuration | None:
        """What judges the share."""
        return self.share.configuration

    def number_of(self, monitor: str) -> int:
        """How many messages are counted by a monitor."""
        return len(self._meaning(monitor, self.quiescence.judged))

    @functools.cached_property
    def counts(self) -> Mapping[Anomaly, Count]:
        """Return the cases of every anomaly that a history can show, as far as its source can show them."""
        folded = folded_properties(self.specification)
        counts = {anomaly: self._folded(anomaly, definition) for anomaly, definition in folded.items()}
        counts |= {anomaly: count(self) for anomaly, count in _COUNTS.items()}
        shown = countable(self.missing, self.machines, self.events, self.specification, self.configuration)
        return counts | {
            anomaly: Count(counts[anomaly].codes if each.sure else _NOTHING, each.why, unshown=True)
            for anomaly, each in shown.items()
            if counts[anomaly].unknown != UNCONFIGURED
        }

    def unrested(self) -> Mapping[Anomaly, Ints]:
        """Return for every anomaly the messages that would have it if they were at rest, unseen so far."""
        found = {
            anomaly: np.setdiff1d(self._meaning(anomaly), self.counts[anomaly].codes)
            for anomaly, definition in folded_properties(self.specification).items()
            if definition.rest == "drained" and self.counts[anomaly].unknown != UNCONFIGURED
        }
        torn = self.share.only(torn_transactions(self.events, self.quiescence.at_rest(), self.share.messages)[0])
        return found | {Anomaly.TORN_TRANSACTION: np.setdiff1d(torn, self.counts[Anomaly.TORN_TRANSACTION].codes)}

    def _meaning(self, monitor: str, rested: Mask | None = None) -> Ints:
        """Return the messages that ``monitor`` marks, with ``rested`` ones (a mask; ``None``: all) at rest."""
        at_rest = np.ones(len(self.states), bool) if rested is None else rested
        return np.flatnonzero(self.machines.means(monitor, self.states, at_rest) & self.share.messages)

    @property
    def _not_at_rest(self) -> str | None:
        """Why some message cannot be judged at rest, if so."""
        queues = self.quiescence.undrained(self.share.messages)
        return undrained(queues) if queues else None

    def _folded(self, anomaly: Anomaly, definition: Property) -> Count:
        if self.configuration is None and needs_configuration(definition):
            return Count(_NOTHING, UNCONFIGURED)
        if definition.rest == "drained":
            return Count(self._meaning(anomaly, self.quiescence.judged), self._not_at_rest)
        return Count(self._meaning(anomaly))

    def torn(self) -> Count:
        """The torn transactions."""
        codes, complete = torn_transactions(self.events, self.quiescence, self.share.messages)
        unknown = None if complete else self._not_at_rest or "no `drained` follows a commit in doubt"
        return Count(self.share.only(codes), unknown)

    def bounded(self, count: Callable[[Counted, Configuration], Ints]) -> Count:
        """What hangs on a bound, which a configuration has."""
        configuration = self.configuration
        return Count(_NOTHING, UNCONFIGURED) if configuration is None else Count(count(self, configuration))


def _final_states(machines: Machines, stream: Stream, messages: int) -> States:
    """The states of every message; one that nothing was observed of is where it began."""
    states = np.tile(machines.initial, (messages, 1))
    starts = np.flatnonzero(np.diff(stream.message, prepend=-1))
    states[stream.message[starts]] = fold(machines, starts, stream.observable)
    return states


def _overrun(this: Counted, configuration: Configuration) -> Ints:
    window = window_of(this.specification, configuration)
    return _NOTHING if window is None else this.share.of(window_overruns(this.events, window, this.within))


def _over_prefetch(this: Counted, configuration: Configuration) -> Ints:
    prefetch = prefetch_of(this.specification, configuration)
    return _NOTHING if prefetch is None else prefetch_overruns(this.events, prefetch, this.share.messages)


def _with_odd_counts(this: Counted) -> Ints:
    its = this.configuration
    uncounted = its is not None and not (its.release_counts or its.requeue_clears_mark)
    return count_regressions(this.events, uncounted=uncounted)


_COUNTS: Final[Mapping[Anomaly, Callable[[Counted], Count]]] = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: Counted.torn,
        Anomaly.REORDER: lambda this: Count(this.share.of(reordered(this.events))),
        Anomaly.WINDOW_OVERRUN: lambda this: this.bounded(_overrun),
        Anomaly.PREFETCH_OVERRUN: lambda this: this.bounded(_over_prefetch),
        Anomaly.COUNT_REGRESSION: lambda this: Count(this.share.of(_with_odd_counts(this))),
        Anomaly.OVER_DELIVERED: lambda this: this.bounded(
            lambda _, its: this.share.of(over_delivered(this.events, its.max_delivery_attempts))
        ),
    }
)
"""The anomalies that no machine of one message can see."""


def shown_anomalies(specification: Specification) -> tuple[Anomaly, ...]:
    """Return the anomalies that a history can show."""
    counted = folded_properties(specification).keys() | _COUNTS.keys() | {Anomaly.STUCK}
    return tuple(anomaly for anomaly in Anomaly if anomaly in counted)
