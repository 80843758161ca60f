"""The picture of a verification: one HTML file with a chart, its marks, and the lives behind them.

Foreign text is escaped twice: what is not printable as on a screen (:mod:`ackfsm.text`), and then for the place where
it stands.  The page shows it as text and never as markup, and its policy lets it load nothing.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib.resources
import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import ackfsm
from ackfsm.history.format import Event
from ackfsm.showing.views.history import Band, Marks, Moment, Picture, Shown
from ackfsm.showing.views.story import lanes_of
from ackfsm.showing.views.story_words import fault_sentences, headline, impossible_sentences, life_sentence, story_clock
from ackfsm.showing.views.times import Clock
from ackfsm.showing.views.typed import can_be_typed, in_shell
from ackfsm.showing.views.verdict_words import answer
from ackfsm.showing.views.verify import judged_rows
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, shown
from ackfsm.verify import LEVELS, By, Grouped, Result, Series

_NAMES: Final[Mapping[Series, str]] = {
    Series.SENT: "sent",
    Series.CONFIRMED: "confirmed",
    Series.DELIVERED: "delivered",
    Series.ACKNOWLEDGED: "acknowledged",
    Series.UNANSWERED: "sends without an answer",
    Series.WAITING: "sent and not yet delivered",
    Series.IN_HAND: "delivered and not yet processed",
}

_NAMED: Final = 60
"""Characters of a name."""

_MOMENTS: Final = 60
"""At most so many lines of a life are shown."""

_SECOND: Final = 10**9

_KINDS: Final = {"impossible": 1, "fault": 2}


@dataclasses.dataclass(frozen=True, slots=True)
class Commands:
    """What can be typed about a history; each is empty if it cannot be read again (standard input).

    Attributes:
        made: what has made the page.
        explain: the words of ``explain`` for it, but for the message.
        tables: what writes everything as tables.
    """

    made: Sequence[str]
    explain: Sequence[str]
    tables: Sequence[str]

    def message(self, name: str) -> str | None:
        """Return the command for the life of the message with that id; ``None`` if its id cannot be typed."""
        if not self.explain or not can_be_typed(name):
            return None
        return _typed([*self.explain, "--message", name])

    def at(self, time: str) -> str | None:
        """Return the command for the things open at a time."""
        return _typed([*self.explain, "--at", time]) if self.explain else None


def _typed(words: Sequence[str]) -> str:
    return " ".join(map(in_shell, words))


def picture_page(result: Result, picture: Picture, specification: Specification, commands: Commands) -> str:
    """The page of one history; it needs no other file.

    Args:
        result: the verdict.
        picture: what is drawn.
        specification: the tables, which say what anomalies mean.
        commands: what can be typed about the history.
    """
    files = importlib.resources.files("ackfsm.showing.views")
    style, script = (files.joinpath(f"picture.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    page = _Page(result, picture, specification, commands)
    verdict, _, told = answer(result).partition(": ")
    history = shown(result.findings.history)
    return string.Template(files.joinpath("picture.html").read_text(encoding="utf-8")).substitute(
        title=escape(f"{verdict}: {history}"),
        version=escape(ackfsm.__version__),
        history=escape(history),
        verdict=escape(verdict),
        answer=escape(told),
        reasons=_reasons(result),
        facts="\n".join(page.facts()),
        found=page.found(),
        width=escape(page.width),
        clock=escape(page.clock.meaning),
        command=escape(_typed(commands.made)),
        style=style,
        style_hash=_digest(style),
        script=script,
        script_hash=_digest(script),
        data=_embedded(page.data()),
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(document: object) -> str:
    """JSON that can stand in an element of a page: ASCII, and nothing in it begins or ends anything."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _reasons(result: Result) -> str:
    if not result.reasons:
        return ""
    items = "".join(f"<li>{escape(shown(reason, _REASON))}</li>" for reason in result.reasons)
    opened = " open" if result.verdict is Verdict.UNKNOWN else ""
    return f'<details class="why"{opened}><summary>Reasons in full</summary><ul class="reasons">{items}</ul></details>'


