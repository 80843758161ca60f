"""``ackfsm matrix``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.console import Group

from ackfsm import tables
from ackfsm.cli._common import (
    AS_PROMISED,
    UNDETERMINED,
    VIOLATION,
    Commands,
    add_configuration,
    at_least_one,
    bars,
    command,
    count,
    say,
    settings_of,
)

__all__ = ["add_matrix"]


def add_matrix(commands: Commands) -> None:
    parser = command(
        commands,
        "matrix",
        _matrix,
        words=(
            "check all modes and switches of a system under every fault and pair of faults",
            "ackfsm matrix --profile artemis --set delivery_mode=PERSISTENT --output guarantees",
        ),
        extra="verify",
    )
    add_configuration(parser)
    parser.add_argument("--messages", metavar="N", type=count, default=1, help="how many messages (default: 1)")
    parser.add_argument(
        "--pairs", action=argparse.BooleanOptionalAction, default=True, help="two faults as well (default: yes)"
    )
    parser.add_argument("--jobs", metavar="N", type=count, help="processes (default: one for each processor)")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="write matrix.parquet and matrix.html into this folder"
    )
    parser.add_argument(
        "--max-states", metavar="N", type=count, help="stop each search, undetermined, after so many states"
    )


def _matrix(arguments: argparse.Namespace) -> int:
    from ackfsm import matrix

    specification, settings = tables.load(), settings_of(arguments)
    plan = matrix.make_plan(
        specification,
        arguments.profile,
        settings,
        messages=at_least_one(arguments.messages, "--messages"),
        pairs=arguments.pairs,
        max_states=arguments.max_states,
    )
    if arguments.output is not None:
        matrix.make_folder(arguments.output)
    jobs = os.cpu_count() if arguments.jobs is None else arguments.jobs
    with bars() as progress:
        found = matrix.run(plan, specification, jobs=jobs or 1, progress=progress)
    summary = matrix.summarise(found)
    written = [] if arguments.output is None else [str(file) for file in matrix.write(found, summary, arguments.output)]
    answer = {**matrix.matrix_json(found, summary), "written": written}
    say(
        arguments, answer, lambda: Group(matrix.matrix_screen(found, summary), *(f"{file} written" for file in written))
    )
    if found.broken:
        return VIOLATION
    return AS_PROMISED if found.complete else UNDETERMINED
