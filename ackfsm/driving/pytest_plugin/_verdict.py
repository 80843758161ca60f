"""Verify the history of a run, and report the anomalies that the test does not allow."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ackfsm.driving.pytest_plugin._fault_run import FaultRun
from ackfsm.driving.pytest_plugin._points import PointSelection, points_of
from ackfsm.driving.pytest_plugin._trace import mermaid, name, text
from ackfsm.driving.pytest_plugin._trial import Trial
from ackfsm.engine import IllegalStateException, Stuck
from ackfsm.support import files
from ackfsm.terms import Anomaly, Configuration, Fault, HostError, InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm.verify import Findings


def failure_report(trial: Trial) -> str | None:
    """Why the test fails although its body has not; ``None`` if it passes.

    Raises :class:`ackfsm.terms.InputError` if that cannot be decided, or nothing was tried.
    """
    fault_run = trial.fault_run
    if trial.watchdog.ended is not None:
        return endless(trial)
    if fault_run.selection is not None and not trial.ran:
        raise InputError("the marker ackfsm_faults needs something to strike: call ackfsm.run(application) in the test")
    if not fault_run.is_the_same or (fault_run.point is not None and not fault_run.injected):
        raise InputError(_not_the_same(fault_run))
    if fault_run.awaited():
        raise InputError(
            f"the fault of point {fault_run.point} had nothing to strike: no listener was called after it, or nothing "
            "was sent"
        )
    if left := trial.leftovers():
        return "\n".join((*([_heading(fault_run)] if fault_run.injected else []), *left, *_rerun_hint(fault_run)))
    if not trial.ran:
        return None
    verdict = _verify(trial, strictly=True)
    if verdict.broken:
        return "\n".join(_report(trial, verdict))
    if fault_run.selection is not None and fault_run.point is None:
        _check_points(fault_run, fault_run.selection)
    return None


def _check_points(fault_run: FaultRun, selection: PointSelection) -> None:
    """Raise :class:`InputError` if there is no point to try, or not the requested one."""
    points = points_of(fault_run.steps, selection)
    if fault_run.only is not None and fault_run.only not in points:
        raise InputError(
            f"--ackfsm-point={fault_run.only}: there is no such point in a run of {len(fault_run.steps)} events"
        )


def failure_context(trial: Trial) -> str:
    """The context of a body that has failed: the fault, the anomalies so far, and the messages that are left."""
    left = trial.leftovers() if trial.watchdog.consistent else []
    if not trial.fault_run.injected:
        return "\n".join(("without a fault", *left))
    verdict = _verify(trial, strictly=False)
    return "\n".join((*_report(trial, verdict), *left))


def endless(trial: Trial) -> str:
    """Why the watchdog ended an application, with the anomalies if a fault was injected."""
    why = str(trial.watchdog.ended)
    if not trial.fault_run.injected:
        return why
    at_rest = trial.watchdog.consistent and not trial.leftovers()
    return "\n".join((why, *_report(trial, _verify(trial, strictly=at_rest))))


@dataclasses.dataclass(frozen=True, slots=True)
class _Verdict:
    """The forbidden anomalies that were found, each with the ids that show it and why it is forbidden.

    ``broken`` is in the order of :class:`Anomaly`; ``strongest`` are the strongest guarantees that held.
    """

    broken: dict[Anomaly, tuple[tuple[str, ...], str]]
    strongest: tuple[str, ...]


def _verify(trial: Trial, *, strictly: bool) -> _Verdict:
    """Verify the history; ``strictly``: it has to be complete, with every queue empty."""
    from ackfsm import verify

    trial.broker.use_in_this_thread()
    if strictly:
        _drain(trial)
    configurations = trial.configurations or {trial.broker.configuration}
    findings = _examined(trial, min(configurations, key=repr))
    result = verify.judge(findings, {}, guarantees=trial.broker.specification.guarantees)
    forbidden = _forbidden(trial, configurations, consumers=1 + findings.given_back_beside)
    unknown = [each for each in forbidden if each in findings.anomalies and findings.anomalies[each].unknown]
    if strictly and unknown:
        raise InputError(f"{unknown[0]} cannot be decided: {shown(str(findings.anomalies[unknown[0]].unknown))}")
    broken = {
        anomaly: (finding.examples, forbidden[anomaly])
        for anomaly, finding in findings.anomalies.items()
        if finding.found and anomaly in forbidden
    }
    return _Verdict(broken, result.strongest)


def _drain(trial: Trial) -> None:
    """Empty the queues in which messages may stay, and record that all are drained."""
    trial.take_what_stays()
    try:
        trial.broker.drained()
    except (IllegalStateException, Stuck) as error:
        raise InputError(f"the history cannot be verified: {shown(str(error))}") from None


def _forbidden(trial: Trial, configurations: Collection[Configuration], consumers: int) -> dict[Anomaly, str]:
    """The forbidden anomalies, each with the reason, where so many consumers of a queue have to do with each other."""
    specification, selection = trial.broker.specification, trial.fault_run.selection
    promises = [specification.promised_absent(configuration, consumers=consumers) for configuration in configurations]
    absent = [anomaly for anomaly in promises[0] if all(anomaly in each for each in promises)]
    reasons = {anomaly: f"the configuration promises that {promises[0][anomaly].because}" for anomaly in absent}
    return reasons | dict.fromkeys(selection.never if selection is not None else (), "the test says never")


def _examined(trial: Trial, configuration: Configuration) -> Findings:
    from ackfsm import verify

    with _folder() as folder:
        file = folder / "history.jsonl"
        files.write_file(file, "".join(f"{line}\n" for line in _lines(trial)).encode())
        recorded = verify.read(file)
        specification = trial.broker.specification
        return verify.examine(recorded, specification, configuration, tells_processed=True, hold=False)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder; raises :class:`ackfsm.terms.HostError` where none can be made."""
    try:
        made = tempfile.mkdtemp(prefix="ackfsm-")
    except OSError as error:
        raise HostError(f"no temporary folder can be made ({error.strerror}); set TMPDIR to one with room") from None
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of the history, without dead processes and, if the application reports, implied processing.

    What befell a process is no line of its own.  A call that could never return ended with the process that made it.
    """
    log = trial.history
    yield json.dumps(log.header)
    for line in log.lines:
        implied = line["event"] == "processed" and line["process"] in trial.clients
        unreported = implied and trial.fault_run.by_application and line["t"] not in trial.processed_times
        dead = line["event"] not in _BEFELL and any(
            line["process"] in clients and (died < line["t"] <= gone or line["event"] == _WAITS)
            for clients, died, gone in trial.crashes
        )
        if not unreported and not dead:
            yield json.dumps(line)


_BEFELL = frozenset({"fault", "recovered"})
_WAITS = "waiting"


def _not_the_same(fault_run: FaultRun) -> str:
    met = (
        f"event {fault_run.point.number} was {fault_run.met}"
        if fault_run.met and fault_run.point
        else "it ended before"
    )
    expected = fault_run.steps[fault_run.point.number - 1][0] if fault_run.point else None
    return (
        f"the run is not the same each time ({met}, without a fault {expected}); take chance and clocks out of the test"
    )


# The report


def _report(trial: Trial, verdict: _Verdict) -> Iterator[str]:
    fault_run, specification = trial.fault_run, trial.broker.specification
    yield _heading(fault_run)
    for anomaly, (ids, because) in verdict.broken.items():
        yield f"{anomaly} of {', '.join(map(name, ids[:_SHOWN]))}: {specification.meaning(anomaly)} ({because})"
    yield f"strongest guarantee that stands: {', '.join(verdict.strongest) or 'none'}"
    events = trial.trace.of(_witness(trial, verdict), by_application=fault_run.by_application)
    point = fault_run.point.number if fault_run.point else None
    yield f"\n{text(events, point)}\n\n{mermaid(events)}\n"
    yield from _rerun_hint(fault_run)


def _rerun_hint(fault_run: FaultRun) -> Iterator[str]:
    """The command that runs this point alone."""
    if fault_run.point is not None:
        seed = f" --ackfsm-seed={fault_run.seed}" if fault_run.seed else ""
        yield f"again: pytest {shlex.quote(fault_run.nodeid)} --ackfsm-point={fault_run.point}{seed}"


_SHOWN = 3


def _heading(fault_run: FaultRun) -> str:
    if fault_run.point is None:
        return "without a fault:"
    point = fault_run.point
    return f"fault point {point}: {_WORDS[point.fault]} after event {point.number}, {fault_run.met}"


def _witness(trial: Trial, verdict: _Verdict) -> str:
    """The message to show: the first with an anomaly, else that of the fault."""
    named = {one.message for one in trial.trace.events}
    shown = [ids[0] for ids, _ in verdict.broken.values() if ids[0] in named]
    met = trial.fault_run.met
    return shown[0] if shown else met.message if met is not None else ""


_WORDS = {
    Fault.BROKER_CRASH: "the broker loses its power",
    Fault.BROKER_KILL: "the broker's process is killed",
    Fault.JOURNAL_FAILURE: "a sync of the broker's journal fails",
    Fault.PRODUCER_LINK_LOSS: "the application's connection breaks",
    Fault.CONSUMER_LINK_LOSS: "the application's connection breaks",
    Fault.PRODUCER_CRASH: "the application's process dies",
    Fault.CONSUMER_CRASH: "the application's process dies",
    Fault.LISTENER_EXCEPTION: "the application's listener throws",
    Fault.REJECTION: "the broker rejects the message that the application sends",
}
