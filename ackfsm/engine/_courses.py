"""Courses: what somebody does with a copy and all that follows from it at once, kept for the next message.

The next message finds the tables where the last one found them.  So a course that touched no other
copy is kept under the states in which it began, and the next time the parts are put where it ends.
Nothing is decided here: a course is what :class:`Core` did the first time.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from ackfsm.engine._core import Core, Effect, Watch
from ackfsm.engine._parts import Copy, Filed, Route
from ackfsm.engine._wiring import Event, View

__all__ = ["Courses", "Passing", "Phase", "Script"]

Passing: TypeAlias = Callable[[Copy, Route], bool]
"""Sends a copy on by a route, if the tables let it go now; whether they did."""


class Phase(enum.Enum):
    """Who acts after an event: those who act at once, or first the disk and then they."""

    PROMPT = enum.auto()
    DISK = enum.auto()
    SILENT = enum.auto()
    """As ``PROMPT``, but frames do not travel."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Script:
    """What somebody does: ``events`` one after the other (``None``: nothing), each with what follows in ``phase``.

    With ``passing`` the copy is sent on to a consumer in the end, if the tables let it go.
    """

    events: tuple[Event | None, ...]
    phase: Phase
    passing: Passing | None = None


@dataclasses.dataclass(slots=True, eq=False)
class _Course:
    """What is the same each time.

    Attributes:
        before: the calls under which the copy was filed.
        checks: who would have to be asked: scope, number of the call, whether it is for those before, bits of the key
            that do not count.
        state: where the copy ends.
        ends: where the other roles end.
        passed: whether the copy was sent on.
        leave: the files that it leaves, each as scope and number of the call.
        join: those that it joins.
        after: the calls under which it is filed then.
        effects: what is done.
        done: how many of the events of the script were performed.
    """

    before: tuple[object, ...]
    checks: tuple[tuple[int, int, bool, int], ...]
    state: int
    ends: tuple[tuple[int, int], ...]
    passed: bool
    leave: tuple[tuple[int, int], ...]
    join: tuple[tuple[int, int], ...]
    after: tuple[object, ...]
    effects: tuple[Effect, ...]
    done: int


class Courses:
    """Drives copies: somebody's events, then those of some agents, as long as the tables let them."""

    def __init__(
        self,
        core: Core,
        phases: Mapping[Phase, tuple[frozenset[str], ...]],
        left: Callable[[Copy], tuple[Effect, ...]],
    ) -> None:
        """``phases``: the agents of each phase, one group after the other.

        ``left`` says what is done about what remains to be done for a copy; that depends on the states alone.
        """
        self.core = core
        self._phases = phases
        self._left = left

    def drive(self, script: Script, copy: Copy, onward: Route | None = None) -> int:  # noqa: C901 - the hot path, in one piece
        """Perform ``script``; how many of its events were: the first one that is refused ends it, going on counts too.

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
        course: _Course | None = route.courses.get(key)
        if course is None:
            return self._first_time(script, copy, onward, key)
        if course.before is not copy.filed:
            return self._slowly(script, copy, onward)
        scopes = route.scopes
        for scope, number, later, shift in course.checks:
            filed = scopes[scope].filed[number]  # type: ignore[union-attr] # where there is none nobody is asked
            if filed is not None and filed.members and filed.hears(copy.key, later=later, shift=shift):
                return self._slowly(script, copy, onward)
        copy.state = course.state
        for role, state in course.ends:
            roles[role].state = state
        if course.passed:
            copy.route, copy.automaton, copy.columns = route, route.automaton, route.automaton.columns
        if course.after is not course.before:
            for scope, number in course.leave:
                scopes[scope].filed[number].remove(copy)  # type: ignore[union-attr] # it is filed there
            for scope, number in course.join:
                files = scopes[scope].filed  # type: ignore[union-attr] # it was filed there
                found = files[number]
                if found is None:
                    found = files[number] = Filed()
                found.add(copy)
            copy.filed = course.after  # type: ignore[assignment] # they are calls
        for effect in course.effects:
            effect(copy)
        return course.done

    def _slowly(self, script: Script, copy: Copy, onward: Route | None) -> int:
        done = 0
        for event in script.events:
            if not self._step(event, copy, script.phase):
                break
            done += 1
        if not done:
            return 0
        if onward is not None and script.passing is not None and script.passing(copy, onward):
            goes = copy.told.goes
            done += goes is not None and self._step(goes, copy, script.phase)
        copy.file()
        left = self._left(copy)
        if self.core.watch is not None:
            self.core.watch.effects += left
        for effect in left:
            effect(copy)
        return done

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
        before, files = copy.filed, tuple(_files(copy))
        states = [part.state for part in route.roles]
        try:
            done = self._slowly(script, copy, onward)
        finally:
            self.core.watch = None
        if done and watch.alone:
            now = tuple(_files(copy))
            route.courses[key] = _Course(
                before=before,
                checks=tuple((c.scope, c.number, c.view is View.LATER, c.shift) for c in watch.calls),
                state=copy.state,
                ends=tuple((i, p.state) for i, p in enumerate(route.roles) if p.state != states[i]),
                passed=onward is not None and copy.route is onward,
                leave=tuple(file for file in files if file not in now),
                join=tuple(file for file in now if file not in files),
                after=copy.filed,
                effects=tuple(watch.effects),
                done=done,
            )
        return done


def _files(copy: Copy) -> Iterator[tuple[int, int]]:
    """Where it is filed, as scope and number of the call."""
    return ((call.scope, call.number) for call in copy.filed if copy.scopes[call.scope] is not None)
