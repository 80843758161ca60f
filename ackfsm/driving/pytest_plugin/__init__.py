"""A pytest plugin that runs an application under injected faults of brokers, connections and processes.

The application under test runs on a broker inside the process (:mod:`ackfsm.engine`)::

    @pytest.mark.ackfsm("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
    @pytest.mark.ackfsm_faults("consumer_crash", "broker_kill", never=["unprocessed"])
    def test_every_order_is_booked(ackfsm):
        ackfsm.send("orders", "tea", "milk")
        ackfsm.run(lambda connection: book_orders(connection, ackfsm.processed))

First the test runs without a fault, and the events of ``ackfsm.run()`` are counted.  Then it runs
once for each fault after each of these events, with fresh fixtures of its function.  The history
is verified each time: anomalies that the configuration promises absent, or that ``never`` names,
fail the test.

An application for :mod:`asyncio` is run in the same way: ``ackfsm.run`` awaits what it returns.  A test fails if
nothing was tested, if messages are left that it did not declare, and if the application does not terminate.

Fixtures: ``ackfsm`` (a :class:`Trial`) and ``ackfsm_broker``.  Markers: ``ackfsm`` (profile, settings, and what
:class:`ackfsm.engine.Broker` takes; ``pace`` and ``journal`` as callables that make one) and ``ackfsm_faults``.
Nothing heavy is imported before a test uses one of them.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ackfsm.driving.pytest_plugin._crash import Endless, ListenerFault, ProcessCrashed

if TYPE_CHECKING:
    from ackfsm.driving.pytest_plugin._fault_run import FaultRun
    from ackfsm.driving.pytest_plugin._points import PointSelection
    from ackfsm.driving.pytest_plugin._trial import Trial
    from ackfsm.engine import Broker

__all__ = ["ListenerFault", "ProcessCrashed", "Trial"]

_SECONDS = 60.0
_FAULTS = "ackfsm_faults"
_TRIAL = "ackfsm"


def __getattr__(name: str) -> Any:
    """:class:`Trial`, imported on first use."""
    if name == "Trial":
        from ackfsm.driving.pytest_plugin._trial import Trial

        return Trial
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Options and markers


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ackfsm", "ackfsm: applications under faults")
    group.addoption(
        "--ackfsm-point",
        metavar="N:FAULT",
        help="try one fault point alone in the tests with ackfsm_faults: the fault after event N",
    )
    group.addoption(
        "--ackfsm-points", metavar="N", type=int, help="try at most N fault points of each test, chosen by the seed"
    )
    group.addoption(
        "--ackfsm-seed", metavar="N", type=int, default=0, help="the seed of all that is random (default: %(default)s)"
    )
    group.addoption(
        "--ackfsm-timeout",
        metavar="SECONDS",
        type=float,
        default=_SECONDS,
        help="wall-clock time that one ackfsm.run() may take (default: %(default)g; inf: no limit)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ackfsm(profile, **settings): how the broker of the fixtures ackfsm and ackfsm_broker is configured"
    )
    config.addinivalue_line(
        "markers",
        "ackfsm_faults(*faults, never=[...]): run the test once for each of these faults after each event of its run; "
        "never names anomalies that must not happen, besides those that the configuration promises absent; "
        "timeout=SECONDS overrides --ackfsm-timeout",
    )
    if not config.getoption("ackfsm_timeout") > 0:
        raise pytest.UsageError("--ackfsm-timeout is a number of seconds above 0 (inf: no limit)")
    most = config.getoption("ackfsm_points")
    if most is not None and most < 1:
        raise pytest.UsageError("--ackfsm-points is a whole number from 1")
    if config.getoption("ackfsm_point") is not None:
        from ackfsm.driving.pytest_plugin._points import parse_point
        from ackfsm.terms import InputError

        try:
            parse_point(config.getoption("ackfsm_point"))
        except InputError as error:
            raise pytest.UsageError(str(error)) from None


# Fixtures


@pytest.fixture(scope="session")
def _ackfsm_tables() -> Broker:
    """A broker whose tables the others share, so that they are read once."""
    from ackfsm.engine import Broker

    return Broker()


@pytest.fixture
def ackfsm_broker(request: pytest.FixtureRequest, _ackfsm_tables: Broker) -> Iterator[Broker]:
    """A fresh broker that keeps a history, configured by the marker ``ackfsm``, closed at the end."""
    from ackfsm.driving.pytest_plugin._broker import broker_of
    from ackfsm.terms import InputError

    arguments: tuple[object, ...] = ()
    settings: dict[str, Any] = {"seed": request.config.getoption("ackfsm_seed")}
    for mark in reversed(list(request.node.iter_markers("ackfsm"))):
        arguments, settings = mark.args or arguments, {**settings, **mark.kwargs}
    try:
        broker = broker_of(_ackfsm_tables, arguments, settings)
    except InputError as error:
        pytest.fail(f"the marker ackfsm: {error}", pytrace=False)
    with broker:
        yield broker
        broker.use_in_this_thread()  # the test may have used it in another


@pytest.fixture
def ackfsm(request: pytest.FixtureRequest, ackfsm_broker: Broker) -> Trial:
    """Return the harness of an application: ``send`` to it, ``run`` it, report its ``processed`` messages."""
    if any(importlib.util.find_spec(name) is None for name in ("numpy", "pyarrow")):
        pytest.fail(
            "the fixture ackfsm verifies what happened, with pyarrow: pip install 'ackfsm[verify]'", pytrace=False
        )
    from ackfsm.driving.pytest_plugin._fault_run import FaultRun
    from ackfsm.driving.pytest_plugin._protocol import FAULT_RUN
    from ackfsm.driving.pytest_plugin._trial import Trial
    from ackfsm.terms import InputError

    try:
        alone = FaultRun(None, request.node.nodeid, 0, timeout=request.config.getoption("ackfsm_timeout"))
        return Trial(ackfsm_broker, request.node.stash.get(FAULT_RUN, None) or alone)
    except InputError as error:
        pytest.fail(str(error), pytrace=False)


# Running


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with the marker ``ackfsm_faults`` once for each fault point."""
    selected = _selection(item) if item.get_closest_marker(_FAULTS) is not None else ""
    if isinstance(selected, str):
        return None
    from ackfsm.driving.pytest_plugin._protocol import first_run, run_item

    run_item(item, nextitem, first_run(item, selected))
    return True


