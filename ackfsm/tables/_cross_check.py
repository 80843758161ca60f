"""Checks across the files of ``spec/``: unknown and unused names, events with no owner or with two, sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ackfsm.tables._conditions import Condition, parse_condition
from ackfsm.tables._machine import IndexKind, Machine, Relation
from ackfsm.tables._seeds import check_seeds
from ackfsm.tables._source import Document
from ackfsm.tables._sources import check_sources, texts_under
from ackfsm.terms import Anomaly, SpecError, key_type, parse_value

if TYPE_CHECKING:
    from ackfsm.tables._specification import Specification

_Path: TypeAlias = tuple[str | int, ...]


def check_tables(
    specification: Specification, documents: Collection[Document], beside: Mapping[str, Document | None]
) -> None:
    """Check the files against each other; those ``beside``, which are read elsewhere, may be missing.

    Raises :class:`SpecError` naming file, line and remedy.
    """
    _Check(specification, documents, beside).run()


def check_claims(specification: Specification, document: Document) -> None:
    """Check that every event, machine, state and setting that ``claims.yaml`` names is one of the tables.

    Raises :class:`SpecError` naming file and line of one that is not.
    """
    _Claims(specification, document).run()


def _keys(data: object) -> Iterator[str]:
    """The names under which anything stands."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield str(key)
            yield from _keys(value)


