"""A history that is folded in chunks has the findings of the whole, wherever it is cut and in whatever order."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from ackfsm import tables
from ackfsm.verify import Findings, History
from ackfsm.verify._columns import assemble, encode
from ackfsm.verify._examine import examine
from ackfsm.verify._lines import parse_block
from ackfsm.verify._passes import Asked, Fold
from ackfsm.verify._summary import Chunk
from model_tests.support.verify.random_histories import Event, histories, shuffled
from model_tests.support.verify.traffic import traffic

SPEC = tables.load()

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "jms": ("jms", {}),
    "individual": ("rabbitmq", {}),
    "window": ("solace", {"publish_window": 3, "send_mode": "asynchronous"}),
    "prefetch": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 2}),
    "client": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}),
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
    fold = Fold(
        Path("h"),
        len(chunks),
        chunks.__getitem__,
        Asked(specification=SPEC, configuration=configuration, skew=skew),
        map,
    )
    return fold.findings(), fold


def comparable(findings: Findings) -> dict[str, Any]:
    """All of ``findings`` but how many lives and states were met: of what is left out one is met for many."""
    explanation = findings.explanation
    if explanation is not None:
        explanation = dataclasses.replace(explanation, lives=0, states=0)
    whole = {field.name: getattr(findings, field.name) for field in dataclasses.fields(findings)}
    return {**whole, "explanation": explanation, "anomalies": dict(findings.anomalies)}


def configuration_of(name: str) -> Any:
    if name == "none":
        return None
    profile, values = SETTINGS[name]
    return SPEC.configure(profile, values)


@pytest.mark.parametrize("name", [*SETTINGS, "none"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_cut_has_the_findings_of_the_whole(name: str, data: st.DataObject) -> None:
    events = data.draw(st.one_of(traffic(), traffic(), histories(), shuffled()))
    if not events:
        return
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(events) - 1)), max_size=5)))
    skew = data.draw(st.sampled_from([0, None, 5]))
    configuration = configuration_of(name)
    found, fold = folded(events, [cut for cut in cuts if cut < len(events)], configuration, skew)
    note(f"{fold.folded} folds of {len(cuts) + 1} chunks")
    assert comparable(found) == comparable(whole(events, configuration, skew))
