"""The durability oracle: the journal machines of the tables, run beside a journal, decide its legal losses.

Every ``STORE``, ``MARK`` and ``REMEMBER`` is an instance of ``record``, every ``REMOVE`` one of ``ack_record``, every
``COMMIT`` one of ``commit_record`` and ``consumer_commit_record``, under a configuration that waits for each sync.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from ackfsm import tables
from ackfsm.engine.journal._entry import ATTEMPTS, Kind
from ackfsm.engine.journal._recovery import Recovery
from ackfsm.tables import Fsm, RowKind, Specification, read_form
from ackfsm.tables.names import Event
from ackfsm.terms import AckMode, DeliveryMode

__all__ = ["DurabilityOracle", "Tables"]

_Events: TypeAlias = tuple[str, ...]

_MESSAGE, _NOTHING = "message", "nothing"
_BEGINS: Mapping[Kind, _Events] = MappingProxyType(
    {Kind.COMMIT: (Event.EXECUTE_COMMIT, Event.EXECUTE_CONSUMER_COMMIT), Kind.REMOVE: (Event.SETTLE,)}
)
"""The events whose record an entry is; of every other one: the broker accepts a message."""


class Stages(NamedTuple):
    """The events of the records of an entry: as they are written, synced, and found or missed by a restart."""

    write: _Events
    sync: _Events
    survives: _Events
    vanishes: _Events


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One appended entry, with the states of its machines."""

    kind: Kind
    key: int
    data: bytes
    transaction: int
    position: int
    states: tuple[str, ...]

    def at(self, states: tuple[str, ...]) -> Item:
        """The same entry in these states."""
        if states == self.states:
            return self
        return Item(self.kind, self.key, self.data, self.transaction, self.position, states)


class Steps:
    """A machine with a cache of its steps; ``found`` are the events that decide if the disk has a record."""

    def __init__(self, fsm: Fsm, found: _Events) -> None:
        self.initial = fsm.initial
        self._found = found
        self.events = frozenset(fsm.events)
        self._fsm = fsm
        self._known: dict[tuple[str, str], str | None] = {}
        self._ends: dict[tuple[str, tuple[_Events, ...]], frozenset[str]] = {}

    def step(self, state: str, event: str) -> str | None:
        """See :meth:`ackfsm.tables.Fsm.step`."""
        if (state, event) not in self._known:
            self._known[state, event] = self._fsm.step(state, event)
        return self._known[state, event]

    def walk(self, state: str, events: Iterable[str]) -> str | None:
        """The state after all of ``events``; ``None`` if one of them is refused."""
        at: str | None = state
        for event in events:
            at = self.step(at, event) if at is not None else None
        return at

    def ends(self, state: str, paths: tuple[_Events, ...]) -> frozenset[str]:
        """The states to which ``paths`` lead that refuse no event and decide whether the disk has the record."""
        if (state, paths) not in self._ends:
            found = (self.walk(state, path) for path in paths)
            self._ends[state, paths] = frozenset(end for end in found if end is not None and not self._open(end))
        return self._ends[state, paths]

    def _open(self, state: str) -> bool:
        """Whether the state does not decide yet if the disk has the record."""
        rows = (self._fsm.row(state, event) for event in self._found)
        return any(row is not None and row.kind is RowKind.TO for row in rows)


