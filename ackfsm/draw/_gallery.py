"""The pages and pictures of all machines and properties, and the index that shows them.

They are made from the tables and nothing else (no date, no version, everything in the order of the
tables), so that whoever makes them again gets the same bytes, and a comparison tells whether they are fresh.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from ackfsm.draw._diagram import Diagram, make_diagram
from ackfsm.draw._dot import dot
from ackfsm.draw._mermaid import mermaid, system_mermaid
from ackfsm.draw._render import svg
from ackfsm.draw._style import KIND_MEANS, MARK_MEANS, OWNED_MEANS
from ackfsm.draw._system import System, make_system
from ackfsm.draw._system_dot import system_dot
from ackfsm.draw._table import body, head, system_body, system_head
from ackfsm.network import Bounds
from ackfsm.pages import page_of, rows_of, sentence
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Configuration, DeliveryMode, SendMode

__all__ = ["MADE", "gallery"]

MADE: Final = "<!-- Made from spec/ by ackfsm draw: change the tables, not this file. -->\n"
"""What every file of the gallery says of itself."""

_MODES: Final[tuple[tuple[str, type[StrEnum], str], ...]] = (
    ("ack_mode", AckMode, "acknowledge"),
    ("send_mode", SendMode, "send"),
    ("delivery_mode", DeliveryMode, "write_record"),
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """A page with its picture: where they are (without suffix), what the index calls them, what they show."""

    path: str
    title: str
    diagram: Diagram


@dataclasses.dataclass(frozen=True, slots=True)
class _Section:
    title: str
    text: str
    entries: tuple[_Entry, ...]


def gallery(specification: Specification, configuration: Configuration | None, bounds: Bounds | None) -> dict[str, str]:
    """The text of every file by its name.  Raises :class:`ackfsm.terms.InputError` as :func:`ackfsm.draw.draw` does."""
    system = make_system(specification, configuration, bounds)
    sections = tuple(_sections(specification, system, configuration, bounds))
    files = {
        "README.md": f"{MADE}\n{_index(specification, sections)}",
        "overview.md": f"{MADE}\n{_overview(system)}",
        "overview.svg": _picture(system_dot(system)),
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
        for key, kind, event in _MODES:
            if (owner := specification.owner(event)) is not None:
                yield _modes(specification, key, kind, owner.name, bounds)


def _modes(specification: Specification, key: str, kind: type[StrEnum], name: str, bounds: Bounds | None) -> _Section:
    """The machine ``name`` under each value of a setting."""
    entries = []
    for value in kind:
        chosen = specification.configure(settings={key: value})
        diagram = make_diagram(specification, name, chosen, bounds)
        entries.append(_Entry(f"modes/{key}-{value}", f"{key}={value}", diagram))
    text = f"What each value leaves of [{name}](machines/{name}.md), with all else as the profile `jms` has it."
    return _Section(f"Every {key}", text, tuple(entries))


def _picture(source: str) -> str:
    """``source`` as SVG; what it says of itself stands behind the declaration, which must come first."""
    declaration, newline, rest = svg(source).partition("\n")
    return f"{declaration}{newline}{MADE}{rest}"


def _page(entry: _Entry) -> str:
    file = entry.path.rpartition("/")[2]
    picture = f"\n![{entry.title}]({file}.svg)\n"
    sources = "\nWhat the sources stand for: see the [index](../README.md#sources).\n"
    return f"{head(entry.diagram)}{picture}{body(entry.diagram)}{sources}{_fenced(mermaid(entry.diagram))}"


def _overview(system: System) -> str:
    picture = "\n![overview](overview.svg)\n"
    return f"{system_head(system)}{picture}{system_body(system)}{_fenced(system_mermaid(system))}"


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
