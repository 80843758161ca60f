"""Mutants of the tables: every row deleted, redirected or turned around, one at a time, and who notices.

A *mutant* is the specification with one row of one machine changed.  It is *noticed* if some system of
:func:`panel` is not the same any more: another number of states or transitions (``spec/test_facts.py`` asserts such
numbers), or other anomalies.  A mutant of a row that *decides* nothing in the whole panel (its event never
happens in its state, or another machine refuses it as well) cannot be noticed: such rows stand for totality.

Run as a program it prints a summary and every survivor: ``python -m model_tests.mutants``.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import yaml

from ackfsm import explore
from ackfsm.explore import pack
from ackfsm.explore.search.search import Search
from ackfsm.network import Bounds, Network, NetworkEvent, compose, concerns
from ackfsm.tables import EventRef, Machine, Row, RowKind, Specification
from ackfsm.terms import Fault, InputError, Profile
from model_tests.support.places import DATA
from model_tests.support.tables import shipped

__all__ = ["Mutant", "Noticed", "System", "mutants", "panel", "score", "survivors", "trial", "yardstick"]


@dataclasses.dataclass(frozen=True)
class System:
    """One system of the panel: a configuration and the bounds of its search."""

    profile: str
    settings: tuple[tuple[str, object], ...]
    bounds: Bounds

    def network(self, specification: Specification) -> Network:
        """The system that the tables make of it."""
        return compose(specification, specification.configure(self.profile, dict(self.settings)), self.bounds)


def _system(  # noqa: PLR0913 - one name for each bound
    profile: str = "jms",
    *,
    messages: int = 1,
    faults: int = 1,
    of: Collection[Fault] = tuple(Fault),
    actions: str = "",
    subscriptions: int = 1,
    non_durable: int = 0,
    **settings: object,
) -> System:
    kinds = frozenset(of) if faults else frozenset[Fault]()
    bounds = Bounds(
        messages=messages,
        faults=kinds,
        max_faults=faults,
        actions=frozenset(actions.split()),
        subscriptions=subscriptions,
        non_durable=non_durable,
    )
    return System(profile, tuple(sorted(settings.items())), bounds)


_MODES = ("AUTO", "CLIENT", "DUPS_OK", "PRE", "NO", "INDIVIDUAL", "EXPLICIT_CLIENT", "EXPLICIT_CLIENT_DUPS_OK")
_SENDS = ("blocking", "asynchronous", "unconfirmed")
_TRANSACTED: Mapping[str, Any] = MappingProxyType({"ack_mode": "SESSION_TRANSACTED"})


def _panel() -> Iterator[System]:
    yield from _acknowledging()
    yield from _cumulative()
    yield from _publishing()
    yield from _storing()
    yield from _transacted()
    yield from _systems()
    yield from _routed()


def _acknowledging() -> Iterator[System]:
    for mode, consumption in product(_MODES, ("receive", "listener")):
        yield _system(ack_mode=f"{mode}_ACKNOWLEDGE", consumption=consumption, actions="recover")
    yield _system("rabbitmq", ack_mode="SESSION_TRANSACTED", messages=2)
    yield _system("rabbitmq", ack_mode="SESSION_TRANSACTED", prefetch=1, messages=2)
    settles = "settle_released settle_failed settle_undeliverable settle_rejected"
    for offered, kept in product(("accepted", "rejected", "released", "undeliverable"), ("dead_letter", "destroy")):
        one = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "outcomes": offered, "attempts_exhausted": kept}
        yield _system(actions=settles, **one)  # type: ignore[arg-type]
        yield _system("qpid-jms", actions=settles, prefetch=1, max_delivery_attempts=2, **one)  # type: ignore[arg-type]
        yield _system(actions=settles, messages=2, faults=0, **one)  # type: ignore[arg-type]
    for mode, after in product(
        ("AUTO", "CLIENT", "PRE", "EXPLICIT_CLIENT"), ("redeliver", "next_message", "swallow", "acknowledge")
    ):
        yield _system(ack_mode=f"{mode}_ACKNOWLEDGE", listener_exception=after, block_on_acknowledge=True, faults=2)


def _cumulative() -> Iterator[System]:
    for scope, after, answered in product(("session", "up_to", "message"), ("next_message", "swallow"), (True, False)):
        yield _system(
            ack_mode="CLIENT_ACKNOWLEDGE",
            client_ack_scope=scope,
            listener_exception=after,
            block_on_acknowledge=answered,
            messages=2,
        )
    for consumption in ("receive", "listener"):
        yield _system(ack_mode="DUPS_OK_ACKNOWLEDGE", consumption=consumption, messages=2)
        yield _system(ack_mode="PRE_ACKNOWLEDGE", consumption=consumption, block_on_acknowledge=True, messages=2)
    for mode in ("AUTO", "CLIENT", "DUPS_OK", "NO"):
        yield _system(ack_mode=f"{mode}_ACKNOWLEDGE", prefetch=1, messages=2)
        yield _system("solace", ack_mode=f"{mode}_ACKNOWLEDGE", prefetch=1, messages=2, send_mode="blocking")


def _publishing() -> Iterator[System]:
    for delivery, send in product(("PERSISTENT", "NON_PERSISTENT", "RELIABLE", "DIRECT"), _SENDS):
        yield _system(delivery_mode=delivery, send_mode=send)
    for send in _SENDS:
        yield _system(send_mode=send, messages=2)
    for mode in ("PER_MESSAGE", "WINDOWED"):
        yield _system("solace", publish_window=9, ack_event_mode=mode, messages=2, actions="ask_at_once")
    windows = product((1, 2), (1, 2, 3), (True, False), ("PER_MESSAGE", "WINDOWED"), (False, True))
    for window, threshold, timer, mode, at_once in windows:
        yield _system(
            publish_window=window,
            confirm_threshold=threshold,
            confirm_timer=timer,
            ack_event_mode=mode,
            ack_immediately=at_once,
            send_mode="asynchronous",
            messages=2,
        )


def _storing() -> Iterator[System]:
    for fault, mode in product(Fault, ("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED")):
        yield _system(ack_mode=mode, of=(fault,))  # alone: two faults that do the same hide each other
    yield _system(journal_sync_non_transactional=False, faults=2)
    yield _system(redelivery_mark_persisted=False, faults=2)
    for persisted in (True, False):
        yield _system(restart_marks_redelivered=True, redelivery_mark_persisted=persisted, faults=2)
    yield _system(queue_durable=False, faults=2)
    for profile, persisted, durable in product(("jms", "ems"), (True, False), (True, False)):
        yield _system(
            profile, max_delivery_attempts=2, redelivery_mark_persisted=persisted, queue_durable=durable, faults=2
        )
    for durable, exhausted in product((True, False), ("dead_letter", "destroy")):
        yield _system(queue_durable=durable, max_delivery_attempts=1, attempts_exhausted=exhausted, faults=2)
        yield _system(queue_durable=durable, time_to_live=True)
        yield _system(queue_durable=durable, delivery_delay=True, redelivery_delay=True)
        yield _system(ack_mode="SESSION_TRANSACTED", queue_durable=durable, delivery_delay=True, redelivery_delay=True)
    for send in ("blocking", "asynchronous"):
        yield _system(resend_in_doubt=True, send_mode=send)
        yield _system(resend_in_doubt=True, send_mode=send, messages=2)
    batches = {"publish_window": 3, "confirm_threshold": 1, "confirm_timer": True, "send_mode": "asynchronous"}
    for mode in ("PER_MESSAGE", "WINDOWED"):
        yield _system(resend_in_doubt=True, ack_event_mode=mode, messages=2, **batches)  # type: ignore[arg-type]
    yield _system(resend_in_doubt=True, duplicate_detection=True, **batches)  # type: ignore[arg-type]
    for delivery, synced, mode in product(
        ("PERSISTENT", "NON_PERSISTENT"), (True, False), ("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED")
    ):
        yield _system(
            resend_in_doubt=True,
            duplicate_detection=True,
            delivery_mode=delivery,
            journal_sync_non_transactional=synced,
            ack_mode=mode,
            faults=2,
        )


def _transacted() -> Iterator[System]:
    yield _system(**_TRANSACTED, journal_sync_transactional=False, faults=2)
    yield _system(**_TRANSACTED, queue_durable=False, faults=2)
    yield _system(**_TRANSACTED, listener_exception="swallow", faults=2)
    yield _system(**_TRANSACTED, prefetch=1, messages=2)
    yield _system(**_TRANSACTED, prefetch=1, messages=2, actions="recover")
    yield _system(**_TRANSACTED, resend_in_doubt=True)
    yield _system(**_TRANSACTED, resend_in_doubt=True, messages=2)
    yield _system("artemis", **_TRANSACTED, resend_in_doubt=True, duplicate_detection=True, actions="rollback")
    for profile in ("jms", "ems", "artemis", "rabbitmq"):
        yield _system(profile, **_TRANSACTED, actions="recover rollback", faults=2)
        yield _system(profile, **_TRANSACTED, messages=2)


def _routed() -> Iterator[System]:
    ids: Mapping[str, Any] = {"resend_in_doubt": True, "duplicate_detection": True}
    for away, mode in product((0, 1), ("NO_ACKNOWLEDGE", "SESSION_TRANSACTED")):
        routed: Mapping[str, Any] = {"subscriptions": 2, "non_durable": away, "destination": "durable_subscription"}
        yield _system(of=(Fault.BROKER_CRASH,), ack_mode=mode, **routed)
        yield _system(of=(Fault.BROKER_CRASH,), ack_mode=mode, duplicate_detection=True, **routed)
        yield _system(of=(Fault.PRODUCER_LINK_LOSS,), ack_mode=mode, **routed, **ids)


def _systems() -> Iterator[System]:
    for profile, delivery in product(Profile, ("PERSISTENT", "NON_PERSISTENT")):
        yield _system(profile, delivery_mode=delivery, actions="taken_elsewhere")
    yield _system("artemis", ack_mode="PRE_ACKNOWLEDGE")
    yield _system("qpid-jms", ack_mode="PRE_ACKNOWLEDGE")
    yield _system("artemis", send_mode="asynchronous")


def panel(specification: Specification) -> tuple[System, ...]:
    """The systems that look at each mutant: those of :func:`_panel` that their profiles do not refuse."""
    return tuple(system for system in dict.fromkeys(_panel()) if _exists(system, specification))


def _exists(system: System, specification: Specification) -> bool:
    try:
        specification.configure(system.profile, dict(system.settings))
    except InputError:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One row (of one machine, line and event, under all the states that it stands for) and what is done to it."""

    machine: str
    state: str
    line: int
    event: str
    deed: str

    def __str__(self) -> str:
        return f"{self.machine}.{self.state} {self.event}: {self.deed}"


