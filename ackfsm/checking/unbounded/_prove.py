"""``prove``: which anomalies are impossible with any number of messages and any number of faults."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, TypeVar

from ackfsm.checking.certificates import Certificate, Invariant
from ackfsm.checking.network import Bounds, Observer, observers_of
from ackfsm.checking.unbounded._certify import certificate_of, invariant_of, with_what_is_proved
from ackfsm.checking.unbounded._columns import Scope, System, Watcher, system_of, watchers_of, with_watcher
from ackfsm.checking.unbounded._examined import Examined, Related, shown_by
from ackfsm.checking.unbounded._families import Family, families
from ackfsm.checking.unbounded._followed import Followed, can_be_followed, followed
from ackfsm.checking.unbounded._localize import (
    Kept,
    everything,
    first_kept,
    needed,
    projected,
    with_all_copies,
    with_what_chooses,
)
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._related import RelatedViews, Relation, halves_of, relating
from ackfsm.checking.unbounded._steps import Level, Spaces
from ackfsm.checking.unbounded._views import Views
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault

DEFAULT_LEVELS = (Level.CHAOS, Level.RELATED, Level.FOLLOWED)

_Made = TypeVar("_Made")

MOST_VIEWS: Final = 24_000_000
"""Where a proof gives up: local views of ActiveMQ in transactions, with two copies, are 18 million."""

_MOST_CHAOS = 100_000
"""All of the system is tried at the level chaos up to so many views, if proofs may know less of it."""

_MOST_LOCALIZED = 30_000
"""A proof that has to know so much of the system that it has more views than this is tried with all of it."""

_MOST_RELATED = 6_000_000
"""A relation that is larger is given up: a pair takes a kilobyte, with its steps."""

_MOST_FEW = 2_000_000
"""A relation of few machines, for one machine that watches, is given up earlier."""


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of one anomaly: it is impossible (``proved``), or it is not known whether it is (``undecided``).

    ``level`` is the highest that was needed; ``undecided`` says why nothing is proved, and is empty for a proof.
    """

    anomaly: str
    level: Level | None
    undecided: str = ""

    @property
    def proved(self) -> bool:
        """Whether no system of any number of messages, with any number of faults, shows the anomaly."""
        return not self.undecided


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    """The verdicts for one configuration; ``views`` is how many views each level took, over all families.

    The numbers of messages and faults in ``bounds`` mean nothing.  ``invariants`` are the views that show what is
    proved, where they were to be kept.
    """

    configuration: Configuration
    bounds: Bounds
    verdicts: Mapping[str, Verdict]
    views: Mapping[Level, int]
    seconds: float = dataclasses.field(compare=False)
    invariants: tuple[Invariant, ...] = ()

    def certificate(self, specification: Specification) -> Certificate:
        """What is proved with ``specification``, as a certificate.

        Raises :class:`ackfsm.terms.InputError` for a proof that did not keep the invariants.
        """
        return certificate_of(
            specification,
            self.configuration,
            self.bounds,
            proved=(name for name, verdict in self.verdicts.items() if verdict.proved),
            not_covered={verdict.anomaly: verdict.undecided for verdict in self.undecided},
            invariants=self.invariants,
        )

    @property
    def undecided(self) -> tuple[Verdict, ...]:
        """What is not proved."""
        return tuple(verdict for verdict in self.verdicts.values() if not verdict.proved)


