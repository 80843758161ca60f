"""A reader of EDN (extensible data notation) for streams: of whatever size the whole is, one value is held at a time.

It reads all that the printer of Clojure writes for plain data: ``nil``, booleans, numbers, strings, characters,
keywords, symbols, lists, vectors, maps, sets, tagged values (of which the tag is dropped), comments and what is
discarded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final


class EdnError(ValueError):
    """Text that is not EDN; ``line`` is the number of the line."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


class Symbol(str):
    """A symbol."""

    __slots__ = ()


class Keyword(str):
    """A keyword, without its colon."""

    __slots__ = ()


_TOKEN: Final = re.compile(
    r"""[\s,]+
    | (?P<comment> ;.* )
    | (?P<open> \#?\{ | [\[(] )
    | (?P<close> [\])}] )
    | (?P<string> "(?:[^"\\]|\\.)*" )
    | (?P<unended> " )
    | (?P<discard> \#_ )
    | (?P<special> \#\#(?:-?Inf|NaN) )
    | (?P<tag> \#[A-Za-z][^\s,\[\](){}";]* )
    | (?P<char> \\(?:u[0-9A-Fa-f]{4}|[a-z]+|.) )
    | (?P<keyword> :[^\s,\[\](){}";]+ )
    | (?P<number> [-+]?\d[^\s,\[\](){}";]* )
    | (?P<symbol> [^\s,\[\](){}";\#\\:]+[^\s,\[\](){}";\\]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/", "'": "'"}
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CHARACTERS: Final = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r", "backspace": "\b", "formfeed": "\f"}
_CONSTANTS: Final = {"nil": None, "true": True, "false": False}
_PAIRS: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_SEQUENCES: Final = ("[", "(")
_LONGEST: Final = 64 << 20
"""Characters that a string on several lines may have."""


class _Frame:
    """A collection that is open, or a prefix (tag, discard) that waits for its value."""

    __slots__ = ("items", "line", "opened")

    def __init__(self, opened: str, line: int) -> None:
        self.opened = opened
        self.line = line
        self.items: list[Any] = []

    @property
    def is_prefix(self) -> bool:
        return self.opened not in _PAIRS


def read_all(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """The values in numbered lines, each with the number of the line in which it begins.

    Where the whole is a vector or list, its elements are given, each as soon as it is read.  A map is a ``dict``, a set
    a ``frozenset``, a vector or list a ``tuple``.  Raises :class:`EdnError`; what came before it was given already.
    """
    stack: list[_Frame] = []
    number = 0
    for number, kind, text in _tokens(lines):
        if kind == "open" or kind in {"tag", "discard"}:
            stack.append(_Frame(text, number))
            continue
        line = number
        if kind == "close":
            frame = stack.pop() if stack else None
            if frame is None or _PAIRS.get(frame.opened) != text:
                raise EdnError(f"a {text} that closes nothing", number)
            if not stack and frame.opened in _SEQUENCES:
                continue  # the whole: its elements were given
            line = frame.line
            value = _collected(frame)
        else:
            value = _atom(kind, text, number)
        while stack and stack[-1].is_prefix:
            prefix = stack.pop()
            line = prefix.line
            if prefix.opened == "#_":
                break
        else:
            if not stack or (len(stack) == 1 and stack[0].opened in _SEQUENCES):
                yield line, value
            else:
                stack[-1].items.append(value)
    if stack:
        raise EdnError(f"it ends within a {stack[0].opened} that begins in line {stack[0].line:,}", number)


def _tokens(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Numbers of lines, kinds and texts of the tokens; blanks and comments are left out."""
    numbered = iter(lines)
    for number, first in numbered:
        text, place = first, 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise EdnError(f"{text[place : place + 20]!r} is not EDN", number)
            kind = found.lastgroup
            if kind == "unended":
                following = next(numbered, None)
                if following is None or len(text) > _LONGEST:
                    raise EdnError("a string that does not end", number)
                text = f"{text}\n{following[1]}"
                continue
            place = found.end()
            if kind is not None and kind != "comment":
                yield number, kind, found.group()


def _collected(frame: _Frame) -> Any:
    items = frame.items
    if frame.opened in _SEQUENCES:
        return tuple(items)
    try:
        if frame.opened == "#{":
            return frozenset(map(_frozen, items))
        if len(items) % 2:
            raise EdnError("a map with a key that has no value", frame.line)
        found = {_frozen(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
    except TypeError:
        raise EdnError("a key that cannot be one", frame.line) from None
    if len(found) * 2 < len(items):
        raise EdnError("a map that has a key twice", frame.line)
    return found


def _frozen(value: Any) -> Any:
    """A value that may be a key: maps become tuples of their pairs."""
    if isinstance(value, dict):
        return tuple(sorted(((key, _frozen(each)) for key, each in value.items()), key=repr))
    return tuple(map(_frozen, value)) if isinstance(value, tuple) else value


def _atom(kind: str, text: str, line: int) -> Any:
    if kind == "keyword":
        return Keyword(text[1:])
    if kind == "number":
        return _number(text, line)
    if kind == "string":
        return _ESCAPE.sub(_unescaped, text[1:-1]) if "\\" in text else text[1:-1]
    if kind == "symbol":
        return _CONSTANTS[text] if text in _CONSTANTS else Symbol(text)
    return float(text[2:].lower()) if kind == "special" else _character(text, line)


def _character(text: str, line: int) -> str:
    name = text[1:]
    if len(name) > 1 and name[0] == "u" and name not in _CHARACTERS:
        return chr(int(name[1:], 16))
    if len(name) > 1 and name not in _CHARACTERS:
        raise EdnError(f"{text!r} is no character", line)
    return _CHARACTERS.get(name, name)


def _unescaped(found: re.Match[str]) -> str:
    text = found.group(1)
    return chr(int(text[1:], 16)) if len(text) > 1 else _ESCAPES.get(text, text)


def _number(text: str, line: int) -> Any:
    try:
        if text.endswith("N"):
            return int(text[:-1])
        if text.endswith("M"):
            return Decimal(text[:-1])
        if "/" in text:
            return Fraction(text)
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except (ValueError, ArithmeticError):
        raise EdnError(f"{text!r} is no number", line) from None
