"""The durability oracle: the journal machines of the tables, run beside a journal, decide what it may have lost.

Every ``STORE``, ``MARK`` and ``REMEMBER`` is an instance of ``record``, every ``REMOVE`` one of ``ack_record``, every
``COMMIT`` one of ``commit_record`` and ``consumer_commit_record``, under a configuration that waits for each sync.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ackfsm import tables
from ackfsm.journal._entry import ATTEMPTS, Kind
from ackfsm.journal._recovery import Recovery
from ackfsm.tables import Fsm, RowKind, Specification
from ackfsm.terms import AckMode, DeliveryMode

__all__ = ["DurabilityOracle", "Tables"]

_Events: TypeAlias = tuple[str, ...]

_RECORD = ("write_record", "sync_record", ("record_survives", "record_vanishes"))
_REMOVAL = ("write_ack_record", "sync_ack_record", ("ack_record_survives", "ack_record_vanishes"))
_COMMIT = (
    ("write_commit", "write_consumer_commit"),
    ("sync_commit", "sync_consumer_commit"),
    (("commit_survives", "consumer_commit_survives"), ("commit_vanishes", "consumer_commit_vanishes")),
)


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
    """A machine with a cache of its steps."""

    def __init__(self, fsm: Fsm) -> None:
        self.initial = fsm.initial
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
        rows = (self._fsm.row(state, event) for event in (*_RECORD[2], *_REMOVAL[2]))
        return any(row is not None and row.kind is RowKind.TO for row in rows)


class Tables:
    """The journal machines of the tables, for entries inside and outside transactions."""

    def __init__(self, specification: Specification | None = None) -> None:
        specification = specification or tables.load()
        alone = self._environment(specification, AckMode.AUTO_ACKNOWLEDGE)
        together = self._environment(specification, AckMode.SESSION_TRANSACTED)
        machines = specification.machines
        self.record = {False: Steps(machines["record"].fsm(alone)), True: Steps(machines["record"].fsm(together))}
        self.removal = {
            False: Steps(machines["ack_record"].fsm(alone)),
            True: Steps(machines["ack_record"].fsm(together)),
        }
        self.commit = (
            Steps(machines["commit_record"].fsm(together)),
            Steps(machines["consumer_commit_record"].fsm(together)),
        )
        self._ends: dict[tuple[int, str, tuple[_Events, ...]], frozenset[str]] = {}

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
        if kind == Kind.COMMIT:
            return self.commit
        return ((self.removal if kind == Kind.REMOVE else self.record)[transacted],)


class DurabilityOracle:
    """The entries of a run with the states of their machines: what a recovery may find.

    ``unsure`` is true while a call is running or after it has failed: its entries may be written and synced, or not.
    """

    def __init__(self, tables_: Tables, items: Sequence[Item] = ()) -> None:
        self._tables = tables_
        self._items = list(items)
        self.unsure = False
        self.failure = "broker_crash"

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
        if kind == Kind.COMMIT:
            event: _Events = ("execute_commit", "execute_consumer_commit")
            self._items = [self._step(each, event) if each.transaction == key else each for each in self._items]
        else:
            event = ("settle",) if kind == Kind.REMOVE else ("accept",)
        self._items.append(self._step(item, event))

    def written(self, below: int) -> None:
        """The journal has reported that everything below this position is written."""
        for number, item in enumerate(self._items):
            if item.position < below:
                self._items[number] = self._step(item, self._stages(item)[0])

    def synced(self, below: int) -> None:
        """The journal has reported that everything below this position is on stable storage."""
        self.written(below)
        for number, item in enumerate(self._items):
            if item.position < below and item.kind != Kind.COMMIT and not item.transaction:
                self._items[number] = self._step(item, self._stages(item)[1])
        for number, item in enumerate(list(self._items)):
            if item.position < below and item.kind == Kind.COMMIT:
                events = self._stages(item)[1]
                self._items[number] = self._step(item, events)
                self._items = [
                    self._step(each, events) if each.transaction == item.key else each for each in self._items
                ]

    def restarted(self, below: int) -> None:
        """The broker has restarted; the journal has synced what it has recovered."""
        self._items = [self._step(item, ("broker_restart",)) for item in self._items]
        self.synced(below)

    def killed(self) -> None:
        """The process has died: what it had not written is gone."""
        self._items = [self._step(item, ("broker_kill",)) for item in self._items]
        vanish = _COMMIT[2][1]
        gone = [item for item in self._items if item.kind == Kind.COMMIT and self._only_vanishes(item)]
        numbers = {item.key for item in gone}
        self._items = [
            self._step(item, vanish) if item in gone or item.transaction in numbers else item for item in self._items
        ]

    def _only_vanishes(self, item: Item) -> bool:
        survives, vanishes = (events[0] for events in _COMMIT[2])
        fsm, state = self._fsms(item)[0], item.states[0]
        return fsm.step(state, survives) is None and fsm.step(state, vanishes) is not None

    def _step(self, item: Item, events: _Events) -> Item:
        """The item after those of ``events`` that are not refused (a second sync of what is synced is)."""
        states = list(item.states)
        for number, fsm in enumerate(self._fsms(item)):
            for event in events:
                after = fsm.step(states[number], event)
                states[number] = states[number] if after is None else after
        return item.at(tuple(states))

    def _fsms(self, item: Item) -> tuple[Steps, ...]:
        return self._tables.fsms(item.kind, transacted=bool(item.transaction))

    @staticmethod
    def _stages(item: Item) -> tuple[_Events, _Events]:
        if item.kind == Kind.COMMIT:
            return _COMMIT[0], _COMMIT[1]
        write, sync, _ = _REMOVAL if item.kind == Kind.REMOVE else _RECORD
        return (write,), (sync,)

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
            paths = _paths(_COMMIT, event, unsure=self.unsure) if number in commits else ((event,),)
            legal = [path for path in paths if number not in commits or self._passes(commits[number], path)]
            answer.append([(number, path) for path in legal])
        return answer

    def _passes(self, item: Item, path: _Events) -> bool:
        """Whether no machine of a commit refuses a path and the recovery at its end."""
        whole = (*path, "recover_ready")
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
        """The recovery events of an item that agree with what was found; for a copy also with its removal."""
        if item.kind == Kind.MARK:
            return self._marked(item, found)
        if item.kind == Kind.REMEMBER:
            return ("recover_ready",) if item.data in found.remembered else ("recover_lost",)
        pair = [each for each in self._items if each.kind in {Kind.STORE, Kind.REMOVE} and each.key == item.key]
        removal = self._tables.removal[False]
        never = removal.ends(removal.initial, ((event,),))
        sides = [(self._fsms(each)[0], ends[each]) for each in pair]
        if all(each.kind == Kind.STORE for each in pair):
            sides.append((removal, never))
        seen = ("recover_ready",) if item.key in found.live else ("recover_removed", "recover_lost")
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
            paths = _paths(_REMOVAL if item.kind == Kind.REMOVE else _RECORD, event, unsure=self.unsure)
        return fsm.ends(item.states[0], paths)

    def _matching(self, item: Item, ends: frozenset[str], recovered: tuple[str, ...]) -> str | None:
        """The state after one of these recovery events; ``None`` if no row allows it."""
        (fsm,) = self._fsms(item)
        found = (fsm.step(end, event) for event in recovered for end in sorted(ends))
        return next((end for end in found if end is not None), None)

    def _marked(self, item: Item, found: Recovery) -> tuple[str, ...]:
        live = found.live.get(item.key)
        if live is None:
            return ("recover_ready", "recover_lost")
        marks = [each for each in self._items if each.kind == Kind.MARK and each.key == item.key]
        present = [each for each in marks if live.marked and ATTEMPTS.unpack(each.data)[0] == live.attempts]
        if not present or marks.index(item) > marks.index(present[-1]):
            return ("recover_lost",)
        return ("recover_ready",) if present == [item] else ("recover_ready", "recover_lost")

    def _mismatch(self, item: Item, found: Recovery) -> str:
        there = {Kind.STORE: item.key in found.live, Kind.REMOVE: item.key not in found.live}
        seen = there.get(item.kind, item.data in found.remembered)
        what = {Kind.STORE: "copy", Kind.REMOVE: "removal", Kind.MARK: "mark", Kind.REMEMBER: "duplicate-id"}[item.kind]
        where = f" of transaction {item.transaction}" if item.transaction else ""
        presence = "is there" if seen else "is not there"
        return f"{what} {item.key}{where} {presence}, and the tables do not allow that from {item.states[0]!r}"


_Stages: TypeAlias = tuple[str | _Events, str | _Events, tuple[str | _Events, str | _Events]]


@functools.cache
def _paths(stages: _Stages, event: str, *, unsure: bool) -> tuple[_Events, ...]:
    """The possible events of a record: write and sync (if ``unsure``), the failure, survival or loss."""
    write, sync, (survives, vanishes) = stages
    before: list[_Events] = [()]
    if unsure:
        before += [_events(write), (*_events(write), *_events(sync)), _events(sync)]
    after: list[_Events] = [(), _events(survives), _events(vanishes)]
    return tuple((*first, event, *last) for first in before for last in after)


def _events(names: str | _Events) -> _Events:
    return (names,) if isinstance(names, str) else names
