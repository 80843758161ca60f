"""The explorer against a plain search, over drawn networks of every shape: ``python -m model_tests.searches``.

Each is searched by ``support/checker/plain_search.py``, then by the explorer in every way that it has: plain and
compiled code, with and without reductions, by one processor and by several, the way of Spark, and stopped at limits.
States and their order, transitions, depths, verdicts and ways have to be the same; where a search is reduced or
stopped, nothing may be there that the plain search has not found.  How much is done at a time is drawn too, so that
rooms are too small, levels are divided and states wait in small networks.

Prints what was compared, by shape, and every difference; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from ackfsm.checking.explore import Origin, SearchOptions, Slicer, pack
from ackfsm.checking.explore.reduction.ample import compute_ample_sets
from ackfsm.checking.explore.search.distributed import StateSet, SuccessorWorker
from ackfsm.checking.explore.search.kernel_ample import NO_POR, AmpleSets
from ackfsm.checking.explore.search.options import Tuning
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.explore.search.self_check import self_check
from ackfsm.checking.network import Network
from ackfsm.terms import DefectError
from model_tests.support.checker.drawn_networks import Shape, drawn, network
from model_tests.support.checker.plain_search import Searched, State, TooLargeError, breadth_first, rests, shows

MOST_STATES = 3_000
MOST_STEPS = 100_000
"""States times events of a network: what the plain search can do in a tenth of a second or two."""

ITSELF = "the search says itself:"

Tally = collections.Counter[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of searching."""

    compiled: bool = False
    every_step: bool = True
    whole: bool = True
    """Also the machines and events that can never move."""
    partial_order: bool = False
    workers: int = 1
    tuning: Tuning = dataclasses.field(default_factory=Tuning)
    max_states: int | None = None
    max_memory: int | None = None


@dataclasses.dataclass(frozen=True)
class Compared:
    """One network: what was seen of its shape, and what differs."""

    seed: int
    tally: Tally
    differences: tuple[str, ...]


