"""What is sent, and how it stands in the journal.

A message in the journal has a form, the upper half of its first byte.  Form 0 has bytes alone as body, and neither a
time nor ``reply_to`` nor ``correlation_id``; it is read, and form 1 is written.
"""

from __future__ import annotations

import base64
import enum
import json
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, overload

from ackfsm.engine.core.errors import MessageFormatException
from ackfsm.terms import DeliveryMode, InputError

if TYPE_CHECKING:
    from ackfsm.engine.core.instances import Copy
    from ackfsm.engine.core.links import Queue

__all__ = ["LONGEST", "Body", "HeaderValue", "MapValue", "Outcome", "Received", "Sent", "pack", "unpack"]

HeaderValue: TypeAlias = str | int | float | bool | None
"""What a header may hold."""

MapValue: TypeAlias = HeaderValue | bytes
"""What a name in a body that is a mapping may stand for."""

Body: TypeAlias = bytes | str | Mapping[str, MapValue]
"""A payload: that of a ``BytesMessage``, a ``TextMessage`` or a ``MapMessage`` (JMS 3.1, 3.11)."""

_LENGTHS = struct.Struct("<BHHHI")
_MORE = struct.Struct("<qBHH")
_ALL = struct.Struct("<BHHHIqBHH")
_FORM = 1
_FORM_BITS = 4
_FORM_1 = _FORM << _FORM_BITS
_MODE_MASK = 2**_FORM_BITS - 1
_BYTES, _TEXT, _MAP = range(3)
"""What the body of a message of form 1 is."""
_KINDS = {bytes: "bytes", str: "text", dict: "a mapping"}
"""The types of a body, and how an error calls them."""
LONGEST = 0xFFFF
"""Bytes that a name or an id has at most."""

_MODES = tuple(DeliveryMode)


class Outcome(enum.StrEnum):
    """What the producer knows of a send."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    UNCONFIRMED = "unconfirmed"
    IN_TRANSACTION = "in_transaction"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"


_OPEN = Outcome.OPEN


class Sent:
    """A message that was sent.

    Attributes:
        id: its own id, unique in the engine.
        body: the payload: bytes, text, or a mapping that cannot be changed.
        headers: its headers.
        delivery_mode: how it was sent.
        queue: where to.
        duplicate_id: by which the broker knows it again, ``None`` if it has none.
        timestamp: when it was sent (``JMSTimestamp``; JMS 3.1, 3.4.4), in nanoseconds of the broker's clock; ``None``
            if an earlier version of the engine has stored it, which did not keep that.
        reply_to: the name of the queue where an answer is wanted (``JMSReplyTo``; JMS 3.1, 3.4.6), ``None`` if none is.
        correlation_id: what links it to another message (``JMSCorrelationID``; JMS 3.1, 3.4.5), ``None`` if nothing
            does.
        outcome: what the producer knows of it by now.
    """

    __slots__ = (
        "body",
        "copy",
        "correlation_id",
        "delivery_mode",
        "duplicate_id",
        "headers",
        "id",
        "on_outcome",
        "outcome",
        "queue",
        "reply_to",
        "timestamp",
        "waited",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - made once for each message, by position
        self,
        id: str,  # noqa: A002 - the name of the header
        body: Body,
        headers: Mapping[str, HeaderValue],
        delivery_mode: DeliveryMode,
        queue: Queue,
        duplicate_id: bytes | None,
        timestamp: int | None,
        reply_to: str | None = None,
        correlation_id: str | None = None,
        on_outcome: Callable[[Sent], None] | None = None,
    ) -> None:
        """A message on its way to ``queue``."""
        self.id = id
        self.body = body
        self.headers = headers
        self.delivery_mode = delivery_mode
        self.queue = queue
        self.duplicate_id = duplicate_id
        self.timestamp = timestamp
        self.reply_to = reply_to
        self.correlation_id = correlation_id
        self.outcome = _OPEN
        self.waited = False
        self.copy: Copy | None = None
        self.on_outcome = on_outcome

    def moved(self, queue: Queue, headers: Mapping[str, HeaderValue]) -> Sent:
        """The same message in another queue, with other headers and without the id by which the first one knew it."""
        about = self.timestamp, self.reply_to, self.correlation_id
        return Sent(self.id, self.body, headers, self.delivery_mode, queue, None, *about)

    def __repr__(self) -> str:
        return f"<{self.id} to {self.queue.name}, {self.outcome}>"


class Received:
    """A message as its consumer has it.

    Attributes:
        sent: what was sent.
        redelivered: whether it may have been delivered before (``JMSRedelivered``).
        delivery_count: how often it has been sent to a consumer, from 1, and from 2 if ``redelivered``
            (``JMSXDeliveryCount``); what was given back unseen may not count.
    """

    __slots__ = ("delivery_count", "redelivered", "sent")

    def __init__(self, sent: Sent, *, redelivered: bool, delivery_count: int) -> None:
        """One delivery of ``sent``."""
        self.sent = sent
        self.redelivered = redelivered
        self.delivery_count = delivery_count

    def __repr__(self) -> str:
        return f"<{self.id}{', redelivered' if self.redelivered else ''}>"

    @property
    def id(self) -> str:
        """The message's own id."""
        return self.sent.id

    @property
    def body(self) -> Body:
        """The payload, as it was sent: bytes, text or a mapping."""
        return self.sent.body

    @property
    def headers(self) -> Mapping[str, HeaderValue]:
        """Its headers."""
        return self.sent.headers

    @overload
    def body_as(self, kind: type[bytes]) -> bytes: ...

    @overload
    def body_as(self, kind: type[str]) -> str: ...

    @overload
    def body_as(self, kind: type[dict[str, MapValue]]) -> dict[str, MapValue]: ...

    def body_as(self, kind: type[bytes | str | dict[str, MapValue]]) -> bytes | str | dict[str, MapValue]:
        """The body if it is ``bytes``, ``str`` or a mapping (``dict``, a copy), as the consumer expects it.

        Raises :class:`MessageFormatException` if it is something else (JMS 3.1, ``Message.getBody``).
        """
        body = self.body if isinstance(self.body, bytes | str) else dict(self.body)
        if not isinstance(body, kind):
            raise MessageFormatException(
                f"the body of {self.id} is {_KINDS[type(body)]}, and {_KINDS.get(kind, 'what none is')} was asked for"
            )
        return body

    @property
    def timestamp(self) -> int | None:
        """When it was sent (``JMSTimestamp``), in nanoseconds of the broker's clock; see :class:`Sent`."""
        return self.sent.timestamp

    @property
    def reply_to(self) -> str | None:
        """The name of the queue where an answer is wanted (``JMSReplyTo``), ``None`` if none is."""
        return self.sent.reply_to

    @property
    def correlation_id(self) -> str | None:
        """What links it to another message (``JMSCorrelationID``), ``None`` if nothing does."""
        return self.sent.correlation_id


