"""Result tables as folders of Parquet, partitioned by queue as Hive, Spark and Arrow have it: ``queue=NAME/``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from ackfsm.support.files import cannot_write, staged_folder
from ackfsm.terms import InputError
from ackfsm.text import quoted
from ackfsm.verify.folding.summary import Chunk, Hashes
from ackfsm.verify.results.tables import MESSAGES, TABLES, PlainRows

NO_QUEUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The partition of what is of no queue, or of one whose name is empty."""

_PARTITION: Final = "queue"

_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
"""What Hive and Spark do not write into the name of a folder as it is."""

_LONGEST: Final = 255
"""Bytes that the name of a folder may have."""


def staged(folder: Path, *, overwrite: bool = False) -> contextlib.AbstractContextManager[Path]:
    """A folder for the tables of several histories that takes the place of ``folder`` at the end, all or nothing.

    Raises as :func:`ackfsm.support.files.staged_folder`.
    """
    return staged_folder(folder, frozenset(TABLES), overwrite=overwrite)


def write_rows(folder: Path, name: str, table: pa.Table, part: str) -> None:
    """Write rows of the table ``name`` below ``folder`` in files called ``part``; no rows are one file without rows."""
    place = folder / name
    if _PARTITION not in table.column_names or name not in _PARTITIONED:
        _write(place, part, table)
        return
    groups = [*_by_queue(table)] or [(NO_QUEUE, table)]
    for queue, rows in groups:
        _write(place / f"{_PARTITION}={queue}", part, rows.drop_columns(_PARTITION))


_PARTITIONED: Final = ("messages", "anomalies")


def _by_queue(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each queue, with its name in that of a folder."""
    queue = table[_PARTITION].combine_chunks().dictionary_encode()
    queue = queue if isinstance(queue, pa.DictionaryArray) else queue.combine_chunks()
    codes = np.asarray(queue.indices.fill_null(-1))
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    bounds = np.flatnonzero(np.diff(codes, prepend=-2))
    names = [None, *queue.dictionary.to_pylist()]
    found: dict[str, list[pa.Table]] = {}
    for its in np.split(order, bounds[1:]) if len(order) else ():
        name = names[int(np.asarray(queue.indices.fill_null(-1))[its[0]]) + 1]
        found.setdefault(escaped(name), []).append(table.take(pa.array(its)))
    for name, rows in found.items():
        yield name, pa.concat_tables(rows)


def escaped(queue: str | None) -> str:
    """How the name of a queue stands in that of a folder.  Raises :class:`InputError` for one that is too long."""
    if not queue:
        return NO_QUEUE
    if queue == NO_QUEUE:
        return f"%{ord(queue[0]):02X}{queue[1:]}"
    name = "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in queue)
    if len(f"{_PARTITION}={name}".encode()) > _LONGEST:
        raise InputError(
            f"the queue {quoted(queue, 64)} has a name that is too long for a folder; use the tables in memory"
            " (ackfsm.verify.Examination.tables, ackfsm.spark.verified)"
        )
    return name


def _write(folder: Path, part: str, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    path = folder / f"{part}.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, compression="zstd")
    except OSError as error:
        raise cannot_write(path, error, "folder") from None


@dataclasses.dataclass(frozen=True, slots=True)
class PlainPart:
    """Writes the rows of the messages that were left out of a chunk, wherever it is folded."""

    load: Callable[[int], Chunk]
    rows: PlainRows
    folder: Path
    part: str

    def __call__(self, left: tuple[int, Hashes]) -> int:
        """How many there are; ``left`` is the number of a chunk and the hashes of their ids."""
        place, hashes = left
        table = self.rows(self.load(place), hashes)
        write_rows(self.folder, MESSAGES, table, f"{self.part}-{place + 1:05}")
        return len(table)
