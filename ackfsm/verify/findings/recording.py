"""Anomalies that the recording may explain as well as the broker: clocks that differ, missing records."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import Events
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE
from ackfsm.verify import words
from ackfsm.verify.findings.findings import Finding


@dataclasses.dataclass(frozen=True, slots=True)
class Early:
    """Messages that were delivered before they were sent, as the clocks of two different processes have it.

    Attributes:
        count: how many.
        gap: by how many nanoseconds at most.
        consumer, producer: the names of the processes of one that was so early.
        messages: their codes, ascending.
    """

    count: int
    gap: int
    consumer: str
    producer: str
    messages: Ints = dataclasses.field(default_factory=lambda: np.empty(0, np.int64), compare=False)


def came_early(events: Index, among: Mask) -> Early | None:
    """The messages ``among`` these that were delivered before another process sent them, if there are any."""
    delivered, sent = events.first_delivery, events.first_send
    early = among & (delivered != NONE) & (delivered < sent) & (events.process[delivered] != events.process[sent])
    messages = np.flatnonzero(early)
    delivered, sent = delivered[early], sent[early]
    if not len(delivered):
        return None
    gaps, names = events.t[sent] - events.t[delivered], events.names["process"]
    widest = gaps == gaps.max()
    ends = (names.take(pa.array(events.process[rows[widest]])).to_pylist() for rows in (delivered, sent))
    consumer, producer = min(zip(*ends, strict=True))
    return Early(len(delivered), int(gaps.max()), consumer, producer, messages)


@dataclasses.dataclass(frozen=True, slots=True)
class Silent:
    """The processes that were delivered messages and do not tell what they have processed.

    If nobody tells, these are all.  Beside others that tell, one is silent that was delivered two messages or more and
    told of none: who has gone on to a second message was done with the first.  One that was delivered a single message
    may have died with it.  A ``processed`` of somebody who was not delivered the message tells for those who were.

    Attributes:
        told: whether any process tells.
        names: the names of the silent ones, sorted.
        processes: their codes.
    """

    told: bool
    names: tuple[str, ...]
    processes: tuple[int, ...] = ()

    def among(self, events: Events, messages: Mask) -> Silent:
        """Return the silent processes that were delivered one of the ``messages``, a mask."""
        rows = events.places(Event.DELIVERED)
        rows = rows[messages[events.message[rows]]]
        return _named(self.told, events, np.intersect1d(self.processes, events.process[rows]))


def silent_of(events: Events) -> tuple[Silent, Ints] | None:
    """Return the silent processes of ``events`` and their messages; ``None`` if there are none."""
    count, width = events.count_of("process"), np.int64(max(1, events.count_of("message")))
    delivered, processed = events.places(Event.DELIVERED), events.places(Event.PROCESSED)
    process, message = events.process[delivered], events.message[delivered]
    own = np.isin(events.process[processed] * width + events.message[processed], process * width + message)
    least, most = np.full(count, width, np.int64), np.full(count, NONE, np.int64)
    np.minimum.at(least, process, message)
    np.maximum.at(most, process, message)
    silent = (most > least) if len(processed) else (most != NONE)
    silent[events.process[processed[own]]] = False
    silent[process[np.isin(message, events.message[processed[~own]])]] = False
    if not silent.any():
        return None
    return _named(bool(len(processed)), events, np.flatnonzero(silent)), np.unique(message[silent[process]])


def _named(told: bool, events: Events, codes: Ints) -> Silent:  # noqa: FBT001 - of this module
    names = events.names["process"].take(pa.array(codes)).to_pylist()
    return Silent(told, tuple(sorted(names)), tuple(codes.tolist()))


def unless_early(finding: Finding, early: Early, skew: int) -> Finding:
    """The ``finding`` about phantoms, where clocks may differ by ``skew``."""
    return dataclasses.replace(
        finding, doubted=early.count, doubt=words.early(early.count, early.gap, (early.consumer, early.producer), skew)
    )


def unless_unrecorded(finding: Finding, silent: Silent, doubted: int) -> Finding:
    """Return the ``finding`` about unprocessed messages, ``doubted`` of them delivered to ``silent`` ones."""
    if not doubted:
        return finding
    if not silent.told:
        why = f"{finding.unknown}, and {words.UNRECORDED}" if finding.unknown else words.UNRECORDED
        return dataclasses.replace(finding, found=0, examples=(), unknown=why, unrecorded=finding.unknown is None)
    return dataclasses.replace(finding, doubted=doubted, doubt=words.unprocessed(doubted, silent.names))


def unless_unrecorded_again(finding: Finding, silent: Silent, repeated: int) -> Finding:
    """The ``finding`` about reprocessed messages; so many others came again, also to those who are ``silent``."""
    if not repeated:
        return finding
    if not silent.told:
        return dataclasses.replace(finding, unknown=words.UNRECORDED, unrecorded=True)
    return dataclasses.replace(finding, doubt=words.reprocessed(repeated, silent.names))
