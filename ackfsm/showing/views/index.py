"""``spec/INDEX.md``: from every setting, event and mode to the rows that decide; made from the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ackfsm.showing.views.markdown import code, page_of, rows_of
from ackfsm.tables import Only, SignRow, Specification, Value, format_value
from ackfsm.tables.lookup import Cell, Difference, Lookup, Place
from ackfsm.terms import AckMode, Configuration, DeliveryMode, SendMode

_MADE: Final = "<!-- Made from spec/ by ackfsm where: change the tables, not this file. -->"

_MODES: Final = (("ack_mode", AckMode), ("delivery_mode", DeliveryMode), ("send_mode", SendMode))

_INTRODUCTION: Final = """\
# Index of the tables

Where to look: from a setting, an event or a mode to the rows that decide. `ackfsm where WORD` shows the same rows with
their reasons and sources, for one word.
"""


_SECTIONS: Final = {
    "Settings": "A setting decides the rows whose conditions read it, also through a named [condition](#conditions).",
    "Conditions": "The names of [conditions.yaml](conditions.yaml) that rows share.",
    "Events": "An event happens where each of these machines allows it; the **owner** decides whether it exists. "
    "`calls` says whose call it is.",
    "Recording": "What each line of a history tells; the reasons are in [recording.yaml](recording.yaml).",
    "Modes": "What each value changes: with all else as the profile `jms` has it, or with one more setting changed "
    "(*if also*).",
}


def index_page(lookup: Lookup) -> str:
    """The whole page."""
    spec = lookup.specification
    keys = [field.name for field in dataclasses.fields(Configuration)]
    settings = rows_of(
        ("setting", "conditions that read it", "rows that read it"), (_setting(lookup, key) for key in keys)
    )
    conditions = rows_of(
        ("condition", "conditions that read it", "rows that read it"),
        (_condition(lookup, name) for name in spec.conditions),
    )
    events = rows_of(("event", "means", "rows"), (_event(lookup, name) for name in spec.events))
    modes = [line for key, kind in _MODES for value in kind for line in _mode(lookup, key, value)]
    recording = [
        *rows_of(("sign", "line", "of", "tells"), map(_sign, spec.recording.rows)),
        "",
        *rows_of(("told by no line", "events"), _untold(spec)),
    ]
    titles = ("Settings", "Conditions", "Events", "Recording", "Modes")
    lines = [_MADE, "", *_INTRODUCTION.splitlines(), "", *(f"* [{title}](#{title.lower()})" for title in titles)]
    for title, body in zip(titles, (settings, conditions, events, recording, modes), strict=True):
        lines += ["", f"## {title}", "", _SECTIONS[title], *([] if title == "Modes" else [""]), *body]
    return page_of(lines)


def link(place: Place) -> str:
    """A link to a line of a table, from a page in ``spec/``."""
    return f"[{place.line}]({place.file.removeprefix('spec/')}#L{place.line})"


def _setting(lookup: Lookup, key: str) -> tuple[str, str, str]:
    counters = [
        f"the bound of `{machine.name}` {link(Place(machine.file, machine.line))}" for machine in lookup.counting(key)
    ]
    return code(key), _reading(lookup, key), "<br>".join([*_by_table(lookup.reading({key})), *counters])


def _condition(lookup: Lookup, name: str) -> tuple[str, str, str]:
    place = link(lookup.place_of_condition(name))
    return f"{code(name)} {place}", _reading(lookup, name), "<br>".join(_by_table(lookup.reading({name})))


def _reading(lookup: Lookup, name: str) -> str:
    conditions = lookup.specification.conditions
    return ", ".join(code(each) for each in lookup.conditions_reading(name) if name in conditions[each].names())


def _event(lookup: Lookup, name: str) -> tuple[str, str, str]:
    owner = lookup.specification.owner(name)
    rows = _by_table(lookup.cells_with(name), owner.name if owner else "")
    return code(name), lookup.specification.events[name].means, "<br>".join(rows)


def lines_table(specification: Specification) -> list[str]:
    """A Markdown table of what each line of a history tells, and when it is written."""
    signs, events = specification.recording.rows, specification.events
    rows = (
        (
            _line(row),
            _of(row),
            _when(row),
            "; or: ".join(events[event].means for event in row.tells[: row.leaving] or row.tells),
        )
        for row in signs
        if row.only is not Only.DRAWN
    )
    return rows_of(("line", "of", "written", "what happened"), rows)


def _untold(spec: Specification) -> Iterator[tuple[str, str]]:
    """Which events no row tells: a hidden one explains whatever it makes possible, an optional one nothing."""
    rows = spec.recording.rows
    told = {event for row in rows for event in (*row.tells, *row.alone, *row.unwritten)}
    untold = [event for name, event in spec.events.items() if name not in told and spec.owner(name) is not None]
    for title, optional in (("hidden", False), ("optional", True)):
        yield title, ", ".join(code(event.name) for event in untold if event.optional is optional)


def _sign(row: SignRow) -> tuple[str, str, str, str]:
    return row.name, _line(row), f"{_of(row)}, {_when(row)}", ", ".join(map(code, row.tells))


def _line(row: SignRow) -> str:
    fields = [f"`{name}` {' or '.join(format_value(value) for value in values)}" for name, values in row.fields.items()]
    fields += [f"with `{name}`" for name in sorted(row.has)] + [f"without `{name}`" for name in sorted(row.lacks)]
    fields += [f"header: {code(row.line)} {row.said}"] * bool(row.said)
    fields += ["answered `rolled_back`"] * (row.undone is True)
    return "<br>".join([code(row.line), *fields])


def _of(row: SignRow) -> str:
    return f"{row.of.value}{', if possible' if row.sure else ''}"


def _when(row: SignRow) -> str:
    return row.when.value.replace("_", " ")


def _by_table(cells: Iterable[Cell], owner: str = "") -> Iterator[str]:
    """For each table its name, then each state with the lines where its rows begin."""
    tables: dict[str, dict[str, dict[Place, None]]] = {}
    for cell in cells:
        tables.setdefault(cell.table, {}).setdefault(cell.state, {})[cell.place] = None
    for table, states in tables.items():
        said = (" ".join([*[state] * bool(state), *map(link, places)]) for state, places in states.items())
        yield f"{f'**`{table}`**' if table == owner else code(table)}: {', '.join(said)}"


def _mode(lookup: Lookup, key: str, value: Value) -> list[str]:
    title = ["", f"### {key}={format_value(value)}", ""]
    other = lookup.baseline(key)
    if value == other:
        return [*title, "The others are compared with this one."]
    return [*title, *difference_rows(lookup.differences(key, value), format_value(other), link)]


def difference_rows(
    differences: Iterable[Difference], other: str, show: Callable[[Place], str] = lambda place: code(str(place))
) -> list[str]:
    """Return a Markdown table of differences from ``other``; ``show`` makes a link of a place."""
    rows = [
        (
            code(each.cell.name),
            ", ".join(map(code, each.cell.events)),
            f"{each.row.outcome} ({show(each.row.place)}): {each.row.because}",
            f"{each.instead_of.outcome} ({show(each.instead_of.place)})",
            ", ".join(code(f"{key}={format_value(given)}") for key, given in each.given.items()),
        )
        for each in differences
    ]
    if not rows:
        return [f"No row decides otherwise than with `{other}`."]
    return rows_of(("where", "on", "here", f"with `{other}`", "if also"), rows)
