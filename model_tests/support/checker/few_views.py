"""Views of a few machines of ``jms``, small enough that tests go through all of them in plain Python."""

from __future__ import annotations

from ackfsm.checking.unbounded import Level
from ackfsm.checking.unbounded._columns import Scope, system_of
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._kernel import STEPS_OF_A_WORD
from ackfsm.checking.unbounded._localize import Kept, projected
from ackfsm.checking.unbounded._steps import Spaces
from ackfsm.checking.unbounded._views import Views
from ackfsm.terms import Fault
from model_tests.support.tables import shipped

_FAULTS = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL})
_MACHINES = {"broker", "consumer", "consumer_link", "delivery", "processing", "ack_call", "ack_frame", "ack_order"}


def views_of_few(level: Level) -> Views:
    """The views of a level, of three messages or more."""
    whole = system_of(Scope(shipped(), shipped().configure("jms"), _FAULTS), Family(3, None))
    kept = Kept(
        *(
            frozenset(number for number, table in enumerate(tables) if table.name in _MACHINES)
            for tables in (whole.machines, whole.message)
        )
    )
    return Views(Spaces(projected(whole, kept)), level, third=True, max_states=100_000)


def steps_in(words: list[int]) -> set[int]:
    """The numbers of the steps whose bits are set."""
    return {
        number * STEPS_OF_A_WORD + bit for number, word in enumerate(words) for bit in range(64) if (word >> bit) & 1
    }
