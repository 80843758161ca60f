"""Any calls and any faults, on one session that sends and one that consumes, in every mode of every system.

After each call the model must be able to perform what the engine did.  At the end everything is repaired and consumed,
and the history must keep what the configuration promises; and the same calls must tell the same history when
nobody observes the engine, for then it takes another, faster way.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ackfsm.engine import Broker, Consumer, Producer, Sent, Timed
from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.instances import Copy, Link
from ackfsm.terms import Consumption
from model_tests.support.engine.calls import Calls
from model_tests.support.engine.refinement import MESSAGES
from model_tests.support.engine.settings import effort, paces, profiles_and_settings

__all__ = ["TestEngine"]

_BROKER = {"crash": "broker_crash", "kill": "broker_kill", "fail_journal": "journal_failure"}
_LOSSES = {"lose": "link_loss", "crash": "crash"}


class Engine(RuleBasedStateMachine):
    """One session that sends, one queue, one session that consumes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Calls()
        self.sent: list[str] = []
        self.received: list[str] = []
        self.opened = 0

    @initialize(chosen=profiles_and_settings(), pace=paces(), seed=st.integers(0, 1000))
    def start(self, chosen: tuple[str, dict[str, object]], pace: str, seed: int) -> None:
        profile, settings = chosen
        arguments = "".join(f", {key}={value!r}" for key, value in settings.items())
        self.do(
            f"broker = Broker({profile!r}, pace={pace}, seed={seed}, history=True, specification=shipped(){arguments})"
        )
        self.do("refinement = Refinement(broker)")
        self.do("application = Application()")
        self.open_producer()
        self.open_consumer()

    # What stands

    def do(self, line: str) -> bool:
        return self.calls.do(line)

    def named(self, name: str) -> Any:
        return self.calls.names.get(name)

    @property
    def broker(self) -> Broker:
        broker: Broker = self.calls.names["broker"]  # type: ignore[assignment] # of that name
        return broker

    @property
    def listens(self) -> bool:
        return self.broker.configuration.consumption is Consumption.LISTENER

    def side(self, name: str) -> Link | None:
        """The session that ``producer`` or ``consumer`` has, ``None`` if it is closed."""
        face: Producer | Consumer | None = self.named(name)
        if face is None or face.session.closed:
            return None
        return face.receiver if isinstance(face, Consumer) else face._sender  # noqa: SLF001 - read only

    def may(self, event: str, side: Link | None) -> bool:
        """Whether the parts of a session would let ``event`` happen."""
        if side is None:
            return False
        signal = self.broker.stepper.events[event].signal
        return all(group.successor(signal) != REFUSED for group in side.groups.values())

    def copy_may(self, event: str, copy: Copy | None) -> bool:
        """Whether the machines of a copy would let ``event`` happen."""
        if copy is None:
            return False
        return copy.successor(self.broker.stepper.events[event].signal) != REFUSED

    def messages(self, event: str) -> list[str]:
        """The names of what was sent whose copy would let ``event`` happen."""
        found: list[tuple[str, Sent | None]] = [(name, self.named(name)) for name in self.sent]
        return [name for name, message in found if message is not None and self.copy_may(event, message.copy)]

    # Opening and closing

    def open_producer(self) -> None:
        self.do("sending = broker.connect()")
        self.do("sender = sending.session()")
        self.do("producer = sender.producer('q')")
        self.do("refinement.take(producer)")

    def open_consumer(self) -> None:
        self.do("consuming = broker.connect()")
        self.do("session = consuming.session()")
        self.do("consumer = session.consumer('q'" + (", listener=application)" if self.listens else ")"))
        self.do("refinement.take(consumer)")

    def is_fresh(self, side: Link | None) -> bool:
        """Whether the session has nothing under way, so that another is like it."""
        if side is None:
            return True
        copies = [copy for name in self.sent if (copy := getattr(self.named(name), "copy", None)) is not None]
        idle = all(group.state == group.automaton.initial for group in side.groups.values())
        return idle and all(
            c.state_of("publish_frame") != "in_flight" and c.state_of("publisher_confirm") == "none" for c in copies
        )

    @precondition(lambda self: self.is_fresh(self.side("producer")))
    @rule()
    def another_producer(self) -> None:
        self.do("sending.close()")
        self.open_producer()

    @rule()
    def another_consumer(self) -> None:
        self.do("consuming.close()")
        self.open_consumer()

    # Calls

    @precondition(lambda self: self.side("producer") is not None and len(self.sent) < MESSAGES)
    @rule(refused=st.sampled_from((False, False, False, True)))
    def send(self, refused: bool) -> None:  # noqa: FBT001 - Hypothesis calls by name
        name = f"m{len(self.sent) + 1}"
        self.sent.append(name)
        self.do(f"broker.queue('q').refuse_next = {int(refused)}") if refused else None
        self.do(f"{name} = producer.send(b'x', message_id={name!r})")

    @precondition(lambda self: self.side("producer") is not None and self.messages("resend"))
    @rule(data=st.data())
    def resend(self, data: st.DataObject) -> None:
        self.do(f"producer.resend({data.draw(st.sampled_from(self.messages('resend')))})")

    @precondition(lambda self: self.side("producer") is not None)
    @rule()
    def wait(self) -> None:
        self.do("producer.wait()")

    @precondition(lambda self: self.side("consumer") is not None and not self.listens)
    @rule(timeout=st.sampled_from((0.0, 0.001, None)))
    def receive(self, timeout: float | None) -> None:
        name = f"r{len(self.received) + 1}"
        if self.do(f"{name} = consumer.receive({timeout})"):
            self.received.append(name)

    @precondition(lambda self: self.listens)
    @rule()
    def throw(self) -> None:
        self.do("application.throw = 1")

    @precondition(lambda self: self.side("consumer") is not None and self.acknowledgeable())
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        self.do(f"{data.draw(st.sampled_from(self.acknowledgeable()))}.acknowledge()")

    def acknowledgeable(self) -> list[str]:
        if self.listens:
            got = self.named("application").received
            names = {f"application.received[{i}]": message for i, message in enumerate(got)}
        else:
            names = {name: self.named(name) for name in self.received if self.named(name) is not None}
        done = ("processed", "acknowledge")
        return [name for name, message in names.items() if any(self.copy_may(event, message.copy) for event in done)]

    @precondition(lambda self: self.side("producer") is not None and self.may("commit_called", self.side("producer")))
    @rule()
    def commit_sends(self) -> None:
        self.do("sender.commit()")

    @precondition(lambda self: self.side("producer") is not None and self.may("rollback", self.side("producer")))
    @rule()
    def roll_sends_back(self) -> None:
        self.do("sender.rollback()")

    def transacted(self) -> bool:
        session = self.named("session")
        return self.side("consumer") is not None and session.transacted

    @precondition(transacted)
    @rule()
    def commit(self) -> None:
        self.do("session.commit()")

    @precondition(transacted)
    @rule()
    def rollback(self) -> None:
        self.do("session.rollback()")

    @precondition(lambda self: self.may("recover", self.side("consumer")) and not self.transacted())
    @rule()
    def recover(self) -> None:
        self.do("session.recover()")

    @rule()
    def go_on(self) -> None:
        self.do("broker.loop.step()")

    # Faults and repairs

    @precondition(lambda self: any(self.may(event, self.broker.stepper.broker) for event in _BROKER.values()))
    @rule(call=st.sampled_from(sorted(_BROKER)))
    def broker_fails(self, call: str) -> None:
        if self.may(_BROKER[call], self.broker.stepper.broker):
            self.do(f"broker.{call}()")

    @precondition(lambda self: self.may("broker_restart", self.broker.stepper.broker))
    @rule()
    def restart(self) -> None:
        self.do("broker.restart()")

    @rule(side=st.sampled_from(("producer", "consumer")), call=st.sampled_from(sorted(_LOSSES)))
    def connection_fails(self, side: str, call: str) -> None:
        if not self.may(f"{side}_{_LOSSES[call]}", self.side(side)):
            return
        connection, reopen = {
            "producer": ("sending", self.open_producer),
            "consumer": ("consuming", self.open_consumer),
        }[side]
        self.do(f"{connection}.{call}()")
        if call == "crash":
            reopen()

    # What must hold

    @invariant()
    def refines(self) -> None:
        if "refinement" in self.calls.names:
            self.calls.check("refinement.check()")

    def teardown(self) -> None:
        if "broker" not in self.calls.names or self.calls.failed:
            return
        self.drain()
        self.calls.check("assert_kept(broker)")
        self.same_unobserved()

    def drain(self) -> None:
        self.do("application.throw = 0")
        if not self.broker.running:
            self.do("broker.restart()")
        if isinstance(self.broker.loop.scheduler, Timed):
            self.do("broker.loop.scheduler.heal()")
        self.do("sending.close()")
        self.do("while broker.loop.step(): pass")
        self.another_consumer()
        self.calls.check("refinement.check()")
        self.consume_all()
        self.calls.check("refinement.check()")
        self.do("consuming.close()")
        self.calls.must("broker.drained()")

    def consume_all(self) -> None:
        """In rounds, for a listener may have to acknowledge before it gets more."""
        for _ in range(2 * MESSAGES):
            if self.listens:
                self.do("while broker.loop.step(): pass")
                for name in self.acknowledgeable()[::-1]:
                    self.do(f"{name}.acknowledge()")
            else:
                self.do("while (last := consumer.receive()) is not None: last.acknowledge()")
            if self.transacted():
                self.do("session.commit()")
            if not self.broker.queue("q").length:
                return

    def same_unobserved(self) -> None:
        again = self.calls.replayed(without="refinement")
        assert self.broker.history
        again.names["told"] = self.broker.history.lines
        again.must("assert broker.history.lines == told")


Engine.TestCase.settings = effort(50, 25)
TestEngine = Engine.TestCase
