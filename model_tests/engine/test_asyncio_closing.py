"""The face for asyncio has what the engine has: closing, stopping, browsing, purging, figures, all of a message."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from ackfsm.engine import (
    Broker,
    Connection,
    Consumer,
    IllegalStateException,
    Message,
    MessageFormatException,
    Producer,
    Session,
    Timed,
)
from ackfsm.engine.aio import (
    AsyncBroker,
    AsyncConnection,
    AsyncConsumer,
    AsyncMessage,
    AsyncProducer,
    AsyncSession,
)
from model_tests.support.engine.calls import assert_kept
from model_tests.support.engine.tasks import run, until
from model_tests.support.tables import shipped


def broker_of(**settings: Any) -> Broker:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "max_delivery_attempts": 0, **settings}
    return Broker("jms", specification=shipped(), history=True, **settings)


@pytest.mark.parametrize(
    ("face", "engine", "without"),
    [
        (AsyncConnection, Connection, {"broker", "client_id", "sessions", "lose", "crash"}),
        (AsyncMessage, Message, {"consumer", "copy", "in_doubt"}),
        (AsyncConsumer, Consumer, None),
        (AsyncProducer, Producer, None),
        (AsyncSession, Session, None),
    ],
)
def test_the_face_has_the_members_of_the_engine(face: type, engine: type, without: set[str] | None) -> None:
    of_jms = {"close", "start", "stop", "browser", "commit", "rollback", "recover", "receive", "send", "resend"}
    members = {name for name, _ in inspect.getmembers(engine) if not name.startswith("_")}
    wanted = members & of_jms if without is None else members - without
    assert wanted
    assert wanted <= set(dir(face))


def test_a_message_says_what_its_sender_said() -> None:
    broker = broker_of(pace=Timed(latency=(10, 10)))

    async def main() -> None:
        session = AsyncBroker(broker).connect().session()
        async with session.producer("q") as producer:
            await producer.send("tea?", {"n": 1}, message_id="m", reply_to="answers", correlation_id="c")
        message = await session.consumer("q").receive()
        assert message is not None
        assert (message.id, message.body, dict(message.headers)) == ("m", "tea?", {"n": 1})
        assert (message.redelivered, message.delivery_count, message.timestamp) == (False, 1, 0)
        assert (message.reply_to, message.correlation_id) == ("answers", "c")
        assert message.body_as(str) == "tea?"
        with pytest.raises(MessageFormatException):
            message.body_as(bytes)
        with pytest.raises(AttributeError):
            message.nonsense  # type: ignore[attr-defined] # noqa: B018 - it has no such member
        await message.acknowledge()

    run(main())
    assert_kept(broker)


def test_who_waits_at_a_consumer_that_closes_gets_nothing() -> None:
    broker = broker_of()

    async def main() -> None:
        session = AsyncBroker(broker).connect().session()
        consumer = session.consumer("q")
        waiting = asyncio.create_task(consumer.receive(None))

        async def iterate() -> list[str]:
            return [message.id async for message in consumer]

        iterating = asyncio.create_task(iterate())
        await asyncio.sleep(0)
        async with consumer:
            pass
        assert await waiting is None
        assert await iterating == []
        with pytest.raises(IllegalStateException, match="the consumer is closed"):
            await consumer.receive()
        async with session.consumer("q") as another:
            await session.producer("q").send(message_id="m")
            message = await another.receive()
            assert message is not None
        await message.acknowledge()
        assert session.session.consumers == []

    run(main())
    assert broker.queue("q").length == 0
    assert_kept(broker)


def test_a_producer_closes_when_its_outcomes_are_known() -> None:
    broker = broker_of(pace=Timed())

    async def main() -> None:
        session = AsyncBroker(broker).connect().session()
        async with session.producer("q") as producer:
            sent = [producer.post(message_id=name) for name in ("m1", "m2")]
            assert {message.outcome for message in sent} == {"open"}
        assert {message.outcome for message in sent} == {"confirmed"}
        with pytest.raises(IllegalStateException, match="the producer is closed"):
            await producer.send()

    run(main())


def test_a_producer_closes_though_an_outcome_never_comes() -> None:
    broker = broker_of(pace=Timed(), repairs=False)

    async def main() -> None:
        producer = AsyncBroker(broker).connect().session().producer("q")
        sent = producer.post()
        broker.kill()
        await producer.close()
        assert sent.outcome == "in_doubt"

    run(main())


@pytest.mark.parametrize("what", ["stop", "close"])
def test_stopping_and_closing_wait_for_the_listener_that_runs(what: str) -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE")
    told: list[str] = []

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        session, go_on = connection.session(), asyncio.Event()

        async def listen(message: AsyncMessage) -> None:
            told.append(f"begins {message.id}")
            await go_on.wait()
            told.append(f"ends {message.id}")

        consumer = session.consumer("q", listener=listen)
        for name in ("m1", "m2"):
            await session.producer("q").send(message_id=name)
        await until(lambda: bool(told))
        ending = asyncio.create_task(connection.stop() if what == "stop" else consumer.close())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not ending.done()
        go_on.set()
        await ending
        assert told == ["begins m1", "ends m1"]
        if what == "stop":
            assert connection.is_stopped
            await connection.start()
        else:
            session.consumer("q", listener=listen)
        await until(lambda: len(told) == 4)

    run(main())
    assert told[2:] == ["begins m2", "ends m2"]
    assert broker.queue("q").length == 0
    assert_kept(broker)


@pytest.mark.parametrize("what", ["stop", "close"])
def test_a_listener_that_stops_or_closes_does_not_wait_for_itself(what: str) -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE")
    told: list[str] = []

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        session = connection.session()

        async def listen(message: AsyncMessage) -> None:
            await (connection.stop() if what == "stop" else consumer.close())
            told.append(message.id)

        consumer = session.consumer("q", listener=listen)
        for name in ("m1", "m2"):
            await session.producer("q").send(message_id=name)
        await until(lambda: bool(told))
        for _ in range(20):
            await asyncio.sleep(0)

    run(main())
    assert told == ["m1"]
    assert broker.queue("q").length == 1
    assert_kept(broker)


def test_who_waits_at_a_stopped_connection_goes_on_when_it_starts() -> None:
    broker = broker_of()

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        session = connection.session()
        consumer = session.consumer("q")
        await connection.stop()
        await session.producer("q").send(message_id="m")
        assert await consumer.receive(0) is None
        waiting = asyncio.create_task(consumer.receive(None))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        await connection.start()
        message = await waiting
        assert message is not None
        assert message.id == "m"
        await message.acknowledge()

    run(main())
    assert_kept(broker)


def test_queues_are_administered_from_tasks_too() -> None:
    broker = broker_of()

    async def main() -> None:
        face = AsyncBroker(broker)
        session = face.connect().session()
        queue = face.queue("q", max_length=7)
        for name in ("m1", "m2"):
            await session.producer(queue).send(message_id=name)
        assert [message.id for message in session.browser("q")] == ["m1", "m2"]
        assert list(face.queues) == ["q"]
        assert face.metrics().queues["q"].depth == 2
        assert await face.purge("q") == 2
        assert face.metrics().queues["q"].depth == 0

    run(main())
    assert_kept(broker)
