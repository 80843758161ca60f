"""SlicedNetwork searches against full ones, over the whole matrix: ``python -m model_tests.reductions``.

Every network of the matrix of ``jms`` (one message, no fault and every single fault), and a sample with two messages,
is searched as a whole, without what leads to nothing new, and with the partial order.  The first two have to find the
same, as near; the anomalies of the third have to be the same, and the ways there have to be ways.
Prints what was compared and how much smaller the searches were, and every difference; exit code 1 if there is one.
"""

from __future__ import annotations

import dataclasses
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence

from ackfsm.checking.explore import Exploration, Reduction, SearchOptions, SlicedNetwork, Slicer, explore_packed, pack
from ackfsm.checking.network import Network, compose
from model_tests.support.checker.plain_search import shows
from model_tests.support.tables import shipped
from model_tests.symbolic_matrix import Cell, cells, distinct

PARTIAL_ORDER = (Reduction.PARTIAL_ORDER,)
PAIRS = 60
"""Of the matrix with two messages so many cells."""


@dataclasses.dataclass(frozen=True)
class Compared:
    """One network searched in three ways."""

    network: Network
    whole: Exploration
    full: Exploration
    small: Exploration

    @property
    def difference(self) -> str | None:
        """What is wrong with the reduced search, ``None`` if nothing is."""
        if not (self.whole.complete and self.full.complete and self.small.complete):
            return "a search stopped"
        whole, full = _measures(self.whole), _measures(self.full)
        if whole != full:
            return f"{whole} against {full}"
        if set(self.full.witnesses) != set(self.small.witnesses):
            return f"{sorted(self.full.witnesses)} against {sorted(self.small.witnesses)}"
        if self.full.states < self.small.states or self.full.transitions < self.small.transitions:
            return f"{self.full.states} states became {self.small.states}"
        false = [anomaly for anomaly, steps in self.small.witnesses.items() if not shows(self.network, steps, anomaly)]
        return f"no way to {false}" if false else None


def compared(network: Network, small: SlicedNetwork, *, compiled: bool = False) -> Compared:
    """Search ``network``, of which ``small`` is what can move, in three ways."""
    return Compared(
        network,
        explore_packed(pack(network), network.events, SearchOptions(compiled=compiled, every_step=True)),
        explore_packed(small.packed, small.events, SearchOptions(compiled=compiled)),
        explore_packed(small.packed, small.events, SearchOptions(compiled=compiled, reductions=PARTIAL_ORDER)),
    )


def _measures(found: Exploration) -> tuple[int, int, int, dict[str, int]]:
    """What sparing steps must not change."""
    nearest = {anomaly: len(steps) for anomaly, steps in found.witnesses.items()}
    return found.states, found.transitions, found.depth, nearest


def report(title: str, rows: Sequence[Sequence[Cell]]) -> int:
    """Print what comparing these cells of the matrix gives; the number of differences."""
    begun, states, wrong = time.process_time(), defaultdict[str, int](int), 0
    for cell in distinct(rows):
        network = compose(shipped(), *cell)
        one = compared(network, Slicer(network).slice(), compiled=True)
        states["networks"] += 1
        states["full"] += one.full.states
        states["small"] += one.small.states
        if one.difference is not None:
            wrong += 1
            sys.stdout.write(f"{cell}: {one.difference}\n")
    sys.stdout.write(
        f"{title}: {sum(map(len, rows)):,} cells, {states['networks']:,} networks, {wrong} differences, "
        f"{states['full']:,} states became {states['small']:,} ({time.process_time() - begun:.0f} s)\n"
    )
    return wrong


def main() -> int:
    """Compare everything."""
    pairs = [cell for row in cells(2, ["jms"]) for cell in row]
    wrong = report("one message", [*cells(1, ["jms"])])
    return int(wrong + report("two messages", [[cell] for cell in random.Random(5).sample(pairs, PAIRS)]) > 0)


if __name__ == "__main__":
    sys.exit(main())
