"""Checksums cover every byte of what is long, of frames and of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm.engine.journal import FileJournal, JournalDamaged, Kind, SimulatedDisk
from ackfsm.engine.journal._sql import Head, read_rows, row
from model_tests.support.journal.system_bugs import CHECKSUM_BUGS

LONG = bytes(range(256)) * 36
STEP = 5
"""Less than the bugs leave out."""
JOURNAL = Path("/journal")


def unseen_in_frames() -> list[int]:
    """Where a byte of a frame of 9 kB may change without a word."""
    disk = SimulatedDisk()
    journal = FileJournal(JOURNAL, disk=disk)
    journal.append(Kind.STORE, 1, LONG)
    journal.close()
    image = disk.image
    name, data = next((name, data) for name, data in image.items() if name.endswith(".journal"))
    unseen = []
    for at in range(0, len(data), STEP):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            FileJournal(JOURNAL, disk=SimulatedDisk({**image, name: changed}))
        except JournalDamaged:
            continue
        unseen.append(at)
    return unseen


def unseen_in_rows() -> list[int]:
    """The same of a row of a database."""
    position, epoch, kind, key, transaction, data, checksum = row(0, 1, (Kind.STORE, 1, LONG, 0))
    unseen = []
    for at in range(0, len(data), STEP):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            read_rows("rows", Head(1, 2, 0), [(position, epoch, kind, key, transaction, changed, checksum)], 10)
        except JournalDamaged:
            continue
        unseen.append(at)
    return unseen


def test_no_byte_of_a_long_frame_changes_without_a_word() -> None:
    assert not unseen_in_frames()


def test_no_byte_of_a_long_row_changes_without_a_word() -> None:
    assert not unseen_in_rows()


@pytest.mark.parametrize("bug", CHECKSUM_BUGS)
def test_a_checksum_that_leaves_something_out_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHECKSUM_BUGS[bug](monkeypatch)
    assert unseen_in_frames()
    assert unseen_in_rows()
