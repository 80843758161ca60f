"""Recorded histories (format 1): read one, count its anomalies, hold each message to the model, and judge it."""

from ackfsm.verify._columns import Events
from ackfsm.verify._examination import Examination, examination, examine_path, write_tables
from ackfsm.verify._examine import examine, shown_anomalies
from ackfsm.verify._expand import Stream
from ackfsm.verify._explain import Contradicted, Explanation
from ackfsm.verify._header import Header
from ackfsm.verify._lines import ParseError
from ackfsm.verify._queues import Configurations
from ackfsm.verify._read import History, read, read_header
from ackfsm.verify._tables import TABLES
from ackfsm.verify._timeline import Unrecorded, UnrecordedFault
from ackfsm.verify._verdict import Cost, Finding, Findings, Part, Result, judge, verdict
from ackfsm.verify._written import staged

__all__ = [
    "TABLES",
    "Configurations",
    "Contradicted",
    "Cost",
    "Events",
    "Examination",
    "Explanation",
    "Finding",
    "Findings",
    "Header",
    "History",
    "ParseError",
    "Part",
    "Result",
    "Stream",
    "Unrecorded",
    "UnrecordedFault",
    "examination",
    "examine",
    "examine_path",
    "judge",
    "read",
    "read_header",
    "shown_anomalies",
    "staged",
    "verdict",
    "write_tables",
]
