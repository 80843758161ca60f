"""What nobody recorded: the fewest faults that explain a message, and those of all messages joined."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.checking import explore, export
from ackfsm.history.index import Index
from ackfsm.terms import Anomaly, Configuration, Fault, Verdict
from ackfsm.verify.conformance.life import contradiction
from ackfsm.verify.conformance.lives import Recorded
from ackfsm.verify.conformance.messages import Conformance, Judge, conformance
from ackfsm.verify.conformance.unrecorded import MOST_FAULTS, smallest, with_fault
from ackfsm.verify.context.circumstances import EFFECT, OF_CONSUMERS
from ackfsm.verify.context.signs import Sign, Signs
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.model_runs import Run, systems, witnesses
from model_tests.support.verify.named_histories import NamedHistory, named_histories
from model_tests.support.verify.notation import events_of, write
from model_tests.support.whole import few

SPEC = shipped()
NAMED = {name: each for name, each in named_histories().items() if each.messages == 1 and not each.queues}
ANY = frozenset(Fault)
TOO_LARGE = frozenset({"three copies of a message sent twice"})
"""With all kinds of faults they are in more states than are searched: each kind is assumed alone."""
_ALONE = [frozenset({fault}) for fault in Fault]
CLIENT = SPEC.configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
LISTENER = SPEC.configure("jms", {"consumption": "listener"})
SECOND = 10**9


def _examined(history: NamedHistory, folder: Path, assumed: Collection[Fault] = ANY) -> verify.Findings:
    recorded = verify.read(history.write(folder))
    configuration = SPEC.configure(None, history.config)
    return verify.examine(recorded, SPEC, configuration, skew=history.skew * 10**6, assumed=assumed)


def _noted(
    text: str, folder: Path, assumed: Collection[Fault] = ANY, configuration: Configuration = CLIENT
) -> verify.Findings:
    """What is found in a history with a second from line to line."""
    events = [event | {"t": event["t"] * SECOND, "queue": "q"} for event in events_of(text)]
    return verify.examine(verify.read(write(events, folder / "h.jsonl")), SPEC, configuration, assumed=assumed)


def _assumption(findings: verify.Findings) -> verify.Unrecorded:
    assert findings.unrecorded is not None
    return findings.unrecorded


def _verdict(findings: verify.Findings) -> Verdict:
    return verify.verdict(findings, SPEC).verdict


def _recorded(lines: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """From when to when each recorded fault lasted."""
    return [(line["t"], _repaired(line, lines)) for line in lines if line["event"] == "fault"]


def _repaired(fault: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> int:
    its = ("fault", "process")
    repairs = (line["t"] for line in lines if line["event"] == "recovered" and all(line[k] == fault[k] for k in its))
    return min((t for t in repairs if t >= fault["t"]), default=int(fault["t"]))


@pytest.mark.parametrize("name", few([name for name, each in NAMED.items() if each.valid is not None], 12))
def test_what_recorded_faults_explain_is_explained_when_nobody_recorded_them(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    found = _examined(history.without_faults(), tmp_path)
    faults = _recorded(history.lines)
    assumption = _assumption(found)
    assert assumption.explained
    assert _verdict(found) is Verdict.VALID
    assert len(assumption.timeline) <= len(faults)
    for each in assumption.timeline:
        assert any(begin <= each.end and each.begin <= end for begin, end in faults)
        assert each.begin >= history.lines[0]["t"]
        assert each.end <= history.lines[-1]["t"]


@pytest.mark.parametrize("name", few([name for name, each in NAMED.items() if each.invalid is not None], 12))
def test_what_no_fault_explains_stays_invalid_whatever_is_assumed(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    for assumed in _ALONE if name in TOO_LARGE else [ANY]:
        found = _examined(history, tmp_path, assumed)
        assert [each.fault for each in _assumption(found).timeline] == list(history.unrecorded)
        assert _assumption(found).explained is bool(history.unrecorded)
        assert found.explanation is not None
        assert bool(found.explanation.contradicted) is not bool(history.unrecorded)


@pytest.mark.parametrize("name", sorted(TOO_LARGE))
def test_what_is_in_too_many_states_with_all_faults_is_left_open(name: str, tmp_path: Path) -> None:
    found = _examined(NAMED[name], tmp_path)
    assert _assumption(found).explained is None
    assert _verdict(found) is Verdict.UNKNOWN


@pytest.mark.parametrize("name", few([name for name, each in NAMED.items() if each.invalid is not None], 12, "asked"))
def test_without_being_asked_nothing_is_assumed(name: str, tmp_path: Path) -> None:
    found = _examined(NAMED[name].without_faults(), tmp_path, ())
    assert not found.assumed
    assert found.explanation is not None
    assert found.explanation.contradicted
    assert not _assumption(found).assumed


def test_recorded_faults_are_no_occasion_for_a_hint(tmp_path: Path) -> None:
    assert _examined(NAMED["a duplicate a minute before the link broke"], tmp_path, ()).unrecorded is None


@pytest.mark.parametrize(
    ("name", "with_others"),
    [("activemq-a2-auto-receive-consumer-kill", True), ("rabbitmq-b-confirm-manual-broker-kill", False)],
)
def test_a_recorded_history_is_explained_without_its_nemesis(name: str, with_others: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """By faults that nobody recorded, or already by the connections that the clients say have broken."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as text:
        header, *lines = map(json.loads, text)
    faults = _recorded(lines)
    kept = [line for line in lines if line["event"] not in {"fault", "recovered"}]
    file = write([header, *kept], tmp_path / "h.jsonl")
    found = verify.examine(verify.read(file), SPEC, SPEC.configure(None, header["config"]), assumed=ANY)
    assumption = _assumption(found)
    assert assumption.explained
    assert with_others <= len(assumption.timeline) <= len(faults)
    if not with_others:
        unbroken = [line for line in kept if line.get("error") is None]
        without = verify.examine(verify.read(write([header, *unbroken], file)), SPEC, found.configuration, assumed=())
        assert without.explanation is not None
        assert without.explanation.contradicted
    for each in assumption.timeline:
        assert any(begin <= each.end and each.begin <= end for begin, end in faults), each


