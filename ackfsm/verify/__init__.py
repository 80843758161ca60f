"""History format 1: read a recorded history, count its anomalies, judge it; in one process, in columns."""

from ackfsm.verify._columns import Events
from ackfsm.verify._examine import examine, shown_anomalies
from ackfsm.verify._expand import Stream
from ackfsm.verify._header import Header
from ackfsm.verify._lines import ParseError
from ackfsm.verify._read import History, read, read_header
from ackfsm.verify._verdict import Finding, Findings, Result, judge

__all__ = [
    "Events",
    "Finding",
    "Findings",
    "Header",
    "History",
    "ParseError",
    "Result",
    "Stream",
    "examine",
    "judge",
    "read",
    "read_header",
    "shown_anomalies",
]
