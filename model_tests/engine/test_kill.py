"""Processes that use the engine are killed, and what they were told holds; a broker that lies is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_tests.engine_kill import Books, BrokenWordError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of a process, and there is no fork here")

_LIES = {
    "a commit is confirmed before it is stored": "JournalAdapter._commit = lambda self, link: None",
    "a send is confirmed before it is stored": "JournalAdapter._store = lambda self, copy, transaction=0: None",
    "what is acknowledged is not removed": "JournalAdapter._remove = lambda self, copy: None",
    "what a transaction consumes is not removed": "JournalAdapter._remove_in_transaction = lambda self, copy: None",
    "a dead letter is removed and not stored": (
        "DeadLetters.journal_move = lambda self, copy: self._adapter.journal.append(Kind.REMOVE, copy.key)"
    ),
}

_LYING = """
import sys
from pathlib import Path
from ackfsm.engine.core.dead_letters import DeadLetters
from ackfsm.engine.core.journal import JournalAdapter
from ackfsm.engine.journal import Kind
from model_tests.engine_kill import main
{lie}
sys.exit(main())
"""


def kill(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_whoever_is_killed_has_been_told_the_truth(kind: str, tmp_path: Path) -> None:
    done = kill("-m", "model_tests.engine_kill", kind, str(tmp_path / "journal"), "--kills", "25")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " committed" in done.stdout


@pytest.mark.parametrize("lie", _LIES)
def test_a_broker_that_lies_is_found_out(lie: str, tmp_path: Path) -> None:
    program = _LYING.format(lie=_LIES[lie])
    done = kill("-c", program, "file", str(tmp_path / "journal"), "--kills", "600")
    assert (done.returncode, done.stderr) == (1, ""), done.stdout


_FAILING = """
import os
from ackfsm.engine import Session
commit, parent = Session.commit, os.getpid()
def fails(self):
    assert os.getpid() == parent
    commit(self)
Session.commit = fails
"""


def test_a_life_that_ends_before_it_is_killed_is_found_out(tmp_path: Path) -> None:
    done = kill("-c", _LYING.format(lie=_FAILING), "file", str(tmp_path / "journal"), "--kills", "600")
    assert done.returncode == 1, done.stdout
    assert "ended before it was killed" in done.stdout


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ({"out": ["o1"]}, "i2 was confirmed and is lost"),
        ({"in": ["i1", "i2"], "out": ["o1"]}, "i1 was consumed for certain and is back"),
        ({"in": ["i2"]}, "o1 was sent by a commit and is lost"),
        ({"in": ["i2"], "DLQ": ["i2"], "out": ["o1"]}, "i2 is there twice"),
        ({"in": ["i2", "i4"], "out": ["o1"]}, "i4 was sent by nobody"),
        ({"in": ["i2"], "out": ["o1", "o9"]}, "o9 was sent by nobody, or by what was rolled back"),
    ],
)
def test_the_books_are_held_to_what_is_there(there: dict[str, list[str]], why: str) -> None:
    books = Books()
    books.read(["sent  i1,i2", "try i1 o1", "committed i1 o1"])
    with pytest.raises(BrokenWordError, match=why):
        books.check({"in": [], "out": [], "acks": [], "DLQ": []} | there)


def test_a_commit_that_was_cut_off_may_not_be_torn() -> None:
    books = Books()
    books.read(["sent  i1,i2", "try i1,i2 o1,o2"])
    with pytest.raises(BrokenWordError, match=r"of \['i1', 'i2'\] \['i1'\] are gone"):
        books.check({"in": ["i2"], "out": ["o1"], "acks": [], "DLQ": []})
