"""Whether a configuration can reach an anomaly under given faults, to judge recorded histories by; cached between runs.

There is one authority: what one message shows is shown, and what it does not show is asked of
:func:`ackfsm.checking.unbounded.decide`, for any number of messages.  A search for two messages is asked beside it only
where several consumers matter, of which no proof speaks.
"""

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
from typing import Final

import platformdirs

from ackfsm.checking.explore import Reduction, check
from ackfsm.checking.network import Bounds
from ackfsm.support.files import write_file
from ackfsm.tables import IndexKind, Monitor, Property, Specification
from ackfsm.terms import AckfsmError, Anomaly, Configuration, Fault

_PACKAGE: Final = Path(__file__).parents[2]

_MOST_STATES: Final = 1_000_000
"""Where a search for any number of messages gives up: some seconds of compiled code."""

_MOST_MEMORY: Final = 600_000_000
"""Bytes; a proof gives up at half a million views, which take about so much."""

_MOST_BESIDE: Final = 3_000_000
"""Where a search for two consumers gives up: about 200 MB."""

_FEW_STATES: Final = 300_000
"""A witness is mostly near: before all is searched, so much of each small system is."""

_GIVES_BACK: Final = "recover"
"""The action by which a session gives back all that it has; to another consumer, rollback and close are the same."""

