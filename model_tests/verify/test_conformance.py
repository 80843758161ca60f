"""Each message is held to the model: what explains an anomaly, and where a message stops to be a run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ackfsm import tables, verify
from ackfsm.terms import Anomaly, Verdict
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.named_histories import NamedHistory, named_histories
from model_tests.support.verify.notation import write

SPEC = shipped()
NAMED = named_histories()


def _examined(history: NamedHistory, folder: Path, spec: tables.Specification = SPEC) -> verify.Findings:
    read = verify.read(history.write(folder))
    return verify.examine(read, spec, history.configuration(spec), skew=history.skew * 10**6)


def _pairs(found: verify.Findings) -> verify.Explanation:
    assert found.explanation is not None
    assert found.explanation.pairs is not None
    return found.explanation.pairs


@pytest.mark.parametrize("name", [name for name, each in NAMED.items() if each.invalid is not None])
def test_what_nothing_explains_is_held_against_the_right_message(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    found = _examined(history, tmp_path)
    unexplained = {
        anomaly.value: list(finding.unexplained_examples)
        for anomaly, finding in found.anomalies.items()
        if finding.unexplained
    }
    assert unexplained == history.invalid
    assert found.explanation is not None
    assert [each.message for each in found.explanation.examples if not each.anomalies] == list(history.run)
    unnamed = [each for each in _pairs(found).examples if not each.anomalies]
    assert [sorted((each.message, str(each.beside))) for each in unnamed] == list(history.pairs)
    assert verify.verdict(found, SPEC).verdict is Verdict.INVALID


@pytest.mark.parametrize("name", [name for name, each in NAMED.items() if each.valid is not None])
def test_what_is_explained_names_its_cause(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    found = _examined(history, tmp_path)
    assert found.explanation is not None
    assert found.explanation.examples == ()
    assert _pairs(found).examples == ()
    assert _pairs(found).undecided == {}
    causes = {anomaly.value: finding.causes for anomaly, finding in found.anomalies.items() if finding.found}
    assert {anomaly: " and ".join(each) for anomaly, each in causes.items()} == history.valid
    assert verify.verdict(found, SPEC).verdict is Verdict.VALID


def test_the_first_impossible_line_of_a_pair_is_told_with_what_the_other_message_did(tmp_path: Path) -> None:
    found = _examined(NAMED["three repetitions in AUTO after one crash"], tmp_path)
    told = [str(each) for each in _pairs(found).examples]
    impossible = "delivered, flagged or not at 'c' of 'm1' after processed at 'c' of 'm2', where the model allows"
    assert told[0].startswith(f"line 16, 1.000000s, session 'c.2': {impossible}")
    assert any(told[0] in reason for reason in verify.verdict(found, SPEC).reasons)
    assert found.anomalies[Anomaly.DUPLICATE].causes == {"consumer_crash": 1}, "of three two are not explained"


@pytest.mark.parametrize(
    ("name", "event", "without"),
    [
        (
            "three repetitions in AUTO after one crash",
            "consumer.yaml",
            (
                """        - refuse: the session acknowledges a message before it calls its application with another one
          when: acks_automatically
          source: JMS 6.2.10; JMS 6.2.11
""",
                "",
            ),
        ),
        (
            "a reorder without a cause",
            "broker.yaml",
            (
                "dispatch_first(later), dispatch_again(later): {refuse: ",
                "dispatch_first(later), dispatch_again(later): {ignore: ",
            ),
        ),
    ],
)
def test_without_its_row_a_pair_is_a_run(name: str, event: str, without: tuple[str, str], tmp_path: Path) -> None:
    folder = copy_of_spec(tmp_path)
    replace(folder, f"machines/{event}", without)
    assert _pairs(_examined(NAMED[name], tmp_path)).contradicted
    assert not _pairs(_examined(NAMED[name], tmp_path, tables.load(folder))).contradicted


def test_what_no_pair_tells_is_judged_by_its_kind(tmp_path: Path) -> None:
    history = NAMED["a torn transaction"]
    elsewhere = [{**line, "queue": "another"} if line.get("message") == "m2" else line for line in history.lines]
    drained = {"t": 10**12, "process": "nemesis", "event": "drained", "queue": "another"}
    found = _examined(dataclasses.replace(history, lines=[*elsewhere, drained]), tmp_path)
    torn = found.anomalies[Anomaly.TORN_TRANSACTION]
    assert (torn.found, torn.unexplained, torn.by_kind) == (1, 0, 1)
    assert verify.verdict(found, SPEC).allowed[Anomaly.TORN_TRANSACTION] is False


@pytest.mark.parametrize(("send_mode", "expected"), [("unconfirmed", Verdict.VALID), ("blocking", Verdict.INVALID)])
def test_a_send_that_nobody_answers_has_no_answer_where_transactions_consume(
    send_mode: str, expected: Verdict, tmp_path: Path
) -> None:
    """Whose `commit` is in doubt because its link broke: the producer has no fault, and no outcome to be told."""
    config = {"profile": "qpid", "ack_mode": "SESSION_TRANSACTED", "send_mode": send_mode}
    of_message = {"process": "c", "session": "c", "queue": "q", "message": "m"}
    first, second = ({"process": "c", "session": "c", "transaction": number} for number in "12")
    told: list[dict[str, object]] = [
        {"process": "p", "event": "send", "session": "p", "queue": "q", "message": "m"},
        {**first, **of_message, "event": "delivered", "redelivered": False},
        {**first, **of_message, "event": "processed"},
        {**first, "event": "commit"},
        {"process": "c", "event": "fault", "fault": "consumer_link_loss"},
        {**first, "event": "commit_in_doubt"},
        {**second, **of_message, "event": "delivered", "redelivered": True},
        {**second, **of_message, "event": "processed"},
        {**second, "event": "commit"},
        {**second, "event": "committed"},
        {"process": "broker", "event": "drained", "queue": "q"},
    ]
    file = tmp_path / "history.jsonl"
    lines = [{"ackfsm_history": 1, "config": config}, *({"t": t, **line} for t, line in enumerate(told, start=1))]
    write(lines, file)
    found = verify.examine(verify.read(file), SPEC, SPEC.configure("qpid", config), tells_processed=True)
    assert verify.verdict(found, SPEC).verdict is expected
