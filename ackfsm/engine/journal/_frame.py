"""The format of a segment: a header, then frames; a frame has the entries of one write, column by column.

A segment header, little endian: magic and format (8 bytes), checksum, flags (1: everything before it is in it) and
salt (the other 31 bits), epoch, sequence number, position of its first entry, first key that is free when it begins.
Format 2 has no salt.  Format 1 has no file ``watermark`` beside it either.  They differ in nothing else.

A frame: magic and kind (4 bytes), checksum, length of the columns, number of entries, epoch, position of the first
entry, and the position below which everything was known to be on stable storage as it was written.  Then the columns:
kinds (1 byte each), lengths of the data (4), keys (8), in a frame of kind ``T`` transactions (8), and the data end to
end.  The checksum is over all of it but itself, and begins with the salt, so that no data that are stored can look like
a frame.  A seal (``S``) and the mark of a clean end (``C``) have no entries.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import struct
import zlib
from collections.abc import Sequence

from ackfsm.engine.journal._entry import Entry

__all__ = [
    "CLOSED",
    "KNOWN",
    "MAGIC",
    "PLAIN",
    "SEAL",
    "SEGMENT",
    "Frame",
    "SegmentHeader",
    "encode",
    "frame_at",
    "mark",
    "newer_format",
]

MAGIC = b"\xf5AJ"
PLAIN, TRANSACTED, SEAL, CLOSED = _KINDS = b"FTSC"
_MARKS = b"SC"
_FRAME = struct.Struct("<3sBIIIIQQ")
_CHECKED_FROM = 8
"""Magic, kind and checksum come before what the checksum runs over; the checksum begins with the kind."""

_SEGMENT_MAGICS = {1: b"ackfsmJ1", 2: b"ackfsmJ2", 3: b"ackfsmJ3"}
KNOWN = 3
"""The format that is written; all older ones are read."""
_SALTED = 3
_MAGIC_OF_ANY = re.compile(rb"ackfsmJ([1-9])")
SEGMENT = struct.Struct("<8sIIIQQQ")
_SEGMENT_CHECKED_FROM = 12


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The beginning of a segment; a ``base`` needs no segment before it."""

    base: bool
    epoch: int
    sequence: int
    first: int
    next_key: int
    salt: int = 0
    format: int = KNOWN

    def encode(self) -> bytes:
        """Its bytes."""
        magic = _SEGMENT_MAGICS[self.format]
        data = SEGMENT.pack(magic, 0, self.base | self.salt << 1, self.epoch, self.sequence, self.first, self.next_key)
        checksum = _header_checksum(data, self.format)
        return data[:8] + checksum.to_bytes(4, "little") + data[_SEGMENT_CHECKED_FROM:]

    @classmethod
    def decode(cls, data: bytes) -> SegmentHeader | str:
        """Return the header at the start of ``data``, or its defect in words."""
        if len(data) < SEGMENT.size:
            return f"there are {len(data)} bytes, and a header has {SEGMENT.size}"
        magic, checksum, flags, epoch, sequence, first, next_key = SEGMENT.unpack_from(data)
        format_ = next((number for number, known in _SEGMENT_MAGICS.items() if known == magic), None)
        if format_ is None:
            return f"it does not begin as a segment of format {' or '.join(map(str, _SEGMENT_MAGICS))} does"
        if checksum != _header_checksum(data, format_) or (flags > 1 and format_ < _SALTED):
            return "the checksum of the header does not fit"
        return cls(bool(flags & 1), epoch, sequence, first, next_key, flags >> 1, format_)


def newer_format(data: bytes) -> int | None:
    """The format of a segment if this version does not know it; ``None`` also if only its number is damaged."""
    match = _MAGIC_OF_ANY.match(data)
    if match is None or len(data) < SEGMENT.size or int(match[1]) in _SEGMENT_MAGICS:
        return None
    checksum = int.from_bytes(data[8:_SEGMENT_CHECKED_FROM], "little")
    ours = checksum in {_header_checksum(data, format_) for format_ in _SEGMENT_MAGICS}
    return None if ours else int(match[1])


