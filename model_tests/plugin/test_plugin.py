"""The pytest plugin, as its users run it: what it finds, and how it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import SOME, TWO, Run, example, run

if TYPE_CHECKING:
    import pytest

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]


# What it finds


def test_a_message_that_is_acknowledged_too_early_is_lost_from_the_event_on_that_settles_it(run: Run) -> None:
    result = run(example("acknowledged_too_early"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "fault point 8:consumer_crash: the application's process dies after event 8, settle of outside.1-1",
            "unprocessed of outside.1-1: the message was delivered to the application, but *(the test says never)",
            "strongest guarantee that stands: *",
            "*producer * broker * journal * consumer",
            "* 7 * acknowledge",
            "* 8> *<-* settle -*|",
            "*X consumer_crash",
            "sequenceDiagram",
            "*consumer->>broker: 8 settle",
            "*again: pytest *::test_every_order_is_booked --ackfsm-point=8:consumer_crash",
            "ackfsm: 8 of 38 fault points tried in 1 test",
        ]
    )


def test_one_that_is_acknowledged_when_it_is_done_is_safe_at_every_point(run: Run) -> None:
    result = run(example("acknowledged_when_done"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ackfsm: 38 of 38 fault points tried in 1 test"])


def test_an_assertion_that_fails_at_a_point_says_so(run: Run) -> None:
    result = run(example("charged_twice"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: assert ?b'milk', b'tea', b'tea'? == ?b'milk', b'tea'?",
            "*fault point 6:consumer_crash: * after event 6, processed of outside.1-1",
            "*reprocessed of outside.1-1: *",
            "*--ackfsm-point=6:consumer_crash",
        ]
    )


def test_one_that_remembers_what_it_has_done_is_safe(run: Run) -> None:
    run(example("charged_once")).assert_outcomes(passed=1)


def test_nobody_catches_a_crash_as_an_exception(run: Run) -> None:
    run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            seen = []
            def stubborn(connection):
                while True:
                    try:
                        return consume(connection, ackfsm.processed)
                    except Exception as error:
                        seen.append(error)
            ackfsm.send("q", "m")
            ackfsm.run(stubborn)
            assert not seen
        """
    ).assert_outcomes(passed=1)


def test_all_connections_of_a_process_die_with_it(run: Run) -> None:
    run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
        def test(ackfsm):
            lives = []
            def bridge(connection):
                lives.append(connection.broker.connect("second"))
                producer = lives[-1].session("AUTO_ACKNOWLEDGE").producer("out")
                consume(connection, lambda m: (producer.send(m.body), ackfsm.processed(m)))
            ackfsm.send("q", "m")
            ackfsm.run(bridge)
            for dead in lives[:-1]:
                with pytest.raises(BaseException, match="the process application-1 has crashed"):
                    dead.session()
            assert {m.body for m in ackfsm.receive_all("out")} == {b"m"}
        """
    ).assert_outcomes(passed=1)


def test_a_transaction_moves_a_message_once_whatever_fails(run: Run) -> None:
    result = run(
        """
        @pytest.mark.ackfsm("artemis", ack_mode="SESSION_TRANSACTED")
        @pytest.mark.ackfsm_faults("broker_crash", "consumer_crash", "producer_link_loss",
                                   never=["loss", "unprocessed", "torn_transaction"])
        def test(ackfsm):
            def move(connection):
                session = connection.session()
                consumer, producer = session.consumer("in"), session.producer("out")
                while (message := consumer.receive()) is not None:
                    producer.send(message.body)
                    session.commit()
            ackfsm.send("in", "a", "b")
            ackfsm.run(move)
            assert sorted(m.body for m in ackfsm.receive_all("out")) == [b"a", b"b"]
        """,
        *SOME,
    )
    result.assert_outcomes(passed=1)


def test_a_listener_throws_before_its_work_and_after(run: Run) -> None:
    run(
        """
        pytestmark = pytest.mark.ackfsm("jms", ack_mode="AUTO_ACKNOWLEDGE")
        def listening(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: connection.session().consumer("q", listener=ackfsm.processed))
        @pytest.mark.ackfsm_faults("listener_exception", never=["unprocessed"])
        def test_passes(ackfsm):
            listening(ackfsm)
        @pytest.mark.xfail(strict=True, raises=pytest.fail.Exception)
        @pytest.mark.ackfsm_faults("listener_exception", never=["reprocessed"])
        def test_fails(ackfsm):
            listening(ackfsm)
        """
    ).assert_outcomes(passed=1, xfailed=1)


def test_a_rejection_meets_what_the_application_sends(run: Run) -> None:
    result = run(
        """
        from ackfsm.engine import MessageRejected
        rejected = []
        @pytest.mark.ackfsm("artemis", ack_mode="AUTO_ACKNOWLEDGE")
        @pytest.mark.ackfsm_faults("rejection")
        def test(ackfsm):
            def publish(connection):
                producer = connection.session().producer("out")
                for body in b"1", b"2":
                    try:
                        producer.send(body)
                    except MessageRejected:
                        rejected.append(body)
                        producer.send(body)
            ackfsm.run(publish)
            assert sorted(m.body for m in ackfsm.receive_all("out")) == [b"1", b"2"]
        def test_each_once():
            assert rejected == [b"1", b"2"]
        """
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["ackfsm: 2 of 2 fault points tried in 1 test"])


def test_without_repairs_the_operator_starts_broker_and_application(run: Run) -> None:
    run(
        """
        @pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE", repairs=False)
        @pytest.mark.ackfsm_faults("broker_kill", "consumer_link_loss", "journal_failure", never=["unprocessed"])
        def test(ackfsm):
            ackfsm.send("q", "a", "b")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """,
        *SOME,
    ).assert_outcomes(passed=1)


def test_what_was_sent_to_others_is_taken_in_every_mode(run: Run) -> None:
    modes = ["AUTO_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "SESSION_TRANSACTED", "NO_ACKNOWLEDGE"]
    tests = [
        f"""
