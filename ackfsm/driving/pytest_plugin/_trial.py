"""The fixture ``ackfsm``: sends to the application under test, runs it, injects the fault and restarts it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, overload

from ackfsm.driving.pytest_plugin._crash import ProcessCrashed
from ackfsm.driving.pytest_plugin._fault_run import FaultRun
from ackfsm.driving.pytest_plugin._leftovers import OUTSIDE, messages_left, named
from ackfsm.driving.pytest_plugin._loop import is_asynchronous, refuse_nesting, run_tasks
from ackfsm.driving.pytest_plugin._process import Process
from ackfsm.driving.pytest_plugin._trace import Trace, TraceEvent
from ackfsm.driving.pytest_plugin._watchdog import Watchdog
from ackfsm.engine import (
    Broker,
    Connection,
    HeaderValue,
    IllegalStateException,
    JMSException,
    Message,
    MessageRejected,
    Outcome,
    Producer,
    Sent,
)
from ackfsm.engine.aio import AsyncConnection, AsyncMessage
from ackfsm.engine.core import BoundEvent, Copy, Link
from ackfsm.tables import names
from ackfsm.terms import Configuration, Fault, InputError
from ackfsm.text import meant, quoted, shown

__all__ = ["APPLICATION", "NotDrained", "Trial"]

APPLICATION = "application"
"""The prefix of the application's clients in the history; each process has its number."""

_COLLECTOR = "collector"
_MOST_IDLE_RUNS = 5
_NAMED = 60
"""Characters of a name that are shown."""

_BROKER = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})
_CONSUMING = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
_PRODUCING = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})
_THROWING = frozenset({Fault.LISTENER_EXCEPTION})
_REJECTING = frozenset({Fault.REJECTION})

Application: TypeAlias = Callable[[Connection], object]
"""The application: it is called with a connection, and returns when it has nothing to do or has set its listeners."""

AsyncApplication: TypeAlias = Callable[[AsyncConnection], Awaitable[object]]
"""An asynchronous application: a coroutine function, or another that returns an awaitable."""


class NotDrained(Exception):  # noqa: N818 - what the queues are
    """The application does not empty its queues, however often it is started."""


