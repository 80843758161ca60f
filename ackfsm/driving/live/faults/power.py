"""The folder of a program as a loss of power would leave it, at any moment of a recorded run.

A :class:`Recording` lets programs note what they do below a folder: a small library, compiled here, is preloaded into
them.  :meth:`Recording.at` tells what a disk would hold at a moment::

    recording = Recording(Path("data"), Path("notes"))
    subprocess.run(broker, env={**os.environ, **recording.environment})
    recording.at(moment).restore(Path("data"), Kept.NONE)  # all broker processes have ended before

What a disk keeps, and nothing else may be relied on:

* The bytes and the length of a file, once a ``fsync`` or ``fdatasync`` of it, begun after they were written, has
  returned.  Of what was written since, each page may be on the disk as it was at any moment since then.
* A name that was made, changed or removed, once its folder was synced.  The sync of a file that is new keeps its name
  too, and those of the new folders above it; ``fsync`` keeps a rename of the file as well.
* A change of names is there or not, as a whole, and not without those before it on which it builds.  In ext4 and XFS
  it is not there without any before it: they keep a log of them (:class:`Names`).
"""

from __future__ import annotations

import bisect
import dataclasses
import enum
import functools
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ackfsm.support.files import make_folder
from ackfsm.terms import HostError, InputError

__all__ = ["Call", "Disk", "Kept", "Kind", "Names", "Recording", "lacks"]

_SOURCE: Final = Path(__file__).with_name("record.c")
_RECORD: Final = struct.Struct("=4I6Q")
_PAGE: Final = 4096
_TRUNCATES: Final = 1
_DATA_ONLY: Final = 2
_SYNCED: Final = 4


class Kept(enum.Enum):
    """What is on the disk of the changes that no sync has covered; a seed in its place decides about each by chance."""

    ALL = "all"
    NONE = "none"


class Names(enum.Enum):
    """Which changes of names a sync keeps beside those of its own file or folder."""

    ORDERED = "ordered"
    """All before it, where the sync changes more than bytes in place: as ext4 and XFS do, whose log has an order."""
    EACH = "each"
    """None: what POSIX promises."""


