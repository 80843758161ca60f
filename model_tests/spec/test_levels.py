"""What an answer of the broker waits for, nothing, the write or the sync, and which fault takes what it answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.engine import Outcome
from ackfsm.engine.journal import FileJournal
from ackfsm.tables import Specification, load
from ackfsm.terms import Fault, InputError, Written
from model_tests.support.engine.brokers import accepted, broker_of, received, rest
from model_tests.support.tables import copy_of_spec, replace, shipped

KILL, POWER = Fault.BROKER_KILL, Fault.BROKER_CRASH
NON_TRANSACTIONAL, TRANSACTIONAL = "journal_sync_non_transactional", "journal_sync_transactional"
ACKNOWLEDGED: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "block_on_acknowledge": True}
TRANSACTED: dict[str, Any] = {"ack_mode": "SESSION_TRANSACTED"}


def reached(profile: str, fault: Fault, of: Specification | None = None, **settings: Any) -> set[str]:
    """What one such fault can do to one message."""
    tables = of or shipped()
    answer = explore.check(tables, tables.configure(profile, settings), Bounds(faults=frozenset({fault}), max_faults=1))
    assert answer.exploration.complete
    return {str(finding.anomaly) for finding in answer.findings.values() if finding.reachable}


# Settings


@pytest.mark.parametrize("key", [NON_TRANSACTIONAL, TRANSACTIONAL])
@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((True, True), ("true", True), ("synced", True)),
        *(("written", Written.WRITTEN), ("WRITTEN", Written.WRITTEN)),
        *((False, False), ("false", False), ("nothing", False)),
    ],
)
def test_a_level_has_three_values_and_five_spellings(key: str, written: object, value: object) -> None:
    configuration = shipped().configure("jms", {key: written})
    assert getattr(configuration, key) == value
    assert json.dumps(configuration.as_dict()[key]) == {True: "true", False: "false"}.get(value, '"written"')  # type: ignore[call-overload]
    assert shipped().configure("jms", configuration.as_dict()) == configuration


def test_no_other_switch_knows_the_words_of_a_level() -> None:
    with pytest.raises(InputError, match="confirm_timer cannot be 'synced'; it is true or false"):
        shipped().configure("jms", {"confirm_timer": "synced"})
    with pytest.raises(InputError, match=r"did you mean written\?\); it is true, false, written, synced or nothing"):
        shipped().configure("jms", {NON_TRANSACTIONAL: "writen"})


@pytest.mark.parametrize(("profile", "value"), [("artemis", "written"), ("ems", "written"), ("rabbitmq", False)])
def test_a_system_refuses_a_level_that_it_has_not(profile: str, value: object) -> None:
    with pytest.raises(InputError, match="does not have journal_sync_non_transactional"):
        shipped().configure(profile, {NON_TRANSACTIONAL: value})


# What each level loses


@pytest.mark.parametrize(
    ("level", "fault", "lost"),
    [
        *((True, KILL, False), (True, POWER, False)),
        *(("written", KILL, False), ("written", POWER, True)),
        *((False, KILL, True), (False, POWER, True)),
    ],
)
@pytest.mark.parametrize("profile", ["jms", "activemq"])
def test_what_is_answered_at_a_level_outlives_what_the_level_says(
    profile: str, level: object, fault: Fault, *, lost: bool
) -> None:
    levels: dict[str, Any] = {NON_TRANSACTIONAL: level, TRANSACTIONAL: level}
    send = reached(profile, fault, **levels)
    acknowledgement = reached(profile, fault, **ACKNOWLEDGED, **levels)
    commit = reached(profile, fault, **TRANSACTED, **levels)
    assert ("loss" in send, "resurrection" in acknowledgement, "loss" in commit) == (lost, lost, lost)
    assert "resurrection" not in commit or lost


@pytest.mark.parametrize(
    ("profile", "settings", "killed", "cut"),
    [
        ("artemis", {}, False, False),
        ("artemis", {"journal-sync-non-transactional": "false"}, True, True),
        ("artemis", {**TRANSACTED, "journal-sync-transactional": "false"}, True, True),
        ("artemis", {**TRANSACTED, "journal-sync-non-transactional": "false"}, False, False),
        ("ems", {}, True, True),
        ("ems", TRANSACTED, True, True),
        ("ems", {"mode": "async"}, True, True),
        ("ems", {"mode": "sync"}, False, False),
        ("activemq", {}, False, False),
        ("activemq", {"journalDiskSyncStrategy": "periodic"}, False, True),
        ("activemq", {"journalDiskSyncStrategy": "never"}, False, True),
        ("rabbitmq", {}, False, False),
        ("rabbitmq", {"x-queue-type": "quorum"}, False, False),
        ("rabbitmq", {"x-queue-type": "classic", "x-queue-version": "1"}, False, False),
        ("rabbitmq", {"x-queue-type": "classic", "x-queue-version": "2"}, False, True),
        ("rabbitmq", {"x-queue-version": 2}, False, True),
    ],
)
def test_what_a_system_loses_when_its_process_is_killed_and_when_its_power_is_cut(
    profile: str, settings: dict[str, Any], *, killed: bool, cut: bool
) -> None:
    assert ("loss" in reached(profile, KILL, **settings), "loss" in reached(profile, POWER, **settings)) == (
        killed,
        cut,
    )


def test_a_quorum_queue_has_no_version() -> None:
    with pytest.raises(InputError, match="x-queue-type and x-queue-version are one setting, given twice"):
        shipped().configure("rabbitmq", {"x-queue-type": "quorum", "x-queue-version": "2"})


@pytest.mark.parametrize("settings", [{}, ACKNOWLEDGED, TRANSACTED])
def test_an_answer_that_has_left_early_holds_up_nothing(settings: dict[str, Any]) -> None:
    """What was answered before it was written is written and synced all the same, and nobody is answered twice."""
    levels: dict[str, Any] = {NON_TRANSACTIONAL: False, TRANSACTIONAL: False}
    for fault in (Fault.CONSUMER_LINK_LOSS, Fault.PRODUCER_LINK_LOSS, KILL):
        found = reached("jms", fault, **settings, **levels)
        assert not found & {"stuck", "missing_outcome", "double_outcome", "early_confirm", "phantom"}


RESENT: dict[str, Any] = {"resend_in_doubt": True, "duplicate_detection": True, "redelivery_mark_persisted": True}


def lost_with_its_duplicate(level: object, of: Specification | None = None) -> bool:
    """Whether a message is lost that was confirmed because the broker had a copy of it."""
    tables, faults = of or shipped(), frozenset({Fault.PRODUCER_LINK_LOSS, KILL})
    configuration = tables.configure("jms", {**RESENT, NON_TRANSACTIONAL: level})
    answer = explore.check(tables, configuration, Bounds(faults=faults, max_faults=2))
    return any(str(finding.anomaly) == "loss" and finding.reachable for finding in answer.findings.values())


def test_a_duplicate_is_answered_when_the_first_copy_is_as_safe_as_its_own_would_be() -> None:
    assert [lost_with_its_duplicate(level) for level in (True, "written", False)] == [False, False, True]


# The rows taken back


def mutant(folder: Path, file: str, old: str, new: str) -> Specification:
    spec = copy_of_spec(folder)
    replace(spec, file, (old, new))
    return load(spec)


JOURNAL, WAITS_FOR_NOTHING = "machines/journal.yaml", "answer_waits_for_nothing"


@pytest.mark.parametrize(
    ("event", "settings", "anomaly"),
    [
        ("confirm:", {}, "loss"),
        ("confirm_acknowledgement, confirm_outcome:", ACKNOWLEDGED, "resurrection"),
        ("confirm_commit:", TRANSACTED, "loss"),
    ],
)
def test_without_its_row_no_level_is_below_the_write(
    tmp_path: Path, event: str, settings: dict[str, Any], anomaly: str
) -> None:
    condition = f"commit_{WAITS_FOR_NOTHING}" if event == "confirm_commit:" else WAITS_FOR_NOTHING
    head = f"      {event}\n        - to: unwritten\n          when: {condition}"
    without = mutant(tmp_path, JOURNAL, head, f"{head} and not journalled")
    levels: dict[str, Any] = {NON_TRANSACTIONAL: False, TRANSACTIONAL: False}
    assert anomaly in reached("jms", KILL, **settings, **levels)
    assert anomaly not in reached("jms", KILL, without, **settings, **levels)


def test_without_its_row_a_duplicate_is_answered_for_a_copy_that_is_only_in_memory(tmp_path: Path) -> None:
    row = '- {refuse: "the answer waits until the first copy is written, as its own would", source: 004'
    early = "- {to: unwritten, because: the broker has it, source: 004"
    assert lost_with_its_duplicate("written", mutant(tmp_path, "machines/broker.yaml", row, early))


# The engine


def left_in_the_queue(level: object, fault: str, folder: Path, mode: str) -> int:
    """How many of three confirmed messages a broker has after it failed at once."""
    settings: dict[str, Any] = {NON_TRANSACTIONAL: level, TRANSACTIONAL: level, "ack_mode": mode}
    journal = FileJournal(folder / f"{level} {mode} {fault}")
    broker = broker_of(journal=journal, **settings)
    session = broker.connect().session()
    producer = session.producer("in")
    sent = [producer.send() for _ in range(3)]
    if mode == "SESSION_TRANSACTED":
        session.commit()
    else:
        assert {each.outcome for each in sent} == {Outcome.CONFIRMED}
    getattr(broker, fault)()
    broker.restart()
    left = rest(broker)
    accepted(broker, folder)
    return len(left)


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("fault", ["kill", "crash"])
def test_an_engine_that_answers_before_it_writes_loses_what_it_answered(fault: str, mode: str, tmp_path: Path) -> None:
    """With either of the other levels it syncs what it writes, which is more than the write promises."""
    assert [left_in_the_queue(level, fault, tmp_path, mode) for level in (True, "written", False)] == [3, 3, 0]


def test_an_engine_knows_the_id_of_a_message_that_is_not_written_yet() -> None:
    broker = broker_of(duplicate_detection=True, journal_sync_non_transactional=False)
    producer = broker.connect().session().producer("in")
    for _ in range(2):
        assert producer.send(duplicate_id=b"once").outcome is Outcome.CONFIRMED
    assert broker.queue("in").length == 1


def test_an_engine_that_confirms_an_acknowledgement_before_it_writes_gives_the_message_again(tmp_path: Path) -> None:
    def again(level: object) -> bool:
        settings: dict[str, Any] = {**ACKNOWLEDGED, NON_TRANSACTIONAL: level}
        broker = broker_of(**settings)
        broker.connect().session().producer("in").send()
        assert broker.connect().session().consumer("other").receive(None) is None  # meanwhile all is written
        received(broker.connect().session().consumer("in")).acknowledge()
        broker.kill()
        broker.restart()
        left = rest(broker)
        accepted(broker, tmp_path)
        return len(left) == 1

    assert [again(level) for level in (True, "written", False)] == [False, False, True]
