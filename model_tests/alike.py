"""Modes that behave alike: ways to acknowledge and to consume between which no history can tell; their page."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ackfsm.checking.explore import Comparison, compare
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.showing.views.markdown import code, page_of, rows_of
from ackfsm.surveys.matrix._plan import refusal, span
from ackfsm.tables import EventRef, RowKind, Specification
from ackfsm.terms import AckMode, Configuration, Consumption, Fault

_MODE_KEYS: Final = ("ack_mode", "consumption")
"""The settings that a mode is made of here; all others are at their defaults."""

ALIKE_STATES: Final = 30_000
"""A comparison with two messages stops, undecided, after so many states."""

_INTRODUCTION: Final = (
    "Acknowledgement modes and ways to consume of which no history shows a difference while any one fault may happen,"
    f" all other settings being at their defaults: with one message, or with two (up to {ALIKE_STATES:,} states). Where"
    " the same rows decide, the modes are one system with any number of messages and faults. Else a run of two messages"
    " that one of them cannot do tells them apart. A mode stands beside the first that it is like, or is like none."
)

_Cell: TypeAlias = tuple[str, str, EventRef]
_Rows: TypeAlias = Mapping[_Cell, tuple[RowKind, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class AlikeModes:
    """Two modes that have the same traces with one message and any single fault.

    Attributes:
        first, second: the configurations.
        conditions: the named conditions on the acknowledgement mode that hold in both.
        rows: the cells (machine, state, event) in which other rows decide; none, where the two are one system, with any
            number of messages and faults.
        two_messages: the comparison with two messages and any single fault; ``None`` where no row differs.
    """

    first: Configuration
    second: Configuration
    conditions: tuple[str, ...]
    rows: tuple[_Cell, ...]
    two_messages: Comparison | None

    @property
    def with_two_messages(self) -> bool | None:
        """Whether they behave alike with two messages too; ``None`` if the comparison stopped at its limit."""
        return True if self.two_messages is None else self.two_messages.equal


def alike_modes(specification: Specification, profile: str) -> tuple[AlikeModes, ...]:
    """Every mode of ``profile`` that behaves like one before it, beside the first such.

    That is the first with which it is alike with two messages too, else the first with which it is with one.
    Acknowledgement modes and ways to consume are compared, all other settings being at their defaults, over all that a
    history can show and all faults.
    """
    compared = _Compared(specification)
    groups: list[list[Configuration]] = []  # alike with one message; of those alike with two the first
    found: list[AlikeModes] = []
    for mode in _modes(specification, profile):
        group = next((group for group in groups if compared.with_one_message(group[0], mode)), None)
        if group is None:
            groups.append([mode])
            continue
        pairs = [compared.pair(first, mode) for first in group]
        pair = next((pair for pair in pairs if pair.with_two_messages), None)
        if pair is None:
            group.append(mode)
        found.append(pair or pairs[0])
    return tuple(found)


def rows_digest(specification: Specification, profiles: Iterable[str] = ()) -> str:
    """A digest of the rows that decide in every mode of ``profiles`` (all, if none is named).

    It is of what :func:`alike_modes` comes from, and not of reasons, sources and places.
    """
    compared, digest = _Compared(specification), hashlib.sha256()
    for profile in tuple(profiles) or specification.profiles:
        for mode in _modes(specification, profile):
            rows = sorted((*map(str, cell), *map(str, decided)) for cell, decided in compared.rows(mode).items())
            digest.update(repr((profile, [getattr(mode, key) for key in _MODE_KEYS], rows)).encode())
    return digest.hexdigest()


class _Compared:
    """Compares modes; the results of a mode are kept."""

    def __init__(self, specification: Specification) -> None:
        self._specification = specification
        self._seen = frozenset(event.name for event in specification.events.values() if event.recorded)
        self._networks: dict[tuple[Configuration, int], Network] = {}
        self._rows: dict[Configuration, _Rows] = {}

    def with_one_message(self, first: Configuration, second: Configuration) -> bool:
        """Whether no history of one message tells them apart."""
        if self.rows(first) == self.rows(second):
            return True
        return compare(self._network(first, 1), self._network(second, 1), self._seen).equal is True

    def pair(self, first: Configuration, second: Configuration) -> AlikeModes:
        """All that there is to say of two modes."""
        one, other = self.rows(first), self.rows(second)
        different = tuple(cell for cell in dict.fromkeys((*one, *other)) if one.get(cell) != other.get(cell))
        two = None
        if different:
            networks = self._network(first, 2), self._network(second, 2)
            two = compare(*networks, self._seen, max_states=ALIKE_STATES)
        return AlikeModes(first, second, _shared(self._specification, (first, second)), different, two)

    def rows(self, mode: Configuration) -> _Rows:
        """What every machine does in every cell; one of several instances speaks for all."""
        if mode not in self._rows:
            self._rows[mode] = {
                (instance.fsm.name, state, event): (row.kind, row.target)
                for instance in self._network(mode, 2).instances
                for (state, event), row in instance.fsm.rows.items()
            }
        return self._rows[mode]

    def _network(self, mode: Configuration, messages: int) -> Network:
        if (mode, messages) not in self._networks:
            bounds = Bounds(messages=messages, faults=frozenset(Fault), max_faults=1)
            self._networks[mode, messages] = compose(self._specification, mode, bounds, ())
        return self._networks[mode, messages]


def _modes(specification: Specification, profile: str) -> Iterator[Configuration]:
    values = {"ack_mode": tuple(AckMode), "consumption": tuple(Consumption)}
    for mode in span(specification, {"profile": profile}, values):
        if refusal(specification, mode) is None:
            yield mode


def _shared(specification: Specification, modes: Sequence[Configuration]) -> tuple[str, ...]:
    environments = [specification.environment(mode) for mode in modes]
    return tuple(
        name
        for name, condition in specification.conditions.items()
        if "ack_mode" in condition.names() and all(map(condition.holds, environments))
    )


def alike_page(specification: Specification, found: Mapping[str, Sequence[AlikeModes]], digest: str) -> str:
    """The page; ``found`` are the modes that are alike by profile, ``digest`` that of the rows that they come from."""
    lines = [digest_line(digest), "", "# Modes that behave alike", "", _INTRODUCTION]
    for profile, pairs in found.items():
        lines += ["", f"## {profile}: {specification.profiles[profile].system}", ""]
        lines += _table(pairs) if pairs else ["No two modes are alike."]
    return page_of(lines)


def digest_line(digest: str) -> str:
    """Return the page's own line: it is fresh as long as the rows have this digest."""
    return f"<!-- Made from spec/ by python -m model_tests.documents, from rows with the digest {digest}. -->"


def _table(pairs: Iterable[AlikeModes]) -> list[str]:
    rows = [(_mode(pair.second), _mode(pair.first), _extent(pair), _reason(pair)) for pair in pairs]
    return rows_of(("mode", "behaves like", "with", "because"), rows)


def _mode(mode: Configuration) -> str:
    return f"{code(mode.ack_mode)}, {mode.consumption}"


def _extent(pair: AlikeModes) -> str:
    if not pair.rows:
        return "any number of messages"
    return {True: "one and two messages", False: "one message", None: "one message; undecided with two"}[
        pair.with_two_messages
    ]


def _reason(pair: AlikeModes) -> str:
    if not pair.rows:
        return ": ".join(filter(None, ("the same rows decide", _listed(pair.conditions))))
    machines = f"rows differ in {_listed(dict.fromkeys(machine for machine, _, _ in pair.rows))}"
    if pair.with_two_messages:
        return f"{machines}, and no history shows it"
    told = pair.two_messages
    if told is None or told.only is None:
        return machines
    only = "the other" if told.only == "left" else "this mode"
    return f"only {only}: {' → '.join(told.trace)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)