class Kind(enum.Enum):
    """What a program did; the values are those of the log."""

    OPEN = "o"
    """Opened so that the file is made if it is missing, or emptied."""
    WRITE = "w"
    TRUNCATE = "t"
    """Given a length, a longer or a shorter one."""
    SYNC = "s"
    RENAME = "r"
    LINK = "l"
    UNLINK = "u"
    MKDIR = "m"
    UNSEEN = "?"
    """Something was changed in a way that is not recorded; ``to`` says how."""


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded.

    Attributes:
        kind: what was done.
        begin: when a sync began, in nanoseconds of ``time.monotonic_ns``.
        end: when it was done.
        path: of the file or folder.
        to: its other name.
        inode: of the file.
        offset: where it was written.
        size: how many bytes, or the length that the file got.
        data: what was written.
        flags: those of the log.
    """

    kind: Kind
    begin: int = 0
    end: int = 0
    path: str = ""
    to: str = ""
    inode: int = 0
    offset: int = 0
    size: int = 0
    data: bytes | memoryview = b""
    flags: int = 0


class Recording:
    """What programs do below ``folder`` from now on, noted in ``notes``, a folder that is made.

    What is in ``folder`` now counts as on the disk; notes of an earlier recording are replaced.  Programs that are
    started with :attr:`environment`, and those that they start, are recorded, one after the other or at once.

    Raises :class:`ackfsm.terms.InputError` without a compiler of C.
    """

    def __init__(self, folder: Path, notes: Path) -> None:
        self.folder = folder.resolve(strict=True)
        make_folder(notes)
        self._log = notes.resolve() / "calls"
        self._log.write_bytes(b"")
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(_compiled(notes.resolve())),
            "ACKFSM_POWER_FOLDER": str(self.folder),
            "ACKFSM_POWER_LOG": str(self._log),
        }
        """The variables with which a program is started that is to be recorded."""
        self._base = dict(_found(self.folder))
        self._syncs: list[Call] = []

    def sync(self) -> None:
        """Let all that was done so far count as on the disk, as a broker that was set up and left alone has it."""
        now = time.monotonic_ns()
        self._syncs.append(Call(Kind.SYNC, now, now))

    def calls(self) -> list[Call]:
        """What was done so far, in the order in which it was done."""
        calls = [*_read(memoryview(self._log.read_bytes())), *self._syncs]
        return sorted(calls, key=lambda call: call.end)

    def disk(self, names: Names = Names.ORDERED) -> Disk:
        """The disk as it was when the recording began; it is led through the calls by :meth:`Disk.do`."""
        return Disk(self.folder, self._base, names)

    def at(self, moment: int, names: Names = Names.ORDERED) -> Disk:
        """What a disk would hold at ``moment`` (``time.monotonic_ns``)."""
        return next(self.cuts([moment], names))

    def cuts(self, moments: Iterable[int], names: Names = Names.ORDERED) -> Iterator[Disk]:
        """The same for one moment after the other; each disk is good until the next is asked for."""
        calls, disk, done = self.calls(), self.disk(names), 0
        for moment in sorted(moments):
            until = bisect.bisect_right(calls, moment, key=lambda call: call.end)
            yield disk.do(calls[done:until])
            done = max(done, until)

    def unseen(self) -> list[str]:
        """What the programs did in ways that are not recorded, so that no disk of this recording can be trusted."""
        return sorted({f"{call.path}: {call.to}" for call in self.calls() if call.kind is Kind.UNSEEN})

    def differences(self) -> list[str]:
        """The files that are not in the folder as the calls say, or not only: they were changed unseen."""
        said, found = self.disk().do(self.calls()).files(Kept.ALL), _found(self.folder)
        there = {path: None if content is None else content[2] for path, content in found}
        names = {str(path.relative_to(self.folder)) for path in there}
        wrong = names ^ set(said)
        wrong |= {name for name in names & set(said) if there[self.folder / name] != said[name]}
        return sorted(wrong)


def lacks() -> str:
    """What is missing on this machine to record programs, and how that is had; empty if nothing is."""
    if _compiler():
        return ""
    return "there is no compiler of C, which recording for a loss of power needs: apt-get install gcc"


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def _compiled(notes: Path) -> Path:
    """The library that is preloaded, which is kept in the folder of the notes."""
    library, compiler = notes / "record.so", _compiler()
    if library.exists():
        return library
    if compiler is None:
        raise InputError(lacks())
    command = [compiler, "-O1", "-fPIC", "-shared", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the compiler
    if done.returncode:
        raise HostError(f"the library that records system calls cannot be compiled here: {done.stderr.strip()[-500:]}")
    return library


def _found(folder: Path) -> Iterator[tuple[Path, tuple[int, int, bytes] | None]]:
    """Everything below a folder: a file with inode, mode and bytes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            about = path.stat()
            yield path, (about.st_ino, about.st_mode & 0o7777, path.read_bytes())
        elif path.is_dir():
            yield path, None


def _read(log: memoryview) -> Iterator[Call]:
    """The calls of a log; one that was being written when its program was killed is left out."""
    place = 0
    while place + _RECORD.size <= len(log):
        kind, flags, path, to, begin, end, inode, offset, size, data = _RECORD.unpack_from(log, place)
        texts = place + _RECORD.size
        place = texts + path + to + data
        if place > len(log):
            return
        yield Call(
            Kind(chr(kind)),
            begin,
            end,
            _text(log[texts : texts + path]),
            _text(log[texts + path : texts + path + to]),
            inode,
            offset,
            size,
            log[place - data : place],
            flags,
        )


def _text(data: memoryview) -> str:
    return bytes(data).decode(errors="surrogateescape").removesuffix(" (deleted)")


# files


class _Node:
    """A file or a folder, whatever its names."""


class _Folder(_Node):
    def __init__(self) -> None:
        self.now: dict[str, _Node] = {}
        self.stable: dict[str, _Node] = {}


