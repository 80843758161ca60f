"""``ackfsm check``."""

from __future__ import annotations

import argparse

from ackfsm import explore
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    VIOLATION,
    Commands,
    add_bounds,
    add_configuration,
    asked,
    command,
    count,
    patience,
    say,
    size,
)

__all__ = ["add_check"]


def add_check(commands: Commands) -> None:
    parser = command(
        commands,
        "check",
        _check,
        words=(
            "explore everything that a configuration can do when something fails",
            "ackfsm check --profile artemis --set ack_mode=PRE_ACKNOWLEDGE --fault broker_crash --max-faults 2",
        ),
        extra="explore",
    )
    add_configuration(parser)
    add_bounds(parser)
    parser.add_argument("--max-states", metavar="N", type=count, help="stop, undetermined, after so many states")
    parser.add_argument(
        "--max-memory", metavar="M", type=size, help="stop, undetermined, before the states take more: 512MiB, 8GiB"
    )
    parser.add_argument("--workers", metavar="N", type=count, help="processors to use (default: all)")


def _check(arguments: argparse.Namespace) -> int:
    specification, configuration, bounds = asked(arguments)
    with patience("states found") as progress:
        answer = explore.check(
            specification,
            configuration,
            bounds,
            max_states=arguments.max_states,
            max_memory=arguments.max_memory,
            workers=arguments.workers,
            progress=progress,
        )
    from ackfsm.report.check import check_screen

    say(arguments, answer.as_json(), lambda: check_screen(answer))
    if answer.violations:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED
