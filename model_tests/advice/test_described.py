"""What is advised for ten described needs is what the documentation of their systems supports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.surveys import advice
from ackfsm.surveys.advice import AnswerCache
from ackfsm.terms import AckMode
from model_tests.support import described
from model_tests.support.tables import shipped
from model_tests.support.whole import few

_NEEDS = described.needs()
_FEW = [*few([need for need in _NEEDS if "take" in need], 5), *(need for need in _NEEDS if "take" not in need)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where answers are kept for all needs: two of one system share some."""
    return tmp_path_factory.mktemp("described") / "answers.sqlite"


@pytest.mark.parametrize("need", _FEW, ids=lambda need: str(need["name"]))
def test_the_first_proposal_is_the_expected_one(
    need: Mapping[str, Any], answers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "ackfsm.surveys.advice.AnswerCache",
        lambda specification: AnswerCache(specification, answers),
    )
    code = cli.main([*described.command(need), "--most", "1", "--jobs", "1", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert not answer["undecided"]
    assert [_changes(each) for each in answer["proposals"]] == ([need["take"]] if "take" in need else [])
    given_up = {" and ".join(each["without"]): _changes(each) for each in answer["given_up"]}
    assert given_up == need.get("none", {})
    assert code == (0 if "take" in need else 1)


def _changes(proposal: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in proposal["changes"].items())


def test_ten_needs_of_five_systems_or_more_are_described_and_one_of_them_cannot_be_had() -> None:
    assert len({need["name"] for need in _NEEDS}) == len(_NEEDS) == 10
    assert len({need["profile"] for need in _NEEDS}) >= 5
    assert any("none" in need for need in _NEEDS)
    for need in _NEEDS:
        assert ("take" in need) != ("none" in need), need["name"]
        assert need["words"], need["name"]
        assert need["why"], need["name"]


def test_every_reference_has_tags_of_the_sources() -> None:
    for need in _NEEDS:
        for source in need["reference"].split("; "):
            tag, _, section = source.partition(" ")
            assert tag in shipped().sources, f"{need['name']}: {source}"
            assert section or ":" in tag or tag.startswith("EMS-"), f"{need['name']}: {source} names no section"


def test_the_page_is_made_from_the_needs() -> None:
    assert described.PAGE.read_text(encoding="utf-8") == described.page(), "run python -m model_tests.documents"


def test_a_need_said_of_transactions_is_given_only_by_transactions() -> None:
    specification = shipped()
    known = advice.needs_of(specification)
    (atomic,) = advice.read_needs(["atomic"], known)
    (no_loss,) = advice.read_needs(["no-loss"], known)
    plain, transacted = (
        specification.configure("ems", {"ack_mode": mode})
        for mode in (AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED)
    )
    assert not atomic.applies_to(plain, specification)
    assert atomic.applies_to(transacted, specification)
    assert no_loss.applies_to(plain, specification)
    assert no_loss.applies_to(transacted, specification)
