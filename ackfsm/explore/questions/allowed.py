"""What a configuration can reach under given faults, to judge recorded histories by; cached between runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from ackfsm.explore.questions.check import check
from ackfsm.explore.search.options import Reduction
from ackfsm.files import write_file
from ackfsm.network import Bounds
from ackfsm.tables import BOUND_SETTINGS, IndexKind, Monitor, Property, Specification
from ackfsm.terms import AckfsmError, Anomaly, Configuration, Fault

__all__ = ["allowed", "why_undecided"]

_PACKAGE = Path(__file__).parents[2]

_MOST_STATES = 3_000_000
"""Where a search for two messages gives up: about 200 MB, and some seconds of compiled code."""

_FEW_STATES = (20_000, 300_000)
"""A witness is mostly near: before all is searched, so much of each small system is."""

_GIVES_BACK = "recover"
"""The action by which a session gives back all that it has; to another consumer, rollback and close are the same."""

_OTHERS_CAN_WRITE = stat.S_IWGRP | stat.S_IWOTH

_Progress = Callable[[int], None]
_Answer = Mapping[Anomaly, bool | None]


def allowed(  # noqa: PLR0913 - it is one question
    specification: Specification,
    configuration: Configuration,
    faults: Collection[Fault],
    *,
    actions: Collection[str] = (),
    found: Collection[Anomaly] = (),
    given_back_beside: bool = False,
    progress: _Progress | None = None,
) -> dict[Anomaly, bool | None]:
    """For each anomaly whether ``configuration`` can reach it when these faults and actions happen, however often.

    The search is for one message, and complete.  Of the anomalies that need two (one overtakes the other, one more is
    open than a bound) those that were ``found`` are searched for with two messages: first under few faults of one
    kind, as a witness is one whatever else may happen, then under all, until 3 million states are known.  With
    ``given_back_beside`` one consumer of a queue gave back what it had while another went on: what a consumer sees of
    several messages is then searched for with two consumers, too, which may recover their sessions.

    ``None`` where that does not tell: an anomaly of which the tables have no property, one that needs two messages and
    was not found, or a search that was not complete.  Answers are cached in the user's cache folder, each with its
    question (tables, code, configuration, faults, actions), and believed only if they answer this very question, and
    no other user could have written them.
    """
    verdicts: dict[Anomaly, bool | None] = dict.fromkeys(Anomaly)
    question = _Question(
        specification, configuration, frozenset(faults), frozenset(actions), given_back_beside, progress
    )
    verdicts |= question.cached("one message", tuple(specification.properties), question.single_message)
    for anomaly, definition in specification.properties.items():
        if _needs_two(definition) and not verdicts[anomaly]:
            verdicts |= (
                question.cached(anomaly, (anomaly,), question.two_messages) if anomaly in found else {anomaly: None}
            )
    return verdicts


def why_undecided(specification: Specification, anomaly: Anomaly) -> str | None:
    """Why :func:`allowed` may not tell of an ``anomaly`` that was found: a clause, if there is one."""
    if anomaly in specification.properties and _needs_two(specification.properties[anomaly]):
        return f"the search with two messages was not complete after {_MOST_STATES:,} states"
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the tables."""

    specification: Specification
    configuration: Configuration
    faults: frozenset[Fault]
    actions: frozenset[str]
    given_back_beside: bool
    progress: _Progress | None

    def cached(self, about: str, anomalies: Collection[Anomaly], answer: Callable[[str], _Answer]) -> _Answer:
        """The cached answer ``about`` a part of the question, that on ``anomalies``; else ``answer``, cached."""
        question = self._written(about)
        name = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()
        file = Path(platformdirs.user_cache_dir("ackfsm")) / "allowed" / f"{name}.json"
        found = _read(file, question, anomalies)
        if found is None:
            found = answer(about)
            _write(file, question, found)
        return found

    def _written(self, about: str) -> dict[str, object]:
        """All that the answer depends on, as plain JSON values."""
        return {
            "tables": self.specification.digest,
            "code": _code_digest(),
            "configuration": self.configuration.as_dict(),
            "faults": sorted(fault.value for fault in self.faults),
            "actions": sorted(self.actions),
            "given_back_beside": self.given_back_beside,
            "about": str(about),
        }

    def single_message(self, _: str) -> _Answer:
        """Everything that one message shows."""
        bounds = Bounds(faults=self.faults, max_faults=None, actions=self.actions)
        answer = check(self.specification, self.configuration, bounds, progress=self.progress)
        return {anomaly: finding.reachable for anomaly, finding in answer.findings.items()}

    def two_messages(self, name: str) -> _Answer:
        """Whether two messages show the anomaly ``name``.

        Nothing else is observed, which leaves far fewer states.  Where a count above a bound is the
        anomaly, the bound is taken as 1: two messages exceed no other.
        """
        anomaly = Anomaly(name)
        definition = self.specification.properties[anomaly]
        alone = dataclasses.replace(self.specification, properties=MappingProxyType({anomaly: definition}))
        configuration = _with_bounds_of_one(self.configuration, definition)
        everything = self._everything(definition)
        searched: set[Bounds] = set()
        for bounds, most in _searches(everything):
            if bounds in searched:
                continue
            answer = check(
                alone, configuration, bounds, max_states=most, progress=self.progress, reductions=_reductions(bounds)
            )
            reachable = answer.findings[anomaly].reachable
            if reachable or (reachable is False and bounds == everything):
                return {anomaly: reachable}
            if reachable is False:
                searched.add(bounds)
        return {anomaly: None}

    def _everything(self, definition: Property) -> Bounds:
        """All that two messages may meet; one consumer is two of which the other one does nothing."""
        alone = Bounds(messages=2, faults=self.faults, max_faults=None, actions=self.actions)
        if not self.given_back_beside or not _of_a_consumer(definition):
            return alone
        return dataclasses.replace(alone, consumers=2, actions=self.actions | {_GIVES_BACK})


