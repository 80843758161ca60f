"""The story of a message in sentences that a person can repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ackfsm.history.format import Event
from ackfsm.showing.views.history import Chapter, FaultSpan, Found, Moment, Story, WhyNot
from ackfsm.showing.views.times import Clock, clock_of
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, quoted
from ackfsm.verify import Contradicted
from ackfsm.verify.words import clauses, nothing_explains, occurrence_to

_NAMED: Final = 40
"""Characters of an id in a sentence."""

_FEW: Final = 3
_FAULTS: Final = 8
"""At most so many times, and so many faults, are told."""


def story_clock(story: Story) -> Clock:
    """The clock by which all times of ``story`` are told."""
    times = [each.t for each in story.moments]
    times += [t for each in story.faults for t in (each.since, each.until) if t is not None]
    return clock_of(story.begun, times)


def first_and_last(moments: Sequence[Moment], most: int) -> Sequence[Moment]:
    """The first and the last of ``moments``, so many together; all if they are no more."""
    return moments if len(moments) <= most else (*moments[: most // 2], *moments[-most // 2 :])


def headline(story: Story) -> str:
    """Return the anomalies of the message, and whether they are explained: one sentence without its full stop."""
    chapter = story.chapters[0]
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
        if chapter.held_against is not None:
            return f"{found} by itself; what is impossible beside it counts of {quoted(chapter.held_against, _NAMED)}"
        return f"{found} so far, {_open(chapter)}" if chapter.verdict is Verdict.UNKNOWN else found
    told = _happened(chapter, chapter.anomalies)
    return f"{told}, {_open(chapter)}" if chapter.verdict is Verdict.UNKNOWN else f"{told}; allowed: {_by(story)}"


def _nothing_explains(wrong: Sequence[Found]) -> str:
    it = "it" if len(wrong) == 1 else "that"
    return f"and {nothing_explains()} {it}" if wrong[0].unexplained else f"and the configuration forbids {it}"


def _happened(chapter: Chapter, found: Sequence[Found]) -> str:
    """``message 'm1' was lost``; several anomalies as one sentence."""
    name = f"message {quoted(chapter.message, _NAMED)} was "
    told = []
    for each in found:
        if each.anomaly is Anomaly.TORN_TRANSACTION:
            told.append(f"in a transaction that was carried out in part ({quoted(each.transaction or '', _NAMED)})")
        else:
            told.append(occurrence_to(each.anomaly, "").partition(" was ")[2])
    return f"{name}{clauses(list(dict.fromkeys(told)))}"


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


def _by(story: Story) -> str:
    """What allows the anomalies of the message, a clause."""
    chapter = story.chapters[0]
    causes = [_cause(cause.name) for each in chapter.anomalies for cause in each.causes]
    if causes:
        return f"{in_words(list(dict.fromkeys(causes)))} explains it"
    if any(each.by_kind for each in chapter.anomalies):
        kinds = list(dict.fromkeys(each.fault for each in story.faults))
        return f"this configuration may do so in any number{f' under {in_words(kinds)}' if kinds else ''}"
    return "this configuration may do so by itself"


def _cause(name: str) -> str:
    return f"the {name}" if name.startswith("consumer's ") else name


def life_sentence(story: Story, chapter: Chapter, clock: Clock) -> str:
    """The life of a message in clauses that a person can repeat: ``m2: confirmed at ...; never delivered; ...``."""
    clauses = [*_sending(chapter, clock), *_emptiness(chapter, clock), *_deliveries(chapter, clock)]
    clauses += [*_processing(chapter, clock), *_settling(chapter, clock), *_ends(chapter, clock)]
    if chapter is story.chapters[0]:
        clauses += _excuse(story, chapter, clock)
    return f"{_called(chapter.message)}: {'; '.join(clauses)}"


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
        yield f"confirmed at {clock.said(answers[0].t)} on {sender}"
    elif answers:
        told = "rejected" if answers[0].event is Event.REJECTED else "left in doubt"
        yield f"sent at {clock.said(send.t)} by {sender}, {told} at {clock.said(answers[0].t)}"
    elif own and " in " in send.told:
        told = {Event.COMMITTED: "committed", Event.ROLLED_BACK: "rolled back"}.get(own[0].event, "its commit in doubt")
        yield f"sent at {clock.said(send.t)} by {sender} in a transaction, {told} at {clock.said(own[0].t)}"
    else:
        yield f"sent at {clock.said(send.t)} by {sender}, without an answer"
    again = chapter.of(Event.RESEND)
    if again:
        yield f"sent again at {_times(again, clock)}"


def _emptiness(chapter: Chapter, clock: Clock) -> Iterator[str]:
    """That the queue was seen empty, where it matters."""
    rested = {each.anomaly for each in chapter.anomalies} & _AT_REST
    ended = chapter.impossible is not None and chapter.impossible.line is None
    if chapter.drained is not None and (rested or ended or not chapter.of(Event.DELIVERED)):
        yield f"the queue was seen empty at {clock.said(chapter.drained.t)}"


_AT_REST: Final = frozenset({Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.MISSING_OUTCOME})


def _deliveries(chapter: Chapter, clock: Clock) -> Iterator[str]:
    delivered = chapter.of(Event.DELIVERED)
    if not delivered:
        yield "never delivered"
        return
    told = [
        f"{'again ' if nth else ''}at {clock.said(each.t)} to {_called(each.process)}{_flag(each)}"
        for nth, each in enumerate(delivered[:_FEW])
    ]
    more = f" and {len(delivered) - _FEW:,} more times" if len(delivered) > _FEW else ""
    yield f"delivered {in_words(told) if not more else ', '.join(told)}{more}"


def _flag(moment: Moment) -> str:
    told = (each for each in ("flagged", "flag clear", "flag not recorded") if each in moment.told)
    return "".join(f" ({each})" for each in told)


def _processing(chapter: Chapter, clock: Clock) -> Iterator[str]:
    processed, failed = chapter.of(Event.PROCESSED), chapter.of(Event.FAILED)
    if failed:
        yield f"processing failed at {_times(failed, clock)}"
    if len(processed) == 1:
        yield f"processed at {clock.said(processed[0].t)}"
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
    told = list(dict.fromkeys(clock.said(each.t) for each in moments))
    return (
        in_words(told[:_FEW]) if len(told) <= _FEW else f"{', '.join(told[:_FEW])} and {len(told) - _FEW:,} more times"
    )


def _called(name: str) -> str:
    """A name in a sentence: as it is if it is one plain word."""
    plain = name.replace("-", "").replace(".", "").replace("_", "").isalnum() and name.isascii()
    return name if plain and len(name) <= _NAMED else quoted(name, _NAMED)


def _excuse(story: Story, chapter: Chapter, clock: Clock) -> Iterator[str]:
    """Yield the excuses for the anomalies of a message, or that there are none."""
    if not chapter.anomalies and chapter.impossible is None:
        return
    unit = unit_of(story)
    causes = {
        f"{_cause(cause.name)}{f' at {clock.said(cause.t)} ({unit} {cause.line})' if cause.t is not None else ''}": None
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
        yield f"no fault is recorded before {clock.said(min(each.since for each in story.faults))}"
        return
    yield f"no fault after {clock.said(max(over))} explains it" if over else "no fault that is recorded explains it"


def unit_of(story: Story) -> str:
    """Return the unit of the numbers of its moments: lines, or events that an import has made."""
    return "event" if story.imported else "line"


def impossible_sentences(story: Story, specification: Specification, clock: Clock) -> Iterator[str]:
    """Yield the impossible line, and the events that the model allows there instead."""
    why = story.chapters[0].impossible
    if why is None:
        return
    name = quoted(why.message, _NAMED)
    if why.line is None or why.t is None:
        drained = story.chapters[0].drained
        at = f" ({unit_of(story)} {drained.line}, {clock.said(drained.t)})" if drained is not None else ""
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
        yield f"impossible: {unit_of(story)} {why.line}, {clock.said(why.t)}{who}: {name} {told}{beside}"
    yield f"allowed there instead: {_instead(why, specification)}"


def _instead(why: Contradicted, specification: Specification) -> str:
    """Return the events that the model allows in place of an impossible one."""
    meant: dict[str, list[str]] = {}
    for each in why.possible[:_ALLOWED]:
        meant.setdefault(_meaning(specification, each), []).append(each)
    told = [f"{means} ({', '.join(labels)})" if means else ", ".join(labels) for means, labels in meant.items()]
    more = [f"{len(why.possible) - _ALLOWED} more"] if len(why.possible) > _ALLOWED else []
    return "; or ".join([*told, *more]) or "nothing more of it"


_ALLOWED: Final = 4


def _meaning(specification: Specification, label: str) -> str:
    """What an event of the tables means; empty if it is none of them."""
    event = specification.events.get(label.split(" ", maxsplit=1)[0])
    return "" if event is None else event.means


def fault_sentences(story: Story, clock: Clock) -> Iterator[str]:
    """Yield a sentence for each fault that matters: explaining ones first, then the nearest."""
    chapter = story.chapters[0]
    ranked = sorted(story.faults, key=_rank)
    chosen = sorted(ranked[:_FAULTS], key=lambda each: (each.since, each.fault))
    yield from (f"{fault_told(each, clock)}: {_excuses(each, chapter)}" for each in chosen)
    if len(ranked) > _FAULTS:
        yield f"and {len(ranked) - _FAULTS:,} more, none of which explains anything of it"


def _rank(span: FaultSpan) -> tuple[int, int]:
    near = span.until if span.until is not None else span.since
    if span.explains or span.why_not is None:
        return 0, span.since
    if span.why_not is WhyNot.OVER_BEFORE:
        return 2, -near
    return (3, span.since) if span.why_not is WhyNot.BEGAN_AFTER else (1, span.since)


def fault_told(span: FaultSpan, clock: Clock) -> str:
    """A fault with its victim, its line and when it was there."""
    of = f" of {in_words([quoted(each, _NAMED) for each in span.victims])}" if span.victims else ""
    of += f" in queue {quoted(span.queue, _NAMED)}" if span.queue is not None else ""
    line = "" if span.line is None else f", line {span.line}"
    kind = f"unrecorded {span.fault}" if span.line is None else span.fault
    kind = f"broken connection ({kind})" if span.line is not None and not span.recorded else kind
    if span.until == span.since:
        return f"{kind}{of}{line}, at {clock.said(span.since)}"
    until = "no repair is recorded" if span.until is None else f"to {clock.said(span.until)}"
    return f"{kind}{of}{line}, {clock.said(span.since)} {until}"


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
