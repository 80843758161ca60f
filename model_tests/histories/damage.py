"""Damage to the lines of a run, at random: what a recorder or a broker may have got wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

__all__ = ["DAMAGES", "damaged"]

Line = Mapping[str, Any]
_Damage: TypeAlias = "Callable[[list[Line], random.Random], list[Line]]"
_LAST: Final = ("drained", "depth")


def damaged(lines: Sequence[Line], kind: str, draw: random.Random) -> list[Line]:
    """The lines with one damage of this ``kind``; the same lines where there is nothing to damage."""
    body = [line for line in lines if line["event"] not in _LAST]
    ending = [line for line in lines if line["event"] in _LAST]
    return [*DAMAGES[kind](body, draw), *ending]


def _dropped(lines: list[Line], draw: random.Random) -> list[Line]:
    place = _any(lines, draw)
    return lines[:place] + lines[place + 1 :]


def _doubled(lines: list[Line], draw: random.Random) -> list[Line]:
    place = _any(lines, draw)
    later = draw.randint(place, len(lines))
    return lines[:later] + lines[place : place + 1] + lines[later:]


def _swapped(lines: list[Line], draw: random.Random) -> list[Line]:
    place = _any(lines, draw)
    return lines[:place] + lines[place : place + 2][::-1] + lines[place + 2 :]


def _flipped(lines: list[Line], draw: random.Random) -> list[Line]:
    places = [place for place, line in enumerate(lines) if "redelivered" in line]
    if not places:
        return lines
    place = draw.choice(places)
    line = lines[place]
    return [*lines[:place], {**line, "redelivered": not line["redelivered"]}, *lines[place + 1 :]]


def _moved(lines: list[Line], draw: random.Random) -> list[Line]:
    """A fault, or its repair, at another time."""
    places = [place for place, line in enumerate(lines) if line["event"] in {"fault", "recovered"}]
    if not places:
        return lines
    place = draw.choice(places)
    without = lines[:place] + lines[place + 1 :]
    later = draw.randint(0, len(without))
    return [*without[:later], lines[place], *without[later:]]


def _mistaken(lines: list[Line], draw: random.Random) -> list[Line]:
    """One line of a message that is of another one."""
    messages = sorted({line["message"] for line in lines if "message" in line})
    places = [place for place, line in enumerate(lines) if "message" in line]
    if len(messages) < 2:
        return lines
    place = draw.choice(places)
    other = next(each for each in messages if each != lines[place]["message"])
    return [*lines[:place], {**lines[place], "message": other}, *lines[place + 1 :]]


def _any(lines: list[Line], draw: random.Random) -> int:
    return draw.randrange(max(1, len(lines)))


DAMAGES: Final[Mapping[str, _Damage]] = MappingProxyType(
    {
        "drop": _dropped,
        "double": _doubled,
        "swap": _swapped,
        "flip": _flipped,
        "move": _moved,
        "mistake": _mistaken,
    }
)
"""A line is missing, there twice, or one place later; a flag is the other one; a fault is at another time; a line is of
another message."""
