"""``ackfsm check``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

from ackfsm import explore
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    VIOLATION,
    Commands,
    add_bounds,
    add_configuration,
    add_engine,
    asked,
    command,
    count,
    patience,
    say,
    spark_session,
)
from ackfsm.terms import InputError

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
    add_engine(parser)
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        type=Path,
        help="with Spark: keep each level here, and go on after an interruption",
    )
    parser.add_argument("--max-states", metavar="N", type=count, help="stop, undetermined, after so many states")


def _check(arguments: argparse.Namespace) -> int:
    specification, configuration, bounds = asked(arguments)
    with _search(arguments) as search, patience("states found") as progress:
        answer = explore.check(
            specification, configuration, bounds, max_states=arguments.max_states, progress=progress, search=search
        )
    from ackfsm.report.check import check_screen

    say(arguments, answer.as_json(), lambda: check_screen(answer))
    if answer.violations:
        return VIOLATION
    return AS_PROMISED if answer.exploration.complete else UNDETERMINED


@contextlib.contextmanager
def _search(arguments: argparse.Namespace) -> Iterator[explore.SearchFunction]:
    """What explores: this process, or Spark."""
    if arguments.checkpoint is not None and arguments.engine != "spark":
        raise InputError("--checkpoint is for --engine spark; add it, or leave --checkpoint out")
    if arguments.checkpoint is None and not (arguments.master or "local").startswith("local"):
        raise InputError(
            "workers on other machines exchange states through a folder; name one that all see with --checkpoint"
        )
    with spark_session(arguments) as session:
        if session is None:
            yield explore.explore
        else:
            from ackfsm import spark

            yield functools.partial(spark.explore, session=session, checkpoint=arguments.checkpoint, resumed=_resumed)


def _resumed(level: int, states: int) -> None:
    print(f"ackfsm check: resumed at level {level}, with {states:,} states", file=sys.stderr)
