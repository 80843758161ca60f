"""Lines of JSON to columns in one pass over their bytes, compiled by Numba, for the plain shape alone.

A plain line is one object whose members have names of the format, each once, and values of their kinds: text without
escapes, whole numbers without fraction or exponent, ``true``, ``false``, ``null``.  What else there is, and what is
wrong with it, :mod:`ackfsm.history.lines` says; nothing is refused here.  Bytes are looked at in words of eight.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ackfsm.history.format import FIELDS, Kind
from ackfsm.history.kernel import mix
from ackfsm.history.loops import compiled

CODED: Final = tuple(name for name, kind in FIELDS.items() if kind is Kind.TEXT and name != "error")
"""The fields of which the texts are numbered, in the order of the columns."""

NOT_PLAIN: Final = -1
"""The ``t`` of a line that is not plain."""

_WORD: Final = 8
_COUNT: Final = len(FIELDS)
_T, _REDELIVERED, _DELIVERY_COUNT, _PRIORITY, _ERROR = map(
    list(FIELDS).index, ("t", "redelivered", "delivery_count", "priority", "error")
)
_COLUMN: Final = np.array([CODED.index(name) if name in CODED else -1 for name in FIELDS])
_TEXT, _WHOLE, _FLAG = 0, 1, 2
_KIND: Final = np.array([{Kind.TEXT: _TEXT, Kind.WHOLE: _WHOLE, Kind.FLAG: _FLAG}[kind] for kind in FIELDS.values()])


def _words(texts: list[bytes]) -> Any:
    return np.frombuffer(b"".join(text.ljust(2 * _WORD, b"\0") for text in texts), np.uint64).reshape(-1, 2).copy()


_KEYS: Final = _words([f'{name}"'.encode() for name in FIELDS])
_KEY_MASKS: Final = _words([b"\xff" * (len(name) + 1) for name in FIELDS])
_KEY_LENGTHS: Final = np.array([len(name) + 1 for name in FIELDS])

_NULL, _TRUE, _FALSE = (np.frombuffer(text, np.uint32)[0].astype(np.uint64) for text in (b"null", b"true", b"alse"))
_HALF: Final = np.uint64(0xFFFFFFFF)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGHS: Final = np.uint64(0x8080808080808080)
_QUOTES: Final = np.uint64(0x2222222222222222)
_BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES: Final = np.uint64(0x2020202020202020)
_U0, _U1, _U3, _U7, _U10, _U32, _U56, _U63 = map(np.uint64, (0, 1, 3, 7, 10, 32, 56, 63))
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_DIGITS: Final = 19
_MOST: Final = np.uint64(2**63 - 1)

_NEWLINE, _QUOTE, _COMMA, _COLON, _MINUS, _OPEN, _CLOSE = b'\n",:-{}'
_ZERO, _NINE, _SMALL_F, _SPACE, _TAB, _RETURN = b"09f \t\r"


class Text:
    """Lines, as words and as the bytes of these; a line feed and zeros follow."""

    __slots__ = ("raw", "size", "words")

    def __init__(self, size: int) -> None:
        """Room for so many bytes."""
        self.size = size
        self.words = np.empty(size // _WORD + 4, np.uint64)
        self.raw = self.words.view(np.uint8)
        self.raw[size:] = 0
        self.raw[size] = _NEWLINE

    @staticmethod
    def of(data: bytes) -> Text:
        """A copy of ``data``."""
        text = Text(len(data))
        text.raw[: text.size] = np.frombuffer(data, np.uint8)
        return text

    def __getitem__(self, places: slice) -> bytes:
        return bytes(self.raw[: self.size][places].data)

    def lines(self) -> int:
        """How many line feeds there are."""
        return int(count_lines(self.raw, self.size))


@compiled
def count_lines(raw: Any, size: Any) -> Any:
    """How many line feeds stand in ``size`` bytes."""
    found = 0
    for place in range(size):
        found += raw[place] == _NEWLINE
    return found


@compiled
def word_at(words: Any, place: Any) -> Any:
    """The eight bytes from ``place`` on."""
    at, shift = np.uint64(place) >> _U3, (np.uint64(place) & _U7) << _U3
    return (words[at] >> shift) | ((words[at + _U1] << _U1) << (_U63 - shift))


@compiled
def byte_at(raw: Any, place: Any) -> Any:
    """The byte at ``place``, which Numba need not suspect of being negative."""
    return raw[np.uint64(place)]


@compiled
def after_blanks(raw: Any, place: Any) -> Any:
    """The first place that has no blank."""
    byte = byte_at(raw, place)
    while byte <= _SPACE and byte in (_SPACE, _TAB, _RETURN):
        place += 1
        byte = byte_at(raw, place)
    return place


@compiled
def end_of_line(raw: Any, place: Any) -> Any:
    """The first place that has a line feed."""
    while byte_at(raw, place) != _NEWLINE:
        place += 1
    return place


@compiled
def end_of_text(words: Any, raw: Any, place: Any) -> Any:
    """The place of the quote that ends the text from ``place`` on, or -1; a hash of it, and bits if it is not ASCII."""
    key, wide, begin = _U0, _U0, place
    while True:
        word = word_at(words, place)
        quote, backslash = word ^ _QUOTES, word ^ _BACKSLASHES
        # Above the lowest bit, which is right, there may be others that are not.
        stops = (((quote - _ONES) & ~quote) | ((backslash - _ONES) & ~backslash) | ((word - _SPACES) & ~word)) & _HIGHS
        if stops == _U0:
            wide |= word & _HIGHS
            key = (key ^ word) * _FACTOR
            key ^= key >> _U32
            place += _WORD
            continue
        lowest = stops & (~stops + _U1)
        word &= (lowest >> _U7) - _U1
        place += np.int64((((lowest - _U1) & _ONES) * _ONES) >> _U56) - 1
        if byte_at(raw, place) != _QUOTE:
            place = -1
        return place, mix(key ^ word ^ (np.uint64(place - begin) << _U56)), wide | (word & _HIGHS)


@compiled
def whole_at(raw: Any, place: Any) -> Any:
    """The number at ``place`` and the place after it, which is -1 if it is not plain."""
    negative = byte_at(raw, place) == _MINUS
    place += negative
    begin, number = place, _U0
    while _ZERO <= byte_at(raw, place) <= _NINE and place - begin < _DIGITS:
        number = number * _U10 + np.uint64(byte_at(raw, place) - _ZERO)
        place += 1
    length = place - begin
    if length == 0 or number > _MOST or (length > 1 and byte_at(raw, begin) == _ZERO):
        return np.int64(0), -1
    found = np.int64(number)
    return (-found if negative else found), place


@compiled
def field_at(words: Any, place: Any, expected: Any) -> Any:
    """The number of the field whose name, with the quote after it, stands at ``place``, or -1."""
    first, second = word_at(words, place), word_at(words, place + _WORD)
    for turn in range(_COUNT + 1):
        field = expected if turn == 0 else turn - 1
        differs = (first ^ _KEYS[field, 0]) & _KEY_MASKS[field, 0]
        if differs | ((second ^ _KEYS[field, 1]) & _KEY_MASKS[field, 1]) == _U0:
            return field
    return -1


@compiled
def scan_line(  # noqa: C901, PLR0911, PLR0912, PLR0913, PLR0917 - a line, and what is found in it
    words: Any, raw: Any, place: Any, following: Any, values: Any, texts: Any, keys: Any
) -> Any:
    """Look at the line whose object begins at ``place``; returns the place of its line feed, or -1 if it is not plain.

    Also returns which fields it has, as bits, and bits if it is not ASCII.  ``values`` gets the numbers of the fields,
    ``texts`` begin and length, ``keys`` hashes; ``following`` has for each field the one that came after it last.
    """
    seen, present, wide = 0, 0, _U0
    last = _COUNT
    while True:
        place = after_blanks(raw, place + 1)
        if byte_at(raw, place) != _QUOTE:
            return -1, present, wide
        field = field_at(words, place + 1, following[last])
        if field < 0 or seen >> field & 1:
            return -1, present, wide
        seen |= 1 << field
        following[last] = field
        last = field
        place = after_blanks(raw, place + 1 + _KEY_LENGTHS[field])
        if byte_at(raw, place) != _COLON:
            return -1, present, wide
        place = after_blanks(raw, place + 1)
        kind = _KIND[field]
        if kind == _TEXT and byte_at(raw, place) == _QUOTE:
            end, key, high = end_of_text(words, raw, place + 1)
            if end < 0:
                return -1, present, wide
            texts[field, 0], texts[field, 1], keys[field] = place + 1, end - place - 1, key
            wide |= high
            present |= 1 << field
            place = end + 1
        elif word_at(words, place) & _HALF == _NULL:
            place += 4
        elif kind == _WHOLE:
            values[field], place = whole_at(raw, place)
            if place < 0:
                return -1, present, wide
            present |= 1 << field
        elif kind == _FLAG and word_at(words, place) & _HALF == _TRUE:
            values[field], present, place = 1, present | 1 << field, place + 4
        elif kind == _FLAG and byte_at(raw, place) == _SMALL_F and word_at(words, place + 1) & _HALF == _FALSE:
            values[field], present, place = 0, present | 1 << field, place + 5
        else:
            return -1, present, wide
        place = after_blanks(raw, place)
        if byte_at(raw, place) == _CLOSE:
            place = after_blanks(raw, place + 1)
            return (place if byte_at(raw, place) == _NEWLINE else -1), present, wide
        if byte_at(raw, place) != _COMMA:
            return -1, present, wide


@compiled
def same_text(words: Any, one: Any, other: Any, length: Any) -> Any:
    """Whether the same bytes stand at two places."""
    while length >= _WORD:
        if word_at(words, one) != word_at(words, other):
            return False
        one, other, length = one + _WORD, other + _WORD, length - _WORD
    return (word_at(words, one) ^ word_at(words, other)) & ((_U1 << np.uint64(8 * length)) - _U1) == _U0


@compiled
def slot_of(  # noqa: PLR0913, PLR0917 - a text, and the table
    words: Any, key: Any, column: Any, begin: Any, length: Any, slots: Any, names: Any, hashes: Any
) -> Any:
    """Where in the open table ``slots`` a text of a column is, or would be."""
    mask = np.uint64(len(slots) - 1)
    slot = key & mask
    while slots[slot] >= 0:
        name = slots[slot]
        found = hashes[name] == key and names[name, 1] == length and names[name, 2] == column
        if found and same_text(words, names[name, 0], begin, length):
            break
        slot = (slot + _U1) & mask
    return slot


@compiled
def grown(slots: Any, names: Any, hashes: Any, count: Any) -> Any:
    """Twice as large tables with the same in them."""
    more = np.full(2 * len(slots), -1, np.int32)
    mask = np.uint64(len(more) - 1)
    for name in range(count):
        slot = hashes[name] & mask
        while more[slot] >= 0:
            slot = (slot + _U1) & mask
        more[slot] = name
    names_more = np.empty((len(slots), names.shape[1]), np.int64)
    names_more[:count] = names[:count]
    hashes_more = np.empty(len(slots), np.uint64)
    hashes_more[:count] = hashes[:count]
    return more, names_more, hashes_more


@compiled
def number_texts(  # noqa: PLR0913, PLR0917 - the texts of a line, and the table
    words: Any, present: Any, texts: Any, keys: Any, slots: Any, names: Any, hashes: Any, counts: Any, row: Any
) -> None:
    """Write the numbers of a line's texts into ``row`` and add new texts; ``counts`` ends with their number."""
    for field in range(_COUNT):
        column = _COLUMN[field]
        if column < 0:
            continue
        if not present >> field & 1:
            row[column] = -1
            continue
        begin, length, key = texts[field, 0], texts[field, 1], keys[field] + np.uint64(column) * _FACTOR
        slot = slot_of(words, key, column, begin, length, slots, names, hashes)
        if slots[slot] < 0:
            new = counts[-1]
            slots[slot], hashes[new] = new, key
            names[new, 0], names[new, 1], names[new, 2], names[new, 3] = begin, length, column, counts[column]
            counts[-1] = new + 1
            counts[column] += 1
        row[column] = names[slots[slot], 3]


