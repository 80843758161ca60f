"""Verification of histories and exploration of state spaces on Spark, with the same results as in one process."""

from ackfsm.spark._examine import examination, examine
from ackfsm.spark._explore import explore
from ackfsm.spark._mapped import mapped
from ackfsm.spark._monitor import ALERT_SCHEMA, monitor, monitored
from ackfsm.spark._session import session
from ackfsm.spark._source import register
from ackfsm.spark._spread import spread
from ackfsm.spark._sweep import SWEEP_SCHEMA, sweep, swept
from ackfsm.spark._tables import EVENT_SCHEMA, HISTORY_SCHEMA, RESULT_SCHEMAS, Verified, verified, verify

__all__ = [
    "ALERT_SCHEMA",
    "EVENT_SCHEMA",
    "HISTORY_SCHEMA",
    "RESULT_SCHEMAS",
    "SWEEP_SCHEMA",
    "Verified",
    "examination",
    "examine",
    "explore",
    "mapped",
    "monitor",
    "monitored",
    "register",
    "session",
    "spread",
    "sweep",
    "swept",
    "verified",
    "verify",
]
