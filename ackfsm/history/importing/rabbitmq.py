"""What RabbitMQ tells of messages itself: the firehose, and the log of the plugin ``rabbitmq_tracing``.

Both are made of the messages that a broker with ``trace_on`` publishes to the exchange ``amq.rabbitmq.trace``: one when
a message is published, one whenever it is delivered.  Names and headers are those of RabbitMQ's page about the firehose
and of ``rabbit_trace.erl``; the log is written by ``rabbit_tracing_consumer.erl``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ackfsm.history.importing.interface import Importer, Options, PlainImporter, Problems, UnreadError
from ackfsm.history.importing.rows import Rows
from ackfsm.history.importing.streams import lines
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

_CLIENTS: Final = "the firehose has what the broker takes and sends, and nothing of what clients do with it"
_UNTRACED: Final = "the broker does not trace it"
_CANNOT_SHOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("confirmed", "rejected", "in_doubt"), "confirms are not traced"),
        **dict.fromkeys(("processed", "failed"), _CLIENTS),
        **dict.fromkeys(("acknowledge", "acknowledged", "ack_in_doubt", "recover", "close"), _UNTRACED),
        **dict.fromkeys(
            ("begin", "commit", "committed", "commit_in_doubt", "rollback", "rolled_back", "transaction"), _UNTRACED
        ),
        **dict.fromkeys(("expired", "dead_lettered", "journal_written", "journal_synced"), _UNTRACED),
        **dict.fromkeys(("drained", "depth", "waiting"), "the firehose does not tell what is in a queue"),
        **dict.fromkeys(("fault", "recovered"), "the firehose stops with the broker, and says nothing of connections"),
        "delivery_count": "it is no header of a traced message",
    }
)
_FLAG_NOT_LOGGED: Final = "it is not logged; each delivery of a message after the first is taken for flagged"


_Records: TypeAlias = "Iterator[tuple[int, Callable[[Any], _Traced | None], Any]]"
"""Records, each with its line and what reads it."""


def importer(_: Options) -> Importer:
    """What reads messages of the firehose, each written as an object of JSON a line.

    The object has ``t`` (nanoseconds since 1970) or ``timestamp`` (ISO 8601), ``routing_key`` (``publish.EXCHANGE`` or
    ``deliver.QUEUE``) and ``headers``, the table of headers as the broker sent it.  Others are not read.
    """
    return PlainImporter(_CANNOT_SHOW, functools.partial(_batches, _firehose_records, _ABOUT_FIREHOSE))


def tracing(_: Options) -> Importer:
    """What reads the log of ``rabbitmq_tracing``, in the format JSON or Text: the first line tells which."""
    cannot_show = MappingProxyType({**_CANNOT_SHOW, "redelivered": _FLAG_NOT_LOGGED})
    return PlainImporter(cannot_show, functools.partial(_batches, _records, _ABOUT_TRACING))


def _batches(
    records: Callable[[Path], _Records], about: str, paths: Sequence[Path], problems: Problems
) -> Iterator[pa.RecordBatch]:
    told = _Told(problems)
    for path in paths:
        yield from told.of(path, records(path), about)
    yield from told.rest()


@dataclasses.dataclass(frozen=True, slots=True)
class _Traced:
    """A message that was published, or delivered.

    Attributes:
        t: nanoseconds since 1970.
        queues: those to which it was routed; of a delivery, the one that it comes from.
    """

    t: int
    published: bool
    process: str
    exchange: str
    queues: Sequence[str]
    message: str
    persistent: bool | None
    redelivered: bool | None


_ABOUT_FIREHOSE: Final = "a line has an object of JSON with t, routing_key and headers"
_ABOUT_TRACING: Final = "it has to be the log of rabbitmq_tracing, in the format JSON or Text"


class _Told:
    """The events of the traced frames, as far as they were read."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.rows = Rows()
        self.sent: set[str] = set()
        self.delivered: set[str] = set()

    def of(self, path: Path, records: _Records, about: str) -> Iterator[pa.RecordBatch]:
        """The events of some records, as far as they fill batches."""
        found, why = False, "it is empty"
        for number, read, record in records:
            try:
                traced = read(record)
            except UnreadError as error:
                why = f"line {number:,}: {error}"
                self.problems.unread(str(error), path, line=number)
                continue
            found = True
            if traced is not None:
                self.add(traced)
                yield from self.rows.full()
        if not found:
            raise InputError(f"{shown(str(path))} has no record that can be read ({shown(why)}); {about}")

    def add(self, traced: _Traced) -> None:
        """Add the events of a message."""
        if traced.published and not traced.queues:
            self.problems.left_out("messages that were routed to no queue")
        for queue in traced.queues:
            message = traced.message if traced.exchange in _DEFAULT else f"{traced.message}@{queue}"
            event = {"t": traced.t, "process": traced.process, "message": message, "queue": queue}
            if traced.published:
                mode = {True: "PERSISTENT", False: "NON_PERSISTENT", None: None}[traced.persistent]
                self.rows.add(event="resend" if message in self.sent else "send", delivery_mode=mode, **event)
                self.sent.add(message)
                continue
            flagged = traced.redelivered if traced.redelivered is not None else message in self.delivered
            self.delivered.add(message)
            self.rows.add(event="delivered", redelivered=flagged, **event)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the last events, and note the events that the whole trace does not show."""
        strange = len(self.delivered - self.sent)
        if strange:
            self.problems.not_shown(
                "send", f"{strange:,} of the messages that were delivered were published before the trace begins"
            )
        yield from self.rows.rest()


_DEFAULT: Final = ("", "amq.default")
"""The default exchange, which routes a message to one queue; messages of others may be in several queues."""


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        raise UnreadError("a line that is not UTF-8") from None
    except (ValueError, RecursionError):
        raise UnreadError("a line that is not JSON") from None
    if not isinstance(found, dict):
        raise UnreadError("a line that is JSON but no object")
    return found


def _of_firehose(line: bytes) -> _Traced | None:
    found = _object(line)
    headers = found.get("headers")
    key = found.get("routing_key")
    if not isinstance(headers, dict) or not isinstance(key, str):
        raise UnreadError("an object without routing_key or headers")
    kind, _, name = key.partition(".")
    if kind not in {"publish", "deliver"}:
        raise UnreadError("a message of which the routing key begins neither with publish. nor with deliver.")
    published = kind == "publish"
    return _Traced(
        t=_time_of(found),
        published=published,
        process=_process(headers.get("connection"), headers.get("channel")),
        exchange=_named(headers.get("exchange_name"), "exchange_name"),
        queues=_queues(headers.get("routed_queues", ())) if published else [name],
        **_properties(headers.get("properties")),
        redelivered=None if published else bool(headers["redelivered"]) if "redelivered" in headers else None,
    )


def _firehose_records(path: Path) -> _Records:
    return ((number, _of_firehose, line) for number, line in lines(path))


def _of_json(line: bytes) -> _Traced | None:
    found = _object(line)
    kind = found.get("type")
    if kind not in {"published", "received"}:
        raise UnreadError("an object of which type is neither published nor received")
    published = kind == "published"
    queues = found.get("routed_queues", ()) if published else [found.get("queue")]
    return _Traced(
        t=_time(found.get("timestamp")),
        published=published,
        process=_process(found.get("connection"), found.get("channel")),
        exchange=_named(found.get("exchange"), "exchange"),
        queues=_queues(queues),
        **_properties(found.get("properties")),
        redelivered=None,
    )


def _time_of(found: Mapping[str, Any]) -> int:
    time = found.get("t")
    if time is None:
        return _time(found.get("timestamp"))
    if not isinstance(time, int) or isinstance(time, bool) or not 0 <= time < 2**63:
        raise UnreadError("an object of which t is no whole number of nanoseconds from 0")
    return time


_OLD_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d) (\d{1,2}):(\d\d):(\d\d)(?::(\d{1,3}))?")


def _time(text: Any) -> int:
    """The nanoseconds of a time as ISO 8601, or as RabbitMQ up to 3.6 wrote it (``2016-02-03 4:05:06:789``)."""
    if not isinstance(text, str):
        raise UnreadError("a record without timestamp")
    old = _OLD_TIME.fullmatch(text)
    if old is not None:
        day, hours, *rest, milliseconds = old.groups(default="0")
        text = f"{day}T{hours.zfill(2)}:{':'.join(rest)}.{milliseconds.zfill(3)}"
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UnreadError("a record with a timestamp that is no time") from None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1_000


def _process(connection: Any, channel: Any) -> str:
    """A channel, which is what one thread of a client uses: the client's side of its connection, and its number."""
    return f"{str(connection).partition(' -> ')[0]}/{channel}"


