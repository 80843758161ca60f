"""Simulate a configuration in virtual time: the machines of the tables, run with clocks.

What an event does is in ``spec/machines``, and which events there are, by whom, in ``spec/execution.yaml``; here is
only when each of them happens.  Times are counted in picoseconds, so that the same workload gives the same run
everywhere.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ackfsm.engine.core.automaton import LazyProduct
from ackfsm.engine.core.model import EngineModel, IndexRelation, Role
from ackfsm.rates.simulation import _kernel
from ackfsm.rates.simulation import _layout as k
from ackfsm.rates.simulation._memory import WAYS, Memory, Rows
from ackfsm.rates.timing import SPREAD_TIMES, Spread, Waits, Workload, waits_of
from ackfsm.tables import IndexKind, Specification
from ackfsm.tables.names import Agent, Event
from ackfsm.terms import Configuration, DefectError, InputError
from ackfsm.text import quoted

_TICKS: Final = 10**12
"""In a second."""

_FIRST_SLOTS: Final = 256
_BREATH: Final = 1 << 16
"""After so many timed events the kernel can be interrupted, and tells how far it has come."""
_COMPILED: Final = "ackfsm.rates.simulation._compiled"
_FEW: Final = 3_000
"""Messages that plain Python simulates in a second, which is what it takes to load the compiled kernel."""


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


def simulate(  # noqa: PLR0913 - by name
    specification: Specification,
    configuration: Configuration,
    work: Workload,
    messages: int,
    *,
    spreads: Mapping[str, Spread] | None = None,
    seed: int = 1,
    apart: bool = False,
    model: EngineModel | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulated:
    """Send, deliver and acknowledge so many ``messages`` in virtual time.

    ``spreads`` says how times are distributed, by their names: ``rtt``, ``send_time``, ``broker_time``, ``sync_time``,
    ``processing_time``.  With ``apart`` the consumers begin when all is sent, so that each side has the broker for
    itself.  ``progress`` is called now and then with how many messages have been read by the broker or processed, in
    all.

    Raises :class:`InputError` for fewer messages than one, and for a time of another name.
    """
    if messages < 1:
        raise InputError(f"{messages} messages cannot be sent; simulate 1 or more")
    if unknown := sorted({*(spreads or {})}.difference(SPREAD_TIMES)):
        raise InputError(f"no time is called {quoted(unknown[0])}; spread one of {', '.join(SPREAD_TIMES)}")
    waits = waits_of(specification, configuration)
    run = _Run(model or EngineModel(specification), configuration, waits, work, messages)
    return run.run(spreads or {}, seed, apart=apart, progress=progress or (lambda _: None))


_ACTED: Final[Mapping[int, str]] = MappingProxyType(
    {
        k.E_COMMIT: Event.COMMIT_CALLED,
        k.E_PROCESSED: Event.PROCESSED,
        k.E_ACKNOWLEDGE: Event.ACKNOWLEDGE,
        k.E_CONSUMER_COMMIT: Event.CONSUMER_COMMIT_CALLED,
        k.E_ACCEPT: Event.ACCEPT,
        k.E_ARRIVE: Event.ARRIVE,
        k.E_CONFIRMED: Event.CONFIRMED,
        k.E_BY_RANGE: Event.CONFIRMED_BY_RANGE,
        k.E_COMMIT_RETURNED: Event.COMMIT_RETURNED,
        k.E_CONSUMER_COMMIT_RETURNED: Event.CONSUMER_COMMIT_RETURNED,
    }
)
_OF_A_PRODUCER: Final = (Role.PRODUCER, Role.WINDOW, Role.UNCONFIRMED)
_OF_A_CONSUMER: Final = (Role.CONSUMER, Role.PREFETCH)


class _Run:
    """One simulation: builds the memory, and answers the questions of the kernel."""

    def __init__(
        self, model: EngineModel, configuration: Configuration, waits: Waits, work: Workload, messages: int
    ) -> None:
        self._waits, self._work, self._messages = waits, work, messages
        self._step, compiled = _kernel_run(messages)
        self._memory = Memory(compiled=compiled)
        self._model = model
        self._memory.room(k.REGISTERS)
        self._lists = self._lists_used()
        self._events = self._event_records()
        automata: dict[int, LazyProduct[Any]] = {
            int(role): model.group_automaton(role, configuration) for role in Role if role is not Role.COPY
        }
        automata[int(Role.COPY)] = model.copy_automaton(configuration, configuration, 1)
        self._automata = automata
        self._rows = Rows(self._memory, automata, self._events, self._lists)

    def _lists_used(self) -> dict[int, int]:
        """Return the broadcasts that are heard: from events that happen here, and from links."""
        happening = [e for e in self._model.events.values() if e.agent in {*WAYS, Agent.APPLICATION}]
        used = [b.number for event in happening for b, _ in event.broadcasts]
        used += [self._model.all_copies(scope).number for scope in ("producer", "consumer")]
        return {number: place for place, number in enumerate(sorted(set(used)))}

    def _event_records(self) -> dict[int, int]:
        """The address of each event, by its number."""
        syncs = {record.sync for record in self._model.table.journal_records.values()}
        addresses, bit = dict[int, int](), 1
        for event in self._model.events.values():
            way = k.SYNC if event.name in syncs else WAYS.get(event.agent, k.AT_ONCE)
            timed = way in {k.FRAME, k.SYNC}
            words = [0] * k.TO_OTHERS
            words[k.WAY], words[k.SIGNAL], words[k.BIT] = way, event.signal, bit if timed else 0
            words[k.ROLES] = sum(1 << role for role in event.roles)
            words[k.OF_LINK] = event.per is IndexKind.SYSTEM
            heard = [(b, signal) for b, signal in event.broadcasts if b.number in self._lists]
            words[k.BROADCASTS] = len(heard)
            for broadcast, signal in heard:
                words += self._lists[broadcast.number], signal, broadcast.relation is IndexRelation.LATER
            bit <<= timed
            addresses[event.number] = self._memory.room(len(words))
            self._memory.write(addresses[event.number], words)
        return addresses

    def run(
        self, spreads: Mapping[str, Spread], seed: int, *, apart: bool, progress: Callable[[int], None]
    ) -> Simulated:
        """Run to the end."""
        self._prepare(spreads, seed)
        self._memory.words[k.HELD] = apart
        self._run(progress)
        if apart:
            self._memory.words[k.HELD] = 0
            self._run(progress)
        return self._result()

    def _run(self, progress: Callable[[int], None]) -> None:
        """Run until nothing is left to happen."""
        memory = self._memory
        memory.words[k.UNTIL_PAUSE] = _BREATH
        while (code := self._step(memory.words)) != k.ENDED:
            if code == k.FILL:
                self._rows.fill(int(memory.words[k.ASKED_ROW]), int(memory.words[k.ASKED_SIGNAL]))
            elif code == k.PAUSE:
                memory.words[k.UNTIL_PAUSE] = _BREATH
                progress(int(memory.words[k.ACCEPTED] + memory.words[k.PROCESSED]))
            else:
                self._add_slots()

    def _prepare(self, spreads: Mapping[str, Spread], seed: int) -> None:
        """Write registers and links."""
        memory, work, lists = self._memory, self._work, self._lists
        links = [self._link(_OF_A_PRODUCER) for _ in range(work.producers)]
        links += [self._link(_OF_A_CONSUMER) for _ in range(work.consumers)]
        for link, following in zip(links, [*links[1:], k.NOTHING], strict=True):
            memory.words[link + k.NEXT_LINK] = following
        for number, link in enumerate(links[: work.producers]):
            memory.words[link + k.IS_PRODUCER] = memory.words[link + k.HAS_TO_ACT] = 1
            more = number < self._messages % work.producers
            memory.words[link + k.QUOTA] = self._messages // work.producers + more
        for link in links[work.producers :]:
            memory.words[link + k.LIBRARY_FIRST] = k.NOTHING
        scopes = memory.room(len(lists))
        memory.write(scopes, [self._model.broadcasts[number].scope for number in lists])
        registers = {
            k.CHANCE: (seed * 0x9E3779B1 & 0xFFFFFFFF) or 1,
            **dict.fromkeys((k.FREE, k.WORK_FIRST, k.UNSYNCED_FIRST), k.NOTHING),
            k.FIRST_PRODUCER: links[0],
            k.FIRST_CONSUMER: links[work.producers],
            k.NEXT_CONSUMER: links[work.producers],
            k.QUEUE: self._link(()),
            k.BROKER: self._link((Role.BROKER,)),
            k.INITIAL: self._rows.row(int(Role.COPY), self._automata[int(Role.COPY)].initial),
            k.READY: lists[self._model.overtaken_by(Event.DISPATCH_FIRST, "queue").number],
            k.SCOPES_AT: scopes,
            k.ALL_OF_PRODUCER: lists[self._model.all_copies("producer").number],
            k.ALL_OF_CONSUMER: lists[self._model.all_copies("consumer").number],
            **{of: memory.room(self._messages, k.NOTHING) for of in _FIGURES},
            **self._numbers(spreads),
            **{at: self._events[self._model.events[name].number] for at, name in self._acted().items()},
        }
        for at, value in registers.items():
            memory.words[at] = value
        for link in links[: work.producers]:
            memory.words[link + k.READY_AT] = _ticks(work.send_time)
        self._add_slots()

    def _acted(self) -> dict[int, str]:
        transacted = self._waits.next_send_after == "commit"
        return {k.E_SEND: Event.SEND_IN_TRANSACTION if transacted else Event.SEND, **_ACTED}

    def _numbers(self, spreads: Mapping[str, Spread]) -> dict[int, int]:
        """The registers of the workload."""
        work, waits = self._work, self._waits
        times = {
            k.HALF_RTT: ("rtt", work.rtt / 2),
            k.SEND_TIME: ("send_time", work.send_time),
            k.BROKER_TIME: ("broker_time", work.broker_time),
            k.SYNC_TIME: ("sync_time", work.sync_time),
            k.PROCESSING_TIME: ("processing_time", work.processing_time),
        }
        return {
            k.MESSAGES: self._messages,
            k.UP: _ticks(work.transmission),
            k.DOWN: _ticks(work.transmission_back),
            k.GROUP_COMMIT: work.group_commit,
            k.PER_COMMIT: work.messages_per_commit if waits.next_send_after == "commit" else 0,
            k.SETTLED_AT: 1 if waits.settled_by == "commit" else _settled_together(work, waits),
            k.INTERVAL: _ticks(work.interval),
            k.PREFETCH: waits.prefetch or 0,
            k.CREDIT_ON_DELIVERY: waits.freed_on_delivery,
            k.WAITS_IN_CALL: waits.next_send_after == "answer",
            k.SETTLES_WHEN_IDLE: waits.settled_by == "batch",
            k.TIMEOUT: max(_ticks(work.timer), 1),
            **{at: _ticks(mean) for at, (_, mean) in times.items()},
            **{at + 1: spreads.get(name, Spread.CONSTANT) for at, (name, _) in times.items()},
        }

    def _link(self, roles: Sequence[Role]) -> int:
        """The record of a link, or of the queue or the broker, with the groups of these ``roles``."""
        link = self._memory.room(k.ENDS, 0)
        self._memory.room(k.PER_LIST * len(self._lists), k.NOTHING)
        words = self._memory.words
        words[link + k.FIRST_BLOCK], words[link + k.IS_LINK] = k.NOTHING, 1
        for role in Role:
            words[link + k.GROUPS + role] = k.NOTHING
        for role in roles:
            row = self._rows.row(int(role), self._automata[int(role)].initial)  # it may move the words
            self._memory.words[link + k.GROUPS + role] = row
        return link

    def _add_slots(self) -> None:
        """Room for twice as many messages at a time, and for what can happen to them."""
        memory = self._memory
        count = max(int(memory.words[k.SLOTS]), _FIRST_SLOTS)
        size = k.NEIGHBOURS + k.PER_LIST * len(self._lists)
        blank = [0] * k.BLOCKS + [k.NOTHING] * (size - k.BLOCKS)
        blank[k.ROW] = blank[k.FIRST_BLOCK] = k.NOTHING
        begin = memory.room(count * size)
        slots = np.tile(np.array(blank, np.int64), count).reshape(count, size)
        addresses = begin + size * np.arange(count)
        slots[:, k.NEXT_FREE] = np.append(addresses[1:], memory.words[k.FREE])
        for each in range(k.BLOCKS_OF_A_SLOT):
            slots[:, k.BLOCKS + each * k.BLOCK_SIZE + k.BLOCK_SLOT] = addresses
        memory.write(begin, slots.ravel())
        memory.words[k.FREE] = begin
        memory.words[k.SLOTS] += count
        self._move_heap()

    def _move_heap(self) -> None:
        memory = self._memory
        total = int(memory.words[k.SLOTS])
        moves = memory.room((total + 16) * k.MOVE_SIZE)
        room = 8 * total + 1_024
        heap = memory.room(room * k.ENTRY_SIZE)
        old, used = int(memory.words[k.HEAP]), int(memory.words[k.TIMED]) * k.ENTRY_SIZE
        memory.write(heap, memory.words[old : old + used])
        for at, value in ((k.MOVES, moves), (k.HEAP, heap), (k.HEAP_ROOM, room)):
            memory.words[at] = value

    def _result(self) -> Simulated:
        memory, messages = self._memory, self._messages
        published, delivered = self._cycles()
        if memory.words[k.OVERFLOWN]:
            raise DefectError("more events of a message waited for something than the simulation has room for")
        figures = [memory.read(int(memory.words[at]), messages) for at in _FIGURES]
        accepted, processed, confirmed, had = (np.where(f < 0, -1.0, f / _TICKS) for f in figures)
        counts = [int(memory.words[at]) for at in (k.ACCEPTED, k.PROCESSED)]
        consumer, consumed = int(memory.words[k.FIRST_CONSUMER]), list[int]()
        while consumer != k.NOTHING:
            consumed.append(int(memory.words[consumer + k.CONSUMED]))
            consumer = int(memory.words[consumer + k.NEXT_LINK])
        return Simulated(
            messages=messages,
            publish=_rate(accepted, counts[0], messages, published),
            deliver=_rate(processed, counts[1], messages, _common(published, delivered, messages)),
            seconds=int(memory.words[k.NOW]) / _TICKS,
            events=int(memory.words[k.HAPPENED]),
            stands_still=counts[1] < messages,
            confirmations=confirmed,
            deliveries=had,
            consumed=tuple(consumed),
            accepted_at=accepted,
            processed_at=processed,
        )

    def _cycles(self) -> tuple[int, int]:
        """So many messages of all producers, and of all consumers, go together; rates are told over whole ones."""
        work, waits = self._work, self._waits
        window, threshold = waits.window or 1, waits.threshold or 1
        in_windows = max(window // threshold, 1) * threshold
        published = work.messages_per_commit if waits.next_send_after == "commit" else in_windows
        together, prefetch = _settled_together(work, waits), waits.prefetch or 1
        return published * work.producers, max(prefetch // together, 1) * together * work.consumers


_FIGURES: Final = (k.ACCEPTED_AT, k.PROCESSED_AT, k.CONFIRM_LATENCY, k.DELIVERY_LATENCY)


def _settled_together(work: Workload, waits: Waits) -> int:
    sizes = {"call": work.messages_per_acknowledge, "batch": work.lazy_batch, "commit": work.messages_per_commit}
    return sizes.get(waits.settled_by, 1)


def _common(one: int, other: int, messages: int) -> int:
    """Whole cycles of both sides, or of the longer one where a half of the messages has none of both."""
    both = math.lcm(one, other)
    return both if both <= messages // 2 else max(one, other)


def _rate(times: np.ndarray[Any, Any], count: int, messages: int, cycle: int) -> float:
    """Messages a second in the second half, over whole cycles; infinite if no time passes."""
    if count < messages:
        return 0.0
    last = messages - 1
    first = last - max(messages // 2 // cycle, 1) * cycle
    first = max(first, 0)
    passed = float(times[last] - times[first])
    return float("inf") if passed == 0 else (last - first) / passed


def _ticks(seconds: Fraction) -> int:
    return round(seconds * _TICKS)


def _kernel_run(messages: int) -> tuple[Callable[[Any], int], bool]:
    """The kernel, and whether it is compiled: not where Numba is missing, nor where to load it would take longer."""
    few = messages <= _FEW and _COMPILED not in sys.modules
    if few or importlib.util.find_spec("numba") is None:
        return _kernel.run, False
    from ackfsm.rates.simulation import _compiled

    return _compiled.run, True