class _File(_Node):
    """A file: what is stable of it, and the changes since."""

    def __init__(self, mode: int, stable: bytes = b"") -> None:
        self.mode = mode
        self.stable = bytearray(stable)
        self.waiting: list[Call] = []
        self.kept: dict[int, int] = {}
        """So many of the changes are stable already of a page, since one of it was written and synced at once."""
        self.kept_size = 0

    def needs_log(self, begin: int, *, data_only: bool) -> bool:
        """Whether a sync changes more than bytes in place: the length, or the time of the last change."""
        covered = [call for call in self.waiting if call.end <= begin]
        size = functools.reduce(lambda size, call: _size_after(call, size), covered, len(self.stable))
        return bool(covered) and (not data_only or size != len(self.stable))

    def sync(self, begin: int) -> None:
        covered = sum(call.end <= begin for call in self.waiting)
        if self.kept:
            self.stable = self._mixed(lambda _: covered, covered)
        else:
            for call in self.waiting[:covered]:
                _make(self.stable, call)
        del self.waiting[:covered]
        self.kept = {page: count - covered for page, count in self.kept.items() if count > covered}
        self.kept_size = max(0, self.kept_size - covered)

    def change(self, call: Call) -> None:
        self.waiting.append(call)
        if call.flags & _SYNCED:
            self.kept |= dict.fromkeys(_pages(call.offset, call.offset + call.size), len(self.waiting))
            self.kept_size = len(self.waiting)

    def content(self, kept: Kept | random.Random) -> bytearray:
        """The bytes with all that is not stable, with nothing of it, or with what chance keeps of each page."""
        count = len(self.waiting)
        if isinstance(kept, random.Random):
            return self._mixed(lambda _: kept.randint(0, count), kept.randint(0, count))
        if kept is Kept.NONE:
            return self._mixed(lambda _: 0, 0) if self.kept else self.stable
        data = bytearray(self.stable)
        for call in self.waiting:
            _make(data, call)
        return data

    def _mixed(self, keep: Callable[[int], int], keep_size: int) -> bytearray:
        """The bytes with so many of the changes of each page, and of the size."""
        data, size = bytearray(self.stable), len(self.stable)
        keep_size = max(keep_size, self.kept_size)
        counts: dict[int, int] = {}

        def kept(page: int, number: int) -> bool:
            if page not in counts:
                counts[page] = max(keep(page), self.kept.get(page, 0))
            return number < counts[page]

        longest = size
        for number, call in enumerate(self.waiting):
            before, longest = longest, _size_after(call, longest)
            size = longest if number < keep_size else size
            begin, end, new = _changed(call, before)
            data.extend(bytes(max(0, end - len(data))))
            for page in _pages(begin, end):
                if kept(page, number):
                    a, b = max(begin, page * _PAGE), min(end, (page + 1) * _PAGE)
                    data[a:b] = new[a - begin : b - begin] if new else bytes(b - a)
        del data[size:]
        return data + bytes(size - len(data))


def _make(data: bytearray, call: Call) -> None:
    """Make a change, the whole of it."""
    begin, end, new = _changed(call, len(data))
    size = _size_after(call, len(data))
    data.extend(bytes(max(0, size - len(data))))
    data[begin:end] = new or bytes(end - begin)
    del data[size:]


