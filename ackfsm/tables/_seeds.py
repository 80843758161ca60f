"""``spec/seeds.yaml``: the sentences of the seed documents, each with what carries it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ackfsm.tables._source import Document
from ackfsm.terms import key_type, parse_value

if TYPE_CHECKING:
    from ackfsm.tables._specification import Specification

__all__ = ["Seed", "Sentence", "check_seeds", "read_seeds"]

_Path: TypeAlias = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Refutation:
    """The run that shows that a sentence does not hold: its ``steps`` with these ``settings`` and ``faults``."""

    because: str
    shows: str
    settings: Mapping[str, Any]
    faults: tuple[str, ...]
    steps: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a seed document in our own words.

    Attributes:
        lines: the lines of the document where it stands, first and last.
        says: what it says.
        carriers: what carries it, by kind (``claims``, ``rows``, ``settings``, ``names`` …), each as it is written
            there; a name of a system is ``SYSTEM NAME``.
        aside: why nothing has to carry it, where it says nothing of messages; else empty.
        refuted_by: what shows that it does not hold, if it does not.
    """

    lines: tuple[int, int]
    says: str
    carriers: Mapping[str, tuple[str, ...]]
    aside: str
    refuted_by: Refutation | None


@dataclasses.dataclass(frozen=True, slots=True)
class Seed:
    """One of the seed documents."""

    file: str
    title: str
    sentences: tuple[Sentence, ...]


def read_seeds(document: Document) -> tuple[Seed, ...]:
    """The seeds in ``spec/seeds.yaml``, whose form has been checked."""
    return tuple(Seed(seed["seed"], seed["title"], tuple(map(_sentence, seed["sentences"]))) for seed in document.data)


def _sentence(data: Mapping[str, Any]) -> Sentence:
    carriers = {kind: tuple(_named(data[kind])) for kind in data if kind not in {"at", "says", "aside", "refuted_by"}}
    refuted_by = _refutation(data["refuted_by"]) if "refuted_by" in data else None
    return Sentence(_lines(data["at"]), data["says"], carriers, data.get("aside", ""), refuted_by)


def _refutation(data: Mapping[str, Any]) -> Refutation:
    return Refutation(data["because"], data["shows"], data["in"], tuple(data["faults"]), tuple(data["steps"]))


def _named(carriers: Any) -> Iterator[str]:
    if isinstance(carriers, list):
        yield from carriers
    else:
        yield from (f"{system} {name}" for system, names in carriers.items() for name in names)


def _lines(at: int | str) -> tuple[int, int]:
    first, _, last = str(at).partition("-")
    return int(first), int(last or first)


def check_seeds(specification: Specification, document: Document, claims: Collection[str]) -> None:
    """Check that all that ``seeds.yaml`` names in the tables is there, and that no sentence stands before another.

    ``claims`` are the ids of the claims that there are.  Tests, pages and computations are not of the tables.
    Raises :class:`SpecError` naming file and line.
    """
    _Check(specification, document, claims).run()


class _Check:
    def __init__(self, specification: Specification, document: Document, claims: Collection[str]) -> None:
        self.specification = specification
        self.document = document
        self.claims = claims

    def run(self) -> None:
        for i, seed in enumerate(self.document.data):
            for j, sentence in enumerate(seed["sentences"]):
                path = (i, "sentences", j)
                for kind, refuse_unknown in self._kinds.items():
                    for where, name in self._each((*path, kind), sentence.get(kind, [])):
                        refuse_unknown(where, name)
            places = [_lines(sentence["at"]) for sentence in seed["sentences"]]
            for j, (before, after) in enumerate(itertools.pairwise(places), start=1):
                if after < before:
                    raise self.document.error((i, "sentences", j, "at"), "sentences stand in the document's order")

    @property
    def _kinds(self) -> Mapping[str, Callable[[_Path, Any], None]]:
        return {
            "claims": self._among(self.claims, "claim", "claims.yaml"),
            "events": self._among(self.specification.events, "event", "events.yaml"),
            "anomalies": self._among(self.specification.properties, "anomaly", "properties"),
            "promises": self._among(self.specification.promises, "promise", "promises.yaml"),
            "settings": self._setting,
            "rows": self._row,
            "names": self._of_system(lambda table: {one.name for one in table.names.values()}, "name"),
            "constants": self._of_system(lambda table: {one.name for one in table.constants}, "constant"),
            "apis": self._of_system(lambda table: table.apis, "API"),
            "vendor_events": self._of_system(lambda table: {one.name for one in table.events}, "event of its own"),
        }

    @staticmethod
    def _each(path: _Path, carriers: Any) -> Iterator[tuple[_Path, Any]]:
        if isinstance(carriers, list):
            yield from (((*path, k), one) for k, one in enumerate(carriers))
        else:
            for system, names in carriers.items():
                yield from (((*path, system, k), (system, one)) for k, one in enumerate(names))

    def _among(self, known: Collection[str], kind: str, file: str) -> Callable[[_Path, Any], None]:
        def check(path: _Path, name: str) -> None:
            if name not in known:
                raise self.document.error(path, f"there is no {kind} {name!r}; {file} has those that there are")

        return check

    def _of_system(self, of: Callable[[Any], Collection[str]], kind: str) -> Callable[[_Path, Any], None]:
        def check(path: _Path, one: tuple[str, str]) -> None:
            system, name = one
            if system not in self.specification.profiles:
                raise self.document.error(path, f"there is no profile {system!r}")
            if name not in of(self.specification.profiles[system]):
                raise self.document.error(path, f"the profile {system} has no {kind} {name!r}")

        return check

    def _setting(self, path: _Path, text: str) -> None:
        key, equals, value = text.partition("=")
        with self.document.at(path):
            key_type(key)
            if equals:
                parse_value(key, value)

    def _row(self, path: _Path, text: str) -> None:
        name, _, rest = text.partition(".")
        state, _, event = rest.partition(".")
        machine = self.specification.machines.get(name)
        if machine is None or (state and state not in machine.states):
            raise self.document.error(path, f"there is no state {text!r}; write machine.state.event")
        if event and event not in {str(each) for each in machine.alphabet}:
            raise self.document.error(path, f"{name} does not react to {event!r}")
