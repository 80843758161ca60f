"""What ``ackfsm verify`` found, in the forms that other programs read: one file a form, from the same checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from ackfsm.showing.views.reports.checks import Report, report_of, unread_report
from ackfsm.showing.views.reports.github import github_annotations
from ackfsm.showing.views.reports.junit import junit_xml
from ackfsm.showing.views.reports.prometheus import prometheus_text
from ackfsm.showing.views.reports.sarif import sarif_log

__all__ = ["WRITERS", "Report", "ReportFormat", "Writer", "report_of", "unread_report"]


class ReportFormat(StrEnum):
    """The forms."""

    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"
    PROMETHEUS = "prometheus"


Writer: TypeAlias = "Callable[[Sequence[Report]], str]"

WRITERS: Final[Mapping[ReportFormat, Writer]] = MappingProxyType(
    {
        ReportFormat.JUNIT: junit_xml,
        ReportFormat.SARIF: sarif_log,
        ReportFormat.GITHUB: github_annotations,
        ReportFormat.PROMETHEUS: prometheus_text,
    }
)
"""What writes each form, of all histories of one command."""
