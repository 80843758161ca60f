"""OpenTelemetry messaging spans, as OTLP JSON: one document, or one a line as the collector's file exporter writes.

What is read follows the semantic conventions for messaging spans, the present names and the older ones:

* a *send* (publish) span gives ``send`` at its start and ``confirmed`` at its end, with an error ``in_doubt``, and
  ``rejected`` if the error says that the broker refused the message;
* a *receive* span gives ``delivered`` at its end, a *process* (deliver) span ``delivered`` at its start unless a
  receive span has shown it, and ``processed`` at its end, with an error ``failed``;
* a *settle* span gives ``acknowledge`` at its start, with an error ``ack_in_doubt`` too; one that gives the message
  back gives ``failed``, one that dead-letters it ``dead_lettered``;
* a *create* span gives nothing but the context of its message.

A message is called by ``messaging.message.id``.  A span without it tells of the message whose context it is, has as
parent, or links to: such spans are held to the end, and then named by what other spans say of that context.  Spans that
have the id and tell of one message are the usual ones; they are handled a column at a time.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ackfsm.importing.interface import Options, Problems
from ackfsm.importing.otlp_json import Attribute, Link, NotOtlpError, Resource, Span, spans_of, value_of
from ackfsm.importing.rows import batch_of
from ackfsm.importing.streams import lines
from ackfsm.terms import InputError
from ackfsm.text import quoted, shown

__all__ = ["Otlp", "importer"]

_CHUNK: Final = 1 << 14
"""Spans of which the events are made at a time."""

_DECODED: Final = 1 << 8
"""Spans that are decoded at a time; more do not fit into the caches of a processor, and take twice as long."""

_WHOLE: Final = 256 << 20
"""Bytes that a document on several lines may have."""

_SEND, _CREATE, _RECEIVE, _PROCESS, _SETTLE = range(5)
_OPERATIONS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "send": _SEND,
        "publish": _SEND,
        "create": _CREATE,
        "receive": _RECEIVE,
        "process": _PROCESS,
        "deliver": _PROCESS,
        "settle": _SETTLE,
    }
)
_UNKNOWN, _UNSAID = -1, -2

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
        "messaging.message.delivery_count": "count",
        "messaging.servicebus.message.delivery_count": "count",
        "messaging.gcp_pubsub.message.delivery_attempt": "count",
    }
)
"""The attributes that are read, by what they are called here."""

_COLUMNS: Final = tuple(dict.fromkeys(_WANTED.values()))
_CODES: Final[Mapping[str, int]] = MappingProxyType({key: _COLUMNS.index(name) for key, name in _WANTED.items()})
_TEXTS: Final = tuple(name for name in _COLUMNS if name not in {"redelivered", "count", "batch"})

_FROM_THE_BROKER: Final = "a trace holds what clients do; the broker has no span"
_NO_TRANSACTIONS: Final = "the conventions for messaging spans have no transactions"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("drained", "depth", "expired", "journal_written", "journal_synced"), _FROM_THE_BROKER),
        **dict.fromkeys(("fault", "recovered"), "no span tells that a process was killed or a connection broke"),
        **dict.fromkeys(
            ("begin", "commit", "committed", "commit_in_doubt", "rollback", "rolled_back", "transaction"),
            _NO_TRANSACTIONS,
        ),
        "waiting": "a span is exported when its call has ended",
        "acknowledged": "a span that settles ends when the call returns, whether the broker has answered or not",
        "recover": "the conventions have no span for it",
        "close": "the conventions have no span for it",
        "delivery_mode": "no attribute says whether a message is persistent",
    }
)


def importer(options: Options) -> Otlp:
    """What reads OTLP JSON."""
    del options
    return Otlp()


@dataclasses.dataclass(frozen=True, slots=True)
class Otlp:
    """Reads messaging spans."""

    @property
    def cannot_show(self) -> Mapping[str, str]:
        """What no trace shows."""
        return _CANNOT_SHOW

    def batches(self, paths: Sequence[Path], problems: Problems) -> Iterator[pa.RecordBatch]:
        """The events of the spans in these files.

        Spans without ``messaging.message.id`` are held to the end, and the files are then read once more for the names
        of their messages.  Raises :class:`InputError` where a file is no OTLP JSON.
        """
        trace = _Trace(problems)
        for path in paths:
            for chunk in _chunks(path, problems):
                yield from trace.told_by(chunk)
        yield from trace.flushed()
        if trace.held:
            again = (chunk for path in paths for chunk in _chunks(_readable_again(path), Problems()))
            yield from trace.rest(again)
        trace.finish()


def _readable_again(path: Path) -> Path:
    if not path.is_file():
        raise InputError(
            f"{shown(str(path))} has spans without messaging.message.id and cannot be read twice, as finding the names"
            " of their messages needs; write it to a file, and name that"
        )
    return path


@dataclasses.dataclass(slots=True)
class _Chunk:
    """Some spans, with what each is called: the process that made it; places are those of the lines."""

    file: Path
    spans: list[Span] = dataclasses.field(default_factory=list)
    makers: list[str] = dataclasses.field(default_factory=list)
    starts: list[int] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)

    def line_of(self, span: int) -> int:
        """The number of the line that has the span of this number."""
        return self.lines[int(np.searchsorted(self.starts, span, side="right")) - 1]


def _chunks(path: Path, problems: Problems) -> Iterator[_Chunk]:
    chunk, found, why = _Chunk(path), False, ""
    for number, text in _documents(path):
        chunk.starts.append(len(chunk.spans))
        chunk.lines.append(number)
        try:
            groups = spans_of(text, functools.partial(problems.unread, file=path, line=number))
        except NotOtlpError as error:
            why = why or f"line {number:,}: {error}"
            problems.unread(f"a line of which {error}", path, line=number)
            continue
        found = True
        if groups is None:
            problems.left_out("documents of logs or metrics")
            continue
        for resource, spans in groups:
            chunk.spans.extend(spans)
            chunk.makers.extend(itertools.repeat(_maker(resource), len(spans)))
        if len(chunk.spans) >= _DECODED:
            yield chunk
            chunk = _Chunk(path)
    if not found:
        raise InputError(
            f"{shown(str(path))} is no OTLP JSON ({why}); it has resourceSpans, in one document or one a line"
        )
    yield chunk


def _documents(path: Path) -> Iterator[tuple[int, bytes]]:
    """The documents at ``path``, each with the number of its first line."""
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        raise InputError(f"{shown(str(path))} is empty; export the trace again")
    if first[1].rstrip().endswith((b"{", b"[", b",")):  # not a whole document
        yield first[0], _joined(path, itertools.chain([first], numbered))
    else:
        yield first
        yield from numbered


def _joined(path: Path, numbered: Iterator[tuple[int, bytes]]) -> bytes:
    whole, size = [], 0
    for _, line in numbered:
        whole.append(line)
        size += len(line)
        if size > _WHOLE:
            raise InputError(
                f"{shown(str(path))} is one document of more than {_WHOLE >> 20} MiB; write one document a line, as the"
                " collector's file exporter does"
            )
    return b"\n".join(whole)


def _maker(resource: Resource | None) -> str:
    attributes = resource.attributes if resource is not None else []
    return value_of(attributes, "service.instance.id", "service.name") or "unknown_service"


@dataclasses.dataclass(frozen=True, slots=True)
class _Held:
    """A span that does not name its message, or tells of several.

    Attributes:
        batch: how many messages it says that it tells of.
        own: its context; ``parent`` is that of its parent.
        links: the contexts that it links to, each with the message if the link says which.
        row: its own row of columns.
    """

    operation: int
    batch: int | None
    own: str
    parent: str
    links: tuple[tuple[str, str | None], ...]
    message: str | None
    row: _Columns
    place: tuple[Path, int]

    @property
    def is_batch(self) -> bool:
        """Whether it says that it tells of several messages, or of none."""
        return self.batch is not None and self.batch != 1

    @property
    def nothing(self) -> bool:
        """Whether it says that there was no message: a receive() that came back with none."""
        return self.batch is None and not self.links and self.message is None


class _Trace:
    """What was seen of a trace, and what has to be remembered of it."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.held: list[_Held] = []
        self.waiting: list[_Columns] = []
        self.rows = 0
        self.received: set[str] = set()
        self.sent: set[str] = set()
        self.delivered: set[str] = set()
        self.unflagged = False

    def told_by(self, chunk: _Chunk) -> Iterator[pa.RecordBatch]:
        """The events of the spans that name their messages; the others are held."""
        columns = _columns(chunk)
        usable = self._usable(chunk, columns)
        alone = usable & columns.alone
        for row in np.flatnonzero(usable & ~columns.alone).tolist():
            self.held.append(_held(chunk, columns, row))
        if alone.any():
            self.waiting.append(columns.take(alone))
            self.rows += int(alone.sum())
        if self.rows >= _CHUNK:
            yield from self.flushed()

    def flushed(self) -> Iterator[pa.RecordBatch]:
        """The events of what waits to be told together."""
        if self.waiting:
            columns = _joined_columns(self.waiting)
            self.waiting, self.rows = [], 0
            yield from self._events(columns)

    def _usable(self, chunk: _Chunk, columns: _Columns) -> Any:
        """Which spans tell of messages and can be understood; the others are counted."""
        others = ~columns.messaging
        if others.any():
            self.problems.left_out("spans that are not of messaging", int(others.sum()))
        for row in np.flatnonzero(columns.messaging & (columns.operation < 0)).tolist():
            name = columns.texts["operation"][row]
            why = (
                f"a span with the operation {quoted(str(name))}"
                if columns.operation[row] == _UNKNOWN
                else "a span of messaging without messaging.operation.type"
            )
            self.problems.unread(why, chunk.file, line=chunk.line_of(row))
        usable = columns.messaging & (columns.operation >= 0)
        self._note_what_is_missing(chunk, usable)
        received = usable & (columns.operation == _RECEIVE)
        self.received.update(_own(chunk.spans[row]) for row in np.flatnonzero(received).tolist())
        if self.received:
            for row in np.flatnonzero(usable & (columns.operation == _PROCESS)).tolist():
                columns.first_sight[row] &= _parent(chunk.spans[row]) not in self.received
        return usable

    def _note_what_is_missing(self, chunk: _Chunk, usable: Any) -> None:
        for state in set(map(attrgetter("traceState"), chunk.spans)):
            if _is_sampled(state):
                self._sampled(f"traces were sampled (tracestate {quoted(state)})")
        dropped = np.fromiter(map(attrgetter("droppedLinksCount"), chunk.spans), np.int64, len(chunk.spans))
        for row in np.flatnonzero(usable & (dropped > 0)).tolist():
            why = "links to messages that the SDK has dropped (droppedLinksCount)"
            self.problems.unread(why, chunk.file, line=chunk.line_of(row), count=int(dropped[row]))

    def _sampled(self, why: str) -> None:
        for name in ("send", "confirmed", "delivered", "processed", "acknowledge"):
            self.problems.not_shown(name, why)

    def _events(self, columns: _Columns) -> Iterator[pa.RecordBatch]:
        """The events of spans that name their message, a column at a time."""
        operation, start, end = columns.operation, columns.start, columns.end
        failed = columns.failed
        sends, receives, processes = operation == _SEND, operation == _RECEIVE, operation == _PROCESS
        settles = operation == _SETTLE
        delivers = receives | (processes & columns.first_sight)
        back, dead = columns.gives_back & settles, columns.dead_letters & settles
        told: list[tuple[Any, Any, str]] = [
            (sends, start, "send"),
            (sends & ~failed, end, "confirmed"),
            (sends & failed & columns.refused, end, "rejected"),
            (sends & failed & ~columns.refused, end, "in_doubt"),
            (delivers, np.where(receives, end, start), "delivered"),
            (processes & ~failed, end, "processed"),
            (processes & failed, end, "failed"),
            (settles & ~back & ~dead, start, "acknowledge"),
            (settles & ~back & ~dead & failed, end, "ack_in_doubt"),
            (back, start, "failed"),
            (dead, start, "dead_lettered"),
        ]
        message = columns.texts["message"]
        self.sent.update(message[sends].tolist())
        flags = self._flags(columns, delivers)
        named = (*_who(columns.texts), _queues(columns.texts, operation), message)
        texts = [pa.array(column, pa.string()) for column in named]
        for rows, times, event in told:
            chosen = np.flatnonzero(rows)
            if len(chosen):
                yield _batch(columns, texts, chosen, times[chosen], event, flags)

    def _flags(self, columns: _Columns, delivers: Any) -> tuple[Any, Any]:
        """For each span whether its message was delivered before, and how often, as far as attributes tell it."""
        count = columns.texts["count"]
        flagged = columns.texts["redelivered"].copy()
        seen = self.delivered
        message = columns.texts["message"]
        rows = np.flatnonzero(delivers)
        for row, name in zip(rows.tolist(), message[rows].tolist(), strict=True):
            if flagged[row] is None:
                if count[row] is not None:
                    flagged[row] = count[row] > 1
                else:
                    flagged[row] = name in seen
                    self.unflagged = True
            seen.add(name)
        return flagged, count

    def rest(self, again: Iterator[_Chunk]) -> Iterator[pa.RecordBatch]:
        """The events of the spans that were held, with the names that the spans of ``again`` give to contexts."""
        names = _Names({context for held in self.held for context in _contexts_of(held)})
        for chunk in again:
            names.learn(chunk, _columns(chunk))
        names.learn_held(self.held)
        for begin in range(0, len(self.held), _CHUNK):
            told = []
            for held in self.held[begin : begin + _CHUNK]:
                messages = names.messages_of(held)
                self._note_unnamed(held, len(messages))
                told += [(held, message) for message in messages]
            if told:
                yield from self._events(_of_held(told))

    def _note_unnamed(self, held: _Held, found: int) -> None:
        """Count the messages of a span that nothing names."""
        expected = held.batch if held.batch is not None else max(1, len(held.links))
        if held.operation != _CREATE and found < expected and not (held.operation == _RECEIVE and held.nothing):
            why = "a message without a name: neither its span nor anything that it links to has a messaging.message.id"
            file, line = held.place
            self.problems.unread(why, file, line=line, count=expected - found)

    def finish(self) -> None:
        """Note what the whole of the trace turned out not to show."""
        if self.unflagged:
            self.problems.not_shown(
                "redelivered",
                "the spans have no attribute for it; each delivery of a message after the first is taken for flagged",
            )
            self.problems.not_shown("delivery_count", "the spans have no attribute for it")
        strange = len(self.delivered - self.sent)
        if strange:
            self.problems.not_shown(
                "send",
                f"{strange:,} of the messages that were received have no span of their send: it was sampled away, or"
                " their producer is not instrumented",
            )


