"""Text that somebody else wrote (ids, queues, notes, file names, error messages), made fit to be shown.

What a history or a file name says is data: it must not move a cursor, clear a screen, end a line, forge a verdict or
fill a terminal with megabytes.  Whatever comes from outside goes through one of these on its way to a person.
"""

from __future__ import annotations

__all__ = ["on_one_line", "quoted", "shown"]

_MOST = 200
"""Characters of a text that are shown, by default; of a longer one the beginning and how long it is."""

_MOST_OF_A_SENTENCE = 2_000


def on_one_line(sentence: str) -> str:
    """A whole sentence of ours as it is printed: whatever text from outside it has, it is one line and not too long.

    As :func:`shown`, but backslashes stay: what was quoted in the sentence has been escaped before.
    """
    told = "".join(part if part == "\\" else _escaped(part) for part in sentence[:_MOST_OF_A_SENTENCE])
    return told if len(sentence) <= _MOST_OF_A_SENTENCE else f"{told}… ({len(sentence):,} characters)"


def shown(text: str, most: int = _MOST) -> str:
    """``text`` on one line: what is not printable is escaped as in a Python literal, what is long is cut.

    Control and format characters (also those that change the direction of writing), line ends, and the surrogates that
    stand for bytes that are no UTF-8 are not printable.  Backslashes are doubled, so different texts look different.
    """
    escaped = "".join(_escaped(character) for character in text[:most])
    return escaped if len(text) <= most else f"{escaped}… ({len(text):,} characters)"


def quoted(text: str, most: int = _MOST) -> str:
    """As :func:`shown`, in quotation marks, so that it is clear where the text begins and ends."""
    escaped = "".join("\\'" if character == "'" else _escaped(character) for character in text[:most])
    return f"'{escaped}'" if len(text) <= most else f"'{escaped}…' ({len(text):,} characters)"


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
