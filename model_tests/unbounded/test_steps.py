"""Are the steps between views those of the definition, made from the states of the parts one by one?"""

from __future__ import annotations

import pytest

from ackfsm.checking.unbounded import Level
from ackfsm.checking.unbounded._steps import Step
from ackfsm.checking.unbounded._tables import Role
from ackfsm.checking.unbounded._views import Views
from model_tests.support.checker.few_views import steps_in, views_of_few


@pytest.mark.parametrize("level", [Level.CHAOS, Level.LOCAL, Level.PAIRS])
def test_the_steps_between_views_are_those_of_their_parts(level: Level) -> None:
    """Every view is left by each step that its parts allow and, of another message, one beside it owns."""
    views = views_of_few(level)
    edges, owned = views.edges(), _Owned(views)
    rows = list(zip(views.machines.tolist(), *(slot.tolist() for slot in views.slots), strict=True))
    place = {row: number for number, row in enumerate(rows)}
    kept_away = 0
    for number, (machines, *messages) in enumerate(rows):
        leaves, stays = set(), set()
        for at, step in enumerate(views.steps):
            after = (
                int(views.spaces.machines.after[machines, step.system]),
                *(int(views.spaces.message.after[m, way]) for m, way in zip(messages, step.slots, strict=True)),
            )
            if min(after) < 0:
                continue
            if step.third and not owned.may_happen(machines, messages, step):
                kept_away += 1
            elif place[after] == number:
                stays.add(at)
            else:
                leaves.add((at, place[after]))
        first, last = edges.first[number], edges.first[number + 1]
        assert set(zip(edges.step[first:last].tolist(), edges.target[first:last].tolist(), strict=True)) == leaves
        assert steps_in(edges.stays[number].tolist()) == stays
    assert len(views) > 40
    assert edges.stays.any()
    assert (kept_away == 0) == (level is Level.CHAOS)


class _Owned:
    """The events that some message owns in a state of the system, beside any one or (``pairs``) beside a given one."""

    def __init__(self, views: Views) -> None:
        self._level = views.level
        self._spaces = views.spaces
        self._found: set[tuple[object, ...]] = set()
        for machines, *messages in zip(views.machines.tolist(), *(slot.tolist() for slot in views.slots), strict=True):
            for event in range(len(views.spaces.system.events)):
                if views.level is Level.LOCAL and self._owns(machines, messages[0], event):
                    self._found.add((machines, event))
                if views.level is Level.PAIRS and self._owns(machines, messages[0], event):
                    self._found.add((machines, event, Role.EARLIER, messages[1]))
                if views.level is Level.PAIRS and self._owns(machines, messages[1], event):
                    self._found.add((machines, event, Role.LATER, messages[0]))

    def may_happen(self, machines: int, messages: list[int], step: Step) -> bool:
        """Whether the level allows a step of a message that the view does not hold."""
        if self._level is Level.CHAOS:
            return True
        if self._level is Level.LOCAL:
            return (machines, step.event) in self._found
        beside = zip(step.roles, messages, strict=True)
        return all((machines, step.event, role, message) in self._found for role, message in beside)

    def _owns(self, machines: int, message: int, event: int) -> bool:
        own = self._spaces.message_steps.get((Role.OWN, event))
        ways = [number for number, (of, _) in enumerate(self._spaces.system_steps) if of == event]
        return (
            own is not None
            and bool(self._spaces.message.after[message, own] >= 0)
            and any(self._spaces.machines.after[machines, way] >= 0 for way in ways)
        )
