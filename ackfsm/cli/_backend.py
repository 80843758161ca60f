"""The backend of a command: this machine, or Spark; common to all commands that support both."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ackfsm.cli._options import Option
from ackfsm.cli._output import note
from ackfsm.terms import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ackfsm.checking import explore


MASTER: Final = Option("--master URL", "Spark's master, or sc://HOST for Spark Connect (default: local[*])")
BACKEND: Final = (
    Option("--engine", "this machine alone, or Spark", default="local", choices=["local", "spark"], action="store"),
    MASTER,
)
"""What :func:`spark_session` reads."""


def search_options() -> tuple[Option, ...]:
    """What :func:`search_of` reads: as :data:`BACKEND`, for a search, which has one more engine."""
    from ackfsm.checking import explore

    return (
        Option(
            "--engine",
            "state by state (local), sets of states at once (symbolic), or Spark (default: local as long as there are "
            "few states, then symbolic)",
            choices=list(explore.SearchEngine),
            action="store",
        ),
        MASTER,
        Option("--checkpoint DIR", "with Spark: keep each level here, and go on after an interruption", Path),
    )


@contextlib.contextmanager
def spark_session(arguments: argparse.Namespace) -> Iterator[SparkSession | None]:
    """The Spark session that ``--engine spark`` asks for, as long as the command lives; ``None`` without Spark."""
    if arguments.engine != "spark":
        if arguments.master is not None:
            raise InputError("--master is for --engine spark; add it, or leave --master out")
        yield None
        return
    arguments.extra = "all"
    from ackfsm import spark

    session = spark.session(arguments.master)
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def search_of(arguments: argparse.Namespace) -> Iterator[explore.SearchFunction | None]:
    """The search that :func:`search_options` ask for; ``None`` for one state by state in this process."""
    _check_options(arguments)
    with spark_session(arguments) as session:
        if session is None:
            yield _local_search(arguments)
            return
        from ackfsm import spark

        resumed = functools.partial(_resumed, arguments.command)
        yield functools.partial(spark.explore, session=session, checkpoint=arguments.checkpoint, resumed=resumed)


def _local_search(arguments: argparse.Namespace) -> explore.SearchFunction | None:
    """One with decision diagrams where it is asked for, or nothing is asked for that only single states tell."""
    from ackfsm.checking import explore

    if arguments.engine == "symbolic":
        return functools.partial(explore.explore_with_diagrams, max_memory=arguments.max_memory)
    single = arguments.max_states is not None or arguments.reductions or arguments.progress or arguments.forever
    if arguments.engine == "local" or single:
        return None
    return functools.partial(explore.explore_by_size, max_memory=arguments.max_memory, workers=arguments.jobs)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise :class:`InputError` for options that do not apply to the chosen ``--engine``."""
    engine = arguments.engine
    if engine != "spark" and arguments.checkpoint is not None:
        raise InputError("--checkpoint is for --engine spark; add it, or leave --checkpoint out")
    if engine in {None, "local"}:
        return
    given = {
        "--progress": arguments.progress,
        "--forever": arguments.forever,
        "--max-memory": arguments.max_memory is not None and engine == "spark",
        "--jobs": arguments.jobs is not None,
        "--reduce": arguments.reductions,
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} is for --engine local; leave it out, or leave --engine {engine} out")
    if engine == "symbolic":
        return
    if arguments.checkpoint is None and not (arguments.master or "local").startswith("local"):
        raise InputError(
            "workers on other machines exchange states through a folder; name one that all see with --checkpoint"
        )


def _resumed(command: str, level: int, states: int) -> None:
    note(f"ackfsm {command}: resumed at level {level}, with {states:,} states")
