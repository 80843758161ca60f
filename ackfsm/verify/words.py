"""The words of verdicts, each in one place: what findings, reasons, screens, stories, reports and pages say alike.

What is decided is decided elsewhere; nothing but words comes from here.  Sentences about findings are in
``findings/reasons.py``, those about a whole verdict in ``ackfsm/showing/views/verdict_words.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.terms import Anomaly
from ackfsm.text import in_words, quoted

_FEW: Final = 3
"""How many ids, or queues, a sentence names."""

_NAMED: Final = 64
"""How many characters of an id or a name a sentence has: too few for it to look like a sentence of its own."""

_SHOWN: Final = 4
"""At most so many things are named that a source cannot show."""

NO_CONFIGURATION: Final = "no configuration is known to judge it by; name one (--profile, --set) or add a header"
UNCONFIGURED: Final = "it depends on the configuration, and none is known"
NO_MESSAGE: Final = "no message was sent, so nothing was shown"

ALLOWED: Final[Mapping[bool | None, str]] = MappingProxyType(
    {
        True: "the configuration allows",
        False: "the configuration does not allow",
        None: "the tables leave undecided",
    }
)

_OCCURRENCES: Mapping[Anomaly, str] = MappingProxyType(
    {
        Anomaly.LOSS: "lost",
        Anomaly.UNPROCESSED: "delivered and never processed",
        Anomaly.DUPLICATE: "delivered again, flagged as redelivered",
        Anomaly.UNFLAGGED_DUPLICATE: "delivered again with the flag clear",
        Anomaly.REPROCESSED: "processed more than once",
        Anomaly.RESURRECTION: "delivered again after an acknowledgement was confirmed",
        Anomaly.PHANTOM: "delivered with no send before",
        Anomaly.DIRTY_DELIVERY: "delivered out of a transaction that nobody had asked to commit",
        Anomaly.TORN_TRANSACTION: "carried out in part",
        Anomaly.REORDER: "overtaken",
        Anomaly.WINDOW_OVERRUN: "sent beyond the publish window",
        Anomaly.PREFETCH_OVERRUN: "delivered beyond the prefetch bound",
        Anomaly.DOUBLE_OUTCOME: "given two outcomes",
        Anomaly.MISSING_OUTCOME: "left without an outcome",
        Anomaly.EARLY_CONFIRM: "confirmed before the journal had synced",
        Anomaly.COUNT_REGRESSION: "delivered with counts that contradict each other",
        Anomaly.OVER_DELIVERED: "delivered too often or too late",
        Anomaly.GHOST: "rejected and delivered",
        Anomaly.STUCK: "stuck",
    }
)
"""What a message was that has an anomaly."""


# names and numbers


def few(names: Sequence[str], total: int | None = None, comma: str = ", ") -> str:
    """The first few of ``names``, with dots if they are not all, or not ``total``."""
    return comma.join([*names[:_FEW], *(["..."] if (len(names) if total is None else total) > _FEW else [])])


def quoted_few(names: Sequence[str], total: int | None = None) -> str:
    """As :func:`few`, each as a sentence names it."""
    return few([quoted(name, _NAMED) for name in names], total)


def queues_named(queues: Sequence[str]) -> str:
    """The first few of ``queues``; "" is no queue."""
    return few([quoted(queue, _NAMED) if queue else "a queue without a name" for queue in queues])


def number_of(count: int, kind: str = "message") -> str:
    """``1 message``, ``2,000 messages``."""
    return f"{count:,} {kind}{'' if count == 1 else 's'}"


def clauses(told: Sequence[str]) -> str:
    """Clauses as one; a comma or an "and" inside of one is not taken for one between them."""
    if len(told) > 1 and any("," in each or " and " in each for each in told):
        return f"{', '.join(told[:-1])}, and {told[-1]}"
    return in_words(told)


def kind_of(anomaly: Anomaly) -> str:
    """Return the kind of case of an anomaly: a message, or a transaction."""
    return "transaction" if anomaly is Anomaly.TORN_TRANSACTION else "message"


def occurrence(anomaly: Anomaly, number: int | None) -> str:
    """``2 messages were lost``; ``no message was lost`` for 0, ``a message was lost`` for ``None``."""
    if number:
        return f"{number_of(number, kind_of(anomaly))} {'was' if number == 1 else 'were'} {_OCCURRENCES[anomaly]}"
    return f"{'a' if number is None else 'no'} {kind_of(anomaly)} was {_OCCURRENCES[anomaly]}"


def occurrence_to(anomaly: Anomaly, name: str) -> str:
    """``message 'm1' was lost``; of a torn transaction ``name`` is its own."""
    return f"{kind_of(anomaly)} {quoted(name, _NAMED)} was {_OCCURRENCES[anomaly]}"


# why a verdict is as it is: the reasons


def undrained(queues: Sequence[str]) -> str:
    """Why an anomaly that shows at rest cannot be counted: ``queues`` were not drained (``""``: none was named)."""
    return f"no `drained` follows the last send to {queues_named(queues)}"


def cannot_show(names: Collection[str]) -> str:
    """Return the reason for an unknown that needs events with these ``names``, at least one; a clause."""
    told = [f"`{name}`" for name in names]
    if len(told) > _SHOWN:
        told = [*told[: _SHOWN - 1], f"{len(told) - _SHOWN + 1} more"]
    return f"the source cannot show {in_words(told)}"


def not_seen_to_end(event: str) -> str:
    """Return the reason why no fault explains a case, where the source cannot show its repair."""
    return f"{cannot_show([event])}, so nobody knows when a fault ended, and what it explains"


def not_checked(count: int, why: str) -> str:
    """That so many messages were not held to the model."""
    return f"{number_of(count)} could not be checked against the model: {why}"


def unknown(anomalies: Sequence[str], why: str) -> str:
    """Return the sentence that the counts of these anomalies are unknown."""
    return f"{in_words(anomalies)} {'is' if len(anomalies) == 1 else 'are'} unknown: {why}"


def not_conform(count: int, what: str) -> str:
    """That so many messages or pairs are no run of the model."""
    return f"{count:,} {what} {'does' if count == 1 else 'do'} not conform to the model"


def nothing_explains(*, assumed: bool = False, before: bool = False) -> str:
    """``nothing recorded explains``; where faults may be ``assumed``, none of them either."""
    return f"nothing recorded{' before' * before}{' and no unrecorded fault' * assumed} explains"


# what may be of the recording

UNRECORDED: Final = "no `processed` is recorded; record one whenever a message is done with"
"""Why nobody can tell what was processed."""

_UNITS: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def span(nanoseconds: int) -> str:
    """So many nanoseconds, or up to a hundredth more, as ``--skew`` takes it: ``100us``."""
    step = 10 ** max(0, len(str(nanoseconds)) - 3)
    rounded = -(-nanoseconds // step) * step
    size, unit = next((size, unit) for size, unit in _UNITS if rounded >= size)
    return f"{rounded // size}{f'.{rounded % size:0{len(str(size)) - 1}}'.rstrip('0') if rounded % size else ''}{unit}"


def early(count: int, gap: int, processes: tuple[str, str], skew: int) -> str:
    """That so many were delivered before they were sent, where clocks of two processes may differ by ``skew``."""
    before = f"delivered up to {span(gap)} before" if gap else "delivered at the moment of"
    is_, their = ("is", "its") if count == 1 else ("are", "their")
    told = f"{count:,} of the phantoms {is_} {before} {their} send"
    if 0 < gap <= skew:
        return f"{told}, which no constant differences of the clocks within --skew {span(skew)} explain all together"
    names = quoted_few(processes).replace(", ", " and ")
    return f"{told}: if the clocks of {names} may differ by that much, say --skew {span(max(gap, 1))}"


def unprocessed(count: int, silent: Sequence[str]) -> str:
    """That so many were delivered to the ``silent``, who do not tell what they have processed."""
    were = "was" if count == 1 else "were"
    return f"{count:,} of the unprocessed {were} delivered to {quoted_few(silent)}, of whom {UNRECORDED}"


def reprocessed(count: int, silent: Sequence[str]) -> str:
    """That so many came again, also to the ``silent``."""
    repeated = number_of(count, "repeated message")
    return f"{repeated} may be reprocessed: of {quoted_few(silent)} {UNRECORDED}"
