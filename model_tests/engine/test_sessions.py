"""Several queues, producers, consumers and transactions at once, under all faults.

The model has one session on each side, so that it cannot say what these do together.  They are held to the
history that they tell, and to a plain account of what may become of a message.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ackfsm.engine import Broker, Consumer, Session, Timed
from ackfsm.terms import Destination
from model_tests.support.engine.calls import Calls
from model_tests.support.engine.counts import assert_counted
from model_tests.support.engine.settings import effort, paces

__all__ = ["TestSessions"]

_PROFILES = ("jms", "ems", "artemis", "qpid-jms")
_MODES = ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED")
_QUEUES = ("a", "b", "c")
_SESSIONS = 7
_MESSAGES = 25
_DURABLE = "journal_sync_non_transactional=True, journal_sync_transactional=True, block_on_acknowledge=True"


class Engine(RuleBasedStateMachine):
    """Sessions, each with a producer of one queue and a consumer of another, or of the same."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = Calls()
        self.sessions: list[str] = []
        self.messages = 0
        self.got: list[str] = []
        self.durable = False

    @initialize(
        profile=st.sampled_from(_PROFILES),
        pace=paces(),
        seed=st.integers(0, 1000),
        durable=st.booleans(),
        destination=st.sampled_from(Destination),
        prefetch=st.sampled_from((0, 1, 2, 5)),
    )
    def start(self, profile: str, pace: str, seed: int, durable: bool, destination: str, prefetch: int) -> None:  # noqa: FBT001, PLR0913, PLR0917 - Hypothesis calls by name
        self.durable = durable and destination != Destination.NON_DURABLE_SUBSCRIPTION
        settings = f"max_delivery_attempts=0, destination={str(destination)!r}, prefetch={prefetch}"
        settings += f", {_DURABLE}" if durable else ""
        self.do(
            f"broker = Broker({profile!r}, pace={pace}, seed={seed}, history=True, specification=shipped(), {settings})"
        )

    def do(self, line: str) -> bool:
        return self.calls.do(line)

    @property
    def broker(self) -> Broker:
        broker: Broker = self.calls.names["broker"]  # type: ignore[assignment] # of that name
        return broker

    def session(self, name: str) -> Session:
        session: Session = self.calls.names[f"s{name}"]  # type: ignore[assignment] # of that name
        return session

    def alive(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from([name for name in self.sessions if not self.session(name).closed]))

    def some_alive(self) -> bool:
        return any(not self.session(name).closed for name in self.sessions)

    @precondition(lambda self: len(self.sessions) < _SESSIONS)
    @rule(
        mode=st.sampled_from(_MODES),
        to=st.sampled_from(_QUEUES),
        of=st.sampled_from((*_QUEUES, None)),
        send=st.sampled_from(("blocking", "asynchronous")),
    )
    def open(self, mode: str, to: str, of: str | None, send: str) -> None:
        name = str(len(self.sessions) + 1)
        self.do(f"c{name} = broker.connect(send_mode={send!r}, publish_window=10)")
        self.do(f"s{name} = c{name}.session({mode!r})")
        self.do(f"p{name} = s{name}.producer({to!r})")
        if of is not None:
            self.do(f"r{name} = s{name}.consumer({of!r})")
        self.sessions.append(name)

    @precondition(lambda self: self.some_alive() and self.messages < _MESSAGES)
    @rule(data=st.data(), many=st.integers(1, 3))
    def send(self, data: st.DataObject, many: int) -> None:
        name = self.alive(data)
        for _ in range(many):
            self.messages += 1
            self.do(f"p{name}.send(b'x', message_id='m{self.messages}')")

    def consuming(self) -> list[str]:
        return [name for name in self.sessions if f"r{name}" in self.calls.names and not self.session(name).closed]

    @precondition(lambda self: self.consuming())
    @rule(data=st.data(), timeout=st.sampled_from((0.0, 0.001, None)), acknowledge=st.booleans())
    def receive(self, data: st.DataObject, timeout: float | None, acknowledge: bool) -> None:  # noqa: FBT001 - as above
        name = data.draw(st.sampled_from(self.consuming()))
        self.do(f"got{name} = r{name}.receive({timeout})")
        if acknowledge and self.calls.names.get(f"got{name}") is not None:
            self.do(f"got{name}.acknowledge()")

    def transacted(self) -> list[str]:
        return [name for name in self.sessions if self.session(name).transacted and not self.session(name).closed]

    @precondition(lambda self: self.transacted())
    @rule(data=st.data(), end=st.sampled_from(("commit", "commit", "rollback")))
    def end(self, data: st.DataObject, end: str) -> None:
        self.do(f"s{data.draw(st.sampled_from(self.transacted()))}.{end}()")

    @precondition(lambda self: bool(set(self.consuming()) - set(self.transacted())))
    @rule(data=st.data())
    def recover(self, data: st.DataObject) -> None:
        self.do(f"s{data.draw(st.sampled_from(sorted(set(self.consuming()) - set(self.transacted()))))}.recover()")

    @precondition(lambda self: self.some_alive())
    @rule(data=st.data(), how=st.sampled_from(("lose", "crash", "close")))
    def leave(self, data: st.DataObject, how: str) -> None:
        self.do(f"c{self.alive(data)}.{how}()")

    @precondition(lambda self: self.consuming())
    @rule(data=st.data(), again=st.booleans())
    def close_consumer(self, data: st.DataObject, again: bool) -> None:  # noqa: FBT001 - as above
        name = data.draw(st.sampled_from(self.consuming()))
        consumer: Consumer = self.calls.names[f"r{name}"]  # type: ignore[assignment] # of that name
        self.do(f"r{name}.close()")
        if again:
            self.do(f"r{name} = s{name}.consumer({consumer.queue.name!r})")

    @precondition(lambda self: self.some_alive())
    @rule(data=st.data(), how=st.sampled_from(("stop", "start")))
    def turn(self, data: st.DataObject, how: str) -> None:
        self.do(f"c{self.alive(data)}.{how}()")

    @precondition(lambda self: self.broker.running)
    @rule(how=st.sampled_from(("crash", "kill", "fail_journal")))
    def broker_fails(self, how: str) -> None:
        self.do(f"broker.{how}()")

    @precondition(lambda self: not self.broker.running)
    @rule()
    def restart(self) -> None:
        self.do("broker.restart()")

    @rule(queue=st.sampled_from(_QUEUES))
    def refuse(self, queue: str) -> None:
        self.do(f"broker.queue({queue!r}).refuse_next = 1")

    @rule()
    def go_on(self) -> None:
        self.do("broker.loop.step()")

    def teardown(self) -> None:
        if "broker" not in self.calls.names or self.calls.failed:
            return
        if not self.broker.running:
            self.do("broker.restart()")
        if isinstance(self.broker.loop.scheduler, Timed):
            self.do("broker.loop.scheduler.heal()")
        for name in self.sessions:
            self.do(f"c{name}.close()")
        for queue in _QUEUES:
            self.do(f"drain = broker.connect().session('CLIENT_ACKNOWLEDGE').consumer({queue!r})")
            for _ in range(_MESSAGES):
                if self.broker.queue(queue).length:
                    self.do("while (last := drain.receive(None)) is not None: last.acknowledge()")
            self.do("drain.session.close()")
        self.calls.must("broker.drained()")
        self.calls.check("assert_kept(broker, anyone=True)")
        self.calls.check(f"Plain(broker).check(durable={self.durable})")
        assert_counted(self.broker)
        self.same_unobserved()

    def same_unobserved(self) -> None:
        """Observed, an engine goes another way, and tells the same."""
        again = self.calls.replayed(without="-", after="broker.observe(lambda *_: None)")
        names: dict[str, Any] = again.names
        names["told"] = self.broker.history.lines if self.broker.history else None
        again.must("assert broker.history.lines == told")


Engine.TestCase.settings = effort(30, 25)
TestSessions = Engine.TestCase
