"""Messaging spans as columns: a row for each span of a block of OTLP JSON.

Most attributes of a span tell nothing of messages, and those that do repeat: spans with the same keys in the same order
have what is wanted at the same places, and spans that agree in all that repeats (operation, destination, client, ...)
are of one kind.  What a kind means is found out once; beside it a span has its times and its message.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ackfsm.history.format import EVENTS, Event
from ackfsm.history.importing.otlp_json import Link, NotOtlpError, Resource, Span, Value, spans_of, value_of
from ackfsm.history.importing.streams import Block
from ackfsm.text import quoted

_TOGETHER: Final = 1 << 8
"""Spans that are decoded before they become rows; more do not fit into the caches of a processor, and take longer."""

SEND, CREATE, RECEIVE, PROCESS, SETTLE = range(5)
_OPERATIONS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "send": SEND,
        "publish": SEND,
        "create": CREATE,
        "receive": RECEIVE,
        "process": PROCESS,
        "deliver": PROCESS,
        "settle": SETTLE,
    }
)
NOT_UNDERSTOOD, NOT_OF_MESSAGING = -1, -2
"""In place of the operation of a span that has none."""

_PRODUCER, _CONSUMER = 4, 5
"""Kinds of spans."""

_ERROR: Final = 2
"""The code of a status."""

_REFUSALS: Final = frozenset(
    {"nack", "basic.nack", "rejected", "amqp:rejected", "amqp:rejected:list", "amqp:not-allowed", "amqp:not-found"}
)
"""The values of ``error.type`` by which a broker says that it has not taken a message."""

_GIVES_BACK: Final = frozenset(
    {"nack", "basic.nack", "reject", "basic.reject", "abandon", "release", "modify", "defer"}
)
_DEAD_LETTERS: Final = frozenset({"dead_letter", "deadletter", "dead-letter"})

_WANTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "messaging.system": "system",
        "messaging.operation.type": "operation",
        "messaging.operation": "operation",
        "messaging.operation.name": "name",
        "messaging.message.id": "message",
        "messaging.message_id": "message",
        "messaging.destination.name": "destination",
        "messaging.destination": "destination",
        "messaging.rabbitmq.destination.routing_key": "routing_key",
        "messaging.rabbitmq.routing_key": "routing_key",
        "messaging.client.id": "client",
        "messaging.client_id": "client",
        "messaging.consumer.id": "client",
        "messaging.consumer_id": "client",
        "thread.id": "thread",
        "error.type": "error",
        "messaging.batch.message_count": "batch",
        "messaging.message.redelivered": "redelivered",
        "messaging.rabbitmq.message.redelivered": "redelivered",
        "messaging.jms.message.redelivered": "redelivered",
        "messaging.message.delivery_count": "delivery_count",
        "messaging.servicebus.message.delivery_count": "delivery_count",
        "messaging.gcp_pubsub.message.delivery_attempt": "delivery_count",
    }
)
"""The attributes that are read, by what they are called here."""

_REPEATING: Final = ("system", "operation", "name", "destination", "routing_key", "client", "thread", "error")
"""What of them belongs to the kind of a span."""

TELLS_NOTHING: Final = -1
"""In place of the event at the start or the end of a span that tells none."""

SPANS: Final = pa.schema(
    [
        ("line", pa.int64()),
        ("operation", pa.int8()),
        ("at_start", pa.int8()),
        ("at_end", pa.int8()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("process", pa.string()),
        ("session", pa.string()),
        ("queue", pa.string()),
        ("message", pa.string()),
        ("error", pa.string()),
        ("redelivered", pa.bool_()),
        ("delivery_count", pa.int64()),
        ("alone", pa.bool_()),
        ("batch", pa.int64()),
        ("own", pa.string()),
        ("parent", pa.string()),
        ("links", pa.list_(pa.struct([("context", pa.string()), ("message", pa.string())]))),
        ("lost_links", pa.int64()),
        ("why", pa.string()),
    ]
)
"""The columns of spans.