class _Check:
    def __init__(
        self,
        specification: Specification,
        documents: Collection[Document],
        beside: Mapping[str, Document | None],
    ) -> None:
        self.specification = specification
        named = {document.name: document for document in documents}
        self.recording = named.get("spec/recording.yaml")
        self.events, self.sources, self.conditions, self.promises, self.guarantees = (
            named[f"spec/{name}.yaml"] for name in ("events", "sources", "conditions", "promises", "guarantees")
        )
        self.claims, self.execution, self.seeds = (beside[name] for name in ("claims", "execution", "seeds"))
        self.documents = [*documents, *(document for document in beside.values() if document)]
        monitors = [m.machine for p in specification.properties.values() for m in p.monitors]
        monitors += [monitor.machine for monitor in specification.monitors.values()]
        self.machines = [*specification.machines.values(), *monitors]

    def run(self) -> None:
        for machine in self.machines:
            self._known_events(machine)
        self._one_owner()
        self._nothing_unused(self.events, self._used_events(), "event", "no machine has it in its alphabet")
        self._groups_are_used()
        self._nothing_unused(self.conditions, self._used_conditions(), "condition", "no row reads it")
        self._promises_made()
        self._guarantees_name_monitors()
        self._recording_names_states()
        self._deviations_name_signs()
        self._decisions_have_sources()
        self._nothing_unused(
            self.sources, check_sources(self.documents, self.specification.sources), "source", "nothing cites it"
        )
        if self.claims is not None:
            check_claims(self.specification, self.claims)
        if self.seeds is not None:
            check_seeds(self.specification, self.seeds, [one["id"] for one in self.claims.data] if self.claims else [])

    def _groups_are_used(self) -> None:
        named = {part.strip() for document in self.documents for key in _keys(document.data) for part in key.split(",")}
        for event, data in self.events.data.items():
            if "group" in data and data["group"] not in named:
                raise self.events.error((event, "group"), f"no row is for the group {data['group']}; delete it here")

    def _recording_names_states(self) -> None:
        for row in self.specification.recording.signs.values():
            for name, states in row.stays_away.items():
                machine = self.specification.machines.get(name)
                missing = states - set(machine.states if machine else ())
                if missing and self.recording is not None:
                    sentence = f"{name} has no state {min(missing)!r}, or is no machine; name one of machines/"
                    raise self.recording.error(("signs", row.name, "stays_away"), sentence)

    def _deviations_name_signs(self) -> None:
        for document in (each for each in self.documents if each.name.startswith("spec/profiles/")):
            for number, row in enumerate(document.data.get("deviates", ())):
                left_open = row.get("left_open", {"after": ()})
                if missing := {*left_open["after"]} - self.specification.recording.signs.keys():
                    where = ("deviates", number, "left_open", "after")
                    raise document.error(where, f"recording.yaml has no sign {min(missing)!r}; name one of it")

    def _decisions_have_sources(self) -> None:
        """Require a source for each choice between rows, and for each error that an application sees."""
        for machine in self.machines:
            for (state, event), cell in machine.cells.items():
                for row in cell:
                    if row.source is not None:
                        continue
                    where, remedy = f"{row.place}: {machine.name}.{state}", "say whose decision it is, or model"
                    if len(cell) > 1:
                        what = f"which row decides {event} is a matter of the configuration, and this one has no source"
                        raise SpecError(f"{where}: {what}; {remedy}")
                    if row.error is not None:
                        what = f"{event} ends in {row.error}, and the row has no source"
                        raise SpecError(f"{where}: {what}; {remedy}")

    def _known_events(self, machine: Machine) -> None:
        places = {row.event: row.place for row in sorted(machine.rows(), key=lambda row: row.line, reverse=True)}
        for event in machine.alphabet:
            known = self.specification.events.get(event.name)
            place = places[event]
            if known is None:
                raise SpecError(f"{place}: {machine.name} reacts to {event.name!r}; declare it in events.yaml")
            if (missing := _missing(event.relation, machine.per, known.per)) is not None:
                raise SpecError(f"{place}: {machine.name}: {event} has no other {missing}; drop ({event.relation})")
        for name in machine.owns:
            if name not in {event.name for event in machine.alphabet if event.relation is Relation.OWN}:
                raise SpecError(f"{machine.file}:{machine.line}: {machine.name} owns {name} but has no row for it")
            per = self.specification.events[name].per
            if not machine.per.contains(per) and not machine.per.is_part_of(per):
                sentence = (
                    f"{machine.name} is per {machine.per} and owns {name}, which is per {per}; give it a coarser owner"
                )
                raise SpecError(f"{machine.file}:{machine.line}: {sentence}")

    def _one_owner(self) -> None:
        owners: dict[str, str] = {}
        for machine in self.specification.machines.values():
            for event in machine.owns:
                if event in owners:
                    place = f"{machine.file}:{machine.line}"
                    raise SpecError(f"{place}: {machine.name} and {owners[event]} both own {event}; keep one owner")
                owners[event] = machine.name
        for name, declared in self.specification.events.items():
            if name not in owners and declared.recorded is None:
                raise self.events.error((name,), f"no machine owns {name} and no history records it; give it an owner")

    def _used_events(self) -> set[str]:
        return {event.name for machine in self.machines for event in machine.alphabet}

    def _used_conditions(self) -> set[str]:
        conditions = [row.when for machine in self.machines for row in machine.rows()]
        conditions += [factor.when for factor in self.specification.factors]
        conditions += [promise.when for promise in self.specification.promises.values()]
        conditions += self.specification.timing.conditions()
        conditions += self._calls()
        conditions += [condition for table in self.specification.profiles.values() for condition in table.conditions()]
        conditions += list(self.specification.conditions.values())
        return {name for condition in conditions for name in condition.names()}

    def _calls(self) -> Iterator[Condition]:
        """The conditions of ``execution.yaml``."""
        if (document := self.execution) is None:
            return
        for path, text in texts_under(document.data, "when"):
            with document.at(path):
                yield parse_condition(text, self.specification.conditions)

    def _promises_made(self) -> None:
        made = {name for table in self.specification.profiles.values() for name in table.promises}
        self._nothing_unused(self.promises, made, "promise", "no profile makes it")

    def _guarantees_name_monitors(self) -> None:
        guarantees = self.specification.guarantees
        narrowed = (each.of_what_was_confirmed for each in guarantees.values() if each.of_what_was_confirmed)
        for name in (*guarantees.monitors, *narrowed):
            if name not in self.specification.monitors:
                sentence = f"a guarantee is excluded by {name!r}, which no file of monitors/ has; correct the name"
                raise self.guarantees.error(("guarantees",), sentence)

    @staticmethod
    def _nothing_unused(document: Document, used: set[str], kind: str, why: str) -> None:
        for name in document.data:
            if name not in used:
                raise document.error((name,), f"the {kind} {name} is unused ({why}); delete it")


def _missing(relation: Relation, mine: IndexKind, its: IndexKind) -> str | None:
    """What there is one of alone, so that no event of the kind ``its`` stands in this relation to a machine."""
    if relation is Relation.ELSEWHERE and not (mine.of_consumer and its.of_consumer):
        return "consumer"
    if relation is Relation.OTHER_SUBSCRIPTION and not (mine.of_subscription and its.of_subscription):
        return "subscription"
    return "index" if not relation.of_the_same and IndexKind.SYSTEM in (mine.whole, its.whole) else None


