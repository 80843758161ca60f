"""Examine a history chunk by chunk: fold each, examine all kept rows, fold chunks with too few kept rows again.

What a chunk leaves out is right unless another chunk says otherwise; each way in which it may is looked for in what was
kept (docs/decisions/fold.md).  A chunk that is folded again keeps more, so this ends, at worst with all that was read.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Ints
from ackfsm.history.clocks import Clocks, Demands, by_clocks, clocks_of, contradict, demands_of
from ackfsm.history.columns import ABSENT, Encoded, Events, assemble, by_time, event_code
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER
from ackfsm.history.lines import REPORTED
from ackfsm.history.queues import Configurations, configurations_of
from ackfsm.history.read import History, no_event
from ackfsm.history.transactions import transactions_told_apart
from ackfsm.history.victims import refuse_impossible
from ackfsm.tables import Specification, When
from ackfsm.terms import AckScope, Anomaly, Configuration, OutcomeScope
from ackfsm.text import shown
from ackfsm.verify.conformance.lines import placed
from ackfsm.verify.conformance.lives import signs_around
from ackfsm.verify.context.signs import Signs
from ackfsm.verify.counting.bins import Bins, bins_of
from ackfsm.verify.counting.count import ends_of
from ackfsm.verify.counting.watch import MESSAGES, prefetch_of, window_of
from ackfsm.verify.findings.examine import Asked, Examined, Outcome, examined
from ackfsm.verify.findings.findings import Cost, Findings
from ackfsm.verify.findings.parts import together
from ackfsm.verify.findings.rest import with_stuck
from ackfsm.verify.folding import kernel
from ackfsm.verify.folding.observations import Observations
from ackfsm.verify.folding.summary import (
    PREFETCH,
    WINDOW,
    Bounds,
    Chunk,
    Folding,
    Hashes,
    Pins,
    Summary,
    hashes_of,
    hashes_of_transactions,
    intervals,
    merged,
    of_unnamed,
    strange_acts,
    summary_of,
)

__all__ = ["Asked", "Fold", "Folder"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """The kept rows of all chunks, examined and as the history tells them, with the mark and the chunk of each.

    Attributes:
        events: in the order of clocks put right, and not spelled out, as ``marks`` and ``chunk`` have them.
    """

    examined: Examined
    history: History
    events: Events
    marks: Ints
    chunk: Ints


class Folder:
    """What folds the chunks of a history, here or in other processes."""

    def __init__(self, load: Callable[[int], Chunk], asked: Asked, observations: Observations | None = None) -> None:
        self._load, self.asked = load, asked
        self.observations = observations or Observations(asked.specification, asked.configuration, hold=asked.hold)
        self.bounds = _bounds(asked.specification, configurations_of(asked.configuration).known())
        """How many sends and deliveries may be open: of several bounds the narrowest."""

    def with_chunks(self, load: Callable[[int], Chunk]) -> Folder:
        """The same for chunks that come from elsewhere."""
        return Folder(load, self.asked, self.observations)

    def __call__(self, folding: Folding) -> Summary:
        """The summary of one chunk."""
        return summary_of(self._load(folding.place), folding, self.observations, self.bounds, binned=self.asked.binned)


def _shares_a_queue(summaries: Collection[Summary]) -> bool:
    """Whether several processes consume from a queue that may be exclusive."""
    pairs = frozenset[tuple[str | None, str]]().union(*(each.consumers for each in summaries))
    return len({queue for queue, _ in pairs}) < len(pairs)


def _bounds(specification: Specification, configurations: Collection[Configuration]) -> Bounds:
    windows = [window_of(specification, each) for each in configurations]
    prefetches = [prefetch_of(specification, each) for each in configurations]
    return Bounds(
        calls=frozenset(Event(row.line) for row in specification.recording.signs.values() if row.when is When.BEFORE),
        window=min((each for each in windows if each is not None), default=None),
        prefetch=min((each.bound for each in prefetches if each is not None), default=None),
        exclusive=any(each.exclusive_consumer for each in configurations),
        outcomes_up_to=any(each.outcome_scope is OutcomeScope.UP_TO for each in configurations),
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Folded(Outcome):
    """What examining a history came to that was folded, and the ``summaries`` of its chunks."""

    summaries: Sequence[Summary]

    def bins(self) -> Bins:
        """Return the counts over time of all messages, left out or kept; they must have been asked for."""
        left = [each.bins for each in self.summaries if each.bins is not None]
        return Bins.merged([bins_of(self.examined.events), *left])


class Fold:
    """One history, being folded.

    Args:
        path: where it is, as messages call it.
        chunks: how many it has.
        folder: what folds them.
        each: has the folder fold chunks, in any order.
    """

    def __init__(
        self,
        path: Path,
        chunks: int,
        folder: Folder,
        each: Callable[[Folder, Sequence[Folding]], Iterable[Summary]],
    ) -> None:
        self._path, self._folder, self._asked, self._each = path, folder, folder.asked, each
        self._observations, self.bounds = folder.observations, folder.bounds
        self._pins = [Pins()] * chunks
        self._clocks, self._with_demands = Clocks(), False
        self._held = 0.0
        self.count = 0
        """How many times a chunk was folded."""
        self.left = 0
        """Of how many messages nothing was kept, in the end."""

    def findings(self) -> Findings:
        """Return the findings of all passes."""
        return self.outcome().findings

    def outcome(self) -> Folded:
        """Return the findings of all passes, and the rows kept for them."""
        summaries = self.folded(range(len(self._pins)))
        if self.bounds.outcomes_up_to or any(each.chunk.beyond for each in summaries) or _shares_a_queue(summaries):
            self._pins = [Pins(everything=True)] * len(self._pins)
            summaries = self.folded(range(len(self._pins)))
        while True:
            whole, again = self._again(summaries)
            if whole is not None and not again:
                findings = self._total(whole, summaries)
                apart = transactions_told_apart(whole.events)
                return Folded(findings, whole.examined, whole.history, apart, summaries)
            others = [each for each in summaries if each.place not in again]
            summaries = merged(others, self.folded(sorted(again)))

    @property
    def _skew(self) -> int:
        return self._clocks.latest if self._asked.skew is None else self._asked.skew

    def folded(self, places: Sequence[int]) -> tuple[Summary, ...]:
        """The summary of the chunks of these numbers."""
        self.count += len(places)
        estimated = self._asked.skew if self._with_demands else 0
        foldings = [
            Folding(place=place, pins=self._pins[place], clocks=self._clocks, skew=self._skew, estimated=estimated)
            for place in places
        ]
        return merged(tuple(self._each(self._folder, foldings)))

    def _again(self, summaries: Sequence[Summary]) -> tuple[_Whole | None, set[int]]:
        """Return the kept rows, examined, and the chunks to fold again with other pins."""
        told = tuple(_in_lines_of_files([each.chunk for each in summaries]))
        kept = [each for each in summaries if each.residue is not None]
        if not kept:
            raise no_event(shown(str(self._path)), [error for each in told for error in each.unreadable])
        residues = [_rows_in_file(each, in_file) for each, in_file in zip(summaries, told, strict=True) if each.residue]
        events = assemble(residues)
        marks, chunk = (np.concatenate(column) for column in zip(*map(_columns, kept), strict=True))
        order = by_time(np.concatenate([each.numbers["t"] for each in residues]))
        pins = _Pinning(self._pins)
        _suspects(pins, summaries)
        if pins.changed:
            return None, self._repinned(pins)
        again = self._other_clocks(events, summaries)
        if again:
            return None, again
        told_at, (events, by_clock) = events, by_clocks(events, self._clocks)
        marks, chunk = marks[order][by_clock], chunk[order][by_clock]
        for ask in (_touched, _entangled, _covering, _unnamed, _opened):
            ask(self, pins, summaries, events, chunk)
        if pins.changed:
            return None, self._repinned(pins)
        history = self._history(told_at, told, summaries)
        whole = _Whole(self._examined(dataclasses.replace(history, events=events)), history, events, marks, chunk)
        self._unlike(pins, summaries, whole)
        return whole, self._repinned(pins)

    def _repinned(self, pins: _Pinning) -> set[int]:
        self._pins = pins.pins
        return pins.changed

    def _other_clocks(self, events: Events, summaries: Sequence[Summary]) -> set[int]:
        """All chunks, if the demands of the whole history put the clocks right in another way than they are."""
        skew = self._asked.skew
        if self._clocks.offsets or not contradict(events, skew):
            return set()
        everything = set(range(len(self._pins)))
        if not self._with_demands:
            self._with_demands = True
            return everything
        demands = Demands.merged([demands_of(events, skew), *(each.demands for each in summaries)])
        self._clocks = clocks_of(demands, skew)
        return everything if self._clocks.offsets else set()

    def _history(self, events: Events, told: Sequence[Chunk], summaries: Sequence[Summary]) -> History:
        victims = [victim for each in told for victim in each.victims]
        queues = {name for each in summaries for name in each.queues.to_pylist()} if victims else set[str]()
        refuse_impossible(victims, events, queues)
        unreadable = [error for each in told for error in each.unreadable]
        return History(
            path=self._path,
            header=None,
            events=events,
            unreadable=tuple(unreadable[:REPORTED]),
            unreadable_count=sum(each.unreadable_count for each in told),
            remarks=tuple(remark for each in told for remark in each.remarks),
            ignored=tuple(sorted(frozenset[str]().union(*(each.ignored for each in told)))),
        )

    def _examined(self, history: History) -> Examined:
        found = examined(history, self._asked, self._clocks, self._skew)
        self._held += found.findings.cost.conformance
        return found

    def _unlike(self, pins: _Pinning, summaries: Sequence[Summary], whole: _Whole) -> None:
        """Pin the observations that are not plain in this history, and where messages were overtaken between chunks."""
        if not (whole.marks == kernel.PINNED).any():
            return
        events = whole.events
        rows = np.flatnonzero((whole.marks == kernel.PINNED) & (events.event != ABSENT))
        stands, first = np.unique(events.message[rows], return_index=True)
        chunk = whole.chunk[rows[first]]
        observation = _observations_of(hashes_of(events.names["message"].take(stands)), summaries)
        order = np.zeros(events.count_of("message"), bool)
        strange = order.copy()
        for judged in whole.examined.judgements:
            for anomaly, messages in judged.counted.items():
                if anomaly is not Anomaly.TORN_TRANSACTION:
                    (order if anomaly in _BETWEEN else strange)[messages] = True
            strange[judged.not_runs()] = True
        for message, place in zip(stands[order[stands]].tolist(), chunk[order[stands]].tolist(), strict=True):
            its = np.flatnonzero(events.message == message)
            names = [str(events.names["session"][int(each)]) for each in np.unique(events.session[its])]
            pins.add(place, session=names)
        pins.observations(set(observation[strange[stands]].tolist()))
        _no_runs_together(pins, summaries, whole)
        if any(each.conformance is not None for each in whole.examined.judgements):
            self._settled(pins, stands, observation, whole, summaries)

    def _settled(
        self, pins: _Pinning, stands: Ints, observation: Hashes, whole: _Whole, summaries: Sequence[Summary]
    ) -> None:
        """Pin the observations that what happens later might make strange."""
        signs = Signs(self._asked.specification.recording.signs.values())
        around = signs_around(placed(Index.of(whole.events), self._skew, signs)[0], signs)
        if not around:
            return
        found, first = np.unique(observation, return_index=True)
        alone = {
            each: by_itself
            for some in summaries
            for each, by_itself in zip(some.observations.tolist(), some.alone.tolist(), strict=True)
        }
        unsettled = {
            each
            for each, place in zip(found.tolist(), first.tolist(), strict=True)
            if each in alone
            and not any(
                its.settled(int(stands[place]), around, befallen=alone[each] != each)
                for its in whole.examined.judgements
            )
        }
        pins.observations(unsettled)

    def _total(self, whole: _Whole, summaries: Sequence[Summary]) -> Findings:
        findings = dataclasses.replace(whole.examined.findings, cost=Cost(conformance=self._held))
        findings = with_stuck(findings, whole.history, self._asked.specification)
        events = sum(each.events for each in summaries)
        added: dict[Configuration | None, Counter[str]] = {}
        for each in summaries:
            for observation, count in zip(each.alone.tolist(), each.counts.tolist(), strict=True):
                plain = self._observations.plain(observation)
                its = added.setdefault(plain.configuration, Counter())
                its.update({name: count * one for name, one in plain.counts.items()})
        self.left = sum(its[MESSAGES] for its in added.values())
        if not findings.queues:
            return _with_plain(findings, events, added)
        parts = [
            dataclasses.replace(part, findings=_with_plain(part.findings, events, added)) for part in findings.parts
        ]
        return together(parts, Configurations(findings.configuration, findings.queues))


def _with_plain(findings: Findings, events: int, added: Mapping[Configuration | None, Counter[str]]) -> Findings:
    """``findings`` also of the messages that were left out, which are ``added`` by what they are judged by."""
    more = added.get(findings.configuration, Counter())
    explanation = findings.explanation
    if explanation is not None:
        explanation = dataclasses.replace(explanation, messages=explanation.messages + more[MESSAGES])
    return dataclasses.replace(
        findings,
        events=events,
        messages=findings.messages + more[MESSAGES],
        counters=_added(findings.counters, more),
        ends=_added(findings.ends, more),
        explanation=explanation,
    )


def _in_lines_of_files(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """The ``chunks``, all of a history, with the numbers that their lines have in their files."""
    following = 1
    for each in chunks:
        first = following if each.first_line is None else each.first_line
        following = first + each.lines
        moved = first - (each.first_line or 1)
        yield dataclasses.replace(
            each,
            first_line=first,
            unreadable=tuple(dataclasses.replace(error, line=error.line + moved) for error in each.unreadable),
            victims=tuple(dataclasses.replace(victim, line=victim.line + moved) for victim in each.victims),
        )


def _rows_in_file(summary: Summary, chunk: Chunk) -> Encoded:
    """Return the kept rows with the numbers of their lines in the file; ``chunk`` has them."""
    rows = summary.residue.rows if summary.residue else Encoded({}, {})
    moved = (chunk.first_line or 1) - (summary.chunk.first_line or 1)
    return Encoded({**rows.numbers, "line": rows.numbers["line"] + moved}, rows.named) if moved else rows


_BETWEEN: Final = (Anomaly.REORDER, Anomaly.WINDOW_OVERRUN, Anomaly.PREFETCH_OVERRUN)


def _added(counts: Mapping[str, int], more: Mapping[str, int]) -> Mapping[str, int]:
    return MappingProxyType({name: count + more.get(name, 0) for name, count in counts.items()})


def _columns(summary: Summary) -> tuple[Any, Any]:
    marks = summary.residue.marks if summary.residue else np.empty(0, np.uint8)
    return marks, np.full(len(marks), summary.place)


def _observations_of(messages: Hashes, summaries: Sequence[Summary]) -> Hashes:
    """The observation of each of ``messages``, which stand for others."""
    pinned, observation = (np.concatenate([getattr(s, name) for s in summaries]) for name in ("pinned", "pinned_as"))
    order = np.argsort(pinned)
    found: Hashes = observation[order[np.searchsorted(pinned[order], messages)]]
    return found


class _Pinning:
    """Pins of all chunks, being added to."""

    def __init__(self, pins: Sequence[Pins]) -> None:
        self.pins = list(pins)
        self.changed = set[int]()

    def add(self, place: int, **more: Any) -> None:
        """Keep in the chunk of that number what fields of :class:`Pins` have there, and ``more`` of it."""
        before = self.pins[place]
        after = dataclasses.replace(before, **{name: _union(getattr(before, name), its) for name, its in more.items()})
        if any(len(getattr(after, name)) > len(getattr(before, name)) for name in more):
            self.pins[place] = after
            self.changed.add(place)

    def observations(self, observations: set[int]) -> None:
        """Keep all messages with these observations."""
        for place in range(len(self.pins)):
            self.add(place, observations=observations)


def _union(one: Any, other: Any) -> Any:
    return one.union(other) if isinstance(one, frozenset) else np.union1d(one, other)


def _suspects(pins: _Pinning, summaries: Sequence[Summary]) -> None:
    """Pin messages that were left out, or stand for such, and occur in another chunk; and transactions."""
    transactions = _repeated([_told_transactions(each) for each in summaries])
    for each in summaries:
        pins.add(each.place, transactions=each.transactions[np.isin(each.transactions, transactions)])
    twice = _repeated([_told(each) for each in summaries])
    for each in summaries:
        for hashes in (each.messages, each.pinned):
            pins.add(each.place, messages=hashes[np.isin(hashes, twice)])


def _no_runs_together(pins: _Pinning, summaries: Sequence[Summary], whole: _Whole) -> None:
    """Pairs that stand for others that are no run of the model, or only where the times leave another order."""
    loose = np.concatenate([each.loose_pairs() for each in whole.examined.judgements])
    if not len(loose):
        return
    names = whole.events.names["message"]
    pairs = set(map(tuple, hashes_of(names.take(pa.array(loose.ravel()))).reshape(-1, 2).tolist()))
    bad = {
        number
        for each in summaries
        for pair, number in zip(map(tuple, each.neighbours.tolist()), each.neighbours_as.tolist(), strict=True)
        if pair in pairs
    }
    for each in summaries:
        pins.add(each.place, neighbours=bad.intersection(each.neighbours_as.tolist()))


def _repeated(told: Sequence[Hashes]) -> Hashes:
    """Return the hashes that several of ``told`` have; each has its own once."""
    everything = np.sort(np.concatenate(told))
    return np.unique(everything[1:][everything[1:] == everything[:-1]])


def _told_transactions(summary: Summary) -> Hashes:
    """Hashes of all transactions of the chunk, each once."""
    if summary.residue is None:
        return summary.transactions
    process, transaction = (summary.residue.rows.named[name] for name in ("process", "transaction"))
    width = np.int64(len(transaction.dictionary) + 1)
    inside = np.flatnonzero(transaction.is_valid())
    codes = np.asarray(process.indices)[inside] * width + np.asarray(transaction.indices.fill_null(0))[inside]
    its, what = np.divmod(np.unique(codes), width)
    names = process.dictionary.take(pa.array(its)), transaction.dictionary.take(pa.array(what))
    return np.union1d(summary.transactions, hashes_of_transactions(*names))


def _told(summary: Summary) -> Hashes:
    """Hashes of the ids of all messages of the chunk, each once."""
    if summary.residue is None:
        return summary.messages
    return np.concatenate([summary.messages, hashes_of(summary.residue.rows.named["message"].dictionary)])


def _touched(fold: Fold, pins: _Pinning, summaries: Sequence[Summary], events: Events, *_: object) -> None:
    """Chunks with messages left out that lived when something befell somebody, as another chunk tells."""
    found = intervals(events, fold._skew)  # noqa: SLF001 - a part of it
    for each in summaries:
        if each.hull is None or not len(found):
            continue
        near = found[(found[:, 0] <= each.hull[1]) & (found[:, 1] >= each.hull[0])]
        unknown = [
            (low, high)
            for low, high in near.tolist()
            if not ((each.avoided[:, 0] <= low) & (each.avoided[:, 1] >= high)).any()
        ]
        pins.add(each.place, intervals=unknown)


def _entangled(_: Fold, pins: _Pinning, summaries: Sequence[Summary], events: Events, chunk: Ints) -> None:
    """Pin processes and sessions whose rows in two chunks are interleaved."""
    width = np.int64(len(pins.pins) + 1)
    for column in ("process", "session"):
        codes = getattr(events, column).astype(np.int64)
        order = np.argsort(codes, kind="stable")
        key = codes[order] * width + chunk[order]
        runs = key[np.append(True, key[1:] != key[:-1])]
        repeated, counts = np.unique(runs, return_counts=True)
        mixed = np.unique(repeated[counts > 1] // width)
        names = set(events.names[column].take(mixed).to_pylist())
        for each in summaries:
            if each.hull is not None:
                pins.add(each.place, **{column: names.intersection(each.names(column))})


def _covering(_: Fold, pins: _Pinning, summaries: Sequence[Summary], events: Events, chunk: Ints) -> None:
    """Sessions in which an acknowledgement may cover what another chunk left out."""
    labels = events.names["session"]
    names = set(labels.take(np.flatnonzero(strange_acts(events))).to_pylist())
    of_session = events.scope == VOCABULARY["scope"].index(AckScope.SESSION)
    for each in summaries:
        if each.hull is None:
            continue
        found, own = set(names), np.array(each.names("session"))
        for event, codes in each.uncovered.items():
            rows = np.flatnonzero((events.event == event_code(event)) & of_session & (chunk != each.place))
            acted = set(labels.take(np.unique(events.session[rows])).to_pylist())
            found |= acted.intersection(own[codes].tolist())
        pins.add(each.place, session=found.intersection(own.tolist()))


def _unnamed(_: Fold, pins: _Pinning, summaries: Sequence[Summary], events: Events, __: Ints) -> None:
    """Pin processes and sessions that a line of another chunk may be about without naming a message."""
    for column, found in of_unnamed(events).items():
        names = set(events.names[column].take(pa.array(np.flatnonzero(found))).to_pylist())
        for each in summaries if names else ():
            if each.hull is not None:
                pins.add(each.place, **{column: names.intersection(each.names(column))})


def _opened(fold: Fold, pins: _Pinning, summaries: Sequence[Summary], events: Events, chunk: Ints) -> None:
    """Pin sessions in which sends or deliveries of other chunks may be open beside messages left out."""
    number = {name: code for code, name in enumerate(events.names["session"].to_pylist())}
    for kind, bound, (begin, end) in _open_rows(fold, events):
        session, of = events.session[begin], chunk[begin]
        begins = events.t[begin]
        ends = np.where(end < len(events), events.t[np.minimum(end, len(events) - 1)], NEVER)
        for each in summaries:
            if each.hull is None:
                continue
            names, rises = each.names("session"), each.rises[kind]
            near = (of != each.place) & (begins <= each.hull[1]) & (ends >= each.hull[0])
            for code in np.unique(rises[:, 0]).tolist():
                others = np.sort(ends[near & (session == number[names[code]])])
                its = rises[rises[:, 0] == code]
                open_ = len(others) - np.searchsorted(others, its[:, 1], side="left")
                if (its[:, 2] + open_ >= bound).any():
                    pins.add(each.place, session=[names[code]])


def _open_rows(fold: Fold, events: Events) -> Iterator[tuple[str, int, tuple[Ints, Ints]]]:
    """For each bound the rows where something is open from, and until, the number of all rows where it stays open."""
    bounds, index = fold.bounds, Index.of(events)
    if bounds.window is not None:
        sends = index.plain_sends
        yield WINDOW, bounds.window, (sends.place, np.minimum(sends.outcome, len(events)))
    if bounds.prefetch is not None:
        yield PREFETCH, bounds.prefetch, (index.deliveries, np.minimum(ends_of(index), len(events)))
