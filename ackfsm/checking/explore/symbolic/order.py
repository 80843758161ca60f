"""The order of the machines in a decision diagram, from the structure of the network alone.

The machines of the system are lowest, then come those of the first message and so on, each message in the same order:
one of small *weighted event span* (Siminiceanu and Ciardo), which counts for each event over how many levels it
stretches, times how high it is.  It is found by sifting on no more than two messages, so the number of messages does
not matter, and nothing is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.symbolic.encode import columns_of
from ackfsm.checking.network import Instance, Place

_ROUNDS = 2
"""How often each machine is sifted at most; the second round changes little."""


class _Role(NamedTuple):
    """A machine without the number of its message."""

    of_message: bool
    place: Place
    name: str


_Group = tuple[int, frozenset[_Role]]
"""Some machines of the system (0), or of the first or second of two messages."""

_Shape = tuple[_Group, _Group]
"""The lowest and the highest group of an event."""


def level_order(packed: PackedNetwork, instances: Sequence[Instance]) -> list[int]:
    """The machines of ``packed``, which are these ``instances``, from the lowest level to the highest one."""
    roles = [_role(instance) for instance in instances]
    shapes = _shapes(packed, instances, roles)
    order = _Sifting(roles, shapes).order()
    rank = {role: number for number, role in enumerate(order)}
    return sorted(range(len(roles)), key=lambda machine: (instances[machine].index[:1], rank[roles[machine]]))


def _role(instance: Instance) -> _Role:
    index = instance.index
    return _Role(bool(index), instance.place._replace(of=index[1:]), instance.fsm.name)


def _shapes(packed: PackedNetwork, instances: Sequence[Instance], roles: Sequence[_Role]) -> Mapping[_Shape, int]:
    """How many events have which shape, as far as the system and the first two messages go."""
    messages = sorted({instance.index[:1] for instance in instances if instance.index})
    number = {message: n for n, message in enumerate(messages[:2], start=1)}
    shapes = Counter[_Shape]()
    for event in range(len(packed.free)):
        groups: dict[int, set[_Role]] = {}
        for machine in columns_of(packed, event):
            message = instances[machine].index[:1]
            if not message or message in number:
                groups.setdefault(number.get(message, 0), set()).add(roles[machine])
        if groups:
            low, high = min(groups), max(groups)
            shapes[(low, frozenset(groups[low])), (high, frozenset(groups[high]))] += 1
    return shapes


class _Sifting:
    """An order of roles that is improved role by role: each goes through all levels, and stays at the best one."""

    def __init__(self, roles: Sequence[_Role], shapes: Mapping[_Shape, int]) -> None:
        self.system = list(dict.fromkeys(role for role in roles if not role.of_message))
        self.message = list(dict.fromkeys(role for role in roles if role.of_message))
        every = enumerate([*self.system, *self.message], start=1)
        self.level = {role: level for level, role in every}
        self.shapes = list(shapes.items())
        self.at: dict[_Role, list[int]] = {role: [] for role in self.level}
        for number, (((_, lowest), (_, highest)), _) in enumerate(self.shapes):
            for role in lowest | highest:
                self.at[role].append(number)
        self.cost = [self._weighted_span(number) for number in range(len(self.shapes))]

    def order(self) -> list[_Role]:
        """The roles from the lowest level to the highest one."""
        for _ in range(_ROUNDS):
            before = [*self.system, *self.message]
            for part in (self.system, self.message):
                for role in list(part):
                    self._sift(role, part)
            if [*self.system, *self.message] == before:
                break
        return [*self.system, *self.message]

    def _sift(self, role: _Role, part: list[_Role]) -> None:
        here = part.index(role)
        gains = {here: 0}
        for path in (range(here, len(part) - 1), range(len(part) - 2, -1, -1)):
            for lower in path:
                came_from = lower if part[lower] == role else lower + 1
                gains[2 * lower + 1 - came_from] = gains[came_from] + self._swap(part, lower)
        best = min(gains, key=lambda level: (gains[level], abs(level - here), level))
        for lower in range(best):
            self._swap(part, lower)

    def _swap(self, part: list[_Role], lower: int) -> int:
        """Exchange a role and the one above it; by how much that costs more."""
        one, other = part[lower], part[lower + 1]
        part[lower], part[lower + 1] = other, one
        self.level[one], self.level[other] = self.level[other], self.level[one]
        more = 0
        for number in {*self.at[one], *self.at[other]}:
            cost = self._weighted_span(number)
            more += cost - self.cost[number]
            self.cost[number] = cost
        return more

    def _weighted_span(self, number: int) -> int:
        """(highest - lowest level) * highest level, for all events of a shape."""
        ((low, lowest), (high, highest)), events = self.shapes[number]
        height = len(self.message)
        bottom = min(map(self.level.__getitem__, lowest)) + max(0, low - 1) * height
        top = max(map(self.level.__getitem__, highest)) + max(0, high - 1) * height
        return events * (top - bottom) * top
