"""The client Qpid Proton: AMQP 1.0 by ``BlockingConnection``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proton
from proton.reactor import AtMostOnce, LinkOption
from proton.utils import BlockingConnection, SendException

from ackfsm.driving.live.clients.library import SENT, Consumer, Failed, Kind, Outgoing, Place, Received, Session
from ackfsm.history.format import Outcome
from ackfsm.recorder import Recorder
from ackfsm.recorder.proton import recorded
from ackfsm.terms import AckMode

__all__ = ["ProtonSession"]

_STATES = {
    Outcome.RELEASED: proton.Delivery.RELEASED,
    Outcome.MODIFIED: proton.Delivery.MODIFIED,
    Outcome.UNDELIVERABLE: proton.Delivery.MODIFIED,
    Outcome.REJECTED: proton.Delivery.REJECTED,
}


class ProtonSession(Session):
    """The one session of a connection.

    Settings: ``user``, ``password``, ``timeout`` of a call (60), ``heartbeat`` (none), ``credit`` (none: one for each
    receive), ``presettled`` sends (false), the address of a queue and of a topic (``queue``: ``{}``, ``topic``: ``{}``) and
    their ``capabilities`` (``queue``, ``topic``; empty: none are asked for), and the field that flags a message
    (``redelivered``: ``delivery_count``, or ``first_acquirer``).
    """

    library = "python-qpid-proton"

    def __init__(self, place: Place, recorder: Recorder, ack_mode: AckMode) -> None:
        super().__init__(place, recorder, ack_mode)
        self._counts = place.setting("redelivered", "delivery_count") == "delivery_count"
        self._names: dict[str, str] = {}
        self._senders: dict[tuple[str, bool], Any] = {}
        self._receivers: dict[str, Any] = {}
        self._connection = recorded(
            _connected(place),
            recorder,
            queue_of=self._called_here,
            redelivered=None if self._counts else _acquired_before,
        )

    def kind_of(self, error: Exception) -> Kind | None:
        """See :class:`Session`; an error of one link or session refuses what was asked."""
        if isinstance(error, proton.Timeout):
            return Kind.TIMEOUT
        if isinstance(error, proton.LinkException | proton.SessionException):
            return Kind.REFUSED
        return Kind.CLOSED if isinstance(error, proton.ProtonException | OSError) else None

    @property
    def usable(self) -> bool:
        """Whether no line says that the session broke."""
        return not self._connection.closed

    def _called_here(self, address: str) -> str:
        return self._names.get(address, address)

    def _address(self, destination: str, *, topic: bool) -> tuple[str, list[LinkOption]]:
        kind = "topic" if topic else "queue"
        address = str(self.place.setting(kind, "{}")).format(destination)
        self._names[address] = destination
        return address, [_Capability(kind)] if self.place.setting("capabilities", True) else []

    def consume(self, consumer: Consumer) -> None:
        """Attach a receiver; where the mode asks for it, one that is handed settled deliveries."""
        if consumer.listener:
            raise self.lacks("listeners of a blocking connection")
        address, options = self._address(consumer.destination, topic=consumer.topic)
        if self.automatic:
            options.append(AtMostOnce())
        self._receivers[consumer.name] = self._connection.create_receiver(
            address, credit=self.place.setting("credit", None), options=options
        )
        self.consumers[consumer.name] = consumer

    def send(self, outgoing: Outgoing, later: Callable[[str], None] | None) -> str | None:
        """Send; ``presettled`` without an outcome."""
        if later is not None:
            raise self.lacks("asynchronous sends of a blocking connection")
        presettled = bool(self.place.setting("presettled", False))
        key = (outgoing.destination, outgoing.topic)
        if key not in self._senders:
            address, options = self._address(outgoing.destination, topic=outgoing.topic)
            self._senders[key] = self._connection.create_sender(
                address, options=[*options, AtMostOnce()] if presettled else options
            )
        message = proton.Message(id=outgoing.message, body=outgoing.body, durable=outgoing.persistent)
        if outgoing.priority is not None:
            message.priority = outgoing.priority
        try:
            delivery = self._senders[key].send(message)
        except SendException:
            return "rejected"
        if presettled:
            return SENT
        return "confirmed" if delivery.remote_state == proton.Delivery.ACCEPTED else "rejected"

    def receive(self, consumer: Consumer, timeout: float) -> Received | None:
        """See :class:`Session`."""
        try:
            message = self._receivers[consumer.name].receive(timeout)
        except proton.Timeout:
            return None
        flagged = message.delivery_count > 0 if self._counts else _acquired_before(message)
        received = Received(str(message.id), flagged, message.delivery_count + 1 if self._counts else None)
        return self.hold(received, self._receivers[consumer.name])

    def acknowledge(self, message: str) -> str:
        """Accept; the broker does not answer."""
        receiver = self.held(message)
        receiver.next_is(message)
        receiver.accept()
        self.settled(message)
        return SENT

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


class _Capability(LinkOption):  # type: ignore[misc]
    """Asks for a node that is a queue, or a topic."""

    def __init__(self, name: str) -> None:
        self._name = proton.symbol(name)

    def apply(self, link: Any) -> None:
        end = link.target if link.is_sender else link.source
        end.capabilities.put_array(False, proton.Data.SYMBOL)
        end.capabilities.enter()
        end.capabilities.put_symbol(self._name)
        end.capabilities.exit()


def _acquired_before(message: proton.Message) -> bool:
    return not message.first_acquirer


def _connected(place: Place) -> BlockingConnection:
    try:
        return BlockingConnection(
            f"amqp://{place.host}:{place.port}",
            timeout=place.setting("timeout", 60),
            heartbeat=place.setting("heartbeat", None),
            user=place.setting("user", "guest"),
            password=place.setting("password", "guest"),
            allowed_mechs="PLAIN",
        )
    except proton.ConnectionException as error:
        refused = "unauthorized" in str(error)
        raise Failed(Kind.REFUSED if refused else Kind.DOWN, error) from None
    except (proton.Timeout, OSError) as error:
        raise Failed(Kind.DOWN, f"{type(error).__name__}: {error}") from None
