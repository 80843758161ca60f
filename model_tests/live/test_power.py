"""What is left after a loss of power: what was synced, and of the rest what the rules of a file system permit."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ackfsm.driving.live.faults.power import Call, Kept, Kind, Names, Recording
from ackfsm.engine.journal import FileJournal
from ackfsm.terms import InputError
from model_tests.support.live.losing_disk import losing_disk
from model_tests.support.places import PROJECT
from model_tests.support.tools import missing

Said = list[tuple[int, str]]


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    (tmp_path / "folder" / "old").mkdir(parents=True)
    (tmp_path / "folder" / "old" / "kept").write_bytes(b"before")
    with _or_skipped():
        return Recording(tmp_path / "folder", tmp_path / "notes")


@contextlib.contextmanager
def _or_skipped() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        missing(str(error))


def performed(recording: Recording, program: str) -> Recording:
    """The recording after a program of Python, which runs in its folder."""
    _run(recording.folder, program, recording.environment)
    return recording


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    paths = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else None for name, path in paths.items()}


def _run(folder: Path, program: str, more: Mapping[str, str]) -> None:
    command = [sys.executable, "-S", "-c", f"import mmap, os, sys\n{program}"]
    subprocess.run(command, check=True, cwd=folder, env={**os.environ, **more}, timeout=30)


EVERY_CALL = """
os.mkdir("deep"); os.mkdir("deep/er")
a = os.open("deep/er/a", os.O_RDWR | os.O_CREAT)
os.write(a, b"one"); os.pwrite(a, b"two", 5000); os.writev(a, [b"th", b"", b"ree"]); os.pwritev(a, [b"4", b"5"], 9000)
b = os.dup(a); os.write(b, b"by the other"); os.lseek(a, 2, 0); os.write(b, b"shared")
os.ftruncate(a, 8000); os.posix_fallocate(a, 7000, 6000); os.truncate("deep/er/a", 12000)
c = os.open("c", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC)
os.write(c, b"first"); os.pwrite(c, b"appended all the same", 0)
os.link("c", "d"); os.rename("c", "deep/c"); os.unlink("d"); os.rename("deep/er", "moved"); os.write(a, b"on")
os.symlink("moved", "way"); os.close(os.open("way/by", os.O_CREAT | os.O_WRONLY)); os.unlink("way")
os.replace("old/kept", "old/other"); os.mkdir("gone"); os.rmdir("gone")
open("e", "w").write("e" * 9000); open("e", "w").write("again")
here = os.open("moved", os.O_RDONLY); os.write(os.open("in", os.O_CREAT | os.O_WRONLY, dir_fd=here), b"in")
os.write(os.open("unnamed", os.O_CREAT | os.O_RDWR), b"x"); os.unlink("unnamed")
if not os.fork():
    os.pwrite(a, b"child", 100)
    os.execv(sys.executable, [sys.executable, "-S", "-c", "import os; os.write(os.open('f', 65), b'f')"])
