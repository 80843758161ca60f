"""Write an imported history of format 1: Parquet, or JSONL that may be gzipped; whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ackfsm.history.check import Found, check, codes
from ackfsm.history.format import EVENTS, HEADER_KEY, VERSION
from ackfsm.history.header import header_of_line
from ackfsm.history.importing.interface import Importer, Problems, Unread
from ackfsm.history.importing.rows import BATCH, batch_of
from ackfsm.history.lines import SCHEMA
from ackfsm.support.files import staged_file
from ackfsm.terms import InputError
from ackfsm.text import shown

_ROW_GROUP: Final = 8
"""Batches of a row group."""


class Form(StrEnum):
    """The form of a written history; the value is the end of its name."""

    PARQUET = ".parquet"
    LINES = ".jsonl"
    PACKED_LINES = ".jsonl.gz"


def form_of(path: Path) -> Form:
    """The form that the name of ``path`` asks for.  Raises :class:`InputError` if it names none."""
    for form in Form:
        if path.name.endswith(form.value):
            return form
    raise InputError(f"{shown(str(path))} names no form of a history; its name ends with {', '.join(Form)}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import.

    Attributes:
        events: how many of each kind, in the order of the format; kinds that there are none of are left out.
        unread: what could not be read, the most frequent reason first.
        left_out: what was left out on purpose, and how often.
        cannot_show: what the source cannot show, with the reasons.
    """

    events: Mapping[str, int]
    unread: tuple[Unread, ...]
    left_out: Mapping[str, int]
    cannot_show: Mapping[str, str]

    @property
    def unread_count(self) -> int:
        """How many records could not be read."""
        return sum(each.count for each in self.unread)


def import_history(
    importer: Importer,
    paths: Sequence[Path],
    output: Path,
    header: Mapping[str, Any],
    progress: Callable[[int], None] = lambda _: None,
) -> Imported:
    """Write the events of ``paths`` as one history to ``output``, whole or not at all.

    Args:
        importer: reads them.
        paths: what is read.
        output: where; its name says as what (:class:`Form`).
        header: what the header says beside ``cannot_show``: ``config``, ``api``, ``note``.
        progress: is told how many events were written.

    Records that cannot be read become lines that cannot be read.  Raises :class:`InputError` where a file is at fault,
    or nothing in it is an event, and :class:`ackfsm.terms.HostError` where the machine fails.
    """
    form, problems, counts = form_of(output), Problems(), np.zeros(len(EVENTS), np.int64)
    _header_of(importer, problems, header)  # wrong settings are refused before long work
    with staged_file(output) as out, _SINKS[form](out) as sink:
        for batch in importer.batches(paths, problems):
            good = checked(batch, problems)
            sink.add(good)
            counts += np.bincount(codes(good, "event"), minlength=len(EVENTS))
            progress(int(counts.sum()))
        if not counts.any():
            raise InputError(_nothing(paths, problems))
        for batch in unread_rows(problems.reasons()):
            sink.add(batch)
        sink.finish(_header_of(importer, problems, header))
    return Imported(
        events=MappingProxyType({event.value: n for event, n in zip(EVENTS, counts.tolist(), strict=True) if n}),
        unread=tuple(problems.reasons()),
        left_out=problems.all_left_out(),
        cannot_show=MappingProxyType({**importer.cannot_show, **problems.all_not_shown()}),
    )


def _nothing(paths: Sequence[Path], problems: Problems) -> str:
    names = ", ".join(shown(str(path)) for path in paths[:3])
    why = f"; of {problems.count:,} records, none could be read: {problems.reasons()[0]}" if problems.count else ""
    left_out = "".join(f"; {count:,} records were left out: {what}" for what, count in problems.all_left_out().items())
    return f"there is no event in {names}{why}{left_out}; correct the mapping, or name the format that it is"


