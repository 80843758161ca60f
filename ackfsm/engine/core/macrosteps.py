"""Macro-steps: an event of a copy with everything that follows at once, cached for the next copy.

The next copy finds the tables in the states in which the last one found them.  So a macro-step that moved no other copy
is recorded under the states in which it began, and the next time the groups are set to the states in which it ended.
Nothing is decided here: a macro-step is what :class:`Stepper` did the first time.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol, TypeAlias

from ackfsm.engine.core.index import CopyIndex
from ackfsm.engine.core.instances import Binding, Copy
from ackfsm.engine.core.model import BoundEvent, Broadcast, IndexRelation, StateFacts
from ackfsm.engine.core.stepper import Effect, Stepper, StepRecorder
from ackfsm.tables.names import Agent

__all__ = ["FollowUp", "HandOff", "MacroSteps", "Step", "StepRequest", "SyncPoint"]

HandOff: TypeAlias = Callable[[Copy, Binding], bool]
"""Attaches a copy to the consumer of a binding, if it may be dispatched there now; whether it did."""

Step: TypeAlias = BoundEvent | Callable[[StateFacts], BoundEvent | None] | None
"""What is performed: an event, the event that the facts of the state then give, or nothing but what follows."""


class SyncPoint(Protocol):
    """The interface of a macro-step that waits for a sync within it."""

    def requires_mark(self, copy: Copy, onward: Binding) -> bool:
        """Whether the redelivered mark of ``copy`` has to be stored before it is dispatched by that binding."""

    def write_mark(self, copy: Copy) -> None:
        """Write the mark."""

    def sync_for(self, copy: Copy) -> bool:
        """Write and sync all that waits; whether that succeeded."""

    def sync_failed(self) -> None:
        """The sync failed, and ``copy`` is indexed: the broker stops."""


class FollowUp(enum.Enum):
    """Which agents act after an event: the immediate ones; or the disk and then those; or those but no frames."""

    IMMEDIATE = enum.auto()
    AFTER_SYNC = enum.auto()
    WITHOUT_FRAMES = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StepRequest:
    """A request: ``steps`` one after the other, each followed by ``followup``.

    With ``blocking`` the journal is synced then, if the call that sends the copy waits for that.
    With ``hand_off`` the copy is dispatched to a consumer in the end, if the tables allow it.
    """

    steps: tuple[Step, ...]
    followup: FollowUp
    hand_off: HandOff | None = None
    blocking: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class _BeforeSync:
    """The part before a sync: the states of copy and groups then, the effects, and how many steps were performed."""

    state: int
    ends: tuple[tuple[int, int], ...]
    effects: tuple[Effect, ...]
    done: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class MacroStep:
    """A macro-step as it is on every binding of a kind.

    Attributes:
        before: the broadcasts under which the copy was indexed.
        checks: what must have no receiver: scope, number of the broadcast, whether it is for those before, bits of the
            key that do not count, whether what is before is a matter of the order of delivery.
        state: the last state of the copy.
        ends: the last states of the groups that have changed (since the sync, if there is one).
        handed_off: whether the copy was dispatched.
        leave: the indexes that it leaves, each as scope and number of the broadcast.
        join: those that it joins.
        after: the broadcasts under which it is indexed then.
        effects: performed in this order.
        done: how many of the steps of the request were performed.
        before_sync: the part before a sync within it, ``None`` if there is none.
    """

    before: tuple[object, ...]
    checks: tuple[tuple[int, int, bool, int, bool], ...]
    state: int
    ends: tuple[tuple[int, int], ...]
    handed_off: bool
    leave: tuple[tuple[int, int], ...]
    join: tuple[tuple[int, int], ...]
    after: tuple[Broadcast, ...]
    effects: tuple[Effect, ...]
    done: int
    before_sync: _BeforeSync | None


class BoundStep:
    """A macro-step on one binding: its indexes and groups looked up."""

    __slots__ = (
        "after",
        "before",
        "before_sync",
        "checks",
        "done",
        "effects",
        "ends",
        "handed_off",
        "join",
        "leave",
        "state",
    )

    def __init__(self, step: MacroStep, binding: Binding) -> None:
        self.before, self.after, self.state = step.before, step.after, step.state
        self.handed_off, self.effects, self.done, self.before_sync = (
            step.handed_off,
            step.effects,
            step.done,
            step.before_sync,
        )
        self.checks = tuple(
            (_index_at(binding, scope, n), later, shift, by_delivery)
            for scope, n, later, shift, by_delivery in step.checks
        )
        self.ends = tuple((binding.groups[role], state) for role, state in step.ends)
        self.leave = tuple(_index_at(binding, *at) for at in step.leave)
        self.join = tuple(_index_at(binding, *at) for at in step.join)


class MacroSteps:
    """Performs an event of a copy, and then events of some agents as long as the tables allow them."""

    def __init__(
        self,
        stepper: Stepper,
        agents: Mapping[FollowUp, tuple[frozenset[str], ...]],
        followups: Callable[[Copy], tuple[Effect, ...]],
        sync_point: SyncPoint,
        waited_for: Collection[Copy],
    ) -> None:
        """``agents`` has the agents whose events follow, one set after the other.

        ``followups`` are the effects of what a copy has yet to do; they depend on the states alone, but for the copies
        that others wait for (``waited_for``), of which no macro-step is kept.
        """
        self.stepper = stepper
        self._agents = agents
        self._followups = followups
        self._sync_point = sync_point
        self._waited_for = waited_for

    def run(self, request: StepRequest, copy: Copy, onward: Binding | None = None) -> int:  # noqa: C901, PLR0912 - the hot path, in one piece
        """Perform ``request``; how many of its steps were: the first that is refused ends it, a hand-off counts too.

        ``onward`` is the binding by which the copy may be dispatched, if it was not dispatched before.
        """
        if self.stepper.observer is not None or copy.other_copy is not None or copy in self._waited_for:
            return self._run_stepwise(request, copy, onward)
        binding = onward or copy.binding
        groups = binding.groups
        _, producer, window, unconfirmed, consumer, prefetch, broker = groups
        key = (
            request,
            copy.state,
            producer.state,
            window.state,
            unconfirmed.state,
            consumer.state,
            prefetch.state,
            broker.state,
        )
        step: BoundStep | None = binding.macro_steps.get(key)
        if step is None:
            recorded: MacroStep | None = binding.recorded_steps.get(key)
            if recorded is None:
                return self._run_and_record(request, copy, onward, key)
            step = binding.macro_steps[key] = BoundStep(recorded, binding)
        if step.before is not copy.indexed_under:
            return self._run_stepwise(request, copy, onward)
        number = copy.key
        for index, later, shift, by_delivery in step.checks:
            members = index.members
            alone = not members or (len(members) == 1 and number in members)
            if not alone and (
                (by_delivery and binding.is_out_of_order()) or index.has_receiver(number, later=later, shift=shift)
            ):
                return self._run_stepwise(request, copy, onward)
        first = step.before_sync
        if first is not None:
            copy.state = first.state
            for role, state in first.ends:
                groups[role].state = state
            for effect in first.effects:
                effect(copy)
            if not self._synced(copy):
                return first.done
        copy.state = step.state
        for group, state in step.ends:
            group.state = state
        if step.handed_off:
            copy.binding, copy.automaton, copy.columns = binding, binding.automaton, binding.automaton.columns
        if step.after is not step.before:
            for index in step.leave:
                if index.ordered is None:
                    del index.members[number]
                else:
                    index.remove(copy)
            for index in step.join:
                if index.ordered is None:
                    index.members[number] = copy
                else:
                    index.add(copy)
            copy.indexed_under = step.after
        for effect in step.effects:
            effect(copy)
        return step.done

    def _synced(self, copy: Copy) -> bool:
        """Sync; a copy whose sync fails stays as it is and is indexed, so that the recovery finds it."""
        stored = False
        try:
            stored = self._sync_point.sync_for(copy)
        finally:
            if not stored:
                if self.stepper.recorder is not None:
                    self.stepper.recorder.is_isolated = False
                copy.update_indexes()
                for effect in self._followups(copy):
                    effect(copy)
        if not stored:
            self._sync_point.sync_failed()
        return stored

    def _run_stepwise(self, request: StepRequest, copy: Copy, onward: Binding | None) -> int:
        done = 0
        for each in request.steps:
            event = each(copy.facts) if callable(each) else each
            if (event is None and each is not None) or not self._step(event, copy, request.followup):
                break
            done += 1
        if not done:
            return 0
        passed = self._hand_off(request, copy, onward)
        if not passed and request.blocking and copy.facts.send_pending and Agent.DISK in copy.facts.agents:
            if not self._sync_within(copy, onward, done):
                return done
            passed = not copy.facts.send_pending and self._hand_off(
                request, copy, onward
            )  # the sender gets the outcome first
        done += passed
        copy.update_indexes()
        left = self._followups(copy)
        if self.stepper.recorder is not None:
            self.stepper.recorder.effects += left
        for effect in left:
            effect(copy)
        return done

    def _hand_off(self, request: StepRequest, copy: Copy, onward: Binding | None) -> bool:
        """Dispatch ``copy`` by that binding, if it may go; whether it went."""
        if onward is None or request.hand_off is None or not request.hand_off(copy, onward):
            return False
        event = copy.facts.dispatch_event
        return event is not None and self._step(event, copy, request.followup)

    def _sync_within(self, copy: Copy, onward: Binding | None, done: int) -> bool:
        """Sync, with the mark of a copy that is to be dispatched then; ``False`` if the sync failed."""
        marked = onward is not None and self._sync_point.requires_mark(copy, onward)
        if marked:
            self._sync_point.write_mark(copy)
        if self.stepper.recorder is not None:
            self.stepper.recorder.effects += [self._sync_point.write_mark] * marked
            self.stepper.recorder.begin_sync(copy.state, _group_states(onward or copy.binding), done)
        if not self._synced(copy):
            return False
        copy.mark_stored = marked
        return self._step(None, copy, FollowUp.AFTER_SYNC)

    def _step(self, event: BoundEvent | None, copy: Copy, followup: FollowUp) -> bool:
        if event is not None and not self.stepper.perform(event, copy):
            return False
        for agents in self._agents[followup]:
            while any(
                following.agent in agents and self.stepper.perform(following, copy) for following in copy.facts.enabled
            ):
                pass
        return True

    def _run_and_record(self, request: StepRequest, copy: Copy, onward: Binding | None, key: tuple[object, ...]) -> int:
        binding = onward or copy.binding
        recorder = self.stepper.recorder = StepRecorder()
        before, memberships, states = copy.indexed_under, tuple(_memberships(copy)), _group_states(binding)
        try:
            done = self._run_stepwise(request, copy, onward)
        finally:
            self.stepper.recorder = None
        if done and recorder.is_isolated:
            now, first = tuple(_memberships(copy)), None
            if recorder.before_sync is not None:
                state, between, effects, performed = recorder.before_sync
                first, states = _BeforeSync(state, _changed_groups(states, between), effects, performed), between
            binding.recorded_steps[key] = MacroStep(
                before=before,
                checks=tuple(
                    (c.scope, c.number, c.relation is IndexRelation.LATER, c.key_shift, c.by_delivery)
                    for c in recorder.broadcasts
                ),
                state=copy.state,
                ends=_changed_groups(states, _group_states(binding)),
                handed_off=onward is not None and copy.binding is onward,
                leave=tuple(each for each in memberships if each not in now),
                join=tuple(each for each in now if each not in memberships),
                after=copy.indexed_under,
                effects=tuple(recorder.effects),
                done=done,
                before_sync=first,
            )
        return done


def _memberships(copy: Copy) -> Iterator[tuple[int, int]]:
    """Where it is indexed, as scope and number of the broadcast."""
    return ((each.scope, each.number) for each in copy.indexed_under if copy.scopes[each.scope] is not None)


def _index_at(binding: Binding, scope: int, number: int) -> CopyIndex[Copy]:
    """The index of that broadcast in a scope."""
    at = binding.scopes[scope]
    if at is None:
        raise AssertionError("no copy is indexed in a scope that is not there")
    found = at.indexes[number]
    if found is None:
        found = at.indexes[number] = CopyIndex()
    return found


def _group_states(binding: Binding) -> tuple[int, ...]:
    return tuple(group.state for group in binding.groups)


def _changed_groups(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """The groups that have changed, each with its state."""
    return tuple((role, now) for role, (was, now) in enumerate(zip(before, after, strict=True)) if was != now)