@dataclasses.dataclass(frozen=True)
class Noticed:
    """A mutant and what came of it: how it was noticed, and the anomalies that it brought about."""

    mutant: Mutant
    decides: bool
    how: str | None
    anomalies: frozenset[str]


_DEEDS = {RowKind.TO: ("deleted", "redirected"), RowKind.IGNORE: ("refused",), RowKind.REFUSE: ("allowed",)}


def _groups(machine: Machine) -> Iterator[tuple[int, EventRef, RowKind, str]]:
    """Each row once for each of its events: line, event, move, and its state (``otherwise`` if it has several)."""
    states: dict[tuple[int, EventRef, RowKind], list[str]] = defaultdict(list)
    for row in machine.rows():
        states[row.line, row.event, row.kind].append(row.state)
    for (line, event, move), of in states.items():
        yield line, event, move, of[0] if len(of) == 1 else "otherwise"


def mutants(specification: Specification) -> Iterator[Mutant]:
    """Every mutant of every machine (the machines of properties are no rows of a system)."""
    for machine in specification.machines.values():
        for line, event, move, state in _groups(machine):
            for deed in _DEEDS[move]:
                if machine.counter is None or deed != "redirected":
                    yield Mutant(machine.name, state, line, str(event), deed)


def apply(specification: Specification, mutant: Mutant) -> Specification:
    """The specification with the mutant in it."""
    machine = specification.machines[mutant.machine]
    cells = {place: _mutated(machine, mutant, rows) for place, rows in machine.cells.items()}
    changed = dataclasses.replace(machine, cells=cells)
    return dataclasses.replace(specification, machines={**specification.machines, machine.name: changed})