class Tables:
    """The journal machines of the tables, for entries inside and outside transactions."""

    def __init__(self, specification: Specification | None = None) -> None:
        specification = specification or tables.load()
        document = read_form("execution.yaml", "execution", specification.directory)
        rows = document.data["journal_records"]
        for name, stage in itertools.product(rows, Stages._fields):
            if (event := rows[name][stage]) not in specification.events:
                at = ("journal_records", name, stage)
                raise document.error(at, f"there is no event {event!r} in these tables; name it in both alike")
        modes = {False: AckMode.AUTO_ACKNOWLEDGE, True: AckMode.SESSION_TRANSACTED}
        environments = {transacted: self._environment(specification, mode) for transacted, mode in modes.items()}
        self._stages: dict[str | None, Stages] = {}
        self._fsms: dict[tuple[str | None, bool], tuple[Steps, ...]] = {}
        for left in (_MESSAGE, _NOTHING, None):
            its = {name: row for name, row in rows.items() if row.get("leaves") == left}
            stages = Stages(*(tuple(row[stage] for row in its.values()) for stage in Stages._fields))
            self._stages[left] = stages
            for transacted, environment in environments.items():
                fsms = (specification.machines[name].fsm(environment) for name in its)
                steps = tuple(Steps(fsm, (*stages.survives, *stages.vanishes)) for fsm in fsms)
                self._fsms[left, transacted] = steps

    @staticmethod
    def _environment(specification: Specification, mode: AckMode) -> dict[str, object]:
        settings: dict[str, object] = {
            "delivery_mode": DeliveryMode.PERSISTENT,
            "ack_mode": mode,
            "queue_durable": True,
            "journal_sync_non_transactional": True,
            "journal_sync_transactional": True,
        }
        return specification.environment(specification.configure("jms", settings))

    def fsms(self, kind: Kind, *, transacted: bool) -> tuple[Steps, ...]:
        """The machines of an entry."""
        return self._fsms[_left_by(kind), transacted or kind == Kind.COMMIT]

    def stages(self, kind: Kind) -> Stages:
        """The events of its records."""
        return self._stages[_left_by(kind)]


def _left_by(kind: Kind) -> str | None:
    """Return the state of a message in the journal after an entry, as in ``journal_records``; ``None`` for a commit."""
    return {Kind.REMOVE: _NOTHING, Kind.COMMIT: None}.get(kind, _MESSAGE)


