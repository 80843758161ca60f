"""The machines of the system and of one message, and what watches them, as the tables give them to this package alone.

Nothing here is shared with the search that made a certificate.  A machine hears an event of its own message, of an
earlier or of a later one, or of the system; :func:`ackfsm.checking.network.concerns` says which, for messages 1, 2 and
3.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ackfsm.checking.network import Observer, Place, concerns
from ackfsm.tables import Condition, Counter, EventRef, Fsm, IndexKind, Machine, RowKind, Specification, base_state
from ackfsm.terms import Configuration, Fault

__all__ = ["LOST", "Event", "Ghost", "Moves", "NotCoveredError", "Part", "Question", "Role", "System", "Watcher"]

_COUNTED_ABOVE = 4
"""A counter of the system with a higher bound is none, some or full."""

_MOST_NUMBERS = 5_000
"""Of a counter with a higher bound the numbers at the ends of *some* stand for those between them."""

_GHOST = ("0", "1", "2", "3", "4", "lost")
LOST = len(_GHOST) - 1
"""The state of a ghost that has counted beyond what it can tell."""

NONE, SOME, FULL = "none", "some", "full"


class NotCoveredError(Exception):
    """The tables have something here that proofs do not cover; a clause."""


class Role(enum.IntEnum):
    """Whose event it is, to a message."""

    SYSTEM = 0
    OWN = 1
    EARLIER = 2
    LATER = 3


_NUMBER = {Role.OWN: 2, Role.EARLIER: 1, Role.LATER: 3}
"""The message of an event of which the machines of message 2 hear."""


class Event(NamedTuple):
    """An event of the system, of any message or of a ``copy`` (0: none) of it; what is ``awaited`` ends rest."""

    name: str
    copy: int
    of_message: bool
    awaited: bool

    @property
    def label(self) -> str:
        """As certificates and screens name it."""
        return f"{self.name}#{self.copy}" if self.copy > 1 else self.name

    def place(self, role: Role) -> Place:
        """Where it happens, if it is heard in that role."""
        if role is Role.SYSTEM:
            return Place(())
        return Place((_NUMBER[role], self.copy) if self.copy else (_NUMBER[role],))


Moves = tuple[tuple[int, ...], ...]
"""For each state those that it may lead to; none where the event is refused."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A machine in numbers; an event in a role for which it has no moves changes nothing.

    ``highest`` is for each state of a counter the highest number that it stands for (None: there is no highest).
    """

    name: str
    states: tuple[str, ...]
    initial: int
    moves: Mapping[tuple[Role, int], Moves]
    highest: tuple[int | None, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Ghost:
    """What each message counts on a counter of the system; ``down`` are the events that count down.

    The counter has this ``bound``, and ``refuses`` to go beyond it, or stays there.
    """

    part: Part
    down: frozenset[int]
    bound: int
    refuses: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Watcher:
    """A machine that watches each message, or the system, for an anomaly: the states that show it, always or at rest.

    ``count`` is its own ghost, if it is a counter of which a message can have one, and only its overrun is marked.
    """

    anomaly: str
    part: Part
    of_message: bool
    marked: frozenset[int]
    at_rest: frozenset[int]
    count: Ghost | None


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """All events, the machines of the system and of one message, the ghost for each counter that has one, by name."""

    events: tuple[Event, ...]
    system: tuple[Part, ...]
    message: tuple[Part, ...]
    ghosts: Mapping[str, Ghost]
    watchers: tuple[Watcher, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What a certificate is about: tables, a configuration, and what may happen, any number of times."""

    specification: Specification
    configuration: Configuration
    faults: frozenset[Fault]
    actions: frozenset[str]
    without: frozenset[str]
    observers: tuple[Observer, ...]
    _made: dict[int, System] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    def system(self, messages: int) -> System:
        """The system of so many messages, made once.  Raises :class:`NotCoveredError`."""
        if messages not in self._made:
            self._made[messages] = _Maker(self, messages).system()
        return self._made[messages]

    def differs_from(self, least: int, most: int | None) -> int | None:
        """The first number of messages after ``least`` of which the system is another one; None if there is none.

        Rows may only compare the number of messages with numbers, so beyond the greatest of these all systems are one.
        Raises :class:`NotCoveredError` for rows that do anything else with it.
        """
        last = max(self._compared(), default=0) + 1
        here = self.system(least)
        beyond = range(least + 1, (last if most is None else min(most, last)) + 1)
        return next((number for number in beyond if self.system(number) != here), None)

    def _compared(self) -> Iterator[int]:
        machines = [*self.specification.machines.values(), *(monitor.machine for _, monitor in self.observers)]
        for condition in {row.when for machine in machines for row in machine.rows()}:
            yield from _numbers_compared(condition, self.specification.conditions)


