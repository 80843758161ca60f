"""What is sent, and how it stands in the journal."""

from __future__ import annotations

import enum
import json
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from ackfsm.terms import DeliveryMode, InputError

if TYPE_CHECKING:
    from ackfsm.engine._parts import Copy
    from ackfsm.engine._queues import Queue

__all__ = ["LONGEST", "HeaderValue", "Outcome", "Sent", "pack", "unpack"]

HeaderValue: TypeAlias = str | int | float | bool | None
"""What a header may hold."""

_LENGTHS = struct.Struct("<BHHHI")
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


class Sent:
    """A message that was sent.

    Attributes:
        id: its own id, unique in the engine.
        body: the payload.
        headers: its headers.
        delivery_mode: how it was sent.
        queue: where to.
        duplicate_id: by which the broker knows it again, ``None`` if it has none.
        outcome: what the producer knows of it by now.
    """

    __slots__ = (
        "body",
        "copy",
        "delivery_mode",
        "duplicate_id",
        "headers",
        "id",
        "on_outcome",
        "outcome",
        "queue",
        "waited",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - made once for each message, by position
        self,
        id: str,  # noqa: A002 - the name of the header
        body: bytes,
        headers: Mapping[str, HeaderValue],
        delivery_mode: DeliveryMode,
        queue: Queue,
        duplicate_id: bytes | None,
        on_outcome: Callable[[Sent], None] | None = None,
    ) -> None:
        """A message on its way to ``queue``."""
        self.id = id
        self.body = body
        self.headers = headers
        self.delivery_mode = delivery_mode
        self.queue = queue
        self.duplicate_id = duplicate_id
        self.outcome = Outcome.OPEN
        self.waited = False
        self.copy: Copy | None = None
        self.on_outcome = on_outcome

    def __repr__(self) -> str:
        return f"<{self.id} to {self.queue.name}, {self.outcome}>"


def pack(message: Sent) -> bytes:
    """The message as the journal keeps it."""
    name, ident = message.queue.name.encode(), message.id.encode()
    duplicate = message.duplicate_id or b""
    headers = json.dumps(dict(message.headers)).encode() if message.headers else b""
    mode = _MODES.index(message.delivery_mode)
    lengths = _LENGTHS.pack(mode, len(name), len(ident), len(duplicate), len(headers))
    return b"".join((lengths, name, ident, duplicate, headers, message.body))


def unpack(data: bytes, queue: Callable[[str], Queue]) -> Sent:
    """The message that :func:`pack` wrote; ``queue`` finds its queue.

    Raises :class:`InputError` for bytes that are no message.
    """
    try:
        mode, *lengths = _LENGTHS.unpack_from(data)
        at, parts = _LENGTHS.size, []
        for length in lengths:
            parts.append(data[at : at + length])
            at += length
        name, ident, duplicate, headers = parts
        found = json.loads(headers) if headers else {}
        return Sent(ident.decode(), data[at:], found, _MODES[mode], queue(name.decode()), duplicate or None)
    except (struct.error, ValueError, IndexError) as error:
        sentence = f"the journal has an entry that is no message ({error}); it was written by something else"
        raise InputError(sentence) from None
