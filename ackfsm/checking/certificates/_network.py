"""The network of a certificate written out as data, for a verifier that reads no tables (``verifier/``).

``spec/any.md`` has every field.  All conditions and settings are evaluated; what is left are machines, their moves in
each event, what the counters count, and what marks an anomaly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ackfsm.checking.certificates._system import Ghost, Moves, NotCoveredError, Part, Question, Role, System, Watcher

_FORMAT = "ackfsm network"
_VERSION = 1


def written_network(question: Question) -> bytes:
    """The network as JSON; the same bytes for the same question.  One that proofs do not cover has no families."""
    try:
        families = list(_families(question))
    except NotCoveredError:
        families = []
    told = {"format": _FORMAT, "version": _VERSION, "families": families}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _families(question: Question) -> Iterator[dict[str, Any]]:
    """The system for each range of numbers of messages for which it is one."""
    least: int | None = 1
    while least is not None:
        other = question.differs_from(least, None)
        yield {"least": least, "most": other and other - 1, **_system(question.system(least))}
        least = other


def _system(system: System) -> dict[str, Any]:
    of_each = {"system": system.system, "message": system.message}
    machines = [_machine(part, of, watches=False) for of, parts in of_each.items() for part in parts]
    watching = {watcher.part.name: watcher for watcher in system.watchers}
    machines += [_machine(each.part, _of(each.of_message), watches=True) for each in watching.values()]
    parts = [*system.system, *system.message, *(watcher.part for watcher in watching.values())]
    labels = [event.label for event in system.events]
    return {
        "machines": machines,
        "events": [
            {
                "event": event.label,
                "of": _of(event.of_message),
                "awaited": event.awaited,
                "participants": [each for part in parts for each in _participants(part, number)],
            }
            for number, event in enumerate(system.events)
        ],
        "counters": [{"machine": name, **_counts(ghost, labels)} for name, ghost in system.ghosts.items()],
        "watchers": [_watcher(watcher, labels) for watcher in system.watchers],
    }


def _of(of_message: bool) -> str:  # noqa: FBT001 - the one thing that it says
    return "message" if of_message else "system"


def _machine(part: Part, of: str, *, watches: bool) -> dict[str, Any]:
    told = {
        "machine": part.name,
        "of": of,
        "watches": watches,
        "states": part.states,
        "initial": part.states[part.initial],
    }
    return {**told, "highest": part.highest} if part.highest else told


def _participants(part: Part, event: int) -> Iterator[dict[str, Any]]:
    """What the event is to the machine, and its moves, without the states in which it ignores the event."""
    for role in Role:
        moves = part.moves.get((role, event))
        if moves is not None:
            yield {"machine": part.name, "role": role.name.lower(), "moves": dict(_moves(part, moves))}


def _moves(part: Part, moves: Moves) -> Iterator[tuple[str, list[str]]]:
    for state, after in enumerate(moves):
        if after != (state,):
            yield part.states[state], [part.states[to] for to in after]


def _counts(ghost: Ghost, labels: Sequence[str]) -> dict[str, Any]:
    """What a ghost counts: from 0 an event that counts up leads to 1, and from 1 one that resets it to 0."""
    moved = dict.fromkeys(event for _, event in ghost.part.moves)
    up = [event for event in moved if ghost.part.moves.get((Role.OWN, event), ((0,),))[0] == (1,)]
    reset = [event for event in moved if event not in {*up, *ghost.down}]
    named = {"up": up, "down": ghost.down, "reset": reset}
    told = {what: [labels[event] for event in sorted(events)] for what, events in named.items()}
    return {"bound": ghost.bound, "refuses": ghost.refuses, **told}


def _watcher(watcher: Watcher, labels: Sequence[str]) -> dict[str, Any]:
    marks = {"marked": watcher.marked, "at_rest": watcher.at_rest}
    told = {name: [watcher.part.states[state] for state in sorted(states)] for name, states in marks.items()}
    counts = {} if watcher.count is None else {"counts": _counts(watcher.count, labels)}
    return {"anomaly": watcher.anomaly, "machine": watcher.part.name, **told, **counts}
