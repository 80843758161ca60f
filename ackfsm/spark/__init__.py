"""Histories verified on Spark: the same findings as in one process, for histories that one process is too small for."""

from ackfsm.spark._examine import examine
from ackfsm.spark._session import session

__all__ = ["examine", "session"]
