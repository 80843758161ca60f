"""The fixture ``ackfsm``: a world outside for the application under test, and an operator who starts it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ackfsm.engine import Broker, Connection, IllegalStateException, JMSException, Message, Producer, Sent
from ackfsm.engine._core import Session as Side
from ackfsm.engine._messages import HeaderValue
from ackfsm.engine._parts import Copy
from ackfsm.engine._wiring import Event
from ackfsm.pytest_plugin._attempt import Attempt
from ackfsm.pytest_plugin._crash import ProcessCrashed
from ackfsm.pytest_plugin._process import Process
from ackfsm.pytest_plugin._trace import Happening, Trace
from ackfsm.terms import Configuration, Fault, InputError

__all__ = ["APPLICATION", "Endless", "NotDrained", "Trial"]

APPLICATION = "application"
"""What the clients of the application are called in the history, each life with its number."""

_OUTSIDE, _COLLECTOR = "outside", "collector"
_IDLE_LIVES = 5
_MOST_EVENTS = 100_000
_BROKER = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})
_CONSUMING = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
_PRODUCING = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})
_THROWING = frozenset({Fault.LISTENER_EXCEPTION})
_REJECTING = frozenset({Fault.REJECTION})

Application: TypeAlias = Callable[[Connection], object]
"""What is tested: it is called with a connection, and returns when it has nothing to do or has set its listeners."""


class Endless(BaseException):
    """The run does not come to an end; an application does not catch this, as it would go on for ever."""


class NotDrained(Exception):  # noqa: N818 - what the queues are
    """The application does not empty its queues, however often it is started."""


class Trial:
    """An application under test, what it is sent, and who starts it again.

    Attributes:
        broker: the broker.
        history: its history.
    """

    def __init__(self, broker: Broker, attempt: Attempt) -> None:
        if broker.history is None:
            raise InputError("the fixture ackfsm needs a broker that keeps a history: leave history=False out")
        self.broker = broker
        self.history = broker.history
        self.attempt = attempt
        self.trace = Trace()
        self.words: set[int] = set()
        self.last_words: dict[str, int] = {}
        self.configurations: set[Configuration] = set()
        self.ran = False
        self._queues: set[str] = set()
        self._process: Process | None = None
        self._producer: Producer | None = None
        self._lives = self._number = self._events = 0
        broker.observe(self._observe)

    # What a test calls

    def send(
        self,
        queue: str,
        *bodies: bytes | str,
        headers: Mapping[str, HeaderValue] | None = None,
        message_id: str | None = None,
        **settings: Any,
    ) -> list[Sent]:
        """Send a message for each body, from outside the application and undisturbed: all are stored when it returns.

        Args:
            queue: where to.
            bodies: the payloads; text is encoded as UTF-8.
            headers: names and values, of each.
            message_id: the id of the message, if it is one.
            settings: of the session that sends, over those of the broker.
        """
        if message_id is not None and len(bodies) != 1:
            raise IllegalStateException("message_id is for one message; send several one by one")
        with self.broker.connect(_OUTSIDE) as connection:
            session = connection.session(**settings)
            producer = session.producer(queue)
            data = [body.encode() if isinstance(body, str) else body for body in bodies]
            sent = [producer.send(body, headers, message_id=message_id) for body in data]
            if session.transacted:
                session.commit()
            producer.wait()
        return sent

    def run(self, application: Application) -> None:
        """Run the application until the queues from which it consumes are empty.

        It is called with a connection.  When it has returned, its listeners are given what is there.  Then it is
        closed.  Where a fault kills its process or an error of the engine that a fault caused ends it, it is called
        again with a new connection, as an operator would; and also where it has returned and messages are left.

        Raises :class:`NotDrained` if messages are left however often it is called.  Errors of the application leave,
        unless a fault explains them.
        """
        if self._process is not None:
            raise IllegalStateException("ackfsm.run() is not for the application under test; call it from the test")
        self.ran = True
        left, idle = -1, 0
        while not self._life(application) or self._left():
            idle = 0 if 0 <= self._left() < left else idle + 1
            left = self._left()
            if idle > _IDLE_LIVES:
                raise NotDrained(
                    f"the application was started {self._lives} times and leaves {left} messages in "
                    f"{', '.join(sorted(self._queues)) or 'no queue'}"
                )

    def processed(self, message: Message | str) -> None:
        """The application's word that its work on ``message`` is complete and will not be undone: a row is committed.

        Where a test says so, this alone counts as processing.  Otherwise a message counts as processed when the
        application acknowledges it, asks for the next one, or commits, recovers or closes the session.
        """
        if self._process is not None:
            self._process.check()
        self.attempt.by_word = True
        ident = message if isinstance(message, str) else message.id
        self.broker.log(f"{APPLICATION}-{self._lives}", "processed", message=ident)
        self.words.add(self.history.lines[-1]["t"])
        listening = self._process is not None and self._process.listening > 0
        may = self._may(throwing=listening)
        self._happened("processed", "application", "consumer", ident, may, word=True)
        if self._process is not None:
            self._process.check()

    def receive_all(self, queue: str) -> list[Message]:
        """Take all that is in ``queue``, from outside the application and undisturbed: what it has sent to others."""
        taken = []
        with self.broker.connect(_COLLECTOR) as connection:
            session = connection.session(consumption="receive")
            consumer = session.consumer(queue)
            while (message := consumer.receive(None)) is not None:
                taken.append(message)
                session.finish_processing()
                if message.copy.told.claimable:
                    message.acknowledge()
            if session.transacted:
                session.commit()
        return taken

    def left_over(self) -> list[str]:
        """The queues from which the application has not consumed, and that are not empty."""
        names = {str(line["queue"]) for line in self.history.lines if line["event"] == "send"}
        return sorted(name for name in names - self._queues if self.broker.queue(name).length)

    # Lives

    def _life(self, application: Application) -> bool:
        """One life of the application; whether it returned."""
        self._lives += 1
        process = self._process = Process(self.broker, f"{APPLICATION}-{self._lives}", self._before_send)
        try:
            returned = self._live(process, application)
        finally:
            self.configurations |= process.configurations()
            self._queues |= process.queues()
            if process.last_word is not None:
                self.last_words[process.name] = process.last_word
            self._process = None
        if not self.broker.running:
            self.broker.restart()
        self.broker.engine.settle()
        return returned

    def _live(self, process: Process, application: Application) -> bool:
        try:
            application(process.connect())
            self.broker.engine.wait(lambda: process.dead or not self._left_in(process.queues()))
            if not process.dead:
                process.close()
        except ProcessCrashed:
            return False
        except Exception as error:
            if not process.dead and not (self.attempt.struck and _by_the_engine(error)):
                raise
            if not process.dead:
                process.crash()
        return not process.dead

    def _left(self) -> int:
        return self._left_in(self._queues)

    def _left_in(self, queues: set[str]) -> int:
        return sum(self.broker.queue(name).length for name in queues)

    # Events

    def _observe(self, event: Event, subject: Copy | Side) -> None:
        process = self._process
        if event.name == "processed" and process is not None and process.dead:
            return  # the engine lets go of what a dead process had
        message = subject.message.id if isinstance(subject, Copy) else ""
        throwing = event.name in _DELIVERED and process is not None and process.listens
        may = self._may(throwing=throwing) if not self._half_executed(event, subject) else frozenset[Fault]()
        self._happened(event.name, event.agent, self._side(event, subject), message, may)

    def _half_executed(self, event: Event, subject: Copy | Side) -> bool:
        """Whether the broker is in the midst of one frame, the commit of a session that consumes and sends.

        The model has two transactions there, of which nothing can come between.
        """
        return (
            isinstance(subject, Side) and event.name in _EXECUTED and subject.transaction in self.broker.storage.halves
        )

    def _side(self, event: Event, subject: Copy | Side) -> str:
        """Where an event happens that is no frame: with the machine that decides it."""
        if isinstance(subject, Side):
            return subject.kind
        owner = self.broker.specification.owner(event.name)
        side = self.broker.core.wiring.table.among.get(owner.name if owner is not None else "")
        return side if side in {"producer", "consumer"} else "broker"

    def _may(self, *, throwing: bool) -> frozenset[Fault]:
        """The faults that may strike now; ``throwing``: a listener is about to be called, or is at work."""
        process = self._process
        if process is None:
            return frozenset()
        may = _BROKER if self.broker.running else frozenset[Fault]()
        may |= _CONSUMING if process.consumes else frozenset()
        may |= _PRODUCING if process.produces else frozenset()
        return may | (_THROWING if throwing else frozenset())

    def _before_send(self, producer: Producer) -> None:
        self._producer = producer
        self._happened("send_called", "application", "producer", "", _REJECTING)

    def _happened(  # noqa: PLR0913 - the fields of a happening
        self, event: str, agent: str, side: str, message: str, may: frozenset[Fault], *, word: bool = False
    ) -> None:
        """Keep an event, and let the fault strike if this is its point."""
        attempt, point = self.attempt, self.attempt.point
        counted = self._process is not None and not attempt.struck
        self._number += counted
        happening = Happening(self._number if counted else None, event, agent, side, message, word)
        self.trace.happenings.append(happening)
        self._events += 1
        if self._events > _MOST_EVENTS:
            raise Endless(f"after {_MOST_EVENTS:,} events the application has not come to an end")
        if counted and point is None:
            attempt.steps.append((happening, may))
        elif counted and point is not None and point.number == self._number:
            attempt.struck, attempt.met = True, happening
            if attempt.is_the_same:
                self._strike(point.fault)

    def _strike(self, fault: Fault) -> None:
        process = self._process
        if process is None:
            raise AssertionError("a fault is to strike, and nothing runs")
        if fault in _BROKER:
            {Fault.BROKER_CRASH: self.broker.crash, Fault.BROKER_KILL: self.broker.kill}.get(
                fault, self.broker.fail_journal
            )()
        elif fault in {Fault.CONSUMER_CRASH, Fault.PRODUCER_CRASH}:
            process.crash()
        elif fault in _REJECTING and self._producer is not None:
            self._producer.queue.refuse_next += 1
        elif fault in _THROWING:
            process.throws = True
        else:
            process.lose()


_EXECUTED = frozenset({"execute_commit", "execute_consumption"})

_DELIVERED = frozenset({"delivered_clear", "delivered_flagged"})


def _by_the_engine(error: BaseException | None) -> bool:
    """Whether an error of the engine is behind ``error``."""
    while error is not None:
        if isinstance(error, JMSException):
            return True
        error = error.__cause__ or error.__context__
    return False
