"""The entries of a journal, and the errors of journals."""

from __future__ import annotations

import enum
import struct
from typing import TypeAlias

from ackfsm.terms import AckfsmError, InputError


class Kind(enum.IntEnum):
    """The kind of an entry.

    An entry takes effect at once; one with a ``transaction`` takes effect with its ``COMMIT``, atomically with all
    others of that transaction, or not at all.

    * ``STORE key data``: the copy ``key`` is stored.
    * ``REMOVE key``: the copy is removed.
    * ``COMMIT key``: the transaction with this number has committed.
    * ``MARK key data``: the copy has been sent to a consumer; ``data`` is the number of attempts (:data:`ATTEMPTS`),
      0 if none counts.
    * ``REMEMBER key data``: the duplicate-id ``data`` is known.
    """

    STORE = 1
    REMOVE = 2
    COMMIT = 3
    MARK = 4
    REMEMBER = 5


Entry: TypeAlias = tuple[int, int, bytes, int]
"""Kind, key, data, transaction (0 for none)."""

ATTEMPTS = struct.Struct("<I")
"""The data of a ``MARK``: how often the copy has been sent to a consumer."""

NUMBERS = 2**63
"""Keys and transaction numbers are below this."""

LARGEST = 2**30
"""The data of one entry is at most this long, in bytes."""


class JournalFailure(AckfsmError):  # noqa: N818 - the fault `journal_failure` of the vocabulary
    """Stable storage has failed, so nothing more can be confirmed; open the journal again to see its entries.

    Nothing is damaged: what was confirmed is there, and a later opening may succeed.  ``full`` is true if there was
    no room left.
    """

    def __init__(self, message: str, *, full: bool = False) -> None:
        super().__init__(message)
        self.full = full


class JournalDamaged(InputError):  # noqa: N818 - it says what the journal is
    """Something that had been on stable storage is missing or wrong; the message has place and remedy."""


def newer(name: str, found: object, known: int) -> InputError:
    """The error for a journal of a newer format."""
    return InputError(
        f"{name}: it is of format {found}, and this version of ackfsm reads 1 to {known}; use the version that wrote"
        " it or, if none has, restore it from a copy"
    )


def check(kind: int, key: int, data: object, transaction: int) -> None:
    """Raise :class:`InputError` unless these make an entry."""
    if not Kind.STORE <= kind <= Kind.REMEMBER:
        raise InputError(f"there is no kind of entry {kind!r}; the kinds are {', '.join(Kind.__members__)}")
    if not (0 <= key < NUMBERS and 0 <= transaction < NUMBERS):
        raise InputError(f"key {key} or transaction {transaction} is no number from 0 to 2**63 - 1; number from 1")
    if not isinstance(data, bytes) or len(data) > LARGEST:
        raise InputError(f"the data of an entry is at most {LARGEST:,} bytes, and bytes; split what is larger")
    if kind == Kind.COMMIT and (transaction or not key):
        raise InputError("a COMMIT names its transaction as its key, from 1, and is in no other transaction")
    if kind == Kind.MARK and len(data) != ATTEMPTS.size:
        raise InputError("the data of a MARK is the number of attempts; make it with ATTEMPTS.pack(number)")
