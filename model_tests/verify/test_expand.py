"""The expansion of events to observables against its definition, delivery by delivery and send by send."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given

from ackfsm.history import columns, lines
from ackfsm.history.index import Index
from ackfsm.verify.counting.observables import OBSERVABLES, Observable, expand
from model_tests.support.verify.labeller import Covering, in_order, outages
from model_tests.support.verify.random_histories import histories

Row = tuple[str, int, str]

ENDS = {
    "commit": "commit_called",
    "committed": "committed",
    "commit_in_doubt": "commit_in_doubt",
    "rollback": "rolled_back",
    "rolled_back": "rolled_back",
}
CONSUMED = {"committed": "acknowledged", "commit_in_doubt": "ack_in_doubt"}
PLAIN = {"confirmed", "rejected", "in_doubt", "processed", "failed", "expired", "dead_lettered", "resend"}


def _expanded(log: list[dict[str, Any]]) -> list[Row]:
    events = columns.assemble([columns.encode(pa.RecordBatch.from_pylist(log, lines.SCHEMA), np.arange(len(log)))])
    stream = expand(Index.of(events))
    names = events.names["message"].to_pylist()
    return [
        (names[message], place, OBSERVABLES[observable])
        for message, place, observable in zip(stream.message, stream.place, stream.observable, strict=True)
    ]


def _spelt_out(log: list[dict[str, Any]]) -> set[Row]:
    rows = {(e["message"], i, e["event"]) for i, e in enumerate(log) if e["event"] in PLAIN}
    rows |= {
        (e["message"], i, "sync_record") for i, e in enumerate(log) if e["event"] == "journal_synced" and "message" in e
    }
    covering = Covering(log)
    for i, event in enumerate(log):
        if event["event"] in {"send", "resend"}:
            rows |= _of_a_send(log, i)
        if event["event"] == "delivered":
            flag = "delivered_flagged" if event["redelivered"] else "delivered_clear"
            rows |= {(event["message"], i, flag)} | _of_a_delivery(log, i, covering)
    return rows


def _of_a_send(log: list[dict[str, Any]], place: int) -> set[Row]:
    message = log[place]["message"]
    if "transaction" not in log[place]:
        sent = {(message, place, "send")} if log[place]["event"] == "send" else set()
        return sent | _left_by_a_crash(log, place)
    sent = {(message, place, "send_in_transaction")}
    ends = [(i, ENDS[e["event"]]) for i, e in _same_transaction(log, place) if i > place and e["event"] in ENDS]
    return sent | {(message, i, name) for i, name in ends if name not in {n for j, n in ends if j < i}}


def _of_a_delivery(log: list[dict[str, Any]], place: int, covering: Covering) -> set[Row]:
    acts = [
        (i, event["event"])
        for i, event in enumerate(log)
        if event["event"] in {"acknowledge", "acknowledged", "ack_in_doubt"} and place in covering.by(i)
    ]
    if "transaction" in log[place]:
        acts += [
            (i, CONSUMED[e["event"]]) for i, e in _same_transaction(log, place) if i > place and e["event"] in CONSUMED
        ]
    return {(log[place]["message"], i, name) for i, name in acts if name not in {n for j, n in acts if j < i}}


def _same_transaction(log: list[dict[str, Any]], place: int) -> list[tuple[int, dict[str, Any]]]:
    key = (log[place]["process"], log[place]["transaction"])
    return [(i, event) for i, event in enumerate(log) if (event["process"], event.get("transaction")) == key]


def _left_by_a_crash(log: list[dict[str, Any]], place: int) -> set[Row]:
    message = log[place]["message"]
    if any(e.get("message") == message and e["event"] in {"confirmed", "rejected", "in_doubt"} for e in log[place:]):
        return set()
    lasting = outages(log, place)
    if any(start < place < end for start, end in lasting):
        return {(message, place, "producer_crash")}
    return {(message, start, "producer_crash") for start in sorted(start for start, _ in lasting if start > place)[:1]}


@given(histories())
def test_the_stream_is_what_its_definition_says(events: list[dict[str, Any]]) -> None:
    log = in_order(events)
    rows = _expanded(log)
    assert set(rows) == _spelt_out(log)
    assert len(rows) == len(set(rows))


@given(histories())
def test_the_stream_is_ordered_by_message_place_and_observable(events: list[dict[str, Any]]) -> None:
    rows = _expanded(in_order(events))
    messages = [message for message, _, _ in rows]
    assert len(set(messages)) == sum(a != b for a, b in zip(messages, [None, *messages], strict=False))
    for before, after in itertools.pairwise(rows):
        if before[0] == after[0]:
            assert (before[1], OBSERVABLES.index(Observable(before[2]))) < (
                after[1],
                OBSERVABLES.index(Observable(after[2])),
            )


def test_a_long_session_is_not_expanded_to_the_square_of_its_length() -> None:
    log = [
        {"t": t, "process": "c", "session": "s", **event}
        for t in range(0, 3000, 3)
        for event in (
            {"event": "delivered", "message": f"m{t}", "redelivered": False},
            {"event": "acknowledge", "message": f"m{t}", "scope": "session"},
            {"event": "acknowledged", "message": f"m{t}", "scope": "up_to"},
        )
    ]
    assert len(_expanded(log)) == 3000


def test_an_answer_covers_what_its_call_covered_and_nothing_delivered_since() -> None:
    """The session is acknowledged after a, and b is delivered before the answer comes: only a is certain."""
    log = [
        {"t": 1, "process": "c", "event": "delivered", "message": "a", "redelivered": False},
        {"t": 2, "process": "c", "event": "acknowledge", "scope": "session"},
        {"t": 3, "process": "c", "event": "delivered", "message": "b", "redelivered": False},
        {"t": 4, "process": "c", "event": "acknowledged", "scope": "session"},
    ]
    assert [(m, o) for m, _, o in _expanded(log) if o == "acknowledged"] == [("a", "acknowledged")]


def test_up_to_covers_the_deliveries_of_its_session_up_to_the_latest_of_the_named_message() -> None:
    deliveries = [("a", "s1"), ("b", "s2"), ("c", "s1"), ("a", "s1"), ("d", "s1")]
    log = [
        {"t": t, "process": "c", "event": "delivered", "message": m, "session": s, "redelivered": False}
        for t, (m, s) in enumerate(deliveries)
    ]
    log.append({"t": 9, "process": "c", "event": "acknowledge", "message": "a", "session": "s1", "scope": "up_to"})
    assert {m for m, _, o in _expanded(log) if o == "acknowledge"} == {"a", "c"}
