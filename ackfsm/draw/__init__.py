"""Drawings of the machines and properties, made from the tables: DOT, SVG, PNG, Mermaid, PlantUML, Markdown."""

from ackfsm.draw._draw import Format, draw, overview
from ackfsm.draw._pages import write_all
from ackfsm.draw._sequence import Arrow, SequenceDiagram, sequence_mermaid, sequence_plantuml, witness_diagram
from ackfsm.draw._sequence_svg import sequence_svg
from ackfsm.draw._story import story_diagram

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
