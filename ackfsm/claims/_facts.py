"""Checks that read a fact off the tables: a default, a refusal, a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ackfsm.claims._evidence import Evidence
from ackfsm.claims._questions import Answer, Question
from ackfsm.claims._scope import Scope, configurations, read_scope
from ackfsm.tables import Default, Move, Row, Specification
from ackfsm.terms import Configuration, InputError, Profile, parse_value

__all__ = ["Accepted", "Decides", "HasDefault", "Refused", "Unchangeable"]


class _Fact:
    """A check that asks the explorer nothing."""

    __slots__ = ()

    def questions(self, specification: Specification) -> list[Question]:
        """None."""
        del specification
        return []


@dataclasses.dataclass(frozen=True, slots=True)
class HasDefault(_Fact):
    """In ``profile``, with the settings ``given``, the setting ``key`` is ``value`` unless somebody chooses."""

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
        configuration = specification.configure(self.profile, self.given)
        value = configuration.as_dict()[self.key]
        row = _default(specification, configuration, self.key)
        data = {
            "profile": self.profile,
            "given": dict(self.given),
            self.key: value,
            "row": f"spec/profiles/{self.profile}.yaml defaults/{self.key}",
            "because": row.because,
            "source": row.source,
        }
        under = "".join(f", with {key} {chosen}" for key, chosen in self.given.items())
        sentence = f"{self.key} is {value} in {self.profile}{under}: {row.because} ({row.source})"
        return Evidence(self.kind, value == self.value, sentence, data)


def _default(specification: Specification, configuration: Configuration, key: str) -> Default:
    environment = specification.environment(configuration)
    rows = (row for row in specification.profiles[configuration.profile] if row.key == key)
    return next(row for row in rows if row.when is None or row.when.holds(environment))


@dataclasses.dataclass(frozen=True, slots=True)
class Refused(_Fact):
    """The profile refuses these settings."""

    profile: str
    settings: Mapping[str, Any]

    kind = "refused"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Refused:
        """From its form in ``spec/claims.yaml``."""
        return cls(data["refused"]["profile"], data["refused"]["settings"])

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The sentence of the refusal."""
        del answers
        data = {"profile": self.profile, "settings": dict(self.settings)}
        for key, value in self.settings.items():
            parse_value(key, value)
        try:
            specification.configure(self.profile, self.settings)
        except InputError as error:
            return Evidence(self.kind, True, str(error), data)  # noqa: FBT003
        return Evidence(self.kind, False, f"{self.profile} takes {dict(self.settings)}", data)  # noqa: FBT003


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted(_Fact):
    """The profile takes these settings."""

    profile: str
    settings: Mapping[str, Any]

    kind = "accepted"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Accepted:
        """From its form in ``spec/claims.yaml``."""
        return cls(data["accepted"]["profile"], data["accepted"].get("settings", {}))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """That it does, and that there are rows for them; or the sentence of the refusal."""
        del answers
        data = {"profile": self.profile, "settings": dict(self.settings)}
        try:
            configuration = specification.configure(self.profile, self.settings)
        except InputError as error:
            return Evidence(self.kind, False, str(error), data)  # noqa: FBT003
        for gap in specification.gaps_of(configuration):
            return Evidence(self.kind, None, f"the tables have no rows for it: {gap.because}", data)
        return Evidence(self.kind, True, f"{self.profile} takes {dict(self.settings)}", data)  # noqa: FBT003


@dataclasses.dataclass(frozen=True, slots=True)
class Decides(_Fact):
    """In ``state``, at ``event``, the machine moves as it is said to, in every configuration of the scope."""

    machine: str
    state: str
    event: str
    move: Move
    target: str
    scope: Scope

    kind = "row"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Decides:
        """From its form in ``spec/claims.yaml``."""
        row = data["row"]
        move = next(move for move in Move if move in row)
        target = row["to"] if move is Move.TO else row["state"]
        return cls(row["machine"], row["state"], row["event"], move, target, read_scope(data))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The rows that decide."""
        del answers
        rows = self._rows(specification)
        data: dict[str, Any] = {
            "machine": self.machine,
            "in": [dict(group) for group in self.scope.groups],
            "rows": [_row(row) for row in rows],
        }
        other = [row for row in rows if (row.move, row.target) != (self.move, self.target)]
        told = "; ".join(f"{row.because} ({row.place}, {row.source or 'no source'})" for row in other or rows)
        at = f"{self.machine}.{self.state} at {self.event}"
        if other:
            return Evidence(self.kind, False, f"{at} does not {self._does()}: {told}", data)  # noqa: FBT003
        return Evidence(self.kind, True, f"{at} does {self._does()}: {told}", data)  # noqa: FBT003

    def _does(self) -> str:
        return f"go to {self.target}" if self.move is Move.TO else self.move.value

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
    where = {"row": row.place, "state": row.state, "event": str(row.event), row.move.value: row.target}
    return {**where, "because": row.because, "source": row.source}


@dataclasses.dataclass(frozen=True, slots=True)
class Unchangeable(_Fact):
    """A setting is chosen once: every row that reads it reads it before the first event, and no event writes it."""

    key: str

    kind = "unchangeable"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Unchangeable:
        """From its form in ``spec/claims.yaml``."""
        return cls(data["unchangeable"])

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The refusal of an assignment, and how many rows depend on the setting."""
        del answers
        configuration = specification.configure(Profile.JMS)
        reads = [
            row
            for machine in specification.machines.values()
            for row in machine.rows()
            if self.key in row.when.settings()
        ]
        data = {"key": self.key, "rows": len(reads), "events": len(specification.events)}
        try:
            setattr(configuration, self.key, getattr(configuration, self.key))
        except dataclasses.FrozenInstanceError:
            sentence = (
                f"{self.key} belongs to the configuration, which is fixed before the first event: it chooses "
                f"{len(reads)} rows, and none of the {len(specification.events)} events changes it"
            )
            return Evidence(self.kind, bool(reads), sentence, data)
        return Evidence(self.kind, False, f"{self.key} can be assigned", data)  # noqa: FBT003