def _named(name: Any, what: str) -> str:
    if not isinstance(name, str):
        raise UnreadError(f"a message without {what}")
    return name


def _queues(names: Any) -> Sequence[str]:
    found = [names] if isinstance(names, str) else names
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        raise UnreadError("a message without the names of its queues")
    return found


def _properties(properties: Any) -> Mapping[str, Any]:
    table = properties if isinstance(properties, dict) else {}
    message = table.get("message_id")
    if not isinstance(message, str) or not message:
        raise UnreadError("a message without message_id: nothing tells it from others; have producers set it")
    mode = table.get("delivery_mode")
    return {"message": message, "persistent": None if mode is None else mode == 2}  # noqa: PLR2004 - of AMQP 0-9-1


_RULE: Final = b"=" * 80
_HEAD: Final = re.compile(rb"(?P<time>\d{4}-\d\d-\d\d[ T][0-9:.+\-Z]+): Message (?P<kind>published|received)")
_FIELD: Final = re.compile(rb"(?P<name>[A-Z][a-z]+(?: [a-z]+)?): *(?P<value>.*)")


def _records(path: Path) -> _Records:
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        return
    every = itertools.chain([first], numbered)
    if first[1].lstrip().startswith(b"{"):
        yield from ((number, _of_json, line) for number, line in every)
    else:
        yield from ((number, _of_text, block) for number, block in _blocks(every))


