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
        "--progress", action="store_true", help="tell also what happens in the end, or what may go on for ever instead"
    )
    parser.add_argument(
        "--forever",
        metavar="E",
        action="append",
        default=[],
        help="as --progress, where this fault or action may go on for ever, for example listener_exception",
    )


def _check(arguments: argparse.Namespace) -> int:
    specification, configuration, bounds = asked(arguments)
    forever = arguments.forever if arguments.progress or arguments.forever else None
    with patience("states found") as progress:
        answer = explore.check(
            specification,
            configuration,
            bounds,
            max_states=arguments.max_states,
            progress=progress,
            forever=forever,
        )
    from ackfsm.report.check import check_screen

    say(arguments, answer.as_json(), lambda: check_screen(answer))
    if not answer.keeps_promises:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED
