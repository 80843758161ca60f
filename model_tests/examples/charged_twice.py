"""A consumer that does its work again when a message comes again."""

from collections.abc import Callable

import pytest

from ackfsm.driving.pytest_plugin import Trial
from ackfsm.engine import Connection, Message


class Accounts:
    """Stands for the application's database: what is in it survives the application's process."""

    def __init__(self, committed: Callable[[Message], None]) -> None:
        self.charged: list[bytes] = []
        self.committed = committed

    def charge(self, order: Message) -> None:
        """Charge the customer."""
        self.charged.append(order.body_as(bytes))
        self.committed(order)


def charge_orders(connection: Connection, accounts: Accounts) -> None:
    consumer = connection.session().consumer("orders")
    while (order := consumer.receive()) is not None:
        accounts.charge(order)
        order.acknowledge()


@pytest.fixture
def accounts(ackfsm: Trial) -> Accounts:
    return Accounts(committed=ackfsm.processed)


@pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
@pytest.mark.ackfsm_faults("consumer_crash", "consumer_link_loss", "broker_crash", never=["reprocessed"])
def test_every_order_is_charged_once(ackfsm: Trial, accounts: Accounts) -> None:
    ackfsm.send("orders", "tea", "milk")
    ackfsm.run(lambda connection: charge_orders(connection, accounts))
    assert sorted(accounts.charged) == [b"milk", b"tea"]
