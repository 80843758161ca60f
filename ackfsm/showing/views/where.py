"""The screen and the JSON of ``ackfsm where``: the rows that decide, each with its file and line, the answer first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ackfsm.tables import format_value
from ackfsm.tables.lookup import Answer, Cell, Difference, Place, Reference, TableRow
from ackfsm.terms import Profile

_WIDTH: Final = 80
_MANY: Final = 24
"""Rows; of more than that a screen shows where they are, without their reasons."""

_FEW: Final = 5
"""Conditions or promises; of more than that a screen shows where they are."""

_SPELLED: Final = frozenset({"condition", "promise", "guarantee"})

_LISTED: Final = {
    "profile": "set by",
    "name": "called",
    "watched": "watched by",
    "agent": "brought about by",
    "event": "declared",
    "sweep": "swept",
    "property": "defined by",
    "guarantee": "guarantee",
    "promise": "promise",
    "condition": "condition",
    "liveness": "declared",
    "glossary": "in the glossary under",
}
"""The titles of what follows the rows."""


def screen(answers: Sequence[Answer], width: int = _WIDTH) -> str:
    """Return the text for a person: each meaning of the word with its answer, the rows, and related words.

    Lines are ``width`` characters at most, but for a word that is longer.
    """
    return "\n\n".join("\n".join(_lines(_answer(each), width)) for each in answers)


class _Paragraph(NamedTuple):
    """A text whose first line begins with ``head``, and whose other lines are indented."""

    head: str
    indent: int
    text: str


def _lines(parts: Iterable[_Part], width: int) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        wrapped = textwrap.wrap(
            part.text,
            width,
            initial_indent=part.head,
            subsequent_indent=" " * part.indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from wrapped or [part.head.rstrip()]


_Part: TypeAlias = str | _Paragraph


def _answer(answer: Answer) -> Iterator[_Part]:
    yield from _wrapped(f"{answer.name}: ", 2, answer.summary[0])
    for sentence in answer.summary[1:]:
        yield from _wrapped("  ", 2, sentence)
    if answer.differences:
        yield from _differences(answer)
    elif sum(len(cell.rows) for cell in answer.cells) > _MANY and answer.kind != "machine":
        yield from _short(answer)
    else:
        yield from _cells(answer)
    yield from _references(answer)


def _wrapped(head: str, indent: int, text: str) -> list[_Paragraph]:
    return [_Paragraph(head, indent, text)]


def _by_table(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    tables: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        tables.setdefault((cell.table, cell.place.file), []).append(cell)
    return tables


def _cells(answer: Answer) -> Iterator[_Part]:
    for (table, file), cells in _by_table(answer.cells).items():
        yield from ("", f"{table} ({file})")
        for cell in cells:
            for number, row in enumerate(cell.rows):
                where = "" if number else _where(cell, answer)
                yield from _line(row.place, f"{where}{_row(row, later=number > 0)}")


def _where(cell: Cell, answer: Answer) -> str:
    """Return the state and the events of a cell, except the one that is asked for."""
    shown = "" if cell.events == (answer.name,) else ", ".join(cell.events)
    return f"{', on '.join(part for part in (cell.state, shown) if part)}: "


def _row(row: TableRow, *, later: bool) -> str:
    when = f" when {row.condition}" if row.condition else ""
    source = f" [{row.source}]" if row.source else ""
    seen = f" (seen: {', '.join(row.seen)})" if row.seen else ""
    return f"{'else ' if later else ''}{row.outcome}{when}; {row.because}{source}{seen}"


def _line(place: Place, text: str) -> list[_Paragraph]:
    head = f"  {_short_place(place)}  "
    return _wrapped(head, len(head), text)


def _short_place(place: Place) -> str:
    return f"{place.file.rpartition('/')[2]}:{place.line}"


def _short(answer: Answer) -> Iterator[_Part]:
    """Where the rows are, a paragraph for each table."""
    yield ""
    for (table, file), cells in _by_table(answer.cells).items():
        parts = (_briefly(cell, answer) for cell in cells)
        yield from _wrapped(f"{table} ({file}) ", 4, "; ".join(parts))
    machine = next((cell.table for cell in answer.cells if cell.place.file.startswith("spec/machines/")), "delivery")
    yield from _wrapped("  ", 2, f"with the reasons, machine by machine: ackfsm where {machine}")


def _briefly(cell: Cell, answer: Answer) -> str:
    where = _where(cell, answer).removesuffix(": ")
    if answer.kind != "event":
        return f":{cell.place.line} {where}"
    said = ", else ".join(row.outcome + (f" when {row.condition}" if row.condition else "") for row in cell.rows)
    return f":{cell.place.line} {where} {said}".replace("  ", " ")


def _differences(answer: Answer) -> Iterator[_Part]:
    """The differences with all else by default, each with its reason; then the others, in a line each."""
    groups: dict[str, list[Difference]] = {}
    for difference in answer.differences:
        given = ", ".join(f"{key}={format_value(value)}" for key, value in difference.given.items())
        groups.setdefault(given, []).append(difference)
    for given, differences in groups.items():
        yield from ("", f"with {given}") if given else ()
        table = ""
        for each in differences:
            if not given and each.cell.table != table:
                table = each.cell.table
                yield from ("", f"{table} ({each.row.place.file})")
            yield from _brief_difference(each, answer) if given else _difference(each, answer)


def _difference(difference: Difference, answer: Answer) -> Iterator[_Part]:
    row, other = difference.row, difference.instead_of
    yield from _line(row.place, f"{_where(difference.cell, answer)}{_row(row, later=False)}")
    head = " " * len(f"  {_short_place(row.place)}  ")
    yield from _wrapped(head, len(head), f"{answer.instead_of}: {other.outcome} (:{other.place.line})")


def _brief_difference(difference: Difference, answer: Answer) -> list[_Paragraph]:
    row, other = difference.row, difference.instead_of
    where = f"{difference.cell.table} {_where(difference.cell, answer)}"
    return _line(row.place, f"{where}{row.outcome}, not {other.outcome} (:{other.place.line})")


def _references(answer: Answer) -> Iterator[_Part]:
    kinds: dict[str, list[Reference]] = {}
    for reference in answer.references:
        kinds.setdefault(reference.kind, []).append(reference)
    if kinds:
        yield ""
    for kind, found in kinds.items():
        spelled = kind in _SPELLED and (len(found) <= _FEW or answer.kind == "machine")
        texts = [_reference(each, spelled=spelled or kind not in _SPELLED) for each in found]
        for text in texts if spelled else ["; ".join(texts)]:
            yield from _wrapped(f"{_LISTED[kind]} ", 4, text)


def _reference(reference: Reference, *, spelled: bool) -> str:
    place, text = f"({_short_place(reference.place)})", " ".join(reference.text.split())
    if not spelled or not text:
        return f"{reference.name} {place}"
    return f"{reference.name} {place}: {text}"


def answers_json(word: str, profile: Profile, answers: Sequence[Answer]) -> dict[str, object]:
    """The answers as plain values."""
    return {"word": word, "profile": profile.value, "answers": [_answer_json(answer) for answer in answers]}


def _answer_json(answer: Answer) -> dict[str, object]:
    return {
        "kind": answer.kind,
        "name": answer.name,
        "summary": list(answer.summary),
        "rows": [{**_cell_json(cell), **_row_json(row)} for cell in answer.cells for row in cell.rows],
        "instead_of": answer.instead_of or None,
        "differences": [
            {
                **_cell_json(each.cell),
                **_row_json(each.row),
                "instead_of": _row_json(each.instead_of),
                "with": {key: format_value(value) for key, value in each.given.items()},
            }
            for each in answer.differences
        ],
        "references": [
            {"kind": each.kind, "name": each.name, "text": each.text, **_place_json(each.place)}
            for each in answer.references
        ],
    }


def _cell_json(cell: Cell) -> dict[str, object]:
    return {"table": cell.table, "states": list(cell.states), "events": list(cell.events)}


def _row_json(row: TableRow) -> dict[str, object]:
    return {
        "outcome": row.outcome,
        "when": row.condition,
        "because": row.because,
        "source": row.source,
        "seen": list(row.seen),
        **_place_json(row.place),
    }


def _place_json(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line}
