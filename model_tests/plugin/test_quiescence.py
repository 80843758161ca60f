"""The pytest plugin does not pass where nothing was tested, or where messages lie that nobody reads."""

from __future__ import annotations

import pytest

from model_tests.support.engine.calls import shared_wiring
from model_tests.support.plugin_runs import Run, run

__all__ = ["run", "shared_wiring"]

pytest_plugins = ["pytester"]

_BRIDGE = """
def bridge(source, target):
    def application(connection):
        session = connection.session()
        consumer, producer = session.consumer(source), session.producer(target)
        while (message := consumer.receive()) is not None:
            producer.send(message.body)
            message.acknowledge()
    return application
"""


def test_the_consumer_of_a_misspelt_queue_fails(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("broker_kill", never=["loss", "unprocessed", "stuck"])
        def test(ackfsm):
            def book(connection):
                consumer = connection.session().consumer("order")
                while (order := consumer.receive()) is not None:
                    order.acknowledge()
            ackfsm.send("orders", "tea", "milk")
            ackfsm.run(book)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*nothing was tested: in ackfsm.run() the application has neither received nor sent a message. *"]
    )
    said = (
        "2 messages that the test sent to 'orders' are left: the application consumes from 'order', and nobody from "
        "'orders'. Did you mean 'order'? Otherwise take it with ackfsm.receive_all('orders'), or say that it may stay: "
        "ackfsm.run(..., leaving=['orders'])"
    )
    assert said in result.stdout.str()


def test_a_queue_that_nobody_reads_fails_the_test_although_another_is_read(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash")
        def test(ackfsm):
            ackfsm.send("q", "m")
            ackfsm.send("invoices", "i")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["1 message that the test sent to 'invoices' is left: the application consumes from 'q', *"]
    )


@pytest.mark.parametrize(
    ("target", "afterwards", "outcome"),
    [
        ("out", "assert len(ackfsm.receive_all('out')) == 1", "passed"),
        ("outt", "ackfsm.receive_all('out')", "failed"),
        ("out", "", "failed"),
    ],
)
def test_what_the_application_sends_to_others_is_taken_or_missed(
    run: Run, target: str, afterwards: str, outcome: str
) -> None:
    result = run(
        f"""{_BRIDGE}
@SETTINGS
def test(ackfsm):
    ackfsm.send("in", "m")
    ackfsm.run(bridge("in", "{target}"))
    {afterwards}
"""
    )
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        result.stdout.fnmatch_lines([f"1 message that the application sent to '{target}' is left: *"])
    if target == "outt":
        result.stdout.fnmatch_lines(["*Did you mean 'out'[?] Otherwise take it with ackfsm.receive_all('outt')*"])


@pytest.mark.parametrize(("leaving", "outcome"), [("['audit']", "passed"), ("['audits']", "failed"), ("()", "failed")])
def test_messages_may_stay_where_the_test_says_so(run: Run, leaving: str, outcome: str) -> None:
    run(
        f"""{_BRIDGE}
@SETTINGS
@pytest.mark.ackfsm_faults("consumer_crash", never=["loss", "unprocessed", "stuck"])
def test(ackfsm):
    ackfsm.send("in", "m")
    ackfsm.run(bridge("in", "audit"), leaving={leaving})
"""
    ).assert_outcomes(**{outcome: 1})


def test_an_application_may_be_run_in_parts(run: Run) -> None:
    run(
        f"""{_BRIDGE}
@SETTINGS
@pytest.mark.ackfsm_faults("consumer_crash", "broker_crash", never=["loss", "unprocessed"])
def test(ackfsm):
    ackfsm.send("in", "m")
    ackfsm.run(bridge("in", "middle"))
    ackfsm.run(bridge("middle", "out"))
    assert {{m.body for m in ackfsm.receive_all("out")}} == {{b"m"}}
"""
    ).assert_outcomes(passed=1)


def test_what_is_sent_after_the_run_is_not_forgotten(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        def test(ackfsm):
            ackfsm.send("q", "a")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
            ackfsm.send("q", "b")
        def test_without_a_run(ackfsm):
            ackfsm.send("q", "b")
        """
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["1 message that the test sent to 'q' is left: * call ackfsm.run() when everything is *"]
    )


@pytest.mark.parametrize(
    "application",
    [
        "lambda connection: None",
        "lambda connection: connection.session().consumer('q').receive()",
        "lambda connection: (yield)",
    ],
)
def test_an_application_that_does_nothing_is_no_test(run: Run, application: str) -> None:
    result = run(
        f"""
        def test(ackfsm):
            ackfsm.run({application})
        @pytest.mark.ackfsm_faults("broker_kill")
        def test_with_faults(ackfsm):
            ackfsm.run({application})
        """
    )
    result.assert_outcomes(failed=2)
    said = "*the application is a generator*" if "yield" in application else "*nothing was tested: *"
    result.stdout.fnmatch_lines([said])


def test_what_is_left_stands_beside_an_assertion_that_fails(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        def test(ackfsm):
            ackfsm.send("q", "a")
            ackfsm.send("p", "b")
            ackfsm.run(lambda connection: consume(connection, ackfsm.processed))
            assert False
        """
    )
    result.stdout.fnmatch_lines(["*assert False", "*1 message that the test sent to 'p' is left: *"])


def test_a_fault_that_strikes_nothing_is_none(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("rejection")
        def test(ackfsm):
            def publish(connection):
                producer = connection.session().producer("out")
                producer.send(b"1")
                try:
                    producer.send(7)
                except Exception:
                    pass
            ackfsm.run(publish, leaving=["out"])
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the fault of point *:rejection had nothing to strike: *"])


def test_work_is_known_by_word_on_whatever_connection_it_came(run: Run) -> None:
    result = run(
        """
        @SETTINGS
        @pytest.mark.ackfsm_faults("consumer_crash", never=["unprocessed"])
        def test(ackfsm):
            def early(connection):
                consumer = connection.broker.connect("mine").session().consumer("q")
                while (message := consumer.receive()) is not None:
                    message.acknowledge()
                    ackfsm.processed(message)
            ackfsm.send("q", "m")
            ackfsm.run(early)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["unprocessed of outside.1-1: *"])


def test_the_crash_that_leaves_a_send_without_an_outcome_is_known_to_be_of_the_application(run: Run) -> None:
    result = run(
        _BRIDGE
        + """
        @SETTINGS
        @pytest.mark.ackfsm_faults("producer_crash", never=["missing_outcome"])
        def test(ackfsm):
            ackfsm.send("in", "tea")
            ackfsm.run(bridge("in", "out"), leaving=["out"])
        """.replace("\n        ", "\n")
    )
    result.assert_outcomes(passed=1)
