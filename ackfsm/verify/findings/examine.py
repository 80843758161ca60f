"""Find the anomalies of a history: expand, fold, count."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask, States
from ackfsm.history.clocks import Clocks, aligned
from ackfsm.history.columns import Events
from ackfsm.history.index import Index, Quiescence
from ackfsm.history.queues import Configurations, Share, configurations_of, in_several_shares, shares_of
from ackfsm.history.read import History
from ackfsm.history.spelled import spelled_out
from ackfsm.history.transactions import transactions_told_apart
from ackfsm.history_format import Event
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Anomaly, Configuration, Consumption, Fault, ListenerException, OutcomeScope
from ackfsm.verify.conformance.explain import Explained, Explainer
from ackfsm.verify.conformance.explain_pairs import PairExplainer
from ackfsm.verify.conformance.lives import Recorded
from ackfsm.verify.conformance.messages import (
    ENDS_WITH_THE_LAST,
    Conformance,
    acknowledges_by_library,
    conformance,
    in_mode,
)
from ackfsm.verify.conformance.unrecorded import assumption_of
from ackfsm.verify.conformance.unshown import matters_to_the_model, may_be_runs
from ackfsm.verify.context.actions import given_back_beside, inferred_actions
from ackfsm.verify.context.priorities import with_priorities
from ackfsm.verify.context.signs import Sign, Signs
from ackfsm.verify.counting.count import (
    Halved,
    count_regressions,
    halved_transactions,
    over_delivered,
    prefetch_overruns,
    reordered,
    torn_transactions,
    window_overruns,
)
from ackfsm.verify.counting.machines import Machines, fold
from ackfsm.verify.counting.observables import Stream, expand
from ackfsm.verify.counting.shown import Countable, cannot_show, countable, missing_events, ordered
from ackfsm.verify.counting.watch import (
    COUNTERS,
    MESSAGES,
    folded_properties,
    machines_of,
    needs_configuration,
    prefetch_of,
    window_of,
)
from ackfsm.verify.findings.decided import Decided
from ackfsm.verify.findings.findings import EXAMPLES, UNCONFIGURED, Cost, Finding, Findings, Part, undrained
from ackfsm.verify.findings.parts import together
from ackfsm.verify.findings.recording import (
    Silent,
    came_early,
    silent_of,
    unless_early,
    unless_unrecorded,
    unless_unrecorded_again,
)
from ackfsm.verify.findings.rest import Stuck, stuck

__all__ = [
    "Examined",
    "Outcome",
    "examine",
    "examined",
    "outcome_of",
    "shown_anomalies",
    "stuck_messages",
    "with_stuck",
]

_NOTHING: Ints = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Whole:
    """All of a history, whatever it is judged by.

    Attributes:
        within: for each message whether its sends are within a window.
        mixed: the transactions with messages that are judged by different configurations.
        unshown: what the source of the history cannot show.
    """

    history: History
    events: Index
    stream: Stream
    specification: Specification
    clocks: Clocks
    skew: int
    silent: tuple[Silent, Ints] | None
    within: Mask
    mixed: Ints
    unshown: Collection[str]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Examination:
    """All that the counts of one share of a history are taken from."""

    whole: _Whole
    share: Share

    @property
    def events(self) -> Index:
        return self.whole.events

    @property
    def quiescence(self) -> Quiescence:
        return self.events.quiescence

    @property
    def specification(self) -> Specification:
        return self.whole.specification

    @property
    def configuration(self) -> Configuration | None:
        return self.share.configuration

    @property
    def not_at_rest(self) -> str | None:
        """Why some message cannot be judged at rest, if so."""
        queues = self.quiescence.undrained(self.share.messages)
        return undrained(queues) if queues else None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """The messages or transactions that have an anomaly, by code, and why there may be more."""

    codes: Ints
    unknown: str | None = None
    unshown: bool = False
    """Whether it is unknown since the source cannot show it."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """The findings of a history, with the messages behind them.

    Attributes:
        findings: what was counted.
        anomalies: of every anomaly of messages those that have it, by code.
        held: what was decided of the messages of each configuration; none where none was held to the model.
        explainers: for each of these what says what was impossible of a message.
        events: the history as it was counted, every line spelled out.
        decided: what was decided of each message, for each configuration.
    """

    findings: Findings
    anomalies: Mapping[Anomaly, Ints]
    held: Sequence[Conformance]
    explainers: Sequence[Explainer]
    events: Index
    decided: Sequence[Decided]

    def not_runs(self) -> Ints:
        """The messages that are no run of the model, or of which that is undecided."""
        return np.concatenate([_NOTHING, *(_not_runs(each) for each in self.held)])

    def loose_pairs(self) -> Ints:
        """The pairs, two messages a row, that are no run of the model in the order of their lines."""
        pairs = [each.pairs.loose() for each in self.decided if each.pairs is not None]
        return np.concatenate([np.empty((0, 2), np.int64), *pairs])

    def settled(self, message: int, circumstances: Collection[Sign]) -> bool:
        """Whether ``message`` stays a run of the model, at rest, whatever of these signs follows in any number."""
        return any(each.held[message] and each.settled(message, circumstances) for each in self.held)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What examining a history came to.

    Attributes:
        findings: what was found.
        examined: what was examined for it.
        history: that, as it was told.
        events: its events in the order of clocks put right, and not spelled out.
    """

    findings: Findings
    examined: Examined
    history: History
    events: Events


