"""Generate the pages and pictures of all machines and properties, and their index.

They are made from the tables and nothing else (no date, no version, everything in the order of the
tables), so they are the same bytes whenever they are made, and a comparison shows whether they are up to date.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from ackfsm.checking.network import Bounds
from ackfsm.showing.draw._diagram import Diagram, make_diagram
from ackfsm.showing.draw._dot import dot
from ackfsm.showing.draw._mermaid import mermaid, system_mermaid
from ackfsm.showing.draw._render import svg
from ackfsm.showing.draw._style import KIND_MEANS, MARK_MEANS, OWNED_MEANS
from ackfsm.showing.draw._system import System, make_system
from ackfsm.showing.draw._system_svg import system_svg
from ackfsm.showing.draw._table import body, head, system_body, system_head
from ackfsm.showing.views.index import difference_rows
from ackfsm.showing.views.markdown import page_of, rows_of, sentence
from ackfsm.support.files import write_folder
from ackfsm.tables import Specification
from ackfsm.tables.lookup import Lookup
from ackfsm.tables.names import Event
from ackfsm.terms import AckMode, Configuration, DeliveryMode, SendMode

MADE: Final = "<!-- Made from spec/ by ackfsm draw: change the tables, not this file. -->\n"
"""What every file of the pages says of itself."""

_MODES: Final[tuple[tuple[str, type[StrEnum], str], ...]] = (
    ("ack_mode", AckMode, Event.ACKNOWLEDGE),
    ("send_mode", SendMode, Event.SEND),
    ("delivery_mode", DeliveryMode, Event.WRITE_RECORD),
)
"""Settings in each of whose values a machine is drawn: the one that decides this event."""

_INTRODUCTION: Final = """\
# Drawings

Every machine and every property of `spec/`, drawn from its table. A picture shows the moves. The page behind it lists
every event in every state, also those that are ignored or refused, with the reason and its source.

A machine exists once for the system, for each message, or for each copy of a message (a resend makes a second copy).
An event happens in all machines that have it in their alphabet at once, and only if none of them refuses it; one of
them decides it.
"""


_ON_ITS_OWN: Final = """
Opened on its own, the picture shows the events of an arrow, a bracket or a machine where the mouse rests, and each
machine leads to its page.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """A page with its picture: their place (without suffix), their name in the index, their contents.

    ``differences`` is what the page of a mode begins with: the lines of Markdown that compare it with another.
    """

    path: str
    title: str
    diagram: Diagram
    differences: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Section:
    title: str
    text: str
    entries: tuple[_Entry, ...]


def write_all(
    specification: Specification,
    directory: Path,
    configuration: Configuration | None = None,
    bounds: Bounds | None = None,
) -> tuple[Path, ...]:
    """Write a page and a picture for every machine and property, the overview and an index into ``directory``.

    With a ``configuration`` everything is drawn for it, as :func:`ackfsm.showing.draw.draw` does; without one,
    the machines that decide sends, acknowledgements and records are drawn in every mode besides.
    All is made before the first file is written.  Then the files are removed that an earlier call has
    made and this one has not; others are left alone.  Returns what was written, sorted.

    Raises :class:`ackfsm.terms.InputError` if there is no Graphviz, if the tables have no rows for a setting, or if
    ``directory`` cannot be written.
    """
    return write_folder(directory, generated_pages(specification, configuration, bounds), MADE)


def generated_pages(
    specification: Specification, configuration: Configuration | None, bounds: Bounds | None
) -> dict[str, str]:
    """The text of every file by its name.  Raises what :func:`ackfsm.showing.draw.draw` raises."""
    system = make_system(specification, configuration, bounds)
    sections = tuple(_sections(specification, system, configuration, bounds))
    files = {
        "README.md": f"{MADE}\n{_index(specification, sections)}",
        "overview.md": f"{MADE}\n{_overview(system)}",
        "overview.svg": f"{MADE}{system_svg(system, 'machines')}",
    }
    for entry in (entry for section in sections for entry in section.entries):
        files[f"{entry.path}.md"] = f"{MADE}\n{_page(entry)}"
        files[f"{entry.path}.svg"] = _picture(dot(entry.diagram))
    return files


