"""What priority a message has that was sent without one: order is owed within a priority alone (JMS 6.2.9.1)."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.queues import Configurations
from ackfsm.tables import Constant, Specification

_DEFAULT: Final = "default priority"
"""The constant of a profile that says it."""

_WHERE_IT_IS_NOT_SAID: Final = "jms"


def with_priorities(events: Index, configurations: Configurations, specification: Specification) -> Index:
    """``events`` with the default for each priority that is not told, if some are told."""
    if (events.priority == ABSENT).all():
        return events
    defaults = [_default(each.profile if each else None, specification) for each in configurations.distinct()]
    queue = np.append(events.queue_of, ABSENT)[events.message]
    of_rows = np.array(defaults)[configurations.numbers(events.names["queue"])[queue]]
    return dataclasses.replace(events, priority=np.where(events.priority == ABSENT, of_rows, events.priority))


def _default(profile: str | None, specification: Specification) -> int:
    stated = (*_constants(profile, specification), *_constants(_WHERE_IT_IS_NOT_SAID, specification))
    return next(each.number for each in stated if each.name == _DEFAULT)


def _constants(profile: str | None, specification: Specification) -> tuple[Constant, ...]:
    return specification.profiles[profile].constants if profile else ()
