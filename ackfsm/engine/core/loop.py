"""The run loop: performs pending events, at once or in virtual time, until a waiting call may return."""

from __future__ import annotations

import contextlib
import heapq
import operator
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ackfsm.engine.core.dispatcher import Dispatcher
from ackfsm.engine.core.host import Host
from ackfsm.engine.core.instances import Binding, Copy, Link, Outcome, Queue, Scope, SessionLink
from ackfsm.engine.core.journal import JournalAdapter
from ackfsm.engine.core.links import Links
from ackfsm.engine.core.macrosteps import FollowUp, MacroSteps, Step, StepRequest
from ackfsm.engine.core.model import BoundEvent, IndexRelation, Role, StateFacts
from ackfsm.engine.core.scheduler import Scheduler, Shuffled
from ackfsm.engine.core.stepper import Effect, Stepper
from ackfsm.tables.names import FRAMES, Agent, Event

_EXECUTING = frozenset({Event.EXECUTE_COMMIT, Event.EXECUTE_CONSUMER_COMMIT})
_DISK = Agent.DISK
_SCHEDULED_APART = frozenset({Agent.DISK, Agent.QUEUE})
_NOT_SINGLE = frozenset({Agent.RECOVERY, Agent.QUEUE}) | FRAMES
"""Agents whose events are not chosen one by one: those of recovery, of a queue that dispatches, and frames."""
_name = operator.attrgetter("name")


def _pass_time() -> None:
    """Time has passed."""


