"""Drawings of the machines and properties, made from the tables: DOT, SVG, PNG, Mermaid, PlantUML, Markdown."""

from ackfsm.draw._draw import Format, draw, overview
from ackfsm.draw._write import write_all

__all__ = ["Format", "draw", "overview", "write_all"]