def _is_sampled(state: str) -> bool:
    """Whether a tracestate says that not every trace was kept: a threshold (th) above 0, or the older p above 0."""
    for member in state.split(","):
        name, _, value = member.strip().partition("=")
        if name == "ot":
            fields = dict(field.partition(":")[::2] for field in value.split(";"))
            return fields.get("th", "0").strip("0") != "" or fields.get("p", "0") != "0"
    return False


@dataclasses.dataclass(slots=True)
class _Columns:
    """Spans as columns.

    Attributes:
        texts: of each span the values of the attributes, arrays of objects; ``None`` where there is none.
        alone: whether it names its message, and tells of no other.
        first_sight: whether a process span shows a delivery that no receive span has shown.
    """

    operation: Any
    messaging: Any
    start: Any
    end: Any
    failed: Any
    texts: dict[str, Any]
    alone: Any
    first_sight: Any
    refused: Any
    gives_back: Any
    dead_letters: Any

    def take(self, chosen: Any) -> _Columns:
        """Some of the spans."""
        texts = {name: column[chosen] for name, column in self.texts.items()}
        others = {
            field.name: getattr(self, field.name)[chosen] for field in dataclasses.fields(self) if field.name != "texts"
        }
        return _Columns(texts=texts, **others)


def _columns(chunk: _Chunk) -> _Columns:
    """The spans as columns; what is done for each of them here is done by C code, as far as it can be."""
    spans = chunk.spans
    count = len(spans)
    texts = _attributes(spans, count)
    kind = np.fromiter(map(attrgetter("kind"), spans), np.int8, count)
    links = np.fromiter(map(len, map(attrgetter("links"), spans)), np.int32, count)
    operation = np.fromiter(
        map(_OPERATIONS.get, texts["operation"].tolist(), itertools.repeat(_UNKNOWN)), np.int8, count
    )
    unsaid = _absent(texts["operation"])
    operation[unsaid] = np.where(kind[unsaid] == _PRODUCER, _SEND, _UNSAID)
    error = texts["error"]
    failed = np.array(
        [status is not None and status.code == _ERROR for status in map(attrgetter("status"), spans)], bool
    )
    texts["maker"] = np.fromiter(chunk.makers, object, count)
    return _Columns(
        operation=operation,
        messaging=~(_absent(texts["system"]) & _absent(texts["destination"]) & unsaid),
        start=np.fromiter(map(attrgetter("startTimeUnixNano"), spans), np.int64, count),
        end=np.fromiter(map(attrgetter("endTimeUnixNano"), spans), np.int64, count),
        failed=failed | ~_absent(error),
        texts=texts,
        alone=~_absent(texts["message"]) & (links <= 1) & (_absent(texts["batch"]) | (texts["batch"] == 1)),
        first_sight=kind == _CONSUMER,
        refused=_is_one_of(error, _REFUSALS),
        gives_back=_is_one_of(texts["name"], _GIVES_BACK),
        dead_letters=_is_one_of(texts["name"], _DEAD_LETTERS),
    )


