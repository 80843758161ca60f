"""Run: what is to be done next, at once or in virtual time, until a call that waits may return."""

from __future__ import annotations

import contextlib
import heapq
import operator
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from ackfsm.engine.core.instances import Copy, Route, Scope
from ackfsm.engine.core.links import Queue
from ackfsm.engine.core.macrosteps import Courses, Phase, Script, Step
from ackfsm.engine.core.message import Outcome
from ackfsm.engine.core.model import Event, Role, State, View, Wiring
from ackfsm.engine.core.scheduler import FRAMES, PUBLISH, Pace, Shuffled
from ackfsm.engine.core.stepper import Core, Effect, Session

__all__ = ["Engine", "Queues"]

_DELIVERY = "broker_to_consumer"
_EXECUTING = frozenset({"execute_commit", "execute_consumer_commit"})
_PUBLISHING = frozenset({PUBLISH, "broker_to_producer"})
_DISK = frozenset({"disk"})
_KNOWN = frozenset({"disk", "queue"})
_NOT_ALONE = frozenset({"recovery", "queue"}) | FRAMES
"""Whose events are not chosen one by one: those of the broker's start, of a queue that is fed, and frames."""
_name = operator.attrgetter("name")


def _nothing() -> None:
    """Time has passed."""


class Queues(Protocol):
    """What the engine asks of the queues and the journal."""

    def feed(self, queue: Queue) -> bool:
        """Send what waits in ``queue`` to consumers that have room; whether anything was sent."""

    def dispatchable(self) -> list[Queue]:
        """The queues that have something to send and a consumer with room, by their names."""

    def mark(self, queue: Queue) -> list[Copy]:
        """Write to the journal that those who are next in ``queue`` are about to be sent; which those are."""

    def sync(self) -> bool:
        """Write and sync the journal; ``False`` if it failed and the broker has stopped."""

    def marks(self, copy: Copy, onward: Route) -> bool:
        """Whether it is to be stored before that ``copy`` is about to be sent by that route."""

    def mark_one(self, copy: Copy) -> None:
        """Write that."""

    def write(self) -> bool:
        """Write and sync the journal; ``False`` if it failed, and the broker is to be stopped."""

    def stop(self) -> None:
        """The journal has failed, and so the broker stops."""

    def idle(self) -> bool:
        """Do what is done when nothing else is: lazy acknowledgements, syncs, repairs; whether anything was done."""


