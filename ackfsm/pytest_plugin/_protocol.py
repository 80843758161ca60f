"""One test, many runs: without a fault, then with one at each point; and one report of it all.

Each run is the whole protocol of the item, setup and teardown of its function's fixtures included,
as pytest-rerunfailures does it: so an application never meets what a former run has left, whichever
fixtures the test has, parametrized ones, ``tmp_path`` and ``monkeypatch`` among them.  Fixtures of
wider scopes live on through all runs, as they do between tests: what a test needs fresh is to be made
by a fixture of a function.  Nothing is reported before it is known what the one report says: of the
first run that raised anything, otherwise of the last.  So ``-x`` and ``--maxfail`` count tests, an
expected failure (``xfail``) is one if some point fails, and under xdist an item stays with its worker.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

from ackfsm.pytest_plugin._fault_run import Attempt
from ackfsm.pytest_plugin._points import Point, Wanted, chosen, parse_point, points_of

__all__ = ["ATTEMPT", "TRIED", "first_attempt", "run_item"]

ATTEMPT = pytest.StashKey[Attempt]()
"""What the present run of an item is told."""

TRIED = "ackfsm_points"
"""The user property of a report that says how many points were tried, and of how many."""


def first_attempt(item: pytest.Item, wanted: Wanted) -> Attempt:
    """The run of ``item`` without a fault."""
    config = item.config
    only = config.getoption("ackfsm_point")
    seed = config.getoption("ackfsm_seed")
    seconds = wanted.timeout or config.getoption("ackfsm_timeout")
    return Attempt(wanted, item.nodeid, seed, only=None if only is None else parse_point(only), timeout=seconds)


def run_item(item: pytest.Item, nextitem: pytest.Item | None, first: Attempt) -> None:
    """Run ``item`` without a fault and then at its points, and report once."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = _run(item, first)
    points, tried = [], 0
    if not first.failed and first.steps and first.wanted is not None:
        points = points_of(first.steps, first.wanted)
    spent = sum(report.duration for report in reports if report.when == "call")
    for tried, point in enumerate(_asked(item, first, points), 1):  # noqa: B007 - it is read below
        attempt = first.at(point)
        reports = _run(item, attempt)
        spent += sum(report.duration for report in reports if report.when == "call")
        if attempt.failed:
            break
    reports = _torn_down(item, nextitem, reports)
    for report in reports:
        report.duration = spent if report.when == "call" else report.duration
        if report.when == "teardown":
            report.user_properties.append((TRIED, f"{tried} of {len(points)}"))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _asked(item: pytest.Item, first: Attempt, points: list[Point]) -> list[Point]:
    """The points that the command line asks for."""
    if first.only is not None:
        return [first.only] if points else []
    return chosen(points, item.config.getoption("ackfsm_points"), f"{first.seed} {item.nodeid}")


def _run(item: pytest.Item, attempt: Attempt) -> list[pytest.TestReport]:
    """One run; only what belongs to the item alone is torn down."""
    item.stash[ATTEMPT] = attempt
    properties = list(item.user_properties)
    item._report_sections.clear()  # noqa: SLF001 - a run shows its own output, not that of those before
    try:
        return runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type] # what stays is its chain
    finally:
        item.user_properties[:] = properties


def _torn_down(
    item: pytest.Item, nextitem: pytest.Item | None, reports: list[pytest.TestReport]
) -> list[pytest.TestReport]:
    """Tear down what the next item does not need either, and let the report of the teardown say so if that fails."""
    state = item.session._setupstate  # noqa: SLF001 - pytest has no other way to it
    call = pytest.CallInfo.from_call(lambda: state.teardown_exact(nextitem), when="teardown")
    if call.excinfo is None:
        return reports
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return [*(each for each in reports if each.when != "teardown"), report]
