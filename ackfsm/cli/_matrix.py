"""``ackfsm matrix``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from ackfsm.cli._codes import AS_PROMISED, UNDETERMINED, VIOLATION
from ackfsm.cli._common import (
    Commands,
    add_configuration,
    at_least,
    bars,
    command,
    say,
    settings_of,
    tables_of,
    written_first,
    written_lines,
)
from ackfsm.cli._engine import add_engine, spark_session
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from ackfsm.matrix import Spread

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
    parser.add_argument("--messages", metavar="N", type=at_least(1), default=1, help="how many messages (default: 1)")
    parser.add_argument(
        "--pairs", action=argparse.BooleanOptionalAction, default=True, help="two faults as well (default: yes)"
    )
    add_engine(parser)
    parser.add_argument("--jobs", metavar="N", type=at_least(1), help="processes (default: one for each processor)")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="write matrix.parquet and matrix.html into this folder"
    )
    parser.add_argument(
        "--max-states",
        metavar="N",
        type=at_least(1, or_any=True),
        help="stop each search, undetermined, after so many states (default: any)",
    )


def _matrix(arguments: argparse.Namespace) -> int:
    from ackfsm import matrix

    specification, settings = tables_of(arguments), settings_of(arguments)
    plan = matrix.make_plan(
        specification,
        arguments.profile,
        settings,
        messages=arguments.messages,
        pairs=arguments.pairs,
        max_states=arguments.max_states,
    )
    if arguments.output is not None:
        matrix.make_folder(arguments.output)
    jobs = os.cpu_count() if arguments.jobs is None else arguments.jobs
    with _spread(arguments) as spread, bars() as progress:
        found = matrix.run(plan, specification, jobs=jobs or 1, spread=spread, progress=progress)
    summary = matrix.summarise(found)

    def tell(written: Sequence[Path]) -> None:
        answer = {**matrix.matrix_json(found, summary), "written": [str(path) for path in written]}
        say(arguments, answer, lambda: Group(matrix.matrix_screen(found, summary), *written_lines(written)))

    written_first(lambda: () if arguments.output is None else matrix.write(found, summary, arguments.output), tell)
    if found.broken:
        return VIOLATION
    return AS_PROMISED if found.complete else UNDETERMINED


@contextlib.contextmanager
def _spread(arguments: argparse.Namespace) -> Iterator[Spread | None]:
    """What explores the cells, if not this machine alone."""
    if arguments.jobs is not None and arguments.engine == "spark":
        raise InputError("--jobs is for --engine local; Spark's master says how many tasks it runs: leave --jobs out")
    with spark_session(arguments) as session:
        if session is None:
            yield None
        else:
            from ackfsm import spark

            yield functools.partial(spark.spread, session=session)
