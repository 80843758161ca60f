"""What a call of the engine is given is checked before anything happens: what is refused has changed nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.engine import Body, Broker, Message, Session, Shuffled, Timed
from ackfsm.engine.aio import AsyncBroker
from ackfsm.engine.journal import MemoryJournal
from ackfsm.terms import InputError
from model_tests.support.engine.brokers import received
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped


class Stage:
    """A broker in the midst of its work, in any mode and at any pace: one of each object that has calls."""

    def __init__(self, profile: str, pace: str, ack_mode: str, delivery_mode: str) -> None:
        self.journal = MemoryJournal()
        paces = {"at once": None, "timed": Timed(seed=1), "shuffled": Shuffled(1)}
        self.broker = Broker(
            profile,
            specification=shipped(),
            journal=self.journal,
            pace=paces[pace],
            history=True,
            ack_mode=ack_mode,
            delivery_mode=delivery_mode,
            consumption="receive",
        )
        self.connection = self.broker.connect("client")
        self.session = self.connection.session()
        self.producer = self.session.producer("q")
        self.face = AsyncBroker(self.broker)
        self.asynchronous = self.face.connect("face")
        self.tasks = self.asynchronous.session()
        self.sender = self.tasks.producer("r")
        self.consumer = self.session.consumer("q")
        self.taker = self.tasks.consumer("s")
        for body in (b"1", b"2"):
            self.producer.send(body, {"n": 1})
        if self.session.transacted:
            self.session.commit()
        self.message = self.consumer.receive(None)

    def seen(self) -> Mapping[str, object]:
        """All that anybody could notice of it."""
        broker = self.broker
        assert broker.history is not None
        sessions: list[Session] = [*self.connection.sessions, *self.asynchronous.connection.sessions]
        return {
            "queues": {name: (queue.length, len(queue.consumers)) for name, queue in broker.queues.items()},
            "history": [dict(line) for line in broker.history.lines],
            "journal": self.journal._next,  # noqa: SLF001
            "now": broker.now,
            "next": broker.engine.queues.new_id("next"),
            "clients": broker._clients,  # noqa: SLF001
            "observer": broker.stepper.observer,
            "sides": {
                side.name: sorted((role.name, group.state) for role, group in side.groups.items())
                for session in sessions
                for side in session.links()
            },
            "sessions": [(session.name, session.closed, session.listener_busy()) for session in sessions],
            "consumers": [(each.is_busy, each.listener) for session in sessions for each in session.consumers],
            "open": [len(sender.open) for session in sessions for sender in session.senders.values()],
            "copies": sorted(
                (copy.message.id, copy.state)
                for copy in broker.stepper.broker.index(broker.stepper.model.all_copies("broker")).members.values()
            ),
        }

    def works(self) -> None:
        """Send and receive until nothing is left, and no promise is broken."""
        self.producer.send(b"3")
        if self.session.transacted:
            self.session.commit()
        bodies = [self.message.body] if self.message is not None else []
        while (message := self.consumer.receive(None)) is not None:
            bodies.append(message.body)
            message.acknowledge()
        if self.session.transacted:
            self.session.commit()
        assert sorted(map(str, bodies)) == ["b'1'", "b'2'", "b'3'"]
        self.connection.close()
        self.asynchronous.connection.close()
        assert [queue.length for queue in self.broker.queues.values()] == [0, 0, 0]
        assert_kept(self.broker, anyone=True)


NUMBERS = st.integers() | st.floats() | st.just(1j)
THINGS: st.SearchStrategy[Any] = st.just(object()) | st.lists(st.integers(), max_size=2) | st.just(Broker) | NUMBERS
TEXT = st.text(max_size=5)
HALF = TEXT.map(lambda text: f"{text}\ud800")
BYTES = st.binary(max_size=5)
LONG = st.sampled_from(["x" * 65_536, "ü" * 40_000])
NAMES: st.SearchStrategy[Any] = THINGS | BYTES | HALF | LONG | st.just("") | st.none()
FUNCTIONS: st.SearchStrategy[Any] = NUMBERS | TEXT | BYTES | st.lists(st.integers(), max_size=2)
VALUES: st.SearchStrategy[Any] = (
    st.just(object()) | BYTES | HALF | st.lists(TEXT, max_size=1) | st.integers(min_value=2**64) | st.just(1j)
)
HEADERS: st.SearchStrategy[Any] = (
    st.dictionaries(TEXT, VALUES, min_size=1, max_size=2)
    | st.dictionaries(NUMBERS | BYTES | HALF, TEXT, min_size=1, max_size=2)
    | st.lists(TEXT, max_size=2)
    | NUMBERS
    | TEXT
)
SECONDS: st.SearchStrategy[Any] = st.sampled_from(
    [float("nan"), float("inf"), -float("inf"), 1e300, 10**400, True, "1", b"1", 1j]
) | st.just(object())
MAPPINGS: st.SearchStrategy[Any] = st.dictionaries(
    st.text(min_size=1, max_size=5), VALUES.filter(lambda value: not isinstance(value, bytes)), min_size=1
) | st.dictionaries(NUMBERS | BYTES | HALF | st.just(""), TEXT, min_size=1, max_size=2)
WRONG_SEND: Mapping[str, st.SearchStrategy[Any]] = {
    "body": THINGS | HALF | MAPPINGS | st.none(),
    "headers": HEADERS,
    "message_id": THINGS | BYTES | HALF | LONG | st.just(""),
    "delivery_mode": THINGS | BYTES | TEXT,
    "duplicate_id": THINGS | TEXT | LONG.map(str.encode),
    "reply_to": NAMES.filter(lambda given: given is not None),
    "correlation_id": NAMES.filter(lambda given: given is not None),
}

Call = Callable[..., Any]


def posting(stage: Stage, **wrong: Any) -> None:
    asyncio.run(stage.sender.send(**wrong))


def taking(stage: Stage, **wrong: Any) -> None:
    asyncio.run(_taken(stage, **wrong))


async def _taken(stage: Stage, **wrong: Any) -> None:
    await stage.taker.receive(**wrong)


def asking(stage: Stage, **wrong: Any) -> None:
    asyncio.run(stage.sender.outcome(**wrong))


def resending(stage: Stage, **wrong: Any) -> None:
    asyncio.run(stage.sender.resend(**wrong))


MESSAGES: st.SearchStrategy[Any] = NUMBERS | TEXT | BYTES | st.just(object())

CALLS: list[tuple[str, Call, Mapping[str, st.SearchStrategy[Any]]]] = [
    ("Producer.send", lambda stage, **wrong: stage.producer.send(**wrong), WRONG_SEND),
    ("Producer.resend", lambda stage, **wrong: stage.producer.resend(**wrong), {"message": MESSAGES | st.none()}),
    ("Producer.wait", lambda stage, **wrong: stage.producer.wait(**wrong), {"message": MESSAGES}),
    ("Consumer.receive", lambda stage, **wrong: stage.consumer.receive(**wrong), {"timeout": SECONDS}),
    ("Consumer.acknowledge", lambda stage, **wrong: stage.consumer.acknowledge(**wrong), {"message": MESSAGES}),
    (
        "Session.producer",
        lambda stage, **wrong: stage.session.producer(**{"queue": "new", **wrong}),
        {"queue": NAMES, "on_outcome": FUNCTIONS},
    ),
    (
        "Session.consumer",
        lambda stage, **wrong: stage.session.consumer(**{"queue": "new", **wrong}),
        {"queue": NAMES, "listener": FUNCTIONS},
    ),
    (
        "Connection.session",
        lambda stage, **wrong: stage.connection.session(**wrong),
        {"ack_mode": THINGS | TEXT, "prefetch": TEXT | st.floats() | st.integers(max_value=-1), "colour": TEXT},
    ),
    (
        "Broker.connect",
        lambda stage, **wrong: stage.broker.connect(**wrong),
        {"client_id": NAMES.filter(lambda given: given is not None)},
    ),
    (
        "Broker.queue",
        lambda stage, **wrong: stage.broker.queue(**{"name": "new", **wrong}),
        {"name": NAMES, "durable": NUMBERS | TEXT, "max_length": st.floats() | TEXT | st.integers(max_value=-1)},
    ),
    ("Broker.observe", lambda stage, **wrong: stage.broker.observe(**wrong), {"observer": FUNCTIONS}),
    ("AsyncProducer.send", posting, WRONG_SEND),
    ("AsyncProducer.post", lambda stage, **wrong: stage.sender.post(**wrong), WRONG_SEND),
    ("AsyncProducer.resend", resending, {"message": MESSAGES | st.none()}),
    ("AsyncProducer.outcome", asking, {"message": MESSAGES | st.none()}),
    ("AsyncConsumer.receive", taking, {"timeout": SECONDS}),
    (
        "AsyncSession.producer",
        lambda stage, **wrong: stage.tasks.producer(**{"queue": "new", **wrong}),
        {"queue": NAMES, "on_outcome": FUNCTIONS},
    ),
    (
        "AsyncSession.consumer",
        lambda stage, **wrong: stage.tasks.consumer(**{"queue": "new", **wrong}),
        {"queue": NAMES, "listener": FUNCTIONS},
    ),
]

STAGES = st.tuples(
    st.sampled_from(["jms", "artemis"]),
    st.sampled_from(["at once", "timed", "shuffled"]),
    st.sampled_from(["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"]),
    st.sampled_from(["PERSISTENT", "NON_PERSISTENT"]),
)


@st.composite
def wrong_calls(draw: st.DrawFn) -> tuple[str, Call, str, Any]:
    """A call, and what is wrong with it."""
    name, does, parameters = draw(st.sampled_from(CALLS))
    parameter = draw(st.sampled_from(sorted(parameters)))
    return name, does, parameter, draw(parameters[parameter])


@given(stage=STAGES, wrong=wrong_calls())
def test_a_wrong_argument_changes_nothing(stage: tuple[str, str, str, str], wrong: tuple[str, Call, str, Any]) -> None:
    made = Stage(*stage)
    before = made.seen()
    _, does, parameter, value = wrong
    with pytest.raises(InputError) as caught:
        does(made, **{parameter: value})
    assert made.seen() == before
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700  # the longest one lists all settings
    made.works()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"journal": "path"}, "journal cannot be 'path'; it is a journal, MemoryJournal.. for example"),
        ({"journal": ""}, "journal cannot be ''; it is a journal, .*"),
        ({"pace": 3}, "pace cannot be 3; .*"),
        ({"history": "run.jsonl"}, "history cannot be 'run.jsonl'; it is True, False or a History"),
        ({"seed": None}, "seed cannot be None; it is a whole number"),
        ({"repairs": "no"}, "repairs cannot be 'no'; it is True or False"),
        ({"specification": "spec"}, "specification cannot be 'spec'; it is what .*"),
        ({"like": 1}, "like cannot be 1; it is a Broker"),
        ({"clock": 7}, "clock cannot be 7; it is called, a function for example"),
    ],
)
def test_a_broker_is_made_of_what_it_needs(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Broker(**({} if "like" in arguments else {"specification": shipped()}) | arguments)


def test_what_is_no_body_leaves_no_ghost() -> None:
    broker = Broker(specification=shipped())
    session = broker.connect().session()
    producer = session.producer("orders")
    with pytest.raises(InputError, match="body cannot be 7; it is bytes, text, or a mapping of names to values"):
        producer.send(7)  # type: ignore[arg-type] # that is wrong
    with pytest.raises(InputError, match="'leaf' in the body cannot be an object of type set; it is text, bytes, a "):
        producer.send({"leaf": {"green"}})  # type: ignore[dict-item] # that is wrong
    with pytest.raises(InputError, match="a name in the body has at least one character"):
        producer.send({"": 1})
    assert broker.queue("orders").length == 0
    producer.send(b"tea")
    assert broker.queue("orders").length == 1


def test_a_header_that_json_lacks_leaves_the_session_usable() -> None:
    broker = Broker(specification=shipped())
    producer = broker.connect().session().producer("orders")
    with pytest.raises(InputError, match="header 'from' cannot be an object of type set; it is text, "):
        producer.send(b"tea", {"from": {"Assam"}})  # type: ignore[dict-item] # that is wrong
    assert producer.send(b"tea", {"from": "Assam"}).outcome == "confirmed"


def test_what_was_sent_is_delivered_whatever_becomes_of_what_it_was_made_of() -> None:
    broker = Broker(specification=shipped(), ack_mode="AUTO_ACKNOWLEDGE", consumption="receive")
    session = broker.connect().session()
    body, headers = bytearray(b"tea"), {"from": "Assam"}
    session.producer("orders").send(body, headers)  # type: ignore[arg-type] # taken, not promised
    body[:] = b"mud"
    headers["from"] = "nowhere"
    order = received(session.consumer("orders"), 0.0)
    assert (order.body, order.headers) == (b"tea", {"from": "Assam"})
    with pytest.raises(TypeError):
        order.headers["from"] = "nowhere"  # type: ignore[index] # they are as they were sent


def test_a_queue_of_another_broker_is_refused() -> None:
    one, other = (Broker(specification=shipped()) for _ in range(2))
    with pytest.raises(InputError, match="queue 'orders' belongs to another broker; give its name, "):
        one.connect().session().producer(other.queue("orders"))
    assert one.connect().session().producer(one.queue("orders")).send(b"tea").outcome == "confirmed"


def test_a_session_that_could_not_be_made_has_no_name() -> None:
    connection = Broker(specification=shipped()).connect("client")
    with pytest.raises(InputError):
        connection.session("NONSENSE")
    assert connection.session().name == "client.1"


def test_a_listener_of_a_task_may_be_a_plain_function() -> None:
    broker = Broker(specification=shipped(), ack_mode="AUTO_ACKNOWLEDGE")
    heard: list[Body] = []

    async def main() -> None:
        session = AsyncBroker(broker).connect().session()

        def hear(message: Message) -> None:
            heard.append(message.body)

        session.consumer("orders", listener=hear)  # type: ignore[arg-type] # taken, not promised
        await session.producer("orders").send(b"tea")
        async with asyncio.timeout(30):
            while broker.queue("orders").length:  # noqa: ASYNC110 - nothing else says so
                await asyncio.sleep(0)

    asyncio.run(main())
    assert heard == [b"tea"]
