"""The scope of a check: its configurations, and the bounds of the search."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError, legal_values

_ANY = "any"


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """Groups of settings and the bounds of a search.

    A list in a group stands for each of its values, ``any`` for every value that the setting can have in
    the profile; a group is the product of its settings.
    """

    groups: tuple[Mapping[str, Any], ...]
    bounds: Bounds

    def describe(self) -> dict[str, Any]:
        """The scope as JSON values."""
        return {"in": [dict(group) for group in self.groups], **self.bounds.as_dict()}


def read_scope(data: Mapping[str, Any]) -> Scope:
    """The scope that a check of ``spec/claims.yaml`` states: ``in``, and the bounds."""
    groups = data.get("in", {})
    return Scope(tuple(groups if isinstance(groups, list) else [groups]), read_bounds(data))


def read_bounds(data: Mapping[str, Any]) -> Bounds:
    """The bounds that a check states; by default one message, and any fault any number of times."""
    faults = data.get("faults", _ANY)
    most = data.get("max_faults", _ANY)
    return Bounds(
        messages=data.get("messages", 1),
        faults=frozenset(Fault if faults == _ANY else map(Fault, faults)),
        max_faults=None if most == _ANY else most,
        actions=frozenset(data.get("actions", ())),
        without=frozenset(data.get("without", ())),
        consumers=data.get("consumers", 1),
        one_session=data.get("one_session", False),
        subscriptions=data.get("subscriptions", 1),
        non_durable=data.get("non_durable", 0),
    )


def configurations(
    specification: Specification, groups: Sequence[Mapping[str, Any]]
) -> dict[Configuration, dict[str, Any]]:
    """The configurations of ``groups``, each with the settings that were chosen for it.

    What a profile refuses is left out where the group says ``any``, since then the group speaks of what
    the profile has.  Raises :class:`InputError` for what is refused otherwise, and if nothing is left.
    """
    found: dict[Configuration, dict[str, Any]] = {}
    for group in groups:
        for settings in _product(group):
            configuration = _configure(specification, settings, lenient=_ANY in group.values())
            if configuration is not None:
                found.setdefault(configuration, settings)
    if not found:
        raise InputError(f"the profile has no configuration with these settings: {list(groups)}")
    return found


def _product(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    choices = [_values(key, value) for key, value in group.items()]
    for values in itertools.product(*choices):
        yield dict(zip(group, values, strict=True))


def _values(key: str, value: Any) -> list[Any]:
    if value != _ANY:
        return value if isinstance(value, list) else [value]
    if values := legal_values(key):
        return [value.value if isinstance(value, StrEnum) else value for value in values]
    raise InputError(f"{key} is a number; a claim has to list the numbers that it speaks of")


def _configure(specification: Specification, settings: dict[str, Any], *, lenient: bool) -> Configuration | None:
    try:
        return specification.configure(None, settings)
    except InputError:
        if lenient:
            return None
        raise
