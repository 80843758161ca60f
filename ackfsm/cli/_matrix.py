"""``ackfsm matrix``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Group

from ackfsm.cli._backend import BACKEND, spark_session
from ackfsm.cli._exit_codes import result_code
from ackfsm.cli._options import CONFIGURATION, JOBS, Command, Option, at_least, settings_of, tables_of
from ackfsm.cli._output import emit, progress_bars, write_then_report, written_lines
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from ackfsm.tables.batch import ParallelMap


def _matrix(arguments: argparse.Namespace) -> int:
    from ackfsm.showing.views import matrix_files
    from ackfsm.showing.views.matrix import matrix_json, matrix_screen
    from ackfsm.surveys import matrix

    if arguments.messages is None and not arguments.pairs:
        raise InputError(
            "--no-pairs is not for --messages any, since a proof is for any number of faults; leave it out"
        )
    specification = tables_of(arguments)
    settings = settings_of(arguments, specification)
    plan = matrix.make_plan(
        specification,
        arguments.profile,
        settings,
        api=arguments.api,
        messages=arguments.messages,
        pairs=arguments.pairs,
        max_states=arguments.max_states,
    )
    if arguments.output is not None:
        matrix_files.make_folder(arguments.output)
    jobs = os.cpu_count() if arguments.jobs is None else arguments.jobs
    with _parallel_map(arguments) as parallel_map, progress_bars() as progress_bar:
        found = matrix.run(plan, specification, jobs=jobs or 1, parallel_map=parallel_map, progress_bar=progress_bar)
    summary = matrix.summarise(found)

    def write() -> Sequence[Path]:
        return () if arguments.output is None else matrix_files.write(found, summary, arguments.output)

    def report(written: Sequence[Path]) -> None:
        document = {**matrix_json(found, summary), "written": [str(path) for path in written]}
        emit(arguments, document, lambda: Group(matrix_screen(found, summary), *written_lines(written)))

    write_then_report(write, report)
    return result_code(violated=bool(found.broken), undetermined=not found.complete)


@contextlib.contextmanager
def _parallel_map(arguments: argparse.Namespace) -> Iterator[ParallelMap | None]:
    """Spark, if that is to explore the cells; ``None`` for this machine."""
    if arguments.jobs is not None and arguments.engine == "spark":
        raise InputError("--jobs is for --engine local; Spark's master says how many tasks it runs: leave --jobs out")
    with spark_session(arguments) as session:
        if session is None:
            yield None
        else:
            from ackfsm import spark

            yield functools.partial(spark.spread, session=session)


COMMAND: Final = Command(
    "matrix",
    _matrix,
    "check all modes and switches of a system under every fault and pair of faults",
    "ackfsm matrix --profile artemis --set delivery_mode=PERSISTENT --output out",
    "verify",
    (
        *CONFIGURATION,
        Option("--messages N", "how many messages, or any, which is proved (default: 1)", at_least(1, or_any=True), 1),
        Option("--pairs", "two faults as well (default: yes)", default=True, action=argparse.BooleanOptionalAction),
        *BACKEND,
        JOBS,
        Option("--output DIR", "write matrix.parquet and matrix.html into this folder", Path),
        Option(
            "--max-states N",
            "stop each search, undetermined, after so many states (default: any; with --messages any 10,000,000)",
            at_least(1, or_any=True),
        ),
    ),
)
