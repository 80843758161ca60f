"""Recorded histories (format 1): read one, count its anomalies, hold each message to the model, and judge it."""

from ackfsm.history.columns import Events
from ackfsm.history.header import Header
from ackfsm.history.lines import ParseError
from ackfsm.history.queues import Configurations
from ackfsm.history.read import History, read, read_header
from ackfsm.verify.conformance.explain import Contradicted, Explanation
from ackfsm.verify.conformance.messages import Kept
from ackfsm.verify.conformance.timeline import Unrecorded, UnrecordedFault
from ackfsm.verify.context.allowed import allowed
from ackfsm.verify.counting.bins import LEVELS, MOST_GROUPS, Bins, By, Grouped, Series
from ackfsm.verify.counting.counted import shown_anomalies
from ackfsm.verify.counting.observables import Stream, expand
from ackfsm.verify.findings.examine import examine
from ackfsm.verify.findings.findings import Cost, Finding, Findings, Part
from ackfsm.verify.findings.verdict import Result, judge, verdict
from ackfsm.verify.results.examination import Examination, examination, examine_path, write_tables
from ackfsm.verify.results.tables import TABLES, FirstMessage
from ackfsm.verify.results.written import staged

__all__ = [
    "LEVELS",
    "MOST_GROUPS",
    "TABLES",
    "Bins",
    "By",
    "Configurations",
    "Contradicted",
    "Cost",
    "Events",
    "Examination",
    "Explanation",
    "Finding",
    "Findings",
    "FirstMessage",
    "Grouped",
    "Header",
    "History",
    "Kept",
    "ParseError",
    "Part",
    "Result",
    "Series",
    "Stream",
    "Unrecorded",
    "UnrecordedFault",
    "allowed",
    "examination",
    "examine",
    "examine_path",
    "expand",
    "judge",
    "read",
    "read_header",
    "shown_anomalies",
    "staged",
    "verdict",
    "write_tables",
]
