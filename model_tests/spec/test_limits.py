"""Limits of attempts: what becomes of a message that has used them up or is rejected, and what counts as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ackfsm import tables, verify
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded import Level, decide
from ackfsm.checking.unbounded._columns import Scope
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, Verdict
from model_tests.support.checker.certified import certified, verified
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.notation import events_of, write

INDIVIDUAL = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}
CRASHES = {"faults": frozenset({Fault.CONSUMER_CRASH}), "max_faults": 2}
ENDS = {"dead_lettered_unprocessed", "destroyed_unprocessed"}

# ---- Where it goes ----------------------------------------------------------------------------------------------

AT_THE_LIMIT = [
    ("jms", {}, "dead_lettered_unprocessed"),
    ("artemis", {}, "dead_lettered_unprocessed"),
    ("ems", {}, "destroyed_unprocessed"),
    ("activemq", {}, "dead_lettered_unprocessed"),
    ("activemq", {"delivery_mode": "NON_PERSISTENT"}, "destroyed_unprocessed"),
    ("activemq", {"delivery_mode": "NON_PERSISTENT", "processNonPersistent": "true"}, "dead_lettered_unprocessed"),
    ("rabbitmq", {}, "destroyed_unprocessed"),
    ("rabbitmq", {"x-dead-letter-exchange": "late"}, "dead_lettered_unprocessed"),
    ("solace", CLIENT, "destroyed_unprocessed"),
    ("solace", {**CLIENT, "DMQEligible": "true"}, "dead_lettered_unprocessed"),
    ("solace-jms", {}, "destroyed_unprocessed"),
    ("solace-jms", {"default-dmq-eligible": "true"}, "dead_lettered_unprocessed"),
    ("qpid-jms", {}, "dead_lettered_unprocessed"),
    ("qpid-jms", {"jms.redeliveryPolicy.outcome": "REJECTED"}, "dead_lettered_unprocessed"),
]


def asked(profile: str, chosen: Mapping[str, object], **bounds: object) -> explore.Answer:
    configuration = shipped().configure(profile, {"resend_in_doubt": False, **chosen})
    return explore.check(shipped(), configuration, Bounds(**bounds))  # type: ignore[arg-type]


@pytest.mark.parametrize(("profile", "chosen", "end"), AT_THE_LIMIT)
def test_what_has_used_up_its_attempts_ends_as_the_vendor_says(
    profile: str, chosen: dict[str, object], end: str
) -> None:
    answer = asked(profile, {**chosen, "max_delivery_attempts": 2}, **CRASHES)
    assert {name for name in ENDS if answer.ends[name].reachable} == {end}
    assert answer.findings[Anomaly.UNPROCESSED].reachable is ((profile, chosen) == ("qpid-jms", {})), (
        "it waits in its queue"
    )
    assert not answer.findings[Anomaly.STUCK].reachable
    assert not answer.findings[Anomaly.OVER_DELIVERED].reachable
    assert not answer.violations


def test_what_a_client_turns_away_at_its_limit_is_dead_lettered_or_kept_for_other_consumers() -> None:
    """AMQP 1.0 leaves it to the broker."""
    chosen: dict[str, object] = {"max_delivery_attempts": 2}
    steps = [event.name for event in asked("qpid-jms", chosen, **CRASHES).ends["dead_lettered_unprocessed"].steps]
    assert steps.index("turned_away_at_limit") < steps.index("dead_lettered")
    waits = [event.name for event in asked("qpid-jms", chosen, **CRASHES).findings[Anomaly.UNPROCESSED].steps]
    assert waits.index("turned_away_at_limit") < waits.index("kept_for_others")
    kept = asked("qpid-jms", chosen, **CRASHES, without=frozenset({"dead_lettered"}))
    assert not any(kept.ends[name].reachable for name in ENDS)
    assert kept.findings[Anomaly.UNPROCESSED].reachable, "it waits in its queue"
    assert not kept.findings[Anomaly.STUCK].reachable
    assert not kept.findings[Anomaly.LOSS].reachable


@pytest.mark.parametrize(
    ("profile", "chosen", "end"),
    [
        ("rabbitmq", {}, "destroyed_unprocessed"),
        ("rabbitmq", {"x-dead-letter-exchange": "late"}, "dead_lettered_unprocessed"),
        ("solace", CLIENT, "destroyed_unprocessed"),
        ("solace", {**CLIENT, "DMQEligible": "true"}, "dead_lettered_unprocessed"),
    ],
)
def test_what_is_rejected_ends_there_too(profile: str, chosen: dict[str, object], end: str) -> None:
    answer = asked(profile, chosen, actions=frozenset({"settle_rejected"}), max_faults=0)
    assert {name for name in ENDS if answer.ends[name].reachable} == {end}


def test_what_an_application_turns_away_is_dead_lettered_or_kept_for_other_consumers() -> None:
    answer = asked("qpid-jms", INDIVIDUAL, actions=frozenset({"settle_undeliverable"}), max_faults=0)
    assert {name for name in ENDS if answer.ends[name].reachable} == {"dead_lettered_unprocessed"}
    assert answer.findings[Anomaly.UNPROCESSED].reachable
    assert not answer.findings[Anomaly.STUCK].reachable


def test_what_is_rejected_over_amqp_is_dead_lettered_or_destroyed() -> None:
    answer = asked("qpid-jms", INDIVIDUAL, actions=frozenset({"settle_rejected"}), max_faults=0)
    assert {name for name in ENDS if answer.ends[name].reachable} == ENDS


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_broker_that_dead_letters_what_was_turned_away_is_not_accused(limit: int, tmp_path: Path) -> None:
    text = "p send m1; p confirmed m1; c delivered m1 clear; c failed m1 outcome=undeliverable; b dead_lettered m1"
    lines = [event | {"t": event["t"] * 10**9, "queue": "q"} for event in events_of(f"{text}; n drained")]
    chosen = shipped().configure("qpid-jms", {**INDIVIDUAL, "max_delivery_attempts": limit})
    findings = verify.examine(verify.read(write(lines, tmp_path / "h")), shipped(), chosen)
    assert verify.verdict(findings, shipped()).verdict is Verdict.VALID


def test_what_one_consumer_turns_away_stays_in_its_queue_and_later_messages_pass_it() -> None:
    configuration = shipped().configure("qpid-jms", {"max_delivery_attempts": 1, "resend_in_doubt": False})
    bounds = Bounds(messages=2, faults=frozenset({Fault.CONSUMER_CRASH}))
    answer = explore.check(shipped(), configuration, bounds)
    assert not answer.findings[Anomaly.LOSS].reachable
    assert not answer.findings[Anomaly.STUCK].reachable


# ---- What counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("counts", "over"), [(None, True), (True, True), (False, False)])
def test_a_nack_of_rabbitmq_is_an_attempt_up_to_version_4_2(counts: bool | None, over: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Measured with 3.10.8: a quorum queue counts it; 4.3 does not (``release_counts=false``)."""
    chosen = {**INDIVIDUAL, "max_delivery_attempts": 2} | ({} if counts is None else {"release_counts": counts})
    again = "".join(f"c delivered m1 {'flagged' if i else 'clear'}; c failed m1;" for i in range(4))
    text = f"p send m1; p confirmed m1; {again} c delivered m1 flagged; c processed m1; c acknowledge m1 scope=message"
    lines = [event | {"t": event["t"] * 10**9, "queue": "q"} for event in events_of(f"{text}; n drained")]
    recorded = verify.read(write([{**e, "session": "s"} if e["process"] == "c" else e for e in lines], tmp_path / "h"))
    findings = verify.examine(recorded, shipped(), shipped().configure("rabbitmq", chosen))
    judged = verify.verdict(findings, shipped())
    assert judged.verdict is (Verdict.INVALID if over else Verdict.VALID)
    assert judged.findings.anomalies[Anomaly.OVER_DELIVERED].found == 1