def _header_checksum(data: bytes, format_: int) -> int:
    """The checksum of all that follows and, from format 2 on, of the format."""
    return zlib.crc32(data[_SEGMENT_CHECKED_FROM : SEGMENT.size], 0 if format_ == 1 else format_)


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """A frame with a good checksum: its header, and the place of its columns in the file."""

    kind: int
    epoch: int
    position: int
    watermark: int
    count: int
    end: int
    _data: bytes
    _columns: int

    def entries(self) -> Sequence[Entry] | str:
        """Its entries, or why its columns do not fit together."""
        count, data, at = self.count, self._data, self._columns
        if self.kind not in _KINDS:
            return "it is of a kind of frame that this version does not know"
        if self.kind in _MARKS and self.end > at:
            return "a seal has no entries"
        transacted = self.kind == TRANSACTED
        begin = at + count * (21 if transacted else 13)
        if begin > self.end:
            return "its columns are longer than the frame"
        kinds, *numbers = struct.unpack_from(f"<{count}s{count}I{count}Q", data, at)
        lengths, keys = numbers[:count], numbers[count:]
        transactions = struct.unpack_from(f"<{count}Q", data, at + count * 13) if transacted else (0,) * count
        ends = list(itertools.accumulate(lengths, initial=begin))
        if ends[-1] != self.end:
            return "its columns do not end where the frame does"
        return [
            (kind, key, data[a:b], transaction)
            for kind, key, a, b, transaction in zip(kinds, keys, ends, ends[1:], transactions, strict=False)
        ]


def encode(epoch: int, position: int, watermark: int, entries: Sequence[Entry], salt: int = 0) -> bytes:
    """Return a frame of ``entries``, from ``position`` on, for a segment with this salt."""
    kinds, keys, data, transactions = zip(*entries, strict=True)
    count, kind = len(entries), PLAIN
    columns = struct.pack(f"<{count}s{count}I{count}Q", bytes(kinds), *map(len, data), *keys)
    if any(transactions):
        kind = TRANSACTED
        columns += struct.pack(f"<{count}Q", *transactions)
    body = b"".join([columns, *data])
    return _head(kind, epoch, position, watermark, count, body, salt) + body


def mark(kind: int, epoch: int, position: int, watermark: int, salt: int = 0) -> bytes:
    """A frame without entries: a seal, or the mark of a clean end."""
    return _head(kind, epoch, position, watermark, 0, b"", salt)


def _head(kind: int, epoch: int, position: int, watermark: int, count: int, body: bytes, salt: int) -> bytes:  # noqa: PLR0913, PLR0917
    plain = _FRAME.pack(MAGIC, kind, 0, len(body), count, epoch, position, watermark)
    checksum = _checksum(plain, body, salt)
    return plain[:4] + checksum.to_bytes(4, "little") + plain[_CHECKED_FROM:]


def _checksum(head: bytes, body: bytes | memoryview, salt: int) -> int:
    """The checksum of salt, kind, the rest of the head (length, count, epoch, position, watermark) and the columns."""
    return zlib.crc32(body, zlib.crc32(head[_CHECKED_FROM:], head[3] ^ salt << 1))


def frame_at(data: bytes, offset: int, salt: int = 0) -> Frame | str:
    """Return the frame at ``offset`` of a file with this salt, or the defect of the bytes there in words."""
    begin = offset + _FRAME.size
    if begin > len(data):
        return f"{len(data) - offset} bytes are no frame"
    magic, kind, checksum, length, count, epoch, position, watermark = _FRAME.unpack_from(data, offset)
    if magic != MAGIC:
        return "zeros" if not any(data[offset:]) else "no frame begins here"
    end = begin + length
    if end > len(data):
        return "the frame is longer than the file"
    if checksum != _checksum(data[offset:begin], memoryview(data)[begin:end], salt):
        return "the checksum does not fit"
    return Frame(kind, epoch, position, watermark, count, end, data, begin)
