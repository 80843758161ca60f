"""``ackfsm plan --simulate``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ackfsm.cli._options import at_least
from ackfsm.cli._output import progress_line
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, InputError
from ackfsm.text import meant, quoted
from ackfsm.timing import SPREAD_TIMES, Spread, Workload

if TYPE_CHECKING:
    from ackfsm.simulation import Simulated

__all__ = ["SPREADS", "add_simulation", "check_simulation", "simulated"]

SPREADS: Final = tuple(spread.name.lower() for spread in Spread)
_MOST: Final = 10_000_000
"""Messages, each of which leaves four times in memory."""


def add_simulation(parser: argparse.ArgumentParser) -> None:
    """The options of a simulation."""
    group = parser.add_argument_group("a simulation beside the arithmetic (pip install 'ackfsm[explore]')")
    group.add_argument(
        "--simulate",
        metavar="N",
        type=at_least(1),
        help="send so many messages through the same machines in virtual time: rates, percentiles and a histogram",
    )
    group.add_argument("--seed", metavar="S", type=at_least(1), help="the chance of spread times (default: 1)")
    group.add_argument(
        "--spread",
        metavar="TIME=HOW",
        action="append",
        default=[],
        dest="spreads",
        help=f"{', '.join(SPREAD_TIMES)} is {', '.join(SPREADS)} around its mean; may be repeated",
    )


def check_simulation(arguments: argparse.Namespace) -> Mapping[str, Spread]:
    """How times are spread.  Raises :class:`InputError` naming the option that is at fault, or that does nothing."""
    spreads = dict(map(_spread, arguments.spreads))
    if arguments.simulate is None and (arguments.spreads or arguments.seed is not None):
        option = "--spread" if arguments.spreads else "--seed"
        raise InputError(f"{option} is for a simulation; add --simulate N, or leave {option} out")
    if (arguments.simulate or 1) > _MOST:
        raise InputError(f"--simulate: {arguments.simulate:,} messages are too many to be kept; at most {_MOST:,}")
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
    from ackfsm.simulation import simulate

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