@pytest.mark.parametrize("counts", [True, False])
def test_a_release_uses_up_attempts_where_it_counts(counts: bool) -> None:  # noqa: FBT001
    chosen = {**INDIVIDUAL, "max_delivery_attempts": 2, "release_counts": counts}
    answer = asked("rabbitmq", chosen, actions=frozenset({"settle_released"}), max_faults=0)
    assert answer.ends["destroyed_unprocessed"].reachable is counts
    assert not answer.findings[Anomaly.OVER_DELIVERED].reachable


# ---- Limits are exact -------------------------------------------------------------------------------------------

FORGETFUL = "".join(
    f"""\
    sent_{n}_times:
      dispatch_first: {{{first}}}
      dispatch_again: {{{again}}}
      taken_elsewhere, recover_ready, broker_crash, broker_kill, journal_failure: {{ignore: the mark is there}}
"""
    for n, first, again in (
        (2, "refuse: it has been sent before", "to: sent_3_times, because: it counts, source: model"),
        (3, "refuse: it has been sent before", "to: sent_4_times, because: it counts, source: model"),
        (4, "to: marked, because: the mark is forgotten, source: model", "refuse: the mark is forgotten"),
    )
)
MARKED = "      dispatch_again: {to: marked, because: the flag says that it is a redelivery, source: JMS 3.4.7}\n"
UNSURE = "    unsure:\n      dispatch_first:\n"
TEN = {"max_delivery_attempts": 10}
CRASH = frozenset({Fault.CONSUMER_CRASH})


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Specification:
    """Tables that forget the redelivery mark as a message is sent for the fifth time."""
    spec = copy_of_spec(tmp_path_factory.mktemp("forgetful"))
    third = MARKED.replace("to: marked", "to: sent_2_times")
    replace(spec, "machines/broker.yaml", (MARKED, third), (UNSURE, FORGETFUL + UNSURE))
    return tables.load(spec)


