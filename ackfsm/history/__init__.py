"""History format 1: read a recorded history, count its anomalies, judge it; in one process, in columns."""

from ackfsm.history._columns import Events
from ackfsm.history._examine import examine, shown_anomalies
from ackfsm.history._expand import Stream
from ackfsm.history._header import Header
from ackfsm.history._lines import ParseError
from ackfsm.history._read import History, read, read_header
from ackfsm.history._verdict import Finding, Findings, Result, judge

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
