"""Drawings of the machines and properties, made from the tables: DOT, SVG, PNG, Mermaid, PlantUML, Markdown."""

from ackfsm.draw._draw import Format, draw, overview
from ackfsm.draw._sequence import Arrow, SequenceDiagram, sequence_mermaid, sequence_plantuml
from ackfsm.draw._sequence_svg import sequence_svg
from ackfsm.draw._witness import witness_diagram
from ackfsm.draw._write import write_all

__all__ = [
    "Arrow",
    "Format",
    "SequenceDiagram",
    "draw",
    "overview",
    "sequence_mermaid",
    "sequence_plantuml",
    "sequence_svg",
    "witness_diagram",
    "write_all",
]
