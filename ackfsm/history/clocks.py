"""Clock skew: the order that events demand, and the corrections of process clocks that it needs.

Every process has a clock of its own.  With a tolerance (``--skew``) each process may be shifted by one constant, such
that no two clocks differ by more than the tolerance: as little as it takes for causes to come before their effects.
Without one the differences are estimated: nothing is delivered before it was sent, and up to :data:`ESTIMATED` that
tells of clocks alone.  Where constants do not suffice, clocks may also run at different rates
(:mod:`ackfsm.history.drift`).  The order within a process stays as it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Codes, Ints
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.drift import FAR, Hulls, hulls_of, lines_of, united
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, number_pairs
from ackfsm.history.transactions import transactions_told_apart
from ackfsm.terms import InputError

Shifts: TypeAlias = Mapping[tuple[str, str], int]
"""By how much the clock of the second process has to be shifted against that of the first, at least.

Twice the nanoseconds, plus one if at the same moment it would still have to come later.
"""

SENT: Final = (
    *(Event.DELIVERED, Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT),
    *(Event.EXPIRED, Event.DEAD_LETTERED),
)
"""What comes after the first send of its message."""

COMMITTED: Final = (Event.DELIVERED,)
"""What also comes after the first call of commit, if its message was sent once, in that transaction."""

ESTIMATED: Final = 10**8
"""Nanoseconds.  Up to so much a delivery before its send is taken for a difference of clocks, if nobody says more."""

MOST_RANKS: Final = 1 << 15
"""So many different shifts can be told apart at one moment."""

_STRICT: Final = 1 << 32
"""A nanosecond, beside the steps that are infinitely small."""


@dataclasses.dataclass(frozen=True, slots=True)
class Demands:
    """What events demand of the clocks.

    Attributes:
        shifts: the greatest demand of each pair of processes on constant shifts.
        hulls: the demands of each pair over time; empty unless clocks are estimated.
    """

    shifts: Shifts = dataclasses.field(default_factory=dict)
    hulls: Hulls = dataclasses.field(default_factory=dict)

    @classmethod
    def merged(cls, demands: Sequence[Demands]) -> Demands:
        """All of several ``demands``: associative and commutative, and of none there are none."""
        shifts = dict[tuple[str, str], int]()
        for each in demands:
            for pair, demand in each.shifts.items():
                shifts[pair] = max(demand, shifts.get(pair, demand))
        return cls(shifts, united(each.hulls for each in demands))


@dataclasses.dataclass(frozen=True, slots=True)
class Clocks:
    """How the clocks of a history are put right.

    Attributes:
        offsets: nanoseconds to be added to the times of a process, at ``since``; of those that are shifted, by name.
        ranks: which comes first at the same moment; 0 for those that are not in it.
        drifts: how many nanoseconds more for each nanosecond after ``since``, of those that drift.
        since, until: the time for which drifts are known; before and after it shifts stay as they are there.
    """

    offsets: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ranks: Mapping[str, int] = dataclasses.field(default_factory=dict)
    drifts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    since: int = 0
    until: int = 0

    @property
    def latest(self) -> int:
        """Return the greatest shift in ns; a shift back that is this much less stays a number of 64 bits."""
        ends = np.array([self.since, self.until])
        return max((int(self._shifts(name, ends).max()) for name in self.offsets), default=0)

    def shifts(self, names: Sequence[str], process: Codes, t: Ints) -> Ints:
        """Return the ns to be added to each ``t`` of a ``process``, a code of ``names``."""
        offsets = np.array([self.offsets.get(name, 0) for name in names], np.int64)
        found: Ints = offsets[process]
        for code, name in enumerate(names):
            if name in self.drifts:
                its = process == code
                found[its] = self._shifts(name, t[its])
        return found

    def _shifts(self, name: str, t: Ints) -> Ints:
        passed = np.clip(t, self.since, self.until) - self.since
        found: Ints = self.offsets[name] + np.ceil(self.drifts.get(name, 0.0) * passed).astype(np.int64)
        return found


def clocks_of(demands: Demands, skew: int | None) -> Clocks:
    """The clocks that meet ``demands``: shifted by at most ``skew`` nanoseconds, or as is estimated (``None``).

    An estimate has clocks drift only if that meets all demands over time, and constants do not.
    """
    if skew is not None:
        return constants_of(demands.shifts, skew)
    constants = constants_of(demands.shifts, ESTIMATED)
    apart = {pair: constants.offsets.get(pair[1], 0) - constants.offsets.get(pair[0], 0) for pair in demands.hulls}
    if all(late <= apart[pair] for pair, hull in demands.hulls.items() for _, late in hull):
        return constants
    return _drifting(demands.hulls) or constants


def _drifting(hulls: Hulls) -> Clocks | None:
    """The clocks that meet ``hulls``, if straight corrections do."""
    times = [t for hull in hulls.values() for t, _ in hull]
    since, until = min(times) - FAR, max(times) + FAR
    lines = lines_of(hulls, since, until, ESTIMATED)
    if not lines:
        return None
    offsets, drifts = ({name: line[part] for name, line in sorted(lines.items())} for part in (0, 1))
    return Clocks({name: math.ceil(offset) for name, offset in offsets.items()}, {}, drifts, since, until)


def constants_of(demands: Shifts, skew: int) -> Clocks:
    """The least shifts, at most ``skew`` nanoseconds, for as many of the ``demands`` as possible, small ones first.

    Raises :class:`InputError` if these are :data:`MOST_RANKS` different shifts or more.
    """
    weights = {pair: (demand >> 1) * _STRICT + (demand & 1) for pair, demand in demands.items()}
    followers: dict[str, dict[str, int]] = defaultdict(dict)
    for (before, after), weight in weights.items():
        if weight <= 0:
            followers[before][after] = weight
    shifts: dict[str, int] = {}
    for weight, before, after in sorted((weight, *pair) for pair, weight in weights.items() if weight > 0):
        followers[before][after] = weight
        raised = _raised(followers, shifts, before, skew * _STRICT + _STRICT - 1)
        if raised is None:
            del followers[before][after]
        else:
            shifts |= raised
    return _clocks(shifts)


def _raised(
    followers: Mapping[str, Mapping[str, int]], shifts: Mapping[str, int], begin: str, most: int
) -> dict[str, int] | None:
    """The shifts that a new demand on what follows ``begin`` raises, at their least; ``None`` if it cannot be met.

    It cannot if a shift exceeds ``most``, or if ``begin`` itself would have to be raised: ``shifts`` met all other
    demands, so the new one closes a circle that no shifts satisfy.
    """
    found, waiting = dict[str, int](), deque([begin])
    while waiting:
        before = waiting.popleft()
        shift = found.get(before, shifts.get(before, 0))
        for after, weight in followers.get(before, {}).items():
            needed = shift + weight
            if needed <= found.get(after, shifts.get(after, 0)):
                continue
            if needed > most or after == begin:
                return None
            found[after] = needed
            waiting.append(after)
    return found


def _clocks(shifts: Mapping[str, int]) -> Clocks:
    split = {process: divmod(shift, _STRICT) for process, shift in sorted(shifts.items()) if shift > 0}
    ranks = {each: i for i, each in enumerate(sorted({(step, ns) for ns, step in split.values()}), start=1)}
    if len(ranks) >= MOST_RANKS:
        raise InputError(f"--skew would take {len(ranks):,} different shifts, more than can be told apart; lower it")
    return Clocks(
        {process: ns for process, (ns, _) in split.items()},
        {process: ranks[step, ns] for process, (ns, step) in split.items()},
    )


def aligned(events: Events, skew: int | None) -> tuple[Events, Clocks]:
    """``events`` in the order of clocks that are put right by at most ``skew`` nanoseconds, and how they are.

    ``None`` estimates the differences.  The ``t`` of the events stays as it was recorded.
    """
    clocks = clocks_of(demands_of(events, skew), skew) if contradict(events, skew) else Clocks()
    return by_clocks(events, clocks)[0], clocks


def contradict(events: Events, skew: int | None) -> bool:
    """Whether ``events``, as they were recorded, have an effect before its cause, by no more than clocks may differ."""
    causes, effects, _ = _caused(events, skew)
    return bool((causes > effects).any())


def by_clocks(events: Events, clocks: Clocks) -> tuple[Events, Ints | slice]:
    """``events``, which are in the order of time, in that of clocks that were put right, and how they are taken."""
    if not clocks.offsets:
        return events, slice(None)
    names = events.names["process"].to_pylist()
    ranks = np.array([clocks.ranks.get(name, 0) for name in names], np.int64)
    shifts = clocks.shifts(names, events.process, events.t) - clocks.latest
    order = np.lexsort((ranks[events.process], events.t + shifts))
    return events.take(order), order


def demands_of(events: Events, skew: int | None) -> Demands:
    """Return the demands of the events within ``skew`` ns; for an estimate, that no delivery precedes its send."""
    causes, effects, late = _caused(events, skew)
    names = events.names["process"].to_pylist()
    before, after = events.process[causes], events.process[effects]
    near = np.abs(late) <= (ESTIMATED if skew is None else skew)
    needed = 2 * late + ((late != 0) | (causes > effects))
    shifts = _greatest(names, before[near], after[near], needed[near])
    return Demands(shifts, hulls_of(names, before, after, events.t[effects], late) if skew is None else {})


def _caused(events: Events, skew: int | None) -> tuple[Ints, Ints, Ints]:
    """Rows of causes and of their effects in other processes, and how long after its effect a cause was recorded."""
    if skew == 0:
        return (np.empty(0, np.int64),) * 3
    events = Index.of(events if skew is None else transactions_told_apart(events))
    first = events.first_send
    effects = events.places(*(COMMITTED if skew is None else SENT))
    committed = events.places(*(() if skew is None else COMMITTED))
    commits = _commits(events)
    causes = np.concatenate([first[events.message[effects]], commits[events.message[committed]]])
    effects = np.concatenate([effects, committed])
    told = causes != NONE
    causes, effects = causes[told], effects[told]
    late = events.t[causes] - events.t[effects]
    seen = (events.process[causes] != events.process[effects]) & (np.abs(late) <= (FAR if skew is None else skew))
    return causes[seen], effects[seen], late[seen]


def _commits(events: Index) -> Ints:
    """The row of the first call of commit of the transaction in which each message was sent, if it was sent once."""
    once = (events.first_send != NONE) & (events.first_send == events.last_send)
    transaction = np.where(once, events.transaction[events.first_send], ABSENT)
    return np.append(events.first_of(events.places(Event.COMMIT), "transaction"), NONE)[transaction]


def _greatest(told: Sequence[str], before: Codes, after: Codes, needed: Ints) -> Shifts:
    """The greatest of ``needed`` for each pair of processes."""
    pair = number_pairs(before, after)
    order = np.lexsort((needed, pair))
    last = order[np.append(pair[order][1:] != pair[order][:-1], np.ones(min(1, len(order)), bool))]
    return {(told[p], told[q]): int(n) for p, q, n in zip(before[last], after[last], needed[last], strict=True)}
