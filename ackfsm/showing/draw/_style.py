"""Colours and shapes of drawings: a palette for colour-blind readers (Okabe and Ito), and never colour alone."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.showing.draw._diagram import Kind, Label, Mark

FONT: Final = "Helvetica"
INK: Final = "#222222"
DIM: Final = "#999999"

COLOURS: Final[Mapping[Kind, str]] = MappingProxyType(
    {Kind.FAULT: "#d55e00", Kind.OBSERVABLE: "#0072b2", Kind.INTERNAL: "#555555"}
)
KIND_MEANS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.FAULT: "something goes wrong; a move that only faults make is dashed",
        Kind.OBSERVABLE: "recorded in histories",
        Kind.INTERNAL: "no history shows it",
    }
)
OWNED_MEANS: Final = "decided by this machine; in the others it takes part"
FILLS: Final[Mapping[Mark, str]] = MappingProxyType(
    {Mark.NONE: "#f3f6f9", Mark.ANOMALY: "#f9d3bd", Mark.AT_REST: "#fff1b8"}
)
MARK_MEANS: Final[Mapping[Mark, str]] = MappingProxyType(
    {
        Mark.ANOMALY: "to get here is the anomaly",
        Mark.AT_REST: "to be here, once nothing but faults can happen any more, is the anomaly",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class EdgeLabel:
    """One line of plain text on an edge."""

    text: str
    fault: bool
    possible: bool


def grouped(labels: Iterable[Label]) -> dict[str, list[Label]]:
    """Labels by their guard, both in the order of the table."""
    groups: dict[str, list[Label]] = {}
    for label in labels:
        groups.setdefault(label.guard, []).append(label)
    return groups


def edge_labels(labels: Iterable[Label]) -> Iterator[EdgeLabel]:
    """Yield the labels of an edge as lines of plain text, labels of one guard, kind and possibility together."""
    for guard, group in grouped(labels).items():
        groups: dict[tuple[bool, bool], list[str]] = {}
        for label in group:
            groups.setdefault((label.kind is Kind.FAULT, label.possible), []).append(str(label.event))
        for (fault, possible), events in groups.items():
            remarks = " (fault)" * fault + " (cannot happen)" * (not possible) + f" [{guard}]" * bool(guard)
            yield EdgeLabel(f"{', '.join(events)}{remarks}", fault, possible)


def wrapped(text: str, width: int) -> Sequence[str]:
    """``text`` in lines of at most ``width`` characters, never broken inside a word."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def identifier(panel: str, state: str) -> str:
    """A name for ``state`` that no text format takes for a word of its own."""
    return re.sub(r"\W", "_", f"{panel}_{state}")
