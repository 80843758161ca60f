"""A process that has a journal open and forks: ``file|sqlite PATH stay|end``.

``stay``: the fork lives on, and says its number.  ``end``: it comes to its end as every program does, then the parent
stores another copy and dies.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ackfsm.journal import FileJournal, Journal, Kind, SqliteJournal

__all__ = ["main"]


def main(kind: str, path: Path, how: str) -> None:
    """Store a copy, fork, and do what is asked."""
    journal: Journal = FileJournal(path) if kind == "file" else SqliteJournal(path)
    journal.append(Kind.STORE, 1, b"copy")
    journal.sync()
    child = os.fork()
    if child == 0:
        if how == "stay":
            sys.stdout.write(f"{os.getpid()}\n")
            sys.stdout.flush()
            time.sleep(60)
        return
    if how == "stay":
        time.sleep(60)
    assert os.waitpid(child, 0)[1] == 0
    journal.append(Kind.STORE, 2, b"copy")
    journal.sync()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
