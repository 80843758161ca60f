"""A consumer that acknowledges when it has done its work."""

from collections.abc import Callable

import pytest

from ackfsm.driving.pytest_plugin import Trial
from ackfsm.engine import Connection, Message


def book_orders(connection: Connection, book: Callable[[Message], None]) -> None:
    consumer = connection.session().consumer("orders")
    while (order := consumer.receive()) is not None:
        book(order)
        order.acknowledge()


@pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
@pytest.mark.ackfsm_faults("consumer_crash", "broker_kill", never=["unprocessed"])
def test_every_order_is_booked(ackfsm: Trial) -> None:
    ackfsm.send("orders", "tea", "milk")
    ackfsm.run(lambda connection: book_orders(connection, book=ackfsm.processed))