def _blocks(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """The records of a log in text, without their payloads; a record begins with a rule and the line below it."""
    block: list[bytes] = []
    begin, ruled, reading = 0, False, True
    for number, line in numbered:
        if ruled and _HEAD.fullmatch(line):
            if block:
                yield begin, block
            block, begin, reading = [line], number, True
        elif not block:
            if line != _RULE:
                yield number, [line]
        elif reading:
            block.append(line)
            reading = not line.startswith(b"Payload:")
        ruled = line == _RULE
    if block:
        yield begin, block


def _of_text(block: Sequence[bytes]) -> _Traced | None:
    head = _HEAD.fullmatch(block[0])
    if head is None:
        raise UnreadError("a line before the first record")
    fields: dict[str, str] = {}
    name = ""
    for line in block[1:]:
        found = _FIELD.fullmatch(line)
        text = line.decode(errors="replace")
        if found is not None and not line.startswith(b" "):
            name = found["name"].decode()
            fields[name] = found["value"].decode(errors="replace")
        else:
            fields[name] = f"{fields.get(name, '')}\n{text}"
    published = head["kind"] == b"published"
    if "Payload" not in fields:
        raise UnreadError("a record that ends before its payload")
    return _Traced(
        t=_time(head["time"].decode()),
        published=published,
        process=_process(fields.get("Connection"), fields.get("Channel")),
        exchange=fields.get("Exchange", ""),
        queues=_texts(fields.get("Routed queues", "")) if published else [fields.get("Queue", "")],
        **_properties(_table(fields.get("Properties", ""))),
        redelivered=None,
    )


_ERLANG: Final = re.compile(
    r'<<"(?P<text>(?:[^"\\]|\\.)*)"(?:/utf8)?>>|<<(?P<bytes>[\d,\s]*)>>|(?P<open>[\[{])|(?P<close>[\]}])|(?P<other>[^\s,\[\]{}<]+)',
    re.DOTALL,
)


def _binaries(term: str) -> Iterator[tuple[int, str]]:
    """What stands in a term of Erlang as it is printed, each with how deep it is in lists and tuples."""
    depth = 0
    for found in _ERLANG.finditer(term):
        if found["open"]:
            depth += 1
        elif found["close"]:
            depth -= 1
        elif found["text"] is not None:
            yield depth, re.sub(r"\\(.)", r"\1", found["text"])
        elif found["bytes"] is not None:
            yield (
                depth,
                bytes(int(each) % 256 for each in found["bytes"].split(",") if each.strip()).decode(errors="replace"),
            )
        else:
            yield depth, found["other"]


_TABLE: Final = 2
"""How deep the entries of a table are: in a tuple in a list."""


def _table(term: str) -> Mapping[str, Any]:
    """The entries of a table that are plain: ``[{<<"message_id">>,longstr,<<"m1">>}, ...]``."""
    entries = [text for depth, text in _binaries(term) if depth == _TABLE]
    found: dict[str, Any] = {}
    place = 0
    while place + 1 < len(entries):
        name, kind = entries[place], entries[place + 1]
        if kind in {"table", "array"} or place + 2 >= len(entries):
            place += 2
            continue
        value = entries[place + 2]
        found[name] = int(value) if value.lstrip("-").isdecimal() and kind != "longstr" else value
        place += 3
    return found


def _texts(term: str) -> Sequence[str]:
    return [text for depth, text in _binaries(term) if depth == 1]