def _absent(column: Any) -> Any:
    """Which values are ``None``."""
    return (column == None).astype(bool)  # noqa: E711 - of each element


def _is_one_of(column: Any, words: frozenset[str]) -> Any:
    """Which values are one of these words, in whatever case."""
    few = {word for word in set(column.tolist()) if word is not None and word.lower() in words}
    found = np.zeros(len(column), bool)
    for word in few:
        found |= (column == word).astype(bool)
    return found


def _attributes(spans: Sequence[Span], count: int) -> dict[str, Any]:
    """The values of the attributes that are read, each as an array of objects; of one that is there twice, the last."""
    each = list(map(attrgetter("attributes"), spans))
    flat: list[Attribute] = list(itertools.chain.from_iterable(each))
    owner = np.repeat(np.arange(count), np.fromiter(map(len, each), np.int64, count))
    codes = np.fromiter(map(_CODES.get, map(attrgetter("key"), flat), itertools.repeat(-1)), np.int8, len(flat))
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(_COLUMNS)), side="right").tolist()
    begins = [int(np.count_nonzero(codes < 0)), *ends]
    found = {}
    for name, begin, end in zip(_COLUMNS, begins, ends, strict=False):
        column = np.full(count, None, object)
        if begin < end:
            places = order[begin:end]
            values = _values_of(name, list(map(flat.__getitem__, places.tolist())))
            column[owner[places]] = np.fromiter(values, object, len(values))
        found[name] = column
    return found


