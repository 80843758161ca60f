"""Find the rows that decide, by a setting, an event, a mode, a machine, or any other name of the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from ackfsm.tables import (
    BOUND_SETTINGS,
    Condition,
    ConditionalValue,
    Constant,
    Counter,
    Document,
    Machine,
    Specification,
    Value,
    VendorAlias,
    format_value,
    read_form,
)
from ackfsm.tables.lookup._cells import CALLS, Cell, Place, calls_of, cells_of
from ackfsm.tables.lookup._glossary import Term, glossary
from ackfsm.tables.lookup._seen import read_seen
from ackfsm.tables.lookup._space import Difference, Space
from ackfsm.terms import Anomaly, Configuration, InputError, Profile, key_type, legal_values, parse_value
from ackfsm.text import in_words, meant, quoted

_KEYS: Final = tuple(field.name for field in dataclasses.fields(Configuration))

BASELINES: Final[Mapping[str, str]] = {"ack_mode": "AUTO_ACKNOWLEDGE", "delivery_mode": "PERSISTENT"}
"""What a mode is compared with; a value of another setting is compared with what the profile has."""

_LIKE: Final = 0.8
"""How much a word must be like another one, which was meant perhaps: of so many some are always a little like it."""

_FEW: Final = 6
"""Machines that are named in a sentence."""

_FILES: Final = ("conditions", "events", "execution", "guarantees", "liveness", "promises", "sweep")
"""The files whose entries are found by name; each is called as its definition in ``schema.json``."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """What else the tables say of a word, and where: a condition, a profile, a promise, a name that a system has."""

    kind: str
    name: str
    text: str
    place: Place


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What one meaning of a word decides.

    ``kind`` is ``setting``, ``condition``, ``event``, ``mode``, ``machine``, ``anomaly``, ``guarantee``,
    ``promise``, ``liveness``, ``constant`` or ``term`` (a word of the glossary).  ``summary`` is the answer in short.
    A mode has ``differences`` from the value ``instead_of`` it.
    """

    kind: str
    name: str
    summary: tuple[str, ...]
    cells: tuple[Cell, ...] = ()
    differences: tuple[Difference, ...] = ()
    references: tuple[Reference, ...] = ()
    instead_of: str = ""


