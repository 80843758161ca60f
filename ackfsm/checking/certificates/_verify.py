"""Is all that a certificate says true?  Each of its invariants is looked through, and each of its runs performed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ackfsm.checking.certificates._delayed import is_within_delayed
from ackfsm.checking.certificates._followed import Followed, followed_system
from ackfsm.checking.certificates._format import Certificate, Invariant, Level
from ackfsm.checking.certificates._network import written_network
from ackfsm.checking.certificates._related import RelatedRest, RelatedViews
from ackfsm.checking.certificates._rest import Rest
from ackfsm.checking.certificates._system import LOST, Ghost, NotCoveredError, Question, Role, System, Watcher
from ackfsm.checking.certificates._views import ChecksError, Views
from ackfsm.checking.certificates._watching import Products
from ackfsm.checking.certificates._ways import check_way
from ackfsm.checking.certificates._words import TooManyWordsError
from ackfsm.checking.network import observers_named
from ackfsm.tables import Specification
from ackfsm.terms import Fault, InputError
from ackfsm.text import quoted

Progress = Callable[[str, int, int], object]
"""Told of what is done, how much of it is done, and how much there is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Verification:
    """What came of looking through a certificate.

    Attributes:
        certificate: which.
        refuted: for each anomaly of which what is said is not shown, why; under an empty name what is said of no one.
        undetermined: for each anomaly where looking through it was given up, why.
        seconds: how long it took.
    """

    certificate: Certificate
    refuted: Mapping[str, str]
    undetermined: Mapping[str, str]
    seconds: float = dataclasses.field(compare=False)

    @property
    def verified(self) -> bool:
        """Whether it says something, and all that it says was found to be so."""
        return not self.refuted and not self.undetermined and bool(self.certificate.proved or self.certificate.ways)

    def as_json(self) -> dict[str, Any]:
        """The answer as the command contract has it (``docs/commands.md``)."""
        certificate = self.certificate
        return {
            "verified": self.verified,
            "config": dict(certificate.configuration),
            "faults": list(certificate.faults),
            "actions": list(certificate.actions),
            "without": list(certificate.without),
            "tables": certificate.tables,
            "made_by": certificate.made_by,
            "impossible": list(certificate.proved),
            "possible": [way.anomaly for way in certificate.ways],
            "not_covered": dict(certificate.not_covered),
            "refuted": dict(self.refuted),
            "undetermined": dict(self.undetermined),
            "invariants": [{"name": each.name, "views": len(each.views)} for each in certificate.invariants],
            "views": certificate.views,
            "seconds": round(self.seconds, 3),
        }


def verify_certificate(
    certificate: Certificate, specification: Specification, progress: Progress | None = None
) -> Verification:
    """Look through ``certificate`` with the tables ``specification``, and nothing else of what made it.

    Raises :class:`InputError` for a certificate of other tables, and for names and settings that they do not have.
    """
    begun = time.perf_counter()
    question = _question(certificate, specification)
    if hashlib.sha256(written_network(question)).hexdigest() != certificate.network:
        raise InputError("the certificate is of another network than these tables have; make it again")
    run = _Run(certificate, question, progress or _nobody)
    run.verify()
    refuted, undetermined = MappingProxyType(run.refuted), MappingProxyType(run.undetermined)
    return Verification(certificate, refuted, undetermined, time.perf_counter() - begun)


def network_of(certificate: Certificate, specification: Specification) -> bytes:
    """The network that ``certificate`` is about, for a verifier that reads no tables; raises as the verification."""
    return written_network(_question(certificate, specification))


def _nobody(_what: str, _done: int, _of: int) -> None:
    pass


def _question(certificate: Certificate, specification: Specification) -> Question:
    profile = str(certificate.configuration.get("profile"))
    if profile not in specification.profiles:
        raise InputError(f"the certificate is of the profile {quoted(profile)}, which does not ship; name its file")
    if certificate.tables != specification.digest:
        raise InputError(
            f"the certificate is of other tables (digest {quoted(certificate.tables)}) than these "
            f"({specification.digest}); verify it with those that it was made with, or make it again"
        )
    names = {*certificate.proved, *(way.anomaly for way in certificate.ways)}
    configuration = specification.configure(None, certificate.configuration)
    if configuration.as_dict() != dict(certificate.configuration):
        raise InputError("the certificate does not state every setting of its configuration; make it again")
    strange = [name for name in certificate.faults if name not in set(Fault)]
    strange += [name for name in (*certificate.actions, *certificate.without) if name not in specification.events]
    if strange:
        raise InputError(f"the certificate names {quoted(strange[0])}, which is no fault or event of these tables")
    return Question(
        specification,
        configuration,
        frozenset(map(Fault, certificate.faults)),
        frozenset(certificate.actions),
        frozenset(certificate.without),
        observers_named(specification, names),
    )


