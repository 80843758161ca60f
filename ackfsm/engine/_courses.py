"""Courses: an event of a copy and all that follows from it at once, kept for the next message.

The next message finds the tables where the last one found them.  So a course that touched no other
copy is kept under the states in which it began, and the next time the parts are put where it ends.
Nothing is decided here: a course is what :class:`Core` did the first time.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping

from ackfsm.engine._core import Core, Effect, Watch
from ackfsm.engine._parts import Copy
from ackfsm.engine._wiring import Call, Event, Role

__all__ = ["Courses", "Phase"]


class Phase(enum.IntEnum):
    """Who acts after the event: those who act at once, or first the disk and then they."""

    PROMPT = 0
    DISK = 1
    SILENT = 2
    """As ``PROMPT``, but frames do not travel."""


@dataclasses.dataclass(slots=True, eq=False)
class _Course:
    """What is the same each time.

    Attributes:
        ends: where the roles end.
        calls: who would have to be asked.
        effects: what is done.
        before: the calls under which the copy was filed.
        leave: those that it leaves.
        join: those that it joins.
        after: those under which it is filed then.
        leaves: whether something is left to do for it.
        busy: the scopes of the sessions for which something is left to do.
        spent: whether nothing ever will be.
    """

    ends: tuple[tuple[int, int], ...]
    calls: tuple[Call, ...]
    effects: tuple[Effect, ...]
    before: tuple[Call, ...]
    leave: tuple[Call, ...]
    join: tuple[Call, ...]
    after: tuple[Call, ...]
    leaves: bool
    busy: tuple[int, ...]
    spent: bool


class Courses:
    """Drives copies: one event, then those of some agents, as long as the tables let them."""

    def __init__(
        self,
        core: Core,
        phases: Mapping[Phase, tuple[frozenset[str], ...]],
        leftover: Callable[[Copy], None],
        busy: Callable[[Copy, int], None],
        spent: Callable[[Copy], None],
    ) -> None:
        """``phases``: the agents of each phase, one group after the other.

        ``leftover`` is called where something remains to be done for a copy, ``busy`` where it does for the session
        of one of its scopes, ``spent`` where nothing ever will.
        """
        self.core = core
        self._phases = phases
        self._leftover = leftover
        self._busy = busy
        self._spent = spent
        self._kept: dict[tuple[object, ...], _Course] = {}

    def drive(self, event: Event | None, copy: Copy, phase: Phase) -> bool:  # noqa: C901, PLR0912 - the hot path, in one piece
        """Perform ``event`` (``None``: nothing yet) and what follows in ``phase``; ``False``: refused."""
        if self.core.observer is not None or copy.twin is not None:
            return self._slowly(event, copy, phase)
        roles = copy.roles
        _, producer, window, unanswered, consumer, prefetch, broker = roles
        key = (
            event,
            phase,
            copy.automaton,
            copy.state,
            producer.state,
            window.state,
            unanswered.state,
            consumer.state,
            prefetch.state,
            broker.state,
        )
        course = self._kept.get(key)
        if course is None:
            return self._first_time(event, copy, phase, key)
        if course.before is not copy.filed or (course.calls and not _undisturbed(course.calls, copy)):
            return self._slowly(event, copy, phase)
        for role, state in course.ends:
            roles[role].state = state
        if course.after is not course.before:
            scopes = copy.scopes
            for call in course.leave:
                scope = scopes[call.scope]
                if scope is not None:
                    scope.filed[call.number].remove(copy)  # type: ignore[union-attr] # it is filed there
            for call in course.join:
                scope = scopes[call.scope]
                if scope is not None:
                    scope.under(call).add(copy)
            copy.filed = course.after
        for effect in course.effects:
            effect(copy)
        if course.leaves:
            self._leftover(copy)
        for side in course.busy:
            self._busy(copy, side)
        if course.spent:
            self._spent(copy)
        return True

    def _slowly(self, event: Event | None, copy: Copy, phase: Phase) -> bool:
        if event is not None and not self.core.perform(event, copy):
            return False
        for agents in self._phases[phase]:
            while any(then.agent in agents and self.core.perform(then, copy) for then in copy.told.todo):
                pass
        copy.file()
        if copy.told.todo:
            self._leftover(copy)
        for side in _busy(copy):
            self._busy(copy, side)
        if copy.spent:
            self._spent(copy)
        return True

    def _first_time(self, event: Event | None, copy: Copy, phase: Phase, key: tuple[object, ...]) -> bool:
        watch = self.core.watch = Watch()
        states, before = [part.state for part in copy.roles], copy.filed
        try:
            done = self._slowly(event, copy, phase)
        finally:
            self.core.watch = None
        if done and watch.alone:
            after = copy.told.filed
            self._kept[key] = _Course(
                ends=tuple((i, part.state) for i, part in enumerate(copy.roles) if part.state != states[i]),
                calls=tuple(watch.calls),
                effects=tuple(watch.effects),
                before=before,
                leave=tuple(call for call in before if call not in after),
                join=tuple(call for call in after if call not in before),
                after=after,
                leaves=bool(copy.told.todo),
                busy=_busy(copy),
                spent=copy.spent,
            )
        return done


def _busy(copy: Copy) -> tuple[int, ...]:
    """The scopes of those of its sessions that have something to do by themselves."""
    sides = ((0, (Role.PRODUCER, Role.WINDOW, Role.UNANSWERED)), (2, (Role.CONSUMER, Role.PREFETCH)))
    return tuple(scope for scope, roles in sides if any(copy.roles[role].told.todo for role in roles))


def _undisturbed(calls: tuple[Call, ...], copy: Copy) -> bool:
    """Whether no other copy hears any of ``calls``."""
    for call in calls:
        scope = copy.scopes[call.scope]
        filed = scope.filed[call.number] if scope is not None else None
        if filed is not None and filed.members and next(filed.towards(copy, call), None) is not None:
            return False
    return True
