"""``ackfsm explain``."""

from __future__ import annotations

import argparse

from ackfsm.cli._common import Commands, command
from ackfsm.cli._witness import Form, add_exploration, exit_code, explored, form_of, show

__all__ = ["add_explain"]


def add_explain(commands: Commands) -> None:
    parser = command(
        commands,
        "explain",
        _explain,
        words=(
            "show the shortest ways to anomalies step by step, each with its reason",
            "ackfsm explain --set ack_mode=CLIENT_ACKNOWLEDGE --fault consumer_crash --anomaly duplicate",
        ),
        extra="explore",
    )
    add_exploration(parser)


def _explain(arguments: argparse.Namespace) -> int:
    form = form_of(arguments) or Form.STEPS
    specification, answer, witnesses = explored(arguments)
    show(arguments, form, specification, answer, witnesses)
    return exit_code(answer)
