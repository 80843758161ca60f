"""Read ``spec/seeds.yaml``."""

from __future__ import annotations

from pathlib import Path

from ackfsm.support import throughput
from ackfsm.tables import Seed, read_form, read_seeds


def seeds(directory: Path | None = None) -> tuple[Seed, ...]:
    """Return the seed documents with the sentences of the package, or of ``directory``.

    What they name in the tables has been checked as these were loaded.
    Raises :class:`ackfsm.terms.SpecError` for a computation that :mod:`ackfsm.support.throughput` does not have.
    """
    document = read_form("seeds.yaml", "seeds", directory)
    for i, seed in enumerate(document.data):
        for j, sentence in enumerate(seed["sentences"]):
            for k, name in enumerate(sentence.get("computes", ())):
                if name not in throughput.__all__:
                    path = (i, "sentences", j, "computes", k)
                    raise document.error(path, f"there is no computation {name!r} in ackfsm.support.throughput")
    return read_seeds(document)
