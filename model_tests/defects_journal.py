"""Defects for ``python -m model_tests.defects``: small changes of the journals' source, each as somebody might make it.

J1 to J14 are those that a reviewer put in by hand; the others stand by what they break.
"""

from __future__ import annotations

from model_tests.defects_form import Defect

__all__ = ["JOURNAL"]

_DISK, _FILE, _FRAME = "journal/_disk.py", "journal/_file.py", "journal/_frame.py"
_MEMORY, _MORTAL, _POSTGRES = "journal/_memory.py", "journal/_mortal.py", "journal/_postgres.py"
_RECOVERY, _ROWS, _SCAN = "journal/_recovery.py", "journal/_rows.py", "journal/_scan.py"
_SQLITE, _WATERMARK = "journal/_sqlite.py", "journal/_watermark.py"

_REVIEWED = (
    Defect(  # J1
        "every-second-batch-unsynced",
        "a power loss takes some of what was confirmed",
        _FILE,
        "        self._disk.sync(self._live_file())\n        self._synced = self._written",
        "        if self._written % 2:\n            self._disk.sync(self._live_file())\n"
        "        self._synced = self._written",
    ),
    Defect(  # J2
        "compaction-drops-open-transactions",
        "what a transaction stored before a compaction is not there when it has committed",
        _RECOVERY,
        "waiting = [pair for pairs in self._pending.values() for pair in pairs]",
        "waiting = []",
    ),
    Defect(  # J3
        "checksum-without-watermark",
        "a flipped bit in what a frame says of its past is not noticed, and damage is taken for a torn end",
        _FRAME,
        "zlib.crc32(head[_CHECKED_FROM:], head[3] ^ salt << 1)",
        "zlib.crc32(head[_CHECKED_FROM:-8], head[3] ^ salt << 1)",
    ),
    Defect(  # J4
        "checksum-without-the-end-of-long-frames",
        "a flipped bit at the end of a long frame changes a message, and nobody says so",
        _FRAME,
        "return zlib.crc32(body, zlib",
        "return zlib.crc32(body[:-8] if len(body) > 4096 else body, zlib",
    ),
    Defect(  # J5
        "names-unsynced-at-rotation",
        "a power loss after a rotation takes the name of the new segment, and all that is in it",
        _FILE,
        "self._disk.rename(half, whole)\n        self._disk.sync_directory(self.path)",
        "self._disk.rename(half, whole)",
    ),
    Defect(  # J6
        "newest-id-evicted",
        "when the memory of duplicate-ids is full the newest one is forgotten",
        _RECOVERY,
        "del self._remembered[next(iter(self._remembered))]",
        "self._remembered.popitem()",
    ),
    Defect(  # J7
        "base-forgets-the-next-key",
        "after a compaction keys are given a second time",
        _FILE,
        "first, self._replay.next_key, self._salt)",
        "first, 1, self._salt)",
    ),
    Defect(  # J8
        "commit-backwards",
        "what a transaction stored comes back in the opposite order, or removed before it was stored",
        _RECOVERY,
        "in self._pending.get(transaction, ()):",
        "in reversed(self._pending.get(transaction, [])):",
    ),
    Defect(  # J9
        "sqlite-normal",
        "SQLite confirms before its log is on stable storage",
        _SQLITE,
        "{'FULL' if durable else 'NORMAL'}",
        "NORMAL",
    ),
    Defect(  # J10
        "postgres-does-not-wait",
        "PostgreSQL confirms before its log is on stable storage",
        _POSTGRES,
        "{'on' if durable else 'off'}",
        "off",
    ),
    Defect(  # J11
        "names-never-synced",
        "a power loss takes the names of files that were confirmed",
        _DISK,
        "            os.fsync(folder)\n",
        "            os.fstat(folder)\n",
    ),
    Defect(  # J12
        "files-never-synced",
        "a power loss takes everything that was confirmed",
        _DISK,
        "            os.fdatasync(file)\n",
        "            os.fstat(file)\n",
    ),
    Defect(  # J13
        "rotated-end-unchecked",
        "a segment whose end is damaged is read as far as it goes, though another one follows",
        _SCAN,
        "        if not last:",
        "        if not last and not self.segments:",
    ),
    Defect(  # J14
        "rotation-position",
        "a new segment counts its entries from the wrong position, and the journal is refused",
        _FILE,
        "first = self._next - len(entries) if base else self._written",
        "first = self._next - len(entries) if base else self._next",
    ),
)