def _not_runs(conformance: Conformance) -> Ints:
    return np.concatenate([conformance.contradicted(), *conformance.undecided().values()])


def examine(  # noqa: PLR0913 - what is examined, and how
    history: History,
    specification: Specification,
    configuration: Configurations | Configuration | None,
    *,
    skew: int | None = 0,
    tells_processed: bool = False,
    hold: bool = True,
    assumed: Collection[Fault] = (),
    unshown: Collection[str] | None = None,
) -> Findings:
    """Count every anomaly that ``history`` can show.

    Args:
        history: what :func:`read` gave.
        specification: the tables, whose properties define the anomalies of a single message.
        configuration: what the history was recorded under, or what each of its queues was; without one, the counts
            that depend on it are unknown.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.
        tells_processed: whether it is certain that every ``processed`` was recorded, even if there is none.
        hold: whether to hold each message to the model; not where sessions have modes that no header tells.
        assumed: the faults that may have happened although nobody recorded them.
        unshown: what the source of the history cannot show; ``None``: what its header says.
    """
    begun = time.process_time()
    findings = outcome_of(
        history,
        specification,
        configuration,
        skew=skew,
        tells_processed=tells_processed,
        hold=hold,
        assumed=assumed,
        unshown=unshown,
    ).findings
    return dataclasses.replace(findings, cost=dataclasses.replace(findings.cost, whole=time.process_time() - begun))


def outcome_of(  # noqa: PLR0913 - as :func:`examine`
    history: History,
    specification: Specification,
    configuration: Configurations | Configuration | None,
    *,
    skew: int | None = 0,
    tells_processed: bool = False,
    hold: bool = True,
    assumed: Collection[Fault] = (),
    unshown: Collection[str] | None = None,
) -> Outcome:
    """As :func:`examine`, with what the findings are of."""
    events, clocks = aligned(history.events, skew)
    found = examined(
        dataclasses.replace(history, events=events),
        specification,
        configuration,
        clocks,
        skew=clocks.latest if skew is None else skew,
        tells_processed=tells_processed,
        hold=hold,
        assumed=assumed,
        unshown=unshown,
    )
    return Outcome(with_stuck(found.findings, history, specification), found, history, transactions_told_apart(events))


