"""Read ``spec/execution.yaml``: machines that run together, agents, and requests to the journal."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables import ALWAYS, Condition, Document, Specification, parse_condition, read_form
from ackfsm.tables.names import CLIENT_SIDE, FRAMES, AckFrom, Event
from ackfsm.terms import Configuration


@dataclasses.dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent: ``automatic``, the engine acts for it; ``observable``, a client notices; ``frame``, on which link."""

    automatic: bool
    observable: bool
    frame: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """What decides on an event: the library or the application."""

    by: AckFrom
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class SendOutcome:
    """The outcome of a send after an event, as the producer knows it; ``implied``: there is no report of it."""

    outcome: str
    implied: bool


@dataclasses.dataclass(frozen=True, slots=True)
class JournalAction:
    """``machine`` coming to ``state`` asks the journal for ``entry``."""

    machine: str
    state: str
    entry: str


@dataclasses.dataclass(frozen=True, slots=True)
class JournalRecord:
    """The events of one machine of the journal.

    ``keeps_message`` says whether a message of which it survives is in the journal; ``commits`` names the records that
    count with it, if it is that of a commit.
    """

    write: str
    sync: str
    survives: str
    vanishes: str
    keeps_message: bool
    commits: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutionTable:
    """The whole file.

    ``groups`` and ``belongs_to`` say which machines run together and what they belong to, ``index_scope`` where a
    machine of a copy looks for other copies, ``in_order_of_delivery`` the events for which these are in the order in
    which they were handed over, ``of_all_consumers`` those in which all consumers of a queue take part, ``agents``
    which agent brings each event about, in the order of the file, ``lazy_batch`` how many messages a session
    acknowledges at once where it does so lazily.
    """

    groups: Mapping[str, tuple[str, ...]]
    belongs_to: Mapping[str, str]
    stays_with_session: tuple[str, ...]
    index_scope: Mapping[str, str]
    in_order_of_delivery: frozenset[str]
    of_all_consumers: frozenset[str]
    agents: Mapping[str, str]
    agent_rows: Mapping[str, AgentRow]
    lazy_batch: int
    send_outcomes: Mapping[str, SendOutcome]
    journal_actions: tuple[JournalAction, ...]
    journal_records: Mapping[str, JournalRecord]
    _decisions: Mapping[str, tuple[tuple[Condition, Decision], ...]]
    _specification: Specification

    def decided_by(self, event: Event, configuration: Configuration) -> AckFrom:
        """What decides on ``event``, of those under ``decided_by``, in ``configuration``."""
        environment = self._specification.environment(configuration)
        return next(decision.by for when, decision in self._decisions[event] if when.holds(environment))


def read_execution(
    specification: Specification, directory: Path | None = None, roles: tuple[str, ...] | None = None
) -> ExecutionTable:
    """Read and check the file against ``specification``; ``roles`` are the groups in the order that is needed.

    Raises :class:`ackfsm.terms.SpecError` naming file, line and remedy: a machine in no group or in two, an event
    without an agent, or names that do not exist.
    """
    document = read_form("execution.yaml", "execution", directory or specification.directory)
    return _Reader(document, specification).table(roles)


