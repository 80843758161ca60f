"""Decides the lives of pairs of messages, with observers of the network of two."""

from __future__ import annotations

import dataclasses
from typing import Final

from ackfsm.history_format import Event
from ackfsm.tables import Certainty, Fact, Of, Side, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Configuration
from ackfsm.verify.conformance.life import Heard, Life
from ackfsm.verify.conformance.lives import Facts, Lived
from ackfsm.verify.conformance.messages import Decision, Judge, names_of_each
from ackfsm.verify.conformance.observer import Hearing, Observer, TooManyStatesError
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import AT_REST, DELIVERED_SOMEHOW, Sign

__all__ = ["PairJudge"]

_MOST_CONSUMERS: Final = 3
"""More of them in the life of a pair make a network that no search ends in."""

_MOST_STATES: Final = 250_000
"""States that the search for all pairs of a history may meet: some seconds.  What was searched for one pair is not kept
when memory is full."""

_MOST_OF_THE_URGENT: Final = 150_000

_TOO_MANY: Final = "two messages may be in too many states"

_OUTCOMES_OF_CALLS: Final = (Event.CONFIRMED.value, Event.IN_DOUBT.value)

_COMMITS: Final = (Event.COMMITTED.value, Event.COMMIT_IN_DOUBT.value)


class PairJudge(Judge):
    """Decides lives of pairs: each sign says of which of the two it is, or of both."""

    explaining = frozenset()

    def __init__(
        self, specification: Specification, configuration: Configuration, untold: frozenset[str], urgent: int
    ) -> None:
        """The first pairs, as many as are ``urgent``, leave something of what is affordable for the others."""
        signs = specification.recording.signs.values()
        journal = {row.name for row in signs for each in row.free if Fact.NEVER_TOLD in each.facts}
        super().__init__(specification, configuration, untold | journal)
        self._urgent = urgent
        self._of_none = frozenset({AT_REST, Event.COMMIT.value, *journal})
        """Signs of what is of no message, and is free for both if it is for one."""

    def turn(self, lived: Lived) -> tuple[int, ...]:
        """Urgent ones first, then short ones, of which the most are affordable."""
        return (lived.message,) if lived.message < self._urgent else (self._urgent, len(lived.life.heard))

    def decide(self, lived: Lived) -> Decision:
        """Whether ``lived`` is a run of the model of two messages."""
        if len(lived.consumers) > _MOST_CONSUMERS:
            return Decision(None, f"more than {_MOST_CONSUMERS} consumers had to do with two messages")
        if any(_times(lived.life, Event.RESEND, of) > 1 for of in (1, 2)):
            return Decision(None, "a message was sent more than twice, and the model has two copies")
        if self.states > (_MOST_OF_THE_URGENT if lived.message < self._urgent else _MOST_STATES):
            return Decision(None, _TOO_MANY)
        try:
            return self._decide(lived)
        except TooManyStatesError:
            return self._decide_alone(lived)

    def _decide_alone(self, lived: Lived) -> Decision:
        """The same with all memory for this pair."""
        self.forget()
        try:
            return self._decide(lived)
        except TooManyStatesError:
            self.forget()
            return Decision(None, _TOO_MANY)

    def _decide(self, lived: Lived) -> Decision:
        stop = self.contradiction(*self.hearing(lived))
        two_others = OTHERS in lived.consumers and Facts.MAY_BE_SHARED in lived.facts
        if stop is not None and two_others and self.contradiction(*self.hearing(_with_two_others(lived))) is None:
            return Decision(None)
        return Decision(stop)

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
        """The same of two messages.

        An outcome of a send that nobody answers says nothing of when another one may begin.
        """
        found = super().heard(lived, configuration)
        names = names_of_each(lived.life)
        returns = () if self.holds(Condition.CONFIRMS_PLAIN_SENDS, configuration) else _OUTCOMES_OF_CALLS
        unheard = [each.union(returns) for each in found.unheard]
        if any(Event.RESEND in its for its in names):  # who writes one down writes all of them
            unheard = [each - {Event.RESEND.value} for each in unheard]
        of_none = frozenset[str]().union(*(each & self._of_none for each in unheard), *map(self._unanswered, names))
        together = Facts.SENT_TOGETHER in lived.facts
        return dataclasses.replace(found, unheard=(of_none, *unheard), together=together, settles=False)

    def _covered_once(self, life: Life) -> Life:
        """Where a call came after one that was not of the same message, it may have had nothing to acknowledge."""
        signs, called = list[Sign](), 0
        for sign in (each.sign for each in life.heard):
            signs.append(sign.if_possible() if self.covers(sign) and called & ~sign.of else sign)
            called |= sign.of if sign.name == Event.ACKNOWLEDGE else 0
        return life.with_signs(signs)

    def _may_come_in_another_order(self, lived: Lived) -> bool:
        """Whether both messages came again, an application gave back what it had, or several sessions sent them.

        "Redelivered messages do not have to be delivered in exactly their original delivery order" (JMS recover).
        """
        names = {each.sign.name for each in lived.life.heard if each.sign.certainty is not Certainty.PERHAPS}
        both_again = all(_times(lived.life, DELIVERED_SOMEHOW, of) > 1 for of in (1, 2))
        return both_again or any(self._gives_back(name) for name in names) or Facts.OF_SEVERAL_SENDERS in lived.facts

    def _unanswered(self, names: frozenset[str]) -> frozenset[str]:
        """The answers to commits of which one was not written down."""
        found = set[str]()
        for side in (Side.PRODUCER, Side.CONSUMER):
            rows = [row for row in self._recording.signs.values() if row.side is side and row.of is Of.TRANSACTION]
            answers = {row.name for row in rows if row.line in _COMMITS}
            called = any(row.is_call and row.name in names for row in rows)
            found |= answers if called and not names & answers else set()
        return frozenset(found)

    def _gives_back(self, name: str) -> bool:
        """Whether an application does it to have its messages again."""
        row = self._recording.signs[name]
        told = row.line in {Event.RECOVER, Event.FAILED, Event.ROLLBACK} or (row.line == Event.CLOSE and row.gives_back)
        return told and row.side is Side.CONSUMER


def _times(life: Life, name: str, of: int) -> int:
    return sum(each.sign.name == name and bool(each.sign.of & of) for each in life.heard)


def _with_two_others(lived: Lived) -> Lived:
    """The same with two consumers for those that no message was handed to: each may have been at another one."""
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
