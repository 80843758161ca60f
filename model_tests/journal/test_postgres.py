"""What PostgreSQL has really synced when a journal confirms: asked of the server, of its processes, and of a kill."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import JournalFailure, Kind, PostgresJournal
from model_tests.support.journal.postgres import Server, running
from model_tests.support.journal.system_bugs import POSTGRES_BUGS
from model_tests.support.tools import missing

_NOTING = """
CREATE TABLE said (at_commit text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO said VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER noting AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION note();
"""


@pytest.fixture(scope="module")
def syncing() -> Iterator[Server]:
    with running() as found:
        yield found


def used(dsn: str, name: str) -> PostgresJournal:
    """A journal in which something was written, and then synced, in two ways."""
    journal = PostgresJournal(dsn, name)
    journal.append(Kind.STORE, 1, b"copy")
    journal.sync()
    journal.append(Kind.STORE, 2, b"copy")
    journal.write()
    return journal


def unsynced_settings(syncing: Server) -> list[str]:
    """Where ``synchronous_commit`` was not on as what is confirmed was committed: the server's own word."""
    import psycopg

    with psycopg.connect(syncing.dsn, autocommit=True) as other:
        journal = used(syncing.dsn, "asked")
        found: list[str] = []
        for table in ("ackfsm_journal_entry", "ackfsm_journal"):
            other.execute(_NOTING.format(table=table))
            if table.endswith("entry"):
                journal.append(Kind.STORE, 3, b"copy")
            journal.sync()
            rows = other.execute("SELECT at_commit = 'on' FROM said").fetchall()
            assert rows, "nothing was committed"
            found += [table for row in rows if row != (True,)]
            other.execute("DROP TABLE said; DROP FUNCTION note CASCADE")
            journal.append(Kind.STORE, 4, b"copy")
            journal.write()
        journal.close()
        other.execute("DROP TABLE ackfsm_journal, ackfsm_journal_entry")
    return found


def unflushed(syncing: Server) -> list[int]:
    """After which syncs the server's log was longer than what it had synced of it."""
    import psycopg

    late = []
    with psycopg.connect(syncing.dsn, autocommit=True) as other:
        journal = used(syncing.dsn, "flushed")
        for number in range(5):
            if number:
                journal.append(Kind.STORE, 10 + number, b"copy")
            journal.sync()
            found = other.execute("SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()").fetchone()
            late += [number] * (found != (True,))
        journal.close()
        other.execute("DROP TABLE ackfsm_journal, ackfsm_journal_entry")
    return late


def lost(syncing: Server) -> set[int]:
    """The copies that were confirmed and are gone after the server was killed."""
    journal = used(syncing.dsn, "killed")
    journal.sync()
    journal.append(Kind.STORE, 3, b"copy")
    journal.sync()
    syncing.again()
    with contextlib.suppress(JournalFailure):  # its server is gone
        journal.close()
    again = PostgresJournal(syncing.dsn, "killed")
    found = set(again.recovery.live)
    again.close()
    import psycopg

    with psycopg.connect(syncing.dsn, autocommit=True) as other:
        other.execute("DROP TABLE ackfsm_journal, ackfsm_journal_entry")
    return {1, 2, 3} - found


WAYS: dict[str, Callable[[Server], object]] = {"asked": unsynced_settings, "flushed": unflushed, "killed": lost}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_confirmed_is_on_the_disk_of_a_server_that_syncs(way: str, syncing: Server) -> None:
    assert not WAYS[way](syncing)


@pytest.mark.parametrize("bug", POSTGRES_BUGS)
@pytest.mark.parametrize("way", WAYS)
def test_a_commit_that_does_not_wait_is_noticed(
    way: str, bug: str, syncing: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every ten seconds the server syncs its log by itself, which may be just then; so it is tried three times."""
    POSTGRES_BUGS[bug](monkeypatch)
    assert any(WAYS[way](syncing) for _ in range(3))


def test_a_compaction_waits_for_the_disk_of_the_server(syncing: Server) -> None:
    import psycopg

    with psycopg.connect(syncing.dsn, autocommit=True) as other:
        journal = used(syncing.dsn, "compacted")
        other.execute(_NOTING.format(table="ackfsm_journal"))
        journal.compact()
        rows = other.execute("SELECT at_commit = 'on' FROM said").fetchall()
        journal.close()
        other.execute("DROP TABLE said, ackfsm_journal, ackfsm_journal_entry; DROP FUNCTION note CASCADE")
    assert rows == [(True,)]


def test_the_server_syncs_its_log_before_it_answers(syncing: Server, tmp_path: Path) -> None:
    """The real calls of the process that serves the journal, as strace sees them."""
    if shutil.which("strace") is None:
        missing("there is no strace; install it with: apt-get install strace")
    journal = used(syncing.dsn, "traced")
    trace, told = tmp_path / "trace", tmp_path / "told"
    command = ["strace", "-y", "-e", "trace=fdatasync,fsync,sendto,pwrite64,pwritev", "-o", str(trace)]
    with told.open("w") as errors:
        tracer = subprocess.Popen([*command, "-p", str(journal._database.info.backend_pid)], stderr=errors)  # noqa: SLF001
        try:
            _attached(tracer, told)
            journal.append(Kind.STORE, 3, b"copy")
            journal.sync()
        finally:
            tracer.terminate()
            tracer.wait()
    journal.close()
    lines = trace.read_text().splitlines()
    answers = [number for number, line in enumerate(lines) if re.match(r"sendto\(.*COMMIT", line)]
    syncs = [number for number, line in enumerate(lines) if re.match(r"f(data)?sync\(\d+<.*/pg_wal/\w+>\) += 0", line)]
    writes = [number for number, line in enumerate(lines) if re.match(r"pwritev?(64)?\(\d+<.*/pg_wal/", line)]
    assert len(answers) == 1
    assert writes[-1] < syncs[-1] < answers[0]


def _attached(tracer: subprocess.Popen[bytes], told: Path) -> None:
    """Wait until strace has the process; skip where it may not have it."""
    while "attached" not in told.read_text():
        if tracer.poll() is not None:
            pytest.skip(f"strace may not trace the server: {told.read_text().strip()}")
        time.sleep(0.01)