class Trial:
    """The test harness of an application: it sends to it, runs it, injects the fault and restarts it.

    Attributes:
        broker: the broker.
        history: its history.
        ran: whether :meth:`run` was called.
        watchdog: ends an application that does not terminate.
        clients: the names of the application in the history.
    """

    def __init__(self, broker: Broker, fault_run: FaultRun) -> None:
        if broker.history is None:
            raise InputError("the fixture ackfsm needs a broker that keeps a history: leave history=False out")
        self.broker = broker
        self.history = broker.history
        self.fault_run = fault_run
        self.trace = Trace()
        self.processed_times: set[int] = set()
        self.crashes: list[tuple[set[str], int, int]] = []
        self.configurations: set[Configuration] = set()
        self.clients: set[str] = set()
        self.ran = False
        self.watchdog = Watchdog(fault_run.timeout)
        self._sent: set[str] = set()
        self._leaving: set[str] = set()
        self._collected: set[str] = set()
        self._queues: set[str] = set()
        self._process: Process | None = None
        self._producer: Producer | None = None
        self._incarnations = self._number = 0
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

        Raises :class:`ackfsm.engine.MessageRejected` if one is not stored, and :class:`ackfsm.terms.InputError` for
        what cannot be sent; then none is.
        """
        if not bodies:
            raise InputError(f"ackfsm.send({_quoted(queue)}) sends nothing; give it a body for each message")
        if message_id is not None and len(bodies) != 1:
            raise IllegalStateException("message_id is for one message; send several one by one")
        data = [_encoded(body) for body in bodies]
        self.broker.use_in_this_thread()
        with self.broker.connect(OUTSIDE) as connection:
            session = connection.session(**settings)
            producer = session.producer(queue)
            sent = [producer.send(body, headers, message_id=message_id) for body in data]
            if session.transacted:
                session.commit()
            producer.wait()
        lost = [each for each in sent if each.outcome in _NOT_STORED]
        if lost:
            raise MessageRejected(f"{_quoted(lost[0].id)} is not in the queue: its outcome is {lost[0].outcome}")
        self._sent |= {each.id for each in sent}
        return sent

    @overload
    def run(self, application: AsyncApplication, *, leaving: Iterable[str] = ()) -> None: ...

    @overload
    def run(self, application: Application, *, leaving: Iterable[str] = ()) -> None: ...

    def run(self, application: AsyncApplication | Application, *, leaving: Iterable[str] = ()) -> None:
        """Run the application until the queues from which it consumes are empty.

        It is called with a connection.  When it has returned, its listeners are given what is there.  Then it is
        closed.  Where a fault kills its process or an error of the engine that a fault caused ends it, it is called
        again with a new connection, as an operator would; and also where it has returned and messages are left.

        What is to be awaited is run by an event loop of its own and is given an
        :class:`ackfsm.engine.aio.AsyncConnection`.  When nothing is left that its tasks could wait for, its connections
        are closed, so that ``async for`` ends.

        Args:
            application: what is tested.
            leaving: queues in which messages may be left when the test ends, as others would read them.  What is left
                in any other queue fails the test.

        Raises :class:`NotDrained` if messages are left however often it is called, and
        :class:`ackfsm.terms.InputError` if it has neither received nor sent anything without a fault.  Errors of the
        application leave, unless a fault explains them.
        """
        if self._process is not None:
            raise IllegalStateException("ackfsm.run() is not for the application under test; call it from the test")
        if not callable(application):
            raise InputError(
                f"ackfsm.run() calls the application with a connection, and {_quoted(application)} cannot be called"
            )
        self._leaving |= _queues(leaving)
        self.ran = True
        self.broker.use_in_this_thread()
        before = len(self.history.lines)
        with self.watchdog.running():
            self._run_until_drained(application)
        self._check_work(before)

    def _run_until_drained(self, application: AsyncApplication | Application) -> None:
        """Run the application until its queues are empty."""
        left, idle = -1, 0
        while not self._incarnation(application) or self._left():
            idle = 0 if 0 <= self._left() < left else idle + 1
            left = self._left()
            if idle > _MOST_IDLE_RUNS:
                raise NotDrained(
                    f"the application was started {self._incarnations} times and leaves {left:,} "
                    f"message{'' if left == 1 else 's'} in {named(self._queues) or 'no queue'}"
                )

    def _check_work(self, before: int) -> None:
        """Raise :class:`InputError` if, without a fault, the application has had nothing to do."""
        lines = self.history.lines[before:]
        if self.fault_run.point is None and not any(
            line["event"] in _WORK and line["process"] in self.clients for line in lines
        ):
            idle = f"It consumes from {named(self._queues) or 'no queue'}, where nothing was"
            reason = ". ".join(self.leftovers()) or idle
            raise InputError(
                f"nothing was tested: in ackfsm.run() the application has neither received nor sent a message. {reason}"
            )

    def processed(self, message: Message | AsyncMessage | str) -> None:
        """Report that the work on ``message`` is complete and will not be undone: a row is committed.

        In a test that calls this, nothing else counts as processing.  Otherwise a message counts as processed when the
        application acknowledges it, asks for the next one, or commits, recovers or closes the session.
        """
        if self._process is not None:
            self._process.check()
        ident = self._known(message)
        self.fault_run.by_application = True
        self.broker.log(f"{APPLICATION}-{self._incarnations}", "processed", message=ident)
        self.processed_times.add(self.history.lines[-1]["t"])
        listening = self._process is not None and self._process.listening > 0
        may = self._may(throwing=listening)
        self._record("processed", "application", "consumer", ident, may, by_application=True)
        if self._process is not None:
            self._process.check()

    def receive_all(self, queue: str) -> list[Message]:
        """Return all messages of ``queue``, received outside the application and without faults."""
        self._collected.add(queue)
        self.broker.use_in_this_thread()
        taken = []
        with self.broker.connect(_COLLECTOR) as connection:
            session = connection.session(consumption="receive")
            consumer = session.consumer(queue)
            while (message := consumer.receive(None)) is not None:
                taken.append(message)
                session.finish_processing()
                if message.copy.facts.acknowledgeable:
                    message.acknowledge()
            if session.transacted:
                session.commit()
        return taken

    def leftovers(self) -> list[str]:
        """A sentence for each queue in which messages are left that should not be."""
        self.broker.use_in_this_thread()
        return (
            messages_left(self.broker, self._queues, self._collected, self._leaving) if self.ran or self._sent else []
        )

    def take_what_stays(self) -> None:
        """Empty the queues in which messages may stay, so that the history has an end."""
        for name in sorted(self._leaving):
            if self.broker.queue(name).length:
                self.receive_all(name)

    def _known(self, message: object) -> str:
        """The id of ``message``; raises :class:`InputError` if it was never sent."""
        ident = message.id if isinstance(message, Message | AsyncMessage) else message
        if not isinstance(ident, str):
            raise InputError(f"ackfsm.processed() takes a message or its id, not {_quoted(message)}")
        ids = {str(line["message"]) for line in self.history.lines if line["event"] == "send"}
        if ident not in ids:
            raise InputError(
                f"ackfsm.processed(): no message {_quoted(ident)} was sent{meant(ident, ids, quotes=True)}"
            )
        return ident

    # Processes

    def _incarnation(self, application: AsyncApplication | Application) -> bool:
        """Run one process of the application; whether it returned."""
        self._incarnations += 1
        process = self._process = Process(
            self.broker, f"{APPLICATION}-{self._incarnations}", self._before_send, self.watchdog
        )
        try:
            with _never_awaited() as unawaited:
                returned = self._live(process, application)
        finally:
            self.configurations |= process.configurations()
            self._queues |= process.queues()
            self.clients |= process.clients()
            self._process = None
        if not self.broker.running:
            self.broker.restart()
        self.broker.loop.run_to_quiescence()
        if process.last_time is not None:
            self.crashes.append((process.clients(), process.last_time, self.history.lines[-1]["t"]))
        if unawaited and returned:
            raise InputError(f"{unawaited[0]}: what it would do was not done; write await before the call")
        return returned

    def _live(self, process: Process, application: AsyncApplication | Application) -> bool:
        try:
            self._work(process, application)
        except ProcessCrashed:
            return False
        except (Exception, asyncio.CancelledError, BaseExceptionGroup) as error:
            if process.dead:
                return False
            by_the_engine = _by_the_engine(error)
            if process.stopped and (by_the_engine or isinstance(error, asyncio.CancelledError)):
                return True
            if not (self.fault_run.injected and by_the_engine):
                raise
            process.crash()
        return not process.dead

    def _work(self, process: Process, application: Callable[[Any], object]) -> None:
        """Call the application, then run its listeners until the queues are empty."""
        is_for_tasks = is_asynchronous(application)
        if is_for_tasks:
            refuse_nesting(None)
        connection: Any = process.connect_tasks() if is_for_tasks else process.connect()
        returned = application(connection)
        if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
            raise InputError(
                f"the application is a generator ({type(returned).__name__}), of which nothing runs; take yield out"
            )
        if inspect.isawaitable(returned):
            refuse_nesting(returned)
            if not is_for_tasks:
                process.make_asynchronous(connection, returned)
            run_tasks(
                process, self.watchdog, returned, lambda: bool(self._left_in(process.queues()) or process.listening)
            )
            return
        self.broker.loop.wait(lambda: not process.is_alive or not self._left_in(process.queues()))
        process.check()
        process.close()

    def _left(self) -> int:
        return self._left_in(self._queues)

    def _left_in(self, queues: set[str]) -> int:
        return sum(self.broker.queue(name).length for name in queues)

    # Events

    def _observe(self, event: BoundEvent, subject: Copy | Link) -> None:
        process = self._process
        if event.name == names.Event.PROCESSED and process is not None and process.dead:
            return  # the engine releases what a dead process had
        message = subject.message.id if isinstance(subject, Copy) else ""
        throwing = event.name in _DELIVERED and isinstance(subject, Copy) and _has_listener(subject)
        may = self._may(throwing=throwing) if not self.broker.loop.is_executing else frozenset[Fault]()
        self._record(event.name, event.agent, self._side(event, subject), message, may)

    def _side(self, event: BoundEvent, subject: Copy | Link) -> str:
        """Where an event happens that is no frame: at the machine that decides it."""
        if isinstance(subject, Link):
            return subject.kind
        owner = self.broker.specification.owner(event.name)
        side = self.broker.stepper.model.table.index_scope.get(owner.name if owner is not None else "")
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
        self._record("send_called", "application", "producer", "", _REJECTING)

    def _record(  # noqa: PLR0913 - the fields of an event
        self, event: str, agent: str, side: str, message: str, may: frozenset[Fault], *, by_application: bool = False
    ) -> None:
        """Trace an event, and inject the fault if this is its point."""
        fault_run, point = self.fault_run, self.fault_run.point
        counted = self._process is not None and not fault_run.injected
        self._number += counted
        traced = TraceEvent(self._number if counted else None, event, agent, side, message, by_application)
        self.trace.events.append(traced)
        if self._process is not None:
            self.watchdog.count_event()
        if counted and point is None:
            fault_run.steps.append((traced, may))
        elif counted and point is not None and point.number == self._number:
            fault_run.injected, fault_run.met = True, traced
            if fault_run.is_the_same:
                self._inject(point.fault)

    def _inject(self, fault: Fault) -> None:
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
            refusing = self._producer.queue
            self.fault_run.awaited = lambda: refusing.refuse_next
        elif fault in _THROWING:
            process.throws = True
            self.fault_run.awaited = lambda: process.throws
        else:
            process.lose()


_DELIVERED = frozenset({names.Event.DELIVERED_CLEAR, names.Event.DELIVERED_FLAGGED})


_WORK = frozenset({"delivered", "send"})
"""Events of the history that show that an application has done something."""

_NOT_STORED = frozenset({Outcome.OPEN, Outcome.REJECTED, Outcome.IN_DOUBT})


def _has_listener(copy: Copy) -> bool:
    consumer = None if copy.binding.receiver is None else copy.binding.receiver.consumer
    return consumer is not None and consumer.has_listener


def _quoted(given: object) -> str:
    """A text, quoted, or the type of another object."""
    return quoted(given, _NAMED) if isinstance(given, str) else f"an object of type {type(given).__name__}"


def _encoded(body: object) -> bytes:
    if isinstance(body, str):
        try:
            return body.encode()
        except UnicodeEncodeError:
            raise InputError(f"{_quoted(body)} is no body: half a character stands in it, which UTF-8 lacks") from None
    if not isinstance(body, bytes | bytearray | memoryview):
        raise InputError(f"a body is text or bytes, not {_quoted(body)}")
    return bytes(body)


def _queues(leaving: object) -> set[str]:
    if isinstance(leaving, str) or not isinstance(leaving, Iterable):
        raise InputError(f"leaving={_quoted(leaving)} is no list of queues; write leaving=[...]")
    names = list(leaving)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"leaving has {_quoted(name)}; it is a list of names of queues")
    return set(names)


@contextlib.contextmanager
def _never_awaited() -> Iterator[list[str]]:
    """Collect Python's warnings of coroutines that were never awaited; other warnings pass."""
    collected: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=f".*{_NEVER}", category=RuntimeWarning)
        try:
            yield collected
        finally:
            collected += [shown(str(each.message)) for each in caught if _NEVER in str(each.message)]
            others = [each for each in caught if _NEVER not in str(each.message)]
    for each in others:
        warnings.showwarning(each.message, each.category, each.filename, each.lineno, each.file, each.line)


_NEVER = "was never awaited"


def _by_the_engine(error: BaseException | None) -> bool:
    """Whether an error of the engine caused ``error``, or each error of a group."""
    while error is not None:
        if isinstance(error, BaseExceptionGroup):
            return all(_by_the_engine(each) for each in error.exceptions)
        if isinstance(error, JMSException):
            return True
        error = error.__cause__ or error.__context__
    return False