class Engine:
    """Does what is to be done: for copies that others have moved, for sessions, for queues, for the disk.

    ``settles`` says whether anything follows at once.
    """

    def __init__(self, wiring: Wiring, queues: Queues, pace: Pace) -> None:
        self.core = Core(wiring)
        self.courses = Courses(self.core, _phases(pace.prompt()), self._left, self)
        self._made: dict[tuple[Step, ...], Script] = {}
        self.scripts = {event.name: self.script(event) for event in self.core.events.values()}
        self._nothing = self.script(None)
        self._synced_entry = Script((None,), Phase.DISK)
        self._silent = {e: Script((e,), Phase.SILENT) for e in self.core.events.values()}
        self._leftovers: dict[State, tuple[Effect, ...]] = {}
        self.pace = pace
        self.queues = queues
        self.callbacks: deque[Callable[[], None]] = deque()
        self._prompt = pace.prompt()
        self._disk_takes_time = pace.delay("disk") is not None
        self._sides: tuple[tuple[Effect, tuple[Role, ...]], ...] = (
            (self._producer_busy, (Role.PRODUCER, Role.WINDOW, Role.UNANSWERED)),
            (self._consumer_busy, (Role.CONSUMER, Role.PREFETCH)),
        )
        self._travelling = frozenset() if isinstance(pace, Shuffled) else FRAMES - self._prompt
        self._shuffled = pace if isinstance(pace, Shuffled) else None
        self._is_at_once = not (self._disk_takes_time or self._travelling or self._shuffled)
        self._hungry: dict[Queue, None] = {}
        self._sent_so_far: dict[tuple[Event, Copy | Session], None] = {}
        self._waiting: dict[Copy, None] = {}
        self._unread: dict[Copy, None] = {}
        self._behind: dict[Copy, dict[Copy, None]] = {}
        self.resends = False
        self._executing: deque[tuple[Event, Session]] = deque()
        self._unsynced: dict[Copy, None] = {}
        self._busy: dict[Session, None] = {}
        self._writing: dict[Session, None] = {}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._sent: dict[tuple[int, object, object], int] = {}
        self._syncing = False
        self._taken: tuple[dict[Copy, frozenset[str]], list[Session]] = {}, []
        self._stored_with: list[tuple[Copy, State]] = []
        self._last: dict[object, int] = {}
        self._serial = 0
        self.settles = self._shuffled is None
        self._marking: dict[Queue, None] = {}
        self._broker = self.core.broker.parts[Role.BROKER]
        self._retry = False

    # What somebody does

    def script(self, *steps: Step) -> Script:
        """What somebody does, ``steps`` one after the other; the same one for the same, since courses go by it."""
        if steps not in self._made:
            self._made[steps] = Script(steps, Phase.PROMPT)
        return self._made[steps]

    def perform(self, name: str, copy: Copy) -> bool:
        """An event of ``copy`` that somebody brings about, and what follows at once."""
        return self.courses.drive(self.scripts[name], copy) > 0

    def put_in_vain(self, event: Event, copy: Copy) -> bool:
        """An event by which the application puts ``copy`` on its way, which the broker is about to refuse."""
        done = self.courses.drive(self._silent[event], copy) > 0
        copy.message.waited = copy.told.sending
        if done and not self._travelling:
            self.perform("rejection", copy)
        return done

    def happen(self, name: str, session: Session) -> bool:
        """An event of a session or the broker that somebody brings about."""
        if name in _EXECUTING:
            return self._execute(session)
        done = self.core.happen(self.core.events[name], session)
        if done:
            self._stir(session)
        return done

    def _execute(self, session: Session) -> bool:
        """The broker reads the frame by which a session commits: the work of all its sides counts, or none of it.

        Each side has a frame of its own in the tables; on a connection they are one (JMS 3.1, 6.2.7; AMQP 1.0, 4.3).
        """
        sides = [
            (event, side)
            for side in session.face.owner.sides()
            for part in side.parts.values()
            for event in part.told.todo
            if event.name in _EXECUTING
        ]
        if any((event.number, side, side) in self._sent or not self.core.allows(event, side) for event, side in sides):
            return False
        self._executing += sides
        self.finish_executing()
        return bool(sides)

    @property
    def is_executing(self) -> bool:
        """Whether the broker is executing a commit, during which no fault is injected."""
        return bool(self._executing)

    def finish_executing(self) -> None:
        """Execute what is left of a commit, so that a fault during it finds all of it executed."""
        while self._executing:
            event, side = self._executing.popleft()
            self.core.happen(event, side)
            self._stir(side)

    def _stir(self, session: Session) -> None:
        self._retry = True
        for other in self.core.sessions if session.kind == "broker" else (session,):
            self._busy[other] = None

    def _left(self, copy: Copy) -> tuple[Effect, ...]:
        """What is done about what ``copy`` and its sessions have yet to do; the same in the same states."""
        told = copy.told
        left = self._leftovers.get(told)
        if left is None:
            left = self._leftovers[told] = tuple(self._leftover(told))
        left += tuple(busy for busy, roles in self._sides if any(copy.part(role).told.todo for role in roles))
        left += (self._go_on_behind,) if copy in self._behind else ()
        return (*left, self._finished) if copy.spent else left

    def _leftover(self, told: State) -> Iterator[Effect]:
        """What a copy has to do and was not let do, or what takes time."""
        if "disk" in told.by:
            yield self._unsync
        if "queue" in told.by:
            yield lambda copy: self.hungry(copy.message.queue)
        travelling = tuple(event for event in told.todo if event.agent in self._travelling)
        if travelling:
            yield lambda copy: self._send_all(travelling, copy)
        if told.by - self._travelling - _KNOWN:
            yield self._wait_for

    def _unsync(self, copy: Copy) -> None:
        self._unsynced[copy] = None
        if self._disk_takes_time:
            self._sync_later()

    def _wait_for(self, copy: Copy) -> None:
        self._waiting[copy] = None
        if _DELIVERY in copy.told.by:
            self._unread[copy] = None
        if self.resends:
            for event in copy.told.todo:
                other = self.core.refuser(event, copy)
                if isinstance(other, Copy) and other is not copy:
                    self._behind.setdefault(other, {})[copy] = None

    def _go_on_behind(self, copy: Copy) -> None:
        """``copy`` has moved: those behind it, by the order of their first sendings, may go on."""
        self.core.moved.update(self._behind.pop(copy, {}))

    def _producer_busy(self, copy: Copy) -> None:
        self._busy[copy.route.outgoing.session] = None

    def _consumer_busy(self, copy: Copy) -> None:
        self._busy[copy.route.incoming.session] = None

    def _send_all(self, events: Iterable[Event], copy: Copy) -> None:
        for event in events:
            self._send(event, copy)

    def _send(self, event: Event, subject: Copy | Session) -> None:
        """Let a frame travel, behind those that are under way on the same connection in the same direction."""
        scope = _connection(event, subject)
        frame = (event.number, subject, scope)
        if frame in self._sent:
            return
        sent = self._sent[frame] = self.pace.now
        way = event.agent, scope
        at = max(self.pace.now + (self.pace.delay(event.agent) or 0), self._last.get(way, 0))
        self._last[way] = at
        lost = self.pace.loses(event.agent)

        def arrives() -> None:
            del self._sent[frame]
            if self._last.get(way) == at:
                del self._last[way]  # nobody has to stay behind what has arrived
            if _connection(event, subject) is not scope:
                return  # it went to another session since
            if lost and isinstance(scope, Session):
                scope.face.owner.fault("link_loss")
            elif isinstance(subject, Session):
                self.happen(event.name, subject)
            elif not self._is_spoken_for(event, subject, sent) and not self.perform(_said(event, subject), subject):
                self._wait_for(subject)

        self.at(at, arrives)

    def _is_spoken_for(self, event: Event, copy: Copy, sent: int) -> bool:
        """Whether a frame that was sent at the same moment for a later copy stands for this one too: one of a range."""
        for call, _ in event.calls:
            scope = copy.scopes[call.scope]
            alike = scope.under(call).members if scope is not None and call.view is View.LATER else {}
            if copy.key in alike:
                last = alike[max(alike)]
                frame = (event.number, last, _connection(event, last))
                return last is not copy and self._sent.get(frame) == sent and self.core.can(event, last)
        return False

    def _sync_later(self) -> None:
        if self._syncing:
            return
        delay = self.pace.delay("disk")
        if delay is not None:
            self._syncing = True
            self.at(self.pace.now + delay, self._synced)

    def _synced(self) -> None:
        self._syncing = False
        self.flush()

    def at(self, time: int, action: Callable[[], None]) -> None:
        """Do ``action`` when the virtual time (nanoseconds) has come."""
        self._serial += 1
        heapq.heappush(self._due, (time, self._serial, action))

    @contextlib.contextmanager
    def deadline(self, time: int | None) -> Iterator[None]:
        """Let the virtual time come meanwhile, though nothing else happens then; ``None``: no such time."""
        if time is None:
            yield
            return
        self._serial += 1
        due = (time, self._serial, _nothing)
        heapq.heappush(self._due, due)
        try:
            yield
        finally:
            if due in self._due:
                self._due.remove(due)
                heapq.heapify(self._due)

    # What follows

    def settle(self, *, store: bool = True) -> None:
        """Do all that happens at once; without ``store`` what has to be marked as sent before waits for a sync."""
        core = self.core
        while True:
            if core.moved and self._shuffled is None:
                copy = next(iter(core.moved))
                del core.moved[copy]
                self.courses.drive(self._nothing, copy)
            elif self.callbacks:
                self.callbacks.popleft()()
            elif self._shuffled is not None:
                return
            elif self._busy:
                self._session(self._busy.popitem()[0])
            elif self._retry:
                self._again()
            elif self._hungry:
                self.queues.feed(self._first_hungry())
            elif self._marking and store and not self._disk_takes_time:
                self.flush()
            else:
                return

    def _session(self, session: Session) -> None:
        """What a session has to do by itself."""
        for part in session.parts.values():
            for event in part.told.todo:
                if event.agent in self._prompt:
                    if self.happen(event.name, session):
                        return
                elif event.agent in self._travelling:
                    self._send(event, session)
                elif event.agent == "disk":
                    self._writing[session] = None
                    self._sync_later()

    def _again(self) -> None:
        """Copies that had something to do and were refused, after something has happened that may let them."""
        self._retry = False
        waiting, self._waiting = sorted(self._waiting, key=lambda copy: copy.key), {}
        for copy in waiting:
            self.courses.drive(self._nothing, copy)

    def read_on(self) -> None:
        """A library has handed over a message, and now reads the frames that came during that."""
        if self._unread:
            self.core.moved.update(self._unread)
            self._unread.clear()

    def hungry(self, queue: Queue) -> None:
        """A queue has something to send, or somebody to send it to."""
        self._hungry[queue] = None

    def _first_hungry(self) -> Queue:
        """The queue that is fed next: which one got hungry first depends on who observes."""
        queue = next(iter(self._hungry)) if len(self._hungry) == 1 else min(self._hungry, key=_name)
        del self._hungry[queue]
        return queue

    def wait(self, until: Callable[[], bool]) -> bool:
        """Go on until ``until()``; ``False`` if nothing more can happen before."""
        self.settle()
        while not until():
            if not self.advance():
                return False
            self.settle()
        return True

    def go_on(self) -> bool:
        """Do the next thing and all that follows at once; ``False`` if there is nothing."""
        self.settle()
        if not self.advance():
            return False
        self.settle()
        return True

    def advance(self) -> bool:
        """The next thing that takes time, or that is done only when there is nothing else to do."""
        if self._shuffled is not None:
            return self._any(self._shuffled.random) or self.queues.idle()
        return self._arrive() or self.flush() or self._timers() or self.queues.idle()

    def _arrive(self) -> bool:
        """What is due next."""
        if not self._due:
            return False
        at, _, action = heapq.heappop(self._due)
        self.pace.now = max(self.pace.now, at)
        action()
        return True

    def is_quiet(self) -> bool:
        """Whether nothing is under way, the disk is asked at once, and nobody observes: a call may be one course."""
        return self._is_at_once and not (
            self.core.observer is not None
            or self.core.moved
            or self.callbacks
            or self._busy
            or self._retry
            or self._hungry
            or self._marking
            or self._writing
            or self._due
            or any(map(_is_open, self._unsynced))
        )

    def marks(self, copy: Copy, onward: Route) -> bool:
        """See :class:`Disk`."""
        return self.queues.marks(copy, onward)

    @property
    def mark(self) -> Callable[[Copy], None]:
        """See :class:`Disk`."""
        return self.queues.mark_one

    def store(self, copy: Copy) -> bool:
        """Sync in the midst of a course, for which the call that sends ``copy`` waits; see :class:`Disk`."""
        copy.message.waited = True
        taken = []
        for each in self._unsynced:
            told = each.told
            if "disk" in told.by:
                taken.append((each, told))  # of one or two, for which a comprehension costs more
        self._unsynced.clear()
        if not self.queues.write():
            return False
        self._stored_with = taken
        return True

    def failed(self) -> None:
        """The sync failed; see :class:`Disk`."""
        self.queues.stop()

    def tell_stored(self) -> None:
        """Tell whose entries a sync in the midst of a course took along besides."""
        if self._stored_with:
            taken, self._stored_with = self._stored_with, []
            self._tell_all(taken)

    def flush(self) -> bool:
        """Sync the journal and tell everybody whose entry it was; ``False`` if that moves nobody."""
        copies = [copy for copy in self._unsynced if "disk" in copy.told.by]
        sessions = [session for session in self._writing if _disk(session)]
        self._unsynced.clear()
        for session in sessions:
            del self._writing[session]
        marked = [found for queue in self._marking if (found := self.queues.mark(queue))]
        self._marking.clear()
        if not copies and not sessions and not marked:
            return False
        moved = bool(sessions or marked)
        try:
            if not self.queues.sync():
                return True
        except BaseException:  # the journal says at the next sync what it has become of
            self._unsynced.update(dict.fromkeys(copies))
            self._writing.update(dict.fromkeys(sessions))
            raise
        for waiting in marked:
            self._may_go(waiting)
        taken = [(copy, copy.told) for copy in copies]
        if self.core.observer is not None:
            self._taken = {copy: _records(told) for copy, told in taken}, sessions
        try:
            moved = self._tell_all(taken) or moved
            for session in sessions:
                self._written(session)
                self._stir(session)
        finally:
            self._taken = {}, []
        return moved  # a broker that has died meanwhile is told nothing

    def _tell_all(self, taken: list[tuple[Copy, State]]) -> bool:
        """A sync took along what these copies, each in its state, had to be written; whether one has moved."""
        moved = False
        for copy, told in taken:
            before = copy.state
            if copy.told is told and self.core.observer is None:
                self.courses.drive(self._synced_entry, copy)
            else:  # another, or an observer, may have given it a further entry, which this sync did not take along
                self._tell(copy, _records(told))
                copy.file()
                self.courses.drive(self._nothing, copy)
            moved = moved or copy.state != before
        return moved

    def _may_go(self, waiting: list[Copy]) -> None:
        """The marks of these copies, which stand in one queue, are stored."""
        for copy in waiting:
            copy.premarked = True
        self.hungry(waiting[0].message.queue)

    def mark_later(self, queue: Queue) -> None:
        """Before the next sync the marks of those are to be written that are next in ``queue``."""
        self._marking[queue] = None
        if self._disk_takes_time:
            self._sync_later()

    def finish_telling(self) -> None:
        """The broker is about to die, perhaps as it tells what a sync took along: the tables shall know what it was."""
        self.finish_executing()
        copies, sessions = self._taken
        for copy, records in copies.items():
            self._tell(copy, records)
        for session in sessions:
            self._written(session)

    def _tell(self, copy: Copy, records: frozenset[str]) -> None:
        """A sync took along these ``records`` of ``copy``."""
        while any(_is_of(records, event) and self.core.perform(event, copy) for event in copy.told.todo):
            pass

    def _written(self, session: Session) -> None:
        while any(self.core.happen(event, session) for event in _disk(session)):
            pass

    def flush_all(self) -> bool:
        """The same, whoever waits with an entry: a sync takes along all that is written."""
        self._unsynced.update((copy, None) for copy in self._waiting if "disk" in copy.told.by)
        self._writing.update((session, None) for session in self.core.sessions if _disk(session))
        return self.flush()

    def _timers(self) -> bool:
        for session in list(self.core.sessions):
            for part in session.parts.values():
                for event in part.told.todo:
                    if event.agent == "timer" and self.happen(event.name, session):
                        self.pace.now += self.pace.delay("timer") or 0
                        return True
        return False

    def _any(self, chance: random.Random) -> bool:
        """One event that can happen, whichever; of the frames of one connection and direction the first that can."""
        pending = {**self._waiting, **self._unsynced, **self.core.moved}
        copies = sorted(pending, key=lambda copy: copy.key)
        todo: list[tuple[Event, Copy | Session]] = [(event, copy) for copy in copies for event in copy.told.todo]
        for session in self.core.sessions:
            todo += ((event, session) for part in session.parts.values() for event in part.told.todo)
        choices: list[list[tuple[Event, Copy | Session | Queue]]] = []
        choices += ([each] for each in todo if each[0].agent not in _NOT_ALONE)
        choices += self._lined_up([each for each in todo if each[0].agent in FRAMES])
        choices += ([(self.core.events["dispatch_first"], queue)] for queue in self.queues.dispatchable())
        choices += ([(self.core.events["write_record"], self.core.broker)] for _ in self._marking)
        self.core.moved.clear()
        self._waiting = pending
        self._unsynced.clear()
        self._hungry.clear()
        chance.shuffle(choices)
        done = any(self._try(event, subject) for choice in choices for event, subject in choice)
        self._waiting = {copy: None for copy in self._waiting if copy.told.todo}
        return done

    def _lined_up(self, frames: list[tuple[Event, Copy | Session]]) -> list[list[tuple[Event, Copy | Session | Queue]]]:
        """The frames that are under way, of each connection and direction in the order in which they were sent."""
        there = dict.fromkeys(frames)
        self._sent_so_far = {each: None for each in (*self._sent_so_far, *frames) if each in there}
        lines: dict[object, list[tuple[Event, Copy | Session | Queue]]] = {}
        for event, subject in self._sent_so_far:
            lines.setdefault((event.agent, _connection(event, subject)), []).append((event, subject))
        return list(lines.values())

    def _try(self, event: Event, subject: Copy | Session | Queue) -> bool:
        if event.agent == "disk":
            return self.flush_all()
        if isinstance(subject, Session):
            return self.happen(event.name, subject)
        if isinstance(subject, Queue):
            return self._is_fed(subject)
        return self.perform(event.name, subject)

    def _is_fed(self, queue: Queue) -> bool:
        """Feed a queue; whether anything was sent, or marked to be sent after a sync."""
        asked = len(self._marking)
        return self.queues.feed(queue) or len(self._marking) > asked

    def _finished(self, copy: Copy) -> None:
        broker = self._broker
        if broker.state != broker.automaton.initial:
            return  # the journal may have more of it than the tables were told
        twin = copy.twin
        if twin is None:
            self._forget(copy)
        elif twin.spent:
            self._forget(copy)
            self._forget(twin)

    def _forget(self, copy: Copy) -> None:
        """Nothing that anybody could notice can happen to ``copy`` any more."""
        if copy.filed:
            copy.unfile()
        if self._waiting or self._unread or self._behind or self._unsynced or self.core.moved:
            for held in (self._waiting, self._unread, self._behind, self._unsynced, self.core.moved):
                held.pop(copy, None)
        if copy.key & 3 == 1:
            copy.message.copy = None
        copy.received = None


