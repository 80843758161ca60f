"""Bugs to be seeded into the engine: a changed row of the tables, a broker that forgets, a journal that drops.

A :class:`Bug` is planted as a broker is made and touches nothing else: the tables of the project, by which the
history is judged, stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from ackfsm.engine import Broker, Outcome
from ackfsm.engine.core.dispatcher import Dispatcher
from ackfsm.engine.core.instances import Copy, Link, Queue, ReceiverLink
from ackfsm.engine.core.model import BoundEvent
from ackfsm.engine.journal import Journal, Kind, MemoryJournal
from ackfsm.tables import Row, RowKind, Specification


@dataclasses.dataclass(frozen=True)
class Change:
    """One cell of a table with another target, whatever the conditions of its rows; ``None``: the event is refused."""

    machine: str
    state: str
    event: str
    to: str | None

    def apply(self, specification: Specification) -> Specification:
        """The tables with this change."""
        machine = specification.machines[self.machine]
        place = next(p for p in machine.cells if p[0] == self.state and str(p[1]) == self.event)
        cells = {**machine.cells, place: tuple(self._changed(row) for row in machine.cells[place])}
        if cells[place] == machine.cells[place]:
            raise AssertionError(f"{self} changes nothing")
        changed = dataclasses.replace(machine, cells=MappingProxyType(cells))
        machines = MappingProxyType({**specification.machines, self.machine: changed})
        return dataclasses.replace(specification, machines=machines)

    def _changed(self, row: Row) -> Row:
        if self.to is None:
            return row._replace(kind=RowKind.REFUSE, target=row.state)
        kind = RowKind.IGNORE if self.to == row.state else RowKind.TO
        return row._replace(kind=kind, target=self.to)


@dataclasses.dataclass(frozen=True)
class Bug:
    """What makes an engine misbehave: changed rows, another broker, another journal."""

    rows: tuple[Change, ...] = ()
    broker: type[Broker] = Broker
    journal: Callable[[], Journal] = MemoryJournal

    def tables(self, specification: Specification) -> Specification:
        """The tables with the changed rows."""
        for change in self.rows:
            specification = change.apply(specification)
        return specification


# Brokers that forget


def _ready(broker: Broker) -> list[Copy]:
    """What waits in the queues, in order."""
    known = broker.stepper.broker.index(broker.stepper.model.all_copies("broker")).members
    return [known[key] for key in sorted(known) if known[key].state_of("entry") == "ready"]


def _lose(copy: Copy) -> None:
    """The queue has no trace of it any more; its record is where it was."""
    copy.state = copy.automaton.with_states(copy.state, entry="not_recovered")
    copy.in_queue = False
    copy.message.queue.length -= 1
    copy.update_indexes()


class Paging(Broker):
    """After a restart the first page of a queue is not read."""

    PAGE = 2

    def restart(self) -> None:
        """As it is, and then the first page is gone."""
        super().restart()
        for copy in _ready(self)[: self.PAGE]:
            _lose(copy)


class _Dispatching(Broker):
    """A broker that does something after it has dispatched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.engine.dispatcher.dispatch_ready = self._dispatch  # type: ignore[method-assign] # this is the damage

    def _dispatch(self, queue: Queue) -> bool:
        done = Dispatcher.dispatch_ready(self.engine.dispatcher, queue)
        if done:
            self.dispatched()
        return done

    def dispatched(self) -> None:
        """Something was dispatched."""
        raise NotImplementedError


class Evicting(_Dispatching):
    """The page that is being consumed is evicted from its cache, with the first message that was not sent yet."""

    evicted = False

    def dispatched(self) -> None:
        """After the first time the next message is gone."""
        if not self.evicted:
            self.evicted = True
            _lose(_ready(self)[0])


class Miscounting(_Dispatching):
    """Every delivery of a message is counted as the first."""

    def dispatched(self) -> None:
        """Nothing is counted."""
        for copy in self.stepper.copies_of(self.stepper.broker):
            copy.dispatch_count = min(copy.dispatch_count, 1)


class Unspoken(Broker):
    """At the limit of attempts a message is destroyed, and nobody is told."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, dead_letter_queue=None)

    def log(self, process: str, event: str, **fields: object) -> None:
        """As it is, without dead letters."""
        if event != "dead_lettered":
            super().log(process, event, **fields)


# Libraries that keep wrong books


class _Watched(Broker):
    """A broker of whose events a library hears."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.observe(self.heard)

    def heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        """An event has happened."""
        raise NotImplementedError


