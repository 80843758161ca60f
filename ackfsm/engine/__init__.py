"""A broker in the process, every step of which is a row of the tables."""

from ackfsm.engine._broker import Broker
from ackfsm.engine._browser import Browsed, Browser
from ackfsm.engine._connection import Connection
from ackfsm.engine._consumer import Consumer, Message
from ackfsm.engine._dead_letters import DEAD_LETTER_HEADERS
from ackfsm.engine._errors import (
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
from ackfsm.engine._log import History
from ackfsm.engine._messages import Body, HeaderValue, MapValue, Outcome, Sent
from ackfsm.engine._metrics import PROMETHEUS_CONTENT_TYPE, Metrics, QueueMetrics, prometheus
from ackfsm.engine._pace import AtOnce, Shuffled, Timed
from ackfsm.engine._producer import Producer
from ackfsm.engine._queues import Queue
from ackfsm.engine._session import Session

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
