"""What happened to messages, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ackfsm.terms import Anomaly

__all__ = ["happened"]

_WORDS: Mapping[Anomaly, str] = MappingProxyType(
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
        Anomaly.STUCK: "stuck",
    }
)


def happened(anomaly: Anomaly, number: int | None) -> str:
    """``2 messages were lost``; ``no message was lost`` for 0, ``a message was lost`` for ``None``."""
    kind = "transaction" if anomaly is Anomaly.TORN_TRANSACTION else "message"
    if number is None or number < 2:  # noqa: PLR2004 - several
        count = {None: "a", 0: "no", 1: "1"}[number]
        return f"{count} {kind} was {_WORDS[anomaly]}"
    return f"{number:,} {kind}s were {_WORDS[anomaly]}"
