"""One protocol, four journals: random calls, held to a plain dictionary."""

# ruff: noqa: D102 - the rules are named after the calls

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ackfsm.engine.journal import (
    ATTEMPTS,
    FileJournal,
    Journal,
    JournalFailure,
    Kind,
    Live,
    MemoryJournal,
    PostgresJournal,
    SqliteJournal,
)
from ackfsm.terms import InputError
from model_tests.support.journal.postgres import server

REMEMBERED = 3


class Store:
    """Where a journal is kept: opened anew, and opened again as it was left."""

    def __init__(self, opened: Callable[[int], Journal]) -> None:
        self._opened = opened
        self._numbers = itertools.count(1)

    def new(self) -> Journal:
        self._number = next(self._numbers)
        return self._opened(self._number)

    def again(self, journal: Journal) -> Journal:
        if isinstance(journal, MemoryJournal):
            journal.sync()
            return journal.kill()
        journal.close()
        return self._opened(self._number)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as name:
        yield name


@pytest.fixture(params=["memory", "file", "file, small", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    memory = Path("/dev/shm")  # noqa: S108 - where there is one, syncs take no time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Store(_factory(request, Path(name)))


def _factory(request: pytest.FixtureRequest, folder: Path) -> Callable[[int], Journal]:
    if request.param == "memory":
        return lambda _: MemoryJournal(remembered=REMEMBERED)
    if request.param == "sqlite":
        return lambda number: SqliteJournal(folder / f"{number}.db", remembered=REMEMBERED)
    if request.param == "postgres":
        dsn = request.getfixturevalue("dsn")
        prefix = folder.name
        return lambda number: PostgresJournal(dsn, f"{prefix} {number}", remembered=REMEMBERED)
    size = 300 if "small" in request.param else 2**20
    return lambda number: FileJournal(folder / str(number), segment_bytes=size, group=size // 3, remembered=REMEMBERED)


class Calls(RuleBasedStateMachine):
    """Random calls of one journal, and the dictionary that it should come back with."""

    store: Store

    @initialize()
    def begin(self) -> None:
        self.journal = self.store.new()
        self.order: list[int] = []
        self.live: dict[int, Live] = {}
        self.open: dict[int, list[tuple[Kind, int, bytes]]] = {}
        self.ids: list[bytes] = []
        self.key = 0
        self.position = 0

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> None:
        position = self.journal.append(kind, key, data, transaction)
        assert position == self.position
        self.position += 1
        if transaction:
            self.open[transaction].append((kind, key, data))
        else:
            self.count(kind, key, data)

    def count(self, kind: Kind, key: int, data: bytes) -> None:
        if kind == Kind.STORE:
            self.live[key] = Live(data)
        elif kind == Kind.REMOVE:
            if self.live.pop(key, None) is None:
                self.open = {
                    number: [part for part in parts if part[:2] != (Kind.STORE, key)]
                    for number, parts in self.open.items()
                }
        elif kind == Kind.MARK and key in self.live:
            self.live[key] = Live(self.live[key].data, ATTEMPTS.unpack(data)[0], marked=True)
        elif kind == Kind.REMEMBER:
            self.ids = [*(known for known in self.ids if known != data), data][-REMEMBERED:]

    def transaction(self, number: int) -> int:
        return sorted(self.open)[number % len(self.open)] if self.open and number else 0

    @rule(data=st.binary(max_size=200), inside=st.integers(0, 2))
    def stores(self, data: bytes, inside: int) -> None:
        self.key += 1
        self.order.append(self.key)
        self.append(Kind.STORE, self.key, data, self.transaction(inside))

    @precondition(lambda self: self.order)
    @rule(which=st.integers(0, 100), inside=st.integers(0, 2))
    def removes(self, which: int, inside: int) -> None:
        self.append(Kind.REMOVE, self.order[which % len(self.order)], b"", self.transaction(inside))

    @precondition(lambda self: self.order)
    @rule(which=st.integers(0, 100), attempts=st.integers(0, 2**32 - 1))
    def marks(self, which: int, attempts: int) -> None:
        self.append(Kind.MARK, self.order[which % len(self.order)], ATTEMPTS.pack(attempts))

    @rule(name=st.sampled_from([b"a", b"b", b"c", b"d", b""]), inside=st.integers(0, 2))
    def remembers(self, name: bytes, inside: int) -> None:
        self.append(Kind.REMEMBER, 0, name, self.transaction(inside))

    @rule()
    def begins(self) -> None:
        self.key += 1
        self.open[self.key] = []

    @precondition(lambda self: self.open)
    @rule(number=st.integers(1, 3))
    def commits(self, number: int) -> None:
        transaction = self.transaction(number)
        self.append(Kind.COMMIT, transaction)
        for kind, key, data in self.open.pop(transaction):
            self.count(kind, key, data)

    @rule()
    def writes(self) -> None:
        assert self.journal.write() == self.position

    @rule()
    def syncs(self) -> None:
        assert self.journal.sync() == self.position

    @rule()
    def compacts(self) -> None:
        done = self.journal.compact()
        assert done.entries_after <= done.entries_before
        assert self.journal.sync() == self.position

    @rule()
    def opens_again(self) -> None:
        epoch = self.journal.recovery.epoch
        self.journal = self.store.again(self.journal)
        found = self.journal.recovery
        self.open = {}
        assert found.live == self.live
        assert list(found.live) == [key for key in self.order if key in self.live]
        assert list(found.remembered) == self.ids
        assert (found.next_position, found.epoch) == (self.position, epoch + 1)
        assert found.next_key > max(self.live, default=0)

    def teardown(self) -> None:
        self.opens_again()
        self.journal.close()


def test_the_journals_agree_with_a_dictionary(store: Store) -> None:
    class Bound(Calls):
        pass

    Bound.store = store
    run_state_machine_as_test(Bound, settings=settings(max_examples=40, stateful_step_count=25, deadline=None))


def test_they_have_the_protocol(store: Store) -> None:
    journal = store.new()
    assert isinstance(journal, Journal)
    journal.close()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ((9, 1), "there is no kind of entry 9"),
        ((Kind.STORE, -1), "is no number from 0"),
        ((Kind.STORE, 2**63), "is no number from 0"),
        ((Kind.STORE, 1, b"", 2**63), "is no number from 0"),
        ((Kind.STORE, 1, bytearray(b"x")), "and bytes"),
        ((Kind.STORE, 1, "text"), "and bytes"),
        ((Kind.COMMIT, 0), "names its transaction"),
        ((Kind.COMMIT, 1, b"", 2), "names its transaction"),
        ((Kind.MARK, 1, b"x"), "the number of attempts"),
    ],
)
def test_what_is_no_entry_is_refused_and_nothing_has_happened(
    store: Store, entry: tuple[object, ...], said: str
) -> None:
    journal = store.new()
    with pytest.raises(InputError, match=said):
        journal.append(*entry)  # type: ignore[arg-type]
    assert journal.append(Kind.STORE, 1, b"x") == 0
    journal = store.again(journal)
    assert list(journal.recovery.live) == [1]
    journal.close()


def test_after_closing_every_call_fails_and_closing_is_harmless(store: Store) -> None:
    journal = store.new()
    journal.append(Kind.STORE, 1, b"x")
    journal.close()
    journal.close()
    for call in (lambda: journal.append(Kind.STORE, 2), journal.write, journal.sync, journal.compact):
        with pytest.raises(JournalFailure, match="closed"):
            call()


def test_two_cannot_have_the_same_journal_open(store: Store) -> None:
    journal = store.new()
    if not isinstance(journal, MemoryJournal):
        with pytest.raises(InputError, match="in use"):
            store._opened(store._number)  # noqa: SLF001
    journal.close()


def test_a_bound_below_zero_is_refused(tmp_path: Path) -> None:
    for opened in (
        lambda: MemoryJournal(remembered=-1),
        lambda: FileJournal(tmp_path / "a", remembered=-1),
        lambda: SqliteJournal(tmp_path / "b", remembered=-1),
        lambda: FileJournal(tmp_path / "a", segment_bytes=0),
    ):
        with pytest.raises(InputError, match=r"from 0|from 1"):
            opened()
    shutil.rmtree(tmp_path / "a", ignore_errors=True)
