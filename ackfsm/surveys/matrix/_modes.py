"""The mode sweep: what every mode of a system promises, what single faults cause, what any number of messages can.

One decision for any number takes a second to a minute, so that the pages of the systems do not make them anew.  They
are kept under the digest of all that decides (:func:`ackfsm.checking.unbounded.network_keys`), so that what is found
there is of these very tables: where a row that matters has changed nothing is found.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ackfsm.surveys.matrix._any_number import keys_for_any_number
from ackfsm.surveys.matrix._causes import Causes, causes_in
from ackfsm.surveys.matrix._plan import ANY_FAULTS, Plan, refusal, span
from ackfsm.tables import Promise, Specification
from ackfsm.tables.batch import Batch, ProgressBar, batch, chunks
from ackfsm.terms import AckMode, Anomaly, Configuration, Consumption, DeliveryMode

FACTORS: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {"delivery_mode": tuple(DeliveryMode), "ack_mode": tuple(AckMode), "consumption": tuple(Consumption)}
)
"""The settings that make a mode of a system here; all others are at their defaults."""

KEPT_IN: Final = "any_number.txt"
"""The file of the decisions, beside this one."""

_KEY_LENGTH: Final = 16
_CONFIGURATIONS_A_TASK: Final = 80
"""Configurations share most of their rows, and those of one task what is made of them."""

_UNDECIDED: Final = re.compile(r"(?P<name>\w+):(?P<searched>\d+) \[(?P<why>[^]]*)\]")


class Undecided(NamedTuple):
    """The most messages that were searched completely without the anomaly, and why it is not proved, a clause."""

    searched: int
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class DecidedMode:
    """The decision on one mode for any number of messages and of faults.

    ``possible`` has the number of messages of a way there.  What is neither there nor ``undecided`` is proved
    impossible.
    """

    possible: Mapping[str, int]
    undecided: Mapping[str, Undecided]

    def reachable(self, anomaly: str) -> bool | None:
        """Whether the anomaly can happen; ``None`` if that is undecided."""
        if anomaly in self.possible:
            return True
        return None if anomaly in self.undecided else False


def keys_of_modes(work: Batch, modes: Sequence[Configuration]) -> dict[Configuration, str]:
    """The digest under which each mode is kept."""
    task = functools.partial(keys_for_any_number, plan_of(()))
    found = work.run("looking for proofs", task, chunks(modes, _CONFIGURATIONS_A_TASK))
    return {mode: keys[0][:_KEY_LENGTH] for mode, keys in zip(modes, found, strict=True)}


def plan_of(modes: Sequence[Configuration]) -> Plan:
    """Ask of each of ``modes`` what can happen with any number of messages and of faults."""
    return Plan(tuple(modes), tuple(FACTORS), (), (ANY_FAULTS,), None, None)


def read_decided_modes(lines: Iterable[str]) -> dict[str, DecidedMode]:
    """The decisions that are kept in ``lines``, by their key."""
    return dict(_read(line) for line in lines if not line.startswith("#"))


def _read(line: str) -> tuple[str, DecidedMode]:
    key, _, possible, undecided = line.split(";", 3)
    return key, DecidedMode(dict(_read_possible(possible)), dict(_read_undecided(undecided)))


def _read_possible(text: str) -> Iterator[tuple[str, int]]:
    for word in text.split():
        name, _, number = word.partition(":")
        yield Anomaly(name).value, int(number)


def _read_undecided(text: str) -> Iterator[tuple[str, Undecided]]:
    if rest := _UNDECIDED.sub("", text).strip():
        raise ValueError(f"{rest!r} is not an undecided anomaly with a number and a reason; make the file again")
    for found in _UNDECIDED.finditer(text):
        yield Anomaly(found["name"]).value, Undecided(int(found["searched"]), found["why"])


@functools.cache
def kept_decisions() -> Mapping[str, DecidedMode]:
    """All that is kept, by its key; nothing where the file is not there."""
    file = importlib.resources.files("ackfsm.surveys.matrix").joinpath(KEPT_IN)
    return MappingProxyType(read_decided_modes(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else {})


@dataclasses.dataclass(frozen=True, slots=True)
class ModeResult:
    """One mode of a system: the configuration, its promises, and its possible anomalies.

    ``causes`` has the outcome for no fault (``None``) and for each kind of fault, which may happen once.
    ``any_number`` is what was decided for any number of messages and of faults, ``None`` where nothing was.
    """

    configuration: Configuration
    promised: Mapping[Anomaly, Promise]
    causes: Causes
    any_number: DecidedMode | None = None

    @property
    def broken(self) -> frozenset[Anomaly]:
        """The anomalies that are promised never to happen and happen."""
        shown = {anomaly for found in self.causes.values() for anomaly in found.anomalies}
        if self.any_number is not None:
            shown |= {anomaly for anomaly in Anomaly if self.any_number.reachable(anomaly)}
        return frozenset(shown & set(self.promised))


def mode_sweep(
    specification: Specification,
    profiles: Collection[str],
    *,
    jobs: int = 1,
    progress_bar: ProgressBar | None = None,
) -> dict[str, tuple[ModeResult, ...]]:
    """Every acknowledgement mode x delivery mode x way to consume that each profile has, all else at its defaults.

    One message is sent, see :mod:`._causes`; what is decided for any number of messages was computed before, and is
    looked up.  With more than one of ``jobs`` processes read the tables that ship with the package.
    """
    every = {profile: tuple(modes(specification, profile)) for profile in profiles}
    chosen = [mode for some in every.values() for mode in some]
    with batch(specification, jobs, progress_bar=progress_bar) as work:
        keys = keys_of_modes(work, chosen)
        causes = causes_in(work, specification, chosen)

    def result(mode: Configuration) -> ModeResult:
        kept = kept_decisions().get(keys[mode])
        return ModeResult(mode, specification.promised_absent(mode), causes[mode], kept)

    return {profile: tuple(map(result, some)) for profile, some in every.items()}


def modes(specification: Specification, profile: str) -> Iterator[Configuration]:
    """Every mode that the profile has, delivery mode by delivery mode."""
    for mode in span(specification, {"profile": profile}, FACTORS):
        if refusal(specification, mode) is None:
            yield mode
