"""A journal in a child process that is killed at random moments, again and again: ``KIND PATH SEED KILLS``.

Prints what each child has said before it was killed: ``open`` with what it has found, ``try`` with what it is about to
remove, ``done`` with the last copy that is confirmed; then ``killed``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from ackfsm.engine.journal import FileJournal, Journal, Kind, SqliteJournal

_SEGMENT_BYTES = 3_000
"""Small, so that children die while they compact."""
_DEEP = 20


def main(kind: str, path: Path, seed: int, kills: int) -> None:
    """Let ``kills`` children work and die."""
    chance = random.Random(seed)
    for _ in range(kills):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _work(kind, path, write)
        os.close(write)
        with os.fdopen(read) as said:
            first = said.readline()
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
            rest = said.read()
        os.waitpid(child, 0)
        whole = rest.rpartition("\n")[0]
        sys.stdout.write(f"{first}{whole}{os.linesep if whole else ''}killed\n")


def _work(kind: str, path: Path, said: int) -> None:
    """Store five copies and remove as many at a time, until killed."""
    journal: Journal = FileJournal(path, segment_bytes=_SEGMENT_BYTES) if kind == "file" else SqliteJournal(path)
    key, live = journal.recovery.next_key, list(journal.recovery.live)
    _say(said, "open", live)
    while True:
        for _ in range(5):
            journal.append(Kind.STORE, key, b"x" * (key % 40))
            live.append(key)
            key += 1
        gone, live = live[:-_DEEP], live[-_DEEP:]
        for old in gone:
            journal.append(Kind.REMOVE, old)
        _say(said, "try", gone)
        journal.sync()
        _say(said, "done", [key - 1])


def _say(said: int, word: str, keys: list[int]) -> None:
    os.write(said, f"{word} {' '.join(map(str, keys))}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
