"""The pytest plugin, as its users run it: small suites, run by pytest itself."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from model_tests._tables import shipped
from model_tests.engine_calls import shared_wiring

__all__ = ["shared_wiring"]

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parent / "examples"

Run = Callable[..., pytest.RunResult]

_HEAD = """
import pytest
from ackfsm.engine import JMSException

SETTINGS = pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE")

def consume(connection, work):
    consumer = connection.session().consumer("q")
    while (message := consumer.receive()) is not None:
        work(message)
        message.acknowledge()
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest with the plugin on the source of a test module, in this process."""
    monkeypatch.setattr("ackfsm.tables.load", shipped)

    def runs(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(_HEAD + textwrap.dedent(source))
        return pytester.runpytest_inprocess("-p", "ackfsm.pytest_plugin", "-p", "no:cacheprovider", *options)

    return runs


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


# What it finds


def test_a_message_that_is_acknowledged_too_early_is_lost_from_the_event_on_that_settles_it(run: Run) -> None:
    result = run(_example("acknowledged_too_early"))
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
    result = run(_example("acknowledged_when_done"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ackfsm: 38 of 38 fault points tried in 1 test"])


def test_an_assertion_that_fails_at_a_point_says_so(run: Run) -> None:
    result = run(_example("charged_twice"))
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
    run(_example("charged_once")).assert_outcomes(passed=1)


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
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(("never", "outcome"), [("unprocessed", "passed"), ("reprocessed", "failed")])
def test_a_listener_throws_before_its_work_and_after(run: Run, never: str, outcome: str) -> None:
    result = run(
        f"""
        @pytest.mark.ackfsm("jms", ack_mode="AUTO_ACKNOWLEDGE")
        @pytest.mark.ackfsm_faults("listener_exception", never=["{never}"])
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: connection.session().consumer("q", listener=ackfsm.processed))
        """
    )
    result.assert_outcomes(**{outcome: 1})


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
        """
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "SESSION_TRANSACTED", "NO_ACKNOWLEDGE"])
def test_what_was_sent_to_others_is_taken_in_every_mode(run: Run, mode: str) -> None:
    run(
        f"""
        @pytest.mark.ackfsm("jms", ack_mode="{mode}")
        def test(ackfsm):
            ackfsm.send("q", "a", "b")
            assert [message.body for message in ackfsm.receive_all("q")] == [b"a", b"b"]
            assert ackfsm.receive_all("q") == []
        """
    ).assert_outcomes(passed=1)


# How it runs


def test_a_single_point_is_run_again(run: Run) -> None:
    again = run(_example("acknowledged_too_early"), "--ackfsm-point=8:consumer_crash")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["fault point 8:consumer_crash: *", "ackfsm: 1 of 38 fault points tried in 1 test"])
    before = run(_example("acknowledged_too_early"), "--ackfsm-point=7:consumer_crash")
    before.assert_outcomes(passed=1)


def test_a_sample_is_one_and_says_so(run: Run) -> None:
    result = run(_example("acknowledged_when_done"), "--ackfsm-points=5", "--ackfsm-seed=3")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ackfsm: 5 of 38 fault points tried in 1 test; a sample by --ackfsm-seed=3"])


_TWO = """
    @SETTINGS
    @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
    @pytest.mark.parametrize("early", [True, False])
    def test(ackfsm, early):
        def work(message):
            if early:
                message.acknowledge()
            ackfsm.processed(message)
        def application(connection):
            consumer = connection.session().consumer("q")
            while (message := consumer.receive()) is not None:
                work(message)
                if not early:
                    message.acknowledge()
        ackfsm.send("q", "m")
        ackfsm.run(application)
"""


def test_parameters_are_tests_of_their_own(run: Run) -> None:
    run(_TWO).assert_outcomes(failed=1, passed=1)


def test_the_first_failure_may_be_the_last_test(run: Run) -> None:
    run(_TWO, "-x").assert_outcomes(failed=1)


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_workers_share_the_tests(run: Run) -> None:
    result = run(_TWO, "-n2")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["ackfsm: * fault points tried in 2 tests"])


def test_reports_can_be_sent_from_a_worker(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import json
        def pytest_runtest_logreport(report):
            json.dumps(report._to_json())
        """
    )
    run(_TWO).assert_outcomes(failed=1, passed=1)


def test_an_expected_failure_is_one_if_some_point_fails(run: Run) -> None:
    run(_TWO.replace("@SETTINGS", "@SETTINGS\n    @pytest.mark.xfail(strict=True)")).assert_outcomes(
        xfailed=1, failed=1
    )


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


# Without faults


def test_the_broker_alone(run: Run) -> None:
    run(
        """
        @pytest.mark.ackfsm("qpid-jms", ack_mode="CLIENT_ACKNOWLEDGE", seed=7)
        class TestBroker:
            @pytest.mark.ackfsm(prefetch=2)
            def test(self, ackfsm_broker):
                configuration = ackfsm_broker.configuration
                assert (configuration.profile, configuration.ack_mode) == ("qpid-jms", "CLIENT_ACKNOWLEDGE")
                assert configuration.prefetch == 2
        """
    ).assert_outcomes(passed=1)


def test_a_run_without_the_marker_is_verified_too(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("ackfsm:*")


def test_an_application_that_leaves_messages_is_told_so(run: Run) -> None:
    result = run(
        """
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: connection.session("CLIENT_ACKNOWLEDGE", consumption="receive").consumer("q"))
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the application was started * times and leaves 1 messages in q"])


