"""How many states and transitions a decision diagram stands for, as exact numbers of any size."""

from __future__ import annotations

from typing import Any

from ackfsm.checking.explore.symbolic.forest import Forest
from ackfsm.checking.explore.symbolic.kernel_count import LIMB, Diagram


def count_states(forest: Forest, a: int) -> int:
    """How many states a set has."""
    if not a:
        return 0
    diagram = forest.diagram(a)
    limbs, below = _counted(forest, diagram)
    return _number(below, _root(diagram), limbs)


def count_transitions(forest: Forest, a: int, events: int) -> int:
    """How many pairs there are of a state of the set and one of the first ``events`` that it does not refuse."""
    diagram = forest.diagram(a)
    limbs, below = _counted(forest, diagram)
    above, enabled = forest.numbers(diagram, limbs), forest.numbers(diagram, limbs)
    forest.counting.add_paths(forest.system, diagram, limbs, above)  # no more than there are states
    states = _number(below, _root(diagram), limbs)
    total = 0
    for event in range(events):
        top = forest.events.top[event]
        if not top:  # nothing refuses it
            total += states
            continue
        forest.counting.count_enabled(forest.system, diagram, event, limbs, below, enabled)
        for node in range(int(diagram.first[top]), int(diagram.first[top + 1])):
            total += _number(above, node, limbs) * _number(enabled, node, limbs)
    return total


def local_states(forest: Forest, a: int) -> list[set[int]]:
    """For each level from 1 the local states that occur in the set."""
    if not a:
        return [set() for _ in range(forest.events.levels)]
    diagram = forest.diagram(a)
    found = []
    for level in range(1, diagram.levels + 1):
        size = forest.events.size[level]
        children = diagram.child[int(diagram.at[level]) : int(diagram.at[level + 1])]
        found.append({state for state in range(size) if any(children[state::size])})
    return found


def _counted(forest: Forest, diagram: Diagram) -> tuple[int, Any]:
    """As many limbs as are needed, and the states below each node."""
    limbs = 1
    while True:
        below = forest.numbers(diagram, limbs)
        if forest.counting.count_paths(forest.system, diagram, limbs, below):
            return limbs, below
        limbs *= 2


def _root(diagram: Diagram) -> int:
    return int(diagram.first[diagram.levels + 1]) - 1


def _number(numbers: Any, node: int, limbs: int) -> int:
    return sum(int(numbers[node * limbs + limb]) << LIMB * limb for limb in range(limbs))
