"""The mode sweep: what every mode of a system promises, and which anomalies each single fault causes in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from ackfsm.surveys.matrix._plan import Plan, refusal, scenarios, span
from ackfsm.surveys.matrix._proved import FACTORS, DecidedMode, kept_decisions, keys_of_modes
from ackfsm.surveys.matrix._result import Outcome
from ackfsm.surveys.matrix._run import run
from ackfsm.tables import Promise, Specification
from ackfsm.tables.batch import ProgressBar, batch
from ackfsm.terms import Anomaly, Configuration, Fault

__all__ = ["ModeResult", "mode_sweep", "modes"]


@dataclasses.dataclass(frozen=True, slots=True)
class ModeResult:
    """One mode of a system: the configuration, its promises, and its possible anomalies.

    ``causes`` has the outcome for no fault (``None``) and for each kind of fault, which may happen once.
    ``any_number`` is what was decided for any number of messages and of faults, ``None`` where nothing was.
    """

    configuration: Configuration
    promised: Mapping[Anomaly, Promise]
    causes: Mapping[Fault | None, Outcome]
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

    One message is sent.  The searches are those of a matrix, see :func:`ackfsm.surveys.matrix.run`; what is decided for any
    number of messages was computed before, and is looked up.  With more than one of ``jobs`` processes read the tables
    that ship with the package.
    """
    every = {profile: tuple(modes(specification, profile)) for profile in profiles}
    plan = Plan(
        tuple(mode for some in every.values() for mode in some),
        tuple(FACTORS),
        (),
        scenarios(pairs=False),
        messages=1,
        max_states=None,
    )
    with batch(specification, jobs, progress_bar=progress_bar) as work:
        keys = keys_of_modes(work, plan.configurations)
    matrix = run(plan, specification, jobs=jobs, progress_bar=progress_bar)
    causes = {
        row[0].configuration: MappingProxyType({_fault(cell.scenario.faults): cell.outcome for cell in row})
        for row in matrix.rows()
    }

    def result(mode: Configuration) -> ModeResult:
        kept = kept_decisions().get(keys[mode])
        return ModeResult(mode, specification.promised_absent(mode), causes[mode], kept)

    return {profile: tuple(map(result, some)) for profile, some in every.items()}


def modes(specification: Specification, profile: str) -> Iterator[Configuration]:
    """Every mode that the profile has, delivery mode by delivery mode."""
    for mode in span(specification, {"profile": profile}, FACTORS):
        if refusal(specification, mode) is None:
            yield mode


def _fault(faults: tuple[Fault, ...]) -> Fault | None:
    return faults[0] if faults else None
