"""Read a :class:`History` from JSONL, gzipped JSONL, Parquet, a folder of parts, or a pipe."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ackfsm.history.columns import Events, assemble
from ackfsm.history.gathered import Gathered, Remark
from ackfsm.history.header import Header, Headers, header_beside
from ackfsm.history.lines import ParseError
from ackfsm.history.open import opened
from ackfsm.history.source import Source, source_of
from ackfsm.history.victims import refuse_impossible
from ackfsm.terms import InputError
from ackfsm.text import shown


class NoEventError(InputError):
    """A history without a line that can be read as an event."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class History:
    """A recorded history.

    Attributes:
        path: where it was read from.
        header: what it says of itself, ``None`` if it says nothing.
        events: its events as columns.
        unreadable: the first few lines that are no events.
        unreadable_count: how many such lines there are.
        remarks: what was seen at rest, in the order of its lines.
        ignored: the names of fields that the format does not have, in their order.
    """

    path: Path
    header: Header | None
    events: Events
    unreadable: tuple[ParseError, ...]
    unreadable_count: int
    remarks: tuple[Remark, ...] = ()
    ignored: tuple[str, ...] = ()


def read(path: str | Path) -> History:
    """Read the history at ``path``: a file, a pipe, a folder of parts, or ``"-"`` (text, not a path): standard input.

    Every file is opened and read once.
    A line that is no event is counted and described, and the others are read.  Raises
    :class:`InputError`, one sentence with file, line and remedy, where the file as a whole is at
    fault: it is missing, empty, truncated, not what its name says, without any event, or its header is not known.
    """
    source = source_of(path)
    headers = headers_beside(source)
    gathered = Gathered()
    for file in source.files:
        with opened(source, file) as part:
            headers.add(part.header, source.name_of(file))
            for lines in part.lines():
                gathered.add(lines, source.name_of(file))
    if not any(len(each) for each in gathered.columns):
        raise no_event(source.name_of(source.path), gathered.unreadable)
    events = assemble(gathered.columns)
    refuse_impossible(gathered.victims, events)
    return History(
        path=source.path,
        header=headers.merged(),
        events=events,
        unreadable=tuple(gathered.unreadable),
        unreadable_count=gathered.unreadable_count,
        remarks=tuple(gathered.remarks),
        ignored=tuple(sorted(gathered.ignored)),
    )


def read_header(path: str | Path) -> Header | None:
    """The header of the history at ``path``, ``None`` if it has none.

    What was read of a pipe is gone from it; :func:`read` gives the header together with the events.
    Raises :class:`InputError` as :func:`read` does.
    """
    source = source_of(path)
    headers = headers_beside(source)
    for file in source.files:
        with opened(source, file) as part:
            headers.add(part.header, source.name_of(file))
    return headers.merged()


def headers_beside(source: Source) -> Headers:
    """The headers in files of their own beside the history and its parts; those inside the parts are to be added."""
    headers = Headers()
    for file in source.beside():
        headers.add(header_beside(file), shown(str(file)))
    return headers


def no_event(name: str, unreadable: Sequence[ParseError]) -> NoEventError:
    """Return the error for a history, called ``name``, without a readable event."""
    remedy = "a history has one a line (history format 1), and `ackfsm import` reads other logs"
    return NoEventError(f"{name} has no event{_first_of(unreadable)}; {remedy}")


def _first_of(unreadable: Sequence[ParseError]) -> str:
    return f" that can be read ({unreadable[0]})" if unreadable else ""
