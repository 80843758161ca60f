"""Can messages stand in a row so that nothing happens any more, as Lemma 3 asks?  Read from right to left here.

What the letters that were read still lack is one integer, and the fewer of its bits are set the better.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_MOST = 5_000


class TooManyWordsError(Exception):
    """The search for a word was given up."""


class Letter(NamedTuple):
    """A message at rest, as sets of events: its own that others have to refuse, and what it does for others.

    ``for_later`` and ``for_earlier`` are events of a later and of an earlier message that it refuses; ``gives`` is what
    some letter of the word has to do, and it does: refuse an event of the system, hold a part of a counter.  It is of a
    ``kind`` (a bit), stands ``not_before`` letters of some kinds and ``not_behind`` those of some.
    """

    needs: int
    for_later: int
    for_earlier: int
    gives: int
    kind: int = 0
    not_before: int = 0
    not_behind: int = 0

    def serves(self, other: Letter) -> bool:
        """Whether it can stand wherever ``other`` can."""
        lacks = (self.needs & ~other.needs) | (other.for_later & ~self.for_later)
        lacks |= (other.for_earlier & ~self.for_earlier) | (other.gives & ~self.gives)
        lacks |= (self.not_before & ~other.not_before) | (self.not_behind & ~other.not_behind)
        is_once = self.not_before & self.kind and not other.not_before & other.kind
        return not lacks and not is_once


def can_rest(left: Iterable[Letter], marked: Letter, right: Iterable[Letter], owed: int) -> bool:
    """Whether letters of ``left``, then ``marked``, then letters of ``right`` can stand so that all needs are refused.

    All that is ``owed`` has to be given by some letter.  Raises :class:`TooManyWordsError` where that takes too long.
    """
    asked = _all((marked, *left, *right), "needs")
    before, behind = (_narrowed(side, asked, owed) for side in (left, right))
    before, behind = _possible(before, marked, behind)
    if owed & ~_all((marked, *before, *behind), "gives"):
        return False
    if marked.needs & ~(_all(before, "for_later") | _all(behind, "for_earlier")):
        return False
    reading = _Reading(asked, owed)
    begun = reading.closed({reading.start(owed)}, behind)
    ended = reading.closed({read for lacking in begun for read in reading.read(lacking, marked)}, before)
    return any(map(reading.lacks_nothing, ended))


def _all(letters: Iterable[Letter], field: str) -> int:
    return functools.reduce(operator.or_, (getattr(letter, field) for letter in letters), 0)


def _narrowed(letters: Iterable[Letter], asked: int, owed: int) -> list[Letter]:
    """The letters as far as something of what they do is asked for, without those that another one serves for."""
    distinct = {
        Letter(letter.needs, letter.for_later & asked, letter.for_earlier & asked, letter.gives & owed, *letter[4:])
        for letter in letters
    }
    best: list[Letter] = []
    for letter in sorted(distinct, key=lambda each: each.needs.bit_count()):
        if not any(other.serves(letter) for other in best):
            best = [other for other in best if not letter.serves(other)]
            best.append(letter)
    return best


def _possible(left: Sequence[Letter], marked: Letter, right: Sequence[Letter]) -> tuple[list[Letter], list[Letter]]:
    """Without letters with a need that no letter on the proper side refuses."""
    before, behind = list(left), list(right)
    while True:
        to_right = _all((*before, marked), "for_later")
        to_left = _all((marked, *behind), "for_earlier")
        kept = [
            each
            for each in before
            if not each.needs & ~(_all(before, "for_later") | _all(before, "for_earlier") | to_left)
        ]
        kept_behind = [
            each
            for each in behind
            if not each.needs & ~(to_right | _all(behind, "for_later") | _all(behind, "for_earlier"))
        ]
        if (len(kept), len(kept_behind)) == (len(before), len(behind)):
            return before, behind
        before, behind = kept, kept_behind


class _Reading:
    """What is lacking: events not refused yet to what stands before, needs not refused yet, what is owed still.

    And, as the highest bits, the kinds of letters that do not stand before those that were read.
    """

    def __init__(self, asked: int, owed: int) -> None:
        self._asked = asked
        self._width = max(1, asked.bit_length())
        self._events = (1 << self._width) - 1
        self._owed = (1 << owed.bit_length()) - 1
        self._kinds_at = 2 * self._width + owed.bit_length()

    def start(self, owed: int) -> int:
        """What is lacking before any letter was read."""
        return self._asked | owed << 2 * self._width

    def lacks_nothing(self, lacking: int) -> bool:
        """Whether no need and nothing that is owed is left."""
        return not lacking >> self._width & ((1 << self._kinds_at - self._width) - 1)

    def read(self, lacking: int, letter: Letter) -> Iterator[int]:
        """What is lacking with one more letter before all others; nothing if it does not stand there."""
        barred = lacking >> self._kinds_at
        if barred & letter.kind:
            return
        unrefused, needed = lacking & self._events, lacking >> self._width & self._events
        owed = lacking >> 2 * self._width & self._owed
        needed = (needed & ~letter.for_later) | (letter.needs & unrefused)
        found = (unrefused & ~letter.for_earlier) | needed << self._width | (owed & ~letter.gives) << 2 * self._width
        yield found | (barred | letter.not_behind) << self._kinds_at

    def closed(self, start: Iterable[int], letters: Sequence[Letter]) -> list[int]:
        """All that can be lacking after any number of ``letters``, but for what is no better than something else."""
        best: list[int] = []
        new = list(start)
        while new:
            lacking = new.pop()
            if any(not other & ~lacking for other in best):
                continue
            best = [other for other in best if lacking & ~other]
            best.append(lacking)
            if len(best) > _MOST:
                raise TooManyWordsError
            new += [read for letter in letters for read in self.read(lacking, letter)]
        return best
