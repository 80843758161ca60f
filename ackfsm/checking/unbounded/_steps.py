"""The steps of a view: which event, whose, with which outcome of the counters, and what each part of the view does."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Iterator, Mapping

from ackfsm.checking.unbounded._columns import System
from ackfsm.checking.unbounded._spaces import Space
from ackfsm.checking.unbounded._tables import Column, Role


class Level(enum.StrEnum):
    """How much a view knows of other messages, from least to most; ``alone`` is for a message without others.

    Nothing is proved of ``local`` views and of ``pairs``: they are what ``related`` and ``followed`` ones are made of.
    """

    ALONE = "alone"
    CHAOS = "chaos"
    LOCAL = "local"
    PAIRS = "pairs"
    RELATED = "related"
    FOLLOWED = "followed"

    @property
    def slots(self) -> int:
        """How many messages a view holds."""
        return 2 if self is Level.PAIRS else 1

    @property
    def of_several(self) -> bool:
        """Whether what is proved is of systems of two messages or more."""
        return self in {Level.RELATED, Level.FOLLOWED}


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A step of a view: ``system`` and ``slots`` are the steps of the spaces, ``roles`` what the event is to each slot.

    ``third`` is set for an event of a message that the view does not hold.
    """

    event: int
    system: int
    slots: tuple[int, ...]
    roles: tuple[Role, ...]
    third: bool


class Spaces:
    """The states of the system's machines and of one message's, and the numbers of their steps."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.system_steps: list[tuple[int, int]] = []
        """The event, and which of its outcomes."""
        self.message_steps: dict[tuple[Role, int], int] = {}
        of_system = [(event, chosen) for event in range(len(system.events)) for chosen in _outcomes(system, event)]
        counts: dict[int, int] = {}
        for event, _ in of_system:
            self.system_steps.append((event, counts.get(event, 0)))
            counts[event] = counts.get(event, 0) + 1
        of_message: list[Mapping[int, Column]] = []
        for number, declared in enumerate(system.events):
            for role in declared.roles:
                self.message_steps[role, number] = len(of_message)
                parts = {
                    i: t.columns[role, number] for i, t in enumerate(system.message) if (role, number) in t.columns
                }
                of_message.append({i: columns[0] for i, columns in parts.items()})
        self.machines = Space(system.machines, [chosen for _, chosen in of_system])
        self.message = Space(system.message, of_message)


def _outcomes(system: System, event: int) -> Iterator[dict[int, Column]]:
    """What the machines of the system do by an event, in each of the outcomes that their counters leave open."""
    role = Role.OWN if system.events[event].of_message else Role.SYSTEM
    parts = {i: t.columns[role, event] for i, t in enumerate(system.machines) if (role, event) in t.columns}
    for chosen in itertools.product(*parts.values()):
        yield dict(zip(parts, chosen, strict=True))


def steps_of(spaces: Spaces, level: Level, *, third: bool) -> tuple[Step, ...]:
    """The steps of a view of this level; those of a ``third`` message only if there is one."""
    found: list[Step] = []
    for number, (event, _) in enumerate(spaces.system_steps):
        if not spaces.system.events[event].of_message:
            ways: list[tuple[Role, ...]] = [(Role.SYSTEM,) * level.slots]
        elif level is Level.PAIRS:
            ways = [(Role.OWN, Role.EARLIER), (Role.LATER, Role.OWN)]
            ways += [(Role.EARLIER, Role.EARLIER), (Role.LATER, Role.EARLIER), (Role.LATER, Role.LATER)] * third
        else:
            ways = [(Role.OWN,), *[(Role.EARLIER,), (Role.LATER,)] * third]
        for roles in ways:
            slots = tuple(spaces.message_steps[role, event] for role in roles)
            strange = Role.OWN not in roles and roles[0] is not Role.SYSTEM
            found.append(Step(event, number, slots, roles, strange))
    return tuple(found)