os.wait()
"""


def test_all_that_was_done_is_the_folder_byte_by_byte(recording: Recording, tmp_path: Path) -> None:
    performed(recording, EVERY_CALL)
    assert recording.unseen() == recording.differences() == []
    kinds = {call.kind for call in recording.calls()}
    assert kinds == set(Kind) - {Kind.UNSEEN, Kind.SYNC}
    recording.disk().do(recording.calls()).restore(tmp_path / "again", Kept.ALL)
    assert contents(tmp_path / "again") == contents(recording.folder)


def test_what_was_there_before_is_all_that_is_left_without_a_sync(recording: Recording) -> None:
    performed(recording, EVERY_CALL.replace("| os.O_DSYNC", ""))
    disk = recording.disk().do(recording.calls())
    assert disk.files(Kept.NONE) == {"old": None, "old/kept": b"before"}


def test_what_was_set_up_may_count_as_synced(recording: Recording) -> None:
    performed(recording, NEW)
    recording.sync()
    performed(recording, "os.mkdir('later'); os.write(os.open('new', os.O_RDWR), b'lost')")
    assert recording.disk().do(recording.calls()).files(Kept.NONE) == {"old": None, "new": b"data"} | OLD_KEPT
    assert not recording.differences()


def test_a_change_behind_the_back_of_the_recorder_is_noticed(recording: Recording) -> None:
    performed(recording, "f = os.open('seen', os.O_CREAT | os.O_RDWR); os.write(f, b'seen')")
    (recording.folder / "seen").write_bytes(b"made")
    (recording.folder / "unseen").touch()
    (recording.folder / "old" / "kept").unlink()
    assert recording.differences() == ["old/kept", "seen", "unseen"]


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("mmap.mmap(f, 9, mmap.MAP_SHARED)[0] = 7", True),
        ("mmap.mmap(f, 9, mmap.MAP_PRIVATE)[0] = 7", False),
        ("os.sendfile(f, os.open('/etc/passwd', 0), 0, 9)", True),
        ("os.copy_file_range(os.open('old/kept', 0), f, 3)", True),
    ],
)
def test_what_is_not_recorded_is_told(recording: Recording, work: str, *, told: bool) -> None:
    performed(recording, f"f = os.open('f', 66); os.ftruncate(f, 9); {work}")
    assert bool(recording.unseen()) is bool(recording.differences()) is told


# the rules

OLD_KEPT: dict[str, bytes | None] = {"old/kept": b"before"}
NEW = "f = os.open('new', os.O_CREAT | os.O_RDWR); os.write(f, b'data'); "
OLD = "f = os.open('old/kept', os.O_RDWR); "
HERE = "os.fsync(os.open('.', os.O_RDONLY)); "
RULES: dict[str, tuple[str, dict[str, bytes | None]]] = {
    "a new file is kept with its name": (NEW + "os.fsync(f)", {"new": b"data", "old/kept": b"before"}),
    "also by a sync of its data": (NEW + "os.fdatasync(f)", {"new": b"data", "old/kept": b"before"}),
    "the sync of its folder keeps its name": (NEW + HERE, {"new": b"", "old/kept": b"before"}),
    "the folders above it are kept": (
        "os.mkdir('a'); os.mkdir('a/b'); os.fsync(os.open('a/b/c', 66))",
        {"a": None, "a/b": None, "a/b/c": b"", "old/kept": b"before"},
    ),
    "what is written after the sync is not kept": (
        NEW + "os.fsync(f); os.write(f, b'more')",
        {"new": b"data", "old/kept": b"before"},
    ),
    "nor is a change in place": (OLD + "os.write(f, b'BE')", OLD_KEPT),
    "nor is a length": (OLD + "os.ftruncate(f, 2)", OLD_KEPT),
    "but once synced": (OLD + "os.write(f, b'BE'); os.ftruncate(f, 4); os.fdatasync(f)", {"old/kept": b"BEfo"}),
    "the sync of another file is none": (
        OLD + "os.write(f, b'BE'); os.fsync(os.open('x', 66))",
        {"x": b"", **OLD_KEPT},
    ),
    "a name is not kept by itself": (OLD + "os.rename('old/kept', 'moved')", OLD_KEPT),
    "a rename is kept by the file": (OLD + "os.rename('old/kept', 'moved'); os.fsync(f)", {"moved": b"before"}),
    "not by its data": (OLD + "os.rename('old/kept', 'moved'); os.fdatasync(f)", OLD_KEPT),
    "or by a folder": ("os.rename('old/kept', 'moved'); " + HERE, {"moved": b"before"}),
    "what is removed comes back": ("os.unlink('old/kept')", OLD_KEPT),
    "unless its folder is synced": ("os.unlink('old/kept'); os.fsync(os.open('old', os.O_RDONLY))", {}),
    "a replaced file is there until then": (
        NEW + "os.fsync(f); os.rename('new', 'old/kept')",
        {"new": b"data", "old/kept": b"before"},
    ),
    "a name builds on the one before": (
        "os.rename('old/kept', 'moved'); os.fsync(os.open('old/kept', 66))",
        {"moved": b"before", "old/kept": b""},
    ),
    "a file emptied and not synced is full": ("os.open('old/kept', os.O_RDWR | os.O_TRUNC)", OLD_KEPT),
    "each write is synced": (
        "f = os.open('new', os.O_CREAT | os.O_RDWR | os.O_DSYNC); os.write(f, b'data')",
        {"new": b"data", "old/kept": b"before"},
    ),
    "of its own pages": (
        OLD + "os.pwrite(f, b'lost', 9000); g = os.open('old/kept', os.O_RDWR | os.O_DSYNC); os.write(g, b'BE')",
        {"old/kept": b"BEfore" + bytes(8998)},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """One recording of all of them, each in a folder of its own."""
    place = tmp_path_factory.mktemp("rules")
    lines = []
    for number, (program, _) in enumerate(RULES.values()):
        (place / "folder" / str(number) / "old").mkdir(parents=True)
        (place / "folder" / str(number) / "old" / "kept").write_bytes(b"before")
        lines.append(f"os.chdir({str(place / 'folder' / str(number))!r}); {program}")
    with _or_skipped():
        return performed(Recording(place / "folder", place / "notes"), "\n".join(lines))


@pytest.mark.parametrize("rule", RULES)
def test_what_is_kept_for_certain(rule: str, ruled: Recording) -> None:
    here = f"{list(RULES).index(rule)}/"
    files = ruled.disk(Names.EACH).do(ruled.calls()).files(Kept.NONE)
    found = {path.removeprefix(here): content for path, content in files.items() if path.startswith(here)}
    assert found == {"old": None} | RULES[rule][1]


def test_the_programs_of_the_rules_were_recorded_whole(ruled: Recording) -> None:
    assert not ruled.differences()


def test_names_are_kept_in_their_order_by_what_needs_the_log(recording: Recording) -> None:
    performed(
        recording, "os.mkdir('a'); os.unlink('old/kept'); f = os.open('new', 66); os.write(f, b'new'); os.fsync(f)"
    )
    calls = recording.calls()
    assert recording.disk().do(calls).files(Kept.NONE) == {"old": None, "a": None, "new": b"new"}
    assert recording.disk(Names.EACH).do(calls).files(Kept.NONE) == {"old": None, "old/kept": b"before", "new": b"new"}


@pytest.mark.parametrize(
    ("work", "kept"),
    [
        ("os.pwrite(f, b'B', 0); os.fdatasync(f)", False),
        ("os.pwrite(f, b'B', 0); os.fsync(f)", True),
        ("os.pwrite(f, b'B', 9); os.fdatasync(f)", True),
        ("os.fsync(f)", False),
    ],
)
def test_a_sync_of_bytes_in_place_keeps_no_name(work: str, kept: bool, recording: Recording) -> None:  # noqa: FBT001
    performed(recording, f"os.mkdir('made'); {OLD} {work}")
    assert ("made" in recording.disk().do(recording.calls()).files(Kept.NONE)) is kept


def test_a_write_that_ends_while_a_sync_runs_is_not_covered(recording: Recording) -> None:
    performed(recording, NEW + "os.fsync(f); os.write(f, b'late')")
    *calls, sync, late = recording.calls()
    assert (sync.kind, late.kind) == (Kind.SYNC, Kind.WRITE)
    between = [*calls, _at(late, sync.begin + 1), _at(sync, sync.begin + 2)]
    assert recording.disk().do(between).files(Kept.NONE)["new"] == b"data"
    before = [*calls, _at(late, sync.begin), sync]
    assert recording.disk().do(before).files(Kept.NONE)["new"] == b"datalate"


def _at(call: Call, end: int) -> Call:
    return dataclasses.replace(call, end=end)


def test_by_chance_each_page_is_as_it_was_at_some_moment(recording: Recording) -> None:
    performed(
        recording,
        "f = os.open('f', 66); os.pwrite(f, b'0' * 12288, 0); os.fsync(f)\n"
        "for step in b'123': os.pwrite(f, bytes([step]) * 12288, 0)\n"
        "os.rename('f', 'g')",
    )
    disk = recording.disk().do(recording.calls())
    found = [disk.files(seed) for seed in range(60)]
    assert found == [disk.files(seed) for seed in range(60)]
    assert {name for each in found for name in each} == {"old", "old/kept", "f", "g"}
    contents = [each.get("f") or each["g"] for each in found]
    assert all(content is not None and len(content) == 12288 for content in contents)
    pages = {(content[4096 * page : 4096 * page + 4096], page) for content in contents if content for page in range(3)}
    assert pages == {(bytes([step]) * 4096, page) for step in b"0123" for page in range(3)}


# the second way


TRIED = """
for name in "abcde": os.write(os.open(name, os.O_CREAT | os.O_RDWR), name.encode() * 5000)
def synced(name): os.fsync(os.open(name, os.O_RDWR))
synced("a"); os.pwrite(os.open("a", os.O_RDWR), b"over", 0)
synced("b"); os.mkdir("way"); os.rename("b", "renamed"); f = os.open("later", os.O_CREAT | os.O_RDWR); os.fsync(f)
os.unlink("c"); os.fsync(os.open(".", os.O_RDONLY))
os.rename("renamed", "moved"); os.unlink("a"); os.write(f, b"more")
os.write(os.open("new", os.O_CREAT | os.O_RDWR), b"new"); os.mkdir("folder")
"""
"""Files that are synced and files that are not, and then names that are not."""


def test_a_file_system_that_is_shut_down_keeps_the_same(tmp_path: Path) -> None:
    with _or_skipped(), losing_disk(tmp_path / "disk", 64 * 2**20) as disk:
        recording = Recording(disk.folder, tmp_path / "notes")
        performed(recording, TRIED)
        expected = recording.disk().do(recording.calls()).files(Kept.NONE)
        disk.shut_down()
        disk.come_back()
        left = contents(disk.folder)
    assert set(left) == {"a", "renamed", "d", "e", "later", "way"}
    assert left == expected


def drawn(chance: random.Random) -> str:
    """A program that makes, writes, syncs, renames and removes a few files, in whole pages."""
    lines = ["files = {}"]
    steps = {
        "os.pwrite(files[n], bytes([{k}]) * 4096, 4096 * {k})": 4,
        "os.fsync(files[n])": 3,
        "os.fdatasync(files[n])": 1,
        "os.rename(n, m); files[m] = files.pop(n)": 2,
        "os.unlink(n); del files[n]": 1,
        "os.fsync(os.open('.', 0))": 1,
        "os.path.exists(d := n + 'd') or os.mkdir(d)": 1,
    }
    for _ in range(12):
        one, other = chance.sample("abcde", 2)
        lines.append(f"n, m = {one!r}, {other!r}; n in files or files.update({{n: os.open(n, 66)}})")
        (step,) = chance.choices([*steps], [*steps.values()])
        lines.append(step.format(k=chance.randint(0, 2)))
    return "\n".join(lines)


def test_a_file_system_that_is_shut_down_keeps_the_same_of_drawn_programs(tmp_path: Path) -> None:
    with _or_skipped(), losing_disk(tmp_path / "disk", 64 * 2**20) as disk:
        for seed in range(5):
            (disk.folder / str(seed)).mkdir()
            os.sync()
            recording = Recording(disk.folder / str(seed), tmp_path / f"notes{seed}")
            program = drawn(random.Random(seed))
            performed(recording, program)
            expected = recording.disk().do(recording.calls()).files(Kept.NONE)
            disk.shut_down()
            disk.come_back()
            assert contents(disk.folder / str(seed)) == expected, program


# a journal


def sent(place: Path, way: str) -> tuple[Recording, Said]:
    """A recording of an engine that sends, and what was confirmed when."""
    (place / "folder").mkdir()
    with _or_skipped():
        recording = Recording(place / "folder", place / "notes")
    command = [sys.executable, "-m", "model_tests.support.live.sender", str(recording.folder), "40", way]
    environment = {**os.environ, **recording.environment}
    done = subprocess.run(command, check=True, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60)
    assert recording.unseen() == recording.differences() == []
    return recording, [(int(at), what) for at, what in re.findall(r"confirmed (\d+) (\S+)", done.stdout)]


def losses(recording: Recording, said: Said, again: Path, moments: Sequence[int], *kept: Kept | int) -> list[int]:
    """How many confirmed messages are lost at each moment; the journal opens each time."""
    found = []
    for moment, disk, each in zip(moments, recording.cuts(moments), itertools.cycle(kept), strict=False):
        disk.restore(again, each)
        journal = FileJournal(again / "journal")
        data = b"".join(live.data for live in journal.recovery.live.values())
        journal.close()
        found.append(sum(f"<{what}>".encode() not in data for at, what in said if at <= moment))
    return found


def test_a_journal_loses_nothing_that_is_confirmed_wherever_it_is_cut(tmp_path: Path) -> None:
    recording, said = sent(tmp_path, "synced")
    moments = [call.end for call in recording.calls()][::5]
    lost = losses(recording, said, tmp_path / "again", moments, Kept.NONE, 1, Kept.ALL, 2)
    assert len(lost) > 60
    assert not any(lost)


@pytest.mark.parametrize(
    ("way", "lost"),
    [
        ("no fsync", range(1, 41)),  # all that is confirmed
        ("asynchronous", [*range(1, 9)] * 5),  # all since the last acknowledgement
    ],
)
def test_a_journal_that_does_not_sync_loses_what_is_confirmed(way: str, lost: Sequence[int], tmp_path: Path) -> None:
    recording, said = sent(tmp_path, way)
    moments = [at for at, _ in said]
    assert losses(recording, said, tmp_path / "again", moments, Kept.NONE) == list(lost)
    if way == "no fsync":
        assert not any(losses(recording, said, tmp_path / "again", moments, Kept.ALL))
