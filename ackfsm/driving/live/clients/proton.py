"""The client Qpid Proton: AMQP 1.0 by ``BlockingConnection``."""

from __future__ import annotations

from typing import Any, ClassVar

import proton
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import BlockingConnection, SendException

from ackfsm.driving.live.clients.library import Consumer, Kind, Outgoing, Received, Session
from ackfsm.history.format import Outcome
from ackfsm.recorder.proton import recorded

__all__ = ["ProtonSession"]

_STATES = {
    Outcome.RELEASED: proton.Delivery.RELEASED,
    Outcome.MODIFIED: proton.Delivery.MODIFIED,
    Outcome.UNDELIVERABLE: proton.Delivery.MODIFIED,
    Outcome.REJECTED: proton.Delivery.REJECTED,
}


class ProtonSession(Session):
    """The one session of a connection."""

    library = "python-qpid-proton"
    DEFAULTS: ClassVar = {
        "user": "guest",
        "password": "guest",
        "timeout": 60,  # of each call
        "heartbeat": None,
        "credit": None,  # one for each receive
        "presettled": False,  # of sends
        "queue": "{}",  # the address of one
        "to": None,  # the address to which is sent, unless it is the queue
        "capabilities": True,  # whether a node is asked for that is a queue
        "redelivered": "delivery_count",  # what flags a message, or "first_acquirer"
    }
    KINDS = (
        (proton.Timeout, Kind.TIMEOUT),
        (proton.LinkException, Kind.REFUSED),
        (proton.SessionException, Kind.REFUSED),
        (proton.ProtonException, Kind.CLOSED),
        (OSError, Kind.CLOSED),
    )

    def connect(self) -> None:
        """See :class:`Session`."""
        self._counts = self.settings["redelivered"] == "delivery_count"
        self._names: dict[str, str] = {}
        self._senders: dict[str, Any] = {}
        self._receivers: dict[str, Any] = {}
        named = {name: self.settings[name] for name in ("user", "password", "timeout", "heartbeat")}
        self._connection = recorded(
            BlockingConnection(f"amqp://{self.host}:{self.port}", allowed_mechs="PLAIN", **named),
            self.recorder,
            queue_of=lambda address: self._names.get(address, address),
            redelivered=None if self._counts else _acquired_before,
        )

    @property
    def usable(self) -> bool:
        """Whether no line says that the session broke."""
        return not self._connection.closed

    def _address(self, destination: str, setting: str = "queue") -> tuple[str, list[LinkOption]]:
        address = str(self.settings[setting] or self.settings["queue"]).format(destination)
        self._names[address] = destination
        return address, [_IsQueue()] if self.settings["capabilities"] else []

    def consume(self, consumer: Consumer) -> None:
        """Attach a receiver; where the mode asks for it, one that is handed settled deliveries."""
        if consumer.listener:
            raise self.lacks("listeners of a blocking connection")
        address, options = self._address(consumer.destination)
        if self.automatic:
            options.append(AtMostOnce())
        self._receivers[consumer.name] = self._connection.create_receiver(
            address, credit=self.settings["credit"], options=options
        )

    def send(self, outgoing: Outgoing) -> str | None:
        """Send; ``presettled`` without an outcome."""
        if outgoing.later is not None:
            raise self.lacks("asynchronous sends of a blocking connection")
        presettled, key = bool(self.settings["presettled"]), outgoing.destination
        if key not in self._senders:
            address, options = self._address(key, "to")
            options += [AtMostOnce()] if presettled else []
            self._senders[key] = self._connection.create_sender(address, options=options)
        message = proton.Message(id=outgoing.message, body=outgoing.body, durable=outgoing.persistent)
        try:
            delivery = self._senders[key].send(message)
        except SendException:
            return "rejected"
        if presettled:
            return "sent"
        return "confirmed" if delivery.remote_state == proton.Delivery.ACCEPTED else "rejected"

    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """See :class:`Session`."""
        try:
            message = self._receivers[consumer.name].receive(timeout)
        except proton.Timeout:
            return Received(None)
        flagged = message.delivery_count > 0 if self._counts else _acquired_before(message)
        received = Received(str(message.id), flagged, message.delivery_count + 1 if self._counts else None)
        return self.hold(received, self._receivers[consumer.name])

    def acknowledge(self, message: str) -> str:
        """Accept; the broker does not answer."""
        receiver = self.held(message)
        receiver.next_is(message)
        receiver.accept()
        self.settled(message)
        return "sent"

    def settle(self, message: str, outcome: str) -> None:
        """State another outcome."""
        receiver = self.held(message)
        if outcome not in _STATES:
            raise self.lacks(f"the outcome {outcome}")
        local = receiver.next_is(message).local
        local.failed = outcome in {Outcome.MODIFIED, Outcome.UNDELIVERABLE}
        local.undeliverable = outcome == Outcome.UNDELIVERABLE
        receiver.settle(_STATES[Outcome(outcome)])
        self.settled(message)

    def close(self) -> None:
        """See :class:`Session`."""
        self._connection.close()


class _IsQueue(LinkOption):
    """Asks for a node that is a queue."""

    def apply(self, link: Any) -> None:
        end = link.target if link.is_sender else link.source
        end.capabilities.put_object(proton.symbol("queue"))


def _acquired_before(message: proton.Message) -> bool:
    return not message.first_acquirer
