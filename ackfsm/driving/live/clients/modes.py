"""Which modes the clients in Python can drive with which broker (``modes.yaml``), in settings of the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ackfsm.terms import AckMode, Consumption, InputError

__all__ = ["Driven", "all_driven", "driven"]

_TABLE: Final = Path(__file__).with_name("modes.yaml")


@dataclasses.dataclass(frozen=True, slots=True)
class Driven:
    """A client with a broker; ``modes.yaml`` says what each field means."""

    client: str
    broker: str
    protocol: str
    profile: str
    login: Sequence[str]
    modes: Mapping[str, str]
    consumptions: Sequence[str]
    outcomes: Sequence[str]
    asynchronous: bool = False
    cancels: bool = False
    open: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    names: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    config: Mapping[str, object] = dataclasses.field(default_factory=dict)
    of_mode: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)

    def header(
        self, ack_mode: AckMode, consumption: Consumption, settings: Mapping[str, Any] | None = None
    ) -> Mapping[str, object]:
        """Return the ``config`` of a history in which the client had these ``settings``.

        Raises:
            InputError: the client has not this mode, or no such value of a setting.
        """
        if ack_mode not in self.modes or consumption not in self.consumptions:
            legal = ", ".join(self.modes)
            raise InputError(f"{self.client} has no {ack_mode} by {consumption} with {self.broker}; it has {legal}")
        told = {"profile": self.profile, "ack_mode": str(ack_mode), "consumption": str(consumption), **self.config}
        for name, setting in self.names.items():
            if not setting.get("plain") or ack_mode is not AckMode.SESSION_TRANSACTED:
                told[setting["key"]] = self._value(name, (settings or {}).get(name, setting["default"]))
        return {**told, **self.of_mode.get(ack_mode, {})}

    def _value(self, name: str, given: Any) -> object:
        values, anything = self.names[name].get("values"), self.names[name].get("anything")
        value = given if values is None else values.get(given, anything)
        if value is None:
            raise InputError(f"{self.client} has no {name}={given}; it is one of {', '.join(map(str, values or ()))}")
        return value


def all_driven() -> tuple[Driven, ...]:
    """All clients with all their brokers."""
    rows = yaml.safe_load(_TABLE.read_text(encoding="utf-8"))
    return tuple(Driven(**row) for row in rows)


def driven(client: str, broker: str) -> Driven:
    """Return what ``client`` can drive with ``broker``; raises :class:`InputError` if they do not go together."""
    found = {f"{each.client} with {each.broker}": each for each in all_driven()}
    if (pair := f"{client} with {broker}") not in found:
        raise InputError(f"{pair} is not driven; there are {', '.join(found)}")
    return found[pair]
