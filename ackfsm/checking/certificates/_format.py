"""The file of a certificate: a header that a person can read, and the views, compressed.

The first line is a JSON object, the header.  All that follows is another one, compressed as ``xz`` does, so that
``tail -n +2 FILE | xz -d`` shows it.  ``spec/any.md`` has every field of both.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import itertools
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackfsm.support.files import cannot_read, write_file
from ackfsm.terms import InputError
from ackfsm.text import quoted, shown

__all__ = ["Certificate", "Invariant", "Level", "View", "Way", "read_certificate", "write_certificate"]

_FORMAT = "ackfsm certificate"
_VERSION = 4
_MOST_BYTES = 1 << 30
"""No payload is unpacked further."""

_REMEDY = "make it again with `ackfsm check --messages any --certificate FILE`"

View = tuple[int, ...]
"""The number of a state of the system, and of one message or of an earlier and a later one."""


class Level(enum.StrEnum):
    """How much an invariant knows of the messages that its views do not hold; ``pairs`` is for those of a relation."""

    ALONE = "alone"
    CHAOS = "chaos"
    RELATED = "related"
    PAIRS = "pairs"

    @property
    def messages(self) -> int:
        """How many messages a view holds."""
        return 2 if self is Level.PAIRS else 1


@dataclasses.dataclass(frozen=True, slots=True)
class Invariant:
    """Views that are said to hold all that can be seen of systems of ``least`` to ``most`` messages (None: any more).

    Attributes:
        level: what is known of messages that a view does not hold.
        least, most: for how many messages.
        watchers: the machines that are never marked because of it, each with the anomaly that it watches for.
        system, message: the machines that views keep, by name (``entry#2`` is of the second copy).
        ghosts: the counters of which each message keeps a ghost (Lemma 0), in order, behind its machines.
        covering: those of them whose ghosts may be more than the counter, in all messages.
        system_states, message_states: for each number the states of those machines.
        views: the views, by these numbers.
        relation: at the level related the pairs that tell which messages may be beside each other.
        followed: at the level related systems in which one message is followed (Lemma 10), each with the machine that
            watches that message and is never marked because of it.
    """

    level: Level
    least: int
    most: int | None
    watchers: tuple[tuple[str, str], ...]
    system: tuple[str, ...]
    message: tuple[str, ...]
    ghosts: tuple[str, ...]
    covering: tuple[str, ...]
    system_states: tuple[tuple[str, ...], ...] = dataclasses.field(repr=False)
    message_states: tuple[tuple[str, ...], ...] = dataclasses.field(repr=False)
    views: tuple[View, ...] = dataclasses.field(repr=False)
    relation: Invariant | None = dataclasses.field(default=None, repr=False)
    followed: tuple[Invariant, ...] = dataclasses.field(default=(), repr=False)

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """The machines that are never marked because of it, or of what is followed beside it."""
        return (*self.watchers, *(watcher for each in self.followed for watcher in each.watchers))

    @property
    def anomalies(self) -> tuple[str, ...]:
        """What is watched for."""
        return tuple(dict.fromkeys(anomaly for anomaly, _ in self.shown))

    @property
    def name(self) -> str:
        """``related, 2 messages or more``."""
        if self.most is None:
            return f"{self.level}, {self.least} messages or more" if self.least > 1 else f"{self.level}, any number"
        many = f"{self.least} to {self.most}" if self.least < self.most else f"{self.least}"
        return f"{self.level}, {many} message{'s' * (self.most > 1)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """A run that shows an anomaly, of so many messages and faults (None: any number), as the labels of its events."""

    anomaly: str
    messages: int
    max_faults: int | None
    steps: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate:
    """What was decided of one configuration for any number of messages, with all that is needed to check it again.

    Attributes:
        tables: the digest of the tables (:attr:`ackfsm.tables.Specification.digest`).
        made_by: the version of this package that made it.
        configuration: every setting.
        faults, actions, without: what may happen, optional actions that are considered, events that are left out.
        proved: the anomalies and ends that are said to be impossible.
        ways: for those that are possible, how.
        not_covered: for all that is undecided, why.
        invariants: the views.
    """

    tables: str
    made_by: str
    configuration: Mapping[str, str | int | bool | None]
    faults: tuple[str, ...]
    actions: tuple[str, ...]
    without: tuple[str, ...]
    proved: tuple[str, ...]
    ways: tuple[Way, ...]
    not_covered: Mapping[str, str]
    invariants: tuple[Invariant, ...]

    @property
    def views(self) -> int:
        """How many views all invariants have."""
        whole = [each for invariant in self.invariants for each in (invariant, *invariant.followed)]
        return sum(len(each.views) for one in whole for each in (one, one.relation) if each is not None)


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write ``certificate`` to ``path``.  Raises as :func:`ackfsm.support.files.write_file`."""
    write_file(path, packed(certificate))


def read_certificate(path: Path) -> Certificate:
    """The certificate in ``path``.

    Raises :class:`InputError` naming the file for what cannot be read, is damaged or cut off, or is of another version.
    """
    name = shown(str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise cannot_read(name, error, "a certificate") from None
    try:
        return unpacked(data)
    except _DamagedError as error:
        raise InputError(f"{name}: {error}; {_REMEDY}") from None


class _DamagedError(ValueError):
    """What is wrong with a file, a clause."""


def packed(certificate: Certificate) -> bytes:
    """The bytes of the file."""
    payload = _dumped({"invariants": [_invariant_as_json(each) for each in certificate.invariants]})
    compressed = lzma.compress(payload)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "ackfsm": certificate.made_by,
        "tables": certificate.tables,
        "config": dict(certificate.configuration),
        "faults": certificate.faults,
        "actions": certificate.actions,
        "without": certificate.without,
        "proved": certificate.proved,
        "possible": [dataclasses.asdict(way) for way in certificate.ways],
        "not_covered": dict(certificate.not_covered),
        "payload": {"bytes": len(compressed), "sha256": hashlib.sha256(compressed).hexdigest()},
    }
    return _dumped(header) + b"\n" + compressed


def unpacked(data: bytes) -> Certificate:
    """The certificate in the bytes of a file; raises :class:`ValueError` with a clause that says what is wrong."""
    line, _, compressed = data.partition(b"\n")
    header = _Fields(_loaded(line, "its first line is no JSON object"), "header")
    if header.get("format", str) != _FORMAT:
        raise _DamagedError(f"its first line does not say that it is an {_FORMAT}")
    version = header.get("version", int)
    if version != _VERSION:
        raise _DamagedError(f"it is of version {version} of the format, and this is version {_VERSION}")
    payload = _Fields(header.get("payload", dict), "payload")
    size = payload.get("bytes", int)
    if len(compressed) != size:
        raise _DamagedError(
            f"it has {len(compressed):,} bytes behind its first line, not {size:,}: it was cut or changed"
        )
    if hashlib.sha256(compressed).hexdigest() != payload.get("sha256", str):
        raise _DamagedError("what is behind its first line was changed, as its SHA-256 is another one")
    body = _Fields(_loaded(_decompressed(compressed), "its payload is no JSON object"), "payload")
    return Certificate(
        tables=header.get("tables", str),
        made_by=header.get("ackfsm", str),
        configuration=header.get("config", dict),
        faults=header.texts("faults"),
        actions=header.texts("actions"),
        without=header.texts("without"),
        proved=header.texts("proved"),
        ways=tuple(_way(_Fields(each, "possible")) for each in header.get("possible", list)),
        not_covered=_reasons(header.get("not_covered", dict)),
        invariants=tuple(_invariant(_Fields(each, "invariants")) for each in body.get("invariants", list)),
    )


def _dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _loaded(text: bytes, otherwise: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except _DamagedError:
        raise
    except (ValueError, RecursionError):
        raise _DamagedError(otherwise) from None
    if not isinstance(value, dict):
        raise _DamagedError(otherwise)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that has each of its keys once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise _DamagedError(f"an object in it has {quoted(twice)} more than once")
    return found


def _decompressed(data: bytes) -> bytes:
    unpacker = lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
    try:
        text = unpacker.decompress(data, max_length=_MOST_BYTES)
    except lzma.LZMAError:
        raise _DamagedError("its payload is not compressed as xz does") from None
    if not unpacker.eof or unpacker.unused_data:
        raise _DamagedError("its payload is cut off, too long, or followed by something else")
    return text


class _Fields:
    """A JSON object, whose fields are taken out with their kinds checked."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise _DamagedError(f"{where} has something that is no object")
        self._value, self._where = value, where

    def get(self, name: str, kind: type) -> Any:
        value = self._value.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise _DamagedError(f"{self._where} has no {quoted(name)} that is of the kind {kind.__name__}")
        return value

    def has(self, name: str) -> bool:
        return name in self._value

    def number_or_none(self, name: str) -> int | None:
        value: int | None = None if self._value.get(name, 0) is None else self.get(name, int)
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise _DamagedError(f"{self._where} has in {quoted(name)} what is no text")
        return tuple(values)

    def numbers(self, name: str) -> list[int]:
        return _numbers(self.get(name, list), f"{self._where} has in {quoted(name)}")


def _numbers(values: object, where: str) -> list[int]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise _DamagedError(f"{where} what is no list of whole numbers")
    return values


def _reasons(value: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(reason, str) for reason in value.values()):
        raise _DamagedError("header has in 'not_covered' what is no text")
    return value


def _way(fields: _Fields) -> Way:
    steps = fields.texts("steps")
    return Way(fields.get("anomaly", str), fields.get("messages", int), fields.number_or_none("max_faults"), steps)


def _invariant_as_json(invariant: Invariant) -> dict[str, Any]:
    return {
        "level": invariant.level.value,
        "least": invariant.least,
        "most": invariant.most,
        **_shown_as_json(invariant),
        **({"followed": [_shown_as_json(each) for each in invariant.followed]} if invariant.followed else {}),
    }


def _shown_as_json(invariant: Invariant) -> dict[str, Any]:
    return {
        "watchers": [{"anomaly": anomaly, "machine": machine} for anomaly, machine in invariant.watchers],
        **_views_as_json(invariant),
        **({} if invariant.relation is None else {"relation": _views_as_json(invariant.relation)}),
    }


def _views_as_json(invariant: Invariant) -> dict[str, Any]:
    return {
        "ghosts": invariant.ghosts,
        "covering": invariant.covering,
        "system": _states_as_json(invariant.system, invariant.system_states),
        "message": _states_as_json((*invariant.message, *invariant.ghosts), invariant.message_states),
        "views": [_differences(part) for part in zip(*invariant.views, strict=True)],
    }


def _states_as_json(machines: Sequence[str], states: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """For each machine its name, its states that occur, and for each number which of them it is in."""
    found = []
    for number, machine in enumerate(machines):
        occurring = list(dict.fromkeys(state[number] for state in states))
        at = {state: i for i, state in enumerate(occurring)}
        found.append({"machine": machine, "states": occurring, "in": [at[state[number]] for state in states]})
    return found


def _differences(numbers: Sequence[int]) -> list[int]:
    """Each number less the one before it, which is shorter where they are sorted."""
    return [number - before for before, number in zip((0, *numbers), numbers, strict=False)]


def _invariant(fields: _Fields) -> Invariant:
    try:
        level = Level(fields.get("level", str))
    except ValueError:
        raise _DamagedError("it has an invariant of a level that does not exist") from None
    least, most = fields.get("least", int), fields.number_or_none("most")
    invariant = _with_views(fields, level, least, most)
    if level is not Level.RELATED:
        return invariant
    followed = [_Fields(each, "followed") for each in (fields.get("followed", list) if fields.has("followed") else ())]
    return dataclasses.replace(invariant, followed=tuple(_with_views(each, level, least, most) for each in followed))


def _with_views(fields: _Fields, level: Level, least: int, most: int | None) -> Invariant:
    """An invariant with what its views show, and at the level related with their relation."""
    watchers = [_Fields(each, "watchers") for each in fields.get("watchers", list)]
    relation = None
    if level is Level.RELATED:
        pairs = _views(_Fields(fields.get("relation", dict), "relation"), Level.PAIRS)
        relation = Invariant(level=Level.PAIRS, least=least, most=most, watchers=(), **pairs)
    return Invariant(
        level=level,
        least=least,
        most=most,
        watchers=tuple((each.get("anomaly", str), each.get("machine", str)) for each in watchers),
        relation=relation,
        **_views(fields, level),
    )


def _views(fields: _Fields, level: Level) -> dict[str, Any]:
    """The fields of an :class:`Invariant` that say what the views are."""
    ghosts = fields.texts("ghosts")
    system, system_states = _states(fields, "system")
    message, message_states = _states(fields, "message")
    parts = [
        tuple(itertools.accumulate(_numbers(each, "an invariant has in 'views'"))) for each in fields.get("views", list)
    ]
    if len(parts) != 1 + level.messages or len(set(map(len, parts))) != 1:
        raise _DamagedError(f"it has views that are no views of the level {level}")
    for part, among in zip(parts, (system_states, *[message_states] * level.messages), strict=True):
        if part and (min(part) < 0 or max(part) >= len(among)):
            raise _DamagedError("it has a view of a state that it does not describe")
    if message[len(message) - len(ghosts) :] != ghosts:
        raise _DamagedError("it has an invariant whose ghosts are not the last of what a message keeps")
    return {
        "system": system,
        "message": message[: len(message) - len(ghosts)],
        "ghosts": ghosts,
        "covering": fields.texts("covering"),
        "system_states": system_states,
        "message_states": message_states,
        "views": tuple(zip(*parts, strict=True)),
    }


def _states(fields: _Fields, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The machines, and for each number their states."""
    machines = [_Fields(each, name) for each in fields.get(name, list)]
    columns = [list(_column(machine, name)) for machine in machines]
    if not columns:
        return (), ((),)
    if len(set(map(len, columns))) != 1:
        raise _DamagedError(f"it has an invariant without states of the {name}")
    return tuple(machine.get("machine", str) for machine in machines), tuple(zip(*columns, strict=True))


def _column(machine: _Fields, name: str) -> Iterator[str]:
    states = machine.texts("states")
    for number in machine.numbers("in"):
        if not 0 <= number < len(states):
            raise _DamagedError(f"it has a state of the {name} with a number that no state has")
        yield states[number]
