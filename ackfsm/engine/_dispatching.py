"""Send what is ready in a queue to those who have room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ackfsm.engine._courses import Phase, Script
from ackfsm.engine._parts import Copy, Route
from ackfsm.engine._queues import Incoming, Queue
from ackfsm.engine._wiring import Event

if TYPE_CHECKING:
    from ackfsm.engine._broker import Broker

__all__ = ["Dispatching"]


class Dispatching:
    """The queues' side of a broker: whom a message goes to, and that its mark is stored before it goes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._core = broker.core
        self._engine = broker.engine
        self._sending = {e: Script((e,), Phase.PROMPT, self._pass_on) for e in broker.core.events.values()}

    def put(self, event: Event, copy: Copy) -> bool:
        """An event by which the application puts ``copy`` on its way; straight to a consumer, if it is let."""
        queue: Queue = copy.message.queue
        consumers = queue.consumers
        if copy.refuse:
            return self._engine.put_in_vain(event, copy)
        if not consumers or queue.ready.members or not self._engine.settles:
            return self._engine.perform(event.name, copy)
        onward = consumers[0].route(self._core, copy.route)
        done = self._engine.courses.drive(self._sending[event], copy, onward) > 0
        if copy.route is onward:
            consumers.rotate(-1)
        return done

    def _pass_on(self, copy: Copy, onward: Route) -> bool:
        """Let ``copy`` go on by that route, if its consumer has room and nothing is to be stored before."""
        incoming: Incoming = onward.incoming
        if copy.told.goes is None or self._broker.storage.marks(copy) or not incoming.has_room():
            return False
        incoming.bind(self._core, copy)
        return True

    def feed(self, queue: Queue) -> bool:
        """Send what waits to consumers that have room; whether anything was sent."""
        ready = queue.ready
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
        return event is not None and self._engine.perform(event.name, copy)

    def _mark(self, queue: Queue, incoming: Incoming) -> bool:
        """Store for all that are about to be sent that they are: one sync for them together."""
        storage = self._broker.storage
        for copy in queue.ready.smallest(incoming.room()):
            if not copy.premarked and storage.marks(copy):
                storage.mark(copy)
                copy.premarked = True
        if not self._engine.flush_all():
            return self._broker.sync()
        return self._broker.running
