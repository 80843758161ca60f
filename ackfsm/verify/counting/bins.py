"""What went on in a history over time, in bins: how many messages were sent, delivered ..., and how many were open.

Bins are aligned to whole multiples of their width, and the widths divide one another, so that the bins of chunks can be
added to those of a history (:meth:`Bins.merged`) whatever its length.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, number_pairs
from ackfsm.verify.counting.observables import Observable, covering_acks

__all__ = ["LEVELS", "MOST_BINS", "MOST_GROUPS", "Bins", "By", "Grouped", "Series", "bins_of", "width_of"]

MOST_BINS: Final = 600
"""A history has at most so many bins, and mostly more than a fifth of that."""

MOST_GROUPS: Final = 256
"""Of more queues, sessions or pairs of them nothing is told apart."""


class Series(StrEnum):
    """The kinds of counts over time."""

    SENT = "sent"
    CONFIRMED = "confirmed"
    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    UNANSWERED = "unanswered"
    WAITING = "waiting"
    IN_HAND = "in_hand"


LEVELS: Final = frozenset({Series.UNANSWERED, Series.WAITING, Series.IN_HAND})
"""What is open at the end of a bin; all others happen in it."""

_NUMBER: Final = {series: number for number, series in enumerate(Series)}


class By(StrEnum):
    """The ways to divide counts into groups."""

    ALL = "all"
    QUEUE = "queue"
    SESSION = "session"
    PAIR = "pair"


Group: TypeAlias = tuple[str | None, str | None]
"""A queue (``""``: none is named) and a session; ``None`` for any."""

_SECOND: Final = 10**9


def _widths() -> Iterator[int]:
    """Yield widths of bins in ns, ascending; each divides the next, as seconds do minutes."""
    for power in range(9):
        yield from (10**power, 5 * 10**power)
    yield from (_SECOND * each for each in (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200))
    yield from (86_400 * _SECOND * each * 10**power for power in range(6) for each in (1, 5))


WIDTHS: Final = tuple(_widths())


def width_of(begun: int, ended: int) -> int:
    """Return the width of bins in ns: at most :data:`MOST_BINS` of them reach from ``begun`` to ``ended``."""
    return next((each for each in WIDTHS if ended // each - begun // each < MOST_BINS), WIDTHS[-1])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """The counts that are not 0, as columns: the group, the series, the bin and the count of each."""

    group: Ints
    series: Ints
    bin: Ints
    count: Ints
    names: tuple[Group, ...]

    def coarser(self, ratio: int) -> Grouped:
        """In bins that are ``ratio`` times as wide."""
        return self if ratio == 1 else self.summed(self.bin // ratio)

    def summed(self, bins: Ints) -> Grouped:
        """With these bins instead of its own; what falls together is added."""
        if not len(bins):
            return self
        first = int(bins.min())
        shape = (len(self.names), len(Series), int(bins.max()) - first + 1)
        flat = np.ravel_multi_index((self.group, self.series, bins - first), shape)
        count = np.bincount(flat, weights=self.count).astype(np.int64)
        found = np.flatnonzero(count)
        group, series, its_bin = np.unravel_index(found, shape)
        return Grouped(group, series, its_bin + first, count[found], self.names)

    @staticmethod
    def merged(parts: Sequence[Grouped]) -> Grouped | None:
        """The sum of ``parts``, in bins of equal width; ``None`` if it has too many groups."""
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        if len(names) > MOST_GROUPS:
            return None
        number = {name: place for place, name in enumerate(names)}
        groups = [np.array([number[name] for name in part.names], np.int64)[part.group] for part in parts]
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("series", "bin", "count"))
        series, bins, count = columns
        return Grouped(np.concatenate(groups), series, bins, count, names).summed(bins)

    def values(self, first: int, bins: int) -> Iterator[tuple[Group, Series, Ints]]:
        """Yield for each group and series its counts, an array of ``bins`` from ``first`` on."""
        every = tuple(Series)
        order = np.lexsort((self.series, self.group))
        key = self.group[order] * len(every) + self.series[order]
        keys, begin = np.unique(key, return_index=True)
        for one, rows in zip(keys.tolist(), np.split(order, begin[1:]) if len(keys) else [], strict=True):
            group, number = divmod(one, len(every))
            found = np.zeros(bins, np.int64)
            found[self.bin[rows] - first] = self.count[rows]
            series = every[number]
            yield self.names[group], series, np.cumsum(found) if series in LEVELS else found


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bins:
    """What went on in some of a history.

    Attributes:
        begun, ended: the times of its first and of its last line, nanoseconds.
        width: how long a bin is, nanoseconds; bin ``n`` is from ``n * width`` on.
        counts: what was counted; without what cannot be told apart for :data:`MOST_GROUPS`.
        consumers: for each queue, ``""`` for none, the names of the processes that were handed messages of it.
        processed: whether any line tells that something was processed, or failed; else nobody writes it down.
    """

    begun: int
    ended: int
    width: int
    counts: Mapping[By, Grouped]
    consumers: Mapping[str, frozenset[str]]
    processed: bool

    @property
    def first(self) -> int:
        """The number of the first bin."""
        return self.begun // self.width

    def __len__(self) -> int:
        return self.ended // self.width - self.first + 1

    @staticmethod
    def merged(parts: Sequence[Bins]) -> Bins:
        """Return the bins of all ``parts`` of a history, at least one.  Associative and commutative."""
        begun, ended = min(each.begun for each in parts), max(each.ended for each in parts)
        width = max(width_of(begun, ended), *(each.width for each in parts))
        counts = {}
        for by in By:
            its = [part.counts[by].coarser(width // part.width) for part in parts if by in part.counts]
            found = Grouped.merged(its) if len(its) == len(parts) else None
            if found is not None:
                counts[by] = found
        consumers: dict[str, frozenset[str]] = {}
        for queue, names in itertools.chain.from_iterable(part.consumers.items() for part in parts):
            consumers[queue] = consumers.get(queue, frozenset()) | names
        return Bins(
            begun=begun,
            ended=ended,
            width=width,
            counts=counts,
            consumers=consumers,
            processed=any(each.processed for each in parts),
        )


_Points: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints]
"""Of what was counted the series, the time, the message and the session of each; 1, or -1 where it ends."""


def bins_of(events: Events, messages: Mask | None = None) -> Bins:
    """What went on in ``events``, at least one, every line spelled out: with all messages, or with some of them.

    ``sent`` are sends and resends; ``confirmed`` those that were reported successful, also by a commit; ``delivered``
    what was handed over, and ``acknowledged`` of that what the first acknowledgement or commit covers.  Open are
    sends without an outcome (``unanswered``), messages from their first send to their first delivery or another end
    (``waiting``), and messages from each delivery until they were processed, or that failed (``in_hand``).
    """
    begun, ended = int(events.t.min()), int(events.t.max())
    width = width_of(begun, ended)
    index = Index.of(events)
    chosen = np.ones(index.count_of("message"), bool) if messages is None else messages
    handed = index.deliveries[chosen[index.message[index.deliveries]]]
    return Bins(
        begun=begun,
        ended=ended,
        width=width,
        counts=_counted(index, chosen, width),
        consumers={_queue_name(index, queue): names for queue, names in index.consumers(handed).items()},
        processed=bool(len(index.places(*_DONE))),
    )


def _points(events: Index) -> Iterator[_Points]:
    sends, deliveries = events.sends, events.deliveries
    yield _at(events, Series.SENT, sends)
    yield _at(events, Series.CONFIRMED, events.places(Event.CONFIRMED))
    committed = events.until(sends, transaction=events.places(Event.COMMITTED))
    yield _at(events, Series.CONFIRMED, sends, committed)
    yield _at(events, Series.DELIVERED, deliveries)
    acks = dict(covering_acks(events))
    first = np.minimum(acks[Observable.ACKNOWLEDGE], acks[Observable.ACKNOWLEDGED])
    yield _at(events, Series.ACKNOWLEDGED, deliveries, first)
    plain = events.plain_sends
    yield from _open(events, Series.UNANSWERED, plain.place, plain.outcome)
    sent, over = events.first_send, events.first(Event.DELIVERED, *_GONE)
    waiting = (sent != NONE) & ((over == NONE) | (over > sent))
    yield from _open(events, Series.WAITING, sent[waiting], np.where(over == NONE, NEVER, over)[waiting])
    yield from _open(events, Series.IN_HAND, *_in_hand(events))


def _at(events: Index, series: Series, rows: Ints, when: Ints | None = None) -> _Points:
    """Return the points of a series at these rows, or when an act covers them."""
    when = rows if when is None else when
    rows, when = rows[when != NEVER], when[when != NEVER]
    number = np.full(len(rows), _NUMBER[series])
    return number, events.t[when], events.message[rows], events.session[rows], np.ones(len(rows), np.int64)


def _open(events: Index, series: Series, begins: Ints, ends: Ints) -> Iterator[_Points]:
    """From a row to another (:data:`NEVER`: it stays open), which does not come earlier, whatever its clock says."""
    yield _at(events, series, begins)
    number, t, message, session, one = _at(events, series, begins, ends)
    yield number, np.maximum(t, events.t[begins[ends != NEVER]]), message, session, -one


def _in_hand(events: Index) -> tuple[Ints, Ints]:
    """From the first delivery after an end, or the first at all, to the next end; the last ends are for good."""
    gone = events.first(*_GONE)[events.message[events.deliveries]]
    rows = events.deliveries[(gone == NONE) | (events.deliveries < gone)]
    end = events.until(rows, message=events.places(*_DONE, *_GONE))
    _, first = np.unique(number_pairs(events.message[rows], np.minimum(end, len(events))), return_index=True)
    return rows[first], end[first]


_DONE: Final = (Event.PROCESSED, Event.FAILED)
_GONE: Final = (Event.REJECTED, Event.EXPIRED, Event.DEAD_LETTERED)


def _counted(events: Index, messages: Mask, width: int) -> Mapping[By, Grouped]:
    columns = [np.concatenate(each) for each in zip(*_points(events), strict=True)]
    series, t, message, session, sign = (each[messages[columns[2]]] for each in columns)
    queue = events.queue_of[message] + 1
    sessions = events.count_of("session")
    found = {}
    for by, key in (
        (By.ALL, np.zeros(len(t), np.int64)),
        (By.QUEUE, queue),
        (By.SESSION, session),
        (By.PAIR, queue * sessions + session),
    ):
        keys, group = _distinct(key)
        if len(keys) <= MOST_GROUPS:
            names = tuple(_name(events, by, each) for each in keys.tolist())
            found[by] = Grouped(group, series, t, sign, names).summed(t // width)
    return found


_LOOKED_UP: Final = 1 << 22


def _distinct(key: Ints) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and for each key its place among them."""
    if key.max(initial=0) >= _LOOKED_UP:
        return np.unique(key, return_inverse=True)
    present = np.zeros(int(key.max(initial=-1)) + 1, bool)
    present[key] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[key]


def _name(events: Index, by: By, key: int) -> Group:
    if by is By.ALL:
        return None, None
    queue, session = (key, None) if by is By.QUEUE else divmod(key, events.count_of("session"))
    name = None if by is By.SESSION else _queue_name(events, queue - 1)
    return name, None if session is None else str(events.names["session"][session])


def _queue_name(events: Index, queue: int) -> str:
    return "" if queue == ABSENT else str(events.names["queue"][queue])
