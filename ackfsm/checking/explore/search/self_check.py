"""A self-check at the end of a search: some of its states are compared with the tables.

A state is reached again from the first one, by the parent pointers of the search and the rows of the tables
(:meth:`ackfsm.checking.network.Network.step`).  What the search has for it must
be that state, the events that can happen must be those that were counted, and every state that they lead to must be
among those that were found.  States are looked up in the hash table of states alone: the numbers of local states are
computed from the names of states, not taken from the kernel's deltas.  How many, and what it costs:
docs/decisions/search.md.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ackfsm.checking.explore.reduction.columns import bits
from ackfsm.checking.explore.reduction.slice import Origin
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import HEAD, MASK_BITS, SHARD_SHIFT, hash_of_state
from ackfsm.checking.explore.search.kernel_ample import ample_event
from ackfsm.checking.explore.search.layout import LocalLayout, machine_states_of
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.terms import DefectError

_MIN_SAMPLE = 20
"""States of a search, however small it is."""

_STATES_FOR_ONE = 100_000
"""For so many more states one more is compared."""

_State = tuple[str, ...]
_Steps = Sequence[tuple[NetworkEvent, _State]]


def self_check(search: Search, origin: Origin) -> None:
    """Compare some states of a complete ``search`` with the tables.

    Raises :class:`ackfsm.terms.DefectError` if anything differs.
    """
    comparison = _SelfCheck(search, origin)
    for number in _sample(search):
        comparison.check_state(number)
    for anomaly, found in zip(search.packed.anomalies, search.first_violations, strict=True):
        if found is not None:
            comparison.check_anomaly(anomaly, found)


def successors_by_tables(
    origin: Origin, packed: PackedNetwork, words: Sequence[int], found: Collection[str]
) -> list[list[int]]:
    """The successors of a serialised state as the tables have them, serialised too.

    Raises :class:`ackfsm.terms.DefectError` if the state shows an anomaly that is not among those ``found``, or a
    machine comes to a state that the slice does not have.
    """
    state = _named(origin, machine_states_of(packed, words))
    steps = _steps(origin.network, state)
    for anomaly in _anomalies_of(origin.network, state, steps):
        if anomaly not in found:
            raise DefectError(f"a search and the tables differ: {anomaly} was not found")
    return [_serialized(origin, packed, after) for _, after in steps]


def _named(origin: Origin, machines: Sequence[int]) -> _State:
    """A state by its names; machines that are not searched stay as they were at first."""
    state = list(origin.network.initial)
    for (i, numbers), machine in zip(origin.numbers, machines, strict=True):
        state[i] = [*numbers][machine]
    return tuple(state)


def _serialized(origin: Origin, packed: PackedNetwork, state: _State) -> list[int]:
    local = LocalLayout(packed)
    words = [0] * (len(local.members) * local.words)
    for machine, (i, numbers) in enumerate(origin.numbers):
        if state[i] not in numbers:
            raise DefectError("a search and the tables differ: a machine comes to a state that was left out")
        place = packed.component[machine] * local.words + local.word[machine]
        words[place] += numbers[state[i]] << local.shift[machine]
    return words


def _steps(network: Network, state: _State) -> _Steps:
    """The events that no row refuses in a state, in their order, each with the state after it."""
    return [(event, after) for event in network.events if (after := network.step(state, event)) is not None]


def _anomalies_of(network: Network, state: _State, steps: _Steps) -> Iterator[str]:
    """The anomalies that a state shows from which these steps are possible."""
    rest = all(event.may_never_happen for event, _ in steps)
    for instance, name in zip(network.instances, state, strict=True):
        if instance.anomaly is not None and (name in instance.marked or (rest and name in instance.marked_at_rest)):
            yield instance.anomaly


def _sample(search: Search) -> list[int]:
    """Some states, evenly over all that were found, the first and the last among them; the same every time."""
    found = search.found_states
    count = min(found, _MIN_SAMPLE + found // _STATES_FOR_ONE)
    return [n * (found - 1) // max(1, count - 1) for n in range(count)]


class _SelfCheck:
    def __init__(self, search: Search, origin: Origin) -> None:
        self.search = search
        self.origin = origin
        self.network = origin.network
        self.words = _VisitedTable(search, origin)
        self.found = {
            name
            for name, found in zip(search.packed.anomalies, search.first_violations, strict=True)
            if found is not None
        }
        self.reached = dict[int, _State]()
        self.number_of = {id(event): nth for nth, event in enumerate(origin.events)}

    def check_state(self, number: int) -> None:
        """Compare one state with the tables."""
        state = self._reached(number)
        if self.words.of(state) != self._words_of(number):
            self._fail(number, "there is another state than that")
        steps = _steps(self.network, state)
        if [self.number_of.get(id(event)) for event, _ in steps] != [*self._enabled(number)]:
            self._fail(number, "other events can happen than were counted")
        for event, after in self._expanded(number, steps):
            if not self.words.are_found(after):
                self._fail(number, f"{event.label} leads to a state that was not found")
        for anomaly in _anomalies_of(self.network, state, steps):
            if anomaly not in self.found:
                self._fail(number, f"{anomaly} was not found")

    def check_anomaly(self, anomaly: str, number: int) -> None:
        """See whether a state shows the anomaly."""
        state = self._reached(number)
        if anomaly not in _anomalies_of(self.network, state, _steps(self.network, state)):
            self._fail(number, f"{anomaly} was found and is not there")

    def _reached(self, number: int) -> _State:
        """The state to which the events of the parent pointers lead."""
        path = list[tuple[int, int]]()
        while number not in self.reached:
            before = self.search.parent_of(number)
            if before is None:
                self.reached[number] = self.network.initial
            elif len(path) > self.search.level:
                raise DefectError("a state was found on no way from the first one")
            else:
                path.append((number, before[0]))
                number = before[1]
        state = self.reached[number]
        for then, event in reversed(path):
            after = self.network.step(state, self.origin.events[event])
            if after is None:
                self._fail(number, f"{self.origin.events[event].label} cannot happen, and was taken")
            self.reached[then] = state = after
            number = then
        return state

    def _expanded(self, number: int, steps: _Steps) -> _Steps:
        """The steps of the ample set, or all that are possible: those in a sleep set lead to known states too."""
        interned, system = self.search.interned, self.search.system
        heads = [local_id * system.head for local_id in self.search.local_ids(number)]
        only = ample_event(system.ample, interned.head, heads, 0, len(heads), system.lowest_bit)
        return steps if only < 0 else [step for step in steps if step[0] is self.origin.events[only]]

    def _fail(self, number: int, what: str) -> NoReturn:
        run = " ".join(self.origin.events[event].label for event in self.search.path(number))
        raise DefectError(f"a search and the tables differ: after {run or 'no event'}, {what}")

    # what the search has

    def _words_of(self, number: int) -> list[int]:
        words = self.search.layout.words
        return [int(word) for word in self.search.visited.states[number * words : (number + 1) * words]]

    def _enabled(self, number: int) -> Iterator[int]:
        """The events that no component refuses, as they were counted."""
        interned, system = self.search.interned, self.search.system
        heads = [local_id * system.head + HEAD for local_id in self.search.local_ids(number)]
        for m in range(system.masks):
            enabled = int(system.everything[m])
            for head in heads:
                enabled &= int(interned.head[head + m])
            yield from (m * MASK_BITS + bit for bit in bits(enabled))


class _VisitedTable:
    """States as a search has them in words, and its tables of them; numbers are computed from names."""

    def __init__(self, search: Search, origin: Origin) -> None:
        self.search = search
        local = LocalLayout(search.packed)
        self._known: list[dict[_State, int]] = [{} for _ in local.members]
        self._members = [
            [(*origin.numbers[machine], local.word[machine], local.shift[machine]) for machine in members]
            for members in local.members
        ]
        self._instances = [[i for i, *_ in members] for members in self._members]

    def of(self, state: _State) -> list[int]:
        """The words of a state; none if it has a local state that was never interned."""
        layout = self.search.layout
        words = [0] * layout.words
        for c, (known, instances) in enumerate(zip(self._known, self._instances, strict=True)):
            here = tuple([state[i] for i in instances])
            if here not in known:
                known[here] = self._interned(c, here)
            if known[here] < 0:
                return []
            words[layout.word[c]] += known[here] << int(layout.shift[c])
        return words

    def are_found(self, state: _State) -> bool:
        """Whether the state stands in the shard of the hash table that its hash tells."""
        words = self.of(state)
        count, tables = len(words), self.search.visited.tables
        if not words:
            return False
        mixed = hash_of_state(words, 0, count)
        table = tables[mixed >> SHARD_SHIFT & len(tables) - 1]
        most = len(table) // count - 1
        slot = mixed & most
        while most >= 0 and table[slot * count] >= 0:
            if all(table[slot * count + w] == word for w, word in enumerate(words)):
                return True
            slot = (slot + 1) & most
        return False

    def _interned(self, component: int, here: _State) -> int:
        """The number of a local state, -1 if it was never interned."""
        words = [0] * self.search.system.local_words
        for name, (_, numbers, word, shift) in zip(here, self._members[component], strict=True):
            if name not in numbers:
                return -1
            words[word] += numbers[name] << shift
        return self._numbers.get((component, *words), -1)

    @functools.cached_property
    def _numbers(self) -> Mapping[tuple[int, ...], int]:
        """The number of each local state, by its component and machines."""
        interned, words = self.search.interned, self.search.system.local_words
        count = int(interned.count[self.search.system.components])
        local = [interned.machines[w : count * words : words] for w in range(words)]
        columns = (interned.component[:count], *local, interned.number[:count])
        return {tuple(row): number for *row, number in zip(*map(_as_list, columns), strict=True)}


def _as_list(numbers: Any) -> list[int]:
    return numbers if isinstance(numbers, list) else numbers.tolist()
