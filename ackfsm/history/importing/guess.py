"""Propose a mapping for an unknown file, from its first rows."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from ackfsm.history.format import EVENTS, Event
from ackfsm.history.importing.convert import text_of
from ackfsm.history.importing.mapping import FALSE, TRUE, When
from ackfsm.history.importing.recognise import recognised
from ackfsm.history.importing.streams import STANDARD_INPUT, lines, opened, suffix_of
from ackfsm.history.importing.times import nanoseconds
from ackfsm.history.open import input_errors
from ackfsm.terms import AckScope, InputError
from ackfsm.text import shown

_ROWS: Final = 1_000
_PEEKED: Final = 1 << 20
_MOST_WORDS: Final = 40
"""A column with more different values does not say what happened."""

_LEAST_TIMES: Final = 0.9
"""What part of the values have to be times."""

_MOST_KNOWN: Final = 0.5
"""More than this part of the values of a column of events are words that are known."""

_LEVELS: Final = frozenset(
    {
        *("trace", "debug", "info", "information", "notice", "warn", "warning"),
        *("error", "fatal", "critical", "severe", "fine"),
    }
)
"""How grave a line of a log is."""

_YEAR_2000, _YEAR_2100 = 946_684_800, 4_102_444_800

_EVENT_WORDS: Mapping[Event | str, tuple[str, ...]] = MappingProxyType(
    {
        Event.SEND: ("send", "sent", "publish", "published", "produce", "produced", "enqueue", "enqueued", "put"),
        Event.RESEND: ("resend", "resent", "retransmit", "republish"),
        Event.CONFIRMED: (
            *("confirm", "confirmed", "persisted", "stored", "publishconfirm", "brokerack", "pubconfirmed"),
            *("publishok", "publishack", "publishacked", "puback", "sendok", "sendack", "sendconfirmed", "producerack"),
        ),
        Event.REJECTED: ("reject", "rejected", "nack", "nacked", "refused", "publishrejected"),
        Event.IN_DOUBT: ("indoubt", "sendtimeout", "sendfailed", "publishfailed"),
        Event.DELIVERED: (
            *("deliver", "delivered", "receive", "received", "recv", "consume", "consumed"),
            *("dequeue", "dequeued", "get", "got"),
        ),
        Event.PROCESSED: ("process", "processed", "handled", "done", "completed", "finished", "success", "succeeded"),
        Event.FAILED: ("fail", "failed", "error", "exception", "processingfailed"),
        Event.ACKNOWLEDGE: ("ack", "acked", "acknowledge", "acknowledged", "settled", "accepted"),
        Event.COMMITTED: ("commit", "committed"),
        Event.ROLLED_BACK: ("rollback", "rolledback"),
        Event.RECOVER: ("recover", "recovered"),
        Event.EXPIRED: ("expire", "expired"),
        Event.DEAD_LETTERED: ("deadletter", "deadlettered", "dlq", "dmq", "discarded"),
        Event.DRAINED: ("drained", "empty", "queueempty"),
        "ignore": ("heartbeat", "ping", "debug", "info"),
    }
)
"""What logs call the events, without anything but letters."""

_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SAYS_NOTHING: Final = frozenset({"message", "msg", "event", "jms", "amqp", "mqtt", "basic", "client", "on"})
"""Parts of a word that logs put beside the name of an event: ``MessageReceived``, ``basic.publish``."""

_COLUMN_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "message": (
            *("message_id", "messageid", "msg_id", "msgid", "jmsmessageid", "correlation_id", "correlationid"),
            *("message", "order_id", "orderid", "event_id", "eventid", "uuid", "id", "key"),
        ),
        "process": (
            *("process", "client_id", "clientid", "client", "application", "app", "service", "service_name", "svc"),
            *("host", "hostname", "instance", "pod", "node", "thread", "connection", "worker"),
        ),
        "session": (
            *("session", "session_id", "sessionid", "channel", "channel_id", "consumer_tag", "connection"),
            *("connection_id", "conn", "conn_id"),
        ),
        "queue": (
            *("queue", "queue_name", "destination", "dest", "topic", "address", "endpoint"),
            *("routing_key", "routingkey", "rk"),
        ),
        "redelivered": (
            *("redelivered", "jmsredelivered", "redelivery", "is_redelivered", "redeliver", "redeliv", "redel"),
            *("redelivered_flag", "redelivery_flag", "is_redelivery", "duplicate", "retried", "is_retry"),
        ),
        "delivery_count": ("delivery_count", "deliverycount", "jmsxdeliverycount", "attempt", "attempts", "tries"),
        "transaction": ("transaction", "transaction_id", "tx", "txid", "xid"),
        "error": ("error", "exception", "error_message", "reason"),
    }
)
"""What columns are called; earlier words are better."""

_TIME_NAMES: Final = (
    *("timestamp", "time", "ts", "t", "date", "datetime", "created", "created_at", "at", "when", "logged_at"),
)
_TIME_OF: Mapping[Event, tuple[str, ...]] = MappingProxyType(
    {event: _EVENT_WORDS[event] for event in (Event.SEND, Event.DELIVERED, Event.PROCESSED, Event.ACKNOWLEDGE)}
)
_TIME_ENDING: Final = re.compile(r"(_?(at|time|ts|timestamp|date|on))$")
_FORMATS: Final = (
    "%d/%m/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%d/%b/%Y:%H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S,%f",
    "%d.%m.%Y %H:%M:%S.%f",
    "%d/%m/%Y %H:%M:%S.%f",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Guessed:
    """A proposal.

    Attributes:
        text: the mapping as commented YAML.
        not_found: what it lacks or had to make up, each as a clause; none if nothing does.
    """

    text: str
    not_found: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Sample:
    """The first rows of a file.

    Attributes:
        kind: how it is written: ``csv``, ``jsonl`` or ``parquet``.
        columns: its columns; of text, but those of Parquet.
        how: what the mapping has to say of that.
    """

    kind: str
    columns: Mapping[str, pa.Array]
    how: Mapping[str, Any]

    def texts(self, name: str) -> list[str]:
        """Return the texts of a column, without empty ones."""
        return [str(value) for value in text_of(self.columns[name]).drop_null().to_pylist()]


def guess(path: Path) -> Guessed:
    """Propose a mapping for the file at ``path``.

    Raises :class:`InputError` if it cannot be read, has no rows, or is of a format that needs no mapping.
    """
    sample = _sample(path)
    if not sample.columns or not len(next(iter(sample.columns.values()))):
        raise InputError(f"{shown(str(path))} has no row from which a mapping could be guessed; name another file")
    return _Guess(path, sample).guessed()


def _sample(path: Path) -> _Sample:
    with opened(path) as stream:
        head = stream.peek(4)[:4]
    if head == b"PAR1" and path != STANDARD_INPUT:
        with input_errors(shown(str(path))), pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(batch_size=_ROWS), None)
        columns = {} if batch is None else dict(_flat(batch))
        return _Sample("parquet", columns, {})
    if path != STANDARD_INPUT:
        _refuse_known(path)
    if head[:1] in {b"{", b"["} or suffix_of(path) in {".jsonl", ".ndjson"}:
        return _Sample("jsonl", _of_json(path), {})
    return _of_csv(path)


def _refuse_known(path: Path) -> None:
    """Raise :class:`InputError` for a file that can be read without a mapping."""
    name, first = shown(str(path)), next((line for _, line in lines(path)), b"")
    if b'"ackfsm_history"' in first:
        raise InputError(f"{name} is a history as it is; ackfsm verify FILE")
    if (known := recognised(path)) is not None:
        raise InputError(f"{name} is {known} and needs no mapping; ackfsm import {known} FILE -o HISTORY")


def _flat(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    for name in batch.schema.names:
        column = batch[name]
        if not pa.types.is_nested(column.type) and not pa.types.is_binary(column.type):
            yield name, column


def _of_json(path: Path) -> Mapping[str, pa.Array]:
    rows: list[dict[str, str]] = []
    read = [line for _, line in itertools.islice(lines(path), _ROWS)]
    if _begins_array(b"\n".join(read)):
        raise InputError(f"{shown(str(path))} is one JSON array; write one object a line: jq -c '.[]' FILE")
    for line in read:
        try:
            value = json.loads(line, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            rows.append(dict(_leaves(value, "")))
    if read and not rows:
        raise InputError(
            f"{shown(str(path))} is text and no table; write a mapping with `input: lines`, whose patterns say what "
            "its lines are (docs/importing.md)"
        )
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}


def _begins_array(text: bytes) -> bool:
    """Whether ``text`` is a JSON array, or the beginning of one: its first value can be read."""
    inside = text.decode("utf-8", "replace").lstrip()
    if not inside.startswith("["):
        return False
    inside = inside[1:].lstrip()
    if inside.startswith("]"):
        return not inside[1:].strip()
    try:
        _, end = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return False
    return inside[end:].lstrip()[:1] in {",", "]", ""} and inside[:1] in {"{", "["}


def _leaves(value: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, each in value.items():
        if isinstance(each, dict):
            yield from _leaves(each, f"{before}{name}.")
        elif each is not None and not isinstance(each, list):
            yield f"{before}{name}", str(each).lower() if isinstance(each, bool) else str(each)


def _of_csv(path: Path) -> _Sample:
    with opened(path) as stream:
        raw = stream.peek(_PEEKED)
        raw = raw if raw.count(b"\n") > _ROWS else stream.read(_PEEKED)
    try:
        text = raw.decode("utf-8-sig")
        encoding: dict[str, Any] = {}
    except UnicodeDecodeError as error:
        if error.start > len(raw) - 4:  # the end of what was read is in the middle of a character
            text, encoding = raw[: error.start].decode("utf-8-sig"), {}
        else:
            text, encoding = raw.decode("latin-1"), {"encoding": "latin1"}
    try:
        delimiter = csv.Sniffer().sniff(text[: 1 << 14], ",;\t|").delimiter
    except csv.Error:
        delimiter = ","
    whole = text if len(raw) < _PEEKED else text[: text.rfind("\n") + 1]
    found = _csv_rows(path, whole, delimiter)
    if not found:
        return _Sample("csv", {}, {})
    names, rows = found[0], [row for row in found[1:] if len(row) == len(found[0])]
    how = encoding | ({"delimiter": delimiter} if delimiter != "," else {})
    columns = {
        name: pa.array([row[place] or None for row in rows], pa.string()) for place, name in enumerate(names) if name
    }
    return _Sample("csv", columns, {"csv": how} if how else {})


def _csv_rows(path: Path, text: str, delimiter: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return list(itertools.islice(reader, _ROWS + 1))
    except csv.Error as error:
        raise InputError(
            f"{shown(str(path))}:{reader.line_num}: it cannot be read as CSV ({error}); correct the line, or name a"
            " file of CSV, JSON lines or Parquet"
        ) from None


class _Guess:
    """Guesses the meanings of the columns of a sample."""

    def __init__(self, path: Path, sample: _Sample) -> None:
        self._path, self._sample = path, sample
        self._left = list(sample.columns)
        self._not_found: list[str] = []
        self._comments: dict[str, str] = {}
        self._mapping: dict[str, Any] = {}

    def guessed(self) -> Guessed:
        times = {name: when for name in self._left if (when := self._time(name)) is not None}
        event = self._event_column(times)
        by_time = {} if event is not None else self._events_by_time(times)
        if by_time:
            self._rows(by_time)
        else:
            self._one_time(times)
            self._events(event)
        self._named()
        return Guessed(self._text(), tuple(self._not_found))

    def _time(self, name: str) -> dict[str, str] | None:
        column = self._sample.columns[name]
        if pa.types.is_timestamp(column.type):
            return {"column": name}
        if column.null_count == len(column) or pa.types.is_boolean(column.type):
            return None
        texts = text_of(column)
        units = self._unit(texts.drop_null().to_pylist()) if self._may_be_time(name) else None
        if units is not None:
            return {"column": name, "unit": units}
        some = texts.drop_null()
        if not any(re.search(r"\d\D\d", text) for text in some[:1].to_pylist()):
            return None
        for form in ("iso", *_FORMATS):
            found = nanoseconds(some, When(name, None, form, "UTC"))
            if len(found) - found.null_count >= _LEAST_TIMES * len(found):
                return {"column": name, "format": form}
        return None

    def _may_be_time(self, name: str) -> bool:
        plain = _plain(name)
        return plain in map(_plain, _TIME_NAMES) or bool(_TIME_ENDING.search(name.lower())) or "time" in plain

    @staticmethod
    def _unit(texts: Sequence[str]) -> str | None:
        """The unit in which all of ``texts`` are numbers of this century."""
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            return None
        for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
            if numbers and all(_YEAR_2000 * factor <= number < _YEAR_2100 * factor for number in numbers):
                return unit
        return None

    def _event_column(self, times: Mapping[str, Any]) -> str | None:
        """The column most of whose values are words that are known, and of those the one that tells most events.

        How grave a line is (``INFO``, ``ERROR``) is no event.
        """
        best, most = None, 0.0
        for name in self._left:
            if name in times:
                continue
            texts = self._sample.texts(name)
            words = Counter(texts)
            if not texts or len(words) > _MOST_WORDS or _LEVELS.issuperset(map(_letters, words)):
                continue
            known = {word: count for word, count in words.items() if _event_of(word)}
            events = sum(count for word, count in known.items() if _event_of(word) != "ignore") / len(texts)
            if events > most and sum(known.values()) > _MOST_KNOWN * len(texts):
                best, most = name, events
        return best

    def _events_by_time(self, times: Mapping[str, Any]) -> dict[Event, dict[str, str]]:
        """Columns of times that are called after events: ``sent_at``, ``received_at``, ``acked_at``."""
        found: dict[Event, dict[str, str]] = {}
        for name, when in times.items():
            word = _letters(_TIME_ENDING.sub("", name.lower()))
            event = next((event for event, words in _TIME_OF.items() if word in words), None)
            if event is not None:
                found.setdefault(event, when)
        return found if len(found) > 1 else {}

    def _rows(self, by_time: Mapping[Event, dict[str, str]]) -> None:
        rows = []
        for event in _TIME_OF:
            if event in by_time:
                rows.append({"time": by_time[event], "event": {"constant": event}})
                self._take(by_time[event]["column"])
        self._mapping["rows"] = rows
        self._comments["rows"] = "one row of the table tells several events; where a time is empty there was none"
        self._scope(Event.ACKNOWLEDGE in by_time)

    def _one_time(self, times: Mapping[str, dict[str, str]]) -> None:
        ranked = sorted(times, key=lambda name: _rank(name, _TIME_NAMES))
        if not ranked:
            self._missing(
                "time", "no column of times: say which one, with its unit or format", {"column": "COLUMN", "unit": "ms"}
            )
            return
        self._mapping["time"] = times[ranked[0]]
        if "format" in times[ranked[0]] and not self._zoned(ranked[0]):
            self._comments["time"] = "these times have no zone; add one if they are not in UTC: zone: Europe/Berlin"
        self._take(ranked[0])

    def _zoned(self, name: str) -> bool:
        return any(re.search(r"([Zz]|[+-]\d\d:?\d\d)$", text) for text in self._sample.texts(name)[:1])

    def _events(self, column: str | None) -> None:
        if column is None:
            proposal = {"column": "COLUMN", "values": {"SENT": "send", "RECEIVED": "delivered"}}
            self._missing("event", "no column of events: say which one, and what its words mean", proposal)
            return
        words = sorted(set(self._sample.texts(column)))
        values = {word: event for word in words if (event := _event_of(word)) is not None}
        for word in words:
            if word not in values:
                what = f"what {json.dumps(word)} in the column {json.dumps(column)} means"
                self._not_found.append(f"{what}: such rows are unread")
        if Event.ACKNOWLEDGE not in values.values():  # without a word for the call no word is its answer
            values = {word: Event.ACKNOWLEDGE if each == Event.ACKNOWLEDGED else each for word, each in values.items()}
        self._mapping["event"] = {"column": column, "values": values}
        self._take(column)
        self._scope(Event.ACKNOWLEDGE in values.values())

    def _scope(self, acknowledges: bool) -> None:  # noqa: FBT001 - whether the file tells of acknowledgements
        if acknowledges:
            self._mapping["scope"] = {"constant": AckScope.MESSAGE.value}
            self._comments["scope"] = (
                "taken to acknowledge its own message alone; else up_to or session. An acknowledgement is taken for the"
                " call; where the call waits for the broker, write [acknowledge, acknowledged]"
            )

    def _named(self) -> None:
        for field, names in _COLUMN_WORDS.items():
            ranks = {name: rank for name in self._left if (rank := _rank(name, names)) < len(names)}
            ranked = sorted(ranks, key=lambda name: ranks[name])
            fitting = next((name for name in ranked if self._fits(field, name)), None)
            if fitting is not None:
                self._mapping[field] = fitting
                self._take(fitting)
        if "message" not in self._mapping:
            unique = next((name for name in self._left if self._may_be_ids(name)), None)
            if unique is None:
                self._missing("message", "no column of message ids: say which one, or make one of several", "COLUMN")
            else:
                self._mapping["message"] = unique
                self._comments["message"] = "the only column whose values look like ids"
                self._take(unique)
        if "process" not in self._mapping:
            self._missing("process", "no column says which client it was: all is taken as one", {"constant": "client"})
        if "redelivered" not in self._mapping:
            if "delivery_count" in self._mapping:
                self._mapping["redelivered"] = {"column": self._mapping["delivery_count"], "above": 1}
                self._comments["redelivered"] = "the count says so, if the first delivery counts as 1"
            else:
                self._not_found.append("whether a delivery was flagged as redelivered")

    def _fits(self, field: str, name: str) -> bool:
        texts = self._sample.texts(name)
        if not texts:
            return False
        if field == "redelivered":
            return {text.lower() for text in texts} <= {*TRUE, *FALSE}
        if field == "delivery_count":
            return all(text.isdecimal() for text in texts)
        return True

    def _may_be_ids(self, name: str) -> bool:
        texts = self._sample.texts(name)
        return len(texts) > 1 and len(set(texts)) * 8 >= len(texts) and not any(" " in text for text in texts)

    def _take(self, name: str) -> None:
        if name in self._left:
            self._left.remove(name)

    def _missing(self, key: str, why: str, proposal: Any) -> None:
        self._not_found.append(why)
        self._mapping[key] = proposal
        self._comments[key] = f"NOT FOUND: {why}"

    def _text(self) -> str:
        kind = self._sample.kind
        parts = [
            f"# A mapping to history format 1, proposed for {shown(self._path.name)} from its first {_ROWS:,} rows.",
            "# Read it, correct it, then: ackfsm import table --mapping THIS_FILE INPUT -o history.parquet",
            *(f"# Not found: {_comment(each)}" for each in self._not_found),
            *(["# Columns that are not used: " + _comment(", ".join(self._left))] if self._left else []),
            "ackfsm_mapping: 1",
            f"input: {kind}",
        ]
        for key, value in {**self._sample.how, **self._mapping}.items():
            if key in self._comments:
                parts.append(f"# {_comment(self._comments[key])}")
            parts.append(
                yaml.safe_dump({key: _plain_data(value)}, sort_keys=False, allow_unicode=True, width=110).rstrip()
            )
        parts.append(
            "# what it was recorded under, if it is known: config: {profile: artemis, ack_mode: CLIENT_ACKNOWLEDGE}"
        )
        return "\n".join(parts) + "\n"


def _comment(text: str) -> str:
    return shown(text, 500)


def _plain_data(value: Any) -> Any:
    """Names of events as text, which YAML can write."""
    if isinstance(value, dict):
        return {str(key): _plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_data(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _event_of(word: str) -> Event | str | None:
    if word in set(EVENTS):
        return Event(word)
    parts = [part.lower() for part in _PARTS.findall(word)]
    plainly = "".join(part for part in parts if part not in _SAYS_NOTHING)
    found = (
        event for letters in (_letters(word), plainly) for event, words in _EVENT_WORDS.items() if letters in words
    )
    return next(found, None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _plain(name: str) -> str:
    """Return a name of a column without its path: ``payload.orderId`` is ``orderid``."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())


def _rank(name: str, names: Sequence[str]) -> int:
    plain = _plain(name)
    return next((place for place, each in enumerate(names) if _plain(each) == plain), len(names))
