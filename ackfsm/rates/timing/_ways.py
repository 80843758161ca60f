"""The ways of sending beside each other: blocking, windows, transactions, unconfirmed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ackfsm.rates.timing._interval import Interval
from ackfsm.rates.timing._plan import Side, publish_rate, publish_side
from ackfsm.rates.timing._waits import waits_of
from ackfsm.rates.timing._workload import RESOURCES, Workload
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Configuration, InputError, SendMode

_WINDOWS: Final = (1, 10, 50, 100, 255, 1000, 10_000)
_COMMITS: Final = (1, 10, 100, 1000)
_MODE: Final = "send_mode"


@dataclasses.dataclass(frozen=True, slots=True)
class Way:
    """A way of sending, as settings beside the configuration's.

    Attributes:
        settings: what is set otherwise.
        per_commit: messages of a transaction, ``None`` where there are none.
        side: the rate, what binds it and what would bind next.
        alone: what the round trip and the bandwidth up allow, each if nothing else took time.
    """

    settings: Mapping[str, Any]
    per_commit: int | None
    side: Side
    alone: Mapping[str, Interval]


def ways_of_sending(
    specification: Specification, configuration: Configuration, settings: Mapping[str, Any], work: Workload
) -> Iterator[Way]:
    """Each way of sending that the profile of ``configuration`` has, with ``settings`` left as they are elsewhere."""
    chosen = {key: value for key, value in settings.items() if key not in {_MODE, "publish_window", "ack_mode"}}
    transacted: dict[str, Any] = {"ack_mode": AckMode.SESSION_TRANSACTED}
    tried: list[tuple[dict[str, Any], Sequence[int]]] = [
        ({_MODE: SendMode.UNCONFIRMED}, ()),
        ({_MODE: SendMode.BLOCKING}, ()),
        *(({_MODE: SendMode.ASYNCHRONOUS, "publish_window": window}, ()) for window in _WINDOWS),
        (transacted, _COMMITS),
    ]
    for otherwise, commits in tried:
        try:
            found = specification.configure(configuration.profile, {**chosen, **otherwise})
        except InputError:
            continue  # the system does not have this way
        waits = waits_of(specification, found)
        for per_commit in commits or (None,):
            of = work if per_commit is None else dataclasses.replace(work, messages_per_commit=per_commit)
            alone = {name: publish_rate(of.only(name), waits) for name in RESOURCES if name in _OF_THE_NETWORK}
            yield Way(otherwise, per_commit, publish_side(of, waits), alone)


_OF_THE_NETWORK: Final = ("round trip", "bandwidth up")
