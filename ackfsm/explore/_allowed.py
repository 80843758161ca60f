"""What a configuration can reach under kinds of faults: the yardstick of recorded histories, kept between runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import platformdirs

from ackfsm.explore._check import check
from ackfsm.network import Bounds
from ackfsm.tables import COUNTED, Monitor, Per, Property, Relation, Specification
from ackfsm.terms import Anomaly, Configuration, Fault

__all__ = ["allowed", "why_undecided"]

_PACKAGE = Path(__file__).parent.parent

_MOST_STATES = 3_000_000
"""Where a search for two messages gives up: about 200 MB, and some seconds of compiled code."""

_FEW_STATES = (20_000, 300_000)
"""A witness is mostly near: before all is searched, so much of each small system is."""

_Progress = Callable[[int], None]


def allowed(  # noqa: PLR0913 - it is one question
    specification: Specification,
    configuration: Configuration,
    faults: Collection[Fault],
    *,
    actions: Collection[str] = (),
    found: Collection[Anomaly] = (),
    progress: _Progress | None = None,
) -> dict[Anomaly, bool | None]:
    """For each anomaly whether ``configuration`` can reach it when these faults and actions happen, however often.

    The search is for one message, and complete.  Of the anomalies that need two (one overtakes the other, one more is
    open than a bound) those that were ``found`` are searched for with two messages: first under few faults of one
    kind, as a witness is one whatever else may happen, then under all, until 3 million states are known.

    ``None`` where that does not tell: a setting that the tables do not cover, an anomaly of which
    they have no property, one that needs two messages and was not found, or a search that was not
    complete.  Results are kept in the user's cache folder, under a name made of the tables, the code and the question.
    """
    verdicts: dict[Anomaly, bool | None] = dict.fromkeys(Anomaly)
    if specification.gaps_of(configuration):
        return verdicts
    question = _Question(specification, configuration, frozenset(faults), frozenset(actions), progress)
    verdicts |= question.kept("one message", question.of_one)
    for anomaly, definition in specification.properties.items():
        if _needs_two(definition) and not verdicts[anomaly]:
            verdicts[anomaly] = question.kept(anomaly, question.of_two)[anomaly] if anomaly in found else None
    return verdicts


def why_undecided(specification: Specification, configuration: Configuration, anomaly: Anomaly) -> str | None:
    """Why :func:`allowed` may not tell of an ``anomaly`` that was found: a clause, if there is one."""
    for gap in specification.gaps_of(configuration):
        return f"{gap.key}={getattr(gap.value, 'value', gap.value)} cannot be checked, {gap.because}"
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
    progress: _Progress | None

    def kept(self, about: str, answer: Callable[[str], Mapping[Anomaly, bool | None]]) -> Mapping[Anomaly, bool | None]:
        """What is kept ``about`` a part of the question, else its ``answer``, which is then kept."""
        file = self._file(about)
        found = _read(file)
        if found is None:
            found = answer(about)
            _write(file, found)
        return found

    def _file(self, about: str) -> Path:
        asked = [sorted(self.faults), sorted(self.actions), about]
        question = json.dumps([self.specification.digest, self.configuration.as_dict(), *asked])
        digest = hashlib.sha256(question.encode() + _code()).hexdigest()
        return Path(platformdirs.user_cache_dir("ackfsm")) / "allowed" / f"{digest}.json"

    def of_one(self, _: str) -> Mapping[Anomaly, bool | None]:
        """Everything that one message shows."""
        bounds = Bounds(faults=self.faults, max_faults=None, actions=self.actions)
        answer = check(self.specification, self.configuration, bounds, progress=self.progress)
        return {anomaly: finding.reachable is True for anomaly, finding in answer.findings.items()}

    def of_two(self, name: str) -> Mapping[Anomaly, bool | None]:
        """Whether two messages show the anomaly ``name``.

        The system is watched for nothing else, which leaves far fewer states.  Where a count above a bound is the
        anomaly, the bound is taken as 1: two messages exceed no other.
        """
        anomaly = Anomaly(name)
        definition = self.specification.properties[anomaly]
        alone = dataclasses.replace(self.specification, properties=MappingProxyType({anomaly: definition}))
        configuration = _with_bounds_of_one(self.configuration, definition)
        searched: set[Bounds] = set()
        for bounds, most in self._searches():
            if bounds in searched:
                continue
            answer = check(alone, configuration, bounds, max_states=most, progress=self.progress)
            reachable = answer.findings[anomaly].reachable
            if reachable or (reachable is False and bounds == self._everything()):
                return {anomaly: reachable}
            if reachable is False:
                searched.add(bounds)
        return {anomaly: None}

    def _searches(self) -> Iterator[tuple[Bounds, int]]:
        """Small systems, then all of them together; of each a few states, then more."""
        for few in _FEW_STATES:
            yield from ((bounds, few) for bounds in (*self._small(), self._everything()))
        yield self._everything(), _MOST_STATES

    def _everything(self) -> Bounds:
        return Bounds(messages=2, faults=self.faults, max_faults=None, actions=self.actions)

    def _small(self) -> Iterator[Bounds]:
        """No fault, and one or two of one kind: what these reach, more of them reach too."""
        if self.faults:
            yield dataclasses.replace(self._everything(), faults=frozenset(), max_faults=0)
        for number in (1, 2):
            for fault in sorted(self.faults):
                yield dataclasses.replace(self._everything(), faults=frozenset({fault}), max_faults=number)


def _needs_two(definition: Property) -> bool:
    """Whether the anomaly is one between messages: a machine hears of others, or counts them."""
    return any(_compares(monitor) for monitor in definition.monitors)


def _compares(monitor: Monitor) -> bool:
    machine = monitor.machine
    hears = any(event.relation is not Relation.OWN for event in machine.alphabet)
    return hears or (machine.counter is not None and machine.per is Per.SYSTEM)


def _with_bounds_of_one(configuration: Configuration, definition: Property) -> Configuration:
    counters = [monitor.machine.counter for monitor in definition.monitors if monitor.machine.counter]
    keys = {COUNTED.get(counter.bound, counter.bound) for counter in counters}
    ones: dict[str, Any] = {key: 1 for key in keys if getattr(configuration, key)}
    return dataclasses.replace(configuration, **ones)


def _code() -> bytes:
    """The source of what decides the answer, so that a changed explorer does not believe an old one."""
    files = [_PACKAGE / "terms.py", _PACKAGE / "network.py"]
    files += sorted((_PACKAGE / "tables").glob("*.py")) + sorted((_PACKAGE / "explore").glob("*.py"))
    return b"".join(file.read_bytes() for file in files)


def _read(file: Path) -> Mapping[Anomaly, bool | None] | None:
    """What is kept; ``None`` if nothing is, or if it is damaged (then it is found again)."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return {Anomaly(name): None if reachable is None else reachable is True for name, reachable in kept.items()}
    except (OSError, ValueError, AttributeError):
        return None


def _write(file: Path, found: Mapping[Anomaly, bool | None]) -> None:
    """Keep ``found``, all of it or nothing; where nothing can be kept it is found again next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as half:
            json.dump({anomaly.value: reachable for anomaly, reachable in found.items()}, half)
        Path(half.name).replace(file)