def _selection(item: pytest.Item) -> PointSelection | str:
    """Return the selection of the marker, or its mistake; ``""`` without one."""
    mark = item.get_closest_marker(_FAULTS)
    if mark is None:
        return ""
    nodes = [node for node, _ in item.iter_markers_with_node(_FAULTS)]
    if nodes.count(nodes[0]) > 1:
        return "the marker ackfsm_faults stands here more than once; name all faults in one"
    from ackfsm.driving.pytest_plugin._points import read_marker
    from ackfsm.terms import InputError

    if _TRIAL not in getattr(item, "fixturenames", ()):
        return "the marker ackfsm_faults is for tests that use the fixture ackfsm"
    try:
        return read_marker(mark.args, dict(mark.kwargs))
    except InputError as error:
        return str(error)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test with an invalid marker."""
    wrong = _selection(item)
    if wrong and isinstance(wrong, str):
        pytest.fail(wrong, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Verify the history when the body of a test is done."""
    trial = getattr(item, "funcargs", {}).get(_TRIAL)
    if trial is None and item.get_closest_marker(_FAULTS) is None:
        return (yield)
    from ackfsm.driving.pytest_plugin._trial import Trial
    from ackfsm.driving.pytest_plugin._verdict import endless, failure_context, failure_report
    from ackfsm.terms import HostError, InputError

    if not isinstance(trial, Trial):  # a fixture of the same name from elsewhere
        if item.get_closest_marker(_FAULTS) is not None:
            pytest.fail(
                "the marker ackfsm_faults is for the fixture ackfsm of this plugin, and another has its name",
                pytrace=False,
            )
        return (yield)

    try:
        result = yield
    except Endless:
        result = None  # reported below
    except Exception as error:
        if trial.watchdog.ended is not None:
            error.add_note(endless(trial))
            raise
        if trial.fault_run.injected or trial.leftovers():
            error.add_note(failure_context(trial))
        raise
    try:
        wrong = failure_report(trial)
    except (HostError, InputError) as error:
        wrong = str(error)
    if wrong is not None:
        pytest.fail(wrong, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note in the fault run that something was raised, whatever the report makes of it."""
    report = yield
    if item.get_closest_marker(_FAULTS) is not None and call.excinfo is not None:
        from ackfsm.driving.pytest_plugin._protocol import FAULT_RUN

        fault_run: FaultRun | None = item.stash.get(FAULT_RUN, None)
        if fault_run is not None:
            fault_run.failed = True
    return report


# Summary


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write how many fault points were tried, and of how many."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = (each for report in reports for each in getattr(report, "user_properties", ()))
    points = [found for key, value in properties if key == _POINTS and (found := _TRIED.fullmatch(str(value)))]
    if not points:
        return
    tried, of = (sum(int(found[i]) for found in points) for i in (1, 2))
    line = f"ackfsm: {tried} of {of} fault points tried in {len(points)} test{'' if len(points) == 1 else 's'}"
    if config.getoption("ackfsm_points") is not None:
        line += f"; a sample by --ackfsm-seed={config.getoption('ackfsm_seed')}"
    terminalreporter.write_line(line)


_POINTS = "ackfsm_points"
_TRIED = re.compile("([0-9]{1,9}) of ([0-9]{1,9})")
