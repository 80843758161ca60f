"""The signs that lines tell of one message, by ``spec/recording.yaml``, and their codes in arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.tables import Certainty, SignRow, Specification, When
from ackfsm.terms import Configuration


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Sign:
    """One thing that the observer hears.

    Attributes:
        name: that of a row of ``spec/recording.yaml``.
        consumer: the number of the consumer, from 1 on in the order in which the message met them; 0: of no consumer.
        certainty: how sure it is that it happened to the message.
        of: the messages of a pair that it is of, as bits (1, 2, :data:`BOTH`); 0: of none more than of another.
    """

    name: str
    consumer: int = 0
    certainty: Certainty = Certainty.CERTAIN
    of: int = 0

    def if_possible(self) -> Sign:
        """The same, unless nothing was there that it could happen to."""
        return dataclasses.replace(self, certainty=max(self.certainty, Certainty.IF_POSSIBLE))

    def __str__(self) -> str:
        at = f"({self.consumer})" if self.consumer else ""
        return f"{self.name}{at}{'?' if self.certainty is Certainty.PERHAPS else ''}"


BOTH = 3
"""Of the first message of a pair and of the second."""

AT_REST = "at rest"
"""Nothing more happened to the message: its queue was seen drained after its last send."""

DELIVERED_SOMEHOW = "delivered, flagged or not"
"""A delivery of one of two messages: its flag is a matter of that message alone."""


class Signs:
    """The signs, with the codes that stand for them in arrays: their places in the table."""

    def __init__(self, rows: Iterable[SignRow]) -> None:
        self.rows = tuple(rows)
        self.names = tuple(row.name for row in self.rows)
        self._codes = {name: code for code, name in enumerate(self.names)}

    @classmethod
    def of(cls, specification: Specification, configuration: Configuration) -> Signs:
        """The signs of histories with this configuration."""
        environment = specification.environment(configuration)
        rows = specification.recording.signs.values()
        return cls(
            row if row.late_where.holds(environment) else dataclasses.replace(row, when=When.AFTER) for row in rows
        )

    def __len__(self) -> int:
        return len(self.rows)

    def code(self, name: str) -> int:
        """The code of the sign of that name."""
        return self._codes[name]

    def of_lines(self, *lines: str) -> tuple[int, ...]:
        """The codes of the signs of these lines."""
        return self.those(lambda row: row.line in lines)

    def those(self, chosen: Callable[[SignRow], bool]) -> tuple[int, ...]:
        """The codes of the signs whose rows are ``chosen``."""
        return tuple(code for code, row in enumerate(self.rows) if chosen(row))


def lines_of(events: Events, row: SignRow) -> Ints:
    """The rows of ``events`` that are lines of this sign, ascending."""
    places = events.places(Event(row.line))
    for field, values in row.fields.items():
        places = places[np.isin(_column(events, field)[places], [_coded(field, value) for value in values])]
    if row.has:
        places = places[np.any([_is_there(events, field)[places] for field in row.has], axis=0)]
    for field in row.lacks:
        places = places[~_is_there(events, field)[places]]
    if row.undone is not None:
        undone = events.transaction[events.places(Event.ROLLED_BACK)]
        places = places[np.isin(events.transaction[places], undone) == row.undone]
    return np.asarray(places, np.int64)


def _column(events: Events, field: str) -> Ints:
    column: Ints = getattr(events, field)
    return column == 1 if field == "redelivered" else column  # a delivery that does not say so is not flagged


def _coded(field: str, value: object) -> int:
    return VOCABULARY[field].index(str(value)) if field in VOCABULARY else int(bool(value))


def _is_there(events: Events, field: str) -> Mask:
    """Which rows have the ``field``."""
    return np.asarray(events.errs == 1 if field == "error" else getattr(events, field) != ABSENT, np.bool_)
