"""The pytest plugin, as its users run it: without faults, and what it refuses."""

from __future__ import annotations

import pytest

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import TWO, Run, example, run

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]


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
    result.stdout.fnmatch_lines(["*the application was started * times and leaves 1 message in 'q'"])


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
        ('@pytest.mark.ackfsm_faults("broker_kill", "rejection")', _RUN, "rejection can strike nowhere in this run *"),
        (
            '@pytest.mark.ackfsm_faults("broker_kill")',
            "ackfsm.send('q', 'm')",
            "*call ackfsm.run(application) in the test",
        ),
        ('@pytest.mark.ackfsm("jms", colour="red")', _RUN, "the marker ackfsm: there is no setting 'colour'*"),
        ('@pytest.mark.ackfsm("jms", "ems")', _RUN, "the marker ackfsm: the marker ackfsm has one name, *"),
        ("@pytest.mark.ackfsm(pace=object())", _RUN, "*pace is used by every run of the test; *"),
        ("@pytest.mark.ackfsm(like=1)", _RUN, "*like=... is not for a marker; *"),
        ('@pytest.mark.ackfsm(seed="x")', _RUN, "the marker ackfsm: seed cannot be 'x'; *"),
        ('@pytest.mark.ackfsm_faults("consumer_crush")', _RUN, "*'consumer_crush' (did you mean consumer_crash?); *"),
        ('@pytest.mark.ackfsm_faults(never=["lost"])', _RUN, "*'lost' (did you mean loss?); *"),
        ("@pytest.mark.ackfsm_faults(never=[1])", _RUN, "there is no anomaly 1; *"),
        ("@pytest.mark.ackfsm_faults(never=5)", _RUN, "never=5 is no list of anomalies; *"),
        ("@pytest.mark.ackfsm_faults(timeout=0)", _RUN, "timeout cannot be 0; it is a number of seconds above 0 *"),
        (
            "@pytest.mark.ackfsm_faults('broker_kill')\n@pytest.mark.ackfsm_faults('consumer_crash')",
            _RUN,
            "the marker ackfsm_faults stands here more than once; name all faults in one",
        ),
        ("", "ackfsm.send('q')", "*ackfsm.send('q') sends nothing; *"),
        ("", "ackfsm.send('q', 'm', 5)", "*a body is text or bytes, not an object of type int"),
        ("", "ackfsm.send('q', '\\ud800')", "*is no body: half a character *"),
        ("", "ackfsm.run('app')", "*'app' cannot be called"),
        ("", "ackfsm.run(print, leaving='audit')", "*leaving='audit' is no list of queues; *"),
        ("", "ackfsm.run(print, leaving=[5])", "*leaving has an object of type int; it is a list of names of queues"),
        ("", "ackfsm.receive_all(5)", "*the name of a queue cannot be 5; *"),
        ("", "ackfsm.processed(5)", "*ackfsm.processed() takes a message or its id, not *"),
        (
            "",
            "ackfsm.send('q', 'm', message_id='order-1'); ackfsm.processed('order-l')",
            "*no message 'order-l' was sent (did you mean 'order-1'[?])",
        ),
        (
            '@pytest.mark.ackfsm("jms", send_mode="asynchronous")',
            "ackfsm.broker.queue('q').refuse_next = 1; ackfsm.send('q', 'a')",
            "*'outside.1-1' is not in the queue: its outcome is rejected",
        ),
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
        ("--ackfsm-timeout=0", "*--ackfsm-timeout is a number of seconds above 0 *"),
        ("--ackfsm-timeout=nan", "*--ackfsm-timeout is a number of seconds above 0 *"),
    ],
)
def test_options_are_checked_at_the_start(run: Run, option: str, said: str) -> None:
    result = run(TWO, option)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_point_that_is_not_in_the_run(run: Run) -> None:
    result = run(example("acknowledged_when_done"), "--ackfsm-point=99:consumer_crash")
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
            monkeypatch.setattr("ackfsm.driving.pytest_plugin.importlib.util.find_spec", lambda name: None)
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
            heavy = {"numpy", "pyarrow", "yaml", "ackfsm.engine", "ackfsm.tables", "ackfsm.verify"}
            assert "ackfsm.driving.pytest_plugin" in sys.modules
            assert not heavy & set(sys.modules)
        """
    )
    result = pytester.runpytest_subprocess("-p", "ackfsm.driving.pytest_plugin", "-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("ackfsm:*")


def test_the_fixture_of_somebody_else_is_not_taken_for_that_of_the_plugin(run: Run) -> None:
    result = run(
        """
        @pytest.fixture
        def ackfsm():
            return None
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            pass
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the marker ackfsm_faults is for the fixture ackfsm of this plugin, *"])


def test_a_property_of_a_test_is_not_taken_for_a_count(run: Run) -> None:
    result = run("def test(record_property):\n    record_property('ackfsm_points', 'many of few')\n")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("ackfsm:*")