class _Run:
    """One look through a certificate; what was found is kept by anomaly."""

    def __init__(self, certificate: Certificate, question: Question, progress: Progress) -> None:
        self._certificate, self._question, self._progress = certificate, question, progress
        self.refuted: dict[str, str] = {}
        self.undetermined: dict[str, str] = {}

    def verify(self) -> None:
        said = [*self._certificate.proved, *(way.anomaly for way in self._certificate.ways)]
        for name in said:
            if said.count(name) > 1 or name in self._certificate.not_covered:
                self.refuted[name] = f"it says more than one thing of {name}"
        for invariant in self._certificate.invariants:
            self._invariant(invariant)
        for name in self._certificate.proved:
            watchers = [each.part.name for each in self._question.system(1).watchers if each.anomaly == name]
            lacking = [_not_covered(name, each, self._certificate.invariants) for each in watchers]
            if any(lacking) or not watchers:
                self.refuted.setdefault(name, next(filter(None, lacking), f"nothing watches for {name}"))
        for way in self._certificate.ways:
            try:
                check_way(self._question, way)
            except ChecksError as why:
                self.refuted.setdefault(way.anomaly, str(why))

    def _invariant(self, invariant: Invariant) -> None:
        names = [name for name in invariant.anomalies if name in self._certificate.proved]
        strange = [name for name in invariant.anomalies if name not in names]
        if strange:
            self.refuted.setdefault("", f"{invariant.name}: it speaks of {strange[0]}, which is not said to be proved")
        try:
            _Check(invariant, self._system(invariant), self._progress).check(self._say)
        except ChecksError as why:
            self.refuted |= dict.fromkeys(names or [""], f"{invariant.name}: {why}")
        except NotCoveredError as why:
            self.refuted |= dict.fromkeys(names or [""], f"{invariant.name}: {why}, which is not covered")

    def _say(self, invariant: Invariant, anomaly: str, why: str, *, undetermined: bool) -> None:
        among = self.undetermined if undetermined else self.refuted
        among.setdefault(anomaly, f"{invariant.name}: {why}")

    def _system(self, invariant: Invariant) -> System:
        """The system of all numbers of messages that an invariant is for."""
        least, most = invariant.least, invariant.most
        wanted = {Level.ALONE: (least, most) == (1, 1), Level.RELATED: least > 1, Level.PAIRS: False}
        if least < 1 or (most is not None and most < least) or not wanted.get(invariant.level, True):
            raise ChecksError("it is not for numbers of messages that views of its level can be for")
        other = self._question.differs_from(least, most)
        if other is not None:
            raise ChecksError(f"the system of {other} messages is another one than that of {least}")
        return self._question.system(least)


def _not_covered(name: str, watcher: str, invariants: Sequence[Invariant]) -> str:
    """Why ``invariants`` do not show that what watches is never marked, whatever the number; empty if they do."""
    next_number = 1
    for invariant in sorted(
        (each for each in invariants if (name, watcher) in each.shown), key=lambda each: each.least
    ):
        if invariant.least > next_number:
            break
        if invariant.most is None:
            return ""
        next_number = max(next_number, invariant.most + 1)
    return f"no invariant is for {name} ({watcher}) and {next_number} message{'s' * (next_number > 1)}"


