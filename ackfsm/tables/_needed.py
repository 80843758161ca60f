"""Check that the tables have every name to which Python refers (:mod:`ackfsm.tables.names`)."""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ackfsm.tables import names
from ackfsm.tables._source import Document
from ackfsm.terms import SpecError
from ackfsm.text import in_words

if TYPE_CHECKING:
    from ackfsm.tables._machine import Machine
    from ackfsm.tables._specification import Specification

_Places: TypeAlias = Mapping[str, tuple[Document, tuple[str, ...]]]
"""Where each name of a kind stands."""

_PACKAGE = Path(__file__).parents[1]


def check_needed_names(specification: Specification, documents: Iterable[Document]) -> None:
    """Check each name that Python needs; ``documents`` are the tables, with ``execution.yaml`` if it is there.

    Raises :class:`SpecError` naming file and line, the name, who needs it and the remedy.
    """
    for kind, needed, places in _kinds(specification, {document.name: document for document in documents}):
        for name in needed:
            if name not in places:
                raise _missing(kind, name, needed, places)


def _kinds(
    specification: Specification, documents: Mapping[str, Document]
) -> Iterator[tuple[str, Collection[enum.StrEnum], _Places]]:
    """Yield each kind of names: the names that Python needs, and the places of all names."""
    for kind, needed in (("event", names.Event), ("condition", names.Condition)):
        document = documents[f"spec/{kind}s.yaml"]
        yield kind, [*needed], {name: (document, (name,)) for name in document.data}
    if (execution := documents.get("spec/execution.yaml")) is not None:
        yield "agent", [*names.Agent], {name: (execution, ("agents", name)) for name in execution.data["agents"]}
    monitors = [monitor.machine for prop in specification.properties.values() for monitor in prop.monitors]
    yield "machine of a property", [*names.Monitor], _of_machines(monitors, documents, "machines")
    machines = _of_machines(specification.machines.values(), documents)
    yield "machine", [*names.Machine], machines
    for machine, states in names.STATES.items():
        document, path = machines[machine]
        at = (document, (*path, "states"))
        yield f"state of {machine}", [*states], dict.fromkeys(specification.machines[machine].states, at)


def _of_machines(machines: Iterable[Machine], documents: Mapping[str, Document], *under: str) -> _Places:
    return {machine.name: (documents[machine.file], (*under, machine.name)) for machine in machines}


def _missing(kind: str, name: enum.StrEnum, needed: Collection[str], places: _Places) -> SpecError:
    """Return the error, at the likeliest of the names without a user: a new name of the same thing."""
    others = [other for other in places if other not in needed]
    document, path = places[next(iter(difflib.get_close_matches(name, others or places, 1, cutoff=0)))]
    member = f"{type(name).__name__}.{name.name}"
    return document.error(
        path,
        f"there is no {kind} {name.value!r}, to which Python refers ({in_words(_rooms(member))}); "
        f"rename {member} in ackfsm/tables/names.py too",
    )


def _rooms(member: str) -> list[str]:
    """The packages that refer to a ``member`` of the names."""
    refers = re.compile(rf"\b{re.escape(member)}\b")
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(_PACKAGE.rglob("*.py"))}
    files = (file for file, text in texts.items() if "tables" in text and "names" in text and refers.search(text))
    return [*dict.fromkeys(file.parent.relative_to(_PACKAGE.parent).as_posix() for file in files)]
