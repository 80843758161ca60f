"""Simulate a configuration in virtual time: the machines of the tables, run with clocks.

What an event does is in ``spec/machines``, and which events there are, by whom, in ``spec/execution.yaml``; here is
only when each of them happens.  Times are counted in picoseconds, so that the same workload gives the same run
everywhere.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ackfsm.engine.core.automaton import LazyProduct
from ackfsm.engine.core.model import BoundEvent, EngineModel, IndexRelation, Role
from ackfsm.engine.core.names import FRAMES, Agent, Event
from ackfsm.tables import IndexKind, Specification
from ackfsm.terms import Configuration, DefectError
from ackfsm.timing import _kernel as k
from ackfsm.timing._waits import Waits, waits_of
from ackfsm.timing._workload import Workload

__all__ = ["Simulated", "Spread", "simulate"]

_TICKS: Final = 10**12
"""In a second."""

_EVENTS_OF_A_ROW: Final = 24
_FIRST_SLOTS: Final = 1_024
_FIRST_ROWS: Final = 256
_RELATIONS: Final = len(IndexRelation)


class Spread(enum.IntEnum):
    """How a time is distributed around its mean."""

    CONSTANT = 0
    EXPONENTIAL = 1
    UNIFORM = 2


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What came of a simulation.

    Attributes:
        messages: how many there were.
        publish: messages a second that the broker read, in the second half of the run; 0 if it stood still before.
        deliver: messages a second that were processed, likewise.
        seconds: virtual time that all of it took.
        events: how many events of the tables happened.
        stands_still: not all messages were processed, and nothing was left to happen.
        confirmations: seconds from each send until its outcome was known, -1 where it never was.
        deliveries: the same until the application had the message.
        consumed: how many messages each consumer processed.
        accepted_at: seconds at which the n-th message was read.
        processed_at: the same, processed.
    """

    messages: int
    publish: float
    deliver: float
    seconds: float
    events: int
    stands_still: bool
    confirmations: np.ndarray[Any, Any]
    deliveries: np.ndarray[Any, Any]
    consumed: tuple[int, ...]
    accepted_at: np.ndarray[Any, Any]
    processed_at: np.ndarray[Any, Any]


def simulate(
    specification: Specification,
    configuration: Configuration,
    work: Workload,
    messages: int,
    *,
    spreads: Mapping[str, Spread] | None = None,
    seed: int = 1,
    model: EngineModel | None = None,
) -> Simulated:
    """Send, deliver and acknowledge so many ``messages`` in virtual time.

    ``spreads`` says how times are distributed, by their names: ``rtt``, ``send_time``, ``broker_time``, ``sync_time``,
    ``processing_time``.
    """
    run = _Run(model or EngineModel(specification), configuration, waits_of(specification, configuration), work)
    return run.run(messages, spreads or {}, seed)


_SPREAD_OF: Final = ("rtt", "send_time", "broker_time", "sync_time", "processing_time")


class _Rows:
    """The states of all products of machines, numbered as they are met, and what the tables say of them."""

    def __init__(self, automata: Mapping[int, LazyProduct[Any]], ways: np.ndarray[Any, Any], signals: int) -> None:
        self._automata, self._ways = automata, ways
        self._numbers: dict[tuple[int, int], int] = {}
        self._known: list[tuple[int, int]] = []
        self.arrays: dict[str, np.ndarray[Any, Any]] = {
            "successor": np.full((_FIRST_ROWS, signals), k.UNKNOWN, np.int32),
            "enabled": np.full((_FIRST_ROWS, _EVENTS_OF_A_ROW), k.NOTHING, np.int64),
            **{name: np.zeros(_FIRST_ROWS, np.int64) for name in ("indexed", "acknowledgeable", "awaits_answer")},
            "delivered_by": np.full(_FIRST_ROWS, k.NOTHING, np.int64),
            "finished": np.zeros(_FIRST_ROWS, np.int64),
        }

    def row(self, role: int, state: int) -> int:
        """The row of a state, which may be a new one."""
        found = self._numbers.get((role, state))
        if found is None:
            found = self._numbers[role, state] = len(self._known)
            self._known.append((role, state))
            if found == len(self.arrays["indexed"]):
                self.arrays = {name: np.concatenate([old, _blank(old)]) for name, old in self.arrays.items()}
            self._describe(found, role, state)
        return found

    def fill(self, row: int, signal: int) -> None:
        """Ask the tables for the row after ``row``."""
        role, state = self._known[row]
        target = self._automata[role].fill(signal, state)
        after = k.REFUSED if target == k.REFUSED else self.row(role, target)  # it may make the arrays longer
        self.arrays["successor"][row, signal] = after

    def _describe(self, row: int, role: int, state: int) -> None:
        automaton, arrays = self._automata[role], self.arrays
        unmoved = [signal for signal, column in enumerate(automaton.columns) if column is None]
        arrays["successor"][row, unmoved] = row
        facts = automaton.facts[state]
        events = [event.number for event in facts.enabled if self._ways[event.number] != k.NEVER]
        if len(events) >= _EVENTS_OF_A_ROW:
            raise DefectError(f"a state allows {len(events)} events, more than the simulation has room for")
        arrays["enabled"][row, : len(events)] = events
        arrays["indexed"][row] = sum(1 << broadcast.number for broadcast in facts.indexed_under)
        if role == Role.COPY:
            arrays["finished"][row] = automaton.is_finished(state)
            arrays["acknowledgeable"][row] = facts.acknowledgeable
            arrays["awaits_answer"][row] = facts.ack_pending
            arrays["delivered_by"][row] = k.NOTHING if facts.delivery_event is None else facts.delivery_event.number


