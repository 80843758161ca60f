"""The whole of ``spec/``: machines, properties, events, conditions, sources, profiles, promises."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables._conditions import Condition, parse_condition
from ackfsm.tables._guarantees import Guarantees, read_guarantees
from ackfsm.tables._machine import Machine, Move, Per, Relation, read_machine
from ackfsm.tables._matrix import Switch, read_switches
from ackfsm.tables._source import Document, read_document
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Profile, SpecError, parse_value

__all__ = ["Default", "Event", "Gap", "Monitor", "Promise", "Property", "Specification", "Undecided", "load"]


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One event: what it exists once for, in whose lane it happens, what it means.

    ``recorded`` says how a history shows it, ``None`` if no history can.  An ``optional`` event is
    one that an application may choose; it happens only in checks that ask for it.
    """

    name: str
    per: Per
    lane: str
    means: str
    recorded: str | None
    optional: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Monitor:
    """One machine of a property with its marked states: anomalies always, or only at rest."""

    machine: Machine
    marked: frozenset[str]
    at_rest: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """The definition of one anomaly.

    ``rest`` says when a history has come to rest for it: ``drained`` (its queue was seen
    empty) or ``end`` (nothing follows).  ``needs_every_line`` is true where the anomaly is
    concluded from the *absence* of an event, so that an unread line leaves it unproved.
    """

    anomaly: Anomaly
    means: str
    rest: str
    needs_every_line: bool
    monitors: tuple[Monitor, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Default:
    """What a profile sets a key to, under a condition on the keys before it."""

    key: str
    value: Any
    when: Condition | None
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """A sentence of a specification or a vendor: under this condition the anomaly does not happen."""

    absent: Anomaly
    when: Condition
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """A value that is in the vocabulary but for which the tables have no rows yet."""

    key: str
    value: Any
    because: str


@dataclasses.dataclass(frozen=True, slots=True)
class Undecided:
    """An anomaly that is counted on histories and that the machines do not decide yet."""

    anomaly: Anomaly
    means: str
    because: str


@dataclasses.dataclass(frozen=True, slots=True)
class Specification:
    """Everything that ``spec/`` says, read and checked.  Immutable; ``digest`` names exactly these tables."""

    machines: Mapping[str, Machine]
    properties: Mapping[Anomaly, Property]
    events: Mapping[str, Event]
    conditions: Mapping[str, Condition]
    sources: Mapping[str, str]
    profiles: Mapping[Profile, tuple[Default, ...]]
    promises: tuple[Promise, ...]
    gaps: tuple[Gap, ...]
    undecided: Mapping[Anomaly, Undecided]
    guarantees: Guarantees
    switches: tuple[Switch, ...]
    digest: str

    def configure(self, profile: str | None = None, settings: Mapping[str, object] | None = None) -> Configuration:
        """The configuration of ``profile`` (``jms`` if none is named) with ``settings`` over its defaults.

        Raises :class:`InputError` for a profile, key or value that does not exist.
        """
        given = dict(settings or {})
        name = parse_value("profile", profile or given.pop("profile", Profile.JMS))
        given.pop("profile", None)
        values: dict[str, Any] = {"profile": name}
        chosen = {key: parse_value(key, value) for key, value in given.items()}
        for field in dataclasses.fields(Configuration)[1:]:
            values[field.name] = chosen[field.name] if field.name in chosen else self._default(field.name, values)
        return Configuration(**values)

    def _default(self, key: str, values: Mapping[str, Any]) -> object:
        return next(
            default.value
            for default in self.profiles[values["profile"]]
            if default.key == key and (default.when is None or default.when.holds(values))
        )

    def environment(
        self,
        configuration: Configuration,
        *,
        faults: Collection[Fault] = (),
        max_faults: int | None = 0,
        messages: int = 1,
        copy: int = 1,
    ) -> dict[str, Any]:
        """What conditions read: the settings, the bounds of a check, and the number of a copy (from 1)."""
        settings = {field.name: getattr(configuration, field.name) for field in dataclasses.fields(configuration)}
        bounds = {"faults": frozenset(faults), "max_faults": max_faults, "messages": messages, "copy": copy}
        return settings | bounds

    def meaning(self, anomaly: Anomaly) -> str:
        """What ``anomaly`` is, in words; empty if no table speaks of it."""
        told = self.properties.get(anomaly) or self.undecided.get(anomaly)
        return told.means if told else ""

    def gaps_of(self, configuration: Configuration) -> tuple[Gap, ...]:
        """The settings of ``configuration`` for which the tables have no rows; empty if it can be checked."""
        return tuple(gap for gap in self.gaps if getattr(configuration, gap.key) == gap.value)

    def promised_absent(self, configuration: Configuration) -> Mapping[Anomaly, Promise]:
        """The anomalies that the configuration promises never to happen, each with the promise."""
        environment = self.environment(configuration)
        kept = (promise for promise in reversed(self.promises) if promise.when.holds(environment))
        return {promise.absent: promise for promise in kept}

    def owner(self, event: str) -> Machine | None:
        """The machine that decides ``event``; ``None`` if no machine of the tables does."""
        return next((machine for machine in self.machines.values() if event in machine.owns), None)

    def settings_read(self) -> frozenset[str]:
        """The settings that some row, counter or promise reads; the others cannot change any answer."""
        machines = [*self.machines.values(), *(m.machine for p in self.properties.values() for m in p.monitors)]
        read = {name for machine in machines for row in machine.rows() for name in row.when.settings()}
        read |= {machine.counter.bound for machine in machines if machine.counter}
        read |= {name for promise in self.promises for name in promise.when.settings()}
        return frozenset(read | {gap.key for gap in self.gaps} | {"profile"})


def load(directory: Path | None = None) -> Specification:
    """Read and check ``spec/`` (the one that ships with the package, or ``directory``).

    Raises :class:`SpecError` naming file, line and remedy for whatever is wrong with a table:
    a hole, an unknown or unused name, a row without reason, a condition that cannot be parsed.
    """
    return _Loader(directory or _shipped()).load()


def _shipped() -> Path:
    package = Path(__file__).parent.parent
    inside = package / "_spec"
    return inside if inside.is_dir() else package.parent / "spec"


class _Loader:
    """Reads the files in the order in which they need each other, then checks them against each other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        schema = directory / "schema.json"
        if not schema.is_file():
            raise SpecError(f"{directory}: no tables here (schema.json is missing); name the folder that holds spec/")
        try:
            self.schema: dict[str, Any] = json.loads(schema.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SpecError(f"{schema}: not JSON ({error}); restore the file") from None
        self.conditions: dict[str, Condition] = {}
        self.documents: list[Document] = []

    def load(self) -> Specification:
        sources = self._read("sources.yaml", "sources")
        events = self._read("events.yaml", "events")
        conditions = self._read_conditions()
        machines = self._read_machines()
        specification = Specification(
            machines=MappingProxyType(machines),
            properties=MappingProxyType(self._read_properties()),
            events=MappingProxyType({name: _event(name, data) for name, data in events.data.items()}),
            conditions=MappingProxyType(self.conditions),
            sources=MappingProxyType(sources.data),
            profiles=MappingProxyType(self._read_profiles()),
            promises=self._read_promises(),
            **self._read_gaps(),
            guarantees=read_guarantees(self._read("guarantees.yaml", "guarantees")),
            switches=self._read_switches(),
            digest=self._digest(),
        )
        _Check(specification, events, sources, conditions, self.documents).run()
        return specification

    def _digest(self) -> str:
        """A name for exactly these tables."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(document.file.read_bytes())
        return digest.hexdigest()

    def _read(self, name: str, form: str) -> Document:
        document = read_document(self.directory / name, f"spec/{name}", self._form(form))
        self.documents.append(document)
        return document

    def _form(self, name: str) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{name}", "$defs": self.schema["$defs"]}

    def _folder(self, folder: str, form: str) -> Iterator[Document]:
        if not (self.directory / folder).is_dir():
            raise SpecError(f"{self.directory / folder}: the folder is missing; restore it")
        for file in sorted((self.directory / folder).glob("*.yaml")):
            yield self._read(f"{folder}/{file.name}", form)

    def _condition(self, document: Document, path: tuple[str | int, ...], text: str) -> Condition:
        try:
            return parse_condition(text, self.conditions)
        except ValueError as error:
            raise document.error(path, str(error)) from None

    def _read_conditions(self) -> Document:
        document = self._read("conditions.yaml", "conditions")
        for name, data in document.data.items():
            self.conditions[name] = self._condition(document, (name, "when"), data["when"])
        return document

    def _read_machines(self) -> dict[str, Machine]:
        machines: dict[str, Machine] = {}
        for document in self._folder("machines", "machines"):
            for name, data in document.data.items():
                if name in machines:
                    raise document.error((name,), f"there are two machines {name!r}; rename one")
                machines[name] = read_machine(document, name, (name,), data, self.conditions)
        return machines

    def _read_properties(self) -> dict[Anomaly, Property]:
        properties = {}
        for document in self._folder("properties", "property"):
            anomaly = Anomaly(document.data["anomaly"])
            if document.file.stem != anomaly:
                raise document.error(("anomaly",), f"{anomaly} belongs in {anomaly}.yaml; rename the file")
            properties[anomaly] = self._property(document, anomaly)
        return {anomaly: properties[anomaly] for anomaly in Anomaly if anomaly in properties}

    def _property(self, document: Document, anomaly: Anomaly) -> Property:
        data = document.data
        monitors = tuple(
            self._monitor(document, ("machines", name), name, table) for name, table in data["machines"].items()
        )
        return Property(anomaly, data["means"], data["rest"], data["needs_every_line"], monitors)

    def _monitor(self, document: Document, path: tuple[str | int, ...], name: str, data: dict[str, Any]) -> Monitor:
        machine = read_machine(document, name, path, data, self.conditions)
        marked, at_rest = (frozenset(data.get(key, ())) for key in ("marked", "at_rest"))
        states = {"overrun"} if machine.counter else set(machine.states)
        if stray := sorted((marked | at_rest) - states):
            raise document.error(path, f"{name} marks {stray[0]!r}, which is no state of it")
        for row in machine.rows():
            if row.move is Move.REFUSE:
                raise SpecError(f"{row.place}: {name} refuses {row.event}; a property only watches, write ignore")
        return Monitor(machine, marked, at_rest)

    def _read_profiles(self) -> dict[Profile, tuple[Default, ...]]:
        documents = {document.file.stem: document for document in self._folder("profiles", "profile")}
        if missing := sorted({profile.value for profile in Profile} ^ documents.keys()):
            raise SpecError(f"{self.directory / 'profiles'}: {missing[0]}.yaml is missing or names no profile")
        own = {Profile(name): tuple(self._defaults(document)) for name, document in documents.items()}
        base = own[Profile.JMS]
        _every_key_has_a_default(base, documents[Profile.JMS])
        return {profile: _over(defaults, base) for profile, defaults in own.items()}

    def _defaults(self, document: Document) -> Iterator[Default]:
        for key, cell in document.data["defaults"].items():
            rows = cell if isinstance(cell, list) else [cell]
            for i, row in enumerate(rows):
                path = ("defaults", key, i) if isinstance(cell, list) else ("defaults", key)
                yield self._default(document, path, key, row, last=i == len(rows) - 1)

    def _default(
        self, document: Document, path: tuple[str | int, ...], key: str, row: dict[str, Any], *, last: bool
    ) -> Default:
        if key == "profile":
            raise document.error(path, "the profile is the name of the file and has no default; delete this")
        if last is ("when" in row):
            raise document.error(path, f"{key}: every row but the last has a condition, the last has none")
        when = self._condition(document, path, row["when"]) if "when" in row else None
        try:
            value = parse_value(key, row["value"])
        except InputError as error:
            raise document.error(path, str(error)) from None
        _reads_only_keys_before(document, path, key, when)
        return Default(key, value, when, row["because"], row["source"])

    def _read_promises(self) -> tuple[Promise, ...]:
        document = self._read("promises.yaml", "promises")
        return tuple(
            Promise(
                Anomaly(row["absent"]),
                self._condition(document, (i, "when"), row["when"]),
                row["because"],
                row["source"],
            )
            for i, row in enumerate(document.data)
        )

    def _read_switches(self) -> tuple[Switch, ...]:
        document = self._read("matrix.yaml", "switches")
        return read_switches(document, lambda path, text: self._condition(document, path, text))

    def _read_gaps(self) -> dict[str, Any]:
        document = self._read("gaps.yaml", "gaps")
        gaps, undecided = [], {}
        for i, row in enumerate(document.data):
            if "anomaly" in row:
                anomaly = Anomaly(row["anomaly"])
                undecided[anomaly] = Undecided(anomaly, row["means"], row["because"])
                continue
            try:
                gaps.append(Gap(row["key"], parse_value(row["key"], row["value"]), row["because"]))
            except InputError as error:
                raise document.error((i,), str(error)) from None
        return {"gaps": tuple(gaps), "undecided": MappingProxyType(undecided)}


def _event(name: str, data: dict[str, Any]) -> Event:
    return Event(name, Per(data["per"]), data["lane"], data["means"], data.get("recorded"), data.get("optional", False))


def _over(defaults: tuple[Default, ...], base: tuple[Default, ...]) -> tuple[Default, ...]:
    stated = {default.key for default in defaults}
    return (*defaults, *(default for default in base if default.key not in stated))


def _every_key_has_a_default(base: tuple[Default, ...], document: Document) -> None:
    keys = {field.name for field in dataclasses.fields(Configuration)} - {"profile"}
    if missing := sorted(keys - {default.key for default in base}):
        raise document.error(("defaults",), f"no default for {missing[0]}; every other profile builds on this one")


def _reads_only_keys_before(document: Document, path: tuple[str | int, ...], key: str, when: Condition | None) -> None:
    order = [field.name for field in dataclasses.fields(Configuration)]
    late = sorted((when.settings() if when else set()) - set(order[: order.index(key)]))
    if late:
        raise document.error(path, f"the default of {key} may only read settings before it, not {late[0]}")


class _Check:
    """What only the files together can show: unknown and unused names, events without or with two owners."""

    def __init__(
        self,
        specification: Specification,
        events: Document,
        sources: Document,
        conditions: Document,
        documents: list[Document],
    ) -> None:
        self.specification = specification
        self.events = events
        self.sources = sources
        self.conditions = conditions
        self.documents = documents
        monitors = [m.machine for p in specification.properties.values() for m in p.monitors]
        self.machines = [*specification.machines.values(), *monitors]

    def run(self) -> None:
        for machine in self.machines:
            self._known_events(machine)
        self._one_owner()
        self._nothing_unused(self.events, self._used_events(), "event", "no machine has it in its alphabet")
        self._nothing_unused(self.conditions, self._used_conditions(), "condition", "no row reads it")
        self._sources()

    def _known_events(self, machine: Machine) -> None:
        places = {row.event: row.place for row in sorted(machine.rows(), key=lambda row: row.line, reverse=True)}
        for event in machine.alphabet:
            known = self.specification.events.get(event.name)
            place = places[event]
            if known is None:
                raise SpecError(f"{place}: {machine.name} reacts to {event.name!r}; declare it in events.yaml")
            if event.relation is not Relation.OWN and Per.SYSTEM in (machine.per, known.per):
                raise SpecError(f"{place}: {machine.name}: {event} has no other index; drop ({event.relation})")
        for name in machine.owns:
            if name not in {event.name for event in machine.alphabet if event.relation is Relation.OWN}:
                raise SpecError(f"{machine.file}:{machine.line}: {machine.name} owns {name} but has no row for it")
            per, order = self.specification.events[name].per, list(Per)
            if order.index(machine.per) > order.index(per):
                sentence = (
                    f"{machine.name} is per {machine.per} and owns {name}, which is per {per}; give it a coarser owner"
                )
                raise SpecError(f"{machine.file}:{machine.line}: {sentence}")

    def _one_owner(self) -> None:
        owners: dict[str, str] = {}
        for machine in self.specification.machines.values():
            for event in machine.owns:
                if event in owners:
                    place = f"{machine.file}:{machine.line}"
                    raise SpecError(f"{place}: {machine.name} and {owners[event]} both own {event}; keep one owner")
                owners[event] = machine.name
        for name, declared in self.specification.events.items():
            if name not in owners and declared.recorded is None:
                raise self.events.error((name,), f"no machine owns {name} and no history records it; give it an owner")

    def _used_events(self) -> set[str]:
        return {event.name for machine in self.machines for event in machine.alphabet}

    def _used_conditions(self) -> set[str]:
        conditions = [row.when for machine in self.machines for row in machine.rows()]
        conditions += [switch.when for switch in self.specification.switches]
        conditions += [promise.when for promise in self.specification.promises]
        conditions += [d.when for ds in self.specification.profiles.values() for d in ds if d.when]
        conditions += list(self.specification.conditions.values())
        return {name for condition in conditions for name in condition.names()}

    @staticmethod
    def _nothing_unused(document: Document, used: set[str], kind: str, why: str) -> None:
        for name in document.data:
            if name not in used:
                raise document.error((name,), f"the {kind} {name} is unused ({why}); delete it")

    def _sources(self) -> None:
        tags = sorted(self.specification.sources, key=len, reverse=True)
        used: set[str] = set()
        for document, path, text in self._cited():
            parts = [part.strip() for part in text.split(";")]
            for part in parts:
                tag = next((tag for tag in tags if part == tag or part.startswith(f"{tag} ")), None)
                if tag is None:
                    raise document.error(path, f"source {part!r} begins with no tag of sources.yaml; add the tag")
                used.add(tag)
        self._nothing_unused(self.sources, used, "source", "nothing cites it")

    def _cited(self) -> Iterator[tuple[Document, tuple[str | int, ...], str]]:
        for document in self.documents:
            yield from ((document, path, text) for path, text in _find(document.data, "source"))


def _find(data: Any, key: str, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in steps:
        if step == key and isinstance(value, str):
            yield (*path, step), value
        else:
            yield from _find(value, key, (*path, step))
