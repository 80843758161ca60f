"""The word problem of lemma 3: can messages stand in a row so that nothing that they or the system would do can be?

A *letter* is what counts of the state of one message, while the system is in one state.  Sets of events are bits.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.unbounded._reasons import NotProvedError

_MOST = 100_000
"""A search for a word that tries more parts of words than this is given up, and nothing is concluded."""


class Letter(NamedTuple):
    """What a message in a state means for others at rest.

    ``needs`` are its own events that some other message has to refuse; ``later``, ``earlier`` and ``system`` are the
    events of a later message, of an earlier one and of the system that it refuses itself; ``counted`` the counters of
    which it holds a part.  It is of one ``kind`` (a bit), and nothing of the kinds ``bars_later`` stands behind it, nor
    of ``bars_earlier`` before it; letters of these kinds bar it likewise.
    """

    needs: int
    later: int
    earlier: int
    system: int
    counted: int
    kind: int = 0
    bars_later: int = 0
    bars_earlier: int = 0

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
    owed = _Owed(_all([marked, *left, *right], "needs"), system, counted)
    whole = {owed.met_by(letter): letter for letter in (*left, *right)}
    asking = owed.needed_by(marked)
    before = [each for each in {owed.met_by(letter) for letter in left} if not each.kind & asking.bars_earlier]
    behind = [each for each in {owed.met_by(letter) for letter in right} if not each.kind & asking.bars_later]
    before, marking, behind = map(list, _supported(before, [asking], behind))
    if not marking:
        return None
    letters = [*before, asking, *behind]
    needs, kinds = _all(letters, "needs"), _all(letters, "kind")
    narrowed = {_narrowed(letter, needs, kinds): whole[letter] for letter in (*before, *behind)}
    best_before, best_behind = (
        best_letters({_narrowed(letter, needs, kinds): None for letter in side}) for side in (before, behind)
    )
    word = _Search(best_before, asking, best_behind).word()
    return None if word is None else frozenset(narrowed[letter] for letter in word)


def _all(letters: Iterable[Letter], field: str) -> int:
    return functools.reduce(operator.or_, (getattr(letter, field) for letter in letters), 0)


class _Owed(NamedTuple):
    """What the system owes at rest, as needs of the marked letter, above the bits of what else is ``asked`` for.

    A letter that refuses an event of the system, or holds a part of a counter, refuses it to earlier and later ones.
    """

    asked: int
    system: int
    counted: int

    def met_by(self, letter: Letter) -> Letter:
        """A letter that refuses it; as one of no kind stands beside all, it gets a kind that nothing bars."""
        met = self._needs(letter.system, letter.counted)
        return Letter(
            needs=letter.needs,
            later=letter.later & self.asked | met,
            earlier=letter.earlier & self.asked | met,
            system=0,
            counted=0,
            kind=letter.kind << 1 or 1,
            bars_later=letter.bars_later << 1,
            bars_earlier=letter.bars_earlier << 1,
        )

    def needed_by(self, marked: Letter) -> Letter:
        """The marked letter, which needs what it does not do itself."""
        return self.met_by(marked)._replace(needs=marked.needs | self._needs(~marked.system, ~marked.counted))

    def _needs(self, system: int, counted: int) -> int:
        above = self.asked.bit_length()
        return (system & self.system) << above | (counted & self.counted) << above + self.system.bit_length()


def _narrowed(letter: Letter, needs: int, kinds: int) -> Letter:
    """A letter, if nothing counts but these needs and kinds."""
    return letter._replace(
        later=letter.later & needs,
        earlier=letter.earlier & needs,
        bars_later=letter.bars_later & kinds,
        bars_earlier=letter.bars_earlier & kinds,
    )


def supported(letters: Collection[Letter]) -> Sequence[Letter]:
    """Those of some letters, each of a kind, that may be in a word of them."""
    return _supported([], [], [*letters])[2]


def _supported(
    before: Sequence[Letter], marked: Sequence[Letter], behind: Sequence[Letter]
) -> Sequence[Sequence[Letter]]:
    """The letters of which each need is refused by some letter that may stand on the proper side of it.

    The other ones are in no word, and so is what needs them.
    """
    sides = [before, marked, behind]
    while True:
        kept: list[Sequence[Letter]] = []
        for at, side in enumerate(sides):
            others_alike = at != _MARKED
            left, right = sides[: at + others_alike], sides[at + 1 - others_alike :]
            to_later, to_earlier = _refusing(left, "later"), _refusing(right, "earlier")
            kept.append([letter for letter in side if _is_supported(letter, to_later, to_earlier)])
        if [*map(len, kept)] == [*map(len, sides)]:
            return sides
        sides = kept


_MARKED = 1
"""The side, of the three, that is one letter, which no word has twice."""


def _refusing(sides: Sequence[Sequence[Letter]], field: str) -> Mapping[int, int]:
    """For each event (a bit) the kinds of the letters that refuse it, to later or to earlier ones."""
    found: dict[int, int] = defaultdict(int)
    for side in sides:
        for letter in side:
            for event in _each(getattr(letter, field)):
                found[event] |= letter.kind
    return found


def _is_supported(letter: Letter, to_later: Mapping[int, int], to_earlier: Mapping[int, int]) -> bool:
    """Whether each need is refused by a kind that may stand before the letter, or by one that may stand behind it."""
    return all(
        to_later.get(event, 0) & ~letter.bars_earlier or to_earlier.get(event, 0) & ~letter.bars_later
        for event in _each(letter.needs)
    )


def _each(bits: int) -> Iterator[int]:
    """The bits that are set, each as a number with this one bit."""
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


class _Placed(NamedTuple):
    """A letter in a part of a word, and the events of which it is the first, and the last, that refuses them.

    No letter before it refuses the ones to later letters, and none behind it the other ones to earlier letters.
    """

    letter: Letter
    first_of: int
    last_of: int


class _Gap(NamedTuple):
    """A place between two letters of a part of a word: what one that is put there meets.

    Letters before it refuse some events ``to_later`` ones, those behind it others ``to_earlier`` ones; some kinds are
    ``barred``; and to be the first or the last one that refuses an event, a letter has the one that is here refuse it
    no more to later letters (``not_to_later``), or to earlier ones.
    """

    to_later: int
    to_earlier: int
    barred: int
    not_to_later: int
    not_to_earlier: int

    def takes(self, letter: Letter) -> bool:
        """Whether a letter may be put there."""
        return not (
            letter.kind & self.barred or letter.later & self.not_to_later or letter.earlier & self.not_to_earlier
        )


def _gaps(part: Sequence[_Placed]) -> list[_Gap]:
    """Before each letter of a part of a word, and behind the last one."""
    from_left = [(0, 0, 0)]
    for letter, _, last_of in part:
        later, barred, closed = from_left[-1]
        from_left.append((later | letter.later, barred | letter.bars_later, closed | last_of))
    from_right = [(0, 0, 0)]
    for letter, first_of, _ in reversed(part):
        earlier, barred, closed = from_right[-1]
        from_right.append((earlier | letter.earlier, barred | letter.bars_earlier, closed | first_of))
    return [
        _Gap(later, earlier, barred | also, first_of, last_of)
        for (later, barred, last_of), (earlier, also, first_of) in zip(from_left, reversed(from_right), strict=True)
    ]


class _Choice(NamedTuple):
    """One more letter for a part of a word: where it is put, for the sake of which event, and how it refuses it."""

    place: int
    letter: Letter
    event: int
    to_later: bool

    @property
    def placed(self) -> _Placed:
        """The letter in its place."""
        return _Placed(self.letter, self.event * self.to_later, self.event * (not self.to_later))


class _Search:
    """A search for a word from the marked letter on: each need of a part of a word is met by one more letter.

    Of the letters that meet it in a whole word, the first one before the letter in need, or the last one behind it, is
    put in; so a part of a word has two letters at most for each event, and the search ends.
    """

    def __init__(self, before: Sequence[Letter], marked: Letter, behind: Sequence[Letter]) -> None:
        self._marked = marked
        self._to_later, self._to_earlier = (
            [_by_event(side, field) for side in (before, behind)] for field in ("later", "earlier")
        )
        self._tried = 0

    def word(self) -> list[Letter] | None:
        """The letters beside the marked one of a word; ``None`` if there is none."""
        return self._completed((_Placed(self._marked, 0, 0),), 0)

    def _completed(self, part: tuple[_Placed, ...], marked: int) -> list[Letter] | None:
        """The other letters of a word with this part, whose marked letter is at ``marked``."""
        self._tried += 1
        if self._tried > _MOST:
            raise NotProvedError(f"the search for messages at rest has come to {_MOST:,} parts of words")
        choices = self._fewest_choices(part, marked)
        if choices is None:
            return [placed.letter for at, placed in enumerate(part) if at != marked]
        for choice in choices:
            longer = (*part[: choice.place], choice.placed, *part[choice.place :])
            word = self._completed(longer, marked + (choice.place <= marked))
            if word is not None:
                return word
        return None

    def _fewest_choices(self, part: Sequence[_Placed], marked: int) -> Sequence[_Choice] | None:
        """The choices for that need of a letter which leaves the fewest; ``None`` if all needs are met."""
        fewest: Sequence[_Choice] | None = None
        gaps = _gaps(part)
        for at, placed in enumerate(part):
            for event in _each(placed.letter.needs & ~(gaps[at].to_later | gaps[at + 1].to_earlier)):
                choices = list(self._choices(gaps, marked, at, event))
                if fewest is None or len(choices) < len(fewest):
                    fewest = choices
                if not choices:
                    return choices
        return fewest

    def _choices(self, gaps: Sequence[_Gap], marked: int, at: int, event: int) -> Iterator[_Choice]:
        """All letters that may refuse an event to the letter at ``at``."""
        for place, gap in enumerate(gaps):
            to_later = place <= at
            refusing = (self._to_later if to_later else self._to_earlier)[place > marked]
            for letter in refusing.get(event, ()):
                if gap.takes(letter):
                    yield _Choice(place, letter, event, to_later)


def _by_event(letters: Iterable[Letter], field: str) -> Mapping[int, Sequence[Letter]]:
    """For each event (a bit) the letters that refuse it; those that need least themselves first."""
    found: dict[int, list[Letter]] = defaultdict(list)
    for letter in sorted(letters, key=lambda each: each.needs.bit_count()):
        for event in _each(getattr(letter, field)):
            found[event].append(letter)
    return found


def letters_at_rest(letters: Collection[Letter], others: Collection[Letter]) -> Collection[Letter]:
    """Those of ``letters`` whose needs ``others``, on either side, may refuse.

    If they are the same, only those are left whose needs others that are left may refuse.
    """
    while True:
        refused = _all(others, "later") | _all(others, "earlier")
        kept = [letter for letter in letters if not letter.needs & ~refused]
        if letters is not others or len(kept) == len(letters):
            return kept
        letters = others = kept


def best_letters(letters: Iterable[Letter]) -> Sequence[Letter]:
    """Those to which no other one is preferable: any word stays at rest with a preferable letter in its place."""
    found: list[Letter] = []
    for letter in sorted(letters, key=_price):
        if not any(other.is_as_good_as(letter) for other in found):
            found.append(letter)
    return found


def _price(letter: Letter) -> tuple[int, bool]:
    """What is less for a letter than for all that it is as good as, or the same."""
    asked = letter.needs.bit_count() + letter.bars_later.bit_count() + letter.bars_earlier.bit_count()
    given = letter.later.bit_count() + letter.earlier.bit_count() + letter.system.bit_count()
    return asked - given - letter.counted.bit_count(), letter.is_single