class Auditing(_Watched):
    """The library acknowledges by itself what it has been sent before, and drops it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sent: set[str] = set()

    def heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        """Of what arrives a second time nobody is told."""
        if event.name == "arrive" and isinstance(subject, Copy):
            if subject.message.id in self.sent:
                self.drop(subject)
            self.sent.add(subject.message.id)

    def drop(self, copy: Copy) -> None:
        """Acknowledge what the application has not had."""
        copy.state = copy.automaton.with_states(copy.state, delivery="absent", ack_frame="in_flight")
        copy.update_indexes()
        self.loop.perform("settle", copy)


class Poisoning(Auditing):
    """The library has what it has been sent before put among the dead letters."""

    def drop(self, copy: Copy) -> None:
        """Its acknowledgement says that the message is poison."""
        super().drop(copy)
        self.engine.dead_letters.add(copy)


class Dropping(_Watched):
    """The library believes an acknowledgement done as it sends it, and drops whatever comes that it covered."""

    last = 0

    def heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        """Remember the last acknowledgement; keep nothing that is not after it."""
        if not isinstance(subject, Copy):
            return
        if event.name == "acknowledge":
            self.last = max(self.last, subject.key)
        elif event.name == "arrive" and subject.key <= self.last:
            subject.state = subject.automaton.with_states(subject.state, delivery="absent")


class Drifting(_Watched):
    """The broker's confirmations are one ahead: that of the first message covers the second before it is sent."""

    ahead = False

    def heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        """After the first confirmation the next message is taken for confirmed as it is sent."""
        if event.name == "confirmed":
            self.ahead = True
        elif event.name == "send" and self.ahead and isinstance(subject, Copy):
            self.ahead = False
            subject.state = subject.automaton.with_states(subject.state, publication="resolved")
            self.stepper.event_effects["confirmed"](subject)


class Contagious(_Watched):
    """A consumer's connection that breaks takes those of all other consumers with it, and nobody is told of these."""

    spreading = False

    def heard(self, event: BoundEvent, subject: Copy | Link) -> None:
        """Break the others too."""
        if event.name == "consumer_link_loss" and not self.spreading:
            self.spreading = True
            for link in list(self.stepper.links):
                if isinstance(link, ReceiverLink) and link is not subject and link.owner is not None:
                    link.owner.lose_connection()
            self.spreading = False

    def log(self, process: str, event: str, **fields: object) -> None:
        """As it is, without what is spread."""
        if not self.spreading:
            super().log(process, event, **fields)


class HeadFirst(Broker):
    """The library takes every confirmation for one of the message that it sent first."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.book = self.stepper.event_effects["confirmed"]
        self.stepper.event_effects["confirmed"] = self.confirmed

    def confirmed(self, copy: Copy) -> None:
        """Whatever was confirmed, cross out the head of the list."""
        head = next(iter(_open(copy)))
        self.book(head)


def _open(copy: Copy) -> Iterator[Copy]:
    """What the producer of ``copy`` has sent without an outcome, in order."""
    for message in list(copy.binding.sender.open if copy.binding.sender is not None else ()):
        if message.outcome is Outcome.OPEN:
            assert message.copy is not None
            yield message.copy


# Journals that drop


class _Rewriting(MemoryJournal):
    """A journal that is written anew, with some entries left out."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[Kind, int, bytes, int]] = []

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        """As it is, and remembered."""
        self.entries.append((kind, key, data, transaction))
        return super().append(kind, key, data, transaction)

    def rewritten(self) -> MemoryJournal:
        """A journal with what is remembered, synced."""
        other = MemoryJournal()
        for entry in self.entries:
            other.append(*entry)
        other.sync()
        return other


class WithoutCommits(_Rewriting):
    """Compaction takes the records of commits for garbage."""

    def compact(self) -> Any:
        """As it is, without the commits."""
        self.entries = [entry for entry in self.entries if entry[0] != Kind.COMMIT]
        return super().compact()

    def kill(self) -> MemoryJournal:
        """What is left of it."""
        return self.rewritten().kill()


class WithoutTheFirst(_Rewriting):
    """Recovery cannot read the record of the first message."""

    def kill(self) -> MemoryJournal:
        """What is left of it."""
        lost = next(n for n, entry in enumerate(self.entries) if entry[0] == Kind.STORE)
        del self.entries[lost]
        return self.rewritten().kill()