def test_its_own_errors_leave_the_application(run: Run) -> None:
    result = run(
        """
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.run(lambda connection: connection.session("NONSENSE"))
        """
    )
    result.stdout.fnmatch_lines(["*InputError: ack_mode cannot be 'NONSENSE'*"])


# What it refuses


_RUN = 'ackfsm.send("q", "m"); ackfsm.run(lambda connection: consume(connection, ackfsm.processed))'


@pytest.mark.parametrize(
    ("markers", "body", "said"),
    [
        ('@pytest.mark.ackfsm_faults("flood")', _RUN, "there is no fault 'flood'; it is one of broker_crash, *"),
        ('@pytest.mark.ackfsm_faults(never=["harm"])', _RUN, "there is no anomaly 'harm'; *"),
        ('@pytest.mark.ackfsm_faults(never="loss")', _RUN, "never='loss' is no list of anomalies; *"),
        ('@pytest.mark.ackfsm_faults(ever=["loss"])', _RUN, "the marker ackfsm_faults has no 'ever'; *"),
        ('@pytest.mark.ackfsm_faults("rejection")', _RUN, "rejection can strike nowhere in this run (*not send"),
        ('@pytest.mark.ackfsm_faults("broker_kill")', "ackfsm.send('q')", "*call ackfsm.run(application) in the test"),
        ('@pytest.mark.ackfsm("jms", colour="red")', _RUN, "the marker ackfsm: there is no setting 'colour'*"),
        ('@pytest.mark.ackfsm("jms", "ems")', _RUN, "the marker ackfsm: the marker ackfsm has one name, *"),
        ("@pytest.mark.ackfsm(pace=object())", _RUN, "*pace is used by every run of the test; *"),
        ("@pytest.mark.ackfsm(history=False)", _RUN, "*needs a broker that keeps a history*"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run: Run, markers: str, body: str, said: str) -> None:
    result = run(f"@SETTINGS\n{markers}\ndef test(ackfsm):\n    {body}\n")
    assert sum(result.parseoutcomes().get(kind, 0) for kind in ("failed", "errors", "error")) == 1
    result.stdout.fnmatch_lines([said])


def test_the_marker_needs_the_fixture(run: Run) -> None:
    result = run("@pytest.mark.ackfsm_faults('broker_kill')\ndef test(ackfsm_broker):\n    pass\n")
    result.stdout.fnmatch_lines(["the marker ackfsm_faults is for tests that use the fixture ackfsm"])
    result.assert_outcomes(errors=1)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--ackfsm-point=8", "*--ackfsm-point '8' is not N:fault, for example 12:consumer_crash"),
        ("--ackfsm-points=0", "*--ackfsm-points is a whole number from 1"),
    ],
)
def test_options_are_checked_at_the_start(run: Run, option: str, said: str) -> None:
    result = run(_TWO, option)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_point_that_is_not_in_the_run(run: Run) -> None:
    result = run(_example("acknowledged_when_done"), "--ackfsm-point=99:consumer_crash")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["--ackfsm-point=99:consumer_crash: there is no such point in a run of * events"])


def test_a_run_that_is_not_the_same_each_time_shows_nothing(run: Run) -> None:
    result = run(
        """
        runs = []
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            runs.append(1)
            ackfsm.send("q", *["m"] * len(runs))
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the run is not the same each time (event * was *"])


def test_without_what_verification_needs_it_says_so(run: Run) -> None:
    result = run(
        """
        @pytest.fixture(autouse=True)
        def bare(monkeypatch):
            monkeypatch.setattr("ackfsm.pytest_plugin.importlib.util.find_spec", lambda name: None)
        def test(ackfsm):
            pass
        """
    )
    result.stdout.fnmatch_lines(["*pip install 'ackfsm?verify?'"])
    result.assert_outcomes(errors=1)


def test_who_does_not_use_it_pays_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test():
            heavy = {"numpy", "pyarrow", "yaml", "ackfsm.engine", "ackfsm.tables", "ackfsm.history"}
            assert "ackfsm.pytest_plugin" in sys.modules
            assert not heavy & set(sys.modules)
        """
    )
    result = pytester.runpytest_subprocess("-p", "ackfsm.pytest_plugin", "-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("ackfsm:*")
