"""The header of a history: its format, and the configuration under which it was recorded, also of single queues."""

from __future__ import annotations

import dataclasses
import errno
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ackfsm.history.format import HEADER_KEY, SHOWABLE, VERSION, WORDS
from ackfsm.support.files import cannot_read
from ackfsm.terms import InputError, parse_value
from ackfsm.text import in_words, quoted, shown

_LONGEST_REASON = 1_000

_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENAMETOOLONG})

_Settings: TypeAlias = Mapping[str, object]
_OfQueues: TypeAlias = Mapping[str, _Settings]


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """The header of a history.

    Attributes:
        config: its settings (``profile`` among them), ``None`` if it names none.
        note: a text for people.
        api: the programming interface that its clients used; it refuses configurations and changes nothing else.
        place: where the settings stand (file and line), else the interface, for messages.
        queues: the settings that are other ones in a queue, by its name; ``None`` if it names none.
        place_of_queues: where those stand.
        cannot_show: the events and fields that its source never shows, so that what needs them is unknown.
        words: what it says of lines, by the line.
    """

    config: Mapping[str, object] | None
    note: str | None
    api: str | None = None
    place: str = dataclasses.field(default="", compare=False)
    queues: Mapping[str, Mapping[str, object]] | None = None
    place_of_queues: str = dataclasses.field(default="", compare=False)
    cannot_show: tuple[str, ...] = ()
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def said(self) -> Mapping[str, Any]:
        """Return the header as an object, by key."""
        said = {"config": self.config, "queues": self.queues, "api": self.api, "note": self.note, **self.words}
        return {key: value for key, value in said.items() if value is not None}


class Headers:
    """All headers of one history (of its parts, and beside them), which must not contradict each other."""

    def __init__(self) -> None:
        self._cannot_show: list[str] = []
        self._words: dict[str, str] = {}
        self._first: dict[str, tuple[str, Header]] = {}
        """The first header that has each key, and where it was found."""

    def add(self, header: Header | None, place: str) -> None:
        """Take in the header that was found at ``place``.

        Raises :class:`InputError` if it has another configuration, also of a queue, or names another programming
        interface.
        """
        if header is None:
            return
        for key, value in header.said().items():
            before, other = self._first.setdefault(key, (place, header))
            if key in _CONTRADICTIONS and _parsed_key(key, value) != _parsed_key(key, other.said()[key]):
                raise InputError(f"{place} {_CONTRADICTIONS[key]} than {before}; correct one of them")
        self._cannot_show += header.cannot_show
        self._words |= header.words
        self._first.setdefault("", (place, header))

    def merged(self) -> Header | None:
        """What they say together."""
        if not self._first:
            return None
        by_key = {key: header for key, (_, header) in self._first.items()}
        some = by_key[""]
        config, queues, api, note = (by_key.get(key, some) for key in ("config", "queues", "api", "note"))
        place = config.place if config.config is not None else api.place
        unshown = tuple(dict.fromkeys(self._cannot_show))
        return Header(
            config.config, note.note, api.api, place, queues.queues, queues.place_of_queues, unshown, self._words
        )


def header_of_line(line: bytes, place: str) -> Header | None:
    """The header that ``line`` is, or ``None`` if it is none (an event, or nothing that can be read).

    Raises :class:`InputError`, which begins with ``place``, for a header that this version cannot read.
    """
    try:
        value = _Json(line)
    except (ValueError, RecursionError):
        return None  # whoever reads the lines as events will count it and say why
    return value.header(place) if value.is_header else None


def header_beside(file: Path) -> Header | None:
    """The header in the JSON file ``file``, which stands beside a history; ``None`` if there is no such file.

    Raises :class:`InputError` if it is no header that this version can read.
    """
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        value = _Json(file.read_bytes())
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return None
        raise cannot_read(shown(str(file)), error, "a history without it, or remove it") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{shown(str(file))} is not JSON ({error}); write the header again or remove the file"
        ) from None
    if not value.is_header:
        raise InputError(f"{shown(str(file))} is no header; it must be an object with {HEADER_KEY!r}: {VERSION}")
    return value.header(shown(str(file)))


def header_of_metadata(metadata: Mapping[bytes, bytes] | None, place: str) -> Header | None:
    """The header in the schema metadata of a Parquet file, if it is there.

    Either the entry ``ackfsm_history`` is a whole header, or it is the number of the format, and ``config``,
    ``queues`` and ``cannot_show`` (JSON), ``note``, ``api`` and ``dead_lettered`` (text) are entries of their own.
    Raises :class:`InputError`, which begins with ``place``, if it is none that this version can read.
    """
    entries = {key.decode(errors="replace"): value for key, value in (metadata or {}).items()}
    if HEADER_KEY not in entries:
        return None
    first = _entry(entries, HEADER_KEY, place)
    if not isinstance(first, dict):
        value: dict[str, Any] = {HEADER_KEY: first}
        value |= {key: _entry(entries, key, place) for key in (*_JUDGED_BY, "cannot_show") if key in entries}
        value |= {key: entries[key].decode(errors="replace") for key in ("note", "api", *WORDS) if key in entries}
        return _header(value, place)
    if HEADER_KEY not in first:
        raise InputError(f"{place}: {HEADER_KEY!r} is no header; it must be an object with {HEADER_KEY!r}: {VERSION}")
    for key in (*_JUDGED_BY, "api", "cannot_show", *WORDS):
        if key in entries:
            raise InputError(f"{place}: {str(key)!r} stands beside a whole header; keep one of them")
    return _header(first, place)


