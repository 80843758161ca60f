"""Encode a message for the journal, and decode it.

A message in the journal has a form, the upper half of its first byte.  Form 0 has bytes alone as body, and neither a
time nor ``reply_to`` nor ``correlation_id``; it is read, and form 1 is written.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from types import MappingProxyType

from ackfsm.engine.core.instances import Body, HeaderValue, MapValue, Queue, Sent
from ackfsm.terms import DeliveryMode, InputError

_LENGTHS = struct.Struct("<BHHHI")
_MORE = struct.Struct("<qBHH")
_ALL = struct.Struct("<BHHHIqBHH")
_FORM = 1
_FORM_BITS = 4
_FORM_1 = _FORM << _FORM_BITS
_MODE_MASK = 2**_FORM_BITS - 1
_BYTES, _TEXT, _MAP = range(3)
"""What the body of a message of form 1 is."""
LONGEST = 0xFFFF
"""Bytes that a name or an id has at most."""

_MODES = tuple(DeliveryMode)


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
