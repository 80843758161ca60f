"""A message as its consumer receives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from ackfsm.engine.core.errors import MessageFormatException
from ackfsm.engine.core.instances import Body, HeaderValue, MapValue, Sent

_KINDS = {bytes: "bytes", str: "text", dict: "a mapping"}
"""The types of a body, and how an error calls them."""


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