def _pages(begin: int, end: int) -> range:
    return range(begin // _PAGE, -(-end // _PAGE))


def _size_after(call: Call, size: int) -> int:
    if call.kind is Kind.WRITE:
        return max(size, call.offset + call.size)
    return call.size if call.kind is Kind.TRUNCATE else size


def _changed(call: Call, size: int) -> tuple[int, int, bytes | memoryview]:
    """Where the bytes of a file of ``size`` change, and to what: nothing stands for zeros."""
    if call.kind is Kind.WRITE:
        return call.offset, call.offset + call.size, call.data
    return call.size, max(size, call.size), b""


# names


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Naming:
    """Names of a node that are given and taken at once; ``None`` takes."""

    end: int
    node: _Node
    makes: bool
    changes: tuple[tuple[_Folder, str, _Node | None], ...]

    def builds_on(self, earlier: _Naming) -> bool:
        return any(
            (folder is other and name == like) or (node is folder)
            for folder, name, _ in self.changes
            for other, like, node in earlier.changes
        )


def _closed(waiting: list[_Naming], chosen: set[_Naming]) -> list[_Naming]:
    """Those that are chosen, and those before them on which they build, in their order."""
    closed: list[_Naming] = []
    for each in reversed(waiting):
        if each in chosen or any(later.builds_on(each) for later in closed):
            closed.append(each)
    return closed[::-1]


class Disk:
    """What is stable below ``folder``, and what may be."""

    def __init__(self, folder: Path, base: Mapping[Path, tuple[int, int, bytes] | None], names: Names) -> None:
        self._ordered = names is Names.ORDERED
        self._prefix = f"{folder}/"
        self._root = _Folder()
        self._inodes: dict[int, _File] = {}
        self._waiting: list[_Naming] = []
        for path, content in base.items():
            parent, name = self._place(str(path))
            node: _Node = _Folder()
            if content is not None:
                node = self._inodes[content[0]] = self._inodes.get(content[0]) or _File(*content[1:])
            parent.now[name] = parent.stable[name] = node

    def do(self, calls: Iterable[Call]) -> Disk:
        """This disk after these calls, which follow those so far."""
        for call in calls:
            getattr(self, f"_{call.kind.name.lower()}")(call)
        return self

    def files(self, kept: Kept | int) -> dict[str, bytes | None]:
        """The files by their paths, and the folders (``None``), if the power is lost now."""
        return {
            path: None if isinstance(node, _Folder) else bytes(content) for path, node, content in self._chosen(kept)
        }

    def restore(self, folder: Path, kept: Kept | int) -> None:
        """Make ``folder`` hold what is left if the power is lost now, and nothing else.

        A file that is there now keeps its mode: changes of modes are not recorded.
        """
        make_folder(folder)
        modes = {str(path.relative_to(folder)): path.stat().st_mode for path in folder.rglob("*") if path.is_file()}
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, node, content in self._chosen(kept):
            if isinstance(node, _File):
                (folder / name).write_bytes(content)
                (folder / name).chmod(modes.get(name, node.mode))
            else:
                (folder / name).mkdir()

    def _chosen(self, kept: Kept | int) -> Iterator[tuple[str, _Node, bytearray]]:
        chance = random.Random(kept if isinstance(kept, int) else 0)  # noqa: S311 - a seed, no secret
        count = len(self._waiting)
        if isinstance(kept, int) and not self._ordered:
            share = chance.random()
            names = {each for each in self._waiting if chance.random() < share}
        else:
            counts = {Kept.ALL: count, Kept.NONE: 0}
            names = set(self._waiting[: chance.randint(0, count) if isinstance(kept, int) else counts[kept]])
        tree: dict[_Folder, dict[str, _Node]] = {}
        for naming in _closed(self._waiting, names):
            _apply(naming, lambda folder: tree.setdefault(folder, dict(folder.stable)))
        yield from self._walk(self._root, "", tree, kept, chance)

    def _walk(
        self,
        folder: _Folder,
        prefix: str,
        tree: Mapping[_Folder, dict[str, _Node]],
        kept: Kept | int,
        chance: random.Random,
    ) -> Iterator[tuple[str, _Node, bytearray]]:
        for name, node in sorted(tree.get(folder, folder.stable).items()):
            if isinstance(node, _Folder):
                yield prefix + name, node, bytearray()
                yield from self._walk(node, f"{prefix}{name}/", tree, kept, chance)
            elif isinstance(node, _File):
                yield prefix + name, node, node.content(chance if isinstance(kept, int) else kept)

    def _place(self, path: str) -> tuple[_Folder, str]:
        """The folder in which a path is, and its name there."""
        *folders, name = path.removeprefix(self._prefix).split("/")
        parent = self._root
        for each in folders:
            inner = parent.now.get(each)
            if not isinstance(inner, _Folder):
                raise HostError(f"{path}: its folder was not seen to be made; this program cannot be recorded so")
            parent = inner
        return parent, name

    def _name(self, call: Call, node: _Node, *changes: tuple[str, _Node | None], makes: bool = False) -> None:
        naming = _Naming(call.end, node, makes, tuple((*self._place(path), new) for path, new in changes))
        _apply(naming, lambda folder: folder.now)
        self._waiting.append(naming)

    def _ours(self, path: str) -> bool:
        return path.startswith(self._prefix)

    def _node(self, path: str) -> _Node | None:
        folder, name = self._place(path)
        return folder.now.get(name)

    # what the calls do

    def _open(self, call: Call) -> None:
        file = self._node(call.path)
        if not isinstance(file, _File) or self._inodes.get(call.inode) is not file:
            file = self._inodes[call.inode] = _File(call.size)
            self._name(call, file, (call.path, file), makes=True)
        if call.flags & _TRUNCATES:
            file.change(dataclasses.replace(call, kind=Kind.TRUNCATE, size=0, flags=0))

    def _write(self, call: Call) -> None:
        if call.inode not in self._inodes:
            raise HostError(f"{call.path}: the file was not seen to be made; this program cannot be recorded so")
        file = self._inodes[call.inode]
        file.change(call)
        if call.flags & _SYNCED:
            self._settle(file, call.end, data_only=True, log=True)

    _truncate = _write

    def _sync(self, call: Call) -> None:
        if not call.path:  # of everything
            for file in self._inodes.values():
                file.sync(call.begin)
            for naming in self._waiting:
                _apply(naming, lambda folder: folder.stable)
            self._waiting.clear()
            return
        node: _Node | None = self._inodes.get(call.inode)
        data_only, log = bool(call.flags & _DATA_ONLY), False
        if isinstance(node, _File):
            log = node.needs_log(call.begin, data_only=data_only)
            node.sync(call.begin)
        else:
            node = self._node(call.path) if self._ours(call.path) else self._root
        self._settle(node, call.begin, data_only=data_only, log=log)

    def _settle(self, node: _Node | None, before: int, *, data_only: bool, log: bool) -> None:
        """The names that the sync of a node keeps are stable."""

        def covered(naming: _Naming) -> bool:
            if naming.node is node:
                return naming.makes or not data_only
            return any(folder is node for folder, _, _ in naming.changes)

        earlier = [each for each in self._waiting if each.end <= before]
        chosen = {each for each in earlier if covered(each)}
        if self._ordered and (log or chosen):
            chosen = set(earlier)
        for naming in _closed(self._waiting, chosen):
            _apply(naming, lambda folder: folder.stable)
            self._waiting.remove(naming)

    def _rename(self, call: Call) -> None:
        if not self._ours(call.path):
            raise HostError(f"{call.to}: it was moved here from elsewhere; this program cannot be recorded so")
        node = self._node(call.path)
        if node is not None and node is not (self._node(call.to) if self._ours(call.to) else None):
            self._name(call, node, (call.path, None), *([(call.to, node)] if self._ours(call.to) else []))

    def _link(self, call: Call) -> None:
        node = self._node(call.path) if self._ours(call.path) else None
        if node is not None and self._ours(call.to):
            self._name(call, node, (call.to, node), makes=True)

    def _unlink(self, call: Call) -> None:
        node = self._node(call.path)
        if node is not None:
            self._name(call, node, (call.path, None))

    def _mkdir(self, call: Call) -> None:
        folder = _Folder()
        self._name(call, folder, (call.path, folder), makes=True)

    def _unseen(self, call: Call) -> None:
        """Told by :meth:`Recording.unseen`."""


def _apply(naming: _Naming, entries: Callable[[_Folder], dict[str, _Node]]) -> None:
    for folder, name, node in naming.changes:
        if node is None:
            entries(folder).pop(name, None)
        else:
            entries(folder)[name] = node