def pack(message: Sent) -> bytes:
    """The message as the journal keeps it."""
    name, ident = message.queue.encoded, message.id.encode()
    mode, body, timestamp = _MODES.index(message.delivery_mode), message.body, message.timestamp
    kind, data = (_BYTES, body) if type(body) is bytes else _packed(body)
    if not (message.headers or message.duplicate_id or message.reply_to or message.correlation_id or timestamp is None):
        return _ALL.pack(mode | _FORM_1, len(name), len(ident), 0, 0, timestamp, kind, 0, 0) + name + ident + data
    duplicate = message.duplicate_id or b""
    headers = json.dumps(dict(message.headers)).encode() if message.headers else b""
    if timestamp is None:
        lengths = _LENGTHS.pack(mode, len(name), len(ident), len(duplicate), len(headers))
        return b"".join((lengths, name, ident, duplicate, headers, _bytes_of(body)))
    to, link = (message.reply_to or "").encode(), (message.correlation_id or "").encode()
    lengths = _ALL.pack(
        *(mode | _FORM_1, len(name), len(ident), len(duplicate), len(headers), timestamp, kind, len(to), len(link))
    )
    return b"".join((lengths, name, ident, duplicate, headers, to, link, data))


def _bytes_of(body: Body) -> bytes:
    if not isinstance(body, bytes):
        raise AssertionError("form 0 of a message has bytes alone")  # noqa: TRY004 - not the caller's doing
    return body


def _packed(body: Body) -> tuple[int, bytes]:
    if isinstance(body, bytes):
        return _BYTES, body
    if isinstance(body, str):
        return _TEXT, body.encode()
    return _MAP, json.dumps({name: _written(value) for name, value in body.items()}).encode()


def _written(value: MapValue) -> HeaderValue | list[str]:
    """A value in JSON, which has no bytes: they are a list of their base 64."""
    return [base64.b64encode(value).decode()] if isinstance(value, bytes) else value


def unpack(data: bytes, queue: Callable[[str], Queue]) -> Sent:
    """The message that :func:`pack` wrote; ``queue`` finds its queue.

    Raises :class:`InputError` for bytes that are no message, or one of a form that this version does not know.
    """
    try:
        return _unpack(data, queue)
    except (struct.error, ValueError, IndexError, TypeError) as error:
        sentence = f"the journal has an entry that is no message ({error}); it was written by something else"
        raise InputError(sentence) from None


def _unpack(data: bytes, queue: Callable[[str], Queue]) -> Sent:
    first, *lengths = _LENGTHS.unpack_from(data)
    form, mode = first >> _FORM_BITS, first & _MODE_MASK
    timestamp, kind, at = None, _BYTES, _LENGTHS.size
    if form == _FORM:
        timestamp, kind, *more = _MORE.unpack_from(data, at)
        lengths, at = [*lengths, *more], at + _MORE.size
    elif form:
        raise InputError(
            f"the journal has a message of form {form}, and this version of ackfsm knows the forms 0 to {_FORM}; open "
            "the journal with the version that has written it"
        )
    parts = []
    for length in lengths:
        parts.append(data[at : at + length])
        at += length
    if at > len(data):
        raise ValueError(f"{at - len(data)} bytes are missing")
    name, ident, duplicate, headers, *about = parts
    found = MappingProxyType(json.loads(headers) if headers else {})
    reply, correlation = (part.decode() or None for part in about or (b"", b""))
    body = _unpacked(kind, data[at:])
    where = queue(name.decode())
    return Sent(ident.decode(), body, found, _MODES[mode], where, duplicate or None, timestamp, reply, correlation)


def _unpacked(kind: int, data: bytes) -> Body:
    if kind == _BYTES:
        return data
    if kind == _TEXT:
        return data.decode()
    if kind == _MAP:
        return MappingProxyType({name: _read(value) for name, value in dict(json.loads(data)).items()})
    raise ValueError(f"there is no body of kind {kind}")


def _read(value: HeaderValue | list[str] | dict[str, object]) -> MapValue:
    if isinstance(value, dict):
        raise ValueError("a value in its body is a mapping")  # noqa: TRY004 - what is wrong is what was written
    return base64.b64decode(value[0], validate=True) if isinstance(value, list) else value
