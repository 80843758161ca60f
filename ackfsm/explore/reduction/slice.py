"""What of a packed network can ever move: the same search over less, and a name for networks that are alike.

Each machine alone gives a bound on its states: those that are reached if an event happens as soon as every
participant has, in *some* state reached so far, a row for it.  What lies beyond the bound is reached in no
interleaving, so leaving it out changes no state, no transition and no witness of the whole system.
Configurations that differ only beyond the bound become the same network and need one search.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from ackfsm.explore.reduction.columns import Part, bits, parts_of, reach
from ackfsm.explore.search.self_check import Origin
from ackfsm.network import Network, NetworkEvent, Packed, components, pack

__all__ = ["Reduced", "reduced"]


@dataclasses.dataclass(frozen=True, slots=True)
class Reduced:
    """A packed network without what can never move; ``events`` are those that remain, in their order.

    ``origin`` tells which machines and states of the network remain.  ``key`` is the same for two networks exactly if
    they are the same but for the names of machines and states.
    """

    packed: Packed
    events: tuple[NetworkEvent, ...]
    key: str
    origin: Origin = dataclasses.field(compare=False, repr=False)


def reduced(network: Network) -> Callable[[Callable[[NetworkEvent], bool]], Reduced]:
    """A function that gives ``network`` reduced to what can move if only events that it is told to admit happen."""
    columns = _Columns(network)
    return lambda admitted: _reduced(columns, [e for e, event in enumerate(network.events) if admitted(event)])


class _Columns:
    """A network packed, with the column of every participant as a tuple of next states."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.packed = pack(network)
        self.parts = parts_of(self.packed)


def _reduced(columns: _Columns, candidates: Sequence[int]) -> Reduced:
    reached, alive = reach(columns.parts, (1 << state for state in columns.packed.initial), candidates)
    kept = {i: list(bits(states)) for i, states in enumerate(reached) if _matters(columns, i, states)}
    return _Laying(columns, list(bits(alive)), kept).reduced()


def _matters(columns: _Columns, instance: int, reached: int) -> bool:
    """Whether the machine ever moves or marks; one that stays in one state and takes part in an event lets it pass."""
    if reached & (reached - 1):
        return True
    machine = columns.network.instances[instance]
    return any(machine.fsm.states[state] in machine.marked | machine.at_rest for state in bits(reached))


class _Laying:
    """Lays out the machines of ``kept`` with the states that they may reach, numbered anew."""

    def __init__(self, columns: _Columns, alive: Sequence[int], kept: dict[int, list[int]]) -> None:
        self.columns = columns
        self.alive = alive
        self.kept = kept
        self.place = {instance: place for place, instance in enumerate(kept)}
        self._left: dict[Part, tuple[int, ...] | None] = {}
        self.number = {i: {state: n for n, state in enumerate(states)} for i, states in kept.items()}

    def reduced(self) -> Reduced:
        packed = self._packed()
        events = tuple(self.columns.network.events[event] for event in self.alive)
        named = repr(([event.label for event in events], packed))
        key = hashlib.sha256(named.encode()).hexdigest()
        return Reduced(packed, events, key, Origin(self.columns.network, self.kept, events))

    def _packed(self) -> Packed:
        old = self.columns.packed
        first, who, where, table = self._tables()
        watchers = [i for i in old.watchers if i in self.kept]
        mark, always, at_rest = self._marks(watchers)
        return Packed(
            size=[len(states) for states in self.kept.values()],
            initial=[self.number[i][old.initial[i]] for i in self.kept],
            component=components(self.columns.network.instances[i].index for i in self.kept),
            first=first,
            free=[old.free[event] for event in self.alive],
            who=who,
            where=where,
            table=table,
            watchers=[self.place[i] for i in watchers],
            mark=mark,
            always=always,
            at_rest=at_rest,
            anomalies=old.anomalies,
        )

    def _tables(self) -> tuple[list[int], list[int], list[int], list[int]]:
        first, who, where = [0], [], []
        table: list[int] = []
        laid: dict[tuple[int, ...], int] = {}
        for event in self.alive:
            for instance, column in self._participants(event):
                if column not in laid:
                    laid[column] = len(table)
                    table += column
                who.append(self.place[instance])
                where.append(laid[column])
            first.append(len(who))
        return first, who, where, table

    def _participants(self, event: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The participants that the event moves, or that may refuse it, each with its column over the kept states."""
        for part in self.columns.parts[event]:
            if part.who in self.kept:
                if part not in self._left:
                    self._left[part] = self._column(part)
                column = self._left[part]
                if column is not None:
                    yield part.who, column

    def _column(self, part: Part) -> tuple[int, ...] | None:
        """A column over the kept states; ``None`` if it is that of a machine that lets the event pass."""
        number, kept = self.number[part.who], self.kept[part.who]
        column = tuple(number.get(part.column[state], -1) for state in kept)
        return None if column == tuple(range(len(kept))) else column

    def _marks(self, watchers: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
        old = self.columns.packed
        starts = dict(zip(old.watchers, old.mark, strict=True))
        mark: list[int] = []
        always: list[int] = []
        at_rest: list[int] = []
        for i in watchers:
            mark.append(len(always))
            always += [old.always[starts[i] + state] for state in self.kept[i]]
            at_rest += [old.at_rest[starts[i] + state] for state in self.kept[i]]
        return mark, always, at_rest
