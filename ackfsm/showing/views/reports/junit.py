"""JUnit's XML, as continuous integration reads it: a suite for each history, a test case for each check."""

from __future__ import annotations

import io
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from ackfsm.showing.views.reports.checks import Check, Outcome, Report
from ackfsm.text import printable


def junit_xml(reports: Sequence[Report]) -> str:
    """A document whose failures and errors are there if and only if the exit code is not 0.

    What failed is a ``failure``; what is open and decides, and a history that cannot be read, an ``error``; what else
    is open is ``skipped``.
    """
    root = ET.Element("testsuites", name="ackfsm verify")
    for report in reports:
        _suite(root, report)
    ET.indent(root)
    out = io.BytesIO()
    ET.ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)
    return f"{out.getvalue().decode()}\n"


def _suite(root: ET.Element, report: Report) -> None:
    name = printable(report.history)
    suite = ET.SubElement(root, "testsuite", name=name)
    for check in report.checks:
        case = ET.SubElement(suite, "testcase", classname=name, name=check.name)
        kind = _KINDS.get((check.outcome, check.decides))
        if kind is not None:
            found = ET.SubElement(case, kind, message=printable(check.told))
            found.text = _lines(check)
    if report.error is not None:
        case = ET.SubElement(suite, "testcase", classname=name, name="read")
        ET.SubElement(case, "error", message=printable(report.error))
    for counted, kinds in (("failures", ["failure"]), ("errors", ["error"]), ("skipped", ["skipped"])):
        suite.set(counted, str(sum(len(suite.findall(f"testcase/{kind}")) for kind in kinds)))
    suite.set("tests", str(len(suite)))


_KINDS = {
    (Outcome.FAILED, True): "failure",
    (Outcome.FAILED, False): "failure",
    (Outcome.OPEN, True): "error",
    (Outcome.OPEN, False): "skipped",
}


def _lines(check: Check) -> str:
    """Return a line for each message, after the question of the check."""
    where = [each.told if each.line is None else f"line {each.line}: {each.told}" for each in check.places]
    return "\n".join([f"asked: {check.meaning}", *map(printable, where)])
