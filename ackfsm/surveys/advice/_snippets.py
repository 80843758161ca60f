"""Read ``spec/snippets``: a configuration as a user of its system writes it."""

from __future__ import annotations

import dataclasses
import operator
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables import (
    Condition,
    Document,
    ProfileTable,
    Specification,
    VendorAlias,
    check_sources,
    condition_of,
    format_value,
    read_form,
    shipped_tables,
)
from ackfsm.terms import Configuration, check_number, parse_value
from ackfsm.text import meant, quoted

CANNOT = "cannot be asked for"
"""Where the settings stand that the system has no way to ask for, each with the reason."""

UNSAID = "not in these snippets"
"""Where the settings stand that no line of the table is about."""


@dataclasses.dataclass(frozen=True, slots=True)
class Snippet:
    """Some lines in a syntax of the system.

    Attributes:
        where: where its users write them: a file, a connection URL, a programming language.
        text: the lines.
        sets: the settings that they express, and ``per_commit`` and ``per_acknowledge``.
    """

    where: str
    text: str
    sets: frozenset[str]


def snippets_of(  # noqa: PLR0913 - what the lines have numbers of
    specification: Specification,
    configuration: Configuration,
    *,
    per_commit: int = 1,
    per_acknowledge: int = 1,
    message_size: int = 1500,
    directory: Path | None = None,
) -> tuple[Snippet, ...]:
    """The snippets of one configuration: :meth:`Snippets.of`, for whom asks once."""
    return Snippets(specification, directory).of(
        configuration, per_commit=per_commit, per_acknowledge=per_acknowledge, message_size=message_size
    )


class Snippets:
    """The tables of ``spec/snippets``; the file of a profile is read when it is first needed, and once.

    They are those of ``spec/`` that ship with the package, or of ``directory``.
    """

    def __init__(self, specification: Specification, directory: Path | None = None) -> None:
        self._specification = specification
        self._directory = directory
        self._tables: dict[str, _Table] = {}

    def of(
        self, configuration: Configuration, *, per_commit: int = 1, per_acknowledge: int = 1, message_size: int = 1500
    ) -> tuple[Snippet, ...]:
        """Return the snippets with which a user of the system asks for ``configuration``.

        Of the settings with their defaults only what an application has to write anyway is there.  ``per_commit``
        messages are in a transaction, one call acknowledges ``per_acknowledge``; ``message_size``, in bytes, is for
        what the system counts in bytes.  A setting that the system has no way to ask for is in a snippet
        :data:`CANNOT`, one that the tables have no line for in a snippet :data:`UNSAID`, which sets nothing.

        Nothing for a profile without a file that is like none that has one.  Raises
        :class:`ackfsm.terms.SpecError` naming file and line where the table is wrong.
        """
        numbers = {"per_commit": per_commit, "per_acknowledge": per_acknowledge, "message_size": message_size}
        for name, number in numbers.items():
            check_number(name, number, optional=False)
        table = self._table(configuration.profile)
        if table is None:
            return ()
        return tuple(_Page(self._specification, table, configuration, numbers).snippets())

    def _table(self, profile: str) -> _Table | None:
        if profile not in self._tables:
            folder = (self._directory or shipped_tables()) / "snippets"
            like = self._specification.profiles[profile].like
            if not (folder / f"{profile}.yaml").is_file() or profile in self._specification.profile_files:
                return None if like is None else self._table(like)
            document = read_form(f"snippets/{profile}.yaml", "snippets", self._directory)
            other = document.data.get("like")
            base = None if other is None else self._table(_profile(self._specification, document, other))
            self._tables[profile] = _Reader(self._specification, document, self._specification.profiles[profile]).table(
                base
            )
        return self._tables[profile]


def _profile(specification: Specification, document: Document, name: str) -> str:
    if name not in specification.profiles or name == document.file.stem:
        raise document.error(
            ("like",), f"there is no other profile {quoted(name)}{meant(name, specification.profiles)}"
        )
    return name


@dataclasses.dataclass(frozen=True, slots=True)
class _Line:
    """One line: shown ``always``, or where one of the settings in ``sets`` is not the default.

    With ``alias`` it has a vendor's name, and a value that is computed backwards from what that stands for; ``value``
    is for settings that the name has no value of its own for.
    """

    text: str
    sets: frozenset[str]
    when: Condition
    always: bool
    document: Document
    path: tuple[str | int, ...]
    alias: VendorAlias | None = None
    value: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """Where lines stand; of the beginnings the first one that holds stands before them."""

    where: str
    begins: tuple[_Line, ...]
    lines: tuple[_Line, ...]
    ends: str | None
    first: str
    joined: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Table:
    places: tuple[_Place, ...]
    cannot: tuple[_Line, ...]
    written: Mapping[tuple[str, object], str]


