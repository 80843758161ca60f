"""Make foreign text (ids, queues, notes, file names, error messages) fit to be shown.

What a history or a file name says is data: it must not move a cursor, clear a screen, end a line, forge a verdict or
fill a terminal with megabytes.  Whatever comes from outside goes through :func:`shown` or :func:`quoted` on its way to
a person; :func:`printable` is the net below them, for whole sentences.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

__all__ = ["in_words", "meant", "moment", "nearest", "parse_size", "printable", "quoted", "shown"]

_MOST = 200
"""Characters of a text that are shown, by default; of a longer one the beginning and how long it is."""

_LONGEST = 2_000
"""Characters of a sentence."""


def shown(text: str, most: int = _MOST) -> str:
    """Return ``text`` on one line: unprintable characters are escaped as in a Python literal, long text is cut.

    Control and format characters (also those that change the direction of writing), line ends, and the surrogates that
    stand for bytes that are no UTF-8 are not printable.  Backslashes are doubled, so different texts look different.
    """
    escaped = "".join(_escaped(character) for character in text[:most])
    return escaped if len(text) <= most else f"{escaped}… ({len(text):,} characters)"


def quoted(text: str, most: int = _MOST) -> str:
    """As :func:`shown`, in quotation marks, so that it is clear where the text begins and ends."""
    escaped = "".join("\\'" if character == "'" else _escaped(character) for character in text[:most])
    return f"'{escaped}'" if len(text) <= most else f"'{escaped}…' ({len(text):,} characters)"


def printable(text: str, most: int = _LONGEST) -> str:
    """Return a sentence of ours on one line: unprintable characters are escaped, long text is cut.

    The names in it should have been :func:`quoted`.  Of one that was not, nothing but its characters is lost.
    """
    escaped = "".join(each if each.isprintable() else _escaped(each) for each in text[:most])
    return escaped if len(text) <= most else f"{escaped}… ({len(text):,} characters)"


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def nearest(name: object, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The one of the ``known`` names that was meant perhaps by ``name``, which is none of them; ``None`` without one.

    Capitals do not matter, nor whether words are joined by hyphens, underscores or spaces.  A name of which ``name`` is
    a part (``DUPS_OK``) counts as near, if there is no nearer one.
    """
    if not isinstance(name, str) or not name.strip():
        return None
    asked = _folded(name[:_MOST])
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(_folded(each[:_MOST]), each)
    if asked in folded:
        return folded[asked]
    close = difflib.get_close_matches(asked, folded, 1, cutoff)
    close += [each for each in folded if len(asked) >= _PART and asked in each]
    return folded[close[0]] if close else None


_PART: Final = 3
"""Characters; shorter texts are parts of too many names."""


def _folded(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def meant(name: object, known: Iterable[str], *, quotes: bool = False, cutoff: float = 0.6) -> str:
    """The hint that follows a name which is refused: `` (did you mean X?)``, or nothing; X in ``quotes`` for an id."""
    near = nearest(name, known, cutoff=cutoff)
    if near is None:
        return ""
    return f" (did you mean {quoted(near, 64) if quotes else shown(near, 64)}?)"


def in_words(names: Sequence[str], word: str = "and") -> str:
    """At least one name, as a sentence lists them: ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


_EPOCH: Final = 10**18
"""Nanoseconds.  Later times are counted from 1970 on, earlier ones from when some machine was started."""


def moment(nanoseconds: int, digits: int = 3) -> str:
    """A time of a history, rounded down: ``2026-03-01 03:12:04.250Z``, or ``12.250s`` if it is none of the calendar."""
    seconds, rest = divmod(nanoseconds, 10**9)
    fraction = f".{rest:09d}"[: digits + 1] if digits else ""
    if nanoseconds < _EPOCH:
        return f"{seconds}{fraction}s"
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}{fraction}Z"


_SIZE = re.compile(r"(\d{1,18}) *(?:([KMGT])i?)?B?", re.IGNORECASE | re.ASCII)
"""A number with so many digits fits into 64 bits."""


def parse_size(text: str) -> int | None:
    """Return a size in bytes with a prefix of 1,024 (``512MiB``, ``8G``, ``4096``); ``None`` for another form."""
    found = _SIZE.fullmatch(text)
    return None if found is None else int(found[1]) << 10 * (" KMGT".index(found[2].upper()) if found[2] else 0)
