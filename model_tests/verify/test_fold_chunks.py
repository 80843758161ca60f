"""A history that is folded in chunks has the findings of the whole, wherever it is cut and in whatever order."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from ackfsm.history.columns import ABSENT, assemble, encode
from ackfsm.history.format import Event as Line
from ackfsm.history.kernel import times_after
from ackfsm.history.lines import SCHEMA, parse_block
from ackfsm.history.victims import NamedVictim
from ackfsm.terms import Anomaly, InputError
from ackfsm.verify import Configurations, Events, Findings, History, examine, examine_path, read
from ackfsm.verify.folding import chunks as chunks_
from ackfsm.verify.folding.befallen import went_through
from ackfsm.verify.folding.neighbours import Followed
from ackfsm.verify.folding.observations import Observations, Plain
from ackfsm.verify.folding.passes import Asked, Fold, Folder
from ackfsm.verify.folding.summary import Chunk, merged
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.large_history import CONFIG, Planted, write_parquet
from model_tests.support.verify.random_histories import Event, histories, shuffled
from model_tests.support.verify.repeated_history import FOUND, MESSAGES, write_repeated
from model_tests.support.verify.traffic import traffic
from model_tests.support.whole import WHOLE, in_turn

SPEC = shipped()

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "jms": ("jms", {}),
    "individual": ("rabbitmq", {}),
    "window": ("solace", {"publish_window": 3, "send_mode": "asynchronous"}),
    "prefetch": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 2}),
    "client": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}),
    "transacted": ("jms", {"ack_mode": "SESSION_TRANSACTED"}),
    "transacted prefetch": ("jms", {"ack_mode": "SESSION_TRANSACTED", "prefetch": 3}),
}


def chunks_of(events: Sequence[Event], cuts: Sequence[int]) -> list[Chunk]:
    """The events as chunks that end before the numbers ``cuts``, ascending."""
    bounds = [0, *cuts, len(events)]
    found = []
    for place, (begin, end) in enumerate(itertools.pairwise(bounds)):
        parsed = parse_block("\n".join(map(json.dumps, events[begin:end])).encode(), begin + 1)
        encoded = encode(parsed.events, parsed.lines)
        found.append(Chunk(place=place, events=encoded))
    return found


def whole(events: Sequence[Event], configuration: Any, skew: int | None) -> Findings:
    chunk = chunks_of(events, [])[0]
    assert chunk.events is not None
    history = History(path=Path("h"), header=None, events=assemble([chunk.events]), unreadable=(), unreadable_count=0)
    return examine(history, SPEC, configuration, skew=skew)


def folded(events: Sequence[Event], cuts: Sequence[int], configuration: Any, skew: int | None) -> tuple[Findings, Fold]:
    chunks = chunks_of(events, cuts)
    fold = fold_of(chunks, configuration, skew)
    return fold.findings(), fold


def fold_of(chunks: Sequence[Chunk], configuration: Any = None, skew: int | None = 0) -> Fold:
    asked = Asked(specification=SPEC, configuration=configuration, skew=skew)
    return Fold(Path("h"), len(chunks), Folder(chunks.__getitem__, asked), map)


def configuration_of(name: str) -> Any:
    if name == "none":
        return None
    if name == "queues":
        its = {"q0": SPEC.configure("artemis", {"delivery_mode": "NON_PERSISTENT"}), "q2": configuration_of("prefetch")}
        return Configurations(configuration_of("window"), its)
    profile, values = SETTINGS[name]
    return SPEC.configure(profile, values)


@pytest.mark.parametrize("name", [*SETTINGS, "none", "queues"])
@settings(deadline=None, max_examples=20 if WHOLE else 4, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_cut_has_the_findings_of_the_whole(name: str, data: st.DataObject) -> None:
    events = data.draw(st.one_of(traffic(), traffic(transacted=True), histories(), shuffled()))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(events) - 1)), max_size=5)))
    skew = data.draw(st.sampled_from([0, None, 5]))
    configuration = configuration_of(name)
    found, fold = folded(events, [cut for cut in cuts if cut < len(events)], configuration, skew)
    note(f"{fold.count} folds of {len(cuts) + 1} chunks")
    assert comparable(found) == comparable(whole(events, configuration, skew))


def waiting(first: int, count: int, at: int) -> list[Event]:
    """Messages that are sent one second before ``at`` and handed over a second after, flagged."""
    events: list[Event] = []
    for number in range(first, first + count):
        fields, sent, handed = {"message": f"m{number}"}, at - 10**9 + number * 100, at + 10**9 + number * 100
        events += [
            {"t": sent, "process": "p", "event": "send", "queue": "q", **fields},
            {"t": sent + 1, "process": "p", "event": "confirmed", **fields},
            {"t": handed, "process": "c", "event": "delivered", "redelivered": True, "queue": "q", **fields},
            {"t": handed + 1, "process": "c", "event": "processed", **fields},
            {"t": handed + 2, "process": "c", "event": "acknowledge", "scope": "message", **fields},
        ]
    return events


def test_a_message_stands_only_for_those_that_went_through_the_same() -> None:
    """The flag of a first delivery is explained by a broker that died, and not by another session that was closed."""
    second = 10**9
    died = [
        {"t": at * second, "process": "nemesis", "event": event, "fault": "broker_kill"}
        for at in (100, 300)
        for event in ("fault", "recovered")
    ]
    sent = {"t": 150 * second, "process": "p2", "event": "send", "message": "other", "queue": "q2"}
    closed = {"t": 200 * second, "process": "p2", "event": "close"}
    events = [*waiting(0, 50, 100 * second), *waiting(50, 1, 200 * second), *waiting(51, 50, 300 * second)]
    told = sorted([*events, *died, sent, closed], key=lambda each: int(each["t"]))
    configuration = configuration_of("individual")
    found, fold = folded(told, [], configuration, 0)
    assert found.explanation is not None
    assert [each.message for each in found.explanation.examples] == ["m50"]
    assert comparable(found) == comparable(whole(told, configuration, 0))
    assert fold.left > 90  # of 102


KILLED = [{"t": 50, "process": "nemesis", "event": "fault", "fault": "broker_kill"}]


def one(**moved: Any) -> list[Event]:
    """A message that lived when the broker died; ``moved`` are other times, or other clients, of its lines."""
    times = {"send": 10, "confirmed": 20, "delivered": 60, "processed": 70} | moved
    clients = {"producer": "p", "consumer": "c"} | {name: str(moved[name]) for name in moved if name.endswith("er")}
    sides = {"send": "producer", "confirmed": "producer", "delivered": "consumer", "processed": "consumer"}
    events = [{"t": times[event], "process": clients[side], "event": event} for event, side in sides.items()]
    flag = {"delivered": {"redelivered": False}}
    return [{**each, **flag.get(str(each["event"]), {}), "message": "m", "queue": "q"} for each in events]


@pytest.mark.parametrize(
    ("moved", "same"),
    [
        ({"send": 12, "confirmed": 25, "processed": 75}, True),
        ({"confirmed": 55}, False),  # after the broker died
        ({"confirmed": 50}, False),  # as it died
        ({"confirmed": 50, "killed_first": True}, False),  # as it died, and written after that
        ({"processed": 60}, False),  # as soon as it was handed over
        ({"processed": 60 + 10**9}, False),  # when a fault has no effect on clients any more
        ({"producer": "other"}, False),
        ({"consumer": "other"}, False),
    ],
)
def test_what_a_message_went_through_is_its_clients_and_the_places_of_its_lines(
    moved: dict[str, Any],
    same: bool,  # noqa: FBT001
) -> None:
    numbers = set()
    before = {"confirmed": 50} if "killed_first" in moved else {}
    for its in ([*one(**before), *KILLED], [*KILLED, *one(**moved)]):
        told = [*its, {"t": 0, "process": "other", "event": "begin", "transaction": "t"}]
        chunk = chunks_of(sorted(told, key=lambda each: int(each["t"])), [])[0]
        assert chunk.events is not None
        events = assemble([chunk.events])
        where, inside = np.full((1, 6), -1, np.int64), np.full((1, 2), -1, np.int64)
        followed = Followed(events, np.zeros(1, np.uint64), where, inside)
        numbers.add(int(went_through(followed, np.ones(1, bool), {Line.SEND}, 0)[0]))
    assert len(numbers) == (1 if same else 2)


def test_summaries_merge_in_any_order_and_grouping() -> None:
    chunks = chunks_of(ordinary(30), [40, 80])
    fold = fold_of(chunks)
    one, two, three = (fold.folded([place]) for place in range(3))
    whole_of_them = merged(one, two, three)
    assert merged(merged(one, two), three) == merged(one, merged(two, three)) == whole_of_them
    assert merged(three, one, two) == whole_of_them
    assert merged(one, ()) == merged((), one) == one


def ordinary(messages: int) -> list[Event]:
    events: list[Event] = []
    for number in range(messages):
        fields = {"message": f"m{number}", "queue": "q"}
        t = number * 10
        events += [
            {"t": t, "process": "p", "event": "send", **fields},
            {"t": t + 1, "process": "p", "event": "confirmed", **fields},
            {"t": t + 2, "process": "c", "event": "delivered", "redelivered": False, **fields},
            {"t": t + 3, "process": "c", "event": "processed", **fields},
        ]
    return events


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_task_has_found_plain_stays_so(order: int) -> None:
    """A task that has met too many observations says of another one only that it did not examine it."""
    observations = Observations(SPEC, None, hold=True)
    plain = Plain(None, {"messages": 1}, runs=True)
    for known in ({1: plain, 2: None}, {1: None, 2: None})[::order]:
        observations.learn(known)
    assert observations.plain(1) == plain
    assert observations.known[2] is None


def test_of_ordinary_messages_few_rows_are_kept_and_a_late_duplicate_is_found() -> None:
    events = ordinary(2_000)
    again = {"t": 99_990, "process": "c", "event": "delivered", "redelivered": False, "message": "m100", "queue": "q"}
    ended = {"t": 99_999, "process": "c", "event": "drained"}
    found, fold = folded([*events, again, ended], [2_000, 4_000, 6_000], configuration_of("jms"), 0)
    assert fold.left > 1_900
    assert found.anomalies[Anomaly.UNFLAGGED_DUPLICATE].examples == ("m100",)
    assert found.messages == 2_000
    assert fold.count == 5, "only the chunk that had left the message out is folded again"


def _transacted(messages: int, *, sent_at_once: int = 4, taken_at_once: int = 3) -> list[Event]:
    """A producer and a consumer with transactions of several messages, of which each ends before the next begins."""
    events: list[Event] = []
    for kind, process, at_once, after in (("t", "p", sent_at_once, 0), ("u", "c", taken_at_once, 100)):
        for first in range(0, messages, at_once):
            of = {"process": process, "transaction": f"{kind}{first // at_once}"}
            members = range(first, min(first + at_once, messages))
            t = members[0] * 10 + after
            events.append({"t": t, "event": "begin", **of})
            for number in members:
                fields = {"t": number * 10 + after + 1, "message": f"m{number}", "queue": "q", **of}
                if kind == "t":
                    events.append({"event": "send", **fields})
                else:
                    events.append({"event": "delivered", "redelivered": False, **fields})
                    events.append({**fields, "event": "processed", "t": number * 10 + after + 2})
            t = members[-1] * 10 + after
            events += [{"t": t + 3, "event": "commit", **of}, {"t": t + 4, "event": "committed", **of}]
    return [*sorted(events, key=lambda event: int(event["t"])), ENDED]


def _kept(fold: Fold, chunks: int) -> int:
    return sum(len(each.residue.marks) for each in fold.folded(range(chunks)) if each.residue)


@pytest.mark.parametrize("name", ["jms", "transacted", "none"])
def test_of_ordinary_transactions_few_rows_are_kept_and_a_torn_one_is_found(name: str) -> None:
    events = _transacted(1_200)
    found, fold = folded(events, [1_500, 3_000], configuration_of(name), 0)
    assert comparable(found) == comparable(whole(events, configuration_of(name), 0))
    assert fold.left > 1_120
    assert fold.count == 3, "what goes on in another chunk is seen by the chunk alone"
    assert _kept(fold, 3) < len(events) / 8
    lost = [each for each in events if each.get("message") != "m601" or each["event"] == "send"]
    found, fold = folded(lost, [1_500, 3_000], configuration_of(name), 0)
    assert found.anomalies[Anomaly.TORN_TRANSACTION].examples == ("t150",)
    assert comparable(found) == comparable(whole(lost, configuration_of(name), 0))
    assert fold.left > 1_110


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"process": "p", "event": "send", "message": "another", "queue": "q", "transaction": "t50"}, "torn"),
        ({"process": "p", "event": "rolled_back", "transaction": "t50"}, "kept"),
        ({"process": "c", "event": "rolled_back", "transaction": "t50"}, "left"),
    ],
)
def test_a_transaction_of_which_another_chunk_tells_is_kept(more: Event, found: str) -> None:
    """The last is one of another process that has the same name."""
    events = _transacted(400)
    later = [*events[:-1], {"t": 10**5, **more}, ENDED]
    its, fold = folded(later, [len(events) - 10], configuration_of("jms"), 0)
    _, without = folded(events, [len(events) - 10], configuration_of("jms"), 0)
    assert comparable(its) == comparable(whole(later, configuration_of("jms"), 0))
    assert its.anomalies[Anomaly.TORN_TRANSACTION].found == (found == "torn")
    assert (fold.left < without.left) == (found != "left")


def _life(number: int, sent: int, delivered: int, confirmed: int | None = None) -> list[Event]:
    fields = {"message": f"m{number}", "queue": "q"}
    return [
        {"t": sent, "process": "p", "event": "send", **fields},
        {"t": sent + 1 if confirmed is None else confirmed, "process": "p", "event": "confirmed", **fields},
        {"t": delivered, "process": "c", "event": "delivered", "redelivered": False, **fields},
        {"t": delivered + 1, "process": "c", "event": "processed", **fields},
    ]


def _by_time(*lives: list[Event]) -> list[Event]:
    return sorted(itertools.chain(*lives), key=lambda event: int(event["t"]))


ENDED: Event = {"t": 10**6, "process": "c", "event": "drained"}


def _interleaved() -> tuple[list[Event], list[int]]:
    """Two parts of the same time; of those in the first, every other one is overtaken by one in the second."""
    first = _by_time(*(_life(n, 100 * n, 100 * n + (60 if n % 2 else 10)) for n in range(20)))
    second = _by_time(*(_life(100 + n, 100 * n + 20, 100 * n + 40) for n in range(20)))
    return [*first, *second, ENDED], [len(first), len(first) + len(second)]


def _across() -> tuple[list[Event], list[int]]:
    """One is sent in the first chunk and delivered in the second, behind those that were sent there."""
    first = _by_time(*(_life(n, 100 * n, 100 * n + 10) for n in range(20)))
    late = _life(50, 1_950, 2_155)
    second = _by_time(late[2:], *(_life(n, 100 * n, 100 * n + 10) for n in range(20, 40)))
    return [*first, *late[:2], *second, ENDED], [len(first) + 2]


def _overtaken() -> tuple[list[Event], list[int]]:
    """The same in order of time, in one chunk."""
    events, _ = _interleaved()
    return _by_time(events), []


def _crash_elsewhere() -> tuple[list[Event], list[int]]:
    """The faults are in a part of their own; a message that was in memory alone is delivered long after the crash."""
    lives = [_life(n, 10_000 * n, 10_000 * n + 10) for n in range(20)]
    for n, life in enumerate(lives):
        life[0]["delivery_mode"] = "NON_PERSISTENT"
        for event in life[2:] if n == 5 else life if n > 5 else []:
            event["t"] += 5 * 10**9
    crash = {"t": 50_005, "process": "nemesis", "event": "fault", "fault": "broker_crash"}
    again = {"t": 50_006, "process": "nemesis", "event": "recovered", "fault": "broker_crash"}
    return [*_by_time(*lives), {**ENDED, "t": 10**10}, crash, again], [81]


def _journal_elsewhere() -> tuple[list[Event], list[int]]:
    """That the journal is told of is seen in the second chunk only; of the first no message was written."""
    first = _by_time(*(_life(n, 100 * n, 100 * n + 10) for n in range(20)))
    life = _life(50, 3_000, 3_020, 3_010)
    told = [
        {"t": 3_005, "process": "broker", "event": f"journal_{what}", "message": "m50"}
        for what in ("written", "synced")
    ]
    return [*first, life[0], *told, *life[1:], ENDED], [80]


def _open_elsewhere() -> tuple[list[Event], list[int]]:
    """Two sends of the first chunk are open for ever, and in the second two more at a time."""
    first = _by_time(*(_life(n, 100 * n, 100 * n + 10) for n in range(20)))
    unanswered = [_life(50 + n, 1_980 + n, 1_985 + 2 * n) for n in range(2)]
    first += _by_time(*([life[0], *life[2:]] for life in unanswered))
    pairs = [
        _life(
            60 + n, 2_000 + 100 * (n // 2) + n % 2, 2_010 + 100 * (n // 2) + 3 * (n % 2), 2_005 + 100 * (n // 2) + n % 2
        )
        for n in range(20)
    ]
    return [*first, *_by_time(*pairs), ENDED], [len(first)]


@pytest.mark.parametrize(
    ("history", "name", "anomaly", "count"),
    [
        (_interleaved, "jms", Anomaly.REORDER, 10),
        (_overtaken, "jms", Anomaly.REORDER, 10),
        (_across, "jms", Anomaly.REORDER, 1),
        (_journal_elsewhere, "jms", None, 20),
        (_open_elsewhere, "window", Anomaly.WINDOW_OVERRUN, 10),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_chunk_cannot_know_is_found(history: Any, name: str, anomaly: Anomaly | None, count: int) -> None:
    events, cuts = history()
    found, _ = folded(events, cuts, configuration_of(name), 0)
    expected = whole(events, configuration_of(name), 0)
    assert comparable(found) == comparable(expected)
    assert found.explanation is not None
    strange = found.explanation.unnamed if anomaly is None else found.anomalies[anomaly].found
    assert strange == count


def test_what_lived_when_another_chunk_tells_of_a_crash_is_kept() -> None:
    events, cuts = _crash_elsewhere()
    found, fold = folded(events, cuts, configuration_of("jms"), 0)
    assert comparable(found) == comparable(whole(events, configuration_of("jms"), 0))
    assert fold.left == 14, (
        "but the first and the last, what lived in the crash, and what was sent before and after that"
    )


def test_a_session_in_which_another_chunk_acknowledges_is_kept() -> None:
    events = ordinary(200)
    act = {"t": 5_000, "process": "c", "event": "acknowledge", "scope": "session"}
    _, plain = folded([*events, ENDED], [400, 800], configuration_of("jms"), 0)
    _, acknowledged = folded([*events, act, ENDED], [400, 800], configuration_of("jms"), 0)
    assert plain.left > 190
    assert acknowledged.left == 0


def _beside(events: Sequence[Event]) -> list[Event]:
    """The same messages by other names once more, with clients of their own."""
    others = {"p": "other-p", "c": "other-c"}
    fields = [{**each, "process": others[each["process"]]} for each in events]
    return [{**each, "message": f"other-{each['message']}"} if "message" in each else each for each in fields]


@pytest.mark.parametrize("name", ["jms", "none"])
@pytest.mark.parametrize(
    "told",
    [
        {"process": "p", "event": "confirmed", "message": "m199", "scope": "up_to"},
        {"process": "c", "event": "fault", "fault": "acknowledge_timeout"},
        {"process": "nemesis", "event": "fault", "fault": "acknowledge_timeout", "session": "c"},
    ],
)
def test_what_a_line_of_another_chunk_is_of_without_naming_it_is_kept(told: Event, name: str) -> None:
    events = ordinary(200)
    unconfirmed = [each for each in events if each["event"] != "confirmed" or int(each["message"][1:]) % 7]
    its = sorted([*unconfirmed, *_beside(events)], key=lambda event: int(event["t"]))
    later = [*its, {"t": 10**5, **told}, ENDED]
    found, fold = folded(later, [600, 1_200], configuration_of(name), 0)
    assert comparable(found) == comparable(whole(later, configuration_of(name), 0))
    assert 140 < fold.left <= 200


@pytest.mark.parametrize("cuts", [[], [700]])
def test_the_rows_beside_those_that_are_kept_are_known(cuts: list[int]) -> None:
    """What comes next in its process says when a call took effect; so for every row that is kept it is the same."""
    events = ordinary(400)
    lost = set(range(0, 400, 37))
    events = [each for each in events if not (each["event"] == "delivered" and int(each["message"][1:]) in lost)]
    chunks = chunks_of([*events, ENDED], cuts)
    fold = fold_of(chunks)
    residue = assemble([each.residue.rows for each in fold.folded(range(len(chunks))) if each.residue])
    complete = assemble([each.events for each in chunks if each.events])
    assert 20 < len(residue) < 300
    kept = residue.event != ABSENT
    assert set(zip(residue.line[kept].tolist(), _next_times(residue)[kept].tolist(), strict=True)) <= set(
        zip(complete.line.tolist(), _next_times(complete).tolist(), strict=True)
    )


def _next_times(events: Events) -> Any:
    after = np.empty(len(events), np.int64)
    times_after(events.t, events.process, events.count_of("process"), after)
    return after


LINES = [
    '{"ackfsm_history": 1, "config": {"profile": "jms"}}',
    *map(json.dumps, ordinary(400)),
    '{"t": 5000, "process": "c", "event": "drained"}',
]
BAD = {
    "whole": {},
    "no JSON": {700: "{"},
    "no event": {3: '{"t": 1, "process": "p", "event": "sent"}', 900: '{"t": -1, "process": "p", "event": "drained"}'},
    "empty lines": {5: "", 800: ""},
}


@pytest.mark.parametrize(("form", "which"), in_turn(["jsonl", "parquet", "folder"], list(BAD), 2))
def test_a_file_in_chunks_has_the_findings_of_the_file(
    which: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_, "LINES_AT_ONCE", 20_000)
    monkeypatch.setattr(chunks_, "LINES_PARSED_AT_ONCE", 3_000)
    monkeypatch.setattr(chunks_, "ROWS_AT_ONCE", 300)
    path = _written([BAD[which].get(number, line) for number, line in enumerate(LINES)], form, tmp_path)
    recorded = read(path)
    configuration = SPEC.configure("jms")
    chunks = chunks_.chunks_of(path)
    assert chunks is not None
    assert len(chunks) > 3
    assert chunks.header == recorded.header
    found = examine_path(path, SPEC, lambda _: configuration, folded_from=0, skew=None)
    assert comparable(found) == comparable(examine(recorded, SPEC, configuration, skew=None))
    assert (found.parse_errors > 0) == (
        which in {"no JSON", "no event"} and not (form == "parquet" and which == "no JSON")
    )


def _written(lines: Sequence[str], form: str, folder: Path) -> Path:
    if form == "jsonl":
        path = folder / "h.jsonl"
        path.write_text("\n".join(lines))
    elif form == "folder":
        path = folder / "parts"
        path.mkdir()
        (path / "1.jsonl").write_text("\n".join(lines[:600]) + "\n")
        (path / "2.jsonl").write_text("\n".join(lines[600:]) + "\n")
    else:
        path = folder / "h.parquet"
        rows = [json.loads(line) for line in lines[1:] if line.endswith("}")]
        table = pa.Table.from_pylist(rows, schema=SCHEMA).replace_schema_metadata({"ackfsm_history": lines[0]})
        pq.write_table(table, path, row_group_size=100)
    return path


@pytest.mark.parametrize(
    "more",
    [
        {"event": "confirmed", "message": "m7", "scope": "session"},
        {"event": "waiting", "error": "receive"},
    ],
)
def test_a_history_that_tells_more_than_the_fold_knows_is_kept_whole(
    more: Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_, "LINES_AT_ONCE", 20_000)
    path = _written([*LINES, json.dumps({"t": 3_000, "process": "c", **more})], "jsonl", tmp_path)
    found = examine_path(path, SPEC, lambda _: None, folded_from=0)
    assert found == examine(read(path), SPEC, None)


VICTIMS = {
    "itself": {"process": "c", "fault": "consumer_crash"},
    "a session": {"process": "nemesis", "session": "c", "fault": "consumer_link_loss"},
    "a queue": {"process": "nemesis", "queue": "q", "fault": "broker_kill"},
}


@pytest.mark.parametrize(("form", "named"), in_turn(["jsonl", "parquet"], list(VICTIMS), 1))
def test_a_fault_that_names_its_victim_is_folded(
    named: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repair of another one does not end it; what came again before its own did is explained by it."""
    monkeypatch.setattr(chunks_, "LINES_AT_ONCE", 20_000)
    monkeypatch.setattr(chunks_, "ROWS_AT_ONCE", 300)
    of, other, second = VICTIMS[named], {"process": "another", "fault": VICTIMS[named]["fault"]}, 10**9
    events: list[Event] = [{**event, "t": event["t"] * second // 20} for event in ordinary(400)]
    again = {"process": "c", "message": "m120", "queue": "q", "redelivered": True}
    events += [
        {"t": 60 * second, "event": "fault", **of},
        {"t": 61 * second, "event": "recovered", **other},
        {"t": 65 * second, "event": "delivered", **again},
        {"t": 66 * second, "event": "recovered", **of},
        {"t": 201 * second, "process": "c", "event": "drained"},
    ]
    lines = [LINES[0], *map(json.dumps, sorted(events, key=lambda event: int(event["t"])))]
    path = _written(lines, form, tmp_path)
    configuration, chunks = SPEC.configure("jms"), chunks_.chunks_of(path)
    assert chunks is not None
    fold = Fold(path, len(chunks), Folder(chunks.load, Asked(specification=SPEC, configuration=configuration)), map)
    found = fold.findings()
    assert comparable(found) == comparable(examine(read(path), SPEC, configuration))
    assert len(chunks) > 3
    assert fold.left > 340


@pytest.mark.parametrize(
    "victim",
    [
        {"fault": "broker_kill", "queue": "p"},
        {"fault": "broker_kill", "session": "c"},
        {"fault": "consumer_crash", "session": "d"},
        {"fault": "consumer_crash", "session": "c", "process": "p"},
    ],
)
def test_a_victim_that_cannot_be_one_is_refused_in_the_same_sentence(
    victim: Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks_, "LINES_AT_ONCE", 20_000)
    lines = [*LINES, json.dumps({"t": 3_000, "process": "nemesis", "event": "fault", **victim})]
    path = _written(lines, "jsonl", tmp_path)
    with pytest.raises(InputError) as once:
        read(path)
    with pytest.raises(InputError) as folded_:
        examine_path(path, SPEC, lambda _: None, folded_from=0)
    assert str(folded_.value) == str(once.value)


def test_a_queue_that_only_lines_name_that_were_left_out_may_be_a_victim() -> None:
    events = _transacted(400)
    for event in events:
        if event.get("transaction") == "t50" and event["event"] == "commit":
            event["queue"] = "seldom"
    chunks = chunks_of(events, [600])
    victim = NamedVictim("h", 7, "nemesis", "broker_kill", None, "seldom")
    found = fold_of([chunks[0], dataclasses.replace(chunks[1], victims=(victim,))]).findings()
    assert found.messages == 400


@pytest.mark.parametrize("size", [*range(60, 75), 150, 1_000])
def test_lines_that_begin_where_a_chunk_does_are_read_once(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk is the lines that begin in its bytes, and it knows their numbers once all are known."""
    monkeypatch.setattr(chunks_, "LINES_AT_ONCE", size)
    path = tmp_path / "h.jsonl"
    path.write_text("\n".join(LINES[:40]))
    chunks = chunks_.chunks_of(path)
    assert chunks is not None
    numbered = chunks.numbered()
    read_ = [json.loads(line) for line in LINES[1:40]]
    found = [
        (line, row["t"], row["event"])
        for place in range(len(numbered))
        for _, parsed in numbered.parsed(place)
        for line, row in zip(parsed.lines.tolist(), parsed.events.to_pylist(), strict=True)
    ]
    assert found == [(line, each["t"], each["event"]) for line, each in enumerate(read_, start=2)]
    assert sum(len(each.events or ()) for each in map(chunks.load, range(len(chunks)))) == len(read_)


@pytest.mark.parametrize("text", ["", "\n\n", "{}\n"])
def test_a_file_without_events_is_refused_in_the_same_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as once:
        read(path)
    with pytest.raises(InputError) as folded_:
        examine_path(path, SPEC, lambda _: None, folded_from=0)
    assert str(folded_.value) == str(once.value)


def test_a_large_history_has_what_was_planted(tmp_path: Path) -> None:
    planted = Planted.of(20_000, 5, seed=7)
    path = tmp_path / "h.parquet"
    events = write_parquet(path, 20_000, planted, rows=16_000)
    found = examine_path(path, SPEC, lambda _: SPEC.configure(None, CONFIG), folded_from=0, skew=None)
    assert (found.events, found.messages) == (events, 20_000)
    expected = {name: tuple(f"order-{n}-7f3a" for n in numbers) for name, numbers in planted.as_mapping().items()}
    assert {k.value: set(v.examples) for k, v in found.anomalies.items() if v.found} == {
        name: set(names) for name, names in expected.items()
    }


def test_a_recorded_run_that_is_repeated_has_each_time_what_it_has_once(tmp_path: Path) -> None:
    path = tmp_path / "h.parquet"
    events = write_repeated(path, 3, rows=40_000)
    assert [pq.ParquetFile(path).metadata.row_group(n).num_rows for n in range(2)] == [50_056, 25_028], "whole runs"
    found = examine_path(
        path, SPEC, lambda its: SPEC.configure(None, its.config if its else None), folded_from=0, skew=None
    )
    assert (found.events, found.messages) == (events, 3 * MESSAGES)
    assert {k.value: v.found for k, v in found.anomalies.items() if v.found} == {k: 3 * v for k, v in FOUND.items()}


def _late_processed(*numbers: int) -> list[Event]:
    """Each ``m<number>`` is processed after the next message was delivered to the same consumer: plain by itself."""
    late = {f"m{number}" for number in numbers}
    events = [
        {**each, "t": each["t"] + 12 * (each["message"] in late and each["event"] == "processed")}
        for each in ordinary(400)
    ]
    return sorted([*events, {"t": 99_999, "process": "c", "event": "drained"}], key=lambda each: int(each["t"]))


@pytest.mark.parametrize(("cuts", "number"), in_turn([[], [800], [400, 801, 1_203]], [0, 100, 200, 201, 398], 2))
def test_two_plain_lives_that_are_no_run_together_are_found(number: int, cuts: list[int]) -> None:
    """The consumer has one thread, and was handed the next message while it was busy with this one."""
    events = _late_processed(number)
    found, fold = folded(events, cuts, configuration_of("jms"), 0)
    assert comparable(found) == comparable(whole(events, configuration_of("jms"), 0))
    assert found.explanation is not None
    assert found.explanation.pairs is not None
    assert [each.message for each in found.explanation.pairs.examples] == [f"m{number + 1}"]
    assert fold.left > 350


def test_of_many_pairs_that_are_no_run_together_all_are_found() -> None:
    """One of them stands for all until it is seen to be none."""
    events = _late_processed(*range(10, 390, 20))
    found, fold = folded(events, [800], configuration_of("jms"), 0)
    assert comparable(found) == comparable(whole(events, configuration_of("jms"), 0))
    assert found.explanation is not None
    assert found.explanation.pairs is not None
    assert found.explanation.pairs.unnamed == 19
    assert fold.left > 300