class _Check:
    """One invariant."""

    def __init__(self, invariant: Invariant, system: System, progress: Progress) -> None:
        self._invariant, self._system, self._progress = invariant, system, progress
        by_name = {(watcher.anomaly, watcher.part.name): watcher for watcher in system.watchers}
        self._watchers = [by_name[name] for name in invariant.watchers if name in by_name]
        self._followed = [
            (by_name[name], each) for each in invariant.followed for name in each.watchers if name in by_name
        ]
        self._unknown = [name for name in invariant.shown if name not in by_name]

    def check(self, say: Callable[..., None]) -> None:
        """See that the views are closed, else raise :class:`ChecksError`; ``say`` what they do not show."""
        rest = self._related_rest() if self._invariant.level is Level.RELATED else self._rest()
        for done, watcher in enumerate(self._watchers):
            self._progress(f"{self._invariant.name}: anomalies", done, len(self._watchers))
            self._say(watcher.anomaly, functools.partial(_shown, rest, watcher), say)
            rest.forget(watcher.part)
        self._progress(f"{self._invariant.name}: anomalies", len(self._watchers), len(self._watchers))
        for watcher, invariant in self._followed:
            self._say(watcher.anomaly, functools.partial(self._shown_by_followed, rest, watcher, invariant), say)
        for name, machine in self._unknown:
            say(self._invariant, name, f"no machine {machine} watches for {name}", undetermined=False)

    def _say(self, anomaly: str, shown: Callable[[], str], say: Callable[..., None]) -> None:
        """Say how views show an anomaly, if they do or if it takes too long to tell."""
        try:
            why = shown()
        except TooManyWordsError:
            say(self._invariant, anomaly, "the search for messages at rest was given up", undetermined=True)
            return
        except ChecksError as error:
            why = str(error)
        if why:
            say(self._invariant, anomaly, why, undetermined=False)

    def _rest(self) -> Rest:
        """Views that are closed, with what watches; raises :class:`ChecksError` for others."""
        views = Views(self._invariant, self._system)
        return Rest(views, self._products(views))

    def _related_rest(self) -> RelatedRest:
        """Views that ask a relation, which are closed as it is, with what watches; raises as :meth:`_rest`."""
        views = RelatedViews(self._invariant, self._system)
        return RelatedRest(views, self._products(views), self._products(views.relation.pairs))

    def of_pairs(self) -> Products:
        """The pairs of a relation, which is closed as the views are that ask it; raises as :meth:`_rest`."""
        views = RelatedViews(self._invariant, self._system)
        self._products(views)
        return self._products(views.relation.pairs)

    def _shown_by_followed(self, rest: Rest, watcher: Watcher, invariant: Invariant) -> str:
        """How the system in which a message is followed shows what is watched for."""
        if not isinstance(rest, RelatedRest):
            raise ChecksError("it follows a message beside views that have no relation")
        system = followed_system(self._system, watcher)
        pairs = _Check(invariant, system, self._progress).of_pairs()
        return Followed(watcher, system.watchers[0], pairs, rest).shows()

    def _products(self, views: Views) -> Products:
        """The products of views that are seen to be closed; raises :class:`ChecksError` for others."""
        views.check_ghosts()
        of = len(views.views)
        steps = views.steps(self._hears, lambda done: self._progress(f"{self._invariant.name}: steps", done, of))
        self._progress(f"{self._invariant.name}: steps", of, of)
        return Products(views, steps)

    def _hears(self, roles: tuple[Role, ...]) -> int:
        """The events in these roles that something that watches is moved by."""
        role_of_system = Role.SYSTEM if roles[0] is Role.SYSTEM else Role.OWN
        parts = [(watcher.part, set(roles) if watcher.of_message else {role_of_system}) for watcher in self._watchers]
        counts = [watcher.count for watcher in self._watchers if watcher.count is not None]
        parts += [(ghost.part, set(roles)) for ghost in (*counts, *(self._system.ghosts.values() if counts else ()))]
        if Role.OWN in roles:
            parts += [(watcher.part, set(Role)) for watcher, _ in self._followed]
        found = {event for part, hears in parts for role, event in part.moves if role in hears}
        return sum(1 << event for event in found)


def _shown(rest: Rest, watcher: Watcher) -> str:
    """How views show what is watched for, a clause; a state that the pairs of their relation do not reach is not."""
    reached = rest.products.reached_in_slots(watcher)
    if rest.marked(watcher, reached) and not any(_is_within_a_bound(each, watcher.count) for each in rest.every):
        return f"{watcher.part.name} is marked beside one of its views"
    if watcher.at_rest and rest.shows(watcher, reached):
        return f"{watcher.part.name} is marked beside views that can be at rest"
    return ""


def _is_within_a_bound(products: Products, count: Ghost | None) -> bool:
    """Whether a counter of the system that goes no further than the same bound has counted all that was counted."""
    if count is None:
        return False
    guards = [(at, guard) for at, _, guard in products.views.exact if guard.refuses and guard.bound == count.bound]
    return any(_is_at_most(products, count, at) for at, _ in guards) or any(
        is_within_delayed(products, count, guard, at) for at, guard in guards
    )


def _is_at_most(products: Products, count: Ghost, guard: int) -> bool:
    views = products.views
    for slot in range(views.level.messages):
        reached = products.reached(count.part, slot)
        for view, states in zip(views.views, reached, strict=True):
            if states >> LOST or states >> (views.ghosts_of(view[1 + slot])[guard] + 1):
                return False
    return True
