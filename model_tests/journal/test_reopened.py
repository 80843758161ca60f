"""What a journal finds when it is opened again, of every kind, compacted before or not, closed or killed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ackfsm.engine.journal import (
    ATTEMPTS,
    Crashable,
    FileJournal,
    Journal,
    JournalDamaged,
    Kind,
    MemoryJournal,
    Recovery,
    SqliteJournal,
)
from ackfsm.engine.journal._frame import SEGMENT
from ackfsm.engine.journal._scan import WATERMARK


class _Store:
    """A journal that is opened again and again."""

    def __init__(self, kind: str, folder: Path) -> None:
        opened: dict[str, Callable[[], Journal]] = {
            "file": lambda: FileJournal(folder / "journal", remembered=2),
            "sqlite": lambda: SqliteJournal(folder / "journal", remembered=2),
            "memory": lambda: MemoryJournal(remembered=2),
        }
        self._open = opened[kind]
        self.journal = self._open()

    def again(self, *, killed: bool = False) -> Recovery:
        """Sync, close or be killed, open; what is found."""
        self.journal.sync()
        if killed or isinstance(self.journal, MemoryJournal):
            assert isinstance(self.journal, Crashable)
            self.journal = self.journal.kill()
        else:
            self.journal.close()
            self.journal = self._open()
        return self.journal.recovery

    def append(self, *entries: tuple[Kind, int] | tuple[Kind, int, bytes] | tuple[Kind, int, bytes, int]) -> None:
        for entry in entries:
            self.journal.append(*entry)


@pytest.fixture(params=["file", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> _Store:
    return _Store(request.param, tmp_path)


@pytest.fixture(params=["compacted", "closed", "killed"])
def end(request: pytest.FixtureRequest, store: _Store) -> Callable[[], Recovery]:
    def ended() -> Recovery:
        if request.param == "compacted":
            store.journal.compact()
        return store.again(killed=request.param == "killed")

    return ended


_OPEN = 50
"""The number of a transaction."""


def test_a_number_that_was_given_is_not_free_again(store: _Store, end: Callable[[], Recovery]) -> None:
    store.append((Kind.STORE, 7), (Kind.REMOVE, 7))
    assert end().next_key == 8
    store.append((Kind.STORE, 9, b"", _OPEN), (Kind.COMMIT, _OPEN), (Kind.REMOVE, 9))
    assert end().next_key == _OPEN + 1
    store.append((Kind.STORE, 60, b"", 2 * _OPEN))
    assert end().next_key == 2 * _OPEN + 1
    assert end().next_key == 2 * _OPEN + 1


def test_marks_and_the_newest_ids_are_there(store: _Store, end: Callable[[], Recovery]) -> None:
    store.append((Kind.STORE, 1, b"tea"), (Kind.STORE, 2), (Kind.MARK, 1, ATTEMPTS.pack(3)))
    store.append(*((Kind.REMEMBER, key, b"id%d" % key) for key in (1, 2, 3)))
    found = end()
    assert [(live.data, live.attempts, live.marked) for live in found.live.values()] == [
        (b"tea", 3, True),
        (b"", 0, False),
    ]
    assert found.remembered == {b"id2": 2, b"id3": 3}


def test_copies_are_in_the_order_in_which_they_were_stored(store: _Store, end: Callable[[], Recovery]) -> None:
    store.append((Kind.STORE, 1, b"", _OPEN), (Kind.STORE, 2), (Kind.STORE, 3, b"", _OPEN), (Kind.COMMIT, _OPEN))
    assert list(end().live) == [1, 2, 3]


def test_what_a_transaction_stores_and_removes_is_removed(store: _Store, end: Callable[[], Recovery]) -> None:
    store.append((Kind.STORE, 1, b"", _OPEN), (Kind.REMOVE, 1, b"", _OPEN), (Kind.COMMIT, _OPEN))
    assert end().live == {}


def test_a_removal_holds_before_the_commit_of_what_it_removes(store: _Store, end: Callable[[], Recovery]) -> None:
    store.append((Kind.STORE, 1, b"", _OPEN), (Kind.REMOVE, 1), (Kind.COMMIT, _OPEN))
    assert end().live == {}


def test_a_transaction_that_is_open_when_a_journal_is_compacted_may_commit(store: _Store) -> None:
    store.append((Kind.STORE, 1, b"", _OPEN))
    store.journal.compact()
    store.append((Kind.COMMIT, _OPEN))
    assert list(store.again().live) == [1]


def test_a_transaction_of_an_earlier_life_never_commits(store: _Store, end: Callable[[], Recovery]) -> None:
    """Nor with one of this life that has its number."""
    store.append((Kind.STORE, 1, b"", _OPEN), (Kind.STORE, 2))
    assert list(end().live) == [2]
    store.append((Kind.COMMIT, _OPEN))
    assert list(end().live) == [2]


@pytest.mark.parametrize("which", range(3))
def test_a_segment_that_lacks_its_end_is_damage_though_another_follows(which: int, tmp_path: Path) -> None:
    with contextlib.closing(FileJournal(tmp_path, segment_bytes=100)) as journal:
        for key in range(1, 5):
            journal.append(Kind.STORE, key, bytes(100))
            journal.sync()
    with contextlib.closing(FileJournal(tmp_path, segment_bytes=100)) as journal:
        assert list(journal.recovery.live) == [1, 2, 3, 4]
    segment = sorted(tmp_path.glob("*.journal"))[which]
    segment.write_bytes(segment.read_bytes()[: SEGMENT.size])
    with pytest.raises(JournalDamaged, match="position"):
        FileJournal(tmp_path)


def test_damage_before_what_vouches_for_it_is_no_torn_end_though_the_watermark_is_old(tmp_path: Path) -> None:
    """The mark of a sync in the watermark is not synced: a power loss leaves that of the opening, and the frames."""
    journal = FileJournal(tmp_path)
    watermark = (tmp_path / WATERMARK).read_bytes()
    begin = len(next(tmp_path.glob("*.journal")).read_bytes())
    for key in (1, 2):
        journal.append(Kind.STORE, key, bytes(100))
        journal.sync()
    journal.kill().close()
    segments = sorted(tmp_path.glob("*.journal"))
    for file in segments[1:]:
        file.unlink()
    (tmp_path / WATERMARK).write_bytes(watermark)
    damaged = bytearray(segments[0].read_bytes())
    damaged[begin + 80] ^= 1
    segments[0].write_bytes(damaged)
    with pytest.raises(JournalDamaged, match="had been synced"):
        FileJournal(tmp_path)
