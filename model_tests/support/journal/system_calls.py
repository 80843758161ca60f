"""System calls of a journal, as they were made: recorded by strace or by a wrapped ``os``, and one checker for both.

What is held: nothing is confirmed before every byte that was written, and every name that was made or changed, is on
stable storage; no file is renamed before it is; no segment is removed before the name of what replaces it is; and no
watermark is written while something else waits.  What may wait is a seal, or a mark of the watermark.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

__all__ = ["CONFIRMED", "TRACED", "Call", "parsed", "recorded", "violations"]

CONFIRMED = b"confirmed "
"""How a line begins by which a program says that something is confirmed."""

_SEAL = b"\xf5AJS"
_MARK_SIZE = 36
_SEEN = 40
"""So many bytes of what is written are kept: enough to tell a mark."""


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded.

    Attributes:
        name: ``open``, ``mkdir``, ``write``, ``truncate``, ``sync``, ``rename``, ``link``, ``unlink``, ``close``, or
            ``confirm``.
        file: the descriptor.
        path: of what is opened, made, renamed or removed.
        to: the other path.
        data: how what is written begins; what is confirmed.
        size: how much of it was written.
    """

    name: str
    file: int = -1
    path: str = ""
    to: str = ""
    data: bytes = b""
    size: int = 0


class _File:
    """A file: what was written to it since its last sync."""

    def __init__(self) -> None:
        self.waiting: list[Call] = []

    def unsafe(self) -> int:
        """How many bytes wait that must not; a write that cuts or replaces counts as one."""
        return sum(max(call.size, 1) for call in self.waiting if not _is_mark(call))


def _is_mark(call: Call) -> bool:
    return call.name == "write" and call.size == _MARK_SIZE and call.data.startswith(_SEAL)


class _Held:
    """A folder and what is in it, as far as the calls say."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: dict[str, _File] = {}
        self.open: dict[int, _File | str] = {}
        self.unsafe_names: set[str] = set()
        self.found: list[str] = []

    def take(self, call: Call) -> None:
        getattr(self, f"_{call.name}")(call)

    def _ours(self, path: str) -> bool:
        return path.startswith(self.folder)

    def _open(self, call: Call) -> None:
        if Path(call.path).is_dir() or call.path in self.unsafe_folders():
            self.open[call.file] = call.path
        elif self._ours(call.path):
            if call.path not in self.files:
                self.files[call.path] = _File()
                self.unsafe_names.add(call.path)
            self.open[call.file] = self.files[call.path]

    def unsafe_folders(self) -> set[str]:
        return {str(Path(name).parent) for name in self.files}

    def _mkdir(self, call: Call) -> None:
        if self._ours(call.path):
            self.unsafe_names.add(call.path)

    def _write(self, call: Call) -> None:
        file = self.open.get(call.file)
        if isinstance(file, _File):
            name = next(name for name, each in self.files.items() if each is file)
            if name.endswith("watermark"):
                self._all_is_safe(f"{_short(name)} is written", but=file)
            file.waiting.append(call)

    _truncate = _write

    def _sync(self, call: Call) -> None:
        synced = self.open.get(call.file)
        if isinstance(synced, _File):
            synced.waiting.clear()
        elif synced is not None:
            self.unsafe_names = {name for name in self.unsafe_names if str(Path(name).parent) != synced}

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

    def _close(self, call: Call) -> None:
        self.open.pop(call.file, None)

    def _confirm(self, call: Call) -> None:
        said = call.data.decode().strip()
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


def violations(calls: Iterable[Call], folder: Path) -> list[str]:
    """What the calls of a program that works in ``folder`` (empty at first) did too early, or not at all."""
    held = _Held(f"{folder}{os.sep}")
    confirmed = 0
    for call in calls:
        held.take(call)
        confirmed += call.name == "confirm"
    assert confirmed, "nothing was confirmed: nothing has been held to anything"
    return held.found


# strace

TRACED = (
    "openat,open,creat,mkdir,mkdirat,pwrite64,write,writev,pwritev,pwritev2,fdatasync,fsync,rename,renameat,renameat2,"
    "link,linkat,unlink,unlinkat,ftruncate,close,dup,dup2,dup3"
)
"""The calls that are asked of strace."""

_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_SYNCS = {"fdatasync", "fsync"}
_WRITES = {"write", "pwrite64"}
_PATHS = {
    "openat": "open", "open": "open", "creat": "open", "mkdir": "mkdir", "mkdirat": "mkdir", "rename": "rename",
    "renameat": "rename", "renameat2": "rename", "link": "link", "linkat": "link", "unlink": "unlink",
    "unlinkat": "unlink",
}  # fmt: skip


def parsed(trace: str) -> Iterator[Call]:
    """The calls in what ``strace -f -xx -e trace=...`` has written, those of one process."""
    for line in trace.splitlines():
        match = _LINE.match(line)
        assert match is not None or "resumed" not in line, f"two threads at once, which this does not read: {line}"
        if match is not None and int(match["result"]) >= 0:
            yield from _call(match["name"], match["arguments"], int(match["result"]))


def _call(name: str, arguments: str, result: int) -> Iterator[Call]:
    texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(arguments)]
    if name in _PATHS:
        path, to = (*(text.decode() for text in texts), "")[:2]
        yield Call(_PATHS[name], result, path, to)
        return
    number = re.match(r"\d+", arguments)
    assert number is not None, arguments
    file = int(number[0])
    if name in _WRITES:
        data = texts[0]
        confirms = file == 1 and data.startswith(CONFIRMED)
        yield Call("confirm", data=data) if confirms else Call("write", file, data=data[:_SEEN], size=result)
    elif name in _SYNCS:
        yield Call("sync", file)
    elif name == "ftruncate":
        yield Call("truncate", file)
    elif name == "close":
        yield Call("close", file)
    else:
        raise AssertionError(f"{name} is not read by this: extend it")


# os


def recorded(patch: pytest.MonkeyPatch) -> list[Call]:
    """The calls through the module ``os`` from now on, each of which is made as well."""
    calls: list[Call] = []

    def wrap(name: str, told: Callable[..., Call]) -> None:
        real = getattr(os, name)

        def wrapped(*arguments: Any, **settings: Any) -> Any:
            result = real(*arguments, **settings)
            calls.append(told(result, *arguments))
            return result

        patch.setattr(os, name, wrapped)

    wrap("open", lambda file, path, *_: Call("open", file, str(path)))
    wrap("mkdir", lambda _, path, *__: Call("mkdir", path=str(path)))
    wrap("pwrite", lambda size, file, data, *_: Call("write", file, data=bytes(data[:_SEEN]), size=size))
    wrap("fdatasync", lambda _, file: Call("sync", file))
    wrap("fsync", lambda _, file: Call("sync", file))
    wrap("ftruncate", lambda _, file, *__: Call("truncate", file))
    wrap("rename", lambda _, path, to: Call("rename", path=str(path), to=str(to)))
    wrap("link", lambda _, path, to: Call("link", path=str(path), to=str(to)))
    wrap("unlink", lambda _, path: Call("unlink", path=str(path)))
    wrap("close", lambda _, file: Call("close", file))
    return calls
