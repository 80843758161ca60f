"""The broker: queues, journal, connections, faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from threading import get_ident
from types import MappingProxyType

from ackfsm import tables
from ackfsm.engine.arguments import callback_of, check_part, flag_of, id_of, name_of, seed_of
from ackfsm.engine.connection import Connection
from ackfsm.engine.consumer import Consumer, Message
from ackfsm.engine.context import CLOSED, BrokerContext
from ackfsm.engine.core.engine import Engine
from ackfsm.engine.core.errors import BrokerStopped, IllegalStateException, OutcomeUnknown, Stuck
from ackfsm.engine.core.host import BROKER, NEMESIS
from ackfsm.engine.core.instances import Queue, Sent
from ackfsm.engine.core.model import EngineModel
from ackfsm.engine.core.scheduler import AtOnce, Scheduler
from ackfsm.engine.core.stepper import Observer
from ackfsm.engine.history import History
from ackfsm.engine.journal import Journal, MemoryJournal
from ackfsm.engine.metrics import Metrics, measure
from ackfsm.support.closing import Closing
from ackfsm.tables import Specification
from ackfsm.tables.names import Event
from ackfsm.terms import AttemptsExhausted, InputError
from ackfsm.text import meant, quoted

_DEAD_LETTER_QUEUE = "DLQ"

_APART = 24 * 60 * 60 * 10**9
"""So many nanoseconds later a history begins each time a journal is opened: the virtual time of a run is shorter."""

_PURGE_MODE = "CLIENT_ACKNOWLEDGE"
"""Every system has it."""

_PURGE_BATCH = 1000
"""So many messages are acknowledged together, where an acknowledgement covers those before it."""


class Broker(BrokerContext, Closing):
    """An in-process broker whose every step is a row of the tables.

    One thread uses it and all that belongs to it; from another every call raises :class:`IllegalStateException`, as
    after :meth:`close`.  It is deterministic by its seed.

    Args:
        profile: the system whose defaults and refusals hold (``jms``, ``artemis`` …), or the path of a YAML file that
            describes another one, in the form of ``spec/profiles``.
        journal: where messages are kept; by default a :class:`MemoryJournal`.  What it has is in the queues again.
        pace: when things happen: :class:`AtOnce` (the default), :class:`Timed`, :class:`Shuffled`.
        seed: of everything that is left to chance.
        history: ``True`` keeps a log that ``ackfsm verify`` reads (:attr:`history`), a :class:`History` is that log.
        clock: gives the time when a message is sent, in nanoseconds (``time.time_ns`` for example); by default it is
            the virtual time, so that a run is the same again.
        repairs: whether the broker is started again and connections are made again when a call waits for it.
        dead_letter_queue: the queue that keeps messages which were delivered ``max_delivery_attempts`` times, with
            :data:`DEAD_LETTER_HEADERS`; ``None`` is the setting ``attempts_exhausted="destroy"``, and with that they
            are destroyed.  The history ends with ``dead_lettered`` in both cases.
        api: the programming interface of its clients, one of those that the profile lists (``JMS 1.1``, ``simplified``
            …): what an application cannot ask for through it is refused.  ``None``: all that the system has.
        specification: the tables, by default those of the project.
        like: a broker that was made before, whose tables this one takes as it has read them, which is much quicker.
        settings: settings of the vocabulary, defaults of all connections.

    Raises :class:`ackfsm.terms.InputError` for settings that the system or the interface does not have, or where tables
    are given twice, and :class:`ackfsm.terms.SpecError` for a file of a profile that is wrong.
    """

    def __init__(  # noqa: PLR0913 - each has a default, and is given by name
        self,
        profile: str = "jms",
        *,
        journal: Journal | None = None,
        pace: Scheduler | None = None,
        seed: int = 0,
        history: History | bool = False,
        clock: Callable[[], int] | None = None,
        repairs: bool = True,
        dead_letter_queue: str | None = _DEAD_LETTER_QUEUE,
        api: str | None = None,
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
        callback_of("clock", clock)
        self.repairs = flag_of("repairs", repairs)
        model = like.engine.model if like is not None else EngineModel(specification or tables.load())
        if dead_letter_queue is None:
            settings.setdefault("attempts_exhausted", AttemptsExhausted.DESTROY)
        settings.setdefault("exclusive_consumer", False)  # an engine has none, whatever the profile's default is
        known, own = (model.specification if like is None else like.specification).of_profile(profile)
        super().__init__(known, own or profile, settings, clock, api)
        engine = Engine(
            model,
            self,
            self.configuration,
            scheduler=AtOnce() if pace is None else pace,
            journal=MemoryJournal() if journal is None else journal,
            dead_letter_queue=_DEAD_LETTER_QUEUE if dead_letter_queue is None else name_of(dead_letter_queue),
        )
        self.use_engine(engine)
        self.random = random.Random(seed)  # noqa: S311 - repeatable chance, not secrecy
        self.history = History(self.configuration, api=self.api) if history is True else history or None
        self._clients = 0
        self.connections: dict[Connection, None] = {}
        engine.queues.load(engine.journal.journal.recovery)
        self._tell_restored(engine.journal.journal.recovery.epoch)

    def _tell_restored(self, epoch: int) -> None:
        """A history that begins on a journal which was open before begins with what that has."""
        if epoch == 1 or self.history is None or not self.history.goes_on_at(epoch * _APART):
            return
        restored = {copy.message.id: copy for copy in self.stepper.copies_of(self.stepper.broker)}
        for copy in restored.values():
            self.engine.effects.log_copy(copy, BROKER, "send", delivery_mode=copy.message.delivery_mode)
            self.engine.effects.log_copy(copy, BROKER, "confirmed")
        for event in ("fault", "recovered"):
            self.log(NEMESIS, event, fault=Event.BROKER_KILL.value)

    def close(self) -> None:
        """Sync and close the journal; the messages of the queues are there when it is opened again."""
        if self.thread == CLOSED:
            return
        self.check_use()
        self.loop.run_to_quiescence()
        if self.running:
            self.loop.flush()
        self.journal.journal.close()
        self.thread = CLOSED

    def use_in_this_thread(self) -> None:
        """From now on the calling thread uses the broker; the thread that used it before is refused."""
        if self.thread == CLOSED:
            self.check_use()
        self.thread = get_ident()

    # Queues and connections

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues there are, by their names: a view that follows changes and cannot be changed."""
        return MappingProxyType(self.engine.queues.by_name)

    def connect(self, client_id: str | None = None, *, api: str | None = None, **settings: object) -> Connection:
        """Return a connection of a client; its ``settings`` go before the settings of the broker.

        It uses the programming interface ``api``, by default that of the broker.  Raises
        :class:`ackfsm.terms.InputError` for one that the system does not have.
        """
        self.check_use()
        name = f"client-{self._clients + 1}" if client_id is None else id_of("client_id", client_id)
        return self._connect(name, settings, self.api if api is None else self.interface(api))

    def _connect(self, client_id: str, settings: dict[str, object], api: str | None) -> Connection:
        self._clients += 1
        made = Connection(self, client_id, settings, self.connections, api)
        self.connections[made] = None
        return made

    def purge(self, queue: str | Queue) -> int:
        """Remove from ``queue`` as many messages as are ready in it now, oldest first; how many that were.

        What is with consumers, or in a transaction that is open, stays.  A client of its own receives and acknowledges
        them, since the tables remove nothing that was not received; the history has it as the process ``purge-1`` (or
        the like), and :meth:`metrics` count its deliveries.  When it returns, the removals are on stable storage.

        Raises :class:`InputError` if there is no such queue, :class:`BrokerStopped` if the broker is down and nobody
        starts it, :class:`OutcomeUnknown` if it dies meanwhile: then some are removed.
        """
        self.check_use()
        name = queue.name if isinstance(queue, Queue) else name_of(queue)
        if name not in self.queues:
            hint = meant(name, self.queues, quotes=True)
            raise InputError(f"there is no queue {quoted(name)} to purge{hint}; broker.queues are those that there are")
        found = self.own_queue(queue) if isinstance(queue, Queue) else self.queues[name]
        self.wait_until_running(f"a purge of queue {name!r}")
        count = len(found.ready.members)
        if not count:
            return 0
        client = self._connect(f"purge-{self._clients + 1}", {}, None)
        with client, client.session(_PURGE_MODE, consumption="receive") as session:
            consumer = session.consumer(found)
            one_by_one = self.ack_scope(consumer.receiver.configuration) == "message"
            done = _consume(consumer, count, 1 if one_by_one else _PURGE_BATCH)
        self.loop.flush_all()
        if not self.running:
            raise OutcomeUnknown(f"the broker died before the purge of queue {name!r} was stored; purge it again")
        return done

    def metrics(self) -> Metrics:
        """Figures of the broker and its queues as they are now; :func:`prometheus` writes them for Prometheus."""
        self.check_use()
        return measure(self, self.connections)

    # Faults and repairs

    def crash(self) -> None:
        """Power loss: memory goes, and any subset of the records that were not synced."""
        self._stop(Event.BROKER_CRASH, power=True)

    def kill(self) -> None:
        """Death of the process: memory goes, written records stay."""
        self._stop(Event.BROKER_KILL, power=False)

    def fail_journal(self) -> None:
        """A sync fails: the broker stops itself, and unsynced entries may or may not be on the disk."""
        self._stop(Event.JOURNAL_FAILURE, power=True)

    def _stop(self, fault: Event, *, power: bool) -> None:
        self.check_use()
        if not self.running:
            raise IllegalStateException("the broker is down already; start it with restart()")
        self.engine.stop(fault, self.random, self, power=power)

    def restart(self) -> None:
        """Read the journal and serve again.

        Raises :class:`JournalInconsistent` if the journal does not hold what the tables say that it must,
        :class:`BrokerStopped` if it cannot be opened (a full disk); call it again when it can.
        """
        self.check_use()
        if self.running:
            raise IllegalStateException("the broker runs; there is nothing to restart")
        self.engine.restart(self)

    def drained(self) -> None:
        """Record in the history that every queue but the dead-letter queue was seen empty with nothing in flight.

        Raises :class:`IllegalStateException` if one is not, :class:`Stuck` if one never will be; then the history has
        which queues were, and how much each other one held, if no client may still do something with that.
        """
        self.check_use()
        queues = self.engine.queues_of_applications()
        self.loop.wait(lambda: not any(queue.length for queue in queues))
        for queue in queues:
            if queue.length:
                self.log_depth(queue)
            else:
                self.log(BROKER, "drained", queue=queue.name)
        for queue in queues:
            self._check_empty(queue)

    def _check_empty(self, queue: Queue) -> None:
        if not queue.length:
            return
        for lost in self.engine.lost_in_flight(queue):
            raise Stuck(f"{lost.message.id} is in flight for ever: the consumer it went to has nothing of it")
        raise IllegalStateException(f"queue {queue.name!r} holds {queue.length} messages; consume them first")

    @property
    def dead_letters(self) -> list[Sent]:
        """Return the messages of the dead-letter queue, oldest first, and the ones that the next sync adds."""
        letters = self.engine.dead_letters
        copies = self.stepper.copies_of(self.stepper.broker)
        found = [copy.message for copy in copies if copy.in_queue and copy.message.queue.name == letters.name]
        return found + letters.pending()

    def observe(self, observer: Observer | None) -> None:
        """Call ``observer`` after each event, one at a time; ``None``: no observer, which is fast."""
        self.stepper.observer = callback_of("observer", observer)

    # What the engine calls (:class:`ackfsm.engine.core.host.Host`)

    def sync_failed(self) -> None:
        """The journal has failed, and so the broker stops."""
        if self.running:
            self.fail_journal()

    def flush_lazy_acks(self) -> bool:
        """Acknowledge one consumer's lazy acknowledgements; return whether there were any."""
        return any(consumer.flush_lazy_acks() for consumer in list(self.lazy_consumers))

    def repair(self) -> bool:
        """Start the broker or make a connection again, if one is down and that is wanted; whether that was done."""
        if not self.repairs:
            return False
        if self.running:
            return self.engine.reconnect()
        try:
            self.restart()
        except BrokerStopped:
            return False  # the call that waits says why
        return True


def _consume(consumer: Consumer, count: int, batch: int) -> int:
    """Receive ``count`` messages and acknowledge them by batches; how many there were."""
    done, taken = 0, list[Message]()
    while done + len(taken) < count:
        message = consumer.receive()
        if message is not None:
            taken.append(message)
        elif not taken:
            break  # other consumers have had the rest
        if message is None or len(taken) >= batch:  # as many as the consumer may have, perhaps
            done += _acknowledge_last(taken)
    return done + _acknowledge_last(taken)


def _acknowledge_last(taken: list[Message]) -> int:
    """Acknowledge them by the last one; how many they were."""
    count = len(taken)
    if taken:
        taken[-1].acknowledge()
        taken.clear()
    return count


_PARTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "specification": ((Specification,), "what ackfsm.tables.load() returns"),
    "like": ((Broker,), "a Broker"),
    "journal": ((Journal,), "a journal, MemoryJournal() for example"),
    "pace": ((Scheduler,), "AtOnce(), Timed() or Shuffled()"),
    "history": ((bool, History), "True, False or a History"),
}
"""What a broker is made of: the types of each part, and how an error describes them."""
