"""The disk that loses power: which states it may be in, and its faults."""

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm.engine.journal import DiskFaults, SimulatedDisk

HERE = Path("/here")


def possible(disk: SimulatedDisk, *, fine: bool = True) -> set[tuple[tuple[str, bytes], ...]]:
    return {tuple(image.items()) for image in disk.state.images(fine=fine)}


def only(**files: bytes) -> tuple[tuple[str, bytes], ...]:
    return tuple(files.items())


def made(faults: DiskFaults | None = None, image: Mapping[str, bytes] | None = None) -> tuple[SimulatedDisk, int]:
    disk = SimulatedDisk({"a": b""} if image is None else image, faults=faults)
    return disk, disk.open(HERE / "a")


def test_a_write_may_be_there_or_not_or_torn_or_zeros() -> None:
    disk, file = made()
    disk.write(file, 0, b"xyz")
    assert possible(disk) == {only(a=content) for content in (b"", b"xyz", b"x", b"xy", b"\0yz", b"\0\0z", b"\0\0\0")}
    disk.sync(file)
    assert possible(disk) == {only(a=b"xyz")}


def test_any_subset_of_writes_may_be_there() -> None:
    disk, file = made()
    disk.write(file, 0, b"x")
    disk.write(file, 1, b"y")
    nothing_torn = (b"", b"x", b"xy", b"\0y")
    zeros_or_old = (b"x\0", b"\0\0", b"xx", b"yy")
    assert possible(disk) == {only(a=content) for content in (*nothing_torn, *zeros_or_old)}


def test_writes_that_overlap_may_come_in_either_order() -> None:
    disk, file = made(image={"a": b"--"})
    disk.write(file, 0, b"xx")
    disk.write(file, 0, b"yy")
    found = {dict(image)["a"] for image in possible(disk)}
    assert {b"xx", b"yy", b"--", b"yx", b"xy", b"-x", b"y-"} <= found


def test_names_are_safe_when_the_directory_is_synced() -> None:
    disk, _ = made()
    disk.sync_directory(HERE)
    disk.create(HERE / "b")
    disk.rename(HERE / "b", HERE / "c")
    disk.unlink(HERE / "a")
    assert possible(disk) == {
        only(a=b""), only(a=b"", b=b""), only(a=b"", c=b""), (), only(b=b""), only(c=b"")
    }  # fmt: skip
    disk.sync_directory(HERE)
    assert possible(disk) == {only(c=b"")}


def test_old_bytes_may_lie_where_a_write_did_not_arrive() -> None:
    disk = SimulatedDisk({"a": b"", "b": b""}, old=[b"old bytes"])
    disk.write(disk.open(HERE / "a"), 0, b"new")
    assert only(a=b"old", b=b"") in possible(disk)


def test_what_a_failed_sync_did_not_write_no_later_sync_writes() -> None:
    disk, file = made(DiskFaults(sync_fails=1))
    disk.write(file, 0, b"x")
    with pytest.raises(OSError, match="failed"):
        disk.sync(file)
    disk.write(file, 1, b"y")
    disk.sync(file)
    assert disk.read(HERE / "a") == b"xy"
    assert {dict(image)["a"] for image in possible(disk)} == {b"xy", b"\0y"}


def test_a_sync_that_lies_does_nothing() -> None:
    disk, file = made(DiskFaults(sync_lies=True))
    disk.write(file, 0, b"x")
    disk.sync(file)
    assert only(a=b"") in possible(disk)


def test_a_short_write_and_a_full_disk() -> None:
    disk, file = made(DiskFaults(short_writes=True))
    assert (disk.write(file, 0, b"abcd"), disk.write(file, 2, b"c")) == (2, 1)
    disk.faults = DiskFaults(capacity=5)
    assert disk.write(file, 3, b"defg") == 2
    with pytest.raises(OSError, match="full") as full:
        disk.write(file, 5, b"g")
    assert full.value.errno == errno.ENOSPC


def test_a_kill_keeps_what_is_on_its_way_and_gives_the_lock_back() -> None:
    disk, file = made()
    disk.lock(HERE)
    with pytest.raises(BlockingIOError):
        disk.lock(HERE)
    disk.write(file, 0, b"x")
    disk.kill()
    disk.lock(HERE)
    assert disk.read(HERE / "a") == b"x"
    assert only(a=b"") in possible(disk)
    assert possible(disk.state.killed()) == possible(disk)
