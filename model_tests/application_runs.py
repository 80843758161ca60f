"""Run a program on an engine, and have it judged: by the application's books, by ``verify``, by the model."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ackfsm.engine import (
    AtOnce,
    Broker,
    BrokerStopped,
    Connection,
    Consumer,
    History,
    IllegalStateException,
    JMSException,
    Message,
    Producer,
    Sent,
    Session,
    Shuffled,
    Stuck,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine._core import Session as Side
from ackfsm.engine._parts import Copy
from ackfsm.engine._wiring import Event, Role
from ackfsm.journal import Crashable
from ackfsm.terms import Configuration
from model_tests import application_programs as programs
from model_tests._tables import shipped
from model_tests.application_books import Books, Item, Terms, Transaction, Wrong
from model_tests.application_programs import Program, Sender, Strike, Worker
from model_tests.application_yardstick import Yardstick
from model_tests.engine_refinement import DEAD_LETTERS, MESSAGES, Refinement

__all__ = ["DISCONNECTED", "HALVES", "INSIDE", "NESTED", "OTHER", "Failure", "Molds", "Report", "Run", "perform"]

_STOPS = frozenset({"broker_crash", "broker_kill", "journal_failure"})
_MILD = frozenset({"listener_exception", "rejection"})
"""Of what is logged as a fault, what takes nothing from anybody."""

DISCONNECTED = "acknowledged into a transaction while disconnected"
OTHER = "another message was handed over than was acknowledged"
HALVES = "nobody knows of a commit of consumption and sends whether it was executed"
INSIDE = "a listener was called inside commit() or rollback() of its session"
NESTED = "a listener was called while another one of the session was busy"

_AHEAD = frozenset({"released", "awaiting_to_hand_over"})

ATTEMPTS = 3
"""The model tells no more delivery attempts apart."""

_MICROSECONDS = 60_000
_MANY = 20_000


@dataclasses.dataclass(frozen=True)
class Failure:
    """What is wrong: who says so, and what.

    ``judge`` is ``books``, ``verify``, ``model``, ``raised`` or ``unobserved``; ``traces`` are those
    of known defects that the run has (:mod:`model_tests.application_known`).
    """

    judge: str
    text: str
    traces: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.judge}: {self.text}"


@dataclasses.dataclass
class Report:
    """What a run did: events of the tables, feats of the application; the configurations of its sessions."""

    failure: Failure | None
    events: Counter[str]
    feats: set[str]
    sending: list[Configuration]
    consuming: list[Configuration]
    is_modelled: bool


class Molds:
    """Brokers after which others are made, so that the tables are read once; and what judges their logs."""

    def __init__(self, specification: Any = None, kind: type[Broker] = Broker, *, thorough: bool = False) -> None:
        self.specification = specification or shipped()
        self.kind = kind
        self.yardstick = Yardstick(shipped(), thorough=thorough)
        self._mold: Broker | None = None

    def broker(self, *args: Any, **settings: Any) -> Broker:
        """A broker of the kind that is tested."""
        if self._mold is None:
            self._mold = Broker(specification=self.specification)
        return self.kind(*args, like=self._mold, **settings)


class _Log(History):
    """The engine's log, which counts faults in the books as they are logged."""

    def __init__(self, configuration: Configuration, books: Books) -> None:
        super().__init__(configuration)
        self._books = books

    def add(self, now: int, process: str, event: str, **fields: object) -> None:
        """One line."""
        if event == "fault" and fields.get("fault") not in _MILD:
            self._books.faults += 1
            self._books.stops += fields.get("fault") in _STOPS
        self._books.refusals += fields.get("fault") == "rejection"
        super().add(now, process, event, **fields)