def _texts_of(attributes: Sequence[Attribute]) -> Sequence[str | None]:
    found = list(map(attrgetter("value.stringValue"), attributes))
    return found if all(found) else [_text(each.value) for each in attributes]


def _text(value: Any) -> str | None:
    if value.stringValue is not None:
        return value.stringValue or None
    return None if value.intValue is None else str(value.intValue)


def _whole(value: Any) -> int | None:
    if value.intValue is not None:
        return int(value.intValue)
    text = value.stringValue
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None  # noqa: PLR2004 - digits of 64 bits


def _flag(value: Any) -> bool | None:
    if value.boolValue is not None:
        return bool(value.boolValue)
    return {"true": True, "false": False}.get(value.stringValue or "")


def _values_of(name: str, attributes: Sequence[Attribute]) -> Sequence[Any]:
    """The values of attributes of which the column has this name."""
    if name in _TEXTS:
        texts = _texts_of(attributes)
        if name == "message":
            return texts
        same: dict[str | None, str | None] = {}
        return list(map(same.setdefault, texts, texts))  # what is equal is one object: later steps go faster
    read = _flag if name == "redelivered" else _whole
    return [read(each.value) for each in attributes]


def _who(texts: Mapping[str, Any]) -> tuple[Any, Any]:
    """The processes, and their sessions where they are called otherwise.

    A session is the instance of the service with its client; the process is that with the thread, if it is known.
    """
    called = []
    kinds, which = _kinds_of(texts["maker"], texts["client"], texts["thread"])
    for maker, client, thread in kinds:
        session = maker if client is None else f"{maker}/{client}"
        called.append((session, None) if thread is None else (f"{session}#{thread}", session))
    both = np.array(called, object).reshape(-1, 2)[which]
    return both[:, 0], both[:, 1]


