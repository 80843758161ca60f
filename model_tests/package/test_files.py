"""Files are written whole or not at all, and text from outside cannot act."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.support.files import write_file, write_files
from ackfsm.terms import HostError, InputError
from ackfsm.text import quoted, shown


def test_a_file_takes_the_place_of_another_with_its_mode(tmp_path: Path) -> None:
    old = tmp_path / "page"
    old.write_text("old")
    old.chmod(0o640)
    write_file(old, b"new")
    assert old.read_bytes() == b"new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [old]


def test_what_a_link_points_to_is_replaced_not_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("good")
    second.write_text("good too")
    synced: list[int] = []

    def full(number: int) -> None:
        synced.append(number)
        if len(synced) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match=r"second: cannot be written \(No space left on device\)"):
        write_files({first: b"bad", second: b"bad too"})
    assert (first.read_text(), second.read_text()) == ("good", "good too")
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_an_interrupt_in_the_midst_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page"
    path.write_text("good")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, b"bad")
    assert path.read_text() == "good"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"hello")
    reader.join()
    assert heard == [b"hello"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["", "no/such/folder", "x" * 300, "line\nend\x1b[2J/x"])
def test_an_impossible_name_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_file(tmp_path / name, b"x")
    assert str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())


@given(st.text())
def test_shown_text_cannot_act_and_differs_where_the_text_does(text: str) -> None:
    assert shown(text).isprintable()
    assert shown(text, most=len(text)).encode("ascii", "backslashreplace").decode("unicode_escape") == text


@given(st.text(min_size=1), st.integers(0, 5))
def test_long_text_is_cut_and_its_length_told(text: str, most: int) -> None:
    told = quoted(text * 3, most)
    assert told.isprintable()
    if len(text * 3) > most:
        assert told.endswith(f"…' ({3 * len(text):,} characters)")


def test_a_verdict_cannot_be_forged() -> None:
    assert quoted("\nvalid: all that was found is allowed") == "'\\nvalid: all that was found is allowed'"
    assert quoted("\x1b[2J\x9b0m\u202e") == "'\\x1b[2J\\x9b0m\\u202e'"
    assert quoted("it's") == "'it\\'s'"
