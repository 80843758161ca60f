"""A fault in the midst of a simulated run: what is lost, repeated and marked, and when the rate is back."""

import json
from fractions import Fraction
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.cli._simulate import FAULTS as OFFERED
from ackfsm.rates.simulation import FAULTS, FaultRun, simulate, simulate_fault
from ackfsm.rates.timing import Workload
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.whole import in_turn

MILLISECOND = Fraction(1, 1000)
WORK = Workload(rtt=MILLISECOND, sync_time=MILLISECOND, bandwidth=Fraction(2**30), bandwidth_back=Fraction(2**30))


def broken(
    profile: str, fault: str, messages: int = 1_000, at: int = 200, work: Workload = WORK, **settings: object
) -> FaultRun:
    """A run of which the fault strikes after ``at`` milliseconds, and is repaired 100 ms later."""
    configuration = shipped().configure(profile, settings)
    times: dict[str, Any] = {"at": at * MILLISECOND, "recovery": 100 * MILLISECOND}
    return simulate_fault(shipped(), configuration, work, messages, fault=fault, **times)


def test_a_crash_stops_a_blocking_producer_until_the_repair_and_nothing_confirmed_is_lost() -> None:
    found = broken("jms", "broker_crash")
    assert (found.lost, found.in_doubt, found.resent, found.waiting) == (0, 1, 0, 0)
    without = simulate(shipped(), shipped().configure("jms"), WORK, 1_000).publish
    for side in (found.publish, found.deliver):
        assert side.before == pytest.approx(without, rel=0.02)
        assert side.after == pytest.approx(without, rel=0.02)
        assert side.back == pytest.approx(0.1, abs=0.003)


def test_what_is_not_stored_is_lost_by_a_crash_and_not_by_a_connection() -> None:
    unconfirmed: dict[str, Any] = {"delivery_mode": "NON_PERSISTENT", "messages": 2_000, "at": 10}
    found = broken("artemis", "broker_crash", **unconfirmed)
    away = 89_478 * (WORK.rtt + WORK.transmission_back)
    assert found.lost == pytest.approx(float(away), rel=0.05), "what was on its way, a round trip of messages"
    assert broken("artemis", "consumer_link_loss", **unconfirmed).lost == 0


def test_who_sends_again_has_duplicates_and_no_doubts() -> None:
    window: dict[str, Any] = {"publish_window": 50, "messages": 1_000, "at": 15}
    again = broken("solace", "producer_link_loss", **window, resend_in_doubt=True)
    assert (again.resent, again.in_doubt, again.lost) == (50, 0, 0)
    assert again.duplicated > 0
    assert again.unmarked == again.duplicated, "the broker knows nothing of the copy that it had before"
    alone = broken("solace", "producer_link_loss", **window, resend_in_doubt=False)
    assert (alone.resent, alone.in_doubt, alone.duplicated) == (0, 50, 0)


def test_a_consumer_that_comes_back_gets_marked_what_it_had_not_acknowledged() -> None:
    work = Workload(rtt=MILLISECOND, messages_per_acknowledge=20)
    settings: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "send_mode": "blocking"}
    found = broken("artemis", "consumer_link_loss", work=work, **settings)
    assert found.duplicated > 0
    assert (found.unmarked, found.lost) == (0, 0)
    assert found.redelivered >= found.duplicated
    assert found.publish.back is not None
    assert found.publish.back < 0.01, "the producer's connection is another"
    assert found.deliver.back == pytest.approx(0.1, abs=0.01)


def test_a_transaction_in_doubt_is_repeated_where_the_tables_say_so() -> None:
    work = Workload(rtt=MILLISECOND, sync_time=MILLISECOND, messages_per_commit=10)
    once = broken("jms", "broker_crash", work=work, at=51, ack_mode="SESSION_TRANSACTED")
    assert (once.in_doubt + once.undone, once.resent, once.lost) == (10, 0, 0)
    again = broken("qpid-jms", "broker_crash", work=work, at=51, ack_mode="SESSION_TRANSACTED")
    assert (again.in_doubt, again.resent, again.lost) == (0, 10, 0)


MODES = ("INDIVIDUAL_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED")


@pytest.mark.parametrize(("mode", "fault"), in_turn(MODES, [*FAULTS], 1))
def test_at_the_end_nothing_is_left_in_the_queue(mode: str, fault: str) -> None:
    work = Workload(rtt=MILLISECOND, messages_per_acknowledge=7, messages_per_commit=7)
    assert broken("jms", fault, 201, 25, work, ack_mode=mode).waiting == 0


def test_the_same_seed_is_the_same_run() -> None:
    assert broken("artemis", "broker_crash", at=100) == broken("artemis", "broker_crash", at=100)


@pytest.mark.parametrize(
    ("fault", "work", "at", "said"),
    [
        ("fire", WORK, 100, "no fault is called 'fire' here"),
        ("broker_crash", Workload(producers=2), 100, "one producer"),
        ("broker_crash", Workload(group_commit=False), 100, "group commit"),
        ("broker_crash", WORK, 100_000, "all 1,000 messages were through after"),
    ],
)
def test_what_cannot_be_run_is_refused(fault: str, work: Workload, at: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        broken("jms", fault, work=work, at=at)


def test_the_command_tells_the_fault(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--rtt", "1ms", "--simulate", "400", "--fault-at", "120ms", "--recovery", "50ms"]
    assert cli.main([*words, "--fault", "producer_link_loss", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["simulated"]["fault"]
    assert (found["fault"], found["at"], found["recovery"]) == ("producer_link_loss", 0.12, 0.05)
    assert found["publish"]["back"] == pytest.approx(0.05, abs=0.003)
    assert cli.main(words) == 0
    screen = capsys.readouterr().out
    assert max(map(len, screen.splitlines())) <= 80
    assert "broker_crash after 120 ms, repaired 50 ms later" in screen
    assert "lost: 0" in screen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fault-at", "1s"], "--fault-at is for a simulation; add --simulate N, or leave --fault-at out"),
        (["--simulate", "9", "--fault", "broker_crash"], "--fault is of a fault; say with --fault-at TIME when"),
        (["--simulate", "9", "--recovery", "1s"], "--recovery is of a fault; say with --fault-at TIME when"),
        (["--simulate", "9", "--fault-at", "soon"], "--fault-at: 'soon' is no quantity"),
        (["--simulate", "9", "--fault-at", "1s", "--recovery", "x"], "--recovery: 'x' is no quantity"),
        (["--simulate", "9", "--fault-at", "1s", "--fault", "broker_crsh"], "(did you mean broker_crash?)"),
        (
            ["--simulate", "100001", "--fault-at", "1s"],
            "--simulate: 100,001 messages are too many; take at most 100,000",
        ),
        (["--simulate", "9", "--fault-at", "1s"], "--fault-at: all 9 messages were through after"),
        (
            ["--simulate", "9", "--fault-at", "1ms", "--producers", "2"],
            "--fault-at: a fault is simulated with one producer",
        ),
    ],
)
def test_what_is_no_fault_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert cli.main(["plan", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_command_offers_the_faults_that_there_are() -> None:
    assert tuple(FAULTS) == OFFERED
