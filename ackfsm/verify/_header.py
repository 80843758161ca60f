"""The header of a history: its format, and the configuration under which it was recorded."""

from __future__ import annotations

import dataclasses
import errno
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.files import cannot_read
from ackfsm.terms import InputError, parse_value
from ackfsm.text import quoted, shown
from ackfsm.verify._format import HEADER_KEY, VERSION

__all__ = ["Header", "Headers", "header_beside", "header_of_line", "header_of_metadata"]

_LONGEST_REASON = 1_000

_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENAMETOOLONG})

_UNSUPPORTED = "queues"
"""A key that changes what a history is judged by, and that this version does not know how to heed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """What a history says of itself.

    Attributes:
        config: its settings (``profile`` among them), ``None`` if it names none.
        note: a text for people.
        api: the programming interface that its clients used; it refuses configurations and changes nothing else.
        place: where the settings stand (file and line), else the interface, for messages.
    """

    config: Mapping[str, object] | None
    note: str | None
    api: str | None = None
    place: str = dataclasses.field(default="", compare=False)


class Headers:
    """All headers of one history (of its parts, and beside them), which must not contradict each other."""

    def __init__(self) -> None:
        self._merged: Header | None = None
        self._configured: tuple[str, Mapping[str, object]] | None = None
        self._through: tuple[str, str] | None = None

    def add(self, header: Header | None, place: str) -> None:
        """Take in what was found at ``place``.

        Raises :class:`InputError` if it has another configuration, or names another programming interface.
        """
        if header is None:
            return
        note = header.note if self._merged is None or self._merged.note is None else self._merged.note
        if header.config is not None:
            self._agree(header.config, place)
        if header.api is not None:
            self._agree_through(header.api, place)
        before = "" if self._merged is None or self._merged.config is None else self._merged.place
        self._merged = Header(
            self._configured and self._configured[1],
            note,
            self._through and self._through[1],
            before or header.place,
        )

    def merged(self) -> Header | None:
        """What they say together."""
        return self._merged

    def _agree(self, config: Mapping[str, object], place: str) -> None:
        if self._configured is None:
            self._configured = (place, config)
        elif _parsed(config) != _parsed(self._configured[1]):
            raise InputError(f"{place} has another configuration than {self._configured[0]}; correct one of them")

    def _agree_through(self, api: str, place: str) -> None:
        if self._through is None:
            self._through = (place, api)
        elif api != self._through[1]:
            raise InputError(f"{place} names another `api` than {self._through[0]}; correct one of them")


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

    Either the entry ``ackfsm_history`` is a whole header, or it is the number of the format, and ``config`` (JSON),
    ``note`` and ``api`` (plain text) are entries of their own.
    Raises :class:`InputError`, which begins with ``place``, if it is none that this version can read.
    """
    entries = {key.decode(errors="replace"): value for key, value in (metadata or {}).items()}
    if HEADER_KEY not in entries:
        return None
    first = _entry(entries, HEADER_KEY, place)
    if isinstance(first, dict):
        return _whole_header(entries, first, place)
    value: dict[str, Any] = {HEADER_KEY: first}
    if "config" in entries:
        value["config"] = _entry(entries, "config", place)
    for key in ("note", "api"):
        if key in entries:
            value[key] = entries[key].decode(errors="replace")
    return _header(value, place)


def _whole_header(entries: Mapping[str, bytes], value: Mapping[str, Any], place: str) -> Header:
    if HEADER_KEY not in value:
        raise InputError(f"{place}: {HEADER_KEY!r} is no header; it must be an object with {HEADER_KEY!r}: {VERSION}")
    for key in ("config", "api"):
        if key in entries:
            raise InputError(f"{place}: {key!r} stands beside a whole header; keep one of them")
    return _header(value, place)


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
    if value.get(_UNSUPPORTED):
        raise InputError(f"{place}: this version of ackfsm cannot judge by {_UNSUPPORTED!r}; take it out of the header")
    config, note, api = value.get("config"), value.get("note"), value.get("api")
    if config is not None and not isinstance(config, dict):
        raise InputError(f"{place}: `config` must be an object of settings")
    if note is not None and not isinstance(note, str):
        raise InputError(f"{place}: `note` must be text")
    if api is not None and not isinstance(api, str):
        raise InputError(f"{place}: `api` must be the name of a programming interface, as text")
    for key, setting in (config or {}).items():
        _known_setting(key, setting, place)
    return Header(None if config is None else MappingProxyType(dict(config)), note, api, place)


def _known_setting(key: str, setting: object, place: str) -> None:
    try:
        _parsed_setting(key, setting)
    except InputError as error:
        raise InputError(f"{place}: {shown(str(error), _LONGEST_REASON)}; correct the header") from None
    except RecursionError:
        raise InputError(f"{place}: {quoted(key)} is nested too deeply; correct the header") from None


def _parsed(config: Mapping[str, object]) -> Mapping[str, object]:
    return {key: _parsed_setting(key, setting) for key, setting in config.items()}


def _parsed_setting(key: str, setting: object) -> object:
    """The value of a setting; the profile may be one that whoever judges the history has to name (``--profile``)."""
    if key == "profile" and isinstance(setting, str):
        return setting
    return parse_value(key, setting)
