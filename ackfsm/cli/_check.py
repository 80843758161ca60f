"""``ackfsm check``."""

from __future__ import annotations

import argparse

from ackfsm.cli._common import Commands, command, say
from ackfsm.cli._witness import add_exploration, exit_code, explored, form_of, show

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
    add_exploration(parser)


def _check(arguments: argparse.Namespace) -> int:
    form = form_of(arguments)
    specification, answer, witnesses = explored(arguments)
    if form is not None:
        show(arguments, form, specification, answer, witnesses)
        return exit_code(answer)
    from ackfsm.report.check import check_screen

    say(arguments, answer.as_json(), lambda: check_screen(answer))
    return exit_code(answer)
