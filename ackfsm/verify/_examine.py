"""Find the anomalies of a history: expand, fold, count."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration, Fault, ListenerException
from ackfsm.verify._actions import given_back_beside, inferred_actions
from ackfsm.verify._arrays import Ints, States
from ackfsm.verify._clocks import Clocks, aligned
from ackfsm.verify._columns import Events
from ackfsm.verify._conformance import Conformance, acknowledges_by_library, conformance
from ackfsm.verify._count import count_regressions, over_delivered, reordered, torn_transactions, window_overruns
from ackfsm.verify._counters import COUNTERS, MESSAGES
from ackfsm.verify._expand import Stream, expand
from ackfsm.verify._explain import Explained, Explainer
from ackfsm.verify._explain_pairs import PairExplainer
from ackfsm.verify._fold import Machines, fold
from ackfsm.verify._format import ACKNOWLEDGE_TIMEOUT, Event
from ackfsm.verify._prefetch import prefetch_overruns
from ackfsm.verify._quiescence import Quiescence, quiescence_of
from ackfsm.verify._read import History
from ackfsm.verify._recording import came_early, silent_of, unless_early, unless_unrecorded, unless_unrecorded_again
from ackfsm.verify._rest import stuck
from ackfsm.verify._sends import Sends, sends_of
from ackfsm.verify._spelled import spelled_out
from ackfsm.verify._unrecorded import assumption_of
from ackfsm.verify._verdict import EXAMPLES, UNCONFIGURED, Finding, Findings, undrained
from ackfsm.verify._watch import folded_properties, machines_of, needs_configuration, prefetch_of, window_of

__all__ = ["Examined", "examine", "examined", "shown_anomalies", "with_stuck"]

_NOTHING: Ints = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Examination:
    """All that the counts of one history are taken from."""

    events: Events
    sends: Sends
    quiescence: Quiescence
    specification: Specification
    configuration: Configuration | None

    @property
    def not_at_rest(self) -> str | None:
        """Why some message cannot be judged at rest, if so."""
        return None if self.quiescence.judged.all() else undrained(self.quiescence.undrained)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """The messages or transactions that have an anomaly, by code, and why there may be more."""

    codes: Ints
    unknown: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """The findings of a history, with the messages behind them.

    Attributes:
        findings: what was counted.
        anomalies: of every anomaly of messages those that have it, by code.
        conformance: what was decided of each message; ``None`` where none was held to the model.
    """

    findings: Findings
    anomalies: Mapping[Anomaly, Ints]
    conformance: Conformance | None


def examine(  # noqa: PLR0913 - what is examined, and how
    history: History,
    specification: Specification,
    configuration: Configuration | None,
    *,
    skew: int | None = 0,
    tells_processed: bool = False,
    hold: bool = True,
    assumed: Collection[Fault] = (),
) -> Findings:
    """Count every anomaly that ``history`` can show.

    Args:
        history: what :func:`read` gave.
        specification: the tables, whose properties define the anomalies of a single message.
        configuration: what the history was recorded under; without one, the counts that depend on it are unknown.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.
        tells_processed: whether it is certain that every ``processed`` was recorded, even if there is none.
        hold: whether to hold each message to the model; not where sessions have modes that no header tells.
        assumed: the faults that may have happened although nobody recorded them.
    """
    events, clocks = aligned(history.events, skew)
    findings = examined(
        dataclasses.replace(history, events=events),
        specification,
        configuration,
        clocks,
        skew=clocks.latest if skew is None else skew,
        tells_processed=tells_processed,
        hold=hold,
        assumed=assumed,
    ).findings
    return with_stuck(findings, history, specification)


def examined(  # noqa: PLR0913 - what is examined, and how
    history: History,
    specification: Specification,
    configuration: Configuration | None,
    clocks: Clocks,
    *,
    skew: int,
    tells_processed: bool = False,
    hold: bool = True,
    assumed: Collection[Fault] = (),
) -> Examined:
    """As :func:`examine`, of events in the order of clocks that were put right as ``clocks`` says."""
    recorded = history.events
    events = spelled_out(recorded)
    this = _Examination(events, sends_of(events), quiescence_of(events), specification, configuration)
    machines, stream = machines_of(specification, configuration), expand(events, this.sends)
    states = _final_states(machines, stream, events.count_of("message"))
    anomalies = _folded(this, machines, states) | {anomaly: count(this) for anomaly, count in _COUNTS.items()}
    counted = {anomaly: _finding(this, anomaly, anomalies[anomaly]) for anomaly in Anomaly if anomaly in anomalies}
    decided, explanation, unrecorded, early = None, None, None, came_early(events)
    if configuration is not None and hold:
        decided = _conformance(this, configuration, skew, tells_processed=tells_processed)
        held = {name: count.codes for name, count in anomalies.items() if name in {*machines.names, *_OF_MESSAGES}}
        doubted = early.messages if early else _NOTHING
        contradicted = np.setdiff1d(decided.contradicted(), doubted)
        unrecorded = assumption_of(decided, events, contradicted, assumed)
        rests_on = unrecorded if unrecorded is not None and unrecorded.summary.assumed else None
        explainer = Explainer(decided, events, machines, stream, held, contradicted, rests_on)
        explanation, by_anomaly = explainer.explained()
        if rests_on is None:  # what nobody recorded is assumed for one message, not for two
            between = held | {name: anomalies[name].codes for name in _OF_PAIRS}
            pairs = PairExplainer(decided, events, machines, stream, between, doubted, specification, configuration)
            explanation, by_anomaly = pairs.explained(explanation, by_anomaly)
        open_ends = _open_ends(this, anomalies)
        counted |= {
            name: _with(counted[name], each, events) for name, each in by_anomaly.items() if name not in open_ends
        }
    if early is not None and counted[Anomaly.PHANTOM].found:
        counted[Anomaly.PHANTOM] = unless_early(counted[Anomaly.PHANTOM], early, skew)
    if not tells_processed:
        counted |= _unrecorded(events, counted, anomalies)
    ends = specification.guarantees.monitors
    counts = {
        name: int(machines.means(name, states, this.quiescence.judged).sum())
        for name in (*(counter.name for counter in COUNTERS), *ends)
    }
    findings = Findings(
        history=str(history.path),
        engine="local",
        configuration=configuration,
        events=len(recorded),
        messages=counts.pop(MESSAGES),
        parse_errors=history.unreadable_count,
        unreadable=history.unreadable,
        faults=events.faults(),
        of_calls=tuple(fault for fault in events.told_faults() if fault not in set(Fault)),
        actions=inferred_actions(events),
        anomalies=MappingProxyType(counted),
        ends=MappingProxyType({name: counts.pop(name) for name in ends}),
        counters=MappingProxyType(counts),
        skew=skew,
        offsets=clocks.offsets,
        explanation=explanation,
        broken=_broken_connections(events) if configuration else (),
        given_back_beside=configuration is not None
        and given_back_beside(events, thrown=configuration.listener_exception is ListenerException.REDELIVER),
        unrecorded=unrecorded.summary if unrecorded else None,
    )
    of_messages: dict[Anomaly, Ints] = {
        name: count.codes for name, count in anomalies.items() if name is not Anomaly.TORN_TRANSACTION
    }
    return Examined(findings, MappingProxyType(of_messages), decided)


def with_stuck(findings: Findings, history: History, specification: Specification) -> Findings:
    """``findings`` with how much is ``stuck`` (:func:`ackfsm.verify._rest.stuck`), if ``history`` tells of what rests.

    Its events are in the order of time as it was told.
    """
    if not history.remarks:
        return findings
    configuration = findings.configuration
    found = stuck(
        history.events,
        history.remarks,
        by_library=configuration is not None and acknowledges_by_library(specification, configuration),
        needs_every_line=specification.properties[Anomaly.STUCK].needs_every_line,
    )
    whole = {**findings.anomalies, Anomaly.STUCK: found}
    return dataclasses.replace(
        findings, anomalies=MappingProxyType({anomaly: whole[anomaly] for anomaly in Anomaly if anomaly in whole})
    )


def _open_ends(this: _Examination, counts: Mapping[Anomaly, _Count]) -> frozenset[Anomaly]:
    """The anomalies that are concluded from the end of a history in which not all of their messages came to rest.

    The model can tell nothing of such a message, which may go on; what the kind is allowed decides.
    """
    definitions = this.specification.properties
    at_end = (name for name in counts if name in definitions and definitions[name].rest == "end")
    return frozenset(
        name
        for name in at_end
        if any(monitor.marked_at_rest for monitor in definitions[name].monitors)
        and not this.quiescence.judged[counts[name].codes].all()
    )


def _broken_connections(events: Events) -> tuple[Fault, ...]:
    """The faults that a ``close`` with an ``error`` tells of, by who had it, or an answer that is missing."""
    closes = events.places(Event.CLOSE)
    broken = np.unique(events.process[closes[events.errs[closes] == 1]])
    sides = {
        Fault.PRODUCER_LINK_LOSS: events.places(Event.SEND, Event.RESEND),
        Fault.CONSUMER_LINK_LOSS: events.places(Event.DELIVERED),
    }
    seen = {fault for fault, rows in sides.items() if np.isin(broken, events.process[rows]).any()}
    if ACKNOWLEDGE_TIMEOUT in events.told_faults():
        seen.add(Fault.CONSUMER_LINK_LOSS)
    return tuple(fault for fault in sides if fault in seen)


def _conformance(this: _Examination, configuration: Configuration, skew: int, *, tells_processed: bool) -> Conformance:
    silent = None if tells_processed else silent_of(this.events)
    processes = silent[0].processes if silent else ()
    return conformance(this.events, this.quiescence, this.specification, configuration, processes, skew)


def _with(finding: Finding, explained: Explained, events: Events) -> Finding:
    return dataclasses.replace(
        finding,
        unexplained=len(explained.unexplained),
        undecided=explained.undecided,
        by_kind=explained.by_kind,
        unexplained_examples=_examples(_names(events, finding.anomaly), explained.unexplained),
        causes=MappingProxyType(explained.causes),
    )


_OF_PAIRS = (Anomaly.REORDER, Anomaly.TORN_TRANSACTION)
"""What two messages show, and is decided by the model of two."""

_OF_MESSAGES = frozenset({Anomaly.OVER_DELIVERED})
"""What is counted without a machine, and decided by the model of one message."""


def _final_states(machines: Machines, stream: Stream, messages: int) -> States:
    """The states of every message; one that nothing was observed of is where it began."""
    states = np.tile(machines.initial, (messages, 1))
    starts = np.flatnonzero(np.diff(stream.message, prepend=-1))
    states[stream.message[starts]] = fold(machines, starts, stream.observable)
    return states


def _folded(this: _Examination, machines: Machines, states: States) -> dict[Anomaly, _Count]:
    return {
        anomaly: _Count(_NOTHING, UNCONFIGURED)
        if this.configuration is None and needs_configuration(definition)
        else _marked(this, machines, states, anomaly, definition.rest)
        for anomaly, definition in folded_properties(this.specification).items()
    }


def _marked(this: _Examination, machines: Machines, states: States, anomaly: Anomaly, rest: str) -> _Count:
    drained = rest == "drained"
    rested = this.quiescence.judged if drained else np.ones(len(states), bool)
    return _Count(np.flatnonzero(machines.means(anomaly, states, rested)), this.not_at_rest if drained else None)


def _torn(this: _Examination) -> _Count:
    codes, complete = torn_transactions(this.events, this.quiescence)
    return _Count(codes, None if complete else this.not_at_rest or "no `drained` follows a commit in doubt")


def _overrun(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    window = window_of(this.specification, this.configuration)
    return _Count(_NOTHING if window is None else window_overruns(this.events, this.sends, window))


def _over_prefetch(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    prefetch = prefetch_of(this.specification, this.configuration)
    return _Count(_NOTHING if prefetch is None else prefetch_overruns(this.events, prefetch))


def _over_delivered(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    return _Count(over_delivered(this.events, this.configuration.max_delivery_attempts))


_COUNTS: Mapping[Anomaly, Callable[[_Examination], _Count]] = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: _torn,
        Anomaly.REORDER: lambda this: _Count(reordered(this.events)),
        Anomaly.WINDOW_OVERRUN: _overrun,
        Anomaly.PREFETCH_OVERRUN: _over_prefetch,
        Anomaly.COUNT_REGRESSION: lambda this: _Count(count_regressions(this.events)),
        Anomaly.OVER_DELIVERED: _over_delivered,
    }
)
"""The anomalies that no machine of one message can see."""


def _unrecorded(
    events: Events, findings: Mapping[Anomaly, Finding], counts: Mapping[Anomaly, _Count]
) -> dict[Anomaly, Finding]:
    """What those who do not tell what they have processed may have to do with what was counted."""
    found = silent_of(events)
    if found is None or Anomaly.UNPROCESSED not in findings or Anomaly.REPROCESSED not in findings:
        return {}
    silent, taken = found
    unprocessed, reprocessed = counts[Anomaly.UNPROCESSED].codes, counts[Anomaly.REPROCESSED].codes
    times = np.bincount(events.message[events.places(Event.DELIVERED)])
    repeated = np.setdiff1d(taken[times[taken] > 1], reprocessed)
    doubted = len(np.intersect1d(unprocessed, taken))
    return {
        Anomaly.UNPROCESSED: unless_unrecorded(findings[Anomaly.UNPROCESSED], silent, doubted),
        Anomaly.REPROCESSED: unless_unrecorded_again(findings[Anomaly.REPROCESSED], silent, len(repeated)),
    }


def shown_anomalies(specification: Specification) -> tuple[Anomaly, ...]:
    """What a history can show."""
    counted = folded_properties(specification).keys() | _COUNTS.keys() | {Anomaly.STUCK}
    return tuple(anomaly for anomaly in Anomaly if anomaly in counted)


def _names(events: Events, anomaly: Anomaly) -> pa.Array:
    """The names of what ``anomaly`` is counted of."""
    return events.names["transaction" if anomaly is Anomaly.TORN_TRANSACTION else "message"]


def _finding(this: _Examination, anomaly: Anomaly, count: _Count) -> Finding:
    names = _names(this.events, anomaly)
    return Finding(
        anomaly=anomaly,
        found=len(count.codes),
        unknown=count.unknown,
        needs_every_line=this.specification.properties[anomaly].needs_every_line,
        examples=_examples(names, count.codes),
    )


def _examples(names: pa.Array, codes: Ints) -> tuple[str, ...]:
    """The first of the names, by code point."""
    named = pc.unique(names.take(pa.array(codes)))
    return tuple(named.take(pc.sort_indices(named)[:EXAMPLES]).to_pylist())
