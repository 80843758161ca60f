"""Do the two searches for messages at rest, of the proof and of its verifier, find a word exactly where one exists?"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from ackfsm.checking.certificates import _words as checked
from ackfsm.checking.unbounded import _words
from ackfsm.checking.unbounded._words import Letter

Apart = Sequence[Sequence[bool]]
"""For each kind, which kinds a later letter is never of."""

_SYSTEM = 2
"""So many events of the system, as bits, letters have here."""


def word_exists(left: Sequence[Letter], marked: Letter, right: Sequence[Letter], *, system: int, counted: int) -> bool:
    """What both of them say."""
    found = _words.word_exists(left, marked, right, system=system, counted=counted)
    before, behind = [*map(_checked, left)], [*map(_checked, right)]
    assert checked.can_rest(before, _checked(marked), behind, system | counted << _SYSTEM) == found
    return found


def _checked(letter: Letter) -> checked.Letter:
    """The letter as the verifier has it."""
    gives = letter.system | letter.counted << _SYSTEM
    return checked.Letter(letter.needs, letter.later, letter.earlier, gives, *letter[5:])


def _is_at_rest(word: Sequence[Letter], system: int, counted: int) -> bool:
    """The definition: what a letter needs is refused by one on the proper side of it, and so on."""
    for at, letter in enumerate(word):
        refused = 0
        for other in word[:at]:
            refused |= other.later
        for other in word[at + 1 :]:
            refused |= other.earlier
        if letter.needs & ~refused:
            return False
    pairs = itertools.combinations(word, 2)
    if any(one.bars_later & other.kind or other.bars_earlier & one.kind for one, other in pairs):
        return False
    for letter in word:
        system &= ~letter.system
        counted &= ~letter.counted
    return not system and not counted


def _brute(  # noqa: PLR0913, PLR0917 - a question, and how long words are tried
    left: Sequence[Letter], marked: Letter, right: Sequence[Letter], system: int, counted: int, longest: int
) -> bool:
    return any(
        _is_at_rest((*before, marked, *behind), system, counted)
        for many in range(longest + 1)
        for few in range(many + 1)
        for before in itertools.product(left, repeat=few)
        for behind in itertools.product(right, repeat=many - few)
    )


def _letter(drawn: random.Random, apart: Apart = ()) -> Letter:
    """A letter; where some kinds keep ``apart`` it is of one of them."""

    def some(of: int) -> int:
        return drawn.getrandbits(of) & drawn.getrandbits(of)

    letter = Letter(some(3), some(3), some(3), some(2), some(1))
    if not apart:
        return letter
    kind = drawn.randrange(len(apart))
    later = sum(1 << other for other, is_apart in enumerate(apart[kind]) if is_apart)
    earlier = sum(1 << other for other, of_other in enumerate(apart) if of_other[kind])
    return letter._replace(kind=1 << kind, bars_later=later, bars_earlier=earlier)


def test_a_word_is_found_exactly_where_one_of_six_letters_at_most_is_at_rest() -> None:
    drawn = random.Random(17)
    found = 0
    for _ in range(1_500):
        left, right = ([_letter(drawn) for _ in range(drawn.randint(0, 2))] for _ in range(2))
        marked = _letter(drawn)
        system, counted = drawn.getrandbits(2), drawn.getrandbits(1)
        expected = _brute(left, marked, right, system, counted, 5)
        assert word_exists(left, marked, right, system=system, counted=counted) == expected
        found += expected
    assert 200 < found < 1_300, "both answers occur"


def test_a_row_in_which_each_waits_for_the_one_before_it_has_no_first() -> None:
    waits, ready = Letter(0b01, 0b01, 0, 0, 0), Letter(0, 0b01, 0, 0, 0)
    assert not word_exists([waits], waits, [waits], system=0, counted=0)
    assert word_exists([waits, ready], waits, [waits], system=0, counted=0)
    both_ways = Letter(0b10, 0b01, 0b10, 0, 0)
    assert word_exists([both_ways], waits, [Letter(0, 0, 0b10, 0, 0)], system=0, counted=0)
    assert not word_exists([both_ways], waits, [Letter(0b10, 0, 0b10, 0, 0)], system=0, counted=0)


def test_letters_stand_only_where_no_other_one_bars_their_kind() -> None:
    drawn = random.Random(18)
    found = narrower = 0
    for _ in range(1_500):
        apart = [[drawn.random() < 0.3 for _ in range(3)] for _ in range(3)]
        left, right = ([_letter(drawn, apart) for _ in range(drawn.randint(0, 2))] for _ in range(2))
        marked = _letter(drawn, apart)
        system, counted = drawn.getrandbits(2), drawn.getrandbits(1)
        expected = _brute(left, marked, right, system, counted, 5)
        assert word_exists(left, marked, right, system=system, counted=counted) == expected
        found += expected
        free = [letter._replace(kind=0) for letter in (marked, *left, *right)]
        among = free[1 : len(left) + 1], free[0], free[len(left) + 1 :]
        narrower += word_exists(*among, system=system, counted=counted) != expected
    assert found > 150
    assert narrower > 50, "there are words but for the letters that are barred"


def test_a_letter_does_not_wait_for_another_that_waits_for_it() -> None:
    """The mutant: without the order of the letters, two ready messages would excuse each other."""
    ready = Letter(needs=1, later=1, earlier=0, system=0, counted=0)
    assert not word_exists([ready], ready, [ready], system=0, counted=0)
    first = Letter(needs=0, later=1, earlier=0, system=0, counted=0)
    assert word_exists([first], ready, [ready], system=0, counted=0)
    assert not word_exists([ready], ready, [first], system=0, counted=0)
