"""Find the anomalies of a history: expand, fold, count, hold to the model."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Self, TypeAlias, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.clocks import Clocks, aligned
from ackfsm.history.columns import Events
from ackfsm.history.format import Event
from ackfsm.history.header import Header
from ackfsm.history.index import Index
from ackfsm.history.queues import Configurations, Share, configurations_of, in_several_shares, shares_of
from ackfsm.history.read import History
from ackfsm.history.spelled import spelled_out
from ackfsm.history.transactions import transactions_told_apart
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Anomaly, Configuration, Destination, Fault, ListenerException, OutcomeScope
from ackfsm.verify.conformance.explain import AnomalyCounts, Explained, Explainer, Explanation
from ackfsm.verify.conformance.explain_pairs import PairExplainer
from ackfsm.verify.conformance.lives import Recorded
from ackfsm.verify.conformance.messages import Conformance, Judge, Kept, conformance, in_mode
from ackfsm.verify.conformance.timeline import Unrecorded
from ackfsm.verify.conformance.unrecorded import assumption_of
from ackfsm.verify.conformance.unshown import matters_to_the_model, may_be_runs
from ackfsm.verify.context.actions import broken_connections, given_back_beside, inferred_actions
from ackfsm.verify.context.priorities import with_priorities
from ackfsm.verify.context.signs import Signs
from ackfsm.verify.counting.count import Halved, halved_transactions
from ackfsm.verify.counting.counted import Counted
from ackfsm.verify.counting.observables import expand
from ackfsm.verify.counting.shown import ordered
from ackfsm.verify.counting.watch import COUNTERS, MESSAGES, window_of
from ackfsm.verify.findings.findings import EXAMPLES, Cost, Finding, Findings, Part
from ackfsm.verify.findings.judgements import Judgements, codes_of, flags_of, found_in, judged_of, numbers_of
from ackfsm.verify.findings.parts import together
from ackfsm.verify.findings.recording import (
    Early,
    Silent,
    came_early,
    silent_of,
    unless_early,
    unless_unrecorded,
    unless_unrecorded_again,
)
from ackfsm.verify.findings.rest import with_stuck
from ackfsm.verify.words import cannot_show

__all__ = ["Asked", "Examined", "How", "Outcome", "examine", "examined", "outcome_of"]

_NOTHING: Ints = np.empty(0, np.int64)


KeptOfBoth: TypeAlias = tuple[Kept | None, Kept | None]
"""What is kept of the networks of one message, and of those of two."""


class How(TypedDict, total=False):
    """How a history is examined, as :class:`Asked` says."""

    skew: int | None
    tells_processed: bool
    hold: bool
    assumed: Collection[Fault]
    unshown: Collection[str] | None
    kept: KeptOfBoth


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question to a history.

    Attributes:
        specification: the tables, whose properties define the anomalies of a single message.
        configuration: what the history was recorded under, or what each of its queues was; without one, the counts
            that depend on it are unknown.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.
        tells_processed: whether it is certain that every ``processed`` was recorded, even if there is none.
        hold: whether to hold each message to the model; not where sessions have modes that no header tells.
        assumed: the faults that may have happened although nobody recorded them.
        unshown: what the source of the history cannot show; ``None``: what its header says.
        binned: whether what went on is counted over time, too.
        kept: networks of one message, and of two, from histories that were asked before.
    """

    specification: Specification
    configuration: Configurations | Configuration | None
    skew: int | None = 0
    tells_processed: bool = False
    hold: bool = True
    assumed: Collection[Fault] = ()
    unshown: Collection[str] | None = None
    binned: bool = False
    kept: KeptOfBoth = (None, None)

    def of_source(self, header: Header | None) -> Self:
        """The same of a history with that ``header``, which says what its source shows."""
        if header is None:
            return self
        return dataclasses.replace(
            self,
            specification=self.specification.as_told(header.words),
            unshown=header.cannot_show if self.unshown is None else self.unshown,
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Whole:
    """All of a history, whatever it is judged by.

    Attributes:
        mixed: the transactions with messages that are judged by different configurations.
    """

    asked: Asked
    history: History
    clocks: Clocks
    skew: int
    silent: tuple[Silent, Ints] | None
    mixed: Ints


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Examination(Counted):
    """One share of a history, its counts, and the ``whole`` of it."""

    whole: _Whole


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """The findings of a history, with the judgements on its messages.

    Attributes:
        findings: what was counted.
        events: the history as it was counted, every line spelled out.
        judgements: what was judged of the messages of each configuration.
    """

    findings: Findings
    events: Index
    judgements: Sequence[Judgements]


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


def examine(
    history: History,
    specification: Specification,
    configuration: Configurations | Configuration | None,
    **how: Unpack[How],
) -> Findings:
    """Count every anomaly that ``history``, which :func:`read` gave, can show.

    The arguments are those of :class:`Asked`, all but the first two of them by name.
    """
    begun = time.process_time()
    findings = outcome_of(history, Asked(specification=specification, configuration=configuration, **how)).findings
    return dataclasses.replace(findings, cost=dataclasses.replace(findings.cost, whole=time.process_time() - begun))


def outcome_of(history: History, asked: Asked) -> Outcome:
    """Return the findings of :func:`examine`, with the events and judgements behind them."""
    asked = asked.of_source(history.header)
    events, clocks = aligned(history.events, asked.skew)
    skew = clocks.latest if asked.skew is None else asked.skew
    found = examined(dataclasses.replace(history, events=events), asked, clocks, skew)
    findings = with_stuck(found.findings, history, asked.specification)
    return Outcome(findings, found, history, transactions_told_apart(events))


def examined(history: History, asked: Asked, clocks: Clocks, skew: int) -> Examined:
    """As :func:`examine`, of events in the order of clocks that were put right as ``clocks`` says."""
    configurations, specification = configurations_of(asked.configuration), asked.specification
    told = with_priorities(Index.of(transactions_told_apart(history.events)), configurations, specification)
    shares = shares_of(configurations, told)
    events = spelled_out(told, _gives_back_up_to(shares, told))
    examination = functools.partial(
        _Examination,
        specification=specification,
        events=events,
        stream=expand(events),
        within=_within_windows(specification, shares, events),
        unshown=asked.unshown or (),
        whole=_Whole(
            asked=asked,
            history=history,
            clocks=clocks,
            skew=skew,
            silent=None if asked.tells_processed else silent_of(events),
            mixed=in_several_shares(shares, events),
        ),
    )
    found = [_examined_share(examination(share=share)) for share in shares]
    parts = [Part(share.queues, findings) for share, (findings, _) in zip(shares, found, strict=True)]
    findings = together(parts, configurations) if configurations.of_queues else found[0][0]
    return Examined(findings, events, tuple(judgements for _, judgements in found))


def _gives_back_up_to(shares: Sequence[Share], events: Events) -> Mask:
    """Of which messages a ``failed`` without a scope gives back all that its session had up to it."""
    found = np.zeros(events.count_of("message"), bool)
    for each in shares:
        if each.configuration is not None and each.configuration.outcome_scope is OutcomeScope.UP_TO:
            found |= each.messages
    return found


def _within_windows(specification: Specification, shares: Sequence[Share], events: Index) -> Mask:
    """Return a mask of sends within windows: a send without any answer would be open for ever."""
    within, modes = np.zeros(events.count_of("message"), bool), events.mode_of
    for each in shares:
        if each.configuration is None:
            continue
        for mode in np.unique(modes[each.messages]).tolist():
            its = in_mode(specification, each.configuration, mode)
            if window_of(specification, its) is not None:
                within |= each.messages & (modes == mode)
    return within


def _examined_share(this: _Examination) -> tuple[Findings, Judgements]:
    counts = this.counts
    early, silence = came_early(this.events, this.share.messages), _silence(this)
    begun = time.process_time()
    model = _held(this, _NOTHING if early is None else early.messages)
    cost = Cost(conformance=time.process_time() - begun)
    explained = {} if model is None else {**model.explained, **_open_ends(this, model.explained)}
    doubted = {} if early is None else {Anomaly.PHANTOM: early.messages}
    if silence is not None and silence.silent.told:
        doubted[Anomaly.UNPROCESSED] = silence.unprocessed
    judged = judged_of({name: count.codes for name, count in counts.items()}, explained, doubted)
    anomalies = _as_recorded(this, _anomalies(this, explained, judged), early, silence)
    judgements = Judgements(
        messages=this.share.messages,
        configured=this.configuration is not None,
        judged=found_in(judged, [name for name, finding in anomalies.items() if finding.found]),
        counted={name: count.codes for name, count in counts.items()},
        unrested=this.unrested,
        unrecorded={} if silence is None else silence.open(counts[Anomaly.UNPROCESSED].codes),
        by_anomaly={} if model is None else model.explained,
        conformance=None if model is None else model.conformance,
        explainer=None if model is None else model.explainer,
        pairs=None if model is None else model.pairs,
    )
    return _findings(this, anomalies, model, cost), judgements


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Model:
    """What came of holding the messages of a share, and pairs of them, to the model."""

    conformance: Conformance
    explainer: Explainer
    pairs: PairExplainer | None
    unrecorded: Unrecorded | None
    explanation: Explanation
    explained: Mapping[Anomaly, Explained]


def _held(this: _Examination, doubted: Ints) -> _Model | None:
    """Return the decisions of the model, ``None`` without one; ``doubted`` messages may be of the recording."""
    whole, events, configuration = this.whole, this.events, this.configuration
    if configuration is None or not whole.asked.hold:
        return None
    held = _conformance(this, configuration)
    of_messages = {
        name: each.codes for name, each in this.counts.items() if name in {*this.machines.names, *_OF_MESSAGES}
    }
    contradicted = np.setdiff1d(held.contradicted(), doubted)
    open_ = may_be_runs(contradicted, held, events, this.specification, configuration, this.missing)
    unrecorded = assumption_of(held, events, np.setdiff1d(contradicted, open_), whole.asked.assumed)
    rests_on = unrecorded if unrecorded is not None and unrecorded.summary.assumed else None
    unseen = {_may_explain(this.missing): open_} if len(open_) else {}
    counted = AnomalyCounts(events, this.machines, this.stream, of_messages)
    if rests_on is None:
        explainer = Explainer(held, counted, contradicted, {}, unseen)
    else:
        explainer = Explainer(held, counted, contradicted, rests_on.causes, {**unseen, **rests_on.undecided})
    (explanation, explained), pairs = explainer.explained(), None
    if rests_on is None and not matters_to_the_model(this.missing):  # what is unseen is thought of for one message
        between = of_messages | {name: this.counts[name].codes for name in _OF_PAIRS}
        counted = dataclasses.replace(counted, anomalies=between)
        halved = _halved(this, configuration, held)
        kept = this.whole.asked.kept[1]
        pairs = PairExplainer(held, counted, doubted, this.specification, configuration, halved, kept)
        explanation, explained = pairs.explained(explanation, explained)
    return _Model(
        conformance=held,
        explainer=explainer,
        pairs=pairs,
        unrecorded=None if unrecorded is None else unrecorded.summary,
        explanation=explanation,
        explained={**explained, **_mixed(this, explained)},
    )


def _anomalies(this: _Examination, explained: Mapping[Anomaly, Explained], judged: pa.Table) -> dict[Anomaly, Finding]:
    """Return the finding for every anomaly: the counts of ``judged`` cases and their explanations."""
    numbers = numbers_of(judged)
    found: dict[Anomaly, Finding] = {}
    for anomaly in (name for name in Anomaly if name in this.counts):
        names = this.events.names["transaction" if anomaly is Anomaly.TORN_TRANSACTION else "message"]
        rows = judged.filter(pc.equal(judged["anomaly"], anomaly.value)) if anomaly in numbers else judged[:0]
        found[anomaly] = Finding(
            anomaly=anomaly,
            unknown=this.counts[anomaly].unknown,
            needs_every_line=this.specification.properties[anomaly].needs_every_line,
            unrecorded=this.counts[anomaly].unshown,
            examples=_examples(names, codes_of(rows)),
            **numbers.get(anomaly, {"found": 0}),
        )
        its = explained.get(anomaly)
        if its is not None:
            bad = _examples(names, codes_of(rows)[flags_of(rows, "unexplained")])
            found[anomaly] = dataclasses.replace(
                found[anomaly],
                unexplained=found[anomaly].unexplained or 0,
                unexplained_examples=bad,
                causes=MappingProxyType(its.causes),
            )
    return found


def _examples(names: pa.Array, codes: Ints) -> tuple[str, ...]:
    """The first of the names, by code point."""
    named = pc.unique(names.take(pa.array(codes)))
    return tuple(named.take(pc.sort_indices(named)[:EXAMPLES]).to_pylist())


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Silence:
    """Processes that do not tell what they have processed, and what may be so for want of that.

    Attributes:
        silent: those processes.
        unprocessed: the unprocessed messages that were delivered to them.
        repeated: those that came to them again and are not reprocessed.
    """

    silent: Silent
    unprocessed: Ints
    repeated: Ints

    def open(self, unprocessed: Ints) -> Mapping[Anomaly, Ints]:
        """Return the messages that may have an anomaly for want of a record; ``unprocessed`` seem to have it."""
        if self.silent.told:
            return {Anomaly.REPROCESSED: self.repeated}
        its = unprocessed if len(self.unprocessed) else self.unprocessed
        return {Anomaly.UNPROCESSED: its, Anomaly.REPROCESSED: self.repeated}


def _silence(this: _Examination) -> _Silence | None:
    asked = {Anomaly.UNPROCESSED, Anomaly.REPROCESSED} <= this.counts.keys()
    if this.whole.silent is None or Event.PROCESSED in this.missing or not asked:
        return None
    silent, messages = this.whole.silent
    silent, taken = silent.among(this.events, this.share.messages), this.share.of(messages)
    unprocessed, reprocessed = this.counts[Anomaly.UNPROCESSED].codes, this.counts[Anomaly.REPROCESSED].codes
    times = np.bincount(this.events.message[this.events.places(Event.DELIVERED)])
    return _Silence(silent, np.intersect1d(unprocessed, taken), np.setdiff1d(taken[times[taken] > 1], reprocessed))


def _as_recorded(
    this: _Examination, found: dict[Anomaly, Finding], early: Early | None, silence: _Silence | None
) -> dict[Anomaly, Finding]:
    """Return the findings ``found``, with the cases that may be of the recording."""
    if early is not None and found[Anomaly.PHANTOM].found:
        found[Anomaly.PHANTOM] = unless_early(found[Anomaly.PHANTOM], early, this.whole.skew)
    if silence is not None:
        silent, unprocessed, repeated = silence.silent, len(silence.unprocessed), len(silence.repeated)
        found[Anomaly.UNPROCESSED] = unless_unrecorded(found[Anomaly.UNPROCESSED], silent, unprocessed)
        found[Anomaly.REPROCESSED] = unless_unrecorded_again(found[Anomaly.REPROCESSED], silent, repeated)
    return found


def _findings(this: _Examination, anomalies: Mapping[Anomaly, Finding], model: _Model | None, cost: Cost) -> Findings:
    whole, history, events, configuration = this.whole, this.whole.history, this.events, this.configuration
    ends = this.specification.guarantees.monitors
    counts = {name: this.number_of(name) for name in (*(counter.name for counter in COUNTERS), *ends)}
    return Findings(
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
        anomalies=MappingProxyType(anomalies),
        ends=MappingProxyType({name: counts.pop(name) for name in ends}),
        counters=MappingProxyType(counts),
        skew=whole.skew,
        offsets=whole.clocks.offsets,
        drifts={name: round(drift * 1e6, 3) for name, drift in whole.clocks.drifts.items()},
        explanation=None if model is None else model.explanation,
        broken=broken_connections(events) if configuration else (),
        given_back_beside=configuration is not None
        and given_back_beside(events, thrown=configuration.listener_exception in _THROWN_BACK),
        unrecorded=None if model is None else model.unrecorded,
        unshown=ordered(this.missing),
        cost=cost,
    )


def _may_explain(missing: frozenset[str]) -> str:
    return f"{cannot_show(ordered(matters_to_the_model(missing)))}, which may explain what is recorded"


def _mixed(this: _Examination, explained: Mapping[Anomaly, Explained]) -> Mapping[Anomaly, Explained]:
    """The torn transactions with those ``undecided`` whose messages are judged by different configurations.

    The kind of neither configuration decides them: one may lose what the other must keep.
    """
    torn = this.counts[Anomaly.TORN_TRANSACTION].codes
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
    """Return the transactions with an effect on one side only, where the configuration has none of these."""
    environment = this.specification.environment(configuration)
    if not this.specification.conditions[Condition.COMMIT_WAITS_FOR_SYNC].holds(environment):
        return None
    found = halved_transactions(this.events, this.events.quiescence)
    held = np.isin(found.consumed, np.flatnonzero(decided.held)) & np.isin(found.sent, np.flatnonzero(decided.held))
    return Halved(found.consumed[held], found.sent[held], found.row[held])


def _open_ends(this: _Examination, explained: Mapping[Anomaly, Explained]) -> Mapping[Anomaly, Explained]:
    """Return the anomalies concluded from the end, with messages not seen at rest ``undecided``.

    The model can tell nothing of such a message, which may go on, unless it is no run until there.
    """
    definitions = this.specification.properties
    at_end = (name for name in explained if name in definitions and definitions[name].rest == "end")
    marked = (name for name in at_end if any(monitor.marked_at_rest for monitor in definitions[name].monitors))
    found: dict[Anomaly, Explained] = {}
    for name in marked:
        its, codes = explained[name], this.counts[name].codes
        going_on = np.setdiff1d(codes[~this.events.quiescence.judged[codes]], its.unexplained)
        found[name] = dataclasses.replace(its, undecided=np.union1d(its.undecided, going_on))
    return found


_THROWN_BACK = frozenset({ListenerException.REDELIVER, ListenerException.RECOVER})
"""Where the library gives a message back at once whose listener has thrown."""


def _conformance(this: _Examination, configuration: Configuration) -> Conformance:
    whole = this.whole
    silent = whole.silent[0].processes if whole.silent else ()
    # what is there as long as one of its consumers is, so that those count that have not had the message
    all_count = configuration.destination is Destination.NON_DURABLE_SUBSCRIPTION
    recovers = configuration.listener_exception is ListenerException.RECOVER
    signs = Signs.of(this.specification, configuration)
    recorded = Recorded.of_messages(
        this.events,
        silent,
        whole.skew,
        signs,
        names_all=all_count,
        recovers=recovers,
        keeps=not configuration.rollback_requeues,
    )
    recorded = recorded.only(this.share.messages)
    return conformance(recorded, Judge(this.specification, configuration, this.events, whole.asked.kept[0]))


_OF_PAIRS = (Anomaly.REORDER, Anomaly.TORN_TRANSACTION)
"""What two messages show, and is decided by the model of two."""

_OF_MESSAGES = frozenset({Anomaly.OVER_DELIVERED})
"""What is counted without a machine, and decided by the model of one message."""