class RunLoop:
    """Performs the steps that are due: for copies that others have moved, for links, queues and the disk.

    ``runs_immediately`` says whether anything follows at once.
    """

    def __init__(
        self, stepper: Stepper, links: Links, journal: JournalAdapter, scheduler: Scheduler, host: Host
    ) -> None:
        self.stepper = stepper
        self.scheduler = scheduler
        self.journal = journal
        self.write_mark = journal.write_mark
        self._immediate = scheduler.immediate_agents()
        self._blocked_by: dict[Copy, dict[Copy, None]] = {}
        agents = _followup_agents(self._immediate)
        self.macro_steps = MacroSteps(stepper, agents, self._followups, self, self._blocked_by)
        self._requests: dict[tuple[Step, ...], StepRequest] = {}
        self.requests = {event.name: self.request(event) for event in stepper.events.values()}
        self._continue = self.request(None)
        self._after_sync = StepRequest((None,), FollowUp.AFTER_SYNC)
        self._without_frames = {e: StepRequest((e,), FollowUp.WITHOUT_FRAMES) for e in stepper.events.values()}
        self._followups_of: dict[StateFacts, tuple[Effect, ...]] = {}
        self._host = host
        self.callbacks: deque[Callable[[], None]] = deque()
        self._disk_takes_time = scheduler.delay(Agent.DISK) is not None
        self._group_wakers: tuple[tuple[Effect, tuple[Role, ...]], ...] = (
            (self._wake_sender, (Role.PRODUCER, Role.WINDOW, Role.UNCONFIRMED)),
            (self._wake_receiver, (Role.CONSUMER, Role.PREFETCH)),
        )
        self._shuffled = scheduler if isinstance(scheduler, Shuffled) else None
        self._network = frozenset() if self._shuffled else FRAMES - self._immediate
        self._is_at_once = not (self._disk_takes_time or self._network or self._shuffled)
        self._to_dispatch: dict[Queue, None] = {}
        self._frame_order: dict[tuple[BoundEvent, Copy | Link], None] = {}
        self._blocked: dict[Copy, None] = {}
        self._unread: dict[Copy, None] = {}
        self.resends = False
        self._executing: deque[tuple[BoundEvent, Link]] = deque()
        self._unsynced: dict[Copy, None] = {}
        self._links_to_run: dict[Link, None] = {}
        self._links_to_sync: dict[Link, None] = {}
        self._timed: list[tuple[int, int, Callable[[], None]]] = []
        self._in_flight: dict[tuple[int, object, object], int] = {}
        self._syncing = False
        self._being_synced: tuple[dict[Copy, frozenset[str]], list[Link]] = {}, []
        self._synced_along: list[tuple[Copy, StateFacts]] = []
        self._last_arrival: dict[object, int] = {}
        self._serial = 0
        self.runs_immediately = self._shuffled is None
        self._queues_to_mark: dict[Queue, None] = {}
        self._broker = stepper.broker.groups[Role.BROKER]
        self._write = next(event for event in stepper.events.values() if event.agent == Agent.DISK)
        self._retry = False
        self.dispatcher = Dispatcher(self, links, journal)

    # Requests

    def request(self, *steps: Step) -> StepRequest:
        """A request to perform ``steps``; one object for equal steps, since macro-steps are recorded by it."""
        if steps not in self._requests:
            self._requests[steps] = StepRequest(steps, FollowUp.IMMEDIATE)
        return self._requests[steps]

    def perform(self, name: str, copy: Copy) -> bool:
        """An event of ``copy`` and what follows at once; whether it was allowed."""
        return self.macro_steps.run(self.requests[name], copy) > 0

    def send_rejected(self, event: BoundEvent, copy: Copy) -> bool:
        """The application sends ``copy``, which the broker is about to reject."""
        done = self.macro_steps.run(self._without_frames[event], copy) > 0
        copy.message.blocking = copy.facts.send_pending
        if done and not self._network:
            self.perform(Event.REJECTION, copy)
        return done

    def perform_link_event(self, name: str, link: Link) -> bool:
        """An event of a link or of the broker; whether it was allowed."""
        if name in _EXECUTING:
            return self._execute(link)
        done = self.stepper.perform_link_event(self.stepper.events[name], link)
        if done:
            self._wake(link)
        return done

    def _execute(self, reading: Link) -> bool:
        """The broker reads the frame by which a session commits: the work of all its links counts, or none of it.

        Each link has a frame of its own in the tables; on a connection they are one (JMS 3.1, 6.2.7; AMQP 1.0, 4.3).
        """
        frames = [
            (event, link)
            for link in reading.siblings
            for group in link.groups.values()
            for event in group.facts.enabled
            if event.name in _EXECUTING
        ]
        if any(
            (event.number, link, link) in self._in_flight or not self.stepper.is_link_enabled(event, link)
            for event, link in frames
        ):
            return False
        self._executing += frames
        self.finish_executing()
        return bool(frames)

    @property
    def is_executing(self) -> bool:
        """Whether the broker is executing a commit, during which no fault is injected."""
        return bool(self._executing)

    def finish_executing(self) -> None:
        """Execute the rest of a commit, so that a fault during it finds all of it executed."""
        while self._executing:
            event, link = self._executing.popleft()
            self.stepper.perform_link_event(event, link)
            self._wake(link)

    def _wake(self, link: Link) -> None:
        self._retry = True
        for other in self.stepper.links if link.kind == "broker" else (link,):
            self._links_to_run[other] = None

    def _followups(self, copy: Copy) -> tuple[Effect, ...]:
        """The effects of what ``copy`` and its links have yet to do; the same in the same states."""
        facts = copy.facts
        effects = self._followups_of.get(facts)
        if effects is None:
            effects = self._followups_of[facts] = tuple(self._followups_for(facts))
        effects += tuple(
            wake for wake, roles in self._group_wakers if any(copy.group(role).facts.enabled for role in roles)
        )
        effects += (self._unblock,) if copy in self._blocked_by else ()
        over = copy.is_finished and Agent.BROKER not in facts.agents  # a place within a bound may have to be given back
        return (*effects, self._discard_finished) if over else effects

    def _followups_for(self, facts: StateFacts) -> Iterator[Effect]:
        """Effects for the events that a copy was refused, or that take time."""
        if _DISK in facts.agents:
            yield self._await_sync
        if Agent.QUEUE in facts.agents:
            yield lambda copy: self.schedule_dispatch(copy.message.queue)
        travelling = tuple(event for event in facts.enabled if event.agent in self._network)
        if travelling:
            yield lambda copy: self._send_all(travelling, copy)
        if self._shuffled is not None and facts.agents & FRAMES:
            yield self._line_up
        if facts.agents - self._network - _SCHEDULED_APART:
            yield self._block

    def _line_up(self, copy: Copy) -> None:
        """Put the frames of ``copy`` behind the frames sent before, and behind the copies that it covers."""
        for each in sorted({**self.stepper.moved, copy: None}, key=lambda moved: moved.key):
            frames = (event for event in each.facts.enabled if event.agent in FRAMES)
            self._frame_order.update(
                ((event, each), None) for event in frames if (event, each) not in self._frame_order
            )

    def _await_sync(self, copy: Copy) -> None:
        self._unsynced[copy] = None
        if self._disk_takes_time:
            self._sync_later()

    def _block(self, copy: Copy) -> None:
        self._blocked[copy] = None
        if Agent.BROKER_TO_CONSUMER in copy.facts.agents:
            self._unread[copy] = None
        for event in copy.facts.enabled:
            if self.resends or (event.agent == Agent.CONSUMER_TO_BROKER and event.broadcasts):
                other = self.stepper.refuser(event, copy)
                if isinstance(other, Copy) and other is not copy:
                    self._blocked_by.setdefault(other, {})[copy] = None

    def _unblock(self, copy: Copy) -> None:
        """``copy`` has moved: the copies behind it in an order of frames may go on."""
        self.stepper.moved.update(self._blocked_by.pop(copy, {}))

    def _wake_sender(self, copy: Copy) -> None:
        if copy.binding.sender is not None:
            self._links_to_run[copy.binding.sender] = None

    def _wake_receiver(self, copy: Copy) -> None:
        if copy.binding.receiver is not None:
            self._links_to_run[copy.binding.receiver] = None

    def _send_all(self, events: Iterable[BoundEvent], copy: Copy) -> None:
        for event in events:
            self._send(event, copy)

    def _send(self, event: BoundEvent, subject: Copy | Link) -> None:
        """Let a frame travel, behind those in flight on the same connection in the same direction."""
        scope = _frame_link(event, subject)
        frame = (event.number, subject, scope)
        if frame in self._in_flight:
            return
        sent = self._in_flight[frame] = self.scheduler.now
        way = event.agent, _line(scope)
        at = max(self.scheduler.now + (self.scheduler.delay(event.agent) or 0), self._last_arrival.get(way, 0))
        self._last_arrival[way] = at
        lost = self.scheduler.loses(event.agent)

        def arrives() -> None:
            del self._in_flight[frame]
            if self._last_arrival.get(way) == at:
                del self._last_arrival[way]  # nothing has to stay behind what has arrived
            if _frame_link(event, subject) is not scope:
                return  # it went to another link since
            if lost and isinstance(scope, Link) and scope.owner is not None:
                scope.owner.lose_connection()
            elif isinstance(subject, Link):
                self.perform_link_event(event.name, subject)
            elif not self._is_covered_by_range(event, subject, sent) and not self._read(event, subject):
                self._block(subject)

        self.schedule(at, arrives)

    def _read(self, event: BoundEvent, subject: Copy) -> bool:
        """Read a frame, and before it the frames of earlier messages that it covers: they are one frame."""
        while not self.perform(_arrival_event(event, subject), subject):
            if event.agent != Agent.CONSUMER_TO_BROKER or not event.broadcasts:
                return False
            other = self.stepper.refuser(event, subject)
            if not isinstance(other, Copy) or other.key >= subject.key or not self._read(event, other):
                return False
        return True

    def _is_covered_by_range(self, event: BoundEvent, copy: Copy, sent: int) -> bool:
        """Whether a frame that was sent at the same moment for a later copy covers this one too: cumulative."""
        for broadcast, _ in event.broadcasts:
            scope = copy.scopes[broadcast.scope]
            others = (
                scope.index(broadcast).members
                if scope is not None and broadcast.relation is IndexRelation.LATER
                else {}
            )
            if copy.key in others:
                last = others[max(others)]
                frame = (event.number, last, _frame_link(event, last))
                return last is not copy and self._in_flight.get(frame) == sent and self.stepper.is_enabled(event, last)
        return False

    def _sync_later(self) -> None:
        if self._syncing:
            return
        delay = self.scheduler.delay(Agent.DISK)
        if delay is not None:
            self._syncing = True
            self.schedule(self.scheduler.now + delay, self._synced)

    def _synced(self) -> None:
        self._syncing = False
        self.flush()

    def schedule(self, time: int, action: Callable[[], None]) -> None:
        """Do ``action`` when the virtual time (nanoseconds) has come."""
        self._serial += 1
        heapq.heappush(self._timed, (time, self._serial, action))

    @contextlib.contextmanager
    def deadline(self, time: int | None) -> Iterator[None]:
        """Let the virtual time come meanwhile, though nothing else happens then; ``None``: no such time."""
        if time is None:
            yield
            return
        self._serial += 1
        due = (time, self._serial, _pass_time)
        heapq.heappush(self._timed, due)
        try:
            yield
        finally:
            if due in self._timed:
                self._timed.remove(due)
                heapq.heapify(self._timed)

    # What follows

    def run_to_quiescence(self, *, store: bool = True) -> None:
        """Do all that happens at once; without ``store`` a copy whose mark has to be stored waits for the next sync."""
        stepper = self.stepper
        while True:
            if stepper.moved and self._shuffled is None:
                copy = next(iter(stepper.moved))
                del stepper.moved[copy]
                self.macro_steps.run(self._continue, copy)
            elif self.callbacks:
                self.callbacks.popleft()()
            elif self._shuffled is not None:
                return
            elif self._links_to_run:
                self._run_link(self._links_to_run.popitem()[0])
            elif self._retry:
                self._retry_blocked()
            elif self._to_dispatch:
                self.dispatcher.dispatch_ready(self._next_to_dispatch())
            elif self._queues_to_mark and store and not self._disk_takes_time:
                self.flush()
            else:
                return

    def _run_link(self, link: Link) -> None:
        """The automatic events of a link."""
        for group in link.groups.values():
            for event in group.facts.enabled:
                if event.agent in self._immediate:
                    if self.perform_link_event(event.name, link):
                        return
                elif event.agent in self._network:
                    self._send(event, link)
                elif event.agent == Agent.DISK:
                    self._links_to_sync[link] = None
                    self._sync_later()

    def _retry_blocked(self) -> None:
        """Retry the events of copies that were refused, after something has happened that may allow them."""
        self._retry = False
        waiting, self._blocked = sorted(self._blocked, key=lambda copy: copy.key), {}
        for copy in waiting:
            self.macro_steps.run(self._continue, copy)

    def retry(self) -> None:
        """Try the refused events again, which may be allowed now."""
        self._retry = True

    def finish_subscription(self, queue: Queue) -> None:
        """A consumer of ``queue`` is about to come, and a subscription that ended before keeps nothing for it."""
        waiting = [copy for copy in self._blocked | self.stepper.moved if copy.message.queue is queue]
        for copy in sorted(waiting, key=lambda copy: copy.key):
            if any(event.name == Event.MISSED for event in copy.facts.enabled):
                self.perform(Event.MISSED, copy)

    def resume_reading(self) -> None:
        """A library has delivered a message, and now reads the frames that came meanwhile."""
        if self._unread:
            self.stepper.moved.update(self._unread)
            self._unread.clear()

    def schedule_dispatch(self, queue: Queue) -> None:
        """A queue has something to dispatch, or a consumer with credit."""
        self._to_dispatch[queue] = None

    def _next_to_dispatch(self) -> Queue:
        """The queue that dispatches next: by name, since which was ready first depends on the observer."""
        queue = next(iter(self._to_dispatch)) if len(self._to_dispatch) == 1 else min(self._to_dispatch, key=_name)
        del self._to_dispatch[queue]
        return queue

    def wait(self, until: Callable[[], bool]) -> bool:
        """Go on until ``until()``; ``False`` if nothing more can happen before."""
        self.run_to_quiescence()
        while not until():
            if not self.advance():
                return False
            self.run_to_quiescence()
        return True

    def step(self) -> bool:
        """Do the next thing and all that follows at once; ``False`` if there is nothing."""
        self.run_to_quiescence()
        if not self.advance():
            return False
        self.run_to_quiescence()
        return True

    def advance(self) -> bool:
        """The next thing that takes time, or that is done only when there is nothing else to do."""
        if self._shuffled is not None:
            return self._random_step(self._shuffled.random) or self._idle()
        return self._next_timed() or self.flush() or self._timers() or self._idle()

    def _idle(self) -> bool:
        """Do the work for idle moments: lazy acknowledgements; entries without a waiting call; repairs."""
        if self._host.flush_lazy_acks():
            return True
        if self.journal.has_unsynced:
            self._sync()
            return True
        return self._host.repair()

    def _sync(self) -> bool:
        """Write and sync the journal; ``False`` if that failed, and the broker has stopped."""
        if self.journal.sync():
            return True
        self._host.sync_failed()
        return False

    def _next_timed(self) -> bool:
        """The timed action that is due next."""
        if not self._timed:
            return False
        at, _, action = heapq.heappop(self._timed)
        self.scheduler.now = max(self.scheduler.now, at)
        action()
        return True

    def is_idle(self) -> bool:
        """Whether nothing is pending, a sync takes no time, and there is no observer: a call may be one macro-step."""
        return self._is_at_once and not (
            self.stepper.observer is not None
            or self.stepper.moved
            or self.callbacks
            or self._links_to_run
            or self._retry
            or self._to_dispatch
            or self._queues_to_mark
            or self._links_to_sync
            or self._timed
            or any(map(_is_open, self._unsynced))
        )

    def requires_mark(self, copy: Copy, onward: Binding) -> bool:
        """See :class:`SyncPoint`."""
        return self.dispatcher.requires_mark(copy, onward)

    def sync_for(self, copy: Copy) -> bool:
        """Sync within a macro-step, for which the call that sends ``copy`` waits; see :class:`SyncPoint`."""
        copy.message.blocking = True
        taken = []
        for each in self._unsynced:
            facts = each.facts
            if _DISK in facts.agents:
                taken.append((each, facts))  # of one or two, for which a comprehension costs more
        self._unsynced.clear()
        if not self.journal.sync():
            return False
        self._synced_along = taken
        return True

    def sync_failed(self) -> None:
        """See :class:`SyncPoint`."""
        self._host.sync_failed()

    def notify_synced(self) -> None:
        """Notify the copies whose entries a sync within a macro-step took along."""
        if self._synced_along:
            taken, self._synced_along = self._synced_along, []
            self._notify_all(taken)

    def flush(self) -> bool:
        """Sync the journal and notify all copies and links whose entries it took; ``False`` if that moves none."""
        copies = [copy for copy in self._unsynced if _DISK in copy.facts.agents]
        links = [link for link in self._links_to_sync if _disk_events(link)]
        self._unsynced.clear()
        for link in links:
            del self._links_to_sync[link]
        marked = [found for queue in self._queues_to_mark if (found := self.dispatcher.write_marks(queue))]
        self._queues_to_mark.clear()
        if not copies and not links and not marked:
            return False
        moved = bool(links or marked)
        try:
            if not self._sync():
                return True
        except BaseException:  # the next sync of the journal says what became of it
            self._unsynced.update(dict.fromkeys(copies))
            self._links_to_sync.update(dict.fromkeys(links))
            raise
        for waiting in marked:
            self._marks_durable(waiting)
        taken = [(copy, copy.facts) for copy in copies]
        if self.stepper.observer is not None:
            self._being_synced = {copy: facts.unsynced for copy, facts in taken}, links
        try:
            moved = self._notify_all(taken) or moved
            for link in links:
                self._perform_link_synced(link)
                self._wake(link)
        finally:
            self._being_synced = {}, []
        return moved  # nothing is moved if the broker has died meanwhile

    def _notify_all(self, taken: list[tuple[Copy, StateFacts]]) -> bool:
        """A sync took the entries of these copies, each in the state that it had then; whether one has moved."""
        moved = False
        for copy, facts in taken:
            before = copy.state
            if copy.facts is facts and self.stepper.observer is None:
                self.macro_steps.run(self._after_sync, copy)
            else:  # it may have got another entry since, which this sync did not take
                self._perform_synced(copy, facts.unsynced)
                copy.update_indexes()
                self.macro_steps.run(self._continue, copy)
            moved = moved or copy.state != before
        return moved

    def _marks_durable(self, waiting: list[Copy]) -> None:
        """The marks of these copies, which are in one queue, are stored."""
        for copy in waiting:
            copy.mark_stored = True
        self.schedule_dispatch(waiting[0].message.queue)

    def schedule_mark(self, queue: Queue) -> None:
        """Write the marks of the next copies in ``queue`` before the next sync."""
        self._queues_to_mark[queue] = None
        if self._disk_takes_time:
            self._sync_later()

    def finish_sync_notifications(self) -> None:
        """Perform first the effects of the last sync: the broker is about to die."""
        self.finish_executing()
        copies, links = self._being_synced
        for copy, records in copies.items():
            self._perform_synced(copy, records)
        for link in links:
            self._perform_link_synced(link)

    def _perform_synced(self, copy: Copy, records: frozenset[str]) -> None:
        """A sync took these ``records`` of ``copy``."""
        while any(event.record in records and self.stepper.perform(event, copy) for event in copy.facts.enabled):
            pass

    def _perform_link_synced(self, link: Link) -> None:
        while any(self.stepper.perform_link_event(event, link) for event in _disk_events(link)):
            pass

    def flush_all(self) -> bool:
        """The same for all that have an entry: a sync takes all that is written."""
        self._unsynced.update((copy, None) for copy in self._blocked if _DISK in copy.facts.agents)
        self._links_to_sync.update((link, None) for link in self.stepper.links if _disk_events(link))
        return self.flush()

    def _timers(self) -> bool:
        for link in list(self.stepper.links):
            for group in link.groups.values():
                for event in group.facts.enabled:
                    if event.agent == Agent.TIMER and self.perform_link_event(event.name, link):
                        self.scheduler.now += self.scheduler.delay(Agent.TIMER) or 0
                        return True
        return False

    def _random_step(self, chance: random.Random) -> bool:
        """Any one event that can happen; of the frames of one connection and direction the first that can."""
        pending = {**self._blocked, **self._unsynced, **self.stepper.moved}
        copies = sorted(pending, key=lambda copy: copy.key)
        todo: list[tuple[BoundEvent, Copy | Link]] = [(event, copy) for copy in copies for event in copy.facts.enabled]
        for link in self.stepper.links:
            todo += ((event, link) for group in link.groups.values() for event in group.facts.enabled)
        choices: list[list[tuple[BoundEvent, Copy | Link | Queue]]] = []
        choices += ([each] for each in todo if each[0].agent not in _NOT_SINGLE)
        choices += self._frames_in_order([each for each in todo if each[0].agent in FRAMES])
        choices += ([(self.stepper.events[Event.DISPATCH_FIRST], queue)] for queue in self.dispatcher.dispatchable())
        choices += ([(self._write, self.stepper.broker)] for _ in self._queues_to_mark)
        self.stepper.moved.clear()
        self._blocked = pending
        self._unsynced.clear()
        self._to_dispatch.clear()
        chance.shuffle(choices)
        done = any(self._perform_choice(event, subject) for choice in choices for event, subject in choice)
        self._blocked = {copy: None for copy in self._blocked if copy.facts.enabled}
        return done

    def _frames_in_order(
        self, frames: list[tuple[BoundEvent, Copy | Link]]
    ) -> list[list[tuple[BoundEvent, Copy | Link | Queue]]]:
        """The frames in flight, of each connection and direction in the order in which they were sent."""
        there = dict.fromkeys(frames)
        self._frame_order = {each: None for each in (*self._frame_order, *frames) if each in there}
        lines: dict[object, list[tuple[BoundEvent, Copy | Link | Queue]]] = {}
        for event, subject in self._frame_order:
            lines.setdefault((event.agent, _line(_frame_link(event, subject))), []).append((event, subject))
        return list(lines.values())

    def _perform_choice(self, event: BoundEvent, subject: Copy | Link | Queue) -> bool:
        if event.agent == Agent.DISK:
            return self.flush_all()
        if isinstance(subject, Link):
            return self.perform_link_event(event.name, subject)
        if isinstance(subject, Queue):
            return self._dispatches(subject)
        return self.perform(event.name, subject)

    def _dispatches(self, queue: Queue) -> bool:
        """Dispatch from a queue; whether a copy was dispatched, or marked to be dispatched after a sync."""
        waiting = len(self._queues_to_mark)
        return self.dispatcher.dispatch_ready(queue) or len(self._queues_to_mark) > waiting

    def _discard_finished(self, copy: Copy) -> None:
        broker = self._broker
        if broker.state != broker.automaton.initial:
            return  # the journal may have more of it than the tables know
        other = copy.other_copy
        if other is None:
            self._forget(copy)
        elif other.is_finished:
            self._forget(copy)
            self._forget(other)

    def _forget(self, copy: Copy) -> None:
        """No event that a client could notice can happen to ``copy`` any more."""
        if copy.indexed_under:
            copy.leave_indexes()
        if self._blocked or self._unread or self._blocked_by or self._unsynced or self.stepper.moved:
            for each in (self._blocked, self._unread, self._blocked_by, self._unsynced, self.stepper.moved):
                each.pop(copy, None)
        if copy.message.copy is copy:
            copy.message.copy = None
        copy.delivery = None


