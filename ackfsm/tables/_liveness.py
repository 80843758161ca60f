"""Liveness properties: machines that must not be pending for ever."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ackfsm.tables._machine import Machine
from ackfsm.tables._source import Document
from ackfsm.terms import Anomaly


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A machine that waits for something while it is in one of its ``pending`` states.

    It is a machine of the system, or (``anomaly``) one of the property of that anomaly.
    """

    anomaly: Anomaly | None
    machine: str
    pending: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class LivenessProperty:
    """One liveness property: none of these machines is pending for ever."""

    name: str
    means: str
    because: str
    source: str
    waiting: tuple[Waiting, ...]


def read_liveness(
    document: Document, machines: Mapping[str, Machine], watching: Mapping[str, Waiting]
) -> dict[str, LivenessProperty]:
    """Read ``liveness.yaml``; ``watching`` are the machines of properties, by ``anomaly.machine``.

    Raises :class:`ackfsm.terms.SpecError` with the line of a machine or state that does not exist.
    """
    return {
        name: LivenessProperty(
            name,
            data["means"],
            data["because"],
            data["source"],
            tuple(
                _waiting(document, (name, "waiting", i), row, machines, watching)
                for i, row in enumerate(data["waiting"])
            ),
        )
        for name, data in document.data.items()
    }


def _waiting(
    document: Document,
    path: tuple[str | int, ...],
    row: Mapping[str, Any],
    machines: Mapping[str, Machine],
    watching: Mapping[str, Waiting],
) -> Waiting:
    name = row["machine"]
    if name in watching:
        known = watching[name]
        if "pending" in row:
            sentence = f"{name} is pending where it is {known.anomaly} at rest; delete this list"
            raise document.error((*path, "pending"), sentence)
        if not known.pending:
            raise document.error(path, f"{name} is no anomaly at rest, so it waits for nothing; name another machine")
        return known
    if name not in machines or machines[name].counter:
        raise document.error(
            path, f"no machine {name!r} can wait; name one of machines/ (no counter) or anomaly.machine"
        )
    if "pending" not in row:
        raise document.error(path, f"it is not said where {name} is pending; list its states as pending")
    pending = frozenset(row["pending"])
    if stray := sorted(pending - set(machines[name].states)):
        raise document.error((*path, "pending"), f"{name} is pending in {stray[0]!r}, which is no state of it")
    return Waiting(None, name, pending)
