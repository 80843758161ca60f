"""Whether what happened is what the test allows; if not, a report that a person can act on."""

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

from ackfsm import files
from ackfsm.engine import IllegalStateException, Stuck
from ackfsm.pytest_plugin._fault_run import Attempt
from ackfsm.pytest_plugin._points import Wanted, points_of
from ackfsm.pytest_plugin._trace import mermaid, name, text
from ackfsm.pytest_plugin._trial import Trial
from ackfsm.terms import Anomaly, Configuration, Fault, HostError, InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm.history import Findings

__all__ = ["complaint", "endless", "place"]


def complaint(trial: Trial) -> str | None:
    """Why the test has failed although its body has not; ``None`` if it has not.

    Raises :class:`ackfsm.terms.InputError` if it cannot be said, or nothing was tried.
    """
    attempt = trial.attempt
    if trial.watch.ended is not None:
        return endless(trial)
    if attempt.wanted is not None and not trial.ran:
        raise InputError("the marker ackfsm_faults needs something to strike: call ackfsm.run(application) in the test")
    if not attempt.is_the_same or (attempt.point is not None and not attempt.struck):
        raise InputError(_not_the_same(attempt))
    if attempt.awaited():
        raise InputError(
            f"the fault of point {attempt.point} had nothing to strike: no listener was called after it, or nothing "
            "was sent"
        )
    if left := trial.rest():
        return "\n".join((*([_heading(attempt)] if attempt.struck else []), *left, *_again(attempt)))
    if not trial.ran:
        return None
    verdict = _judged(trial, strictly=True)
    if verdict.broken:
        return "\n".join(_report(trial, verdict))
    if attempt.wanted is not None and attempt.point is None:
        _check_points(attempt, attempt.wanted)
    return None


def _check_points(attempt: Attempt, wanted: Wanted) -> None:
    """Raise :class:`InputError` if there is nothing to be tried, or not what is asked for."""
    points = points_of(attempt.steps, wanted)
    if attempt.only is not None and attempt.only not in points:
        raise InputError(
            f"--ackfsm-point={attempt.only}: there is no such point in a run of {len(attempt.steps)} events"
        )


def place(trial: Trial) -> str:
    """Where a test stood whose body has failed: the fault, what is in the history so far, and what is left."""
    left = trial.rest() if trial.watch.sound else []
    if not trial.attempt.struck:
        return "\n".join(("without a fault", *left))
    verdict = _judged(trial, strictly=False)
    return "\n".join((*_report(trial, verdict), *left))


def endless(trial: Trial) -> str:
    """Why an application was ended that would not end, and what came of it where a fault has struck."""
    why = str(trial.watch.ended)
    if not trial.attempt.struck:
        return why
    at_rest = trial.watch.sound and not trial.rest()
    return "\n".join((why, *_report(trial, _judged(trial, strictly=at_rest))))


@dataclasses.dataclass(frozen=True, slots=True)
class _Verdict:
    """What stands in the way: each anomaly with the ids that show it, and why it must not be.

    ``broken`` has them in the order of :class:`Anomaly`; ``strongest`` are the guarantees that stood.
    """

    broken: dict[Anomaly, tuple[tuple[str, ...], str]]
    strongest: tuple[str, ...]


def _judged(trial: Trial, *, strictly: bool) -> _Verdict:
    """What the history shows; ``strictly``: it has to be complete, every queue empty."""
    from ackfsm import history

    trial.broker.use_in_this_thread()
    if strictly:
        _drain(trial)
    configurations = trial.configurations or {trial.broker.configuration}
    findings = _examined(trial, min(configurations, key=repr))
    result = history.judge(findings, {}, guarantees=trial.broker.specification.guarantees)
    forbidden = _forbidden(trial, configurations)
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
    """Take what may stay, and say that the queues are empty."""
    trial.take_what_stays()
    try:
        trial.broker.drained()
    except (IllegalStateException, Stuck) as error:
        raise InputError(f"the history cannot be verified: {shown(str(error))}") from None


