"""The application's own books: what it sent and heard, what it received and acknowledged, and what must follow.

They read no table and know nothing of machines.  What they ask for is what JMS (and, where it says more, the vendor)
tells an application, with the settings that decide it in :class:`Terms`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ackfsm.engine import HeaderValue, Message, Outcome, Sent
from ackfsm.terms import (
    AckMode,
    AckScope,
    Configuration,
    Consumption,
    DeliveryCountFrom,
    DeliveryMode,
    DupsOkAcknowledgement,
    ListenerException,
    NonPersistentHandling,
    PreAcknowledgeBy,
    Profile,
    SendMode,
    TransactionJournalling,
    UnwindowedConfirm,
)

__all__ = ["Books", "Item", "Terms", "Transaction", "Wrong"]


class Wrong(AssertionError):  # noqa: N818 - a finding
    """What the books contradict."""


@dataclasses.dataclass(frozen=True)
class Terms:
    """What one session was told of its own acknowledgements and confirmations."""

    configuration: Configuration

    @property
    def transacted(self) -> bool:
        """Whether sends and acknowledgements wait for a commit."""
        return self.configuration.ack_mode is AckMode.SESSION_TRANSACTED

    @property
    def synced(self) -> bool:
        """Whether an answer of the broker waits for the disk."""
        if self.transacted:
            return self.configuration.journal_sync_transactional is True and self.atomic
        return self.configuration.journal_sync_non_transactional is True

    @property
    def atomic(self) -> bool:
        """Whether a transaction is one record (RabbitMQ: "atomicity is not guaranteed")."""
        return self.configuration.transaction_journalling is TransactionJournalling.ATOMIC

    @property
    def automatic(self) -> bool:
        """Whether the session acknowledges each message by itself."""
        mode, dups_ok = self.configuration.ack_mode, self.configuration.dups_ok_acknowledgement
        eager = mode is AckMode.DUPS_OK_ACKNOWLEDGE and dups_ok is DupsOkAcknowledgement.AUTOMATIC
        return mode is AckMode.AUTO_ACKNOWLEDGE or eager

    @property
    def before_hand_over(self) -> bool:
        """Whether a message is acknowledged before the application has it: at most once."""
        receives = self.configuration.consumption is Consumption.RECEIVE
        return self.configuration.ack_mode is AckMode.PRE_ACKNOWLEDGE or (self.automatic and receives)

    @property
    def unacknowledged(self) -> bool:
        """Whether the broker forgets a message as it sends it, or nobody can tell when."""
        mode = self.configuration.ack_mode
        return mode is AckMode.NO_ACKNOWLEDGE or (
            mode is AckMode.PRE_ACKNOWLEDGE and self.configuration.pre_acknowledge_by is PreAcknowledgeBy.BROKER
        )

    @property
    def by_application(self) -> bool:
        """Whether ``acknowledge()`` does something."""
        return not (
            self.transacted
            or self.automatic
            or self.before_hand_over
            or self.unacknowledged
            or self.configuration.ack_mode is AckMode.DUPS_OK_ACKNOWLEDGE
        )

    @property
    def answered(self) -> bool:
        """Whether the call that acknowledges waits for the broker."""
        unanswered = self.configuration.ack_mode is AckMode.EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE
        return self.transacted or (self.configuration.block_on_acknowledge and not unanswered)

    @property
    def counts_what_it_hands_over(self) -> bool:
        """Whether the broker is sure to count a hand-over before its acknowledgement.

        Artemis counts what is acknowledged, and the end of a consumer of Classic may leave no count.
        """
        late = self.configuration.delivery_count_from is DeliveryCountFrom.ACKNOWLEDGEMENT
        late |= not self.configuration.ended_consumer_marks_redelivered
        return not (late and self.configuration.ack_mode is AckMode.INDIVIDUAL_ACKNOWLEDGE)

    @property
    def proves(self) -> bool:
        """Whether a confirmation comes from the broker (Artemis' library gives one as it writes to the socket)."""
        settings = self.configuration
        by_library = settings.unwindowed_confirm is UnwindowedConfirm.SOCKET_WRITE and settings.publish_window is None
        return not (by_library and settings.send_mode is SendMode.ASYNCHRONOUS)

    def forgets(self, mode: DeliveryMode) -> bool:
        """Whether the broker passes messages of this delivery mode on to who is there and keeps nothing."""
        directly = self.configuration.non_persistent_handling is NonPersistentHandling.DIRECT and not self.transacted
        return mode is DeliveryMode.DIRECT or (mode is DeliveryMode.NON_PERSISTENT and directly)

    def stores(self, mode: DeliveryMode) -> bool:
        """Whether messages of this delivery mode outlive the broker's process, in a durable queue."""
        stored = self.configuration.non_persistent_handling is NonPersistentHandling.STORED
        return mode is DeliveryMode.PERSISTENT or (mode is DeliveryMode.NON_PERSISTENT and stored)


@dataclasses.dataclass(eq=False)
class Transaction:
    """One transaction of a session: what was received and sent in it, and how it ended."""

    session: str
    terms: Terms
    inputs: list[Item] = dataclasses.field(default_factory=list)
    outputs: list[Item] = dataclasses.field(default_factory=list)
    end: str = "open"
    """``open``, ``committing`` (as long as the call has not returned), ``committed``, ``rolled_back``, ``in_doubt``."""


@dataclasses.dataclass(eq=False)
class Item:
    """One message as its sender and its receivers know it."""

    id: str
    queue: str
    number: int
    lane: tuple[object, ...]
    mode: DeliveryMode
    body: bytes
    headers: Mapping[str, HeaderValue]
    terms: Terms
    stored: bool
    forgotten: bool
    stops: int
    """How often the broker had stopped when it was sent."""
    transaction: Transaction | None
    input: Item | None = None
    """What was received and led to it."""
    sent: Sent | None = None
    resent: bool = False
    thrown: bool = False
    """Whether a listener has ever thrown at it."""
    deliveries: int = 0
    last_count: int = 0
    counted: bool = True
    """Whether the broker is sure to have counted the last delivery, if the message comes again."""
    settled: bool = False
    """Whether the application has done all for the last delivery that makes it the last."""
    finished: _Finish | None = None
    held: _Held | None = None
    consumed_by: Transaction | None = None
    outputs: list[Item] = dataclasses.field(default_factory=list)
    dead: bool = False

    @property
    def promised(self) -> bool:
        """Whether somebody has told the sender that the broker has it."""
        if self.transaction is not None:
            return self.transaction.end == "committed"
        return self.terms.proves and self.sent is not None and self.sent.outcome is Outcome.CONFIRMED

    @property
    def accepted(self) -> bool:
        """Whether nothing but a fault could have kept it from the queue."""
        if self.transaction is not None:
            return self.promised
        return self.sent is not None and self.sent.outcome in {Outcome.CONFIRMED, Outcome.UNCONFIRMED}


@dataclasses.dataclass(frozen=True)
class _Finish:
    """The application was told that the message is done with; ``strong``: whatever happens afterwards."""

    how: str
    strong: bool


@dataclasses.dataclass(eq=False)
class _Held:
    """A delivery that is not acknowledged yet."""

    item: Item
    session: str
    consumer: object
    faults: int
    order: int
    thrown: bool = False


class Books:
    """Of one run.  ``faults`` counts all that struck, ``stops`` how often the broker's process or its object went."""

    def __init__(self, *, keeps_order: bool) -> None:
        self.items: dict[str, Item] = {}
        self.faults = 0
        self.stops = 0
        self.closes = 0
        self.interrupted = 0
        self.refusals = 0
        self.stale: set[str] = set()
        """What a library may have had all the time, and handed over when others had finished with it."""
        self.wrong: list[str] = []
        self.lossy: set[str] = set()
        """Queues of which somebody consumes without acknowledging."""
        self._keeps_order = keeps_order
        self._held: dict[str, list[_Held]] = {}
        self._open: dict[str, Transaction] = {}
        self._last: dict[tuple[object, ...], Item] = {}
        self._orders = 0
        self._opened: dict[object, int] = {}

    # What the application does

    def transaction(self, session: str, terms: Terms) -> Transaction | None:
        """The one that is open in ``session``, ``None`` if it is not transacted."""
        if not terms.transacted:
            return None
        return self._open.setdefault(session, Transaction(session, terms))

    def opened(self, consumer: object) -> None:
        """A consumer that is new."""
        self._opened[consumer] = self._orders

    def sends(self, item: Item) -> None:
        """The application is about to send it."""
        self.items[item.id] = item
        if item.transaction is not None:
            item.transaction.outputs.append(item)
        if item.input is not None:
            item.input.outputs.append(item)

    def received(self, message: Message, session: str, consumer: object, terms: Terms, faults: int) -> Item | None:
        """The application is given ``message``, by a call that began when ``faults`` had struck; -1 if by no broker.

        What the library still had when its connection broke is of no session that a broker knows.
        """
        item = self.items.get(message.id)
        if item is None:
            self._says(f"{message.id} was received and nobody sent it")
            return None
        self._as_it_was_sent(item, message)
        self._is_allowed(item, message, terms)
        self._in_order(item, message, consumer)
        item.deliveries += 1
        item.last_count = message.delivery_count
        item.counted = terms.counts_what_it_hands_over
        if faults < 0 and item.settled:
            return item  # somebody else is done with it
        item.settled = False
        self._orders += 1
        held = item.held = _Held(item, session, consumer, self.faults if faults >= 0 else faults, self._orders)
        self._take(held, terms, calm=faults == self.faults)
        return item

    def _take(self, held: _Held, terms: Terms, *, calm: bool) -> None:
        item = held.item
        item.consumed_by = None
        if terms.transacted:
            transaction = self.transaction(held.session, terms)
            assert transaction is not None
            transaction.inputs.append(item)
            item.consumed_by = transaction
        elif terms.unacknowledged or item.forgotten or terms.forgets(item.mode):
            item.settled = True
        elif terms.before_hand_over:
            item.settled = True
            if calm:
                self._finish(item, "acknowledged before it was handed over", terms)
        elif terms.by_application:
            self._held.setdefault(held.session, []).append(held)
        elif terms.configuration.ack_mode is AckMode.DUPS_OK_ACKNOWLEDGE:
            item.settled = True  # the session may acknowledge it at any time

    def processed(self, item: Item, terms: Terms) -> None:
        """A listener has returned."""
        if terms.automatic:
            item.settled = True

    def thrown(self, item: Item, terms: Terms) -> None:
        """A listener has thrown."""
        item.thrown = True
        if item.held is not None:
            item.held.thrown = True
        if terms.configuration.listener_exception is ListenerException.ACKNOWLEDGE and terms.automatic:
            item.settled = True

    def died(self, item: Item) -> None:
        """The process died as it acknowledged: nobody knows."""
        item.settled = True
        for other in self.items.values():
            if other.held is not None and item.held is not None and other.held.session == item.held.session:
                other.settled = True

    def covered(self, item: Item, session: str, terms: Terms) -> list[tuple[_Held, bool]]:
        """What ``session`` may cover by acknowledging ``item`` now, each with whether it certainly does.

        The call may bring more.  What another session has of the same message is its own.
        """
        if not terms.by_application:
            return []
        mine = self._held.get(session, [])
        held = next((each for each in reversed(mine) if each.item is item), None)
        return [(other, _certain(terms, held, other)) for other in mine if _covers(terms, held, other)]

    def acknowledged(self, covered: list[tuple[_Held, bool]], terms: Terms, *, doubt: bool) -> None:
        """``acknowledge()`` has returned, or raised that nobody knows."""
        for other, certain in covered:
            mine = self._held.get(other.session, [])
            if other not in mine:
                continue  # its session ended during the call
            mine.remove(other)
            if (
                other.item.held is not other
            ):  # it came again during the call, or a library that was cut off had it still
                if certain and not doubt:
                    other.item.settled, other.item.consumed_by = True, None
                continue
            other.item.settled = True
            if not doubt and not other.thrown and other.faults == self.faults and certain:
                self._finish(other.item, "acknowledged", terms)

    def ends(self, transaction: Transaction, end: str) -> None:
        """It is ``committed``, ``rolled_back`` or ``in_doubt``."""
        if self._open.get(transaction.session) is transaction:
            del self._open[transaction.session]
        if transaction.end not in {"open", "committing"}:
            return
        transaction.end = end
        for item in transaction.inputs:
            if item.consumed_by is transaction:
                item.settled = end != "rolled_back"
                if end == "committed":
                    self._finish(item, "committed", transaction.terms)
            elif end == "committed":
                item.settled = True  # who has had it since had it from before its connection broke

    def in_doubt(self, session: str) -> None:
        """The process died as it waited for its commit."""
        if session in self._open:
            self.ends(self._open[session], "in_doubt")

    def gone(self, session: str) -> None:
        """The session is closed, or its process is."""
        if session in self._open:
            self.ends(self._open[session], "rolled_back")
        self._held.pop(session, None)

    def recovered(self, session: str) -> None:
        """All that was not acknowledged comes again."""
        self._held.pop(session, None)

    def _finish(self, item: Item, how: str, terms: Terms) -> None:
        strong = (terms.synced or not item.stored) and terms.answered and not item.resent
        item.finished = _Finish(how, strong)

    # What must hold as it happens

    def _says(self, sentence: str) -> None:
        self.wrong.append(sentence)

    def _as_it_was_sent(self, item: Item, message: Message) -> None:
        if (message.body, dict(message.headers)) != (item.body, dict(item.headers)):
            self._says(f"{item.id} was sent as {item.body!r} {item.headers}, and came as {message!r} {message.body!r}")
        if message.consumer.queue.name != item.queue:
            self._says(f"{item.id} was sent to {item.queue} and came from {message.consumer.queue.name}")

    def _is_allowed(self, item: Item, message: Message, terms: Terms) -> None:
        transaction = item.transaction
        if transaction is not None and transaction.end in {"open", "rolled_back"} and transaction.terms.atomic:
            state = "still open" if transaction.end == "open" else "rolled back"
            self._says(f"{item.id} was received, and the transaction that sent it is {state}")
        if item.sent is not None and item.sent.outcome is Outcome.REJECTED and not item.resent:
            self._says(f"{item.id} was rejected, and received")
        if self._may_be_stale(item, message.consumer):
            self.stale.add(item.id)
            return
        if item.resent:
            return
        done = item.finished
        if done is not None and (done.strong or not self.faults):
            self._says(f"{item.id} was {done.how} for certain, and came again")
        if item.deliveries:
            self._is_marked(item, message, terms)

    def _may_be_stale(self, item: Item, consumer: object) -> bool:
        """Whether a library may have had it all the time, and not know yet that its connection has broken."""
        if item.held is None or item.held.consumer is consumer or not self.faults:
            return False
        return self._opened.get(consumer, 0) <= item.held.order

    def _is_marked(self, item: Item, message: Message, terms: Terms) -> None:
        """What comes again says so, and counts (JMS 3.1, 3.4.7 and 3.5.11)."""
        settings = terms.configuration
        stopped = item.stops != self.stops
        remembers = settings.redelivery_mark_persisted and item.stored
        if stopped and not remembers:
            return
        again = item.counted or message.delivery_count > 1  # the flag is made of the count
        if settings.profile in _FLAGGING and again and not message.redelivered:
            self._says(f"{item.id} came again with the redelivered flag clear")
        counts = settings.delivery_count_persisted or not stopped
        if settings.profile in _FLAGGING and counts and message.delivery_count < item.last_count + item.counted:
            self._says(f"{item.id} came again as delivery {message.delivery_count} after {item.last_count}")

    def _in_order(self, item: Item, message: Message, consumer: object) -> None:
        """First deliveries come in the order of their producer (JMS 3.1, 6.2.9)."""
        if not self._keeps_order or item.resent or item.deliveries or message.redelivered:
            return
        lane = (consumer, *item.lane)
        last = self._last.get(lane)
        if last is not None and last.number > item.number:
            self._says(f"{item.id} came after {last.id}, which was sent later by the same session")
        self._last[lane] = item

    # What must hold at the end

    def check(self) -> None:
        """Every queue is empty: what was promised is done with.

        Raises :class:`Wrong` with all that is not.
        """
        wrong = [*self.wrong, *self._missing(), *self._doubled()]
        if wrong:
            raise Wrong("\n".join(dict.fromkeys(wrong)))

    def _missing(self) -> Iterator[str]:
        """What nobody has had in the end: a receive that was interrupted may have acknowledged a message before it."""
        missing = [*self._lost(), *self._unfinished()]
        yield from missing[self.interrupted :]

    def _lost(self) -> Iterator[str]:
        for item in self.items.values():
            if not item.deliveries and not item.dead and self._must_have_come(item):
                told = "confirmed" if item.promised else "sent without any fault"
                yield f"{item.id} to {item.queue} was {told}, the queues are empty, and nobody had it"

    def _must_have_come(self, item: Item) -> bool:
        forgotten = item.forgotten or item.queue in self.lossy
        if not self.faults and not self.refusals:
            return item.accepted and not (forgotten and self.closes)
        if not item.promised or forgotten:
            return False
        return item.stops == self.stops or (item.stored and item.terms.synced)

    def _unfinished(self) -> Iterator[str]:
        """What was received and not acknowledged comes again."""
        for item in self.items.values():
            survives = item.stops == self.stops or (item.stored and item.terms.synced)
            if item.queue in self.lossy or item.forgotten:
                continue
            if item.deliveries and not item.settled and not item.dead and item.promised and survives:
                yield f"{item.id} was received and not acknowledged, and never came again"

    def _doubled(self) -> Iterator[str]:
        """A transaction that consumed and sent has its effect once."""
        for item in self.items.values():
            effects = [o for o in item.outputs if o.transaction is not None and item in o.transaction.inputs]
            seen = [output for output in effects if output.deliveries]
            durable = item.stored and all(output.stored and output.terms.synced for output in effects)
            if len(seen) > 1 and durable and not item.resent:
                yield f"{item.id} had its effect twice: {', '.join(output.id for output in seen)}"


_FLAGGING = frozenset({Profile.JMS, Profile.EMS, Profile.SOLACE_JMS, Profile.ARTEMIS, Profile.ACTIVEMQ})


def _covers(terms: Terms, held: _Held | None, other: _Held) -> bool:
    """Whether acknowledging one delivery (``None``: that the session has no more) may cover another of the session.

    JMS 3.1, 6.2.10.
    """
    if other is held:
        return True
    settings = terms.configuration
    if settings.ack_mode is not AckMode.CLIENT_ACKNOWLEDGE:
        return False
    return settings.client_ack_scope is AckScope.SESSION or (
        settings.client_ack_scope is AckScope.UP_TO and held is not None
    )


def _certain(terms: Terms, held: _Held | None, other: _Held) -> bool:
    """Whether it certainly covers it."""
    if held is None or other is held or terms.configuration.client_ack_scope is AckScope.SESSION:
        return True
    return other.consumer is held.consumer and other.order < held.order