def _kinds_of(*columns: Any) -> tuple[Sequence[tuple[Any, ...]], Any]:
    """The distinct rows of some columns of text, and for each row which of them it is."""
    rows = len(columns[0])
    places, values = np.zeros(rows, np.int64), []
    for column in columns:
        coded = pa.array(column, pa.string()).dictionary_encode()
        found = [*coded.dictionary.to_pylist(), None]
        places = places * len(found) + np.asarray(coded.indices.fill_null(len(found) - 1))
        values.append(found)
    most = math.prod(map(len, values))
    if most <= max(rows, 1 << 10):  # few combinations: counting is faster than sorting
        distinct = np.flatnonzero(np.bincount(places, minlength=most))
        numbers = np.zeros(most, np.int64)
        numbers[distinct] = np.arange(len(distinct))
        which = numbers[places]
    else:
        distinct, which = np.unique(places, return_inverse=True)
    kinds = []
    for place in distinct.tolist():
        kind: list[Any] = []
        for found in reversed(values):
            kind.append(found[place % len(found)])
            place //= len(found)  # noqa: PLW2901 - what is left of it
        kinds.append(tuple(reversed(kind)))
    return kinds, which


_DEFAULT_EXCHANGES: Final = ("", "amq.default")


def _queues(texts: Mapping[str, Any], operation: Any) -> Any:
    """The queue of each span; for RabbitMQ, whose destination is an exchange, where the queue can be told from it."""
    queue = texts["destination"].copy()
    sends = np.isin(operation, (_SEND, _CREATE))
    rabbit = (texts["system"] == "rabbitmq").astype(bool)
    for producing in (False, True):
        rows = np.flatnonzero(rabbit & (sends == producing))
        if len(rows):
            kinds, which = _kinds_of(queue[rows], texts["routing_key"][rows])
            queue[rows] = np.array([_rabbitmq_queue(*kind, sends=producing) for kind in kinds], object)[which]
    return queue


