"""How fast the explorer is, beside Spin, TLC and minicheck on the same systems, one processor each.

Run ``python -m model_tests.benchmarks.explore`` (``--help`` tells more).  Each side searches the whole space and must
find the same states and transitions, else the benchmark fails.  Seconds are of processor time, medians of runs in turn.
The rivals read what ``ackfsm export`` writes; minicheck gets the composed system as a function over integers.  Where
Spin, gcc, TLC or minicheck is missing, its line is.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import SearchOptions, Slicer, explore_packed
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Fault
from model_tests.benchmarks.rivals import SPIN_DEPTH, has_spin, has_tlc, spin_verifier, tlc_command

__all__ = ["main", "measured"]

SYSTEMS: Mapping[str, tuple[Mapping[str, object], Mapping[str, Any]]] = {
    "1 message": ({}, {"messages": 1}),
    "2 messages": ({}, {"messages": 2}),
    "3 messages": ({}, {"messages": 3}),
    "3 messages, CLIENT": ({"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"messages": 3}),
    "a second copy, any faults": ({"resend_in_doubt": True}, {"messages": 1, "max_faults": None}),
    "4 messages": ({}, {"messages": 4}),
    "2 messages, any faults": ({}, {"messages": 2, "max_faults": None}),
    "4 messages, CLIENT": ({"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"messages": 4}),
}
"""Settings of the profile jms, and bounds; every fault may happen."""

_TLC_STATES = 300_000
_MINICHECK_STATES = 20_000
"""What each rival is asked for: more takes it minutes."""


@dataclasses.dataclass(frozen=True)
class Search:
    """What one search found and took: seconds of processor time, bytes for each state (if it tells)."""

    states: int
    transitions: int
    seconds: float
    bytes: float | None = None


def ackfsm(network: Network, workers: int) -> Search:
    """The kernel; seconds by the clock if there are several workers."""
    clock = time.process_time if workers == 1 else time.perf_counter
    begun = clock()
    whole = Slicer(network).slice()
    found = explore_packed(whole.packed, whole.events, SearchOptions(workers=workers))
    return Search(found.states, found.transitions, clock() - begun, found.bytes / found.states)


def spin(network: Network, states: int) -> Callable[[], Search] | None:
    """Spin's verifier, compiled once; its hash table has one to two places for each of the ``states``."""
    if not has_spin():
        return None
    folder = Path(tempfile.mkdtemp(prefix="ackfsm-spin-"))
    verifier = spin_verifier(network, folder)

    def search() -> Search:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = subprocess.run(
            [verifier, "-E", f"-m{SPIN_DEPTH}", f"-w{states.bit_length()}"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found, transitions = _number(r"(\d+) states, stored", told), _number(r"(\d+) transitions", told) - 1
        taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        table = re.search(r"([\d.]+)\s+memory used for hash table", told)
        total = re.search(r"([\d.]+)\s+total actual memory usage", told)
        stack = re.search(r"([\d.]+)\s+memory used for DFS stack", told)
        if not (table and total and stack):
            raise SystemExit(f"Spin did not tell what memory it took:\n{told}")
        memory = float(total[1]) - float(table[1]) - float(stack[1])  # the states alone: its tables are of a fixed size
        return Search(found, transitions, taken, memory * 2**20 / found)

    return search


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"no {pattern!r} in what the checker said:\n{text}")
    return int(found[1].replace(",", ""))


def tlc(network: Network) -> Callable[[], Search] | None:
    """TLC with one worker; its start is part of it."""
    if not has_tlc():
        return None
    folder = Path(tempfile.mkdtemp(prefix="ackfsm-tlc-"))
    command = tlc_command(network, folder, "4g")

    def search() -> Search:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        generated = _number(r"([\d,]+) states generated, [\d,]+ distinct", told.rsplit("Progress", 1)[-1])
        distinct = _number(r"states generated, ([\d,]+) distinct", told.rsplit("Progress", 1)[-1])
        return Search(distinct, generated - 1, taken)

    return search


def minicheck(network: Network) -> Callable[[], Search] | None:
    """The nearest rival in Python, on the composed system; it does not count transitions, so its function does."""
    if importlib.util.find_spec("minicheck") is None:
        return None
    from minicheck import Protocol, check_safety

    counted, packed = 0, Slicer(network).slice().packed
    columns = [
        [(packed.instance[p], packed.table[packed.offset[p] :]) for p in range(packed.first[e], packed.first[e + 1])]
        for e in range(len(packed.free))
    ]

    def transitions(state: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        nonlocal counted
        after = []
        for event, participants in enumerate(columns):
            child = list(state)
            for machine, column in participants:
                child[machine] = column[state[machine]]
                if child[machine] < 0:
                    break
            else:
                after.append((event, tuple(child)))
        counted += len(after)
        return after

    names = tuple(map(str, range(len(packed.size))))
    model = Protocol("ackfsm", False, names, tuple(packed.initial), transitions, {"any": lambda _: True})  # noqa: FBT003

    def search() -> Search:
        nonlocal counted
        counted, begun = 0, time.process_time()
        found = check_safety(model, max_states=10**9)
        return Search(found["reachable_states"], counted, time.process_time() - begun)

    return search


def measured(name: str, repeats: int) -> dict[str, Search]:
    """The medians of all sides that are there, for one system."""
    specification = tables.load()
    settings, bounds = SYSTEMS[name]
    network = compose(
        specification, specification.configure("jms", settings), Bounds(faults=frozenset(Fault), **bounds)
    )
    first = explore.explore(network)
    sides: dict[str, Callable[[], Search] | None] = {
        "ackfsm": lambda: ackfsm(network, 1),
        "ackfsm, 2 cores": lambda: ackfsm(network, 2),
        "Spin": spin(network, first.states),
        "TLC": tlc(network) if first.states <= _TLC_STATES else None,
        "minicheck": minicheck(network) if first.states <= _MINICHECK_STATES else None,
    }
    runs: dict[str, list[Search]] = {side: [] for side, search in sides.items() if search is not None}
    for _ in range(repeats):
        for side, taken in runs.items():
            search = sides[side]
            assert search is not None
            taken.append(search())
    for side, taken in runs.items():
        for run in taken:
            if (run.states, run.transitions) != (first.states, first.transitions):
                raise SystemExit(f"{side} found {run.states:,} states and {run.transitions:,} transitions of {name!r}")
    return {
        side: dataclasses.replace(taken[0], seconds=statistics.median(run.seconds for run in taken))
        for side, taken in runs.items()
    }


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="only this one (default: all)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    results = {}
    for name in chosen.system or SYSTEMS:
        results[name] = measured(name, chosen.repeats)
        if not chosen.json:
            _print(name, results[name])
    if chosen.json:
        json.dump(
            {name: {side: vars(run) for side, run in sides.items()} for name, sides in results.items()}, sys.stdout
        )


def _print(name: str, sides: Mapping[str, Search]) -> None:
    ours = sides["ackfsm"]
    sys.stdout.write(f"\n{name}: {ours.states:,} states, {ours.transitions:,} transitions\n")
    sys.stdout.write(f"{'':18}{'seconds':>10}{'states/s':>14}{'time, of ours':>15}{'bytes/state':>14}\n")
    for side, run in sides.items():
        times = f"{run.seconds / ours.seconds:.1f} x" if run is not ours else ""
        memory = f"{run.bytes:.0f}" if run.bytes is not None else ""
        sys.stdout.write(f"{side:18}{run.seconds:>10.2f}{run.states / run.seconds:>14,.0f}{times:>15}{memory:>14}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
