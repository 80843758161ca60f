"""Decides the lives of pairs of messages, with observers of the network of two."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.history_format import Event
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Configuration
from ackfsm.verify.conformance.life import Heard, Life
from ackfsm.verify.conformance.lives import Facts, Lived
from ackfsm.verify.conformance.messages import OUTCOMES_OF_CALLS, Decision, Judge
from ackfsm.verify.conformance.observer import Observer, TooManyStatesError
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import ACKNOWLEDGING, DELIVERED_SOMEHOW, Certainty, of_consumer

__all__ = ["PairJudge"]

_MOST_CONSUMERS: Final = 3
"""More of them in the life of a pair make a network that no search ends in."""

_MOST_STATES: Final = 250_000
"""States that the search for all pairs of a history may meet: some seconds.  What was searched for one pair is not kept
when memory is full."""

_MOST_OF_THE_URGENT: Final = 150_000

_TOO_MANY: Final = "two messages may be in too many states"

_JOURNAL: Final = frozenset({Event.JOURNAL_WRITTEN.value, Event.JOURNAL_SYNCED.value})

_GIVING_BACK: Final = frozenset(
    {Event.RECOVER.value, Event.FAILED.value, *map(of_consumer, (Event.ROLLBACK, Event.CLOSE))}
)
"""What a consumer does to have its messages again."""

_COMMITS: Final = tuple(
    (name(Event.COMMIT), frozenset({name(Event.COMMITTED), name(Event.COMMIT_IN_DOUBT)})) for name in (str, of_consumer)
)
"""A call of commit, as the producer's and as the consumer's, and the answers to it."""


class PairJudge(Judge):
    """Decides lives of pairs: each sign says of which of the two it is, or of both."""

    def __init__(
        self, specification: Specification, configuration: Configuration, untold: frozenset[str], urgent: int
    ) -> None:
        """The first pairs, as many as are ``urgent``, leave something of what is affordable for the others."""
        super().__init__(specification, configuration, untold)
        self._urgent = urgent

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

    def life(self, lived: Lived, *, rejected_as_told: bool = False) -> Life:
        """The same as of one message, but what one call covers another one need not."""
        life = super().life(lived, rejected_as_told=rejected_as_told)
        return _covered_once(life) if self.holds(Condition.ACK_COVERS_EARLIER, self._of_mode(lived.mode)) else life

    def _decide(self, lived: Lived) -> Decision:
        stop = self.contradiction(*self.hearing(lived))
        two_others = OTHERS in lived.consumers and Facts.MAY_BE_SHARED in lived.facts
        if stop is not None and two_others and self.contradiction(*self.hearing(_with_two_others(lived))) is None:
            return Decision(None)
        return Decision(stop)

    def otherwise(self, lived: Lived, life: Life) -> list[Mapping[str, bool]]:
        """The same as of one message; and what comes again may do so in any order, as if it waited for its own time."""
        found = super().otherwise(lived, life)
        in_any_order = [{**each, "redelivery_delay": True} for each in found]
        return [*found, *in_any_order] if _may_come_in_another_order(lived) else found

    def who_hears(self, life: Life, lived: Lived, settings: Mapping[str, bool] = MappingProxyType({})) -> Observer:
        """The same of two messages."""
        names = [frozenset(each.sign.name for each in life.heard if each.sign.of & of) for of in (1, 2)]
        own = self._of_message(lived, names[0] | names[1])
        configuration = dataclasses.replace(own, **settings)  # type: ignore[arg-type]
        unheard = [_JOURNAL | self._unheard(lived, its, configuration) for its in names]
        if any(Event.RESEND in its for its in names):  # who writes one down writes all of them
            unheard = [each - {Event.RESEND.value} for each in unheard]
        unheard = [each | _late(its) | self._returns(configuration) for each, its in zip(unheard, names, strict=True)]
        common = _JOURNAL | {sign for its in names for sign in _unanswered(its)}
        if Event.COMMIT in unheard[0] | unheard[1]:
            common |= {Event.COMMIT.value}
        return self._observer_of(configuration, lived, common, *unheard)

    def _returns(self, configuration: Configuration) -> frozenset[str]:
        """The outcomes of sends that nobody answers, which say nothing of when another one may begin."""
        return frozenset() if self.holds(Condition.CONFIRMS_PLAIN_SENDS, configuration) else OUTCOMES_OF_CALLS


def _covered_once(life: Life) -> Life:
    """Where a call came after one that was not of the same message, it may have had nothing to acknowledge."""
    heard, called = list[Heard](), 0
    for each in life.heard:
        sign = each.sign
        if sign.name in ACKNOWLEDGING and called & ~sign.of and sign.certainty is Certainty.CERTAIN:
            sign = dataclasses.replace(sign, certainty=Certainty.IF_POSSIBLE)
        if sign.name == Event.ACKNOWLEDGE:
            called |= sign.of
        heard.append(dataclasses.replace(each, sign=sign))
    return Life(tuple(heard), life.at_rest)


def _may_come_in_another_order(lived: Lived) -> bool:
    """Whether both messages came again, an application gave back what it had, or several sessions sent them.

    "Redelivered messages do not have to be delivered in exactly their original delivery order" (JMS Session.recover).
    """
    names = {each.sign.name for each in lived.life.heard if each.sign.certainty is not Certainty.PERHAPS}
    both_again = all(_times(lived.life, DELIVERED_SOMEHOW, of) > 1 for of in (1, 2))
    return both_again or bool(names & _GIVING_BACK) or Facts.OF_SEVERAL_SENDERS in lived.facts


def _late(names: frozenset[str]) -> frozenset[str]:
    """The answer that may have come when the call had failed already, while its session went on."""
    failed, answered = Event.ACK_IN_DOUBT.value, Event.ACKNOWLEDGED.value
    return frozenset({answered}) if failed in names and answered not in names else frozenset()


def _times(life: Life, name: str, of: int) -> int:
    return sum(each.sign.name == name and bool(each.sign.of & of) for each in life.heard)


def _unanswered(names: frozenset[str]) -> Iterator[str]:
    """The answers to commits of which one was not written down."""
    for call, answers in _COMMITS:
        if call in names and not names & answers:
            yield from answers


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