def _rabbitmq_queue(destination: str | None, key: str | None, *, sends: bool) -> str | None:
    parts = (destination or "").split(":")
    if sends:
        if parts[0] in _DEFAULT_EXCHANGES or (len(parts) == 1 and parts[0] == key):
            return key or parts[-1] or None
        return None
    return parts[-1] or key


_BY_EVENT: Final = MappingProxyType(
    {
        "delivered": ("redelivered", "delivery_count"),
        "acknowledge": ("scope",),
        "ack_in_doubt": ("scope", "error"),
        "in_doubt": ("error",),
        "rejected": ("error",),
        "failed": ("error",),
    }
)
"""The fields that some events have beside those that all have."""


def _batch(  # noqa: PLR0913, PLR0917 - the spans, and what becomes of them
    columns: _Columns, texts: Sequence[pa.Array], rows: Any, times: Any, event: str, flags: tuple[Any, Any]
) -> pa.RecordBatch:
    """One event of each of these rows; ``texts`` are process, session, queue and message of all."""
    count = len(rows)
    having = _BY_EVENT.get(event, ())
    places = pa.array(rows)
    process, session, queue, message = (column.take(places) for column in texts)
    arrays = {
        "t": pa.array(times, pa.int64()),
        "process": process,
        "event": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [event]).cast(pa.string()),
        "queue": queue,
        "message": message,
        "session": session,
    }
    if "redelivered" in having:
        flagged, counted = flags
        arrays["redelivered"] = pa.array(flagged[rows], pa.bool_())
        arrays["delivery_count"] = pa.array(counted[rows], pa.int64())
    if "scope" in having:
        arrays["scope"] = pa.array(["message"] * count, pa.string())
    if "error" in having:
        arrays["error"] = pa.array(columns.texts["error"][rows], pa.string())
    return batch_of(arrays, count)


