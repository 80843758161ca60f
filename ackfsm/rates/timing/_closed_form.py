"""The rates of producers and consumers as formulas, exact where that can be said: in messages a tick.

All of them are of one kind: a *line* of stations that work on different messages at a time (the producer, its
connection, the broker), and a *loop* that lets only so many messages into it.  A line of stations passes a message each
``pace``, the time of its slowest; ``n`` messages leave it after the time of all stations and ``n - 1`` paces.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction

from ackfsm.rates.timing._interval import UNBOUNDED, Interval, least
from ackfsm.rates.timing._ticks import Ticks
from ackfsm.rates.timing._waits import Waits

_STANDS_STILL = Interval.exactly(Fraction(0))

_IN_A_ROUND = 4
"""Syncs that may follow each other in one round of transactions where each takes all that waits: two on either side,
the one that is under way and the next."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Line:
    """Stations that each message passes one after the other, with what each of them takes."""

    stations: Sequence[int]
    pace: int

    def of(self, messages: int) -> int:
        """Ticks until the last of so many messages, which come all at once, has passed."""
        return sum(self.stations) + (messages - 1) * self.pace


def _paced(pace: int) -> Interval:
    return UNBOUNDED if pace == 0 else Interval.each(1, pace)


def _looped(line: _Line, most: int, batch: int, back: tuple[int, int]) -> Interval:
    """At most ``most`` messages within a line, let in again ``batch`` at a time, ``back`` ticks after they left.

    ``back`` is at most and at least.  While as many as may are within, those that make no whole batch wait for the
    first of the next: a batch comes round as soon as they are joined.
    """
    batches, rest = divmod(most, batch)
    longest, shortest = (line.of(batch - rest) + each for each in back)
    return least([_paced(line.pace), Interval.each(batches * batch, longest, shortest)])


def passing(work: Ticks, waits: Waits) -> Interval:
    """Messages a second from end to end.

    Where both sides use the journal, and somebody waits for it, how their syncs fall decides: only bounds are known.
    A session's next commit waits for the record of the last one, though nobody is told when that is synced.
    """
    alone = least([publishing(work, waits), delivering(work, waits)])
    if waits.settled_by == "commit" and _records_fall_behind(work, waits, alone, work.producers + work.consumers):
        waits = _told_when_synced(waits)
    waited = _answers_after_sync(waits) or _consumer_syncs(waits)
    if not (waits.is_journalled and waited and work.sync_time > 0):
        return alone
    if not work.group_commit:
        return Interval(Fraction(0), alone.high)
    later = dataclasses.replace(work, sync_time=2 * work.sync_time)
    return Interval(least([publishing(later, waits), delivering(later, waits)]).low, alone.high)


def _held_up_by_records(
    rate: Callable[[Ticks, Waits], Interval], work: Ticks, waits: Waits, found: Interval, sessions: int
) -> Interval:
    """The ``rate`` of one side, ``found`` without regard to its sessions, which may wait for their last record."""
    if waits.commit_after_sync or not _records_fall_behind(work, waits, found, sessions):
        return found
    later = dataclasses.replace(work, sync_time=2 * work.sync_time)
    return Interval(rate(later, _told_when_synced(waits)).low, found.high)


def _told_when_synced(waits: Waits) -> Waits:
    return dataclasses.replace(waits, commit_after_sync=True)


def _records_fall_behind(work: Ticks, waits: Waits, rate: Interval, sessions: int) -> bool:
    """Whether the records of one round of transactions of so many sessions may take longer than the round does."""
    if not waits.is_journalled or rate.high is None:
        return False
    syncs = _IN_A_ROUND if work.group_commit else sessions * (work.messages_per_commit + 1)
    return syncs * work.sync_time * rate.high > work.messages_per_commit


# producers


def publishing(work: Ticks, waits: Waits) -> Interval:
    """Messages a second that all producers together get to the broker."""
    found = _published(work, waits)
    if waits.next_send_after != "commit":
        return found
    return _held_up_by_records(_published, work, waits, found, work.producers)


def _published(work: Ticks, waits: Waits) -> Interval:
    """The same if no session has to wait for the record of its last transaction."""
    if work.timer == 0 and waits.has_timer:
        waits = dataclasses.replace(waits, threshold=None)
    one = _one_producer(work, waits)
    if not _meets_others(work, waits):
        return least([one.times(work.producers), *_shared(work, waits)])
    alone = dataclasses.replace(work, broker_time=work.broker_time * work.producers)
    slow, fast = _one_producer(alone, waits).times(work.producers), one.times(work.producers)
    return least([Interval(slow.low, fast.high), *_shared(work, waits)])


def _meets_others(work: Ticks, waits: Waits) -> bool:
    """Whether bursts of several producers meet at the broker, so that how they fall decides."""
    bursts = waits.next_send_after == "commit" or waits.threshold is not None
    return work.producers > 1 and work.broker_time > 0 and bursts


