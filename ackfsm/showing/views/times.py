"""The times of a story, as a person says them: of the clock on the wall, or the seconds of another clock."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from ackfsm.terms import InputError
from ackfsm.text import quoted

_EPOCH: Final = 10**18
"""Nanoseconds.  Later times are counted from 1970 on, as :func:`ackfsm.text.moment` has it."""

_SECOND: Final = 10**9
_DIGITS: Final = (3, 6, 9)


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """Writes times of one history.

    Attributes:
        begun: the time of its first line, nanoseconds.
        digits: so many digits of a second are written.
        dated: whether the date is written before the time.
    """

    begun: int
    digits: int = 3
    dated: bool = False

    @property
    def of_calendar(self) -> bool:
        """Whether the times are counted from 1970 on, and not from when some machine was started."""
        return self.begun >= _EPOCH

    def __call__(self, nanoseconds: int) -> str:
        """``10:01:07.200``, with a date if there are several days, or ``5311.791s`` as the history has it."""
        if not self.of_calendar:
            sign = "-" if nanoseconds < 0 else ""
            seconds, rest = divmod(abs(nanoseconds), _SECOND)
            return f"{sign}{seconds}.{rest:09d}"[: len(f"{sign}{seconds}.") + self.digits] + "s"
        seconds, rest = divmod(nanoseconds, _SECOND)
        time = datetime.fromtimestamp(seconds, UTC)
        text = f"{time:%Y-%m-%d %H:%M:%S}" if self.dated else f"{time:%H:%M:%S}"
        return f"{text}.{rest:09d}"[: len(text) + 1 + self.digits]

    def said(self, nanoseconds: int) -> str:
        """The time in a sentence: as above, but ``10:05:00`` where there is no fraction of a second."""
        text = self(nanoseconds)
        unit = "s" if text.endswith("s") else ""
        whole, _, fraction = text.removesuffix("s").rpartition(".")
        return text if fraction.strip("0") else f"{whole}{unit}"

    @property
    def meaning(self) -> str:
        """Return the meaning of the times, a clause."""
        if not self.of_calendar:
            return "times are seconds of the clock of the history"
        day = datetime.fromtimestamp(self.begun // _SECOND, UTC)
        return "times are UTC" if self.dated else f"times are UTC, on {day:%Y-%m-%d}"

    def parsed(self, text: str, ended: int) -> int:
        """The time that ``text`` says, nanoseconds, in a history that ``ended`` then; a clock time is of its first day.

        Raises :class:`InputError` if it is no time.
        """
        if self._is_nanoseconds(text):
            return int(text)
        if found := re.fullmatch(r"(-?\d{1,12}(?:\.\d{1,9})?) *s?", text.strip(), re.ASCII):
            whole, _, fraction = found[1].partition(".")
            begun = self.begun if self.of_calendar else 0
            return begun + int(whole) * _SECOND + int(fraction.ljust(9, "0") or 0)
        if not self.of_calendar:
            raise InputError(
                f"--at {quoted(text, 40)} is no time of this history, whose clock has no date: say its seconds, as"
                " they are shown: --at 12.250s"
            )
        return self._of_calendar(text, ended)

    @staticmethod
    def _is_nanoseconds(text: str) -> bool:
        return text.isascii() and text.isdecimal() and len(text) == len(str(_EPOCH))

    def _of_calendar(self, text: str, ended: int) -> int:
        pattern = r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?Z?"
        found = re.fullmatch(pattern, text.strip(), re.ASCII)
        wrong = InputError(
            f"--at {quoted(text, 40)} is no time; say it in UTC, as 10:05:00, 10:05:00.250 or 2026-03-01 10:05:00,"
            " or in seconds from the first line: 12.5s"
        )
        if found is None:
            raise wrong
        date, hour, minute, second, fraction = found.groups()
        day = date or f"{datetime.fromtimestamp(self.begun // _SECOND, UTC):%Y-%m-%d}"
        try:
            time = datetime.fromisoformat(f"{day}T{hour}:{minute}:{second or '00'}+00:00")
        except ValueError:
            raise wrong from None
        if date is None and time < datetime.fromtimestamp(self.begun // _SECOND, UTC):
            tomorrow = time + timedelta(days=1)
            time = tomorrow if tomorrow <= datetime.fromtimestamp(ended // _SECOND + 1, UTC) else time
        whole = int((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        return whole * _SECOND + int((fraction or "").ljust(9, "0"))


def clock_of(begun: int, times: Collection[int]) -> Clock:
    """A clock that is no more exact than tells ``times`` apart, and says the date if they are of several days."""
    distinct = sorted(set(times))
    digits = next(
        (digits for digits in _DIGITS if len({t // 10 ** (9 - digits) for t in distinct}) == len(distinct)), _DIGITS[-1]
    )
    days = {t // (86_400 * _SECOND) for t in (begun, *distinct)}
    return Clock(begun, digits, dated=len(days) > 1)
