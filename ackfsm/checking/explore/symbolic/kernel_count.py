"""Counting the states of a decision diagram, in integers only; numbers of any size are made of limbs of 62 bits.

All functions mean the same to Python, on lists, and to Numba, on arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.checking.explore.symbolic.kernel import BASE, BOTTOM, COLUMN, FIRST_NODE, LEVELS, NODE, SIZE, TABLE, TOP

LIMB = 62
_MASK = (1 << LIMB) - 1


class Diagram(NamedTuple):
    """The nodes of one decision diagram by levels: level ``k`` has nodes ``first[k]`` up to ``first[k + 1]``.

    The children of node ``n`` of level ``k`` begin at ``at[k] + (n - first[k]) * size`` of ``child``.  Number 0 is the
    empty set, 1 the set of the empty state.
    """

    levels: int
    first: Any
    at: Any
    child: Any


def list_nodes(system: Any, pool: Any, used: int, nodes: Any) -> None:
    """Where each node of the pool begins, in their order."""
    node, count = FIRST_NODE, 0
    while node < used:
        nodes[count] = node
        count += 1
        node += NODE + system[system[SIZE] + pool[node]]


def number_nodes(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: Any, pool: Any, root: int, nodes: Any, number: Any, first: Any
) -> None:
    """Number the nodes below ``root`` by levels: ``number`` of where they begin, and ``first`` of each level.

    Children are made before their parents, so parents are seen first from the end.
    """
    number[root] = 1
    for n in range(len(nodes) - 1, -1, -1):
        node = nodes[n]
        if number[node] > 0:
            level = pool[node]
            first[level + 1] += 1
            for i in range(system[system[SIZE] + level]):
                number[pool[node + NODE + i]] = 1
    first[1] = 2
    for level in range(1, system[LEVELS] + 1):
        first[level + 1] += first[level]
    for n in range(len(nodes) - 1, -1, -1):
        node = nodes[n]
        if number[node] > 0:
            level = pool[node]
            number[node] = first[level]
            first[level] += 1
    for level in range(system[LEVELS], 0, -1):
        first[level + 1] = first[level]
    first[1] = 2
    number[0], number[1] = 0, 1


def copy_children(system: Any, pool: Any, nodes: Any, number: Any, diagram: Diagram) -> None:
    """Write the children of the numbered nodes."""
    for n in range(len(nodes)):
        node = nodes[n]
        if number[node] > 0:
            level = pool[node]
            size = system[system[SIZE] + level]
            at = diagram.at[level] + (number[node] - diagram.first[level]) * size
            for i in range(size):
                diagram.child[at + i] = number[pool[node + NODE + i]]


def add(numbers: Any, to: int, others: Any, what: int, limbs: int) -> bool:
    """Add a number to another one; false if that has too few limbs for the sum."""
    carry = 0
    for limb in range(limbs):
        total = numbers[to + limb] + others[what + limb] + carry
        numbers[to + limb], carry = total & _MASK, total >> LIMB
    return bool(carry == 0)


def count_paths(system: Any, diagram: Diagram, limbs: int, below: Any) -> bool:
    """How many states each node stands for; false if there are too few limbs."""
    fits = True
    below[limbs] = 1
    for level in range(1, diagram.levels + 1):
        size = system[system[SIZE] + level]
        for node in range(diagram.first[level], diagram.first[level + 1]):
            at = diagram.at[level] + (node - diagram.first[level]) * size
            for i in range(size):
                if diagram.child[at + i] > 0:
                    fits = add(below, node * limbs, below, diagram.child[at + i] * limbs, limbs) and fits
    return fits


def add_paths(system: Any, diagram: Diagram, limbs: int, above: Any) -> bool:
    """How many ways lead from the root, the last node, to each node; false if there are too few limbs."""
    fits = True
    above[(diagram.first[diagram.levels + 1] - 1) * limbs] = 1
    for level in range(diagram.levels, 0, -1):
        size = system[system[SIZE] + level]
        for node in range(diagram.first[level], diagram.first[level + 1]):
            at = diagram.at[level] + (node - diagram.first[level]) * size
            for i in range(size):
                if diagram.child[at + i] > 0:
                    fits = add(above, diagram.child[at + i] * limbs, above, node * limbs, limbs) and fits
    return fits


def count_enabled(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: Any, diagram: Diagram, event: int, limbs: int, below: Any, enabled: Any
) -> None:
    """How many states of each node at the top of an event do not refuse it."""
    bottom = system[system[BOTTOM] + event]
    for level in range(bottom, system[system[TOP] + event] + 1):
        size, column = system[system[SIZE] + level], system[system[COLUMN] + system[system[BASE] + event] + level]
        for node in range(diagram.first[level], diagram.first[level + 1]):
            at, to = diagram.at[level] + (node - diagram.first[level]) * size, node * limbs
            for limb in range(limbs):
                enabled[to + limb] = 0
            for i in range(size):
                child = diagram.child[at + i]
                if child > 0 and (column < 0 or system[system[TABLE] + column + i] >= 0):
                    if level == bottom:
                        add(enabled, to, below, child * limbs, limbs)
                    else:
                        add(enabled, to, enabled, child * limbs, limbs)