def _sections(
    specification: Specification, system: System, configuration: Configuration | None, bounds: Bounds | None
) -> Iterator[_Section]:
    def entries(folder: str, names: Iterable[str]) -> tuple[_Entry, ...]:
        made = ((name, make_diagram(specification, name, configuration, bounds)) for name in names)
        return tuple(_Entry(f"{folder}/{name}", name, diagram) for name, diagram in made)

    for lane, machines in system.lanes.items():
        names = [machine.name for machine in machines]
        yield _Section(f"Machines: {lane}", f"From `spec/machines/{lane}.yaml`.", entries("machines", names))
    text = "A property is one more machine. It only watches; some of its states are the anomaly."
    yield _Section("Properties", text, entries("properties", specification.properties))
    if configuration is None:
        lookup = Lookup(specification)
        for key, kind, event in _MODES:
            if (owner := specification.owner(event)) is not None:
                yield _modes(lookup, key, kind, owner.name, bounds)


def _modes(lookup: Lookup, key: str, kind: type[StrEnum], name: str, bounds: Bounds | None) -> _Section:
    """The machine ``name`` under each value of a setting for which the tables have rows."""
    specification, entries = lookup.specification, list[_Entry]()
    for value in kind:
        chosen = specification.configure(settings={key: value})
        diagram = make_diagram(specification, name, chosen, bounds)
        entries.append(_Entry(f"modes/{key}-{value}", f"{key}={value}", diagram, _compared(lookup, key, value)))
    text = f"What each value leaves of [{name}](machines/{name}.md), with all else as the profile `jms` has it."
    return _Section(f"Every {key}", text, tuple(entries))


def _compared(lookup: Lookup, key: str, value: StrEnum) -> tuple[str, ...]:
    """What all machines do otherwise than under the value that the others are compared with."""
    other = lookup.baseline(key)
    if value == other:
        return ("", f"The other values of `{key}` are compared with this one.")
    title = (
        "",
        f"## What differs from {other}",
        "",
        "All else is as the profile `jms` has it, but for what *if also* says.",
    )
    return (*title, "", *difference_rows(lookup.differences(key, value), str(other)), "", "## The machine")


def _picture(source: str) -> str:
    """Return ``source`` as SVG; its comment stands behind the declaration, which must come first."""
    declaration, newline, rest = svg(source).partition("\n")
    return f"{declaration}{newline}{MADE}{rest}"


def _page(entry: _Entry) -> str:
    file = entry.path.rpartition("/")[2]
    picture = f"\n![{entry.title}]({file}.svg)\n"
    sources = "\nWhat the sources stand for: see the [index](../README.md#sources).\n"
    first = f"{head(entry.diagram)}{page_of(entry.differences)}{picture}"
    return f"{first}{body(entry.diagram)}{sources}{_fenced(mermaid(entry.diagram))}"


def _overview(system: System) -> str:
    picture = "\n[![overview](overview.svg)](overview.svg)\n"
    return f"{system_head(system)}{picture}{_ON_ITS_OWN}{system_body(system)}{_fenced(system_mermaid(system))}"


def _fenced(source: str) -> str:
    return f"\n## As Mermaid\n\n```mermaid\n{source}```\n"


def _index(specification: Specification, sections: tuple[_Section, ...]) -> str:
    lines = [_INTRODUCTION, *_legend(), "", "## The whole system", "", "[![overview](overview.svg)](overview.md)"]
    for section in sections:
        lines += ["", f"## {section.title}", "", section.text]
        for entry in section.entries:
            lines += ["", f"### [{entry.title}]({entry.path}.md)"]
            lines += ["", sentence(entry.diagram.means)] if entry.title == entry.diagram.name else []
            lines += ["", f"[![{entry.title}]({entry.path}.svg)]({entry.path}.md)"]
    sources = [(f"`{tag}`", text) for tag, text in specification.sources.items()]
    lines += ["", "## Sources", "", *rows_of(("tag", "stands for"), sources)]
    return page_of(lines)


def _legend() -> Iterator[str]:
    yield from (f"* {kind}: {means}." for kind, means in KIND_MEANS.items())
    yield f"* **bold**: {OWNED_MEANS}."
    yield from (f"* {mark}: {means}." for mark, means in MARK_MEANS.items())
