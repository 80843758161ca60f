"""The pytest plugin ends an application that would not end, and says where it stood."""

from __future__ import annotations

import importlib.util
import signal
import threading

import pytest

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import TWO, Run, run
from model_tests.support.whole import in_turn

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]

_WAITS = "*the application waits for ever: it has made 10,000 calls in a row, the last of them "


def test_who_polls_for_ever_is_told_the_call_and_the_remedy(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            def application(connection):
                consumer = connection.session().consumer("q")
                while True:
                    message = consumer.receive(timeout=1)
                    if message is not None:
                        message.acknowledge()
            ackfsm.send("q", "m")
            ackfsm.run(application)
        def test_the_next():
            pass
        """
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"{_WAITS}Consumer.receive(timeout=1), *Let it return when receive() gives None*"])


def test_who_gives_up_after_a_while_is_right(run: Run) -> None:
    run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
        def test(ackfsm):
            def application(connection):
                consumer = connection.session().consumer("q")
                idle = 0
                while idle < 500:
                    message = consumer.receive(timeout=0.1)
                    idle += message is None
                    if message is not None:
                        ackfsm.processed(message)
                        message.acknowledge()
            ackfsm.send("q", "m")
            ackfsm.run(application)
        """
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize(("nested", "catching"), in_turn([False, True], ["except:", "except BaseException:"], 1))
def test_who_catches_everything_is_ended_all_the_same(run: Run, catching: str, nested: bool) -> None:  # noqa: FBT001 - a parameter of the test
    loop = f"""
def loop(consumer):
    while True:
        try:
            message = consumer.receive(timeout=1)
            if message is not None:
                message.acknowledge()
        {catching}
            pass
def supervised(consumer):
    while True:
        try:
            loop(consumer)
        {catching}
            pass
"""
    result = run(
        f"""{loop}
@SETTINGS
@pytest.mark.ackfsm_faults("consumer_crash")
def test(ackfsm):
    ackfsm.send("q", "m")
    ackfsm.run(lambda connection: {"supervised" if nested else "loop"}(connection.session().consumer("q")))
def test_the_next():
    pass
"""
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"{_WAITS}Consumer.receive(timeout=1), *"])


def test_a_process_that_goes_on_after_its_death_is_named(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            def stubborn(connection):
                consumer = connection.session().consumer("q")
                while True:
                    try:
                        message = consumer.receive()
                        if message is None:
                            return
                        message.acknowledge()
                    except:
                        pass
            ackfsm.send("q", "m")
            ackfsm.run(stubborn)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*application-1 has crashed, and it has caught ProcessCrashed 1,000 times. *catch Exception*",
            "fault point *:consumer_crash: *",
            "again: pytest *--ackfsm-point=*:consumer_crash",
        ]
    )


def test_who_waits_for_ever_for_a_message_that_a_fault_has_taken_has_found_something(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
        def test(ackfsm):
            done = []
            def application(connection):
                consumer = connection.session().consumer("q")
                while len(done) < 2:
                    message = consumer.receive(timeout=1)
                    if message is not None:
                        message.acknowledge()
                        ackfsm.processed(message)
                        done.append(message)
            ackfsm.send("q", "a", "b")
            ackfsm.run(application)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"{_WAITS}Consumer.receive(timeout=1), *",
            "fault point 8:consumer_crash: *",
            "unprocessed of outside.1-1: *(the test says never)",
            "*X consumer_crash",
            "again: pytest *--ackfsm-point=8:consumer_crash",
        ]
    )


