"""Which anomalies a configuration can reach: exhaustive searches, each done once and kept between runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import platformdirs

from ackfsm.checking.explore import Reduction, SearchOptions, SlicedNetwork, Slicer, explore_packed
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.tables import Specification
from ackfsm.tables.batch import Batch, chunks
from ackfsm.terms import Configuration


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """Which of the ``watched`` anomalies and ends of a message ``configuration`` can reach within ``bounds``.

    The search stops, undecided, after ``max_states``.
    """

    configuration: Configuration
    bounds: Bounds
    watched: frozenset[str]
    max_states: int


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search.

    ``witnesses`` has the labels of a run to each name that was reached; where the search is not ``complete``, the
    others are undecided.  It may end early when all that is watched was reached.
    """

    states: int
    complete: bool
    witnesses: Mapping[str, tuple[str, ...]]


class Searches:
    """Answers questions from the ``cache``, else by searches in the processes of ``work``."""

    def __init__(self, work: Batch, cache: AnswerCache) -> None:
        self._batch = work
        self._cache = cache

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers, in the order of the questions; networks that are equal are searched once."""
        known = {question: kept for question in questions if (kept := self._cache.find(question)) is not None}
        asked = [question for question in dict.fromkeys(questions) if question not in known]
        if asked:
            keys = self._batch.run("composing configurations", _network_keys, chunks(asked, _COMPOSED_A_TASK))
            found = self._of_networks(dict(zip(keys, asked, strict=True)))
            known |= {question: found[key] for question, key in zip(asked, keys, strict=True)}
            self._cache.keep(known)
        return [known[question] for question in questions]

    def _of_networks(self, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Return the answer for each key of a network; ``questions`` has one question for each."""
        found = {key: kept for key in questions if (kept := self._cache.find(key)) is not None}
        new = [key for key in questions if key not in found]
        answers = self._batch.run("searching", _answers, [[questions[key]] for key in new])
        searched = dict(zip(new, answers, strict=True))
        self._cache.keep(searched)
        return {**found, **searched}


_COMPOSED_A_TASK: Final = 4


def _network_keys(specification: Specification, questions: Sequence[Question]) -> list[str]:
    """Return keys that are equal for two questions exactly if their searches are: few settings matter."""
    return [f"{_sliced(specification, each).key} {each.max_states}" for each in questions]


def _answers(specification: Specification, questions: Sequence[Question]) -> list[Answer]:
    """The answers of the tables to ``questions``."""
    return [_search(specification, question) for question in questions]


def _sliced(specification: Specification, question: Question) -> SlicedNetwork:
    observers = observers_of(specification, question.watched)
    return Slicer(compose(specification, question.configuration, question.bounds, observers)).slice(lambda _: True)


def _search(specification: Specification, question: Question) -> Answer:
    sliced = _sliced(specification, question)
    options = SearchOptions(
        max_states=question.max_states,
        only_witnesses=True,
        compiled=True,
        workers=1,
        reductions=(Reduction.PARTIAL_ORDER,),
    )
    found = explore_packed(sliced.packed, sliced.events, options)
    witnesses = {str(name): tuple(event.label for event in steps) for name, steps in found.witnesses.items()}
    return Answer(found.states, found.complete, witnesses)


class AnswerCache:
    """Answers that are kept in a file between runs.

    An answer is of these very tables and of this very search.  What cannot be read or written is searched anew.
    """

    def __init__(self, specification: Specification, file: Path | None = None) -> None:
        """``file`` is made where it does not exist; by default it is in the user's folder for caches."""
        self._salt = f"{specification.digest} {_digest_of_search()}"
        self._kept: dict[str, Answer] = {}
        self._file = file or Path(platformdirs.user_cache_dir("ackfsm")) / "answers.sqlite"
        self._connection: sqlite3.Connection | None = None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._file)
            with self._connection:
                self._connection.execute("create table if not exists answers (key text primary key, answer text)")
        except (OSError, sqlite3.Error):
            self._connection = None

    def find(self, question: Question | str) -> Answer | None:
        """The answer that is kept to a question, or to all with this key of a network."""
        key = self._key(question)
        if key not in self._kept and self._connection is not None:
            try:
                row = self._connection.execute("select answer from answers where key = ?", (key,)).fetchone()
                if row is not None:
                    self._kept[key] = _read(json.loads(row[0]))
            except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError):
                return None  # damaged: it is searched anew, and written over
        return self._kept.get(key)

    def keep(self, answers: Mapping[Question, Answer] | Mapping[str, Answer]) -> None:
        """Keep these answers, each to a question or to all with a key of a network."""
        found = {self._key(question): each for question, each in answers.items()}
        self._kept.update(found)
        if self._connection is None:
            return
        rows = [(key, json.dumps(dataclasses.asdict(each))) for key, each in found.items()]
        try:
            with self._connection:
                self._connection.executemany("insert or replace into answers values (?, ?)", rows)
        except sqlite3.Error:
            self._connection = None

    def _key(self, question: Question | str) -> str:
        asked = question if isinstance(question, str) else _as_json(question)
        return hashlib.sha256(f"{self._salt} {json.dumps(asked)}".encode()).hexdigest()


def _as_json(question: Question) -> list[Any]:
    return [
        question.configuration.as_dict(),
        question.bounds.as_dict(),
        sorted(question.watched),
        question.max_states,
    ]


def _digest_of_search() -> str:
    """A hash of the code that composes networks and searches them."""
    checking = Path(__file__).parents[2] / "checking"
    digest = hashlib.sha256()
    for file in [checking / "network.py", *sorted((checking / "explore").rglob("*.py")), Path(__file__)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _read(data: Mapping[str, Any]) -> Answer:
    witnesses = {str(name): tuple(map(str, labels)) for name, labels in data["witnesses"].items()}
    return Answer(int(data["states"]), data["complete"] is True, witnesses)