def fitting(shape: Shape, most: int = MOST_STATES) -> tuple[Network, Searched]:
    """The network of that shape with what is in it; with less fuel if it has too many states."""
    for fuel, ticks in ((shape.fuel, shape.ticks), (3, 20), (1, 4), (0, 1), (0, 0)):
        made = network(dataclasses.replace(shape, fuel=fuel, ticks=ticks))
        try:
            return made, breadth_first(made, min(most, MOST_STEPS // len(made.events)))
        except TooLargeError:
            continue
    raise AssertionError(shape, "without fuel nothing happens")


def ways(shape: Shape, expected: Searched) -> Iterator[Way]:
    """The ways in which a network of that shape is searched."""
    draw = random.Random(shape.seed)
    states = len(expected.depth)

    def tuning() -> Tuning:
        return Tuning(
            plain_states=draw.choice([1, 10]),
            parallel_states=draw.choice([1, 2, 30, 10**9]),
            most_workers=draw.choice([2, 8]),
            plain_chunk=draw.choice([1, 7, 256]),
            chunk=draw.choice([16, 100, 1 << 12]),
            plain_block=draw.choice([1, 16]),
            block=draw.choice([1, 3, 128]),
            first_bits=draw.choice([1, 2, 4, 4]),
        )

    plain = dataclasses.replace(tuning(), plain_states=None)
    yield Way(tuning=plain)
    yield Way(tuning=plain, every_step=False)
    yield Way(tuning=plain, whole=False, every_step=False)
    yield Way(tuning=plain, partial_order=True)
    for workers in (2, 5):
        yield Way(compiled=True, tuning=dataclasses.replace(tuning(), parallel_states=1), workers=workers)
        yield Way(compiled=True, tuning=dataclasses.replace(tuning(), parallel_states=10), every_step=False, workers=2)
        yield Way(tuning=tuning(), whole=False, every_step=False, workers=workers)
    yield Way(compiled=True, tuning=tuning(), partial_order=True, workers=2)
    yield Way(compiled=True, tuning=Tuning(), whole=False, every_step=False)
    for compiled in (False, True):
        some = draw.randint(1, max(1, states))
        limited = dataclasses.replace(tuning(), plain_states=1 if compiled else None)
        yield Way(compiled=compiled, tuning=limited, max_states=some, every_step=draw.random() < 0.5)
        memory = draw.randint(1, 40 * states + 10_000)
        yield Way(compiled=compiled, tuning=limited, max_memory=memory, whole=False)


class Made:
    """A network as it is searched: its machines, what they are packed to, and its events."""

    def __init__(self, one: Network) -> None:
        least = Slicer(one).slice()
        self.whole = Origin.whole(one), pack(one)
        self.least = least.origin, least.packed

    @functools.cached_property
    def ample(self) -> AmpleSets:
        """The ample sets."""
        return compute_ample_sets(self.whole[1])


class Seen:
    """What one search has found, and how it went."""

    def __init__(self, made: Made, way: Way, tally: Tally) -> None:
        self.states: list[tuple[int, ...]] = []
        self.origin, packed = made.whole if way.whole else made.least
        ample = made.ample if way.partial_order else NO_POR
        options = SearchOptions(
            max_states=way.max_states,
            max_memory=way.max_memory,
            workers=way.workers,
            compiled=way.compiled,
            every_step=way.every_step,
            tuning=way.tuning,
        )
        with Search(packed, options, ample) as search:
            rounds = 0
            while search.has_work() and search.found_states <= 2 * MOST_STATES:
                words = search.layout.words
                search.expand_batch()
                pieces = [int(count) for count in search.buffers.count] if search.divided else [0]
                rounds += 1
                if rounds > 1_000 + 100 * search.found_states:
                    raise AssertionError("the search does not get on")
                tally["fewer words"] += search.layout.words < words
                tally["more words"] += search.layout.words > words
                tally["several lanes"] += sum(map(bool, pieces)) > 1
                tally["states that wait"] += max(pieces) > 1
                tally["lanes that are lost"] += search.lanes_lost
            self.defect = _self_checked(search, self.origin) if search.complete else None
            self.states = [*map(tuple, state_table(search).tolist())]
            self.count, self.transitions, self.depth = search.found_states, search.transitions, search.depth
            self.complete, self.stopped_by = search.complete, search.stopped_by
            self.witnesses = {
                anomaly: tuple(self.origin.events[event] for event in search.path(place))
                for anomaly, place in zip(packed.anomalies, search.first_violations, strict=True)
                if place is not None
            }
            tally["several words"] += search.layout.words > 1
            tally["several masks"] += search.system.masks > 1
            tally["local states of several words"] += search.system.local_words > 1
            tally["plain, then compiled"] += search.arrays.is_compiled and not way.compiled
            tally[f"stopped by {self.stopped_by}"] += self.stopped_by is not None
            tally["searches"] += 1


def _self_checked(search: Search, origin: Origin) -> str | None:
    """What the search itself has to say against what it found."""
    try:
        self_check(search, origin)
    except DefectError as error:
        return str(error)
    return None


def _numbered(state: State, origin: Origin) -> tuple[int, ...]:
    """The numbers that a search has for the state of each machine that it keeps."""
    return tuple(number[state[i]] for i, number in origin.numbers)


def differences(one: Network, expected: Searched, way: Way, seen: Seen) -> Iterator[str]:
    """What is wrong with what was seen."""
    named = {_numbered(state, seen.origin): state for state in expected.depth}
    if len(set(seen.states)) != len(seen.states) or len(seen.states) != seen.count:
        yield f"{seen.count} states, {len(seen.states)} in the list, {len(set(seen.states))} of them different"
    if strange := set(seen.states) - named.keys():
        yield f"{len(strange)} states that cannot be reached"
    for anomaly, steps in seen.witnesses.items():
        if not shows(one, steps, anomaly):
            yield f"no way to {anomaly}"
    if seen.defect is not None:
        yield f"{ITSELF} {seen.defect}"
    if seen.complete != (seen.stopped_by is None):
        yield f"complete is {seen.complete}, stopped by {seen.stopped_by}"
    if not seen.complete:
        yield from _stopped(expected, way, seen)
    elif way.partial_order:
        yield from _reduced(one, expected, seen, {named[state] for state in seen.states if state in named})
    else:
        yield from _whole(expected, way, seen)


def _whole(expected: Searched, way: Way, seen: Seen) -> Iterator[str]:
    nearest = {anomaly: len(steps) for anomaly, steps in seen.witnesses.items()}
    found = (len(set(seen.states)), seen.transitions, seen.depth, nearest)
    wanted = (len(expected.depth), expected.transitions, max(expected.depth.values()), expected.anomalies)
    if found != wanted:
        yield f"found {found}, there are {wanted}"
    if way.whole and way.every_step and seen.states != [_numbered(state, seen.origin) for state in expected.depth]:
        yield "the states come in another order"


def _reduced(one: Network, expected: Searched, seen: Seen, found: Collection[State]) -> Iterator[str]:
    if seen.witnesses.keys() != expected.anomalies.keys():
        yield f"found {sorted(seen.witnesses)}, there are {sorted(expected.anomalies)}"
    if missing := [state for state in expected.depth if state not in found and rests(one, state)]:
        yield f"{len(missing)} states at rest are left out"
    if any(len(steps) < expected.anomalies.get(anomaly, 0) for anomaly, steps in seen.witnesses.items()):
        yield "a way is shorter than the shortest"


def _stopped(expected: Searched, way: Way, seen: Seen) -> Iterator[str]:
    most = way.max_states
    if seen.count > len(expected.depth) or (most is not None and seen.count <= most):
        yield f"stopped with {seen.count} states by {way}"
    if way.max_states is None and way.max_memory is None:
        yield f"stopped by {seen.stopped_by} without a limit"
    for anomaly, steps in seen.witnesses.items():
        if len(steps) < expected.anomalies.get(anomaly, 0):
            yield f"the way to {anomaly} is shorter than the shortest"


def by_levels(made: Made, expected: Searched) -> Iterator[str]:
    """What is wrong with what is found as Spark finds it: batches of states, spelled out, to what they lead to."""
    _, packed = made.least
    step = SuccessorWorker(packed)
    known = StateSet(step.words)
    known.add(step.first())
    begin, depth, transitions = 0, 0, 0
    nearest: dict[str, int] = {}
    while begin < len(known):
        level, begin = known.states[begin:].copy(), len(known)
        step.load(level)
        for anomaly, _ in step.anomalies_among((1 << len(packed.anomalies)) - 1):
            nearest.setdefault(packed.anomalies[anomaly], depth)
        for states, parents in step.successors():
            if len(parents) and not (parents.min() >= 0 and parents.max() < len(level)):
                yield "a state comes from nowhere"
            known.add(states)
        transitions += step.transitions
        depth += 1
    if len(np.unique(known.states, axis=0)) != len(known):
        yield "Spark has states twice"
    found = (len(known), transitions, depth - 1, nearest)
    wanted = (len(expected.depth), expected.transitions, max(expected.depth.values()), expected.anomalies)
    if found != wanted:
        yield f"Spark found {found}, there are {wanted}"


def compared(
    shape: Shape, most: int = MOST_STATES, *, only: Callable[[Way], bool] = lambda _: True, some: int | None = None
) -> Compared:
    """A network of that shape searched in all ways, in those that are wanted ``only``, or in ``some`` of them."""
    tally = Tally()
    one, expected = fitting(shape, most)
    made, wrong = Made(one), list[str]()
    wanted: list[Way | None] = [*filter(only, ways(shape, expected)), *([None] if only(Way(compiled=True)) else [])]
    for way in wanted if some is None else random.Random(shape.seed).sample(wanted, some):
        if way is None:
            tally["searches as on Spark"] += 1
            wrong += by_levels(made, expected)
        else:
            wrong += [f"{way}: {what}" for what in differences(one, expected, way, Seen(made, way, tally))]
    tally["networks"] += 1
    tally["states"] += len(expected.depth)
    tally["networks of 16 components and more"] += shape.components > 15
    tally["networks with an anomaly"] += bool(expected.anomalies)
    tally["networks with several watchers"] += shape.watchers > 1
    tally["networks with hundreds of local states"] += max((*shape.rounds, *shape.shuffled, 1)) > 100
    tally["networks of one state"] += len(expected.depth) == 1
    return Compared(shape.seed, tally, tuple(wrong))


def _of_seed(seed: int, some: int | None) -> Compared:
    most = random.Random(seed).choice([100, 100, 300, 300, 1000, MOST_STATES])
    return compared(drawn(seed), most, some=some)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as many networks as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--ways", type=int, help="search each in so many of the ways, drawn too (default: in all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args(arguments)
    begun, tally, wrong = time.perf_counter(), Tally(), 0
    seeds = range(asked.first, asked.first + asked.networks)
    spawning = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(asked.jobs, mp_context=spawning) as pool:
        for done, one in enumerate(pool.map(functools.partial(_of_seed, some=asked.ways), seeds, chunksize=8), start=1):
            tally += one.tally
            wrong += bool(one.differences)
            for difference in one.differences[:3]:
                sys.stdout.write(f"network {one.seed}: {difference}\n")
            if done % 1_000 == 0:
                sys.stdout.write(f"{done:,} networks, {wrong} different ({time.perf_counter() - begun:.0f} s)\n")
                sys.stdout.flush()
    for what, count in sorted(tally.items()):
        sys.stdout.write(f"{count:>12,} {what}\n")
    sys.stdout.write(f"{wrong:>12,} networks in which something differs\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
