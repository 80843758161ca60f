"""Lines of a log that begin with a date and a time, as the patterns of log4j write them."""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ackfsm.history.importing.interface import Problems, UnreadError
from ackfsm.history.importing.rows import Rows
from ackfsm.history.importing.streams import lines
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

_DATED: Final = re.compile(
    r"\s*(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?\s*(.*)", re.DOTALL
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def dated_lines(path: Path) -> Iterator[tuple[int, int, str]]:
    """The numbers, times and texts of the records of a log at ``path``.

    A time is in nanoseconds; one without a zone is taken as it stands, as if it were UTC.  Lines without a date
    continue the record before them, and are left out: no record tells anything of a message beyond its first line.
    """
    for number, line in lines(path):
        found = _DATED.fullmatch(line.decode(errors="replace"))
        if found is not None:
            day, clock, fraction, zone, text = found.groups()
            try:
                time = datetime.fromisoformat(f"{day}T{clock}{zone or '+00:00'}")
            except ValueError:
                continue
            since = time - _EPOCH
            yield number, (since.days * 86_400 + since.seconds) * 10**9 + int((fraction or "0").ljust(9, "0")), text


class Log(abc.ABC):
    """A log, as far as it was read."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.rows = Rows()
        self.sent: set[str] = set()
        self.delivered: set[str] = set()

    @abc.abstractmethod
    def take(self, path: Path, number: int, t: int, text: str) -> bool:
        """Take a line, and return whether it is of those that tell of messages.

        Raises :class:`UnreadError` for one that is, and cannot be read.
        """

    def finish(self) -> None:
        """There are no more lines."""
        if strange := len(self.delivered - self.sent):
            why = f"{strange:,} of the messages that were delivered were sent before the log begins"
            self.problems.not_shown("send", why)


def log_batches(
    log_of: Callable[[Problems], Log], about: str, paths: Sequence[Path], problems: Problems
) -> Iterator[pa.RecordBatch]:
    """The events of the lines in these files; raises :class:`InputError`, with ``about``, if one has none of them."""
    log = log_of(problems)
    for path in paths:
        found = False
        for number, t, text in dated_lines(path):
            try:
                found = log.take(path, number, t, text) or found
            except UnreadError as error:
                found = True
                problems.unread(str(error), path, line=number)
            yield from log.rows.full()
        if not found:
            raise InputError(f"{shown(str(path))} has no line of messages; {about}")
    log.finish()
    yield from log.rows.rest()