def examined(  # noqa: PLR0913 - what is examined, and how
    history: History,
    specification: Specification,
    configuration: Configurations | Configuration | None,
    clocks: Clocks,
    *,
    skew: int,
    tells_processed: bool = False,
    hold: bool = True,
    assumed: Collection[Fault] = (),
    unshown: Collection[str] | None = None,
) -> Examined:
    """As :func:`examine`, of events in the order of clocks that were put right as ``clocks`` says."""
    configurations = configurations_of(configuration)
    told = with_priorities(Index.of(transactions_told_apart(history.events)), configurations, specification)
    shares = shares_of(configurations, told)
    events = spelled_out(told, _gives_back_up_to(shares, told))
    whole = _Whole(
        history=history,
        events=events,
        stream=expand(events),
        specification=specification,
        clocks=clocks,
        skew=skew,
        silent=None if tells_processed else silent_of(events),
        within=_within_windows(specification, shares, events),
        mixed=in_several_shares(shares, events),
        unshown=unshown if unshown is not None else history.header.cannot_show if history.header else (),
    )
    parts = [_examined_share(_Examination(whole, share), hold=hold, assumed=assumed) for share in shares]
    findings = [Part(share.queues, each.findings) for share, each in zip(shares, parts, strict=True)]
    return Examined(
        together(findings, configurations) if configurations.of_queues else parts[0].findings,
        MappingProxyType(
            {name: np.concatenate([each.anomalies[name] for each in parts]) for name in parts[0].anomalies}
        ),
        tuple(conformance for each in parts for conformance in each.held),
        tuple(explainer for each in parts for explainer in each.explainers),
        events,
        tuple(decided for each in parts for decided in each.decided),
    )


def _gives_back_up_to(shares: Sequence[Share], events: Events) -> Mask:
    """Of which messages a ``failed`` without a scope gives back all that its session had up to it."""
    found = np.zeros(events.count_of("message"), bool)
    for each in shares:
        if each.configuration is not None and each.configuration.outcome_scope is OutcomeScope.UP_TO:
            found |= each.messages
    return found


def _within_windows(specification: Specification, shares: Sequence[Share], events: Index) -> Mask:
    """A send that nobody answers, as its queue or its own mode has it, would be open for ever: it is in no window."""
    within, modes = np.zeros(events.count_of("message"), bool), events.mode_of
    for each in shares:
        if each.configuration is None:
            continue
        for mode in np.unique(modes[each.messages]).tolist():
            its = in_mode(specification, each.configuration, mode)
            if window_of(specification, its) is not None:
                within |= each.messages & (modes == mode)
    return within


