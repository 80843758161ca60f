"""Verification of histories and exploration of state spaces on Spark, with the same results as in one process."""

from ackfsm.spark._examine import examine
from ackfsm.spark._explore import explore
from ackfsm.spark._monitor import ALERT_SCHEMA, monitor, monitored
from ackfsm.spark._session import session
from ackfsm.spark._source import register
from ackfsm.spark._spread import spread
from ackfsm.spark._tables import EVENT_SCHEMA, HISTORY_SCHEMA, verify

__all__ = [
    "ALERT_SCHEMA",
    "EVENT_SCHEMA",
    "HISTORY_SCHEMA",
    "examine",
    "explore",
    "monitor",
    "monitored",
    "register",
    "session",
    "spread",
    "verify",
]
