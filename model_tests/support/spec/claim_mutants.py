"""The mutants of ``data/claim_mutants.yaml``, each of which makes the sentence of a claim false."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest  # noqa: TC002 - its MonkeyPatch is part of what tests call

from ackfsm import tables
from ackfsm.support import throughput
from ackfsm.tables import Specification
from model_tests.support.data import read_data
from model_tests.support.tables import copy_of_spec, replace


@dataclasses.dataclass(frozen=True)
class ClaimMutant:
    """A change of the tables or of a formula, and the place (from 1) of the check of ``claim`` that has to notice.

    ``noticed_in`` are the settings of those of its configurations that do, where all of them take long; else empty.
    """

    claim: str
    name: str
    because: str
    check: int
    edits: tuple[tuple[str, str, str], ...]
    formula: tuple[tuple[str, str], ...]
    noticed_in: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.claim}: {self.name}"

    def make(self, folder: Path, patch: pytest.MonkeyPatch) -> Specification:
        """The specification that it makes, below ``folder``; until ``patch`` is undone its formula counts."""
        spec = copy_of_spec(folder)
        for file, old, new in self.edits:
            replace(spec, file, (old, new))
        for name, instead in self.formula:
            patch.setattr(throughput, name, _FORMULAS[instead])
        return tables.load(spec)


def _a_round_trip_each(batch: int, rtt: Fraction, bandwidth: Fraction, size: int) -> Fraction:
    return batch / (batch * (8 * size / bandwidth + rtt))


def _as_wide_as_the_window(window: int, rtt: Fraction, bandwidth: Fraction, size: int) -> Fraction:
    del bandwidth, size
    return window / rtt


_FORMULAS: Mapping[str, Callable[..., Fraction]] = MappingProxyType(
    {
        "two_to_a_round_trip": lambda rtt: 2 / rtt,
        "ten_bits_to_a_byte": lambda bandwidth, size: bandwidth / (10 * size),
        "a_round_trip_each": _a_round_trip_each,
        "as_wide_as_the_window": _as_wide_as_the_window,
    }
)


@functools.cache
def mutants() -> tuple[ClaimMutant, ...]:
    """All of them, in the order of the claims."""
    return tuple(map(_mutant, read_data("claim_mutants.yaml")))


def _mutant(data: Mapping[str, Any]) -> ClaimMutant:
    edits = tuple((edit["file"], edit["is"], edit["mutant"]) for edit in data.get("edits", ()))
    formula = tuple(data.get("formula", {}).items())
    noticed_in = data.get("in", {})
    return ClaimMutant(data["claim"], data["name"], data["because"], data["check"], edits, formula, noticed_in)
