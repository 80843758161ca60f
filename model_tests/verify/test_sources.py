"""Which files are read as a history, from where, and how often; and that nothing in a folder is ignored in silence."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.history import lines as lines_
from ackfsm.history import open as open_
from ackfsm.history import source
from ackfsm.terms import HostError, InputError

HEADER = '{"ackfsm_history": 1, "config": {"profile": "ems"}}\n'
SENDS = [{"t": t, "process": "p", "event": "send", "queue": "q", "message": f"m{t}"} for t in range(6)]
LINES = "".join(json.dumps(event) + "\n" for event in SENDS)

FILE, FOLDER, LINK_TO_NOTHING = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK
HARMLESS = ("_SUCCESS", "._SUCCESS.crc", ".part-0.parquet.crc", "_metadata", "_common_metadata", "h.header.json")
NAMES = (
    *HARMLESS,
    *("part-0.parquet", "part-1.parquet", "_part-2.parquet", ".part-3.parquet", "x=1.parquet", "part.PARQUET"),
    *("part-1.jsonl", "part-2.jsonl.gz", "_part.jsonl", "part.JSONL.GZ", "part.json", "part.csv", "x=1", "notes"),
    *("_temporary", "_delta_log", ".git", "p.jsonl._COPYING_", "a\nb.parquet", "\udcff.parquet"),
)


@given(
    st.dictionaries(
        st.sampled_from(NAMES) | st.text(max_size=8), st.sampled_from([FILE, FILE, FOLDER, LINK_TO_NOTHING])
    )
)
@settings(max_examples=400)
def test_every_entry_of_a_folder_is_read_or_harmless_or_refused_by_name(entries: dict[str, int]) -> None:
    said, parts = "", tuple[str, ...]()
    try:
        parts, _ = source.parts_among(Path("folder"), entries)
    except InputError as error:
        said = str(error)
    if not parts:
        assert said.startswith(("folder holds ", "folder is a folder without parts; "))
        assert said.isprintable()
        return
    left_out = set(entries) - set(parts)
    assert parts == tuple(sorted(parts))
    assert all(entries[name] == FILE for name in entries)
    assert all(name in HARMLESS or name.endswith((".crc", ".header.json")) for name in left_out)
    assert len({name.endswith(".parquet") for name in parts}) == 1
    assert not any(name.startswith(("_", ".")) for name in parts)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("_part-1.parquet", "holds _part-1.parquet, which Spark passes over for its first character; rename it"),
        (".part-1.parquet", "holds .part-1.parquet, which Spark passes over for its first character; rename it"),
        ("part-1.jsonl", "holds parts in JSONL (part-1.jsonl) and Parquet (part-0.parquet); keep those of one kind"),
        ("part-1.csv", "holds part-1.csv, which is no part (*.parquet, or *.jsonl and *.jsonl.gz); rename it"),
        ("x=1/", "holds x=1, a folder; parts stand in one folder: write them without partitions, or move it away"),
        ("y.parquet/", "holds y.parquet, a folder; parts stand in one folder"),
        ("y.parquet@", "holds y.parquet, which is not a file; move it away"),
    ],
)
def test_what_could_be_events_is_not_passed_over(entry: str, sentence: str, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(SENDS[:3]), tmp_path / "part-0.parquet")
    for harmless in HARMLESS:
        (tmp_path / harmless).touch()
    assert len(verify.read(tmp_path).events) == 3
    if entry.endswith("/"):
        (tmp_path / entry).mkdir()
    elif entry.endswith("@"):
        (tmp_path / entry[:-1]).symlink_to("nothing")
    elif entry.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(SENDS[3:]), tmp_path / entry)
    else:
        (tmp_path / entry).write_text(LINES)
    with pytest.raises(InputError) as caught:
        verify.read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path} {sentence}")


def test_a_folder_of_jsonl_is_one_history_with_the_lines_of_each_part_numbered(tmp_path: Path) -> None:
    lines = LINES.splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text(HEADER + lines[0] + "{}\n" + lines[1])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("".join(["oops\n", *lines[2:]]).encode()))
    (tmp_path / "_SUCCESS").touch()
    recorded = verify.read(tmp_path)
    assert recorded.header is not None
    assert recorded.header.config == {"profile": "ems"}
    assert recorded.events.t.tolist() == [0, 1, 2, 3, 4, 5]
    assert [str(each) for each in recorded.unreadable] == [
        "a.jsonl, line 3: `t` is missing",
        "b.jsonl.gz, line 1: it is not JSON (Expecting value, column 1)",
    ]


@pytest.mark.parametrize("name", ["H.JSONL.GZ", "h.jsonl.gzip", "h.ndjson", "h.json", "h", "_h.jsonl", "h.parquet.old"])
def test_what_a_single_file_begins_with_tells_how_it_is_stored(name: str, tmp_path: Path) -> None:
    for data in (LINES.encode(), gzip.compress(LINES.encode()), _parquet_bytes()):
        if data == LINES.encode() and "GZ" in name:
            continue
        (tmp_path / name).write_bytes(data)
        assert len(verify.read(tmp_path / name).events) == 6


def _parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(SENDS), buffer)
    return buffer.getvalue()


@contextlib.contextmanager
def _pipe(path: Path, data: bytes, at_once: int) -> Iterator[Path]:
    """A named pipe into which ``data`` is written once, so many bytes at a time."""
    os.mkfifo(path)

    def feed() -> None:
        with contextlib.suppress(BrokenPipeError), path.open("wb", buffering=0) as pipe:
            for begin in range(0, len(data), at_once):
                pipe.write(data[begin : begin + at_once])

    writer = threading.Thread(target=feed, daemon=True)
    writer.start()
    yield path
    writer.join(timeout=20)
    assert not writer.is_alive()
    path.unlink()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_a_pipe_is_read_once_header_and_events(pack: Callable[[bytes], bytes], at_once: int, tmp_path: Path) -> None:
    with _pipe(tmp_path / "pipe", pack((HEADER + LINES).encode()), at_once) as path:
        recorded = verify.read(path)
    assert recorded.header is not None
    assert recorded.header.config == {"profile": "ems"}
    assert recorded.events.t.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_gzipped_pipe_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    data = gzip.compress((HEADER + LINES).encode())
    with _pipe(tmp_path / "pipe", data[:-9], 50) as path, pytest.raises(InputError, match="pipe is a truncated gzip"):
        verify.read(path)


def test_parquet_from_a_pipe_is_refused(tmp_path: Path) -> None:
    with (
        _pipe(tmp_path / "pipe", _parquet_bytes(), 1 << 20) as path,
        pytest.raises(InputError, match="pipe is Parquet, which cannot be read as a stream; write it to a file"),
    ):
        verify.read(path)


@pytest.mark.parametrize("name", ["h.jsonl", "h.jsonl.gz", "h.parquet", "folder"])
def test_every_file_is_opened_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        (path / "a.jsonl").write_text(LINES)
        (path / "b.jsonl").write_text(LINES)
    else:
        data = {"h.jsonl": LINES.encode(), "h.jsonl.gz": gzip.compress(LINES.encode()), "h.parquet": _parquet_bytes()}
        path.write_bytes(data[name])
    opened: list[str] = []
    original = io.open

    def counted(file: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(file).endswith(".header.json"):
            opened.append(str(file))
        return original(file, *args, **kwargs)

    monkeypatch.setattr(io, "open", counted)
    verify.read(path)
    assert opened == [str(path / part) for part in (("a.jsonl", "b.jsonl") if name == "folder" else ("",))]


def _loop(folder: Path) -> Path:
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    return folder / "loop.jsonl"


def _socket(folder: Path) -> Path:
    with contextlib.chdir(folder), socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
    return folder / "s"


NO_FILES: dict[str, tuple[Callable[[Path], Path | str], str]] = {
    "a name that is too long": (
        lambda folder: folder / ("x" * 300),
        "* cannot be read (File name too long); name a history",
    ),
    "a loop of links": (_loop, "{} cannot be read (Too many levels of symbolic links); name a history"),
    "below a file": (
        lambda folder: _written(folder / "f") / "g",
        "{} cannot be read (Not a directory); name a history",
    ),
    "a socket": (_socket, "{} is a socket; name a file, a folder, a pipe, or - (standard input)"),
    "a device": (lambda _: "/dev/full", "{} is a device; name a file, a folder, a pipe, or - (standard input)"),
    "a NUL in the name": (lambda _: "a\0b", "a\\x00b cannot be the name of a file; name a history"),
    "half a surrogate pair": (lambda _: "a\ud800b", "a\\ud800b cannot be the name of a file; name a history"),
    "a line feed in the name": (lambda _: "no\nthing", "there is no file no\\nthing; name a history"),
    "bytes that are no UTF-8": (lambda _: os.fsdecode(b"\xff"), "there is no file \\udcff; name a history"),
    "a folder named as lines": (
        lambda folder: _made(folder / "x.jsonl"),
        "{} is a folder without parts; name a history, or write parts (*.parquet, or *.jsonl and *.jsonl.gz) to it",
    ),
}


def _written(path: Path) -> Path:
    path.write_text(LINES)
    return path


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(("make", "sentence"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_refused_in_one_sentence(
    make: Callable[[Path], Path | str], sentence: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    for look in (verify.read, verify.read_header):
        with pytest.raises(InputError) as caught:
            look(path)
        said = str(caught.value)
        assert said.endswith(sentence[1:]) if sentence.startswith("*") else said == sentence.replace("{}", str(path))


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder to which a mere user has no access, and such a user."""
    folder = Path(tempfile.mkdtemp())
    user = os.geteuid()
    for name in ("unlisted", "unread"):
        (folder / name).mkdir()
        (folder / name / "part.parquet").write_bytes(_parquet_bytes())
    folder.chmod(0o755)
    (folder / "unlisted").chmod(0)
    (folder / "unread" / "part.parquet").chmod(0)
    (folder / "unread").chmod(0o755)
    if user == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(user)
    (folder / "unlisted").chmod(0o700)
    for name in ("unlisted", "unread"):
        (folder / name / "part.parquet").unlink()
        (folder / name).rmdir()
    folder.rmdir()