def _blank(like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As many rows more, without anything in them."""
    return np.full_like(like, k.UNKNOWN if like.dtype == np.int32 else k.NOTHING if like.ndim > 1 else 0)


_WAYS: Final[Mapping[str, int]] = MappingProxyType(
    {Agent.LIBRARY: k.AT_ONCE, Agent.BROKER: k.AT_ONCE, Agent.QUEUE: k.DISPATCH, Agent.TIMER: k.TIMER}
)


class _Run:
    def __init__(self, model: EngineModel, configuration: Configuration, waits: Waits, work: Workload) -> None:
        self.model, self.waits, self.work = model, waits, work
        self.configuration = configuration
        self.events = tuple(model.events.values())
        self.links = work.producers + work.consumers + 1
        self.automata = {Role.COPY: model.copy_automaton(configuration, configuration, 1)}
        self.automata |= {role: model.group_automaton(role, configuration) for role in Role if role is not Role.COPY}
        self.arrays = self._of_events()
        self.rows = _Rows(
            {int(role): automaton for role, automaton in self.automata.items()},
            self.arrays["way"],
            len(self.events) * _RELATIONS,
        )

    def _way(self, event: BoundEvent) -> int:
        if event.agent == Agent.DISK:
            return k.SYNC if event.name in self._syncs else k.AT_ONCE
        if event.agent in FRAMES:
            return k.FRAME
        return _WAYS.get(event.agent, k.NEVER)

    def _of_events(self) -> dict[str, np.ndarray[Any, Any]]:
        self._syncs = {record.sync for record in self.model.table.journal_records.values()}
        ways = [self._way(event) for event in self.events]
        bits, taken = list[int](), 0
        for way in ways:
            bits.append(1 << taken if way in {k.FRAME, k.SYNC} else 0)
            taken += way in {k.FRAME, k.SYNC}
        sent = [event.broadcasts for event in self.events]
        named = (
            *(Event.SEND_IN_TRANSACTION if self.waits.next_send_after == "commit" else Event.SEND, Event.COMMIT_CALLED),
            *(Event.PROCESSED, Event.ACKNOWLEDGE, Event.CONSUMER_COMMIT_CALLED, Event.ACCEPT, Event.ARRIVE),
            *("confirmed", "confirmed_by_range", "commit_returned", "consumer_commit_returned", "timer_fires"),
        )
        return {
            "way": _integers(ways),
            "bit": _integers(bits),
            "roles": _integers([sum(1 << role for role in event.roles) for event in self.events]),
            "is_of_link": _integers([event.per is IndexKind.SYSTEM for event in self.events]),
            "sent_up": _integers([event.agent == Agent.PRODUCER_TO_BROKER for event in self.events]),
            "broadcast_begin": _integers(np.cumsum([0, *map(len, sent)])),
            "broadcast": _integers([broadcast.number for each in sent for broadcast, _ in each]),
            "broadcast_signal": _integers([signal for each in sent for _, signal in each]),
            "scope": _integers([broadcast.scope for broadcast in self.model.broadcasts]),
            "relation": _integers([broadcast.relation for broadcast in self.model.broadcasts]),
            "event": _integers([self.model.events[name].number for name in named]),
        }

    def _numbers(self, messages: int) -> np.ndarray[Any, Any]:
        work, waits = self.work, self.waits
        numbers = np.zeros(k.NUMBERS, np.int64)
        at_a_time = {"call": work.messages_per_acknowledge, "batch": work.lazy_batch}.get(waits.settled_by, 1)
        transacted = waits.next_send_after == "commit"
        for at, value in {
            k.PRODUCERS: work.producers,
            k.CONSUMERS: work.consumers,
            k.MESSAGES: messages,
            k.UP: _ticks(work.transmission),
            k.DOWN: _ticks(work.transmission_back),
            k.HALF_RTT: _ticks(work.rtt / 2),
            k.SEND: _ticks(work.send_time),
            k.BROKER: _ticks(work.broker_time),
            k.SYNC_TIME: _ticks(work.sync_time),
            k.PROCESSING: _ticks(work.processing_time),
            k.TIMEOUT: _ticks(work.timer),
            k.GROUP_COMMIT: work.group_commit,
            k.PER_COMMIT: work.messages_per_commit if transacted else 0,
            k.SETTLED_AT: at_a_time,
            k.INTERVAL: _ticks(work.interval),
            k.PREFETCH: waits.prefetch or 0,
            k.CREDIT_ON_DELIVERY: waits.freed_on_delivery,
            k.WAITS_IN_CALL: waits.next_send_after == "answer",
            k.IDLE_SETTLES: waits.settled_by == "batch",
        }.items():
            numbers[at] = value
        return numbers

    def run(self, messages: int, spreads: Mapping[str, Spread], seed: int) -> Simulated:
        world = self._world(messages, spreads, seed)
        ready = self.model.overtaken_by(Event.DISPATCH_FIRST, "queue").number
        step = _compiled_run() or k.run
        while (code := step(world, ready)) != k.ENDED:
            if code == k.FILL:
                self.rows.fill(int(world.reg[k.ROW]), int(world.reg[k.SIGNAL]))
                if world.indexed is not self.rows.arrays["indexed"]:
                    world = world._replace(**self.rows.arrays)
            else:
                world = _grown(world)
        return _result(world, messages, self._cycle())

    def _cycle(self) -> int:
        """So many messages go together at most; rates are told over whole multiples of them."""
        at_a_time = {"call": self.work.messages_per_acknowledge, "batch": self.work.lazy_batch}
        per_commit = self.work.messages_per_commit if self.waits.next_send_after == "commit" else 1
        return max(self.waits.threshold or 1, at_a_time.get(self.waits.settled_by, 1), per_commit)

    def _world(self, messages: int, spreads: Mapping[str, Spread], seed: int) -> k.World:
        work, broadcasts = self.work, len(self.model.broadcasts)
        initial = np.full(len(Role), k.NOTHING, np.int64)
        for role, automaton in self.automata.items():
            initial[role] = self.rows.row(int(role), automaton.initial)
        group = np.full((len(Role), self.links), k.NOTHING, np.int64)
        of_producer, of_consumer = slice(0, work.producers), slice(work.producers, self.links - 1)
        for role in (Role.PRODUCER, Role.WINDOW, Role.UNCONFIRMED):
            group[role, of_producer] = initial[role]
        for role in (Role.CONSUMER, Role.PREFETCH):
            group[role, of_consumer] = initial[role]
        group[Role.BROKER, -1] = initial[Role.BROKER]
        instances = max(work.producers, work.consumers)
        reg = np.zeros(k.REGISTERS, np.int64)
        reg[k.CHANCE] = seed * 0x9E3779B97F4A7C15 & 0x7FFFFFFFFFFFFFFF | 1
        quota = [messages // work.producers + (each < messages % work.producers) for each in range(work.producers)]
        return k.World(
            **self.rows.arrays,
            **self.arrays,
            initial=initial,
            number=self._numbers(messages),
            spread=_integers([spreads.get(name, Spread.CONSTANT) for name in _SPREAD_OF]),
            reg=reg,
            group=group,
            head=np.full((broadcasts, instances), k.NOTHING, np.int64),
            tail=np.full((broadcasts, instances), k.NOTHING, np.int64),
            **{name: np.zeros(self.links, np.int64) for name in _OF_LINKS},
            **{name: np.zeros(work.producers, np.int64) for name in _OF_PRODUCERS},
            ready_at=np.full(work.producers, _ticks(work.send_time), np.int64),
            sender_waits=np.ones(work.producers, np.int64),
            quota=_integers(quota),
            **{name: np.zeros(work.consumers, np.int64) for name in _OF_CONSUMERS},
            inbox_head=np.full(work.consumers, k.NOTHING, np.int64),
            inbox_tail=np.full(work.consumers, k.NOTHING, np.int64),
            accepted_at=np.full(messages, -1, np.int64),
            processed_at=np.full(messages, -1, np.int64),
            confirm_latency=np.full(messages, -1, np.int64),
            delivery_latency=np.full(messages, -1, np.int64),
            **_slots(_FIRST_SLOTS, self.links, broadcasts, reg),
        )


_OF_LINKS: Final = ("link_flying", "link_arrived", "link_synced", "link_queued", "link_waits", "timer_at")
_OF_PRODUCERS: Final = ("sent", "in_transaction", "socket_at", "wakes_at", "in_call", "line_free")
_OF_CONSUMERS: Final = (
    *("acting", "current", "unsettled", "consumed", "down_free", "out", "is_due", "consumer_waits"),
)
_OF_SLOTS: Final = ("key", "producer", "flying", "arrived", "synced", "queued", "sent_at", "linked", "in_work")
_OF_SLOTS_BLANK: Final = ("state", "consumer", "inbox")


def _slots(count: int, links: int, broadcasts: int, reg: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for so many messages at a time, all of them free."""
    reg[k.FREE] = 0
    following = np.arange(1, count + 1, dtype=np.int64)
    following[-1] = k.NOTHING
    blocks = count * k.BLOCKS
    return {
        **{name: np.zeros(count, np.int64) for name in _OF_SLOTS},
        **{name: np.full(count, k.NOTHING, np.int64) for name in _OF_SLOTS_BLANK},
        "next_free": following,
        "after": np.full((broadcasts, count), k.NOTHING, np.int32),
        "before": np.full((broadcasts, count), k.NOTHING, np.int32),
        "block_head": np.full(links + count, k.NOTHING, np.int64),
        **{f"block_{name}": np.full(blocks, k.NOTHING, np.int64) for name in ("next", "before", "of", "role", "signal")},
        "work": np.zeros(count + 1, np.int64),
        "unsynced": np.zeros(count + links, np.int64),
        "taken": np.zeros(count + links, np.int64),
        **{name: np.zeros(count + len(Role) + 1, np.int64) for name in ("moved", "moved_role", "moved_to")},
        "times": np.zeros((8 * count + 1024, 2), np.int64),
        "payloads": np.zeros(8 * count + 1024, np.int64),
    }


def _grown(world: k.World) -> k.World:
    """The same with room for twice as many messages at a time."""
    count, links = len(world.state), world.group.shape[1]
    reg = world.reg
    free = int(reg[k.FREE])
    larger = _slots(2 * count, links, len(world.scope), reg)
    for name, array in larger.items():
        old = getattr(world, name)
        if name in {"after", "before"}:
            array[:, :count] = old
        elif name not in {"work", "next_free"}:
            array[: len(old)] = old
    ring = (reg[k.WORK_BEGIN] + np.arange(reg[k.WORK_COUNT])) % len(world.work)
    larger["work"][: len(ring)] = world.work[ring]
    reg[k.WORK_BEGIN] = 0
    larger["next_free"][:count] = world.next_free
    larger["next_free"][-1] = free
    reg[k.FREE] = count
    return world._replace(**larger)


def _result(world: k.World, messages: int, cycle: int) -> Simulated:
    reg = world.reg
    accepted, processed = (world.accepted_at / _TICKS, world.processed_at / _TICKS)
    return Simulated(
        messages=messages,
        publish=_rate(accepted, int(reg[k.ACCEPTED]), messages, cycle),
        deliver=_rate(processed, int(reg[k.PROCESSED]), messages, cycle),
        seconds=float(reg[k.NOW]) / _TICKS,
        events=int(reg[k.EVENTS]),
        stands_still=bool(reg[k.PROCESSED] < messages),
        confirmations=np.where(world.confirm_latency < 0, -1.0, world.confirm_latency / _TICKS),
        deliveries=np.where(world.delivery_latency < 0, -1.0, world.delivery_latency / _TICKS),
        consumed=tuple(int(each) for each in world.consumed),
        accepted_at=accepted,
        processed_at=processed,
    )


def _rate(times: np.ndarray[Any, Any], count: int, messages: int, cycle: int) -> float:
    """Messages a second in the second half, over whole cycles; infinite if no time passes."""
    if count < messages:
        return 0.0
    cycles = max((messages // 2 - 1) // cycle, 1)
    last = messages - 1 - (messages - 1) % cycle if messages > cycle else messages - 1
    first = max(last - cycles * cycle, 0)
    passed = float(times[last] - times[first])
    return float("inf") if passed == 0 else (last - first) / passed


def _integers(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values, np.int64)


def _ticks(seconds: Fraction) -> int:
    return round(seconds * _TICKS)


def _compiled_run() -> Any:
    """The compiled kernel, ``None`` where Numba is missing."""
    if importlib.util.find_spec("numba") is None:
        return None
    from ackfsm.timing import _compiled

    return _compiled.run