class Lookup:
    """The tables by names.  ``directory`` holds them if they are not the package's own."""

    def __init__(self, specification: Specification, directory: Path | None = None) -> None:
        self.specification = specification
        self._documents = {name: read_form(f"{name}.yaml", name, directory) for name in _FILES}
        self._directory = directory
        self._spaces: dict[Profile, Space] = {}
        self._glossary = glossary(directory)
        seen = read_seen(directory)
        self.machines = tuple(cell for machine in specification.machines.values() for cell in cells_of(machine, seen))
        self.calls = tuple(calls_of(self._documents["execution"], specification.conditions))
        self.watching = tuple(cell for machine in self._watching() for cell in cells_of(machine))

    def _watching(self) -> Iterator[Machine]:
        for definition in self.specification.properties.values():
            yield from (monitor.machine for monitor in definition.monitors)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return every cell: the caller of an event, the machines of the system, the watching machines."""
        return (*self.calls, *self.machines, *self.watching)

    def find(self, word: str, profile: Profile = Profile.JMS) -> tuple[Answer, ...]:
        """What ``word`` decides in a profile, by each of its meanings; rows that it never has are left out.

        Raises :class:`InputError` for a word that the tables do not have, with those that are spelled like it, and
        for a mode that the system does not have.
        """
        space = self._space(profile)
        found = tuple(self._exactly(word.strip(), space)) or tuple(self._loosely(word.strip(), space))
        terms = self._glossary.get(" ".join(word.split()).casefold(), ())
        has_rows = any(answer.cells for answer in found)
        mentioned = () if has_rows else dict.fromkeys(name for term in terms for name in term.mentions)
        found += tuple(map(_term, terms))
        found += tuple(answer for name in mentioned for answer in self._exactly(name, space))
        if not found:
            raise InputError(self._unknown(word.strip()))
        return found

    def words(self) -> tuple[str, ...]:
        """Every word that :meth:`find` knows, except rows (``machine.state.event``) and shortened modes."""
        spec = self.specification
        modes = (str(value) for key in _KEYS[1:] for value in _members(key))
        names = [name.name for table in spec.profiles.values() for name in table.names.values()]
        names += [event.name for table in spec.profiles.values() for event in table.events]
        names += [constant.name for table in spec.profiles.values() for constant in table.constants]
        tables = (_KEYS, spec.conditions, spec.events, spec.machines)
        named = (spec.properties, spec.guarantees, spec.promises, spec.liveness)
        groups: tuple[Iterable[str], ...] = (*tables, *named, modes, names, self._glossary)
        return tuple(dict.fromkeys(word for group in groups for word in group))

    def _exactly(self, word: str, space: Space) -> Iterator[Answer]:
        spec = self.specification
        if "=" in word:
            key, _, value = word.partition("=")
            yield self._mode(*self._setting(key.strip(), value.strip(), space.profile), space)
        if word in _KEYS:
            yield self._key(word, space)
        if word in spec.conditions:
            yield self._condition(word, space)
        if word in spec.events:
            yield self._event(word, space)
        if word.partition(".")[0] in spec.machines:
            yield self._rows(word, space)
        if word in set(Anomaly):
            yield self._anomaly(Anomaly(word))
        if word in spec.guarantees:
            yield self._guarantee(word)
        if word in spec.promises:
            promise = spec.promises[word]
            told = (f"a promise: {promise.absent} never happens", f"{promise.because} [{promise.source}]")
            yield Answer("promise", word, told, references=(self._promise(word),))
        if word in spec.liveness:
            text = f"{spec.liveness[word].means}; {spec.liveness[word].because}"
            yield Answer("liveness", word, (text,), references=(self._reference("liveness", word, text, (word,)),))

    def _loosely(self, word: str, space: Space) -> Iterator[Answer]:
        """By a value of some setting, by the beginning of a mode, or by the name that a system has."""
        for key in _KEYS:
            for value in _members(key):
                if _means(word, str(value)):
                    yield self._mode(key, value, space)
        for name, keys in self._names(word):
            for key in keys:
                answer = self._key(key, space)
                yield dataclasses.replace(answer, summary=(name, *answer.summary))
        yield from self._vendor_events(word, space)
        for table in self.specification.profiles.values():
            for constant in table.constants:
                if constant.name.casefold() == word.casefold():
                    yield self._constant(table.profile, constant, space)
                    return

    def _constant(self, profile: str, constant: Constant, space: Space) -> Answer:
        if constant.setting is not None:
            return self._mode(*constant.setting, space)
        told = f"{constant.name} of {profile} is {constant.literal}: {constant.means} [{constant.source}]"
        return Answer("constant", constant.name, (told,))

    def _vendor_events(self, word: str, space: Space) -> Iterator[Answer]:
        """By what an interface calls an event: the whole name, or its last part (``sendAcknowledged``).

        What stands behind it in brackets tells events of one name apart.
        """
        asked = word.casefold().removesuffix("()")
        found: dict[str, list[str]] = {}
        for profile, table in self.specification.profiles.items():
            for one in table.events:
                plain = one.name.casefold().partition("(")[0]
                if asked in {one.name.casefold(), plain, plain.rpartition(".")[2]}:
                    how = f", {one.means}" if one.means else ""
                    found.setdefault(one.event, []).append(f"{one.name} of {profile} ({one.api}) is {one.event}{how}")
        for event, told in found.items():
            answer = self._event(event, space)
            yield dataclasses.replace(answer, summary=(*told, *answer.summary))

    def _names(self, word: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        for profile, table in self.specification.profiles.items():
            own = table.vendor_alias(word)
            if own is not None:
                keys = " and ".join(own.keys)
                yield f"{own.name} of {profile} is {keys}{_difference(own, 'but not the same')}", own.keys
                return

    def _setting(self, name: str, value: str, profile: Profile) -> tuple[str, Value]:
        if name not in _KEYS:
            return self._translated(name, value, profile)
        short = next((str(member) for member in _members(name) if _means(value, str(member))), value)
        return name, parse_value(name, short if name != "profile" else value)

    def _translated(self, name: str, value: str, profile: Profile) -> tuple[str, Value]:
        """Return the setting and value of a vendor's name and value, where they set something."""
        for key, one in self.specification.assigned(profile, name, value).items():
            return key, parse_value(key, one.options[0].value if isinstance(one, ConditionalValue) else one)
        raise InputError(f"{name}={value} of {profile} leaves its setting as it is; ask for another value")

    def _unknown(self, word: str) -> str:
        machine, dot, _ = word.partition(".")
        if dot and machine in self.specification.machines:
            return f"{machine} has no state or event {quoted(word.partition('.')[2])}"
        return (
            f"no table has the word {quoted(word)}{meant(word, self.words(), cutoff=_LIKE)}; "
            "ask for a setting, an event, a mode or a machine (spec/INDEX.md), or a word of spec/GLOSSARY.md"
        )

    def _space(self, profile: Profile) -> Space:
        if profile not in self._spaces:
            self._spaces[profile] = Space(self.specification, profile)
        return self._spaces[profile]

    def _living(self, cells: Iterable[Cell], space: Space) -> tuple[Cell, ...]:
        return tuple(dataclasses.replace(cell, rows=space.living(cell)) for cell in cells)

    def deciding(self, name: str) -> tuple[Cell, ...]:
        """The cells in which a setting, or a named condition, decides between the rows, directly or through others."""
        found = self.reading({name, *self.conditions_reading(name)})
        return tuple(sorted(found, key=lambda cell: (_order(cell), not cell.names() & _raw(name))))

    def reading(self, names: Collection[str]) -> tuple[Cell, ...]:
        """The cells with a condition in which one of these settings or named conditions stands."""
        raw = frozenset(each for name in names for each in _raw(name))
        return tuple(sorted((cell for cell in self.cells if cell.names() & raw), key=_order))

    def conditions_reading(self, name: str) -> tuple[str, ...]:
        """The named conditions that read a setting or a condition, also through others."""
        reading = set[str]()
        for condition, parsed in self.specification.conditions.items():  # each reads only those before it
            if parsed.names() & (_raw(name) | reading):
                reading.add(condition)
        return tuple(condition for condition in self.specification.conditions if condition in reading)

    def _key(self, key: str, space: Space) -> Answer:
        cells = [cell for cell in self._living(self.deciding(key), space) if len(cell.rows) > 1]
        counters = [f"{machine.name} counts up to it" for machine in self.counting(key)]
        counted = _count(cells, "no row reads it") if cells or not counters else ""
        return Answer(
            "setting",
            key,
            (f"a setting: {_legal(key)}", "; ".join([*[counted] * bool(counted), *counters])),
            tuple(cells),
            references=(
                *self._conditions(self.conditions_reading(key)),
                *self._promises(lambda when: key in when.settings()),
                *self._profiles(key),
                *self._sweep(key),
                *self._own_names(key),
            ),
        )

    def counting(self, key: str) -> tuple[Machine, ...]:
        """The counters whose bound is this setting."""
        counters = (machine for machine in self.specification.machines.values() if machine.counter is not None)
        return tuple(each for each in counters if each.counter and _bound(each.counter) == key)

    def cells_with(self, event: str) -> tuple[Cell, ...]:
        """The cells that decide an event: whose call it is, then its owner, machines with conditions, the others."""
        owner = self.specification.owner(event)
        cells = [cell for cell in (*self.calls, *self.machines) if event in map(_plain, cell.events)]
        conditional = {cell.table for cell in cells if len(cell.rows) > 1}
        mine = owner.name if owner else ""
        cells.sort(key=lambda cell: (cell.table != CALLS, cell.table != mine, cell.table not in conditional))
        return tuple(_only(cell, lambda each: _plain(each) == event) for cell in cells)

    def _condition(self, name: str, space: Space) -> Answer:
        cells = [cell for cell in self._living(self.deciding(name), space) if len(cell.rows) > 1]
        through = self.conditions_reading(name)
        return Answer(
            "condition",
            name,
            (f"a condition: {self.specification.conditions[name].text}", _count(cells, "no row reads it")),
            tuple(cells),
            references=(
                *self._conditions((name, *through)),
                *self._promises(lambda when: bool(when.names() & {name, *through})),
            ),
        )

    def _event(self, name: str, space: Space) -> Answer:
        event, owner = self.specification.events[name], self.specification.owner(name)
        cells = self._living(self.cells_with(name), space)
        mine = owner.name if owner else ""
        machines = list(dict.fromkeys(cell.table for cell in cells if cell.table != CALLS))
        agent, place = self._agent(name)
        watchers = (
            Reference(
                "watched", f"{anomaly}.{monitor.machine.name}", "", Place(monitor.machine.file, monitor.machine.line)
            )
            for anomaly, definition in self.specification.properties.items()
            for monitor in definition.monitors
            if name in {each.name for each in monitor.machine.alphabet}
        )
        happens = f"it happens only where each of these allows it: {', '.join(machines)}" if machines else ""
        return Answer(
            "event",
            name,
            tuple(
                part
                for part in (
                    event.means,
                    f"once for each {event.per}; {mine} decides whether it exists"
                    if mine
                    else "only histories have it",
                    happens,
                    *self._read_by(cells),
                )
                if part
            ),
            cells,
            references=(
                Reference("agent", agent, "", place),
                self._reference("events", name, f"{event.start} to {event.end}", (name,), "event"),
                *watchers,
                *self._conditions(self._spelled(cells)),
            ),
        )

    def _read_by(self, cells: Iterable[Cell]) -> Iterator[str]:
        """Which settings decide, machine by machine."""
        read: dict[str, set[str]] = {}
        for cell in cells:
            read.setdefault(cell.table, set()).update(cell.settings() - {"copy"})
        for table, settings in read.items():
            if settings:
                known = [key for key in _KEYS if key in settings]
                yield f"{table} reads {', '.join([*known, *sorted(settings.difference(known))])}"

    def _agent(self, name: str) -> tuple[str, Place]:
        document = self._documents["execution"]
        for agent, row in document.data["agents"].items():
            if name in row["events"]:
                return agent, Place(document.name, document.line(("agents", agent)))
        return "nobody", Place(document.name, 1)

    def _rows(self, word: str, space: Space) -> Answer:
        name, _, rest = word.partition(".")
        machine = self.specification.machines[name]
        state, _, event = rest.partition(".")
        cells = list(self._living((cell for cell in self.machines if cell.table == name), space))
        if state and state not in machine.states and state != "otherwise" and not event:
            state, event = "", state
        if state == "otherwise":
            cells = [cell for cell in cells if len(cell.states) > 1]
        elif state:
            cells = [dataclasses.replace(cell, states=(state,)) for cell in cells if state in cell.states]
        if event:
            fits = {event} if "(" in event else {e for cell in cells for e in cell.events if _plain(e) == event}
            cells = [_only(cell, fits.__contains__) for cell in cells if fits & set(cell.events)]
        if not cells:
            raise InputError(self._no_row(word, machine))
        return Answer(
            "machine",
            word,
            (machine.means, f"once for each {machine.per}; it decides {', '.join(machine.owns) or 'no event'}"),
            tuple(cells),
            references=tuple(self._conditions(self._spelled(cells))),
        )

    def _no_row(self, word: str, machine: Machine) -> str:
        known = [*machine.states, *dict.fromkeys(event.name for event in machine.alphabet)]
        rest = word.partition(".")[2]
        hint = next((hint for part in rest.split(".") if part not in known and (hint := meant(part, known))), "")
        return f"{machine.name} has no row {quoted(rest)}{hint}; its states are {', '.join(machine.states)}"

    def _spelled(self, cells: Iterable[Cell]) -> tuple[str, ...]:
        """Return the named conditions in the rows of these cells, and the conditions in these."""
        named = self.specification.conditions
        new = {name for cell in cells for name in cell.names() & named.keys()}
        used = set[str]()
        while new:
            used |= new
            new = {each for name in new for each in named[name].names() & named.keys()} - used
        return tuple(name for name in named if name in used)

    def baseline(self, key: str, space: Space | None = None) -> Value:
        """Return the value to compare a value of ``key`` with, in ``jms`` unless another profile is asked for."""
        space = space or self._space(Profile.JMS)
        stated = BASELINES.get(key)
        value = None if stated is None else parse_value(key, stated)
        if value is not None and space.configuration({key: value}) is not None:
            return value
        default: Value = getattr(self.specification.configure(space.profile), key)
        return default

    def _mode(self, key: str, value: Value, space: Space) -> Answer:
        self.specification.configure(None if key == "profile" else space.profile, {key: value})
        other = self.baseline(key, space)
        said = f"{key}={format_value(value)}"
        if value == other:
            answer = self._key(key, space)
            what = f"what the other values of {key} are compared with in the profile {space.profile}"
            return dataclasses.replace(answer, kind="mode", name=said, summary=(what, *answer.summary[1:]))
        differences = self.differences(key, value, space, other)
        plain = [each for each in differences if not each.given]
        where = space.profile
        told = [f"in {len(plain)} places it decides otherwise than {format_value(other)}, all else as {where} has it"]
        if len(plain) < len(differences):
            told.append(f"in {len(differences) - len(plain)} more where one more setting is changed (with …)")
        if changed := self._changed_defaults(key, value, other, space):
            told.append(f"by default it also has {changed}")
        made = self._made(key, value, other, space)
        for truth in ("true", "false"):
            if names := [name for name, holds in made.items() if format_value(holds) == truth]:
                told += [f"the conditions that it makes {truth}: {', '.join(names)}"]
        return Answer(
            "mode",
            said,
            tuple(told),
            differences=differences,
            references=tuple(self._conditions(made)),
            instead_of=format_value(other),
        )

    def _made(self, key: str, value: Value, other: Value, space: Space) -> dict[str, bool]:
        """The named conditions that hold for one of two values alone, all else by default: whether for the first."""
        one, two = space.configuration({key: value}), space.configuration({key: other})
        if one is None or two is None:
            return {}
        first, second = space.environment(one), space.environment(two)
        conditions = self.specification.conditions
        return {
            name: condition.holds(first)
            for name, condition in conditions.items()
            if condition.holds(first) is not condition.holds(second)
        }

    def _changed_defaults(self, key: str, value: Value, other: Value, space: Space) -> str:
        one, two = space.configuration({key: value}), space.configuration({key: other})
        changed = [
            f"{name}={format_value(getattr(one, name))}"
            for name in _KEYS
            if name != key and one is not None and two is not None and getattr(one, name) != getattr(two, name)
        ]
        return ", ".join(changed)

    def differences(
        self, key: str, value: Value, space: Space | None = None, other: Value | None = None
    ) -> tuple[Difference, ...]:
        """Where ``key`` at ``value`` has another row than its baseline: who calls, the machines of the system."""
        space = space or self._space(Profile.JMS)
        other = self.baseline(key, space) if other is None else other
        return tuple(space.differences((*self.calls, *self.machines), key, value, other))

    def _anomaly(self, anomaly: Anomaly) -> Answer:
        spec = self.specification
        definition = spec.properties.get(anomaly)
        machines = [monitor.machine for monitor in definition.monitors] if definition else []
        promises = [self._promise(name) for name, promise in spec.promises.items() if promise.absent == anomaly]
        names = [name for name in spec.guarantees if anomaly in spec.guarantees.excluded_by(name)]
        return Answer(
            "anomaly",
            anomaly,
            (
                spec.meaning(anomaly),
                f"promised absent by {len(promises)} rows; it takes away {', '.join(names) or 'nothing'}",
            ),
            references=(
                *(
                    Reference("property", machine.name, machine.means, Place(machine.file, machine.line))
                    for machine in machines
                ),
                *promises,
                *(
                    self._reference("guarantees", name, spec.guarantees[name].means, ("guarantees", name), "guarantee")
                    for name in names
                ),
            ),
        )

    def _guarantee(self, name: str) -> Answer:
        guarantee = self.specification.guarantees[name]
        anomalies = sorted(self.specification.guarantees.excluded_by(name))
        place = self._reference("guarantees", name, guarantee.means, ("guarantees", name), "guarantee")
        return Answer(
            "guarantee", name, (guarantee.means, f"taken away by {', '.join(anomalies)}"), references=(place,)
        )

    def _reference(self, file: str, name: str, text: str, path: tuple[str | int, ...], kind: str = "") -> Reference:
        document = self._documents[file]
        return Reference(kind or file, name, text, Place(document.name, document.line(path)))

    def _conditions(self, names: Iterable[str]) -> Iterator[Reference]:
        for name in names:
            text = self.specification.conditions[name].text
            yield self._reference("conditions", name, text, (name,), "condition")

    def place_of_condition(self, name: str) -> Place:
        """Where a named condition stands."""
        return self._reference("conditions", name, "", (name,)).place

    def _promise(self, name: str) -> Reference:
        promise = self.specification.promises[name]
        text = f"absent when {promise.when.text.strip()}"
        return self._reference("promises", name, text, (name,), "promise")

    def _promises(self, reads: Callable[[Condition], bool]) -> Iterator[Reference]:
        for name, promise in self.specification.promises.items():
            if reads(promise.when):
                yield self._promise(name)

    def _profiles(self, key: str) -> Iterator[Reference]:
        for profile, table in self.specification.profiles.items():
            if key in table.stated:
                rows = [row for row in table.defaults if row.key == key]
                values = [f"a third of {row.third_of}" if row.third_of else format_value(row.value) for row in rows]
                document = self._profile(profile)
                place = Place(document.name, document.line(("defaults", key)))
                yield Reference("profile", profile, " or ".join(dict.fromkeys(values)), place)

    def _sweep(self, key: str) -> Iterator[Reference]:
        for number, factor in enumerate(self.specification.factors):
            if factor.key == key:
                where = "always" if factor.when.text == "True" else f"where {factor.when.text.strip()}"
                yield self._reference("sweep", key, f"varied {where}", (number,))

    def _own_names(self, key: str) -> Iterator[Reference]:
        for profile, table in self.specification.profiles.items():
            named = [own for own in table.names.values() if key in own.keys]
            if named:
                document = self._profile(profile)
                for own in named:
                    text = f"by {profile}{_difference(own, 'not the same')}"
                    yield Reference("name", own.name, text, Place(document.name, document.line(("names", own.name))))

    def _profile(self, profile: str) -> Document:
        name = f"profiles/{profile}"
        if name not in self._documents:
            own = self.specification.profile_files.get(profile)
            file, folder = (f"{name}.yaml", self._directory) if own is None else (own.name, own.parent)
            self._documents[name] = read_form(file, "profile", folder)
        return self._documents[name]