def _shared(work: Ticks, waits: Waits) -> list[Interval]:
    """What all producers share: the broker, the disk, and the messages that there are to send."""
    offered = UNBOUNDED if work.rate is None else Interval.exactly(work.rate)
    bounded = waits.next_send_after != "window" or waits.window is not None
    synced = _answers_after_sync(waits) and bounded and not work.group_commit
    per_sync = work.messages_per_commit if waits.next_send_after == "commit" else 1
    disk = Interval.each(per_sync, work.sync_time) if synced else UNBOUNDED
    return [offered, _paced(work.broker_time), disk]


def _answers_after_sync(waits: Waits) -> bool:
    """Whether a producer waits for what waits for the disk."""
    if waits.next_send_after == "commit":
        return waits.commit_after_sync
    return waits.next_send_after != "nothing" and waits.send_after_sync


def _one_producer(work: Ticks, waits: Waits) -> Interval:
    pace = max(work.send_time, work.transmission, work.broker_time)
    line = _Line((work.transmission, work.broker_time), pace)
    found = _without_credit(work, waits, line)
    if work.credit is None:
        return found
    looped = _looped(line, work.credit, 1, (work.rtt, work.rtt))
    if waits.next_send_after != "commit":
        return least([found, looped])
    return _credited_transaction(work, waits, line, Interval(found.low, least([found, looped]).high))