def _examined_share(this: _Examination, *, hold: bool, assumed: Collection[Fault]) -> Examined:
    whole, events, specification, configuration = this.whole, this.events, this.specification, this.configuration
    machines = machines_of(specification, configuration)
    states = _final_states(machines, whole.stream, events.count_of("message"))
    anomalies = _folded(this, machines, states) | {anomaly: count(this) for anomaly, count in _COUNTS.items()}
    missing = missing_events(whole.unshown, specification, configuration)
    anomalies |= _as_far_as_shown(anomalies, countable(missing, machines, events, specification, configuration))
    counted = {anomaly: _finding(this, anomaly, anomalies[anomaly]) for anomaly in Anomaly if anomaly in anomalies}
    decided, explainer, explanation, unrecorded = None, None, None, None
    early = came_early(events, this.share.messages)
    pairs, settled, begun = None, dict[Anomaly, Explained](), time.process_time()
    if configuration is not None and hold:
        decided = _conformance(this, configuration)
        held = {name: count.codes for name, count in anomalies.items() if name in {*machines.names, *_OF_MESSAGES}}
        doubted = early.messages if early else _NOTHING
        contradicted = np.setdiff1d(decided.contradicted(), doubted)
        open_ = may_be_runs(contradicted, decided, events, specification, configuration, missing)
        unrecorded = assumption_of(decided, events, np.setdiff1d(contradicted, open_), assumed)
        rests_on = unrecorded if unrecorded is not None and unrecorded.summary.assumed else None
        unseen = {_may_explain(missing): open_} if len(open_) else {}
        explainer = Explainer(decided, events, machines, whole.stream, held, contradicted, rests_on, unseen)
        explanation, by_anomaly = explainer.explained()
        if rests_on is None and not matters_to_the_model(missing):  # what is unseen is thought of for one message
            between = held | {name: anomalies[name].codes for name in _OF_PAIRS}
            pairs = PairExplainer(
                decided,
                events,
                machines,
                whole.stream,
                between,
                doubted,
                specification,
                configuration,
                _halved(this, configuration, decided),
            )
            explanation, by_anomaly = pairs.explained(explanation, by_anomaly)
        by_anomaly = {**by_anomaly, **_mixed(this, anomalies, by_anomaly)}
        settled = {**by_anomaly, **_open_ends(this, anomalies, by_anomaly)}
        counted |= {name: _with(counted[name], each, events) for name, each in settled.items()}
    cost = Cost(conformance=time.process_time() - begun)
    if early is not None and counted[Anomaly.PHANTOM].found:
        counted[Anomaly.PHANTOM] = unless_early(counted[Anomaly.PHANTOM], early, whole.skew)
    doubts = _Doubts(doubted={} if early is None else {Anomaly.PHANTOM: early.messages})
    if whole.silent is not None and Event.PROCESSED not in missing:
        counted |= _unrecorded(this, whole.silent, counted, anomalies)
        doubts = _doubts_of_silence(this, whole.silent, anomalies, doubts)
    ends = specification.guarantees.monitors
    counts = {
        name: int((machines.means(name, states, this.quiescence.judged) & this.share.messages).sum())
        for name in (*(counter.name for counter in COUNTERS), *ends)
    }
    history = whole.history
    findings = Findings(
        history=str(history.path),
        engine="local",
        configuration=configuration,
        events=len(history.events),
        messages=counts.pop(MESSAGES),
        parse_errors=history.unreadable_count,
        unreadable=history.unreadable,
        ignored=history.ignored,
        faults=events.faults(),
        of_calls=tuple(fault for fault in events.told_faults() if fault not in set(Fault)),
        actions=inferred_actions(events),
        anomalies=MappingProxyType(counted),
        ends=MappingProxyType({name: counts.pop(name) for name in ends}),
        counters=MappingProxyType(counts),
        skew=whole.skew,
        offsets=whole.clocks.offsets,
        drifts={name: round(drift * 1e6, 3) for name, drift in whole.clocks.drifts.items()},
        explanation=explanation,
        broken=_broken_connections(events) if configuration else (),
        given_back_beside=configuration is not None
        and given_back_beside(events, thrown=configuration.listener_exception in _THROWN_BACK),
        unrecorded=unrecorded.summary if unrecorded else None,
        unshown=ordered(missing),
        cost=cost,
    )
    of_messages: dict[Anomaly, Ints] = {
        name: count.codes for name, count in anomalies.items() if name is not Anomaly.TORN_TRANSACTION
    }
    return Examined(
        findings,
        MappingProxyType(of_messages),
        () if decided is None else (decided,),
        () if explainer is None else (explainer,),
        events,
        (
            Decided(
                messages=this.share.messages,
                configured=configuration is not None,
                found={name: _certainly(count, counted[name]) for name, count in anomalies.items()},
                doubted=doubts.doubted,
                unrested=functools.partial(_unrested, this, machines, states, anomalies),
                unrecorded=doubts.unrecorded,
                settled=settled,
                by_anomaly={} if explainer is None else by_anomaly,
                explainer=explainer,
                pairs=pairs,
            ),
        ),
    )


def _as_far_as_shown(counts: Mapping[Anomaly, _Count], countable: Mapping[Anomaly, Countable]) -> dict[Anomaly, _Count]:
    """The ``counts`` for which the source cannot show everything: what is there all the same, and why that is open."""
    return {
        anomaly: _Count(counts[anomaly].codes if each.sure else _NOTHING, each.why, unshown=True)
        for anomaly, each in countable.items()
        if counts[anomaly].unknown != UNCONFIGURED
    }


def _may_explain(missing: frozenset[str]) -> str:
    return f"{cannot_show(ordered(matters_to_the_model(missing)))}, which may explain what is recorded"


def _certainly(count: _Count, finding: Finding) -> Ints:
    """Those that were found, unless nobody can tell whether they were."""
    return count.codes if finding.found else _NOTHING


@dataclasses.dataclass(frozen=True, slots=True)
class _Doubts:
    """The messages of which an anomaly may be of the recording, and those that may have it for want of a record."""

    doubted: Mapping[Anomaly, Ints] = dataclasses.field(default_factory=dict)
    unrecorded: Mapping[Anomaly, Ints] = dataclasses.field(default_factory=dict)


