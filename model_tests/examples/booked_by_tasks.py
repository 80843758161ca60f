"""A consumer for asyncio: a task for each of its two queues, and one that says what was booked."""

import asyncio
from collections.abc import Callable

import pytest

from ackfsm.driving.pytest_plugin import Trial
from ackfsm.engine.aio import AsyncConnection, AsyncMessage


async def book(connection: AsyncConnection, queue: str, book_order: Callable[[AsyncMessage], None]) -> None:
    session = connection.session()
    booked = session.producer("booked")
    async for order in session.consumer(queue):  # ends when the connection is closed
        book_order(order)
        await booked.send(order.body)
        await order.acknowledge()


async def book_orders(connection: AsyncConnection, book_order: Callable[[AsyncMessage], None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for queue in ("orders", "urgent"):
            tasks.create_task(book(connection, queue, book_order))


@pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
@pytest.mark.ackfsm_faults("consumer_crash", "broker_kill", never=["loss", "unprocessed"])
def test_every_order_is_booked(ackfsm: Trial) -> None:
    ackfsm.send("orders", "tea")
    ackfsm.send("urgent", "milk")
    ackfsm.run(lambda connection: book_orders(connection, ackfsm.processed))
    assert {order.body for order in ackfsm.receive_all("booked")} == {b"tea", b"milk"}