_TEN = range(10)


def test_one_restart_explains_the_repetitions_at_ten_consumers(tmp_path: Path) -> None:
    once = [f"p send m{n}; p confirmed m{n}; c{n} delivered m{n} clear; c{n} processed m{n}" for n in _TEN]
    again = [f"d{n} delivered m{n} flagged; d{n} processed m{n}; d{n} acknowledge m{n} scope=message" for n in _TEN]
    found = _noted("; ".join([*once, *again, "nemesis drained"]), tmp_path)
    (restart,) = _assumption(found).timeline
    assert (restart.fault, restart.victim, restart.messages) == (Fault.BROKER_KILL, None, 10)
    last_confirmed, first_again = 37 * SECOND, 40 * SECOND  # m9 may have been in the library when the broker died
    assert (restart.begin, restart.end) == (last_confirmed - EFFECT, first_again)
    assert found.anomalies[Anomaly.DUPLICATE].causes == {"unrecorded broker_kill": 10}


_TWICE = (
    "p send m1; p confirmed m1; c delivered m1 clear; c processed m1; {}"
    " d delivered m1 flagged; d processed m1; {} e delivered m1 flagged; e processed m1;"
    " e acknowledge m1 scope=message; nemesis drained"
)


def test_what_came_three_times_takes_two_faults(tmp_path: Path) -> None:
    found = _noted(_TWICE.format("", ""), tmp_path)
    timeline = _assumption(found).timeline
    assert [(each.fault, each.victim) for each in timeline] == [
        (Fault.CONSUMER_LINK_LOSS, "c"),
        (Fault.CONSUMER_LINK_LOSS, "d"),
    ]
    assert [each.end for each in timeline] == [4 * SECOND, 6 * SECOND]


