"""Examine a history on disk: at once, or folded in threads; and what that says of each of its messages."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Unpack

import pyarrow as pa

from ackfsm.history.header import Header
from ackfsm.history.queues import Configurations, configurations_of
from ackfsm.history.read import read
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration
from ackfsm.verify.counting.bins import Bins, bins_of
from ackfsm.verify.findings.examine import Asked, How, Outcome, outcome_of
from ackfsm.verify.findings.findings import Findings
from ackfsm.verify.findings.verdict import Result
from ackfsm.verify.folding.chunks import chunks_of
from ackfsm.verify.folding.passes import Fold, Folded, Folder
from ackfsm.verify.folding.summary import Chunk, Hashes
from ackfsm.verify.results.tables import (
    MESSAGES,
    FirstMessage,
    PlainRows,
    ResultTables,
)
from ackfsm.verify.results.written import PlainPart, staged, write_rows

__all__ = ["Examination", "examination", "examine_path", "write_tables"]

FOLDED_FROM: Final = 2_000_000
"""Histories of as many events are folded in chunks; fewer are examined at once."""


def examine_path(
    path: str | Path,
    specification: Specification,
    configure: Callable[[Header | None], Configurations | Configuration | None],
    *,
    folded_from: int = FOLDED_FROM,
    workers: int | None = None,
    **how: Unpack[How],
) -> Findings:
    """Count every anomaly that the history at ``path`` can show, as :func:`ackfsm.verify.examine` does.

    A history of ``folded_from`` events or more that can be read in pieces is folded in chunks, by so many ``workers``
    (threads; ``None``: one for each processor); what was found is the same, and all of it is never in memory.
    ``configure`` gives the configuration for the history's header, or those of its queues.  Raises what
    :func:`ackfsm.verify.read` raises.
    """
    return examination(path, specification, configure, folded_from=folded_from, workers=workers, **how).findings


def examination(  # noqa: PLR0913 - as :func:`examine_path`
    path: str | Path,
    specification: Specification,
    configure: Callable[[Header | None], Configurations | Configuration | None],
    *,
    folded_from: int | None = FOLDED_FROM,
    workers: int | None = None,
    binned: bool = False,
    **how: Unpack[How],
) -> Examination:
    """Return the findings of :func:`examine_path`, with the decisions on each message.

    With ``folded_from=None`` a history of any size is examined at once, in memory.  With ``binned`` a history that is
    folded can have a picture.
    """
    begun = time.process_time()
    chunks = None if folded_from is None else chunks_of(path)
    if chunks is None or folded_from is None or chunks.size < folded_from:
        history = read(path)
        asked = Asked(specification=specification, configuration=configure(history.header), **how)
        return Examination.of(outcome_of(history, asked), asked, begun=begun)
    asked = Asked(specification=specification, configuration=configure(chunks.header), binned=binned, **how)
    asked = asked.of_source(chunks.header)
    each = functools.partial(_in_threads, workers)
    outcome = Fold(chunks.path, len(chunks), Folder(chunks.load, asked), each).outcome()
    return Examination.of(outcome, asked, chunks.load, each, begun=begun)


def _in_threads(workers: int | None, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
    with ThreadPoolExecutor(workers or os.cpu_count()) as executor:
        return list(executor.map(function, arguments))


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Examination:
    """The findings of a history, and the decisions on each of its messages, which it keeps in memory.

    Attributes:
        findings: what was counted, to be judged by :func:`ackfsm.verify.verdict`.
        outcome: what that was taken from.
        asked: what was asked of the history.
    """

    findings: Findings
    outcome: Outcome
    asked: Asked
    _load: Callable[[int], Chunk] | None
    _each: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        asked: Asked,
        load: Callable[[int], Chunk] | None = None,
        each: Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]] = map,
        *,
        begun: float,
    ) -> Examination:
        """Of an ``outcome``, which began to be found at so many seconds of this process; ``each`` maps over chunks."""
        cost = dataclasses.replace(outcome.findings.cost, whole=time.process_time() - begun)
        findings = dataclasses.replace(outcome.findings, cost=cost)
        return cls(findings=findings, outcome=outcome, asked=asked, _load=load, _each=each)

    def on(self, engine: str) -> Examination:
        """The same, found by another ``engine``."""
        return dataclasses.replace(self, findings=dataclasses.replace(self.findings, engine=engine))

    def named(self, history: str) -> Examination:
        """Return the same under the name ``history``, for a log that was made from another."""
        return dataclasses.replace(self, findings=dataclasses.replace(self.findings, history=history, imported=True))

    def result_tables(self, result: Result) -> ResultTables:
        """What ``result``, the verdict on :attr:`findings`, says of each message that was kept in memory."""
        return ResultTables(self.outcome, result, self.asked.specification)

    @property
    def folded(self) -> bool:
        """Whether most messages are not in memory."""
        return isinstance(self.outcome, Folded)

    def bins(self) -> Bins:
        """What went on over time.

        Raises :class:`ValueError` if the history was folded and :func:`examination` was not told ``binned``.
        """
        outcome = self.outcome
        if not isinstance(outcome, Folded):
            return bins_of(outcome.examined.events)
        if not self.asked.binned:
            raise ValueError("a folded history has a picture only if it was examined with binned=True")
        return outcome.bins()

    def first(self, result: Result) -> Mapping[Anomaly, FirstMessage]:
        """Of every anomaly that was found the first message that has it, unexplained ones first; no cause is sought."""
        return self.result_tables(result).first()

    def plain(self, result: Result) -> PlainRows:
        """Return the maker of rows of ``messages`` that a fold left out, chunk by chunk."""
        configurations = configurations_of(self.asked.configuration)
        return PlainRows(result.findings.history, configurations, open=result.findings.parse_errors > 0)

    def left(self) -> list[tuple[int, Hashes]]:
        """The chunks from which messages were left out, each with the hashes of their ids."""
        summaries = self.outcome.summaries if isinstance(self.outcome, Folded) else ()
        return [(each.place, each.messages) for each in summaries if len(each.messages)]

    def anomalies(self, result: Result) -> pa.Table:
        """The table ``anomalies`` alone, for which nothing is read again."""
        return self.result_tables(result).anomalies()

    def tables(self, result: Result) -> Mapping[str, pa.Table]:
        """All result tables (:data:`ackfsm.verify.TABLES`) in memory; ``result`` is the verdict on :attr:`findings`."""
        kept, load = self.result_tables(result).tables(), self._load
        plain = self.plain(result)
        if load is None:
            return kept
        left = [plain(load(place), hashes) for place, hashes in self.left()]
        return {**kept, MESSAGES: pa.concat_tables([kept[MESSAGES], *left])}

    def write(self, result: Result, folder: Path, history: int = 0) -> None:
        """Write all result tables as Parquet into ``folder``, partitioned by queue.

        The rows of messages that were left out are read once more and written where they were folded.  ``history`` is
        the number of this one among those whose tables are written into the same folder.
        """
        part = f"part-{history:05}"
        for name, table in self.result_tables(result).tables().items():
            write_rows(folder, name, table, part)
        if self._load is not None:
            rows = PlainPart(self._load, self.plain(result), folder, part)
            for _ in self._each(rows, self.left()):
                pass


def write_tables(result: Result, examination: Examination, folder: Path, *, overwrite: bool = False) -> None:
    """Write the result tables (:data:`ackfsm.verify.TABLES`) of one history into ``folder``, all or nothing.

    Args:
        result: the verdict on the findings of ``examination``.
        examination: what was decided of each message.
        folder: where; it is made, and must not have anything in it.
        overwrite: whether the tables that are there may be replaced.

    Raises:
        InputError: ``folder`` is not empty, cannot be written, or the history was changed meanwhile.
        HostError: the machine fails: its disk is full.
    """
    with staged(folder, overwrite=overwrite) as stage:
        examination.write(result, stage)
