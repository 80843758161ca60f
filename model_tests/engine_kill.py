"""An application on the engine in a process that is killed at random moments: ``python -m model_tests.engine_kill``.

It consumes and sends in transactions, rolls back what it cannot work on until that is a dead letter, and acknowledges
message by message.  Each life begins with a new broker on the journal that the one before has left.  The books are
what the application was told, one line for each call that returned, and one before each call that may be cut off.
Prints the kills and what was done; exit code 1, and the life, where a broker has not kept its word.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ackfsm.engine import Broker, Session
from ackfsm.engine.journal import FileJournal, Journal, SqliteJournal
from model_tests.support.tables import shipped

__all__ = ["Books", "BrokenWordError", "run"]

_SETTINGS: dict[str, Any] = {
    "max_delivery_attempts": 3,
    "redelivery_mark_persisted": True,
    "consumption": "receive",
    "prefetch": 4,
}
_SEGMENT_BYTES = 20_000
"""Small, so that journals are compacted often."""
_POISON = 7
"""One message of so many is one that the application cannot work on."""
_WORDS = 60
"""A life is killed after fewer words than that, whatever the machine has beside it to do."""


class BrokenWordError(AssertionError):
    """A broker has not kept what it had promised."""


@dataclasses.dataclass
class Books:
    """What the application knows.

    Attributes:
        sent: the ids whose send returned.
        trying: those whose send may have been cut off.
        done: the ids that were consumed: their commit or acknowledgement returned.
        made: the ids that these commits have sent.
        open: the commits or acknowledgements that were cut off: what each consumes and what it sends.
    """

    sent: set[str] = dataclasses.field(default_factory=set)
    trying: set[str] = dataclasses.field(default_factory=set)
    done: set[str] = dataclasses.field(default_factory=set)
    made: set[str] = dataclasses.field(default_factory=set)
    open: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    told: Counter[str] = dataclasses.field(default_factory=Counter)

    def read(self, lines: list[str]) -> None:
        """Take in what one life has said."""
        for line in lines:
            word, *fields = line.split(" ")
            consumed, sent = ([part for part in field.split(",") if part] for field in fields)
            self.told[word] += 1
            if word == "try":
                self.trying |= set(sent) if not consumed else set()
                self.open = (tuple(consumed), tuple(sent)) if consumed else self.open
            elif word == "sent":
                self.sent |= set(sent)
                self.trying -= set(sent)
            elif word == "committed":
                self.done |= set(consumed)
                self.made |= set(sent)
                self.open = (), ()
            elif word == "rolled_back":
                self.open = (), ()

    def check(self, there: dict[str, list[str]]) -> None:
        """Hold what is in the queues to the books; raises :class:`BrokenWordError`."""
        waiting = [*there["in"], *there["acks"], *there["DLQ"]]
        doubled = [name for name, count in Counter([*waiting, *there["out"]]).items() if count > 1]
        _demand("is there twice", doubled)
        self._settle(set(waiting), set(there["out"]))
        _demand("was confirmed and is lost", self.sent - self.done - set(waiting))
        _demand("was consumed for certain and is back", self.done & set(waiting))
        _demand("was sent by a commit and is lost", self.made - set(there["out"]))
        _demand("was sent by nobody, or by what was rolled back", set(there["out"]) - self.made)
        _demand("was sent by nobody", set(waiting) - self.sent)

    def _settle(self, waiting: set[str], out: set[str]) -> None:
        """Calls that were cut off have happened, or have not, as a whole."""
        consumed, sent = map(frozenset, self.open)
        gone, arrived = consumed - waiting, sent & out
        if (gone, arrived) not in {(frozenset(), frozenset()), (consumed, sent)}:
            raise BrokenWordError(
                f"of {sorted(consumed)} {sorted(gone)} are gone, of {sorted(sent)} {sorted(arrived)} have come"
            )
        self.done |= gone
        self.made |= arrived
        self.open = (), ()
        self.sent |= self.trying & waiting
        self.trying.clear()


def _demand(what: str, names: set[str] | list[str]) -> None:
    if names:
        raise BrokenWordError(f"{', '.join(sorted(names)[:9])} {what}")


def journal_of(kind: str, path: Path) -> Journal:
    return FileJournal(path, segment_bytes=_SEGMENT_BYTES) if kind == "file" else SqliteJournal(path)


def run(kind: str, path: Path, seed: int, kills: int) -> Books:
    """Let ``kills`` lives work and be killed, and look at what each has left.

    Raises :class:`BrokenWordError` if a broker has not kept its word.
    """
    chance, books = random.Random(seed), Books()
    like = _warm()
    for life in range(kills):
        books.read(_life(like, kind, path, chance, f"{seed}.{life}"))
        with Broker("artemis", like=like, journal=journal_of(kind, path), **_SETTINGS) as broker:
            there = {name: list(_in(broker, name)) for name in ("in", "out", "acks", "DLQ")}
        try:
            books.check(there)
        except BrokenWordError as error:
            raise BrokenWordError(f"{kind}, seed {seed}, life {life}: {error}") from None
    return books


def _warm() -> Broker:
    """A broker that has read what the lives need of the tables, so that they come to their work at once."""
    like = Broker("artemis", specification=shipped(), **_SETTINGS)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _work(like, "warm", nowhere, rounds=20)
    os.close(nowhere)
    return like


def _in(broker: Broker, queue: str) -> Iterator[str]:
    """The ids of what is in a queue, without touching it."""
    copies = broker.stepper.broker.index(broker.stepper.model.all_copies("broker")).members.values()
    return (copy.message.id for copy in copies if copy.in_queue and copy.message.queue.name == queue)


def _life(like: Broker, kind: str, path: Path, chance: random.Random, name: str) -> list[str]:
    """What one life has said before it was killed; raises :class:`BrokenWordError` if it ended by itself."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            _work(Broker("artemis", like=like, journal=journal_of(kind, path), **_SETTINGS), name, write)
        finally:
            traceback.print_exc()
            os._exit(1)  # at once, for a kill that comes as Python ends would hide it
    os.close(write)
    with os.fdopen(read) as said:
        said.readline()
        heard = "".join(itertools.islice(said, chance.randrange(_WORDS)))
        time.sleep(chance.random() * 0.001)
        os.kill(child, signal.SIGKILL)
        rest = heard + said.read()
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise BrokenWordError(f"life {name} ended before it was killed")
    return [line for line in rest.rpartition("\n")[0].split("\n") if line]


