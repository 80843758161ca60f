"""A session: producers, consumers, and the transaction or the acknowledgements that they share."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from typing import TYPE_CHECKING

from ackfsm.engine.arguments import callback_of
from ackfsm.engine.browser import Browser
from ackfsm.engine.closing import Closing
from ackfsm.engine.consumer import Consumer, Deferred, Listener
from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.errors import IllegalStateException, OutcomeUnknown, Stuck, TransactionRolledBackException
from ackfsm.engine.core.links import Incoming, Outgoing, Queue
from ackfsm.engine.core.message import Sent
from ackfsm.engine.core.model import Role
from ackfsm.engine.core.scheduler import PUBLISH
from ackfsm.engine.core.stepper import Session as CoreSession
from ackfsm.engine.producer import Producer
from ackfsm.terms import Configuration, parse_value

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker

__all__ = ["Session"]

_ENDS = ("committed", "rolled_back", "commit_in_doubt")

_UNSETTLED = frozenset(
    {"processing", "processing_ack_sent", "done", "awaiting_ack_confirm", "failed_requeue", "failed_kept"}
)
"""A delivery in these states is the application's, and the session may acknowledge it or have it delivered again."""


class Session(Closing):
    """A session.  ``Connection.session`` makes it; it is closed when it is left as a context."""

    def __init__(
        self,
        broker: Broker,
        process: str,
        name: str,
        settings: Mapping[str, object],
        consumed: dict[tuple[Configuration, str], None],
    ) -> None:
        """A session of the client ``process``, which notes in ``consumed`` what it consumes."""
        self.broker = broker
        self.process = process
        self.name = name
        self.configuration = broker.configure(settings)
        self.transacted: bool = broker.specification.conditions["transacted"].holds(
            broker.specification.environment(self.configuration)
        )
        self.transaction = broker.new_transaction()
        self._consumed = consumed
        self.outgoing: dict[Configuration, Outgoing] = {}
        self.consumers: list[Consumer] = []
        self._deferred: list[Consumer] = []
        self._leaving: list[Consumer] = []
        self.closed = False
        self.stopped = False
        self.is_busy = self.passed_over = False
        self._began = False
        self._outcome = "committed"

    def alive(self) -> None:
        """Raise :class:`IllegalStateException` if the session is closed, or another thread uses it."""
        if get_ident() != self.broker.thread:
            self.broker.check_use()
        if self.closed:
            raise IllegalStateException(f"session {self.name} is closed; make another with connection.session()")

    # Producers and consumers

    def producer(self, queue: str | Queue, *, on_outcome: Callable[[Sent], None] | None = None) -> Producer:
        """Something that sends to ``queue``; ``on_outcome`` hears what becomes of each message."""
        self.alive()
        hear = callback_of("on_outcome", on_outcome)
        return Producer(self, self._queue(queue), hear)

    def consumer(self, queue: str | Queue, *, listener: Listener | None = None) -> Consumer:
        """Something that consumes from ``queue``: by ``receive()``, or with a ``listener`` that is called.

        Raises :class:`IllegalStateException` if the session consumes in the other way already (JMS 3.1, 4.4.6).
        """
        self.alive()
        callback_of("listener", listener)
        consumption = "receive" if listener is None else "listener"
        for other in self.consumers:
            if not other.closed and other.incoming.configuration.consumption != consumption:
                raise IllegalStateException(
                    f"session {self.name} consumes in the other way; use another session for this"
                )
        place = self._queue(queue)
        self._reach(f"a consumer of {self.name}")
        settings = {key: value for key, value in self.configuration.as_dict().items() if key != "profile"}
        configuration = self.broker.configure({**settings, "consumption": consumption})
        incoming = Incoming(self.broker.core, self.process, self.name, configuration)
        incoming.session.transaction = self.transaction
        incoming.owner = self
        made = Consumer(self, place, incoming, listener)
        incoming.consumer = made
        self.consumers.append(made)
        self._consumed[configuration, place.name] = None
        if isinstance(listener, Deferred):
            self._deferred.append(made)
        place.consumers.append(incoming)
        self.broker.wake(place)
        self.broker.engine.settle()
        return made

    def browser(self, queue: str | Queue) -> Browser:
        """Something to look into ``queue`` with: iterating over it consumes nothing.

        Raises :class:`IllegalStateException` if the session is closed.
        """
        self.alive()
        return Browser(self, self._queue(queue))

    def _queue(self, queue: str | Queue) -> Queue:
        return self.broker.own_queue(queue) if isinstance(queue, Queue) else self.broker.queue(queue)

    def sends_as(self, delivery_mode: str) -> Outgoing:
        """The sending side with another delivery mode than the session's.

        Raises :class:`ackfsm.terms.InputError` for one that does not exist.
        """
        return self.sender({"delivery_mode": parse_value("delivery_mode", delivery_mode)})

    def sender(self, settings: Mapping[str, object]) -> Outgoing:
        """The sending side under the session's configuration with ``settings`` over it."""
        configuration = dataclasses.replace(self.configuration, **settings)  # type: ignore[arg-type] # parsed already
        if configuration not in self.outgoing:
            self._reach(f"a producer of {self.name}")
            made = Outgoing(self.broker.core, self.process, self.name, configuration)
            for other in self.outgoing.values():
                made.share_window(other)
            made.session.transaction = self.transaction
            made.owner = self
            self.outgoing[configuration] = made
        return self.outgoing[configuration]

    def _reach(self, doing: str) -> None:
        """A side that is new waits for the broker, and for the connection that it shares with the others."""
        self.broker.reach(doing)
        if not all(map(_linked, self.sides())):
            self.broker.wait(lambda: all(map(_linked, self.sides())), doing)

    def finish_processing(self) -> None:
        """The application is done with what it had."""
        for consumer in self.consumers:
            if consumer.is_busy:
                consumer.finish()

    def is_called(self) -> bool:
        """Whether a listener is still busy after its call: a session calls one at a time (JMS 3.1, 6.2.5)."""
        return bool(self._deferred) and any(consumer.is_busy for consumer in self._deferred)

    def acknowledge_others(self, of: Consumer) -> bool:
        """An acknowledgement on one consumer covers those of the whole session; whether the others had anything."""
        asked = [consumer.acknowledge_last() for consumer in self.consumers if consumer is not of]
        return any(asked)

    @contextlib.contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Call no listener meanwhile: a session has one thread of control (JMS 3.1, 6.2.5)."""
        before, self.is_busy = self.is_busy, True
        try:
            yield
        finally:
            if not before:
                self.free()

    def free(self) -> None:
        """The call is over: let the listeners have what has come meanwhile."""
        self.let_leave()
        self.is_busy = False
        if self.passed_over:
            self.passed_over = False
            self.look()

    def turn(self, *, stopped: bool) -> None:
        """Hand messages over, or hand none over."""
        self.stopped = stopped
        for consumer in self.consumers:
            consumer.heed()

    def look(self) -> None:
        """Call the listeners for what has had to wait."""
        for consumer in self.consumers:
            consumer.look()

    def close_consumer(self, consumer: Consumer) -> None:
        """See :meth:`Consumer.close`."""
        with self.undisturbed():
            consumer.closed = True
            consumer.heed()
            consumer.queue.consumers.remove(consumer.incoming)
            self._leaving.append(consumer)
            self.broker.log(self.process, "close", session=self.name, queue=consumer.queue.name)
            if consumer.listener is None or not consumer.is_busy:
                consumer.finish()
            self.broker.engine.settle()
            self.let_leave()

    def let_leave(self) -> None:
        """Closed consumers give back what only the library has had, once nothing else of theirs is open."""
        if not self._leaving:
            return
        self.broker.flush_lazily(self._leaving)
        for consumer in tuple(self._leaving):
            if not self.closed and consumer in self._leaving and not self._owes(consumer.incoming):
                self._leaving.remove(consumer)
                self._give_up(consumer.incoming)
                self._retire(consumer)

    def _owes(self, incoming: Incoming) -> bool:
        """Whether something is to be settled of what the application was given by that consumer."""
        copies = self.broker.core.copies_of(incoming.session)
        return _acknowledging(incoming) or any(copy.of("delivery") in _UNSETTLED for copy in copies)

    def _retire(self, consumer: Consumer) -> None:
        if self.closed:
            return  # its process has died meanwhile
        consumer.left = True
        self._drop(consumer)
        self.broker.retire(consumer.incoming.session)
        self.consumers = [other for other in self.consumers if other is not consumer]  # somebody may be going through
        self._deferred = [other for other in self._deferred if other is not consumer]
        self.broker.engine.settle()

    def _drop(self, consumer: Consumer) -> None:
        """No connection will ever drop what is on its way to a side that is gone without one."""
        if not _linked(consumer.incoming.session):
            self.broker.engine.happen("consumer_crash", consumer.incoming.session)

    # Transactions and recovery

    def begin(self) -> None:
        """Say in the history that a transaction is open, when the first work is done in it."""
        if self.transacted and not self._began:
            self._began = True
            self._outcome = "committed"
            self.broker.log(self.process, "begin", session=self.name, transaction=self.transaction)

    def commit(self) -> None:
        """Make what was sent and what was received hold together.

        Raises :class:`TransactionRolledBackException` if the broker could not, :class:`OutcomeUnknown` if nobody
        knows, :class:`IllegalStateException` if the session is not transacted.
        """
        self._in_transaction()
        if self._began:
            with self.undisturbed():
                self._commit()

    def _commit(self) -> None:
        self.finish_processing()
        self.broker.engine.settle()
        self.alive()  # its process may have died in between
        sides = [(out.session, "commit_called") for out in self.outgoing.values() if _sending(out)]
        sides += [(c.incoming.session, "consumer_commit_called") for c in self.consumers if _acknowledging(c.incoming)]
        self.broker.log(self.process, "commit", session=self.name, transaction=self.transaction)
        if len(sides) > 1 and self._is_refused():
            self.ended("rolled_back")
        events = self.broker.core.events
        if self._outcome != "committed" or not all(self.broker.core.allows(events[name], side) for side, name in sides):
            self._undo()  # a part of the work is lost, so that all of it is
            self._end(asked="committed")
        for side, event in sides:
            if not self.broker.engine.happen(event, side):
                self.ended("rolled_back")
        self.broker.wait(lambda: not self._ending(), f"commit() of {self.name}")
        self._end(asked="committed")

    def rollback(self) -> None:
        """Undo what was sent and what was received since the last commit; what was received is delivered again."""
        self._in_transaction()
        if not self._began:
            return
        with self.undisturbed():
            self.broker.log(self.process, "rollback", session=self.name, transaction=self.transaction)
            self._undo()
            self._end(asked="rolled_back")

    def _is_refused(self) -> bool:
        """Whether the broker, when it has read all that was sent, has refused a part of it.

        One side would learn it from its commit; another, whose work is not refused, has to be told before.
        """
        execute = self.broker.core.events["execute_commit"].own
        core, sides = self.broker.core, self.outgoing.values()
        self.broker.engine.wait(
            lambda: not any(copy.goes_to(execute) == REFUSED for out in sides for copy in core.copies_of(out.session))
        )
        return any(out.parts[Role.PRODUCER].of("commit_frame") == "doomed" for out in sides)

    def _undo(self) -> None:
        self.ended("rolled_back")
        for out in self.outgoing.values():
            self.broker.engine.happen("rollback", out.session)
        for consumer in self.consumers:
            self._give_up(consumer.incoming)
            consumer.let_go()
        self.broker.wait(lambda: not any(map(_sending, self.outgoing.values())), f"rollback() of {self.name}")

    def _give_up(self, incoming: Incoming) -> None:
        """Have what is not acknowledged sent again, as soon as the frames before have been read."""
        engine = self.broker.engine
        engine.settle()
        while not any(engine.happen(event, incoming.session) for event in ("consumer_rollback", "recover")):
            row = self.broker.core.refusal()
            if row.error is not None:
                return  # the connection is down, and so the broker has it all back
            if not engine.go_on():
                raise Stuck(f"session {self.name} cannot give back what it has: {row.because} ({row.place})")

    def recover(self) -> None:
        """Have everything that is not acknowledged delivered again, flagged (JMS 3.1, 6.2.10).

        Raises :class:`IllegalStateException` in a transacted session.
        """
        self.alive()
        if self.transacted:
            raise IllegalStateException("recover() is not for transacted sessions; use rollback() (JMS 3.1, 6.2.10)")
        with self.undisturbed():
            self.finish_processing()
            self.broker.log(self.process, "recover", session=self.name)
            for consumer in self.consumers:
                self._give_up(consumer.incoming)
            self.let_leave()
        self.broker.engine.settle()

    def ended(self, outcome: str) -> None:
        """A side of the session says how its transaction has ended: the worst counts."""
        self._outcome = max(self._outcome, outcome, key=_ENDS.index)

    def _in_transaction(self) -> None:
        self.alive()
        if not self.transacted:
            raise IllegalStateException(f"session {self.name} is not transacted; make it with SESSION_TRANSACTED")

    def _ending(self) -> bool:
        return any(map(_sending, self.outgoing.values())) or any(_acknowledging(c.incoming) for c in self.consumers)

    def _end(self, *, asked: str) -> None:
        self.alive()
        outcome = self._outcome
        self.broker.log(self.process, outcome, session=self.name, transaction=self.transaction)
        self._next_transaction()
        self.let_leave()
        self.look()
        if outcome == "commit_in_doubt":
            raise OutcomeUnknown(f"commit() of {self.name} failed, and nobody knows whether it was executed")
        if outcome != asked:
            raise TransactionRolledBackException(f"the transaction of {self.name} is rolled back")

    def _next_transaction(self) -> None:
        self._began = False
        self.transaction = self.broker.new_transaction()
        for side in self.sides():
            side.transaction = self.transaction

    def connected(self, side: CoreSession) -> None:
        """A consuming side is connected again: what it had of a transaction that is over is not of the next."""
        if not self._began:
            self.broker.engine.happen("consumer_rollback", side)

    # The end, and what goes wrong

    def close(self) -> None:
        """Close it: what it has not acknowledged is delivered again, and an open transaction is rolled back."""
        if self.closed:
            return
        self.alive()
        with self.undisturbed():
            self._close()

    def _close(self) -> None:
        self.finish_processing()
        self.broker.engine.settle()
        self.broker.flush_lazily(self.consumers)
        open_ = self.transaction if self._began else None
        for consumer in self.consumers:
            if not consumer.closed:
                consumer.queue.consumers.remove(consumer.incoming)
        self.broker.engine.wait(lambda: not any(out.open or self._has_frames(out) for out in self.outgoing.values()))
        for out in self.outgoing.values():
            self.broker.engine.happen("rollback", out.session)
        for consumer in self.consumers:
            self._give_up(consumer.incoming)
        self.broker.engine.wait(lambda: not any(map(_sending, self.outgoing.values())))
        self.broker.log(self.process, "close", session=self.name, transaction=open_)
        self._leave()

    def _has_frames(self, out: Outgoing) -> bool:
        """Whether the broker has still to read some of what was sent there: the frame that closes is behind that."""
        members = out.session.under(self.broker.core.wiring.broadcast("producer")).members
        return any(PUBLISH in copy.told.by for copy in members.values())

    def fault(self, what: str) -> None:
        """``link_loss`` or ``crash``: of the connection or of the process that holds the session."""
        self.broker.engine.finish_executing()
        for out in self.outgoing.values():
            self.broker.engine.happen(f"producer_{what}", out.session)
        for consumer in self.consumers:
            self.broker.engine.happen(f"consumer_{what}", consumer.incoming.session)
        if what == "crash":
            for consumer in self.consumers:
                consumer.let_go()
                if consumer.incoming in consumer.queue.consumers:  # it may die as it closes
                    consumer.queue.consumers.remove(consumer.incoming)
            self._leave()
        self.broker.engine.settle()

    def _leave(self) -> None:
        self.closed = True
        for consumer in self.consumers:
            self._drop(consumer)
        for side in self.sides():
            self.broker.retire(side)

    def sides(self) -> list[CoreSession]:
        """The sending and consuming sides, as the core knows them."""
        sending = [out.session for out in self.outgoing.values()]
        return sending + [consumer.incoming.session for consumer in self.consumers]


def _linked(side: CoreSession) -> bool:
    role = Role.PRODUCER if side.kind == "producer" else Role.CONSUMER
    return side.parts[role].of(f"{side.kind}_link") == "up"


def _sending(out: Outgoing) -> bool:
    return out.parts[Role.PRODUCER].of("transaction") != "idle"


def _acknowledging(incoming: Incoming) -> bool:
    return incoming.parts[Role.CONSUMER].of("consumer_transaction") != "idle"
