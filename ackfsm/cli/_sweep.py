"""``--sweep`` of ``ackfsm plan``: a grid over options and settings."""

from __future__ import annotations

import argparse
import functools
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich import console

from ackfsm.cli._backend import BACKEND, spark_session
from ackfsm.cli._exit_codes import AS_PROMISED
from ackfsm.cli._options import Group, Option, at_least
from ackfsm.cli._output import (
    emit,
    is_standard_output,
    progress_bars,
    progress_line,
    write_then_report,
    written_lines,
)
from ackfsm.cli._plot import check_plot, plot_files, plot_on_screen
from ackfsm.rates import timing
from ackfsm.support.files import check_place, write_files
from ackfsm.tables import Specification
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from ackfsm.showing.views.curves import Curves

_MOST_CELLS: Final = 1_000_000
"""So many rows the memory of one process holds."""

_CELLS_A_TASK: Final = 1_000

_FEW_CELLS: Final = 4_000
"""So few are planned sooner than another process has started."""


SWEEP: Final = Group(
    "a grid of plans",
    (
        Option(
            "--sweep NAME=VALUES",
            "plan each of these values of an option or setting, with commas between them, or a range: "
            "rtt=0.1ms,1ms,10ms or 'publish_window=1..1000*10' or producers=1..8+1; repeated: every combination",
            dest="swept",
            repeated=True,
        ),
        Option("--output FILE", "write all cells there: a table that ends with .parquet or .csv", Path),
        Option(
            "--plot FILE",
            "draw the rates against the numbers of one NAME, with a curve for each combination of the others: a file "
            "that ends with .svg or .png, or - for a plot in characters, which a terminal shows anyway",
        ),
        *BACKEND,
        Option("--jobs N", "how many processors take part (default: all, where the grid is large)", at_least(1)),
    ),
)


def is_swept(arguments: argparse.Namespace) -> bool:
    """Whether there is a sweep.  Raises :class:`InputError` for an option that needs one, where there is none."""
    if arguments.swept:
        return True
    for option in SWEEP.options:
        if option.is_given(arguments):
            typed = f"{option.name} {arguments.engine}" if option.choices else option.name
            raise InputError(f"{typed} is for a grid of plans; say what to vary with --sweep, or leave it out")
    return False


def sweep(
    arguments: argparse.Namespace, specification: Specification, settings: Mapping[str, object], work: timing.Workload
) -> int:
    """Plan every cell.  Raises :class:`InputError` for no grid, or a grid without a legal cell."""
    from ackfsm.showing.views.plan_sweep import sweep_json, sweep_screen
    from ackfsm.showing.views.sweep_curves import curves_of

    grid = _grid(arguments, specification, settings, work)
    _check_output(arguments)
    check_plot(arguments)
    rows = _rows(arguments, specification, grid)
    if all(row.illegal is not None for row in rows):
        raise InputError(f"no cell of the sweep can be: {rows[0].illegal}")

    curves = None if arguments.plot is None else curves_of(grid, rows)

    def report(written: Sequence[Path]) -> None:
        document = sweep_json(grid, rows, [str(path) for path in written], in_file=arguments.output in written)
        emit(
            arguments,
            document,
            lambda: console.Group(
                sweep_screen(grid, rows),
                *plot_on_screen(arguments, lambda: curves_of(grid, rows)),
                *written_lines(written),
            ),
        )

    write_then_report(lambda: _written(arguments, grid, rows, curves), report)
    return AS_PROMISED


def _grid(
    arguments: argparse.Namespace, specification: Specification, settings: Mapping[str, object], work: timing.Workload
) -> timing.Grid:
    one_way = arguments.bandwidth_back is not None or any(
        text.replace("-", "_").startswith("bandwidth_back=") for text in arguments.swept
    )
    try:
        dimensions = tuple(timing.read_dimension(text, both_ways=not one_way) for text in arguments.swept)
    except InputError as error:
        raise InputError(f"--sweep: {error}") from None
    grid = timing.Grid(arguments.profile, dict(settings), work, dimensions, arguments.api)
    grid.check(specification)
    if len(grid) > _MOST_CELLS:
        raise InputError(
            f"the sweep has {len(grid):,} cells, and this command holds {_MOST_CELLS:,}; take fewer values, or call "
            "ackfsm.spark.swept from a program"
        )
    return grid


def _check_output(arguments: argparse.Namespace) -> None:
    path = arguments.output
    if path is None:
        return
    if is_standard_output(path) or path.suffix not in {".parquet", ".csv"}:
        raise InputError(f"--output {shown(str(path))} ends with neither .parquet nor .csv; name a file that does")
    if path.suffix == ".parquet":
        arguments.extra = "verify"
        importlib.import_module("pyarrow.parquet")
    check_place(path)


def _rows(arguments: argparse.Namespace, specification: Specification, grid: timing.Grid) -> Sequence[timing.Row]:
    if arguments.jobs is not None and arguments.engine == "spark":
        raise InputError("--jobs is for --engine local; Spark's master says how many tasks it runs: leave --jobs out")
    with spark_session(arguments) as session:
        if session is not None:
            from ackfsm import spark

            with progress_line("planning"):
                return spark.sweep(session, grid, specification)
    from ackfsm.tables import batch

    jobs = arguments.jobs or (1 if len(grid) < _FEW_CELLS else os.cpu_count() or 1)
    task = functools.partial(_task, grid)
    with progress_bars(later=True) as bar, batch.batch(specification, jobs, progress_bar=bar) as run:
        return run.run("planning", task, batch.chunks(range(len(grid)), _CELLS_A_TASK))


def _task(grid: timing.Grid, specification: Specification, cells: Sequence[int]) -> Sequence[timing.Row]:
    return timing.plan_cells(grid, specification, cells)


def _written(
    arguments: argparse.Namespace, grid: timing.Grid, rows: Sequence[timing.Row], curves: Curves | None
) -> Sequence[Path]:
    """Write the table and the picture that are asked for, both or neither."""
    made: dict[Path, bytes] = {}
    if arguments.output is not None:
        made[arguments.output] = _table(arguments.output, grid, rows)
    made |= plot_files(arguments, curves)
    write_files(made)
    return [*made]


def _table(path: Path, grid: timing.Grid, rows: Sequence[timing.Row]) -> bytes:
    if path.suffix == ".csv":
        from ackfsm.showing.views.plan_sweep import sweep_csv

        return sweep_csv(grid, rows)
    from ackfsm.rates.timing.table import parquet

    return parquet(grid, rows)