@pytest.mark.parametrize("place", [0, 1])
def test_a_recorded_fault_is_used_first(place: int, tmp_path: Path) -> None:
    told = ["", ""]
    told[place] = f"{'cd'[place]} fault fault=consumer_link_loss; {'cd'[place]} recovered fault=consumer_link_loss;"
    (other,) = _assumption(_noted(_TWICE.format(*told), tmp_path)).timeline
    assert (other.fault, other.victim) == (Fault.CONSUMER_LINK_LOSS, "dc"[place])


def test_two_consumers_break_once_each_where_the_times_do_not_meet(tmp_path: Path) -> None:
    one = "p send m{0}; p confirmed m{0}; c delivered m{0} clear; c processed m{0}; c delivered m{0} flagged;"
    text = f"{one.format(1)} c processed m1; c acknowledge m1 scope=message; {one.format(2)} c processed m2;"
    timeline = _assumption(_noted(f"{text} c acknowledge m2 scope=message; nemesis drained", tmp_path)).timeline
    assert [(each.fault, each.victim, each.messages) for each in timeline] == [
        (Fault.CONSUMER_LINK_LOSS, "c", 1),
        (Fault.CONSUMER_LINK_LOSS, "c", 1),
    ]
    assert timeline[0].end < timeline[1].begin


def test_a_consumer_that_died_explains_what_nobody_had_seen_of_it(tmp_path: Path) -> None:
    sent = "p send m1; p confirmed m1; p send m2; p confirmed m2; c delivered m1 clear; c processed m1"
    again = "; ".join(f"d delivered m{n} flagged; d processed m{n}; d acknowledge m{n} scope=message" for n in (1, 2))
    (crash,) = _assumption(_noted(f"{sent}; {again}; nemesis drained", tmp_path, {Fault.CONSUMER_CRASH})).timeline
    assert (crash.victim, crash.messages) == ("c", 2)


def test_each_message_has_an_exception_of_its_own(tmp_path: Path) -> None:
    once = "; ".join(f"p send m{n}; p confirmed m{n}; c delivered m{n} clear" for n in range(3))
    again = "; ".join(f"c delivered m{n} flagged; c processed m{n}; c acknowledge m{n} scope=message" for n in range(3))
    found = _noted(f"{once}; {again}; nemesis drained", tmp_path, {Fault.LISTENER_EXCEPTION}, LISTENER)
    (thrown,) = _assumption(found).timeline
    assert (thrown.fault, thrown.victim, thrown.messages, thrown.times) == (Fault.LISTENER_EXCEPTION, "c", 3, 3)


@pytest.mark.parametrize(
    ("assumed", "verdict"),
    [
        ({Fault.PRODUCER_CRASH, Fault.REJECTION}, Verdict.INVALID),
        ({Fault.CONSUMER_CRASH}, Verdict.VALID),
        ({Fault.BROKER_CRASH, Fault.PRODUCER_CRASH}, Verdict.VALID),
    ],
)
def test_only_the_kinds_that_are_named_explain(assumed: set[Fault], verdict: Verdict, tmp_path: Path) -> None:
    history = NAMED["a duplicate after the link broke"].without_faults()
    found = _examined(history, tmp_path, assumed)
    assert {each.fault for each in _assumption(found).timeline} <= assumed
    assert _verdict(found) is verdict


