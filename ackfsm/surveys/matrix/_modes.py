"""The mode sweep: what every mode of a system promises, and which anomalies each single fault causes in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping

from ackfsm.surveys.matrix._causes import Causes, causes_in
from ackfsm.surveys.matrix._plan import refusal, span
from ackfsm.surveys.matrix._proved import FACTORS, DecidedMode, kept_decisions, keys_of_modes
from ackfsm.tables import Promise, Specification
from ackfsm.tables.batch import ProgressBar, batch
from ackfsm.terms import Anomaly, Configuration


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
