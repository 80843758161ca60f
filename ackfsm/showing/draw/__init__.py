"""Drawings of the machines and properties, made from the tables: DOT, SVG, PNG, Mermaid, PlantUML, Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ackfsm.showing.draw._draw import Format, draw, overview
from ackfsm.showing.draw._pages import write_all
from ackfsm.showing.draw._sequence import Arrow, SequenceDiagram, sequence_mermaid, sequence_plantuml, witness_diagram
from ackfsm.showing.draw._sequence_svg import sequence_svg

if TYPE_CHECKING:
    from ackfsm.showing.draw._story import story_diagram

__all__ = [
    "Arrow",
    "Format",
    "SequenceDiagram",
    "draw",
    "overview",
    "sequence_mermaid",
    "sequence_plantuml",
    "sequence_svg",
    "story_diagram",
    "witness_diagram",
    "write_all",
]


def __getattr__(name: str) -> Any:
    """What draws the story of a message is loaded when it is asked for: with it comes all that verifies histories."""
    if name != "story_diagram":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ackfsm.showing.draw import _story

    return _story.story_diagram
