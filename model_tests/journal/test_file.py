"""Journals in files: what is cut, what is refused, what survives a kill, and that nothing grows."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import (
    ATTEMPTS,
    FileJournal,
    Journal,
    JournalDamaged,
    JournalFailure,
    Kind,
    MemoryJournal,
    SqliteJournal,
)
from ackfsm.engine.journal._watermark import Watermark
from ackfsm.terms import InputError
from model_tests.support.places import PROJECT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "journal"


def abandon(journal: FileJournal) -> None:
    """What the death of the process leaves."""
    journal._close_resources()  # noqa: SLF001


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def restore(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def opened_or_refused(folder: Path) -> FileJournal | str:
    try:
        return FileJournal(folder)
    except JournalDamaged as refused:
        return str(refused)


def fill(journal: Journal) -> None:
    """Three copies in three syncs, one removed, one sent, an id, and an open transaction."""
    for key in (1, 2, 3):
        journal.append(Kind.STORE, key, b"copy %d" % key)
        journal.sync()
    journal.append(Kind.REMOVE, 2)
    journal.append(Kind.MARK, 3, ATTEMPTS.pack(2))
    journal.append(Kind.REMEMBER, 1, b"id")
    journal.append(Kind.STORE, 4, b"open", 9)
    journal.sync()


def filled(folder: Path, *, close: bool = False) -> dict[str, bytes]:
    """A segment and a watermark."""
    journal = FileJournal(folder)
    fill(journal)
    if close:
        journal.close()
    else:
        abandon(journal)
    return content(folder)


def test_a_mark_without_an_attempt_is_a_mark(folder: Path) -> None:
    with contextlib.closing(FileJournal(folder)) as journal:
        journal.append(Kind.STORE, 1, b"copy 1")
        for attempts in (1, 0):
            journal.append(Kind.MARK, 1, ATTEMPTS.pack(attempts))
        journal.sync()
        journal.compact()
    with contextlib.closing(FileJournal(folder)) as journal:
        assert (journal.recovery.live[1].marked, journal.recovery.live[1].attempts) == (True, 0)


def test_what_was_synced_comes_back(folder: Path) -> None:
    filled(folder)
    found = FileJournal(folder).recovery
    assert {key: (live.data, live.attempts, live.marked) for key, live in found.live.items()} == {
        1: (b"copy 1", 0, False),
        3: (b"copy 3", 2, True),
    }
    assert (found.removed, found.dropped, found.remembered) == (1, 1, {b"id": 1})
    assert (found.next_position, found.next_key, found.epoch, found.entries) == (7, 10, 2, 7)
    assert str(found) == (
        "7 entries in 375 bytes of 1 files, 2 copies live, 1 removed, 1 duplicate-ids known,"
        " 1 entries dropped with transactions that never committed,"
        " not closed cleanly: what was written last may not have been synced"
    )


EARLIER = {"watermark": 3 * Watermark(1, 3).encode()}
"""The watermark before the last sync: power was lost before the one after it had reached the disk."""


def test_every_cut_of_the_last_write_is_told_and_the_rest_is_there(folder: Path) -> None:
    whole = filled(folder)
    (name, data), *_ = whole.items()
    journal = FileJournal(folder)
    abandon(journal)
    restore(folder, whole)
    end = len(data) - 36
    begin = end - 36 - 4 * 21 - len(b"id") - len(b"open") - 4
    for cut in range(begin + 1, end):
        restore(folder, {**whole, name: data[:cut]})
        with pytest.raises(JournalDamaged, match=r"4 entries are missing at the end, .* below position 7 had been"):
            FileJournal(folder)
        restore(folder, {name: data[:cut], **EARLIER})
        journal = FileJournal(folder)
        assert list(journal.recovery.live) == [1, 2, 3]
        assert journal.recovery.torn is not None
        assert f"{cut - begin} bytes from byte {begin} of {name}" in str(journal.recovery)
        abandon(journal)


def test_a_flip_of_every_byte_is_refused_or_told(folder: Path) -> None:
    whole = filled(folder)
    (name, data), *_ = whole.items()
    cut = 0
    for at in range(len(data)):
        damaged = {**whole, name: data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]}
        restore(folder, damaged)
        journal = opened_or_refused(folder)
        if isinstance(journal, str):
            assert f"{folder / name}, byte " in journal
            assert "nothing has been changed" in journal
            assert content(folder) == damaged
            continue
        cut += 1
        assert journal.recovery.torn is not None, "without a word"
        assert (list(journal.recovery.live), journal.recovery.remembered) == ([1, 3], {b"id": 1})
        abandon(journal)
    assert cut == 36, "only the seal at the end can have been torn, and nothing is in it"


def test_after_a_clean_end_even_the_seal_is_told_apart(folder: Path) -> None:
    whole = filled(folder, close=True)
    (name, data), *_ = whole.items()
    for at in range(len(data)):
        restore(folder, {**whole, name: data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]})
        with pytest.raises(JournalDamaged):
            FileJournal(folder)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_file_that_is_missing_is_damage(folder: Path, which: int) -> None:
    journal = FileJournal(folder, segment_bytes=200)
    for key in range(1, 19):
        journal.append(Kind.STORE, key, b"x" * 20)
        journal.write()
    abandon(journal)
    names = [name for name in content(folder) if name.endswith(".journal")]
    assert len(names) > 3
    (folder / names[which]).unlink()
    with pytest.raises(JournalDamaged, match="missing"):
        FileJournal(folder)


def test_left_over_files_are_removed_and_told(folder: Path) -> None:
    filled(folder, close=True)
    (folder / "000000000007.new").write_bytes(b"half")
    (folder / "notes.txt").write_text("not ours")
    recovery = FileJournal(folder).recovery
    assert recovery.stale == ("000000000007.new",)
    assert "1 left-over files removed" in str(recovery)
    assert {path.name for path in folder.iterdir() if path.suffix != ".journal"} == {"notes.txt", "watermark"}


def test_an_empty_file_is_damage_because_no_crash_leaves_one(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "000000000001.journal").touch()
    with pytest.raises(JournalDamaged, match="there are 0 bytes, and a header has 44"):
        FileJournal(folder)


def test_a_place_that_cannot_be_a_journal_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be a journal"):
        FileJournal(tmp_path / "file")


def test_many_short_lives_leave_few_files(folder: Path) -> None:
    for _ in range(40):
        FileJournal(folder).close()
    assert len(content(folder)) <= 10
    assert FileJournal(folder).recovery.epoch == 41


def test_a_long_write_is_several_frames_and_one_entry_may_be_longer(folder: Path) -> None:
    journal = FileJournal(folder, group=100)
    for key, size in enumerate((10, 500, 10, 10, 90, 0, 300), 1):
        journal.append(Kind.STORE, key, bytes([key]) * size)
    journal.sync()
    abandon(journal)
    live = FileJournal(folder, group=100).recovery.live
    assert [(key, len(copy.data)) for key, copy in live.items()] == list(enumerate((10, 500, 10, 10, 90, 0, 300), 1))


def test_after_a_failed_write_nothing_is_confirmed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FileJournal(folder)
    journal.append(Kind.STORE, 1)
    journal.sync()

    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.fdatasync", fails)
        journal.append(Kind.STORE, 2)
        with pytest.raises(JournalFailure, match="syncing failed"):
            journal.sync()
    for call in (journal.sync, journal.write, journal.compact, lambda: journal.append(Kind.STORE, 3)):
        with pytest.raises(JournalFailure, match="open the journal again"):
            call()
    journal.close()
    assert 1 in FileJournal(folder).recovery.live


# memory


def test_a_crash_of_the_memory_journal_loses_what_was_not_synced_and_a_kill_does_not() -> None:
    journal = MemoryJournal()
    journal.append(Kind.STORE, 1, b"synced")
    journal.sync()
    journal.append(Kind.STORE, 2, b"written")
    journal.append(Kind.REMOVE, 1)
    journal.write()
    journal.append(Kind.STORE, 3, b"neither")
    assert list(journal.kill().recovery.live) == [2]
    assert list(journal.crash(lambda _: False).recovery.live) == [1]
    assert list(journal.crash(lambda _: True).recovery.live) == [2]
    assert list(journal.crash(lambda position: position == 1).recovery.live) == [1, 2]


def test_a_transaction_of_the_memory_journal_survives_whole_or_not_at_all() -> None:
    journal = MemoryJournal()
    journal.append(Kind.STORE, 1, b"a", 7)
    journal.append(Kind.STORE, 2, b"b", 7)
    journal.append(Kind.COMMIT, 7)
    journal.write()
    assert list(journal.crash(lambda position: position == 2).recovery.live) == [1, 2]
    assert list(journal.crash(lambda position: position != 2).recovery.live) == []
    again = journal.crash(lambda _: False)
    assert (again.recovery.epoch, again.recovery.dropped, again.append(Kind.COMMIT, 7)) == (2, 2, 3)
    again.sync()
    assert not again.kill().recovery.live


# growth


def queue(journal: Journal, messages: int, depth: int, each: int) -> Iterator[int]:
    """Messages through a bounded queue; gives a number now and then."""
    for key in range(1, messages + 1):
        journal.append(Kind.STORE, key, b"x" * 20)
        if key > depth:
            journal.append(Kind.REMOVE, key - depth)
        if key % (10 * each) == 0:
            journal.sync()
        elif key % each == 0:
            journal.write()
        if key % (messages // 10) == 0:
            yield key


def test_the_memory_journal_does_not_grow() -> None:
    journal = MemoryJournal()
    tracemalloc.start()
    sizes = [tracemalloc.get_traced_memory()[0] for _ in queue(journal, 100_000, 100, 100)]
    tracemalloc.stop()
    assert max(sizes[1:]) < 1.2 * sizes[0] + 200_000


def test_the_file_journal_does_not_grow(folder: Path) -> None:
    journal = FileJournal(folder, segment_bytes=100_000)
    sizes = [sum(map(len, content(folder).values())) for _ in queue(journal, 100_000, 100, 1_000)]
    assert max(sizes) < 3 * 100_000
    assert len(list(folder.iterdir())) <= 4
    journal.close()
    assert len(FileJournal(folder).recovery.live) == 100


def test_the_sqlite_journal_does_not_grow(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    sizes = [(tmp_path / "journal.db").stat().st_size for _ in queue(journal, 100_000, 100, 1_000)]
    assert max(sizes[3:]) <= 1.5 * max(sizes[:3]) + 500_000
    journal.close()


# killed in earnest


@pytest.mark.parametrize(("kind", "kills"), [("file", 200), ("sqlite", 60)])
def test_nothing_confirmed_is_lost_and_nothing_removed_comes_back_after_kills(
    kind: str, kills: int, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    command = [sys.executable, "-m", "model_tests.support.journal.kill", kind, str(path), "20", str(kills)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT).stdout
    lives = [[line.split() for line in life.splitlines()] for life in told.split("killed\n")][:-1]
    assert len(lives) == kills
    confirmed, removed, unsure = 0, set[int](), set[int]()
    for life in lives:
        for word, *numbers in life:
            keys = set(map(int, numbers))
            if word == "open":
                assert not removed & keys, "a removed copy is back"
                assert set(range(1, confirmed + 1)) - removed - unsure <= keys, "a confirmed copy is lost"
                removed |= unsure - keys
            elif word == "try":
                unsure = keys
            else:
                removed, unsure, confirmed = removed | unsure, set(), max(keys)
    assert confirmed > 2 * kills
    assert len(list(path.iterdir() if path.is_dir() else tmp_path.iterdir())) <= 10


def test_a_removal_holds_before_the_commit_of_what_it_removes(folder: Path) -> None:
    journal = FileJournal(folder)
    journal.append(Kind.STORE, 1, b"x", 7)
    journal.append(Kind.STORE, 2, b"y", 7)
    journal.append(Kind.REMOVE, 1)
    journal.append(Kind.COMMIT, 7)
    journal.compact()
    journal.close()
    assert list(FileJournal(folder).recovery.live) == [2]
