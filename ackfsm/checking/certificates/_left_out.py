"""What machines that views leave out may refuse: at rest an event may be refused by one of them, unseen.

Each machine is looked at by itself, but for events that another one refuses in all states that it can be in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackfsm.checking.certificates._system import Part, Role, System


def refused_by(parts: Sequence[Part], system: System) -> frozenset[int]:
    """The events that one of ``parts`` refuses in some role, in some state that it can come to."""
    reached = _reached(system)
    return frozenset(
        event
        for part in parts
        for (_, event), moves in part.moves.items()
        if any(not moves[state] for state in reached[part.name])
    )


def _reached(system: System) -> dict[str, set[int]]:
    """For each machine the states that it can come to by events that some state of every other machine accepts."""
    every = [*system.system, *system.message]
    reached = {part.name: {part.initial} for part in every}
    while True:
        happening = {number for number in range(len(system.events)) if _happens(number, system, reached)}
        before = sum(map(len, reached.values()))
        for part in every:
            reached[part.name].update(list(_after(part, reached[part.name], happening)))
        if sum(map(len, reached.values())) == before:
            return reached


def _happens(event: int, system: System, reached: dict[str, set[int]]) -> bool:
    """Whether each machine has come to a state in which it accepts the event, as its own or the system's."""
    role = Role.OWN if system.events[event].of_message else Role.SYSTEM
    for part in (*system.system, *system.message):
        moves = part.moves.get((role, event))
        if moves is not None and not any(moves[state] for state in reached[part.name]):
            return False
    return True


def _after(part: Part, states: set[int], happening: set[int]) -> Iterator[int]:
    for (_, event), moves in part.moves.items():
        if event in happening:
            for state in states:
                yield from moves[state]
