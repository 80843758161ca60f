"""Dispatch the ready messages of a queue to the consumers that have credit."""

from __future__ import annotations

from typing import Protocol

from ackfsm.engine.core.instances import Binding, Copy, Queue, ReceiverLink
from ackfsm.engine.core.journal import JournalAdapter
from ackfsm.engine.core.links import Links
from ackfsm.engine.core.macrosteps import FollowUp, MacroSteps, StepRequest
from ackfsm.engine.core.model import BoundEvent
from ackfsm.engine.core.stepper import Stepper


class _Loop(Protocol):
    """The part of the run loop that the dispatcher needs."""

    stepper: Stepper
    macro_steps: MacroSteps
    runs_immediately: bool

    def perform(self, name: str, copy: Copy) -> bool: ...
    def send_rejected(self, event: BoundEvent, copy: Copy) -> bool: ...
    def is_idle(self) -> bool: ...
    def notify_synced(self) -> None: ...
    def schedule_mark(self, queue: Queue) -> None: ...
    def schedule_dispatch(self, queue: Queue) -> None: ...


class Dispatcher:
    """Chooses the consumer of a copy, and has its redelivered mark stored before it is dispatched.

    ``queues`` are all queues of the broker, by their names.
    """

    def __init__(self, loop: _Loop, links: Links, journal: JournalAdapter) -> None:
        self.queues: dict[str, Queue] = {}
        self._loop = loop
        self._links = links
        self._journal = journal
        self._dispatching = StepRequest((None,), FollowUp.IMMEDIATE, self._hand_off)
        events = loop.stepper.events.values()
        self._sending = {e: StepRequest((e,), FollowUp.IMMEDIATE, self._hand_off_unmarked) for e in events}
        self._sending_synced = {
            e: StepRequest((e,), FollowUp.IMMEDIATE, self._hand_off_unmarked, blocking=True) for e in events
        }

    def send(self, event: BoundEvent, copy: Copy) -> bool:
        """The application sends ``copy`` by ``event``; it goes straight to a consumer, if that is allowed."""
        loop, queue = self._loop, copy.message.queue
        if copy.reject:
            return loop.send_rejected(event, copy)
        consumers = queue.consumers
        at_once = consumers and not queue.ready.members and loop.runs_immediately
        if at_once and len(consumers) > 1:
            self._next_consumer(queue)
        onward = self._links.binding_from(consumers[0], copy.binding) if at_once else None
        requests = self._sending_synced if loop.is_idle() else self._sending
        done = loop.macro_steps.run(requests[event], copy, onward) > 0
        if copy.binding is onward:
            consumers.rotate(-1)
        loop.notify_synced()
        return done

    def requires_mark(self, copy: Copy, onward: Binding) -> bool:
        """Whether the mark of ``copy`` has to be stored before it goes by that binding, whose consumer has credit."""
        receiver = onward.receiver
        return receiver is not None and receiver.has_credit() and self._needs_mark(copy, onward)

    def _hand_off_unmarked(self, copy: Copy, onward: Binding) -> bool:
        """Attach ``copy`` to the consumer of that binding, if it has credit and no mark has to be stored before."""
        return not self._needs_mark(copy, onward) and self._hand_off(copy, onward)

    def _hand_off(self, copy: Copy, onward: Binding) -> bool:
        """Attach ``copy`` to the consumer of that binding, if it has credit."""
        receiver = onward.receiver
        if copy.facts.dispatch_event is None or receiver is None or not receiver.has_credit():
            return False
        self._links.attach(copy, receiver)
        return True

    def _needs_mark(self, copy: Copy, onward: Binding) -> bool:
        return not copy.mark_stored and self._journal.requires_mark(copy, onward.automaton)

    def dispatchable(self) -> list[Queue]:
        """The queues that have something to dispatch and a consumer with credit, by their names."""
        found = (queue for _, queue in sorted(self.queues.items()))
        return [queue for queue in found if queue.ready.members and any(each.has_credit() for each in queue.consumers)]

    def notify(self, queue: Queue) -> None:
        """A consumer of ``queue`` may have got credit."""
        if queue.ready.members:
            self._loop.schedule_dispatch(queue)

    def dispatch_ready(self, queue: Queue) -> bool:
        """Dispatch ready messages to consumers that have credit; return whether there were any."""
        sent = False
        while (first := queue.ready.first()) is not None and (receiver := self._next_consumer(queue)) is not None:
            onward = self._links.binding_from(receiver, first.binding)
            if self._needs_mark(first, onward):
                self._loop.schedule_mark(queue)
                break
            if not self._dispatch(first, onward, receiver):
                break
            queue.consumers.rotate(-1)
            sent = True
        return sent

    def _dispatch(self, copy: Copy, onward: Binding, receiver: ReceiverLink) -> bool:
        if copy.binding.before is None:
            return self._loop.macro_steps.run(self._dispatching, copy, onward) > 1
        self._links.attach(copy, receiver)
        event = copy.facts.dispatch_event
        return event is not None and self._loop.perform(event.name, copy)

    @staticmethod
    def _next_consumer(queue: Queue) -> ReceiverLink | None:
        """The next consumer in turn that has credit; it is the first of the queue then."""
        consumers = queue.consumers
        for _ in range(len(consumers)):
            if consumers[0].has_credit():
                return consumers[0]
            consumers.rotate(-1)
        return None

    def write_marks(self, queue: Queue) -> list[Copy]:
        """Write the marks of all copies for which the next consumer has credit; which those are."""
        receiver = self._next_consumer(queue)
        if receiver is None:
            return []
        waiting = queue.ready.smallest(receiver.credit())
        marked = [c for c in waiting if self._needs_mark(c, self._links.binding_from(receiver, c.binding))]
        for copy in marked:
            self._journal.write_mark(copy)
        return marked
