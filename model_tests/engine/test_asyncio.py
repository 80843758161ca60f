"""The face for asyncio: tasks that wait together, and what is left when one of them is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ackfsm.engine import Broker, IllegalStateException, MessageRejected, Outcome, OutcomeUnknown, Sent, Stuck, Timed
from ackfsm.engine.aio import AsyncBroker, AsyncMessage
from ackfsm.engine.journal import MemoryJournal
from model_tests.support.engine.calls import assert_kept
from model_tests.support.engine.tasks import run, until
from model_tests.support.tables import shipped


class Counting(MemoryJournal):
    """A journal that counts how often it was synced."""

    syncs = 0

    def sync(self) -> int:
        """Count, and sync."""
        self.syncs += 1
        return super().sync()


def broker_of(**settings: Any) -> Broker:
    return Broker("jms", specification=shipped(), history=True, **settings)


@pytest.mark.parametrize("timed", [False, True])
def test_tasks_that_send_at_once_share_a_sync(timed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    journal = Counting()
    broker = broker_of(journal=journal, pace=Timed(latency=(1000, 1000)) if timed else None)

    async def main() -> list[Sent]:
        producer = AsyncBroker(broker).connect().session().producer("q")
        return await asyncio.gather(*(producer.send(b"x") for _ in range(50)))

    assert {sent.outcome for sent in run(main())} == {Outcome.CONFIRMED}
    assert journal.syncs == 1


def test_a_window_lets_only_so_many_sends_be_open() -> None:
    broker = broker_of(pace=Timed(), publish_window=3)
    most = 0

    async def main() -> None:
        nonlocal most
        producer = AsyncBroker(broker).connect().session().producer("q")

        def count(_: object) -> None:
            nonlocal most
            most = max(most, sum(sent.outcome is Outcome.OPEN for sent in posted))

        posted: list[Sent] = []
        for _ in range(20):
            posted.append(producer.post(b"x"))
            count(None)
        await asyncio.gather(*map(producer.outcome, posted))

    run(main())
    assert most == 3
    assert broker.queue("q").length == 20


def test_one_task_sends_and_another_iterates() -> None:
    broker = broker_of(pace=Timed(), ack_mode="INDIVIDUAL_ACKNOWLEDGE")
    got: list[str] = []

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        session = connection.session()

        async def consume() -> None:
            async for message in session.consumer("q"):
                got.append(message.id)
                await message.acknowledge()

        consuming = asyncio.create_task(consume())
        producer = connection.session().producer("q")
        for number in range(5):
            await producer.send(message_id=f"m{number}")
        await until(lambda: len(got) == 5)
        await session.close()
        await consuming
        await connection.close()

    run(main())
    assert got == [f"m{number}" for number in range(5)]
    broker.drained()
    assert_kept(broker)


def test_a_timeout_passes_in_virtual_time() -> None:
    broker = broker_of()

    async def main() -> AsyncMessage | None:
        return await AsyncBroker(broker).connect().session().consumer("q").receive(timeout=3600)

    assert run(main()) is None
    assert broker.now == 3600 * 10**9


def test_a_cancelled_send_has_an_outcome_that_can_still_be_asked_for() -> None:
    broker = broker_of(pace=Timed())

    async def main() -> Sent:
        producer = AsyncBroker(broker).connect().session().producer("q")
        sending = asyncio.create_task(producer.send(b"x"))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        (left,) = producer.unheard
        assert left.outcome is Outcome.OPEN
        await producer.outcome(left)
        assert producer.unheard == []
        return left

    assert run(main()).outcome is Outcome.CONFIRMED


def test_a_cancelled_receive_takes_no_message_with_it() -> None:
    broker = broker_of(pace=Timed())

    async def main() -> str:
        connection = AsyncBroker(broker).connect()
        consumer = connection.session().consumer("q")
        waiting = asyncio.create_task(consumer.receive(None))
        await asyncio.sleep(0)
        producer = connection.session().producer("q")
        producer.post(message_id="m")
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not waiting.cancelled():
            message = waiting.result()
        else:
            message = await consumer.receive()
        assert message is not None
        return str(message.id)

    assert run(main()) == "m"


def test_an_outcome_in_doubt_and_a_rejection_are_raised_where_they_are_awaited() -> None:
    broker = broker_of(pace=Timed())

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        producer = connection.session().producer("q")
        sending = asyncio.create_task(producer.send(b"x"))
        await asyncio.sleep(0)
        broker.crash()
        with pytest.raises(OutcomeUnknown):
            await sending
        broker.queue("q").refuse_next = 1
        with pytest.raises(MessageRejected):
            await producer.send(b"x")

    run(main())


def test_who_waits_for_what_nothing_brings_about_is_told() -> None:
    broker = broker_of(repairs=False, pace=Timed(), publish_window=9, confirm_threshold=9, confirm_timer=False)

    async def main() -> None:
        producer = AsyncBroker(broker).connect().session().producer("q")
        with pytest.raises(Stuck):
            await producer.send(b"x")

    run(main())


def test_listeners_of_two_sessions_go_on_at_once_and_one_session_calls_one_at_a_time() -> None:
    broker = broker_of(prefetch=1)
    busy: dict[int, int] = {0: 0, 1: 0}
    most = [0, 0, 0]
    done: list[str] = []

    def listener(number: int) -> Any:
        async def call(message: AsyncMessage) -> None:
            busy[number] += 1
            most[number] = max(most[number], busy[number])
            most[2] = max(most[2], sum(busy.values()))
            for _ in range(5):
                await asyncio.sleep(0)
            busy[number] -= 1
            done.append(message.id)

        return call

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        for number in (0, 1):
            connection.session().consumer("q", listener=listener(number))
        producer = connection.session().producer("q")
        await asyncio.gather(*(producer.send() for _ in range(8)))
        await until(lambda: len(done) == 8)
        await connection.close()

    run(main())
    assert most == [1, 1, 2]
    assert len(set(done)) == 8
    broker.drained()
    assert_kept(broker)


def test_a_listener_that_throws_is_called_again() -> None:
    broker = broker_of()
    calls: list[bool] = []

    async def listener(message: AsyncMessage) -> None:
        calls.append(message.redelivered)
        await asyncio.sleep(0)
        if len(calls) == 1:
            raise RuntimeError("the application fails")

    async def main() -> None:
        connection = AsyncBroker(broker).connect()
        connection.session().consumer("q", listener=listener)
        await connection.session().producer("q").send()
        await until(lambda: len(calls) == 2)
        await connection.close()

    run(main())
    assert calls == [False, True]


def test_a_handler_may_be_a_coroutine() -> None:
    broker = broker_of()
    heard: list[Outcome] = []

    async def handler(sent: Sent) -> None:
        await asyncio.sleep(0)
        heard.append(sent.outcome)

    async def main() -> None:
        producer = AsyncBroker(broker).connect().session().producer("q", on_outcome=handler)
        await producer.send()
        await until(lambda: bool(heard))

    run(main())
    assert heard == [Outcome.CONFIRMED]


def test_transactions_commit_and_roll_back() -> None:
    broker = broker_of(ack_mode="SESSION_TRANSACTED")

    async def main() -> list[str]:
        async with AsyncBroker(broker).connect() as connection:
            sender, receiver = connection.session(), connection.session()
            producer, consumer = sender.producer("q"), receiver.consumer("q")
            producer.post(message_id="away")
            await sender.rollback()
            producer.post(message_id="kept")
            await sender.commit()
            first = await consumer.receive()
            await receiver.rollback()
            again = await consumer.receive()
            await receiver.commit()
            assert first is not None
            assert again is not None
            return [first.id, again.id]

    assert run(main()) == ["kept", "kept"]
    broker.drained()


def test_a_consumer_with_a_listener_is_not_iterated_over() -> None:
    broker = broker_of()

    async def listener(_: AsyncMessage) -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        consumer = AsyncBroker(broker).connect().session().consumer("q", listener=listener)
        with pytest.raises(IllegalStateException):
            await anext(consumer)

    run(main())


@pytest.mark.parametrize(("mode", "events"), [("PER_MESSAGE", 4), ("WINDOWED", 1)])
def test_a_handler_hears_of_a_range_once_and_every_task_of_its_own_message(mode: str, events: int) -> None:
    heard: list[Sent] = []

    async def work() -> list[Sent]:
        broker = Broker("solace", specification=shipped(), pace=Timed(), publish_window=12, ack_event_mode=mode)
        producer = AsyncBroker(broker).connect().session().producer("q", on_outcome=heard.append)
        return await asyncio.gather(*(producer.send(b"x") for _ in range(4)))

    sent = asyncio.run(work())
    assert [message.outcome for message in sent] == [Outcome.CONFIRMED] * 4
    assert heard == sent[-events:]
