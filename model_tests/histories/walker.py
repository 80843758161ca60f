"""Runs of a network by chance, by the thousand: the rows of its tables, and every state met once."""

from __future__ import annotations

import random
from typing import TypeAlias

from ackfsm.checking.explore import Change, Step
from ackfsm.checking.network import Network, NetworkEvent

__all__ = ["Walker"]

_FAULTS = 0.1
"""How often a step considers faults and actions."""

_LENGTHS = (5, 10, 20, 40)
"""After so many steps a run is led to rest."""

_MOST_STEPS = 400
"""They lead every run of two messages to rest."""

_Known: TypeAlias = "tuple[list[NetworkEvent], list[NetworkEvent]]"


class Walker:
    """Draws runs of one network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._enabled: dict[tuple[str, ...], _Known] = {}
        self._steps: dict[tuple[tuple[str, ...], int], Step] = {}

    def run(self, draw: random.Random) -> list[Step]:
        """The steps of a run by chance, with faults and actions among them, from the first state to rest."""
        state, steps, length = self.network.initial, list[Step](), draw.choice(_LENGTHS)
        for number in range(_MOST_STEPS):
            enabled, certain = self._after(state)
            if not certain:
                return steps
            event = draw.choice(enabled if number < length and draw.random() < _FAULTS else certain)
            steps.append(self._step(state, event))
            state = steps[-1].after
        raise AssertionError(f"{self.network.configuration} does not come to rest")

    def _after(self, state: tuple[str, ...]) -> _Known:
        if state not in self._enabled:
            enabled = [event for event in self.network.events if self.network.step(state, event) is not None]
            self._enabled[state] = enabled, [event for event in enabled if not event.may_never_happen]
        return self._enabled[state]

    def _step(self, state: tuple[str, ...], event: NetworkEvent) -> Step:
        key = state, id(event)
        if key not in self._steps:
            after = self.network.step(state, event)
            assert after is not None
            changes = tuple(Change(instance, row) for instance, row in self.network.rows(state, event))
            self._steps[key] = Step(0, event, changes, after)
        return self._steps[key]
