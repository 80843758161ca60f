"""Send what is ready in a queue to those who have room."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ackfsm.engine.core.instances import Copy, Route
from ackfsm.engine.core.links import Incoming, Queue
from ackfsm.engine.core.macrosteps import Phase, Script
from ackfsm.engine.core.model import Event

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker

__all__ = ["Dispatching"]


class Dispatching:
    """The queues' side of a broker: whom a message goes to, and that its mark is stored before it goes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._core = broker.core
        self._engine = broker.engine
        self._feeding = Script((None,), Phase.PROMPT, self._bound)
        events = broker.core.events.values()
        self._sending = {e: Script((e,), Phase.PROMPT, self._pass_on) for e in events}
        self._storing = {e: Script((e,), Phase.PROMPT, self._pass_on, blocking=True) for e in events}

    def put(self, event: Event, copy: Copy) -> bool:
        """An event by which the application puts ``copy`` on its way; straight to a consumer, if it is let."""
        engine, queue = self._engine, copy.message.queue
        if copy.refuse:
            return engine.put_in_vain(event, copy)
        consumers: deque[Incoming] = queue.consumers
        at_once = consumers and not queue.ready.members and engine.settles
        if at_once and len(consumers) > 1:
            self._next_consumer(queue)
        onward = consumers[0].route(self._core, copy.route) if at_once else None
        scripts = self._storing if engine.is_quiet() else self._sending
        done = engine.courses.drive(scripts[event], copy, onward) > 0
        if copy.route is onward:
            consumers.rotate(-1)
        engine.tell_stored()
        return done

    def marks(self, copy: Copy, onward: Route) -> bool:
        """Whether it is to be stored before that ``copy`` goes by that route, whose consumer has room."""
        return onward.incoming.has_room() and self._is_to_be_marked(copy, onward)

    def _pass_on(self, copy: Copy, onward: Route) -> bool:
        """Let ``copy`` go on by that route, if its consumer has room and nothing is to be stored before."""
        return not self._is_to_be_marked(copy, onward) and self._bound(copy, onward)

    def _bound(self, copy: Copy, onward: Route) -> bool:
        """Let ``copy`` go on by that route, if its consumer has room."""
        if copy.told.goes is None or not onward.incoming.has_room():
            return False
        onward.incoming.bind(self._core, copy)
        return True

    def _is_to_be_marked(self, copy: Copy, onward: Route) -> bool:
        return not copy.premarked and self._broker.storage.marks(copy, onward.automaton)

    def feed(self, queue: Queue) -> bool:
        """Send what waits to consumers that have room; whether anything was sent."""
        sent = False
        while (first := queue.ready.first()) is not None and (incoming := self._next_consumer(queue)) is not None:
            onward = incoming.route(self._core, first.route)
            if self._is_to_be_marked(first, onward):
                self._engine.mark_later(queue)
                break
            if not self._send(first, onward):
                break
            queue.consumers.rotate(-1)
            sent = True
        return sent

    def _send(self, copy: Copy, onward: Route) -> bool:
        if copy.route is copy.route.base:
            return self._engine.courses.drive(self._feeding, copy, onward) > 1
        onward.incoming.bind(self._core, copy)
        event = copy.told.goes
        return event is not None and self._engine.perform(event.name, copy)

    @staticmethod
    def _next_consumer(queue: Queue) -> Incoming | None:
        """The next in turn that has room, which is first in the queue's turn then."""
        consumers = queue.consumers
        for _ in range(len(consumers)):
            if consumers[0].has_room():
                return consumers[0]
            consumers.rotate(-1)
        return None

    def mark(self, queue: Queue) -> list[Copy]:
        """Write for all that the next consumer has room for that they are about to be sent; which those are."""
        incoming = self._next_consumer(queue)
        if incoming is None:
            return []
        waiting = queue.ready.smallest(incoming.room())
        marked = [c for c in waiting if self._is_to_be_marked(c, incoming.route(self._core, c.route))]
        for copy in marked:
            self._broker.storage.mark(copy)
        return marked
