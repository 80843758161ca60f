"""``verify`` of an engine's log, for sessions of several configurations, with searches that are remembered."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from ackfsm import verify
from ackfsm.engine import History
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration, Fault

__all__ = ["Yardstick"]

_COUNTED = frozenset({Anomaly.WINDOW_OVERRUN, Anomaly.PREFETCH_OVERRUN, Anomaly.REORDER})
"""What ``verify`` counts under one configuration, with one consumer for each session: not asked where that differs."""


class Yardstick:
    """Judges histories; what the tables were once searched for is not searched for again.

    More faults and more actions never take a behaviour away: what some of them reach, all of them do, and what all of
    them do not reach, some do not.  ``thorough`` asks the tables of what nobody promises absent, too, with a search of
    up to seconds for each new combination of settings and faults.
    """

    def __init__(self, specification: Specification, *, thorough: bool = False) -> None:
        self._specification = specification
        self._thorough = thorough
        self._reached: dict[tuple[Configuration, Anomaly], list[frozenset[str]]] = {}
        self._absent: dict[tuple[Configuration, Anomaly], list[frozenset[str]]] = {}
        self.searches = 0

    def judge(  # noqa: PLR0913 - what a judgement takes, by name
        self,
        log: History,
        configurations: Sequence[Configuration],
        header: Configuration,
        *,
        many: bool = False,
        without: Collection[str] = (),
        alike: bool = True,
    ) -> str | None:
        """What is in ``log`` that no configuration of its sessions allows, or all promise absent; ``None``: nothing.

        What needs two messages to show is held to the promises alone: to search the tables for it takes too long.
        ``many``: a session has several consumers on one queue.  Of the messages in ``without`` nothing is asked.
        ``alike``: all consume in one mode.
        """
        if not log.lines:
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "history.jsonl"
            log.write(file)
            findings = verify.examine(verify.read(file), self._specification, header, tells_processed=True, hold=False)
        if findings.unreadable:
            return f"unreadable: {findings.unreadable}"
        found = [anomaly for anomaly, finding in findings.anomalies.items() if finding.found]
        consumers = 1 + findings.given_back_beside
        made = (self._specification.promised_absent(each, consumers=consumers) for each in configurations)
        promised = set.intersection(*map(set, made))
        one = len({dataclasses.replace(each, delivery_mode=header.delivery_mode) for each in configurations}) == 1
        for anomaly in found:
            if anomaly in _COUNTED and (many or not one):
                continue
            if anomaly is Anomaly.RESURRECTION and not alike:
                continue  # one mode acknowledges what the other is still to be given
            absent = anomaly in promised
            examples = findings.anomalies[anomaly].examples
            if set(examples) <= set(without):
                continue
            certain = findings.anomalies[anomaly].certain > 0
            if not absent and not (self._thorough and certain):
                continue
            allowed = (self._allows(each, anomaly, findings.faults, findings.actions) for each in configurations)
            if not any(each if each or absent else each is None for each in allowed):
                kind = "promised absent" if absent else "not allowed"
                return f"{anomaly} of {', '.join(examples)}, {kind}"
        return None

    def _allows(
        self, configuration: Configuration, anomaly: Anomaly, faults: Collection[Fault], actions: Collection[str]
    ) -> bool | None:
        """Whether the tables reach it."""
        under = frozenset({*map(str, faults), *actions})
        key = configuration, anomaly
        if any(known <= under for known in self._reached.get(key, ())):
            return True
        if any(known >= under for known in self._absent.get(key, ())):
            return False
        self.searches += 1
        answer = verify.allowed(self._specification, configuration, faults, actions=actions)
        for each, told in answer.items():
            if told.answer is not None:
                known = self._reached if told.answer else self._absent
                known.setdefault((configuration, each), []).append(under)
        return answer[anomaly].answer