_OTHERS_CAN_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_Progress = Callable[[int], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """Whether an anomaly can happen in any number (``None``: open), and what that rests on, or why it is open."""

    answer: bool | None
    limit: str = ""


_Answers = Mapping[Anomaly, Allowed]
_OPEN: Final = Allowed(None)


def allowed(  # noqa: PLR0913 - it is one question
    specification: Specification,
    configuration: Configuration,
    faults: Collection[Fault],
    *,
    actions: Collection[str] = (),
    found: Collection[Anomaly] = (),
    given_back_beside: bool = False,
    progress: _Progress | None = None,
) -> dict[Anomaly, Allowed]:
    """For each anomaly whether ``configuration`` can reach it when these faults and actions happen, however often.

    Whatever one message reaches is allowed.  That one message does not reach it is the answer for what was not
    ``found``; what was found is decided for any number of messages.  With ``given_back_beside`` one consumer of a queue
    gave back what it had while another went on: what a consumer sees of several messages is then searched for with two
    messages and two consumers, too, which may recover their sessions.  A "no" that is not proved for any number says on
    what search it rests.

    Open are an anomaly of which the tables have no property, one between messages that was not found, and what neither
    a proof nor a search decided.  Answers are cached in the user's cache folder, each with
    its question (tables, code, configuration, faults, actions), and believed only if they answer this very question,
    and no other user could have written them.
    """
    verdicts = dict.fromkeys(Anomaly, _OPEN)
    question = _Question(
        specification, configuration, frozenset(faults), frozenset(actions), given_back_beside, progress
    )
    verdicts |= question.cached("one message", tuple(specification.properties), question.single_message)
    for anomaly, definition in specification.properties.items():
        if verdicts[anomaly].answer:
            continue
        if anomaly in found:
            verdicts |= question.cached(anomaly, (anomaly,), question.any_number)
        elif _is_between(definition):
            verdicts[anomaly] = _OPEN
    return verdicts


@dataclasses.dataclass(frozen=True, slots=True)
class _Question:
    """A question to the tables."""

    specification: Specification
    configuration: Configuration
    faults: frozenset[Fault]
    actions: frozenset[str]
    given_back_beside: bool
    progress: _Progress | None

    def cached(self, about: str, anomalies: Collection[Anomaly], answer: Callable[[str], _Answers]) -> _Answers:
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

    @property
    def _bounds(self) -> Bounds:
        """One message, and all that it may meet."""
        return Bounds(faults=self.faults, max_faults=None, actions=self.actions)

    def single_message(self, _: str) -> _Answers:
        """Everything that one message shows."""
        answer = check(self.specification, self.configuration, self._bounds, progress=self.progress)
        return {anomaly: Allowed(finding.reachable) for anomaly, finding in answer.findings.items()}

    def any_number(self, name: str) -> _Answers:
        """Whether any number of messages shows the anomaly ``name``; no proof is of several consumers."""
        from ackfsm.checking.unbounded import decide  # most histories need no proof, and it takes a while to load

        anomaly = Anomaly(name)
        decision = decide(
            self.specification,
            self.configuration,
            self._bounds,
            only=(name,),
            max_states=_MOST_STATES,
            max_memory=_MOST_MEMORY,
            progress=self.progress,
        )
        definition, reachable = self.specification.properties[anomaly], decision.findings[anomaly].reachable
        if not reachable and self.given_back_beside and _of_a_consumer(definition):
            return {anomaly: _searched(self._two_consumers(anomaly), "two messages and two consumers")}
        if reachable is not None:
            return {anomaly: Allowed(reachable)}
        two = dataclasses.replace(self._bounds, messages=2)
        complete = any(
            answer.exploration.complete and (answer.configuration, answer.bounds) == (self.configuration, two)
            for answer in decision.searches
        )
        counts = any(monitor.machine.counter for monitor in definition.monitors)  # two messages fill no great bound
        return {anomaly: _searched(False if complete and not counts else None, "two messages")}

    def _two_consumers(self, anomaly: Anomaly) -> bool | None:
        """Whether two messages show it where one consumer takes what another gave back.

        Nothing else is observed, which leaves far fewer states, and so does the partial order.
        """
        properties = MappingProxyType({anomaly: self.specification.properties[anomaly]})
        alone = dataclasses.replace(self.specification, properties=properties)
        actions = self.actions | {_GIVES_BACK}
        everything = dataclasses.replace(self._bounds, messages=2, consumers=2, actions=actions)
        reachable: bool | None = None
        for bounds, most in (*((small, _FEW_STATES) for small in _small(everything)), (everything, _MOST_BESIDE)):
            answer = check(
                alone,
                self.configuration,
                bounds,
                max_states=most,
                progress=self.progress,
                reductions=(Reduction.PARTIAL_ORDER,),
            )
            reachable = answer.findings[anomaly].reachable
            if reachable:
                break
        return reachable


def _searched(reachable: bool | None, few: str) -> Allowed:  # noqa: FBT001 - the answer itself
    """The answer of a search with so ``few``, beyond which nothing is proved."""
    if reachable is None:
        return Allowed(None, f"neither a proof nor the search with {few} came to an end")
    return Allowed(reachable, "" if reachable else f"with {few}; of more nothing is proved")


def _small(everything: Bounds) -> Iterator[Bounds]:
    """No fault, and one or two of one kind: what these reach, more of them reach too."""
    if everything.faults:
        yield dataclasses.replace(everything, faults=frozenset(), max_faults=0)
    for number in (1, 2):
        for fault in sorted(everything.faults):
            yield dataclasses.replace(everything, faults=frozenset({fault}), max_faults=number)


def _of_a_consumer(definition: Property) -> bool:
    """Whether the anomaly is one between messages that one consumer sees."""
    return any(monitor.machine.per is IndexKind.RECEPTION for monitor in definition.monitors)


def _is_between(definition: Property) -> bool:
    """Whether the anomaly is one between messages: a machine hears of others, or counts them."""
    return any(_compares(monitor) for monitor in definition.monitors)


def _compares(monitor: Monitor) -> bool:
    machine = monitor.machine
    hears = any(not event.relation.of_the_same for event in machine.alphabet)
    return hears or (machine.counter is not None and machine.per.whole is IndexKind.SYSTEM)


def _code_digest() -> str:
    """A digest of the source of what decides the answer, so that a changed explorer does not believe an old one."""
    files = [Path(__file__), _PACKAGE / "terms.py"]
    files += [file for name in _DECIDE for file in sorted((_PACKAGE / name).rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


_DECIDE: Final = ("tables", "checking")
"""The packages whose code decides."""


def _read(file: Path, question: Mapping[str, object], anomalies: Collection[Anomaly]) -> _Answers | None:
    """The answer that is cached in ``file`` to this very ``question``; ``None`` if there is none to be believed."""
    try:
        if not _is_ours(file.parent) or not _is_ours(file):
            return None
        entry = json.loads(file.read_bytes())
        answer = entry["answer"]
        if entry != _entry(question, answer) or answer.keys() != set(map(str, anomalies)):
            return None
        found = {anomaly: Allowed(**answer[anomaly]) for anomaly in anomalies}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None  # damaged, or never written by this program: it is computed again
    return found if all(isinstance(each.answer, bool | None) for each in found.values()) else None


def _entry(question: Mapping[str, object], answer: Mapping[str, object]) -> dict[str, object]:
    """Return the entry to be written: the question, its answer, and a check over both."""
    text = json.dumps([question, answer], sort_keys=True)
    return {"question": question, "answer": answer, "check": hashlib.sha256(text.encode()).hexdigest()}


def _is_ours(path: Path) -> bool:
    """Whether it is a file or folder that only this user (and the superuser) can have written."""
    status = path.lstat()
    usual = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return usual and status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_CAN_WRITE


def _write(file: Path, question: Mapping[str, object], found: _Answers) -> None:
    """Cache ``found``, all of it or nothing; where nothing can be cached it is computed again next time."""
    entry = _entry(question, {anomaly.value: dataclasses.asdict(each) for anomaly, each in found.items()})
    with contextlib.suppress(OSError, AckfsmError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(file.parent) and (file.is_file() or not file.exists()):
            file.unlink(missing_ok=True)  # its mode would stay, and others may have it open
            write_file(file, json.dumps(entry).encode())
            file.chmod(0o600)
