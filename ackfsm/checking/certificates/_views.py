"""Are views closed?  The steps of an invariant's views, each looked up among them (Lemma 1 of spec/any.md).

Sets of events are bits of an integer.  A machine that the views do not keep refuses nothing here.
"""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.certificates._format import Invariant, Level, View
from ackfsm.checking.certificates._left_out import refused_by
from ackfsm.checking.certificates._system import LOST, Event, Ghost, Part, Role, System

Named = Mapping[str, str]
"""The states of some machines, by name."""

Met = Callable[[Named, Named], bool]
"""Whether a system in a state is met with a message in a state, as far as some machines tell."""

Roles = tuple[Role, ...]
"""What an event is to each message of a view."""

_SHIFT = 24
"""Bits of the number of a message's state in the key of a view."""


class ChecksError(Exception):
    """The certificate is refuted: a sentence that says by what."""


class Kind(NamedTuple):
    """An event, and what it is to each message of a view."""

    event: int
    roles: Roles

    @property
    def of_system(self) -> bool:
        """Whether it is an event of the system."""
        return self.roles[0] is Role.SYSTEM


_NUMBERS: dict[int, tuple[int, ...]] = {}


def numbers_in(bits: int) -> tuple[int, ...]:
    """The numbers of the bits that are set, in their order."""
    known = _NUMBERS.get(bits)
    if known is None:
        known = _NUMBERS[bits] = tuple(number for number in range(bits.bit_length()) if bits >> number & 1)
    return known


class _Space:
    """Combinations of states of some machines, by number; those behind the ``given`` ones are met on the way."""

    def __init__(self, parts: Sequence[Part], given: Sequence[Sequence[str]]) -> None:
        self.parts = parts
        self.states = [tuple(itertools.starmap(_state_number, zip(parts, named, strict=True))) for named in given]
        self._numbers = {state: number for number, state in enumerate(self.states)}
        self.given = len(self.states)
        if len(self._numbers) != len(self.states):
            raise ChecksError("it describes the same state twice")
        self.initial = self.number(tuple(part.initial for part in parts))

    def number(self, state: tuple[int, ...]) -> int:
        """The number of a state."""
        found = self._numbers.setdefault(state, len(self.states))
        if found == len(self.states):
            if found >> _SHIFT:
                raise ChecksError(f"one part of the system has more than {1 << _SHIFT:,} states")
            self.states.append(state)
        return found

    def find(self, named: Named) -> int:
        """The number of what the machines here are in among ``named`` states; -1 if that was not given."""
        state = tuple(_state_number(part, named[part.name]) for part in self.parts)
        number = self._numbers.get(state, self.given)
        return number if number < self.given else -1

    def named(self, number: int) -> dict[str, str]:
        """For each machine, by name, the name of its state."""
        return {part.name: part.states[state] for part, state in zip(self.parts, self.states[number], strict=True)}

    def after(self, number: int, moving: Sequence[tuple[int, Sequence[Sequence[int]]]]) -> list[int]:
        """All that ``moving`` machines (by position, with their moves) lead to; empty where one of them refuses."""
        state = self.states[number]
        changing = []
        for at, moves in moving:
            before, targets = state[at], moves[state[at]]
            if not targets:
                return []
            if len(targets) > 1 or targets[0] != before:
                changing.append((at, targets))
        if not changing:
            return [number]
        found = []
        for chosen in itertools.product(*(targets for _, targets in changing)):
            after = list(state)
            for (at, _), to in zip(changing, chosen, strict=True):
                after[at] = to
            found.append(self.number(tuple(after)))
        return found


def _state_number(part: Part, name: str) -> int:
    try:
        return part.states.index(name)
    except ValueError:
        raise ChecksError(f"it has the state {name!r} of {part.name}, which has no such state here") from None


class _Global:
    """What the system's machines let happen, and where that leads them."""

    def __init__(self, parts: Sequence[Part], given: Sequence[Sequence[str]], events: Sequence[Event]) -> None:
        self.space = _Space(parts, given)
        self._moving = [
            [
                (at, part.moves[role, number])
                for at, part in enumerate(parts)
                for role in (Role.OWN if event.of_message else Role.SYSTEM,)
                if (role, number) in part.moves
            ]
            for number, event in enumerate(events)
        ]
        self._known: dict[int, tuple[int, int, dict[int, list[int]]]] = {}

    def of(self, number: int) -> tuple[int, int, dict[int, list[int]]]:
        """The events that it lets happen, those among them that change it, and for each what it is afterwards."""
        known = self._known.get(number)
        if known is None:
            after = {event: self.space.after(number, moving) for event, moving in enumerate(self._moving)}
            enabled = sum(1 << event for event, targets in after.items() if targets)
            changing = sum(1 << event for event, targets in after.items() if targets and targets != [number])
            known = self._known[number] = (enabled, changing, after)
        return known