@pytest.mark.parametrize(
    ("assumed", "allowed"), [({Fault.CONSUMER_CRASH}, True), ({Fault.PRODUCER_CRASH}, False), (set(), False)]
)
def test_what_lies_between_messages_is_allowed_by_kind(assumed: set[Fault], allowed: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a column of the table
    one = "{1} delivered m{0} clear; {1} processed m{0}; {1} acknowledge m{0} scope=message"
    sent = "; ".join(f"p send m{n}; p confirmed m{n}" for n in range(3))
    taken = "; ".join([one.format(0, "c"), one.format(2, "d"), one.format(1, "d")])
    configuration = SPEC.configure("activemq", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    result = verify.verdict(_noted(f"{sent}; {taken}; nemesis drained", tmp_path, assumed, configuration), SPEC)
    assert result.findings.anomalies[Anomaly.REORDER].found == 1
    assert result.allowed[Anomaly.REORDER] is allowed


@pytest.mark.parametrize(("assumed", "allowed"), [({Fault.CONSUMER_CRASH}, True), ({Fault.PRODUCER_CRASH}, False)])
def test_what_was_not_found_is_allowed_by_kind(assumed: set[Fault], allowed: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a column of the table
    clean = "p send m1; p confirmed m1; c delivered m1 clear; c processed m1; c acknowledge m1 scope=message"
    result = verify.verdict(_noted(f"{clean}; nemesis drained", tmp_path, assumed), SPEC)
    assert result.verdict is Verdict.VALID
    assert result.allowed[Anomaly.DUPLICATE] is allowed


def test_more_faults_than_the_bound_leave_it_open(tmp_path: Path) -> None:
    times = [f"c{n} delivered m1 flagged; c{n} processed m1" for n in (1, 2, 3, 1)]
    text = f"p send m1; p confirmed m1; c1 delivered m1 clear; c1 processed m1; {'; '.join(times)}; nemesis drained"
    found = _noted(text, tmp_path, {Fault.CONSUMER_LINK_LOSS})
    assert len(times) > MOST_FAULTS
    assert _assumption(found).explained is None
    result = verify.verdict(found, SPEC)
    assert result.verdict is Verdict.UNKNOWN
    assert any(f"more than {MOST_FAULTS} unrecorded faults" in reason for reason in result.reasons)


def _decided(history: NamedHistory, folder: Path) -> Conformance:
    events = Index.of(verify.read(history.write(folder)).events)
    configuration = SPEC.configure(None, history.config)
    recorded = Recorded.of_messages(events, (), 0, Signs.of(SPEC, configuration))
    return conformance(recorded, Judge(SPEC, configuration, events))


@pytest.mark.parametrize("name", ["a duplicate after the link broke", "B9 a flag that is missing after a clean close"])
def test_one_fault_explains_just_where_one_that_is_told_there_would(name: str, tmp_path: Path) -> None:
    decided = _decided(NAMED[name].without_faults(), tmp_path)
    (message,) = decided.contradicted().tolist()
    for lived in decided.forms(message):
        judge = decided.judge.anew()
        life, observer = judge.hearing(lived)
        consumers = range(1, len(lived.consumers) + 1)
        at_consumers = OF_CONSUMERS | {Fault.LISTENER_EXCEPTION}
        signs = [Sign(fault, each) for fault in Fault for each in (consumers if fault in at_consumers else (0,))]
        found = smallest(life, observer, signs)
        assert found is not None
        assert found.faults == 1
        prefixes = [(1 << size) - 1 for size in range(len(life.heard) + 1)]
        told = {
            (sign, gap)
            for sign, gap in itertools.product(signs, prefixes)
            if contradiction(*judge.hearing(with_fault(lived, sign, gap))) is None
        }
        assert {(sign, gap) for sign, gap in found.first if gap in prefixes} == told


@pytest.mark.parametrize("seed", few(range(5), 2))
def test_the_faults_of_a_run_are_found_by_those_who_were_not_told(seed: int, tmp_path: Path) -> None:
    for network in systems(seed, 2):
        for run in witnesses(network):
            found = _told_without_faults(run, tmp_path)
            assumption = _assumption(found)
            assert assumption.explained is not False, run
            assert all(each.fault in network.bounds.faults for each in assumption.timeline)


def _told_without_faults(run: Run, folder: Path) -> verify.Findings:
    configuration = run.network.configuration
    steps = explore.steps_of(run.network, run.labels)
    header, *lines = export.run_history(SPEC, configuration, steps, at_rest=True).splitlines()
    kept = [line for line in map(json.loads, lines) if line["event"] not in {"fault", "recovered"}]
    file = write([json.loads(header), *kept], folder / "h.jsonl")
    faults = run.network.bounds.faults
    return verify.examine(verify.read(file), SPEC, configuration, tells_processed=True, assumed=faults)
