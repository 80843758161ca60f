"""The few operations by which somebody's broker is driven: what an adapter in Python implements."""

from __future__ import annotations

import abc
import dataclasses
from enum import StrEnum

from ackfsm.driving.conform._claims import Claims, Mode
from ackfsm.history.format import Outcome
from ackfsm.terms import AckfsmError, Fault, InputError


class ClientClosedError(AckfsmError):
    """The answer of a client that is dead, closed, or whose connection broke and is not made again."""


class BrokerDownError(AckfsmError):
    """The answer while the broker does not run."""


class ListenerHoldsError(AckfsmError):
    """The answer to ``close`` while the client's listener holds a message that it was called with meanwhile."""


class UndecidedError(AckfsmError):
    """The answer that a call could not be made: the run proves nothing, and the next one begins."""


class SendOutcome(StrEnum):
    """What ``send()`` said in the end: ``sent`` that no answer comes (yet: in a transaction; or ever)."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    SENT = "sent"


class AckOutcome(StrEnum):
    """What ``acknowledge()`` said: ``sent`` that the broker answers no acknowledgement."""

    ACKNOWLEDGED = "acknowledged"
    IN_DOUBT = "in_doubt"
    SENT = "sent"


class CommitOutcome(StrEnum):
    """What ``commit()`` said."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    IN_DOUBT = "in_doubt"


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """A message as it was handed to the application; ``delivery_count`` is ``None`` where it is not counted."""

    message: str
    redelivered: bool = False
    delivery_count: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Depth:
    """How many messages a queue holds that wait for a consumer, and how many are with one, unacknowledged.

    ``dead_letters`` are the messages of the run that are in the dead-letter queue; ``None`` if nobody has looked.
    """

    ready: int
    unacknowledged: int = 0
    dead_letters: tuple[str, ...] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is left."""
        return not self.ready and not self.unacknowledged


@dataclasses.dataclass(frozen=True, slots=True)
class Strike:
    """A fault that strikes while a call is under way: at its ``after``-th step (1 is the first), at its end at last.

    What a step is the adapter decides; a number that is larger than there are steps means the end of the call.
    """

    fault: Fault
    after: int = 1


class Adapter(abc.ABC):
    """Drives one implementation.  Every call returns before the next one is made.

    A client is a name: one that has not been heard of since :meth:`begin` is a new client, with a process, a connection
    and a session of its own, of the mode that :meth:`begin` named; it either sends or consumes.  Whatever a call
    cannot do because the client is gone raises :class:`ClientClosedError`; because the broker is down,
    :class:`BrokerDownError`.  Any other exception is the adapter's own and ends the campaign.
    """

    @abc.abstractmethod
    def claims(self) -> Claims:
        """Return the claims of the implementation; asked once."""

    @abc.abstractmethod
    def begin(self, mode: Mode, queue: str) -> None:
        """Begin a run in this mode: a running broker, an empty ``queue``, no client.  The run before is over."""

    @abc.abstractmethod
    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Send a message that carries the id ``message``, and wait for its outcome; in a transaction, if it has one."""

    @abc.abstractmethod
    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The next message, ``None`` if none comes within ``timeout`` seconds.

        By listener: the message with which the client's listener was called meanwhile.  It is called at no other time
        (start the connection for this call, and stop it), and returns with :meth:`done`.
        """

    @abc.abstractmethod
    def depth(self, queue: str) -> Depth:
        """How much the queue holds.  Raises :class:`BrokerDownError` while the broker is down.

        Where a message may reach its limit of attempts, or be rejected, the answer has the dead letters too.
        """

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """The listener returns, or throws if it ``failed``; only where messages are consumed by listener."""
        del message, failed
        raise _lacks("done", client)

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """The application acknowledges ``message``, and with it the others that the mode covers."""
        del message, during
        raise _lacks("acknowledge", client)

    def settle(self, client: str, message: str, outcome: Outcome) -> None:
        """The application gives ``message`` back or up, by another outcome than that of ``acknowledge``.

        Only programs that an adapter is led through ask for it.
        """
        del message, outcome
        raise _lacks("settle", client)

    def cancel(self, client: str) -> None:
        """The client closes its consumer; its session goes on, and the next :meth:`receive` makes another one.

        One that has no consumer yet has had one that was handed nothing.
        """
        raise _lacks("cancel", client)

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """Commit the sends or deliveries of the client."""
        del during
        raise _lacks("commit", client)

    def rollback(self, client: str) -> None:
        """Undo the sends or deliveries of the client since its last commit."""
        raise _lacks("rollback", client)

    def recover(self, client: str) -> None:
        """Have everything that the client has not acknowledged delivered again."""
        raise _lacks("recover", client)

    def close(self, client: str) -> None:
        """The client closes its session and ends."""
        raise _lacks("close", client)

    def fault(self, fault: Fault, client: str | None) -> None:
        """Inject a fault: into ``client``, or into the broker if that is ``None``.

        ``rejection`` refuses the next message that is sent.  A client that crashes is gone; one whose connection broke
        is gone or connects again by itself.  A fault of the broker leaves it down until :meth:`restart`.
        """
        del client
        raise _lacks(f"fault {fault}", "it")

    def restart(self) -> None:
        """Start the broker again on the rest of its storage."""
        raise _lacks("restart", "it")

    def end(self) -> None:
        """All runs are over; called once, also after an error."""
        return


def _lacks(operation: str, who: str) -> InputError:
    return InputError(
        f"the adapter was asked for {operation} by {who} and has no such method; implement it, or do not claim it"
    )
