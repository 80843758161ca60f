"""Decides the lives of pairs of messages, with observers of the network of two."""

from __future__ import annotations

import dataclasses
from typing import Final

from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.tables import Certainty, Fact, Side, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Configuration
from ackfsm.verify.conformance.life import Contradiction, Heard, Life
from ackfsm.verify.conformance.lives import Facts, Lived
from ackfsm.verify.conformance.messages import Judge, Kept, names_of_each
from ackfsm.verify.conformance.observer import Hearing, Observer, TooManyStatesError
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import DELIVERED_SOMEHOW, Sign

_MOST_STATES: Final = 250_000
"""States that the search for all pairs of a history may meet: some seconds.  What was searched for one pair is not kept
when memory is full."""

_MOST_OF_THE_URGENT: Final = 150_000

_TOO_MANY: Final = "two messages may be in too many states"


class PairJudge(Judge):
    """The judge of the lives of pairs: each sign is of one of the two messages, or of both."""

    explaining = frozenset()
    most_consumers, whom = 3, "two messages"

    def __init__(
        self,
        specification: Specification,
        configuration: Configuration,
        events: Index,
        urgent: int,
        kept: Kept | None = None,
    ) -> None:
        """The first ``urgent`` pairs leave some states of the limit to the others."""
        super().__init__(specification, configuration, events, kept)
        self._urgent = urgent

    def turn(self, lived: Lived) -> tuple[int, ...]:
        """Return the key that puts urgent lives first, then short ones: most of these fit into the limit."""
        return (lived.message,) if lived.message < self._urgent else (self._urgent, len(lived.life.heard))

    def why_not(self, lived: Lived) -> str | None:
        """Return the reason against deciding a pair; the limit of states is shared by all pairs."""
        most = _MOST_OF_THE_URGENT if lived.message < self._urgent else _MOST_STATES
        return super().why_not(lived) or (_TOO_MANY if self.states > most else None)

    def stop(self, lived: Lived) -> Contradiction | None:
        """The same of two messages; if that takes too much, with all memory for them."""
        for _ in range(2):
            try:
                return self._stop(lived)
            except TooManyStatesError:
                self.forget()
        raise TooManyStatesError(_TOO_MANY)

    def _stop(self, lived: Lived) -> Contradiction | None:
        stop = super().stop(lived)
        several = OTHERS in lived.consumers and Facts.MAY_BE_SHARED in lived.facts
        if stop is not None and several and super().stop(_with_two_others(lived)) is None:
            return None
        return stop

    def hearing(self, lived: Lived) -> tuple[Life, Observer]:
        """The same of two messages; what one call covers another one need not.

        What comes again may do so in any order, as if it waited for its own time; that is tried last.
        """
        covers = self.holds(Condition.ACK_COVERS_EARLIER, self.of_mode(lived.mode))
        life, observer = self._covered_once(lived.life) if covers else lived.life, self.who_hears(lived)
        if self._may_come_in_another_order(lived) and self.contradiction(life, observer) is not None:
            return life, self.who_hears(lived, {"redelivery_delay": True})
        return life, observer

    def heard(self, lived: Lived, configuration: Configuration) -> Hearing:
        """Return the hearing of two messages; a line that is free for one is free where it is of neither."""
        found = super().heard(lived, configuration)
        unheard = found.unheard
        if any(Event.RESEND in its for its in names_of_each(lived.life)):  # who writes one down writes all of them
            unheard = tuple(each - {Event.RESEND.value} for each in unheard)
        of_none = frozenset[str]().union(*unheard)
        together = Facts.SENT_TOGETHER in lived.facts
        return dataclasses.replace(found, unheard=(of_none, *unheard), together=together, settles=False)

    def facts(self, lived: Lived) -> frozenset[Fact]:
        """The same of two messages."""
        return super().facts(lived) | {Fact.PAIRED}

    def _covered_once(self, life: Life) -> Life:
        """Where a call came after one that was not of the same message, it may have had nothing to acknowledge."""
        signs, called = list[Sign](), 0
        for sign in (each.sign for each in life.heard):
            signs.append(sign.if_possible() if self.covers(sign) and called & ~sign.of else sign)
            called |= sign.of if sign.name == Event.ACKNOWLEDGE else 0
        return life.with_signs(signs)

    def _may_come_in_another_order(self, lived: Lived) -> bool:
        """Return whether both came again, an application gave back, or several sessions sent them.

        "Redelivered messages do not have to be delivered in exactly their original delivery order" (JMS recover).
        """
        signs = self._recording.signs
        rows = (signs[each.sign.name] for each in lived.life.heard if each.sign.certainty is not Certainty.PERHAPS)
        gave_back = any(row.gives_back or (row.line == Event.FAILED and row.side is Side.CONSUMER) for row in rows)
        both_again = all(names[DELIVERED_SOMEHOW] > 1 for names in names_of_each(lived.life))
        return both_again or gave_back or Facts.OF_SEVERAL_SENDERS in lived.facts


def _with_two_others(lived: Lived) -> Lived:
    """Return ``lived`` with two consumers in place of the one that got no message."""
    number = len(lived.consumers)
    heard, places = list[Heard](), list[int]()
    for place, each in enumerate(lived.life.heard):
        places.append(len(heard))
        certain = places[place - each.reach]
        heard.append(dataclasses.replace(each, reach=len(heard) - certain))
        if each.sign.consumer == number:
            other = dataclasses.replace(each.sign, consumer=number + 1, certainty=Certainty.PERHAPS)
            heard.append(Heard(other, each.lane, len(heard) - certain))
    return dataclasses.replace(lived, life=Life(tuple(heard), lived.life.at_rest)).with_others()