@pytest.mark.ackfsm("jms", ack_mode="{mode}")
def test_{mode}(ackfsm):
    ackfsm.send("q", "a", "b")
    assert [message.body for message in ackfsm.receive_all("q")] == [b"a", b"b"]
    assert ackfsm.receive_all("q") == []
"""
        for mode in modes
    ]
    run("".join(tests)).assert_outcomes(passed=len(modes))


# How it runs


def test_a_single_point_is_run_again(run: Run) -> None:
    again = run(example("acknowledged_too_early"), "--ackfsm-point=8:consumer_crash")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["fault point 8:consumer_crash: *", "ackfsm: 1 of 38 fault points tried in 1 test"])
    before = run(example("acknowledged_too_early"), "--ackfsm-point=7:consumer_crash")
    before.assert_outcomes(passed=1)


def test_a_sample_is_one_and_says_so(run: Run) -> None:
    result = run(example("acknowledged_when_done"), "--ackfsm-points=5", "--ackfsm-seed=3")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ackfsm: 5 of 38 fault points tried in 1 test; a sample by --ackfsm-seed=3"])


def test_the_first_failure_may_be_the_last_test(run: Run) -> None:
    run(TWO, "-x").assert_outcomes(failed=1)


def test_reports_can_be_sent_from_a_worker(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import json
        def pytest_runtest_logreport(report):
            json.dumps(report._to_json())
        """
    )
    run(TWO).assert_outcomes(failed=1, passed=1)


def test_an_expected_failure_is_one_if_some_point_fails(run: Run) -> None:
    run(TWO.replace("@SETTINGS", "@SETTINGS\n    @pytest.mark.xfail(strict=True)")).assert_outcomes(xfailed=1, failed=1)


def test_a_test_that_skips_is_skipped_and_one_that_fails_by_itself_fails(run: Run) -> None:
    run(
        """
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test_skips(ackfsm):
            pytest.skip("not today")
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test_fails(ackfsm):
            raise ValueError
        """
    ).assert_outcomes(skipped=1, failed=1)


def test_fixtures_of_the_function_are_fresh_for_each_run_and_others_live_on(run: Run) -> None:
    result = run(
        """
        made = []
        @pytest.fixture(scope="module")
        def wide():
            made.append("wide")
            yield
            made.append("wide is gone")
        @pytest.fixture
        def store(tmp_path):
            assert not list(tmp_path.iterdir())
            yield tmp_path
            made.append("store is gone")
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm, wide, store, monkeypatch, capsys, record_property):
            record_property("one", 1)
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, lambda m: (store / m.id).write_bytes(m.body)))
            assert [file.read_bytes() for file in store.iterdir()] == [b"m"]
        def test_afterwards(wide):
            assert made.count("wide") == 1 and made.count("store is gone") == 1 + 9, made
        """,
        "--junitxml=report.xml",
        "-ojunit_family=legacy",
    )
    result.assert_outcomes(passed=2)
    report = Path("report.xml").read_text(encoding="utf-8")
    assert report.count('name="one"') == 1
    assert 'name="ackfsm_points" value="9 of 9"' in report


def test_what_the_last_test_tears_down_may_fail(run: Run) -> None:
    run(
        """
        @pytest.fixture(scope="module")
        def wide():
            yield
            raise ValueError("too wide")
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm, wide):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """
    ).assert_outcomes(passed=1, errors=1)
