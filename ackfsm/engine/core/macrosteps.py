"""Courses: what somebody does with a copy and all that follows from it at once, kept for the next message.

The next message finds the tables where the last one found them.  So a course that touched no other
copy is kept under the states in which it began, and the next time the parts are put where it ends.
Nothing is decided here: a course is what :class:`Core` did the first time.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, TypeAlias

from ackfsm.engine.core.instances import Copy, Filed, Route
from ackfsm.engine.core.model import Call, Event, State, View
from ackfsm.engine.core.stepper import Core, Effect, Watch

__all__ = ["Courses", "Disk", "Passing", "Phase", "Script", "Step"]

Passing: TypeAlias = Callable[[Copy, Route], bool]
"""Sends a copy on by a route, if the tables let it go now; whether they did."""

Step: TypeAlias = Event | Callable[[State], Event | None] | None
"""What is performed: an event, the event that follows from the state by then, or nothing but what follows."""


class Disk(Protocol):
    """What a course asks that waits for a sync in its midst."""

    def marks(self, copy: Copy, onward: Route) -> bool:
        """Whether it is to be stored before that ``copy`` is about to be sent by that route."""

    def mark(self, copy: Copy) -> None:
        """Write that."""

    def store(self, copy: Copy) -> bool:
        """Write and sync all that waits; whether that succeeded."""

    def failed(self) -> None:
        """It did not, and ``copy`` can be found again: the broker stops."""


class Phase(enum.Enum):
    """Who acts after an event: those who act at once, or first the disk and then they."""

    PROMPT = enum.auto()
    DISK = enum.auto()
    SILENT = enum.auto()
    """As ``PROMPT``, but frames do not travel."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Script:
    """What somebody does: ``steps`` one after the other, each with what follows in ``phase``.

    With ``blocking`` the journal is synced then, if the call that sends the copy waits for that.
    With ``passing`` the copy is sent on to a consumer in the end, if the tables let it go.
    """

    steps: tuple[Step, ...]
    phase: Phase
    passing: Passing | None = None
    blocking: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class _Half:
    """What of a course comes before its sync: where copy and roles are then, what is done, how many steps were."""

    state: int
    ends: tuple[tuple[int, int], ...]
    effects: tuple[Effect, ...]
    done: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """What is the same each time, on every route of a kind.

    Attributes:
        before: the calls under which the copy was filed.
        checks: who would have to be asked: scope, number of the call, whether it is for those before, bits of the key
            that do not count.
        state: where the copy ends.
        ends: where the other roles end, if not where they began or were at the sync.
        passed: whether the copy was sent on.
        leave: the files that it leaves, each as scope and number of the call.
        join: those that it joins.
        after: the calls under which it is filed then.
        effects: what is done.
        done: how many of the steps of the script were performed.
        half: what comes before a sync in its midst, ``None`` if there is none.
    """

    before: tuple[object, ...]
    checks: tuple[tuple[int, int, bool, int], ...]
    state: int
    ends: tuple[tuple[int, int], ...]
    passed: bool
    leave: tuple[tuple[int, int], ...]
    join: tuple[tuple[int, int], ...]
    after: tuple[Call, ...]
    effects: tuple[Effect, ...]
    done: int
    half: _Half | None


class _Laid:
    """A course on one route: its files and parts looked up."""

    __slots__ = ("after", "before", "checks", "done", "effects", "ends", "half", "join", "leave", "passed", "state")

    def __init__(self, course: _Course, route: Route) -> None:
        self.before, self.after, self.state = course.before, course.after, course.state
        self.passed, self.effects, self.done, self.half = course.passed, course.effects, course.done, course.half
        self.checks = tuple((_file(route, scope, n), later, shift) for scope, n, later, shift in course.checks)
        self.ends = tuple((route.roles[role], state) for role, state in course.ends)
        self.leave = tuple(_file(route, *at) for at in course.leave)
        self.join = tuple(_file(route, *at) for at in course.join)


