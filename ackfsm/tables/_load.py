"""Read and validate ``spec/``: each file, in the order of their dependencies, then all against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables._conditions import Condition, parse_condition
from ackfsm.tables._cross_check import check_tables
from ackfsm.tables._events import Event, read_events, read_groups
from ackfsm.tables._forms import form_of, schema_of, shipped_tables
from ackfsm.tables._guarantees import read_guarantees
from ackfsm.tables._liveness import LivenessProperty, Waiting, read_liveness
from ackfsm.tables._machine import Machine, RowKind, read_machine
from ackfsm.tables._needed import check_needed_names
from ackfsm.tables._profiles import ProfileTable, read_profiles
from ackfsm.tables._recording import NOTHING_RECORDED, Recording, read_recording
from ackfsm.tables._source import Document, read_document
from ackfsm.tables._specification import Monitor, Promise, Property, Specification
from ackfsm.tables._sweep import Factor, read_factors
from ackfsm.tables._timing import read_timing
from ackfsm.tables._validated import is_validated, keep, kept, mark_validated, validation_stamp
from ackfsm.terms import Anomaly, SpecError


def load(directory: Path | None = None, own: Iterable[Path] = (), *, partial: bool = False) -> Specification:
    """Read and check ``spec/`` (the one that ships with the package, or ``directory``), and the profiles in ``own``.

    Tables that are ``partial`` may lack names to which this package refers: they are for its readers, such as drawings
    and searches, and not for its engine, nor for judging histories.

    Raises :class:`SpecError` naming file, line and remedy for whatever is wrong with a table:
    a hole, an unknown, unused or missing name, a row without reason, a condition that cannot be parsed.
    """
    specification = _shipped() if directory is None else _Loader(directory).load(partial=partial)
    for file in own:
        specification = specification.with_profile(file)
    return specification


def _shipped() -> Specification:
    loader = _Loader(shipped_tables())
    specification = kept(loader.stamp)
    if specification is None:
        specification = loader.load(partial=False)
        keep(loader.stamp, specification)
    return specification


def read_form(name: str, form: str, directory: Path | None = None) -> Document:
    """Read one more file of ``spec/`` (or of ``directory``); ``form`` is its definition in ``schema.json``.

    Raises :class:`SpecError` naming file, line and remedy.
    """
    return _Loader(directory or shipped_tables())._read(name, form)  # noqa: SLF001 - of this module


class _Loader:
    """Reads the files in the order of their dependencies, then checks them against each other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.schema = schema_of(directory)
        self.stamp = validation_stamp(directory)
        self.validated = is_validated(self.stamp)
        self.conditions: dict[str, Condition] = {}
        self.groups: Mapping[str, tuple[str, ...]] = {}
        self.documents: list[Document] = []

    def load(self, *, partial: bool) -> Specification:
        sources = self._read("sources.yaml", "sources")
        events = self._read("events.yaml", "events")
        self.groups = read_groups(events)
        self._read_conditions()
        machines = self._read_machines()
        properties = self._read_properties()
        promises = self._read_promises()
        declared = read_events(events, lambda path, text: self._condition(events, path, text))
        specification = Specification(
            machines=MappingProxyType(machines),
            properties=MappingProxyType(properties),
            monitors=MappingProxyType(self._read_monitors()),
            events=declared,
            recording=self._read_recording(declared, partial=partial),
            conditions=MappingProxyType(self.conditions),
            sources=MappingProxyType(sources.data),
            promises=MappingProxyType(promises),
            profiles=MappingProxyType(self._read_profiles(promises, events)),
            guarantees=read_guarantees(self._read("guarantees.yaml", "guarantees")),
            liveness=MappingProxyType(self._read_liveness(machines, properties)),
            factors=self._read_factors(),
            timing=read_timing(self._read("timing.yaml", "timing"), self.conditions),
            digest=self._digest(),
            directory=self.directory,
        )
        if not self.validated:
            snippets = [f"snippets/{file.stem}" for file in sorted(self.directory.glob("snippets/*.yaml"))]
            forms = {name: name for name in ("claims", "execution", "seeds")} | dict.fromkeys(snippets, "snippets")
            beside = {name: self._beside(name, form) for name, form in forms.items()}
            check_tables(specification, self.documents, beside)
            if not partial:
                check_needed_names(specification, [*self.documents, *filter(None, beside.values())])
                mark_validated(self.stamp)
        return specification

    def _digest(self) -> str:
        """The hash of the bytes of all files."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(document.file.read_bytes())
        return digest.hexdigest()

    def _read(self, name: str, form: str) -> Document:
        document = read_document(self.directory / name, f"spec/{name}", self._form(form))
        self.documents.append(document)
        return document

    def _beside(self, name: str, form: str) -> Document | None:
        """A file that other packages read, checked with the rest; ``None`` if these tables do not have it."""
        file = self.directory / f"{name}.yaml"
        return read_document(file, f"spec/{name}.yaml", self._form(form)) if file.exists() else None

    def _form(self, name: str) -> dict[str, Any] | None:
        return None if self.validated else form_of(self.schema, name)

    def _folder(self, folder: str, form: str) -> Iterator[Document]:
        if not (self.directory / folder).is_dir():
            raise SpecError(f"{self.directory / folder}: the folder is missing; restore it")
        for file in sorted((self.directory / folder).glob("*.yaml")):
            yield self._read(f"{folder}/{file.name}", form)

    def _condition(self, document: Document, path: tuple[str | int, ...], text: str) -> Condition:
        with document.at(path):
            return parse_condition(text, self.conditions)

    def _read_conditions(self) -> None:
        document = self._read("conditions.yaml", "conditions")
        for name, data in document.data.items():
            self.conditions[name] = self._condition(document, (name, "when"), data["when"])

    def _read_machines(self) -> dict[str, Machine]:
        machines: dict[str, Machine] = {}
        for document in self._folder("machines", "machines"):
            for name, data in document.data.items():
                if name in machines:
                    raise document.error((name,), f"there are two machines {name!r}; rename one")
                machines[name] = read_machine(document, name, (name,), data, self.conditions, self.groups)
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
        machine = read_machine(document, name, path, data, self.conditions, self.groups)
        marked, at_rest = (frozenset(data.get(key, ())) for key in ("marked", "at_rest"))
        states = {"overrun"} if machine.counter else set(machine.states)
        if stray := sorted((marked | at_rest) - states):
            raise document.error(path, f"{name} marks {stray[0]!r}, which is no state of it")
        for row in machine.rows():
            if row.kind is RowKind.REFUSE:
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

    def _read_recording(self, events: Mapping[str, Event], *, partial: bool) -> Recording:
        if partial and not (self.directory / "recording.yaml").exists():
            return NOTHING_RECORDED
        document = self._read("recording.yaml", "recording")
        return read_recording(document, events, lambda path, text: self._condition(document, path, text))

    def _read_profiles(self, promises: Mapping[str, Promise], events: Document) -> dict[str, ProfileTable]:
        documents = {document.file.stem: document for document in self._folder("profiles", "profile")}
        return read_profiles(self.directory / "profiles", documents, self.conditions, promises, events.data)

    def _read_promises(self) -> dict[str, Promise]:
        document = self._read("promises.yaml", "promises")
        return {
            name: Promise(
                name,
                Anomaly(row["absent"]),
                self._condition(document, (name, "when"), row["when"]),
                row["because"],
                row["source"],
            )
            for name, row in document.data.items()
        }

    def _read_factors(self) -> tuple[Factor, ...]:
        document = self._read("sweep.yaml", "sweep")
        return read_factors(document, lambda path, text: self._condition(document, path, text))

    def _read_liveness(
        self, machines: Mapping[str, Machine], properties: Mapping[Anomaly, Property]
    ) -> dict[str, LivenessProperty]:
        watching = {
            f"{anomaly}.{monitor.machine.name}": Waiting(anomaly, monitor.machine.name, monitor.marked_at_rest)
            for anomaly, definition in properties.items()
            for monitor in definition.monitors
        }
        return read_liveness(self._read("liveness.yaml", "liveness"), machines, watching)