class _Client:
    """A sender or a worker, with its connection if it has one."""

    def __init__(self, run: Run, name: str, role: Sender | Worker) -> None:
        self.run, self.name, self.role = run, name, role
        self.lives = 0
        self.connection: Connection | None = None
        self.terms: Terms
        self.producer: Producer | None = None
        self.consumers: list[Consumer] = []
        self.unacknowledged: list[Message] = []
        self.in_doubt: list[Item] = []
        self.throws = self.listening = 0
        self.ending = ""
        """``commit`` or ``rollback`` as long as that call has not returned."""

    @property
    def mode(self) -> tuple[str, str]:
        """Acknowledgement mode and consumption."""
        if isinstance(self.role, Worker):
            return self.role.ack_mode, self.role.consumption
        return self.run.sending_mode(transacted=self.role.transacted)

    @property
    def output(self) -> str | None:
        """Where it sends to."""
        return self.role.output if isinstance(self.role, Worker) else self.role.queue

    def open(self) -> Session:
        """Its session, made if it has none."""
        if self.connection is not None and not self.session.closed:
            return self.session
        self.lives += 1
        self.consumers, self.unacknowledged, self.producer = [], [], None
        mode, consumption = self.mode
        self.connection = self.run.broker.connect(f"{self.name}-{self.lives}")
        session = self.connection.session(mode, consumption=consumption)
        self.terms = Terms(session.configuration)
        if self.output is not None:
            self.producer = session.producer(self.output, on_outcome=self.run.heard_of)
            self.run.took(self.producer, session.configuration)
        for queue in self.role.queues if isinstance(self.role, Worker) else ():
            if self.terms.unacknowledged or self.terms.forgets(session.configuration.delivery_mode):
                self.run.books.lossy.add(queue)
            listener = functools.partial(self.listen, len(self.consumers)) if consumption == "listener" else None
            consumer = session.consumer(queue, listener=listener)
            self.consumers.append(consumer)
            self.run.books.opened(consumer)
            self.run.took(consumer, session.configuration)
        return session

    @property
    def session(self) -> Session:
        """Its session."""
        return self.opened.sessions[-1]

    @property
    def opened(self) -> Connection:
        """Its connection, which it has."""
        assert self.connection is not None
        return self.connection

    @property
    def is_open(self) -> bool:
        """Whether it has a session."""
        return self.connection is not None and bool(self.connection.sessions) and not self.session.closed

    # Sending

    def send(self, *, mode: str | None = None, of: Item | None = None) -> None:
        """Send one message, as the effect ``of`` another."""
        run, books = self.run, self.run.books
        if self.producer is None or not run.may_send():
            return
        session, terms, queue = self.session, self.terms, self.producer.queue
        number = len(books.items) + 1
        delivery = (
            session.configuration.delivery_mode if mode is None else type(session.configuration.delivery_mode)(mode)
        )
        item = Item(
            id=f"m{number}",
            queue=queue.name,
            number=number,
            lane=(session.name, queue.name, delivery),
            mode=delivery,
            body=f"body {number}".encode(),
            headers={"number": number, "of": of.id if of else None},
            terms=terms,
            stored=terms.stores(delivery) and queue.durable,
            forgotten=terms.forgets(delivery),
            stops=books.stops,
            transaction=books.transaction(session.name, terms),
            input=of,
        )
        books.sends(item)
        run.sending[dataclasses.replace(session.configuration, delivery_mode=delivery)] = None
        known = item.id.encode() if session.configuration.duplicate_detection else None
        try:
            item.sent = self.producer.send(
                item.body, item.headers, message_id=item.id, delivery_mode=mode, duplicate_id=known
            )
        except (Stuck, BrokerStopped):
            if not self.session.closed:
                raise
        except JMSException:
            run.feats.add("send raised")
            if item.transaction is not None:
                item.transaction.outputs.remove(item)
                item.transaction = None
        if item.transaction is None:
            self.in_doubt.append(item)

    def resend(self) -> None:
        """Send again what is in doubt; the tables may refuse it."""
        self.open()
        if self.producer is None:
            return
        for item in self.in_doubt:
            if item.sent is not None and item.sent.outcome == "in_doubt" and not item.resent:
                with self.run.answers(self):
                    item.resent = True
                    self.producer.resend(item.sent)
                    self.run.feats.add("resent")
                if self.terms.transacted:
                    self.end("commit")

    # Consuming

    def receive(self, consumer: Consumer, timeout: float | None) -> Message | None:
        """The next message, booked."""
        books = self.run.books
        faults = books.faults
        message = consumer.receive(timeout)
        if books.faults != faults and self.terms.before_hand_over:
            books.interrupted += books.faults - faults
        if message is not None:
            self.book(message, consumer, faults)
        return message

    def book(self, message: Message, consumer: Consumer, faults: int) -> Item | None:
        """Write into the books that the application has ``message``."""
        if message.redelivered:
            self.run.feats.add("redelivered")
        if self.run.brokers > 1:
            self.run.feats.add("delivered by another broker")
        self.run.feats.add("delivered")
        connected = message.consumer.incoming.parts[Role.CONSUMER].of("consumer_link") == "up"
        return self.run.books.received(message, self.session.name, consumer, self.terms, faults if connected else -1)

    def listen(self, number: int, message: Message) -> None:
        """The listener."""
        if self.listening:
            self.run.traces.add(NESTED)
        if self.ending and not self.listening:
            self.run.traces.add(INSIDE)
        self.listening += 1
        try:
            self._listen(number, message)
        except (JMSException, _Thrown):
            raise
        except Exception as error:
            self.run.noted = self.run.noted or error
            raise
        finally:
            self.listening -= 1

    def _listen(self, number: int, message: Message) -> None:
        books = self.run.books
        consumer = self.consumers[number] if number < len(self.consumers) else self.session.consumers[-1]
        item = self.book(message, consumer, books.faults if not self.terms.before_hand_over else -1)
        if item is None:
            return
        if self.role_output():
            self.send(of=item)
        if self.throws:
            self.throws -= 1
            books.thrown(item, self.terms)
            raise _Thrown
        if isinstance(self.role, Worker) and self.role.at_once:
            self.finish(message)
        else:
            self.unacknowledged.append(message)
        books.processed(item, self.terms)

    def role_output(self) -> bool:
        """Whether each message that it consumes has an effect."""
        return isinstance(self.role, Worker) and self.role.output is not None and not self.session.closed

    def finish(self, message: Message) -> None:
        """Acknowledge ``message``, or commit."""
        if self.terms.transacted:
            self.end("commit")
        else:
            self.acknowledge(message)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge it, and book how that went."""
        item = self.run.books.items.get(message.id)
        if item is None or self.session.closed:
            return
        try:
            message.acknowledge()
        except (Stuck, BrokerStopped):
            if not self.session.closed:
                raise
        except IllegalStateException:
            if self.session.closed:
                self.run.books.died(item)
            return
        except JMSException:
            self.run.books.acknowledged(item, self.terms, doubt=True)
        else:
            self.run.books.acknowledged(item, self.terms, doubt=False)
        if self.session.closed:
            self.run.books.died(item)
        self.run.feats.add("acknowledged")

    def end(self, how: str) -> None:
        """``commit`` or ``rollback``, booked."""
        books, session = self.run.books, self.session
        transaction = books.transaction(session.name, self.terms)
        if transaction is None or session.closed:
            return
        self.ending = how
        if how == "commit":
            transaction.end = "committing"
        else:
            self._ended(transaction, "rolled_back")  # what comes from now on is of the next one
        try:
            session.commit() if how == "commit" else session.rollback()
        except (Stuck, BrokerStopped):
            if not self.session.closed:
                raise
        except TransactionRolledBackException:
            self._ended(transaction, "rolled_back")
        except JMSException:
            self._ended(transaction, "in_doubt")
        else:
            self._ended(transaction, "committed")
        finally:
            self.ending = ""

    def _ended(self, transaction: Transaction, end: str) -> None:
        if self.ending == "rollback" and end != "rolled_back":
            return
        if end == "in_doubt" and transaction.inputs and transaction.outputs:
            self.run.traces.add(HALVES)
        both = "consumption and sends" if transaction.inputs and transaction.outputs else ""
        what = both or ("consumption" if transaction.inputs else "sends" if transaction.outputs else "nothing")
        self.run.feats.add(f"{end} {what}")
        if len(transaction.inputs) > 1:
            self.run.feats.add(f"{end} several inputs")
        self.run.books.ends(transaction, end)
        self.unacknowledged.clear()

    def gone(self) -> None:
        """Its process or its session is no more."""
        if self.connection is not None and self.connection.sessions:
            if self.ending == "commit":
                self.run.books.in_doubt(self.session.name)
            self.run.books.gone(self.session.name)

    # Its end

    def die(self) -> None:
        """The process dies."""
        if self.is_open:
            self.gone()
            self.opened.crash()

    def close(self) -> None:
        """Close the connection."""
        if not self.is_open:
            return
        self.run.books.closes += 1
        with self.run.answers(self):
            self.opened.close()
        self.gone()


class _Thrown(Exception):  # noqa: N818 - what the application throws
    """The listener throws."""


class Run:
    """One run of a program."""

    def __init__(self, program: Program, molds: Molds, *, observed: bool = True) -> None:
        self.program, self.molds, self.observed = program, molds, observed
        self.books = Books(keeps_order=self._keeps_order())
        self.feats: set[str] = set()
        self.events: Counter[str] = Counter()
        self.traces: set[str] = set()
        self.noted: Exception | None = None
        self.sending: dict[Configuration, None] = {}
        self.consuming: dict[Configuration, None] = {}
        self.brokers = 1
        self._counting, self._aimed_at = 0, ""
        self._striking: Callable[[], None] | None = None
        self._released: dict[Side, list[Copy]] = {}
        self.first_configuration = self.configuration(*self._first_mode())
        self.history = _Log(self.first_configuration, self.books)
        self.broker = self._start(None)
        self.refinement: Refinement | None = None
        if observed and program.is_modelled and self.first_configuration.max_delivery_attempts <= ATTEMPTS:
            self.refinement = Refinement(self.broker, self.first_configuration)
        self._observe()
        self.clients = [
            *(_Client(self, f"s{n}", role) for n, role in enumerate(program.senders)),
            *(_Client(self, f"w{n}", role) for n, role in enumerate(program.workers)),
        ]
        for client in self.clients:
            client.open()

    # What stands

    @property
    def is_modelled(self) -> bool:
        """Whether the model still has what is done: one broker, one session on each side."""
        return self.program.is_modelled and self.brokers == 1

    def _first_mode(self) -> tuple[str, str]:
        worker = self.program.workers[0]
        return worker.ack_mode, worker.consumption

    def _keeps_order(self) -> bool:
        settings = programs.configured(self.program.profile, dict(self.program.settings))
        assert settings is not None
        return self.program.profile != "activemq" and settings.redelivery_mark_persisted

    def configuration(self, mode: str, consumption: str) -> Configuration:
        """That of sessions of this mode."""
        found = programs.configured(
            self.program.profile, {**self.program.settings, "ack_mode": mode, "consumption": consumption}
        )
        assert found is not None, f"{self.program.profile} has no {mode} by {consumption} with these settings"
        return found

    def sending_mode(self, *, transacted: bool) -> tuple[str, str]:
        """A mode for a session that only sends."""
        if self.program.is_modelled:
            return self._first_mode()
        modes = programs.modes(self.program.profile, self.program.settings)
        return next(each for each in modes if (each[0] == "SESSION_TRANSACTED") == transacted)

    def _start(self, journal: Any) -> Broker:
        pace = {"AtOnce": AtOnce, "Timed": Timed, "Shuffled": Shuffled}
        return self.molds.broker(
            self.program.profile,
            journal=journal,
            pace=eval(self.program.pace, dict(pace)),  # noqa: S307 - one of the paces
            seed=self.program.seed,
            history=self.history,
            **self.program.settings,
        )

    def may_send(self) -> bool:
        """Whether the model has room for another message."""
        return not self.program.is_modelled or len(self.books.items) < MESSAGES

    def heard_of(self, sent: Sent) -> None:
        """The outcome of a send."""
        item = self.books.items[sent.id]
        item.sent = sent

    def took(self, face: Producer | Consumer, configuration: Configuration) -> None:
        """A session was opened."""
        (self.consuming if isinstance(face, Consumer) else self.sending)[configuration] = None
        if self.refinement is not None:
            self.refinement.take(face)

    @contextlib.contextmanager
    def answers(self, client: _Client) -> Iterator[None]:
        """Errors of the API are answers, but for a call that can never return while its process lives."""
        try:
            yield
        except (Stuck, BrokerStopped):
            if not client.session.closed:
                raise
        except JMSException as error:
            self.feats.add(type(error).__name__)

    # Observing

    def _observe(self) -> None:
        self.broker.observe(self._heard if self.observed else None)

    def _heard(self, event: Event, subject: Copy | Side) -> None:
        self.events[event.name] += 1
        if self.refinement is not None:
            self.refinement._heard(event, subject)  # noqa: SLF001 - it stands in for its observer
        self._trace(event, subject)
        if self._striking is not None and self._aimed_at in {"", event.name}:
            self._counting -= 1
            if self._counting <= 0:
                striking, self._striking = self._striking, None
                striking()

    def _trace(self, event: Event, subject: Copy | Side) -> None:
        """Leave traces of known defects."""
        if not isinstance(subject, Copy) or event.name not in {"acknowledge", "delivered_clear", "delivered_flagged"}:
            return
        session = subject.scopes[2]
        if not isinstance(session, Side) or subject.route.incoming is None:
            return
        if event.name == "acknowledge":
            part = session.parts[Role.CONSUMER]
            if part.of("consumer_link") != "up" and part.of("consumption") != "idle":
                self.traces.add(DISCONNECTED)
            self._released.setdefault(session, []).append(subject)
        else:
            waiting = [copy for copy in self._released.pop(session, ()) if copy is not subject]
            if any("delivery" in _names(copy) and copy.of("delivery") in _AHEAD for copy in waiting):
                self.traces.add(OTHER)
                self._released[session] = waiting

    # Phases

    def go(self) -> Failure | None:
        """Run it; what is wrong with it, if anything is."""
        try:
            for phase in self.program.phases:
                self._phase(phase)
                self._look()
            self._striking = None
            self._drain()
            self._look()
            self.books.check()
            if self.refinement is not None:
                self.refinement.check()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return self._failed(error)
        return None

    def _look(self) -> None:
        if self.noted is not None:
            raise self.noted
        if self.books.wrong:
            raise Wrong("\n".join(dict.fromkeys(self.books.wrong)))
        if self.refinement is not None and self.refinement.refused is not None:
            self.refinement.check()

    def _failed(self, error: Exception) -> Failure:
        traces = frozenset(self.traces)
        if isinstance(error, Wrong):
            return Failure("books", str(error), traces)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if isinstance(error, AssertionError) and frame.filename.endswith("engine_refinement.py"):
            return Failure("model", str(error), traces)
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        return Failure("raised", f"{type(error).__name__}: {error} ({place})", traces)

    def _phase(self, phase: programs.Phase) -> None:  # noqa: C901 - one case for each kind
        match phase:
            case programs.Send():
                client = self.clients[phase.who % len(self.program.senders)]
                client.open()
                with self._struck(phase.strike, client):
                    self._send(client, phase)
            case programs.Consume():
                client = self._worker(phase.who)
                client.open()
                with self._struck(phase.strike, client):
                    self._consume(client, phase)
            case programs.Resend():
                self.clients[phase.who % len(self.program.senders)].resend()
            case programs.Wait():
                client = self.clients[phase.who % len(self.program.senders)]
                if client.is_open and client.producer is not None:
                    with self._struck(phase.strike, client), self.answers(client):
                        client.producer.wait()
            case programs.Recover():
                self._recover(self._worker(phase.who))
            case programs.Throw():
                self._worker(phase.who).throws = phase.number
            case programs.Fault():
                self._fault(phase.kind, self.clients[phase.who % len(self.clients)])
            case programs.Close():
                self._close(self.clients[phase.who % len(self.clients)], returns=phase.returns)
            case programs.Restart():
                self._restart(phase.how)
            case programs.Refuse():
                self.broker.queue(phase.queue).refuse_next = phase.number
            case programs.Rest():
                self._rest(phase.steps)

    def _worker(self, who: int) -> _Client:
        return self.clients[len(self.program.senders) + who % len(self.program.workers)]

    def _send(self, client: _Client, phase: programs.Send) -> None:
        for number in range(phase.number):
            if client.session.closed:
                return
            client.send(mode="NON_PERSISTENT" if phase.mixed and number % 2 and self._may_be_mixed() else None)
        if client.terms.transacted and phase.end:
            client.end(phase.end)

    def _may_be_mixed(self) -> bool:
        mixed = {**self.program.settings, "delivery_mode": "NON_PERSISTENT"}
        return not self.program.is_modelled and programs.configured(self.program.profile, mixed) is not None

    def _consume(self, client: _Client, phase: programs.Consume) -> None:  # noqa: C901 - one case after the other
        listens = client.mode[1] == "listener"
        last = None
        for number in range(phase.number):
            if client.session.closed:
                return
            if listens:
                self._rest(4)
                continue
            message = client.receive(client.consumers[number % len(client.consumers)], phase.timeout)
            if message is None or client.session.closed:
                continue
            last = message
            item = self.books.items.get(message.id)
            if client.role_output() and item is not None:
                client.send(of=item)
            if phase.end == "each":
                client.finish(message)
        if client.session.closed:
            return
        if listens:
            last = client.unacknowledged[-1] if client.unacknowledged else None
        if phase.end == "rollback":
            self._recover(client)
        elif phase.end != "none" and last is not None:
            client.finish(last)

    def _recover(self, client: _Client) -> None:
        if not client.is_open:
            return
        if client.terms.transacted:
            client.end("rollback")
            return
        with self.answers(client):
            client.session.recover()
        self.books.recovered(client.session.name)
        client.unacknowledged.clear()

    def _fault(self, kind: str, client: _Client) -> None:
        if kind in {"crash", "kill", "fail_journal"}:
            if self.broker.running:
                getattr(self.broker, kind)()
        elif not client.is_open:
            return
        elif kind == "lose":
            client.opened.lose()
        else:
            client.die()
            if self.is_modelled:
                client.open()

    def _close(self, client: _Client, *, returns: bool) -> None:
        if self.is_modelled and not self._is_fresh(client):
            return
        client.close()
        if returns or self.is_modelled:
            client.open()

    def _is_fresh(self, client: _Client) -> bool:
        """Whether a session that sends has nothing under way, so that another is like it to the model."""
        if client.producer is None or not client.is_open:
            return True
        side = client.producer._out.session  # noqa: SLF001 - read only
        copies = [item.sent.copy for item in self.books.items.values() if item.sent is not None and item.sent.copy]
        idle = all(part.state == part.automaton.initial for part in side.parts.values())
        return idle and all(c.of("request") != "in_flight" and c.of("response") == "none" for c in copies)

    @contextlib.contextmanager
    def _struck(self, strike: Strike | None, client: _Client) -> Iterator[None]:
        """A fault while something is done."""
        if strike is None:
            yield
            return

        def striking() -> None:
            self.feats.add("struck inside commit" if client.ending == "commit" else "struck inside")
            if strike.fault == "die" and self.is_modelled:
                return self._fault("lose", client)
            return self._fault(strike.fault, client)

        if isinstance(self.broker.engine.pace, Timed) and not strike.on:
            self.broker.engine.at(self.broker.now + strike.after * _MICROSECONDS, striking)
            yield
        else:
            self._counting, self._aimed_at, self._striking = strike.after, strike.on, striking
            try:
                yield
            finally:
                self._striking = None

    def _rest(self, steps: int | None) -> None:
        for _ in range(_MANY if steps is None else steps):
            if not self.broker.engine.go_on():
                return
        if steps is None:
            raise Wrong(f"the engine does not come to rest in {_MANY:,} steps")

    def _restart(self, how: str) -> None:
        """Everybody ends, and another broker opens the journal."""
        if self.refinement is not None:
            self.refinement.check()
            self.refinement = None
        before = self.broker
        held = any(queue.length for queue in before._queues.values())  # noqa: SLF001 - read only
        if how == "close":
            for client in self.clients:
                client.close()
            before.close()
            before.log("nemesis", "fault", fault="broker_kill")
        else:
            self._fault(how, self.clients[0])
            for client in self.clients:
                client.die()
        journal = before.storage.journal
        assert isinstance(journal, Crashable)
        before.observe(None)
        self._bury(before)
        self.broker = self._start(journal.kill())
        self.broker.engine.pace.now = before.now
        self.broker._transaction = max(self.broker._transaction, before._transaction)  # noqa: SLF001 - ids of a history are unique
        self.brokers += 1
        self.broker.log("nemesis", "recovered", fault="broker_kill")
        self._observe()
        if held:
            self.feats.add("another broker with messages")

    def _bury(self, broker: Broker) -> None:
        for sent in broker.dead_letters:
            if sent.id in self.books.items:
                self.books.items[sent.id].dead = True

    # The end

    def _drain(self) -> None:
        pace = self.broker.engine.pace
        if isinstance(pace, Timed):
            pace.heal()
        for client in self.clients:
            client.throws = 0
            if self.program.ending == "die" and not self.is_modelled:
                client.die()
        self._rest(None)
        for client in self.clients:
            client.close()
        self._rest(None)
        if not self.broker.running:
            self.broker.restart()
        for queue in sorted(self.broker._queues.keys() - {DEAD_LETTERS}):  # noqa: SLF001 - read only
            self._empty(queue)
        self._rest(None)
        self._bury(self.broker)
        if any(worker.ack_mode == "PRE_ACKNOWLEDGE" for worker in self.program.workers):
            self.books.interrupted += self.books.faults
        self.broker.drained()

    def _empty(self, queue: str) -> None:
        """Fresh sessions take all that is left."""
        mode, consumption = self._draining_mode()
        drainer = _Client(self, f"d{queue}", Worker((queue,), None, mode, consumption))
        self.clients.append(drainer)
        for _ in range(len(self.books.items) + 2):
            drainer.open()
            if consumption == "receive":
                while (message := drainer.receive(drainer.consumers[0], None)) is not None:
                    drainer.finish(message)
            else:
                self._rest(None)
            drainer.close()
            if not self.broker.queue(queue).length:
                return
        raise Wrong(f"queue {queue} holds {self.broker.queue(queue).length} messages, and gives them to nobody")

    def _draining_mode(self) -> tuple[str, str]:
        if self.program.is_modelled:
            return self._first_mode()
        modes = programs.modes(self.program.profile, self.program.settings)
        return min(modes, key=lambda each: (each[1] != "receive", _LEAST_HARM.index(each[0])))


_LEAST_HARM = (
    "CLIENT_ACKNOWLEDGE",
    "INDIVIDUAL_ACKNOWLEDGE",
    "SESSION_TRANSACTED",
    "EXPLICIT_CLIENT_ACKNOWLEDGE",
    "AUTO_ACKNOWLEDGE",
    "DUPS_OK_ACKNOWLEDGE",
    "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE",
    "PRE_ACKNOWLEDGE",
    "NO_ACKNOWLEDGE",
)


def _names(copy: Copy) -> set[str]:
    return {fsm.name for fsm in copy.automaton.fsms}


def perform(program: Program, molds: Molds, *, twice: bool = True, verified: bool = True) -> Report:
    """Run ``program`` and judge it.

    With ``twice`` it runs again unobserved, for then an engine takes another, faster way, and must tell the same; not
    where a fault strikes between two events, which only an observer can see.
    """
    run = Run(program, molds)
    failure = run.go()
    configurations = list(dict.fromkeys((*run.sending, *run.consuming)))
    if failure is None and verified:
        many = any(len(set(worker.queues)) < len(worker.queues) for worker in program.workers)
        said = molds.yardstick.judge(
            run.history,
            configurations,
            run.first_configuration,
            many=many,
            without=run.books.stale,
            alike=len(run.consuming) == 1,
        )
        failure = None if said is None else Failure("verify", said, frozenset(run.traces))
    if failure is None and twice and not _is_struck_between(program):
        again = Run(program, molds, observed=False)
        failure = again.go() or _different(run, again)
    return Report(failure, run.events, run.feats, list(run.sending), list(run.consuming), program.is_modelled)


def _is_struck_between(program: Program) -> bool:
    strikes = [strike for phase in program.phases if (strike := getattr(phase, "strike", None)) is not None]
    return any(strike.on or not program.pace.startswith("Timed") for strike in strikes)


def _different(run: Run, again: Run) -> Failure | None:
    for one, other in zip(run.history.lines, again.history.lines, strict=False):
        if one != other:
            return Failure("unobserved", f"{one} was told where nobody observed as {other}", frozenset(run.traces))
    if len(run.history.lines) != len(again.history.lines):
        return Failure("unobserved", "more was told to whom observed, or less", frozenset(run.traces))
    return None