def _searches(everything: Bounds) -> Iterator[tuple[Bounds, int]]:
    """Small systems, then all of them together; of each a few states, then more."""
    for few in _FEW_STATES:
        yield from ((bounds, few) for bounds in (*_small(everything), everything))
    yield everything, _MOST_STATES


def _small(everything: Bounds) -> Iterator[Bounds]:
    """No fault, and one or two of one kind: what these reach, more of them reach too."""
    if everything.faults:
        yield dataclasses.replace(everything, faults=frozenset(), max_faults=0)
    for number in (1, 2):
        for fault in sorted(everything.faults):
            yield dataclasses.replace(everything, faults=frozenset({fault}), max_faults=number)


def _reductions(bounds: Bounds) -> tuple[Reduction, ...]:
    """Two consumers have a tenth of the states, or fewer, under the partial order; for one it is not worth its time."""
    return (Reduction.PARTIAL_ORDER,) if bounds.consumers > 1 else ()


def _of_a_consumer(definition: Property) -> bool:
    """Whether the anomaly is one between messages that one consumer sees."""
    return any(monitor.machine.per is IndexKind.RECEPTION for monitor in definition.monitors)


def _needs_two(definition: Property) -> bool:
    """Whether the anomaly is one between messages: a machine hears of others, or counts them."""
    return any(_compares(monitor) for monitor in definition.monitors)


def _compares(monitor: Monitor) -> bool:
    machine = monitor.machine
    hears = any(not event.relation.of_the_same for event in machine.alphabet)
    return hears or (machine.counter is not None and machine.per.whole is IndexKind.SYSTEM)


def _with_bounds_of_one(configuration: Configuration, definition: Property) -> Configuration:
    counters = [monitor.machine.counter for monitor in definition.monitors if monitor.machine.counter]
    keys = {BOUND_SETTINGS.get(counter.bound, counter.bound) for counter in counters}
    ones: dict[str, Any] = {key: 1 for key in keys if getattr(configuration, key)}
    return dataclasses.replace(configuration, **ones)


def _code_digest() -> str:
    """A digest of the source of what decides the answer, so that a changed explorer does not believe an old one."""
    files = [_PACKAGE / "terms.py", _PACKAGE / "machines.py", _PACKAGE / "network.py"]
    files += sorted((_PACKAGE / "tables").rglob("*.py")) + sorted((_PACKAGE / "explore").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _read(file: Path, question: Mapping[str, object], anomalies: Collection[Anomaly]) -> _Answer | None:
    """The answer that is cached in ``file`` to this very ``question``; ``None`` if there is none to be believed."""
    try:
        if not _is_ours(file.parent) or not _is_ours(file):
            return None
        entry = json.loads(file.read_bytes())
        answer = entry["answer"]
        if entry != _entry(question, answer) or answer.keys() != set(map(str, anomalies)):
            return None
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None  # damaged, or never written by this program: it is computed again
    known = all(reachable is None or isinstance(reachable, bool) for reachable in answer.values())
    return {anomaly: answer[anomaly] for anomaly in anomalies} if known else None


def _entry(question: Mapping[str, object], answer: Mapping[str, object]) -> dict[str, object]:
    """What is written: the question, its answer, and a check over both."""
    text = json.dumps([question, answer], sort_keys=True)
    return {"question": question, "answer": answer, "check": hashlib.sha256(text.encode()).hexdigest()}


def _is_ours(path: Path) -> bool:
    """Whether it is a file or folder that only this user (and the superuser) can have written."""
    status = path.lstat()
    usual = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return usual and status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_CAN_WRITE


def _write(file: Path, question: Mapping[str, object], found: _Answer) -> None:
    """Cache ``found``, all of it or nothing; where nothing can be cached it is computed again next time."""
    entry = _entry(question, {anomaly.value: reachable for anomaly, reachable in found.items()})
    with contextlib.suppress(OSError, AckfsmError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(file.parent) and (file.is_file() or not file.exists()):
            file.unlink(missing_ok=True)  # its mode would stay, and others may have it open
            write_file(file, json.dumps(entry).encode())
            file.chmod(0o600)
