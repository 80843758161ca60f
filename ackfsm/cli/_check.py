"""``ackfsm check``."""

from __future__ import annotations

import argparse

from ackfsm import explore, tables
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    VIOLATION,
    Commands,
    add_configuration,
    at_least_one,
    command,
    count,
    patience,
    say,
    settings_of,
)
from ackfsm.network import Bounds
from ackfsm.terms import Fault, InputError

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
    faults = ", ".join(fault.value for fault in Fault)
    parser.add_argument(
        "--fault", metavar="F", action="append", dest="faults", help=f"what may fail (default: anything): {faults}"
    )
    parser.add_argument(
        "--max-faults", metavar="K", type=count, default=1, help="how many faults in all, or any (default: 1)"
    )
    parser.add_argument(
        "--action",
        metavar="A",
        action="append",
        default=[],
        dest="actions",
        help="what else applications do: recover, rollback, taken_elsewhere",
    )
    parser.add_argument(
        "--without",
        metavar="E",
        action="append",
        default=[],
        help="an event that never happens, for example acknowledge or timer_fires",
    )
    parser.add_argument("--messages", metavar="N", type=count, default=1, help="how many messages (default: 1)")
    parser.add_argument("--max-states", metavar="N", type=count, help="stop, undetermined, after so many states")


def _check(arguments: argparse.Namespace) -> int:
    specification = tables.load()
    configuration = specification.configure(
        None, specification.in_vocabulary(arguments.profile, settings_of(arguments))
    )
    bounds = Bounds(
        messages=at_least_one(arguments.messages, "--messages"),
        faults=frozenset(Fault) if arguments.faults is None else frozenset(map(_fault, arguments.faults)),
        max_faults=arguments.max_faults,
        actions=frozenset(arguments.actions),
        without=frozenset(arguments.without),
    )
    with patience("states found") as progress:
        answer = explore.check(specification, configuration, bounds, max_states=arguments.max_states, progress=progress)
    from ackfsm.report.check import check_screen

    say(arguments, answer.as_json(), lambda: check_screen(answer))
    if answer.violations:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED


def _fault(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        faults = ", ".join(fault.value for fault in Fault)
        raise InputError(f"there is no fault {name!r}; the faults are {faults}") from None
