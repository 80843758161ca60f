"""Sentences of the systems' pages about several modes at once: their names, and the decisions on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ackfsm.showing.views.markdown import code, rows_of
from ackfsm.surveys.matrix import ModeResult
from ackfsm.terms import Anomaly

ANY_NUMBER: Final = "for any number of messages and of faults"

_ONE: Final = "one message and one fault"


def where(some: Sequence[ModeResult], modes: Sequence[ModeResult]) -> str:
    """The modes in ``some`` of all ``modes``, in as few words as may be."""
    if len(some) == len(modes):
        return "every mode"
    words = []
    for delivery_mode in dict.fromkeys(mode.configuration.delivery_mode for mode in modes):
        mine = [mode for mode in some if mode.configuration.delivery_mode == delivery_mode]
        whole = [mode for mode in modes if mode.configuration.delivery_mode == delivery_mode]
        if mine:
            names = ", ".join(dict.fromkeys(name_of(mode, mine, whole) for mode in mine))
            words.append(f"{delivery_mode}: {'every mode' if len(mine) == len(whole) else names}")
    return "; ".join(words)


def name_of(mode: ModeResult, some: Sequence[ModeResult], whole: Sequence[ModeResult]) -> str:
    """The acknowledgement mode, with the way to consume where ``some`` has not both of the ``whole``."""

    def ways(modes: Sequence[ModeResult]) -> int:
        return sum(other.configuration.ack_mode == mode.configuration.ack_mode for other in modes)

    config = mode.configuration
    return config.ack_mode if ways(some) == ways(whole) else f"{config.ack_mode} ({config.consumption})"


def shown_for(anomaly: Anomaly, some: Sequence[ModeResult], modes: Sequence[ModeResult]) -> str:
    """Of how many messages it is shown that the anomaly does not happen in ``some`` of ``modes``."""
    return "; ".join(_by_extent(some, modes, [_extent(mode, anomaly) for mode in some]))


def _extent(mode: ModeResult, anomaly: Anomaly) -> str:
    decided = mode.any_number
    if decided is None:
        return _ONE
    if anomaly in decided.possible:
        return f"**broken** with {_messages(decided.possible[anomaly])}"
    if anomaly in decided.undecided:
        searched = decided.undecided[anomaly].searched
        return f"{_messages(searched)} and any faults" if searched else _ONE
    return "any number of messages"


def _messages(number: int) -> str:
    return f"{number:,} message{'s' * (number != 1)}"


def _by_extent(some: Sequence[ModeResult], modes: Sequence[ModeResult], extents: Sequence[str]) -> Iterator[str]:
    """Each of ``extents`` once, with the modes that it is of unless it is of all of ``some``."""
    for extent in sorted(dict.fromkeys(extents), key=lambda one: -extents.count(one)):
        mine = [mode for mode, its in zip(some, extents, strict=True) if its == extent]
        yield extent if len(mine) == len(some) else f"{extent} ({where(mine, modes)})"


def any_number(modes: Sequence[ModeResult]) -> Iterator[str]:
    """Yield the proved, possible and undecided anomalies for any number of messages, if there are decisions."""
    decided = [mode for mode in modes if mode.any_number is not None]
    if not decided:
        return
    yield (
        f"With any faults, any number of times, all other settings at their defaults: *never* is proved {ANY_NUMBER}"
        " ([how](../../spec/any.md)). What is possible has a way there, of so many messages. What is undecided is"
        " neither proved nor found; before it stands with how many messages all was searched."
    )
    if len(decided) < len(modes):
        left = [mode for mode in modes if mode.any_number is None]
        yield ""
        yield f"Not asked yet: {where(left, modes)}."
    yield ""
    yield from rows_of(("anomaly", "never", "possible", "undecided"), (_row(anomaly, decided) for anomaly in Anomaly))


def _row(anomaly: Anomaly, modes: Sequence[ModeResult]) -> tuple[str, ...]:
    never: list[ModeResult] = []
    possible: dict[str, list[ModeResult]] = {}
    undecided: dict[str, list[ModeResult]] = {}
    for mode in modes:
        decided = mode.any_number
        if decided is None:
            continue
        if anomaly in decided.possible:
            possible.setdefault(_messages(decided.possible[anomaly]), []).append(mode)
        elif anomaly in decided.undecided:
            undecided.setdefault(_messages(decided.undecided[anomaly].searched), []).append(mode)
        else:
            never.append(mode)
    return code(anomaly), where(never, modes) if never else "", _with(possible, modes), _with(undecided, modes)


def _with(found: dict[str, list[ModeResult]], modes: Sequence[ModeResult]) -> str:
    return "; ".join(f"{messages}: {where(some, modes)}" for messages, some in found.items())
