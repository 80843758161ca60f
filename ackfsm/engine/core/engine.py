"""The engine of one broker, as the JMS face around it uses it."""

from __future__ import annotations

import random

from ackfsm.engine.core.dead_letters import DeadLetters
from ackfsm.engine.core.effects import EventEffects
from ackfsm.engine.core.host import NEMESIS, Host
from ackfsm.engine.core.instances import Copy, Link, Queue, ReceiverLink
from ackfsm.engine.core.journal import JournalAdapter
from ackfsm.engine.core.links import Links
from ackfsm.engine.core.loop import RunLoop
from ackfsm.engine.core.model import EngineModel, Role
from ackfsm.engine.core.outages import Outages
from ackfsm.engine.core.queues import Queues
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.engine.core.stepper import Stepper
from ackfsm.engine.journal import Journal
from ackfsm.tables.names import IN_QUEUE, Agent, Entry, Event, Machine, Process
from ackfsm.terms import Configuration

_CONNECTED = {
    "producer": (Event.PRODUCER_LINK_UP, Event.PRODUCER_REATTACHED),
    "consumer": (Event.CONSUMER_LINK_UP, Event.CONSUMER_REATTACHED),
}
"""Who is connected again has a new session, or the one that it had."""


class Engine:
    """Stepper, run loop, links, queues, journal and dead letters of one broker.

    Attributes:
        model: what it takes from the tables.
        stepper: performs single events.
        loop: performs what follows, until a call may return.
        dispatcher: dispatches copies to consumers.
        links: makes the links of sessions.
        journal: the journal, as the tables use it.
        queues: the queues, and the copies that come into them.
        dead_letters: the dead-letter queue.
        outages: the faults of connections and clients that are not over.
        effects: the side effects of events.
    """

    def __init__(  # noqa: PLR0913 - all that differs between two engines
        self,
        model: EngineModel,
        host: Host,
        configuration: Configuration,
        *,
        scheduler: Scheduler,
        journal: Journal,
        dead_letter_queue: str,
    ) -> None:
        self.model = model
        self.stepper = Stepper(model)
        self.links = Links(self.stepper)
        self.journal = JournalAdapter(self.stepper, journal)
        self.loop = RunLoop(self.stepper, self.links, self.journal, scheduler, host)
        self.dispatcher = self.loop.dispatcher
        self.queues = Queues(configuration, self.loop, self.links)
        self.dead_letters = DeadLetters(dead_letter_queue, self.queues, self.journal)
        self.outages = Outages(self.stepper.links, host)
        self.effects = EventEffects(self.loop, self.queues, self.dead_letters, self.outages, host)
        self._broker = self.stepper.broker
        self._detached: list[Link] = []
        self._fault = ""

    @property
    def running(self) -> bool:
        """Whether the broker's process is there."""
        return self._broker.groups[Role.BROKER].state_of(Machine.BROKER) == Process.UP

    # Faults and repairs

    def stop(self, fault: Event, chance: random.Random, host: Host, *, power: bool) -> None:
        """The broker's process dies by ``fault``; with ``power`` the machine does too.

        Raises :class:`ackfsm.engine.JMSException`, before anything happens, for a journal that cannot be crashed.
        """
        self.journal.crashable()
        self.loop.finish_sync_notifications()
        host.log(NEMESIS, "fault", fault=fault.value)
        self.journal.crash(chance, power=power)
        self.loop.perform_link_event(fault, self._broker)
        self._fault = fault.value

    def restart(self, host: Host) -> None:
        """Read the journal and serve again; see :meth:`ackfsm.engine.Broker.restart`."""
        self.journal.reopen()
        copies = self.stepper.copies_of(self._broker)
        gone = [copy for copy in copies if not copy.in_queue]
        self.journal.recover(copies, self.dead_letters.recovered_keys)
        for copy in gone:
            copy.message.queue.restored += copy.in_queue
        if not self.loop.perform_link_event(Event.BROKER_RESTART, self._broker):
            raise AssertionError(self.stepper.refusal().because)
        for copy in copies:
            self.links.reset_client_side(copy)
        self.stepper.moved = dict.fromkeys(copies) | self.stepper.moved
        while self._detached:
            self.stepper.links.pop(self._detached.pop(), None)
        host.log(NEMESIS, "recovered", fault=self._fault)
        self.loop.run_to_quiescence()

    def reconnect(self) -> bool:
        """Make one connection again, with all links that share it; whether one was down."""
        for link in list(self.stepper.links):
            if link is not self._broker and self._link_up(link):
                for sibling in link.siblings:
                    self._link_up(sibling)
                return True
        return False

    def _link_up(self, link: Link) -> bool:
        if isinstance(link, ReceiverLink):
            self.loop.finish_subscription(link.queue)
        return any(self.loop.perform_link_event(each, link) for each in _CONNECTED[link.kind])

    def detach(self, link: Link) -> None:
        """A link is closed; the journal may still have to say what became of its commit."""
        self.outages.over(link)
        enabled = [event for group in link.groups.values() for event in group.facts.enabled]
        if any(event.agent == Agent.DISK for event in enabled):
            self.loop.flush_all()
            enabled = [event for group in link.groups.values() for event in group.facts.enabled]
        if any(event.agent == Agent.RECOVERY for event in enabled):
            self._detached.append(link)
        else:
            self.stepper.links.pop(link, None)
        self.loop.retry()

    # What is in the queues

    def copies_in(self, queue: Queue) -> list[Copy]:
        """The copies in ``queue``, oldest first."""
        return [
            copy
            for copy in self.stepper.copies_of(self._broker)
            if copy.message.queue is queue and copy.in_queue and copy.state_of(Machine.ENTRY) in IN_QUEUE
        ]

    def lost_in_flight(self, queue: Queue) -> list[Copy]:
        """The copies of ``queue``, oldest first, that are dispatched to a consumer whose library has none of them."""
        dispatched = (copy for copy in self.copies_in(queue) if copy.state_of(Machine.ENTRY) == Entry.DISPATCHED)
        return [copy for copy in dispatched if not copy.is_with_consumer()]

    def queues_of_applications(self) -> list[Queue]:
        """Return all queues but the dead-letter queue, which has no lines in a history."""
        return [queue for queue in self.queues.by_name.values() if queue.name != self.dead_letters.name]

    def depth(self, queue: Queue) -> tuple[int, int] | None:
        """How many messages of ``queue`` are ready, and how many in flight, if that is how it stays.

        ``None``: something is repaired first, or a client has some of it and may do something with that.
        """
        ready = sum(copy.state_of(Machine.ENTRY) == Entry.READY for copy in self.copies_in(queue))
        lost = len(self.lost_in_flight(queue))
        return (ready, lost) if self.at_rest and ready + lost == queue.length else None

    @property
    def at_rest(self) -> bool:
        """Whether every fault is repaired."""
        return self.running and self.outages.are_over
