"""A way to an anomaly where a small bound is full, made one where the bound as it is set is full, and performed there.

One message fills its place, and so do as many others as there are places: what it does is done by each of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from ackfsm.checking.explore import Finding, SmallBound
from ackfsm.checking.network import Bounds, NetworkEvent, observers_of
from ackfsm.checking.unbounded._columns import Scope
from ackfsm.checking.unbounded._many import Many
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.tables import Specification
from ackfsm.terms import Configuration

_MOST_MESSAGES = 2_000
"""A run of more takes minutes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Filled:
    """A run that has been performed with a bound as it is set.

    Attributes:
        steps: all of it; its events have no participants, as no network was composed of so many messages.
        messages: how many messages it has.
        few: the way that it was made from, with a smaller bound and few messages.
        tried: the settings of that way.
        repeated: the number of the message in ``few`` whose steps as many messages take one after the other.
        times: how many.
    """

    steps: tuple[NetworkEvent, ...]
    messages: int
    few: tuple[NetworkEvent, ...]
    tried: tuple[tuple[str, int], ...]
    repeated: int
    times: int

    def as_json(self) -> dict[str, object]:
        """How the steps were made."""
        few = [event.label for event in self.few]
        return {"tried": dict(self.tried), "steps": few, "repeated": f"m{self.repeated}", "times": self.times}


def filled(
    specification: Specification, configuration: Configuration, bounds: Bounds, small: SmallBound, finding: Finding
) -> Filled | None:
    """The way of ``finding`` with the bound as ``configuration`` has it; ``None`` where no repetition leads there."""
    times = small.value - small.tried[small.setting] + 1
    messages = bounds.messages + times - 1
    if messages > _MOST_MESSAGES:
        return None
    scope = Scope(specification, configuration, bounds.faults, bounds.actions, bounds.without)
    for repeated in range(1, bounds.messages + 1):
        steps = tuple(_repeated(finding.steps, repeated, times))
        try:
            many = Many(scope, messages, observers_of(specification, [finding.anomaly]))
        except NotProvedError:
            return None
        if all(many.fire(event.label) for event in steps) and finding.anomaly in many.shown():
            return Filled(steps, messages, finding.steps, tuple(small.tried.items()), repeated, times)
    return None


def _repeated(steps: tuple[NetworkEvent, ...], message: int, times: int) -> Iterator[NetworkEvent]:
    """``steps`` with ``times`` messages in place of one: they take what it does without a break one after the other."""
    for is_its, run in itertools.groupby(steps, lambda event: event.index[:1] == (message,)):
        events = list(run)
        for more in range(times if is_its else 1):
            yield from (_of_another(event, message, more if is_its else times - 1) for event in events)


def _of_another(event: NetworkEvent, message: int, more: int) -> NetworkEvent:
    """``event``, of a message so much later if it is of ``message`` or a later one."""
    later = bool(event.index) and event.index[0] >= message
    index = (event.index[0] + more, *event.index[1:]) if later else event.index
    return dataclasses.replace(event, index=index, participants=())
