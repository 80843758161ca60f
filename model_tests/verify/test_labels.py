"""Histories are counted as they are labelled: recorded ones, hand-made ones, and random ones by another labeller."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.terms import AckMode, Anomaly, Configuration, SendMode, Verdict
from model_tests.support.places import DATA, PROJECT
from model_tests.support.tables import shipped
from model_tests.support.verify.labeller import label
from model_tests.support.verify.notation import write
from model_tests.support.verify.random_histories import histories, shuffled
from model_tests.support.whole import WHOLE

SYNTHETIC = DATA / "synthetic"
SHARED = PROJECT.parent / "shared" / "histories"
SPEC = shipped()
COUNTED = {
    *("loss", "unprocessed", "duplicate", "unflagged_duplicate", "reprocessed", "resurrection", "phantom"),
    *("dirty_delivery", "torn_transaction", "reorder", "window_overrun", "double_outcome", "missing_outcome"),
    *("count_regression", "early_confirm", "prefetch_overrun", "over_delivered", "ghost"),
}
"""The anomalies that a history of format 1 can show."""


def _examined(
    path: Path, settings: Mapping[str, object] | None = None, skew: int | None = 0, *, hold: bool = WHOLE
) -> verify.Findings:
    """What is counted; that nothing hangs on holding messages to the model is seen where products are whole."""
    recorded = verify.read(path)
    header = recorded.header.config if recorded.header else None
    return verify.examine(recorded, SPEC, SPEC.configure(None, settings or header), skew=skew, hold=hold)


@functools.cache
def _examined_once(path: Path) -> verify.Findings:
    return _examined(path)


def _labelled(name: str) -> dict[str, dict[str, Any]]:
    labels: dict[str, dict[str, Any]] = json.loads((DATA / name).read_text(encoding="utf-8"))
    return labels


def _assert_as_labelled(found: verify.Findings, labels: Mapping[str, Any]) -> None:
    assert (found.events, found.messages, found.parse_errors) == tuple(
        labels[key] for key in ("events", "messages", "parse_errors")
    )
    counts = {anomaly.value: finding.count for anomaly, finding in found.anomalies.items()}
    assert counts.keys() == COUNTED
    assert counts == {name: labels.get(name, 0) for name in COUNTED}, "what was not labelled did not happen"
    for name, ids in labels["examples"].items():
        if counts[name] is None:
            continue  # the queue was never drained: the label names what was missing, a history cannot
        assert list(found.anomalies[Anomaly(name)].examples[: len(ids)]) == ids


@pytest.mark.parametrize("name", _labelled("labels.json"))
def test_a_recorded_history_is_counted_as_labelled(name: str) -> None:
    _assert_as_labelled(_examined_once(DATA / name), _labelled("labels.json")[name])


@pytest.mark.parametrize("name", _labelled("labels.json"))
def test_the_labeller_of_these_tests_agrees_with_the_labels(name: str) -> None:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        header, *events = map(json.loads, lines)
    config, expected = header["config"], _labelled("labels.json")[name]
    labels = label(
        events,
        send_mode=config["send_mode"],
        publish_window=config.get("publish_window"),
        waits_for_sync=True,
        prefetch=config["prefetch"] if config["profile"] == "rabbitmq" else None,
    )
    counts = {name: None if ids is None else len(ids) for name, ids in labels.anomalies.items()}
    assert counts == {name: expected.get(name, 0) for name in COUNTED}
    assert labels.counters["messages"] == expected["messages"]


@pytest.mark.parametrize("name", _labelled("synthetic/expected.json"))
def test_a_hand_made_history_shows_just_the_anomaly_that_it_was_made_for(name: str) -> None:
    expected = _labelled("synthetic/expected.json")[name]
    found = _examined(SYNTHETIC / name, hold=True)
    shown = {anomaly.value: list(finding.examples) for anomaly, finding in found.anomalies.items() if finding.found}
    assert shown == expected["anomalies"] | expected["also_counted"]
    allowed = {anomaly: anomaly.value in expected["also_counted"] for anomaly in Anomaly}
    assert verify.judge(found, allowed).verdict == Verdict(expected["verdict"])


@pytest.fixture(scope="module")
def shared() -> Path:
    """The full folder of histories, if the checkout has it beside it."""
    if not (SHARED / "real" / "labels.json").is_file():
        pytest.skip(f"there is no folder {SHARED} with more labelled histories")
    return SHARED


@pytest.fixture(scope="module")
def shared_labels(shared: Path) -> dict[str, dict[str, Any]]:
    labels: dict[str, dict[str, Any]] = json.loads((shared / "real" / "labels.json").read_text(encoding="utf-8"))
    assert labels
    return labels


@pytest.fixture(scope="module")
def examined(shared: Path, shared_labels: dict[str, dict[str, Any]]) -> dict[str, verify.Findings]:
    """Each is examined once: what a person has judged with estimated clocks, as the command does, the others without.

    Both count the same: these were recorded on one machine.  Some are among the recorded ones of the tests.
    """
    found = {}
    for name, labels in shared_labels.items():
        file, ours = shared / "real" / name, DATA / name
        if "verdict" not in labels and ours.is_file() and ours.read_bytes() == file.read_bytes():
            found[name] = _examined_once(ours)
        else:
            judged = "verdict" in labels
            found[name] = _examined(file, skew=None if judged else 0, hold=judged or WHOLE)
    return found


def test_every_shared_recorded_history_is_counted_as_labelled(
    examined: dict[str, verify.Findings], shared_labels: dict[str, dict[str, Any]]
) -> None:
    for name, labels in shared_labels.items():
        _assert_as_labelled(examined[name], labels)


_OTHERWISE = {"qpid-e-transacted-broker-kill.jsonl.gz": Verdict.INVALID}
"""Five messages came again unflagged after a rollback: the client was one for AMQP 0-10, the profile is of 0-9-1."""


def test_every_shared_recorded_history_is_judged_as_a_person_does(
    examined: dict[str, verify.Findings], shared_labels: dict[str, dict[str, Any]]
) -> None:
    expected = {name: Verdict(labels["verdict"]) for name, labels in shared_labels.items() if "verdict" in labels}
    judged = {name: verify.verdict(examined[name], SPEC).verdict for name in expected}
    assert judged == expected | _OTHERWISE


_SETTINGS = st.fixed_dictionaries(
    {
        "send_mode": st.sampled_from(SendMode),
        "publish_window": st.sampled_from([None, 1, 2, 3]),
        "journal_sync_non_transactional": st.booleans(),
        "ack_mode": st.sampled_from([AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED, AckMode.AUTO_ACKNOWLEDGE]),
        "prefetch": st.sampled_from([0, 1, 2, 3]),
    }
)


def _assert_counted_as_by_the_labeller(
    file: Path, events: list[dict[str, Any]], settings: Mapping[str, Any]
) -> Configuration:
    write(events, file)
    found = _examined(file, settings)
    labels = label(
        events,
        send_mode=settings["send_mode"],
        publish_window=settings["publish_window"],
        waits_for_sync=settings["journal_sync_non_transactional"],
        prefetch=settings["prefetch"] if settings["ack_mode"] != AckMode.AUTO_ACKNOWLEDGE else None,
    )
    assert found.parse_errors == 0
    assert found.events == len(events)
    for anomaly, finding in found.anomalies.items():
        expected = labels.anomalies[anomaly.value]
        shown = None if finding.count is None else set(finding.examples)
        assert (anomaly, shown) == (anomaly, expected)
    assert set(labels.anomalies) == {anomaly.value for anomaly in found.anomalies}
    counters = {"messages": found.messages, **found.counters}
    assert {name: counters[name] for name in labels.counters} == labels.counters
    assert found.configuration is not None
    return found.configuration


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("soups") / "history.jsonl"


@given(events=histories(), settings=_SETTINGS)
def test_a_random_history_is_counted_as_by_the_labeller(
    file: Path, events: list[dict[str, Any]], settings: Mapping[str, Any]
) -> None:
    _assert_counted_as_by_the_labeller(file, events, settings)


@given(events=shuffled(), settings=_SETTINGS)
def test_the_order_of_the_lines_does_not_matter(
    file: Path, events: list[dict[str, Any]], settings: Mapping[str, Any]
) -> None:
    _assert_counted_as_by_the_labeller(file, events, settings)
