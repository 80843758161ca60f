"""The time of a history's lines: of the calendar, and never set back while a program runs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_KEYS = ("offset", "boot")


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """The machine's monotonic clock, moved once to the time of the calendar.

    Attributes:
        offset: nanoseconds from the monotonic clock to the time since 1970, taken when the file was begun.
        boot: the start of the machine that the offset belongs to; ``None`` where the system does not tell.

    Since the offset stands in the file's header, all processes of one machine that write to one file have one clock:
    their lines are in the order in which they were written, and a correction of the calendar meanwhile changes nothing.
    """

    offset: int
    boot: str | None

    @classmethod
    def anchored(cls) -> Clock:
        """A clock that agrees with the calendar now."""
        return cls(time.time_ns() - time.monotonic_ns(), _boot())

    @classmethod
    def monotonic(cls) -> Clock:
        """The monotonic clock itself, for lines beside those of other programs of this machine."""
        return cls(0, _boot())

    @classmethod
    def of(cls, told: object) -> Clock | None:
        """The clock that a header tells of, if it is one of this machine since its last start."""
        if not isinstance(told, Mapping):
            return None
        offset, boot = (told.get(key) for key in _KEYS)
        if isinstance(offset, int) and isinstance(boot, str) and boot == _boot():
            return cls(offset, boot)
        return None

    def told(self) -> dict[str, int | str | None]:
        """Return the clock's part of the header."""
        return dict(zip(_KEYS, (self.offset, self.boot), strict=True))

    def now(self) -> int:
        """Nanoseconds since 1970; of :meth:`monotonic` since some moment of the machine's own."""
        return time.monotonic_ns() + self.offset


def _boot() -> str | None:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None