@pytest.mark.parametrize("name", ["unlisted", "unlisted/part.parquet", "unread/part.parquet"])
def test_what_is_locked_is_called_so(name: str, locked: Path) -> None:
    with pytest.raises(InputError) as caught:
        verify.read(locked / name)
    assert str(caught.value) == f"{locked / name} cannot be read (Permission denied); make it readable"


def test_parts_without_a_header_are_read_from_inside_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.parquet").write_bytes(_parquet_bytes())
    monkeypatch.chdir(tmp_path / "parts")
    assert verify.read(".").header is None
    (tmp_path / "parts.header.json").write_text(HEADER)
    for path in (".", "../parts", tmp_path / "parts"):
        recorded = verify.read(path)
        assert recorded.header is not None
        assert recorded.header.config == {"profile": "ems"}


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is cut between two lines, so that every line that is left can be read."""
    path = tmp_path / "h.jsonl"
    path.write_text(LINES * 1000)
    monkeypatch.setattr(open_, "BLOCK", 1 << 10)
    original = lines_.parse_block

    def cutting(data: bytes, first: int = 1, part: str | None = None) -> Any:
        os.truncate(path, len(LINES) * 500)
        return original(data, first, part)

    monkeypatch.setattr(open_, "parse_block", cutting)
    with pytest.raises(InputError, match="was cut while it was read; verify it when nothing writes to it"):
        verify.read(path)


def test_a_part_that_vanishes_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(LINES)
    original = lines_.parse_block

    def removing(data: bytes, first: int = 1, part: str | None = None) -> Any:
        (tmp_path / "b.jsonl").unlink(missing_ok=True)
        return original(data, first, part)

    monkeypatch.setattr(open_, "parse_block", removing)
    with pytest.raises(InputError) as caught:
        verify.read(tmp_path)
    assert str(caught.value) == f"there is no file {tmp_path}/b.jsonl; name a history"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOMEM, errno.EMFILE])
def test_a_machine_that_fails_is_not_the_fault_of_the_file(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _written(tmp_path / "h.jsonl")

    def failing(*_: object) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(open_, "_stream", failing)
    with pytest.raises(HostError) as caught:
        verify.read(path)
    assert str(caught.value).startswith(f"{path} cannot be read ({os.strerror(code)}); ")


def test_a_process_has_no_history_in_its_memory() -> None:
    with pytest.raises(HostError, match=r"/proc/self/mem cannot be read \(Input/output error\)"):
        verify.read("/proc/self/mem")


FOREIGN = {
    "an escape sequence": "\x1b[2J\x1b[Hvalid: all that was found is allowed",
    "a line of its own": "x\nvalid: all that was found is allowed",
    "ten megabytes": "x" * 10_000_000,
    "text that is written from right to left": "\u202evalid",
}


@pytest.mark.parametrize("field", ["event", "scope", "fault", "delivery_mode"])
@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_a_reason_quotes_is_escaped_and_short(field: str, text: str, tmp_path: Path) -> None:
    event = {"t": 9, "process": "p", "event": "acknowledge", "scope": "session", "message": "m"} | {field: text}
    path = tmp_path / "h.jsonl"
    path.write_text(LINES + json.dumps(event) + "\n")
    (unreadable,) = verify.read(path).unreadable
    said = str(unreadable)
    assert said.isprintable()
    assert len(said) < 1_000
    assert f"line 7: there is no {field} '" in said


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize(
    "header",
    [
        lambda text: {"ackfsm_history": text},
        lambda text: {"ackfsm_history": 1, "config": {text: 1}},
        lambda text: {"ackfsm_history": 1, "config": {"send_mode": text}},
        lambda text: {"ackfsm_history": 1, "config": {"prefetch": [text]}},
    ],
    ids=["version", "setting", "value", "list"],
)
def test_what_a_refusal_quotes_of_a_header_is_escaped_and_short(
    header: Callable[[str], dict[str, Any]], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(json.dumps(header(text)) + "\n" + LINES)
    with pytest.raises(InputError) as caught:
        verify.read(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 2_000


def test_a_name_of_a_part_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J\n.jsonl").write_text(LINES + "{}\n")
    assert str(verify.read(tmp_path).unreadable[0]) == "a\\x1b[2J\\n.jsonl, line 7: `t` is missing"
    (tmp_path / "a\x1b[2J\n.jsonl").write_text("{}\n")
    with pytest.raises(InputError) as caught:
        verify.read(tmp_path)
    assert str(caught.value).isprintable()
