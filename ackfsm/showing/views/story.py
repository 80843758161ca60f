"""The story of a message as a screen: its anomalies, its life in lanes, its excuses; the open things at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ackfsm.history.format import Event
from ackfsm.showing.views.history import BROKER, Around, Moment, Open, Pending, Story
from ackfsm.showing.views.lines import hanging, listed
from ackfsm.showing.views.story_words import (
    fault_sentences,
    fault_told,
    first_and_last,
    headline,
    impossible_sentences,
    life_sentence,
    story_clock,
    unit_of,
)
from ackfsm.showing.views.times import Clock, clock_of
from ackfsm.showing.views.typed import Command
from ackfsm.tables import Specification
from ackfsm.terms import Verdict
from ackfsm.text import in_words, quoted, shown

if TYPE_CHECKING:
    from rich.console import ConsoleOptions

_STYLE: Final = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}
_PLAIN_WIDTH: Final = 80
"""Columns of a story that is not written to a terminal."""

_NAMED: Final = 40
"""Characters of an id in a sentence."""

_MOMENTS: Final = 60
"""At most so many lines of a life are shown."""


class _Lanes:
    """The lines of a story: a column for each process if they fit, else one column that names the process."""

    def __init__(self, story: Story, clock: Clock) -> None:
        self._story = story
        self._clock = clock

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self._table(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(40, options.max_width)

    def _table(self, width: int) -> Table:
        moments = self._story.moments
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column("time", no_wrap=True, justify="right")
        table.add_column(unit_of(self._story), no_wrap=True, justify="right")
        lanes = lanes_of(moments)
        room = width - max((len(self._clock(each.t)) for each in moments), default=4) - 4 - _digits(moments)
        if len(self._story.chapters) > 1:
            return self._side_by_side(table)
        if room // max(len(lanes), 1) < _NARROWEST:
            return self._listed(table)
        for lane in lanes:
            table.add_column(_heading(lane), overflow="fold", ratio=1)
        for moment in first_and_last(moments, _MOMENTS):
            cells = [_told(moment) if lane == moment.process else Text("") for lane in lanes]
            self._add(table, moment, cells)
        return table

    def _listed(self, table: Table) -> Table:
        table.add_column("who", overflow="fold", max_width=24)
        table.add_column("what", overflow="fold")
        for moment in first_and_last(self._story.moments, _MOMENTS):
            self._add(table, moment, [Text(_heading(moment.process)), _told(moment)])
        return table

    def _side_by_side(self, table: Table) -> Table:
        table.add_column("who", overflow="fold", max_width=16)
        for chapter in self._story.chapters:
            table.add_column(quoted(chapter.message, 20), overflow="fold", ratio=1)
        rows = [{each.row for each in chapter.moments} for chapter in self._story.chapters]
        for moment in first_and_last(self._story.moments, _MOMENTS):
            cells = [_told(moment) if moment.row in its else Text("") for its in rows]
            self._add(table, moment, [Text(_heading(moment.process)), *cells])
        return table

    def _add(self, table: Table, moment: Moment, cells: Sequence[Text]) -> None:
        table.add_row(self._clock(moment.t), str(moment.line), *cells)


_NARROWEST: Final = 14
"""Columns that a lane takes at least."""


def lanes_of(moments: Sequence[Moment]) -> list[str]:
    """Return the processes: senders first, then receivers, then others, as they first appear."""
    senders = [each.process for each in moments if each.event in {Event.SEND, Event.RESEND}]
    takers = [each.process for each in moments if each.event is Event.DELIVERED]
    broker = [each.process for each in moments if each.process == BROKER]
    return list(dict.fromkeys([*senders, *broker, *takers, *(each.process for each in moments)]))


def _digits(moments: Sequence[Moment]) -> int:
    return max((len(str(each.line)) for each in moments), default=4)


def _heading(process: str) -> str:
    return shown(process, 20)


def _told(moment: Moment) -> Text:
    style = "bold red" if moment.impossible else "red" if moment.event is Event.FAULT else ""
    text = Text(moment.told, style=style)
    if moment.impossible:
        text.append(" ← impossible")
    elif moment.explains:
        text.append(f" ← explains {in_words(moment.explains)}")
    return text


def story_screen(
    story: Story, specification: Specification, next_words: Sequence[Sequence[str]] = ()
) -> RenderableType:
    """Return the answer in sentences, the life in lanes, the impossible line, the faults, the next commands."""
    clock = story_clock(story)
    chapter = story.chapters[0]
    impossible = list(impossible_sentences(story, specification, clock))
    faults = list(fault_sentences(story, clock))
    parts: list[RenderableType] = [hanging(f"{chapter.verdict}: {headline(story)}", _STYLE[chapter.verdict])]
    parts += [hanging(life_sentence(story, each, clock), "") for each in story.chapters]
    if story.why_together:
        parts.append(Text(f"beside {quoted(story.chapters[1].message, _NAMED)}: {story.why_together}"))
    parts += ["", _Lanes(story, clock)]
    if len(story.moments) > _MOMENTS:
        parts.append(Text(f"{len(story.moments) - _MOMENTS:,} lines between are left out; --json has them"))
    parts += ["", *(hanging(each, "") for each in impossible)] if impossible else []
    if faults:
        parts += ["", Text("faults", style="bold"), listed(faults)]
    parts += _epilogue(story, clock, next_words)
    return Group(*parts)


def _epilogue(story: Story, clock: Clock, next_words: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
    if story.would_explain:
        yield ""
        kinds = in_words(list(story.would_explain), "or")
        yield hanging(f"if faults happened that nobody recorded, {kinds} may explain it: say --faults any", "bold")
    yield ""
    yield Text(f"{shown(story.history)}; {clock.meaning}", style="dim", overflow="fold")
    yield from (Command(words, style="dim") for words in next_words)


def story_text(
    story: Story,
    specification: Specification,
    next_words: Sequence[Sequence[str]] = (),
    width: int = _PLAIN_WIDTH,
) -> str:
    """The screen as plain text, at most ``width`` characters wide."""
    return _plain(story_screen(story, specification, next_words), width)


def _plain(screen: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, color_system=None, markup=False)
    with console.capture() as captured:
        console.print(screen)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def story_json(story: Story, specification: Specification) -> dict[str, Any]:
    """The story as plain JSON values, with its sentences."""
    clock = story_clock(story)
    sentences = [f"{headline(story)}."]
    sentences += [f"{life_sentence(story, each, clock)}." for each in story.chapters]
    sentences += [f"{each}." for each in impossible_sentences(story, specification, clock)]
    sentences += [f"{each}." for each in fault_sentences(story, clock)]
    return {**story.as_json(), "sentences": sentences}


def around_screen(around: Around) -> RenderableType:
    """Return the things open at a time, and the lines around it."""
    clock = _around_clock(around)
    parts: list[RenderableType] = [hanging(_at(around, clock), _STYLE[around.verdict])]
    told = [*(_open_sentence(each, clock) for each in around.open)]
    told += [f"{fault_told(each, clock)} was there" for each in around.faults]
    parts.append(listed(told) if told else Text("nothing was open, and no fault was there"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("line", no_wrap=True, justify="right")
    table.add_column("who", overflow="fold", max_width=20)
    table.add_column("message", overflow="fold", max_width=24)
    table.add_column("what", overflow="fold")
    for moment in around.before:
        table.add_row(*_around_row(moment, clock))
    table.add_row(Text(clock(around.at), style="bold"), "", "", "", Text("← here", style="bold"))
    for moment in around.after:
        table.add_row(*_around_row(moment, clock))
    parts += ["", table, "", Text(f"{shown(around.history)}; {clock.meaning}", style="dim", overflow="fold")]
    return Group(*parts)


def _around_clock(around: Around) -> Clock:
    times = [each.t for each in (*around.before, *around.after)]
    times += [t for each in around.open for _, t, _ in each.first]
    return clock_of(around.begun, [*times, around.at])


def _at(around: Around, clock: Clock) -> str:
    return f"at {clock.said(around.at)}, in a history that is {around.verdict}:"


_COUNTED: Final[Mapping[Pending, tuple[str, str]]] = MappingProxyType(
    {
        Pending.SEND: ("send without an answer", "sends without an answer"),
        Pending.MESSAGE: ("message sent and not yet delivered", "messages sent and not yet delivered"),
        Pending.DELIVERY: ("message delivered and not yet processed", "messages delivered and not yet processed"),
        Pending.TRANSACTION: ("transaction not ended", "transactions not ended"),
    }
)
"""What is open, as of one and of several."""


def _open_sentence(each: Open, clock: Clock) -> str:
    first = [f"{quoted(name, 24)} since {clock.said(t)} (line {line})" for name, t, line in each.first]
    more = ", ..." if each.count > len(first) else ""
    return f"{each.count:,} {_COUNTED[each.what][each.count > 1]}: {', '.join(first)}{more}"


def _around_row(moment: Moment, clock: Clock) -> tuple[str | Text, ...]:
    of = ", ".join(quoted(each, 24) for each in moment.of)
    return clock(moment.t), str(moment.line), Text(_heading(moment.process)), Text(of), _told(moment)


def around_text(around: Around, width: int = _PLAIN_WIDTH) -> str:
    """The screen as plain text, at most ``width`` characters wide."""
    return _plain(around_screen(around), width)