``at_start`` and ``at_end`` are the events then, as places in :data:`EVENTS`.  ``alone`` says whether a span names its
message, and tells of no other; ``batch`` of how many it says that it tells.  ``own`` and ``parent`` are contexts; they
and ``links`` are there only where they are needed: to know which deliveries a receive span has shown, and to name
messages.  ``why`` says why a span was not understood.
"""


class Contents(NamedTuple):
    """The contents of a block.

    Attributes:
        lines: how many lines; they are numbered from 1.
        rows: its spans, in their order (:data:`SPANS`).
        unread: what in it could not be read, each with the number of the line.
        others: how many documents are not of traces.
        sampled: a tracestate that says that not every trace was kept, empty if none does.
        found: whether a document is OTLP JSON.
        why: why the first that is not is none, with its line; ``None`` if all are.
    """

    lines: int
    rows: pa.RecordBatch
    unread: Sequence[tuple[int, str]]
    others: int
    sampled: str
    found: bool
    why: tuple[int, str] | None


def contents_of(block: Block, *, contexts: bool = False) -> Contents:
    """What ``block`` holds, with the contexts of all spans if they are wanted."""
    rows, unread = _Rows(contexts=contexts), list[tuple[int, str]]()
    number, others, found, why = 0, 0, False, None
    for number, text in enumerate(block.lines(), 1):
        if not text.strip():
            continue

        def tell(reason: str, line: int = number) -> None:
            unread.append((line, reason))

        try:
            groups = spans_of(text, tell)
        except NotOtlpError as error:
            why = why or (number, str(error))
            tell(f"a line of which {error}")
            continue
        found = True
        if groups is None:
            others += 1
        else:
            rows.add(number, groups)
    return Contents(number, rows.all(), unread, others, rows.sampled, found, why)


class _Kind(NamedTuple):
    """The meaning of a kind of spans: columns of :data:`SPANS`."""

    operation: int
    at_start: int = TELLS_NOTHING
    at_end: int = TELLS_NOTHING
    process: str | None = None
    session: str | None = None
    queue: str | None = None
    error: str | None = None
    why: str | None = None


_Traits: TypeAlias = "tuple[Any, ...]"
"""What spans of one kind agree in: kind, whether the status is an error, maker, and what repeats of the attributes."""


class _Kinds(dict[_Traits, int]):
    """Numbers for kinds by their traits."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[_Kind] = []
        self.receiving: set[int] = set()
        self.delivering: set[int] = set()

    def __missing__(self, traits: _Traits) -> int:
        number = self[traits] = len(self.all)
        kind = _kind(*traits)
        self.all.append(kind)
        if kind.operation == RECEIVE:
            self.receiving.add(number)
        if kind.operation == PROCESS and kind.at_start != TELLS_NOTHING:
            self.delivering.add(number)
        return number


def _kind(  # noqa: PLR0913, PLR0917 - what a span says of itself
    kind: int,
    failed: bool,  # noqa: FBT001 - as above
    maker: str,
    system: str | None,
    operation: str | None,
    name: str | None,
    destination: str | None,
    routing_key: str | None,
    client: str | None,
    thread: str | None,
    error: str | None,
) -> _Kind:
    if system is destination is operation is None:
        return _Kind(NOT_OF_MESSAGING)
    does = _OPERATIONS.get(operation or ("send" if kind == _PRODUCER else ""))
    if does is None:
        said = (
            f"with the operation {quoted(operation)}" if operation else "of messaging without messaging.operation.type"
        )
        return _Kind(NOT_UNDERSTOOD, why=f"a span {said}")
    told = _told(does, kind, name, error, failed=failed or error is not None)
    at_start, at_end = (TELLS_NOTHING if event is None else EVENTS.index(event) for event in told)
    process, session = _who(maker, client, thread)
    queue = _queue(system, destination, routing_key, sends=does in {SEND, CREATE})
    return _Kind(does, at_start, at_end, process, session, queue, error)


def _told(
    does: int, kind: int, name: str | None, error: str | None, *, failed: bool
) -> tuple[Event | None, Event | None]:
    """The events at the start and at the end of a span."""
    if does == SEND:
        refused = error is not None and error.lower() in _REFUSALS
        return Event.SEND, (Event.REJECTED if refused else Event.IN_DOUBT) if failed else Event.CONFIRMED
    if does == RECEIVE:
        return None, Event.DELIVERED
    if does == PROCESS:
        return Event.DELIVERED if kind == _CONSUMER else None, Event.FAILED if failed else Event.PROCESSED
    if does == SETTLE:
        called = (name or "").lower()
        if called in _GIVES_BACK or called in _DEAD_LETTERS:
            return Event.FAILED if called in _GIVES_BACK else Event.DEAD_LETTERED, None
        return Event.ACKNOWLEDGE, Event.ACK_IN_DOUBT if failed else None
    return None, None


def _who(maker: str, client: str | None, thread: str | None) -> tuple[str, str | None]:
    """The process, and its session where that is called otherwise.

    A session is the instance of the service with its client; the process is that with the thread, if it is known.
    """
    session = maker if client is None else f"{maker}/{client}"
    return (session, None) if thread is None else (f"{session}#{thread}", session)


_DEFAULT_EXCHANGES: Final = ("", "amq.default")


