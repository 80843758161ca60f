"""The effect of the settings of one profile on a cell: which rows can decide, and how two values differ."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ackfsm.tables import Specification, Value
from ackfsm.tables.lookup._cells import Cell, TableRow
from ackfsm.terms import Configuration, Fault, InputError, Profile, is_optional, legal_values

_KEYS: Final = tuple(field.name for field in dataclasses.fields(Configuration))

_FREE: Final[Mapping[str, tuple[Any, ...]]] = {
    "copy": (1, 2),
    "messages": (2, 1),
    "consumers": (1, 2),
    "sessions": (1, 2),
    "durable_beside": (False, True),
    "faults": (frozenset(Fault), frozenset()),
    "max_faults": (None, 0),
}
"""What a check may choose besides the settings, as far as conditions tell it apart."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """In ``cell`` the ``row`` decides, where for the value that is compared with ``instead_of`` does, to another end.

    That holds with all else as the profile has it, but for ``given``, which is empty or one setting.
    """

    cell: Cell
    row: TableRow
    instead_of: TableRow
    given: Mapping[str, Value]


class Space:
    """The configurations of one profile, as far as conditions tell them apart."""

    def __init__(self, specification: Specification, profile: Profile) -> None:
        self.specification = specification
        self.profile = profile
        self._known: dict[tuple[tuple[str, Value], ...], Configuration | None] = {}
        self._living: dict[tuple[TableRow, ...], tuple[TableRow, ...]] = {}
        self._environments_of: dict[Configuration, Mapping[str, Any]] = {}

    def configuration(self, settings: Mapping[str, Value]) -> Configuration | None:
        """The profile with these settings; ``None`` where the system does not have them."""
        key = tuple(settings.items())
        if key not in self._known:
            try:
                others = {name: value for name, value in settings.items() if name != "profile"}
                profile = str(settings.get("profile", self.profile))
                self._known[key] = self.specification.configure(profile, others)
            except InputError:
                self._known[key] = None
        return self._known[key]

    def living(self, cell: Cell) -> tuple[TableRow, ...]:
        """The rows that decide in some configuration of the profile, in their order."""
        if len(cell.rows) == 1:
            return cell.rows
        if cell.rows not in self._living:
            self._living[cell.rows] = self._deciding(cell)
        return self._living[cell.rows]

    def _deciding(self, cell: Cell) -> tuple[TableRow, ...]:
        found = set[TableRow]()
        for environment in self._environments(sorted(cell.settings() - {"profile"})):
            found.add(cell.decide(environment))
            if len(found) == len(cell.rows):
                break
        return tuple(row for row in cell.rows if row in found)

    def _environments(self, names: list[str]) -> Iterator[dict[str, Any]]:
        keys = [name for name in names if name in _KEYS]
        free = [name for name in names if name not in _KEYS]
        for values in itertools.product(*map(self.values, keys)):
            configuration = self.configuration(dict(zip(keys, values, strict=True)))
            if configuration is None:
                continue
            environment = self.environment(configuration)
            for chosen in itertools.product(*(_FREE[name] for name in free)):
                yield {**environment, **dict(zip(free, chosen, strict=True))}

    def environment(self, configuration: Configuration) -> Mapping[str, Any]:
        """What conditions read, where nothing but the configuration restricts a check."""
        if configuration not in self._environments_of:
            self._environments_of[configuration] = self.specification.environment(
                configuration, faults=frozenset(Fault), max_faults=None, messages=2
            )
        return self._environments_of[configuration]

    def values(self, key: str) -> tuple[Value, ...]:
        """Return the values of a setting; of a number the ones that conditions tell apart (none, 0, 1)."""
        return legal_values(key) or ((None, 1) if is_optional(key) else (0, 1))

    def differences(self, cells: Iterable[Cell], key: str, value: Value, other: Value) -> Iterator[Difference]:
        """Where ``key`` at ``value`` has a row with another outcome than at ``other``.

        With all else as the profile has it, then also with one more setting changed, if that shows another difference.
        """
        unequal = [cell for cell in cells if len(cell.rows) > 1]
        seen = set[tuple[int, TableRow, TableRow]]()
        for alone in (True, False):
            for number, cell in enumerate(unequal):
                for given in [{}] if alone else self._changes(cell, key):
                    row, instead_of = self._decided(cell, ({key: value, **given}, {key: other, **given}))
                    if row.outcome != instead_of.outcome and (number, row, instead_of) not in seen:
                        seen.add((number, row, instead_of))
                        yield Difference(cell, row, instead_of, given)

    def _changes(self, cell: Cell, key: str) -> Iterator[dict[str, Value]]:
        if key not in cell.settings():
            return
        for name in sorted(cell.settings() & set(_KEYS) - {key, "profile"}):
            yield from ({name: value} for value in self.values(name))

    def _decided(self, cell: Cell, settings: tuple[Mapping[str, Value], Mapping[str, Value]]) -> list[TableRow]:
        """The two rows that decide; one row twice where the system lacks one of the configurations."""
        configurations = [found for found in map(self.configuration, settings) if found is not None]
        if len(configurations) < len(settings):
            return [cell.rows[0]] * 2
        return [cell.decide(self.environment(configuration)) for configuration in configurations]
