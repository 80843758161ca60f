"""A broker in the process; every step of it is a row of the tables."""

from ackfsm.engine.broker import Broker
from ackfsm.engine.browser import Browsed, Browser
from ackfsm.engine.connection import Connection
from ackfsm.engine.consumer import Consumer, Message
from ackfsm.engine.core.dead_letters import DEAD_LETTER_HEADERS
from ackfsm.engine.core.errors import (
    BrokerStopped,
    IllegalStateException,
    JMSException,
    JournalInconsistent,
    MessageFormatException,
    MessageRejected,
    OutcomeUnknown,
    Stuck,
    TransactionRolledBackException,
)
from ackfsm.engine.core.instances import Body, HeaderValue, MapValue, Outcome, Queue, Sent
from ackfsm.engine.core.scheduler import AtOnce, Shuffled, Timed
from ackfsm.engine.history import History
from ackfsm.engine.metrics import PROMETHEUS_CONTENT_TYPE, Metrics, QueueMetrics, prometheus
from ackfsm.engine.producer import Producer
from ackfsm.engine.session import Session

__all__ = [
    "DEAD_LETTER_HEADERS",
    "PROMETHEUS_CONTENT_TYPE",
    "AtOnce",
    "Body",
    "Broker",
    "BrokerStopped",
    "Browsed",
    "Browser",
    "Connection",
    "Consumer",
    "HeaderValue",
    "History",
    "IllegalStateException",
    "JMSException",
    "JournalInconsistent",
    "MapValue",
    "Message",
    "MessageFormatException",
    "MessageRejected",
    "Metrics",
    "Outcome",
    "OutcomeUnknown",
    "Producer",
    "Queue",
    "QueueMetrics",
    "Sent",
    "Session",
    "Shuffled",
    "Stuck",
    "Timed",
    "TransactionRolledBackException",
    "prometheus",
]