class _Reader:
    def __init__(self, document: Document, specification: Specification) -> None:
        self.document = document
        self.data: Mapping[str, Any] = document.data
        self.specification = specification

    def table(self, roles: tuple[str, ...] | None) -> ExecutionTable:
        groups = {name: tuple(_as_list(group["machines"])) for name, group in self.data["groups"].items()}
        self._check_partition("groups", groups, [*self.specification.machines], tuple(self.data["not_in_engine"]))
        if roles is not None and roles != tuple(groups):
            raise self.document.error(("groups",), f"the groups are not {', '.join(roles)}, in this order; restore it")
        agents = {name: tuple(_as_list(agent["events"])) for name, agent in self.data["agents"].items()}
        self._check_partition("agents", agents, [*self.specification.events], ())
        return ExecutionTable(
            groups=MappingProxyType(groups),
            belongs_to=MappingProxyType({name: group["belongs_to"] for name, group in self.data["groups"].items()}),
            stays_with_session=self._stays_with_session(),
            index_scope=MappingProxyType(dict(self._index_scopes())),
            in_order_of_delivery=self._events("in_order_of_delivery"),
            of_all_consumers=self._events("of_all_consumers"),
            agents=MappingProxyType({event: agent for agent, events in agents.items() for event in events}),
            agent_rows=MappingProxyType(dict(self._agent_rows())),
            lazy_batch=self.data["lazy_batch"]["messages"],
            send_outcomes=MappingProxyType(dict(self._send_outcomes())),
            journal_actions=tuple(self._journal_actions()),
            journal_records=MappingProxyType(dict(self._journal_records())),
            _decisions=MappingProxyType(dict(self._all_decisions())),
            _specification=self.specification,
        )

    def _check_partition(
        self, key: str, groups: Mapping[str, tuple[str, ...]], known: list[str], excluded: tuple[str, ...]
    ) -> None:
        """Each of ``known`` stands in one group or is excluded."""
        placed: dict[str, str] = dict.fromkeys(excluded, "not_in_engine")
        for group, names in groups.items():
            for name in names:
                if name not in known:
                    raise self.document.error((key, group), f"there is no {name!r} in the tables; delete it here")
                if name in placed:
                    raise self.document.error((key, group), f"{name} stands in {placed[name]} too; keep one")
                placed[name] = group
        if missing := [name for name in known if name not in placed]:
            raise self.document.error((key,), f"{missing[0]} stands nowhere under {key}; add it")

    def _check_known(self, kind: str, names: Iterable[str], known: Iterable[str], *at: str | int) -> None:
        for name in names:
            if name not in known:
                raise self.document.error(at, f"there is no {kind} {name!r}; correct it, or delete it here")

    def _stays_with_session(self) -> tuple[str, ...]:
        machines = tuple(_as_list(self.data["stays_with_session"]))
        self._check_known("machine", machines, self.specification.machines, "stays_with_session")
        if missing := [name for name in CLIENT_SIDE if name not in machines]:
            raise self.document.error(("stays_with_session",), f"{missing[0]} has to stay; add it")
        return machines

    def _index_scopes(self) -> Iterator[tuple[str, str]]:
        for scope, machines in self.data["index_scope"].items():
            self._check_known("machine", _as_list(machines), self.specification.machines, "index_scope", scope)
            for name in _as_list(machines):
                yield name, scope

    def _events(self, key: str) -> frozenset[str]:
        events = _as_list(self.data[key]["events"])
        self._check_known("event", events, self.specification.events, key)
        return frozenset(events)

    def _agent_rows(self) -> Iterator[tuple[str, AgentRow]]:
        for name, row in self.data["agents"].items():
            if ("frame" in row) != (name in FRAMES):
                raise self.document.error(
                    ("agents", name), f"{name} has a frame or the engine takes it for one; change one of them (FRAMES)"
                )
            yield name, AgentRow("automatic" in row, "observable" in row, row.get("frame"))

    def _all_decisions(self) -> Iterator[tuple[str, tuple[tuple[Condition, Decision], ...]]]:
        for event in (Event.ACKNOWLEDGE, Event.REQUEUE):
            if event not in self.data["decided_by"]:
                raise self.document.error(("decided_by",), f"nothing says what decides on {event}; add it")
        self._check_known("event", self.data["decided_by"], self.specification.events, "decided_by")
        for event in self.data["decided_by"]:
            yield event, tuple(self._decisions(event))

    def _decisions(self, event: str) -> Iterator[tuple[Condition, Decision]]:
        rows = self.data["decided_by"][event]
        for i, row in enumerate(rows):
            last = i + 1 == len(rows)
            at = ("decided_by", event, i)
            if ("when" not in row) != last:
                raise self.document.error(at, f"{event}: the last row, and no other, has no condition")
            try:
                condition = ALWAYS if last else parse_condition(row["when"], self.specification.conditions)
            except ValueError as error:
                raise self.document.error(at, str(error)) from None
            yield condition, Decision(AckFrom(row["by"]), row["because"], row["source"])

    def _send_outcomes(self) -> Iterator[tuple[str, SendOutcome]]:
        self._check_known("event", self.data["send_outcomes"], self.specification.events, "send_outcomes")
        for event, row in self.data["send_outcomes"].items():
            yield event, SendOutcome(row["outcome"], "implied" in row)

    def _journal_actions(self) -> Iterator[JournalAction]:
        for i, row in enumerate(self.data["journal_actions"]):
            at = ("journal_actions", i)
            self._check_known("machine", [row["machine"]], self.specification.machines, *at)
            states = self.specification.machines[row["machine"]].states
            self._check_known(f"state of {row['machine']}", [row["state"]], states, *at)
            yield JournalAction(row["machine"], row["state"], row["entry"])

    def _journal_records(self) -> Iterator[tuple[str, JournalRecord]]:
        rows = self.data["journal_records"]
        for name, row in rows.items():
            at = ("journal_records", name)
            self._check_known("machine", [name], self.specification.machines, *at)
            events = (row["write"], row["sync"], row["survives"], row["vanishes"])
            self._check_known("event", events, self.specification.events, *at)
            if "commits" in row:
                self._check_known("record", [row["commits"]], [n for n, r in rows.items() if "leaves" in r], *at)
            yield name, JournalRecord(*events, row.get("leaves") == "message", row.get("commits"))


def _as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names
