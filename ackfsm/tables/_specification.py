"""The whole of ``spec/``: machines, properties, events, conditions, sources, profiles, promises."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables._conditions import COUNTED, Condition, parse_condition
from ackfsm.tables._events import Event, read_events
from ackfsm.tables._guarantees import Guarantees, read_guarantees
from ackfsm.tables._held import is_kept, keep, stamp_of
from ackfsm.tables._machine import Machine, Move, Per, Relation, read_machine, read_twin
from ackfsm.tables._matrix import Switch, read_switches
from ackfsm.tables._profiles import ProfileTable, Refusal, read_profiles
from ackfsm.tables._progress import Progress, Waiting, read_progress
from ackfsm.tables._source import Document, read_document
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Profile, SpecError, key_type, parse_value
from ackfsm.text import shown

__all__ = ["Gap", "Monitor", "Promise", "Property", "Specification", "Undecided", "load", "read_form"]

_KEYS = frozenset(field.name for field in dataclasses.fields(Configuration))


@dataclasses.dataclass(frozen=True, slots=True)
class Monitor:
    """One machine of a property with its marked states: anomalies always, or only at rest.

    One that is ``of_the_model`` is not folded over histories: another machine of the property, or a
    count, watches there what it watches here.
    """

    machine: Machine
    marked: frozenset[str]
    at_rest: frozenset[str]
    of_the_model: bool = False


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
    monitors: Mapping[str, Monitor]
    events: Mapping[str, Event]
    conditions: Mapping[str, Condition]
    sources: Mapping[str, str]
    profiles: Mapping[Profile, ProfileTable]
    promises: tuple[Promise, ...]
    gaps: tuple[Gap, ...]
    undecided: Mapping[Anomaly, Undecided]
    guarantees: Guarantees
    progress: Mapping[str, Progress]
    switches: tuple[Switch, ...]
    digest: str

    def configure(self, profile: str | None = None, settings: Mapping[str, object] | None = None) -> Configuration:
        """The configuration of ``profile`` (``jms`` if none is named) with ``settings`` over its defaults.

        Raises :class:`InputError` for a profile, key or value that does not exist, or that the system does not have.
        """
        given = self._given(profile, settings)
        table = self.profiles[given["profile"]]
        values = table.settings(given)
        for refusal in table.refused(values):
            raise InputError(refusal.sentence(f"the profile {table.profile}", values, given))
        return Configuration(**values)

    def in_vocabulary(self, profile: object, settings: Mapping[str, object]) -> dict[str, object]:
        """``settings`` under the keys of the vocabulary, with the ``profile`` (``jms`` if none is named) among them.

        A key may also be the system's own name for it, if that means the same (``ProfileTable.names``).

        Raises :class:`InputError` for a profile that does not exist, for a key that is given under both names, and
        for a name that is related to a key but does not mean the same.
        """
        name = _profile(settings.get("profile", Profile.JMS) if profile is None else profile)
        under: dict[str, str] = {}
        for said, value in settings.items():
            key = said if said in _KEYS else self._key_of(name, said, value)
            if key in under:
                raise InputError(f"{under[key]} and {said} are one setting, given twice; keep one of them")
            under[key] = said
        return {**{key: settings[said] for key, said in under.items()}, "profile": name}

    def _key_of(self, profile: Profile, said: str, value: object) -> str:
        named = self.profiles[profile].own_name(said)
        if named is not None:
            return named.key_for(profile, value)
        for other, table in self.profiles.items():
            elsewhere = table.own_name(said)
            if elsewhere is not None and elsewhere.name == said:
                keys = " and ".join(elsewhere.keys)
                raise InputError(f"{said} is a name that {other} has for {keys}, and {profile} has not; set {keys}")
        key_type(said)  # raises: there is no such setting
        return said

    def _given(self, profile: str | None, settings: Mapping[str, object] | None) -> dict[str, Any]:
        given = self.in_vocabulary(profile, settings or {})
        return {key: parse_value(key, value) for key, value in given.items()}

    def offered(self, profile: str, key: str, settings: Mapping[str, object] | None = None) -> tuple[Any, ...]:
        """The values of ``key`` that a profile has, where ``settings`` are as given and all others by default.

        For settings with a list of values or that are true or false; gaps of the tables are among them.
        """
        kind = key_type(key)
        if not issubclass(kind, StrEnum | bool):
            raise InputError(f"{key} is a number and has no list of values; ask for a setting that has one")
        table = self.profiles[_profile(profile)]
        given = self._given(profile, settings)
        values = tuple(kind) if issubclass(kind, StrEnum) else (False, True)
        return tuple(value for value in values if not any(table.refused(table.settings(given | {key: value}))))

    def api_refusal(
        self, profile: str, api: str, key: str, value: object, settings: Mapping[str, object] | None = None
    ) -> Refusal | None:
        """Why an application cannot have ``key`` at ``value`` through one of the system's APIs; ``None`` if it can.

        ``api`` is a name of ``ProfileTable.apis`` (``JMS 1.1``, ``JMS 2.0 simplified``); ``settings`` are the other
        settings, by default those of the profile.  Raises :class:`InputError` for an API that the system does not have.
        """
        given = self._given(profile, {**(settings or {}), key: value})
        table = self.profiles[given["profile"]]
        if api not in table.apis:
            known = ", ".join(table.apis) or "none"
            raise InputError(f"the profile {table.profile} has no API {api!r}; its APIs are: {known}")
        rows = table.refused(table.settings(given), api)
        return next((row for row in rows if key in row.settings()), None)

    def environment(  # noqa: PLR0913 - one name for each bound that a condition or a counter may read
        self,
        configuration: Configuration,
        *,
        faults: Collection[Fault] = (),
        max_faults: int | None = 0,
        messages: int = 1,
        copy: int = 1,
        copies: int | None = None,
        repeats: int | None = None,
    ) -> dict[str, Any]:
        """What conditions read: the settings, the bounds of a check, and the number of a copy (from 1).

        ``copies`` is how many copies of messages there can be in all, ``repeats`` how often something can make
        the broker deliver again; ``None`` where nothing bounds them.
        """
        settings = {field.name: getattr(configuration, field.name) for field in dataclasses.fields(configuration)}
        bounds = {"faults": frozenset(faults), "max_faults": max_faults, "messages": messages, "copy": copy}
        return settings | bounds | _counted(configuration, copies, repeats)

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
        read = {name for condition in self.conditions_of_machines() for name in condition.settings()}
        read |= {name for promise in self.promises for name in promise.when.settings()}
        counted = (COUNTED.get(name, name) for name in self.bounds_of_machines())
        return frozenset({*read, *counted, *(gap.key for gap in self.gaps), "profile"})

    def conditions_of_machines(self) -> tuple[Condition, ...]:
        """Every condition of a row, once.

        Where they all hold alike, and the :meth:`bounds_of_machines` are the same, every machine has the same rows.
        """
        rows = (row for machine in self._all_machines() for row in machine.rows())
        return tuple({row.when.text: row.when for row in rows}.values())

    def bounds_of_machines(self) -> frozenset[str]:
        """The names of the bounds of all counters: settings, or bounds of a check."""
        return frozenset(machine.counter.bound for machine in self._all_machines() if machine.counter)

    def _all_machines(self) -> tuple[Machine, ...]:
        return (*self.machines.values(), *(m.machine for p in self.properties.values() for m in p.monitors))


def _profile(name: object) -> Profile:
    return Profile(str(parse_value("profile", name)))


def load(directory: Path | None = None) -> Specification:
    """Read and check ``spec/`` (the one that ships with the package, or ``directory``).

    Raises :class:`SpecError` naming file, line and remedy for whatever is wrong with a table:
    a hole, an unknown or unused name, a row without reason, a condition that cannot be parsed.
    """
    return _Loader(directory or _shipped()).load()


def read_form(name: str, form: str, directory: Path | None = None) -> Document:
    """Read one more file of ``spec/`` (or of ``directory``) that has this form in ``schema.json``.

    Raises :class:`SpecError` naming file, line and remedy.
    """
    return _Loader(directory or _shipped())._read(name, form)  # noqa: SLF001 - of this module


def _shipped() -> Path:
    package = Path(__file__).parent.parent
    inside = package / "_spec"
    return inside if inside.is_dir() else package.parent / "spec"


def _schema(directory: Path) -> dict[str, Any]:
    """The form of the tables in ``directory``, which is that of the tables that ship with this version."""
    file, shipped = directory / "schema.json", _shipped() / "schema.json"
    schema = _json(file)
    if directory != _shipped() and schema != _json(shipped):
        raise SpecError(f"{file}:1: not the form that this version of ackfsm reads; copy {shipped} there")
    return schema


def _json(file: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(
            f"{shown(str(file.parent))}: no tables here (schema.json is missing); name the folder that holds spec/"
        ) from None
    except OSError as error:
        raise SpecError(f"{shown(str(file))}: cannot be read ({error.strerror}); name a folder of tables") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file}:1: not JSON ({error}); restore the file") from None
    return read


class _Loader:
    """Reads the files in the order in which they need each other, then checks them against each other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.schema = _schema(directory)
        self.stamp = stamp_of(directory)
        self.in_form = is_kept(self.stamp)
        self.conditions: dict[str, Condition] = {}
        self.documents: list[Document] = []

    def load(self) -> Specification:
        sources = self._read("sources.yaml", "sources")
        events = self._read("events.yaml", "events")
        conditions = self._read_conditions()
        machines = self._read_machines()
        properties = self._read_properties()
        specification = Specification(
            machines=MappingProxyType(machines),
            properties=MappingProxyType(properties),
            monitors=MappingProxyType(self._read_monitors()),
            events=read_events(events),
            conditions=MappingProxyType(self.conditions),
            sources=MappingProxyType(sources.data),
            profiles=MappingProxyType(self._read_profiles()),
            promises=self._read_promises(),
            **self._read_gaps(),
            guarantees=read_guarantees(self._read("guarantees.yaml", "guarantees")),
            progress=MappingProxyType(self._read_progress(machines, properties)),
            switches=self._read_switches(),
            digest=self._digest(),
        )
        _Check(specification, events, sources, conditions, self.documents).run()
        if not self.in_form:
            keep(self.stamp)
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

    def _form(self, name: str) -> dict[str, Any] | None:
        return None if self.in_form else {"$ref": f"#/$defs/{name}", "$defs": self.schema["$defs"]}

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
                if "like" in data:
                    machines[name] = read_twin(document, name, (name,), data, machines)
                else:
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
        return Monitor(machine, marked, at_rest, data.get("of_the_model", False))

    def _read_monitors(self) -> dict[str, Monitor]:
        monitors: dict[str, Monitor] = {}
        for document in self._folder("monitors", "monitors"):
            for name, data in document.data.items():
                if name in monitors or name in set(Anomaly):
                    raise document.error((name,), f"{name!r} is the name of another monitor or anomaly; rename it")
                monitors[name] = self._monitor(document, (name,), name, data)
        return monitors

    def _read_profiles(self) -> dict[Profile, ProfileTable]:
        documents = {document.file.stem: document for document in self._folder("profiles", "profile")}
        return read_profiles(self.directory / "profiles", documents, self.conditions)

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
        document = self._read("sweep.yaml", "switches")
        return read_switches(document, lambda path, text: self._condition(document, path, text))

    def _read_progress(
        self, machines: Mapping[str, Machine], properties: Mapping[Anomaly, Property]
    ) -> dict[str, Progress]:
        watching = {
            f"{anomaly}.{monitor.machine.name}": Waiting(anomaly, monitor.machine.name, monitor.at_rest)
            for anomaly, definition in properties.items()
            for monitor in definition.monitors
        }
        return read_progress(self._read("liveness.yaml", "progress"), machines, watching)

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


