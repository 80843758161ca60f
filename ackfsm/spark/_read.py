"""Read a history on Spark: its events, and its parse errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from ackfsm.spark._lines import Lines
from ackfsm.spark._parquet import read_parquet
from ackfsm.spark._text import read_text
from ackfsm.terms import InputError
from ackfsm.verify import ParseError, read
from ackfsm.verify._lines import REPORTED
from ackfsm.verify._open import opened
from ackfsm.verify._read import headers_beside
from ackfsm.verify._source import Form, Source

__all__ = ["input_error", "read_lines", "unreadable_of"]

_HIDDEN: Final = (".", "_")
_BEING_COPIED: Final = "._COPYING_"
_UNPACKED_BY_SPARK: Final = frozenset({".bz2", ".deflate", ".lz4", ".snappy", ".zst"})


def read_lines(session: SparkSession, source: Source) -> Lines:
    """Read the history at ``source``, lazily: its lines are read when an action asks for them.

    Raises :class:`InputError` for what shows at once: an unknown header, a wrong column, a file that Spark cannot read.
    """
    if not source.regular:
        name = source.name_of(source.path)
        raise InputError(f"{name} is a pipe, and Spark reads files; write it to a file, or use --engine local")
    headers, headed, form = headers_beside(source), dict[str, bool](), Form.LINES
    for file in source.files:
        with opened(source, file) as part:
            headers.add(part.header, source.name_of(file))
            headed[file.name], form = part.header is not None, part.form
            _check_name(source, file, gzipped=part.gzipped, form=form)
    return read_parquet(session, source) if form is Form.PARQUET else read_text(session, source, headed)


def unreadable_of(lines: Lines, source: Source) -> tuple[int, tuple[ParseError, ...]]:
    """How many lines are no events, and the first few of them in the order of the files.

    Raises :class:`InputError` if the file as a whole is at fault.
    """
    parse_errors = lines.parse_errors.groupBy("part", "block").agg(
        sf.sum("lines").alias("lines"),
        sf.sum("unreadable").alias("unreadable"),
        sf.bool_or("damaged").alias("damaged"),
        sf.slice(sf.array_sort(sf.flatten(sf.collect_list("described"))), 1, REPORTED).alias("described"),
    )
    blocks = sorted(parse_errors.collect(), key=lambda block: (block.part or "", block.block))
    if any(block.damaged for block in blocks):
        raise input_error(source, "text that is not UTF-8")
    parts = itertools.groupby(blocks, key=lambda block: block.part)
    described = itertools.chain.from_iterable(_described(of_one) for _, of_one in parts)
    return sum(block.unreadable for block in blocks), tuple(itertools.islice(described, REPORTED))


def _described(blocks: Iterator[Row]) -> Iterator[ParseError]:
    """The unreadable lines of one part."""
    before = 0
    for block in blocks:
        for each in block.described:
            yield ParseError(before + each.line, each.why, block.part)
        before += block.lines


def input_error(source: Source, reason: str) -> InputError:
    """What is wrong with ``source``, which Spark could not use: in the local engine's words if it has any."""
    try:
        read(source.path)
    except InputError as error:
        return error
    name = source.name_of(source.path)
    return InputError(f"Spark cannot read {name} ({reason}), although it is whole; use --engine local")


def _check_name(source: Source, file: Path, *, gzipped: bool, form: Form) -> None:
    """Spark passes over some files without a word, and unpacks files by their names; the local engine does neither."""
    name, suffix = source.name_of(file), file.suffix
    if file.name.startswith(_HIDDEN) or file.name.endswith(_BEING_COPIED):
        raise InputError(
            f"Spark passes over {name}, because its name begins with . or _, or ends with {_BEING_COPIED}; rename it"
        )
    if not _is_text(file):
        raise InputError(f"Spark cannot read {name}, whose name is not UTF-8; rename it, or use --engine local")
    if ":" in file.name:
        raise InputError(f"Spark cannot read {name}, whose name has a colon; rename it, or use --engine local")
    if form is Form.LINES and suffix in _UNPACKED_BY_SPARK:
        raise InputError(f"Spark would unpack {name} because of its name; rename it to .jsonl")
    if gzipped and suffix != ".gz":
        raise InputError(f"{name} is gzipped, which Spark sees by the name alone; rename it to .jsonl.gz")


def _is_text(file: Path) -> bool:
    try:
        str(file.absolute()).encode()
    except UnicodeEncodeError:
        return False
    return True