@pytest.mark.parametrize("max_faults", [3, 4, 6, None])
def test_a_mark_forgotten_at_the_fifth_sending_is_found(forgetful: Specification, max_faults: int | None) -> None:
    bounds = Bounds(faults=CRASH, max_faults=max_faults)
    answer = explore.check(forgetful, forgetful.configure("jms", TEN), bounds)
    assert answer.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable is (max_faults != 3)


def test_a_mark_forgotten_at_the_fifth_sending_is_not_proved_away(forgetful: Specification) -> None:
    bounds = Bounds(faults=CRASH, max_faults=None)
    found = decide(forgetful, forgetful.configure("jms", TEN), bounds, only=["unflagged_duplicate"])
    assert found.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable is True


def test_a_run_to_the_limit_has_as_many_deliveries_as_the_limit() -> None:
    for bounds in (Bounds(faults=CRASH, max_faults=None), Bounds(faults=CRASH, max_faults=10)):
        answer = explore.check(shipped(), shipped().configure("artemis"), bounds)
        steps = [event.name for event in answer.ends["dead_lettered_unprocessed"].steps]
        assert sum(name.startswith("dispatch") for name in steps) == TEN["max_delivery_attempts"]


def test_a_certificate_of_a_search_that_cuts_the_limit_is_refuted(
    forgetful: Specification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verifier counts to the limit by itself."""
    monkeypatch.setattr(Scope, "environment", _cut(Scope.environment))
    certificate = certified("jms", TEN, ["unflagged_duplicate"], faults=CRASH, levels=[Level.CHAOS], tables=forgetful)
    assert certificate.proved == ("unflagged_duplicate",)
    assert not verified(certificate, forgetful).verified


def _cut(environment: Callable[..., Mapping[str, object]]) -> Callable[..., Mapping[str, object]]:
    return lambda *of, **more: {**environment(*of, **more), "attempts": 3}
