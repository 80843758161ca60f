"""Verification of histories and exploration of state spaces on Spark, with the same results as in one process."""

from ackfsm.spark._examine import examine
from ackfsm.spark._explore import explore
from ackfsm.spark._session import session
from ackfsm.spark._spread import spread

__all__ = ["examine", "explore", "session", "spread"]
