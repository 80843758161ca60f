"""The senders and workers of an application program: what each call does is written into the books."""

from __future__ import annotations

import dataclasses
import functools

from ackfsm.engine import (
    BrokerStopped,
    Connection,
    Consumer,
    IllegalStateException,
    JMSException,
    Message,
    Producer,
    Session,
    Stuck,
    TransactionRolledBackException,
)
from ackfsm.engine.core.model import Role
from model_tests.applications.books import Item, Terms, Transaction
from model_tests.applications.programs import Sender, Worker
from model_tests.applications.testbed import Testbed

__all__ = ["Client"]


class _Thrown(Exception):  # noqa: N818 - what the application throws
    """The listener throws."""


class Client:
    """A sender or a worker, with its connection if it has one."""

    def __init__(self, bed: Testbed, name: str, role: Sender | Worker) -> None:
        self.bed, self.name, self.role = bed, name, role
        self.lives = 0
        self.connection: Connection | None = None
        self.terms: Terms
        self.producer: Producer | None = None
        self.consumers: list[Consumer] = []
        self.unacknowledged: list[Message] = []
        self.in_doubt: list[Item] = []
        self.throws = 0
        self.ending = ""
        """``commit`` or ``rollback`` as long as that call has not returned."""

    @property
    def mode(self) -> tuple[str, str]:
        """Acknowledgement mode and consumption."""
        if isinstance(self.role, Worker):
            return self.role.ack_mode, self.role.consumption
        return self.bed.sending_mode(transacted=self.role.transacted)

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
        self.connection = self.bed.broker.connect(f"{self.name}-{self.lives}")
        session = self.connection.session(mode, consumption=consumption)
        self.terms = Terms(session.configuration)
        if self.output is not None:
            self.producer = session.producer(self.output, on_outcome=self.bed.heard_of)
            self.bed.took(self.producer, session.configuration)
        for queue in self.role.queues if isinstance(self.role, Worker) else ():
            if self.terms.unacknowledged or self.terms.forgets(session.configuration.delivery_mode):
                self.bed.books.lossy.add(queue)
            listener = functools.partial(self.listen, len(self.consumers)) if consumption == "listener" else None
            consumer = session.consumer(queue, listener=listener)
            self.consumers.append(consumer)
            self.bed.books.opened(consumer)
            self.bed.took(consumer, session.configuration)
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
        bed, books = self.bed, self.bed.books
        if self.producer is None or not bed.may_send():
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
        bed.sending[dataclasses.replace(session.configuration, delivery_mode=delivery)] = None
        known = item.id.encode() if session.configuration.duplicate_detection else None
        try:
            item.sent = self.producer.send(
                item.body, item.headers, message_id=item.id, delivery_mode=mode, duplicate_id=known
            )
        except (Stuck, BrokerStopped):
            if not self.session.closed:
                raise
        except JMSException:
            bed.feats.add("send raised")
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
                with self.bed.answers(self.session):
                    item.resent = True
                    self.producer.resend(item.sent)
                    self.bed.feats.add("resent")
                if self.terms.transacted:
                    self.end("commit")

    # Consuming

    def receive(self, consumer: Consumer, timeout: float | None) -> Message | None:
        """The next message, booked."""
        books = self.bed.books
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
            self.bed.feats.add("redelivered")
        if self.bed.brokers > 1:
            self.bed.feats.add("delivered by another broker")
        self.bed.feats.add("delivered")
        connected = message.consumer.receiver.groups[Role.CONSUMER].state_of("consumer_link") == "up"
        return self.bed.books.received(message, self.session.name, consumer, self.terms, faults if connected else -1)

    def listen(self, number: int, message: Message) -> None:
        """The listener."""
        try:
            self._listen(number, message)
        except (JMSException, _Thrown):
            raise
        except Exception as error:
            self.bed.noted = self.bed.noted or error
            raise

    def _listen(self, number: int, message: Message) -> None:
        books = self.bed.books
        consumer = self.consumers[number] if number < len(self.consumers) else self.session.consumers[-1]
        item = self.book(message, consumer, books.faults if not self.terms.before_hand_over else -1)
        if item is None:
            return
        self.send_output(item)
        if self.throws:
            self.throws -= 1
            books.thrown(item, self.terms)
            raise _Thrown
        if isinstance(self.role, Worker) and self.role.at_once:
            self.finish(message)
        else:
            self.unacknowledged.append(message)
        books.processed(item, self.terms)

    def send_output(self, of: Item) -> None:
        """Send the effect ``of`` a message, if its messages have one."""
        if isinstance(self.role, Worker) and not self.session.closed:
            self.send(of=of)

    def finish(self, message: Message) -> None:
        """Acknowledge ``message``, or commit."""
        if self.terms.transacted:
            self.end("commit")
        else:
            self.acknowledge(message)

    def acknowledge(self, message: Message) -> None:
        """Acknowledge it, and book how that went."""
        item = self.bed.books.items.get(message.id)
        if item is None or self.session.closed:
            return
        covered = self.bed.books.covered(item, self.session.name, self.terms)
        try:
            message.acknowledge()
        except (Stuck, BrokerStopped):
            if not self.session.closed:
                raise
        except IllegalStateException:
            if self.session.closed:
                self.bed.books.died(item)
            return
        except JMSException:
            self.bed.books.acknowledged(covered, self.terms, doubt=True)
        else:
            self.bed.books.acknowledged(covered, self.terms, doubt=False)
        if self.session.closed:
            self.bed.books.died(item)
        self.bed.feats.add("acknowledged")

    def end(self, how: str) -> None:
        """``commit`` or ``rollback``, booked."""
        books, session = self.bed.books, self.session
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
        both = "consumption and sends" if transaction.inputs and transaction.outputs else ""
        what = both or ("consumption" if transaction.inputs else "sends" if transaction.outputs else "nothing")
        self.bed.feats.add(f"{end} {what}")
        if len(transaction.inputs) > 1:
            self.bed.feats.add(f"{end} several inputs")
        self.bed.books.ends(transaction, end)
        self.unacknowledged.clear()

    def gone(self) -> None:
        """Its process or its session is no more."""
        if self.connection is not None and self.connection.sessions:
            if self.ending == "commit":
                self.bed.books.in_doubt(self.session.name)
            self.bed.books.gone(self.session.name)

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
        self.bed.books.closes += 1
        with self.bed.answers(self.session):
            self.opened.close()
        self.gone()
