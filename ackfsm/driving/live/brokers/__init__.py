"""The brokers that can be had, each started as a child of ours over a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.driving.live.brokers.activemq import ActiveMq
from ackfsm.driving.live.brokers.artemis import Artemis
from ackfsm.driving.live.brokers.broker import Depth, LiveBroker
from ackfsm.driving.live.brokers.broker_j import BrokerJ
from ackfsm.driving.live.brokers.rabbitmq import RabbitMq

__all__ = ["BROKERS", "ActiveMq", "Artemis", "BrokerJ", "Depth", "LiveBroker", "RabbitMq"]

BROKERS: Final[Mapping[str, type[LiveBroker]]] = MappingProxyType(
    {each.name: each for each in (ActiveMq, Artemis, BrokerJ, RabbitMq)}
)
"""By name."""
