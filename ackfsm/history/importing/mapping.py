"""A mapping file: which columns of somebody's table say what an event of history format 1 says."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ackfsm import tables
from ackfsm.history.format import EVENTS, SHOWABLE, VOCABULARY, Event
from ackfsm.terms import InputError, SpecError
from ackfsm.text import in_words, meant, quoted, shown

if TYPE_CHECKING:
    import jsonschema

IGNORED: Final = "ignore"
"""The event of a value that tells nothing of a message."""

TRUE: Final = ("true", "1", "yes", "y", "t")
FALSE: Final = ("false", "0", "no", "n", "f")
"""What truth values look like, in small letters, where the mapping does not say."""

_TEXTS: Final = (
    *("process", "session", "queue", "message", "transaction", "error", "fault", "scope", "delivery_mode"),
    *("outcome", "consumer"),
)
_NUMBERS: Final = ("delivery_count", "position", "priority")
_NAMED: Final = re.compile(r"\{([^{}]*)\}")


@dataclasses.dataclass(frozen=True, slots=True)
class When:
    """The time of an event: in ``column``, a number of a ``unit`` or text of a ``format``; its ``zone`` if it has none.

    ``unit`` is one of s, ms, us, ns; ``format`` is ``iso`` or what :func:`time.strptime` takes, with ``%f``.
    """

    column: str
    unit: str | None
    format: str | None
    zone: str


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """What event a row tells: that in ``column``, by ``values`` or as it stands there; or always ``constant``."""

    column: str | None
    values: Mapping[str, tuple[str, ...]] | None
    constant: tuple[str, ...] = ()

    def events(self) -> frozenset[str]:
        """All that it may tell; without :attr:`values` any event."""
        if self.column is None:
            return frozenset(self.constant)
        if self.values is None:
            return frozenset(EVENTS)
        return frozenset(event for events in self.values.values() for event in events)


@dataclasses.dataclass(frozen=True, slots=True)
class Words:
    """A text: of ``column``, by ``values`` if there are some; or ``constant``; or ``parts``, columns between texts."""

    column: str | None = None
    values: Mapping[str, str] | None = None
    constant: str | None = None
    parts: tuple[tuple[str, str | None], ...] = ()
    """Of a template, texts, each with the column that comes after it."""

    def columns(self) -> Iterator[str]:
        """Yield the columns that it is made of."""
        if self.column is not None:
            yield self.column
        yield from (column for _, column in self.parts if column is not None)


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """A truth value: ``column`` is among the words ``true`` or ``false``, or a number ``above``; or ``constant``."""

    column: str | None = None
    true: tuple[str, ...] = TRUE
    false: tuple[str, ...] = FALSE
    above: int | None = None
    constant: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """A whole number: that of ``column``, and ``add``."""

    column: str
    add: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    """Rows by what stands in a column."""

    column: str
    values: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One event, or several at one time, that a row of the input tells.

    Attributes:
        time, event: when, and what.
        texts, numbers: the fields of the event that are text, and whole numbers.
        redelivered: ``None`` if nothing tells.
        where: only of rows with these values.
        optional: whether the event did not happen where the time is empty.
    """

    time: When
    event: Told
    texts: Mapping[str, Words]
    numbers: Mapping[str, Number]
    redelivered: Flag | None
    where: tuple[Chosen, ...]
    optional: bool

    def columns(self) -> Iterator[str]:
        """Yield the columns that it needs."""
        yield self.time.column
        for words in self.texts.values():
            yield from words.columns()
        for each in (self.event, self.redelivered, *self.numbers.values(), *self.where):
            if each is not None and each.column is not None:
                yield each.column


@dataclasses.dataclass(frozen=True, slots=True)
class Csv:
    """How a CSV file is written; ``columns`` are their names if no line has them."""

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf8"
    columns: tuple[str, ...] = ()
    null: tuple[str, ...] = ("",)


