"""A history that comes in batches: what is planted is told once, what is over is forgotten, what is late is told."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.verify.events.columns import encode
from ackfsm.verify.folding.monitor import Alert, State, advanced
from ackfsm.verify.folding.passes import Asked, Folder
from ackfsm.verify.folding.summary import Chunk, Folding, Summary
from ackfsm.verify.reading.lines import parse_block
from model_tests.verify.test_fold_chunks import ordinary, whole

SPEC = tables.load()
LONG = 10**12

Event = Mapping[str, Any]


def chunk_of(place: int, events: Sequence[Event]) -> Chunk:
    parsed = parse_block("\n".join(map(json.dumps, events)).encode())
    return Chunk(place=place, events=encode(parsed.events, parsed.lines))


class Watched:
    """A monitor in this process; its state is saved and loaded between batches."""

    def __init__(self, config: Mapping[str, Any] | None = None, *, delay: int = 0, horizon: int = LONG) -> None:
        configuration = SPEC.configure(None, config or {"profile": "jms"})
        self._folder = Folder(dict[int, Chunk]().__getitem__, Asked(specification=SPEC, configuration=configuration))
        self._how = {"delay": delay, "horizon": horizon}
        self.state = State()
        self.alerts: list[Alert] = []

    def take(self, events: Sequence[Event], pieces: int = 1) -> None:
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


def test_what_comes_after_a_life_was_over_is_late() -> None:
    watched = Watched()
    for batch in in_batches(ordinary(300), 400):
        watched.take(batch)
    again = {"t": 9_000, "process": "c", "event": "delivered", "redelivered": False, "message": "m7", "queue": "q"}
    watched.take([again])
    assert watched.kinds == [("m7", "late", "unknown")]
    assert watched.alerts[0].why.startswith("delivered, unflagged after its life was over")
    assert watched.state.late == 1


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


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
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
