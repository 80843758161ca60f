"""The findings in a history, before it is judged: the cases of each anomaly, and the unexplained ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ackfsm.history.lines import ParseError
from ackfsm.terms import Anomaly, Configuration, Fault
from ackfsm.verify.conformance.explain import Contradicted, Explanation
from ackfsm.verify.conformance.timeline import Unrecorded
from ackfsm.verify.words import queues_named

EXAMPLES = 100
"""How many ids an anomaly is reported with."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How often one anomaly is in a history.

    Attributes:
        anomaly: which.
        found: how many messages (of ``torn_transaction``: transactions) certainly have it.
        unknown: why there may be more, a clause; ``None`` if ``found`` is all.
        needs_every_line: whether it is concluded from the absence of an event, so that an unread line may refute it.
        examples: the first :data:`EXAMPLES` ids, by code point.
        unrecorded: whether it is unknown for want of what nobody recorded: nothing hangs on it where it is allowed.
        doubted: how many of ``found`` may be of the recording and not of the system (clocks, what is not told).
        doubt: why, a sentence with the remedy; without any ``doubted``, why there may be more than were found.
        unexplained: how many of ``found`` nothing explains that happened to their message; ``None`` if no message was
            held to the model for it.
        unexplained_examples: the first :data:`EXAMPLES` of those, by code point.
        undecided: how many of ``found`` are of messages of which the model decided nothing.
        by_kind: how many of ``found`` are judged by what their kind is allowed, as no pair of messages tells of them.
        causes: what explains the others, each with how many it explains, by name of the fault or action.
    """

    anomaly: Anomaly
    found: int
    unknown: str | None
    needs_every_line: bool
    examples: tuple[str, ...]
    unrecorded: bool = False
    doubted: int = 0
    doubt: str | None = None
    unexplained: int | None = None
    undecided: int = 0
    by_kind: int = 0
    unexplained_examples: tuple[str, ...] = ()
    causes: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def certain(self) -> int:
        """How many nothing but the system explains."""
        return self.found - self.doubted

    @property
    def count(self) -> int | None:
        """How often it is there; ``None`` where that is unknown."""
        return self.found if self.unknown is None else None

    @property
    def of_its_kind(self) -> bool:
        """Whether some that were found are judged by what their kind is allowed."""
        return self.found > 0 and (self.unexplained is None or (self.by_kind > 0 and not self.unexplained))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The counts of a history, not yet judged.

    Attributes:
        history: where it was read from.
        engine: what counted: ``local`` or ``spark``.
        configuration: what it was counted for; ``None`` if no configuration is known.
        events, messages: readable events; distinct messages that were sent.
        parse_errors, unreadable: the lines that are no events: how many, and the first few.
        faults: the kinds that were recorded, in the order of :class:`Fault`.
        of_calls: the kinds of faults of one call that were recorded; to the tables they are outcomes of it.
        broken: the faults that nobody recorded and clients saw: connections that broke; with a configuration alone.
        actions: what applications did of their own will that makes a broker deliver again (optional events).
        anomalies: every anomaly that a history can show, in the order of :class:`Anomaly`.
        ends: how many messages have each of the ends that exclude guarantees, by the name of its monitor.
        counters: what else a person may want to know, by name.
        skew: by how many nanoseconds the clocks of two processes may differ.
        offsets: nanoseconds that were added to the times of a process for that; of those that were shifted, by name.
        drifts: how many parts in a million its clock gained or lost beside; of those that drift, by name.
        explanation: what came of holding each message to the model; ``None`` without a configuration.
        given_back_beside: whether a consumer may have given back what it had while another one of its queue went on.
        unrecorded: what faults that nobody recorded explain or would explain; ``None`` if that was not asked.
        queues: the configurations of the queues that have one of their own, by name.
        parts: if there are such queues, the findings of each configuration, of which the others are the sums.
        ignored: the names of fields that the format does not have, of which nothing was read.
        unshown: the events and fields that its source cannot show, and that something hangs on.
        imported: whether it was made of a log of another format, so that its lines are events and not lines of that.
        cost: what it took to find them.
    """

    history: str
    engine: str
    configuration: Configuration | None
    events: int
    messages: int
    parse_errors: int
    unreadable: tuple[ParseError, ...]
    faults: tuple[Fault, ...]
    actions: tuple[str, ...]
    anomalies: Mapping[Anomaly, Finding]
    counters: Mapping[str, int]
    ends: Mapping[str, int] = dataclasses.field(default_factory=dict)
    skew: int = 0
    offsets: Mapping[str, int] = dataclasses.field(default_factory=dict)
    drifts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    explanation: Explanation | None = None
    broken: tuple[Fault, ...] = ()
    given_back_beside: bool = False
    of_calls: tuple[str, ...] = ()
    unrecorded: Unrecorded | None = None
    queues: Mapping[str, Configuration] = dataclasses.field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    ignored: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()
    imported: bool = False
    cost: Cost = dataclasses.field(default_factory=lambda: Cost(), compare=False)  # noqa: PLW0108 - it is defined below

    @property
    def each(self) -> tuple[Findings, ...]:
        """The findings of each configuration that judges messages."""
        return tuple(part.findings for part in self.parts) or (self,)

    @property
    def held(self) -> tuple[Explanation, ...]:
        """What came of holding messages to the model, and then pairs of them, as far as they were."""
        whole = self.explanation
        return () if whole is None else (whole,) if whole.pairs is None else (whole, whole.pairs)

    @property
    def contradicted(self) -> tuple[Contradicted, ...]:
        """The first messages, and pairs, that are no run of the model."""
        return tuple(example for each in self.held for example in each.examples)

    @property
    def assumed(self) -> tuple[Fault, ...]:
        """Return the faults that may have happened unrecorded."""
        return self.unrecorded.kinds if self.unrecorded is not None and self.unrecorded.assumed else ()

    @property
    def assumed_actions(self) -> tuple[str, ...]:
        """What these faults bring about."""
        return self.unrecorded.actions if self.unrecorded is not None and self.unrecorded.assumed else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processors that this process used: to examine a history, and of these to hold it to the model."""

    whole: float = 0.0
    conformance: float = 0.0

    @property
    def share(self) -> float | None:
        """What part holding messages to the model took; ``None`` if nothing was measured."""
        return self.conformance / self.whole if self.whole else None


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The findings of the messages of a history that are judged by one configuration.

    Attributes:
        queues: the queues that they are of, in the order of their names; "" is no queue.
        findings: what was found of them.
    """

    queues: tuple[str, ...]
    findings: Findings

    def __str__(self) -> str:
        if self.queues == ("",):
            return "without a queue"
        return f"queue{'s' if len(self.queues) > 1 else ''} {queues_named(self.queues)}"
