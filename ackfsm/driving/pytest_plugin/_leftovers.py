"""Messages that are left in queues when a test ends, each with the likely mistake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ackfsm.engine import Broker
from ackfsm.text import nearest, quoted

OUTSIDE = "outside"
"""The name of the test itself as a client in the history."""

_SHOWN = 60
_LISTED = 5


def named(names: Iterable[str]) -> str:
    """The names of queues as text."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _LISTED} more" if len(ordered) > _LISTED else ""
    return ", ".join(quoted(name, _SHOWN) for name in ordered[:_LISTED]) + more


def messages_left(
    broker: Broker, consumed: Collection[str], collected: Collection[str], leaving: Collection[str]
) -> list[str]:
    """A sentence for each queue in which messages are left that the test did not declare.

    Args:
        broker: with the queues, and a history.
        consumed: queues from which the application has consumed.
        collected: queues that the test has emptied itself.
        leaving: queues in which messages may stay.
    """
    senders = _senders(broker)
    lengths = {name: broker.queue(name).length for name in sorted({*senders, *consumed})}
    left = {name: length for name, length in lengths.items() if length and name not in leaving}
    known = {*consumed, *collected, *leaving}
    return [
        " ".join(_sentence(name, length, senders.get(name, ["nobody"]), consumed, known))
        for name, length in left.items()
    ]


def _sentence(
    name: str, length: int, senders: Collection[str], consumed: Collection[str], known: set[str]
) -> Iterator[str]:
    """Yield the rest in a queue, and the remedy; ``known`` has names that it may be a misspelling of."""
    queue = quoted(name, _SHOWN)
    count, are = (f"{length:,} messages", "are") if length > 1 else ("1 message", "is")
    yield f"{count} that {' and '.join(senders)} sent to {queue} {are} left:"
    if name in consumed:
        yield "the application consumes from there, but has not since; call ackfsm.run() when everything is sent,"
    else:
        yield f"{_reading(consumed)}, and nobody from {queue}."
        near = nearest(name, known - {name})
        yield f"Did you mean {quoted(near, _SHOWN)}? Otherwise" if near else "Consume it in the application,"
    yield f"take it with ackfsm.receive_all({queue}), or say that it may stay: ackfsm.run(..., leaving=[{queue}])"


def _reading(consumed: Collection[str]) -> str:
    return f"the application consumes from {named(consumed)}" if consumed else "the application consumes from no queue"


def _senders(broker: Broker) -> dict[str, list[str]]:
    """The queues to which something was sent, each with its senders."""
    found: dict[str, list[str]] = {}
    for line in broker.history.lines if broker.history is not None else ():
        if line["event"] == "send":
            sender = "the test" if line["process"] == OUTSIDE else "the application"
            senders = found.setdefault(str(line["queue"]), [])
            if sender not in senders:
                senders.append(sender)
    return found
