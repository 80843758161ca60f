"""Courses: an event of a copy and all that follows from it at once, kept for the next message.

The next message finds the tables where the last one found them.  So a course that touched no other
copy is kept under the states in which it began, and the next time the parts are put where it ends.
Nothing is decided here: a course is what :class:`Core` did the first time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ackfsm.engine._core import Core, Effect, Watch
from ackfsm.engine._parts import Copy, Part
from ackfsm.engine._wiring import Call, Event

__all__ = ["Courses"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Course:
    """Where the roles end, who would have to be asked, what is done, whether something is left, and if it is the end."""

    ends: tuple[tuple[int, int], ...]
    calls: tuple[Call, ...]
    effects: tuple[Effect, ...]
    leaves: bool
    spent: bool


class Courses:
    """Drives copies: one event, then those of some agents, as long as the tables let them."""

    def __init__(self, core: Core, leftover: Callable[[Copy], None], spent: Callable[[Copy], None]) -> None:
        """``leftover``: something remains to be done for a copy or its sessions; ``spent``: nothing ever will."""
        self.core = core
        self._leftover = leftover
        self._spent = spent
        self._kept: dict[tuple[object, ...], _Course] = {}

    def drive(self, event: Event | None, copy: Copy, agents: frozenset[str]) -> bool:
        """Perform ``event`` (``None``: nothing yet) and what ``agents`` do then; ``False``: refused."""
        if self.core.observer is not None or copy.twin is not None:
            return self._slowly(event, copy, agents)
        roles = copy.roles
        key = (event, agents, copy.automaton, *[-1 if part is None else part.state for part in roles])
        course = self._kept.get(key)
        if course is None:
            return self._first_time(event, copy, agents, key)
        if course.calls and not _undisturbed(course.calls, copy):
            return self._slowly(event, copy, agents)
        for role, state in course.ends:
            roles[role].state = state  # type: ignore[union-attr] # a role that moves is there
        copy.file()
        for effect in course.effects:
            effect(copy)
        if course.leaves:
            self._leftover(copy)
        if course.spent:
            self._spent(copy)
        return True

    def _slowly(self, event: Event | None, copy: Copy, agents: frozenset[str]) -> bool:
        if event is not None and not self.core.perform(event, copy):
            return False
        while any(then.agent in agents and self.core.perform(then, copy) for then in copy.told.todo):
            pass
        copy.file()
        if _leaves(copy):
            self._leftover(copy)
        if copy.spent:
            self._spent(copy)
        return True

    def _first_time(self, event: Event | None, copy: Copy, agents: frozenset[str], key: tuple[object, ...]) -> bool:
        watch = self.core.watch = Watch()
        try:
            done = self._slowly(event, copy, agents)
        finally:
            self.core.watch = None
        if done and watch.alone:
            before = key[3:]
            ends = [(role, part.state) for role, part in enumerate(copy.roles) if part is not None]
            moved = tuple((role, state) for role, state in ends if state != before[role])
            self._kept[key] = _Course(moved, tuple(watch.calls), tuple(watch.effects), _leaves(copy), copy.spent)
        return done


def _leaves(copy: Copy) -> bool:
    """Whether the copy or one of its sessions has something to do that was not done."""
    return any(isinstance(part, Part) and part.told.todo for part in copy.roles)


def _undisturbed(calls: tuple[Call, ...], copy: Copy) -> bool:
    """Whether no other copy hears any of ``calls``."""
    for call in calls:
        scope = copy.scopes[call.scope]
        filed = scope.filed[call.number] if scope is not None else None
        if filed is not None and filed.members and next(filed.towards(copy, call), None) is not None:
            return False
    return True