def _entry(entries: Mapping[str, bytes], key: str, place: str) -> Any:
    try:
        value = _Json(entries[key])
    except (ValueError, RecursionError):
        raise InputError(f"{place}: {key!r} is not JSON; write the file again") from None
    value.refuse_twice(place)
    return value.value


class _Json:
    """JSON text, and the first key that an object in it has twice, at any depth (``None``: there is none)."""

    def __init__(self, data: bytes) -> None:
        self.twice: str | None = None
        self.value = json.loads(data.decode(), object_pairs_hook=self._object)

    @property
    def is_header(self) -> bool:
        return isinstance(self.value, dict) and HEADER_KEY in self.value

    def header(self, place: str) -> Header:
        self.refuse_twice(place)
        return _header(self.value, place)

    def refuse_twice(self, place: str) -> None:
        if self.twice is not None:
            raise InputError(f"{place}: {quoted(self.twice)} stands in the header twice; keep one of them")

    def _object(self, members: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in members:
            if name in found and self.twice is None:
                self.twice = name
            found[name] = value
        return found


def _header(value: Mapping[str, Any], place: str) -> Header:
    version = value[HEADER_KEY]
    if version is True or version != VERSION:
        said = shown(json.dumps(version)) if not isinstance(version, (dict, list)) else "that is no number"
        raise InputError(f"{place}: history format {said} is not known; this version of ackfsm reads format {VERSION}")
    config, queues, note, api, unshown = map(value.get, ("config", "queues", "note", "api", "cannot_show"))
    if config is not None and not isinstance(config, dict):
        raise InputError(f"{place}: `config` must be an object of settings")
    if note is not None and not isinstance(note, str):
        raise InputError(f"{place}: `note` must be text")
    if api is not None and not isinstance(api, str):
        raise InputError(f"{place}: `api` must be the name of a programming interface, as text")
    return Header(
        None if config is None else _known_settings(config, place),
        note,
        api,
        place,
        None if queues is None else _known_queues(queues, place),
        place,
        () if unshown is None else _known_names(unshown, place),
        {line: _known_word(line, value[line], place) for line in WORDS if value.get(line) is not None},
    )


def _known_word(line: str, word: object, place: str) -> str:
    if word not in WORDS[line]:
        said = quoted(word) if isinstance(word, str) else shown(json.dumps(word))
        raise InputError(f"{place}: `{line}` says {said}; say {in_words(WORDS[line], 'or')}, or leave it out")
    return str(word)


def _known_names(names: object, place: str) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{place}: `cannot_show` must be a list of names of events and fields; correct it")
    for name in names:
        if name not in SHOWABLE:
            legal = ", ".join(sorted(SHOWABLE))
            raise InputError(
                f"{place}: `cannot_show` names {quoted(name)}, which is no event or field that could be missing; it is"
                f" one of {legal}"
            )
    return tuple(dict.fromkeys(names))


def _known_queues(queues: object, place: str) -> _OfQueues:
    if not isinstance(queues, dict) or not all(isinstance(settings, dict) for settings in queues.values()):
        raise InputError(
            f"{place}: `queues` must be an object that has an object of settings for each queue; correct it"
        )
    return MappingProxyType(
        {name: _known_settings(settings, f"{place}, queue {quoted(name)}") for name, settings in queues.items()}
    )


def _known_settings(settings: _Settings, place: str) -> _Settings:
    for key, setting in settings.items():
        try:
            _parsed_setting(key, setting)
        except InputError as error:
            raise InputError(f"{place}: {shown(str(error), _LONGEST_REASON)}; correct the header") from None
        except RecursionError:
            raise InputError(f"{place}: {quoted(key)} is nested too deeply; correct the header") from None
    return MappingProxyType(dict(settings))


def _parsed(config: _Settings) -> _Settings:
    return {key: _parsed_setting(key, setting) for key, setting in config.items()}


def _parsed_key(key: str, value: Any) -> object:
    match key:
        case "config":
            return _parsed(value)
        case "queues":
            return {name: _parsed(settings) for name, settings in value.items()}
        case _:
            return value


def _parsed_setting(key: str, setting: object) -> object:
    """The value of a setting; the profile may be one that whoever judges the history has to name (``--profile``)."""
    if key == "profile" and isinstance(setting, str):
        return setting
    return parse_value(key, setting)


_JUDGED_BY: Final = ("config", "queues")
"""The keys of settings."""

_CONTRADICTIONS: Final = MappingProxyType(
    {
        "config": "has another configuration",
        "queues": "has another configuration of queues",
        "api": "names another `api`",
    }
)
"""The keys that must not be different in two headers of one history, and what the second one does."""
