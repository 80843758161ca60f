"""The story of a message as values: its anomalies and their causes, its lines, the faults beside it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any

from ackfsm.history.format import Event
from ackfsm.showing.views.history.excuses import FaultSpan
from ackfsm.showing.views.history.moments import Moment
from ackfsm.showing.views.history.plain import fields_as_json, plain
from ackfsm.terms import Anomaly, Configuration, Verdict
from ackfsm.verify import Contradicted


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What explains an anomaly: the name that ``verify`` gives it, and the line and row that tell it, if one does."""

    name: str
    t: int | None = None
    line: int | None = None
    process: str | None = None
    row: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return fields_as_json(self, row=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One anomaly of a message, and the decision on it.

    Attributes:
        anomaly: which.
        allowed: whether it is allowed; ``None`` where that is open.
        unexplained: whether nothing explains it; ``None`` where no model decides it.
        by_kind: whether it is judged by what the configuration allows in any number.
        doubted: why it may come from the recording; ``None`` if it does not.
        transaction: the torn transaction.
        causes: what explains it.
    """

    anomaly: Anomaly
    allowed: bool | None
    unexplained: bool | None
    by_kind: bool = False
    doubted: str | None = None
    transaction: str | None = None
    causes: tuple[Cause, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return fields_as_json(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One message of a story.

    Attributes:
        message, queue: its id, and its queue, if a line names one.
        verdict: the one on the message.
        anomalies: what was found of it.
        impossible: where it stops to be a run of the model; ``None`` if it is one.
        held_against: the other message against which what is impossible is held; ``None`` if it is this one.
        undecided: why the model decided nothing of it, a clause; ``None`` if it did.
        configured: whether a configuration is known to judge it by.
        moments: the lines that tell of it, in the order in which they are judged.
        drained: the moment when its queue was last seen empty, if that was after its last send.
        unread: whether lines could not be read, one of which may tell of it.
    """

    message: str
    queue: str | None
    verdict: Verdict
    anomalies: tuple[Found, ...]
    impossible: Contradicted | None
    held_against: str | None = None
    undecided: str | None
    configured: bool
    moments: tuple[Moment, ...]
    drained: Moment | None
    unread: bool = False

    def of(self, *events: Event) -> tuple[Moment, ...]:
        """Its moments of these events."""
        return tuple(each for each in self.moments if each.event in events)

    @property
    def own(self) -> tuple[Moment, ...]:
        """Its moments that name it."""
        return tuple(each for each in self.moments if self.message in each.of)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return fields_as_json(self, configured=None, moments=None, unread=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The story of one message, and of a second one that it has to be seen beside, if there is one.

    Attributes:
        history: where it was read from.
        imported: whether lines are events of an import, and not lines of the log that has this name.
        begun: the time of the first line of the history, nanoseconds.
        chapters: the message, and perhaps another one.
        moments: the lines that tell of any of them, in the order in which they are judged.
        faults: every fault of the history, and what it has to do with the first message.
        configuration: what the message is judged by; ``None`` if none is known.
        would_explain: the faults that nobody recorded and that may explain it, as ``--faults any`` may assume them;
            none if that was not found out.
        why_together: why the second message stands beside the first, a clause; empty without one.
    """

    history: str
    begun: int
    chapters: tuple[Chapter, ...]
    moments: tuple[Moment, ...]
    faults: tuple[FaultSpan, ...]
    configuration: Configuration | None
    would_explain: tuple[str, ...] = ()
    why_together: str = ""
    imported: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on the first message."""
        return self.chapters[0].verdict

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "history": self.history,
            "begun": self.begun,
            "config": None if self.configuration is None else self.configuration.as_dict(),
            "verdict": self.verdict.value,
            "messages": plain(self.chapters),
            "why_together": self.why_together or None,
            "moments": plain(self.moments),
            "faults": plain(self.faults),
            "would_explain": list(self.would_explain),
        }


class Pending(StrEnum):
    """What may be open at a time: it has begun, and its end has not come."""

    SEND = "send without an answer"
    MESSAGE = "message not yet delivered"
    DELIVERY = "delivery not yet processed"
    TRANSACTION = "transaction not ended"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The things of one kind that were not over at some time: their number, and the first of them since when.

    Attributes:
        what: the kind.
        count: how many.
        first: the ids or names of the first, each with the time and line that tells of it.
    """

    what: Pending
    count: int
    first: tuple[tuple[str, int, int], ...]

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        first = [{"name": name, "t": t, "line": line} for name, t, line in self.first]
        return {**fields_as_json(self), "first": first}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The moments around some time, and the open things then.

    Attributes:
        history, begun: as those of a story.
        at: the time, nanoseconds.
        verdict: the one on the history.
        open: what was not over.
        faults: those that were there.
        before, after: the last lines until then, and the first ones after it.
    """

    history: str
    begun: int
    at: int
    verdict: Verdict
    open: tuple[Open, ...]
    faults: tuple[FaultSpan, ...]
    before: tuple[Moment, ...]
    after: tuple[Moment, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return fields_as_json(self)