def _numbers_compared(condition: Condition, named: Mapping[str, Condition]) -> Iterator[int]:
    """All numbers in conditions that read the number of messages, if it is compared with numbers alone."""
    if "messages" not in condition.settings():
        return
    for name in condition.names() & named.keys():
        yield from _numbers_compared(named[name], named)
    tree = ast.parse(condition.text, mode="eval")
    compared = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(_is_messages(side) for side in (node.left, *node.comparators)):
            sides = [side for side in (node.left, *node.comparators) if not _is_messages(side)]
            compared += 1 + len(node.comparators) - len(sides)
            yield from (
                _whole(each) for side in sides for each in (side.elts if isinstance(side, ast.Tuple) else [side])
            )
    if compared != sum(_is_messages(node) for node in ast.walk(tree)):
        raise NotCoveredError(f"the condition {condition.text!r} reads the number of messages, and not to compare it")


def _is_messages(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "messages"


def _whole(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise NotCoveredError(f"a condition compares the number of messages with {ast.unparse(node)}, which is no number")


class _Maker:
    """Makes the machines of one number of messages."""

    def __init__(self, question: Question, messages: int) -> None:
        self._question = question
        self._messages = messages
        self._copies = question.specification.copies(question.configuration, question.actions)
        self._environments = {copy: self._environment(copy) for copy in range(1, self._copies + 1)}
        self._events = tuple(self._all_events())

    def _environment(self, copy: int) -> Mapping[str, Any]:
        question = self._question
        return question.specification.environment(
            question.configuration,
            faults=question.faults,
            max_faults=None,
            messages=self._messages,
            copy=copy,
            copies=None,
            repeats=None,
        )

    def system(self) -> System:
        system: list[Part] = []
        message: list[Part] = []
        ghosts: dict[str, Ghost] = {}
        for machine in self._question.specification.machines.values():
            for place in self._places(machine.per):
                (message if place.of else system).append(self._part(machine, place))
            ghost = self._ghost(machine, watches=False)
            if ghost is not None:
                ghosts[machine.name] = ghost
        return System(self._events, tuple(system), tuple(message), ghosts, tuple(self._watchers()))

    def _places(self, per: IndexKind) -> list[Place]:
        of: dict[IndexKind, list[tuple[int, ...]]] = {
            IndexKind.SYSTEM: [()],
            IndexKind.MESSAGE: [(2,)],
            IndexKind.COPY: [(2, copy) for copy in range(1, self._copies + 1)],
        }
        return [Place(index) for index in of[per.whole]]

    def _fsm(self, machine: Machine, place: Place) -> Fsm:
        return machine.fsm(self._environments[place.of[1] if len(place.of) > 1 else 1])

    def _all_events(self) -> Iterator[Event]:
        """Those that their owner has a transition for."""
        question = self._question
        for machine in question.specification.machines.values():
            for name in machine.owns:
                declared = question.specification.events[name]
                if name in question.without or (declared.optional and name not in question.actions):
                    continue
                for place in self._places(declared.per):
                    owner = next(each for each in self._places(machine.per) if each.of == place.of[: len(each.of)])
                    fsm = self._fsm(machine, owner)
                    if any(ref.name == name and ref in fsm.moving for ref in _own(fsm)):
                        copy = place.of[1] if len(place.of) > 1 else 0
                        yield Event(name, copy, bool(place.of), not declared.optional and name not in set(Fault))

    def _part(self, machine: Machine, place: Place) -> Part:
        fsm, bound = self._fsm(machine, place), self._bound(machine)
        name = f"{machine.name}#{place.of[1]}" if len(place.of) > 1 and place.of[1] > 1 else machine.name
        numbers = _Numbers(fsm, bound if machine.counter else None, name, whole=bool(place.of))
        moves: dict[tuple[Role, int], Moves] = {}
        for number, event in enumerate(self._events):
            for role in _roles(event, of_message=bool(place.of)):
                found = self._heard(fsm, numbers, place, event, role)
                if found is not None:
                    moves[role, number] = found
        highest = numbers.highest(stays=machine.counter.at_bound == Counter.STAYS) if machine.counter else ()
        return Part(name, numbers.states, numbers.initial, moves, highest)

    def _heard(self, fsm: Fsm, numbers: _Numbers, place: Place, event: Event, role: Role) -> Moves | None:
        refs = [ref for ref in fsm.alphabet if ref.name == event.name]
        refs = [ref for ref in refs if concerns(ref.relation, place, event.place(role))]
        found = [moves for moves in map(numbers.moves, refs) if moves != numbers.nothing]
        if len(found) > 1:
            raise NotCoveredError(f"{fsm.name} hears {event.name} in several ways at once")
        return found[0] if found else None

    def _bound(self, machine: Machine) -> int | None:
        return None if machine.counter is None else self._environments[1][machine.counter.bound]

    def _watchers(self) -> Iterator[Watcher]:
        for anomaly, monitor in self._question.observers:
            for place in self._places(monitor.machine.per):
                part = self._part(monitor.machine, place)
                if any(() in moves for moves in part.moves.values()):
                    raise NotCoveredError(f"{part.name}, which watches for {anomaly}, refuses an event")
                marked, at_rest = (
                    frozenset(i for i, state in enumerate(part.states) if base_state(state) in states)
                    for states in (monitor.marked, monitor.marked_at_rest)
                )
                only_beyond = {part.states[number] for number in marked | at_rest} <= {Counter.OVERRUN}
                ghost = self._ghost(monitor.machine, watches=True) if only_beyond else None
                yield Watcher(str(anomaly), part, bool(place.of), marked, at_rest, ghost)

    def _ghost(self, machine: Machine, *, watches: bool) -> Ghost | None:
        """The ghost of a counter of the system, by what its numbers do: up by one, down by one, back to 0, or nothing.

        One that ``watches`` may leave its numbers behind the bound.
        """
        bound = self._bound(machine)
        if machine.per.whole is not IndexKind.SYSTEM or bound is None:
            return None
        fsm = self._fsm(machine, Place(()))
        if fsm.initial != "0" or any(f"{number}{Counter.OPEN}" in fsm.states for number in (0, 1, bound)):
            return None
        down = {ref for ref in fsm.alphabet if self._is_under(machine, "down", ref)}
        return _Counting(fsm, bound, self._events, down).ghost(watches=watches)

    def _is_under(self, machine: Machine, heading: str, ref: EventRef) -> bool:
        rows = (row for row in machine.cells.get((heading, ref), ()) if row.when.holds(self._environments[1]))
        first = next(rows, None)
        return first is not None and first.kind is RowKind.TO


def _own(fsm: Fsm) -> Iterator[EventRef]:
    return (ref for ref in fsm.alphabet if ref.is_of(ref.name, 0))


def _roles(event: Event, *, of_message: bool) -> Sequence[Role]:
    """In which roles a machine of a message, or of the system, may hear an event."""
    if not event.of_message:
        return (Role.SYSTEM,)
    return (Role.OWN, Role.EARLIER, Role.LATER) if of_message else (Role.OWN,)


def _telling(bound: int) -> Sequence[int]:
    """Numbers of a counter that tell what all of them do: it moves by one or back to its start."""
    return range(bound + 1) if bound <= _MOST_NUMBERS else (0, 1, 2, bound // 2, bound - 2, bound - 1, bound)


class _Numbers:
    """The states of a machine as numbers; of a counter of the system with a high bound none, some and full.

    One of a message keeps the ``whole`` of its numbers.
    """

    def __init__(self, fsm: Fsm, bound: int | None, name: str, *, whole: bool) -> None:
        self._fsm, self._bound = fsm, bound
        self.abstract = bound is not None and bound > _COUNTED_ABOVE and not whole
        if bound is None or not self.abstract:
            self.states = tuple(fsm.states)
            self._stand_for: dict[str, tuple[str, ...]] = {state: (state,) for state in self.states}
        else:
            behind = tuple(fsm.states[bound + 1 : bound + 3])
            if any(state.endswith(Counter.OPEN) for state in behind) or fsm.initial != "0":
                raise NotCoveredError(f"{name} counts to {bound}, and takes steps back or does not start empty")
            some = tuple(str(number) for number in _telling(bound) if 0 < number < bound)
            self._stand_for = {NONE: ("0",), SOME: some, FULL: (str(bound),), **{state: (state,) for state in behind}}
            self.states = tuple(self._stand_for)
        self.initial = 0 if self.abstract else self.states.index(fsm.initial)
        self.nothing: Moves = tuple((number,) for number in range(len(self.states)))

    def moves(self, ref: EventRef) -> Moves:
        return tuple(self._after(state, ref) for state in self.states)

    def _after(self, state: str, ref: EventRef) -> tuple[int, ...]:
        rows = [self._fsm.rows[one, ref] for one in self._stand_for[state]]
        if len({row.kind is RowKind.REFUSE for row in rows}) > 1:
            raise NotCoveredError(f"{self._fsm.name} refuses {ref} in some of the numbers between its ends")
        if rows[0].kind is RowKind.REFUSE:
            return ()
        return tuple(sorted({self._number(row.target) for row in rows}))

    def _number(self, state: str) -> int:
        if not self.abstract or not state.isdecimal():
            return self.states.index(state)
        return self.states.index(NONE if state == "0" else FULL if state == str(self._bound) else SOME)

    def highest(self, *, stays: bool) -> tuple[int | None, ...]:
        """For each state the highest number that it may stand for, if there is one."""
        if self._bound is None:
            return ()
        at_bound = None if stays else self._bound
        known = {NONE: 0, SOME: self._bound - 1, FULL: at_bound, str(self._bound): at_bound}
        return tuple(
            known[state] if state in known else int(state) if state.isdecimal() else None for state in self.states
        )


class _Counting:
    """What each event does to the numbers of a counter.

    To count down from 1 and to begin anew look alike where the bound is 1, so that ``down`` tells which is meant.
    """

    def __init__(self, fsm: Fsm, bound: int, events: Sequence[Event], down: Collection[EventRef]) -> None:
        self._fsm, self._bound, self._meant = fsm, bound, down
        self._numbers = _telling(bound)
        self._up: set[int] = set()
        self._down: set[int] = set()
        self._reset: set[int] = set()
        self._at_bound: set[str | None] = set()
        self.tells = all(self._sort(number, event) for number, event in enumerate(events))
        self._of_system = {number for number, event in enumerate(events) if not event.of_message}

    def _sort(self, number: int, event: Event) -> bool:
        """Find out what an event does; whether that is one of what a ghost can follow."""
        for ref in (ref for ref in self._fsm.alphabet if ref.name == event.name):
            after = {at: self._fsm.step(str(at), ref) for at in self._numbers}
            if all(to in {None, str(at)} for at, to in after.items()):
                continue
            anew = self._bound > 1 or ref not in self._meant
            if anew and all(to == "0" for to in after.values()):
                self._reset.add(number)
            elif all(to == str(at + 1) for at, to in after.items() if at < self._bound):
                self._up.add(number)
                self._at_bound.add(after[self._bound])
            elif after[0] in {None, "0"} and all(to == str(at - 1) for at, to in after.items() if at):
                self._down.add(number)
            else:
                return False
        return True

    def ghost(self, *, watches: bool) -> Ghost | None:
        refuses, stays = self._at_bound <= {None}, self._at_bound <= {str(self._bound)}
        known = watches or refuses or (stays and not self._down)
        if not self.tells or not known or (self._up | self._down) & self._of_system:
            return None
        last = LOST - 1
        up: Moves = (*((number + 1,) for number in range(last)), (LOST,), (LOST,))
        down: Moves = ((0,), *((number,) for number in range(last)), (LOST,))
        anew: Moves = ((0,),) * (LOST + 1)
        moves: dict[tuple[Role, int], Moves] = {(Role.OWN, event): up for event in self._up}
        moves |= {(Role.OWN, event): down for event in self._down}
        for event in self._reset:
            roles = (Role.SYSTEM,) if event in self._of_system else (Role.OWN, Role.EARLIER, Role.LATER)
            moves |= {(role, event): anew for role in roles}
        part = Part(f"ghost of {self._fsm.name}", _GHOST, 0, moves)
        return Ghost(part, frozenset(self._down), self._bound, refuses)
