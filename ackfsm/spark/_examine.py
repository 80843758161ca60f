"""Examine a history on Spark: its tasks fold the chunks, and this process examines their kept rows.

Tasks do, and it finds, what :func:`ackfsm.verify.examine_path` does in threads (docs/decisions/fold.md).
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark.sql import SparkSession  # noqa: TC002 - Spark is there wherever this module is

from ackfsm.history.source import source_of
from ackfsm.spark._spread import spread
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError
from ackfsm.verify import Configurations, Examination, Findings, Header
from ackfsm.verify.folding.chunks import chunks_of
from ackfsm.verify.folding.observations import Plain
from ackfsm.verify.folding.passes import Asked, Fold, Folder
from ackfsm.verify.folding.summary import Folding, Summary

__all__ = ["Folded", "examination", "examine", "fold_some"]

CHUNKS_A_TASK: Final = 4
"""How many chunks a task folds: it has to start, and to learn what is not known yet."""


def examine(  # noqa: PLR0913 - as :func:`ackfsm.verify.examine_path`
    path: str | Path,
    specification: Specification,
    configure: Callable[[Header | None], Configurations | Configuration | None],
    session: SparkSession,
    *,
    skew: int | None = 0,
    assumed: Collection[Fault] = (),
) -> Findings:
    """Count every anomaly that the history at ``path`` can show, on ``session``.

    Args:
        path: a file or a folder of parts on a file system that this process and Spark's workers see alike.
        specification: the tables, whose properties define the anomalies of a single message.
        configure: gives the configuration for the history's header, or those of its queues; without one, what depends
            on it is unknown.
        session: where to fold; its workers need this package.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.
        assumed: the faults that may have happened although nobody recorded them.

    Returns:
        what :func:`ackfsm.verify.examine_path` finds in the same history, to the letter but for ``engine``.

    Raises:
        InputError: the file as a whole is at fault; the sentence is that of :func:`ackfsm.verify.read`.
        AckfsmError: Spark gave up.
    """
    return examination(path, specification, configure, session, skew=skew, assumed=assumed).findings


def examination(  # noqa: PLR0913 - as :func:`examine`
    path: str | Path,
    specification: Specification,
    configure: Callable[[Header | None], Configurations | Configuration | None],
    session: SparkSession,
    *,
    skew: int | None = 0,
    assumed: Collection[Fault] = (),
    binned: bool = False,
) -> Examination:
    """Return the findings of :func:`examine`, with the decisions on each message.

    Its result tables are written by tasks where they are of messages that tasks have left out, so that the workers have
    to see the folder under the same path; ``session`` is needed until then.  With ``binned`` it has a picture, too.
    """
    begun = time.process_time()
    chunks = chunks_of(path)
    if chunks is None:
        source = source_of(path)
        name = source.name_of(source.path)
        raise InputError(f"{name} is a pipe, and Spark reads files; write it to a file, or use --engine local")
    asked = Asked(
        specification=specification,
        configuration=configure(chunks.header),
        skew=skew,
        assumed=assumed,
        binned=binned,
    ).of_source(chunks.header)
    outcome = Fold(chunks.path, len(chunks), Folder(chunks.load, asked), _OnSpark(session)).outcome()
    each = functools.partial(_in_tasks, session)
    return Examination.of(outcome, asked, chunks.load, each, begun=begun).on("spark")


def _in_tasks(session: SparkSession, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
    return [result for _, result in spread(function, arguments, session=session)]


Folded: TypeAlias = tuple[list[Summary], Mapping[int, Plain | None]]
"""What tasks return: summaries, and by observation what :attr:`Observations.known` has."""


@dataclasses.dataclass(frozen=True, slots=True)
class _OnSpark:
    """Has chunks folded by the tasks of a session; the first one here, for the plain observations."""

    session: SparkSession

    def __call__(self, folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
        here = 0 if folder.observations.known else 1
        yield from map(folder, foldings[:here])
        tasks = [foldings[place : place + CHUNKS_A_TASK] for place in range(here, len(foldings), CHUNKS_A_TASK)]
        for _, (summaries, known) in spread(functools.partial(fold_some, folder), tasks, session=self.session):
            folder.observations.learn(known)
            yield from summaries


def fold_some(folder: Folder, foldings: Sequence[Folding]) -> Folded:
    """Fold some chunks, in a task, and return them with the observations known then."""
    return list(map(folder, foldings)), folder.observations.known
