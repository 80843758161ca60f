"""Metrics of a broker, also in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Generator, Iterator, Mapping
from types import MappingProxyType

from ackfsm.engine.connection import Connection
from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.instances import Copy, Queue
from ackfsm.tables.names import IN_FLIGHT, Machine

PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""How HTTP has to call what :func:`prometheus` returns."""

_SECOND = 1_000_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class QueueMetrics:
    """Figures of one queue: its messages now, and its events since the :class:`Broker` was made.

    A message that was sent again (``resend``) and is there twice counts twice.

    Attributes:
        name: of the queue.
        depth: messages in it: those that are ready, in flight, and sent in transactions that have not committed.
        ready: those that may be sent to a consumer.
        in_flight: those that were sent to a consumer, and neither acknowledged (with the commit, in a transaction) nor
            given back.
        oldest: nanoseconds since the oldest of those ready or in flight was sent; ``None`` if there is none, or the
            journal does not tell.
        consumers: that are open.
        enqueued: messages that were taken into it; those of transactions that were rolled back are not.
        delivered: deliveries to applications, the repeated ones too.
        redelivered: those of them that had the flag.
        acknowledged: messages that were removed because a consumer was done with them, or as they were sent to one,
            where no acknowledgement exists; each time, if a broker that died had not stored that.
        dead_lettered: those that had been delivered as often as allowed.
        rejected: those that the broker refused.
        restored: those that were there again when the journal was read.
        lost: those that were in memory alone when the broker died.
    """

    name: str
    depth: int
    ready: int
    in_flight: int
    oldest: int | None
    consumers: int
    enqueued: int
    delivered: int
    redelivered: int
    acknowledged: int
    dead_lettered: int
    rejected: int
    restored: int
    lost: int


@dataclasses.dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of a broker.

    Attributes:
        now: the time, in nanoseconds of the broker's clock.
        running: whether its process is there.
        connections: that are open.
        sessions: that are open.
        consumers: that are open.
        journal_syncs: how often the journal was synced because a call waited for it.
        queues: of each queue, by its name.
    """

    now: int
    running: bool
    connections: int
    sessions: int
    consumers: int
    journal_syncs: int
    queues: Mapping[str, QueueMetrics]


def measure(broker: BrokerContext, connections: Collection[Connection]) -> Metrics:
    """The figures as they are now; reads all that is with consumers, and of what waits in a queue the first."""
    now, out = broker.time(), _out(broker)
    sessions = [session for connection in connections for session in connection.sessions if not session.closed]
    consumers = [consumer for session in sessions for consumer in session.consumers if not consumer.closed]
    return Metrics(
        now=now,
        running=broker.running,
        connections=len(connections),
        sessions=len(sessions),
        consumers=len(consumers),
        journal_syncs=broker.journal.syncs,
        queues=MappingProxyType(
            {name: _measured(queue, out, now) for name, queue in broker.engine.queues.by_name.items()}
        ),
    )


def _out(broker: BrokerContext) -> dict[Queue, list[Copy]]:
    """The copies that are with consumers."""
    call, found = broker.stepper.model.all_copies("consumer"), dict[Queue, list[Copy]]()
    for side in broker.stepper.links:
        if side.kind == "consumer":
            for copy in side.index(call).members.values():
                if copy.in_queue and copy.state_of(Machine.ENTRY) in IN_FLIGHT:
                    found.setdefault(copy.message.queue, []).append(copy)
    return found


def _measured(queue: Queue, out: Mapping[Queue, list[Copy]], now: int) -> QueueMetrics:
    with_consumers, first = out.get(queue, []), queue.ready.first()
    there = with_consumers if first is None else [*with_consumers, first]
    sent = min(there, key=lambda copy: copy.key).message.timestamp if there else None
    return QueueMetrics(
        name=queue.name,
        depth=queue.length,
        ready=len(queue.ready.members),
        in_flight=len(with_consumers),
        oldest=None if sent is None else max(0, now - sent),
        consumers=len(queue.consumers),
        enqueued=queue.length + queue.removed + queue.lost - queue.restored,
        delivered=queue.delivered,
        redelivered=queue.redelivered,
        acknowledged=queue.removed - queue.dead_lettered,
        dead_lettered=queue.dead_lettered,
        rejected=queue.rejected,
        restored=queue.restored,
        lost=queue.lost,
    )


_OF_BROKER = (
    ("running", "gauge", "Whether the broker's process is there."),
    ("connections", "gauge", "Connections that are open."),
    ("sessions", "gauge", "Sessions that are open."),
    ("consumers", "gauge", "Consumers that are open."),
    ("journal_syncs", "counter", "Syncs of the journal that somebody waited for."),
)

_OF_QUEUE = (
    ("depth", "gauge", "Messages in the queue."),
    ("ready", "gauge", "Messages that may be sent to a consumer."),
    ("in_flight", "gauge", "Messages that were sent to a consumer and are not acknowledged."),
    ("oldest", "gauge", "Seconds since the oldest message of the queue was sent."),
    ("consumers", "gauge", "Consumers of the queue."),
    ("enqueued", "counter", "Messages that were taken into the queue."),
    ("delivered", "counter", "Deliveries to applications."),
    ("redelivered", "counter", "Deliveries that were flagged as redelivered."),
    ("acknowledged", "counter", "Messages that a consumer was done with."),
    ("dead_lettered", "counter", "Messages that had been delivered as often as allowed."),
    ("rejected", "counter", "Messages that the broker refused."),
    ("restored", "counter", "Messages that were there again when the journal was read."),
    ("lost", "counter", "Messages that were in memory alone when the broker died."),
)


def prometheus(metrics: Metrics) -> str:
    """``metrics`` in the text format of Prometheus, see :data:`PROMETHEUS_CONTENT_TYPE`."""
    return "".join(f"{line}\n" for line in _lines(metrics))


def _lines(metrics: Metrics) -> Iterator[str]:
    for field, kind, means in _OF_BROKER:
        name = yield from _head("ackfsm", field, kind, means)
        yield f"{name} {int(getattr(metrics, field))}"
    for field, kind, means in _OF_QUEUE:
        name = yield from _head("ackfsm_queue", field, kind, means)
        for queue in metrics.queues.values():
            value = getattr(queue, field)
            if value is not None:
                yield f'{name}{{queue="{_escaped(queue.name)}"}} {_number(field, value)}'


def _head(prefix: str, field: str, kind: str, means: str) -> Generator[str, None, str]:
    name = f"{prefix}_{_NAMES.get(field, field)}" + ("_total" if kind == "counter" else "")
    yield f"# HELP {name} {means}"
    yield f"# TYPE {name} {kind}"
    return name


_NAMES = {"oldest": "oldest_age_seconds"}


def _number(field: str, value: int) -> str:
    return f"{value // _SECOND}.{value % _SECOND:09}" if field == "oldest" else str(value)


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
