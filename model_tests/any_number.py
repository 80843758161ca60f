"""Decide every mode of every system for any number of messages, and keep it for the pages of the systems.

``python -m model_tests.any_number`` decides the modes in which a row that matters has changed, and forgets those that
are no more; ``--again undecided`` tries the open ones again, as a better prover may decide them; ``--again all`` does
everything, and ``--forget`` decides nothing.  With ``--matrix`` it is all configurations of the matrix, in a file of
their own.  One takes a second, or half a minute where messages may be sent twice.  What is decided is written as it
comes, so that one that was interrupted may begin where it ended; the order is drawn, so that what is there is a sample.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ackfsm import tables
from ackfsm.support.files import write_file
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import DecidedMode
from ackfsm.tables import Specification
from ackfsm.tables.batch import batch
from ackfsm.terms import Configuration
from model_tests.support.places import PROJECT

__all__ = ["MATRIX", "MODES", "DecisionFile", "configurations_of_matrix", "first_of", "main", "modes_of", "names_of"]


class DecisionFile(NamedTuple):
    """A file of what is decided, and what it says of itself."""

    file: Path
    where: str

    def decided(self) -> dict[str, DecidedMode]:
        """All that is kept there, by its key."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        return matrix.read_decided_modes(text.splitlines())

    def text(self, decided: Mapping[str, DecidedMode], names: Mapping[str, str]) -> str:
        """What the file is to be."""
        return matrix.decided_modes_text(decided, names, self.where)


MODES = DecisionFile(
    PROJECT / "ackfsm" / "matrix" / matrix.KEPT_IN,
    "in the modes of the systems, all other settings\n# at their defaults.  Made by python -m model_tests.any_number",
)
MATRIX = DecisionFile(
    PROJECT / "docs" / "any-number-matrix.txt",
    "in the configurations of the matrix.\n# Made by python -m model_tests.any_number --matrix",
)

_MODE = ("delivery_mode", *matrix.MODE_KEYS)


def modes_of(specification: Specification) -> Iterator[Configuration]:
    """Every mode of every system that has a page."""
    for profile in specification.profiles:
        yield from matrix.modes(specification, profile)


def configurations_of_matrix(specification: Specification) -> list[Configuration]:
    """Every configuration of the matrix of every system, those first in which a message is sent once."""
    every = (matrix.make_plan(specification, profile, {}).configurations for profile in specification.profiles)
    return sorted((each for of_one in every for each in of_one), key=lambda each: each.resend_in_doubt)


def first_of(
    specification: Specification, configurations: Iterable[Configuration], jobs: int = 1
) -> dict[str, Configuration]:
    """Of each key the first configuration that has it."""
    with batch(specification, jobs) as work:
        keys = matrix.keys_of_modes(work, list(configurations))
    first: dict[str, Configuration] = {}
    for configuration, key in keys.items():
        first.setdefault(key, configuration)
    return first


def names_of(specification: Specification, first: Mapping[str, Configuration]) -> dict[str, str]:
    """A name for each: the system, the mode, and the settings that are not at their defaults for that."""
    return {key: _name(specification, configuration) for key, configuration in first.items()}


def _name(specification: Specification, configuration: Configuration) -> str:
    settings = configuration.as_dict()
    mode = {key: settings[key] for key in _MODE}
    defaults = specification.configure(configuration.profile, mode).as_dict()
    others = [f"{key}={value}" for key, value in settings.items() if key not in mode and value != defaults[key]]
    return " ".join([configuration.profile, *map(str, mode.values()), *others])


def _asked_for(again: str | None, one: DecidedMode | None) -> bool:
    return one is None or again == "all" or (again == "undecided" and bool(one.undecided))


def main() -> int:
    """Decide what is missing, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.any_number", description=__doc__)
    parser.add_argument("--again", choices=("undecided", "all"), help="decide these again")
    parser.add_argument("--forget", action="store_true", help="decide nothing, and forget what is of other tables")
    parser.add_argument("--matrix", action="store_true", help="all configurations of the matrix")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes (default: 1)")
    parser.add_argument("--profile", action="append", metavar="P", help="of this system alone (may be repeated)")
    arguments = parser.parse_args()
    specification, begun = tables.load(), time.monotonic()
    kept = MATRIX if arguments.matrix else MODES
    every = configurations_of_matrix(specification) if arguments.matrix else modes_of(specification)
    first, decided = first_of(specification, every, arguments.jobs), kept.decided()
    names = names_of(specification, first)
    chosen = arguments.profile or [*specification.profiles]
    missing = [
        key for key, mode in first.items() if mode.profile in chosen and _asked_for(arguments.again, decided.get(key))
    ]
    random.Random(1).shuffle(missing)
    with batch(specification, arguments.jobs) as work:
        asked = [] if arguments.forget else [[first[key]] for key in missing]
        for done, (index, found) in enumerate(work.as_they_come(matrix.decide_modes, asked), start=1):
            decided[missing[index]] = found[0]
            write_file(kept.file, kept.text(decided, names).encode())
            sys.stderr.write(f"{done} of {len(missing)} in {time.monotonic() - begun:,.0f} s\n")
    write_file(kept.file, kept.text(decided, names).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