_SEGMENTS = (
    Defect(
        "seal-before-sync",
        "a seal vouches for what a power loss can still take, and the journal is refused as damaged",
        _FILE,
        "        self._disk.sync(self._live_file())\n        self._synced = self._written\n"
        "        self._put(self._live_file(), self._offset, self._mark(SEAL, self._synced))\n",
        "        self._synced = self._written\n"
        "        self._put(self._live_file(), self._offset, self._mark(SEAL, self._synced))\n"
        "        self._disk.sync(self._live_file())\n",
    ),
    Defect(
        "rotation-without-sync",
        "what was written before a rotation and synced after it is lost by a power loss",
        _FILE,
        "            self._disk.sync(self._file)\n",
        "",
    ),
    Defect(
        "rename-before-sync",
        "a segment counts before it is on stable storage, and a power loss leaves an empty one",
        _FILE,
        "        self._disk.sync(self._live_file())\n        self._disk.rename(half, whole)\n",
        "        self._disk.rename(half, whole)\n        self._disk.sync(self._live_file())\n",
    ),
    Defect(
        "torn-end-not-cut",
        "the rest of a torn write stands behind the next ones, and the journal is refused as damaged",
        _FILE,
        "self._disk.truncate(file, found.torn.offset)",
        "self._disk.open(self.path / found.torn.file)",
    ),
    Defect(
        "tail-unsynced-at-opening",
        "what opening has found, and said so, is lost by a power loss",
        _FILE,
        "                self._write_again(file, found)\n                self._disk.sync(file)\n",
        "                self._write_again(file, found)\n",
    ),
    Defect(
        "tail-not-written-again",
        "what a failed sync has left in memory is found at opening, and lost by a power loss",
        _FILE,
        "                self._write_again(file, found)\n                self._disk.sync(file)\n",
        "                self._disk.sync(file)\n",
    ),
    Defect(
        "closed-without-a-mark",
        "a journal that was closed says that it was not, and a cut of its end is not noticed",
        _FILE,
        "                    self._put(self._live_file(), self._offset, self._mark(CLOSED, self._synced))\n",
        "",
    ),
    Defect(
        "second-frame-of-a-write",
        "the second frame of a long write has the position of the first, and the rest of the write is lost",
        _FILE,
        "            position += len(part)\n",
        "",
    ),
    Defect(
        "never-compacted",
        "a journal grows for ever though what is in it is dead",
        _FILE,
        "return size > SEGMENT.size and size >= 2 * self._replay.size + SEGMENT.size",
        "return self._older < 0",
    ),
    Defect(
        "epoch-unchecked",
        "what an earlier life left on the disk behind the end is read as new",
        _SCAN,
        "if frame.epoch != header.epoch:",
        "if frame.epoch > header.epoch:",
    ),
    Defect(
        "position-unchecked",
        "a frame that is missing in the midst is not noticed",
        _SCAN,
        "if frame.position != self.position:",
        "if frame.position < self.position:",
    ),
    Defect(
        "nothing-vouches",
        "damage in the midst of what was confirmed is cut off as a torn end",
        _SCAN,
        "return frame.watermark > self.position or",
        "return frame.watermark > self.position + frame.count or",
    ),
    Defect(
        "mixed-frames-without-transactions",
        "an entry of a transaction that was written with one of none counts before the commit",
        _FRAME,
        "    if any(transactions):",
        "    if all(transactions):",
    ),
    Defect(
        "salt-known",
        "a payload can hold a forged frame that makes damage of a torn end",
        _DISK,
        "return secrets.randbits(31)",
        "return 1",
    ),
    Defect(
        "short-writes",
        "an operating system that takes a part of a write leaves the rest out",
        _DISK,
        "    while taken < len(data):",
        "    while taken <= 0 < len(data):",
    ),
    Defect(
        "parents-unsynced",
        "a power loss takes the folder of a new journal",
        _DISK,
        "            self.sync_directory(folder.parent)",
        "            folder.parent.stat()",
    ),
    Defect(
        "lock-shared",
        "two processes open the same journal, and write over each other",
        _DISK,
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
    ),
    Defect(
        "clean-end-unsynced",
        "after a power loss a journal that was closed is told as one that was not",
        _WATERMARK,
        "        self._put(_ENDED, said.encode())\n        self._sync()",
        "        self._put(_ENDED, said.encode())",
    ),
    Defect(
        "lost-epoch-unnoticed",
        "a journal that was put back from an older copy is opened without a word",
        _WATERMARK,
        "    if said.epoch > epoch:",
        "    if said.epoch > epoch + said.epoch:",
    ),
    Defect(
        "lost-end-unnoticed",
        "a journal whose end was cut off between two frames is opened without a word",
        _SCAN,
        "        self._hold_to(watermark, there=WATERMARK in names)\n",
        "",
    ),
)