def _is_open(copy: Copy) -> bool:
    """Whether who sent it hears of its sync; what comes after it is not to be told before."""
    return copy.route.outgoing is not None and copy.message.outcome is Outcome.OPEN


def _phases(prompt: frozenset[str]) -> dict[Phase, tuple[frozenset[str], ...]]:
    return {Phase.PROMPT: (prompt,), Phase.DISK: (_DISK, prompt), Phase.SILENT: (prompt - FRAMES,)}


def _disk(session: Session) -> list[Event]:
    return [event for part in session.parts.values() for event in part.told.todo if event.agent == "disk"]


def _connection(event: Event, subject: Copy | Session) -> Scope | None:
    """The session on whose connection a frame travels."""
    if not isinstance(subject, Copy):
        return subject
    return subject.scopes[0 if event.agent in _PUBLISHING else 2]


def _records(told: State) -> frozenset[str]:
    """What of a copy in this state is to be written and synced: ``record``, ``removal``."""
    return frozenset(_record(event) for event in told.todo if event.agent == "disk")


def _is_of(records: frozenset[str], event: Event) -> bool:
    return event.agent == "disk" and _record(event) in records


def _record(event: Event) -> str:
    return event.name.partition("_")[2]


def _said(event: Event, copy: Copy) -> str:
    """What becomes of a frame that has arrived: the broker may refuse what a producer sends."""
    return "rejection" if copy.refuse and event.agent == PUBLISH else event.name