_HOLE = re.compile(r"\{([a-z_]+)(?:([-+*])([a-z_0-9]+))?(:number)?\}")
"""A placeholder: a setting or a number, perhaps with another one, or ``:number`` for a constant's."""

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {"-": operator.sub, "+": operator.add, "*": operator.mul}
)

_KEYS = frozenset(field.name for field in dataclasses.fields(Configuration)) - {"profile"}

_GROUPED = frozenset({"per_commit", "per_acknowledge"})

_NUMBERS = _GROUPED | {"message_size"}

_OF_NAMES = frozenset({"name", "url", "value"})

_WIDTH = 72


@dataclasses.dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file, which has been validated against the schema."""

    specification: Specification
    document: Document
    profile: ProfileTable

    def table(self, base: _Table | None) -> _Table:
        """The table; the places of ``base`` that it does not have stand after its own."""
        data = self.document.data
        check_sources([self.document], self.specification.sources)
        places = [self._place(("snippets", i), row) for i, row in enumerate(data["snippets"])]
        own = {place.where for place in places}
        places += [place for place in (base.places if base else ()) if place.where not in own]
        cannot = tuple(self._cannot(("cannot", i), row) for i, row in enumerate(data.get("cannot", ())))
        return _Table(tuple(places), cannot, self._written() | (dict(base.written) if base else {}))

    def _written(self) -> dict[tuple[str, object], str]:
        found: dict[tuple[str, object], str] = {}
        for key, texts in self.document.data.get("written", {}).items():
            for value, text in texts.items():
                if any(hole[4] is None for hole in _HOLE.finditer(text)):
                    raise self.document.error(
                        ("written", key, value), "only the number of a constant stands here, {key:number}"
                    )
                with self.document.at(("written", key, value)):
                    found[key, parse_value(key, value)] = text
        return found

    def _place(self, path: tuple[str | int, ...], row: Mapping[str, Any]) -> _Place:
        begins = row.get("begins", ())
        alternatives = [{"text": begins}] if isinstance(begins, str) else begins
        for number, one in enumerate(alternatives):
            if ("when" not in one) != (number + 1 == len(alternatives)):
                raise self.document.error(
                    (*path, "begins", number), "the last beginning, and no other, has no condition"
                )
        return _Place(
            where=row["in"],
            begins=tuple(self._line((*path, "begins", i), one, None) for i, one in enumerate(alternatives)),
            lines=tuple(self._line((*path, "lines", i), one, row.get("writes")) for i, one in enumerate(row["lines"])),
            ends=row.get("ends"),
            first=row.get("first", "?" if "joined" in row else "\n"),
            joined=row.get("joined", "\n"),
        )

    def _line(self, path: tuple[str | int, ...], row: Mapping[str, Any], writes: str | None) -> _Line:
        alias = self._alias((*path, "name"), row["name"]) if "name" in row else None
        text = row.get("text", writes)
        if text is None:
            raise self.document.error(
                path, "nothing says how this name is written; give it a text, or the place a writes"
            )
        known = _KEYS | _NUMBERS | (_OF_NAMES if alias else frozenset())
        self._holes_are((*path, "text" if "text" in row else "name"), text, known)
        self._holes_are((*path, "value"), row.get("value", ""), _KEYS | _NUMBERS)
        sets = self._sets((*path, "sets"), row.get("sets", ()))
        return _Line(
            text=text,
            sets=sets | (frozenset(alias.keys) if alias else frozenset()),
            when=self._condition(path, row),
            always=row.get("always", False),
            document=self.document,
            path=path,
            alias=alias,
            value=row.get("value"),
        )

    def _cannot(self, path: tuple[str | int, ...], row: Mapping[str, Any]) -> _Line:
        sets, when = self._sets((*path, "sets"), row["sets"]), self._condition(path, row)
        return _Line(row["because"], sets, when, always=False, document=self.document, path=path)

    def _alias(self, path: tuple[str | int, ...], name: str) -> VendorAlias:
        alias = self.profile.vendor_alias(name)
        if alias is None or alias.name != name:
            known = [one.name for one in self.profile.names.values()]
            who = self.profile.profile
            raise self.document.error(path, f"{who} has no name {quoted(name)}{meant(name, known)}; profiles/ has them")
        return alias

    def _sets(self, path: tuple[str | int, ...], given: str | Iterable[str]) -> frozenset[str]:
        sets = frozenset([given] if isinstance(given, str) else given)
        for key in sorted(sets - _KEYS - _GROUPED):
            raise self.document.error(path, f"there is no setting {quoted(key)}{meant(key, _KEYS | _GROUPED)}")
        return sets

    def _holes_are(self, path: tuple[str | int, ...], text: str, known: frozenset[str]) -> None:
        for hole in _HOLE.finditer(text):
            for name in (hole[1], hole[3]):
                if name is not None and not name.isdecimal() and name not in known:
                    raise self.document.error(path, f"{hole[0]} has no value{meant(name, known)}; correct the name")

    def _condition(self, path: tuple[str | int, ...], row: Mapping[str, Any]) -> Condition:
        return condition_of(self.document, path, row, self.specification.conditions)


class _Page:
    """The snippets of one configuration."""

    def __init__(
        self, specification: Specification, table: _Table, configuration: Configuration, numbers: Mapping[str, int]
    ) -> None:
        self.table = table
        self.environment = specification.environment(configuration)
        self.profile = specification.profiles[configuration.profile]
        values = {key: getattr(configuration, key) for key in _KEYS}
        self.values: Mapping[str, Any] = {**values, **numbers}
        self.chosen = frozenset(self.profile.chosen(values)) | {key for key in _GROUPED if numbers[key] != 1}

    def snippets(self) -> Iterator[Snippet]:
        said: set[str] = set()
        for place in self.table.places:
            snippet = self._snippet(place)
            if snippet is not None:
                said |= snippet.sets
                yield snippet
        cannot = [line for line in self.table.cannot if self._is_shown(line)]
        if cannot:
            sets = frozenset(key for line in cannot for key in line.sets & self.chosen)
            said |= sets
            yield Snippet(CANNOT, "\n".join(self._reason(line) for line in cannot), sets)
        if unsaid := sorted(self.chosen - said - _GROUPED):
            yield Snippet(UNSAID, "\n".join(f"{key}={format_value(self.values[key])}" for key in unsaid), frozenset())

    def _reason(self, line: _Line) -> str:
        keys = sorted(line.sets & self.chosen)
        what = " and ".join(f"{key}={format_value(self.values[key])}" for key in keys)
        return textwrap.fill(f"{what}: {line.text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)

    def _is_shown(self, line: _Line) -> bool:
        return line.when.holds(self.environment) and (line.always or bool(line.sets & self.chosen))

    def _snippet(self, place: _Place) -> Snippet | None:
        shown = [
            (line, text) for line in place.lines if self._is_shown(line) and (text := self._text(line)) is not None
        ]
        begin = next((line for line in place.begins if line.when.holds(self.environment)), None)
        own = begin is not None and bool(begin.sets & self.chosen)
        if not shown and not own:
            return None
        text = place.joined.join(text for _, text in shown)
        if begin is not None:
            text = place.first.join(part for part in (self._filled(begin, begin.text, {}), text) if part)
        if place.ends is not None:
            text = f"{text}{'' if place.joined != chr(10) else place.joined}{place.ends}"
        lines = [line for line, _ in shown] + ([begin] if begin is not None else [])
        return Snippet(place.where, text, frozenset(key for line in lines for key in line.sets))

    def _text(self, line: _Line) -> str | None:
        """Return the line; ``None`` if its name has no value for these settings."""
        if line.alias is None:
            return self._filled(line, line.text, {})
        if line.alias.when is not None and not line.alias.when.holds(self.environment):
            return None
        value = self._spelled(line, line.alias)
        if value is None:
            return None
        return self._filled(line, line.text, {"name": line.alias.name, "url": line.alias.url, "value": value})

    def _spelled(self, line: _Line, alias: VendorAlias) -> str | None:
        """Return the vendor's value for the settings; :meth:`VendorAlias.assigned` turns it into them."""
        settings = {key: self.values[key] for key in alias.keys}
        for written, meaning in alias.values.items():
            if meaning and meaning.items() <= settings.items():
                return written
        if line.value is not None:
            return self._filled(line, line.value, {})
        value = settings[alias.keys[0]]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is None or len(settings) > 1 or alias.differs is not None or (alias.values and not is_number):
            return None
        text = format_value(value - alias.plus if is_number else value)
        return None if text in alias.values or text in alias.refused else text

    def _filled(self, line: _Line, text: str, own: Mapping[str, str]) -> str:
        def fill(hole: re.Match[str]) -> str:
            name, sign, other, number = hole.groups()
            if sign is not None:
                return str(_ARITHMETIC[sign](self._number(line, name), self._number(line, other)))
            if number is not None:
                return self._literal(line, name)
            return own[name] if name in own else self._constant(line, name)

        return _HOLE.sub(fill, text)

    def _number(self, line: _Line, name: str) -> int:
        value = int(name) if name.isdecimal() else self.values[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise line.document.error(line.path, f"{name} is {format_value(value)} here and no number; add a condition")
        return value

    def _literal(self, line: _Line, name: str) -> str:
        constants = self.profile.constants_of(name, self.values[name])
        if not constants:
            what = f"{name}={format_value(self.values[name])}"
            raise line.document.error(line.path, f"the profile has no number for {what}; add a condition")
        return constants[0].literal

    def _constant(self, line: _Line, name: str) -> str:
        value = self.values[name]
        if (name, value) in self.table.written:
            return self._filled(line, self.table.written[name, value], {})
        constants = self.profile.constants_of(name, value)
        return constants[0].name if constants else format_value(value)