def _doubts_of_silence(
    this: _Examination, found: tuple[Silent, Ints], counts: Mapping[Anomaly, _Count], before: _Doubts
) -> _Doubts:
    """Also those about whom the processes are silent that do not tell what they have processed."""
    if Anomaly.UNPROCESSED not in counts or Anomaly.REPROCESSED not in counts:
        return before
    unprocessed, repeated = _of_silence(this, found, counts)
    if found[0].told:
        return _Doubts(
            {**before.doubted, Anomaly.UNPROCESSED: unprocessed}, {**before.unrecorded, Anomaly.REPROCESSED: repeated}
        )
    open_ = counts[Anomaly.UNPROCESSED].codes if len(unprocessed) else unprocessed
    return _Doubts(before.doubted, {**before.unrecorded, Anomaly.UNPROCESSED: open_, Anomaly.REPROCESSED: repeated})


def _unrested(
    this: _Examination, machines: Machines, states: States, counts: Mapping[Anomaly, _Count]
) -> Mapping[Anomaly, Ints]:
    """Of every anomaly those that would have it if they were at rest, which nobody saw."""
    rested = np.ones(len(states), bool)
    found = {
        anomaly: np.setdiff1d(
            np.flatnonzero(machines.means(anomaly, states, rested) & this.share.messages), counts[anomaly].codes
        )
        for anomaly, definition in folded_properties(this.specification).items()
        if definition.rest == "drained" and counts[anomaly].unknown != UNCONFIGURED
    }
    torn = this.share.only(torn_transactions(this.events, this.quiescence.at_rest(), this.share.messages)[0])
    return found | {Anomaly.TORN_TRANSACTION: np.setdiff1d(torn, counts[Anomaly.TORN_TRANSACTION].codes)}


def _mixed(
    this: _Examination, counts: Mapping[Anomaly, _Count], explained: Mapping[Anomaly, Explained]
) -> Mapping[Anomaly, Explained]:
    """The torn transactions with those ``undecided`` whose messages are judged by different configurations.

    The kind of neither configuration decides them: one may lose what the other must keep.
    """
    torn = counts[Anomaly.TORN_TRANSACTION].codes
    mixed = np.intersect1d(torn, this.whole.mixed)
    if not len(mixed):
        return {}
    by_pairs = explained.get(
        Anomaly.TORN_TRANSACTION, Explained(unexplained=_NOTHING, undecided=_NOTHING, causes={}, by_kind=torn)
    )
    left = np.setdiff1d(mixed, by_pairs.unexplained)
    its = dataclasses.replace(by_pairs, undecided=left, by_kind=np.setdiff1d(by_pairs.by_kind, left))
    return {Anomaly.TORN_TRANSACTION: its}


def _halved(this: _Examination, configuration: Configuration, decided: Conformance) -> Halved | None:
    """The transactions of which one side took effect alone, where the configuration has none of these."""
    environment = this.whole.specification.environment(configuration)
    if not this.whole.specification.conditions[Condition.COMMIT_WAITS_FOR_SYNC].holds(environment):
        return None
    found = halved_transactions(this.events, this.quiescence)
    held = np.isin(found.consumed, np.flatnonzero(decided.held)) & np.isin(found.sent, np.flatnonzero(decided.held))
    return Halved(found.consumed[held], found.sent[held], found.row[held])


def with_stuck(findings: Findings, history: History, specification: Specification) -> Findings:
    """``findings`` with how much is ``stuck``, if ``history`` tells what rests (``rest.py``).

    Its events are in the order of time as it was told.
    """
    if not history.remarks:
        return findings
    if not findings.queues:
        return _with_stuck(findings, history, specification)
    parts = findings.parts
    found = [
        _with_stuck(part.findings, history, specification, functools.partial(_concerns, parts, part)) for part in parts
    ]
    with_it = [dataclasses.replace(part, findings=its) for part, its in zip(parts, found, strict=True)]
    return together(with_it, Configurations(findings.configuration, findings.queues))


def _concerns(parts: Sequence[Part], part: Part, queue: str | None) -> bool:
    """Whether ``part`` is that of ``queue``; the first one has what no other has."""
    return part is next((each for each in parts if queue in each.queues), parts[0])


