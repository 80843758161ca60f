"""Recorded histories (format 1): read one, count its anomalies, hold each message to the model, and judge it."""

from ackfsm.history.columns import Events
from ackfsm.history.header import Header
from ackfsm.history.lines import ParseError
from ackfsm.history.queues import Configurations
from ackfsm.history.read import History, read, read_header
from ackfsm.verify.conformance.explain import Contradicted, Explanation
from ackfsm.verify.conformance.timeline import Unrecorded, UnrecordedFault
from ackfsm.verify.counting.bins import LEVELS, By, Grouped, Series
from ackfsm.verify.counting.observables import Stream
from ackfsm.verify.findings.examine import examine, shown_anomalies
from ackfsm.verify.findings.findings import Cost, Finding, Findings, Part
from ackfsm.verify.findings.verdict import Result, judge, verdict
from ackfsm.verify.results.examination import Examination, examination, examine_path, write_tables
from ackfsm.verify.results.excuses import FaultSpan, WhyNot
from ackfsm.verify.results.moments import BROKER, Moment, Side
from ackfsm.verify.results.picture import Band, Marks, Picture, Shown
from ackfsm.verify.results.stories import Stories
from ackfsm.verify.results.tables import TABLES, FirstMessage
from ackfsm.verify.results.told import Around, Cause, Chapter, Found, Open, Pending, Story
from ackfsm.verify.results.written import staged

__all__ = [
    "BROKER",
    "LEVELS",
    "TABLES",
    "Around",
    "Band",
    "By",
    "Cause",
    "Chapter",
    "Configurations",
    "Contradicted",
    "Cost",
    "Events",
    "Examination",
    "Explanation",
    "FaultSpan",
    "Finding",
    "Findings",
    "FirstMessage",
    "Found",
    "Grouped",
    "Header",
    "History",
    "Marks",
    "Moment",
    "Open",
    "ParseError",
    "Part",
    "Pending",
    "Picture",
    "Result",
    "Series",
    "Shown",
    "Side",
    "Stories",
    "Story",
    "Stream",
    "Unrecorded",
    "UnrecordedFault",
    "WhyNot",
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
