"""Which brokers were seen to perform a row: ``spec/seen.csv``, which ``make live`` writes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from ackfsm.tables import ALWAYS, Machine, Row, shipped_tables
from ackfsm.terms import SpecError

__all__ = ["SEEN", "RowKey", "read_seen", "row_keys", "seen_text"]

SEEN: Final = "seen.csv"

_HEADS: Final = ("machine", "state", "event", "condition", "seen")
_NEXT: Final = "; "
_REMEDY: Final = "take the file of the package, or remove it: then no row says who performed it"


class RowKey(NamedTuple):
    """A row of a machine, named by what it says: its line is another one after the next change of its file.

    ``state`` is the heading in a counter; ``condition`` is empty where the row has none.
    """

    machine: str
    state: str
    event: str
    condition: str

    @classmethod
    def of(cls, machine: str, state: str, event: str, row: Row) -> RowKey:
        """Return the name of ``row``, which stands for this state and event."""
        return cls(machine, state, event, "" if row.when is ALWAYS else row.when.text)

    def __str__(self) -> str:
        when = f" when {self.condition}" if self.condition else ""
        return f"{self.machine}: {self.state}, {self.event}{when}"


def row_keys(machine: Machine) -> Iterator[RowKey]:
    """Yield the names of all rows of a machine."""
    for (state, event), cell in machine.cells.items():
        yield from (RowKey.of(machine.name, state, str(event), row) for row in cell)


def read_seen(directory: Path | None = None) -> Mapping[RowKey, tuple[str, ...]]:
    """Return for each row the brokers, with their versions, that performed it while they were watched.

    ``directory`` has the tables if not the package's; without the file there is none.  Raises :class:`SpecError` for
    a file that cannot be read, or is none of these.
    """
    file = (shipped_tables() if directory is None else directory) / SEEN
    if not file.is_file():
        return MappingProxyType({})
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.reader(lines)
            found = {RowKey(*key): tuple(brokers.split(_NEXT)) for *key, brokers in rows}
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise SpecError(f"{file}: its rows are not {', '.join(_HEADS)} ({error}); {_REMEDY}") from None
    found.pop(RowKey(*_HEADS[:-1]), None)
    return MappingProxyType(found)


def seen_text(seen: Iterable[tuple[RowKey, Iterable[str]]]) -> str:
    """Return the file that says which brokers performed each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADS)
    writer.writerows((*key, _NEXT.join(brokers)) for key, brokers in sorted(seen))
    return text.getvalue()
