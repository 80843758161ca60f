"""Read ``spec/execution.yaml``: which machines stand together, who brings an event about, what the journal is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables import ALWAYS, Condition, Document, Specification, parse_condition, read_form
from ackfsm.terms import Configuration

__all__ = ["Call", "EngineTable", "Journalled", "read_engine"]


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """Whose call an event is: ``library``, the library, ``lazy``,, or ``application``."""

    who: str
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Journalled:
    """``machine`` coming to ``state`` asks the journal for ``entry``."""

    machine: str
    state: str
    entry: str


@dataclasses.dataclass(frozen=True, slots=True)
class EngineTable:
    """The whole file.

    ``parts`` and ``owner`` say which machines stand together and what they belong to, ``among`` where a machine
    of a copy looks for other copies, ``agents`` who brings each event about, in the order of the file.
    """

    parts: Mapping[str, tuple[str, ...]]
    belongs_to: Mapping[str, str]
    handed: tuple[str, ...]
    among: Mapping[str, str]
    agents: Mapping[str, str]
    journals: tuple[Journalled, ...]
    _calls: Mapping[str, tuple[tuple[Condition, Call], ...]]
    _specification: Specification

    def whose(self, event: str, configuration: Configuration) -> str:
        """Whose call ``event`` is under ``configuration``; that of its agent where the table says no more."""
        rows = self._calls.get(event, ())
        environment = self._specification.environment(configuration)
        return next((call.who for when, call in rows if when.holds(environment)), self.agents[event])


def read_engine(specification: Specification, directory: Path | None = None) -> EngineTable:
    """Read and check the file against ``specification``.

    Raises :class:`ackfsm.terms.SpecError` naming file, line and remedy: a machine in no part or in two, an event
    without an agent, names that do not exist.
    """
    document = read_form("execution.yaml", "execution", directory)
    return _Reader(document, specification).table()


class _Reader:
    def __init__(self, document: Document, specification: Specification) -> None:
        self.document = document
        self.data: Mapping[str, Any] = document.data
        self.specification = specification

    def table(self) -> EngineTable:
        parts = {name: tuple(_listed(part["machines"])) for name, part in self.data["parts"].items()}
        self._once("parts", parts, [*self.specification.machines], tuple(self.data["left_out"]))
        agents = {name: tuple(_listed(agent["events"])) for name, agent in self.data["agents"].items()}
        self._once("agents", agents, [*self.specification.events], ())
        return EngineTable(
            parts=MappingProxyType(parts),
            belongs_to=MappingProxyType({name: part["belongs_to"] for name, part in self.data["parts"].items()}),
            handed=tuple(_listed(self.data["handed"])),
            among=MappingProxyType(dict(self._among())),
            agents=MappingProxyType({event: agent for agent, events in agents.items() for event in events}),
            journals=tuple(self._journals()),
            _calls=MappingProxyType({event: tuple(self._calls(event)) for event in self.data["calls"]}),
            _specification=self.specification,
        )

    def _once(self, key: str, groups: Mapping[str, tuple[str, ...]], known: list[str], left: tuple[str, ...]) -> None:
        """Each of ``known`` stands in one group or is left out."""
        placed: dict[str, str] = dict.fromkeys(left, "left_out")
        for group, names in groups.items():
            for name in names:
                if name not in known:
                    raise self.document.error((key, group), f"there is no {name!r} in the tables; delete it here")
                if name in placed:
                    raise self.document.error((key, group), f"{name} stands in {placed[name]} too; keep one")
                placed[name] = group
        if missing := [name for name in known if name not in placed]:
            raise self.document.error((key,), f"{missing[0]} stands nowhere under {key}; add it")

    def _among(self) -> Iterator[tuple[str, str]]:
        for scope, machines in self.data["among"].items():
            for name in _listed(machines):
                if name not in self.specification.machines:
                    raise self.document.error(("among", scope), f"there is no machine {name!r}; delete it here")
                yield name, scope

    def _calls(self, event: str) -> Iterator[tuple[Condition, Call]]:
        if event not in self.specification.events:
            raise self.document.error(("calls", event), f"there is no event {event!r}; delete it here")
        for i, row in enumerate(self.data["calls"][event]):
            last = i + 1 == len(self.data["calls"][event])
            if ("when" not in row) != last:
                raise self.document.error(("calls", event, i), f"{event}: the last row, and no other, has no condition")
            try:
                condition = ALWAYS if last else parse_condition(row["when"], self.specification.conditions)
            except ValueError as error:
                raise self.document.error(("calls", event, i), str(error)) from None
            yield condition, Call(row["who"], row["because"], row["source"])

    def _journals(self) -> Iterator[Journalled]:
        for i, row in enumerate(self.data["journals"]):
            machine = self.specification.machines.get(row["machine"])
            if machine is None or row["state"] not in machine.states:
                raise self.document.error(("journals", i), f"there is no {row['machine']}.{row['state']}; correct it")
            yield Journalled(row["machine"], row["state"], row["entry"])


def _listed(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names
