"""A program that sends, and says what is confirmed: ``FOLDER COUNT HOW``; ``HOW`` is one of :data:`WAYS`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ackfsm.engine import Broker
from ackfsm.engine.journal import FileJournal
from model_tests.support.journal.system_calls import confirmation

WAYS = ("synced", "asynchronous", "no fsync")
"""Confirmed once synced; confirmed before; confirmed as if synced, but ``fsync`` does nothing."""


def main(folder: Path, count: int, way: str) -> None:
    """Send so many messages, and consume others, so that segments are merged too."""
    if way == "no fsync":
        for name in ("fsync", "fdatasync"):
            setattr(os, name, lambda _: None)
    sync = way != "asynchronous"
    with Broker(
        "jms",
        journal=FileJournal(folder / "journal", segment_bytes=40_000),
        journal_sync_non_transactional=sync,
        journal_sync_transactional=sync,
    ) as running:
        session = running.connect().session()
        producer, other, consumer = session.producer("orders"), session.producer("done"), session.consumer("done")
        for number in range(count):
            producer.send(f"<m{number}>".encode() * 100, message_id=f"m{number}")
            os.write(1, confirmation(f"m{number}"))
            other.send(b"y" * 2_000)
            if number % 8 == 7:  # an acknowledgement is synced in any case
                while consumer.receive():
                    pass
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
