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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ackfsm import tables
from ackfsm.support.files import write_file
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import AnyNumber, DecidedMode, Matrix, Undecided
from ackfsm.tables import Specification
from ackfsm.tables.batch import batch
from ackfsm.terms import Anomaly, Configuration
from model_tests.support.places import PROJECT

__all__ = ["FILE", "configurations_of_matrix", "decide_modes", "first_of", "main", "modes_of", "names_of", "text_of"]


FILE: Final = PROJECT / "ackfsm" / "surveys" / "matrix" / matrix.KEPT_IN
_HEADING: Final = """\
# What can happen with any number of messages and of any faults in the modes of the systems, all other settings
# at their defaults.  Made by python -m model_tests.any_number.
# Each line has the digest of all that decides; the first configuration that has it; what is possible, with how many
# messages; what is undecided, with how many messages all of it was searched, and why it is not proved.  Every other
# anomaly is proved impossible.
# {decided} of {systems} different systems are here; of their {pairs:,} pairs with an anomaly {undecided} are undecided.
"""


def decide_modes(specification: Specification, modes: Sequence[Configuration]) -> list[DecidedMode]:
    """Decide each of ``modes``; a second to a minute for each distinct one."""
    found = matrix.run(matrix.plan_of(modes), specification)
    return [_decided(found, number) for number in range(len(modes))]


def _decided(found: Matrix, number: int) -> DecidedMode:
    outcome = found.outcome(number, 0)
    if not isinstance(outcome, AnyNumber):
        raise TypeError(f"{type(outcome).__name__} is not of any number of messages")
    return DecidedMode(
        {name: outcome.messages[name] for name in outcome.anomalies},
        {
            anomaly.value: Undecided(outcome.searched[anomaly], outcome.undecided[anomaly])
            for anomaly in found.anomalies
            if anomaly in outcome.undecided
        },
    )


def text_of(decided: Mapping[str, DecidedMode], names: Mapping[str, str]) -> str:
    """The file: a line for each key of ``names`` that is decided, with its name."""
    known = {key: decided[key] for key in names if key in decided}
    lines = (
        "; ".join((key, names[key], _possible(one.possible), _undecided(one.undecided))).rstrip()
        for key, one in known.items()
    )
    heading = _HEADING.format(
        decided=len(known),
        systems=len(names),
        pairs=len(known) * len(Anomaly),
        undecided=sum(len(one.undecided) for one in known.values()),
    )
    return heading + "".join(f"{line}\n" for line in lines)


def _possible(possible: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{possible[name]}" for name in Anomaly if name in possible)


def _undecided(undecided: Mapping[str, Undecided]) -> str:
    found = ((name, undecided[name]) for name in Anomaly if name in undecided)
    return " ".join(f"{name}:{one.searched} [{one.why}]" for name, one in found)


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
    mode = {key: settings[key] for key in matrix.FACTORS}
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
        for done, (index, found) in enumerate(work.as_they_come(decide_modes, asked), start=1):
            decided[missing[index]] = found[0]
            write_file(FILE, text_of(decided, names).encode())
            sys.stderr.write(f"{done} of {len(missing)} in {time.monotonic() - begun:,.0f} s\n")
    write_file(FILE, text_of(decided, names).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
