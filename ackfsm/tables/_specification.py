"""The tables of ``spec/`` as one value: machines, properties, events, conditions, profiles, promises."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ackfsm.tables import names
from ackfsm.tables._conditions import BOUND_SETTINGS, Condition
from ackfsm.tables._events import Event
from ackfsm.tables._forms import form_of, schema_of, shipped_tables
from ackfsm.tables._guarantees import Guarantees
from ackfsm.tables._liveness import LivenessProperty
from ackfsm.tables._machine import Machine
from ackfsm.tables._names import ConditionalValue
from ackfsm.tables._profiles import ProfileTable, read_own_profile
from ackfsm.tables._recording import Recording
from ackfsm.tables._source import read_document
from ackfsm.tables._sources import check_sources
from ackfsm.tables._sweep import Factor
from ackfsm.tables._timing import Timing
from ackfsm.tables._urls import url_parameters
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Profile, key_type, legal_values, parse_value
from ackfsm.text import in_words, quoted, shown

_KEYS = frozenset(field.name for field in dataclasses.fields(Configuration))


@dataclasses.dataclass(frozen=True, slots=True)
class Monitor:
    """One machine of a property with the states that are its anomaly: ``marked`` always, ``marked_at_rest`` at rest.

    One that is ``model_only`` (``of_the_model`` in the table) is not folded over histories: there another machine
    of the property, or a count, finds what it finds in the model.
    """

    machine: Machine
    marked: frozenset[str]
    marked_at_rest: frozenset[str]
    model_only: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """The definition of one anomaly.

    ``rest`` says when a history is at rest for it: ``drained`` (the queue was seen
    empty) or ``end`` (nothing follows).  ``needs_every_line`` is true where the anomaly is
    concluded from the *absence* of an event, so that a line which cannot be read leaves it undecided.
    """

    anomaly: Anomaly
    means: str
    rest: str
    needs_every_line: bool
    monitors: tuple[Monitor, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """A sentence of a specification or a vendor: under this condition the anomaly does not happen.

    It holds for the profiles that have its ``name`` among their promises.
    """

    name: str
    absent: Anomaly
    when: Condition
    because: str
    source: str


@dataclasses.dataclass(frozen=True, slots=True)
class Specification:
    """All tables of ``spec/``, read and checked.  Immutable.

    ``directory`` is where the tables are, ``digest`` a hash of them; ``profile_files`` has the files of profiles that
    do not ship with them.
    """

    machines: Mapping[str, Machine]
    properties: Mapping[Anomaly, Property]
    monitors: Mapping[str, Monitor]
    events: Mapping[str, Event]
    recording: Recording
    conditions: Mapping[str, Condition]
    sources: Mapping[str, str]
    profiles: Mapping[str, ProfileTable]
    promises: Mapping[str, Promise]
    guarantees: Guarantees
    liveness: Mapping[str, LivenessProperty]
    factors: tuple[Factor, ...]
    timing: Timing
    digest: str
    directory: Path = dataclasses.field(compare=False)
    profile_files: Mapping[str, Path] = dataclasses.field(default_factory=dict)

    def with_profile(self, file: Path) -> Specification:
        """These tables and one more profile, read from ``file`` in the form of ``spec/profiles``.

        Its name is that of the file without the ending.  What it does not state is as in the shipped profile that it
        is ``like``; without ``like`` its defaults are those of ``jms``, and it has no names, constants or promises.

        Raises :class:`SpecError` naming file, line and remedy for whatever is wrong with it, and :class:`InputError` if
        there is no such file.
        """
        if not file.is_file():
            raise InputError(f"{shown(str(file))}: there is no such file; --profile is {_names()} or a YAML file")
        if self.profile_files.get(file.stem) == file.absolute():
            return self
        document = read_document(file, str(file), form_of(schema_of(shipped_tables()), "profile"))
        table = read_own_profile(document, self.profiles, self.conditions, self.promises, self.events)
        check_sources([document], {**self.sources, **document.data.get("sources", {})})
        digest = hashlib.sha256(self.digest.encode() + file.read_bytes()).hexdigest()
        return dataclasses.replace(
            self,
            profiles=MappingProxyType({**self.profiles, table.profile: table}),
            digest=digest,
            profile_files=MappingProxyType({**self.profile_files, table.profile: file.absolute()}),
        )

    def as_told(self, words: Mapping[str, str]) -> Specification:
        """These tables for a history whose header says these ``words`` of its lines."""
        recording = self.recording.as_told(words)
        return self if recording is self.recording else dataclasses.replace(self, recording=recording)

    def of_profile(self, profile: str | None) -> tuple[Specification, str | None]:
        """These tables and the name of ``profile``; if that is the path of a YAML file, with the profile in it.

        Raises what :meth:`with_profile` raises.
        """
        if not is_profile_file(profile):
            return self, profile
        file = Path(str(profile))
        return self.with_profile(file), file.stem

    def profile_option(self, profile: str) -> str:
        """What ``--profile`` takes for a profile of these tables, as a shell reads it."""
        return shlex.quote(str(self.profile_files[profile])) if profile in self.profile_files else profile

    def configure(
        self,
        profile: str | None = None,
        settings: Mapping[str, object] | None = None,
        *,
        api: str | None = None,
    ) -> Configuration:
        """The configuration of ``profile`` (``jms`` if none is named) with ``settings`` over its defaults.

        With ``api`` it is one that an application can ask for through that programming interface
        (:meth:`ProfileTable.api`); an interface refuses and changes nothing else.

        Raises :class:`InputError` for a profile, interface, key or value that does not exist, or that the system, or
        the interface, does not have.
        """
        given = self.given(profile, settings)
        table = self.profiles[given["profile"]]
        values = table.settings(given)
        refused = table.refusal(values, given, None if api is None else table.api(api))
        if refused is not None:
            raise InputError(refused[1])
        return Configuration(**values)

    def varied(self, configuration: Configuration, **own: object) -> Configuration:
        """Return ``configuration`` with other values for some settings; defaults follow them.

        ``own`` are values of the vocabulary by key.  Nothing is refused, since single messages may differ in a way that
        no system is configured in as a whole.
        """
        table = self.profiles[configuration.profile]
        chosen = table.chosen({key: getattr(configuration, key) for key in _KEYS})
        return Configuration(**table.settings({**chosen, **own}))

    def resolve_aliases(self, profile: object, settings: Mapping[str, object]) -> dict[str, object]:
        """``settings`` under the keys of the vocabulary, and the ``profile`` (``jms`` by default).

        A key may also be a name that the vendor has for it (``ProfileTable.names``), with a value as the vendor writes
        it.  What such a name sets for a part of the configurations alone is a :class:`ConditionalValue`.

        Raises :class:`InputError` for a profile that does not exist, for a key that is given under both names, and
        for a name, or a value of it, that is related to a key but does not mean the same.
        """
        name = self.profile_of(settings.get("profile", Profile.JMS) if profile is None else profile)
        under: dict[str, str] = {}
        found: dict[str, object] = {}
        for alias, value in settings.items():
            for key, one in {alias: value}.items() if alias in _KEYS else self.assigned(name, alias, value).items():
                other = found.get(key)
                if isinstance(one, ConditionalValue) and isinstance(other, ConditionalValue):
                    found[key] = ConditionalValue((*other.options, *one.options))
                elif key in found:
                    raise InputError(f"{under[key]} and {alias} are one setting, given twice; keep one of them")
                else:
                    found[key], under[key] = one, alias
        return {**found, "profile": name}

    def override(self, below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
        """The settings ``above`` over those ``below``, both under the keys of the vocabulary."""
        over = {key: one.over(below, key) if isinstance(one, ConditionalValue) else one for key, one in above.items()}
        return {**below, **over}

    def profile_of(self, name: object) -> str:
        """``name`` as the name of a profile that these tables have; raises :class:`InputError` for any other."""
        if isinstance(name, str) and name in self.profile_files:
            return name
        if is_profile_file(name):
            raise InputError(f"{quoted(str(name))} is a file; give it as --profile, or as the profile of a broker")
        try:
            return Profile(str(parse_value("profile", name)))
        except InputError as error:
            raise InputError(f"{error}, or the YAML file of another one (--profile FILE.yaml)") from None

    def assigned(self, profile: str, alias: str, value: object) -> dict[str, object]:
        """What ``value`` of a vendor's name sets, by key (:meth:`VendorAlias.assigned`).

        Raises :class:`InputError` for a name that the profile does not have, or a value that means nothing here.
        """
        named = self.profiles[profile].vendor_alias(alias)
        if named is not None:
            return named.assigned(profile, value)
        for other, table in self.profiles.items():
            foreign = table.vendor_alias(alias)
            if foreign is not None and foreign.name == alias:
                keys = " and ".join(foreign.keys)
                raise InputError(f"{alias} is a name that {other} has for {keys}, and {profile} has not; set {keys}")
        key_type(alias)  # raises: there is no such setting
        return {alias: value}

    def url_settings(self, profile: str, url: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the settings of a connection URL, by the vendor's names, and its unknown parameters.

        Raises :class:`InputError` for what is no URL, for a parameter that stands in it twice, and for one that is
        another system's.
        """
        table, found, unknown = self.profiles[profile], dict[str, str](), list[str]()
        for parameter, value in url_parameters(url):
            own = table.url_alias(parameter)
            foreign = [other for other, each in self.profiles.items() if each.url_alias(parameter)]
            if own is not None:
                if own.name in found:
                    raise InputError(f"--url says {quoted(parameter)} more than once; say it once")
                found[own.name] = value
            elif foreign:
                raise InputError(f"{quoted(parameter)} is in URLs of {in_words(foreign)}; name that system (--profile)")
            else:
                unknown.append(parameter)
        return found, tuple(dict.fromkeys(unknown))

    def given(self, profile: str | None, settings: Mapping[str, object] | None) -> dict[str, Any]:
        """:meth:`resolve_aliases`, with the values parsed."""
        given = self.resolve_aliases(profile, settings or {})
        return {key: value if key == "profile" else _parsed(key, value) for key, value in given.items()}

    def supported_values(self, profile: str, key: str, settings: Mapping[str, object] | None = None) -> tuple[Any, ...]:
        """The values of ``key`` that a profile supports under these ``settings``, the others by default.

        Raises :class:`InputError` for a setting that is a number.
        """
        values = legal_values(key)
        if not values:
            raise InputError(f"{key} is a number and has no list of values; ask for a setting that has one")
        table = self.profiles[self.profile_of(profile)]
        given = self.given(profile, settings)
        return tuple(value for value in values if not any(table.refused(table.settings(given | {key: value}))))

    def environment(  # noqa: PLR0913 - one name for each bound that a condition or a counter may read
        self,
        configuration: Configuration,
        *,
        faults: Collection[Fault] = (),
        max_faults: int | None = 0,
        messages: int = 1,
        consumers: int = 1,
        sessions: int = 1,
        durable_beside: bool = False,
        copy: int = 1,
        copies: int | None = None,
        repeats: int | None = None,
    ) -> dict[str, Any]:
        """What conditions read: the settings, the bounds of a check, and the number of a copy (from 1).

        ``consumers`` and ``sessions`` are those of one subscription, ``durable_beside`` is whether there is another
        one, which is durable.  ``copies`` is how many copies of messages there can be in all, ``repeats`` how often a
        message can be redelivered; ``None`` for no bound.
        """
        settings = {field.name: getattr(configuration, field.name) for field in dataclasses.fields(configuration)}
        bounds = {"faults": frozenset(faults), "max_faults": max_faults, "messages": messages, "consumers": consumers}
        bounds |= {"sessions": sessions, "durable_beside": durable_beside, "copy": copy}
        return settings | bounds | _counter_bounds(configuration, copies, repeats)

    @staticmethod
    def copies(configuration: Configuration, actions: Collection[str]) -> int:
        """How many copies of a message there can be: it is sent again, for the application or by it, at most once."""
        return 2 if configuration.resend_in_doubt or _SENDS_AGAIN in actions else 1

    def meaning(self, name: str) -> str:
        """The meaning of an anomaly or of a monitor; empty if no table defines it."""
        if name in self.monitors:
            return self.monitors[name].machine.means
        return self.properties[Anomaly(name)].means if name in self.properties else ""

    def promised_absent(
        self,
        configuration: Configuration,
        sessions: int = 1,
        *,
        consumers: int | None = None,
        actions: Collection[str] = (),
    ) -> Mapping[Anomaly, Promise]:
        """The anomalies that the configuration promises never to happen, each with the promise.

        That is to so many ``sessions`` with so many ``consumers`` in all, one each if they are not given.
        """
        environment = self.environment(configuration, sessions=sessions, consumers=consumers or sessions)
        environment["resend_in_doubt"] = self.copies(configuration, actions) > 1  # whoever sends the second copy
        made = self.profiles[self.profile_of(configuration.profile)].promises
        last_first = (promise for promise in reversed([*self.promises.values()]) if promise.name in made)
        return {promise.absent: promise for promise in last_first if promise.when.holds(environment)}

    def by_application(self, configuration: Configuration) -> frozenset[str]:
        """The events that the application brings about, so that no provider answers for it if they do not happen."""
        environment = self.environment(configuration)
        return frozenset(
            name
            for name, event in self.events.items()
            if event.by_application is not None and event.by_application.holds(environment)
        )

    def owner(self, event: str) -> Machine | None:
        """The machine that decides ``event``; ``None`` if no machine of the tables does."""
        return next((machine for machine in self.machines.values() if event in machine.owns), None)

    def settings_read(self) -> frozenset[str]:
        """The settings that some row, counter or promise reads; the others cannot change a verdict."""
        read = {name for condition in self.conditions_of_machines() for name in condition.settings()}
        read |= {name for promise in self.promises.values() for name in promise.when.settings()}
        counted = (BOUND_SETTINGS.get(name, name) for name in self.bounds_of_machines())
        return frozenset({*read, *counted, "profile"})

    def conditions_of_machines(self) -> tuple[Condition, ...]:
        """Every condition of a row, once.

        Configurations that agree on all of them, and on :meth:`bounds_of_machines`, have the same rows everywhere.
        """
        return tuple(dict.fromkeys(when for machine in self._all_machines() for when in machine.conditions))

    def bounds_of_machines(self) -> frozenset[str]:
        """The names of the bounds of all counters: settings, or bounds of a check."""
        return frozenset(machine.counter.bound for machine in self._all_machines() if machine.counter)

    def _all_machines(self) -> tuple[Machine, ...]:
        properties = (monitor.machine for prop in self.properties.values() for monitor in prop.monitors)
        return (
            *self.machines.values(),
            *properties,
            *(self.monitors[name].machine for name in self.guarantees.monitors),
        )