def test_a_run_whose_end_the_test_catches_has_failed(run: Run) -> None:
    result = run(
        """
        def test(ackfsm):
            def application(connection):
                consumer = connection.session("AUTO_ACKNOWLEDGE", consumption="receive").consumer("q")
                while True:
                    consumer.poll()
            try:
                ackfsm.run(application)
            except BaseException:
                pass
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{_WAITS}*"])


def test_an_application_that_answers_its_own_messages_is_ended(run: Run) -> None:
    result = run(
        """
        @pytest.mark.ackfsm("jms", ack_mode="AUTO_ACKNOWLEDGE", delivery_mode="NON_PERSISTENT")
        def test(ackfsm, monkeypatch):
            monkeypatch.setattr("ackfsm.driving.pytest_plugin._watchdog._MOST_EVENTS", 1000)
            def application(connection):
                session = connection.session()
                consumer, producer = session.consumer("q"), session.producer("q")
                while (message := consumer.receive()) is not None:
                    producer.send(message.body)
            ackfsm.send("q", "m")
            ackfsm.run(application)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*after 1,000 events the application has not come to an end; *"])


_BUSY = """
    import threading, time
    @SETTINGS
    @pytest.mark.ackfsm_faults("consumer_crash", timeout=1)
    def test(ackfsm):
        ackfsm.send("q", "m")
        def stuck_here(message):
            while True:
                try:
                    BODY
                except:
                    pass
        ackfsm.run(lambda connection: consume(connection, stuck_here))
    def test_the_next():
        pass
"""


@pytest.mark.parametrize("body", ["pass", "time.sleep(1000)", "threading.Event().wait()"])
def test_a_loop_without_a_call_is_ended_by_the_clock(run: Run, body: str) -> None:
    before = signal.getsignal(signal.SIGALRM)
    result = run(_BUSY.replace("BODY", body))
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["*not come to an end after 1 seconds of the clock, and is in stuck_here (test_*.py:*); *--ackfsm-timeout=*"]
    )
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_the_option_goes_for_tests_without_faults(run: Run) -> None:
    result = run(
        """
        def test(ackfsm):
            def application(connection):
                while True:
                    pass
            ackfsm.run(application)
        """,
        "--ackfsm-timeout=1",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*after 1 seconds of the clock, and is in application *"])


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_workers_share_the_tests_and_end_what_would_not_end(run: Run) -> None:
    result = run(TWO.replace("def test(", "def test_two(") + _BUSY.replace("BODY", "pass"), "-n2")
    result.assert_outcomes(failed=2, passed=2)
    result.stdout.fnmatch_lines(["*after 1 seconds of the clock, and is in stuck_here *"])
    result.stdout.fnmatch_lines(["ackfsm: * fault points tried in 3 tests"])


def test_beside_the_main_thread_it_is_ended_too(run: Run) -> None:
    result = run(
        """
        import threading, time
        @SETTINGS
        def test(ackfsm):
            ackfsm.send("q", "m")
            def stuck_here(message):
                while True:
                    try:
                        while True:
                            pass
                    except:
                        pass
            def runs():
                with pytest.raises(BaseException, match="after 1 seconds of the clock"):
                    ackfsm.run(lambda connection: consume(connection, stuck_here))
            thread = threading.Thread(target=runs)
            thread.start()
            thread.join()
            assert threading.active_count() == 1
        @SETTINGS
        def test_in_the_main_thread(ackfsm):
            ackfsm.send("q", "m")
            def stuck_here(message):
                while True:
                    try:
                        time.sleep(1000)
                    except:
                        pass
            ackfsm.run(lambda connection: consume(connection, stuck_here))
        def test_the_next():
            pass
        """,
        "--ackfsm-timeout=1",
    )
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["*after 1 seconds of the clock, and is in stuck_here *"])
    assert threading.current_thread() is threading.main_thread()


def test_the_alarm_of_somebody_else_rings_in_its_time(run: Run) -> None:
    run(
        """
        import signal, time
        def test(ackfsm):
            heard = []
            signal.signal(signal.SIGALRM, lambda *_: heard.append("early" if not after else "late"))
            after = []
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
            def application(connection):
                connection.session("AUTO_ACKNOWLEDGE", consumption="receive").producer("q").send(b"m")
                while not heard:
                    pass
            ackfsm.run(application, leaving=["q"])
            after.append(1)
            until = time.monotonic() + 20
            while heard.count("late") < 3 and time.monotonic() < until:
                time.sleep(0.01)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            assert heard[0] == "early"
            assert heard.count("late") >= 3, "its interval is kept"
        """
    ).assert_outcomes(passed=1)


def test_at_the_prompt_of_a_debugger_the_clock_waits(run: Run) -> None:
    run(
        """
        import time
        debugger = {"__name__": "pdb", "time": time}
        exec("def prompt():\\n until = time.monotonic() + 1.5\\n while time.monotonic() < until: pass", debugger)
        def test(ackfsm):
            def application(connection):
                debugger["prompt"]()
                connection.session().producer("q").send(b"m")
            ackfsm.run(application, leaving=["q"])
        """,
        "--ackfsm-timeout=1",
    ).assert_outcomes(passed=1)


def test_the_end_of_one_run_does_not_come_again_in_another(run: Run) -> None:
    run(
        """
        import gc
        kept = []
        def test_ends(ackfsm):
            def application(connection):
                consumer = connection.session("AUTO_ACKNOWLEDGE", consumption="receive").consumer("q")
                try:
                    while True:
                        consumer.poll()
                except BaseException as error:
                    kept.append(error)
            with pytest.raises(BaseException, match="waits for ever"):
                ackfsm.run(application)
        @SETTINGS
        def test_the_next(ackfsm):
            ackfsm.send("q", "a", "b")
            done = []
            def work(message):
                kept.clear()
                gc.collect()
                done.append(message.body)
            ackfsm.run(lambda connection: consume(connection, work))
            assert done == [b"a", b"b"]
        """
    ).assert_outcomes(failed=1, passed=1)
