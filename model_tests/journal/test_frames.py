"""Frames that are good and say what this version does not know, and frames that are forged in what is stored."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from ackfsm.engine.journal import FileJournal, JournalDamaged, Kind, SimulatedDisk
from ackfsm.engine.journal._entry import LARGEST, Entry
from ackfsm.engine.journal._frame import SEGMENT, SegmentHeader, _head, encode, mark
from ackfsm.terms import InputError
from model_tests.journal.test_protocol import Store, dsn, store  # noqa: F401 - fixtures

FIRST = "000000000001.journal"


def opened(disk: SimulatedDisk) -> FileJournal:
    return FileJournal("/journal", disk=disk)


def followed_by(frame: bytes, at: int = 3) -> SimulatedDisk:
    """A journal of three copies that was not closed, with this frame behind its last."""
    disk = SimulatedDisk()
    journal = opened(disk)
    for key in range(1, at + 1):
        journal.append(Kind.STORE, key, b"copy")
    journal.write()
    image = dict(disk.image)
    return SimulatedDisk({**image, FIRST: image[FIRST] + frame})


def header_of(image_of: bytes) -> SegmentHeader:
    header = SegmentHeader.decode(image_of)
    assert isinstance(header, SegmentHeader)
    return header


def salt() -> int:
    return header_of(followed_by(b"").image[FIRST]).salt


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ((6, 4, b"", 0), "there is no kind of entry 6"),
        ((0, 4, b"", 0), "there is no kind of entry 0"),
        ((255, 4, b"", 9), "there is no kind of entry 255"),
        ((Kind.MARK, 3, b"x", 0), "the data of a MARK is the number of attempts"),
        ((Kind.COMMIT, 0, b"", 0), "a COMMIT names its transaction"),
        ((Kind.COMMIT, 3, b"", 3), "a COMMIT names its transaction"),
        ((Kind.STORE, 2**63, b"", 0), "is no number from 0"),
        ((Kind.STORE, 4, b"", 2**63), "is no number from 0"),
    ],
)
def test_an_entry_that_is_none_is_refused_though_its_frame_is_good(entry: Entry, said: str) -> None:
    good: Entry = (Kind.STORE, 5, b"copy", 0)
    for entries in ([entry], [good, entry], [entry, good]):
        disk = followed_by(encode(1, 3, 3, entries, salt()))
        before = disk.image
        with pytest.raises(JournalDamaged, match=said) as refused:
            opened(disk)
        assert "(position 3)" in str(refused.value)
        assert disk.image == before


@pytest.mark.parametrize("kind", b"XA\0")
def test_a_kind_of_frame_that_this_version_does_not_know_is_refused(kind: int) -> None:
    with pytest.raises(JournalDamaged, match="a kind of frame that this version does not know"):
        opened(followed_by(mark(kind, 1, 3, 3, salt())))


def test_a_seal_with_entries_is_refused() -> None:
    body = encode(1, 3, 3, [(Kind.STORE, 4, b"copy", 0)], salt())[36:]
    sealed = _head(b"S"[0], 1, 3, 3, 1, body, salt()) + body
    with pytest.raises(JournalDamaged, match="a seal has no entries"):
        opened(followed_by(sealed))


@pytest.mark.parametrize("number", b"4579")
def test_a_newer_format_is_told_so_and_not_to_begin_an_empty_journal(number: int) -> None:
    disk = followed_by(b"")
    data = disk.image[FIRST]
    name = chr(number)
    checksum = zlib.crc32(data[12:44], number - ord("0")).to_bytes(4, "little")
    newer = SimulatedDisk({**disk.image, FIRST: b"ackfsmJ" + bytes([number]) + checksum + data[12:]})
    with pytest.raises(
        InputError, match=f"is of format {name}, .* reads 1 to 3; use the version that wrote it"
    ) as told:
        opened(newer)
    assert not isinstance(told.value, JournalDamaged)
    assert "empty" not in str(told.value)


@pytest.mark.parametrize("number", b"0/47\xb3")
def test_a_format_that_never_was_or_whose_number_alone_is_damaged_is_damage(number: int) -> None:
    disk = followed_by(b"")
    data = disk.image[FIRST]
    with pytest.raises(JournalDamaged, match="does not begin as a segment"):
        opened(SimulatedDisk({**disk.image, FIRST: b"ackfsmJ" + bytes([number]) + data[8:]}))


def test_data_of_more_than_the_limit_are_refused_at_once(store: Store) -> None:  # noqa: F811
    journal = store.new()
    with pytest.raises(InputError, match="at most 1,073,741,824 bytes"):
        journal.append(Kind.STORE, 1, bytes(LARGEST + 1))  # zeros that nobody touches take no memory
    assert journal.append(Kind.STORE, 1, b"x") == 0
    journal.close()


# forged


def forged(epoch: int) -> bytes:
    """What a message might be that holds pieces of journals: frames that vouch for all before them."""
    ends = [mark(kind, epoch, position, position) for kind in b"SC" for position in (4, 5, 100)]
    return b"".join([*ends, encode(epoch, 100, 100, [(Kind.REMOVE, 1, b"", 0)])])


def torn(data: bytes) -> list[SimulatedDisk]:
    """A journal with a synced copy, whose next write holds ``data`` and arrived without its beginning, or its end."""
    disk = SimulatedDisk()
    journal = opened(disk)
    journal.append(Kind.STORE, 1, b"copy")
    journal.sync()
    image = dict(disk.image)
    journal.append(Kind.STORE, 2, data)
    journal.append(Kind.STORE, 3, b"x" * 100)
    journal.write()
    after = disk.image[FIRST]
    begin = len(image[FIRST]) - 36  # the next frame takes the place of the seal
    places = (begin, begin + 20, begin + 40, begin + 62)
    beheaded = [after[:begin] + bytes(at - begin + 4) + after[at + 4 :] for at in places]
    return [SimulatedDisk({**image, FIRST: each}) for each in (*beheaded, after[:-1], after[:-90])]


def test_a_payload_that_looks_like_frames_does_not_make_damage_of_a_torn_end() -> None:
    for epoch in (1, 2):
        for disk in torn(b"before" + forged(epoch) + b"after"):
            journal = opened(disk)
            assert list(journal.recovery.live) == [1]
            assert journal.recovery.torn is not None


def test_a_journal_without_a_salt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "salt", lambda _: 0)
    with pytest.raises(JournalDamaged, match="no frame begins here, and the frame at byte"):
        test_a_payload_that_looks_like_frames_does_not_make_damage_of_a_torn_end()


def test_a_payload_that_is_the_journal_itself_does_not_make_damage_of_a_torn_end() -> None:
    disk = SimulatedDisk()
    journal = opened(disk)
    journal.append(Kind.STORE, 1, b"copy")
    journal.sync()
    for each in torn(disk.image[FIRST] + disk.image["watermark"]):
        assert list(opened(each).recovery.live) == [1]


def test_the_salts_of_a_journal_on_a_real_disk_differ(tmp_path: Path) -> None:
    salts = set()
    for number in range(3):
        FileJournal(tmp_path / f"{number}").close()
        (segment,) = (tmp_path / f"{number}").glob("*.journal")
        salts.add(header_of(segment.read_bytes()).salt)
    assert len(salts) == 3
    assert max(salts) < 2**31


def test_a_journal_of_format_2_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.mkdir()
    header = SegmentHeader(base=True, epoch=1, sequence=1, first=0, next_key=1, format=2)
    frame = encode(1, 0, 0, [(Kind.STORE, 1, b"copy", 0)])
    (path / FIRST).write_bytes(header.encode() + frame + mark(b"C"[0], 1, 1, 1))
    (path / "watermark").write_bytes(3 * mark(b"C"[0], 1, 1, 1))
    journal = FileJournal(path)
    assert (list(journal.recovery.live), journal.recovery.clean) == ([1], True)
    assert len(header.encode()) == SEGMENT.size == 44
    assert struct.unpack_from("<I", header.encode(), 12) == (1,)
    journal.close()