def _parsed(key: str, value: object) -> object:
    if not isinstance(value, ConditionalValue):
        return parse_value(key, value)
    options = tuple(dataclasses.replace(one, value=parse_value(key, one.value)) for one in value.options)
    return ConditionalValue(options, tuple(parse_value(key, one) for one in value.otherwise))


def is_profile_file(profile: object) -> bool:
    """Whether ``profile`` is the path of a file and not the name of a profile."""
    return isinstance(profile, str) and profile.endswith((".yaml", ".yml"))


def _names() -> str:
    return ", ".join(profile.value for profile in Profile)


_MOST_OPEN = 2**31 - 1
"""So many open sends no process holds, so that a window of so many never fills."""

_SENDS_AGAIN = names.Event.OUTCOME_FORGOTTEN
"""The action of an application that sends a message again although nothing does so for it."""


def _counter_bounds(configuration: Configuration, copies: int | None, repeats: int | None) -> dict[str, int | None]:
    """The bounds of the counters, where a check can reach them; ``None`` where it cannot.

    A limit of attempts above the number of repeats plus one is out of reach; any other is exact, and a machine has as
    many states.
    """
    window, threshold = configuration.publish_window, configuration.confirm_threshold
    window = None if window is not None and window >= _MOST_OPEN else window
    attempts = configuration.max_delivery_attempts
    prefetch = configuration.prefetch or None
    return {
        "window": window if window is None or copies is None or window < copies else None,
        "threshold": threshold if threshold is None or copies is None else min(threshold, copies + 1),
        "prefetched": prefetch if prefetch is None or copies is None or prefetch < copies else None,
        "attempts": attempts if attempts and (repeats is None or attempts <= repeats + 1) else None,
    }
