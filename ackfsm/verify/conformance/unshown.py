"""Messages that are no run of the model, and may only seem so as the source of the history cannot show everything.

Such a message is held to the model once more, with all hidden that the source cannot show: what may have happened
without a line.  What is no run then is none, whatever happened unseen; of the others nothing is decided.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import Events
from ackfsm.history.format import Event
from ackfsm.tables import Recording, Specification, When
from ackfsm.terms import Configuration, Fault
from ackfsm.verify.conformance.life import Life
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance, Judge
from ackfsm.verify.conformance.observer import Hearing, Observer
from ackfsm.verify.conformance.tokens import OTHERS
from ackfsm.verify.context.signs import DELIVERED_SOMEHOW
from ackfsm.verify.counting.shown import OF_TRANSACTIONS

_MOST_LIVES: Final = 500
"""So many different lives are looked at; of the others nothing is decided."""

_NO_MATTER: Final = frozenset(
    {Event.JOURNAL_WRITTEN, Event.JOURNAL_SYNCED, Event.WAITING, Event.DEPTH, Event.DRAINED, Event.RECOVERED}
    | {"delivery_count", "delivery_mode", "position", "queue"}
)
"""What the model hears nothing of, hides by itself, or waits for."""

_EVERYTHING: Final = OF_TRANSACTIONS | {Event.SEND, Event.DELIVERED, "session", "scope"}
"""Without these it is not known which lines are of one message, or of one transaction: so nothing is decided."""


def matters_to_the_model(missing: frozenset[str]) -> frozenset[str]:
    """What of all that is ``missing`` a message may need to be a run."""
    return missing - {str(each) for each in _NO_MATTER}


def may_be_runs(  # noqa: PLR0913, PLR0917 - what was decided, and by what
    messages: Ints,
    decided: Conformance,
    events: Events,
    specification: Specification,
    configuration: Configuration,
    missing: frozenset[str],
) -> Ints:
    """Return the ``messages``, no runs as recorded, that are runs with some ``missing`` events, or may be."""
    missing = matters_to_the_model(missing)
    if not missing or not len(messages):
        return messages[:0]
    if missing & {str(each) for each in _EVERYTHING}:
        return messages
    judge = _Lenient(specification, configuration, events, missing)
    known: dict[tuple[Life, int, int, int], bool] = {}
    return np.array([each for each in messages.tolist() if _may_be(each, decided, judge, known)], np.int64)


def _may_be(message: int, decided: Conformance, judge: _Lenient, known: dict[tuple[Life, int, int, int], bool]) -> bool:
    for form in decided.forms(message):
        for lived in _with_others(form, decided):
            if len(known) >= _MOST_LIVES:
                return True
            key = lived.life, int(lived.facts), lived.mode, len(lived.consumers)
            if key not in known:
                known[key] = judge.decide(lived).contradiction is None
            if known[key]:
                return True
    return False


def _with_others(lived: Lived, decided: Conformance) -> Iterator[Lived]:
    """Also with another consumer of its queue, which may have had the message without a line."""
    yield lived
    if OTHERS not in lived.consumers and decided.recorded.others(lived):
        yield lived.with_others()


_SESSIONS_END: Final = frozenset({Event.CLOSE, Event.RECOVER, Event.FAULT, "error"})

_LAST_WORDS: Final = frozenset({Event.CONFIRMED, Event.IN_DOUBT, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT})
"""What a process may have heard without writing it down, if it could have died."""


def _signs_of(missing: frozenset[str], recording: Recording) -> frozenset[str]:
    """The signs of what may have happened unseen."""
    lines = {*missing}
    if Event.FAULT in missing:
        lines |= {*_LAST_WORDS, "error"}
    if Event.DEAD_LETTERED in missing:  # what was told so had expired, or an application had rejected it
        lines |= {Event.EXPIRED, Event.FAILED}
    found = {row.name for row in recording.signs.values() if row.line in lines or row.has & lines}
    if missing & {str(each) for each in _SESSIONS_END}:  # what an application was doing it leaves unfinished
        found |= {row.name for row in recording.signs.values() if row.gives_back or row.when is When.LATE}
    return frozenset(found | ({Fault.REJECTION.value} if Event.REJECTED in missing else set()))


_SETTING: Final[Mapping[str, str]] = MappingProxyType(
    {Event.EXPIRED: Event.EXPIRED, Event.DEAD_LETTERED: Event.EXPIRED, Event.RESEND: Event.RESEND}
)
"""What a source may be unable to show, and the line whose settings go with it."""


class _Lenient(Judge):
    """Decides lives, with all hidden that the source of a history cannot show."""

    def __init__(
        self, specification: Specification, configuration: Configuration, events: Events, missing: frozenset[str]
    ) -> None:
        super().__init__(specification, configuration, events)
        self._missing = missing
        self._unshown = _signs_of(missing, specification.recording)

    def hearing(self, lived: Lived) -> tuple[Life, Observer]:
        """A flag that is not shown may be set or not."""
        life, observer = super().hearing(lived)
        if "redelivered" in self._missing:
            names = {
                row.name: DELIVERED_SOMEHOW for row in self._recording.signs.values() if row.line == Event.DELIVERED
            }
            signs = (each.sign for each in life.heard)
            life = life.with_signs(dataclasses.replace(sign, name=names.get(sign.name, sign.name)) for sign in signs)
        return life, observer

    def configuration_of(self, lived: Lived, unseen: Collection[str] = ()) -> Configuration:
        """Return the configuration of a message that had all events that the source cannot show."""
        unshown = {_SETTING[event] for event in self._missing & _SETTING.keys()}
        return super().configuration_of(lived, unshown.union(unseen))

    def heard(self, lived: Lived, configuration: Configuration) -> Hearing:
        """Return the hearing in which events that the source cannot show are silent."""
        return dataclasses.replace(super().heard(lived, configuration), unseen=self._unshown)