def _own(span: Span) -> str:
    """The context of a span, as text."""
    return f"{span.traceId}-{span.spanId}".lower()


def _parent(span: Span) -> str:
    return f"{span.traceId}-{span.parentSpanId}".lower()


def _linked(link: Link) -> tuple[str, str | None]:
    """The context that a link names, and the message if it says which."""
    message = value_of(link.attributes, "messaging.message.id", "messaging.message_id") if link.attributes else None
    return f"{link.traceId}-{link.spanId}".lower(), message


def _held(chunk: _Chunk, columns: _Columns, row: int) -> _Held:
    span = chunk.spans[row]
    batch = columns.texts["batch"][row]
    alone = batch is None or batch <= 1
    return _Held(
        operation=int(columns.operation[row]),
        batch=batch,
        own=_own(span),
        parent=_parent(span) if span.parentSpanId else "",
        links=tuple(map(_linked, span.links)),
        message=columns.texts["message"][row] if alone and len(span.links) <= 1 else None,
        row=columns.take(slice(row, row + 1)),
        place=(chunk.file, chunk.line_of(row)),
    )


def _contexts_of(held: _Held) -> Iterator[str]:
    """All contexts by which the message of a span may be found."""
    yield held.own
    yield held.parent
    for context, _ in held.links:
        yield context


class _Names:
    """What the messages of contexts are called."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.messages: dict[str, str] = {}

    def learn(self, chunk: _Chunk, columns: _Columns) -> None:
        """Learn from the spans that name their message, of themselves and of what they link to."""
        message = columns.texts["message"]
        for row in np.flatnonzero(columns.alone & columns.messaging).tolist():
            span = chunk.spans[row]
            own = _own(span)
            if own in self.wanted:
                self.messages[own] = message[row]
            for link in span.links:
                context, _ = _linked(link)
                if context in self.wanted:
                    self.messages.setdefault(context, message[row])

    def learn_held(self, held: Sequence[_Held]) -> None:
        """Learn from the spans that were held: links that name messages, contexts of sends, and what follows."""
        for each in held:
            for context, message in each.links:
                if message is not None:
                    self.messages.setdefault(context, message)
        for each in held:
            if each.operation in {_CREATE, _SEND} and not each.links and not each.is_batch:
                self.messages.setdefault(each.own, each.message or self.messages.get(each.own) or each.own)
        for each in sorted(held, key=lambda each: each.operation):
            known = self.messages_of(each)
            if len(known) == 1:
                self.messages.setdefault(each.own, known[0])

    def messages_of(self, held: _Held) -> Sequence[str]:
        """The messages that a span tells of, as far as their names are known."""
        if held.links:
            named = (message or self.messages.get(context) for context, message in held.links)
            found = list(dict.fromkeys(message for message in named if message is not None))
            if len(held.links) == 1 and held.message is not None:
                return [held.message]
            return found
        if held.message is not None:
            return [held.message]
        if held.is_batch:
            return []
        message = self.messages.get(held.own) or self.messages.get(held.parent)
        return [] if message is None else [message]


def _of_held(told: Sequence[tuple[_Held, str]]) -> _Columns:
    """The spans that were held as columns, one row for each message of each."""
    columns = _joined_columns([held.row for held, _ in told])
    columns.texts["message"] = np.array([message for _, message in told], object)
    return columns


def _joined_columns(parts: Sequence[_Columns]) -> _Columns:
    """The spans of several columns, one after the other."""
    texts = {name: np.concatenate([part.texts[name] for part in parts]) for name in parts[0].texts}
    others = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in dataclasses.fields(_Columns)
        if field.name != "texts"
    }
    return _Columns(texts=texts, **others)