def _mutated(machine: Machine, mutant: Mutant, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(
        _changed(machine, mutant, row) if (row.line, str(row.event)) == (mutant.line, mutant.event) else row
        for row in rows
    )


def _changed(machine: Machine, mutant: Mutant, row: Row) -> Row:
    if mutant.deed in {"deleted", "refused"}:
        return dataclasses.replace(row, kind=RowKind.REFUSE, target=row.state)
    if mutant.deed == "allowed":
        return dataclasses.replace(row, kind=RowKind.IGNORE, target=row.state)
    others = [state for state in machine.states if state != row.target]
    return dataclasses.replace(row, target=others[(machine.states.index(row.target)) % len(others)]) if others else row


Ints: TypeAlias = npt.NDArray[np.int64]
Signature: TypeAlias = tuple[int, int, frozenset[str]]


def signature(specification: Specification, system: System, limit: int | None = None) -> Signature:
    """States, transitions and anomalies of a search that ends at ``limit`` states."""
    found = explore.explore(system.network(specification), explore.SearchOptions(max_states=limit))
    return found.states, found.transitions, frozenset(found.witnesses)


def deciding(network: Network) -> set[tuple[str, int, str]]:
    """The rows (machine, line, event) that decide something: no other participant refuses the event there."""
    packed = pack(network)
    with Search(packed) as search:
        while search.has_work():
            search.expand_batch()
        columns = list(np.asarray(list(search.all_states()), np.int64).T)
    table = np.asarray(packed.table, np.int64)
    found: set[tuple[str, int, str]] = set()
    for number, event in enumerate(network.events):
        places = range(packed.first[number], packed.first[number + 1])
        refusals = [table[packed.offset[p] + columns[packed.instance[p]]] < 0 for p in places]
        total = np.sum(refusals, axis=0)
        for refused, part in zip(refusals, event.participants, strict=True):
            fsm = network.instances[part.instance].fsm
            for state in np.unique(columns[part.instance][total - refused == 0]):
                row = fsm.rows[fsm.states[state], part.event]
                found.add((fsm.name, row.line, str(part.event)))
        found |= _let_pass(network, event, columns, total == 0)
    return found


def _let_pass(
    network: Network, event: NetworkEvent, columns: Sequence[Ints], happens: npt.NDArray[np.bool_]
) -> set[tuple[str, int, str]]:
    """The rows of machines that let ``event`` pass in every state, and so are none of its participants."""
    taking_part = {part.instance for part in event.participants}
    found: set[tuple[str, int, str]] = set()
    for number, instance in enumerate(network.instances):
        for called in instance.fsm.alphabet if number not in taking_part else ():
            if called.name == event.name and concerns(called.relation, instance.place, event.place):
                for state in np.unique(columns[number][happens]):
                    row = instance.fsm.rows[instance.fsm.states[state], called]
                    found.add((instance.fsm.name, row.line, str(called)))
    return found


@dataclasses.dataclass(frozen=True)
class _Yardstick:
    """The tables as they are: each system's signature, and which systems each row decides something in."""

    specification: Specification
    systems: tuple[System, ...]
    signatures: tuple[Signature, ...]
    deciding: Mapping[tuple[str, int, str], Sequence[int]]


@functools.cache
def yardstick(most_states: int) -> _Yardstick:
    """Made once in each process; of the panel's systems those with no more states than ``most_states``."""
    specification = shipped()
    measured = {system: signature(specification, system, most_states + 1) for system in panel(specification)}
    small = {system: found for system, found in measured.items() if found[0] <= most_states}
    systems, signatures = tuple(small), tuple(small.values())
    by_row: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    for number in sorted(range(len(systems)), key=lambda n: signatures[n][0]):
        for row in deciding(systems[number].network(specification)):
            by_row[row].append(number)
    return _Yardstick(specification, systems, signatures, by_row)


_LARGEST = 300_000
"""States: larger systems of the panel take more memory than a machine for tests has."""


def trial(mutant: Mutant, most_states: int = _LARGEST) -> Noticed:
    """Let the panel look at one mutant, smallest system first, until one notices."""
    known = yardstick(most_states)
    systems = known.deciding.get((mutant.machine, mutant.line, mutant.event), ())
    changed = apply(known.specification, mutant)
    for number in systems:
        before = known.signatures[number]
        after = signature(changed, known.systems[number], 4 * before[0] + 1000)
        if after != before:
            new = after[2] - before[2]
            how = f"it brings {', '.join(sorted(new))}" if new else "the space has another size"
            return Noticed(mutant, decides=True, how=how, anomalies=frozenset(new))
    return Noticed(mutant, decides=bool(systems), how=None, anomalies=frozenset())


def score() -> list[Noticed]:
    """Try every mutant, in parallel."""
    everyone = list(mutants(shipped()))
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:  # says so if a process dies
        return list(pool.map(trial, everyone, chunksize=16))


def survivors() -> Mapping[str, str]:
    """The mutants that nobody can notice, each with the reason why it is the same system."""
    text = (DATA / "survivors.yaml").read_text(encoding="utf-8")
    return {str(name): str(reason) for name, reason in yaml.safe_load(text).items()}


def main() -> int:
    """Print the score, what nobody noticed, and the properties that a mutant was seen to break."""
    found, excused = score(), survivors()
    decisive = [each for each in found if each.decides]
    alive = [each for each in decisive if each.how is None]
    broken = frozenset[str]().union(*(each.anomalies for each in found))
    out = sys.stdout.write
    out(f"{len(found)} mutants; {len(decisive)} of rows that decide something, {len(decisive) - len(alive)} noticed\n")
    out(f"brought about by some mutant: {', '.join(sorted(broken))}\n")
    stale = excused.keys() - {str(each.mutant) for each in alive}
    for name in sorted(stale):
        out(f"is noticed, and need not be excused any more: {name}\n")
    for each in alive:
        out(f"survives: {each.mutant} ({excused.get(str(each.mutant), 'NO REASON IS KNOWN')})\n")
    for each in found:
        if not each.decides:
            out(f"decides nothing: {each.mutant}\n")
    unknown = {str(each.mutant) for each in alive} - excused.keys()
    return int(bool(stale or unknown) or len(alive) > 0.05 * len(decisive))


if __name__ == "__main__":
    sys.exit(main())