_STATE = (
    Defect(
        "transactions-numbered-again",
        "a transaction has the number of one that the journal has, and commits what that one left",
        _RECOVERY,
        "return max(key, newest + 1, last + 1)",
        "return max(key, newest + 1)",
    ),
    Defect(
        "removal-before-commit-forgotten",
        "a copy that was removed before the commit of its transaction comes back with it",
        _RECOVERY,
        "self.removed += live.pop(key, None) is not None or self._removed_before_commit(key)",
        "self.removed += live.pop(key, None) is not None",
    ),
    Defect(
        "open-transactions-survive-opening",
        "a transaction of an earlier life commits with one of this life that has its number",
        _RECOVERY,
        "        self._pending.clear()\n",
        "",
    ),
    Defect(
        "marks-dropped-by-compaction",
        "after a compaction redelivered messages are not flagged, and their count begins again",
        _RECOVERY,
        "        yield from ((_MARK, key, ATTEMPTS.pack(attempts), 0) for key, attempts in self._marks.items())\n",
        "",
    ),
    Defect(
        "ids-dropped-by-compaction",
        "after a compaction duplicates are not known",
        _RECOVERY,
        "        yield from ((_REMEMBER, key, name, 0) for name, key in self._remembered.items())\n",
        "",
    ),
    Defect(
        "order-of-commits",
        "messages come back in the order of their commits and not in that in which they were stored",
        _RECOVERY,
        "            self._disordered |= kind == _STORE\n",
        "",
    ),
    Defect(
        "memory-tears-transactions",
        "a crash of the journal in memory leaves a part of a transaction",
        _MEMORY,
        "if entry[3] or self._failed or survivors(position)",
        "if self._failed or survivors(position)",
    ),
)

_ENDS = (
    Defect(
        "failure-forgotten",
        "after a failed write the journal goes on, and confirms what is not there",
        _MORTAL,
        "        if error is None:",
        "        if error is None or isinstance(error, journal.failures):",
    ),
    Defect(
        "interrupt-forgotten",
        "after an exception of a signal handler the journal goes on, and is refused when it is opened again",
        _MORTAL,
        "        if error is None:",
        "        if error is None or not isinstance(error, Exception):",
    ),
    Defect(
        "fork-not-minded",
        "a fork writes to the journal of its parent",
        _MORTAL,
        "    os.register_at_fork(after_in_child=forked)\n",
        "    os.register_at_fork(before=os.getpid)\n",
    ),
    Defect(
        "full-disk-untold",
        "a journal whose disk is full does not say that room is what it needs",
        _DISK,
        "_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}",
        "_NO_ROOM = {errno.EDQUOT, errno.EFBIG}",
    ),
)

_DATABASES = (
    Defect(
        "rows-sync-after-write-does-nothing",
        "what was written before is not on stable storage after a sync that has nothing to add",
        _ROWS,
        "if self._waiting or self._synced < self._written:",
        "if self._waiting:",
    ),
    Defect(
        "sqlite-sync-changes-nothing",
        "SQLite drops a sync that changes nothing, and what was written before is not on stable storage",
        _SQLITE,
        "            if not rows:\n                cursor.execute(_UPDATE, self._head().columns)"
        "  # SQLite drops what changes nothing\n",
        "",
    ),
    Defect(
        "row-checksum-without-epoch",
        "a flipped bit in the epoch of a row is not noticed",
        _ROWS,
        "_COLUMNS.pack(position, epoch, kind, key, transaction)",
        "_COLUMNS.pack(position, 0, kind, key, transaction)",
    ),
    Defect(
        "rows-give-keys-twice",
        "keys that the journal has are given again when it is opened again",
        _ROWS,
        "        replay.next_key = max(replay.next_key, key + 1, transaction + 1)\n",
        "",
    ),
    Defect(
        "rows-not-held-to-their-end",
        "rows that are missing at the end are not noticed",
        _ROWS,
        "        hold_to(self._name, head.watermark, head, position)\n",
        "",
    ),
    Defect(
        "rows-closed-unsaid",
        "a database that was closed says that it was not",
        _ROWS,
        "                    self._closed = self._epoch\n",
        "",
    ),
    Defect(
        "sqlite-not-held-to-its-watermark",
        "a database without the log that SQLite had beside it is opened without a word",
        _SQLITE,
        "        _hold(self._path, _beside(self._path), head, position)\n",
        "",
    ),
    Defect(
        "sqlite-pages-unchecked",
        "a damaged database is written to",
        _SQLITE,
        "        _check_pages(self._path, self._database)\n        self._open()",
        "        self._open()",
    ),
    Defect(
        "postgres-opened-twice",
        "two processes open the same journal in PostgreSQL, and write over each other",
        _POSTGRES,
        "if locked is None or not locked[0]:",
        "if locked is None:",
    ),
    Defect(
        "postgres-in-any-order",
        "PostgreSQL gives the rows in the order of its pages, and the journal is refused",
        _POSTGRES,
        "WHERE name = %s ORDER BY position",
        "WHERE name = %s",
    ),
    Defect(
        "postgres-replaces-without-waiting",
        "after a power loss a compaction in PostgreSQL is undone, or an epoch is given twice",
        _POSTGRES,
        '            cursor.execute("SET LOCAL synchronous_commit = on")\n',
        "",
    ),
)

JOURNAL = (*_REVIEWED, *_SEGMENTS, *_STATE, *_ENDS, *_DATABASES)
