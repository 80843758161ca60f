"""Explore a state space level by level on Spark, with the same counts and witness lengths as in one process."""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession  # noqa: TC002 - Spark is there wherever this module is

from ackfsm.checking.explore import Exploration, Origin, SearchEngine, Slicer, successors_by_tables
from ackfsm.checking.explore.search.distributed import event_between
from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.spark._chunks import (
    DDL,
    SCHEMA,
    Batches,
    Question,
    expand_states,
    find_parents,
    meeting,
    minus_visited,
    rows_of,
)
from ackfsm.spark._errors import spark_errors_translated
from ackfsm.spark._levels import METADATA, MIXED, Levels, first_of, states_in
from ackfsm.terms import DefectError, check_number

BUCKETS: Final = 16
"""Parts of a large level: a task of Spark holds what one of them gets from the level before, without repetitions."""

SMALL: Final = 100_000
"""A level with fewer states is expanded by this process: two stages of Spark take longer.

See docs/decisions/search.md.
"""

_LOOKED_AT: Final = 20
"""At least so many levels, evenly over the search, have a state that is held against the tables."""

_ROWS_A_BATCH: Final = 32
"""Rows in an Arrow batch; each may have half a megabyte of states."""


def explore(  # noqa: PLR0913 - as the search in one process, and where to keep what was found
    network: Network,
    *,
    session: SparkSession,
    checkpoint: Path | None = None,
    max_states: int | None = None,
    progress: Callable[[int], None] | None = None,
    resumed: Callable[[int, int], None] | None = None,
    small: int = SMALL,
) -> Exploration:
    """Search the whole state space of ``network`` breadth first, on ``session``.

    Args:
        network: what to search.
        session: its workers need this package, and see the file system that this process sees.
        checkpoint: the folder in which levels are kept; what an earlier run left there is not searched again.
            By default a temporary one.
        max_states: after a level with which more states than that are found, the search ends, not complete.
        progress: called after every level with the number of states found so far.
        resumed: called with the level at which an earlier run is taken up, and the states found by then.
        small: levels with fewer states are expanded by this process.

    Returns:
        as :func:`ackfsm.checking.explore.explore`; a witness is as short, but may be another one.

    Raises:
        DefectError: the tables say otherwise than the search that was to say "all of them".
        InputError: the checkpoint is that of another question, or damaged.
        AckfsmError: Spark gave up.
    """
    check_number("max_states", max_states)
    check_number("small", small, 0)
    whole = Slicer(network).slice()
    question = Question(whole.key, whole.packed)
    with _folder(checkpoint) as folder, _batches_of_few_rows(session), spark_errors_translated("the exploration"):
        levels = Levels.opened(folder, whole.key)
        run = _Run(session, question, levels, small)
        if resumed is not None and len(levels.levels) > 1:
            resumed(len(levels.levels) - 1, levels.found_states)
        run.to_the_end(max_states, progress)
        if run.stopped_by is None:
            run.look_again(whole.origin)
        return run.result(whole.events)


@contextlib.contextmanager
def _folder(checkpoint: Path | None) -> Iterator[Path]:
    if checkpoint is not None:
        yield checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="ackfsm-levels-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _batches_of_few_rows(session: SparkSession) -> Iterator[None]:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = session.conf.get(name)
    session.conf.set(name, str(_ROWS_A_BATCH))
    try:
        yield
    finally:
        session.conf.set(name, str(before))


