"""The header of a history: what format it has, under which configuration it was recorded."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.history._format import HEADER_KEY, VERSION
from ackfsm.terms import InputError, parse_value
from ackfsm.text import shown

__all__ = ["Header", "header_beside", "header_of_line", "header_of_metadata"]


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """What a history says of itself: its settings (``profile`` among them; ``None`` if it names none), and a note."""

    config: Mapping[str, object] | None
    note: str | None


def header_of_line(line: bytes, place: str) -> Header | None:
    """The header that ``line`` is, or ``None`` if it is none (an event, or nothing that can be read).

    Raises :class:`InputError`, which begins with ``place``, for a header that this version cannot read.
    """
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None  # whoever reads the lines as events will count it and say why
    return _header(value, place) if isinstance(value, dict) and HEADER_KEY in value else None


def header_beside(file: Path) -> Header:
    """The header in the JSON file ``file``, which stands beside a Parquet history.

    Raises :class:`InputError` if it is no header that this version can read.
    """
    try:
        value = json.loads(file.read_bytes().decode())
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); make it readable or remove it") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON ({error}); write the header again or remove the file") from None
    if not isinstance(value, dict) or HEADER_KEY not in value:
        raise InputError(f"{file} is no header; it must be an object with {HEADER_KEY!r}: {VERSION}")
    return _header(value, str(file))


def header_of_metadata(metadata: Mapping[bytes, bytes] | None, place: str) -> Header | None:
    """The header in the schema metadata of a Parquet file (each entry is JSON, the note plain text), if it is there.

    Raises :class:`InputError`, which begins with ``place``, if it is none that this version can read.
    """
    entries = {key.decode(errors="replace"): value for key, value in (metadata or {}).items()}
    if HEADER_KEY not in entries:
        return None
    value: dict[str, Any] = {key: _json(entries[key], place, key) for key in (HEADER_KEY, "config") if key in entries}
    if "note" in entries:
        value["note"] = entries["note"].decode(errors="replace")
    return _header(value, place)


def _json(data: bytes, place: str, key: str) -> Any:
    try:
        return json.loads(data.decode())
    except (ValueError, RecursionError):
        raise InputError(f"{place}: {key!r} is not JSON; write the file again") from None


def _header(value: Mapping[str, Any], place: str) -> Header:
    version = value[HEADER_KEY]
    if version is True or version != VERSION:
        told = shown(json.dumps(version))
        raise InputError(f"{place}: history format {told} is not known; this version of ackfsm reads format {VERSION}")
    config, note = value.get("config"), value.get("note")
    if config is not None and not isinstance(config, dict):
        raise InputError(f"{place}: `config` must be an object of settings")
    if note is not None and not isinstance(note, str):
        raise InputError(f"{place}: `note` must be text")
    for key, setting in (config or {}).items():
        _known_setting(key, setting, place)
    return Header(None if config is None else MappingProxyType(dict(config)), note)


def _known_setting(key: str, setting: object, place: str) -> None:
    try:
        parse_value(key, setting)
    except InputError as error:
        raise InputError(f"{place}: {error}; correct the header") from None
