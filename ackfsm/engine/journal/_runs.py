"""Workloads of a journal as text: ``store 1, store 2 in 7, commit 7, sync, crash, remove 1``."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Iterator

from ackfsm.engine.journal._entry import Kind
from ackfsm.terms import InputError

KINDS = {kind.name.lower(): kind for kind in Kind}
"""The words for entries."""
_CALLS = ("write", "sync", "compact", "reopen")
_FAILURES = ("kill", "crash", "tear")
_FAULTS = ("failing", "lying", "short", "full")
_INSIDE, _TRANSACTIONS = 0.6, 2
"""In a random run: how often an entry is in an open transaction if there is one, and how many are open at most."""
_WORD = re.compile(r"(?P<name>[a-z]+)(?: (?P<key>\d+))?(?: in (?P<transaction>\d+))?")


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One step of a run.

    * ``store K``, ``remove K``, ``mark K``, ``remember K``, each also ``... in T``, and ``commit T``: append an entry.
    * ``write``, ``sync``, ``compact``: the calls; ``reopen``: close and open.
    * ``kill``: the process dies; ``crash``: power loss, of what was not synced nothing arrives; ``tear``: power loss,
      of it only the last write arrives.  Then the journal is opened again.
    * ``failing``: the next sync fails; ``lying``: from now on syncs do nothing; ``short``: writes take half; ``full``:
      the disk has no more room.
    """

    name: str
    key: int = 0
    transaction: int = 0

    def __str__(self) -> str:
        key = f" {self.key}" if self.name in KINDS else ""
        return f"{self.name}{key}" + (f" in {self.transaction}" if self.transaction else "")


def parse_workload(text: str) -> tuple[Operation, ...]:
    """The operations of a run, separated by commas.

    Raises :class:`ackfsm.terms.InputError` for text that is no operation.
    """
    return tuple(_parse(word.strip()) for word in text.split(","))


def _parse(word: str) -> Operation:
    match = _WORD.fullmatch(word)
    known = (*KINDS, *_CALLS, *_FAILURES, *_FAULTS)
    if match is None or match["name"] not in known or (match["name"] in KINDS) != (match["key"] is not None):
        raise InputError(
            f"{word!r} is no operation; write for example 'store 1', 'remove 1 in 7', or one of {known[5:]}"
        )
    return Operation(match["name"], int(match["key"] or 0), int(match["transaction"] or 0))


def random_run(seed: int, length: int, *, faults: bool = False) -> tuple[Operation, ...]:
    """A run of ``length`` operations by ``seed``: copies, transactions, calls and failures, sometimes a fault."""
    return tuple(itertools.islice(_random(random.Random(seed), faults=faults), length))  # noqa: S311 - a seed


def _random(chance: random.Random, *, faults: bool) -> Iterator[Operation]:
    key = transaction = 0
    live: list[int] = []
    open_: list[int] = []
    calls = ("write", "sync", "sync", "compact", "reopen", "kill", "crash", "tear", *(_FAULTS[:1] if faults else ()))
    while True:
        inside = chance.choice(open_) if open_ and chance.random() < _INSIDE else 0
        what = chance.choices(
            ("store", "remove", "mark", "remember", "begin", "commit", "call"), (5, 3, 1, 1, 1, 2, 5)
        )[0]
        if what == "store":
            key += 1
            live.append(key)
            yield Operation("store", key, inside)
        elif what == "remove" and live:
            yield Operation("remove", live.pop(chance.randrange(len(live))), inside)
        elif what == "mark" and live:
            yield Operation("mark", chance.choice(live))
        elif what == "remember":
            key += 1
            yield Operation("remember", key)
        elif what == "begin" and len(open_) < _TRANSACTIONS:
            transaction += 1
            open_.append(1_000_000 + transaction)
        elif what == "commit" and inside:
            open_.remove(inside)
            yield Operation("commit", inside)
        elif what == "call":
            name = chance.choice(calls)
            open_ = open_ if name in {"write", "sync", "compact"} else []
            yield Operation(name)
