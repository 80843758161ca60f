"""What events mean outside: the outcome of a send, a line of the history, a call of a listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ackfsm.engine.consumer import Consumer
from ackfsm.engine.core.instances import Copy
from ackfsm.engine.core.links import Incoming, Outgoing, Queue
from ackfsm.engine.core.message import Outcome, Sent
from ackfsm.engine.core.model import Role
from ackfsm.engine.core.stepper import Effect, Session

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker
    from ackfsm.engine.core.dead_letters import DeadLetters

__all__ = ["Telling"]

_OUTCOMES = {
    "confirmed": Outcome.CONFIRMED,
    "confirmed_by_range": Outcome.CONFIRMED,
    "rejected": Outcome.REJECTED,
    "in_doubt": Outcome.IN_DOUBT,
    "send_returned": Outcome.UNCONFIRMED,
    "send_in_transaction": Outcome.IN_TRANSACTION,
}

_CONCLUDED = frozenset({"confirmed_by_range"})
"""Of these no event tells: they follow from that of a later message."""

_ENDS = {
    "commit_failed": "commit_in_doubt",
    "consumer_commit_failed": "commit_in_doubt",
    "rollback_returned": "rolled_back",
    "transaction_lost": "rolled_back",
}

_MAKES_ROOM = ("settle", "requeue")
_DELIVERED = {"delivered_clear": False, "delivered_flagged": True}
"""Whether the message has the redelivered flag."""


class Telling:
    """Hears of the events that somebody outside is told of, and tells."""

    def __init__(self, broker: Broker, letters: DeadLetters) -> None:
        """Hear of the events of ``broker``."""
        self._broker = broker
        self._letters = letters
        self._core = broker.core
        broker.core.effects |= dict(self._told())
        arrivals = broker.core.arrivals
        for state in ("ready", "staged", "committing"):
            arrivals.setdefault(("entry", state), []).append(Queue.enter)
        for state, leaving in {"removed": Queue.remove, "not_recovered": Queue.lose, "discarded": Queue.leave}.items():
            arrivals.setdefault(("entry", state), []).append(leaving)
        arrivals.setdefault(("ack_record", "durable"), []).append(letters.moved)
        for state in ("unsynced", "known"):
            arrivals.setdefault(("duplicate_id", state), []).append(self._known)
        arrivals.setdefault(("duplicate_id", "unknown"), []).append(self._unknown)

    def _known(self, copy: Copy) -> None:
        if copy.message.duplicate_id is not None:
            self._broker.remember(copy.message.duplicate_id)

    def _unknown(self, copy: Copy) -> None:
        if copy.message.duplicate_id is not None:
            self._broker.forget_id(copy.message.duplicate_id)

    def _told(self) -> Iterator[tuple[str, Effect]]:
        """What is done after which event."""
        for event, outcome in _OUTCOMES.items():
            yield event, self._resolving(event, outcome)
        for event, end in _ENDS.items():
            yield event, self._ending(end)
        for event in ("producer_link_loss", "producer_crash", "consumer_link_loss", "consumer_crash"):
            yield event, self._side_gone(event)
        yield "listener_exception", self._fault("listener_exception")
        yield "rejection", self._rejected
        yield from dict.fromkeys(("broker_crash", "broker_kill", "journal_failure"), self._work_lost).items()
        yield from {"dispatch_first": _sent_first, "dispatch_again": _sent_again}.items()
        yield from dict.fromkeys(_MAKES_ROOM, self._room_made).items()
        for event, flagged in _DELIVERED.items():
            yield event, self._handing_over(flagged)
        yield from dict.fromkeys(("recover", "consumer_rollback"), self._there_again).items()
        yield "consumer_link_up", self._connected
        yield "acknowledged", self._acknowledged
        yield "ack_in_doubt", self._ack_in_doubt
        yield "arrive", self._arrived
        yield "dead_lettered", self._dead_lettered

    def _resolving(self, event: str, outcome: Outcome) -> Callable[[Copy], None]:
        said = {"confirmed_by_range": "confirmed", "send_returned": None, "send_in_transaction": None}.get(event, event)

        def resolved(copy: Copy) -> None:
            message: Sent = copy.message
            message.outcome = outcome
            out: Outgoing = copy.route.outgoing
            out.open.pop(message, None)
            if said is not None and self._broker.history is not None:
                self._broker.log(
                    out.process, said, session=out.session.name, queue=message.queue.name, message=message.id
                )
            hear = message.on_outcome
            if hear is not None and event not in _CONCLUDED:
                self._broker.engine.callbacks.append(lambda: hear(message))

        return resolved

    def _acknowledged(self, copy: Copy) -> None:
        if self._broker.history is not None:
            self._log_of(copy, "acknowledged")

    def _ack_in_doubt(self, copy: Copy) -> None:
        if copy.received is not None:
            copy.received.in_doubt = True
        self._log_of(copy, "ack_in_doubt")

    def _log_of(self, copy: Copy, event: str) -> None:
        incoming: Incoming = copy.route.incoming
        self._broker.log_of(copy, incoming.process, event, session=incoming.session.name, scope="message")

    def _arrived(self, copy: Copy) -> None:
        consumer: Consumer = copy.route.incoming.consumer
        if consumer.listener is not None:
            self._broker.engine.callbacks.append(consumer.pump)

    def _rejected(self, copy: Copy) -> None:
        copy.message.queue.rejected += 1
        self._broker.log("nemesis", "fault", fault="rejection")

    def _dead_lettered(self, copy: Copy) -> None:
        copy.message.queue.dead_lettered += 1
        self._letters.told(copy)
        self._broker.wake(copy.message.queue)
        self._broker.log_of(copy, "broker", "dead_lettered")

    def _ending(self, end: str) -> Callable[[Session], None]:
        def ended(session: Session) -> None:
            if session.face is not None:
                session.face.owner.ended(end)

        return ended

    def _room_made(self, copy: Copy) -> None:
        """A consumer may have room for another message of the queue."""
        queue: Queue = copy.message.queue
        if queue.ready.members:
            self._broker.wake(queue)

    def _handing_over(self, flagged: bool) -> Callable[[Copy], None]:  # noqa: FBT001 - made once for each event
        read_on = self._broker.engine.read_on

        def handed_over(copy: Copy) -> None:
            copy.flagged = flagged
            queue: Queue = copy.message.queue
            queue.delivered += 1
            if flagged:
                queue.redelivered += 1
            self._room_made(copy)
            read_on()

        return handed_over

    def _there_again(self, session: Session) -> None:
        """A consumer may be sent messages again."""
        self._broker.wake(session.face.consumer.queue)

    def _connected(self, session: Session) -> None:
        self._there_again(session)
        owner = session.face.owner
        self._broker.engine.callbacks.append(lambda: owner.connected(session))

    def _fault(self, fault: str) -> Effect:
        return lambda _: self._broker.log("nemesis", "fault", fault=fault)

    def _side_gone(self, event: str) -> Callable[[Session], None]:
        def gone(session: Session) -> None:
            if session.face is None or not session.face.is_closed:  # to close is no fault, connected or not
                self._broker.log("nemesis", "fault", fault=event)
            self._work_lost(session)

        return gone

    def _work_lost(self, session: Session) -> None:
        """A connection is gone, and with it what the consuming side of a transaction had acknowledged."""
        for side in self._core.sessions if session is self._core.broker else (session,):
            if side.kind == "consumer" and side.parts[Role.CONSUMER].of("consumer_transaction") in {"open", "failed"}:
                side.face.owner.ended("rolled_back")


def _sent_first(copy: Copy) -> None:
    copy.mark, copy.premarked, copy.unseen = 1, False, False


def _sent_again(copy: Copy) -> None:
    copy.mark, copy.premarked = max(copy.mark, 1) + 1, False
