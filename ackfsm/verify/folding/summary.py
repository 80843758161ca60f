"""The summary of a chunk of a history, and how summaries merge (docs/decisions/fold.md).

A chunk is some lines of a history, in order; its summary keeps the rows of all messages but those whose life was plain
and is over, and of these their number by observation, hashes of their ids, and when they lived.  What was kept of all
chunks is examined like a history; :mod:`ackfsm.verify.folding.passes` finds what a chunk could not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask, mixed
from ackfsm.history.clocks import Clocks, Demands, by_clocks, demands_of
from ackfsm.history.columns import ABSENT, Encoded, Events, assemble, by_time, event_code
from ackfsm.history.format import ACKNOWLEDGE_TIMEOUT, RANGED, TELLERS, VOCABULARY, Event
from ackfsm.history.gathered import Remark
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, distinct_pairs
from ackfsm.history.kernel import hash_names, times_after
from ackfsm.history.lines import ParseError
from ackfsm.history.victims import FAULT_EVENTS, NamedVictim
from ackfsm.terms import AckScope
from ackfsm.verify.context.circumstances import EFFECT, OF_MESSAGES
from ackfsm.verify.counting.bins import Bins, bins_of
from ackfsm.verify.folding import kernel
from ackfsm.verify.folding.befallen import ENDING, went_through
from ackfsm.verify.folding.neighbours import Followed, Hashes, keep_neighbours
from ackfsm.verify.folding.observations import Observations

__all__ = [
    "PREFETCH",
    "WINDOW",
    "Bounds",
    "Chunk",
    "Folding",
    "Hashes",
    "Pins",
    "Residue",
    "Summary",
    "hashes_of",
    "hashes_of_transactions",
    "intervals",
    "merged",
    "of_unnamed",
    "strange_acts",
    "summary_of",
]


_BY_PROCESS: Final = ("process", "session")
_NO_HASHES: Hashes = np.empty(0, np.uint64)

_RARELY: Final = 50
_NO_SPAN: Final = np.array([NEVER, -NEVER], np.int64)

WINDOW: Final = "window"
PREFETCH: Final = "prefetch"

SENDS: Final = (Event.SEND, Event.RESEND)
_CUMULATIVE: Final = (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chunk:
    """Some lines of a history, one after the other.

    Attributes:
        place: where they stand: the number of the chunk.
        events: the readable ones; ``None`` if there is none.
        unreadable, unreadable_count: as :class:`ackfsm.verify.History` has them.
        first_line: the number of the first line; ``None`` if they go on where the chunk before ends, and are numbered
            from 1 here.
        lines: how many there are.
        remarks, victims, ignored: as :func:`ackfsm.verify.read` collects them.
        beyond: whether they tell what the fold does not know, so that all of the history has to be kept.
    """

    place: int
    events: Encoded | None
    unreadable: tuple[ParseError, ...] = ()
    unreadable_count: int = 0
    first_line: int | None = 1
    lines: int = 0
    remarks: tuple[Remark, ...] = ()
    victims: tuple[NamedVictim, ...] = ()
    ignored: frozenset[str] = frozenset()
    beyond: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many sends and deliveries of a session may be open; ``None``: any number; and what lines tell of others.

    Attributes:
        calls: the lines that are written before what they tell of happens.
        exclusive: whether a queue may be exclusive, so that its consumers have to do with each other.
        outcomes_up_to: whether what is given back gives back others.
    """

    calls: frozenset[Event]
    window: int | None = None
    prefetch: int | None = None
    exclusive: bool = False
    outcomes_up_to: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The rows and messages that a chunk has to keep although it sees no reason to.

    Attributes:
        everything: all rows.
        messages: hashes of ids, ascending.
        transactions: hashes of transactions, ascending, of all whose messages are kept.
        process, session: names of those of which all messages are kept.
        observations: those that are not plain in this history.
        neighbours: the numbers of pairs that are no run of the model, or not in the order of their lines.
        intervals: times, as :func:`intervals` gives them, in which the messages that lived are kept.
    """

    everything: bool = False
    messages: Hashes = dataclasses.field(default_factory=lambda: _NO_HASHES)
    transactions: Hashes = dataclasses.field(default_factory=lambda: _NO_HASHES)
    process: frozenset[str] = frozenset()
    session: frozenset[str] = frozenset()
    observations: frozenset[int] = frozenset()
    neighbours: frozenset[int] = frozenset()
    intervals: frozenset[tuple[int, int]] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Residue:
    """The kept rows of a chunk, in the order of its lines.

    Attributes:
        rows: their columns; of a row that is :data:`kernel.HEARD` only time, line, process and session are there.
        marks: for each row :data:`kernel.HEARD`, :data:`kernel.PINNED` or :data:`kernel.KEPT`.
    """

    rows: Encoded
    marks: npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Summary:
    """The summary of a chunk.

    Attributes:
        chunk: what was folded, without its events.
        events: how many it has.
        residue: what was kept; ``None`` of a chunk without events.
        observations, counts: of how many messages nothing was kept, by observation.
        alone: for each of these what it is without what happened around those messages.
        messages: hashes of their ids, ascending.
        transactions: hashes of those of which messages may have been left out, ascending.
        pinned, pinned_as: hashes of the ids that stand for others, and the observation of each.
        neighbours, neighbours_as: hashes of the ids of two messages, one row each, that stand for pairs of others, and
            the number of each pair.
        hull: when the others lived: the first and the last moment.
        avoided: the times around which all messages were kept, one row each.
        uncovered: the codes of sessions in the names of the residue in which some of the others were delivered that no
            acknowledgement of the session, or no answer to one, covers.
        rises: for sends (:data:`WINDOW`) and deliveries (:data:`PREFETCH`), where they are bounded, the code of a
            session in the names of the residue, a time, and how many were open then, where they rose; one row each.
        demands: what the others demand of the clocks.
        queues: all that are named by lines, but for those of faults.
        consumers: of queues that may be exclusive, the names of a queue and of a process that consumes from it.
        bins: what went on with the others, if that was asked for.
    """

    chunk: Chunk
    events: int
    residue: Residue | None
    observations: Hashes
    counts: Ints
    alone: Hashes
    messages: Hashes
    transactions: Hashes
    pinned: Hashes
    pinned_as: Hashes
    neighbours: Hashes
    neighbours_as: Hashes
    hull: tuple[int, int] | None
    avoided: Ints
    uncovered: Mapping[Event, Ints]
    rises: Mapping[str, Ints]
    demands: Demands
    queues: pa.Array
    consumers: frozenset[tuple[str | None, str]] = frozenset()
    bins: Bins | None = None

    @property
    def place(self) -> int:
        """The number of the chunk."""
        return self.chunk.place

    def names(self, column: str) -> Sequence[str]:
        """The processes or sessions of the chunk."""
        if self.residue is None:
            return ()
        return tuple(self.residue.rows.named[column].dictionary.to_pylist())


def merged(*summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """Return the summary of all chunks of all ``summaries``, which are of different chunks.

    It is associative and commutative; that of no chunk is the neutral element.
    """
    return tuple(sorted((each for some in summaries for each in some), key=lambda each: each.place))


def hashes_of(names: pa.Array) -> Hashes:
    """A number of 64 bits for each of ``names`` (text without nulls), the same everywhere."""
    names = names.cast(pa.large_string())
    hashes = np.empty(len(names), np.uint64)
    _, offsets, data = names.buffers()
    if len(names):
        begins = np.frombuffer(offsets, np.int64)[names.offset : names.offset + len(names) + 1]
        text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        hash_names(begins, text, hashes)
    return hashes


def hashes_of_transactions(process: pa.Array, transaction: pa.Array) -> Hashes:
    """The same for transactions, which are of one process each."""
    return hashes_of(pc.binary_join_element_wise(process.cast(pa.string()), transaction.cast(pa.string()), "\0"))


def intervals(events: Events, skew: int) -> Ints:
    """The times in which a message cannot have lived without its life being of more than itself, one row each.

    What certainly befell somebody counts as long as it may have, and for everybody, whomever it names; a session that
    was given back, at its moment.
    """
    found = []
    for row in events.places(*ENDING).tolist():
        t, broken = int(events.t[row]), events.errs[row] == 1
        found.append((t - EFFECT - skew, t + skew) if broken else (t, t))
    for fault, repair in Index.of(events).outages:
        if fault.fault not in OF_MESSAGES:
            t = int(events.t[fault.moment[0]])
            found.append((t, max(t + EFFECT, int(events.t[repair.moment[0]]) if repair else t) + skew))
    return np.array(sorted(set(found)), np.int64).reshape(-1, 2)


def _overlaps(span: Ints, found: Ints) -> Mask:
    """Which spans have a moment of one of the intervals ``found``, both one row each."""
    if not len(found):
        return np.zeros(len(span), np.bool_)
    low, high = found[np.argsort(found[:, 0])].T
    latest = np.append(-NEVER, np.maximum.accumulate(high))
    return np.asarray(latest[np.searchsorted(low, span[:, 1], side="right")] >= span[:, 0])


def strange_acts(events: Events) -> Mask:
    """For each session whether an acknowledgement in it covers messages in another way than all of the session.

    So do those up to a message, and those in doubt, which may concern all that was ever delivered.
    """
    acts = events.places(*_CUMULATIVE)
    scope, in_doubt = events.scope[acts], events.event[acts] == event_code(Event.ACK_IN_DOUBT)
    up_to, of_session = (scope == VOCABULARY["scope"].index(each) for each in (AckScope.UP_TO, AckScope.SESSION))
    acts = acts[up_to | of_session & in_doubt]
    found = np.zeros(events.count_of("session"), bool)
    found[events.session[acts]] = True
    return found


def of_unnamed(events: Events) -> Mapping[str, Mask]:
    """For each process and each session whether a line is of sends or calls there that it does not name.

    A range of outcomes is of sends in the session in which its message was sent, and the time-out of an acknowledgement
    is of the last call in its session, or of its process.
    """
    found = {column: np.zeros(events.count_of(column), bool) for column in _BY_PROCESS}
    told, sends, faults = (events.places(*kinds) for kinds in (RANGED, SENDS, (Event.FAULT,)))
    ranges = told[events.scope[told] == VOCABULARY["scope"].index(AckScope.UP_TO)]
    if len(ranges):
        found["session"][events.session[sends[np.isin(events.message[sends], events.message[ranges])]]] = True
    timed_out = faults[events.fault[faults] == VOCABULARY["fault"].index(ACKNOWLEDGE_TIMEOUT)]
    if len(timed_out):
        found["process"][events.process[timed_out]] = True
        found["process"][np.isin(events.names["process"].to_pylist(), TELLERS)] = False
        found["session"][events.session[timed_out]] = True
        found["session"][events.session[found["process"][events.process]]] = True
    return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """How a chunk is folded, as far as the other chunks decide that.

    Attributes:
        place: the number of the chunk.
        pins: what has to be kept.
        clocks: how the clocks of the history are put right.
        skew: by how much two of them may differ.
        estimated: the skew for which the demands on the clocks are wanted (``None``: an estimate); 0: none are.
    """

    place: int
    pins: Pins
    clocks: Clocks
    skew: int
    estimated: int | None = 0


def summary_of(chunk: Chunk, folding: Folding, known: Observations, bounds: Bounds, *, binned: bool = False) -> Summary:
    """Fold one chunk.

    Args:
        chunk: its lines.
        folding: how it is folded.
        known: what is known of observations.
        bounds: how many sends and deliveries may be open.
        binned: whether what went on in it is counted over time.
    """
    if chunk.events is None or not len(chunk.events):
        return _empty(chunk)
    return _Fold(chunk, folding, known, bounds).summary(folding.estimated, binned=binned)


def _empty(chunk: Chunk) -> Summary:
    return Summary(
        chunk=chunk,
        events=0,
        residue=None,
        observations=_NO_HASHES,
        counts=np.empty(0, np.int64),
        alone=_NO_HASHES,
        messages=_NO_HASHES,
        transactions=_NO_HASHES,
        pinned=_NO_HASHES,
        pinned_as=_NO_HASHES,
        neighbours=np.empty((0, 2), np.uint64),
        neighbours_as=_NO_HASHES,
        hull=None,
        avoided=np.empty((0, 2), np.int64),
        uncovered={},
        rises={},
        demands=Demands(),
        queues=pa.array([], pa.string()),
    )


def _read_only(events: Events) -> Events:
    """The same, with columns that cannot be written to, as some of Arrow are: Numba compiles a loop for each kind."""
    names = (field.name for field in dataclasses.fields(events) if field.name != "names")
    columns = {name: getattr(events, name).view() for name in names}
    for column in columns.values():
        column.flags.writeable = False
    return dataclasses.replace(events, **columns)


class _Fold:
    """One chunk, being folded."""

    def __init__(self, chunk: Chunk, folding: Folding, known: Observations, bounds: Bounds) -> None:
        self._chunk, self._pins, self._skew, self._bounds = chunk, folding.pins, folding.skew, bounds
        self._known = known
        assert chunk.events is not None  # noqa: S101
        self._encoded: Encoded = chunk.events
        by_t = by_time(self._encoded.numbers["t"])
        events, by_clock = by_clocks(assemble([self._encoded]), folding.clocks)
        self._events = _read_only(events)
        order = np.arange(len(self._encoded))[by_t][by_clock]
        self._order: Ints = order
        self._strange = self._strangers()
        self._clean, self._of_transactions = self._clean_transactions()
        self._inside = np.full((self._events.count_of("message"), 2), NONE, np.int32)

    def summary(self, estimated: int | None, *, binned: bool) -> Summary:
        events, count = self._events, self._events.count_of("message")
        hashes = hashes_of(events.names["message"])
        alone, where, span, odd, went_on = self._followed(count)
        avoided = np.array(sorted(self._pins.intervals), np.int64).reshape(-1, 2)
        plain = self._candidates(hashes, where, span, odd, avoided)
        own = intervals(events, self._skew)
        befallen = _overlaps(span, own)
        self._without_the_strange(plain, alone, where, went_on, befallen)
        seen = self._with_what_befell(plain, alone, where, befallen)
        rises = self._opened(plain, where)
        beside, beside_as = self._bounded(plain, seen, where, odd)
        marks = np.empty(len(events), np.uint8)
        columns = (events.event, events.session, events.message, events.scope)
        found = 1
        while found:
            kernel.mark_rows(events.message, plain, marks)
            found = kernel.mark_acts(*columns, self._strange[1], plain, marks)
        self._mark_transactions(plain, marks)
        kernel.mark_neighbours(
            events.process, events.session, events.count_of("process"), events.count_of("session"), marks
        )
        left, stand = plain == 1, plain == kernel.STANDS
        uncovered = {
            event: np.unique(events.session[where[left & (where[:, place] < 0), 1]])
            for event, place in ((Event.ACKNOWLEDGE, 4), (Event.ACKNOWLEDGED, 5))
        }
        observations, first, counts = np.unique(seen[left], return_index=True, return_counts=True)
        return Summary(
            chunk=dataclasses.replace(self._chunk, events=None),
            events=len(events),
            residue=self._residue(marks),
            observations=observations,
            counts=counts,
            alone=alone[left][first],
            messages=np.sort(hashes[left]),
            transactions=np.sort(self._of_transactions[self._clean]),
            pinned=hashes[stand],
            pinned_as=seen[stand],
            neighbours=hashes[beside],
            neighbours_as=beside_as,
            hull=(int(span[left, 0].min()), int(span[left, 1].max())) if left.any() else None,
            avoided=np.concatenate([own, avoided]),
            uncovered=uncovered,
            rises=rises,
            demands=self._demands(left, estimated),
            queues=self._queues(),
            consumers=self._consumers() if self._bounds.exclusive else frozenset(),
            bins=bins_of(events, left) if binned else None,
        )

    def _followed(self, count: int) -> tuple[Any, ...]:
        events = self._events
        after = np.empty(len(events), np.int64)
        times_after(events.t, events.process, events.count_of("process"), after)
        seen, odd = np.zeros(count, np.uint64), np.zeros(count, np.uint8)
        where, span = np.full((count, 6), NONE, np.int32), np.tile(_NO_SPAN, (count, 1))
        continued, times = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int64)
        columns = (getattr(events, name) for name in _FOLLOWED)
        judged_by, clean, inside = self._known.judged_by(events.names["queue"]), self._clean, self._inside
        found = (seen, odd, where, span, inside, continued, times)
        kernel.follow_messages(*columns, after, judged_by, *self._strange, clean, *found)
        if len(clean):
            odd[(odd == 0) & ((inside >= 0) & ~clean[inside]).any(axis=1)] = 1
        used = continued != 0
        return seen, where, span, odd, dict(zip(continued[used].tolist(), times[used].tolist(), strict=True))

    def _strangers(self) -> tuple[Mask, Mask]:
        """The processes and sessions whose messages are kept."""
        events, unnamed = self._events, of_unnamed(self._events)
        strange = {}
        for column in _BY_PROCESS:
            names = events.names[column]
            pinned = pc.is_in(names, pa.array(sorted(getattr(self._pins, column)), names.type))
            strange[column] = unnamed[column] | np.asarray(pinned, bool)
        return strange["process"], strange["session"] | strange_acts(events)

    def _clean_transactions(self) -> tuple[Mask, Hashes]:
        """Which transactions are clean, and the hash of each."""
        events = self._events
        clean = np.ones(events.count_of("transaction"), bool)
        if not len(clean):
            return clean, _NO_HASHES
        of = np.full(len(clean), NONE, np.int32)
        columns = (events.event, events.process, events.session, events.message, events.transaction, events.errs)
        kernel.follow_transactions(*columns, events.count_of("session"), clean, of)
        processes = events.names["process"].take(pa.array(of))
        hashes = hashes_of_transactions(processes, events.names["transaction"])
        return clean & ~np.isin(hashes, self._pins.transactions), hashes

    def _candidates(self, hashes: Hashes, where: Ints, span: Ints, odd: Any, avoided: Ints) -> Any:
        """Which messages may be left out: 1, else 0."""
        if self._pins.everything:
            return np.zeros(len(odd), np.uint8)
        plain = (odd == 0) & (where[:, 1] >= 0) & (span[:, 1] != NEVER)
        if len(self._pins.messages):
            plain &= ~np.isin(hashes, self._pins.messages)
        return (plain & ~_overlaps(span, avoided)).astype(np.uint8)

    def _without_the_strange(
        self, plain: Any, seen: Hashes, where: Ints, went_on: Mapping[int, int], befallen: Mask
    ) -> None:
        """Keep the messages of observations that are not plain, and late ones that may go on.

        Of what is no run by itself those are left out that were ``befallen`` by something, which may explain them.
        """
        chosen = np.flatnonzero(plain)
        distinct, first, inverse, counts = np.unique(
            seen[chosen], return_index=True, return_inverse=True, return_counts=True
        )
        known = [
            None
            if observation in self._pins.observations
            else self._known.examined(observation, self._events, self._rows(int(chosen[place]), where))
            for observation, place in zip(distinct.tolist(), first.tolist(), strict=True)
        ]
        good = np.array([its is not None for its in known], bool)
        runs = np.array([its is not None and its.runs for its in known], bool)
        plain[chosen] = runs[inverse] | (good[inverse] & befallen[chosen])
        # What rarely goes on is left out, and looked for again if another chunk tells of it.
        may_go_on = np.array(
            [went_on.get(key, 0) * _RARELY > n for key, n in zip(distinct.tolist(), counts.tolist(), strict=True)], bool
        )
        late = where[chosen, 3] >= len(self._events) - len(self._events) // 8
        plain[chosen[may_go_on[inverse] & late]] = 0

    def _with_what_befell(self, plain: Any, alone: Hashes, where: Ints, befallen: Mask) -> Hashes:
        """Return the observations with the circumstances of their messages; keep the ones not plain here.

        One message that went through the same is kept of each, and looked at with all that happened.
        """
        followed = Followed(self._events, alone, where, self._inside)
        through = went_through(followed, befallen & (plain != 0), self._bounds.calls, self._skew)
        seen = np.where(through != 0, mixed(alone ^ through) | np.uint64(1), alone)
        strange = np.array(sorted(self._pins.observations), np.uint64)
        plain[(through != 0) & np.isin(seen, strange)] = 0
        return seen

    def _rows(self, message: int, where: Ints) -> Ints:
        """The rows that tell of a message: its own, acknowledgements of its session, and its transactions' own."""
        events, acts = self._events, where[message, 4:]
        transactions = self._inside[message][self._inside[message] >= 0]
        told = events.message == message
        if len(transactions):
            told |= (events.message == ABSENT) & np.isin(events.transaction, transactions)
        return np.union1d(np.flatnonzero(told), acts[acts >= 0])

    def _opened(self, plain: Any, where: Ints) -> Mapping[str, Ints]:
        """Return how many sends and deliveries were open where that is bounded, and keep the open ones.

        So are the messages of sessions with more than the bound.
        """
        events, bounds = self._events, self._bounds
        first = (events.event, events.session)
        found = dict[str, Ints]()
        columns: tuple[Any, ...]
        if bounds.window is not None:
            columns = (*first, events.message, events.transaction, events.t)
            found[WINDOW] = self._rises(kernel.steps_of_windows, columns, bounds.window, plain, where[:, 0])
        if bounds.prefetch is not None:
            columns = (*first, events.queue, events.message, events.scope, events.t)
            found[PREFETCH] = self._rises(kernel.steps_of_prefetch, columns, bounds.prefetch, plain, where[:, 1])
        return found

    def _rises(self, kernel_: Callable[..., int], columns: tuple[Any, ...], bound: int, plain: Any, rows: Ints) -> Ints:
        sessions = self._events.count_of("session")
        still_open = np.zeros(len(plain), np.int64)
        steps = np.empty((min(len(self._events), sessions * (bound + 1)), 3), np.int64)
        found = kernel_(*columns, sessions, bound, still_open, steps)
        plain[still_open > 0] = 0
        if found < 0:
            plain[:] = 0
            return steps[:0]
        steps = steps[:found]
        over = np.zeros(sessions, bool)
        over[steps[steps[:, 2] >= bound, 0]] = True
        chosen = np.flatnonzero(plain)
        plain[chosen[over[self._events.session[rows[chosen]]]]] = 0
        return np.asarray(steps[~over[steps[:, 0]]])

    def _bounded(self, plain: Any, seen: Hashes, where: Ints, odd: Any) -> tuple[Ints, Hashes]:
        """Keep overtaken and overtaking messages, the first and last message of each lane, and neighbours.

        With a message that is kept for its own sake all others of its transactions are: that one took effect only in
        part is seen by all its members.  Of the other transactions of those their own lines are enough: these members
        all came, and nothing of these transactions is in doubt.
        """
        events = self._events
        columns = (events.process, events.receivers(np.arange(len(events))), events.queue)
        more = (events.message, events.delivery_mode, events.redelivered)
        size = kernel.room_for(len(plain))
        kernel.mark_order(events.event, *columns, *more, odd, where, plain, np.zeros(size, np.uint64))
        self._complete(plain)
        beside: tuple[Ints, Hashes] = np.empty((0, 2), np.int64), _NO_HASHES
        if self._known.holds:
            followed = Followed(events, seen, where, self._inside)
            beside = keep_neighbours(followed, plain, self._pins.neighbours)
            self._complete(plain)
        first, last, table = np.full(size, NONE, np.int64), np.full(size, NONE, np.int64), np.zeros(size, np.uint64)
        kernel.mark_bounds(*columns, events.delivery_mode, where, seen, plain, first, last, table)
        return beside

    def _complete(self, plain: Any) -> None:
        """Keep the messages of transactions that have one that is kept."""
        if len(self._clean):
            whole = self._with_members(plain == 0)
            plain[whole[self._inside].any(axis=1)] = 0

    def _with_members(self, messages: Mask) -> Mask:
        """Which transactions have some of ``messages``; the entry that :data:`NONE` indexes says no."""
        found = np.zeros(len(self._clean) + 1, bool)
        found[self._inside[messages]] = True
        found[NONE] = False
        return found

    def _mark_transactions(self, plain: Any, marks: Any) -> None:
        if len(self._clean):
            events, needed = self._events, self._with_members(plain != 1)
            columns = (events.event, events.session, events.message, events.transaction)
            kernel.mark_transactions(*columns, self._clean, needed, events.count_of("session"), marks)

    def _residue(self, marks: Any) -> Residue:
        in_lines = np.empty(len(marks), np.uint8)
        in_lines[self._order] = marks
        rows = np.flatnonzero(in_lines)
        heard = in_lines[rows] == kernel.HEARD
        numbers = {name: column[rows] for name, column in self._encoded.numbers.items()}
        for name, column in numbers.items():
            if name not in {"t", "line"}:
                column[heard] = 0 if name == "errs" else ABSENT
        named = {}
        for name, column in self._encoded.named.items():
            indices = column.indices.take(pa.array(rows))
            if name not in _BY_PROCESS:
                indices = pc.if_else(pa.array(heard), pa.scalar(None, indices.type), indices)
            kept = pa.DictionaryArray.from_arrays(indices, column.dictionary)
            named[name] = kept.cast(pa.string()).dictionary_encode() if name in {"message", "transaction"} else kept
        return Residue(rows=Encoded(numbers, named), marks=in_lines[rows])

    def _queues(self) -> pa.Array:
        events, count = self._events, self._events.count_of("queue") + 1
        of_faults = np.bincount(events.queue[events.places(*FAULT_EVENTS)] + 1, minlength=count)
        others = np.bincount(events.queue + 1, minlength=count) > of_faults
        return events.names["queue"].take(pa.array(np.flatnonzero(others[1:])))

    def _consumers(self) -> frozenset[tuple[str | None, str]]:
        events, rows = self._events, self._events.places(Event.DELIVERED)
        queue, process, _ = distinct_pairs(events.queue[rows] + 1, events.process[rows])
        queues, processes = [None, *events.names["queue"].to_pylist()], events.names["process"].to_pylist()
        return frozenset((queues[each], processes[other]) for each, other in zip(queue, process, strict=True))

    def _demands(self, left: Mask, estimated: int | None) -> Demands:
        if estimated == 0 or not left.any():
            return Demands()
        events = self._events
        of_left = (events.message != ABSENT) & left[events.message]
        rows = np.flatnonzero(of_left | (events.event == event_code(Event.COMMIT)))
        return demands_of(events.take(rows), estimated)


_FOLLOWED: Final = (
    *("event", "process", "session", "queue", "message", "transaction", "delivery_mode", "scope"),
    *("redelivered", "delivery_count", "errs", "t"),
)
