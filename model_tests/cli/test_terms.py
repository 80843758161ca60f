"""Is every word that a screen prints explained by ``ackfsm where``?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from ackfsm.cli import main
from ackfsm.driving import conform
from ackfsm.engine.journal import FileJournal, Integrity, Kind
from ackfsm.history.format import Event
from ackfsm.surveys import claims, matrix
from ackfsm.tables.lookup import Lookup
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Verdict, key_type
from model_tests.support.places import DATA, PROJECT, SPEC
from model_tests.support.tables import shipped
from model_tests.support.whole import few

NIGHT = str(DATA / "last-night.jsonl")
TOY = f"-- python {PROJECT / 'docs' / 'examples' / 'twenty_lines.py'}"

SCREENS = (
    "check --max-faults 0",
    "check --fault consumer_crash --progress",
    "check --max-states 5",
    "explain --fault consumer_crash --anomaly duplicate",
    f"explain {NIGHT}",
    f"explain {NIGHT} --at 10:00:06",
    f"verify {NIGHT}",
    f"verify --all --never loss {NIGHT}",
    f"verify --faults any {DATA / 'synthetic' / 'resurrection.jsonl'}",
    f"conform --runs 1 --messages 2 --fault broker_kill {TOY}",
    "matrix --profile rabbitmq --set ack_mode=NO_ACKNOWLEDGE --set delivery_mode=PERSISTENT --no-pairs --jobs 1",
    "journal inspect {journal}",
)

BOLD = re.compile(r"\x1b\[1(?:;\d+)*m(.*?)\x1b\[0m", re.DOTALL)


@pytest.fixture(scope="module")
def lookup() -> Lookup:
    return Lookup(shipped())


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    made = FileJournal(tmp_path / "journal")
    made.append(Kind.STORE, key=1, data=b"tea")
    made.sync()
    made.close()
    return tmp_path / "journal"


def _unknown(lookup: Lookup, words: Iterator[str]) -> list[str]:
    found = []
    for word in dict.fromkeys(words):
        try:
            assert lookup.find(word)
        except InputError:
            found.append(word)
    return found


def _bold(screen: str) -> Iterator[str]:
    """What a screen prints in bold, headings above all; sentences and the names of this run are none of its words."""
    for text in BOLD.findall(screen):
        parts = text.split(", ")
        for word in parts if all(" " not in part for part in parts) else [text]:
            yield from _term(word)


def _term(text: str) -> Iterator[str]:
    word = re.sub(r"\s+", " ", text).strip().rstrip(":.,")
    if word and len(word.split()) <= 3 and not re.search(r"[('/=\\$←]|^\W*$|\d", word) and word not in _OWN:
        yield word


_OWN = frozenset({"producer-1", "consumer-1", "consumer-2", "nemesis", "twenty lines"})


@pytest.mark.parametrize("line", few(SCREENS, 4))
def test_what_a_screen_prints_in_bold_is_explained(  # noqa: PLR0913, PLR0917 - fixtures
    line: str,
    journal: Path,
    lookup: Lookup,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100" if line.startswith("matrix") else "300")  # no heading is broken into lines
    monkeypatch.chdir(tmp_path)
    main(line.format(journal=journal).split())
    shown = list(_bold(capsys.readouterr().out))
    assert shown, "a screen has headings"
    assert _unknown(lookup, iter(shown)) == []


KINDS: tuple[type[StrEnum], ...] = (
    Anomaly,
    Fault,
    Verdict,
    Event,
    Integrity,
    claims.Status,
    conform.Status,
    matrix.Reachability,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_word_that_a_screen_may_print_is_explained(kind: type[StrEnum], lookup: Lookup) -> None:
    assert _unknown(lookup, (each.value for each in kind)) == []


def test_every_setting_value_machine_guarantee_and_promise_is_explained(lookup: Lookup) -> None:
    spec = shipped()
    keys = [field.name for field in dataclasses.fields(Configuration)]
    values = [member.value for key in keys for member in _members(key)]
    groups = (keys, values, spec.machines, spec.events, spec.guarantees, spec.promises, spec.liveness, spec.conditions)
    assert _unknown(lookup, (word for group in groups for word in group)) == []


def _members(key: str) -> list[StrEnum]:
    kind = key_type(key)
    return [*kind] if issubclass(kind, StrEnum) else []


def test_a_word_that_nobody_explains_is_noticed(lookup: Lookup) -> None:
    assert _unknown(lookup, iter(["loss", "xyzzy"])) == ["xyzzy"]
    assert list(_bold("\x1b[1;31mcan happen\x1b[0m a \x1b[1mone two three four\x1b[0m \x1b[1mm(1)\x1b[0m")) == [
        "can happen"
    ]


def test_a_term_stands_where_it_is_said_to_stand(lookup: Lookup) -> None:
    lines = (SPEC / "GLOSSARY.md").read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line.startswith("| ") and not line.startswith(("| term", "| ---"))]
    seen = set()
    for line in told:
        name = re.sub(r" \([^)]*\)", "", line.split(" | ")[0][2:].replace("`", "")).split(", ")[0]
        answers = [answer for answer in lookup.find(name) if answer.kind == "term"]
        places = {lines[reference.place.line - 1] for answer in answers for reference in answer.references}
        assert line in places, name
        seen |= places & {line}
    assert len(seen) == len(told) > 120
