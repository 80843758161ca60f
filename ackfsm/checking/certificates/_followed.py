"""A followed message: the system in which it is chosen before all else, and what comes after its mark (Lemma 10)."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.certificates._related import RelatedRest
from ackfsm.checking.certificates._system import Event, Ghost, Moves, Part, Role, System, Watcher
from ackfsm.checking.certificates._views import ChecksError
from ackfsm.checking.certificates._watching import Products, Waiting, brought_about_by_others

_CHOOSE = Event("follow", 0, of_message=True, awaited=False)
"""The event by which a message becomes the followed one: number 0 of the system in which one is followed."""

_OF_MESSAGES = (Role.OWN, Role.EARLIER, Role.LATER)

_ADDED = 2
"""So many states what watches a message has more: it knows nothing of a choice, or that another one was chosen."""


class _Part(NamedTuple):
    """An event of the whole, that is in one of some ``roles`` to the followed message."""

    event: int
    roles: tuple[Role, ...]


def followed_system(system: System, watcher: Watcher) -> System:
    """The system in which the message of ``watcher`` is followed, and what watches that one alone.

    Raises :class:`ChecksError` unless it marks a message at rest, and never again once it has left such a mark.
    """
    alive = _may_be_marked(watcher)
    left = {
        after
        for moves in watcher.part.moves.values()
        for state in watcher.at_rest
        for after in moves[state]
        if after != state
    }
    if not watcher.of_message or not watcher.at_rest or left & alive:
        raise ChecksError(f"{watcher.part.name} cannot be followed")
    places = _places(watcher.part, len(system.events))
    parts = list(_parts(system, watcher.part, places))
    numbers: dict[int, list[int]] = defaultdict(list)
    for number, part in enumerate(parts, start=1):
        numbers[part.event].append(number)
    return System(
        events=(_CHOOSE, *(system.events[part.event] for part in parts)),
        system=(*(_renumbered(part, numbers) for part in system.system), _following(watcher, alive, parts)),
        message=(*(_renumbered(part, numbers) for part in system.message), _place(places, parts)),
        ghosts={name: _ghost(ghost, numbers) for name, ghost in system.ghosts.items()},
        watchers=(_watching(watcher, parts),),
    )


def _may_be_marked(watcher: Watcher) -> set[int]:
    """The states from which there is a way to a mark."""
    found = {*watcher.marked, *watcher.at_rest}
    while True:
        more = {
            before
            for moves in watcher.part.moves.values()
            for before, after in enumerate(moves)
            if found.intersection(after)
        }
        if more <= found:
            return found
        found |= more


def _places(part: Part, events: int) -> list[tuple[Role, ...]]:
    """What a message can be to the followed one; earlier and later ones are others where what watches tells no more."""
    if all(part.moves.get((Role.EARLIER, event)) == part.moves.get((Role.LATER, event)) for event in range(events)):
        return [(Role.OWN,), (Role.EARLIER, Role.LATER)]
    return [(role,) for role in _OF_MESSAGES]


def _parts(system: System, part: Part, places: Sequence[tuple[Role, ...]]) -> Iterator[_Part]:
    """Every event of the system, and of a message as often as what watches tells its places apart."""
    for number, event in enumerate(system.events):
        if not event.of_message:
            yield _Part(number, (Role.SYSTEM,))
            continue
        alike: dict[Moves | None, list[Role]] = defaultdict(list)
        for roles in places:
            alike[part.moves.get((roles[0], number))] += roles
        yield from (_Part(number, tuple(roles)) for roles in alike.values())


def _renumbered(part: Part, numbers: Mapping[int, Sequence[int]]) -> Part:
    moves = {(role, number): moves for (role, event), moves in part.moves.items() for number in numbers[event]}
    return dataclasses.replace(part, moves=moves)


def _ghost(ghost: Ghost, numbers: Mapping[int, Sequence[int]]) -> Ghost:
    down = frozenset(number for event in ghost.down for number in numbers[event])
    return dataclasses.replace(ghost, part=_renumbered(ghost.part, numbers), down=down)


def _following(watcher: Watcher, alive: set[int], parts: Sequence[_Part]) -> Part:
    """What watches as a machine of the system: it is told first, and stops at a mark at rest, and without hope."""
    kept = sorted(alive)
    over = len(kept) + 1
    number = {state: kept.index(state) + 1 if state in alive else over for state in range(len(watcher.part.states))}
    moves: dict[tuple[Role, int], Moves] = {(Role.OWN, 0): ((number[watcher.part.initial],), *((),) * over)}
    unmoved: Moves = tuple((state,) for state in number)
    for event, part in enumerate(parts, start=1):
        of_whole = watcher.part.moves.get((part.roles[0], part.event), unmoved)
        after = [
            () if state in watcher.at_rest else tuple(sorted({number[to] for to in of_whole[state]})) for state in kept
        ]
        moves[Role.SYSTEM if part.roles == (Role.SYSTEM,) else Role.OWN, event] = ((), *after, ())
    states = ("unknown", *(watcher.part.states[state] for state in kept), "over")
    return Part(f"following by {watcher.part.name}", states, 0, moves)


def _place(places: Sequence[tuple[Role, ...]], parts: Sequence[_Part]) -> Part:
    """What a message knows of its place, and has its events in: it is later where the followed one is earlier."""
    number = {role: at for at, roles in enumerate(places, start=1) for role in roles}
    of_other = {Role.OWN: Role.OWN, Role.EARLIER: Role.LATER, Role.LATER: Role.EARLIER}
    refused: Moves = ((),) * len(places)
    moves: dict[tuple[Role, int], Moves] = {(role, 0): ((number[of_other[role]],), *refused) for role in _OF_MESSAGES}
    for event, part in enumerate(parts, start=1):
        if part.roles != (Role.SYSTEM,):
            mine = {number[role] for role in part.roles}
            moves[Role.OWN, event] = ((), *(((at,) if at in mine else ()) for at in range(1, len(places) + 1)))
    names = (" or ".join(role.name.lower() for role in roles) for roles in places)
    return Part("place", ("unknown", *names), 0, moves)


def _watching(watcher: Watcher, parts: Sequence[_Part]) -> Watcher:
    """What watches each message, and goes on if that is the followed one."""
    states = ("unknown", "another is followed", *watcher.part.states)
    stays: Moves = tuple((state,) for state in range(1, len(states)))
    moves: dict[tuple[Role, int], Moves] = {
        (role, 0): ((watcher.part.initial + _ADDED if role is Role.OWN else 1,), *stays) for role in _OF_MESSAGES
    }
    for event, part in enumerate(parts, start=1):
        for role in (Role.SYSTEM,) if part.roles == (Role.SYSTEM,) else _OF_MESSAGES:
            heard = watcher.part.moves.get((role, part.event))
            if heard is not None:
                moves[role, event] = ((0,), (1,), *(tuple(to + _ADDED for to in after) for after in heard))
    return dataclasses.replace(
        watcher,
        part=Part(watcher.part.name, states, 0, moves),
        marked=frozenset(state + _ADDED for state in watcher.marked),
        at_rest=frozenset(state + _ADDED for state in watcher.at_rest),
        count=None,
    )


class Followed:
    """The pairs in which a message is followed, and the views of related messages that go on where they end."""

    def __init__(self, watcher: Watcher, following: Watcher, of_pairs: Products, rest: RelatedRest) -> None:
        """``watcher`` watches messages of the whole system, and ``following`` those of the one of the pairs."""
        self._watcher, self._following, self._of_pairs = watcher, following, of_pairs
        self._rest, self._related = rest, rest.products

    def shows(self) -> str:
        """How they show what is watched for, a clause; empty if they do not.

        Raises :class:`ChecksError` where the related views keep what the pairs do not.
        """
        reached = self._of_pairs.reached_in_slots(self._following)
        if any(self._of_pairs.is_marked(self._following, reached, state) for state in self._following.marked):
            return f"{self._watcher.part.name} is marked beside a pair with the message that it follows"
        for state in sorted(self._watcher.at_rest):
            if self._may_rest(state, reached):
                return f"nothing has to take {self._watcher.part.name} back from its mark"
        return ""

    def _may_rest(self, state: int, reached: Sequence[Sequence[int]]) -> bool:
        """Whether the message can be at rest with its mark, and so can who brought that about."""
        brought = brought_about_by_others(self._following.part, state + _ADDED)
        if brought is None:
            return self._stays(list(self._begun(reached, state, lambda slot: slot)), state, (Role.OWN,))
        waiting = Waiting(None, brought)
        caused = [self._of_pairs.caused(self._following.part, waiting, slot) for slot in (0, 1)]
        own = list(self._begun(caused, state, lambda slot: slot))
        cause = list(self._begun(caused, state, lambda slot: 1 - slot))
        return self._stays(cause, state, (Role.EARLIER, Role.LATER)) and self._stays(own, state, (Role.OWN,))

    def _begun(self, reached: Sequence[Sequence[int]], state: int, whose: Callable[[int], int]) -> Iterator[int]:
        """The related views of the message in slot ``whose``, where the one in a slot is marked."""
        met = {
            (view[0], view[1 + whose(slot)]): None
            for slot, of_slot in enumerate(reached)
            for view, states in zip(self._of_pairs.views.views, of_slot, strict=True)
            if states >> state + _ADDED & 1
        }
        known = self._same_in_related({machines for machines, _ in met}, {message for _, message in met})
        for machines, message in met:
            view = self._related.views.index.get(self._related.views.key((known[0][machines], known[1][message])))
            if view is not None:
                yield view

    def _same_in_related(self, system: Iterable[int], messages: Iterable[int]) -> tuple[dict[int, int], dict[int, int]]:
        """For states of the system and of messages in the pairs those that they are in the related views."""
        pairs, related = self._of_pairs.views, self._related.views
        spaces = [(pairs.machines.space, related.machines.space), (pairs.messages.space, related.messages.space)]
        for ours, theirs in spaces:
            lacking = {part.name for part in theirs.parts} - {part.name for part in ours.parts}
            if lacking:
                raise ChecksError(f"its pairs do not keep {min(lacking)}, which the related views keep")
        (ours, theirs), (our_messages, their_messages) = spaces
        return (
            {number: theirs.find(ours.named(number)) for number in system},
            {number: their_messages.find(our_messages.named(number)) for number in messages},
        )

    def _stays(self, begun: Sequence[int], state: int, roles: tuple[Role, ...]) -> bool:
        """Whether a message can be at rest after one of the views ``begun`` without taking the mark back."""
        part = _taking_back(self._watcher.part, state, roles)
        watcher = Watcher(
            self._watcher.anomaly, part, of_message=False, marked=frozenset(), at_rest=_NOT_YET, count=None
        )
        return self._rest.shows(watcher, [self._related.reached(part, 0, begun)])


_NOT_YET = frozenset({0})


def _taking_back(part: Part, state: int, roles: tuple[Role, ...]) -> Part:
    """What sees whether a message takes the mark ``state`` back, by what does so in each of ``roles`` to the marked."""
    events = {event for _, event in part.moves}
    taking = [
        event
        for event in sorted(events)
        if all((role, event) in part.moves and state not in part.moves[role, event][state] for role in roles)
    ]
    return Part("taken back", ("no", "yes"), 0, {(Role.OWN, event): ((1,), (1,)) for event in taking})
