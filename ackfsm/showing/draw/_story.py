"""The story of a message of a history as a sequence diagram, drawn by what draws witnesses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ackfsm.history.format import Event
from ackfsm.showing.draw._sequence import Arrow, SequenceDiagram
from ackfsm.showing.views.history import BROKER, Moment, Side, Story
from ackfsm.showing.views.story_words import (
    fault_sentences,
    first_and_last,
    headline,
    impossible_sentences,
    life_sentence,
    story_clock,
)
from ackfsm.showing.views.times import Clock
from ackfsm.tables import Specification
from ackfsm.terms import Fault, Verdict
from ackfsm.text import in_words, quoted, shown

_NAMED: Final = 16
"""Characters of a lane's name."""

_LANES: Final = 8
"""At most so many lanes are drawn; what further processes did is in one lane more."""

_OTHERS: Final = "others"

_ARROWS: Final = 80
"""At most so many lines are drawn, the first and the last."""

_OF_THE_BROKER: Final = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})


def story_diagram(specification: Specification, story: Story) -> SequenceDiagram:
    """``story`` between the broker and the processes that had to do with its messages; a line of it is an arrow."""
    clock = story_clock(story)
    moments = first_and_last(story.moments, _ARROWS)
    lanes = _lanes(moments)
    arrows = tuple(_arrow(story, moment, lanes, clock) for moment in moments)
    ending = [life_sentence(story, each, clock) for each in story.chapters]
    ending += [*impossible_sentences(story, specification, clock), *fault_sentences(story, clock)]
    if len(moments) < len(story.moments):
        ending.append(f"{len(story.moments) - len(moments):,} lines between are left out")
    title = f"{story.verdict}: {headline(story)}"
    told = tuple(f"{each}." for each in [*ending, clock.meaning])
    return SequenceDiagram(title, tuple(dict.fromkeys(lanes.values())), arrows, told, story.verdict is Verdict.INVALID)


def _lanes(moments: Sequence[Moment]) -> Mapping[str, str]:
    """Return the name of each process' lane: senders first, then the broker, receivers, and others."""
    senders = [each.process for each in moments if each.event in {Event.SEND, Event.RESEND}]
    takers = [each.process for each in moments if each.event is Event.DELIVERED]
    everybody = [*senders, BROKER, *takers, *(each.process for each in moments)]
    processes = list(dict.fromkeys(everybody))
    found: dict[str, str] = {}
    for nth, process in enumerate(processes):
        name = _unique(shown(process, _NAMED), found.values()) if nth < _LANES else _OTHERS
        found[process] = name
    return found


def _unique(name: str, taken: Collection[str]) -> str:
    names = set(taken)
    if name not in names and name != _OTHERS:
        return name
    return next(each for nth in range(2, len(names) + 3) if (each := f"{name} ({nth})") not in names)


def _arrow(story: Story, moment: Moment, lanes: Mapping[str, str], clock: Clock) -> Arrow:
    start, end = _ends(moment, lanes)
    several = len(story.chapters) > 1 and moment.of
    of = f"{', '.join(quoted(each, 24) for each in moment.of)} " if several else ""
    marks = (
        ": impossible" if moment.impossible else f", explains {in_words(moment.explains)}" if moment.explains else ""
    )
    because = f"{clock(moment.t)}, line {moment.line}{marks}"
    return Arrow(None, start, end, f"{of}{moment.told}", because, moment.event is Event.FAULT, moment.impossible)


def _ends(moment: Moment, lanes: Mapping[str, str]) -> tuple[str, str]:
    own, broker = lanes[moment.process], lanes[BROKER]
    if moment.side is Side.FAULT:
        return own, _victim(moment, lanes) or own
    return {
        Side.TO_BROKER: (own, broker),
        Side.FROM_BROKER: (broker, own),
        Side.OWN: (own, own),
        Side.AT_BROKER: (broker, broker),
    }[moment.side]


def _victim(moment: Moment, lanes: Mapping[str, str]) -> str | None:
    """The lane that a fault hits: the broker's, or that of the first process that it names and that has one."""
    if any(moment.told.startswith(each.value) for each in _OF_THE_BROKER):
        return lanes[BROKER]
    return next((lanes[each] for each in moment.victims if each in lanes), None)