def _with_stuck(
    findings: Findings,
    history: History,
    specification: Specification,
    concerns: Callable[[str | None], bool] = lambda _: True,
) -> Findings:
    """``concerns`` says of which queues."""
    found = _stuck(findings, history, specification, concerns).finding
    needed = [name for name in findings.unshown if name in _NEEDED_FOR_STUCK]
    if needed:
        found = dataclasses.replace(found, found=0, examples=(), unknown=cannot_show(needed), unrecorded=True)
    whole = {**findings.anomalies, Anomaly.STUCK: found}
    return dataclasses.replace(
        findings, anomalies=MappingProxyType({anomaly: whole[anomaly] for anomaly in Anomaly if anomaly in whole})
    )


_NEEDED_FOR_STUCK = frozenset(
    {Event.DELIVERED, Event.PROCESSED, Event.FAILED, Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.RECOVER, Event.CLOSE}
    | {Event.FAULT, Event.RECOVERED}
)
"""Without these it is not known what an application still owes, or whether a fault lasts."""


def stuck_messages(findings: Findings, history: History, specification: Specification) -> Sequence[frozenset[str]]:
    """For each part of ``findings`` (or for all, if there are none) the ids of the messages that are ``stuck``."""
    if not history.remarks:
        return [frozenset()] * max(1, len(findings.parts))
    if not findings.queues:
        return [_stuck(findings, history, specification, lambda _: True).messages]
    parts = findings.parts
    return [
        _stuck(part.findings, history, specification, functools.partial(_concerns, parts, part)).messages
        for part in parts
    ]


def _stuck(
    findings: Findings, history: History, specification: Specification, concerns: Callable[[str | None], bool]
) -> Stuck:
    configuration = findings.configuration
    return stuck(
        history.events,
        history.remarks,
        by_library=configuration is not None and acknowledges_by_library(specification, configuration),
        keeps_failed=configuration is not None and _keeps_what_failed(specification, configuration),
        needs_every_line=specification.properties[Anomaly.STUCK].needs_every_line,
        concerns=concerns,
    )


def _keeps_what_failed(specification: Specification, configuration: Configuration) -> bool:
    """Whether an application that failed with a message is the one to recover or close its session (JMS 8.7).

    What a library swallows is given back by nobody, which the search finds too.
    """
    if configuration.consumption is Consumption.LISTENER:
        return configuration.listener_exception is ListenerException.NEXT_MESSAGE
    environment = specification.environment(configuration)
    return not specification.conditions[Condition.OFFERS_FAILED_AND_REJECTED].holds(environment)


def _open_ends(
    this: _Examination, counts: Mapping[Anomaly, _Count], explained: Mapping[Anomaly, Explained]
) -> Mapping[Anomaly, Explained]:
    """The anomalies that are concluded from the end of a history, ``undecided`` of messages that nobody saw at rest.

    The model can tell nothing of such a message, which may go on, unless it is no run until there.
    """
    definitions = this.specification.properties
    at_end = (name for name in explained if name in definitions and definitions[name].rest == "end")
    marked = (name for name in at_end if any(monitor.marked_at_rest for monitor in definitions[name].monitors))
    found: dict[Anomaly, Explained] = {}
    for name in marked:
        its, codes = explained[name], counts[name].codes
        going_on = np.setdiff1d(codes[~this.quiescence.judged[codes]], its.unexplained)
        found[name] = dataclasses.replace(its, undecided=np.union1d(its.undecided, going_on))
    return found


def _broken_connections(events: Index) -> tuple[Fault, ...]:
    """The faults that a ``close`` with an ``error`` tells of, by who had it, or an answer that is missing."""
    closes = events.places(Event.CLOSE)
    broken = np.unique(events.process[closes[events.errs[closes] == 1]])
    sides = {
        Fault.PRODUCER_LINK_LOSS: events.places(Event.SEND, Event.RESEND),
        Fault.CONSUMER_LINK_LOSS: events.places(Event.DELIVERED),
    }
    seen = {fault for fault, rows in sides.items() if np.isin(broken, events.process[rows]).any()}
    if len(events.timeouts[0]):
        seen.add(Fault.CONSUMER_LINK_LOSS)
    return tuple(fault for fault in sides if fault in seen)


_THROWN_BACK = frozenset({ListenerException.REDELIVER, ListenerException.RECOVER})
"""Where the library gives a message back at once whose listener has thrown."""


