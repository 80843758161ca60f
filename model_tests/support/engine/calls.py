"""Calls on an engine that write themselves down: what is run is the very text that a counterexample prints."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.engine import Broker, JMSException, Message
from ackfsm.engine.core.model import EngineModel
from ackfsm.terms import Anomaly, Configuration, Destination, Verdict
from model_tests.support.tables import shipped

_IMPORTS = """\
import pytest

import ackfsm.engine
from ackfsm.engine import AtOnce, Broker, Shuffled, Timed
from model_tests.support.engine.calls import Application, assert_kept
from model_tests.support.engine.refinement import Refinement
from model_tests.support.tables import shipped
from model_tests.support.engine.invariants import Plain
"""


class Calls:
    """Lines of Python, each run when it is added; :meth:`as_test` is a test that runs them all.

    An error of the API (``JMSException`` and its kind) is an answer and is written down as such.  Any other error
    leaves with the test as a note.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {}
        self.failed = False
        self._run(_IMPORTS)

    def do(self, line: str) -> bool:
        """Run ``line``; whether it returned (and did not raise an error of the API)."""
        return self.answer(line) is None

    def answer(self, line: str) -> Exception | None:
        """Run ``line``; the error of the API that it raised."""
        try:
            self._run(line)
        except JMSException as error:
            self.lines.append(f"with pytest.raises(ackfsm.engine.{type(error).__name__}):\n    {line}")
            return error
        except Exception as error:
            self._fails(line, error)
            raise
        self.lines.append(line)
        return None

    def must(self, line: str) -> None:
        """Run ``line``, which nothing may raise."""
        try:
            self._run(line)
        except Exception as error:
            self._fails(line, error)
            raise
        self.lines.append(line)

    def check(self, line: str) -> None:
        """Run ``line``, an assertion: it stands in the test only if it fails."""
        self.must(line)
        self.lines.pop()

    def _fails(self, line: str, error: Exception) -> None:
        self.failed = True
        self.lines.append(line)
        error.add_note(f"A test that shows it:\n\n{self.as_test()}")

    def _run(self, line: str) -> None:
        exec(line, self.names)  # noqa: S102 - only text of the suites

    def as_test(self, name: str = "test_counterexample") -> str:
        """A test that does the same."""
        body = "\n".join(f"    {line}" for text in self.lines for line in text.splitlines())
        return f"{_IMPORTS}\n\ndef {name}() -> None:\n{body}\n"

    def replayed(self, without: str, after: str | None = None) -> Calls:
        """The same calls on another engine, without those that begin with ``without``; ``after`` the first one more."""
        again = Calls()
        for number, line in enumerate(self.lines):
            if not line.startswith(without):
                again.must(line)
            if number == 0 and after is not None:
                again.must(after)
        return again


class Application:
    """A listener that keeps what it was called with, and throws when it was told to."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.throw = 0

    def __call__(self, message: Message) -> None:
        """Take ``message``."""
        self.received.append(message)
        if self.throw:
            self.throw -= 1
            raise RuntimeError("the application fails")


@pytest.fixture(scope="package", autouse=True)
def shared_wiring() -> Iterator[None]:
    """All brokers of the folder take what they read from the tables from one place, made once."""
    model = EngineModel(shipped())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ackfsm.engine.broker.EngineModel", lambda spec: model if spec is shipped() else EngineModel(spec)
        )
        yield


def assert_kept(broker: Broker, *, anyone: bool = False) -> None:
    """Nothing is in the history of ``broker`` that the configuration promises absent, or that the tables do not allow.

    What needs two messages to show (an order, a count) is held to the promises alone: to search the tables for it takes
    too long.  What the tables themselves can reach, although it is promised absent, is no fault of an engine.
    With ``anyone`` sessions of several modes have told the history: it is held to what none of them allows.
    What a subscription that is not durable has missed is counted as lost: no line tells when somebody was subscribed.
    """
    specification = shipped()
    assert broker.history
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "history.jsonl"
        broker.history.write(file)
        recorded = verify.read(file)
        findings = verify.examine(recorded, specification, broker.configuration, tells_processed=True, hold=not anyone)
    told = "\n".join(broker.history)
    assert not findings.unreadable, f"{findings.unreadable}\n{told}"
    missing = broker.configuration.destination is Destination.NON_DURABLE_SUBSCRIPTION
    found = [
        anomaly
        for anomaly, finding in findings.anomalies.items()
        if finding.found and not (missing and anomaly in {Anomaly.LOSS, Anomaly.UNPROCESSED})
    ]
    if not found:
        return
    configurations = _configurations(broker) if anyone else [broker.configuration]
    allowed: dict[Anomaly, bool | None] = dict.fromkeys(Anomaly, False)
    for each in configurations:
        if not all(allowed[anomaly] for anomaly in found):  # a search takes its time
            here = verify.allowed(
                specification,
                each,
                findings.faults,
                actions=findings.actions,
                given_back_beside=findings.given_back_beside,
            )
            allowed = {anomaly: _either(allowed[anomaly], here[anomaly].answer) for anomaly in Anomaly}
    consumers = 1 + findings.given_back_beside
    made = (specification.promised_absent(each, consumers=consumers) for each in configurations)
    promised = set.intersection(*map(set, made))
    broken = [anomaly for anomaly in found if anomaly in promised and not allowed[anomaly]]
    assert not broken, f"{sorted(broken)} of {_examples(findings, found)}\n{told}"
    if missing:
        return
    result = verify.judge(findings, allowed)
    assert result.verdict is not Verdict.INVALID, f"{result.reasons}\n{told}"


def _configurations(broker: Broker) -> list[Configuration]:
    """Those of the modes that sessions of several kinds have."""
    return [
        broker.configure({"ack_mode": mode, "send_mode": send, "consumption": "receive"})
        for mode in ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED")
        for send in ("blocking", "asynchronous")
    ]


def _either(one: bool | None, other: bool | None) -> bool | None:  # noqa: FBT001 - three values, not a switch
    """Allowed if one allows it, not allowed if none does, and else undecided."""
    if one or other:
        return True
    return None if one is None or other is None else False


def _examples(findings: verify.Findings, found: list[Anomaly]) -> dict[str, tuple[str, ...]]:
    return {anomaly.value: findings.anomalies[anomaly].examples for anomaly in found}
