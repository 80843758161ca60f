"""Checks of facts in the tables: a default, an unsupported setting, a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ackfsm.surveys.claims._any_number import StandsAsItIs
from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import Answer, Question
from ackfsm.surveys.claims._scope import Scope, configurations, read_scope
from ackfsm.tables import Row, RowKind, Specification, format_value
from ackfsm.terms import InputError, parse_value


class _Fact(StandsAsItIs):
    """A check that needs no search."""

    __slots__ = ()

    def questions(self, specification: Specification) -> list[Question]:
        """None."""
        del specification
        return []


@dataclasses.dataclass(frozen=True, slots=True)
class HasDefault(_Fact):
    """In ``profile``, with each of the settings ``given``, the setting ``key`` is ``value`` by default."""

    profile: str
    key: str
    value: Any
    given: Mapping[str, Any]

    kind = "default"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> HasDefault:
        """From its form in ``spec/claims.yaml``."""
        fact = data["default"]
        return cls(fact["profile"], fact["key"], fact["value"], fact.get("given", {}))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The row of the profile that decides."""
        del answers
        cases = configurations(specification, ({"profile": self.profile, **self.given},))
        values = {configuration: configuration.as_dict()[self.key] for configuration in cases}
        others = (configuration for configuration, value in values.items() if value != self.value)
        configuration = next(others, next(iter(cases)))
        value = values[configuration]
        row = specification.profiles[configuration.profile].default(self.key, specification.environment(configuration))
        data = {
            "profile": self.profile,
            "given": dict(self.given),
            self.key: value,
            "row": row.place,
            "because": row.because,
            "source": row.source,
        }
        chosen = {key: value for key, value in cases[configuration].items() if key != "profile"}
        under = "".join(f", with {key} {format_value(value)}" for key, value in chosen.items())
        also = f", as in {len(cases) - 1} more configurations" if value == self.value and len(cases) > 1 else ""
        sentence = f"{self.key} is {format_value(value)} in {self.profile}{under}{also}: {row.because}"
        return Evidence(self.kind, value == self.value, f"{sentence} ({row.place}, {row.source})", data)


@dataclasses.dataclass(frozen=True, slots=True)
class SettingSupported(_Fact):
    """Whether the system has these settings (through one of its programming interfaces, if ``api`` names one)."""

    profile: str
    api: str | None
    settings: Mapping[str, Any]
    wanted: bool

    @property
    def kind(self) -> str:
        """``accepted`` or ``refused``."""
        return "accepted" if self.wanted else "refused"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> SettingSupported:
        """From its form in ``spec/claims.yaml``."""
        wanted = "accepted" in data
        fact = data["accepted" if wanted else "refused"]
        return cls(fact["profile"], fact.get("api"), fact["settings"], wanted)

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The row that refuses, or that none does and that the tables have rows for it."""
        del answers
        table = specification.profiles[self.profile]
        given = {key: parse_value(key, value) for key, value in self.settings.items()}
        values = table.settings(given)
        refused = table.refusal(values, given, None if self.api is None else table.api(self.api))
        data: dict[str, Any] = {"profile": self.profile, "api": self.api, "settings": dict(self.settings)}
        who = f"the profile {self.profile}" + (f" through {self.api}" if self.api else "")
        if refused is not None:
            row, sentence = refused
            if not row.settings() & given.keys():
                other = f"what refuses it is another setting: {row.because} ({row.place})"
                return Evidence(self.kind, None, other, data)
            data |= {"row": row.place, "because": row.because, "source": row.source, "instead": row.instead}
            return Evidence(self.kind, not self.wanted, f"{sentence} ({row.place})", data)
        text = ", ".join(f"{key}={format_value(value)}" for key, value in self.settings.items())
        return Evidence(self.kind, self.wanted, f"{who} takes {text}", data)


@dataclasses.dataclass(frozen=True, slots=True)
class HasConstant(_Fact):
    """The system has a number of its own for a value of a setting."""

    profile: str
    key: str
    value: str
    number: int

    kind = "constant"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> HasConstant:
        """From its form in ``spec/claims.yaml``."""
        fact = data["constant"]
        return cls(fact["profile"], fact["key"], fact["value"], fact["number"])

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The constant with its source."""
        del answers
        value = parse_value(self.key, self.value)
        found = specification.profiles[self.profile].constants_of(self.key, value)
        data = {
            "profile": self.profile,
            self.key: self.value,
            "constants": [{"name": one.name, "number": one.number, "source": one.source} for one in found],
        }
        text = ", ".join(f"{one.name} = {one.number} ({one.source})" for one in found) or "no constant"
        holds = any(one.number == self.number for one in found)
        return Evidence(self.kind, holds, f"{self.value} is {text} in {self.profile}", data)


@dataclasses.dataclass(frozen=True, slots=True)
class RowIs(_Fact):
    """In ``state``, at ``event``, the machine has this row, in every configuration of the scope."""

    machine: str
    state: str
    event: str
    row_kind: RowKind
    target: str
    scope: Scope

    kind = "row"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> RowIs:
        """From its form in ``spec/claims.yaml``."""
        row = data["row"]
        row_kind = next(kind for kind in RowKind if kind in row)
        target = row["to"] if row_kind is RowKind.TO else row["state"]
        return cls(row["machine"], row["state"], row["event"], row_kind, target, read_scope(data))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The rows that decide."""
        del answers
        rows = self._rows(specification)
        data: dict[str, Any] = {
            "machine": self.machine,
            "in": [dict(group) for group in self.scope.groups],
            "rows": [_row(row) for row in rows],
        }
        other = [row for row in rows if (row.kind, row.target) != (self.row_kind, self.target)]
        text = "; ".join(f"{row.because} ({row.place}, {row.source or 'no source'})" for row in other or rows)
        at = f"{self.machine}.{self.state} at {self.event}"
        if other:
            return Evidence(self.kind, False, f"{at} does not {self._does()}: {text}", data)  # noqa: FBT003
        return Evidence(self.kind, True, f"{at} does {self._does()}: {text}", data)  # noqa: FBT003

    def _does(self) -> str:
        return f"go to {self.target}" if self.row_kind is RowKind.TO else self.row_kind.value

    def _rows(self, specification: Specification) -> list[Row]:
        if (machine := specification.machines.get(self.machine)) is None:
            raise InputError(f"there is no machine {self.machine!r} in the tables")
        found: dict[Row, None] = {}
        for configuration in configurations(specification, self.scope.groups):
            fsm = machine.fsm(specification.environment(configuration, faults=self.scope.bounds.faults))
            row = fsm.row(self.state, self.event) if self.state in fsm.states else None
            if row is None:
                raise InputError(f"{self.machine} has no row for {self.event} in {self.state}")
            found[row] = None
        return list(found)


def _row(row: Row) -> dict[str, str | None]:
    where = {"row": row.place, "state": row.state, "event": str(row.event), row.kind.value: row.target}
    return {**where, "because": row.because, "source": row.source}
