"""A file that threads and processes append whole lines to."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ackfsm.history.format import HEADER_KEY, VERSION
from ackfsm.recorder.clock import Clock
from ackfsm.recorder.lines import RecordingError
from ackfsm.terms import HostError
from ackfsm.text import quoted, shown

SHARED: Final = ("config", "queues", "api")
"""What all who write to one file agree on."""

_CLOCK: Final = "clock"
_NOT_PLAIN: Final = (".gz", ".parquet")
_READ: Final = 1 << 16


class HistoryFile:
    """An open history: one ``write`` of the system for a line, at the end of the file, without a buffer.

    A line is whole in the file when :meth:`append` returns, also if the program is killed right after.  Other threads,
    forked children and other programs may append to the same file meanwhile.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], *, fsync: bool, clock: Clock) -> None:
        """Begin the file with ``header`` and ``clock``, or go on with one that was begun with the same header.

        Raises :class:`RecordingError` for a path that cannot be a history, and for one with a different header.
        """
        self._path = path
        self._name = shown(str(path))
        self._fsync = fsync
        self._torn = False
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._descriptor: int | None = self._open()
        try:
            self.clock = self._begun(self._descriptor, header, clock)
        except BaseException:
            self.close()
            raise

    def append(self, line: bytes) -> None:
        """Append one line; raises :class:`HostError` where the system does not take the whole of it."""
        with self._held():
            if self._descriptor is None:
                raise RecordingError(f"{self._name} was closed; nothing can be recorded any more")
            self._append(self._descriptor, line)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._held():
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor = None

    def _held(self) -> threading.Lock:
        """The lock.  A forked child has one of its own: its parent's may be held by a thread that it does not have."""
        if self._pid != os.getpid():
            self._lock, self._pid = threading.Lock(), os.getpid()
        return self._lock

    def _open(self) -> int:
        if self._path.suffix in _NOT_PLAIN:
            raise RecordingError(f"{self._name}: lines are appended as plain text; name the file .jsonl")
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RecordingError(f"{self._name} cannot be opened ({error.strerror}); name another file") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise RecordingError(f"{self._name} is no file that can be appended to; name another one")
        return descriptor

    def _begun(self, descriptor: int, header: Mapping[str, Any], clock: Clock) -> Clock:
        """Write the header, or read the one that is there; of several who open the file at once the first writes."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            size = os.fstat(descriptor).st_size
            if size:
                # Of a line that somebody else is writing right now a part may be seen; a blank line is then too much,
                # and readers pass over that.
                self._torn = os.pread(descriptor, 1, size - 1) != b"\n"
                return Clock.of(self._agreed(self._first_line(descriptor), header)) or clock
            told = {HEADER_KEY: VERSION, **header, _CLOCK: clock.told()}
            self._append(descriptor, f"{json.dumps(told, separators=(',', ':'))}\n".encode("ascii"))
            return clock
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _first_line(self, descriptor: int) -> dict[str, Any]:
        line = b""
        while b"\n" not in line and (more := os.pread(descriptor, _READ, len(line))):
            line += more
        try:
            found = json.loads(line.partition(b"\n")[0])
        except ValueError:
            found = None
        if not isinstance(found, dict) or HEADER_KEY not in found:
            raise RecordingError(f"{self._name} is there already and does not begin as a history; name another file")
        if found[HEADER_KEY] != VERSION:
            raise RecordingError(f"{self._name} is a history of another format; name another file")
        return found

    def _agreed(self, found: Mapping[str, Any], header: Mapping[str, Any]) -> object:
        for key in SHARED:
            if key in header and header[key] != found.get(key):
                raise RecordingError(f"{self._name} was begun with a different {quoted(key)}; name another file")
        return found.get(_CLOCK)

    def _append(self, descriptor: int, line: bytes) -> None:
        """Write all of ``line``.  After one that stayed torn, the next begins on a line of its own."""
        rest = memoryview(b"\n" + line if self._torn else line)
        while rest:
            try:
                written = os.write(descriptor, rest)
            except OSError as error:
                raise HostError(f"{self._name} cannot be written ({error.strerror}); a line is missing in it") from None
            rest = rest[written:]
            self._torn = bool(rest)
        if self._fsync:
            os.fdatasync(descriptor)
