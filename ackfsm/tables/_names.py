"""The names that a vendor has: for settings, what their values mean here and where they matter, and for events."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from ackfsm.tables._conditions import Condition
from ackfsm.tables._source import Document
from ackfsm.terms import InputError, key_type
from ackfsm.text import parse_size, quoted

_Value: TypeAlias = StrEnum | bool | int | None


def format_value(value: object) -> str:
    """A value in the syntax of ``--set``."""
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """What somebody has set under a vendor's name (``name``, as he wrote it: ``blockOnDurableSend=false``).

    The setting has this ``value`` where ``when`` holds of the settings before it.
    """

    name: str
    when: Condition
    value: _Value


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionalValue:
    """The values chosen for a setting, each for its own part of the configurations.

    Where none of the ``options`` holds, the setting is what ``otherwise`` has in front (of a layer below: a header, for
    example), else its default.
    """

    options: tuple[Option, ...]
    otherwise: tuple[object, ...] = ()

    def option(self, values: Mapping[str, Any]) -> Option | None:
        """The option that holds, given the ``values`` of the settings before it; ``None`` for none.

        Raises :class:`InputError` if two hold that say different things.
        """
        holding = [option for option in self.options if option.when.holds(values)]
        for other in holding[1:]:
            if other.value != holding[0].value:
                raise InputError(f"{holding[0].name} and {other.name} contradict each other here; keep one of them")
        return holding[0] if holding else None

    def over(self, below: Mapping[str, object], key: str) -> ConditionalValue:
        """These options over what ``below`` has for ``key``."""
        return dataclasses.replace(self, otherwise=(below[key],)) if key in below else self


@dataclasses.dataclass(frozen=True, slots=True)
class VendorAlias:
    """The vendor's name of a setting, or of several.

    Attributes:
        name: as the vendor writes it.
        keys: the settings.
        values: for those values that are written otherwise here what they set, by key; nothing: they leave it as it is.
        refused: values that have no counterpart here, each with the reason, a clause about the name.
        plus: what has to be added to a number of the vendor's.
        positive: what any positive number, or size in bytes, sets; in a tuple, which is empty if that is not so.
        anything: what any text sets, such as the name of a queue; in a tuple, which is empty if that is not so.
        when: where it matters; ``None`` for everywhere.  Elsewhere it sets nothing.
        url: what it is called in a connection URL.
        differs: why it is not the same, or why its other values are not.
        source: the vendor's text.
    """

    name: str
    keys: tuple[str, ...]
    values: Mapping[str, Mapping[str, _Value]]
    refused: Mapping[str, str]
    plus: int
    positive: tuple[_Value, ...]
    anything: tuple[_Value, ...]
    when: Condition | None
    url: str
    differs: str | None
    source: str

    @property
    def is_synonym(self) -> bool:
        """Whether every value means the same under both names."""
        translated = self.values or self.refused or self.plus or self.positive or self.anything
        return self.differs is None and self.when is None and not translated

    @property
    def is_settable(self) -> bool:
        """Whether some value of it can be set under this name."""
        return self.differs is None or bool(self.values or self.positive)

    def assigned(self, profile: str, value: object) -> dict[str, object]:
        """What ``value`` sets, by key; under a condition as :class:`ConditionalValue`.

        Raises :class:`InputError` saying what to set if the value means nothing here, or not the same.
        """
        plain = self._plain(profile, value)
        if self.when is None:
            return plain
        written = f"{self.name}={format_value(value)}"
        return {key: ConditionalValue((Option(written, self.when, one),)) for key, one in plain.items()}

    def _plain(self, profile: str, value: object) -> dict[str, Any]:
        text, keys = format_value(value), " and ".join(self.keys)
        spelled = {known.casefold(): known for known in (*self.values, *self.refused)}
        known = spelled.get(text.casefold())
        if known is not None and known in self.values:
            return dict(self.values[known])
        if known is not None and known in self.refused:
            raise InputError(f"{self.name}={known} of {profile} {self.refused[known]}; set {keys}")
        if self.anything:
            return dict.fromkeys(self.keys, self.anything[0])
        size = parse_size(text)
        if self.positive and size:
            return dict.fromkeys(self.keys, self.positive[0])
        if self.differs is not None:
            what = f"{self.name}={quoted(text)}" if self.is_settable else self.name
            number = f"={int(text) + self.plus}" if self.plus and _is_number(text) else ""
            raise InputError(f"{what} of {profile} is not {keys} by another name: {self.differs}; set {keys}{number}")
        if self.positive or (self.values and (len(self.keys) > 1 or key_type(self.keys[0]) is not int)):
            legal = ", ".join([*self.values, *["a size in bytes"] * bool(self.positive)])
            raise InputError(f"{self.name} of {profile} stands for {keys} and is {legal} there, not {quoted(text)}")
        if self.plus and _is_number(text):
            return dict.fromkeys(self.keys, int(text) + self.plus)
        return dict.fromkeys(self.keys, value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


@dataclasses.dataclass(frozen=True, slots=True)
class VendorEvent:
    """What an interface of a system calls an event of the tables: a method, a constant, a frame."""

    name: str
    api: str
    event: str
    means: str
    source: str
    place: str


def read_vendor_events(document: Document, apis: Collection[str], events: Collection[str]) -> Iterator[VendorEvent]:
    """The section ``events`` of a profile.

    Raises :class:`SpecError` for an interface that the profile does not list, or an event that no table has.
    """
    for api, rows in document.data.get("events", {}).items():
        if api not in apis:
            known = ", ".join(apis) or "none"
            raise document.error(("events", api), f"the API {api!r} is none of {known}; correct the name")
        for name, row in rows.items():
            path = ("events", api, name)
            if row["event"] not in events:
                raise document.error((*path, "event"), f"there is no event {row['event']!r}; events.yaml has them")
            place = f"{document.name}:{document.line(path)}"
            yield VendorEvent(name, api, row["event"], row.get("means", ""), row["source"], place)
