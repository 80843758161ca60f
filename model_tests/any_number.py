"""Decide every mode of every system for any number of messages, and keep it for the pages of the systems.

``python -m model_tests.any_number`` decides the modes in which a row that matters has changed, and forgets those that
are no more; ``--again undecided`` tries the open ones again, as a better prover may decide them; ``--again all`` does
everything, and ``--forget`` decides nothing.  One mode takes some ten seconds of a processor.  What is decided is
written as it comes, so that one that was interrupted may begin where it ended.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping

from ackfsm import matrix, tables
from ackfsm.batch import batch, chunks
from ackfsm.files import write_file
from ackfsm.matrix import DecidedMode
from ackfsm.tables import Specification
from ackfsm.terms import Configuration
from model_tests.support.places import PROJECT

__all__ = ["FILE", "first_modes", "main", "modes_of"]

FILE = PROJECT / "ackfsm" / "matrix" / matrix.KEPT_IN


def modes_of(specification: Specification) -> Iterator[Configuration]:
    """Every mode of every system that has a page."""
    for profile in specification.profiles:
        yield from matrix.modes(specification, profile)


def first_modes(specification: Specification, jobs: int = 1) -> dict[str, Configuration]:
    """Of each key the first mode that has it."""
    with batch(specification, jobs) as work:
        keys = matrix.keys_of_modes(work, list(modes_of(specification)))
    first: dict[str, Configuration] = {}
    for mode, key in keys.items():
        first.setdefault(key, mode)
    return first


def _asked_for(again: str | None, one: DecidedMode | None) -> bool:
    return one is None or again == "all" or (again == "undecided" and bool(one.undecided))


def _write(decided: Mapping[str, DecidedMode], first: Mapping[str, Configuration]) -> None:
    write_file(FILE, matrix.decided_modes_text(decided, first).encode())


def main() -> int:
    """Decide what is missing, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.any_number", description=__doc__)
    parser.add_argument("--again", choices=("undecided", "all"), help="decide these again")
    parser.add_argument("--forget", action="store_true", help="decide nothing, and forget what is of other tables")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes (default: 1)")
    parser.add_argument("--profile", action="append", metavar="P", help="of this system alone (may be repeated)")
    arguments = parser.parse_args()
    specification, begun = tables.load(), time.monotonic()
    first, decided = first_modes(specification, arguments.jobs), dict(matrix.kept_decisions())
    chosen = arguments.profile or [*specification.profiles]
    missing = [
        key for key, mode in first.items() if mode.profile in chosen and _asked_for(arguments.again, decided.get(key))
    ]
    for number, keys in enumerate([] if arguments.forget else chunks(missing, 4 * arguments.jobs)):
        found = matrix.decide_modes(specification, [first[key] for key in keys], jobs=arguments.jobs)
        decided |= dict(zip(keys, found, strict=True))
        _write(decided, first)
        done = min(len(missing), (number + 1) * 4 * arguments.jobs)
        sys.stderr.write(f"{done} of {len(missing)} in {time.monotonic() - begun:,.0f} s\n")
    _write(decided, first)
    return 0


if __name__ == "__main__":
    sys.exit(main())
