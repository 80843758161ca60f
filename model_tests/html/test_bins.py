"""What is counted over time is what a plain loop over the lines counts, and the same wherever a history is cut."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.history.columns import Events, assemble, encode
from ackfsm.history.lines import parse_block
from ackfsm.showing.views.history import Stories
from ackfsm.showing.views.story import story_json
from ackfsm.verify import LEVELS, By, Series, verdict
from ackfsm.verify.counting import bins as bins_module
from ackfsm.verify.counting.bins import WIDTHS, Bins, bins_of, width_of
from ackfsm.verify.folding.passes import Asked, Fold, Folded, Folder
from ackfsm.verify.folding.summary import Chunk
from ackfsm.verify.results.tables import ResultTables
from model_tests.support.places import DATA
from model_tests.support.verify.random_histories import Event, histories
from model_tests.support.verify.traffic import traffic
from model_tests.support.whole import WHOLE, before_a_release

Group: TypeAlias = tuple[str | None, str | None]
Dense: TypeAlias = dict[tuple[Group, str], dict[int, int]]

OVER = ("delivered", "rejected", "expired", "dead_lettered")


def in_order(lines: Sequence[Event]) -> list[Event]:
    return sorted(lines, key=lambda line: line["t"])


def _session(line: Event) -> str:
    return str(line.get("session") or line["process"])


def _queues(lines: Sequence[Event]) -> dict[str, str]:
    """The queue of each message: of its last send that names one, else of its last line that does."""
    found: dict[str, str] = {}
    for kinds in (None, ("send", "resend")):
        for line in lines:
            named = line.get("message") is not None and line.get("queue") is not None and line["event"] != "waiting"
            if named and (kinds is None or line["event"] in kinds):
                found[line["message"]] = line["queue"]
    return found


def happened(lines: Sequence[Event]) -> Iterator[tuple[str, int, str, str]]:
    """Series, time, message and session of all that happens in a bin."""
    for place, line in enumerate(lines):
        name = {"send": "sent", "resend": "sent", "confirmed": "confirmed", "delivered": "delivered"}.get(line["event"])
        if name is not None:
            yield name, line["t"], line["message"], _session(line)
        if line["event"] in {"send", "resend"} and line.get("transaction"):
            ends = [each["t"] for each in lines[place + 1 :] if _ends(each, line)]
            yield from (("confirmed", t, line["message"], _session(line)) for t in ends[:1])
        if line["event"] == "delivered":
            t = _acknowledged_at(lines, place)
            if t is not None:
                yield "acknowledged", t, line["message"], _session(line)


def _ends(each: Event, line: Event) -> bool:
    same = (each["process"], each.get("transaction")) == (line["process"], line["transaction"])
    return each["event"] == "committed" and same


def _acknowledged_at(lines: Sequence[Event], place: int) -> int | None:
    delivery = lines[place]
    for number in range(place + 1, len(lines)):
        line = lines[number]
        if delivery.get("transaction") and _ends(line, delivery):
            return int(line["t"])
        if line["event"] in {"acknowledge", "acknowledged"}:
            call = number if line["event"] == "acknowledge" else _call(lines, number)
            if call > place and _covers(lines, call, line, place):
                return int(line["t"])
    return None


def _call(lines: Sequence[Event], answer: int) -> int:
    """The latest call with the session, message and scope of an answer, else itself."""
    key = (_session(lines[answer]), lines[answer].get("message"), lines[answer]["scope"])
    before = [
        number
        for number, line in enumerate(lines[:answer])
        if line["event"] == "acknowledge" and (_session(line), line.get("message"), line["scope"]) == key
    ]
    return before[-1] if before else answer


def _covers(lines: Sequence[Event], call: int, line: Event, place: int) -> bool:
    delivery = lines[place]
    if line["scope"] == "message":
        return bool(delivery["message"] == line["message"])
    if _session(delivery) != _session(line):
        return False
    named = [
        number
        for number, each in enumerate(lines[:call])
        if each["event"] == "delivered" and each["message"] == line.get("message") and _session(each) == _session(line)
    ]
    return line["scope"] == "session" or bool(named and place <= named[-1])


def levels(lines: Sequence[Event]) -> Iterator[tuple[int, set[tuple[str, int, str, str]]]]:
    """After each line what is open: series, which of several, message and session."""
    unanswered: dict[int, tuple[str, str]] = {}
    waiting: dict[str, str] = {}
    in_hand: dict[str, str] = {}
    sent, over, gone = set[str](), set[str](), set[str]()
    for place, line in enumerate(lines):
        event, message = line["event"], line.get("message")
        if event in {"send", "resend"}:
            if not line.get("transaction"):
                unanswered[place] = (str(message), _session(line))
            if message not in sent and message not in over:
                waiting[str(message)] = _session(line)
            sent.add(str(message))
        if event in {"confirmed", "rejected", "in_doubt"}:
            unanswered = {number: its for number, its in unanswered.items() if its[0] != message}
        if event in OVER:
            over.add(str(message))
            waiting.pop(str(message), None)
        if event == "delivered" and message not in gone:
            in_hand.setdefault(str(message), _session(line))
        if event in {"processed", "failed", *OVER[1:]}:
            in_hand.pop(str(message), None)
        if event in OVER[1:]:
            gone.add(str(message))
        yield (
            line["t"],
            {
                *(("unanswered", number, *its) for number, its in unanswered.items()),
                *(("waiting", 0, name, session) for name, session in waiting.items()),
                *(("in_hand", 0, name, session) for name, session in in_hand.items()),
            },
        )


def counted(lines: Sequence[Event], width: int) -> Dense:
    """Everything, by a loop."""
    queues, found = _queues(lines), dict[tuple[Group, str], Counter[int]]()
    first, last = (each["t"] // width for each in (lines[0], lines[-1]))

    def add(series: str, message: str, session: str, place: int) -> None:
        queue = queues.get(message, "")
        for group in ((None, None), (queue, None), (None, session), (queue, session)):
            found.setdefault((group, series), Counter())[place] += 1

    for series, t, message, session in happened(lines):
        add(series, message, session, t // width - first)
    at_end: dict[int, set[tuple[str, int, str, str]]] = {}
    for t, open_ in levels(lines):
        at_end[t // width - first] = open_
    now: set[tuple[str, int, str, str]] = set()
    for place in range(last - first + 1):
        now = at_end.get(place, now)
        for series, _, message, session in now:
            add(series, message, session, place)
    return {key: dict(its) for key, its in found.items()}


def dense(bins: Bins) -> Dense:
    found: Dense = {}
    for grouped in bins.counts.values():
        for group, series, values in grouped.values(bins.first, len(bins)):
            its = {place: value for place, value in enumerate(values.tolist()) if value}
            if its:
                found[group, series.value] = its
    return found


def events_of(lines: Sequence[Event]) -> Events:
    parsed = parse_block("\n".join(map(json.dumps, lines)).encode(), 1)
    return assemble([encode(parsed.events, parsed.lines)])


def _ordinary(lines: Sequence[Event]) -> bool:
    """A range of confirmations is spelled out before it is counted; the loop here does not know it."""
    return not any(line["event"] == "confirmed" and line.get("scope") == "up_to" for line in lines)


@pytest.mark.parametrize("kind", ["traffic", "transacted", "drawn"])
@settings(
    deadline=None,
    max_examples=15 if WHOLE else 5,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(data=st.data())
def test_what_is_counted_is_what_a_loop_counts(kind: str, data: st.DataObject) -> None:
    drawn = {"traffic": traffic(), "transacted": traffic(transacted=True), "drawn": histories()}[kind]
    lines = in_order(data.draw(drawn.filter(_ordinary)))
    bins = bins_of(events_of(lines))
    assert dense(bins) == counted(lines, bins.width)


STRANGE: list[dict[str, Any]] = [
    {"process": "p", "event": "send", "message": "early", "queue": "q"},
    {"process": "b", "event": "dead_lettered", "message": "early"},
    {"process": "c", "event": "delivered", "message": "early", "redelivered": False},
    {"process": "c", "event": "delivered", "message": "phantom", "redelivered": False, "queue": "other"},
    {"process": "p", "event": "send", "message": "phantom", "queue": "q"},
    {"process": "p", "event": "resend", "message": "phantom", "queue": "q"},
    {"process": "p", "event": "confirmed", "message": "phantom"},
    {"process": "c", "event": "delivered", "message": "phantom", "redelivered": True},
    {"process": "c", "event": "acknowledge", "scope": "up_to", "message": "phantom"},
    {"process": "c", "event": "acknowledged", "scope": "up_to", "message": "phantom"},
    {"process": "c", "event": "failed", "message": "phantom"},
    {"process": "c", "event": "processed", "message": "phantom"},
    {"process": "p", "event": "send", "message": "rejected", "queue": "q"},
    {"process": "p", "event": "rejected", "message": "rejected"},
    {"process": "c", "event": "delivered", "message": "rejected", "redelivered": False},
    {"process": "c", "event": "acknowledge", "scope": "session"},
]


def test_what_hardly_happens_is_counted_so_too() -> None:
    lines = [{"t": 10 * place, **line} for place, line in enumerate(STRANGE)]
    bins = bins_of(events_of(lines))
    assert dense(bins) == counted(lines, bins.width)
    assert ((None, None), "waiting") in dense(bins)
    assert dense(bins)[(None, None), "in_hand"] == dict.fromkeys(range(30 // bins.width, 100 // bins.width), 1)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_the_bins_of_recorded_histories_are_those_of_a_loop(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    lines = in_order([json.loads(line) for line in text.splitlines()[1:]])[:600]
    bins = bins_of(events_of(lines))
    assert len(bins) > 50
    assert dense(bins) == counted(lines, bins.width)


@pytest.mark.parametrize("name", ["jms", pytest.param("rabbitmq", marks=before_a_release)])
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_cut_anywhere_a_history_has_the_same_bins_and_stories(name: str, data: st.DataObject) -> None:
    lines = data.draw(st.one_of(traffic(), traffic(transacted=True), histories()))
    cuts = sorted({cut for cut in data.draw(st.sets(st.integers(1, 60), max_size=4)) if cut < len(lines)})
    bounds = [0, *cuts, len(lines)]
    chunks = []
    for place, (begin, end) in enumerate(itertools.pairwise(bounds)):
        parsed = parse_block("\n".join(map(json.dumps, lines[begin:end])).encode(), begin + 1)
        chunks.append(Chunk(place=place, events=encode(parsed.events, parsed.lines)))
    specification = tables.load()
    asked = Asked(specification=specification, configuration=specification.configure(name), binned=True)
    cut = Fold(Path("h"), len(chunks), Folder(chunks.__getitem__, asked), map).outcome()
    at_once = Fold(Path("h"), 1, Folder([_whole(lines)].__getitem__, asked), map).outcome()
    folded, whole = cut.bins(), bins_of(at_once.examined.events)
    assert dense(folded) == dense(whole)
    assert (folded.begun, folded.ended, folded.width) == (whole.begun, whole.ended, whole.width)
    assert folded.consumers == whole.consumers
    ones, others = (_stories(outcome, specification, bins) for outcome, bins in ((cut, folded), (at_once, whole)))
    assert ones == others


def _stories(outcome: Folded, specification: tables.Specification, bins: Bins) -> dict[str, Any]:
    """What is told of each message in question, by its id."""
    found = ResultTables(outcome, verdict(outcome.findings, specification), specification)
    stories = Stories(found, bins.consumers, bins.begun)
    asked = sorted({code for codes in stories.tables.in_question().values() for code in codes.tolist()})
    told = [story_json(stories.told(code), specification) for code in asked]
    return {each["messages"][0]["message"]: each for each in told}


def _whole(lines: Sequence[Event]) -> Chunk:
    parsed = parse_block("\n".join(map(json.dumps, lines)).encode(), 1)
    return Chunk(place=0, events=encode(parsed.events, parsed.lines), beyond=True)  # so that nothing is left out


def test_widths_divide_one_another_and_are_as_fine_as_may_be() -> None:
    assert all(wide % narrow == 0 for narrow, wide in itertools.pairwise(WIDTHS))
    assert width_of(0, 0) == 1
    for begun, ended in ((0, 10**9), (1_770_952_324_200_000_000, 1_770_956_324_200_000_000), (17, 599), (17, 600)):
        width = width_of(begun, ended)
        finer = [each for each in WIDTHS if each < width]
        assert ended // width - begun // width < bins_module.MOST_BINS
        assert not finer or ended // finer[-1] - begun // finer[-1] >= bins_module.MOST_BINS


def test_what_cannot_be_told_apart_is_left_out_and_the_rest_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bins_module, "MOST_GROUPS", 3)
    lines: list[dict[str, Any]] = [
        {"t": number, "process": f"p{number % 5}", "event": "send", "message": f"m{number}", "queue": f"q{number % 2}"}
        for number in range(40)
    ]
    bins = bins_of(events_of(lines))
    assert set(bins.counts) == {By.ALL, By.QUEUE}
    merged = Bins.merged([bins_of(events_of(lines[:20])), bins_of(events_of(lines[20:]))])
    assert dense(merged) == dense(bins)
    assert set(dense(bins)) == {
        ((queue, None), series) for queue in (None, "q0", "q1") for series in ("sent", "unanswered", "waiting")
    }


def test_levels_are_some_of_the_series() -> None:
    assert {each.value for each in LEVELS} == {"unanswered", "waiting", "in_hand"}
    assert set(LEVELS) < set(Series)
