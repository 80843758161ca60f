"""The word problem of lemma 3: can messages stand in a row so that nothing that they or the system would do can be?

A *letter* is what counts of the state of one message, while the system is in one state.  Sets of events are bits.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ackfsm.unbounded._reasons import NotProvedError

__all__ = ["Letter", "best_letters", "find_word", "letters_at_rest", "word_exists"]

_MOST = 400
"""A search for a word that keeps more beginnings than this is given up, and nothing is concluded."""


class Letter(NamedTuple):
    """What a message in a state means for others at rest.

    ``needs`` are its own events that some other message has to refuse; ``later``, ``earlier`` and ``system`` are the
    events of a later message, of an earlier one and of the system that it refuses itself; ``counted`` the counters of
    which it holds a part.  It is of one ``kind`` (a bit), and nothing of the kinds ``bars_later`` stands behind it, nor
    of ``bars_earlier`` before it.
    """

    needs: int
    later: int
    earlier: int
    system: int
    counted: int
    kind: int = 0
    bars_later: int = 0
    bars_earlier: int = 0

    def limited(self, asked: int, system: int, counted: int) -> Letter:
        """What it is, if nothing counts but the events ``asked`` of messages and ``system``, and these counters."""
        return Letter(
            self.needs,
            self.later & asked,
            self.earlier & asked,
            self.system & system,
            self.counted & counted,
            self.kind,
            self.bars_later,
            self.bars_earlier,
        )

    def is_as_good_as(self, other: Letter) -> bool:
        """Whether it needs no more, refuses and holds no less, and stands wherever the other one does, as often."""
        return not (
            self.needs & ~other.needs
            or other.later & ~self.later
            or other.earlier & ~self.earlier
            or other.system & ~self.system
            or other.counted & ~self.counted
            or self.bars_later & ~other.bars_later
            or self.bars_earlier & ~other.bars_earlier
            or (self.is_single and not other.is_single)
        )

    @property
    def is_single(self) -> bool:
        """Whether a word has one of its kind at most."""
        return bool(self.bars_later & self.kind)


class _Scan(NamedTuple):
    """What is known of the letters read so far, from left to right.

    ``refused`` are the events that they refuse to what comes, ``owed`` those of theirs that what comes has to refuse;
    nothing that comes is of a kind that is ``barred``.
    """

    refused: int
    owed: int
    system: int
    counted: int
    barred: int = 0

    def is_as_good_as(self, other: _Scan) -> bool:
        """Whether whatever completes ``other`` completes this one: nothing more is owed, nothing less is met."""
        return not (
            other.refused & ~self.refused
            or self.owed & ~other.owed
            or other.system & ~self.system
            or other.counted & ~self.counted
            or self.barred & ~other.barred
        )

    def read(self, letter: Letter) -> _Scan:
        return _Scan(
            self.refused | letter.later,
            (self.owed & ~letter.earlier) | (letter.needs & ~self.refused),
            self.system | letter.system,
            self.counted | letter.counted,
            self.barred | letter.bars_later,
        )


def word_exists(
    left: Collection[Letter], marked: Letter, right: Collection[Letter], *, system: int, counted: int
) -> bool:
    """Whether :func:`find_word` finds a word."""
    return find_word(left, marked, right, system=system, counted=counted) is not None


def find_word(
    left: Collection[Letter], marked: Letter, right: Collection[Letter], *, system: int, counted: int
) -> frozenset[Letter] | None:
    """The letters beside ``marked`` of a word at rest: some of ``left``, then ``marked``, then some of ``right``.

    At rest is a word in which each letter's needs are refused by a letter on the proper side of it, all events
    ``system`` are refused by some letter, and all counters ``counted`` are held by some letter, and no letter stands
    where another one bars its kind.  ``None`` if there is none.

    Raises :class:`NotProvedError` where the search takes too long.
    """
    asked = functools.reduce(operator.or_, (letter.needs for letter in (marked, *left, *right)), 0)
    whole = {letter.limited(asked, system, counted): letter for letter in (*left, *right)}
    left, right = ({letter.limited(asked, system, counted) for letter in letters} for letters in (left, right))
    left, right = _useful(left, marked, right)
    if not _conceivable(left, marked, right, system, counted):
        return None
    beginnings = _best({_Scan(0, 0, 0, 0): frozenset()}, left)
    first = {scan.read(marked): letters for scan, letters in beginnings.items() if not scan.barred & marked.kind}
    for scan, letters in _best(first, right).items():
        if not scan.owed and scan.system & system == system and scan.counted & counted == counted:
            return frozenset(whole[letter] for letter in letters)
    return None


def _useful(
    left: Collection[Letter], marked: Letter, right: Collection[Letter]
) -> tuple[Sequence[Letter], Sequence[Letter]]:
    """The letters that may be in a word: whose needs others can refuse, and which no other letter is as good as."""
    before, behind = list(left), list(right)
    while True:
        every = (*before, marked, *behind)
        by_left, by_all = _later([*before, marked, *behind]), _earlier(every)
        kept = [letter for letter in before if not letter.needs & ~(_later(before) | by_all)]
        kept_behind = [letter for letter in behind if not letter.needs & ~(by_left | _earlier(behind))]
        if len(kept) == len(before) and len(kept_behind) == len(behind):
            return best_letters(before), best_letters(behind)
        before, behind = kept, kept_behind


def _later(letters: Collection[Letter]) -> int:
    return functools.reduce(operator.or_, (letter.later for letter in letters), 0)


def _earlier(letters: Collection[Letter]) -> int:
    return functools.reduce(operator.or_, (letter.earlier for letter in letters), 0)


def letters_at_rest(letters: Collection[Letter], others: Collection[Letter]) -> Collection[Letter]:
    """Those of ``letters`` whose needs ``others``, on either side, may refuse.

    If they are the same, only those are left whose needs others that are left may refuse.
    """
    while True:
        refused = _later(others) | _earlier(others)
        kept = [letter for letter in letters if not letter.needs & ~refused]
        if letters is not others or len(kept) == len(letters):
            return kept
        letters = others = kept


def best_letters(letters: Iterable[Letter]) -> Sequence[Letter]:
    """Those to which no other one is preferable: any word stays at rest with a preferable letter in its place."""
    found: list[Letter] = []
    for letter in letters:
        if not any(other.is_as_good_as(letter) for other in found):
            found = [other for other in found if not letter.is_as_good_as(other)]
            found.append(letter)
    return found


def _conceivable(
    left: Collection[Letter], marked: Letter, right: Collection[Letter], system: int, counted: int
) -> bool:
    """Whether the letters can do it if their order and their own needs are left out of account."""
    for letter in (marked, *left, *right):
        system &= ~letter.system
        counted &= ~letter.counted
    return not (system or counted or marked.needs & ~(_later(left) | _earlier(right)))


def _best(start: Mapping[_Scan, frozenset[Letter]], letters: Collection[Letter]) -> Mapping[_Scan, frozenset[Letter]]:
    """What reading any of ``letters``, any number of times, leads to, but for what something else is as good as.

    With each the letters that were read.
    """
    found = dict(start)
    new = list(start)
    while new:
        scan = new.pop()
        if scan not in found:
            continue
        for letter in letters:
            if scan.barred & letter.kind:
                continue
            after = scan.read(letter)
            if not any(other.is_as_good_as(after) for other in found):
                read = found[scan] | {letter}
                found = {other: those for other, those in found.items() if not after.is_as_good_as(other)}
                found[after] = read
                new.append(after)
                if scan not in found:
                    break
        if len(found) > _MOST:
            raise NotProvedError(f"the search for messages at rest has come to {_MOST:,} beginnings of words")
    return found
