"""Small suites that use the pytest plugin, run by pytest in this process."""

from __future__ import annotations

import asyncio  # noqa: F401 - a run forgets what it has imported, and the C part of asyncio keeps the first
import textwrap
from collections.abc import Callable

import pytest

from model_tests.support.places import EXAMPLES
from model_tests.support.whole import WHOLE

SOME = () if WHOLE else ("--ackfsm-points=20",)
"""Options of a run of which some points tell what all do before a release."""


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
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest with the plugin on the source of a test module, in this process."""

    def runs(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(_HEAD + textwrap.dedent(source))
        return pytester.runpytest_inprocess("-p", "ackfsm.driving.pytest_plugin", "-p", "no:cacheprovider", *options)

    return runs


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


TWO = """
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
"""A test with two cases: in one the application acknowledges too early."""