class Messages:
    """What a message lets happen in each role, and where that leads it."""

    def __init__(self, parts: Sequence[Part], given: Sequence[Sequence[str]], events: Sequence[Event]) -> None:
        self.space = _Space(parts, given)
        self._moving = {
            role: {
                number: [
                    (at, part.moves[role, number]) for at, part in enumerate(parts) if (role, number) in part.moves
                ]
                for number, event in enumerate(events)
                if event.of_message != (role is Role.SYSTEM)
            }
            for role in Role
        }
        self._known: dict[tuple[int, Role], tuple[int, int, dict[int, int]]] = {}

    def of(self, number: int, role: Role) -> tuple[int, int, dict[int, int]]:
        """The events that it accepts in this role, those among them that change it, and what these make of it."""
        known = self._known.get((number, role))
        if known is None:
            accepted, changing, after = 0, 0, {}
            for event, moving in self._moving[role].items():
                targets = self.space.after(number, moving)
                if targets:
                    accepted |= 1 << event
                    if targets[0] != number:
                        changing |= 1 << event
                        after[event] = targets[0]
            known = self._known[number, role] = (accepted, changing, after)
        return known


class Steps(NamedTuple):
    """The steps of all views that move something: those of view ``v`` are ``first[v]`` to ``first[v + 1]``."""

    first: array[int]
    target: array[int]
    kind: array[int]
    kinds: list[Kind]


