"""Which messages of a history are judged by which configuration, where a queue has another one than the others.

A message belongs to the queue of its last send, or if no send of it names one, of the last line of it that does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa  # noqa: TC002 - it is there wherever this module is

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE
from ackfsm.terms import Configuration


@dataclasses.dataclass(frozen=True, slots=True)
class Configurations:
    """The configurations that judge the messages of a history.

    Attributes:
        general: the configuration of all queues but those that have one of their own; ``None`` without one.
        of_queues: those, by the name of the queue.
    """

    general: Configuration | None
    of_queues: Mapping[str, Configuration] = dataclasses.field(default_factory=dict)

    def distinct(self) -> tuple[Configuration | None, ...]:
        """All of them, each once, the general one first."""
        return tuple(dict.fromkeys((self.general, *self.of_queues.values())))

    def known(self) -> tuple[Configuration, ...]:
        """Return the configurations that exist."""
        return tuple(each for each in self.distinct() if each is not None)

    def numbers(self, queues: pa.Array) -> Ints:
        """For each of these queues the place of its configuration in :meth:`distinct`; last, for no queue, 0."""
        place = {configuration: number for number, configuration in enumerate(self.distinct())}
        its = [place[self.of_queues.get(name, self.general)] for name in queues.to_pylist()]
        return np.array([*its, 0], np.int64)


def configurations_of(given: Configurations | Configuration | None) -> Configurations:
    """One configuration, or none, is that of all queues."""
    return given if isinstance(given, Configurations) else Configurations(given)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Share:
    """The messages of a history that are judged by one configuration.

    Attributes:
        configuration: that one.
        queues: the queues of these messages, in the order of their names; "" is no queue.
        messages: for each message whether it is one of them.
        transactions: for each transaction whether it counts as theirs: its first message is one of them.
    """

    configuration: Configuration | None
    queues: tuple[str, ...]
    messages: Mask
    transactions: Mask

    def of(self, messages: Ints) -> Ints:
        """Return the ``messages`` that are in the share."""
        return np.asarray(messages[self.messages[messages]])

    def only(self, transactions: Ints) -> Ints:
        """Return the ``transactions`` that count as the share's."""
        return np.asarray(transactions[self.transactions[transactions]])


def shares_of(configurations: Configurations, events: Index) -> Sequence[Share]:
    """Return the shares of ``events`` with a message, at least one; the general configuration's comes first."""
    queue, names = events.queue_of, events.names["queue"]
    number = configurations.numbers(names)[queue]
    first = events.first_of(events.members, "transaction")
    of_transactions = np.where(first == NONE, 0, np.append(number, 0)[events.message[first]])
    return [
        Share(configuration, _names(names, queue[number == place]), number == place, of_transactions == place)
        for place, configuration in enumerate(configurations.distinct())
        if (number == place).any() or (place == 0 and not len(number))
    ]


def _names(names: pa.Array, queues: Ints) -> tuple[str, ...]:
    return tuple(sorted("" if code == ABSENT else str(names[code]) for code in np.unique(queues).tolist()))


def in_several_shares(shares: Sequence[Share], events: Index) -> Ints:
    """The transactions with messages of several of ``shares``."""
    transaction, message = events.transaction[events.members], events.message[events.members]
    return np.unique(
        np.concatenate(
            [transaction[each.transactions[transaction] & ~each.messages[message]].astype(np.int64) for each in shares]
        )
    )
