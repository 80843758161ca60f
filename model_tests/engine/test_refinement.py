"""Runs of an engine under each fault, in every mode of every system, performed by the model step by step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import pytest

from ackfsm.engine import AtOnce, Broker, Connection, Consumer, JMSException, Message, Producer, Shuffled, Timed
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.terms import AckMode, Consumption, Profile
from model_tests.support.engine.calls import Application
from model_tests.support.engine.refinement import Refinement
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, few

_PACES: Mapping[str, Callable[[], Scheduler]] = {
    "at once": AtOnce,
    "timed": lambda: Timed(seed=1),
    "shuffled": lambda: Shuffled(1),
}

_FAULTS = ("none", "crash", "kill", "fail_journal", "sender lost", "sender dead", "receiver lost", "rejection", "throw")


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Every mode at a pace, in turn; where products are whole at every pace."""
    for number, mode in enumerate(modes()):
        for place, pace in enumerate(_PACES):
            if WHOLE or number % len(_PACES) == place:
                yield (*mode, pace)


def modes() -> Iterator[tuple[str, str, str]]:
    """Every system with its acknowledgement modes, and how it consumes."""
    for profile in Profile:
        for mode in AckMode:
            for consumption in Consumption:
                if mode in shipped().supported_values(profile, "ack_mode", {"consumption": consumption}):
                    yield profile.value, mode.value, consumption.value


@pytest.mark.parametrize(("profile", "mode", "consumption", "pace"), few([*cases()], 24))
def test_the_model_can_do_what_the_engine_does(profile: str, mode: str, consumption: str, pace: str) -> None:
    for fault in _FAULTS:
        _Run(profile, mode, consumption, pace).under(fault)


def test_a_step_that_the_model_refuses_is_told_with_the_reason() -> None:
    broker = Broker("jms", specification=shipped(), max_delivery_attempts=0, prefetch=0)
    refinement = Refinement(broker)
    producer = broker.connect().session().producer("q")
    refinement.take(producer)
    producer.send()
    refinement.check()
    refinement._heard(broker.stepper.events["broker_restart"], broker.stepper.broker)  # noqa: SLF001 - as if it had happened
    with pytest.raises(AssertionError, match="broker_restart: broker, up: it runs already"):
        refinement.check()


def test_a_state_that_the_model_does_not_have_is_told() -> None:
    broker = Broker("jms", specification=shipped(), max_delivery_attempts=0, prefetch=0)
    refinement = Refinement(broker)
    producer = broker.connect().session().producer("q")
    refinement.take(producer)
    producer.send()
    copy = next(iter(refinement._copies.values()))  # noqa: SLF001 - to put it elsewhere
    copy.state = copy.automaton.with_states(copy.state, redelivery="marked")
    with pytest.raises(AssertionError, match=r"redelivery\(m1\) is marked in the engine and clear in the model"):
        refinement.check()


class _Run:
    """Four messages, a fault among them, and what an application does about it."""

    def __init__(self, profile: str, mode: str, consumption: str, pace: str) -> None:
        self.broker = Broker(
            profile,
            specification=shipped(),
            pace=_PACES[pace](),
            ack_mode=mode,
            consumption=consumption,
            max_delivery_attempts=0,
            prefetch=2,
        )
        self.refinement = Refinement(self.broker)
        self.application = Application()
        self.sending, self.producer = self.sender()
        self.receiving, self.consumer = self.receiver()

    def sender(self) -> tuple[Connection, Producer]:
        connection = self.broker.connect()
        producer = connection.session().producer("q")
        self.refinement.take(producer)
        return connection, producer

    def receiver(self) -> tuple[Connection, Consumer]:
        connection = self.broker.connect()
        listens = self.broker.configuration.consumption is Consumption.LISTENER
        consumer = connection.session().consumer("q", listener=self.application if listens else None)
        self.refinement.take(consumer)
        return connection, consumer

    def under(self, fault: str) -> None:
        """Two messages; the fault; two messages; all consumed."""
        self.send()
        self.consume()
        self.send()
        self.happen(fault)
        self.refinement.check()
        self.send()
        self.consume()
        self.send()
        self.consume()
        while self.broker.loop.step():
            pass
        self.refinement.check()

    def send(self) -> None:
        with contextlib.suppress(JMSException):
            self.producer.send(b"x")
        if self.producer.session.transacted:
            with contextlib.suppress(JMSException):
                self.producer.session.commit()

    def consume(self) -> None:
        if self.consumer.listener is not None:
            self.broker.loop.step()
            got: list[Message] = self.application.received[-1:]
        else:
            received = self.consumer.receive(0.01)
            got = [] if received is None else [received]
        for message in got:
            with contextlib.suppress(JMSException):
                message.acknowledge()
        if self.consumer.session.transacted:
            with contextlib.suppress(JMSException):
                self.consumer.session.commit()

    def happen(self, fault: str) -> None:
        if fault in {"crash", "kill", "fail_journal"}:
            getattr(self.broker, fault)()
            self.broker.restart()
        elif fault == "sender lost":
            self.sending.lose()
        elif fault == "sender dead":
            self.sending.crash()
            self.sending, self.producer = self.sender()
        elif fault == "receiver lost":
            self.receiving.lose()
        elif fault == "rejection":
            self.broker.queue("q").refuse_next = 1
        elif fault == "throw":
            self.application.throw = 1
