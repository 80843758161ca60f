"""The interface of an importer, and the collector of lines that it could not read."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from ackfsm.history.format import SHOWABLE
from ackfsm.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

PLACES: Final = 3
"""Of each reason why something could not be read, so many places are kept; the others are only counted."""

_MOST_REASONS: Final = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What somebody who imports says beside the names of the files.

    Attributes:
        mapping: the mapping file of a format that needs one.
        jobs: how many processes may read what is large, where a format can be read by several.
    """

    mapping: Path | None = None
    jobs: int = 1


class Importer(Protocol):
    """Reads one format."""

    @property
    def cannot_show(self) -> Mapping[str, str]:
        """Return the events and fields of format 1 (:data:`SHOWABLE`) that the source never shows, with reasons.

        A reason is a clause that goes on after "the source cannot show `processed`: ", for instance "a broker does not
        see what an application has done with a message".
        """

    def batches(self, paths: Sequence[Path], problems: Problems, /) -> Iterator[pa.RecordBatch]:
        """The events of the files at ``paths``, in any order, as record batches with the columns of format 1.

        Memory is bounded: a batch has some ten thousand rows, and no file is ever held as a whole.  ``problems`` takes
        what cannot be read.  Rows are not validated here: ones that are no events of format 1 become unread lines.
        Raises :class:`ackfsm.terms.InputError`, one sentence with file, line and remedy, where a file as a whole is at
        fault: it is missing, truncated, or not of this format.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class PlainImporter:
    """An :class:`Importer` of a format that is read in one way, whatever the options are."""

    cannot_show: Mapping[str, str]
    batches: Callable[[Sequence[Path], Problems], Iterator[pa.RecordBatch]]


class UnreadError(ValueError):
    """A record that cannot be read, and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read for one reason.

    Attributes:
        reason: a clause that names no record, so that equal problems are counted together; ids in it are
            :func:`ackfsm.text.quoted`.
        count: how many records.
        places: the first few, as a sentence names them.
    """

    reason: str
    count: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.places) else ""
        return f"{self.reason} ({', '.join(self.places)}{more})" if self.places else self.reason


class Problems:
    """Collects unreadable and omitted lines of an importer; counts are exact, places the first few."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}
        self._left_out: Counter[str] = Counter()
        self._not_shown: dict[str, str] = {}

    def unread(
        self,
        reason: str,
        file: str | Path | None = None,
        *,
        line: int | None = None,
        row: int | None = None,
        count: int = 1,
    ) -> None:
        """``count`` records could not be read for this ``reason``, the first of them at this place of a file.

        Lines and rows (of a table: those of data) count from 1.  Beyond so many different reasons, all others are
        counted as one.
        """
        if reason not in self._counts and len(self._counts) >= _MOST_REASONS:
            reason = "other reasons"
        self._counts[reason] += count
        places = self._places.setdefault(reason, [])
        if file is not None and len(places) < PLACES:
            where = f" line {line:,}" if line is not None else f" row {row:,}" if row is not None else ""
            places.append(f"{shown(str(file))}{where}")

    def left_out(self, what: str, count: int = 1) -> None:
        """``count`` records were left out on purpose: ``what`` they are, a clause ("spans that are not of messaging").

        They tell nothing of messages, or whoever imports has said that they are not wanted.
        """
        self._left_out[what] += count

    def not_shown(self, name: str, reason: str) -> None:
        """The input turned out not to show this event or field; see :attr:`Importer.cannot_show`."""
        if name not in SHOWABLE:
            raise ValueError(f"{name} is no event or field of format 1")
        self._not_shown.setdefault(name, reason)

    @property
    def count(self) -> int:
        """How many records could not be read."""
        return self._counts.total()

    def reasons(self) -> Sequence[Unread]:
        """What could not be read, the most frequent reason first."""
        return [
            Unread(reason, count, tuple(self._places.get(reason, ()))) for reason, count in self._counts.most_common()
        ]

    def all_left_out(self) -> Mapping[str, int]:
        """How many records were left out on purpose, by what they are."""
        return MappingProxyType(dict(self._left_out.most_common()))

    def all_not_shown(self) -> Mapping[str, str]:
        """Return the events that the input turned out not to show, with the reasons."""
        return MappingProxyType(dict(self._not_shown))
