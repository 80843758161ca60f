"""The tables against the oracle of two messages: the same reachable with one session and two.

``python -m model_tests.two_messages`` compares as many drawn systems as one likes; here is a part of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from enum import StrEnum

import pytest

from ackfsm.terms import AckMode, AckScope, Anomaly, Consumption, Fault, ListenerException
from model_tests import mutants, two_messages
from model_tests.support.spec import oracle_two
from model_tests.support.spec.oracle_two import Fact, Setting
from model_tests.support.tables import shipped
from model_tests.support.whole import few
from model_tests.two_messages import Compared, System, compared, drawn

AUTO, CLIENT = AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE
DUPS_OK, INDIVIDUAL = AckMode.DUPS_OK_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE
TRANSACTED = AckMode.SESSION_TRANSACTED
CRASH, LINK_LOSS, THROWS = Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION
KILL = Fault.BROKER_KILL
UP_TO = {
    "ack_mode": CLIENT,
    "client_ack_scope": AckScope.UP_TO,
    "delivery_mode": "NON_PERSISTENT",
    "block_on_acknowledge": False,
}


UNSEEN = {
    "delivery_count_from": "delivery",
    "redelivery_mark_persisted": False,
    "listener_exception": "next_message",
}


def asked(settings: Mapping[str, object], faults: Collection[Fault], max_faults: int = 1, sessions: int = 1) -> System:
    """A system with everything but these settings as the strictest has it; of one session the facts are asked for."""
    everything = dataclasses.asdict(Setting()) | dict(settings)
    return System(shipped().configure("jms", everything), frozenset(faults), max_faults, sessions, facts=sessions == 1)


# ---- Both sides, drawn ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", few(range(0, 100, 20), 1))
def test_one_session_and_one_fault(first: int) -> None:
    for seed in range(first, first + 20):
        each = compared(drawn(seed, sessions=1, max_faults=1))
        assert each.agree, str(each)


def test_one_session_and_two_faults() -> None:
    for seed in few(range(200, 205), 2):
        each = compared(drawn(seed, sessions=1, max_faults=2))
        assert each.agree, str(each)


@pytest.mark.parametrize("first", few([300, 302], 1))
def test_two_sessions(first: int) -> None:
    for seed in range(first, first + 2):
        each = compared(drawn(seed, sessions=2, max_faults=1))
        assert each.agree, str(each)


# ---- Both sides, asked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sessions", few([1, 2], 1))
@pytest.mark.parametrize("consumption", Consumption)
@pytest.mark.parametrize("after", ListenerException)
def test_a_rollback_that_gives_nothing_back_is_recovered(
    after: ListenerException, consumption: Consumption, sessions: int
) -> None:
    """`tx.rollback` of AMQP 0-9-1 leaves it to the application, which has all again as it recovers."""
    settings = {"ack_mode": TRANSACTED, "listener_exception": after, "consumption": consumption}
    both = ({**settings, "rollback_requeues": gives} for gives in (True, False))
    ways = [compared(asked(each, [THROWS], sessions=sessions)) for each in both]
    assert all(each.agree for each in ways)
    assert ways[0].oracle.reachable == ways[1].oracle.reachable
    rolls_back = after not in {ListenerException.SWALLOW, ListenerException.ACKNOWLEDGE}
    thrown = consumption is Consumption.LISTENER and rolls_back
    assert (ways[0].oracle.states != ways[1].oracle.states) is thrown


@pytest.mark.parametrize("kept", few([True, False], 1))
@pytest.mark.parametrize("mode", few([CLIENT, TRANSACTED, AUTO], 1))
def test_what_is_given_back_unseen_is_no_delivery_and_what_is_cut_off_may_be_one(
    mode: AckMode,
    kept: bool,  # noqa: FBT001 - a case
) -> None:
    """A library may hand over what it has of a broken connection, so only an orderly end takes a mark back."""
    settings = UNSEEN | {"ack_mode": mode, "redelivery_mark_persisted": kept}
    for faults, sessions in (([THROWS, KILL], 1), ([THROWS, LINK_LOSS], 1), ([THROWS], 2), ([LINK_LOSS], 2)):
        one = compared(asked(settings, faults, max_faults=len(faults), sessions=sessions))
        assert one.agree, str(one)
        unflagged = Anomaly.UNFLAGGED_DUPLICATE in one.tables.witnesses
        assert unflagged is ((KILL in faults and not kept) or (sessions == 2 and LINK_LOSS in faults))


@pytest.mark.parametrize("who", ["next_message", "recover"])
@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, DUPS_OK, AUTO])
def test_recover_gives_back_all_that_is_unacknowledged(mode: AckMode, who: str) -> None:
    """After an exception the application or the library recovers the session, and another message comes with that one.

    Not with AUTO_ACKNOWLEDGE, which acknowledges the other one before the session is recovered.
    """
    one = compared(asked({"ack_mode": mode, "listener_exception": who}, [THROWS]))
    assert one.agree, str(one)
    assert (Anomaly.REPROCESSED in one.tables.witnesses) is (mode is not AUTO)


@pytest.mark.parametrize("faults", [2, 3])
@pytest.mark.parametrize("exception", ["redeliver", "next_message", "swallow", "acknowledge"])
@pytest.mark.parametrize("mode", [CLIENT, DUPS_OK])
def test_up_to_a_message_is_in_order_of_delivery(mode: AckMode, exception: str, faults: int) -> None:
    """The first message, redelivered behind the second one, is not covered by the acknowledgement of that."""
    one = compared(asked(UP_TO | {"ack_mode": mode, "listener_exception": exception}, [THROWS], max_faults=faults))
    assert one.agree, str(one)


# ---- The oracle itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("consumption", Consumption)
@pytest.mark.parametrize("mode", oracle_two.ACK_MODES)
def test_without_a_fault_nothing_happens(mode: AckMode, consumption: Consumption, sessions: int) -> None:
    setting = Setting(ack_mode=mode, consumption=consumption)
    facts = [Fact.TWO_REPEATED, Fact.COMPLETED_BY_TWO]
    assert oracle_two.explore(setting, (), 0, sessions=sessions, facts=facts).reachable == set()


@pytest.mark.parametrize("consumption", Consumption)
@pytest.mark.parametrize("fault", [CRASH, LINK_LOSS, KILL])
def test_auto_repeats_the_last_message_of_a_session_alone(fault: Fault, consumption: Consumption) -> None:
    """JMS 6.2.11; in every other mode one failure can repeat both."""
    for mode in oracle_two.ACK_MODES:
        setting = Setting(ack_mode=mode, consumption=consumption)
        found = oracle_two.explore(setting, {fault}, facts=[Fact.TWO_REPEATED, Fact.ACKNOWLEDGED_AHEAD]).reachable
        assert (Fact.TWO_REPEATED in found) == (mode is not AUTO), mode
        assert (Fact.ACKNOWLEDGED_AHEAD in found) == (mode not in {AUTO, TRANSACTED}), mode
        assert (Anomaly.REPROCESSED in found) == (mode is not AUTO or consumption is Consumption.LISTENER), mode


def test_what_it_does_not_know_it_refuses() -> None:
    with pytest.raises(ValueError, match="PRE_ACKNOWLEDGE"):
        Setting(ack_mode=AckMode.PRE_ACKNOWLEDGE)
    with pytest.raises(ValueError, match="rejection"):
        oracle_two.explore(Setting(), {Fault.REJECTION})


# ---- Mutants --------------------------------------------------------------------------------------------------

MUTANTS: tuple[tuple[System, str, set[StrEnum]], ...] = (
    (
        asked({}, [CRASH]),
        "ack_call.unacknowledged delivered_clear(later): allowed",
        {Fact.TWO_REPEATED, Fact.ACKNOWLEDGED_AHEAD},
    ),
    (
        asked({"consumption": "receive"}, [CRASH]),
        "processing.otherwise acknowledge(later): allowed",
        {Fact.ACKNOWLEDGED_AHEAD},
    ),
    (asked({"consumption": "receive"}, [CRASH]), "delivery.in_flight arrive(later): allowed", {Anomaly.REORDER}),
    (
        asked({"ack_mode": CLIENT}, [CRASH]),
        "ack_frame.outstanding acknowledge(earlier): deleted",
        {Anomaly.UNPROCESSED, Fact.ACKNOWLEDGED_AHEAD},
    ),
    (
        asked({"ack_mode": INDIVIDUAL}, [KILL]),
        "ack_record.written sync_ack_record: redirected",
        {Anomaly.RESURRECTION},
    ),
    (
        asked({"ack_mode": INDIVIDUAL}, [KILL]),
        "redelivery.marked dispatch_first: allowed",
        {Anomaly.UNFLAGGED_DUPLICATE},
    ),
    (
        asked({"ack_mode": DUPS_OK}, [THROWS]),
        "ack_call.failed_requeue requeue: redirected",
        {Anomaly.DUPLICATE, Anomaly.LOSS, Anomaly.UNPROCESSED},
    ),
    (
        asked({"ack_mode": TRANSACTED}, [LINK_LOSS]),
        "ack_call.unacknowledged consumer_commit_called: allowed",
        {Anomaly.RESURRECTION},
    ),
    (
        asked(UP_TO | {"listener_exception": "swallow"}, [THROWS], max_faults=2),
        "ack_call.unacknowledged delivered_clear(later): deleted",
        {Fact.ACKNOWLEDGED_AHEAD},
    ),
    (
        asked({"ack_mode": TRANSACTED, "rollback_requeues": False}, [THROWS]),
        "entry.acked_in_transaction consumer_rollback [3]: deleted",
        {Anomaly.UNPROCESSED, Anomaly.STUCK},
    ),
    (
        asked({"ack_mode": TRANSACTED, "rollback_requeues": False}, [THROWS]),
        "recovery.due consumer_recover: deleted",
        {Anomaly.DUPLICATE, Anomaly.REPROCESSED, Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.STUCK},
    ),
    (
        asked({"ack_mode": CLIENT} | UNSEEN, [LINK_LOSS]),
        "redelivery.unseen consumer_link_loss: redirected",
        {Anomaly.UNFLAGGED_DUPLICATE},
    ),
    (
        asked({"ack_mode": DUPS_OK}, [CRASH], sessions=2),
        "redelivery.clear dispatch_first [3]: redirected",
        {Anomaly.UNFLAGGED_DUPLICATE, Anomaly.REORDER},
    ),
)
"""For each mode (and for two sessions) a row that is changed, and what only one side reaches then."""


@pytest.mark.parametrize(
    ("system", "name", "difference"), MUTANTS, ids=[f"{system.sessions} {name}" for system, name, _ in MUTANTS]
)
def test_a_changed_row_is_noticed(system: System, name: str, difference: set[StrEnum]) -> None:
    assert compared(system).agree
    *_, mutant = (each for each in mutants.mutants(shipped()) if str(each) == name)
    changed = compared(system, mutants.apply(shipped(), mutant))
    assert not changed.agree
    assert changed.tables.witnesses.keys() ^ changed.oracle.reachable == difference
    assert all(f"only the {side}: " in str(changed) or not only for side, only in _only(changed).items())


def _only(one: Compared) -> dict[str, set[str]]:
    tables, oracle = set(one.tables.witnesses), {str(each) for each in one.oracle.reachable}
    return {"tables": tables - oracle, "oracle": oracle - tables}


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--systems", "2", "--sessions", "1", "--max-faults", "1", "--jobs", "1"]
    assert two_messages.main(arguments) == 0
    assert "2 systems\n" in capsys.readouterr().out
    name = "entry.ready dispatch_first(later): allowed"
    *_, mutant = (each for each in mutants.mutants(shipped()) if str(each) == name)
    changed = mutants.apply(shipped(), mutant)
    monkeypatch.setattr(two_messages, "shipped", lambda: changed)
    assert two_messages.main(arguments) == 1
    assert "only the tables: reorder: send(m1)" in capsys.readouterr().out
