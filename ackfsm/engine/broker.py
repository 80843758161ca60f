"""The broker: queues, journal, sessions, faults."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping
from threading import get_ident
from types import MappingProxyType

from ackfsm import tables
from ackfsm.engine.arguments import (
    callback_of,
    check_part,
    client_of,
    flag_of,
    length_of,
    name_of,
    seed_of,
    time_of,
)
from ackfsm.engine.closing import Closing
from ackfsm.engine.connection import Connection
from ackfsm.engine.consumer import Consumer, Message
from ackfsm.engine.core.automaton import Automaton
from ackfsm.engine.core.dead_letters import DeadLetters
from ackfsm.engine.core.dispatcher import Dispatching
from ackfsm.engine.core.effects import Telling
from ackfsm.engine.core.errors import BrokerStopped, IllegalStateException, Stuck
from ackfsm.engine.core.instances import Copy, Route
from ackfsm.engine.core.journal import Storage
from ackfsm.engine.core.links import Incoming, Outgoing, Queue
from ackfsm.engine.core.loop import Engine
from ackfsm.engine.core.message import Sent, unpack
from ackfsm.engine.core.model import Role, Wiring
from ackfsm.engine.core.scheduler import AtOnce, Pace
from ackfsm.engine.core.stepper import Core, Observer, Session
from ackfsm.engine.history import History
from ackfsm.engine.metrics import Metrics, measure
from ackfsm.engine.purge import purge
from ackfsm.engine.session import Session as JmsSession
from ackfsm.journal import REMEMBERED, Journal, Live, MemoryJournal
from ackfsm.tables import Counter, EventRef, Move, Specification
from ackfsm.terms import Configuration, InputError
from ackfsm.text import quoted

__all__ = ["Broker"]

_LAZY_BATCH = 32
_CLOSED = 0
"""No thread has this number."""


class Broker(Closing):
    """An in-process broker whose every step is a row of the tables.

    One thread uses it and all that belongs to it; from another every call raises :class:`IllegalStateException`, as
    after :meth:`close`.  It is deterministic by its seed.

    Args:
        profile: the system whose defaults and refusals hold (``jms``, ``artemis`` …).
        journal: where messages are kept; by default a :class:`MemoryJournal`.  What it has is in the queues again.
        pace: when things happen: :class:`AtOnce` (the default), :class:`Timed`, :class:`Shuffled`.
        seed: of everything that is left to chance.
        history: ``True`` keeps a log that ``ackfsm verify`` reads (:attr:`history`), a :class:`History` is that log.
        clock: says when a message is sent, in nanoseconds (``time.time_ns`` for example); by default it is the virtual
            time, so that a run is the same again.
        repairs: whether the broker is started again and connections are made again when a call waits for it.
        dead_letter_queue: the queue that keeps messages which were delivered ``max_delivery_attempts`` times, with
            :data:`DEAD_LETTER_HEADERS`; ``None``: they are destroyed.  The history ends with ``dead_lettered``.
        specification: the tables, by default those of the project.
        like: a broker that was made before, whose tables this one takes as it has read them, which is much quicker.
        settings: settings of the vocabulary, defaults of all connections.

    Raises :class:`ackfsm.terms.InputError` for settings that the system does not have, or where tables are given twice.
    """

    def __init__(  # noqa: PLR0913 - each has a default, and is given by name
        self,
        profile: str = "jms",
        *,
        journal: Journal | None = None,
        pace: Pace | None = None,
        seed: int = 0,
        history: History | bool = False,
        clock: Callable[[], int] | None = None,
        repairs: bool = True,
        dead_letter_queue: str | None = "DLQ",
        specification: Specification | None = None,
        like: Broker | None = None,
        **settings: object,
    ) -> None:
        if specification is not None and like is not None:
            raise InputError("give the tables once: as a specification, or by a broker that this one is to be like")
        given = {"specification": specification, "like": like, "journal": journal, "pace": pace, "history": history}
        for name, part in given.items():
            check_part(name, *_PARTS[name], part)
        seed_of(seed)
        self.clock = callback_of("clock", clock)
        flag_of("repairs", repairs)
        self.thread = get_ident()
        wiring = like.core.wiring if like is not None else Wiring(specification or tables.load())
        self.specification: Specification = wiring.specification
        self.profile = profile
        self.settings: dict[str, object] = dict(settings)
        self.configuration = self.configure({})
        self.engine: Engine = Engine(wiring, self, AtOnce() if pace is None else pace)
        self.core: Core = self.engine.core
        self._letters = DeadLetters(self, None if dead_letter_queue is None else name_of(dead_letter_queue))
        self.storage: Storage = Storage(self.core, MemoryJournal() if journal is None else journal, self._letters)
        self.mark_one, self.write = self.storage.mark, self.storage.sync  # what the protocol Queues asks of a journal
        self.random = random.Random(seed)  # noqa: S311 - chance that can be had again, not secrecy
        self.history = History(self.configuration) if history is True else history or None
        self.repairs = repairs
        self._leaving: list[Session] = []
        self._queues: dict[str, Queue] = {}
        self._serial = 0
        self._life = ""
        self._transaction = 0
        self._remembered: dict[bytes, None] = {}
        self._lazy: dict[Consumer, list[Message]] = {}
        self._clients = 0
        self.connections: dict[Connection, None] = {}
        self._fault = ""
        self.hand_over = self.core.wiring.overtaken("delivered_clear", "consumer")
        self._ready = self.core.wiring.overtaken("dispatch_first", "queue")
        self.dispatching = Dispatching(self)
        Telling(self, self._letters)
        self._adopt()

    def close(self) -> None:
        """Sync and close the journal; what is in the queues is there when it is opened again."""
        if self.thread == _CLOSED:
            return
        self.check_use()
        self.engine.settle()
        if self.running:
            self.engine.flush()
        self.storage.journal.close()
        self.thread = _CLOSED

    def check_use(self) -> None:
        """Raise :class:`IllegalStateException` if the broker is closed, or another thread uses it."""
        if self.thread == _CLOSED:
            raise IllegalStateException("the broker is closed; open another on its journal")
        if self.thread != get_ident():
            raise IllegalStateException(
                "a broker and all that belongs to it is used by one thread, the one that made it; make one broker for "
                "each thread, or call use_in_this_thread() when the other thread has finished with it"
            )

    def use_in_this_thread(self) -> None:
        """From now on the calling thread uses the broker; the thread that used it before is refused."""
        if self.thread == _CLOSED:
            self.check_use()
        self.thread = get_ident()

    # Faces

    def queue(self, name: str, *, durable: bool | None = None, max_length: int | None = None) -> Queue:
        """The queue of that name, made if there is none.

        Args:
            name: of the queue.
            durable: whether it journals durable messages; by default the setting ``queue_durable``.
            max_length: how many messages it holds; a message more is rejected.

        Raises :class:`InputError` if it exists and is different.
        """
        self.check_use()
        name = name_of(name)
        if durable is not None:
            flag_of("durable", durable)
        if max_length is not None:
            length_of(max_length)
        found = self._queues.get(name)
        if found is None:
            wanted = self.configuration.queue_durable if durable is None else durable
            scope = self.core.queue()
            found = self._queues[name] = Queue(name, wanted, max_length, scope, scope.under(self._ready))
        elif (durable is not None and durable != found.durable) or (
            max_length is not None and max_length != found.max_length
        ):
            raise InputError(
                f"queue {name!r} exists with durable={found.durable}, max_length={found.max_length}; use it so"
            )
        return found

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues there are, by their names: what changes is seen in it, and nothing can be put into it."""
        return MappingProxyType(self._queues)

    def connect(self, client_id: str | None = None, **settings: object) -> Connection:
        """A connection of a client, whose ``settings`` go before those of the broker."""
        self.check_use()
        name = f"client-{self._clients + 1}" if client_id is None else client_of(client_id)
        self._clients += 1
        made = Connection(self, name, settings)
        self.connections[made] = None
        return made

    def purge(self, queue: str | Queue) -> int:
        """Remove from ``queue`` as many messages as are ready in it now, oldest first; how many that were.

        What is with consumers, or in a transaction that is open, stays.  A client of its own receives and acknowledges
        them, since the tables remove nothing that was not received; the history tells it as the process ``purge-1`` (or
        the like), and :meth:`metrics` count its deliveries.  When it returns, the removals are on stable storage.

        Raises :class:`InputError` if there is no such queue, :class:`BrokerStopped` if the broker is down and nobody
        starts it, :class:`OutcomeUnknown` if it dies meanwhile: then some are removed.
        """
        self.check_use()
        name = queue.name if isinstance(queue, Queue) else name_of(queue)
        if name not in self._queues:
            raise InputError(f"there is no queue {quoted(name)} to purge; broker.queues are those that there are")
        place = self.own_queue(queue) if isinstance(queue, Queue) else self._queues[name]
        self.reach(f"a purge of queue {name!r}")
        return purge(self, place, f"purge-{self._clients + 1}")

    def metrics(self) -> Metrics:
        """Figures of the broker and its queues as they are now; :func:`prometheus` writes them for Prometheus."""
        self.check_use()
        return measure(self)

    def own_queue(self, queue: Queue) -> Queue:
        """``queue`` itself.

        Raises :class:`InputError` if it is another broker's.
        """
        if self._queues.get(queue.name) is not queue:
            raise InputError(
                f"queue {quoted(queue.name)} belongs to another broker; give its name, and this broker makes its own"
            )
        return queue

    def configure(self, settings: Mapping[str, object]) -> Configuration:
        """The configuration of this broker with ``settings`` over its own."""
        return self.specification.configure(self.profile, {**self.settings, **settings})

    @property
    def running(self) -> bool:
        """Whether the broker's process is there."""
        return self.thread != _CLOSED and self.core.broker.parts[Role.BROKER].of("broker") == "up"

    @property
    def now(self) -> int:
        """The virtual time, in nanoseconds."""
        return self.engine.pace.now

    def time(self) -> int:
        """What the broker's clock says, in nanoseconds; without a clock the virtual time."""
        return self.engine.pace.now if self.clock is None else time_of(self.clock())

    # Faults and repairs

    def crash(self) -> None:
        """Power loss: memory goes, and any subset of the records that were not synced."""
        self._stop("broker_crash", power=True)

    def kill(self) -> None:
        """Death of the process: memory goes, written records stay."""
        self._stop("broker_kill", power=False)

    def fail_journal(self) -> None:
        """A sync fails: the broker stops itself, and what was not synced may or may not be on the disk."""
        self._stop("journal_failure", power=True)

    def _stop(self, fault: str, *, power: bool) -> None:
        self.check_use()
        if not self.running:
            raise IllegalStateException("the broker is down already; start it with restart()")
        self.storage.crashable()  # refused before anything happens
        self.engine.finish_telling()
        self.log("nemesis", "fault", fault=fault)
        self.storage.crash(self.random, power=power)
        self.engine.happen(fault, self.core.broker)
        self._fault = fault

    def restart(self) -> None:
        """Read the journal and serve again.

        Raises :class:`JournalInconsistent` if the journal does not hold what the tables say that it must,
        :class:`BrokerStopped` if it cannot be opened (a full disk); call it again when it can.
        """
        self.check_use()
        if self.running:
            raise IllegalStateException("the broker runs; there is nothing to restart")
        self.storage.reopen()
        copies = self.core.copies_of(self.core.broker)
        gone = [copy for copy in copies if not copy.counted]
        self.storage.recover(copies)
        for copy in gone:
            copy.message.queue.restored += copy.counted
        if not self.engine.happen("broker_restart", self.core.broker):
            raise AssertionError(self.core.refusal().because)
        for copy in copies:
            Incoming.nobody_has(self.core, copy)
        self.core.moved = dict.fromkeys(copies) | self.core.moved
        while self._leaving:
            self.core.sessions.pop(self._leaving.pop(), None)
        self.log("nemesis", "recovered", fault=self._fault)
        self.engine.settle()

    def drained(self) -> None:
        """Say in the history that every queue but the dead-letter queue was seen empty with nothing in flight.

        Raises :class:`IllegalStateException` if one is not, :class:`Stuck` if one never will be.
        """
        self.check_use()
        queues = [queue for queue in self._queues.values() if queue.name != self._letters.name]
        self.engine.wait(lambda: not any(queue.length for queue in queues))
        for queue in queues:
            if queue.length:
                self._not_stuck(queue)
                raise IllegalStateException(f"queue {queue.name!r} holds {queue.length} messages; consume them first")
            self.log("broker", "drained", queue=queue.name)

    @property
    def dead_letters(self) -> list[Sent]:
        """What is in the dead-letter queue, oldest first, and what the next sync of the journal adds to it."""
        copies = self.core.copies_of(self.core.broker)
        found = [copy.message for copy in copies if copy.counted and copy.message.queue.name == self._letters.name]
        return found + self._letters.moving()

    def _not_stuck(self, queue: Queue) -> None:
        """Raise :class:`Stuck` if a message of ``queue`` is with a consumer whose library has nothing of it."""
        for copy in self.core.copies_of(self.core.broker):
            if copy.message.queue is not queue or not copy.counted:
                continue
            if (copy.of("entry"), copy.of("delivery")) == ("dispatched", "absent"):
                raise Stuck(f"{copy.message.id} is in flight for ever: the consumer it went to has nothing of it")

    def observe(self, observer: Observer | None) -> None:
        """Call ``observer`` after each event, one at a time; ``None``: nobody, and fast."""
        self.core.observer = callback_of("observer", observer)

    def log(self, process: str, event: str, **fields: object) -> None:
        """One line of the history, if there is one."""
        if self.history is not None:
            if (transaction := fields.get("transaction")) is not None:
                fields["transaction"] = str(transaction)  # an id is text in a history
            self.history.add(self.now, process, event, **fields)

    def log_of(self, copy: Copy, process: str, event: str, session: str | None = None, **fields: object) -> None:
        """One line about ``copy``, unless it is a dead letter."""
        if not self._letters.is_letter(copy):
            message: Sent = copy.message
            self.log(process, event, session=session, queue=message.queue.name, message=message.id, **fields)

    # What the sessions ask

    def new_key(self) -> int:
        """The key of a copy that the broker makes."""
        self._serial += 1
        return 4 * self._serial + 1

    def new_message(self, out: Outgoing, queue: Queue, message: Sent) -> Copy:
        """The first copy of ``message``, on its way from ``out`` to ``queue``."""
        copy = message.copy = Copy(out.route(self.core, queue), message, self.new_key())
        if message.duplicate_id is not None and self._knows(message.duplicate_id, copy.automaton):
            copy.state = copy.automaton.put(copy.state, duplicate_id="known")
        return copy

    def _knows(self, duplicate_id: bytes, automaton: Automaton) -> bool:
        """Whether the id has come with another message, which is stored first, and the tables have the broker look."""
        if duplicate_id not in self._remembered or not automaton.machine("duplicate_id").moves(EventRef("accept")):
            return False
        self.engine.flush_all()
        return duplicate_id in self._remembered

    def remember(self, duplicate_id: bytes) -> None:
        """The broker knows an id; of many the newest are kept."""
        self._remembered[duplicate_id] = None
        if len(self._remembered) > REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def forget_id(self, duplicate_id: bytes) -> None:
        """What had the id is gone, and the id with it."""
        self._remembered.pop(duplicate_id, None)

    def second_copy(self, first: Copy) -> Copy:
        """The copy that a resend makes."""
        base = first.route.base
        sent = base.sent or self.configuration
        route = self.core.route(
            automaton=self.core.wiring.copy(sent, sent, 2),
            roles=dict(zip(Role, base.roles, strict=True)),
            scopes=base.scopes,
            sent=sent,
            kept=sent,
            number=2,
            outgoing=base.outgoing,
        )
        copy = Copy(route, first.message, first.key + 1)
        copy.twin, first.twin = first, copy
        self.engine.resends = True
        return copy

    def reach(self, doing: str) -> None:
        """Wait until the broker runs: a connection needs both ends.

        Raises :class:`BrokerStopped` if nobody starts it.
        """
        if not self.running:
            self.wait(lambda: self.running, doing)

    def new_transaction(self) -> int:
        """The number of a transaction."""
        self._transaction += 1
        return self._transaction

    def wait(self, until: Callable[[], bool], doing: str) -> None:
        """Go on until a call may return.

        Raises :class:`BrokerStopped` or :class:`IllegalStateException` if it never will.
        """
        if not self.engine.wait(until):
            if not self.running:
                why = self.storage.unopened or "nobody starts it"
                raise BrokerStopped(f"{doing}: the broker is down, and {why}; call restart()")
            raise Stuck(f"{doing} would wait for ever: nothing is left that could happen")

    def lazily(self, consumer: Consumer, message: Message) -> None:
        """Acknowledge lazily: a batch, or when there is nothing else to do."""
        waiting = self._lazy.setdefault(consumer, [])
        waiting.append(message)
        if len(waiting) >= _LAZY_BATCH:
            self._acknowledge_lazily(consumer)

    def flush_lazily(self, consumers: Iterable[Consumer]) -> None:
        """Acknowledge now what their session acknowledges lazily."""
        for consumer in consumers:
            self._acknowledge_lazily(consumer)

    def whose(self, event: str, configuration: Configuration) -> str:
        """Whose call ``event`` is."""
        return self.core.wiring.table.whose(event, configuration)

    def scope_of_acknowledgement(self, configuration: Configuration) -> str:
        """What an acknowledgement covers, in the words of a history."""
        environment = self.specification.environment(configuration)
        holds = {name: self.specification.conditions[name].holds(environment) for name in _COVERING}
        return next((scope for name, scope in _COVERING.items() if holds[name]), "message")

    def new_id(self, session: str) -> str:
        """An id for a message of ``session`` that none has had, nor in an earlier life of this broker."""
        return f"{session}-{self._life}{self._serial + 1}"

    def wake(self, queue: Queue) -> None:
        """There is somebody new to send to."""
        if queue.ready.members:
            self.engine.hungry(queue)

    def retire(self, session: Session) -> None:
        """A side of a session is closed; the journal may still have to say what became of its commit."""
        if any(event.agent == "disk" for part in session.parts.values() for event in part.told.todo):
            self.engine.flush_all()
        if any(event.agent == "recovery" for part in session.parts.values() for event in part.told.todo):
            self._leaving.append(session)
        else:
            self.core.sessions.pop(session, None)

    def sync(self) -> bool:
        """Write and sync the journal; the broker stops itself if that fails."""
        if self.storage.sync():
            return True
        self.stop()
        return False

    def marks(self, copy: Copy, onward: Route) -> bool:
        """Whether it is to be stored before that ``copy`` is about to be sent by that route."""
        return self.dispatching.marks(copy, onward)

    def stop(self) -> None:
        """The journal has failed, and so the broker stops."""
        if self.running:
            self.fail_journal()

    # What the journal had

    def _adopt(self) -> None:
        """Take what the journal has into the queues."""
        recovery = self.storage.journal.recovery
        self._serial = recovery.next_key >> 2
        self._life = f"{recovery.epoch}." if recovery.epoch > 1 else ""  # what is not stored leaves no number behind
        self._transaction = recovery.next_key
        self._remembered = dict.fromkeys(recovery.remembered)
        for key, live in recovery.live.items():
            self.take(key, live, stored=True).restored += 1

    def take(self, key: int, live: Live, *, stored: bool) -> Queue:
        """Take a copy into its queue that no producer of this life of the broker has sent; which queue that is."""
        message = unpack(live.data, self.queue)
        number = key & 3
        kept = dataclasses.replace(
            self.configuration, delivery_mode=message.delivery_mode, queue_durable=message.queue.durable
        )
        route = self.core.route(
            automaton=self.core.wiring.copy(kept, kept, number),
            roles=self.core.broker.parts,
            scopes=(None, message.queue.scope, None, self.core.broker),
            sent=kept,
            kept=kept,
            number=number,
        )
        copy = Copy(route, message, key)
        copy.unseen = live.marked and not live.attempts
        copy.mark, copy.stored = live.attempts + copy.unseen, stored
        copy.state = self._found(copy, live)
        Queue.enter(copy)
        copy.file()
        self.engine.hungry(message.queue)
        return message.queue

    def _found(self, copy: Copy, live: Live) -> int:
        """The state of a copy whose producer is of an earlier life of the broker."""
        states = {"publication": "resolved", "publish_frame": "gone", "entry": "ready"}
        if copy.stored:
            states["record"] = "durable"
        if live.marked:
            states["redelivery"] = "marked"
        attempts = copy.automaton.machine("delivery_attempts")
        if live.attempts:
            numbers = [state for state in attempts.states if not state.endswith(Counter.OPEN)]
            number = numbers[min(live.attempts, len(numbers) - 1)]
            if attempts.rows[number, EventRef("broker_crash")].move is Move.IGNORE:  # the broker retains the count
                states["delivery_attempts"] = number
        return copy.automaton.put(copy.state, **states)

    # What the engine asks (the protocol Queues)

    def feed(self, queue: Queue) -> bool:
        """Send what waits in ``queue`` to consumers."""
        return self.dispatching.feed(queue)

    def dispatchable(self) -> list[Queue]:
        """The queues that have something to send and a consumer with room, by their names."""
        found = (queue for _, queue in sorted(self._queues.items()))
        return [queue for queue in found if queue.ready.members and any(each.has_room() for each in queue.consumers)]

    def mark(self, queue: Queue) -> list[Copy]:
        """Write to the journal that those who are next in ``queue`` are about to be sent; which those are."""
        return self.dispatching.mark(queue)

    def idle(self) -> bool:
        """Lazy acknowledgements; what the journal owes; then repairs."""
        for consumer in list(self._lazy):
            if self._acknowledge_lazily(consumer):
                return True
        if self.storage.owes:
            self.sync()
            return True
        return self.repairs and self._repair()

    def _acknowledge_lazily(self, consumer: Consumer) -> bool:
        waiting = self._lazy.pop(consumer, [])
        return bool(sum(consumer.acknowledge_lazily(message) for message in reversed(waiting)))

    def _repair(self) -> bool:
        """Start the broker again, or make a connection again, if one is down."""
        if not self.running:
            return self._start_again()
        for session in list(self.core.sessions):
            if session is not self.core.broker and self.engine.happen(f"{session.kind}_link_up", session):
                self._connect_others(session.face.owner)
                return True
        return False

    def _start_again(self) -> bool:
        try:
            self.restart()
        except BrokerStopped:
            return False  # whoever waits is told why
        return True

    def _connect_others(self, owner: JmsSession) -> None:
        """The sides of a session share its connection."""
        for side in owner.sides():
            self.engine.happen(f"{side.kind}_link_up", side)


_PARTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "specification": ((Specification,), "what ackfsm.tables.load() returns"),
    "like": ((Broker,), "a Broker"),
    "journal": ((Journal,), "a journal, MemoryJournal() for example"),
    "pace": ((Pace,), "AtOnce(), Timed() or Shuffled()"),
    "history": ((bool, History), "True, False or a History"),
}
"""What a broker is made of: the types of each part, and how an error describes them."""

_COVERING = {"ack_covers_later": "session", "ack_covers_earlier": "up_to"}