@dataclasses.dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping file, read.

    Attributes:
        name: the name of its file, as messages call it.
        input: ``csv``, ``jsonl``, ``parquet`` or ``lines``; ``None``: as the name of each file ends.
        csv: how a CSV file is written.
        patterns: of ``lines`` the regular expressions, whose named groups are the columns.
        others_ignored: whether lines that no pattern matches are left out, and not unread.
        ignored: rows that are left out.
        rows: what each row tells.
        header: what the header of the history gets from it.
        cannot_show: what the source never shows, each with the reason.
    """

    name: str
    input: str | None
    csv: Csv
    patterns: tuple[str, ...]
    others_ignored: bool
    ignored: tuple[Chosen, ...]
    rows: tuple[Row, ...]
    header: Mapping[str, Any]
    cannot_show: Mapping[str, str]

    def columns(self) -> tuple[str, ...]:
        """The columns that it needs, each once."""
        needed = [column for row in self.rows for column in row.columns()]
        return tuple(dict.fromkeys([*needed, *(each.column for each in self.ignored)]))


def read_mapping(file: Path) -> Mapped:
    """Read a mapping file.

    Raises :class:`InputError` that names the file, the line, the key, and what is expected there.
    """
    try:
        document = tables.read_document(file, str(file), None)
    except SpecError as error:
        raise InputError(f"{error}"[:1_000].replace("restore the file", "name another file")) from None
    return _Reader(document).mapping()


class _Reader:
    """Makes a :class:`Mapped` of a document."""

    def __init__(self, document: tables.Document) -> None:
        self._document = document
        self._data: dict[str, Any] = document.data

    def mapping(self) -> Mapped:
        self._validate()
        self._check_encoding()
        data = self._data
        rows = self._rows()
        lines, written = data.get("lines", {}), data.get("csv", {})
        mapped = Mapped(
            name=shown(str(self._document.file)),
            input=data.get("input", "lines" if lines else None),
            csv=Csv(
                **{name: written[name] for name in ("delimiter", "quote", "encoding") if name in written},
                columns=tuple(written.get("columns", ())),
                null=tuple(dict.fromkeys(["", *written.get("null", ())])),
            ),
            patterns=tuple(self._pattern(place, each) for place, each in enumerate(lines.get("patterns", ()))),
            others_ignored=lines.get("others") == IGNORED,
            ignored=_chosen(data.get("ignore", {})),
            rows=rows,
            header=MappingProxyType({key: data[key] for key in ("config", "api", "note") if key in data}),
            cannot_show=self._cannot_show(rows),
        )
        if (mapped.input == "lines") != bool(mapped.patterns):
            raise self._error(
                ("input",), "`input: lines` and the key `lines` with `patterns` belong together; add both"
            )
        return mapped

    def _error(self, path: tuple[str | int, ...], sentence: str) -> InputError:
        file, line = shown(str(self._document.file)), self._document.line(path)
        return InputError(f"{file}:{line}: {sentence}; docs/importing.md has the form of a mapping")

    def _validate(self) -> None:
        import jsonschema

        schema = json.loads(Path(__file__).with_name("mapping.schema.json").read_bytes())
        errors = jsonschema.Draft202012Validator(schema).iter_errors(self._data)
        error = min(errors, key=lambda each: (-len(each.absolute_path), str(each.absolute_path)), default=None)
        if error is not None:
            path = tuple(error.absolute_path)
            raise self._error(
                (*path, *itertools.islice(_unknown_key(error), 1)), _sentence(error, ".".join(map(str, path)))
            )

    def _check_encoding(self) -> None:
        encoding = self._data.get("csv", {}).get("encoding", "utf8")
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)  # it refuses encodings of something else than text, too
        except (LookupError, ValueError):
            path = ("csv", "encoding")
            raise self._error(path, f"there is no encoding {quoted(encoding)}; write it as utf8 or latin1") from None

    def _rows(self) -> tuple[Row, ...]:
        if "rows" not in self._data:
            return (self._row(self._data, (), optional=False),)
        return tuple(
            self._row({**self._data, **row}, ("rows", place), optional="time" in row)
            for place, row in enumerate(self._data["rows"])
        )

    def _row(self, data: Mapping[str, Any], path: tuple[str | int, ...], *, optional: bool) -> Row:
        for key in ("time", "event", "process"):
            if key not in data:
                raise self._error(path, f"`{key}` is missing; every event has one")

        def inside(key: str) -> tuple[str | int, ...]:
            at = (*path, key)
            return at if at in self._document.lines else (key,)

        return Row(
            time=self._when(data["time"], inside("time")),
            event=self._told(data["event"], inside("event")),
            texts=MappingProxyType({key: self._words(key, data[key], inside(key)) for key in _TEXTS if key in data}),
            numbers=MappingProxyType({key: _number(data[key]) for key in _NUMBERS if key in data}),
            redelivered=_flag(data["redelivered"]) if "redelivered" in data else None,
            where=_chosen(data.get("where", {})),
            optional=optional,
        )

    def _when(self, value: Any, path: tuple[str | int, ...]) -> When:
        if isinstance(value, str):
            return When(value, None, None, "UTC")
        zone = value.get("zone", "UTC")
        try:
            zoneinfo.ZoneInfo(zone)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            raise self._error(
                path, f"there is no time zone {quoted(zone)}; write it as Europe/Berlin, or UTC"
            ) from None
        return When(value["column"], value.get("unit"), value.get("format"), zone)

    def _told(self, value: Any, path: tuple[str | int, ...]) -> Told:
        if isinstance(value, str):
            return Told(value, None)
        if "constant" in value:
            return Told(None, None, self._events(value["constant"], path))
        if "values" not in value:
            return Told(value["column"], None)
        events = {word: self._events(each, (*path, "values", word)) for word, each in value["values"].items()}
        return Told(value["column"], MappingProxyType(events))

    def _events(self, value: Any, path: tuple[str | int, ...]) -> tuple[str, ...]:
        events = tuple(map(str, value if isinstance(value, list) else [value]))
        if events == (IGNORED,):
            return ()
        for event in events:
            if event not in set(EVENTS):
                raise self._error(
                    path, f"there is no event {quoted(event)}; it is {IGNORED}, or of {', '.join(EVENTS)}"
                )
        return events

    def _words(self, key: str, value: Any, path: tuple[str | int, ...]) -> Words:
        if isinstance(value, str):
            return Words(column=value)
        if "template" in value:
            return self._template(value["template"], path)
        words = Words(
            column=value.get("column"),
            values=MappingProxyType(value["values"]) if "values" in value else None,
            constant=value.get("constant"),
        )
        if key in VOCABULARY:
            for each in (*(words.values or {}).values(), *([words.constant] if words.constant else [])):
                if each not in VOCABULARY[key]:
                    legal = ", ".join(VOCABULARY[key])
                    raise self._error(path, f"there is no {key} {quoted(each)}; it is one of {legal}")
        return words

    def _template(self, text: str, path: tuple[str | int, ...]) -> Words:
        parts, end = [], 0
        for found in _NAMED.finditer(text):
            parts.append((text[end : found.start()], found[1]))
            end = found.end()
        if not parts or any(not column for _, column in parts):
            raise self._error(path, f"the template {quoted(text)} names no column; write it as {{order}}-{{line}}")
        return Words(parts=(*parts, (text[end:], None)))

    def _pattern(self, place: int, text: str) -> str:
        path = ("lines", "patterns", place)
        try:
            groups = pc.extract_regex(pa.array([], pa.string()), text).type
        except pa.ArrowInvalid as error:
            why = " ".join(str(error).split())
            raise self._error(path, f"{quoted(text)} is no regular expression of RE2 ({shown(why)})") from None
        if not groups.num_fields:
            raise self._error(path, f"{quoted(text)} names no column; write each as (?P<name>...)")
        return text

    def _cannot_show(self, rows: Sequence[Row]) -> Mapping[str, str]:
        told = frozenset[str]().union(*(row.event.events() for row in rows))
        if "cannot_show" in self._data:
            return self._declared(told)
        missing: dict[str, str] = {
            event.value: "nothing in the mapping tells it" for event in EVENTS if event not in told | _OPTIONAL
        }
        for field in ("redelivered", "delivery_count"):
            known = (getattr(row, field, None) or row.numbers.get(field) for row in rows)
            if Event.DELIVERED in told and not any(known):
                missing[field] = "no column of the mapping has it"
        return MappingProxyType(missing)

    def _declared(self, told: frozenset[str]) -> Mapping[str, str]:
        names: list[str] = self._data["cannot_show"]
        for place, name in enumerate(names):
            if name not in SHOWABLE:
                legal = ", ".join(sorted(SHOWABLE))
                raise self._error(("cannot_show", place), f"{quoted(name)} is no event or field; it is one of {legal}")
            by_values = any(row.event.column is None or row.event.values is not None for row in self._rows())
            if name in told and by_values:
                raise self._error(("cannot_show", place), f"the mapping gives `{name}`; take it out of `cannot_show`")
        return MappingProxyType(dict.fromkeys(names, "the mapping says so"))


_OPTIONAL: Final = frozenset(
    {Event.WAITING, Event.DEPTH, Event.RESEND, Event.JOURNAL_WRITTEN, Event.JOURNAL_SYNCED}
    | {Event.RETURNED, Event.LEASE_EXPIRED, Event.PREPARE, Event.PREPARED}
)
"""What histories may do without: nothing is counted wrongly for want of it (a second send may be a ``send`` too)."""


def _sentence(error: jsonschema.ValidationError, where: str) -> str:
    said = f"`{where}`" if where else "the mapping"
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    legal: Any = error.validator_value
    match error.validator:
        case "additionalProperties":
            known: dict[str, Any] = schema.get("properties", {})
            key = next(_unknown_key(error), "")
            return f"{said} has no key {quoted(key)}{meant(key, known)}; it is one of {', '.join(known)}"
        case "required":
            return f"{said}: {error.message}"
        case _ if "description" in schema:
            return f"{said} is {schema['description']}"
        case "enum":
            return f"{said} is one of {in_words(list(map(str, legal)), 'or')}"
        case "const":
            return f"{said} is {legal}"
        case _:
            return f"{said}: {shown(error.message)}"


def _unknown_key(error: jsonschema.ValidationError) -> Iterator[str]:
    """The first key that there is not, if that is the error."""
    if (
        error.validator == "additionalProperties"
        and isinstance(error.schema, dict)
        and isinstance(error.instance, dict)
    ):
        known = error.schema.get("properties", {})
        yield from (str(key) for key in list(error.instance) if key not in known)


def _chosen(columns: Mapping[str, Any]) -> tuple[Chosen, ...]:
    return tuple(
        Chosen(column, tuple(map(_as_text, values if isinstance(values, list) else [values])))
        for column, values in columns.items()
    )


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(value: Any) -> Flag:
    if isinstance(value, str):
        return Flag(value)
    if "constant" in value:
        return Flag(constant=value["constant"])
    words = {
        key: tuple(_as_text(each).lower() for each in value.get(key, default))
        for key, default in (("true", TRUE), ("false", FALSE))
    }
    return Flag(value["column"], words["true"], words["false"], value.get("above"))


def _number(value: Any) -> Number:
    return Number(value) if isinstance(value, str) else Number(value["column"], value.get("add", 0))