_HAPPENS = re.compile(r"happens\((?P<event>.*)\)")


class _Claims:
    """Checks that the events, machines, states and settings in ``claims.yaml`` exist in the tables."""

    def __init__(self, specification: Specification, document: Document) -> None:
        self.specification = specification
        self.document = document

    def run(self) -> None:
        for i, claim in enumerate(self.document.data):
            self._checks((i, "checks"), claim["checks"])
            for j, other in enumerate(claim.get("contradiction", ())):
                self._checks((i, "contradiction", j, "checks"), other["checks"])

    def _checks(self, path: _Path, checks: list[dict[str, Any]]) -> None:
        for i, check in enumerate(checks):
            self._check((*path, i), check)

    def _check(self, path: _Path, check: dict[str, Any]) -> None:
        for key, refuse_unknown in self._by_key.items():
            self._each(path, key, check, refuse_unknown)
        for key in ("equal", "differ"):
            for side, settings in check.get(key, {}).items():
                self._settings((*path, key, side), settings)

    @property
    def _by_key(self) -> Mapping[str, Callable[[_Path, Any], None]]:
        """What refuses an unknown name under each key of a check."""
        return {
            **dict.fromkeys(("never", "possible"), self._watched),
            **dict.fromkeys(("although", "events", "without"), self._event),
            **dict.fromkeys(("by", "same_effect"), self._label),
            **dict.fromkeys(("default", "constant"), self._value),
            **dict.fromkeys(("refused", "accepted"), self._offer),
            "actions": self._action,
            "in": self._settings,
            "row": self._row,
        }

    def _each(self, path: _Path, key: str, check: dict[str, Any], refuse_unknown: Callable[[_Path, Any], None]) -> None:
        """Check each value under ``key``: none, one or a list of them."""
        values = check.get(key, [])
        for i, one in enumerate(values if isinstance(values, list) else [values]):
            refuse_unknown((*path, key, i), one)

    def _event(self, path: _Path, name: str) -> None:
        if name not in self.specification.events:
            raise self.document.error(path, f"there is no event {name!r}; events.yaml lists the events")

    def _label(self, path: _Path, label: str) -> None:
        self._event(path, label.partition("(")[0])

    def _action(self, path: _Path, name: str) -> None:
        self._event(path, name)
        if not self.specification.events[name].optional:
            raise self.document.error(path, f"{name} happens in every check; only optional events are actions")

    def _watched(self, path: _Path, name: str) -> None:
        if happens := _HAPPENS.fullmatch(name):
            self._event(path, happens["event"])
            if self.specification.owner(happens["event"]) is None:
                raise self.document.error(path, f"no machine decides {happens['event']}, so it never happens")
        elif name not in self.specification.monitors and name not in set(Anomaly):
            raise self.document.error(
                path, f"there is nothing called {name!r} to watch for: no anomaly, no monitor, no happens(event)"
            )

    def _value(self, path: _Path, fact: Mapping[str, Any]) -> None:
        self._settings(path, {fact["key"]: fact["value"], **fact.get("given", {})})

    def _offer(self, path: _Path, fact: Mapping[str, Any]) -> None:
        self._settings(path, fact["settings"])
        apis, api = self.specification.profiles[fact["profile"]].apis, fact.get("api")
        if api is not None and api not in apis:
            raise self.document.error(path, f"{fact['profile']} has no API {api!r}; it has {', '.join(apis)}")

    def _settings(self, path: _Path, settings: Mapping[str, Any]) -> None:
        for key, value in settings.items():
            for one in value if isinstance(value, list) else [value]:
                with self.document.at((*path, key)):
                    key_type(key)
                    if one != "any":
                        parse_value(key, one)

    def _row(self, path: _Path, row: Mapping[str, Any]) -> None:
        machine = self.specification.machines.get(row["machine"])
        if machine is None:
            raise self.document.error(path, f"there is no machine {row['machine']!r} in the tables")
        if row["event"] not in {str(event) for event in machine.alphabet}:
            raise self.document.error(path, f"{machine.name} does not react to {row['event']!r}")
        states = {row["state"], row.get("to", row["state"])}
        if not machine.counter and (strange := sorted(states - set(machine.states))):
            raise self.document.error(path, f"{machine.name} has no state {strange[0]!r}")
