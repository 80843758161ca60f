"""Run one test many times, without a fault and then with one at each point, and report it once.

Each run is the whole protocol of the item, setup and teardown of its function's fixtures included,
as in pytest-rerunfailures: so an application never sees what a former run has left, whichever
fixtures the test has, parametrized ones, ``tmp_path`` and ``monkeypatch`` included.  Fixtures of
wider scopes are kept through all runs, as they are between tests: what a test needs fresh has to be
a fixture of function scope.  The one report is that of the first run that raised anything, otherwise
of the last.  So ``-x`` and ``--maxfail`` count tests, an
expected failure (``xfail``) is one if some point fails, and under xdist an item stays with its worker.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

from ackfsm.driving.pytest_plugin._fault_run import FaultRun
from ackfsm.driving.pytest_plugin._points import Point, PointSelection, parse_point, points_of, sample_points

FAULT_RUN = pytest.StashKey[FaultRun]()
"""The current run of an item."""

TRIED = "ackfsm_points"
"""The user property of a report with the number of points tried, and of all points."""


def first_run(item: pytest.Item, selection: PointSelection) -> FaultRun:
    """The run of ``item`` without a fault."""
    config = item.config
    only = config.getoption("ackfsm_point")
    seed = config.getoption("ackfsm_seed")
    seconds = selection.timeout or config.getoption("ackfsm_timeout")
    return FaultRun(selection, item.nodeid, seed, only=None if only is None else parse_point(only), timeout=seconds)


def run_item(item: pytest.Item, nextitem: pytest.Item | None, first: FaultRun) -> None:
    """Run ``item`` without a fault and then at its points, and report once."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run(item, first)
    points, tried = [], 0
    if not first.failed and first.steps and first.selection is not None:
        points = points_of(first.steps, first.selection)
    spent = sum(report.duration for report in reports if report.when == "call")
    for tried, point in enumerate(_requested_points(item, first, points), 1):  # noqa: B007 - it is read below
        fault_run = first.at(point)
        reports = _run(item, fault_run)
        spent += sum(report.duration for report in reports if report.when == "call")
        if fault_run.failed:
            break
    reports = _tear_down(item, nextitem, reports)
    for report in reports:
        report.duration = spent if report.when == "call" else report.duration
        if report.when == "teardown":
            report.user_properties.append((TRIED, f"{tried} of {len(points)}"))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _requested_points(item: pytest.Item, first: FaultRun, points: list[Point]) -> list[Point]:
    """The points that the command line selects."""
    if first.only is not None:
        return [first.only] if points else []
    return sample_points(points, item.config.getoption("ackfsm_points"), f"{first.seed} {item.nodeid}")


def _run(item: pytest.Item, fault_run: FaultRun) -> list[pytest.TestReport]:
    """One run; only fixtures of the item alone are torn down."""
    item.stash[FAULT_RUN] = fault_run
    properties = list(item.user_properties)
    item._report_sections.clear()  # noqa: SLF001 - a run shows only its own output
    try:
        return runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type] # what stays is its chain
    finally:
        item.user_properties[:] = properties


def _tear_down(
    item: pytest.Item, nextitem: pytest.Item | None, reports: list[pytest.TestReport]
) -> list[pytest.TestReport]:
    """Tear down the fixtures that the next item does not need; a failure is the report of the teardown."""
    state = item.session._setupstate  # noqa: SLF001 - pytest has no other way to it
    call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
    if call.excinfo is None:
        return reports
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return [*(each for each in reports if each.when != "teardown"), report]
