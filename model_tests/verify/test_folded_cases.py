"""Cases made for other questions have the findings of the whole where they are folded in chunks of few lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.notation import events_of, write
from model_tests.support.whole import few
from model_tests.verify import test_actions, test_counts, test_prefetch, test_spelled

SPEC = shipped()
CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
WINDOW = {"send_mode": "asynchronous", "publish_window": 2}
ASKED: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]] = {
    "actions": ({}, {name: text for name, (text, _) in test_actions.CASES.items()}),
    "counts": (WINDOW, {name: text for name, (_, text, _) in test_counts.CASES.items()}),
    "prefetch": ({**CLIENT, "prefetch": 2}, {name: text for name, (text, _) in test_prefetch.CASES.items()}),
    "ranges": ({**CLIENT, **WINDOW}, {name: text for name, (text, _) in test_spelled.RANGES.items()}),
    "others": (
        {"profile": "artemis"},
        {
            "a call that timed out": f"{test_spelled.CALLED}; c {test_spelled.TIMED_OUT}; {test_spelled.AGAIN}",
            "many deliveries": "; ".join(["p send m1", *["c delivered m1 flagged"] * 300, "c delivered m1 clear"]),
            "a sync that does not say of what": (
                "p send m1; p confirmed m1; b journal_synced; p send m2; p confirmed m2; b journal_synced m2; n drained"
            ),
        },
    ),
}
CASES = {
    f"{kind}: {name}": (text, settings)
    for kind, (settings, texts) in ASKED.items()
    for name, text in {each: texts[each] for each in few([*texts], 15, kind)}.items()
}


STORIES = sorted((DATA / "cases").glob("*/*.jsonl"))


@pytest.mark.parametrize(("text", "settings"), CASES.values(), ids=CASES)
def test_a_case_in_chunks_has_the_findings_of_the_whole(
    text: str, settings: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compare(write(events_of(text), tmp_path / "h.jsonl"), settings, monkeypatch)


@pytest.mark.parametrize("path", few(STORIES, 20, "stories"), ids=lambda path: path.stem)
def test_a_story_in_chunks_has_the_findings_of_the_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = verify.read_header(path)
    assert header is not None
    _compare(path, header.config or {}, monkeypatch)


def _compare(file: Path, settings: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = SPEC.configure(None, settings)
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 300)
    folded = verify.examine_path(file, SPEC, lambda _: configuration, folded_from=0, workers=1)
    assert comparable(folded) == comparable(verify.examine(verify.read(file), SPEC, configuration))
