"""What documents show is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from model_tests import documents
from model_tests._tables import shipped
from model_tests.engine_calls import shared_wiring

__all__ = ["shared_wiring"]

_ENGINE = documents.ROOT / "docs" / "engine.md"


@pytest.fixture(autouse=True)
def tables_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.tables.load", shipped)


@pytest.mark.parametrize(
    ("line", "code"), [pytest.param(line, code, id=f"line {line}") for line, code in documents.blocks(_ENGINE)]
)
def test_the_examples_of_the_engine_run(line: int, code: str) -> None:
    names: dict[str, Any] = {}
    exec(compile("\n" * line + code, _ENGINE, "exec"), names)  # noqa: S102 - only text of the project
    assert "broker" in names, "an example has a broker"


def test_the_examples_of_the_engine_are_there() -> None:
    assert len(list(documents.blocks(_ENGINE))) == 13


def test_the_guide_shows_the_examples_and_what_is_said_of_them() -> None:
    text = documents.GUIDE.read_text(encoding="utf-8")
    assert text == documents.current(documents.GUIDE), "run python -m model_tests.documents"
    shown = {path.name for path in (Path(__file__).parent / "examples").glob("*.py")}
    assert len(shown) == 5
    assert all(f"<!-- from model_tests/examples/{name} -->" in text for name in shown)
    assert text.count("again: pytest ") == 2


def test_the_page_of_witnesses_shows_what_its_commands_print() -> None:
    text = documents.WITNESSES.read_text(encoding="utf-8")
    assert text == documents.current(documents.WITNESSES), "run python -m model_tests.documents"
    forms = re.findall(r"^<!-- printed by ackfsm explain .*?(?: --as (\w+).*)? -->$", text, flags=re.MULTILINE)
    assert forms == ["", "mermaid", "plantuml", "pytest", "itf"]
    (picture,) = documents.files(documents.WITNESSES).items()
    assert picture[0].read_text(encoding="utf-8") == picture[1], "run python -m model_tests.documents"


def test_the_python_of_the_page_of_witnesses_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (_, printed), (_, code) = documents.blocks(documents.WITNESSES)
    exec(compile(code, "witnesses.md", "exec"), {})  # noqa: S102 - only text of the project
    shown = capsys.readouterr().out
    assert "loss ['send(m1)', 'accept(m1)', " in shown
    assert printed.partition("def test_loss")[2] in shown
