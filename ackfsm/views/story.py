"""The story of a message as sentences, and as a screen: what is wrong, its life in lanes, what excuses it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ackfsm.history_format import Event
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, quoted, shown
from ackfsm.verify import Around, Chapter, Contradicted, FaultSpan, Found, Moment, Open, Story, WhyNot
from ackfsm.views._lines import hanging, listed, occurrence_to
from ackfsm.views.times import Clock, clock_of
from ackfsm.views.typed import Command

if TYPE_CHECKING:
    from rich.console import ConsoleOptions

__all__ = [
    "around_json",
    "around_screen",
    "around_text",
    "fault_sentences",
    "headline",
    "impossible_sentences",
    "life_sentence",
    "story_clock",
    "story_json",
    "story_screen",
    "story_text",
]

_STYLE: Final = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}
_NAMED: Final = 40
_FEW: Final = 3
_PLAIN_WIDTH: Final = 100
"""Columns of a story that is not written to a terminal."""

_MOMENTS: Final = 60
_FAULTS: Final = 8
"""At most so many lines of a life, and so many faults, are shown."""


def story_clock(story: Story) -> Clock:
    """The clock by which all times of ``story`` are told."""
    times = [each.t for each in story.moments]
    times += [t for each in story.faults for t in (each.since, each.until) if t is not None]
    return clock_of(story.begun, times)


def headline(chapter: Chapter) -> str:
    """What is wrong with the message, and whether anything explains it: one sentence without its full stop."""
    name = f"message {quoted(chapter.message, _NAMED)}"
    wrong = [each for each in chapter.anomalies if each.unexplained]
    wrong = wrong or [each for each in chapter.anomalies if each.allowed is False]
    if chapter.verdict is Verdict.INVALID:
        if wrong:
            return f"{_happened(chapter, wrong)}, {_nothing_explains(wrong)}"
        beside = chapter.impossible.beside if chapter.impossible is not None else None
        together = f" beside {quoted(beside, _NAMED)}" if beside is not None else ""
        return f"{name}{together} did what the model does not allow"
    if not chapter.anomalies:
        found = f"nothing is wrong with {name}"
        return f"{found} so far, {_open(chapter)}" if chapter.verdict is Verdict.UNKNOWN else found
    told = _happened(chapter, chapter.anomalies)
    return f"{told}, {_open(chapter)}" if chapter.verdict is Verdict.UNKNOWN else f"{told}; allowed: {_by(chapter)}"


def _nothing_explains(wrong: Sequence[Found]) -> str:
    it = "it" if len(wrong) == 1 else "that"
    return f"and nothing recorded explains {it}" if wrong[0].unexplained else f"and the configuration forbids {it}"


def _happened(chapter: Chapter, found: Sequence[Found]) -> str:
    """``message 'm1' was lost``; several anomalies as one sentence."""
    name = f"message {quoted(chapter.message, _NAMED)} was "
    told = []
    for each in found:
        if each.anomaly is Anomaly.TORN_TRANSACTION:
            told.append(f"in a transaction that was carried out in part ({quoted(each.transaction or '', _NAMED)})")
        else:
            told.append(occurrence_to(each.anomaly, "").partition(" was ")[2])
    return f"{name}{_joined(list(dict.fromkeys(told)))}"


def _joined(told: Sequence[str]) -> str:
    """Clauses as one, so that a comma inside of one is not taken for one between them."""
    if len(told) > 1 and any("," in each or " and " in each for each in told):
        return f"{', '.join(told[:-1])}, and {told[-1]}"
    return in_words(told)


def _open(chapter: Chapter) -> str:
    """Why it is open whether the message is in order, a clause."""
    if not chapter.configured:
        return "and whether that is allowed is open: no configuration is known (--profile, --set)"
    doubts = [each.doubted for each in chapter.anomalies if each.doubted]
    if doubts:
        return f"and that may be of the recording: {doubts[0]}"
    if chapter.undecided:
        return f"and the model could not decide it: {chapter.undecided}"
    if chapter.unread:
        return "and lines that could not be read may tell more of it"
    if chapter.drained is None:
        return "and it is open what became of it: its queue was not seen empty after it was sent"
    return "and the tables cannot tell whether that is allowed"


def _by(chapter: Chapter) -> str:
    """What allows the anomalies of a message, a clause."""
    causes = [_cause(cause.name) for each in chapter.anomalies for cause in each.causes]
    if causes:
        return f"{in_words(list(dict.fromkeys(causes)))} explains it"
    if any(each.by_kind for each in chapter.anomalies):
        return "this configuration may do so in any number"
    return "this configuration may do so by itself"


def _cause(name: str) -> str:
    return f"the {name}" if name.startswith("consumer's ") else name


def life_sentence(story: Story, chapter: Chapter, clock: Clock) -> str:
    """The life of a message in clauses that a person can repeat: ``m2: confirmed at ...; never delivered; ...``."""
    clauses = [*_sending(chapter, clock), *_emptiness(chapter, clock), *_deliveries(chapter, clock)]
    clauses += [*_processing(chapter, clock), *_settling(chapter, clock), *_ends(chapter, clock)]
    if chapter is story.chapters[0]:
        clauses += _excuse(story, chapter, clock)
    return f"{shown(chapter.message, _NAMED)}: {'; '.join(clauses)}"


def _sending(chapter: Chapter, clock: Clock) -> Iterator[str]:
    sends, outcomes = chapter.of(Event.SEND), chapter.of(Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT)
    if not sends:
        yield "no line tells that it was sent"
        return
    send, transaction = sends[0], chapter.of(Event.COMMITTED, Event.ROLLED_BACK, Event.COMMIT_IN_DOUBT)
    sender = _called(send.process)
    own = [each for each in transaction if each.process == send.process]
    answers = [each for each in outcomes if each.row > send.row]
    if answers and answers[0].event is Event.CONFIRMED:
        yield f"confirmed at {clock(answers[0].t)} on {sender}"
    elif answers:
        told = "rejected" if answers[0].event is Event.REJECTED else "left in doubt"
        yield f"sent at {clock(send.t)} by {sender}, {told} at {clock(answers[0].t)}"
    elif own and " in " in send.told:
        told = {Event.COMMITTED: "committed", Event.ROLLED_BACK: "rolled back"}.get(own[0].event, "its commit in doubt")
        yield f"sent at {clock(send.t)} by {sender} in a transaction, {told} at {clock(own[0].t)}"
    else:
        yield f"sent at {clock(send.t)} by {sender}, without an answer"
    again = chapter.of(Event.RESEND)
    if again:
        yield f"sent again at {_times(again, clock)}"


def _emptiness(chapter: Chapter, clock: Clock) -> Iterator[str]:
    """That the queue was seen empty, where it matters."""
    rested = {each.anomaly for each in chapter.anomalies} & _AT_REST
    ended = chapter.impossible is not None and chapter.impossible.line is None
    if chapter.drained is not None and (rested or ended or not chapter.of(Event.DELIVERED)):
        yield f"the queue was seen empty at {clock(chapter.drained.t)}"


_AT_REST: Final = frozenset({Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.MISSING_OUTCOME})


def _deliveries(chapter: Chapter, clock: Clock) -> Iterator[str]:
    delivered = chapter.of(Event.DELIVERED)
    if not delivered:
        yield "never delivered"
        return
    told = [
        f"{'again ' if nth else ''}at {clock(each.t)} to {_called(each.process)}{_flag(each)}"
        for nth, each in enumerate(delivered[:_FEW])
    ]
    more = f" and {len(delivered) - _FEW:,} more times" if len(delivered) > _FEW else ""
    yield f"delivered {in_words(told) if not more else ', '.join(told)}{more}"


def _flag(moment: Moment) -> str:
    return " (flagged)" if "flagged" in moment.told else " (flag clear)" if "flag clear" in moment.told else ""


def _processing(chapter: Chapter, clock: Clock) -> Iterator[str]:
    processed, failed = chapter.of(Event.PROCESSED), chapter.of(Event.FAILED)
    if failed:
        yield f"processing failed at {_times(failed, clock)}"
    if len(processed) == 1:
        yield f"processed at {clock(processed[0].t)}"
    elif processed:
        yield f"processed {_often(len(processed))}, at {_times(processed, clock)}"
    elif chapter.of(Event.DELIVERED):
        yield "no line tells that it was processed"


def _often(count: int) -> str:
    return "twice" if count == _TWICE else f"{count:,} times"


_TWICE: Final = 2


def _settling(chapter: Chapter, clock: Clock) -> Iterator[str]:
    calls = chapter.of(Event.ACKNOWLEDGE)
    answered = chapter.of(Event.ACKNOWLEDGED)
    doubtful = chapter.of(Event.ACK_IN_DOUBT)
    if calls or answered:
        yield f"acknowledged at {_times(calls or answered, clock)}"
    if doubtful:
        yield f"its acknowledgement was in doubt at {_times(doubtful, clock)}"


def _ends(chapter: Chapter, clock: Clock) -> Iterator[str]:
    for event, told in ((Event.EXPIRED, "expired"), (Event.DEAD_LETTERED, "dead-lettered")):
        if moments := chapter.of(event):
            yield f"{told} at {_times(moments, clock)}"


def _times(moments: Sequence[Moment], clock: Clock) -> str:
    told = list(dict.fromkeys(clock(each.t) for each in moments))
    return (
        in_words(told[:_FEW]) if len(told) <= _FEW else f"{', '.join(told[:_FEW])} and {len(told) - _FEW:,} more times"
    )


def _called(name: str) -> str:
    """A process in a sentence: as it is if it is one plain word."""
    plain = name.replace("-", "").replace(".", "").replace("_", "").isalnum() and name.isascii()
    return name if plain and len(name) <= _NAMED else quoted(name, _NAMED)


def _excuse(story: Story, chapter: Chapter, clock: Clock) -> Iterator[str]:
    """What excuses what is wrong with a message, or that nothing does."""
    if not chapter.anomalies and chapter.impossible is None:
        return
    causes = {
        f"{_cause(cause.name)}{f' at {clock(cause.t)} (line {cause.line})' if cause.t is not None else ''}": None
        for each in chapter.anomalies
        for cause in each.causes
    }
    if chapter.verdict is not Verdict.INVALID:
        if causes:
            yield f"explained by {in_words(list(causes))}"
        return
    if not story.faults:
        yield "no fault is recorded"
        return
    over = [each.until for each in story.faults if each.why_not is WhyNot.OVER_BEFORE and each.until is not None]
    if all(each.why_not is WhyNot.BEGAN_AFTER for each in story.faults):
        yield f"no fault is recorded before {clock(min(each.since for each in story.faults))}"
        return
    yield f"no fault after {clock(max(over))} explains it" if over else "no fault that is recorded explains it"


def impossible_sentences(story: Story, specification: Specification, clock: Clock) -> Iterator[str]:
    """What was impossible, and then what the model allows there instead."""
    why = story.chapters[0].impossible
    if why is None:
        return
    name = quoted(why.message, _NAMED)
    if why.line is None or why.t is None:
        drained = story.chapters[0].drained
        at = f" (line {drained.line}, {clock(drained.t)})" if drained is not None else ""
        beside = f" and {quoted(why.beside, _NAMED)}" if why.beside is not None else ""
        yield f"impossible: that nothing more became of {name}{beside} until the queue was empty{at}"
    else:
        beside = ""
        if why.beside is not None:
            last = f" (told last of it: {why.after})" if why.after else ""
            beside = f", beside {quoted(why.beside, _NAMED)}{last}"
        moment = next((each for each in story.moments if each.impossible), None)
        told = why.impossible if moment is None else moment.told
        who = "" if moment is None else f", {_called(moment.process)}"
        yield f"impossible: line {why.line}, {clock(why.t)}{who}: {name} {told}{beside}"
    yield f"allowed there instead: {_instead(story, why, specification)}"


def _instead(story: Story, why: Contradicted, specification: Specification) -> str:
    """What the model allows where something impossible was told: not the same, which only a later fault would allow."""
    told = next((each for each in story.moments if each.impossible), None)
    same = None if told is None or why.beside is not None else _EVENTS.get((told.event, "flagged" in told.told))
    possible = [each for each in why.possible if each.split(" ")[0] != same]
    meant = [_meant(specification, each) for each in possible[:_ALLOWED]]
    more = [f"{len(possible) - _ALLOWED} more"] if len(possible) > _ALLOWED else []
    return "; or ".join([*meant, *more]) if meant else "nothing more of it"


_EVENTS: Final = {(Event.DELIVERED, True): "delivered_flagged", (Event.DELIVERED, False): "delivered_clear"}
"""What the tables call what a line tells, by whether it is flagged."""

_ALLOWED: Final = 4


def _meant(specification: Specification, label: str) -> str:
    """An event of the tables by what it means, with its name."""
    event = specification.events.get(label.split(" ", maxsplit=1)[0])
    return label if event is None else f"{event.means} ({label})"


def fault_sentences(story: Story, clock: Clock) -> Iterator[str]:
    """A sentence for each fault that matters: those that explain, then the others, nearest first."""
    chapter = story.chapters[0]
    ranked = sorted(story.faults, key=_rank)
    chosen = sorted(ranked[:_FAULTS], key=lambda each: (each.since, each.fault))
    yield from (f"{_fault(each, clock)}: {_excuses(each, chapter)}" for each in chosen)
    if len(ranked) > _FAULTS:
        yield f"and {len(ranked) - _FAULTS:,} more, none of which explains anything of it"


def _rank(span: FaultSpan) -> tuple[int, int]:
    near = span.until if span.until is not None else span.since
    if span.explains or span.why_not is None:
        return 0, span.since
    if span.why_not is WhyNot.OVER_BEFORE:
        return 2, -near
    return (3, span.since) if span.why_not is WhyNot.BEGAN_AFTER else (1, span.since)


def _fault(span: FaultSpan, clock: Clock) -> str:
    of = f" of {in_words([quoted(each, _NAMED) for each in span.victims])}" if span.victims else ""
    of += f" in queue {quoted(span.queue, _NAMED)}" if span.queue is not None else ""
    line = "" if span.line is None else f", line {span.line}"
    kind = f"unrecorded {span.fault}" if span.line is None else span.fault
    kind = f"broken connection ({kind})" if span.line is not None and not span.recorded else kind
    if span.until == span.since:
        return f"{kind}{of}{line}, at {clock(span.since)}"
    until = "no repair is recorded" if span.until is None else f"to {clock(span.until)}"
    return f"{kind}{of}{line}, {clock(span.since)} {until}"


def _excuses(span: FaultSpan, chapter: Chapter) -> str:
    name = quoted(chapter.message, _NAMED)
    if span.why_not is None:
        return f"explains {in_words(list(dict.fromkeys(span.explains)))}"
    return {
        WhyNot.OVER_BEFORE: f"over before {name} was there",
        WhyNot.BEGAN_AFTER: f"began after what is told of {name}",
        WhyNot.OF_ANOTHER: f"hit another process than those of {name}",
        WhyNot.OF_ANOTHER_QUEUE: f"hit another queue than that of {name}",
        WhyNot.NOT_ENOUGH: f"was there, and does not explain what became of {name}",
        WhyNot.NOT_NEEDED: "was there, and is not needed to explain anything",
    }[span.why_not]


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
        table.add_column("line", no_wrap=True, justify="right")
        lanes = _lanes(moments)
        room = width - max((len(self._clock(each.t)) for each in moments), default=4) - 4 - _digits(moments)
        if len(self._story.chapters) > 1:
            return self._side_by_side(table)
        if room // max(len(lanes), 1) < _NARROWEST:
            return self._listed(table)
        for lane in lanes:
            table.add_column(_heading(lane), overflow="fold", ratio=1)
        for moment in _some(moments):
            cells = [_told(moment) if lane == moment.process else Text("") for lane in lanes]
            self._add(table, moment, cells)
        return table

    def _listed(self, table: Table) -> Table:
        table.add_column("who", overflow="fold", max_width=24)
        table.add_column("what", overflow="fold")
        for moment in _some(self._story.moments):
            self._add(table, moment, [Text(_heading(moment.process)), _told(moment)])
        return table

    def _side_by_side(self, table: Table) -> Table:
        table.add_column("who", overflow="fold", max_width=16)
        for chapter in self._story.chapters:
            table.add_column(quoted(chapter.message, 20), overflow="fold", ratio=1)
        rows = [{each.row for each in chapter.moments} for chapter in self._story.chapters]
        for moment in _some(self._story.moments):
            cells = [_told(moment) if moment.row in its else Text("") for its in rows]
            self._add(table, moment, [Text(_heading(moment.process)), *cells])
        return table

    def _add(self, table: Table, moment: Moment, cells: Sequence[Text]) -> None:
        table.add_row(self._clock(moment.t), str(moment.line), *cells)


_NARROWEST: Final = 14
"""Columns that a lane takes at least."""


def _lanes(moments: Sequence[Moment]) -> list[str]:
    """The processes: those that sent, then those that were handed something, then others, as they first appear."""
    senders = [each.process for each in moments if each.event in {Event.SEND, Event.RESEND}]
    takers = [each.process for each in moments if each.event is Event.DELIVERED]
    broker = [each.process for each in moments if each.process == "broker"]
    return list(dict.fromkeys([*senders, *broker, *takers, *(each.process for each in moments)]))


def _digits(moments: Sequence[Moment]) -> int:
    return max((len(str(each.line)) for each in moments), default=4)


def _heading(process: str) -> str:
    return shown(process, 20)


def _some(moments: Sequence[Moment]) -> Sequence[Moment]:
    """The first and the last of very many."""
    if len(moments) <= _MOMENTS:
        return moments
    half = _MOMENTS // 2
    return (*moments[:half], *moments[-half:])


def _told(moment: Moment) -> Text:
    style = "bold red" if moment.impossible else "red" if moment.event is Event.FAULT else ""
    text = Text(moment.told, style=style)
    if moment.impossible:
        text.append(" ← impossible")
    elif moment.cause:
        text.append(" ← explains it")
    return text


def story_screen(
    story: Story, specification: Specification, next_words: Sequence[Sequence[str]] = ()
) -> RenderableType:
    """The answer in sentences, the life in lanes, what was impossible, the faults, and what to type next."""
    clock = story_clock(story)
    chapter = story.chapters[0]
    impossible = list(impossible_sentences(story, specification, clock))
    faults = list(fault_sentences(story, clock))
    parts: list[RenderableType] = [hanging(f"{chapter.verdict}: {headline(chapter)}", _STYLE[chapter.verdict])]
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
        yield hanging(f"if nobody need have recorded it, {kinds} would explain it: say --faults any", "bold")
    yield ""
    yield Text(f"{shown(story.history)}; {clock.meaning}", style="dim", overflow="fold")
    yield from (Command(words, style="dim") for words in next_words)


def story_text(story: Story, specification: Specification, next_words: Sequence[Sequence[str]] = ()) -> str:
    """The screen as plain text, at most 100 characters wide."""
    return _plain(story_screen(story, specification, next_words))


def _plain(screen: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=_PLAIN_WIDTH, highlight=False, color_system=None, markup=False)
    with console.capture() as captured:
        console.print(screen)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def story_json(story: Story, specification: Specification) -> dict[str, Any]:
    """The story as plain JSON values, with its sentences."""
    clock = story_clock(story)
    sentences = [f"{headline(story.chapters[0])}."]
    sentences += [f"{life_sentence(story, each, clock)}." for each in story.chapters]
    sentences += [f"{each}." for each in impossible_sentences(story, specification, clock)]
    sentences += [f"{each}." for each in fault_sentences(story, clock)]
    return {**story.as_json(), "sentences": sentences}


def around_screen(around: Around, next_words: Sequence[Sequence[str]] = ()) -> RenderableType:
    """What was open at a time, and the lines around it."""
    clock = _around_clock(around)
    parts: list[RenderableType] = [hanging(f"{around.verdict}: {_at(around, clock)}", _STYLE[around.verdict])]
    told = [*(_open_sentence(each, clock) for each in around.open)]
    told += [f"{_fault(each, clock)} was there" for each in around.faults]
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
    parts += (Command(words, style="dim") for words in next_words)
    return Group(*parts)


def _around_clock(around: Around) -> Clock:
    times = [each.t for each in (*around.before, *around.after)]
    times += [t for each in around.open for _, t, _ in each.first]
    return clock_of(around.begun, [*times, around.at])


def _at(around: Around, clock: Clock) -> str:
    return f"at {clock(around.at)} {sum(each.count for each in around.open) or 'nothing'} open"


def _open_sentence(each: Open, clock: Clock) -> str:
    first = [f"{quoted(name, 24)} since {clock(t)} (line {line})" for name, t, line in each.first]
    return f"{each.count:,} {each.what}: {', '.join(first)}{', ...' if each.count > len(first) else ''}"


def _around_row(moment: Moment, clock: Clock) -> tuple[str | Text, ...]:
    of = ", ".join(quoted(each, 24) for each in moment.of)
    return clock(moment.t), str(moment.line), Text(_heading(moment.process)), Text(of), _told(moment)


def around_text(around: Around, next_words: Sequence[Sequence[str]] = ()) -> str:
    """The screen as plain text, at most 100 characters wide."""
    return _plain(around_screen(around, next_words))


def around_json(around: Around) -> dict[str, Any]:
    """What was around a time as plain JSON values."""
    return around.as_json()
