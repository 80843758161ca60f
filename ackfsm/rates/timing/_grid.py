"""A grid of plans: each combination of the values of some options and settings, a row for each."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from ackfsm.rates.timing._bytes import InMessages, in_messages
from ackfsm.rates.timing._dimension import Dimension
from ackfsm.rates.timing._plan import Plan
from ackfsm.rates.timing._planner import Planner
from ackfsm.rates.timing._waits import Waits, waits_of
from ackfsm.rates.timing._workload import Workload
from ackfsm.tables import ConditionalValue, Specification
from ackfsm.terms import InputError, parse_value


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """The cells of a sweep; the last of its dimensions varies fastest.

    Attributes:
        profile: the system; ``None`` where ``settings`` or a dimension name it, else ``jms``.
        settings: what is the same in all cells, by keys or by the system's names.
        work: the workload, but for what the dimensions set.
        dimensions: what is varied.
        api: the programming interface that the application uses.
    """

    profile: str | None
    settings: Mapping[str, object]
    work: Workload
    dimensions: tuple[Dimension, ...]
    api: str | None = None

    def __len__(self) -> int:
        return math.prod(len(dimension.values) for dimension in self.dimensions)

    def places(self, cell: int) -> tuple[int, ...]:
        """Of a cell, by its number from 0, the place of its value in each dimension."""
        found = []
        for dimension in reversed(self.dimensions):
            cell, place = divmod(cell, len(dimension.values))
            found.append(place)
        return tuple(reversed(found))

    def swept(self, cell: int) -> dict[str, str]:
        """The values of a cell, as they are written, by the names of the dimensions."""
        return {each.name: each.values[at] for each, at in zip(self.dimensions, self.places(cell), strict=True)}

    def check(self, specification: Specification) -> None:
        """Look at what can be wrong with a dimension by itself.

        Raises :class:`InputError` for a name that is no option or setting, or is given twice, and for a value that its
        setting never has.
        """
        names = [dimension.name for dimension in self.dimensions]
        for place, dimension in enumerate(self.dimensions):
            if dimension.name in names[:place]:
                raise InputError(f"--sweep {dimension.name} is given twice; give all its values once")
            if dimension.name in self.settings:
                raise InputError(f"--set and --sweep both say {dimension.name}; leave one of them out")
            if dimension.name == "profile" and self.profile is not None:
                raise InputError("--profile and --sweep profile= say the same thing; leave one of them out")
            if dimension.is_setting:
                self._check_setting(specification, dimension)

    def _check_setting(self, specification: Specification, dimension: Dimension) -> None:
        if dimension.name == "profile":
            for value in dimension.values:
                specification.profile_of(value)
            return
        for value in dimension.values:
            failed: list[InputError] = []
            for profile in self._profiles(specification):
                try:
                    _check_value(specification, profile, dimension.name, value, self.work.message_size)
                except InputError as error:
                    failed.append(error)
                else:
                    break
            else:
                raise InputError(f"--sweep: {failed[0]}")

    def _profiles(self, specification: Specification) -> Iterable[str]:
        swept = next((each.values for each in self.dimensions if each.name == "profile"), None)
        given = self.profile or self.settings.get("profile") or "jms"
        return [specification.profile_of(one) for one in swept or [given]]


def _check_value(specification: Specification, profile: str, name: str, value: str, message_size: int) -> None:
    settings = in_messages(specification, profile, {name: value}, message_size).settings
    for own, given in settings.items():
        for key, one in specification.assigned(profile, own, given).items():
            for each in [option.value for option in one.options] if isinstance(one, ConditionalValue) else [one]:
                parse_value(key, each)


class Row(NamedTuple):
    """The plan of a cell: rates in messages a second, times in seconds.

    Bounds of a rate are ``None`` where nothing takes time.  Of a cell that cannot be, ``illegal`` says why, and all
    else but its number and its values is ``None``.

    Attributes:
        cell: its number, from 0.
        swept: by the names of the dimensions its values, as they are written.
        at_least: the rate from end to end is no less.
        at_most: it is no more.
        exact: the two are the same.
        publish_at_least: what the producers get to the broker, as above.
        publish_binds: what bounds it; ``None`` if nothing does.
        publish_next_at_least: the same without that.
        publish_next_binds: what would bind then.
        deliver_at_least: what the consumers take, and so on as for the producers.
        delivery_at_least: until the application has a message.
        confirmation_at_least: until a producer knows of its message; ``None`` if it never does, or may wait for ever.
        window_that_fills: the smallest publish window that leaves nothing to a larger one.
        illegal: why there is no such configuration.
    """

    cell: int
    swept: Mapping[str, str]
    at_least: float | None = None
    at_most: float | None = None
    exact: bool | None = None
    publish_at_least: float | None = None
    publish_at_most: float | None = None
    publish_exact: bool | None = None
    publish_binds: str | None = None
    publish_next_at_least: float | None = None
    publish_next_at_most: float | None = None
    publish_next_binds: str | None = None
    deliver_at_least: float | None = None
    deliver_at_most: float | None = None
    deliver_exact: bool | None = None
    deliver_binds: str | None = None
    deliver_next_at_least: float | None = None
    deliver_next_at_most: float | None = None
    deliver_next_binds: str | None = None
    delivery_at_least: float | None = None
    confirmation_at_least: float | None = None
    confirmation_at_most: float | None = None
    window_that_fills: int | None = None
    illegal: str | None = None


def plan_cells(grid: Grid, specification: Specification, cells: Iterable[int]) -> list[Row]:
    """The plans of these ``cells`` of a grid, by the tables of ``specification``; a function of nothing else."""
    return list(_Cells(grid, specification).rows(cells))


class _Cells:
    """Plans cells one after the other; configurations that come again are made once."""

    def __init__(self, grid: Grid, specification: Specification) -> None:
        self.grid = grid
        self.specification = specification
        self.planner = Planner()
        self.known: dict[tuple[int, tuple[str, ...]], tuple[Waits, InMessages] | InputError] = {}

    def rows(self, cells: Iterable[int]) -> Iterator[Row]:
        for cell in cells:
            swept = self.grid.swept(cell)
            found = self._plan(cell, swept)
            yield Row(cell, swept, illegal=str(found)) if isinstance(found, InputError) else _row(cell, swept, found)

    def _plan(self, cell: int, swept: Mapping[str, str]) -> Plan | InputError:
        own = {each.name: swept[each.name] for each in self.grid.dimensions if each.is_setting}
        work = self._work(cell)
        key = work.message_size, tuple(own.values())
        if key not in self.known:
            if len(self.known) >= _MOST:
                self.known.clear()
            self.known[key] = self._configured(own, work.message_size)
        found = self.known[key]
        if isinstance(found, InputError):
            return found
        waits, counted = found
        return self.planner.plan(counted.of(work), waits)

    def _configured(self, own: Mapping[str, str], message_size: int) -> tuple[Waits, InMessages] | InputError:
        grid, specification = self.grid, self.specification
        try:
            counted = in_messages(specification, grid.profile, {**grid.settings, **own}, message_size)
            configuration = specification.configure(grid.profile, counted.settings, api=grid.api)
        except InputError as error:
            return error
        return waits_of(specification, configuration), counted

    def _work(self, cell: int) -> Workload:
        changed: dict[str, Any] = {}
        for dimension, place in zip(self.grid.dimensions, self.grid.places(cell), strict=True):
            changed |= dict.fromkeys(dimension.fields, dimension.numbers[place] if dimension.fields else None)
        return dataclasses.replace(self.grid.work, **changed)


_MOST = 20_000
"""So many configurations are kept."""


def _row(cell: int, swept: Mapping[str, str], plan: Plan) -> Row:
    confirmation = plan.confirmation or (None, None)
    sides = itertools.chain.from_iterable(
        (
            *_bounds(side.rate.low, side.rate.high),
            side.rate.is_exact,
            side.binds or None,
            *_bounds(side.next_rate.low, side.next_rate.high),
            side.next_binds or None,
        )
        for side in (plan.publish, plan.deliver)
    )
    whole = (*_bounds(plan.rate.low, plan.rate.high), plan.rate.is_exact)
    times = _bounds(plan.delivery, *confirmation)
    return Row(cell, swept, *whole, *sides, *times, plan.fills)  # type: ignore[call-arg, arg-type] # in the order of the fields


def _bounds(*numbers: Fraction | None) -> Iterator[float | None]:
    return (None if number is None else float(number) for number in numbers)
