"""Lines of a log that begin with a date and a time, as the patterns of log4j write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ackfsm.history.importing.streams import lines

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
