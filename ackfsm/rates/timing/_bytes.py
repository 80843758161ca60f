"""Settings in bytes as messages, where a system counts bytes (``counted_in_bytes`` in ``spec/timing.yaml``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ackfsm.rates.timing._workload import Workload
from ackfsm.tables import ByteCount, Specification, VendorAlias
from ackfsm.terms import InputError, Profile
from ackfsm.text import parse_size, quoted

_SIZED = ("publish_window", "prefetch")
"""The settings that may be given in bytes, as ``prefetch=1MiB``."""


@dataclasses.dataclass(frozen=True, slots=True)
class InMessages:
    """Settings without any that are in bytes.

    Attributes:
        settings: what they are in messages, with the others as they were.
        changes: the fields of a workload that some of them are.
        told: for each that was in bytes what it is: ``consumerWindowSize=1MiB`` and ``prefetch=700``.
    """

    settings: dict[str, object]
    changes: Mapping[str, int | None]
    told: tuple[tuple[str, str], ...]

    def of(self, work: Workload) -> Workload:
        """The workload with these changes."""
        changes: dict[str, Any] = {**self.changes}
        return dataclasses.replace(work, **changes) if changes else work


def in_messages(
    specification: Specification, profile: str | None, settings: Mapping[str, object], message_size: int
) -> InMessages:
    """The ``settings`` of a profile, by keys or by the system's names, where messages have so many bytes.

    Raises :class:`InputError` for a size in bytes of what the system counts in messages, for a value that is no size,
    and for two names of the same number.
    """
    name = specification.profile_of(settings.get("profile", Profile.JMS) if profile is None else profile)
    kept, under, found, told = dict[str, object](), dict[str, str](), dict[str, int | None](), list[tuple[str, str]]()
    for key, value in settings.items():
        counted = _counted(specification, name, key, value)
        if counted is None:
            kept[key] = value
            continue
        if counted.key in under or (counted.key in settings and counted.key != key):
            raise InputError(
                f"{under.get(counted.key, counted.key)} and {key} are one setting, given twice; keep one of them"
            )
        under[counted.key] = key
        found[counted.key] = _messages(counted, name, value, message_size)
        told.append((f"{key}={value}", f"{counted.key}={_written(found[counted.key])}"))
    kept |= {key: found[key] for key in found.keys() & {*_SIZED}}
    return InMessages(kept, {key: number for key, number in found.items() if key not in _SIZED}, tuple(told))


def _written(number: int | None) -> str:
    return "none" if number is None else str(number)


def _counted(specification: Specification, profile: str, key: str, value: object) -> ByteCount | None:
    """Return the row that counts a setting in messages; ``None`` if the value is no size in bytes."""
    rows = specification.timing.counted_in_bytes.get(profile, ())
    own = next((row for row in rows if row.name.casefold() == key.casefold()), None)
    if own is not None or key not in _SIZED or not _has_unit(value):
        return own
    named = next((row for row in rows if row.key == key), None)
    return named or _never_full(specification.profiles[profile].names, profile, key, value)


def _has_unit(value: object) -> bool:
    return isinstance(value, str) and not value.isdecimal() and parse_size(value) is not None


def _never_full(names: Mapping[str, VendorAlias], profile: str, key: str, value: object) -> ByteCount:
    """The row of a name that takes any size in bytes, since none of them holds anybody up.

    Raises :class:`InputError` if there is no such name.
    """
    for alias in names.values():
        if alias.keys == (key,) and alias.positive:
            only = int(alias.positive[0] or 0)
            return ByteCount(alias.name, key, "up", 1, {str(value): only}, alias.differs or "", alias.source)
    raise InputError(
        f"{profile} counts {key} in messages, not in bytes as {quoted(str(value))} is; say how many: {key}=100"
    )


def _messages(row: ByteCount, profile: str, value: object, message_size: int) -> int | None:
    text = str(value).strip()
    if text in row.values:
        return row.values[text]
    size = parse_size(text)
    if not size:
        legal = ", ".join(["a size in bytes as 1MiB is", *row.values])
        raise InputError(f"{row.name} of {profile} is {legal}, not {quoted(text)}")
    return row.messages(size, message_size)