class Courses:
    """Drives copies: somebody's events, then those of some agents, as long as the tables let them."""

    def __init__(
        self,
        core: Core,
        phases: Mapping[Phase, tuple[frozenset[str], ...]],
        left: Callable[[Copy], tuple[Effect, ...]],
        disk: Disk,
    ) -> None:
        """``phases``: the agents of each phase, one group after the other.

        ``left`` says what is done about what remains to be done for a copy; that depends on the states alone.
        """
        self.core = core
        self._phases = phases
        self._left = left
        self._disk = disk

    def drive(self, script: Script, copy: Copy, onward: Route | None = None) -> int:  # noqa: C901, PLR0912 - the hot path, in one piece
        """Perform ``script``; how many of its steps were: the first one that is refused ends it, going on counts too.

        ``onward`` is the route by which the copy may be sent on, which has not gone to a consumer before.
        """
        if self.core.observer is not None or copy.twin is not None:
            return self._slowly(script, copy, onward)
        route = onward or copy.route
        roles = route.roles
        _, producer, window, unanswered, consumer, prefetch, broker = roles
        key = (
            script,
            copy.state,
            producer.state,
            window.state,
            unanswered.state,
            consumer.state,
            prefetch.state,
            broker.state,
        )
        course: _Laid | None = route.courses.get(key)
        if course is None:
            recorded: _Course | None = route.recorded.get(key)
            if recorded is None:
                return self._first_time(script, copy, onward, key)
            course = route.courses[key] = _Laid(recorded, route)
        if course.before is not copy.filed:
            return self._slowly(script, copy, onward)
        number = copy.key
        for filed, later, shift in course.checks:
            members = filed.members
            alone = not members or (len(members) == 1 and number in members)
            if not alone and filed.hears(number, later=later, shift=shift):
                return self._slowly(script, copy, onward)
        half = course.half
        if half is not None:
            copy.state = half.state
            for role, state in half.ends:
                roles[role].state = state
            for effect in half.effects:
                effect(copy)
            if not self._is_stored(copy):
                return half.done
        copy.state = course.state
        for part, state in course.ends:
            part.state = state
        if course.passed:
            copy.route, copy.automaton, copy.columns = route, route.automaton, route.automaton.columns
        if course.after is not course.before:
            for filed in course.leave:
                if filed.tail is None:
                    del filed.members[number]
                else:
                    filed.remove(copy)
            for filed in course.join:
                if filed.tail is None:
                    filed.members[number] = copy
                else:
                    filed.add(copy)
            copy.filed = course.after
        for effect in course.effects:
            effect(copy)
        return course.done

    def _is_stored(self, copy: Copy) -> bool:
        """Sync; a copy whose sync fails is left as it is, to be found by whoever says what becomes of it."""
        stored = False
        try:
            stored = self._disk.store(copy)
        finally:
            if not stored:
                if self.core.watch is not None:
                    self.core.watch.alone = False
                copy.file()
                for effect in self._left(copy):
                    effect(copy)
        if not stored:
            self._disk.failed()
        return stored

    def _slowly(self, script: Script, copy: Copy, onward: Route | None) -> int:
        done = 0
        for step in script.steps:
            event = step(copy.told) if callable(step) else step
            if (event is None and step is not None) or not self._step(event, copy, script.phase):
                break
            done += 1
        if not done:
            return 0
        passed = self._pass(script, copy, onward)
        if not passed and script.blocking and copy.told.sending and "disk" in copy.told.by:
            if not self._through_disk(copy, onward, done):
                return done
            passed = not copy.told.sending and self._pass(script, copy, onward)  # who sent it is told first
        done += passed
        copy.file()
        left = self._left(copy)
        if self.core.watch is not None:
            self.core.watch.effects += left
        for effect in left:
            effect(copy)
        return done

    def _pass(self, script: Script, copy: Copy, onward: Route | None) -> bool:
        """Send ``copy`` on by that route, if it may go; whether it went."""
        if onward is None or script.passing is None or not script.passing(copy, onward):
            return False
        goes = copy.told.goes
        return goes is not None and self._step(goes, copy, script.phase)

    def _through_disk(self, copy: Copy, onward: Route | None, done: int) -> bool:
        """Sync, with the mark of a copy that is to be sent on then; ``False`` if the sync failed."""
        marks = onward is not None and self._disk.marks(copy, onward)
        if marks:
            self._disk.mark(copy)
        if self.core.watch is not None:
            self.core.watch.effects += [self._disk.mark] * marks
            self.core.watch.sync(copy.state, _states(onward or copy.route), done)
        if not self._is_stored(copy):
            return False
        copy.premarked = marks
        return self._step(None, copy, Phase.DISK)

    def _step(self, event: Event | None, copy: Copy, phase: Phase) -> bool:
        if event is not None and not self.core.perform(event, copy):
            return False
        for agents in self._phases[phase]:
            while any(then.agent in agents and self.core.perform(then, copy) for then in copy.told.todo):
                pass
        return True

    def _first_time(self, script: Script, copy: Copy, onward: Route | None, key: tuple[object, ...]) -> int:
        route = onward or copy.route
        watch = self.core.watch = Watch()
        before, files, states = copy.filed, tuple(_files(copy)), _states(route)
        try:
            done = self._slowly(script, copy, onward)
        finally:
            self.core.watch = None
        if done and watch.alone:
            now, half = tuple(_files(copy)), None
            if watch.half is not None:
                state, between, effects, steps = watch.half
                half, states = _Half(state, _moved(states, between), effects, steps), between
            route.recorded[key] = _Course(
                before=before,
                checks=tuple((c.scope, c.number, c.view is View.LATER, c.shift) for c in watch.calls),
                state=copy.state,
                ends=_moved(states, _states(route)),
                passed=onward is not None and copy.route is onward,
                leave=tuple(file for file in files if file not in now),
                join=tuple(file for file in now if file not in files),
                after=copy.filed,
                effects=tuple(watch.effects),
                done=done,
                half=half,
            )
        return done


def _files(copy: Copy) -> Iterator[tuple[int, int]]:
    """Where it is filed, as scope and number of the call."""
    return ((call.scope, call.number) for call in copy.filed if copy.scopes[call.scope] is not None)


def _file(route: Route, scope: int, number: int) -> Filed:
    """The file of that number of a scope; where a copy was filed or somebody was asked there is one."""
    at = route.scopes[scope]
    if at is None:
        raise AssertionError("nobody is filed in a scope that is not there")
    found = at.filed[number]
    if found is None:
        found = at.filed[number] = Filed()
    return found


def _states(route: Route) -> tuple[int, ...]:
    return tuple(part.state for part in route.roles)


def _moved(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The roles that are elsewhere now, each with its state."""
    return tuple((role, now) for role, (was, now) in enumerate(zip(before, after, strict=True)) if was != now)
