"""The tables against the oracle of two messages, on drawn systems: ``python -m model_tests.two_messages``.

A system is a configuration, one or two sessions, one or two faults of drawn kinds; every second one is asked for the
facts of :class:`~model_tests.support.spec.oracle_two.Fact` too.  Both sides search it to the end, and have to reach the
same; a difference is printed with both witnesses, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import itertools
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from ackfsm.checking import explore
from ackfsm.checking.explore import Exploration
from ackfsm.checking.network import Bounds, Observer, compose
from ackfsm.tables import Specification
from ackfsm.terms import (
    AckMode,
    AckScope,
    Configuration,
    DeliveryCountFrom,
    DeliveryMode,
    Fault,
    ListenerException,
)
from model_tests.support.spec import oracle_two
from model_tests.support.spec.oracle import Answer
from model_tests.support.spec.oracle_two import Fact, Setting
from model_tests.support.tables import shipped

__all__ = ["SETTINGS", "Compared", "System", "compared", "drawn", "main"]

Tallied = tuple[Counter[str], str | None]
"""What is counted of one system, and the difference if there is one."""

SETTINGS: Mapping[str, Sequence[object]] = {
    "delivery_mode": [DeliveryMode.PERSISTENT, DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT],
    "ack_mode": oracle_two.ACK_MODES,
    "consumption": ["receive", "listener"],
    "client_ack_scope": list(AckScope),
    "block_on_acknowledge": [True, False],
    "redelivery_mark_persisted": [True, False],
    "restart_marks_redelivered": [False, False, True, "maybe"],
    "listener_exception": list(ListenerException),
    "rollback_requeues": [True, False],
    "delivery_count_from": [DeliveryCountFrom.DISPATCH, DeliveryCountFrom.DELIVERY],  # not which was first
}
"""What is drawn, with what weight."""


@dataclasses.dataclass(frozen=True)
class System:
    """What both sides are asked about."""

    configuration: Configuration
    faults: frozenset[Fault]
    max_faults: int
    sessions: int
    facts: bool = False

    def __str__(self) -> str:
        """As the command line has it, as near as it goes."""
        settings = dataclasses.asdict(Setting.of(self.configuration)).items()
        bounds = f"--messages 2 --consumers {self.sessions} --max-faults {self.max_faults}"
        faults = "".join(f" --fault {fault}" for fault in sorted(self.faults))
        return f"{bounds}{faults}" + "".join(f" --set {key}={value}" for key, value in settings)


@dataclasses.dataclass(frozen=True)
class Compared:
    """What both sides say of a system."""

    system: System
    tables: Exploration
    oracle: Answer

    @property
    def agree(self) -> bool:
        """Whether both reach the same."""
        return self.oracle.reachable == self.tables.witnesses.keys()

    def __str__(self) -> str:
        """Each difference with the witness of the side that has it."""
        ways: dict[str, dict[str, Sequence[str]]] = {
            "tables": {name: [event.label for event in steps] for name, steps in self.tables.witnesses.items()},
            "oracle": {name: steps for name, steps in self.oracle.anomalies.items() if steps is not None},
        }
        lines = [str(self.system)]
        for side, other in itertools.permutations(ways):
            only = sorted(ways[side].keys() - ways[other].keys())
            lines += [f"  only the {side}: {name}: {' '.join(ways[side][name])}" for name in only]
        return "\n".join(lines)


def compared(system: System, specification: Specification | None = None) -> Compared:
    """What the tables (those of the project, if no others are given) and the oracle say of ``system``."""
    tables = _tables_say(system, specification or shipped())
    if not tables.complete:
        raise AssertionError(f"the search of {system} stopped")
    return Compared(system, tables, _oracle_says(system))


def _tables_say(system: System, specification: Specification) -> Exploration:
    observers: list[Observer] = [
        (prop.anomaly, monitor)
        for prop in specification.properties.values()
        for monitor in prop.monitors
        if prop.anomaly in oracle_two.ANOMALIES
    ]
    if system.facts:
        observers += [(fact, specification.monitors[fact]) for fact in _facts(system)]
    bounds = Bounds(messages=2, consumers=system.sessions, faults=system.faults, max_faults=system.max_faults)
    return explore.explore(compose(specification, system.configuration, bounds, observers))


def _facts(system: System) -> list[StrEnum]:
    """Those that both sides can see.

    The tables have no second consumer to complete a message where there is one; the oracle acknowledges within a
    transaction as the application completes, which nobody can tell from later.
    """
    if system.sessions > 1:
        return [Fact.TWO_REPEATED, Fact.COMPLETED_BY_TWO]
    transacted = system.configuration.ack_mode is AckMode.SESSION_TRANSACTED
    return [Fact.TWO_REPEATED] if transacted else [Fact.TWO_REPEATED, Fact.ACKNOWLEDGED_AHEAD]


def _oracle_says(system: System) -> Answer:
    return oracle_two.explore(
        Setting.of(system.configuration),
        system.faults,
        system.max_faults,
        sessions=system.sessions,
        facts=_facts(system) if system.facts else (),
    )


def drawn(seed: int, *, sessions: int | None = None, max_faults: int | None = None) -> System:
    """A system of its own for each seed; what is given is not drawn."""
    draw = random.Random(seed)
    settings = {key: draw.choice(values) for key, values in SETTINGS.items()}
    kinds = frozenset(draw.sample(oracle_two.FAULTS, draw.choice([1, 1, 2])))
    return System(
        shipped().configure("jms", settings),
        kinds,
        max_faults or draw.choice([1, 2]),
        sessions or draw.choice([1, 1, 2]),
        facts=draw.choice([False, True]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many systems as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--sessions", type=int, choices=[1, 2], help="default: drawn")
    parser.add_argument("--max-faults", type=int, choices=[1, 2], help="default: drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args(arguments)
    begun, tally, wrong = time.perf_counter(), Counter[str](), 0
    one = functools.partial(_of_seed, sessions=asked.sessions, max_faults=asked.max_faults)
    seeds = range(asked.first, asked.first + asked.systems)
    for seed, (counted, difference) in zip(seeds, _all(one, seeds, asked.jobs), strict=True):
        tally += counted
        wrong += difference is not None
        if difference is not None:
            sys.stdout.write(f"system {seed}: {difference}\n")
            sys.stdout.flush()
    for what, count in tally.items():
        sys.stdout.write(f"{count:>12,} {what}\n")
    sys.stdout.write(f"{wrong:>12,} systems of which they say different things\n")
    sys.stdout.write(f"{time.perf_counter() - begun:>12,.0f} s\n")
    return int(wrong > 0)


def _all(one: Callable[[int], Tallied], seeds: Sequence[int], jobs: int) -> Iterator[Tallied]:
    if jobs == 1:
        yield from map(one, seeds)
        return
    spawning = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=spawning) as pool:
        yield from pool.map(one, seeds, chunksize=4)


def _of_seed(seed: int, sessions: int | None, max_faults: int | None) -> Tallied:
    one = compared(drawn(seed, sessions=sessions, max_faults=max_faults))
    kinds = f"{one.system.sessions} session(s), {one.system.max_faults} fault(s)"
    tally = Counter({"systems": 1, f"of them with {kinds}": 1, "states of the tables": one.tables.states})
    tally["states of the oracle"] = one.oracle.states
    return tally, None if one.agree else str(one)


if __name__ == "__main__":
    sys.exit(main())