def _term(term: Term) -> Answer:
    elsewhere = (f"elsewhere: {term.elsewhere}",) if term.elsewhere else ()
    where = Reference("glossary", term.section, "", term.place)
    return Answer("term", ", ".join(term.names), (term.meaning, *elsewhere), references=(where,))


def _raw(name: str) -> frozenset[str]:
    """Return the names of a setting or a condition in conditions: some settings also as bounds of a check."""
    return frozenset({name, *(bound for bound, key in BOUND_SETTINGS.items() if key == name)})


def _order(cell: Cell) -> tuple[bool, bool]:
    """Whose call it is comes first, what only watches comes last."""
    return cell.table != CALLS, cell.place.file.startswith("spec/properties/")


def _bound(counter: Counter) -> str:
    return BOUND_SETTINGS.get(counter.bound, counter.bound)


def _members(key: str) -> tuple[StrEnum, ...]:
    kind = key_type(key)
    return tuple(kind) if issubclass(kind, StrEnum) else ()


def _means(word: str, value: str) -> bool:
    """Whether ``word`` is ``value``, or one of its ends: ``DUPS_OK``, ``TRANSACTED``."""
    low, whole = word.casefold().replace("-", "_"), value.casefold().replace("-", "_")
    return whole in {low, f"{low}_acknowledge", f"session_{low}"}


def _legal(key: str) -> str:
    if members := _members(key):
        return ", ".join(members)
    values = [format_value(value) for value in legal_values(key)]
    return in_words(values, "or") if values else "a whole number"


def _difference(own: VendorAlias, lead: str) -> str:
    """Where a vendor's name matters, and how it is not the same."""
    where = f", for {own.when.text.strip()}" if own.when else ""
    return f"{where}, {lead}: {own.differs}" if own.differs else where


def _plain(event: str) -> str:
    """The name of an event without its relation."""
    return event.partition("(")[0]


def _only(cell: Cell, wanted: Callable[[str], bool]) -> Cell:
    return dataclasses.replace(cell, events=tuple(filter(wanted, cell.events)))


def _count(cells: list[Cell], none: str) -> str:
    tables = list(dict.fromkeys(cell.table for cell in cells))
    rows = {row.place for cell in cells for row in cell.rows}
    named = ", ".join(tables) if len(tables) <= _FEW else f"{len(tables)} machines"
    return f"it decides between {len(rows)} rows, of {named}" if cells else none
