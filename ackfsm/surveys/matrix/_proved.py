"""The decisions on the modes of the systems for any number of messages: computed once, kept, and looked up.

One decision takes a second to a minute, so that the pages of the systems do not make them anew.  They are kept under
the digest of all that decides (:func:`ackfsm.checking.unbounded.network_key`), so that what is found there is of these
very tables: where a row that matters has changed nothing is found.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ackfsm.surveys.matrix._any_number import keys_for_any_number
from ackfsm.surveys.matrix._plan import ANY_FAULTS, Plan
from ackfsm.tables.batch import Batch, chunks
from ackfsm.terms import AckMode, Anomaly, Configuration, Consumption, DeliveryMode

FACTORS: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {"delivery_mode": tuple(DeliveryMode), "ack_mode": tuple(AckMode), "consumption": tuple(Consumption)}
)
"""The settings that make a mode of a system here; all others are at their defaults."""

KEPT_IN: Final = "any_number.txt"
"""The file of the decisions, beside this one."""

_KEY_LENGTH: Final = 16
_CONFIGURATIONS_A_TASK: Final = 4

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
