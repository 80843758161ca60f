"""The rows that an exploration sends through Spark: many states each, or metadata.

A row of the schema :data:`DDL` either has in ``states`` (64-bit words, little-endian) a ``number`` of states of one
``bucket``, or is metadata: its bucket is :data:`METADATA`, and it has a ``number`` of transitions or, in ``states``,
the one state that ``place`` names.  Thousands of states in a row cost Spark no more than one does.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from ackfsm.checking.explore import PackedNetwork
from ackfsm.checking.explore.search.distributed import (
    States,
    StateSet,
    SuccessorWorker,
    lexicographic_min,
    state_hashes,
)
from ackfsm.spark._levels import METADATA, MIXED, known_states, states_in

Batches: TypeAlias = Iterator[pa.RecordBatch]

SCHEMA: Final = pa.schema(
    [("bucket", pa.int32()), ("place", pa.int32()), ("number", pa.int64()), ("states", pa.binary())]
)
DDL: Final = "bucket int, place int, number bigint, states binary"

_CHUNK: Final = 1 << 13
"""States in a row at most."""

_BATCH: Final = 1 << 16
"""States that are expanded together: what they lead to is sent once, however often they do."""

_BUCKET_SEED: Final = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """The network that is explored; equal if the name of the reduced network (``key``) is."""

    key: str
    packed: PackedNetwork = dataclasses.field(compare=False, repr=False)

    def step(self) -> SuccessorWorker:
        """What expands its states: one in each process, with all that it has learnt."""
        return _step(self)


@functools.lru_cache(maxsize=1)
def _step(question: Question) -> SuccessorWorker:
    return SuccessorWorker(question.packed)


def row(
    bucket: int, *, place: int | None = None, number: int | None = None, states: States | None = None
) -> pa.RecordBatch:
    """One row."""
    blob = None if states is None else states.astype("<i8", copy=False).tobytes()
    return pa.RecordBatch.from_pylist([{"bucket": bucket, "place": place, "number": number, "states": blob}], SCHEMA)


def rows_of(states: States, bucket: int) -> Batches:
    """Different states of one bucket as rows."""
    for begin in range(0, len(states), _CHUNK):
        chunk = states[begin : begin + _CHUNK]
        yield row(bucket, number=len(chunk), states=chunk)


def expand_states(
    question: Question, buckets: int, among: int, *, marks_only: bool = False
) -> Callable[[Batches], Batches]:
    """Return a function from states to their successors, in ``buckets`` (none: all are :data:`MIXED`).

    It tells the transitions, and of each anomaly whose bit is in ``among`` the first state that is it.
    """

    def expanded(batches: Batches) -> Batches:
        step = question.step()
        transitions, nearest = 0, dict[int, States]()
        for states in _together(batches, step.words):
            step.load(states)
            for anomaly, state in step.anomalies_among(among):
                nearest[anomaly] = lexicographic_min(np.stack([state, nearest.get(anomaly, state)]))
            if not marks_only:
                yield from _divided(_successors(step), buckets)
                transitions += step.transitions
        yield row(METADATA, number=transitions)
        for anomaly, state in nearest.items():
            yield row(METADATA, place=anomaly, states=state)

    return expanded


def minus_visited(words: int, folder: Path, levels: int) -> Callable[[Batches], Batches]:
    """Return a function that drops states of the first ``levels`` in ``folder``, and repetitions."""

    def sifted(batches: Batches) -> Batches:
        for bucket, rows in itertools.groupby(_rows(batches), key=lambda row: row["bucket"][0].as_py()):
            if bucket == METADATA:
                yield from rows
                continue
            found = StateSet(words)
            for chunk in rows:
                found.add(_states(chunk, words))
            new = np.ones(len(found), dtype=bool)
            for known in known_states(folder, levels, bucket, words):
                places = found.index(known)
                new[places[places >= 0]] = False
            yield from rows_of(found.states[new], bucket)

    return sifted


def find_parents(question: Question, targets: States) -> Callable[[Batches], Batches]:
    """Return a function from states to the first parent of each target; ``place`` is the target's."""

    def hunted(batches: Batches) -> Batches:
        step, prey, first = question.step(), StateSet(targets.shape[1]), dict[int, States]()
        prey.add(targets)
        for states in _together(batches, step.words):
            step.load(states)
            for successors, parents in step.successors():
                places = prey.index(successors)
                for place in np.unique(places[places >= 0]):
                    own = states[parents[places == place]]
                    first[place] = lexicographic_min(np.vstack([own, first.get(place, own[0])]))
        for place, parent in first.items():
            yield row(METADATA, place=int(place), states=parent)

    return hunted


def meeting(targets: States) -> Callable[[Batches], Batches]:
    """Return a function from states to the places of the ``targets``, all different, among them."""

    def met(batches: Batches) -> Batches:
        wanted, found = StateSet(targets.shape[1]), set[int]()
        wanted.add(targets)
        for one in _rows(batches):
            places = wanted.index(_states(one, targets.shape[1]))
            found.update(places[places >= 0].tolist())
        for place in sorted(found):
            yield row(METADATA, place=place)

    return met


def _successors(step: SuccessorWorker) -> States:
    found = StateSet(step.words)
    for successors, _ in step.successors():
        found.add(successors)
    return found.states


def _divided(states: States, buckets: int) -> Batches:
    if not buckets:
        yield from rows_of(states, MIXED)
        return
    bucket = state_hashes(states, _BUCKET_SEED) % buckets
    order = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
    for number, (begin, end) in enumerate(itertools.pairwise(ends)):
        yield from rows_of(states[order[begin:end]], number)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.slice(at, 1) for batch in batches for at in range(len(batch)))


def _states(one: pa.RecordBatch, words: int) -> States:
    return states_in(one["states"][0], words)


def _together(batches: Batches, words: int) -> Iterator[States]:
    """The states of all rows, about :data:`_BATCH` at a time."""
    waiting: list[States] = []
    for one in _rows(batches):
        waiting.append(_states(one, words))
        if sum(map(len, waiting)) >= _BATCH:
            yield np.vstack(waiting)
            waiting = []
    if waiting:
        yield np.vstack(waiting)