_ATTEMPTS_TOLD_APART = 3
"""With any number of faults: the first delivery, the second, and all that follow."""


def _counted(configuration: Configuration, copies: int | None, repeats: int | None) -> dict[str, int | None]:
    """The bounds of the counters, where a check can reach them; ``None`` where it cannot.

    A limit of attempts above the number of repeats and one is out of reach; where repeats have no
    limit, a higher limit of attempts only delays what a lower one shows.
    """
    window, threshold = configuration.publish_window, configuration.confirm_threshold
    attempts = configuration.max_delivery_attempts
    prefetch = configuration.prefetch or None
    if attempts and repeats is None:
        attempts = min(attempts, _ATTEMPTS_TOLD_APART)
    return {
        "window": window if window is None or copies is None or window < copies else None,
        "threshold": threshold if threshold is None or copies is None else min(threshold, copies + 1),
        "prefetched": prefetch if prefetch is None or copies is None or prefetch < copies else None,
        "attempts": attempts if attempts and (repeats is None or attempts <= repeats + 1) else None,
    }


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
        monitors += [monitor.machine for monitor in specification.monitors.values()]
        self.machines = [*specification.machines.values(), *monitors]

    def run(self) -> None:
        for machine in self.machines:
            self._known_events(machine)
        self._one_owner()
        self._nothing_unused(self.events, self._used_events(), "event", "no machine has it in its alphabet")
        self._nothing_unused(self.conditions, self._used_conditions(), "condition", "no row reads it")
        self._decisions_have_sources()
        self._sources()

    def _decisions_have_sources(self) -> None:
        """A choice between rows, and an error that an application sees, is somebody's decision."""
        for machine in self.machines:
            for (state, event), cell in machine.cells.items():
                for row in cell:
                    if row.source is not None:
                        continue
                    where, remedy = f"{row.place}: {machine.name}.{state}", "say whose decision it is, or model"
                    if len(cell) > 1:
                        what = f"which row decides {event} is a matter of the configuration, and this one has no source"
                        raise SpecError(f"{where}: {what}; {remedy}")
                    if row.error is not None:
                        what = f"{event} ends in {row.error}, and the row has no source"
                        raise SpecError(f"{where}: {what}; {remedy}")

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
        conditions += [condition for table in self.specification.profiles.values() for condition in table.conditions()]
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