class Views:
    """The views of one invariant, and the machines that they keep of the system of its tables."""

    def __init__(self, invariant: Invariant, system: System, met: Met | None = None) -> None:
        """``met`` tells of each half of a pair whether it may be met, if those that are not may be left out."""
        self.invariant, self.system, self.level = invariant, system, invariant.level
        self._met = met
        watching = [watcher.part for watcher in system.watchers if not watcher.of_message]
        kept = _kept(invariant.system, [*system.system, *watching], "the system")
        kept_message = _kept(invariant.message, system.message, "a message")
        self.ghosts: dict[int, Ghost] = {}
        """For the position of a counter among the machines of the system the ghost, the first one first."""
        for name in invariant.ghosts:
            if name not in system.ghosts or name not in invariant.system or invariant.ghosts.count(name) > 1:
                raise ChecksError(f"it keeps a ghost of {name}, of which there is none, or twice, or not {name} itself")
            self.ghosts[invariant.system.index(name)] = system.ghosts[name]
        if not set(invariant.covering) <= set(invariant.ghosts):
            raise ChecksError("it has a ghost that covers a counter, and does not keep it")
        self.exact = [
            (at, counter, ghost)
            for at, (counter, ghost) in enumerate(self.ghosts.items())
            if invariant.system[counter] not in invariant.covering
        ]
        """The ghosts whose sum is their counter: the place of each, that of the counter, and the ghost."""
        self._ghosts_at = len(kept_message)
        parts = [*kept_message, *(ghost.part for ghost in self.ghosts.values())]
        self.machines = _Global(kept, invariant.system_states, system.events)
        self.messages = Messages(parts, invariant.message_states, system.events)
        self.views = invariant.views
        self.index = {self.key(view): number for number, view in enumerate(self.views)}
        if len(self.index) != len(self.views):
            raise ChecksError("it has the same view twice")
        self.awaited = self._awaited(kept, kept_message)
        self._of_message = sum(1 << number for number, event in enumerate(system.events) if event.of_message)
        self._places = self._all_places()

    def _awaited(self, kept: Sequence[Part], kept_message: Sequence[Part]) -> int:
        """The events that do not happen at rest because a machine that the views keep refuses them."""
        names = {part.name for part in (*kept, *kept_message)}
        left_out = [part for part in (*self.system.system, *self.system.message) if part.name not in names]
        unseen = refused_by(left_out, self.system)
        events = enumerate(self.system.events)
        return sum(1 << number for number, event in events if event.awaited and number not in unseen)

    @property
    def initial(self) -> int | None:
        """Where the first view is, if it is one of them."""
        return self.index.get(
            self.key((self.machines.space.initial, *[self.messages.space.initial] * self.level.messages))
        )

    @property
    def has_others(self) -> bool:
        """Whether there are messages that a view does not hold."""
        return self.level is not Level.ALONE and (
            self.invariant.most is None or self.invariant.most > self.level.messages
        )

    def key(self, view: View) -> int:
        """A view as one number."""
        key = view[0]
        for message in view[1:]:
            key = key << _SHIFT | message
        return key

    def enabled(self, machines: int) -> int:
        """The events that the system lets happen in this state."""
        return self.machines.of(machines)[0]

    def owned(self, machines: int, message: int) -> int:
        """Events of a message in this state that happen, as far as it and the system are concerned."""
        return self.enabled(machines) & self.messages.of(message, Role.OWN)[0]

    def highest(self, counter: int, machines: int) -> int | None:
        """The highest number that a counter may stand for in this state of the system."""
        return self.machines.space.parts[counter].highest[self.machines.space.states[machines][counter]]

    def ghosts_of(self, message: int) -> tuple[int, ...]:
        """The states of the ghosts of a message."""
        return self.messages.space.states[message][self._ghosts_at :]

    # ghosts

    def check_ghosts(self) -> None:
        """See that no view shows an exact ghost to be none (Lemma 0), else raise :class:`ChecksError`."""
        for at, counter, ghost in self.exact:
            downs = sum(1 << event for event in ghost.down)
            for view in self.views:
                for message in view[1:]:
                    count = self.ghosts_of(message)[at]
                    falls = not count and self.highest(counter, view[0]) != 0 and self.owned(view[0], message) & downs
                    if count == LOST or falls:
                        raise ChecksError(f"the {ghost.part.name} does not tell what its message has counted")

    def _is_met(self, machines: int, messages: Sequence[int]) -> bool:
        """Whether each half of a view may be met: the system and one of its messages."""
        system = self.machines.space.named(machines)
        met = self._met
        return met is None or all(met(system, self.messages.space.named(message)) for message in messages)

    def is_real(self, machines: int, messages: Sequence[int]) -> bool:
        """Whether no counter is below what the messages have counted."""
        for at, counter, _ in self.exact:
            most = self.highest(counter, machines)
            counts = [self.ghosts_of(message)[at] for message in messages]
            if most is not None and sum(count for count in counts if count != LOST) > most:
                return False
        return True

    # steps

    def _all_places(self) -> list[tuple[Roles, bool]]:
        """What an event is to the messages of a view, and whether it is of one that the view does not hold."""
        if self.level is Level.PAIRS:
            own: list[Roles] = [(Role.OWN, Role.EARLIER), (Role.LATER, Role.OWN)]
            others: list[Roles] = [(Role.EARLIER, Role.EARLIER), (Role.LATER, Role.EARLIER), (Role.LATER, Role.LATER)]
        else:
            own, others = [(Role.OWN,)], [(Role.EARLIER,), (Role.LATER,)]
        own = [(Role.SYSTEM,) * self.level.messages, *own]
        return [(roles, False) for roles in own] + [(roles, True) for roles in others if self.has_others]

    def allowed(self) -> Callable[[View, Roles], int]:
        """What a message that a view does not hold may do at a place beside it, by the level."""
        if self.level is not Level.PAIRS:
            return lambda _view, _roles: self._of_message
        beside: dict[tuple[int, int, Role], int] = defaultdict(int)
        for machines, first, second in self.views:
            beside[machines, first, Role.LATER] |= self.owned(machines, second)
            beside[machines, second, Role.EARLIER] |= self.owned(machines, first)

        def allowed(view: View, roles: Roles) -> int:
            machines, first, second = view
            return beside.get((machines, first, roles[0]), 0) & beside.get((machines, second, roles[1]), 0)

        return allowed

    def steps(self, hears: Callable[[Roles], int], progress: Callable[[int], object] | None = None) -> Steps:
        """All steps that move a view, or something that ``hears`` such events; raises unless all lead to views."""
        if self.initial is None:
            raise ChecksError("the first view, with every machine in its first state, is not among its views")
        allowed = self.allowed()
        places = [(roles, of_others, hears(roles)) for roles, of_others in self._places]
        first, target, kind = array("Q", [0]), array("I"), array("H")
        kinds: dict[tuple[int, Roles], int] = {}
        for number, view in enumerate(self.views):
            for roles, of_others, heard in places:
                for event, to in self._moves(view, roles, allowed(view, roles) if of_others else -1, heard):
                    target.append(to)
                    kind.append(kinds.setdefault((event, roles), len(kinds)))
            first.append(len(target))
            if progress is not None and not number % 4096:
                progress(number)
        return Steps(first, target, kind, [Kind(*kind) for kind in kinds])

    def _moves(self, view: View, roles: Roles, allowed: int, heard: int) -> Iterator[tuple[int, int]]:
        """Each event in these roles that moves something, with the view (by number) that it leads to."""
        machines, messages = view[0], view[1:]
        possible, changing, after = self.machines.of(machines)
        possible &= allowed
        moves = []
        for message, role in zip(messages, roles, strict=True):
            accepted, changes, outcome = self.messages.of(message, role)
            possible &= accepted
            changing |= changes
            moves.append(outcome)
        for event in numbers_in(possible & (changing | heard)):
            ends = [outcome.get(event, message) for outcome, message in zip(moves, messages, strict=True)]
            for machine in after[event]:
                key = machine
                for message in ends:
                    key = key << _SHIFT | message
                to = self.index.get(key)
                if to is not None:
                    yield event, to
                elif self.is_real(machine, ends) and self._is_met(machine, ends):
                    raise ChecksError(self._not_closed(view, event, roles))

    def _not_closed(self, view: View, event: int, roles: Roles) -> str:
        whose = {Role.SYSTEM: "the system", Role.OWN: "its own", Role.EARLIER: "an earlier", Role.LATER: "a later"}
        to = " and to ".join(whose[role] for role in dict.fromkeys(roles))
        label = self.system.events[event].label
        return (
            f"{label} ({to} message's) leads from view {self.index[self.key(view)] + 1:,} to one that is not among them"
        )


def _kept(names: Sequence[str], parts: Sequence[Part], what: str) -> list[Part]:
    by_name = {part.name: part for part in parts}
    if len(set(names)) != len(names) or not set(names) <= by_name.keys():
        raise ChecksError(
            f"it keeps machines of {what} that the tables do not have in this configuration, or one twice"
        )
    return [by_name[name] for name in names]