def _is_open(copy: Copy) -> bool:
    """Return whether its sender still waits for its outcome, which comes before the outcomes of later copies."""
    return copy.binding.sender is not None and copy.message.outcome is Outcome.OPEN


def _followup_agents(immediate: frozenset[str]) -> dict[FollowUp, tuple[frozenset[str], ...]]:
    return {
        FollowUp.IMMEDIATE: (immediate,),
        FollowUp.AFTER_SYNC: (frozenset({Agent.DISK}), immediate),
        FollowUp.WITHOUT_FRAMES: (immediate - FRAMES,),
    }


def _disk_events(link: Link) -> list[BoundEvent]:
    return [event for group in link.groups.values() for event in group.facts.enabled if event.agent == Agent.DISK]


def _frame_link(event: BoundEvent, subject: Copy | Link) -> Scope | None:
    """The link on whose connection a frame travels."""
    if not isinstance(subject, Copy):
        return subject
    return None if event.frame is None else subject.scopes[event.frame]


def _line(scope: Scope | None) -> object:
    """Return the order that the frames of a link share with others: the connection of its session."""
    return scope.session if isinstance(scope, SessionLink) else scope


def _arrival_event(event: BoundEvent, copy: Copy) -> str:
    """Return the event of a frame that has arrived: the broker may reject a producer's frame."""
    return Event.REJECTION if copy.reject and event.agent == Agent.PRODUCER_TO_BROKER else event.name