def _credited_transaction(work: Ticks, waits: Waits, line: _Line, found: Interval) -> Interval:
    """Transactions within a credit: that of the first messages may be back before the last are sent, or not."""
    messages, credit = work.messages_per_commit, work.credit or 1
    waited = (-(-messages // credit) - 1) * (line.of(1) + work.rtt)
    if waited == 0:
        return _without_credit(work, waits, line)
    alone = Interval.each(messages, waited + _cycle(found, messages))
    return Interval(alone.low, found.high)


def _cycle(rate: Interval, messages: int) -> Fraction:
    """Ticks that so many messages take at the least of a rate."""
    return Fraction(0) if not rate.low else messages / rate.low


def _without_credit(work: Ticks, waits: Waits, line: _Line) -> Interval:
    pace, sync = line.pace, _sync(work, waits)
    if waits.next_send_after == "commit":
        messages = work.messages_per_commit
        answers = work.rtt * (2 if waits.completes_first else 1)
        taken = [work.send_time + line.of(messages) + answers + each for each in sync]
        return Interval.each(messages, *taken)
    if waits.next_send_after == "nothing" or waits.window is None:
        return _paced(pace)
    if waits.next_send_after == "answer":
        return _blocking(work, waits, line, sync)
    if waits.threshold is not None:
        return _in_batches(work, waits, line, sync)
    return _looped(line, waits.window, 1, (work.rtt + sync[0], work.rtt + sync[1]))


def _sync(work: Ticks, waits: Waits) -> tuple[int, int]:
    """How long an answer waits for the disk, at most and at least: it may find a sync under way that is not for it."""
    if not _answers_after_sync(waits):
        return 0, 0
    window = 1 if waits.next_send_after in {"commit", "answer"} else waits.window
    alone = work.producers == 1 and window == 1
    twice = work.group_commit and not alone
    bursts = waits.next_send_after == "commit" and work.producers > 1
    return work.sync_time * (2 if twice or bursts else 1), work.sync_time


def _blocking(work: Ticks, waits: Waits, line: _Line, sync: tuple[int, int]) -> Interval:
    """One message at a time: its producer works for it, sends it and waits."""
    if waits.threshold is None or waits.threshold == 1:
        timer = 0
    elif waits.has_timer:
        timer = work.timer
    else:
        return _STANDS_STILL
    cycles = [max(work.send_time + line.of(1) + work.rtt + each + timer, work.interval) for each in sync]
    return Interval.each(1, *cycles)


def _in_batches(work: Ticks, waits: Waits, line: _Line, sync: tuple[int, int]) -> Interval:
    """The broker answers ``threshold`` messages at a time, or by its timer what there is."""
    window, threshold = waits.window or 1, waits.threshold or 1
    free = _paced(line.pace)
    if window < threshold:
        if not waits.has_timer:
            return _STANDS_STILL
        slowest = line.of(1) + work.rtt + sync[0] + work.timer
        by_timer = least([free, Interval.each(window, slowest)])
        all_read = (window - 1) * max(line.pace, work.interval) <= work.timer and sync[0] == 0
        return by_timer if all_read else Interval(least([free, Interval.each(1, slowest)]).low, free.high)
    batches, rest = divmod(window, threshold)
    found = _looped(line, window, threshold, (work.rtt + sync[0], work.rtt + sync[1]))
    waited = max(line.of(threshold - rest) + work.rtt + sync[0], (threshold - 1) * max(line.pace, work.interval))
    if (not waits.has_timer or waited <= work.timer) and sync[0] == 0:
        return found
    if waits.has_timer and waited > work.timer and sync[0] == 0 and _never_full(work, window, line):
        return free
    slow = Interval.each(batches * threshold, line.of(threshold) + work.rtt + sync[0] + work.timer)
    return Interval(least([free, slow]).low, free.high)


def _never_full(work: Ticks, window: int, line: _Line) -> bool:
    """Whether a producer who is slow for another reason never fills its window, since the timer answers."""
    pace = max(line.pace, work.interval)
    return window * pace > work.timer + line.of(1) + work.rtt + pace


# consumers


def delivering(work: Ticks, waits: Waits) -> Interval:
    """Messages a second that all consumers together process, where there are always some in the queue."""
    found = _delivered(work, waits)
    if waits.settled_by != "commit":
        return found
    return _held_up_by_records(_delivered, work, waits, found, work.consumers)


def _delivered(work: Ticks, waits: Waits) -> Interval:
    """The same if no session has to wait for the record of its last transaction."""
    return least([_one_consumer(work, waits).times(work.consumers), _shared_disk(work, waits)])


def _shared_disk(work: Ticks, waits: Waits) -> Interval:
    if work.group_commit or not _consumer_syncs(waits):
        return UNBOUNDED
    records = _records(work, waits)
    return Interval.each(_settled_at_a_time(work, waits), work.sync_time * records)


def _consumer_syncs(waits: Waits) -> bool:
    """Whether a consumer waits for what waits for the disk."""
    if waits.settled_by == "commit":
        return waits.commit_after_sync
    return waits.waits_for_acknowledged and waits.acknowledge_after_sync


def _records(work: Ticks, waits: Waits) -> int:
    """How many records of the journal an answer waits for: a commit is one, and each message of a call."""
    return 1 if waits.settled_by == "commit" else _settled_at_a_time(work, waits)


def _settled_at_a_time(work: Ticks, waits: Waits) -> int:
    sizes = {"commit": work.messages_per_commit, "call": work.messages_per_acknowledge, "batch": work.lazy_batch}
    return sizes.get(waits.settled_by, 1)


def _one_consumer(work: Ticks, waits: Waits) -> Interval:
    at_a_time, most = _settled_at_a_time(work, waits), waits.prefetch
    pauses = _pauses(work, waits)
    busy = [at_a_time * work.processing_time + pause for pause in pauses]
    fetched = [_paced(work.transmission_back), Interval.each(at_a_time, *busy)]
    if most is None:
        return least(fetched)
    if waits.freed_on_delivery:
        return least([*fetched, _taken(work, waits, at_a_time, most, pauses)])
    return least([*fetched, _refilled(work, waits, at_a_time, most, pauses)])


def _pauses(work: Ticks, waits: Waits) -> tuple[int, int]:
    """Return the longest and the shortest wait of a consumer for each answer to a settlement, in ticks."""
    if waits.settled_by != "commit" and not waits.waits_for_acknowledged:
        return 0, 0
    records = 1 if work.group_commit else _records(work, waits)
    sync = work.sync_time * records if _consumer_syncs(waits) else 0
    shared = work.group_commit and work.consumers > 1
    return work.rtt + sync * (2 if shared else 1), work.rtt + sync


def _taken(work: Ticks, waits: Waits, at_a_time: int, most: int, pauses: tuple[int, int]) -> Interval:
    """How fast the broker may send where a delivery counts until the application has it.

    While the application waits for an answer it takes nothing: the message itself, if it is acknowledged first; and
    with several messages to an answer the way of the first of them is not hidden.
    """
    way = work.transmission_back + work.rtt
    if waits.acknowledged_first:
        return Interval.each(most, way + pauses[0], way + pauses[1])
    if at_a_time == 1 or pauses[0] == 0:
        return Interval.each(most, way)
    each: Fraction = max(Fraction(way, most), Fraction(max(work.processing_time, work.transmission_back)))
    slow = Interval.each(at_a_time, at_a_time * each + pauses[0] + way)
    return Interval(slow.low, Interval.each(most, way).high)


def _refilled(work: Ticks, waits: Waits, at_a_time: int, most: int, pauses: tuple[int, int]) -> Interval:
    """How fast the broker may send where a delivery counts until it is settled."""
    before = waits.acknowledged_first
    stations = (work.transmission_back,) if before else (work.transmission_back, work.processing_time)
    line = _Line(stations, max(work.transmission_back, work.processing_time))
    if waits.settled_by == "batch" and (at_a_time > 1 or most < at_a_time):
        at_best = Interval.each(most, line.of(1) + work.rtt)
        return Interval(Interval.each(most, line.of(most) + work.rtt).low, at_best.high)
    if most < at_a_time:
        return _STANDS_STILL
    whole = _looped(line, most, at_a_time, (work.rtt, work.rtt))
    if at_a_time == 1 or pauses[0] == 0:
        return whole
    slow = Interval.each(at_a_time, line.of(at_a_time) + pauses[0])
    return Interval(slow.low, whole.high)
