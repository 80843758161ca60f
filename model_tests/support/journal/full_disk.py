"""A journal on a disk that fills up, in a process of its own: ``file|sqlite PATH LIMIT``.

With a ``LIMIT`` no file may grow beyond so many bytes (RLIMIT_FSIZE); 0 leaves it to the disk.  Prints the position
below which everything is confirmed, and what is said when there is no more room.
"""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from ackfsm.engine.journal import FileJournal, Journal, JournalFailure, Kind, SqliteJournal


def main(kind: str, path: Path, limit: int) -> None:
    """Store copies until one is not confirmed, then look at what the journal says, and what it lets one do."""
    journal: Journal = FileJournal(path) if kind == "file" else SqliteJournal(path)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    confirmed = 0
    try:
        for key in range(1, 10_000):
            journal.append(Kind.STORE, key, b"x" * 1_000)
            confirmed = journal.sync()
    except JournalFailure as failure:
        sys.stdout.write(f"{confirmed}\n{failure}\n")
    try:
        journal.sync()
    except JournalFailure as failure:
        sys.stdout.write(f"{failure}\n")
    journal.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
