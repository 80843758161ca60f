"""Send what is ready in a queue to those who have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ackfsm.engine._courses import Phase
from ackfsm.engine._parts import Copy
from ackfsm.engine._queues import Incoming, Queue

if TYPE_CHECKING:
    from ackfsm.engine._broker import Broker

__all__ = ["Dispatching"]


class Dispatching:
    """The queues' side of a broker: whom a message goes to, and that its mark is stored before it goes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._core = broker.core
        self._drive = broker.engine.courses.drive
        self._first = broker.core.events["dispatch_first"]
        self._ready = broker.core.wiring.overtaken("dispatch_first", "queue")

    def first(self, queue: Queue) -> Copy | None:
        """What is to be sent next."""
        return queue.scope.under(self._ready).first()

    def feed(self, queue: Queue) -> bool:
        """Send what waits to consumers that have room; whether anything was sent."""
        ready = queue.scope.under(self._ready)
        sent = False
        while (first := ready.first()) is not None:
            incoming = self._next_consumer(queue)
            if incoming is None or not self._dispatch(first, incoming, queue):
                break
            sent = True
        return sent

    def _next_consumer(self, queue: Queue) -> Incoming | None:
        """The next in turn that has room."""
        consumers = queue.consumers
        for _ in range(len(consumers)):
            incoming = consumers[0]
            if len(consumers) > 1:
                consumers.rotate(-1)
            if incoming.has_room():
                return incoming
        return None

    def _dispatch(self, copy: Copy, incoming: Incoming, queue: Queue) -> bool:
        incoming.bind(self._core, copy)
        broker = self._broker
        if not copy.premarked and broker.storage.marks(copy) and not self._mark(queue, incoming):
            return False
        event = copy.told.goes
        if event is None or not self._drive(event, copy, Phase.PROMPT):
            return False
        copy.mark = 1 if event is self._first else max(copy.mark, 1) + 1
        copy.premarked = False
        return True

    def _mark(self, queue: Queue, incoming: Incoming) -> bool:
        """Store for all that are about to be sent that they are: one sync for them together."""
        storage = self._broker.storage
        for copy in queue.scope.under(self._ready).smallest(incoming.room()):
            if not copy.premarked and storage.marks(copy):
                storage.mark(copy)
                copy.premarked = True
        if not self._broker.engine.flush_all():
            return self._broker.sync()
        return self._broker.running
