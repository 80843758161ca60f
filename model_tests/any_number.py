"""Decide every mode of every system for any number of messages, and keep it for the pages of the systems.

``python -m model_tests.any_number`` decides the modes in which a row that matters has changed, and forgets those that
are no more; ``--again undecided`` tries the open ones again, as a better prover may decide them; ``--again all`` does
everything, and ``--forget`` decides nothing.  One takes a second, or half a minute where messages may be sent twice.
Each decision is written as it comes, so that a run that was interrupted begins where it ended.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ackfsm import tables
from ackfsm.support.files import write_file
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import DecidedMode
from ackfsm.tables import Specification
from ackfsm.tables.batch import batch
from ackfsm.terms import Configuration
from model_tests.support.places import PROJECT

__all__ = ["FILE", "configurations_of_matrix", "first_of", "main", "modes_of", "names_of", "text_of"]


FILE: Final = PROJECT / "ackfsm" / "surveys" / "matrix" / matrix.KEPT_IN
_WHERE: Final = (
    "in the modes of the systems, all other settings\n# at their defaults.  Made by python -m model_tests.any_number"
)
_MODE: Final = ("delivery_mode", *matrix.MODE_KEYS)


def text_of(decided: Mapping[str, DecidedMode], names: Mapping[str, str]) -> str:
    """The text of the file that keeps these decisions."""
    return matrix.decided_modes_text(decided, names, _WHERE)


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
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many processes (default: 1)")
    parser.add_argument("--profile", action="append", metavar="P", help="of this system alone (may be repeated)")
    arguments = parser.parse_args()
    specification, begun = tables.load(), time.monotonic()
    first = first_of(specification, modes_of(specification), arguments.jobs)
    decided = matrix.read_decided_modes(FILE.read_text(encoding="utf-8").splitlines())
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
            write_file(FILE, text_of(decided, names).encode())
            sys.stderr.write(f"{done} of {len(missing)} in {time.monotonic() - begun:,.0f} s\n")
    write_file(FILE, text_of(decided, names).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
