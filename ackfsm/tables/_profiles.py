"""The profiles of ``spec/profiles``: the defaults of a system, its refusals, its names and deviations.

A profile is data.  Its conditions read settings alone, never the state of a machine or the bounds of a check, so that
a :class:`ProfileTable` can decide from settings alone whether the system supports them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from ackfsm.tables._conditions import ALWAYS, STATIC_NAMES, Condition, parse_condition
from ackfsm.tables._names import ConditionalValue, Option, VendorAlias, VendorEvent, format_value, read_vendor_events
from ackfsm.tables._source import Document
from ackfsm.terms import Configuration, InputError, Profile, SpecError, is_optional, key_type, parse_value
from ackfsm.text import meant, quoted

_Path: TypeAlias = tuple[str | int, ...]
_Value: TypeAlias = StrEnum | bool | int | None

_KEYS = tuple(field.name for field in dataclasses.fields(Configuration))


@dataclasses.dataclass(frozen=True, slots=True)
class Default:
    """The value of a key in a profile, under a condition on the keys before it.

    With ``third_of`` the value is a third of that setting, rounded up, at least 1; ``None`` where that is ``None``.
    """

    key: str
    value: _Value
    third_of: str | None
    when: Condition | None
    because: str
    source: str
    place: str

    @property
    def is_fixed(self) -> bool:
        """Whether it is one value, whatever the other settings are."""
        return self.when is None and self.third_of is None

    def of(self, values: Mapping[str, Any]) -> _Value:
        """The value, given the ``values`` of the settings before it."""
        if self.third_of is None:
            return self.value
        whole = values[self.third_of]
        return None if whole is None else max(1, -(-whole // 3))


@dataclasses.dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers that a system has for ``key``: those from ``least`` to ``most``, and perhaps ``alone``."""

    key: str
    least: int
    most: int
    alone: int | None

    def has(self, value: object) -> bool:
        """Whether ``value`` is one of them; ``None`` is none."""
        return isinstance(value, int) and (self.least <= value <= self.most or value == self.alone)

    def __str__(self) -> str:
        """For instance ``0, or from 2 to 255``."""
        return f"{'' if self.alone is None else f'{self.alone}, or '}from {self.least} to {self.most}"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Settings that a system, or one of its APIs, does not support, with the reason and the replacement.

    These are the settings for which ``when`` holds; with ``fixed``, every value of that key but its default; with
    ``outside``, every value of its key that is not in that range.
    """

    when: Condition | None
    fixed: str | None
    outside: NumberRange | None
    because: str
    source: str
    instead: str
    place: str

    def settings(self) -> frozenset[str]:
        """The settings that are at fault."""
        return self.when.settings() if self.when else frozenset({self.key})

    @property
    def key(self) -> str:
        """The one setting at fault where there is no condition."""
        return self.outside.key if self.outside else self.fixed or ""

    def sentence(self, system: str, values: Mapping[str, Any], given: Mapping[str, Any]) -> str:
        """One sentence for a user who has ``given`` some of these ``values``."""
        fault = [key for key in values if key in self.settings()]
        settings = ", ".join(f"{key}={format_value(values[key])}" for key in [k for k in fault if k in given] or fault)
        return f"{system} does not have {settings}: {self.because} ({self.source}); {self.instead}"


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A number of the vendor's API, with its ``literal``, and the setting or the meaning that it stands for."""

    name: str
    literal: str
    setting: tuple[str, _Value] | None
    means: str | None
    source: str

    @property
    def number(self) -> int:
        """The number."""
        return int(self.literal, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class LeftOpen:
    """What may be of a deviation that the tables do not model, so that a judge leaves it open.

    That is a message which had one of the signs ``after``, in a configuration where ``where`` holds, and which would be
    a run of the model with the settings ``as_if``.
    """

    where: Condition
    after: frozenset[str]
    as_if: Mapping[str, _Value]


@dataclasses.dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation of the system from JMS.

    ``when`` is the condition under which the tables model it; without one, ``unmodelled`` says why they do not, and
    ``left_open`` which messages may be of it, where that can be told.
    """

    what: str
    when: Condition | None
    unmodelled: str | None
    left_open: LeftOpen | None
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileTable:
    """One profile: its file over that of the profile that it is ``like``, else over the defaults of ``jms``.

    ``stated`` are the keys whose defaults are its own (or of the profile that it is like).  ``promises`` are the names
    of those in ``promises.yaml`` that the vendor makes.  ``apis`` are its programming interfaces, each with the
    settings that it does not support, ``events`` are what these call the events of the tables.  ``like`` is the profile
    that it is like.
    """

    profile: str
    system: str
    defaults: tuple[Default, ...]
    stated: frozenset[str]
    promises: frozenset[str]
    unsupported: tuple[Refusal, ...]
    constants: tuple[Constant, ...]
    names: Mapping[str, VendorAlias]
    apis: Mapping[str, tuple[Refusal, ...]]
    deviates: tuple[Deviation, ...]
    events: tuple[VendorEvent, ...] = ()
    like: str | None = None
    _by_key: Mapping[str, Sequence[Default]] = dataclasses.field(init=False, repr=False, compare=False)
    _always: Mapping[str, Any] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_key: dict[str, list[Default]] = {}
        for row in self.defaults:
            by_key.setdefault(row.key, []).append(row)
        object.__setattr__(self, "_by_key", by_key)
        always = {row.key: row.value for (row,) in (rows for rows in by_key.values() if len(rows) == 1) if row.is_fixed}
        object.__setattr__(self, "_always", always)

    def default(self, key: str, values: Mapping[str, Any]) -> Default:
        """The row that decides ``key``, given the ``values`` of the settings before it."""
        *conditional, otherwise = self._by_key[key]
        for row in conditional:
            if row.when is None or row.when.holds(values):
                return row
        return otherwise

    def chosen(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``values`` (of every setting) that are not the defaults beside the others."""
        return {key: values[key] for key in _KEYS[1:] if self.default(key, values).of(values) != values[key]}

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All settings: those ``given`` (parsed values by key), the others by default.

        Raises :class:`InputError` if a value that was given under conditions contradicts itself.
        """
        values: dict[str, Any] = {"profile": self.profile}
        for key in _KEYS[1:]:
            chosen = _chosen(given[key], values) if key in given else ()
            if chosen:
                values[key] = chosen[0]
            elif key in self._always:
                values[key] = self._always[key]
            else:
                values[key] = self.default(key, values).of(values)
        return values

    def agrees(self, given: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
        """Return whether ``values`` (of every setting) are as ``given`` under a condition, where it holds."""
        for key, one in given.items():
            option = one.option(values) if isinstance(one, ConditionalValue) else None
            if option is not None and values[key] != option.value:
                return False
        return True

    def without_effect(self, given: Mapping[str, Any], values: Mapping[str, Any]) -> list[Option]:
        """Return the options ``given`` under a condition that does not hold of these ``values``."""
        conditional = (one for one in given.values() if isinstance(one, ConditionalValue))
        return [option for one in conditional for option in one.options if not option.when.holds(values)]

    def refused(self, values: Mapping[str, Any], api: str | None = None) -> Iterator[Refusal]:
        """Yield the rows that refuse these ``values`` (of every setting), first the rows of ``api``, if named."""
        for row in (*(self.apis[api] if api else ()), *self.unsupported):
            if self._holds(row, values):
                yield row

    def refusal(
        self, values: Mapping[str, Any], given: Mapping[str, Any], api: str | None = None
    ) -> tuple[Refusal, str] | None:
        """The row that decides that the system, or ``api``, does not have these ``values``, and one sentence about it.

        ``given`` are those that somebody chose.  ``None`` if nothing refuses them.
        """
        who = f"the profile {self.profile}" + ("" if api is None else f" through {api}")
        return next(((row, row.sentence(who, values, given)) for row in self.refused(values, api)), None)

    def api(self, name: str) -> str:
        """The programming interface that ``name`` spells, as the profile writes it.

        Capitals, spaces and hyphens do not matter (``jms-1.1``), and a part of the name that no other interface has is
        enough (``simplified``).  Raises :class:`InputError` with the interfaces that there are for any other name.
        """
        asked = _words(name)
        written = [api for api in self.apis if "".join(_words(api)) == "".join(asked)]
        found = written or [api for api in self.apis if asked and {*asked} <= {*_words(api)}]
        if len(found) != 1:
            known = ", ".join(self.apis) or "none"
            raise InputError(
                f"the profile {self.profile} has no API {quoted(name)}{meant(name, self.apis)}; its APIs are: {known}"
            )
        return found[0]

    def _holds(self, row: Refusal, values: Mapping[str, Any]) -> bool:
        if row.when is not None:
            return row.when.holds(values)
        if row.outside is not None:
            return not row.outside.has(values[row.key])
        return bool(values[row.key] != self.default(row.key, values).of(values))

    def vendor_alias(self, name: str) -> VendorAlias | None:
        """The entry for ``name``, in capitals or not, or ``None``."""
        return self.names.get(name.casefold())

    def url_alias(self, parameter: str) -> VendorAlias | None:
        """The entry for a parameter of a connection URL, in capitals or not, or ``None``."""
        return next((one for one in self.names.values() if one.url.casefold() == parameter.casefold()), None)

    def constants_of(self, key: str, value: object) -> tuple[Constant, ...]:
        """The vendor's numbers for a value of a setting."""
        return tuple(constant for constant in self.constants if constant.setting == (key, value))

    def conditions(self) -> Iterator[Condition]:
        """Every condition of the file."""
        yield from (row.when for row in self.defaults if row.when)
        refusals = [*self.unsupported, *(row for rows in self.apis.values() for row in rows)]
        yield from (row.when for row in refusals if row.when)
        yield from (row.when for row in self.deviates if row.when)
        yield from (own.when for own in self.names.values() if own.when)


def _chosen(given: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The value that was given, alone in a tuple that is empty if it is for other configurations."""
    if not isinstance(given, ConditionalValue):
        return (given,)
    option = given.option(values)
    return given.otherwise if option is None else (option.value,)


def _words(name: str) -> list[str]:
    """What tells the name of one interface from that of another: its words and versions."""
    return re.findall(r"[a-z0-9+#]+(?:\.[0-9]+)*", name.casefold())


def read_profiles(
    directory: Path,
    documents: Mapping[str, Document],
    conditions: Mapping[str, Condition],
    promises: Collection[str],
    events: Collection[str],
) -> dict[str, ProfileTable]:
    """The profiles in ``documents`` (by the names of the files), each over ``jms``, in the order of the vocabulary.

    Raises :class:`SpecError` naming file, line and remedy for whatever is wrong.
    """
    if missing := sorted({profile.value for profile in Profile} ^ documents.keys()):
        raise SpecError(f"{directory}: {missing[0]}.yaml is missing or names no profile")
    readers = {profile: _Reader(profile, documents[profile], conditions, promises, events) for profile in Profile}
    base = tuple(readers[Profile.JMS].defaults())
    _every_key_has_a_default(base, documents[Profile.JMS])
    tables: dict[str, ProfileTable] = {}
    for profile, reader in readers.items():
        if "sources" in documents[profile].data:
            raise documents[profile].error(("sources",), "tags of the tables are in sources.yaml; move this there")
        tables[profile] = reader.table(tables, base)
    return tables


def read_own_profile(
    document: Document,
    known: Mapping[str, ProfileTable],
    conditions: Mapping[str, Condition],
    promises: Collection[str],
    events: Collection[str],
) -> ProfileTable:
    """The profile in a file that does not ship with the tables; its name is that of the file, and none of ``known``.

    Raises :class:`SpecError` naming file, line and remedy for whatever is wrong.
    """
    name = document.file.stem
    if name in known:
        raise document.error((), f"there is a profile {name} already; rename the file")
    if not _NAME.fullmatch(name):
        raise document.error((), f"{quoted(name)} is no name of a profile: letters, digits, - and _; rename the file")
    return _Reader(name, document, conditions, promises, events).table(known, known[Profile.JMS].defaults)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""Names of profiles, which need no quotes on a command line."""


def _every_key_has_a_default(base: tuple[Default, ...], document: Document) -> None:
    if missing := sorted(set(_KEYS[1:]) - {default.key for default in base}):
        raise document.error(("defaults",), f"no default for {missing[0]}; every other profile builds on this one")


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file, which has been validated against the schema."""

    profile: str
    document: Document
    conditions: Mapping[str, Condition]
    promises: Collection[str]
    events: Collection[str]

    def table(self, known: Mapping[str, ProfileTable], base: tuple[Default, ...]) -> ProfileTable:
        """The profile, over the one of ``known`` that it is like, else over the defaults in ``base``."""
        own, like, data = tuple(self.defaults()), self._like(known), self.document.data
        stated = frozenset(default.key for default in own)
        apis = MappingProxyType({**(like.apis if like else {}), **self._apis()})
        table = ProfileTable(
            profile=self.profile,
            system=data["system"],
            defaults=(*own, *(row for row in (like.defaults if like else base) if row.key not in stated)),
            stated=stated | (like.stated if like else frozenset()),
            promises=like.promises if like and "promises" not in data else self._promises(),
            unsupported=like.unsupported
            if like and "unsupported" not in data
            else tuple(self._refusals(("unsupported",), data.get("unsupported", ()))),
            constants=self._constants(like),
            names=MappingProxyType({**(like.names if like else {}), **self._names()}),
            apis=apis,
            events=self._events(like, apis),
            like=None if like is None else like.profile,
            deviates=like.deviates
            if like and "deviates" not in data
            else tuple(self._deviation(i, row) for i, row in enumerate(data.get("deviates", ()))),
        )
        self._has_its_own_defaults(table)
        return table

    def _like(self, known: Mapping[str, ProfileTable]) -> ProfileTable | None:
        name = self.document.data.get("like")
        if name is not None and name not in known:
            raise self.document.error(
                ("like",), f"there is no profile {quoted(name)}{meant(name, known)}; it is one of {', '.join(known)}"
            )
        return None if name is None else known[name]

    def _promises(self) -> frozenset[str]:
        named = self.document.data.get("promises", ())
        for i, name in enumerate(named):
            if name not in self.promises:
                raise self.document.error(
                    ("promises", i),
                    f"there is no promise {quoted(name)}{meant(name, self.promises)}; "
                    f"promises.yaml has {', '.join(self.promises)}",
                )
        return frozenset(named)

    def _apis(self) -> dict[str, tuple[Refusal, ...]]:
        stated = self.document.data.get("apis", {})
        spelled: dict[str, str] = {}
        for api in stated:
            word = "".join(_words(api))
            if not word or word in spelled:
                what = f"is spelled like {spelled[word]!r}" if word else "has neither a letter nor a number"
                raise self.document.error(("apis", api), f"the API {api!r} {what}; rename it")
            spelled[word] = api
        return {api: tuple(self._refusals(("apis", api), rows)) for api, rows in stated.items()}

    def _events(self, like: ProfileTable | None, apis: Collection[str]) -> tuple[VendorEvent, ...]:
        own = tuple(read_vendor_events(self.document, apis, self.events))
        stated = {(event.api, event.name) for event in own}
        return (*(event for event in (like.events if like else ()) if (event.api, event.name) not in stated), *own)

    def _has_its_own_defaults(self, table: ProfileTable) -> None:
        stated = "unsupported" in self.document.data
        defaults = table.settings({})
        for api in table.apis:
            for row in set(table.refused(defaults, api)) & set(table.apis[api]):
                why = f"{row.place} refuses the profile's own defaults ({row.because}); correct one of them"
                raise self.document.error(("apis", api), why)
        refused = set(table.refused(defaults))
        for i, row in enumerate(table.unsupported):
            if row in refused and stated:
                raise self.document.error(
                    ("unsupported", i), "this refuses the profile's own defaults; correct one of them"
                )
            if row in refused:
                raise self.document.error(
                    ("defaults",), f"{row.place} refuses these defaults ({row.because}); correct them"
                )

    def _place(self, path: _Path) -> str:
        return f"{self.document.name}:{self.document.line(path)}"

    def _value(self, path: _Path, key: str, value: object) -> _Value:
        with self.document.at(path):
            return parse_value(key, value)

    def _key(self, path: _Path, key: str) -> str:
        if key == "profile":
            raise self.document.error(path, "the profile is the name of the file and no setting of it; delete this")
        with self.document.at(path):
            key_type(key)
        return key

    def _condition(self, path: _Path, row: Mapping[str, Any]) -> Condition | None:
        if "when" not in row:
            return None
        with self.document.at(path):
            return parse_condition(row["when"], self.conditions)

    def _condition_on_settings(self, path: _Path, row: Mapping[str, Any]) -> Condition | None:
        """The condition of ``row``, which reads nothing but settings."""
        condition = self._condition(path, row)
        if condition is None:
            return None
        if alien := sorted(condition.settings() & STATIC_NAMES.keys()):
            raise self.document.error(path, f"a condition of a profile reads its settings, not {alien[0]}")
        return condition

    def defaults(self) -> Iterator[Default]:
        for key, cell in self.document.data["defaults"].items():
            rows = cell if isinstance(cell, list) else [cell]
            for i, row in enumerate(rows):
                path = ("defaults", key, i) if isinstance(cell, list) else ("defaults", key)
                yield self._default(path, key, row, last=i == len(rows) - 1)

    def _default(self, path: _Path, key: str, row: dict[str, Any], *, last: bool) -> Default:
        self._key(path, key)
        if last is ("when" in row):
            raise self.document.error(path, f"{key}: every row but the last has a condition, the last has none")
        when = self._condition(path, row)
        read = when.settings() if when else frozenset()
        third_of = row.get("third_of")
        if third_of is not None:
            self._has_a_third(path, key, third_of)
            read |= {third_of}
        self._reads_only_keys_before(path, key, read)
        value = self._value(path, key, row["value"]) if third_of is None else None
        return Default(key, value, third_of, when, row["because"], row["source"], self._place(path))

    def _has_a_third(self, path: _Path, key: str, whole: str) -> None:
        """Refuse a third of no number, or of one that may be none where the third may not."""
        if {key_type(key), key_type(self._key(path, whole))} != {int} or is_optional(whole) > is_optional(key):
            raise self.document.error(path, f"{key} cannot be a third of {whole}; give it a value")

    def _reads_only_keys_before(self, path: _Path, key: str, read: frozenset[str]) -> None:
        if late := sorted(read - set(_KEYS[: _KEYS.index(key)])):
            raise self.document.error(path, f"the default of {key} may only read settings before it, not {late[0]}")

    def _refusals(self, where: _Path, rows: list[dict[str, Any]]) -> Iterator[Refusal]:
        for i, row in enumerate(rows):
            path = (*where, i)
            fixed = self._key(path, row["fixed"]) if "fixed" in row else None
            when, outside = self._condition_on_settings(path, row), self._range((*path, "outside"), row.get("outside"))
            yield Refusal(when, fixed, outside, row["because"], row["source"], row["instead"], self._place(path))

    def _range(self, path: _Path, row: Mapping[str, Any] | None) -> NumberRange | None:
        if row is None:
            return None
        key = self._key(path, row["key"])
        if key_type(key) is not int:
            raise self.document.error(path, f"{key} is no number; give a condition on it")
        return NumberRange(key, row["least"], row["most"], row.get("or"))

    def _constants(self, like: ProfileTable | None) -> tuple[Constant, ...]:
        stated = self.document.data.get("constants", {})
        kept = [constant for constant in (like.constants if like else ()) if constant.name not in stated]
        return (*kept, *(self._constant(name, row) for name, row in stated.items()))

    def _constant(self, name: str, row: dict[str, Any]) -> Constant:
        path = ("constants", name)
        setting = None
        for key, value in row.get("is", {}).items():
            setting = (self._key(path, key), self._value(path, key, value))
        return Constant(name, str(row["number"]), setting, row.get("means"), row["source"])

    def _names(self) -> Mapping[str, VendorAlias]:
        names: dict[str, VendorAlias] = {}
        for name, row in self.document.data.get("names", {}).items():
            path = ("names", name)
            if name.casefold() in names:
                raise self.document.error(path, f"the name {name!r} stands twice, but for capitals; keep one of them")
            if name.casefold() in _KEYS:
                raise self.document.error(path, f"{name!r} is a setting of the vocabulary itself; delete this")
            names[name.casefold()] = self._name(path, name, row)
        spelled: dict[str, str] = {}
        for own in names.values():
            if (other := spelled.setdefault(own.url.casefold(), own.name)) != own.name:
                raise self.document.error(("names", own.name), f"{other} is called the same in a URL; keep one of them")
        return MappingProxyType(names)

    def _name(self, path: _Path, name: str, row: dict[str, Any]) -> VendorAlias:
        keys = tuple(self._key(path, key) for key in ([row["key"]] if isinstance(row["key"], str) else row["key"]))
        values = {text: self._set_by((*path, "values", text), keys, one) for text, one in row.get("values", {}).items()}
        values |= {text: MappingProxyType({}) for text in row.get("leaves", ())}
        refused = row.get("refuses", {})
        if twice := sorted({*refused} & {*values}):
            raise self.document.error(path, f"{name} says twice what {twice[0]!r} is; keep one of them")
        if len(keys) > 1 and not (values or "differs" in row):
            raise self.document.error(path, f"{name} is not one setting by another name; say how it differs")
        if "when" in row and not values and "plus" not in row and not set(map(key_type, keys)) <= {int, bool}:
            raise self.document.error(path, f"{name} has a condition; say what its values are")
        positive, anything = (
            tuple(self._value((*path, what), keys[0], row[what]) for _ in range(what in row))
            for what in ("positive", "anything")
        )
        return VendorAlias(
            name=name,
            keys=keys,
            values=MappingProxyType(values),
            refused=MappingProxyType(refused),
            plus=row.get("plus", 0),
            positive=positive,
            anything=anything,
            when=self._condition_before((*path, "when"), keys, row),
            url=row.get("url", name),
            differs=row.get("differs"),
            source=row["source"],
        )

    def _set_by(self, path: _Path, keys: tuple[str, ...], one: object) -> Mapping[str, _Value]:
        """Return the settings of a value of a vendor's name: the same for all ``keys``, or by key."""
        by_key = one if isinstance(one, dict) else dict.fromkeys(keys, one)
        if alien := sorted(by_key.keys() - set(keys)):
            raise self.document.error(path, f"a value sets {' and '.join(keys)}, and {alien[0]} is none of them")
        return MappingProxyType({key: self._value(path, key, value) for key, value in by_key.items()})

    def _condition_before(self, path: _Path, keys: tuple[str, ...], row: dict[str, Any]) -> Condition | None:
        """The condition of a name, which is decided before the settings that it stands for are."""
        when = self._condition_on_settings(path, row)
        late = sorted((when.settings() if when else set()) - set(_KEYS[: min(map(_KEYS.index, keys))]))
        if late:
            raise self.document.error(path, f"the condition may only read settings before {keys[0]}, not {late[0]}")
        return when

    def _deviation(self, i: int, row: dict[str, Any]) -> Deviation:
        path = ("deviates", i)
        when = self._condition_on_settings(path, row)
        left_open = self._left_open((*path, "left_open"), row["left_open"]) if "left_open" in row else None
        return Deviation(row["what"], when, row.get("unmodelled"), left_open, row["source"])

    def _left_open(self, path: _Path, row: dict[str, Any]) -> LeftOpen:
        where = self._condition_on_settings(path, {"when": row["where"]})
        as_if = {
            self._key((*path, "as_if", key), key): self._value((*path, "as_if", key), key, value)
            for key, value in row["as_if"].items()
        }
        return LeftOpen(where or ALWAYS, frozenset(row["after"]), MappingProxyType(as_if))
