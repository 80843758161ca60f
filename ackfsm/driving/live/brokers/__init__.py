"""The brokers that can be had: a child of ours over a folder of its own, or one that somebody else has started."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.driving.live.brokers.activemq import ActiveMq
from ackfsm.driving.live.brokers.artemis import Artemis
from ackfsm.driving.live.brokers.broker import DURABLE, SHARED, SUBSCRIPTIONS, Broker, LiveBroker, Subscription
from ackfsm.driving.live.brokers.broker_j import BrokerJ
from ackfsm.driving.live.brokers.rabbitmq import RabbitMq
from ackfsm.driving.live.brokers.running import Address, RunningArtemis, RunningBroker, RunningRabbitMq

__all__ = [
    "BROKERS",
    "DURABLE",
    "RUNNING",
    "SHARED",
    "SUBSCRIPTIONS",
    "ActiveMq",
    "Address",
    "Artemis",
    "Broker",
    "BrokerJ",
    "LiveBroker",
    "RabbitMq",
    "RunningBroker",
    "Subscription",
]

BROKERS: Final[Mapping[str, type[LiveBroker]]] = MappingProxyType(
    {each.name: each for each in (ActiveMq, Artemis, BrokerJ, RabbitMq)}
)
"""By name."""
RUNNING: Final[Mapping[str, type[RunningBroker]]] = MappingProxyType(
    {each.name: each for each in (RunningArtemis, RunningRabbitMq)}
)
"""By name, those that can be asked for their queues where somebody else has started them."""
