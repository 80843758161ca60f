"""What somebody may need: the absence of an anomaly, or a guarantee of ``spec/guarantees.yaml``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from ackfsm.surveys.advice._table import read_table
from ackfsm.tables import Level, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Anomaly, Configuration, InputError
from ackfsm.text import meant, quoted


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Need:
    """A need by its ``name`` on the command line.

    Attributes:
        name: ``no-loss``, ``at-least-once``, ``order``, ...
        means: what it asks for, a clause.
        excluded_by: the anomalies and the ends of a message (monitors) of which none may be reachable.
        of_transactions: whether it is said of transactions, so that a session without them has nothing to give.
    """

    name: str
    means: str
    excluded_by: frozenset[str]
    of_transactions: bool = False

    def applies_to(self, configuration: Configuration, specification: Specification) -> bool:
        """Whether ``configuration`` has what this is said of."""
        transacted = specification.conditions[Condition.TRANSACTED]
        return not self.of_transactions or transacted.holds(specification.environment(configuration))


def needs_of(specification: Specification, directory: Path | None = None) -> dict[str, Need]:
    """Return all needs by name: guarantees, the other words for them, and ``no-`` each anomaly.

    Raises :class:`ackfsm.terms.SpecError` for what is wrong in ``advice.yaml`` of ``spec/`` (or of ``directory``).
    """
    guarantees = specification.guarantees
    named = {**{_spelled(name): name for name in guarantees}, **read_table(specification, directory).needs}
    found = {
        word: Need(
            word,
            guarantees[name].means,
            guarantees.excluded_by(name),
            of_transactions=guarantees.named[name].level is Level.TRANSACTION,
        )
        for word, name in named.items()
    }
    for anomaly in Anomaly:
        if anomaly in specification.properties:
            name = f"no-{_spelled(anomaly)}"
            found[name] = Need(name, f"never: {specification.meaning(anomaly)}", frozenset({anomaly.value}))
    return found


def read_needs(texts: Iterable[str], known: Mapping[str, Need]) -> tuple[Need, ...]:
    """The needs that ``texts`` list, names with commas between them, each once.

    Raises :class:`InputError` for a name that no need has, and where there is none.
    """
    names = dict.fromkeys(_spelled(name.strip()) for text in texts for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no need {quoted(name)}{meant(name, known)}; needs are {', '.join(sorted(known))}"
            )
    if not names:
        raise InputError("--need names nothing; write for example --need no-loss,order")
    return tuple(known[name] for name in names)


def _spelled(name: str) -> str:
    return name.replace("_", "-").lower()
