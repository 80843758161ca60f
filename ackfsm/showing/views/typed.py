"""Commands that a person can copy into a shell: quoted so that a shell reads the same words, on lines that fit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rich.measure import Measurement
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

_LONGEST: Final = 64
"""Characters of a word that somebody may be asked to type."""


def can_be_typed(word: str) -> bool:
    """Return whether ``word`` is short and printable, so that a command may contain it."""
    return 0 < len(word) <= _LONGEST and word.isprintable() and not word.startswith("-")


def in_shell(word: str) -> str:
    """Return ``word`` as bash, zsh and ksh read it; unprintable characters are escaped."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte of a file name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"  # noqa: PLR2004 - ASCII


def lines_in_shell(words: Sequence[str], width: int) -> list[str]:
    """The command as lines of at most ``width`` characters (20 or more), each but the last continued with a backslash.

    Lines are broken between words, and inside a word that is longer than a line: a shell joins both.
    """
    lines = [""]
    for word in words:
        typed = in_shell(word)
        if lines[-1] and len(lines[-1]) + 1 + len(typed) <= width - _CONTINUED:
            lines[-1] += f" {typed}"
        elif len(typed) <= width - _CONTINUED - len(_INDENT):
            lines = [*lines[:-1], *_broken(lines[-1]), f"{_INDENT if lines[-1] else ''}{typed}"]
        else:
            first, *others = _parts(word, width - 1)
            lines = [*lines[:-1], *_broken(lines[-1]), *(f"{part}\\" for part in (first, *others)[:-1])]
            lines.append((first, *others)[-1])
    return lines


_CONTINUED: Final = len(" \\")
_INDENT: Final = "    "


def _broken(line: str) -> list[str]:
    """A line that is continued with another word, if there is anything on it."""
    return [f"{line} \\"] if line else []


def _parts(word: str, width: int) -> Iterator[str]:
    """``word`` in pieces, each quoted on its own, that a shell joins."""
    size = max(1, (width - 3) // 10)
    size = width - 3 if word.isprintable() and "'" not in word else size
    yield from (in_shell(word[begin : begin + size]) for begin in range(0, len(word), size))


class Command:
    """A command on a screen: it is never cut or folded, but broken so that it can still be copied."""

    def __init__(self, words: Sequence[str], indent: int = 0, style: str = "bold") -> None:
        self._words = tuple(words)
        self._indent = indent
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for line in lines_in_shell(self._words, max(20, options.max_width - self._indent)):
            yield Text(f"{' ' * self._indent}{line}", style=self._style, no_wrap=True, overflow="ignore")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(20, options.max_width)