def _header_of(importer: Importer, problems: Problems, header: Mapping[str, Any]) -> bytes:
    names = dict.fromkeys(map(str, [*importer.cannot_show, *problems.all_not_shown()]))
    whole = {HEADER_KEY: VERSION, **header, **({"cannot_show": list(names)} if names else {})}
    line = json.dumps(whole).encode()
    header_of_line(line, "the header of what is imported")
    return line


def checked(batch: pa.RecordBatch, problems: Problems) -> pa.RecordBatch:
    """Return the rows of ``batch`` that are events of format 1; the others go to ``problems``, by their mistakes."""
    found = check(batch)
    if not len(found.bad):
        return batch
    for reason, count in _reasons(found).items():
        problems.unread(reason, count=count)
    good = np.ones(batch.num_rows, bool)
    good[found.bad] = False
    return batch.filter(pa.array(good))


def _reasons(found: Found) -> Mapping[str, int]:
    """Why rows are no events: for each rule the sentence about its first row, and how many break it first."""
    counts, left = Counter[str](), np.zeros(found.events.num_rows, bool)
    left[found.bad] = True
    for rule in found.rules:
        its = rule.broken & left
        if its.any():
            one = Found(found.events, np.flatnonzero(its)[:1], (rule,))
            counts[next(iter(one.describe(1)))[1]] += int(its.sum())
            left &= ~its
    return counts


def unread_rows(reasons: Sequence[Unread]) -> Iterator[pa.RecordBatch]:
    """A row for each record that could not be read, which has an ``error`` and nothing else."""
    for each in reasons:
        told = [f"{each.reason} ({place})" for place in each.places][: each.count]
        for begin in range(0, each.count, BATCH):
            size = min(BATCH, each.count - begin)
            texts = told if begin == 0 else []
            rest = pa.repeat(pa.scalar(each.reason, pa.string()), size - len(texts))
            yield batch_of({"error": pa.concat_arrays([pa.array(texts, pa.string()), rest])}, size)


class _ParquetSink:
    """Takes batches, and the header at the end: the hidden events may be known no earlier."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._held: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        if len(self._held) >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, SCHEMA))
            self._held = []

    def finish(self, header: bytes) -> None:
        self._flush()
        self._writer.add_key_value_metadata({HEADER_KEY: header.decode()})


class _LinesSink:
    """The same: the lines go to a file without a name first, since the header is the first line."""

    def __init__(self, out: IO[bytes], body: IO[bytes], *, packed: bool) -> None:
        self._out, self._body = out, body
        self._lines: IO[bytes] = gzip.GzipFile(fileobj=body, mode="wb", mtime=0) if packed else body  # type: ignore[assignment] # it writes
        self._packed = packed

    def add(self, batch: pa.RecordBatch) -> None:
        rows = ({name: value for name, value in row.items() if value is not None} for row in batch.to_pylist())
        self._lines.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())

    def finish(self, header: bytes) -> None:
        if self._packed:
            self._lines.close()
        first = header + b"\n"
        self._out.write(gzip.compress(first, mtime=0) if self._packed else first)
        self._body.seek(0)
        shutil.copyfileobj(self._body, self._out, 1 << 20)


_Sink: TypeAlias = _ParquetSink | _LinesSink


@contextlib.contextmanager
def _parquet(out: IO[bytes]) -> Iterator[_Sink]:
    with pq.ParquetWriter(out, SCHEMA, compression="zstd", store_schema=False) as writer:
        yield _ParquetSink(writer)


@contextlib.contextmanager
def _lines(out: IO[bytes], *, packed: bool = False) -> Iterator[_Sink]:
    with tempfile.TemporaryFile() as body:
        yield _LinesSink(out, body, packed=packed)


_SINKS: Mapping[Form, Callable[[IO[bytes]], contextlib.AbstractContextManager[_Sink]]] = MappingProxyType(
    {Form.PARQUET: _parquet, Form.LINES: _lines, Form.PACKED_LINES: lambda out: _lines(out, packed=True)}
)
