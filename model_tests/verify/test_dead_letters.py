"""Histories of live brokers whose dead letters were looked for: what the tables say of them, and the opposite."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.terms import AttemptsExhausted, Verdict
from ackfsm.verify import Header
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import write

RECORDED = sorted(DATA.glob("dead_letters/*.jsonl"))
IS = {"kept": AttemptsExhausted.DEAD_LETTER, "destroyed": AttemptsExhausted.DESTROY}


def _verdict(path: Path, exhausted: AttemptsExhausted) -> Verdict:
    def configure(header: Header | None) -> verify.Configurations:
        assert header is not None
        assert header.config is not None
        settings = {**header.config, "attempts_exhausted": exhausted}
        return verify.Configurations(shipped().configure(None, settings))

    found = verify.examination(path, shipped(), configure, tells_processed=True).findings
    return verify.verdict(found, shipped()).verdict


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_broker_refutes_the_opposite_of_what_the_tables_say(path: Path) -> None:
    said, header = IS[path.stem.rpartition("-")[2]], verify.read_header(path)
    assert header is not None
    assert header.config is not None
    assert header.config["attempts_exhausted"] == said, "the tables say what the broker did"
    assert {each: _verdict(path, each) for each in IS.values()} == {
        each: Verdict.VALID if each is said else Verdict.INVALID for each in IS.values()
    }


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("found", [(), ("m1",), ("m2",), ("m1", "m2")])
def test_of_two_messages_at_their_limit_all_are_found_or_none(
    sessions: int, found: tuple[str, ...], tmp_path: Path
) -> None:
    """Both were delivered once, to one session or to one each, and given back."""
    limited = {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "max_delivery_attempts": 1}
    takers = dict(zip(("m1", "m2"), itertools.cycle(("c1", "c2")[:sessions]), strict=False))
    events: list[tuple[str, str, str | None, dict[str, bool]]] = [
        *(("producer", event, name, {}) for name in takers for event in ("send", "confirmed")),
        *((taker, "delivered", name, {"redelivered": False}) for name, taker in takers.items()),
        *((taker, "processed", name, {}) for name, taker in takers.items()),
        *((taker, "recover", None, {}) for taker in sorted({*takers.values()})),
        *(("broker", "dead_lettered", name, {}) for name in found),
        ("broker", "drained", None, {}),
    ]
    lines: list[dict[str, object]] = [{"ackfsm_history": 1, "config": limited, "dead_lettered": "moved"}]
    for number, (process, event, message, more) in enumerate(events):
        named = {"message": message} if message else {}
        lines.append({"t": number * 10**9, "process": process, "event": event, "queue": "q", **named, **more})
    path = tmp_path / "history.jsonl"
    write(lines, path)
    right = {"kept": ("m1", "m2"), "destroyed": ()}
    assert {end: _verdict(path, exhausted) for end, exhausted in IS.items()} == {
        end: Verdict.VALID if found == those else Verdict.INVALID for end, those in right.items()
    }