def _work(broker: Broker, name: str, said: int, rounds: int | None = None) -> None:
    """Until killed, or for so many connections: send, consume and send in a transaction, acknowledge one by one."""
    chance, number = random.Random(name), 0
    _say(said, "open")
    for _ in itertools.count() if rounds is None else range(rounds):
        connection = broker.connect()
        sending, working = connection.session("AUTO_ACKNOWLEDGE"), connection.session("SESSION_TRANSACTED")
        acknowledging = connection.session("INDIVIDUAL_ACKNOWLEDGE", block_on_acknowledge=True)
        producers = {queue: sending.producer(queue) for queue in ("in", "acks")}
        worker = _Worker(working, said)
        consumer = acknowledging.consumer("acks")
        for _ in range(chance.randint(1, 8)):
            for queue, producer in producers.items():
                number += 1
                poison = "poison" if number % _POISON == 0 else "work"
                ident = f"{queue}.{poison}.{name}.{number}"
                _say(said, "try", [], [ident])
                producer.send(b"x" * chance.randint(0, 200), message_id=ident)
                _say(said, "sent", [], [ident])
            worker.work(chance.randint(1, 3), f"{name}.{number}")
            message = consumer.receive()
            if message is not None:
                _say(said, "try", [message.id])
                message.acknowledge()
                _say(said, "committed", [message.id])
        connection.crash() if chance.random() < 0.5 else connection.close()


class _Worker:
    """Consumes and sends in one transaction."""

    def __init__(self, session: Session, said: int) -> None:
        self._session = session
        self._consumer, self._producer = session.consumer("in"), session.producer("out")
        self._said = said

    def work(self, most: int, name: str) -> None:
        had = [message.id for _, message in zip(range(most), iter(self._consumer.receive, None), strict=False)]
        if any(".poison." in ident for ident in had):
            self._session.rollback()
            _say(self._said, "rolled_back")
        elif had:
            made = [f"out.{ident}.{name}" for ident in had]
            for ident in made:
                self._producer.send(message_id=ident)
            _say(self._said, "try", had, made)
            self._session.commit()
            _say(self._said, "committed", had, made)


def _say(said: int, word: str, consumed: list[str] | None = None, sent: list[str] | None = None) -> None:
    os.write(said, f"{word} {','.join(consumed or [])} {','.join(sent or [])}\n".encode())


def main() -> int:
    """Run it as a command."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.engine_kill", description=__doc__)
    parser.add_argument("kind", choices=("file", "sqlite"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    try:
        books = run(asked.kind, asked.path, asked.seed, asked.kills)
    except BrokenWordError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    told = ", ".join(f"{count:,} {word}" for word, count in sorted(books.told.items()))
    sys.stdout.write(f"{asked.kind}: {asked.kills:,} kills; {told}; every word was kept\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