class _Run:
    """One exploration in progress."""

    def __init__(self, session: SparkSession, question: Question, levels: Levels, small: int) -> None:
        self.session = session
        self.question = question
        self.levels = levels
        self.small = small
        self.words = question.step().words
        self.nearest: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.stopped_by: str | None = None

    def to_the_end(self, max_states: int | None, progress: Callable[[int], None] | None) -> None:
        """Expand level after level until one is empty, or more than ``max_states`` are found."""
        levels = self.levels
        if not levels.levels:
            levels.begin(pa.Table.from_batches(rows_of(self.question.step().first(), MIXED)))
        while levels.levels[-1].states and self.stopped_by is None:
            if max_states is not None and levels.found_states > max_states:
                self.stopped_by = "max_states"
                continue
            self._expand()
            if progress is not None:
                progress(levels.found_states)
        self.nearest = levels.nearest
        if self.stopped_by is not None:
            last = len(levels.levels) - 1
            looking = expand_states(self.question, 0, self._unseen(), marks_only=True)
            self.nearest |= {a: (last, state) for a, state in first_of(self._asked(last, looking)).items()}

    def result(self, events: Sequence[NetworkEvent]) -> Exploration:
        """Return the result of the search."""
        levels, packed = self.levels, self.question.packed
        paths = self._paths()
        return Exploration(
            states=levels.found_states,
            transitions=levels.transitions,
            complete=self.stopped_by is None,
            witnesses={
                anomaly: tuple(events[event] for event in paths[number])
                for number, anomaly in enumerate(packed.anomalies)
                if number in paths
            },
            depth=max(number for number, level in enumerate(levels.levels) if level.states),
            stopped_by=self.stopped_by,
            compiled=True,
            bytes=levels.found_states * self.words * 8,
            engine=SearchEngine.SPARK,
        )

    def look_again(self, origin: Origin) -> None:
        """Hold a state of some levels against the tables: where it leads has to be found, no later than one level on.

        Raises :class:`ackfsm.terms.DefectError` if the tables say otherwise.
        """
        packed, levels = self.question.packed, self.levels.levels
        found = {packed.anomalies[anomaly] for anomaly in self.nearest}
        sought: dict[tuple[int, ...], int] = {}
        for depth in range(0, len(levels) - 1, max(1, len(levels) // _LOOKED_AT)):
            for after in successors_by_tables(origin, packed, _one_of(self.levels, depth, self.words), found):
                sought[tuple(after)] = min(depth + 1, sought.get(tuple(after), depth + 1))
        for depth in range(len(levels) - 1, -1, -1):
            wanted = [state for state, latest in sought.items() if latest >= depth]
            if wanted and levels[depth].states:
                met = self._asked(depth, meeting(np.array(wanted, dtype=np.int64)))
                for place in met["place"].to_pylist():
                    del sought[wanted[place]]
        if sought:
            raise DefectError(
                f"a search and the tables differ: {len(sought)} states were not found that others lead to"
            )

    def _expand(self) -> None:
        """Write the level after the last one."""
        levels, last = self.levels, len(self.levels.levels) - 1
        sift = minus_visited(self.words, levels.folder, last + 1)
        if self._is_small(last):
            step = expand_states(self.question, 0, self._unseen())
            found_here = _table(step(self.levels.rows(last))).sort_by("bucket")
            levels.write(last + 1, _table(sift(iter(found_here.to_batches()))))
        else:
            step = expand_states(self.question, BUCKETS, self._unseen())
            found = self._frame(last).mapInArrow(step, DDL).repartitionById(self._parts(), "bucket")
            new = found.sortWithinPartitions("bucket").mapInArrow(sift, DDL)
            target = _uri(levels.directory(last + 1))
            new.write.mode("overwrite").partitionBy("bucket").option("compression", "none").parquet(target)
        levels.commit()

    def _unseen(self) -> int:
        """The anomalies that are not found yet, as bits."""
        found = self.levels.nearest
        return sum(1 << anomaly for anomaly in range(len(self.question.packed.anomalies)) if anomaly not in found)

    def _is_small(self, level: int) -> bool:
        return self.levels.levels[level].states < self.small

    def _asked(self, level: int, ask: Callable[[Batches], Batches]) -> pa.Table:
        """What ``ask`` tells of all states of a level."""
        if self._is_small(level):
            return _table(ask(self.levels.rows(level)))
        return self._frame(level).mapInArrow(ask, DDL).toArrow()

    def _frame(self, level: int) -> DataFrame:
        """The states of a level, in as many parts as the session likes."""
        read = self.session.read.schema(DDL).parquet(_uri(self.levels.directory(level)))
        return read.where(f"bucket <> {METADATA}").repartition(self._parts())

    def _parts(self) -> int:
        """Into how many tasks a stage is divided; each has whole buckets, one after the other."""
        return min(BUCKETS, int(str(self.session.conf.get("spark.sql.shuffle.partitions"))))

    def _paths(self) -> dict[int, list[int]]:
        """The events of a shortest way to each anomaly that was found, sought backwards, all of them together."""
        ways = {anomaly: [state] for anomaly, (_, state) in self.nearest.items()}
        deepest = max((depth for depth, _ in self.nearest.values()), default=0)
        for depth in range(deepest, 0, -1):
            active = [anomaly for anomaly, (level, _) in self.nearest.items() if level >= depth]
            heads = sorted({ways[anomaly][-1] for anomaly in active})
            found = self._asked(depth - 1, find_parents(self.question, np.array(heads, dtype=np.int64)))
            parents = first_of(found)
            for anomaly in active:
                ways[anomaly].append(parents[heads.index(ways[anomaly][-1])])
        return {anomaly: self._events(way[::-1]) for anomaly, way in ways.items()}

    def _events(self, way: Sequence[tuple[int, ...]]) -> list[int]:
        return [event_between(self.question.packed, *pair) for pair in itertools.pairwise(way)]


def _one_of(levels: Levels, depth: int, words: int) -> list[int]:
    """A state from the middle of the first row of a level."""
    states = states_in(next(levels.rows(depth))["states"][0], words)
    found: list[int] = states[len(states) // 2].tolist()
    return found


def _table(batches: Batches) -> pa.Table:
    return pa.Table.from_batches(batches, SCHEMA)


def _uri(file: Path) -> str:
    """``file`` as Spark takes it: on the local file system, and with nothing in it read as a pattern."""
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute()))