def _forbidden(trial: Trial, configurations: Collection[Configuration]) -> dict[Anomaly, str]:
    """What must not happen, and why."""
    specification, wanted = trial.broker.specification, trial.attempt.wanted
    promises = [specification.promised_absent(configuration) for configuration in configurations]
    absent = [anomaly for anomaly in promises[0] if all(anomaly in each for each in promises)]
    reasons = {anomaly: f"the configuration promises that {promises[0][anomaly].because}" for anomaly in absent}
    return reasons | dict.fromkeys(wanted.never if wanted is not None else (), "the test says never")


def _examined(trial: Trial, configuration: Configuration) -> Findings:
    from ackfsm import history

    with _folder() as folder:
        file = folder / "history.jsonl"
        files.write_file(file, "".join(f"{line}\n" for line in _lines(trial)).encode())
        recorded = history.read(file)
        return history.examine(recorded, trial.broker.specification, configuration, tells_processed=True)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for a while; raises :class:`ackfsm.terms.HostError` where there can be none."""
    try:
        made = tempfile.mkdtemp(prefix="ackfsm-")
    except OSError as error:
        raise HostError(f"no temporary folder can be made ({error.strerror}); set TMPDIR to one with room") from None
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _lines(trial: Trial) -> Iterator[str]:
    """The history; what was processed is the application's word, where it gives it; the dead say nothing."""
    log = trial.history
    yield json.dumps(log.header)
    for line in log.lines:
        implied = line["event"] == "processed" and line["process"] in trial.clients
        unsaid = implied and trial.attempt.by_word and line["t"] not in trial.words
        dead = any(line["process"] in clients and died < line["t"] <= gone for clients, died, gone in trial.deaths)
        if not unsaid and not dead:
            yield json.dumps(line)


def _not_the_same(attempt: Attempt) -> str:
    met = f"event {attempt.point.number} was {attempt.met}" if attempt.met and attempt.point else "it ended before"
    expected = attempt.steps[attempt.point.number - 1][0] if attempt.point else None
    return (
        f"the run is not the same each time ({met}, without a fault {expected}); take chance and clocks out of the test"
    )


# The report


def _report(trial: Trial, verdict: _Verdict) -> Iterator[str]:
    attempt, specification = trial.attempt, trial.broker.specification
    yield _heading(attempt)
    for anomaly, (ids, because) in verdict.broken.items():
        yield f"{anomaly} of {', '.join(map(name, ids[:_SHOWN]))}: {specification.meaning(anomaly)} ({because})"
    yield f"strongest guarantee that stands: {', '.join(verdict.strongest) or 'none'}"
    happenings = trial.trace.of(_witness(trial, verdict), by_word=attempt.by_word)
    point = attempt.point.number if attempt.point else None
    yield f"\n{text(happenings, point)}\n\n{mermaid(happenings)}\n"
    yield from _again(attempt)


def _again(attempt: Attempt) -> Iterator[str]:
    """How this point is run alone."""
    if attempt.point is not None:
        seed = f" --ackfsm-seed={attempt.seed}" if attempt.seed else ""
        yield f"again: pytest {shlex.quote(attempt.nodeid)} --ackfsm-point={attempt.point}{seed}"


_SHOWN = 3


def _heading(attempt: Attempt) -> str:
    if attempt.point is None:
        return "without a fault:"
    return (
        f"fault point {attempt.point}: {_WORDS[attempt.point.fault]} after event {attempt.point.number}, {attempt.met}"
    )


def _witness(trial: Trial, verdict: _Verdict) -> str:
    """The message to be shown: the first that has an anomaly, else that of the fault."""
    named = {one.message for one in trial.trace.happenings}
    shown = [ids[0] for ids, _ in verdict.broken.values() if ids[0] in named]
    met = trial.attempt.met
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
