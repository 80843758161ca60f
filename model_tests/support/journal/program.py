"""Programs that use journals as an application does and say what is confirmed: ``PROGRAM FOLDER [BUG]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ackfsm.engine import Broker
from ackfsm.engine.journal import FileJournal, Journal, Kind, SqliteJournal
from ackfsm.terms import InputError
from model_tests.support.journal.system_calls import confirmation

_SIZES = (20, 5_000, 70_000)
Confirm = Callable[[str], None]


def _used(opened: Callable[[], Journal], confirm: Confirm) -> None:
    """Everything that a journal promises, each kind of call, twice."""
    for life in (1, 2):
        journal = opened()
        confirm(f"opening {life}")
        key = journal.recovery.next_key
        for size in _SIZES * 3:
            key += 1
            journal.append(Kind.STORE, key, bytes([key]) * size)
            confirm(f"up to {journal.sync()}")
        for size in _SIZES:
            key += 1
            journal.append(Kind.STORE, key, bytes([key]) * size)
            journal.append(Kind.REMOVE, key - 3)
            journal.write()
            confirm(f"up to {journal.sync()}, written before")
        if life > 1:
            journal.compact()
            confirm("compaction")
        journal.close()
        confirm("closing")


def _file(folder: Path, confirm: Confirm) -> None:
    _used(lambda: FileJournal(folder / "deep" / "journal", segment_bytes=100_000), confirm)


def _sqlite(folder: Path, confirm: Confirm) -> None:
    _used(lambda: SqliteJournal(folder / "journal"), confirm)


def _sqlite_long(folder: Path, confirm: Confirm) -> None:
    """So much that SQLite moves it from its log into the database while the journal is open."""
    journal = SqliteJournal(folder / "journal")
    for key in range(1, 20):
        journal.append(Kind.STORE, key, b"x" * 400_000)
        confirm(f"up to {journal.sync()}")
    journal.close()


def _engine(folder: Path, confirm: Confirm) -> None:
    with Broker(
        "jms",
        journal=FileJournal(folder / "journal", segment_bytes=20_000),
        journal_sync_non_transactional=True,
        journal_sync_transactional=True,
    ) as broker:
        sender = broker.connect().session().producer("orders")
        for number in range(6):
            sender.send(b"x" * 5_000, message_id=f"m{number}")
            confirm(f"send {number}")
        session = broker.connect().session("SESSION_TRANSACTED")
        consumer, producer = session.consumer("orders"), session.producer("invoices")
        for number in range(3):
            message = consumer.receive()
            assert message is not None
            producer.send(message.body)
            session.commit()
            confirm(f"commit {number}")


PROGRAMS: Mapping[str, Callable[[Path, Confirm], None]] = {
    "file": _file,
    "sqlite": _sqlite,
    "sqlite, long": _sqlite_long,
    "engine": _engine,
}
"""Each by name."""


def _say(what: str) -> None:
    os.write(1, confirmation(what))


def main(program: str, folder: Path, bug: str | None = None) -> None:
    """Let a program work in an empty folder, with a bug or without."""
    if any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; name one that is")
    with pytest.MonkeyPatch.context() as patch:
        if bug is not None:
            from model_tests.support.journal.system_bugs import REAL_BUGS

            REAL_BUGS[bug].plant(patch)
        PROGRAMS[program](folder, _say)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