def _queue(system: str | None, destination: str | None, key: str | None, *, sends: bool) -> str | None:
    """The queue; for RabbitMQ, whose destination is an exchange, where the queue can be told from it."""
    if system != "rabbitmq":
        return destination
    parts = (destination or "").split(":")
    if not sends:
        return parts[-1] or key
    if parts[0] in _DEFAULT_EXCHANGES or (len(parts) == 1 and parts[0] == key):
        return key or parts[-1] or None
    return None


_Plan: TypeAlias = "tuple[tuple[str, int], ...]"
"""What is read of the attributes of a span, and at which places."""


class _Plans(dict[tuple[str, ...], int]):
    """Numbers for plans by the keys of attributes; of a key that is there twice, the last is read."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[_Plan, int] = {}

    def __missing__(self, keys: tuple[str, ...]) -> int:
        plan = tuple({_WANTED[key]: place for place, key in enumerate(keys) if key in _WANTED}.items())
        number = self[keys] = self._numbers.setdefault(plan, len(self._numbers))
        return number

    @property
    def all(self) -> Sequence[_Plan]:
        """The plans by their numbers."""
        return list(self._numbers)


def _texts(spans: Sequence[Span], at: int) -> Sequence[str | None]:
    found = [span.attributes[at].value.stringValue for span in spans]
    return found if all(found) else [_text(span.attributes[at].value) for span in spans]


def _text(value: Value) -> str | None:
    if value.stringValue is not None:
        return value.stringValue or None
    return None if value.intValue is None else str(value.intValue)


def _wholes(spans: Sequence[Span], at: int) -> Sequence[int | None]:
    return [_whole(span.attributes[at].value) for span in spans]


def _whole(value: Value) -> int | None:
    if value.intValue is not None:
        return value.intValue if -(2**63) <= value.intValue < 2**63 else None
    text = value.stringValue
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None  # noqa: PLR2004 - digits of 64 bits


def _flags(spans: Sequence[Span], at: int) -> Sequence[bool | None]:
    return [_flag(span.attributes[at].value) for span in spans]


def _flag(value: Value) -> bool | None:
    if value.boolValue is not None:
        return value.boolValue
    return {"true": True, "false": False}.get(value.stringValue or "")


_READERS: Final[Mapping[str, Callable[[Sequence[Span], int], Sequence[Any]]]] = MappingProxyType(
    {
        **dict.fromkeys(_WANTED.values(), _texts),
        "redelivered": _flags,
        "delivery_count": _wholes,
        "batch": _wholes,
    }
)
"""What reads the values of the attributes at a place."""

_RARE: Final = ("redelivered", "delivery_count", "batch", "own", "parent", "links", "lost_links")
"""Columns that most spans have nothing in."""


class _Rows:
    """Gathers spans, and makes them columns.

    Those with the same plan are taken at once; all are brought back into order at the end.
    """

    def __init__(self, *, contexts: bool) -> None:
        self.sampled = ""
        self._contexts = contexts
        self._plans, self._kinds = _Plans(), _Kinds()
        self._lines: list[int] = []
        self._sizes: list[int] = []
        self._waiting: list[Span] = []
        self._makers: list[str] = []
        self._count = 0
        self._places: list[int] = []
        self._codes: list[int] = []
        self._columns: dict[str, list[Any]] = {"start": [], "end": [], "message": [], "alone": []}
        self._rare: dict[str, dict[int, Any]] = {name: {} for name in _RARE}
        self._states: set[str] = set()

    def add(self, line: int, groups: Iterable[tuple[Resource | None, Sequence[Span]]]) -> None:
        """Add the spans of the document at a line."""
        before = len(self._waiting)
        for resource, spans in groups:
            self._waiting += spans
            self._makers += itertools.repeat(_maker(resource), len(spans))
        self._lines.append(line)
        self._sizes.append(len(self._waiting) - before)
        if len(self._waiting) >= _TOGETHER:
            self._gather()

    def _gather(self) -> None:
        spans, makers = self._waiting, self._makers
        self._waiting, self._makers = [], []
        planned = defaultdict[int, list[int]](list)
        keys, plan = list[str](), self._plans[()]
        for place, span in enumerate(spans):
            its = [attribute.key for attribute in span.attributes]
            if its != keys:  # comparing is faster than hashing
                keys, plan = its, self._plans[tuple(its)]
            planned[plan].append(place)
        plans = self._plans.all
        for plan, places in planned.items():
            of = [spans[place] for place in places], [makers[place] for place in places]
            self._take(plans[plan], [self._count + place for place in places], *of)
        self._count += len(spans)

    def _take(self, plan: _Plan, places: list[int], spans: list[Span], makers: list[str]) -> None:
        """Take spans of one plan, whose places in the block are these."""
        said = {name: _READERS[name](spans, at) for name, at in plan}
        kinds = [span.kind for span in spans]
        failed = [span.status is not None and span.status.code == _ERROR for span in spans]
        repeating = [said.get(name, itertools.repeat(None)) for name in _REPEATING]
        codes = list(map(self._kinds.__getitem__, zip(kinds, failed, makers, *repeating)))  # noqa: B905 - endless
        messages = said.get("message") or [None] * len(spans)
        alone = _alone(messages, spans, said.get("batch"))
        self._places += places
        self._codes += codes
        self._columns["start"] += [span.startTimeUnixNano for span in spans]
        self._columns["end"] += [span.endTimeUnixNano for span in spans]
        self._columns["message"] += messages
        self._columns["alone"] += alone
        for name in said.keys() & self._rare.keys():
            self._rare[name].update(zip(places, said[name], strict=True))
        self._note_lost({span.traceState for span in spans}, [span.droppedLinksCount for span in spans], places)
        self._take_contexts(places, codes, alone, spans)

    def _note_lost(self, states: set[str], links: Sequence[int], places: Sequence[int]) -> None:
        """Note missing things: traces that were not kept, links that were dropped."""
        for state in states - self._states:
            self._states.add(state)
            if not self.sampled and _is_sampled(state):
                self.sampled = state
        if any(links):
            self._rare["lost_links"].update(zip(places, links, strict=True))

    def _take_contexts(self, places: list[int], codes: list[int], alone: Sequence[bool], spans: list[Span]) -> None:
        """Take the contexts that are needed: see :data:`SPANS`."""
        receiving, delivering = self._kinds.receiving, self._kinds.delivering
        if not any(span.parentSpanId for span in spans):
            delivering = set()
        if not self._contexts and all(alone) and receiving.isdisjoint(codes) and delivering.isdisjoint(codes):
            return
        own, parent, links = (self._rare[name] for name in ("own", "parent", "links"))
        for place, code, single, span in zip(places, codes, alone, spans, strict=True):
            wanted = self._contexts or not single
            if wanted or code in receiving:
                own[place] = _context(span.traceId, span.spanId)
            if (wanted or code in delivering) and span.parentSpanId:
                parent[place] = _context(span.traceId, span.parentSpanId)
            if wanted:
                links[place] = [_linked(link) for link in span.links]

    def all(self) -> pa.RecordBatch:
        """The spans that were added, as columns."""
        if self._waiting:
            self._gather()
        places = np.array(self._places, np.int64)
        columns: dict[str, Any] = {
            "line": np.repeat(np.array(self._lines, np.int64), self._sizes)[places],
            **self._columns,
            **{name: list(map(values.get, self._places)) for name, values in self._rare.items() if values},
        }
        codes = pa.array(np.array(self._codes, np.int32))
        for name, of_kinds in zip(_Kind._fields, zip(*self._kinds.all, strict=True), strict=False):
            if any(value is not None for value in of_kinds):
                columns[name] = pa.array(of_kinds, SPANS.field(name).type).take(codes)
        arrays = [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(places), field.type)
            for field in SPANS
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=SPANS)
        return rows if (places[1:] > places[:-1]).all() else rows.take(pa.array(np.argsort(places)))


def _maker(resource: Resource | None) -> str:
    attributes = resource.attributes if resource is not None else ()
    return value_of(attributes, "service.instance.id", "service.name") or "unknown_service"


def _alone(
    messages: Sequence[str | None], spans: Sequence[Span], batches: Sequence[int | None] | None
) -> Sequence[bool]:
    """Which spans name their message, and tell of no other."""
    links = [len(span.links) for span in spans]
    if batches is None and None not in messages and max(links) <= 1:  # as a rule
        return [True] * len(messages)
    return [
        message is not None and number <= 1 and batch in {None, 1}
        for message, number, batch in zip(messages, links, batches or itertools.repeat(None))  # noqa: B905 - endless
    ]


def _context(trace: str, span: str) -> str:
    return f"{trace}-{span}".lower()


def _linked(link: Link) -> dict[str, str | None]:
    """The context that a link names, and the message if it says which."""
    message = value_of(link.attributes, "messaging.message.id", "messaging.message_id") if link.attributes else None
    return {"context": _context(link.traceId, link.spanId), "message": message}


def _is_sampled(state: str) -> bool:
    """Whether a tracestate says that not every trace was kept: a threshold (th) above 0, or the older p above 0."""
    for member in state.split(","):
        name, _, value = member.strip().partition("=")
        if name == "ot":
            fields = dict(field.partition(":")[::2] for field in value.split(";"))
            return fields.get("th", "0").strip("0") != "" or fields.get("p", "0") != "0"
    return False