def _conformance(this: _Examination, configuration: Configuration) -> Conformance:
    whole = this.whole
    silent = whole.silent[0].processes if whole.silent else ()
    all_count = configuration.destination in ENDS_WITH_THE_LAST
    recovers = configuration.listener_exception is ListenerException.RECOVER
    signs = Signs.of(whole.specification, configuration)
    recorded = Recorded.of_messages(whole.events, silent, whole.skew, signs, names_all=all_count, recovers=recovers)
    recorded = recorded.only(this.share.messages)
    return conformance(recorded, whole.events, whole.specification, configuration)


def _with(finding: Finding, explained: Explained, events: Events) -> Finding:
    return dataclasses.replace(
        finding,
        unexplained=len(explained.unexplained),
        undecided=len(explained.undecided),
        by_kind=len(explained.by_kind),
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
    marked = machines.means(anomaly, states, rested) & this.share.messages
    return _Count(np.flatnonzero(marked), this.not_at_rest if drained else None)


def _torn(this: _Examination) -> _Count:
    codes, complete = torn_transactions(this.events, this.quiescence, this.share.messages)
    unknown = None if complete else this.not_at_rest or "no `drained` follows a commit in doubt"
    return _Count(this.share.only(codes), unknown)


def _overrun(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    window, whole = window_of(this.specification, this.configuration), this.whole
    if window is None:
        return _Count(_NOTHING)
    return _Count(this.share.of(window_overruns(whole.events, window, whole.within)))


def _over_prefetch(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    prefetch = prefetch_of(this.specification, this.configuration)
    return _Count(_NOTHING if prefetch is None else prefetch_overruns(this.events, prefetch, this.share.messages))


def _over_delivered(this: _Examination) -> _Count:
    if this.configuration is None:
        return _Count(_NOTHING, UNCONFIGURED)
    return _Count(this.share.of(over_delivered(this.events, this.configuration.max_delivery_attempts)))


_COUNTS: Mapping[Anomaly, Callable[[_Examination], _Count]] = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: _torn,
        Anomaly.REORDER: lambda this: _Count(this.share.of(reordered(this.events))),
        Anomaly.WINDOW_OVERRUN: _overrun,
        Anomaly.PREFETCH_OVERRUN: _over_prefetch,
        Anomaly.COUNT_REGRESSION: lambda this: _Count(this.share.of(count_regressions(this.events))),
        Anomaly.OVER_DELIVERED: _over_delivered,
    }
)
"""The anomalies that no machine of one message can see."""


def _unrecorded(
    this: _Examination,
    found: tuple[Silent, Ints],
    findings: Mapping[Anomaly, Finding],
    counts: Mapping[Anomaly, _Count],
) -> dict[Anomaly, Finding]:
    """What those who do not tell what they have processed may have to do with what was counted."""
    if Anomaly.UNPROCESSED not in findings or Anomaly.REPROCESSED not in findings:
        return {}
    silent, (unprocessed, repeated) = found[0], _of_silence(this, found, counts)
    return {
        Anomaly.UNPROCESSED: unless_unrecorded(findings[Anomaly.UNPROCESSED], silent, len(unprocessed)),
        Anomaly.REPROCESSED: unless_unrecorded_again(findings[Anomaly.REPROCESSED], silent, len(repeated)),
    }


def _of_silence(this: _Examination, found: tuple[Silent, Ints], counts: Mapping[Anomaly, _Count]) -> tuple[Ints, Ints]:
    """The unprocessed messages that were delivered to silent processes, and those that came to them again."""
    taken = this.share.of(found[1])
    unprocessed, reprocessed = counts[Anomaly.UNPROCESSED].codes, counts[Anomaly.REPROCESSED].codes
    times = np.bincount(this.events.message[this.events.places(Event.DELIVERED)])
    return np.intersect1d(unprocessed, taken), np.setdiff1d(taken[times[taken] > 1], reprocessed)


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
        unrecorded=count.unshown,
    )


def _examples(names: pa.Array, codes: Ints) -> tuple[str, ...]:
    """The first of the names, by code point."""
    named = pc.unique(names.take(pa.array(codes)))
    return tuple(named.take(pc.sort_indices(named)[:EXAMPLES]).to_pylist())
