"""A history that comes in batches: what is planted is told once, what is over is forgotten, what is late is told."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm.history.gathered import ReadLines
from ackfsm.history.lines import parse_block
from ackfsm.verify.folding.chunks import chunk_of as chunk_told
from ackfsm.verify.folding.monitor import Alert, State, advanced
from ackfsm.verify.folding.passes import Asked, Folder
from ackfsm.verify.folding.summary import Chunk, Folding, Summary
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE
from model_tests.verify.test_fold_chunks import ordinary, whole

SPEC = shipped()
LONG = 10**12

Event = Mapping[str, Any]


def chunk_of(place: int, lines: Sequence[Event | str]) -> Chunk:
    """Events, and lines that are none."""
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    parsed = parse_block(text.encode())
    return chunk_told(place, 1, [ReadLines(None, (parsed,), len(lines))], "the stream")


class Watched:
    """A monitor in this process; its state is saved and loaded between batches."""

    def __init__(self, config: Mapping[str, Any] | None = None, *, delay: int = 0, horizon: int = LONG) -> None:
        configuration = SPEC.configure(None, config or {"profile": "jms"})
        self._folder = Folder(dict[int, Chunk]().__getitem__, Asked(specification=SPEC, configuration=configuration))
        self._how = {"delay": delay, "horizon": horizon}
        self.state = State()
        self.alerts: list[Alert] = []

    def take(self, events: Sequence[Event | str], pieces: int = 1) -> None:
        """One batch, in so many chunks."""
        size = -(-len(events) // pieces)
        chunks = {i + 1: chunk_of(i + 1, events[i * size : (i + 1) * size]) for i in range(pieces)}
        folder = self._folder.with_chunks(chunks.__getitem__)
        state, alerts = advanced(self.state, pieces, folder, _here, **self._how)
        self.state = State.loaded(state.saved())
        self.alerts += alerts

    @property
    def kinds(self) -> list[tuple[str | None, str, str]]:
        """What was told, without why."""
        return [(each.message, each.kind, each.verdict) for each in self.alerts]


def _here(folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
    return map(folder, foldings)


def in_batches(events: Sequence[Event], size: int) -> Iterator[Sequence[Event]]:
    return (events[begin : begin + size] for begin in range(0, len(events), size))


def drained(t: int) -> dict[str, Any]:
    return {"t": t, "process": "nemesis", "event": "drained", "queue": "q"}


def test_of_ordinary_traffic_nothing_is_told_and_little_is_kept() -> None:
    watched, most = Watched(), 0
    for batch in in_batches(ordinary(1_000), 130):
        watched.take(batch)
        most = max(most, len(watched.state.rows or ()))
    assert watched.alerts == []
    assert watched.state.events == 4_000
    assert most < 60, most


def test_a_loss_is_told_once_and_as_what_it_is() -> None:
    events = [each for each in ordinary(200) if not (each["message"] == "m50" and each["process"] == "c")]
    watched = Watched()
    for batch in in_batches([*events, drained(2_001), *_later(ordinary(100), 3_000)], 90):
        watched.take(batch)
    assert watched.kinds == [("m50", "loss", "invalid")]
    assert "'m50' was at rest, where the model still allows delivered_clear" in watched.alerts[0].why


def _later(events: Sequence[Event], t: int) -> list[Event]:
    return [{**each, "t": each["t"] + t, "message": f"later {each['message']}"} for each in events]


def test_what_a_fault_allows_is_told_as_allowed() -> None:
    config = {"profile": "artemis", "journal_sync_non_transactional": False}
    lost = [
        {"t": 10, "process": "p", "event": "send", "message": "m", "queue": "q"},
        {"t": 15, "process": "p", "event": "confirmed", "message": "m", "queue": "q"},
    ]
    crash = [
        {"t": 20, "process": "nemesis", "event": "fault", "fault": "broker_crash"},
        {"t": 30, "process": "nemesis", "event": "recovered", "fault": "broker_crash"},
        drained(10**10),
    ]
    watched = Watched(config)
    watched.take(lost)
    watched.take(crash)
    assert watched.kinds == [("m", "loss", "allowed")]


def test_nothing_is_told_of_a_message_until_its_lines_had_time_to_come() -> None:
    """The consumer's log comes before the producer's."""
    events = ordinary(20)
    watched = Watched(delay=100)
    watched.take([each for each in events if each["process"] == "c"])
    assert [each for each in watched.alerts if each.t > 93] == []
    early = len(watched.alerts)
    assert early
    watched = Watched(delay=1_000)
    watched.take([each for each in events if each["process"] == "c"])
    watched.take([each for each in events if each["process"] == "p"])
    watched.take(_later(ordinary(200), 1_000))
    assert watched.alerts == []


def after_its_life(*later: Event, **fields: object) -> Watched:
    """A message whose life was plain and over, and what is told of it later."""
    watched = Watched(**fields)  # type: ignore[arg-type]
    for batch in in_batches(ordinary(300), 400):
        watched.take(batch)
    watched.take(
        [
            {"t": 9_000 + place, "process": "c", "message": "m7", "queue": "q", **each}
            for place, each in enumerate(later)
        ]
    )
    return watched


def test_what_comes_after_a_life_was_over_is_late() -> None:
    watched = after_its_life({"event": "processed"})
    assert watched.kinds == [("m7", "late", "unknown")]
    assert watched.alerts[0].why.startswith("processed after its life was over")
    assert watched.state.late == 1


@pytest.mark.parametrize(("flag", "kind"), [(False, "unflagged_duplicate"), (True, "duplicate")])
def test_another_delivery_after_a_life_was_over_is_an_alert_of_its_own(flag: bool, kind: str) -> None:  # noqa: FBT001
    """Whatever else is told of it: nothing that is known allows it, and so nothing else is needed to judge it."""
    again: Event = {"event": "delivered", "redelivered": flag}
    watched = after_its_life(again, {"event": "processed"}, {"event": "acknowledge", "scope": "session"})
    assert watched.kinds == [("m7", kind, "invalid")]
    assert watched.alerts[0].why.startswith("its life was over, and no fault that is known allows")


def test_another_delivery_that_a_fault_may_have_brought_about_is_open() -> None:
    crash: Event = {"t": 8_990, "process": "c", "event": "fault", "fault": "consumer_crash", "message": None}
    watched = after_its_life(crash, {"event": "delivered", "redelivered": True})
    assert watched.kinds == [("m7", "duplicate", "unknown")]


def test_the_first_delivery_of_what_was_refused_is_late_and_no_second_one() -> None:
    watched = Watched(horizon=6_000)
    refused = [{"t": 1, "process": "p", "event": "send"}, {"t": 2, "process": "p", "event": "rejected"}]
    watched.take([{"message": "no", "queue": "q", **each} for each in refused])
    for batch in in_batches(_later(ordinary(1_000), 100), 300):
        watched.take(batch)
    last = max(int(each["t"]) for each in _later(ordinary(1_000), 100))
    watched.take(
        [{"t": last, "process": "c", "event": "delivered", "redelivered": False, "message": "no", "queue": "q"}]
    )
    assert [kind for name, kind, _ in watched.kinds if name == "no"] == ["late"]


def test_what_never_comes_to_rest_is_overdue_and_forgotten() -> None:
    sent = {"t": 5, "process": "p", "event": "send", "message": "open", "queue": "q"}
    watched = Watched(horizon=2_000)
    watched.take([sent])
    for batch in in_batches(_later(ordinary(1_000), 100), 300):
        watched.take(batch)
    assert watched.kinds == [("open", "overdue", "unknown")]
    assert watched.state.overdue == 1
    assert len(watched.state.rows or ()) < 300
    assert len(watched.state.over) < 1_000


def _shifted(events: Sequence[Event], message: str, process: str, by: int) -> list[Event]:
    its = [
        {**each, "t": each["t"] + by * (each["message"] == message and each["process"] == process)} for each in events
    ]
    return sorted(its, key=lambda each: int(each["t"]))


def test_what_two_messages_show_is_told() -> None:
    watched = Watched()
    for batch in in_batches([*_shifted(ordinary(40), "m10", "c", 11), drained(2_000)], 30):
        watched.take(batch)
    assert watched.kinds == [("m10", "reorder", "invalid")]
    assert watched.alerts[0].why == "together with another message it does not conform to the model"


def test_of_more_than_are_shown_none_is_taken_for_allowed() -> None:
    events: list[Event] = [*ordinary(500)]
    for number in range(0, 500, 4):
        events = _shifted(events, f"m{number}", "c", 11)
    watched = Watched()
    watched.take([*events, drained(10_000)])
    assert len(watched.kinds) == 125
    assert {each[1:] for each in watched.kinds} == {("reorder", "invalid")}


def test_what_no_message_decides_by_itself_is_told() -> None:
    config = {"profile": "solace", "publish_window": 1, "send_mode": "asynchronous"}
    watched = Watched(config)
    watched.take([*_shifted(ordinary(20), "m5", "p", 0), drained(2_000)])
    assert watched.kinds == []
    late = [{**each, "t": each["t"] + 12 * (each["event"] == "confirmed")} for each in ordinary(20)]
    watched = Watched(config)
    watched.take([*sorted(late, key=lambda each: int(each["t"])), drained(2_000)])
    assert {each[1:] for each in watched.kinds} == {("window_overrun", "invalid")}
    assert len(watched.kinds) == 19


def test_what_is_allowed_is_told_as_allowed_before_any_drained() -> None:
    lost = {"t": 1_500, "process": "c", "event": "fault", "fault": "consumer_link_loss"}
    again = {"t": 2_000, "process": "c", "event": "delivered", "redelivered": True, "message": "m99", "queue": "q"}
    watched = Watched()
    watched.take([*ordinary(100), lost, again])
    assert watched.kinds == [("m99", "duplicate", "allowed")]


def test_what_no_anomaly_says_is_told_beside_one_that_is_allowed() -> None:
    """It came again after the link was lost, which is allowed, and was never processed, which is not."""
    lost = {"t": 1_500, "process": "c", "event": "fault", "fault": "consumer_link_loss"}
    again = {"t": 2_000, "process": "c", "event": "delivered", "redelivered": True, "message": "m99", "queue": "q"}
    watched = Watched()
    watched.take([*ordinary(100), lost, again])
    watched.take([drained(3_000)])
    assert watched.kinds == [("m99", "duplicate", "allowed"), ("m99", "contradiction", "invalid")]


def test_what_nobody_records_is_not_told() -> None:
    watched = Watched()
    watched.take([each for each in ordinary(30) if each["event"] != "processed"])
    watched.take([drained(1_000)])
    assert watched.alerts == []


def test_a_difference_of_clocks_is_not_held_against_the_broker() -> None:
    watched = Watched()
    watched.take([*_shifted(ordinary(30), "m5", "p", 4), drained(1_000)])
    assert {(message, verdict) for message, _, verdict in watched.kinds} == {("m5", "unknown")}


def test_a_transaction_is_told_when_the_lines_of_its_members_had_time_to_come() -> None:
    of = {"process": "p", "transaction": "t"}
    sent = [{"t": n, "event": "send", "message": f"m{n}", "queue": "q", **of} for n in range(3)]
    ended = [{"t": 10 + n, "event": event, **of} for n, event in enumerate(("commit", "committed"))]
    taken = [
        {"t": 20 + n, "process": "c", "event": event, "message": f"m{n}", "queue": "q", "redelivered": False}
        for n in range(3)
        for event in ("delivered", "processed")
    ]
    watched = Watched(delay=1_000)
    watched.take([*sent, *ended, *taken[:2], drained(100)])
    assert watched.alerts == []
    watched.take([*taken[2:], drained(5_000)])
    assert watched.alerts == []
    watched = Watched(delay=1_000)
    watched.take([*sent, *ended, *taken[:2], drained(100)])
    watched.take([drained(5_000)])
    assert ("t", "torn_transaction", "invalid") in watched.kinds


def test_a_stream_may_begin_with_lines_that_are_no_events() -> None:
    watched = Watched()
    watched.take(["oops", "{}"])
    assert (watched.state.parse_errors, watched.state.events) == (2, 0)
    watched.take(["oops", *ordinary(3), drained(100)])
    assert (watched.state.parse_errors, watched.state.events) == (3, 13)
    assert watched.alerts == []


@pytest.mark.parametrize(("whose", "verdict"), [("s", "allowed"), ("another", "invalid")])
def test_a_fault_may_name_whom_no_line_names_yet(whose: str, verdict: str) -> None:
    """It explains nothing unless somebody turns out to have had that session."""
    lost = {"t": 1_500, "process": "nemesis", "event": "fault", "fault": "consumer_link_loss", "session": "s"}
    again = {"t": 2_000, "process": "c", "event": "delivered", "redelivered": True, "message": "m99", "queue": "q"}
    watched = Watched(delay=100)
    watched.take([lost])
    watched.take([{**each, "session": whose} for each in (*ordinary(100), again)])
    watched.take([drained(5_000) | {"queue": "another"}])
    assert watched.kinds == [("m99", "duplicate", verdict)]


def test_a_fault_may_name_whom_no_line_names_any_more() -> None:
    lost = {"t": 90_000, "process": "nemesis", "event": "fault", "fault": "consumer_link_loss", "session": "s"}
    again = {
        "t": 95_000,
        "process": "c",
        "event": "delivered",
        "redelivered": True,
        "message": "later m99",
        "queue": "q",
    }
    watched = Watched(horizon=2_000)
    watched.take([{**each, "session": "s"} for each in ordinary(100)])
    for batch in in_batches(_later(ordinary(100), 92_000), 150):
        watched.take(batch)
    watched.take([lost, again])
    assert watched.kinds == [("later m99", "duplicate", "invalid")]


@settings(deadline=None, max_examples=30 if WHOLE else 10, suppress_health_check=[HealthCheck.too_slow])
@given(
    missing=st.dictionaries(st.integers(0, 79), st.sampled_from(["delivered", "processed", "confirmed"]), max_size=4),
    cuts=st.sets(st.integers(1, 300), max_size=6),
    pieces=st.integers(1, 3),
)
def test_what_is_told_is_what_is_found_in_the_whole(missing: dict[int, str], cuts: set[int], pieces: int) -> None:
    events = [each for each in ordinary(80) if missing.get(int(each["message"][1:])) != each["event"]]
    events = [
        each
        for each in events
        if not (each["event"] == "processed" and missing.get(int(each["message"][1:])) == "delivered")
    ] + [drained(10_000)]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    watched = Watched(horizon=10_000)
    for begin, end in itertools.pairwise(bounds):
        watched.take(events[begin:end], pieces)
    watched.take([drained(30_000)])  # what is concluded from the end is told when the message is forgotten
    found = whole(events, SPEC.configure("jms"), 0)
    expected = {(m, anomaly.value) for anomaly, each in found.anomalies.items() for m in each.examples}
    told = [(each.message, each.kind) for each in watched.alerts if each.kind != "overdue"]
    assert len(told) == len(set(told))
    assert set(told) == expected


@pytest.mark.parametrize("state", [State(), State(latest=5, told=frozenset({("m", "loss")}), late=2)])
def test_a_state_is_what_was_saved(state: State) -> None:
    again = State.loaded(state.saved())
    assert (again.latest, again.told, again.late, again.rows) == (state.latest, state.told, state.late, None)
