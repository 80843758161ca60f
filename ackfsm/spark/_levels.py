"""The levels of an exploration on disk, from which an interrupted run continues.

A folder has a ``manifest.json`` (the question, and of each level how many states it has, how many transitions leave
it, and which anomalies are first found on it) and for each level a directory of Parquet files, by bucket.  A level
is there once the manifest says so; it is written anew otherwise.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackfsm.checking.explore.search.distributed import States
from ackfsm.terms import InputError

METADATA: Final = -1
"""The bucket of rows that tell something."""

MIXED: Final = -2
"""The bucket of the states of a small level, which are not divided."""

_FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """The states at one distance from the first: their number, and, once expanded, their transitions and anomalies.

    Attributes:
        states: how many there are.
        transitions: how many leave them.
        found: the states, spelled out, that are the first to show an anomaly (its number).
    """

    states: int
    transitions: int = 0
    found: Mapping[int, tuple[int, ...]] = dataclasses.field(default_factory=dict)


class Levels:
    """The levels in ``folder`` that are complete; the last one is not expanded yet."""

    def __init__(self, folder: Path, question: str, levels: list[Level]) -> None:
        self.folder = folder
        self.question = question
        self.levels = levels

    @classmethod
    def opened(cls, folder: Path, question: str) -> Self:
        """Those in ``folder`` that belong to the ``question``; none in a folder that is empty or new.

        Raises :class:`InputError` if the folder belongs to something else, or a file in it is damaged.
        """
        folder = folder.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            manifest = _manifest(folder)
        except OSError as error:
            raise InputError(
                f"{folder}: no checkpoint can be kept here ({error.strerror}); name another folder"
            ) from None
        if manifest is None:
            return cls(folder, question, [])
        if manifest["question"] != question:
            raise InputError(
                f"{folder}: this checkpoint belongs to another configuration, other bounds or other tables; "
                "name another folder, or repeat the command that made it"
            )
        opened = cls(folder, question, [_level(level) for level in manifest["levels"]])
        opened._verify()
        return opened

    @property
    def found_states(self) -> int:
        return sum(level.states for level in self.levels)

    @property
    def transitions(self) -> int:
        return sum(level.transitions for level in self.levels)

    @property
    def nearest(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """For each anomaly that was found the first level that has it, and the state there."""
        return {a: (depth, state) for depth, level in enumerate(self.levels) for a, state in level.found.items()}

    def directory(self, level: int) -> Path:
        """Where a level is, or will be."""
        return _directory(self.folder, level)

    def rows(self, level: int) -> Iterator[pa.RecordBatch]:
        """The rows of a level that have states."""
        directory = self.directory(level)
        for bucket in _parts(directory):
            yield from _batches(directory, bucket, ["states"])

    def begin(self, rows: pa.Table) -> None:
        """Write level 0."""
        self.write(0, rows)
        self.levels = [Level(_count(self.directory(0)))]
        self._save()

    def write(self, level: int, rows: pa.Table) -> None:
        """Write the rows of one level; :meth:`commit` makes it count."""
        directory = self.directory(level)
        shutil.rmtree(directory, ignore_errors=True)
        for bucket in rows["bucket"].unique():
            part = directory / f"bucket={bucket}"
            part.mkdir(parents=True)
            chosen = rows.filter(pc.equal(rows["bucket"], bucket)).drop_columns(["bucket"])
            pq.write_table(chosen, part / "part.parquet", write_page_checksum=True)

    def commit(self) -> None:
        """Write the level after the last one, and the record of expanding the last one."""
        directory = self.directory(len(self.levels))
        told = _table(directory, METADATA, ["place", "number", "states"])
        last = self.levels[-1]
        self.levels[-1] = Level(last.states, pc.sum(told["number"]).as_py() or 0, first_of(told))
        self.levels.append(Level(_count(directory)))
        self._save()

    def _save(self) -> None:
        manifest = {
            "format": _FORMAT,
            "question": self.question,
            "levels": [dataclasses.asdict(level) for level in self.levels],
        }
        new = self.folder / f"{_MANIFEST}.new"
        with new.open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.folder / _MANIFEST)

    def _verify(self) -> None:
        for number, level in enumerate(self.levels):
            count = _count(self.directory(number))
            if count != level.states:
                raise _damaged(self.directory(number), f"it has {count} states of {level.states}")


def first_of(told: pa.Table) -> dict[int, tuple[int, ...]]:
    """The first state of each ``place`` among rows that tell."""
    found: dict[int, tuple[int, ...]] = {}
    for place, blob in zip(told["place"].to_pylist(), told["states"].to_pylist(), strict=True):
        if place is not None:
            state = tuple(np.frombuffer(blob, dtype="<i8").tolist())
            found[place] = min(state, found.get(place, state))
    return found


def known_states(folder: Path, levels: int, bucket: int, words: int) -> Iterator[States]:
    """The states on the first ``levels`` that may be in ``bucket``, an array for each row."""
    for level in range(levels):
        directory = _directory(folder, level)
        for part in _parts(directory) if bucket == MIXED else (MIXED, bucket):
            for batch in _batches(directory, part, ["states"]):
                yield from (states_in(value, words) for value in batch["states"])


def states_in(value: pa.BinaryScalar, words: int) -> States:
    """The states that ``value`` holds, a row for each."""
    states: States = np.frombuffer(value.as_buffer(), dtype="<i8").reshape(-1, words)
    return states


def _directory(folder: Path, level: int) -> Path:
    return folder / f"level={level:05}"


def _parts(directory: Path) -> list[int]:
    """The buckets of states on a level."""
    buckets = (int(path.name.removeprefix("bucket=")) for path in directory.glob("bucket=*"))
    return sorted(bucket for bucket in buckets if bucket != METADATA)


def _batches(directory: Path, bucket: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a bucket, read a few at a time with their checksums verified."""
    for path in sorted((directory / f"bucket={bucket}").glob("*.parquet")):
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                yield from file.iter_batches(batch_size=16, columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, next(iter(str(error).splitlines()), type(error).__name__)) from error


def _table(directory: Path, bucket: int, columns: list[str]) -> pa.Table:
    batches = [pa.Table.from_batches([batch]) for batch in _batches(directory, bucket, columns)]
    return pa.concat_tables(batches)


def _count(directory: Path) -> int:
    """How many states a level has."""
    return sum(
        pc.sum(batch["number"]).as_py()
        for bucket in _parts(directory)
        for batch in _batches(directory, bucket, ["number"])
    )


def _manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest; ``None`` without one in a folder that has nothing else either."""
    path = folder / _MANIFEST
    if not path.exists():
        strangers = [file.name for file in folder.iterdir() if not file.name.startswith(("level=", _MANIFEST))]
        if strangers:
            raise InputError(f"{folder}: there are other files here ({min(strangers)}); name an empty or a new folder")
        return None
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        recorded = manifest["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"not a manifest: {error}") from error
    if recorded != _FORMAT:
        raise InputError(f"{path}: format {recorded} is not {_FORMAT}; name another folder")
    return manifest


def _level(recorded: dict[str, Any]) -> Level:
    found = {int(anomaly): tuple(state) for anomaly, state in recorded["found"].items()}
    return Level(recorded["states"], recorded["transitions"], found)


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: this part of the checkpoint is damaged ({why}); delete the folder and begin anew")