@compiled
def scan(  # noqa: PLR0913, PLR0917 - the text, and the columns
    words: Any, raw: Any, size: Any, numbers: Any, flags: Any, codes: Any
) -> Any:
    """Scan all lines that are not blank in ``size`` bytes of a :class:`Text`.

    Args:
        words: the bytes.
        raw: the bytes.
        size: how many there are.
        numbers: gets of each line ``t`` (:data:`NOT_PLAIN` if it is not), ``delivery_count``, its number from 0, its
            first place and that of its line feed, and ``priority``.
        flags: gets of each line ``redelivered``, whether it has an ``error``, and whether it is not ASCII.
        codes: gets of each line, in a row, the numbers of its texts in the order of :data:`CODED`; -1 for none.

    Returns:
        how many lines there are; of each text in the order of their first lines its place, length, column and number in
        that column; and how many texts each column has.
    """
    values, texts, keys = np.zeros(_COUNT, np.int64), np.zeros((_COUNT, 2), np.int64), np.zeros(_COUNT, np.uint64)
    following = np.zeros(_COUNT + 1, np.int64)
    slots, names, hashes = np.full(1 << 10, -1, np.int32), np.empty((1 << 9, 4), np.int64), np.empty(1 << 9, np.uint64)
    counts = np.zeros(codes.shape[1] + 1, np.int64)
    row, line, begin = 0, 0, 0
    while begin < size:
        place = after_blanks(raw, begin)
        if byte_at(raw, place) == _NEWLINE:
            begin, line = place + 1, line + 1
            continue
        end, present, wide = -1, 0, _U0
        if byte_at(raw, place) == _OPEN:
            end, present, wide = scan_line(words, raw, place, following, values, texts, keys)
        negative = present >> _DELIVERY_COUNT & 1 and values[_DELIVERY_COUNT] < 0
        if end < 0 or negative or (present >> _PRIORITY & 1 and values[_PRIORITY] < 0):
            end, present = end_of_line(raw, begin), 0
        if counts[-1] + _COUNT > len(names):
            slots, names, hashes = grown(slots, names, hashes, counts[-1])
        number_texts(words, present, texts, keys, slots, names, hashes, counts, codes[row])
        numbers[0, row] = values[_T] if present >> _T & 1 else NOT_PLAIN
        numbers[1, row] = values[_DELIVERY_COUNT] if present >> _DELIVERY_COUNT & 1 else -1
        numbers[2, row], numbers[3, row], numbers[4, row] = line, begin, end
        numbers[5, row] = values[_PRIORITY] if present >> _PRIORITY & 1 else -1
        flags[0, row] = values[_REDELIVERED] if present >> _REDELIVERED & 1 else -1
        flags[1, row] = present >> _ERROR & 1
        flags[2, row] = wide != _U0
        row, line, begin = row + 1, line + 1, end + 1
    return row, names[: counts[-1]], counts


@compiled
def copy_names(raw: Any, names: Any, column: Any, offsets: Any, data: Any) -> None:
    """Copy the texts of a column, one after the other, into ``data``; where each begins and ends into ``offsets``."""
    found, filled = 0, 0
    for name in range(len(names)):
        if names[name, 2] == column:
            begin, length = names[name, 0], names[name, 1]
            for place in range(length):
                data[filled + place] = raw[begin + place]
            filled += length
            found += 1
            offsets[found] = filled
