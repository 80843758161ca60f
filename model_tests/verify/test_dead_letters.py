"""Histories of live brokers whose dead letters were looked for: what the tables say of them, and the opposite."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.terms import AttemptsExhausted, Verdict
from ackfsm.verify import Header
from model_tests.support.places import DATA
from model_tests.support.tables import shipped

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
