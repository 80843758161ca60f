"""A history as Spark reads it: its events, and what could not be read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from ackfsm.history import Unreadable, read, read_header
from ackfsm.history._lines import REPORTED
from ackfsm.history._read import is_parquet
from ackfsm.spark._lines import Lines
from ackfsm.spark._parquet import read_parquet
from ackfsm.spark._text import read_text
from ackfsm.terms import InputError

__all__ = ["complaint", "read_lines", "unreadable_of"]

_HIDDEN: Final = (".", "_")
_UNPACKED_BY_SPARK: Final = frozenset({".bz2", ".deflate", ".lz4", ".snappy", ".zst"})


def read_lines(session: SparkSession, path: Path) -> Lines:
    """Read the history at ``path``, lazily: its lines are read when an action asks for them.

    Raises :class:`InputError` for what shows at once: no such file, an unknown header, a wrong column.
    """
    headed = read_header(path) is not None
    _check_name(path)
    return read_parquet(session, path) if is_parquet(path) else read_text(session, path, headed=headed)


def unreadable_of(lines: Lines, path: Path) -> tuple[int, tuple[Unreadable, ...]]:
    """How many lines are no events, and the first few of them in the order of the file.

    Raises :class:`InputError` if the file as a whole is at fault.
    """
    tallies = lines.tallies.groupBy("part", "block").agg(
        sf.sum("lines").alias("lines"),
        sf.sum("unreadable").alias("unreadable"),
        sf.bool_or("damaged").alias("damaged"),
        sf.slice(sf.array_sort(sf.flatten(sf.collect_list("described"))), 1, REPORTED).alias("described"),
    )
    blocks = sorted(tallies.collect(), key=lambda block: (block.part or "", block.block))
    if any(block.damaged for block in blocks):
        raise complaint(path, "text that is not UTF-8")
    described = itertools.islice(_described(blocks), REPORTED)
    return sum(block.unreadable for block in blocks), tuple(described)


def _described(blocks: list[Row]) -> Iterator[Unreadable]:
    before = 0
    for block in blocks:
        for each in block.described:
            yield Unreadable(before + each.line, each.why, block.part)
        before += block.lines


def complaint(path: Path, reason: str) -> InputError:
    """What is wrong with the file at ``path``, which Spark could not use: in the local engine's words if it has any."""
    try:
        read(path)
    except InputError as error:
        return error
    return InputError(f"Spark cannot read {path} ({reason}), although it is whole; use --engine local")


def _check_name(path: Path) -> None:
    """Spark passes over some files without a word, and unpacks others; the local engine does neither."""
    if path.name.startswith(_HIDDEN):
        raise InputError(f"Spark passes over files like {path}, whose name begins with . or _; rename it")
    if path.suffix in _UNPACKED_BY_SPARK:
        raise InputError(f"{path} is packed as {path.suffix[1:]}; unpack it, or pack it with gzip as .jsonl.gz")