def prove(  # noqa: PLR0913 - what is asked, of which systems, and with how much effort
    specification: Specification,
    configuration: Configuration,
    anomalies: Collection[str] | None = None,
    *,
    faults: Collection[Fault] = tuple(Fault),
    actions: Collection[str] = (),
    without: Collection[str] = (),
    levels: Sequence[Level] = DEFAULT_LEVELS,
    max_states: int = MOST_VIEWS,
    progress: Callable[[int], None] | None = None,
    keep_invariants: bool = False,
    localize: bool = True,
    observers: Sequence[Observer] | None = None,
    least: int = 1,
) -> Proof:
    """Prove ``anomalies`` (by default all, and the ends of a message) impossible for any number of messages and faults.

    It may be of ``least`` messages and more alone, where fewer were searched.  The ``levels`` are tried in their order,
    each for what the ones before have left.  ``max_states`` is the most views
    of one level.  Nothing is ever said to be possible: what a proof is not found for is undecided, with the reason.
    With ``keep_invariants`` the proof has the views, for a certificate.  Unless it may ``localize``, each proof knows
    all machines from its beginning.  Other ``observers`` may be given in place of those of ``anomalies``.

    Raises :class:`ackfsm.terms.InputError` for a name in ``anomalies`` that the tables do not define.
    """
    begun = time.perf_counter()
    scope = Scope(specification, configuration, frozenset(faults), frozenset(actions), frozenset(without))
    asked = observers_of(specification, anomalies) if observers is None else observers
    run = _Run(scope, asked, levels, max_states, progress, keep_invariants, localize, least)
    verdicts = run.verdicts()
    proved = [name for name, verdict in verdicts.items() if verdict.proved]
    invariants = with_what_is_proved(run.invariants, proved)
    return Proof(
        configuration,
        Bounds(faults=scope.faults, max_faults=None, actions=scope.actions, without=scope.without),
        verdicts,
        dict(run.views),
        time.perf_counter() - begun,
        invariants,
    )


