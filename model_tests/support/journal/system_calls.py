"""System calls of a journal, as they were made: recorded as for power loss or by a wrapped ``os``, and one checker.

What is held: nothing is confirmed before every byte that was written, and every name that was made or changed, is on
stable storage; no file is renamed before it is; no segment is removed before the name of what replaces it is; and no
watermark is written while something else waits.  What may wait is a seal, or a mark of the watermark.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ackfsm.driving.live.faults.power import Call, Kind

if TYPE_CHECKING:
    import pytest

_SEAL = b"\xf5AJS"
_MARK_SIZE = 36


class _File:
    """A file: what was written to it since its last sync."""

    def __init__(self) -> None:
        self.waiting: list[Call] = []

    def unsafe(self) -> int:
        """How many bytes wait that must not; a write that cuts or replaces counts as one."""
        return sum(max(call.size, 1) for call in self.waiting if not _is_mark(call))


def _is_mark(call: Call) -> bool:
    return call.kind is Kind.WRITE and call.size == _MARK_SIZE and bytes(call.data).startswith(_SEAL)


class _Held:
    """A folder and what is in it, as far as the calls say."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: dict[str, _File] = {}
        self.inodes: dict[int, _File] = {}
        self.unsafe_names: set[str] = set()
        self.found: list[str] = []

    def take(self, call: Call) -> None:
        getattr(self, f"_{call.kind.name.lower()}")(call)

    def _ours(self, path: str) -> bool:
        return path.startswith(self.folder)

    def _open(self, call: Call) -> None:
        if self._ours(call.path) and not Path(call.path).is_dir():
            if call.path not in self.files:
                self.files[call.path] = _File()
                self.unsafe_names.add(call.path)
            self.inodes[call.inode] = self.files[call.path]

    def _mkdir(self, call: Call) -> None:
        if self._ours(call.path):
            self.unsafe_names.add(call.path)

    def _write(self, call: Call) -> None:
        if call.inode in self.inodes:
            file = self.inodes[call.inode]
            name = next(name for name, each in self.files.items() if each is file)
            if name.endswith("watermark"):
                self._all_is_safe(f"{_short(name)} is written", but=file)
            file.waiting.append(call)

    _truncate = _write

    def _sync(self, call: Call) -> None:
        if call.inode in self.inodes:
            self.inodes[call.inode].waiting.clear()
        else:
            self.unsafe_names = {name for name in self.unsafe_names if str(Path(name).parent) != call.path}

    def _rename(self, call: Call, *, keep: bool = False) -> None:
        if not self._ours(call.path):
            return
        file = self.files[call.path] if keep else self.files.pop(call.path)
        if file.unsafe():
            self.found.append(f"{_short(call.path)} gets a name while {file.unsafe():,} bytes of it wait for a sync")
        if not keep:
            self.unsafe_names.discard(call.path)
        self.files[call.to] = file
        self.unsafe_names.add(call.to)

    def _link(self, call: Call) -> None:
        self._rename(call, keep=True)

    def _unlink(self, call: Call) -> None:
        if not self._ours(call.path):
            return
        if call.path.endswith(".journal"):
            self._names_are_safe(f"{_short(call.path)} is removed")
        self.files.pop(call.path, None)
        self.unsafe_names.discard(call.path)

    def confirm(self, said: str) -> None:
        self._all_is_safe(said)
        self._names_are_safe(said)

    def _all_is_safe(self, when: str, but: _File | None = None) -> None:
        for name, file in self.files.items():
            if file is not but and file.unsafe():
                self.found.append(f"{when}, and {file.unsafe():,} bytes of {_short(name)} wait for a sync")

    def _names_are_safe(self, when: str) -> None:
        for name in sorted(self.unsafe_names):
            self.found.append(f"{when}, and the folder has not been synced since {_short(name)} got its name")


def _short(path: str) -> str:
    return Path(path).name


def violations(calls: Iterable[Call | str], folder: Path) -> list[str]:
    """What a program did too early, or not at all, in ``folder``, empty at first; texts are what it confirmed."""
    held = _Held(f"{folder}{os.sep}")
    confirmed = 0
    for call in calls:
        if isinstance(call, str):
            held.confirm(call)
            confirmed += 1
        else:
            held.take(call)
    assert confirmed, "nothing was confirmed: nothing has been held to anything"
    return held.found


# programs of their own


def confirmation(what: str) -> bytes:
    """The line by which a program says that something is confirmed now."""
    return f"confirmed {time.monotonic_ns()} {what}\n".encode()


def confirmed(output: str, calls: Sequence[Call]) -> Iterator[Call | str]:
    """The calls of a program, and between them what it said that it had confirmed."""
    said = [(int(time), what) for time, what in re.findall(r"^confirmed (\d+) (.*)$", output, re.MULTILINE)]
    timed: list[tuple[int, Call | str]] = [(call.end, call) for call in calls]
    for _, each in sorted(timed + list(said), key=lambda each: each[0]):
        yield each


# os


def recorded(patch: pytest.MonkeyPatch) -> list[Call | str]:
    """The calls through the module ``os`` from now on, each of which is made as well."""
    calls: list[Call | str] = []

    def wrap(name: str, told: Callable[..., Call]) -> None:
        real = getattr(os, name)

        def wrapped(*arguments: Any, **settings: Any) -> Any:
            result = real(*arguments, **settings)
            calls.append(told(result, *arguments))
            return result

        patch.setattr(os, name, wrapped)

    def at(kind: Kind, file: int, size: int = 0, data: bytes = b"") -> Call:
        return Call(kind, inode=os.fstat(file).st_ino, path=folders.get(file, ""), size=size, data=data)

    folders: dict[int, str] = {}

    def opened(file: int, path: Path, *_: object) -> Call:
        folders[file] = str(path)
        return Call(Kind.OPEN, path=str(path), inode=os.fstat(file).st_ino)

    wrap("open", opened)
    wrap("mkdir", lambda _, path, *__: Call(Kind.MKDIR, path=str(path)))
    wrap("pwrite", lambda size, file, data, *_: at(Kind.WRITE, file, size, bytes(data)))
    wrap("fdatasync", lambda _, file: at(Kind.SYNC, file))
    wrap("fsync", lambda _, file: at(Kind.SYNC, file))
    wrap("ftruncate", lambda _, file, size: at(Kind.TRUNCATE, file, size))
    wrap("rename", lambda _, path, to: Call(Kind.RENAME, path=str(path), to=str(to)))
    wrap("link", lambda _, path, to: Call(Kind.LINK, path=str(path), to=str(to)))
    wrap("unlink", lambda _, path: Call(Kind.UNLINK, path=str(path)))
    return calls
