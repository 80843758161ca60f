"""What a search says is held against the tables once more, for some of its states, before it says "all of them".

A state is reached again from the first one, by the events that the search has noted, as the rows of the tables say
(:meth:`ackfsm.network.Network.step` reads the same rows, by the same names).  What the search has for it must be that
state, the events that can happen must be those that were counted, and every state that they lead to must be among
those that were found.  States are looked up in the table of states alone: the numbers of local states and the keys are
worked out anew from what they mean, not taken from what the kernel knows of steps.  How many, and what it costs:
docs/decisions/self-check.md.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ackfsm.explore.reduction.columns import bits
from ackfsm.explore.search.kernel import HEAD, MASK_BITS, SHARD_SHIFT, mixed
from ackfsm.explore.search.kernel_ample import preferred
from ackfsm.explore.search.layout import Locals, machines_in
from ackfsm.network import Network, NetworkEvent, Packed, Participant
from ackfsm.tables import EventRef, Move
from ackfsm.terms import DefectError

if TYPE_CHECKING:
    from ackfsm.explore.search.search import Search

__all__ = ["Origin", "expanded_again", "look_again"]

_FEW = 20
"""States of a search, however small it is."""

_STATES_FOR_ONE = 100_000
"""For so many more states one more is looked at."""

State = tuple[str, ...]
Place = tuple[int, int]
"""A state of a search: its number in its shard, its shard."""


class Origin:
    """What a search was made from: a network, those of its machines that are searched, and its events.

    ``kept`` has for each such machine, in their order, the number of its instance and those of its states.
    """

    def __init__(self, network: Network, kept: Mapping[int, Sequence[int]], events: Sequence[NetworkEvent]) -> None:
        self.network = network
        self.events = events
        self._kept = kept

    @classmethod
    def whole(cls, network: Network) -> Origin:
        """The network as it is."""
        kept = {i: range(len(instance.fsm.states)) for i, instance in enumerate(network.instances)}
        return cls(network, kept, network.events)

    @functools.cached_property
    def numbers(self) -> Sequence[tuple[int, Mapping[str, int]]]:
        """For each machine of the search its instance, and the numbers that its states have there, by their names."""
        instances = self.network.instances
        return [
            (i, {instances[i].fsm.states[state]: number for number, state in enumerate(states)})
            for i, states in self._kept.items()
        ]


def look_again(search: Search, origin: Origin) -> None:
    """Hold some states of a complete ``search`` against the tables.

    Raises :class:`ackfsm.terms.DefectError` if anything differs.
    """
    again = _Again(search, origin)
    for place in _sample(search):
        again.look_at(place)
    for anomaly, nearest in zip(search.packed.anomalies, search.nearest, strict=True):
        if nearest is not None:
            again.look_for(anomaly, nearest[1:])


def expanded_again(origin: Origin, packed: Packed, words: Sequence[int], found: Collection[str]) -> list[list[int]]:
    """What a state leads to as the tables say; all of them spelled out as processes exchange them.

    Raises :class:`ackfsm.terms.DefectError` if the state is an anomaly that is not among those ``found``, or leads to
    where nothing was said to lead.
    """
    tables, state = _Tables(origin.network), _named(origin, machines_in(packed, words))
    enabled = tables.enabled(state)
    for anomaly in _shown(origin.network, state, enabled):
        if anomaly not in found:
            raise DefectError(f"a search and the tables differ: {anomaly} was not found")
    after = (tables.after(state, event) for event in enabled)
    return [_spelled(origin, packed, target) for target in after if target is not None]


def _named(origin: Origin, machines: Sequence[int]) -> State:
    """A state by its names; machines that are not searched stay as they were at first."""
    state = list(origin.network.initial)
    for (i, numbers), machine in zip(origin.numbers, machines, strict=True):
        state[i] = [*numbers][machine]
    return tuple(state)


def _spelled(origin: Origin, packed: Packed, state: State) -> list[int]:
    local = Locals(packed)
    words = [0] * (len(local.members) * local.words)
    for machine, (i, numbers) in enumerate(origin.numbers):
        if state[i] not in numbers:
            raise DefectError("a search and the tables differ: a machine comes to a state that was left out")
        place = packed.component[machine] * local.words + local.word[machine]
        words[place] += numbers[state[i]] << local.shift[machine]
    return words


def _shown(network: Network, state: State, enabled: Sequence[NetworkEvent]) -> Iterator[str]:
    """The anomalies that a state is."""
    rest = all(event.may_never_happen for event in enabled)
    for instance, name in zip(network.instances, state, strict=True):
        if instance.anomaly is not None and (name in instance.marked or (rest and name in instance.at_rest)):
            yield instance.anomaly


def _sample(search: Search) -> Iterator[Place]:
    """Some states, evenly over all that were found, the first and the last among them; the same every time."""
    found = search.found_states
    count = min(found, _FEW + found // _STATES_FOR_ONE)
    wanted = [n * (found - 1) // max(1, count - 1) for n in range(count)]
    begin = 0
    for shard, states in enumerate(shard.count for shard in search.shards):
        yield from ((number - begin, shard) for number in wanted if begin <= number < begin + states)
        begin += states


class _Again:
    def __init__(self, search: Search, origin: Origin) -> None:
        self.search = search
        self.origin = origin
        self.network = origin.network
        self.tables = _Tables(origin.network)
        self.words = _Words(search, origin)
        self.found = {name for name, place in zip(search.packed.anomalies, search.nearest, strict=True) if place}
        self.reached = dict[Place, State]()
        self.number = {id(event): number for number, event in enumerate(origin.events)}

    def look_at(self, place: Place) -> None:
        """Hold one state against the tables."""
        state = self._reached(place)
        if self.words.of(state) != self._has(place):
            self._differs(place, "there is another state than that")
        enabled = self.tables.enabled(state)
        if [self.number.get(id(event)) for event in enabled] != [*self._able(place)]:
            self._differs(place, "other events can happen than were counted")
        for event in self._expanded(place, enabled):
            after = self.tables.after(state, event)
            if after is None or not self.words.are_found(after):
                self._differs(place, f"{event.label} leads to a state that was not found")
        for anomaly in _shown(self.network, state, enabled):
            if anomaly not in self.found:
                self._differs(place, f"{anomaly} was not found")

    def look_for(self, anomaly: str, place: Place) -> None:
        """See whether a state is the anomaly."""
        state = self._reached(place)
        if anomaly not in _shown(self.network, state, self.tables.enabled(state)):
            self._differs(place, f"{anomaly} was found and is not there")

    def _reached(self, place: Place) -> State:
        """The state to which the events lead that the search has noted."""
        way = list[tuple[Place, int]]()
        while place not in self.reached:
            before = self.search.before(place)
            if before is None:
                self.reached[place] = self.network.initial
            elif len(way) > self.search.level:
                raise DefectError("a state was found on no way from the first one")
            else:
                way.append((place, before[0]))
                place = before[1]
        state = self.reached[place]
        for then, event in reversed(way):
            after = self.tables.after(state, self.origin.events[event])
            if after is None:
                self._differs(place, f"{self.origin.events[event].label} cannot happen, and was taken")
            self.reached[then] = state = after
            place = then
        return state

    def _expanded(self, place: Place, enabled: Sequence[NetworkEvent]) -> Sequence[NetworkEvent]:
        """The events that the search had to take, or to spare because others lead where they lead."""
        rows, system = self.search.rows, self.search.system
        heads = [row * system.head for row in self._rows(place)]
        only = preferred(system.foresight, rows.head, heads, 0, len(heads), system.position)
        return enabled if only < 0 else [event for event in enabled if event is self.origin.events[only]]

    def _differs(self, place: Place, what: str) -> NoReturn:
        way = " ".join(self.origin.events[event].label for event in self.search.path((0, *place)))
        raise DefectError(f"a search and the tables differ: after {way or 'no event'}, {what}")

    # what the search has

    def _rows(self, place: Place) -> tuple[int, ...]:
        number, shard = place
        return self.search.local_states(shard, number)

    def _has(self, place: Place) -> list[int]:
        number, shard = place
        words = self.search.layout.words
        return [int(word) for word in self.search.shards[shard].states[number * words : (number + 1) * words]]

    def _able(self, place: Place) -> Iterator[int]:
        """The events that no component refuses, as they were counted."""
        rows, system = self.search.rows, self.search.system
        heads = [row * system.head + HEAD for row in self._rows(place)]
        for m in range(system.masks):
            able = int(system.everything[m])
            for head in heads:
                able &= int(rows.head[head + m])
            yield from (m * MASK_BITS + bit for bit in bits(able))


class _Tables:
    """What the rows of the tables say of states, by their names; a row is looked up once."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._hears: list[list[tuple[int, EventRef]]] = [[] for _ in network.instances]
        for number, event in enumerate(network.events):
            for part in event.participants:
                self._hears[part.instance].append((1 << number, part.event))
        self._refused: list[dict[str, int]] = [{} for _ in network.instances]
        self._targets: dict[int, list[tuple[Participant, dict[str, str]]]] = {}

    def enabled(self, state: State) -> list[NetworkEvent]:
        """The events that nothing refuses, in their order."""
        refused = 0
        for i, (name, known) in enumerate(zip(state, self._refused, strict=True)):
            if name not in known:
                rows = self._network.instances[i].fsm.rows
                known[name] = sum({bit for bit, event in self._hears[i] if rows[name, event].move is Move.REFUSE})
            refused |= known[name]
        return [self._network.events[n] for n in bits((1 << len(self._network.events)) - 1 & ~refused)]

    def after(self, state: State, event: NetworkEvent) -> State | None:
        """The state after ``event``, ``None`` if something refuses it."""
        if id(event) not in self._targets:
            self._targets[id(event)] = [(part, {}) for part in event.participants]
        moved = list(state)
        for part, known in self._targets[id(event)]:
            name = state[part.instance]
            if name not in known:
                row = self._network.instances[part.instance].fsm.rows[name, part.event]
                if row.move is Move.REFUSE:
                    return None
                known[name] = row.target
            moved[part.instance] = known[name]
        return tuple(moved)