class _Last(Generic[_Made]):
    """What was made last, or why it could not be made; what is asked for another key is made anew."""

    def __init__(self) -> None:
        self._key: object = None
        self._found: _Made | NotProvedError | None = None

    def of(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What ``make`` makes for this key.  Raises :class:`NotProvedError` as it did."""
        if self._found is None or self._key != key:
            self._found, self._key = None, key
            try:
                self._found = make()
            except NotProvedError as reason:
                self._found = reason
        if isinstance(self._found, NotProvedError):
            raise self._found
        return self._found


@dataclasses.dataclass
class _Run:
    """One proof: the anomalies that are left, family by family and level by level.

    ``views`` and ``invariants`` grow with what is proved.
    """

    scope: Scope
    observers: Sequence[Observer]
    levels: Sequence[Level]
    max_states: int
    progress: Callable[[int], None] | None
    keep_invariants: bool
    localize: bool
    least: int
    views: dict[Level, int] = dataclasses.field(default_factory=dict)
    invariants: list[Invariant] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self._keeps_covering = False
        """Whether ghosts that are not exact are kept; views are more with them."""
        self._has_dropped = False
        """Whether some were not kept."""
        self._systems: dict[Family, tuple[System, tuple[Watcher, ...]]] = {}
        self._whole = _Last[Examined]()
        self._local = _Last[Examined]()
        self._relation = _Last[Related]()
        self._written = _Last[Invariant]()

    def verdicts(self) -> dict[str, Verdict]:
        """The verdict for each anomaly: what all families have proved, at the highest level that one of them needed."""
        names = list(dict.fromkeys(str(anomaly) for anomaly, _ in self.observers))
        try:
            each = [self._of_family(family) for family in self._families()]
        except NotProvedError as reason:
            return {name: Verdict(name, None, str(reason)) for name in names}
        return {name: _joined(name, [of_family[name] for of_family in each]) for name in names}

    def _families(self) -> tuple[Family, ...]:
        """The families of the configuration: neighbours with the same columns in it are one."""
        machines = [*self.scope.specification.machines.values(), *(monitor.machine for _, monitor in self.observers)]
        for family in families(self.scope.specification, machines, self.least):
            system = system_of(self.scope, family)
            watchers = watchers_of(self.scope, system, self.observers)
            last = next(reversed(self._systems), None)
            known = None if last is None else self._systems[last]
            if last is not None and known == (dataclasses.replace(system, family=last), watchers):
                del self._systems[last]
                family = Family(last.least, family.most)  # noqa: PLW2901 - it is joined to the one before it
            self._systems[family] = dataclasses.replace(system, family=family), watchers
        return tuple(self._systems)

    def _of_family(self, family: Family) -> dict[str, Verdict]:
        """The verdict for each anomaly over the systems of one family."""
        left = dict.fromkeys((str(anomaly) for anomaly, _ in self.observers), "no level was tried")
        proved: dict[str, Verdict] = {}
        levels = self.levels if family.has_several else (Level.ALONE,)
        self._has_dropped = False
        for self._keeps_covering in (False, True):
            for level in levels:
                asked = [name for name in left if self._is_asked(level, family, name)]
                for name, reason in self._with_one(level, family, asked).items():
                    left[name] = reason
                    if not reason:
                        proved[name] = Verdict(name, level)
                        del left[name]
        self._keeps_covering = False
        return proved | {name: Verdict(name, None, f"{family}: {reason}") for name, reason in left.items()}

    def _is_asked(self, level: Level, family: Family, name: str) -> bool:
        """Whether a level may prove an anomaly.

        With ghosts that only cover their counters one with marks at rest is asked for again, where there are some.
        """
        watchers = [watcher for watcher in self._systems[family][1] if watcher.anomaly == name]
        if level is Level.FOLLOWED and not any(map(can_be_followed, watchers)):
            return False
        if not self._keeps_covering:
            return True
        return level.of_several and self._has_dropped and any(watcher.at_rest for watcher in watchers)

    def _with_one(self, level: Level, family: Family, names: Sequence[str]) -> dict[str, str]:
        """As :meth:`_at`; a pair takes two messages, and so does a relation, so the system of one is looked at too."""
        reasons = self._by_views(level, family, names)
        if level.of_several and family.has_one:
            alone = self._by_views(Level.ALONE, family, [name for name in names if not reasons[name]])
            reasons |= alone
        return reasons

    def _by_views(self, level: Level, family: Family, names: Sequence[str]) -> dict[str, str]:
        reasons = {}
        for name in names:
            try:
                reasons[name] = self._of_anomaly(level, family, name)
            except NotProvedError as reason:
                reasons[name] = str(reason)
        return reasons

    def _of_anomaly(self, level: Level, family: Family, name: str) -> str:
        """Why an anomaly is not proved; empty where none of the machines that watch for it shows it."""
        whole, every = self._systems[family]
        watchers = [watcher for watcher in every if watcher.anomaly == name]
        reasons = (self._of_watcher(level, family, whole, watcher) for watcher in watchers)
        return next(filter(None, reasons), "")

    def _of_watcher(self, level: Level, family: Family, whole: System, watcher: Watcher) -> str:
        """Why a mark is not excluded; empty where it is.

        What needs too much of the system is tried with all of it at once.
        """
        reason = "all machines are asked for"
        if level is Level.RELATED:
            return self._of_related(family, whole, watcher)
        if level is Level.FOLLOWED:
            return self._of_followed(family, whole, watcher)
        if self.localize:
            try:
                reason, examined = self._localized(level, family, whole, watcher, first_kept(whole, watcher))
            except NotProvedError as why:
                reason = str(why)
        if reason:
            examined = self._of_everything(level, family, whole)
            shown = shown_by(examined, watcher)
            reason = "" if shown is None else shown.reason
        if not reason:
            self._is_proved(examined, family, watcher)
        return reason

    def _of_related(self, family: Family, whole: System, watcher: Watcher) -> str:
        """Why views of related messages do not exclude a mark; empty where they do.

        A mark that is not at rest may be refuted by pairs of few machines, which are less than those of the system.
        """
        ways = [self._of_whole_relation] if watcher.at_rest else [self._of_whole_relation, self._of_few_related]
        reasons = []
        for way in ways if watcher.of_message else reversed(ways):
            try:
                reason = way(family, whole, watcher)
            except NotProvedError as why:
                reason = str(why)
            if not reason:
                return ""
            reasons.append(reason)
        return "; ".join(reasons)

    def _of_whole_relation(self, family: Family, whole: System, watcher: Watcher) -> str:
        """As :meth:`_of_related`, with the relation of the machines that relate messages."""
        related = self._related(family, whole)
        reason = related.shown(watcher)
        if not reason:
            self._is_proved(related.messages, family, watcher, related.views.relation)
        return reason

    def _of_few_related(self, family: Family, whole: System, watcher: Watcher) -> str:
        """As :meth:`_of_related`, with a relation for ``watcher`` alone, of few of all machines.

        What watches the system is one of them, and the first one, since pairs do not tell what third messages did.
        """
        if watcher.of_message:
            local = self._of_local(family, whole)
            known, halves = _known_by(local.system, whole), local.views
            first = with_what_chooses(known, relating(known), watcher)
        else:
            known, halves = with_watcher(whole, watcher), None
            first = first_kept(known, watcher)
        reason, pairs = self._localized(Level.PAIRS, family, known, watcher, first, halves)
        if not reason and self.keep_invariants:
            relation = Relation(pairs.views)
            system = pairs.system if halves is None else local.system
            related = Related(pairs, self._related_views(family, system, relation, halves))
            reason = related.shown(watcher)
            if not reason:
                self._is_proved(related.messages, family, watcher, relation)
        return reason

    def _of_followed(self, family: Family, whole: System, watcher: Watcher) -> str:
        """Why a mark is not excluded although its message is followed; empty where it is.

        What cannot be followed, beside what can, is asked of the relation.
        """
        if not can_be_followed(watcher):
            return self._of_related(family, whole, watcher)
        related = self._related(family, whole)
        system, following = followed(whole, watcher)
        local = self._local_views(family, system)
        known = _known_by(local.system, system)
        pairs = self._examined(Level.PAIRS, family, known, everything(known), self._most_related, local.views)
        reason = Followed(pairs, following, watcher).shown(related)
        if not reason and self.keep_invariants:
            follows = dataclasses.replace(self._of_pairs(family, local, pairs), watchers=(_name(watcher),))
            beside = self._invariant(related.messages, family, related.views.relation)
            self.invariants.append(dataclasses.replace(beside, followed=(follows,)))
        return reason

    def _of_pairs(self, family: Family, local: Examined, pairs: Examined) -> Invariant:
        """What a certificate has of pairs, with views that ask them: no more than what is met, as far as there is room.

        A verifier does not merge states, and all members of those that were merged are often many times more.
        """
        try:
            kept = everything(pairs.system)
            met = self._examined(Level.PAIRS, family, pairs.system, kept, self._most_related, local.views, merged=False)
            views = self._related_views(family, local.system, Relation(met.views), local.views, merged=False)
        except NotProvedError:
            return invariant_of(local.views, family, pairs.views)
        return invariant_of(views, family, met.views)

    def _is_proved(
        self, examined: Examined, family: Family, watcher: Watcher, relation: Relation | None = None
    ) -> None:
        """Keep the views that show that ``watcher`` is not marked, if they are asked for."""
        if self.keep_invariants:
            views = self._invariant(examined, family, relation)
            self.invariants.append(dataclasses.replace(views, watchers=(_name(watcher),)))

    def _invariant(self, examined: Examined, family: Family, relation: Relation | None) -> Invariant:
        """What a certificate has of views, which are written once for all that watch beside them."""
        pairs = None if relation is None else relation.pairs
        return self._written.of(examined, lambda: invariant_of(examined.views, family, pairs))

    def _related(self, family: Family, whole: System) -> Related:
        """The views of related messages, which are kept for the next one that watches."""
        key = (family, self._keeps_covering)
        return self._relation.of(key, lambda: self._examined_related(family, whole))

    def _of_local(self, family: Family, whole: System) -> Examined:
        """The local views of all machines, which are kept for the next one that asks."""
        return self._local.of((family, self._keeps_covering), lambda: self._local_views(family, whole))

    def _local_views(self, family: Family, system: System) -> Examined:
        return self._examined(Level.LOCAL, family, system, everything(system), self.max_states)

    def _examined_related(self, family: Family, whole: System) -> Related:
        """The views of pairs that are the relation, and those of one message that ask it."""
        local = self._of_local(family, whole)
        of_local = _known_by(local.system, whole)
        kept, most = relating(of_local), self._most_related
        pairs = self._examined(Level.PAIRS, family, of_local, kept, most, local.views, of_relation=True)
        return Related(pairs, self._related_views(family, local.system, Relation(pairs.views), local.views))

    def _related_views(
        self, family: Family, system: System, relation: Relation, local: Views | None, *, merged: bool = True
    ) -> RelatedViews:
        """The views of ``system`` that ask a relation, without those that ``local`` views do not have."""
        spaces = Spaces(system)
        views = RelatedViews(
            spaces,
            relation,
            third=family.has_several,
            max_states=self.max_states,
            progress=self.progress,
            halves=None if local is None else halves_of(local, spaces, relation, merged=merged),
        )
        self._count(Level.RELATED, views)
        return views

    @property
    def _most_related(self) -> int:
        return min(self.max_states, _MOST_RELATED)

    def _localized(  # noqa: PLR0913, PLR0917 - a level of a system, what watches it, and with what a proof begins
        self, level: Level, family: Family, whole: System, watcher: Watcher, first: Kept, local: Views | None = None
    ) -> tuple[str, Examined]:
        """Why a mark is not excluded, with ever more machines known (lemma 6), and the views; empty where it is.

        With ``local`` views, whose halves pairs are made of, all copies of a message are known as well as one.
        """
        kept = first
        most = min(self.max_states, _MOST_FEW if level is Level.PAIRS else _MOST_LOCALIZED)
        while True:
            examined = self._examined(level, family, whole, kept, most, local, of_relation=local is not None)
            shown = shown_by(examined, watcher)
            if shown is None:
                return "", examined
            more = needed(whole, kept, examined.graph, shown)
            if more is None:
                return shown.reason, examined
            kept = kept | more if local is None else with_all_copies(whole, kept | more)

    def _of_everything(self, level: Level, family: Family, whole: System) -> Examined:
        """The views of all machines, which are kept for the next one that watches."""
        most = _MOST_CHAOS if self.localize and level is Level.CHAOS else self.max_states
        return self._whole.of(
            (level, family, self._keeps_covering),
            lambda: self._examined(level, family, whole, everything(whole), min(self.max_states, most)),
        )

    def _examined(  # noqa: PLR0913, PLR0917 - a level of a system, what is known of it, and how many views
        self,
        level: Level,
        family: Family,
        whole: System,
        kept: Kept,
        max_states: int,
        local: Views | None = None,
        *,
        merged: bool = True,
        of_relation: bool = False,
    ) -> Examined:
        """The views of a level; again where ghosts turn out not to be exact, without them or with what they still tell.

        Halves of pairs that ``local`` views do not have are left out, and messages are ``merged`` in the others, more
        of them in those ``of_relation``.
        """
        third = family.has_third if level is Level.PAIRS else family.has_several
        ghosts = whole.ghosts
        while True:
            system = projected(dataclasses.replace(whole, ghosts=ghosts), kept)
            spaces = Spaces(system)
            halves = None if local is None else halves_of(local, spaces, merged=merged, of_relation=of_relation)
            views = Views(spaces, level, third=third, max_states=max_states, progress=self.progress, halves=halves)
            broken = {system.machines[ghost.counter].name for ghost in views.broken}
            if not broken:
                self._count(level, views)
                return Examined(system, views)
            exact = tuple(ghost for ghost in ghosts if whole.machines[ghost.counter].name not in broken)
            covering = (dataclasses.replace(ghost, exact=False) for ghost in ghosts if ghost not in exact)
            self._has_dropped |= not self._keeps_covering
            ghosts = (*exact, *(covering if self._keeps_covering else ()))

    def _count(self, level: Level, views: Views) -> None:
        self.views[level] = self.views.get(level, 0) + len(views)


def _name(watcher: Watcher) -> tuple[str, str]:
    """What a machine watches for, and its own name."""
    return watcher.anomaly, watcher.table.name


def _known_by(other: System, system: System) -> System:
    """A system without the machines and ghosts that another one does not have; ghosts are exact as they are there."""
    exact = {other.machines[ghost.counter].name: ghost.exact for ghost in other.ghosts}
    ghosts = tuple(
        dataclasses.replace(ghost, exact=exact[name])
        for ghost in system.ghosts
        if (name := system.machines[ghost.counter].name) in exact
    )
    kept = everything(dataclasses.replace(system, ghosts=ghosts))
    names = {table.name for table in (*other.machines, *other.message)}
    return projected(
        dataclasses.replace(system, ghosts=ghosts),
        Kept(
            frozenset(number for number in kept.machines if system.machines[number].name in names),
            frozenset(number for number in kept.message if system.message[number].name in names),
        ),
    )


def _joined(name: str, verdicts: Sequence[Verdict]) -> Verdict:
    undecided = next((verdict for verdict in verdicts if not verdict.proved), None)
    if undecided is not None:
        return undecided
    order = tuple(Level)
    return Verdict(name, max((v.level for v in verdicts if v.level is not None), key=order.index))