class DurabilityOracle:
    """The entries of a run with the states of their machines, which decide the legal recoveries.

    ``unsure`` is true while a call is running or after it has failed: its entries may be written and synced, or not.
    """

    def __init__(self, tables_: Tables, items: Sequence[Item] = ()) -> None:
        self._tables = tables_
        self._items = list(items)
        self.unsure = False
        self.failure: str = Event.BROKER_CRASH

    def copy(self, *, unsure: bool) -> DurabilityOracle:
        """The same at this moment."""
        other = DurabilityOracle(self._tables, self._items)
        other.unsure, other.failure = unsure or self.unsure, self.failure
        return other

    # what happens

    def append(self, kind: Kind, key: int, data: bytes, transaction: int, position: int) -> None:
        """An entry has been appended."""
        fsms = self._tables.fsms(kind, transacted=bool(transaction))
        item = Item(kind, key, data, transaction, position, tuple(fsm.initial for fsm in fsms))
        begins = _BEGINS.get(kind, (Event.ACCEPT,))
        if kind == Kind.COMMIT:
            self._items = [self._step(each, begins) if each.transaction == key else each for each in self._items]
        self._items.append(self._step(item, begins))

    def written(self, below: int) -> None:
        """The journal has reported that everything below this position is written."""
        for number, item in enumerate(self._items):
            if item.position < below:
                self._items[number] = self._step(item, self._tables.stages(item.kind).write)

    def synced(self, below: int) -> None:
        """The journal has reported that everything below this position is on stable storage."""
        self.written(below)
        for number, item in enumerate(self._items):
            if item.position < below and item.kind != Kind.COMMIT and not item.transaction:
                self._items[number] = self._step(item, self._tables.stages(item.kind).sync)
        for number, item in enumerate(list(self._items)):
            if item.position < below and item.kind == Kind.COMMIT:
                events = self._tables.stages(item.kind).sync
                self._items[number] = self._step(item, events)
                self._items = [
                    self._step(each, events) if each.transaction == item.key else each for each in self._items
                ]

    def restarted(self, below: int) -> None:
        """The broker has restarted; the journal has synced all recovered entries."""
        self._items = [self._step(item, (Event.BROKER_RESTART,)) for item in self._items]
        self.synced(below)

    def killed(self) -> None:
        """The process has died: unwritten entries are gone."""
        self._items = [self._step(item, (Event.BROKER_KILL,)) for item in self._items]
        vanish = self._tables.stages(Kind.COMMIT).vanishes
        gone = [item for item in self._items if item.kind == Kind.COMMIT and self._only_vanishes(item)]
        numbers = {item.key for item in gone}
        self._items = [
            self._step(item, vanish) if item in gone or item.transaction in numbers else item for item in self._items
        ]

    def _only_vanishes(self, item: Item) -> bool:
        stages, fsm, state = self._tables.stages(item.kind), self._fsms(item)[0], item.states[0]
        return fsm.step(state, stages.survives[0]) is None and fsm.step(state, stages.vanishes[0]) is not None

    def _step(self, item: Item, events: _Events) -> Item:
        """Return the item after the ``events`` that are not refused (a second sync is refused)."""
        states = list(item.states)
        for number, fsm in enumerate(self._fsms(item)):
            for event in events:
                after = fsm.step(states[number], event)
                states[number] = states[number] if after is None else after
        return item.at(tuple(states))

    def _fsms(self, item: Item) -> tuple[Steps, ...]:
        return self._tables.fsms(item.kind, transacted=bool(item.transaction))

    # what may have come of it

    def judge(self, found: Recovery, *, after: str | None = None) -> DurabilityOracle | str:
        """The oracle after a failure with the recovery ``found``, or why the tables do not allow it.

        ``after`` is the failure; by default a power loss, or the failure of the journal if it has failed.
        """
        event = self.failure if after is None else after
        strange = self._strange(found)
        if strange:
            return strange
        wrong = ""
        for outcomes in itertools.product(*self._commits(event)):
            chosen = dict(outcomes)
            result = self._explained(found, event, chosen)
            if isinstance(result, DurabilityOracle):
                return result
            wrong = wrong or result
        return wrong

    def _strange(self, found: Recovery) -> str:
        stored = {item.key: item.data for item in self._items if item.kind == Kind.STORE}
        for key, live in found.live.items():
            if stored.get(key) != live.data:
                return f"copy {key} is live with data {live.data!r}, which was never stored"
        stored_now = [item for item in self._items if item.kind == Kind.STORE and item.key in found.live]
        used = [number for item in stored_now for number in (item.key, item.transaction)]
        if found.next_key <= max(used, default=0):
            return f"the next free key is {found.next_key}, and {max(used)} is in use"
        order = [key for key in stored if key in found.live]
        if order != list(found.live):
            return f"the order of the live copies is {list(found.live)}, and they were stored in the order {order}"
        ids = {item.data for item in self._items if item.kind == Kind.REMEMBER}
        invented = [name for name in found.remembered if name not in ids]
        return f"the duplicate-id {invented[0]!r} is known, which never came" if invented else ""

    def _commits(self, event: str) -> list[list[tuple[int, _Events]]]:
        """For each transaction the possible outcomes of its commit, as events; without a commit only the failure."""
        numbers = {item.transaction for item in self._items if item.transaction}
        commits = {item.key: item for item in self._items if item.kind == Kind.COMMIT}
        answer = []
        for number in sorted(numbers | commits.keys()):
            of_commit = _paths(self._tables.stages(Kind.COMMIT), event, unsure=self.unsure)
            paths = of_commit if number in commits else ((event,),)
            legal = [path for path in paths if number not in commits or self._passes(commits[number], path)]
            answer.append([(number, path) for path in legal])
        return answer

    def _passes(self, item: Item, path: _Events) -> bool:
        """Whether no machine of a commit refuses a path and the recovery at its end."""
        whole = (*path, Event.RECOVER_READY)
        return all(
            fsm.walk(state, [name for name in whole if name in fsm.events]) is not None
            for fsm, state in zip(self._fsms(item), item.states, strict=True)
        )

    def _explained(self, found: Recovery, event: str, outcomes: dict[int, _Events]) -> DurabilityOracle | str:
        """The oracle if these outcomes of the transactions explain the recovery, else why they do not."""
        ends = {item: self._ends(item, event, outcomes) for item in self._items if item.kind != Kind.COMMIT}
        after: list[Item] = []
        for item in self._items:
            if item.kind == Kind.COMMIT:
                after.append(self._along(item, outcomes[item.key]))
                continue
            recovered = self._recovery(item, ends, event, found)
            end = self._matching(item, ends[item], recovered)
            if end is None:
                return self._mismatch(item, found)
            after.append(item.at((end,)))
        oracle = DurabilityOracle(self._tables, after)
        oracle.restarted(found.next_position)
        return oracle

    def _recovery(self, item: Item, ends: dict[Item, frozenset[str]], event: str, found: Recovery) -> tuple[str, ...]:
        """Return the recovery events of an item that agree with ``found``; for a copy also its removal."""
        if item.kind == Kind.MARK:
            return self._marked(item, found)
        if item.kind == Kind.REMEMBER:
            return (Event.RECOVER_READY,) if item.data in found.remembered else (Event.RECOVER_LOST,)
        pair = [each for each in self._items if each.kind in {Kind.STORE, Kind.REMOVE} and each.key == item.key]
        (removal,) = self._tables.fsms(Kind.REMOVE, transacted=False)
        never = removal.ends(removal.initial, ((event,),))
        sides = [(self._fsms(each)[0], ends[each]) for each in pair]
        if all(each.kind == Kind.STORE for each in pair):
            sides.append((removal, never))
        seen = (Event.RECOVER_READY,) if item.key in found.live else (Event.RECOVER_REMOVED, Event.RECOVER_LOST)
        return tuple(
            name
            for name in seen
            if all(any(fsm.step(end, name) is not None for end in states) for fsm, states in sides)
        )

    def _along(self, item: Item, path: _Events) -> Item:
        states = tuple(
            fsm.walk(state, [name for name in path if name in fsm.events]) or state
            for fsm, state in zip(self._fsms(item), item.states, strict=True)
        )
        return item.at(states)

    def _ends(self, item: Item, event: str, outcomes: dict[int, _Events]) -> frozenset[str]:
        (fsm,) = self._fsms(item)
        if item.transaction:
            paths: tuple[_Events, ...] = (outcomes[item.transaction],)
        else:
            paths = _paths(self._tables.stages(item.kind), event, unsure=self.unsure)
        return fsm.ends(item.states[0], paths)

    def _matching(self, item: Item, ends: frozenset[str], recovered: tuple[str, ...]) -> str | None:
        """The state after one of these recovery events; ``None`` if no row allows it."""
        (fsm,) = self._fsms(item)
        found = (fsm.step(end, event) for event in recovered for end in sorted(ends))
        return next((end for end in found if end is not None), None)

    def _marked(self, item: Item, found: Recovery) -> tuple[str, ...]:
        live = found.live.get(item.key)
        if live is None:
            return (Event.RECOVER_READY, Event.RECOVER_LOST)
        marks = [each for each in self._items if each.kind == Kind.MARK and each.key == item.key]
        present = [each for each in marks if live.marked and ATTEMPTS.unpack(each.data)[0] == live.attempts]
        if not present or marks.index(item) > marks.index(present[-1]):
            return (Event.RECOVER_LOST,)
        return (Event.RECOVER_READY,) if present == [item] else (Event.RECOVER_READY, Event.RECOVER_LOST)

    def _mismatch(self, item: Item, found: Recovery) -> str:
        there = {Kind.STORE: item.key in found.live, Kind.REMOVE: item.key not in found.live}
        seen = there.get(item.kind, item.data in found.remembered)
        what = {Kind.STORE: "copy", Kind.REMOVE: "removal", Kind.MARK: "mark", Kind.REMEMBER: "duplicate-id"}[item.kind]
        where = f" of transaction {item.transaction}" if item.transaction else ""
        presence = "is there" if seen else "is not there"
        return f"{what} {item.key}{where} {presence}, and the tables do not allow that from {item.states[0]!r}"


@functools.cache
def _paths(stages: Stages, event: str, *, unsure: bool) -> tuple[_Events, ...]:
    """The possible events of a record: write and sync (if ``unsure``), the failure, survival or loss."""
    write, sync, survives, vanishes = stages
    before: list[_Events] = [(), write, (*write, *sync), sync] if unsure else [()]
    return tuple((*first, event, *last) for first in before for last in ((), survives, vanishes))
