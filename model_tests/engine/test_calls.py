"""A counterexample is printed as a test that runs: it fails where the engine is wrong, and passes where it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ackfsm.engine import Broker, OutcomeUnknown
from ackfsm.engine.producer import Producer
from model_tests.engine.test_stateful import Engine
from model_tests.support.engine.calls import Calls


def run(text: str) -> None:
    """Run the test that ``text`` is."""
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - what the suites print
    names["test_counterexample"]()


def test_a_wrong_engine_is_caught_and_the_printed_test_fails_on_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Broker.restart

    def wrong(broker: Broker) -> None:
        """Forgets what the journal has brought back."""
        right(broker)
        for queue in broker.queues.values():
            first = queue.ready.first()
            if first is not None:
                first.leave_indexes()

    monkeypatch.setattr(Broker, "restart", wrong)
    few = settings(Engine.TestCase.settings, max_examples=400, phases=[Phase.generate], database=None, derandomize=True)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is that fails first
        run_state_machine_as_test(Engine, settings=few)
    text = next(note for note in caught.value.__notes__ if "def test_counterexample" in note)
    text = text[text.index("import pytest") :]
    with pytest.raises(type(caught.value)):
        run(text)
    monkeypatch.undo()
    run(text)


def test_an_error_of_the_api_is_an_answer_and_stands_in_the_test() -> None:
    calls = Calls()
    calls.do("broker = Broker(specification=shipped(), pace=Timed(), send_mode='asynchronous', repairs=False)")
    calls.do("producer = broker.connect().session().producer('q')")
    calls.do("broker.crash()")
    assert not calls.do("producer.send()")
    assert "    with pytest.raises(ackfsm.engine." in calls.as_test()
    run(calls.as_test())


def test_what_does_not_answer_as_before_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls()
    calls.do("broker = Broker(specification=shipped())")
    calls.do("producer = broker.connect().session().producer('q')")
    calls.do("producer.send()")
    monkeypatch.setattr(Producer, "send", _raising(OutcomeUnknown("nobody knows")))
    with pytest.raises(OutcomeUnknown):
        run(calls.as_test())


def _raising(error: Exception) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise error

    return call