class _Words:
    """States as a search has them in words, and its tables of them; numbers and keys are worked out anew."""

    def __init__(self, search: Search, origin: Origin) -> None:
        self.search = search
        local = Locals(search.packed)
        self._known: list[dict[State, tuple[int, int]]] = [{} for _ in local.members]
        self._members = [
            [(*origin.numbers[machine], local.word[machine], local.shift[machine]) for machine in members]
            for members in local.members
        ]
        self._instances = [[i for i, *_ in members] for members in self._members]

    def of(self, state: State) -> list[int]:
        """The words of a state; none if it has a local state that was never met."""
        return self._laid(state)[0]

    def are_found(self, state: State) -> bool:
        """Whether the state stands in the table of the shard that its key tells."""
        words, key = self._laid(state)
        shards, count = self.search.shards, len(words)
        if not words:
            return False
        table = shards[key >> SHARD_SHIFT & len(shards) - 1].table
        most = len(table) // count - 1
        slot = key & most
        while most >= 0 and table[slot * count] >= 0:
            if all(table[slot * count + w] == word for w, word in enumerate(words)):
                return True
            slot = (slot + 1) & most
        return False

    def _laid(self, state: State) -> tuple[list[int], int]:
        layout = self.search.layout
        words, key = [0] * layout.words, 0
        for c, (known, instances) in enumerate(zip(self._known, self._instances, strict=True)):
            here = tuple([state[i] for i in instances])
            if here not in known:
                known[here] = self._met(c, here)
            number, part = known[here]
            if number < 0:
                return [], 0
            words[layout.word[c]] += number << int(layout.shift[c])
            key ^= part
        return words, key

    def _met(self, component: int, here: State) -> tuple[int, int]:
        """The number of a local state, -1 if it was never met, and its part of a key."""
        spelled = [0] * self.search.system.local_words
        for name, (_, numbers, word, shift) in zip(here, self._members[component], strict=True):
            if name not in numbers:
                return -1, 0
            spelled[word] += numbers[name] << shift
        high, low = mixed(1, component), mixed(2, component)
        for word in spelled:
            high, low = mixed(high, word), mixed(low, word)
        return self._numbers.get((component, *spelled), -1), high << 31 | low

    @functools.cached_property
    def _numbers(self) -> Mapping[tuple[int, ...], int]:
        """The number of each local state, by its component and what it means."""
        rows, words = self.search.rows, self.search.system.local_words
        count = int(rows.count[self.search.system.components])
        local = [rows.local[w : count * words : words] for w in range(words)]
        columns = (rows.component[:count], *local, rows.number[:count])
        return {tuple(row): number for *row, number in zip(*map(_listed, columns), strict=True)}


def _listed(numbers: Any) -> list[int]:
    return numbers if isinstance(numbers, list) else numbers.tolist()
