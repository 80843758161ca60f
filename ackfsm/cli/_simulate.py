"""``ackfsm plan --simulate``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from ackfsm.cli._options import Group, Option, at_least
from ackfsm.cli._output import progress_line
from ackfsm.rates.timing import SPREAD_TIMES, Spread, Workload
from ackfsm.support import throughput
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, InputError
from ackfsm.text import meant, quoted

if TYPE_CHECKING:
    from ackfsm.rates.simulation import FaultRun, Simulated

SPREADS: Final = tuple(spread.name.lower() for spread in Spread)
_MOST: Final = 10_000_000
"""Messages, each of which leaves four times in memory."""
_MOST_WITH_FAULT: Final = 100_000
"""Messages that the engine simulates in a minute."""
FAULTS: Final = ("broker_crash", "broker_kill", "producer_link_loss", "consumer_link_loss")
"""Those of :data:`ackfsm.rates.simulation.FAULTS`, which needs NumPy to be imported."""


SIMULATION: Final = Group(
    "a simulation beside the arithmetic",
    (
        Option(
            "--simulate N",
            "send so many messages through the same machines in virtual time: rates, percentiles and a histogram "
            "(it needs ackfsm[explore])",
            at_least(1),
        ),
        Option("--seed S", "the chance of spread times (default: 1)", at_least(1)),
        Option(
            "--spread TIME=HOW",
            f"{', '.join(SPREAD_TIMES)} is {', '.join(SPREADS)} around its mean; may be repeated",
            dest="spreads",
            repeated=True,
        ),
        Option("--fault-at TIME", "in another run, of the engine, a fault happens after so much virtual time"),
        Option("--fault WHAT", f"{', '.join(FAULTS)} (default: broker_crash)"),
        Option("--recovery TIME", "it is repaired so much later (default: 1s)"),
    ),
)


def check_simulation(arguments: argparse.Namespace) -> Mapping[str, Spread]:
    """How times are spread.  Raises :class:`InputError` naming the option that is at fault, or that does nothing."""
    spreads = dict(map(_spread, arguments.spreads))
    given = {
        "--spread": bool(arguments.spreads),
        **{f"--{name}": getattr(arguments, name.replace("-", "_")) is not None for name in ("seed", "fault-at")},
    }
    option = next((option for option, is_given in given.items() if is_given), None)
    if arguments.simulate is None and option is not None:
        raise InputError(f"{option} is for a simulation; add --simulate N, or leave {option} out")
    for option in ("fault", "recovery"):
        if arguments.fault_at is None and getattr(arguments, option) is not None:
            raise InputError(f"--{option} is of a fault; say with --fault-at TIME when it happens")
    most = _MOST if arguments.fault_at is None else _MOST_WITH_FAULT
    if (arguments.simulate or 1) > most:
        raise InputError(f"--simulate: {arguments.simulate:,} messages are too many; take at most {most:,}")
    if arguments.fault is not None and arguments.fault not in FAULTS:
        hint = meant(arguments.fault, FAULTS)
        raise InputError(f"--fault: {quoted(arguments.fault)} is none of {', '.join(FAULTS)}{hint}")
    return spreads


def _spread(text: str) -> tuple[str, Spread]:
    name, equals, how = text.partition("=")
    key = name.replace("-", "_")
    if not equals:
        raise InputError(f"--spread: {quoted(text)} has no =; write rtt=exponential")
    for word, known in ((key, SPREAD_TIMES), (how, SPREADS)):
        if word not in known:
            raise InputError(f"--spread: {quoted(word)} is none of {', '.join(known)}{meant(word, known)}")
    return key, Spread[how.upper()]


def simulated(
    specification: Specification,
    configuration: Configuration,
    work: Workload,
    arguments: argparse.Namespace,
    spreads: Mapping[str, Spread],
) -> tuple[Simulated, Simulated]:
    """Two runs: both sides at once, and the consumers when all is sent, so that each side has the broker for itself."""
    from ackfsm.engine.core.model import EngineModel
    from ackfsm.rates.simulation import simulate

    model = EngineModel(specification)
    with progress_line(f"simulating {arguments.simulate:,} messages twice, read and processed so far") as progress:
        together, apart = (
            simulate(
                *(specification, configuration, work, arguments.simulate),
                spreads=spreads,
                seed=arguments.seed or 1,
                apart=alone,
                model=model,
                progress=progress,
            )
            for alone in (False, True)
        )
    return together, apart


def simulated_fault(
    specification: Specification,
    configuration: Configuration,
    work: Workload,
    arguments: argparse.Namespace,
    spreads: Mapping[str, Spread],
) -> FaultRun:
    """The run with a fault.  Raises :class:`InputError` naming the option that is no time or cannot be."""
    from ackfsm.rates.simulation import simulate_fault

    at, recovery = _time(arguments.fault_at, "--fault-at"), _time(arguments.recovery or "1s", "--recovery")
    with progress_line("simulating a fault, messages sent so far") as progress:
        try:
            return simulate_fault(
                *(specification, configuration, work, arguments.simulate),
                at=at,
                recovery=recovery,
                fault=arguments.fault or FAULTS[0],
                spreads=spreads,
                seed=arguments.seed or 1,
                progress=progress,
            )
        except InputError as error:
            raise InputError(f"--fault-at: {error}") from None


def _time(text: str, option: str) -> Fraction:
    try:
        return throughput.parse_duration(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
