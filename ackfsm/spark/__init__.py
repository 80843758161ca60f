"""Histories verified and state spaces explored on Spark: the same as in one process, where one is too small."""

from ackfsm.spark._examine import examine
from ackfsm.spark._explore import explore
from ackfsm.spark._session import session
from ackfsm.spark._spread import spread

__all__ = ["examine", "explore", "session", "spread"]
