"""Send what is ready in a queue to those who have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
            consumers.rotate(-1)
            if incoming.has_room():
                return incoming
        return None

    def _dispatch(self, copy: Copy, incoming: Incoming, queue: Queue) -> bool:
        incoming.bind(self._core, copy)
        if self._broker.storage.marks(copy) and not copy.premarked and not self._mark(queue, incoming):
            return False
        for name in ("dispatch_first", "dispatch_again"):
            if self._broker.engine.perform(name, copy):
                copy.mark = 1 if name == "dispatch_first" else max(copy.mark, 1) + 1
                copy.premarked = False
                return True
        return False

    def _mark(self, queue: Queue, incoming: Incoming) -> bool:
        """Store for all that are about to be sent that they are: one sync for them together."""
        room = incoming.room()
        ready = queue.scope.under(self._ready).members
        batch = (
            [ready[key] for key in sorted(ready)[:room]] if room is None or room < len(ready) else list(ready.values())
        )
        for copy in batch:
            if self._broker.storage.marks(copy) and not copy.premarked:
                self._broker.storage.mark(copy)
                copy.premarked = True
        return self._broker.sync()
