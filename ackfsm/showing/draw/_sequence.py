"""Sequence diagrams: numbered arrows between lanes, as Mermaid and PlantUML text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Final

from ackfsm.checking.explore import Step, Witness
from ackfsm.showing.draw._style import identifier, wrapped
from ackfsm.tables import Lane, Specification
from ackfsm.text import printable

_WIDTH: Final = 60
_MERMAID: Final = re.compile(r"[#;<>]")
_PLAIN: Final = re.compile(r"\w+", re.ASCII)
_RESERVED: Final = frozenset({"actor", "alt", "and", "box", "end", "else", "loop", "note", "opt", "par", "participant"})
"""Words of Mermaid and PlantUML that would not be read as names."""

_CREOLE: Final = re.compile(r'//|\*\*|__|--|~~|""|<|\\')


@dataclasses.dataclass(frozen=True, slots=True)
class Arrow:
    """One step, from the lane ``start`` to the lane ``end``, which may be the same.

    ``because`` is the reason, empty without one; a ``fault``, and what is ``wrong``, is drawn so that it is seen.
    """

    number: int | None
    start: str
    end: str
    label: str
    because: str = ""
    fault: bool = False
    wrong: bool = False

    @property
    def numbered(self) -> str:
        """The label with its number."""
        return self.label if self.number is None else f"{self.number} {self.label}"


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceDiagram:
    """Lanes from left to right, arrows from top to bottom, and ``ending``: the outcome in a few sentences.

    ``wrong`` is whether that is something bad.
    """

    title: str
    lanes: tuple[str, ...]
    arrows: tuple[Arrow, ...]
    ending: tuple[str, ...] = ()
    wrong: bool = True


def sequence_mermaid(diagram: SequenceDiagram) -> str:
    """``diagram`` as a Mermaid ``sequenceDiagram``."""
    lines = ["sequenceDiagram", *(f"    {line}" for line in _mermaid(diagram))]
    return "".join(f"{line}\n" for line in lines)


def _mermaid(diagram: SequenceDiagram) -> Iterator[str]:
    names = _names(diagram)
    if diagram.title:
        yield f"title {_in_mermaid(diagram.title)}"
    for lane, name in names.items():
        yield f"participant {lane}" if name == lane else f"participant {name} as {_in_mermaid(lane)}"
    for arrow in diagram.arrows:
        head = "-x" if arrow.fault else "->>"
        text = "<br/>".join(map(_in_mermaid, _said(arrow)))
        yield f"{names[arrow.start]}{head}{names[arrow.end]}: {text}"
    if diagram.ending:
        yield f"Note over {_span(names, ',')}: {'<br/>'.join(map(_in_mermaid, _ending(diagram)))}"


def _in_mermaid(text: str) -> str:
    """``text`` with the signs that Mermaid reads written by their numbers: ``m1#2`` is ``m1#35;2``."""
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", printable(text))


def sequence_plantuml(diagram: SequenceDiagram) -> str:
    """``diagram`` as a PlantUML sequence diagram."""
    lines = ["@startuml", *_plantuml(diagram), "@enduml"]
    return "".join(f"{line}\n" for line in lines)


def _plantuml(diagram: SequenceDiagram) -> Iterator[str]:
    names = _names(diagram)
    if diagram.title:
        yield f"title {_in_plantuml(diagram.title)}"
    yield from (f'participant "{_in_plantuml(lane)}" as {name}' for lane, name in names.items())
    for arrow in diagram.arrows:
        head = "->x" if arrow.fault else "->"
        text = "\\n".join(map(_in_plantuml, _said(arrow)))
        yield f"{names[arrow.start]} {head} {names[arrow.end]} : {text}"
    if diagram.ending:
        yield f"note over {_span(names, ', ')}"
        yield from map(_in_plantuml, _ending(diagram))
        yield "end note"


def _in_plantuml(text: str) -> str:
    """``text`` with a tilde before what PlantUML takes for a mark of its own."""
    return _CREOLE.sub(lambda found: f"~{found[0]}", printable(text))


def _said(arrow: Arrow) -> Iterator[str]:
    yield arrow.numbered
    yield from wrapped(arrow.because, _WIDTH)


def _ending(diagram: SequenceDiagram) -> Iterator[str]:
    for sentence in diagram.ending:
        yield from wrapped(sentence, _WIDTH)


def _span(names: Mapping[str, str], comma: str) -> str:
    first, *_, last = names.values() if len(names) > 1 else [*names.values()] * 2
    return comma.join(dict.fromkeys((first, last)))


def _names(diagram: SequenceDiagram) -> Mapping[str, str]:
    """For each lane a name of its own that no format takes for anything else."""
    found: dict[str, str] = {}
    for nth, lane in enumerate(diagram.lanes):
        name = lane if _PLAIN.fullmatch(lane) and lane.lower() not in _RESERVED else identifier("lane", lane)
        found[lane] = name if name not in found.values() and name.isascii() else f"lane_{nth}_of_{len(diagram.lanes)}"
    return found


def witness_diagram(specification: Specification, witness: Witness) -> SequenceDiagram:
    """``witness`` between the lanes that ``spec/events.yaml`` gives its events, each step with its reason in words."""
    arrows = tuple(_arrow(specification, step) for step in witness.steps)
    used = {lane for arrow in arrows for lane in (arrow.start, arrow.end)}
    lanes = tuple(lane.value for lane in Lane if lane in used)
    title = f"{witness.anomaly}: {specification.meaning(witness.anomaly)}"
    return SequenceDiagram(title, lanes or (Lane.BROKER.value,), arrows, witness.ending)


def _arrow(specification: Specification, step: Step) -> Arrow:
    event = specification.events[step.event.name]
    fault = event.lane is Lane.FAULT
    return Arrow(step.number, event.start.value, event.end.value, step.event.label, step.because, fault)
