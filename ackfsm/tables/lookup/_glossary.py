"""The words of ``spec/GLOSSARY.md``: each with its meaning, and the line where it stands."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ackfsm.tables import shipped_tables
from ackfsm.tables.lookup._cells import Place

_FILE: Final = "GLOSSARY.md"

_HEAD: Final = frozenset({"term", "---"})
"""The first cells of the two lines above the rows of a table."""

_CODE: Final = re.compile(r"`([^`]+)`")

_QUALIFIED: Final = re.compile(r"\s*\([^)]*\)$")


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """A row of the glossary: all ``names`` of one meaning, of what they are said (``section``), and where else how.

    ``mentions`` are the names of the tables, or of anything else, that its meaning spells as code.
    """

    names: tuple[str, ...]
    meaning: str
    mentions: tuple[str, ...]
    elsewhere: str
    section: str
    place: Place


def glossary(directory: Path | None = None) -> Mapping[str, tuple[Term, ...]]:
    """The terms by each of their names in lower case; ``directory`` has the tables if not the package's.

    A table of another directory may be without a glossary, and then has no terms.
    """
    file = (shipped_tables() if directory is None else directory) / _FILE
    if not file.is_file():
        return MappingProxyType({})
    found: dict[str, tuple[Term, ...]] = {}
    for term in _terms(file.read_text(encoding="utf-8")):
        for name in term.names:
            key = name.casefold()
            found[key] = (*found.get(key, ()), term)
    return MappingProxyType(found)


def _terms(text: str) -> Iterator[Term]:
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            section = line[3:]
        if not line.startswith("| "):
            continue
        names, meaning, elsewhere = (cell.strip() for cell in line.strip("|").split(" | ", 2))
        if names not in _HEAD:
            place = Place(f"spec/{_FILE}", number)
            told = _plain(meaning), tuple(_CODE.findall(meaning)), _plain(elsewhere.strip("| "))
            yield Term(tuple(_names(names)), *told, section, place)


def _names(cell: str) -> Iterator[str]:
    """``session, consumer (per)`` names two, whose qualification is no part of a name."""
    for name in _QUALIFIED.sub("", _plain(cell)).split(", "):
        yield _QUALIFIED.sub("", name)


def _plain(text: str) -> str:
    return text.replace("`", "")
