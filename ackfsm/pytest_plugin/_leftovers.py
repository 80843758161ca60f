"""What lies at rest when a test is done: messages that nobody has consumed, and what may be wrong."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator

from ackfsm.engine import Broker
from ackfsm.text import quoted

__all__ = ["OUTSIDE", "named", "rest"]

OUTSIDE = "outside"
"""As what the test itself sends."""

_SHOWN = 60
_LISTED = 5


def named(names: Iterable[str]) -> str:
    """Names of queues, in words."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(quoted(name, _SHOWN) for name in ordered[:_LISTED]) + more


def rest(broker: Broker, consumed: Collection[str], collected: Collection[str], leaving: Collection[str]) -> list[str]:
    """A sentence for each queue in which messages are left that nobody said would stay.

    Args:
        broker: with the queues, and a history.
        consumed: from which the application has consumed.
        collected: which the test has emptied itself.
        leaving: in which messages may stay.
    """
    senders = _senders(broker)
    lengths = {name: broker.queue(name).length for name in sorted({*senders, *consumed})}
    left = {name: length for name, length in lengths.items() if length and name not in leaving}
    known = {*consumed, *collected, *leaving}
    return [
        " ".join(_said(name, length, senders.get(name, ["nobody"]), consumed, known)) for name, length in left.items()
    ]


def _said(
    name: str, length: int, senders: Collection[str], consumed: Collection[str], known: set[str]
) -> Iterator[str]:
    """What is left in a queue, and what to do; ``known`` are the names that may have been meant."""
    queue = quoted(name, _SHOWN)
    count, are = (f"{length:,} messages", "are") if length > 1 else ("1 message", "is")
    yield f"{count} that {' and '.join(senders)} sent to {queue} {are} left:"
    if name in consumed:
        yield "the application consumes from there, but has not since; call ackfsm.run() when everything is sent,"
    else:
        yield f"{_reading(consumed)}, and nobody from {queue}."
        near = difflib.get_close_matches(name, known - {name}, n=1)
        yield f"Did you mean {quoted(near[0], _SHOWN)}? Otherwise" if near else "Consume it in the application,"
    yield f"take it with ackfsm.receive_all({queue}), or say that it may stay: ackfsm.run(..., leaving=[{queue}])"


def _reading(consumed: Collection[str]) -> str:
    return f"the application consumes from {named(consumed)}" if consumed else "the application consumes from no queue"


def _senders(broker: Broker) -> dict[str, list[str]]:
    """The queues to which something was sent, each with who has sent it."""
    found: dict[str, list[str]] = {}
    for line in broker.history.lines if broker.history is not None else ():
        if line["event"] == "send":
            who = "the test" if line["process"] == OUTSIDE else "the application"
            senders = found.setdefault(str(line["queue"]), [])
            if who not in senders:
                senders.append(who)
    return found