_REASON: Final = 1_000


class _Texts:
    """Numbers texts, so that each is written once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def each(self, texts: Iterable[str]) -> list[int]:
        return [self(text) for text in texts]

    def listed(self) -> list[str]:
        return list(self._numbers)


class _Page:
    """What stands in the page of one history."""

    def __init__(self, result: Result, picture: Picture, specification: Specification, commands: Commands) -> None:
        self._result, self._picture, self._specification = result, picture, specification
        self._commands, self._bins, self._texts = commands, picture.bins, _Texts()
        self.clock = self._clock()
        self.width = _duration(picture.bins.width)
        self._queues = self._named(0, (each.queue for each in picture.stories))
        self._sessions = self._named(1, (name for each in picture.stories for name in each.sessions))

    def _clock(self) -> Clock:
        bins = self._bins
        digits = next((each for each in (3, 6) if bins.width % 10 ** (9 - each) == 0), 9)
        day = 86_400 * _SECOND
        return Clock(bins.begun, digits, dated=bins.begun // day != bins.ended // day)

    def _named(self, place: int, more: Iterable[str]) -> Mapping[str, int]:
        """The number of each queue, or session, that filters offer."""
        by = (By.QUEUE, By.SESSION)[place]
        counts = [self._bins.counts, *(marks.counts for marks in self._picture.marks)]
        names = {str(name[place]) for its in counts if by in its for name in its[by].names}
        return {name: number for number, name in enumerate(sorted({*names, *more}))}

    def facts(self) -> Iterator[str]:
        """Yield the facts about the reading, a line each."""
        found = self._result.findings
        config = found.configuration
        faults = in_words([*found.faults, *found.of_calls]) if found.faults or found.of_calls else "none recorded"
        setting = "unknown" if config is None else f"{config.profile}, {config.ack_mode}, {config.delivery_mode}"
        begun, ended = self.clock.said(self._bins.begun), self.clock.said(self._bins.ended)
        read = f"{found.events:,} events of {found.messages:,} messages; {found.parse_errors:,} lines unread"
        for title, text in (
            ("read", read),
            ("time", f"{begun} to {ended}; {self.clock.meaning}"),
            ("judged as", setting),
            ("faults", faults),
        ):
            yield f"<dt>{escape(title)}</dt><dd>{escape(text)}</dd>"

    def found(self) -> str:
        """The anomalies as a table, which needs no script."""
        rows = list(judged_rows(self._result))
        if not rows:
            return "<p>No anomaly was found.</p>"
        head = "".join(f'<th scope="col">{each}</th>' for each in ("anomaly", "count", "answer", "what it means"))
        cells = (
            f'<tr><th scope="row">{escape(name)}</th><td class="n">{escape(count)}</td><td>{escape(told)}</td>'
            f"<td>{escape(self._meaning(name))}</td></tr>"
            for name, count, told in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(cells)}</tbody></table>"
        return f'<div class="scroll" role="group" tabindex="0" aria-labelledby="found-title">{table}</div>'

    def _meaning(self, name: str) -> str:
        if name in set(Anomaly):
            return self._specification.meaning(Anomaly(name))
        return "what is told of the message is no run of the model, though no anomaly says so"

    def data(self) -> dict[str, Any]:
        """Return the data that the script draws."""
        bins = self._bins
        labels = [self.clock.said((bins.first + place) * bins.width) for place in range(len(bins))]
        stories = [self._story(each) for each in self._picture.stories]
        marks = [self._marks(each) for each in self._picture.marks]
        for kind, each in enumerate(self._picture.marks):
            for place in each.stories:
                stories[place]["kinds"].append(kind)
        return {
            "labels": labels,
            "width": self.width,
            "seconds": bins.width / _SECOND,
            "series": [
                {"key": number, "name": _NAMES[series], "level": series in LEVELS}
                for number, series in enumerate(Series)
                if series is not Series.IN_HAND or bins.processed
            ],
            "counts": {by.value: self._counts(by, grouped) for by, grouped in bins.counts.items()},
            "cannot": self._cannot(),
            "queues": [shown(name, _NAMED) if name else "no queue" for name in self._queues],
            "sessions": [shown(name, _NAMED) for name in self._sessions],
            "lanes": self._lanes(),
            "bands": [self._band(each) for each in self._picture.bands],
            "marks": marks,
            "stories": stories,
            "all": _typed(self._commands.tables) if self._commands.tables else "ackfsm verify --output DIR",
            "texts": self._texts.listed(),
        }

    def _cannot(self) -> str:
        return (
            "The chart shows all queues and sessions: there are too many to tell these apart in it."
            " The list of messages follows the filters."
        )

    def _counts(self, by: By, grouped: Grouped) -> Any:
        numbers, bins = {series: number for number, series in enumerate(Series)}, self._bins
        found: dict[str, list[Any]] = {}
        for group, series, values in grouped.values(bins.first, len(bins)):
            run = _run(values.tolist(), level=series in LEVELS)
            found.setdefault(self._key(group), []).append([numbers[series], run])
        return found.get("", []) if by is By.ALL else found

    def _key(self, group: tuple[str | None, str | None]) -> str:
        queue, session = group
        numbers = [] if queue is None else [self._queues[queue]]
        numbers += [] if session is None else [self._sessions[session]]
        return " ".join(map(str, numbers))

    def _lanes(self) -> list[dict[str, Any]]:
        """A lane for each kind of fault and its victim; of very many victims one for the kind."""
        found: dict[str, dict[str, Any]] = {}
        for each in self._picture.bands:
            lane = found.setdefault(self._lane(each), {"key": self._lane(each), "title": each.fault, "count": 0})
            lane["count"] += each.times
            whose = "the broker" if each.victim is None else shown(each.victim, _NAMED)
            lane["note"] = f"{_how(each)}, {whose}" if self._apart else _how(each)
        lanes = [{"key": "", "title": "Faults", "count": 0, "note": "none recorded"}] if not found else found.values()
        left = self._picture.bands_left
        last = [{"key": "left", "title": "More faults", "note": f"{left:,} more are not shown"}] if left else []
        return [{key: each[key] for key in ("key", "title", "note")} for each in (*lanes, *last)]

    @property
    def _apart(self) -> bool:
        return len({(each.fault, each.victim, _how(each)) for each in self._picture.bands}) <= _LANES

    def _lane(self, band: Band) -> str:
        whose = (band.victim or "") if self._apart else ""
        return json.dumps([band.fault, _how(band), whose])

    def _band(self, band: Band) -> dict[str, Any]:
        bins = self._bins
        begin, span = bins.first * bins.width, len(bins) * bins.width
        since, until = (
            min(1.0, max(0.0, (t - begin) / span))
            for t in (band.since, bins.ended if band.until is None else band.until)
        )
        of = "" if band.victim is None else f" of {shown(band.victim, _NAMED)}"
        of += "" if band.queue is None else f" in queue {shown(band.queue, _NAMED)}"
        end = "no repair is recorded" if band.until is None else f"to {self.clock.said(band.until)}"
        times = f", {band.times:,} times" if band.times > 1 else ""
        kind = band.fault if band.recorded else f"{_how(band)}: {band.fault}"
        count = f"{band.messages:,} message{'' if band.messages == 1 else 's'}"
        return {
            "lane": self._lane(band),
            "from": round(since, 6),
            "to": round(max(since, until), 6),
            "guess": not band.recorded,
            "told": f"{kind}{of}{times}, {self.clock.said(band.since)} {end}",
            "explains": f"It explains what befell {count}." if band.messages else "It explains nothing that was found.",
            "command": self._commands.at(self.clock(band.since)),
        }

    def _marks(self, marks: Marks) -> dict[str, Any]:
        told = {name: judged for name, _, judged in judged_rows(self._result)}.get(marks.name, "not allowed")
        style = "" if told.startswith("not allowed") else "open" if told.startswith("undecided") else "fine"
        counts: dict[str, Any] = {
            "all": [[place, count, self._command(name)] for place, count, name in marks.bins],
        }
        for by, grouped in marks.counts.items():
            its: dict[str, list[list[int]]] = {}
            for group, place, count in zip(
                grouped.group.tolist(), grouped.bin.tolist(), grouped.count.tolist(), strict=True
            ):
                its.setdefault(self._key(grouped.names[group]), []).append([place, count])
            counts[by.value] = its
        return {
            "name": marks.name,
            "told": told,
            "style": style,
            "messages": marks.messages,
            "left": marks.messages - len(marks.stories),
            "counts": counts,
            "stories": list(marks.stories),
        }

    def _command(self, message: str) -> int | None:
        command = self._commands.message(message)
        return None if command is None else self._texts(command)

    def _story(self, each: Shown) -> dict[str, Any]:
        story, texts = each.story, self._texts
        clock, chapter, moments = story_clock(story), story.chapters[0], story.moments
        half = _MOMENTS // 2
        kept = moments if len(moments) <= _MOMENTS else (*moments[:half], *moments[-half:])
        lanes = lanes_of(kept)
        notes = (
            [f"Beside {shown(story.chapters[1].message, _NAMED)}: {story.why_together}."] if story.why_together else []
        )
        if story.would_explain:
            kinds = in_words(list(story.would_explain), "or")
            notes.append(f"If faults happened that nobody recorded, {kinds} may explain it: say --faults any.")
        sides = [{moment.row for moment in its.moments} for its in story.chapters]
        return {
            "message": texts(shown(chapter.message, _NAMED)),
            "kinds": [],
            "verdict": chapter.verdict.value,
            "bin": each.bin,
            "queue": self._queues[each.queue],
            "sessions": [self._sessions[name] for name in each.sessions],
            "head": texts(headline(story)),
            "life": texts.each(f"{life_sentence(story, its, clock)}." for its in story.chapters),
            "lanes": texts.each(shown(lane, _NAMED) for lane in lanes),
            "sides": texts.each(shown(its.message, _NAMED) for its in story.chapters),
            "rows": [self._row(moment, clock, lanes, sides) for moment in kept],
            "left": len(moments) - len(kept),
            "impossible": texts.each(impossible_sentences(story, self._specification, clock)),
            "faults": texts.each(fault_sentences(story, clock)),
            "notes": texts.each([*notes, f"The {clock.meaning}."]),
            "command": self._command(chapter.message),
        }

    def _row(self, moment: Moment, clock: Clock, lanes: Sequence[str], sides: Sequence[set[int]]) -> list[Any]:
        kind = "impossible" if moment.impossible else "fault" if moment.event is Event.FAULT else ""
        explains = self._texts(in_words(list(moment.explains))) if moment.explains and not moment.impossible else None
        both = sum(1 << place for place, rows in enumerate(sides) if moment.row in rows)
        return [
            self._texts(clock(moment.t)),
            moment.line,
            lanes.index(moment.process),
            self._texts(moment.told),
            _KINDS.get(kind, 0),
            explains,
            both,
        ]


_LANES: Final = 12
"""Of more kinds of faults with different victims the victims have no lanes of their own."""


def _how(band: Band) -> str:
    return "recorded" if band.recorded else "nobody recorded it" if band.assumed else "broken connection"


def _run(values: list[int], *, level: bool) -> list[int]:
    """Return ``values`` without leading zeros and a constant rest; first the number of leading zeros.

    After the last value of a level stands the same, else 0.
    """
    begin = next((place for place, value in enumerate(values) if value), len(values))
    end, last = len(values), values[-1] if level else 0
    while end > begin and values[end - 1] == last:
        end -= 1
    return [begin, *values[begin : min(len(values), end + level)]]


def _duration(nanoseconds: int) -> str:
    for size, unit in ((86_400 * _SECOND, "d"), (3_600 * _SECOND, "h"), (60 * _SECOND, "min"), (_SECOND, "s")):
        if nanoseconds % size == 0:
            return f"{nanoseconds // size:,} {unit}"
    size, unit = next((each for each in ((10**6, "ms"), (10**3, "us")) if nanoseconds % each[0] == 0), (1, "ns"))
    return f"{nanoseconds // size:,} {unit}"
