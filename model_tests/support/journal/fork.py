"""A process that has a journal open and forks: ``file|sqlite PATH stay|end [BUG]``.

``stay``: the fork lives on, and says its number.  ``end``: it comes to its end as every program does, then the parent
stores another copy and dies.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from ackfsm.engine.journal import FileJournal, Journal, Kind, SqliteJournal
from ackfsm.terms import AckfsmError


def main(kind: str, path: Path, how: str, bug: str | None = None) -> None:
    """Store a copy, fork, and do what is asked, with a bug or without."""
    if bug is not None:
        from model_tests.support.journal.system_bugs import FORK_BUGS

        FORK_BUGS[bug][1](pytest.MonkeyPatch())
    journal: Journal = FileJournal(path) if kind == "file" else SqliteJournal(path)
    _use(journal, 1)
    child = os.fork()
    if child == 0:
        if how == "stay":
            sys.stdout.write(f"{os.getpid()}\n")
            sys.stdout.flush()
            time.sleep(60)
        with contextlib.suppress(AckfsmError):
            _use(journal, 9)
        return
    if how == "stay":
        time.sleep(60)
    assert os.waitpid(child, 0)[1] == 0
    if kind == "file":
        with pytest.raises(AckfsmError, match="in use"):
            FileJournal(path)
    _use(journal, 2)
    os._exit(0)


def _use(journal: Journal, key: int) -> None:
    journal.append(Kind.STORE, key, b"copy")
    journal.sync()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
