"""Find the anomalies of a history on Spark, with the same result as in one process."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from ackfsm.spark._actions import closed_early, competing_consumer_failed, redelivered_after_recover
from ackfsm.spark._clocks import demands_of, put_right
from ackfsm.spark._count import count_regressions, over_delivered, reordered, torn_transactions, window_overruns
from ackfsm.spark._marks import marks_of_clean_patterns, shown
from ackfsm.spark._prefetch import prefetch_overruns
from ackfsm.spark._prepared import PreparedHistory, keep, names_in, study_of
from ackfsm.spark._read import input_error, read_lines, unreadable_of
from ackfsm.spark._recording import came_early, silent_of
from ackfsm.spark._victims import impossible
from ackfsm.tables import Property, Specification
from ackfsm.terms import AckfsmError, Anomaly, Configuration
from ackfsm.verify import Finding, Findings
from ackfsm.verify._actions import ACTIONS, RECOVER, RECOVERING, TAKEN_ELSEWHERE
from ackfsm.verify._clocks import ESTIMATED, Clocks, clocks_of
from ackfsm.verify._counters import COUNTERS, MESSAGES
from ackfsm.verify._examine import in_order, stuck_at, with_model
from ackfsm.verify._format import Event
from ackfsm.verify._recording import unless_early, unless_unrecorded, unless_unrecorded_again
from ackfsm.verify._rest import SEEN_AT_REST
from ackfsm.verify._source import Source, source_of
from ackfsm.verify._verdict import EXAMPLES, UNCONFIGURED, undrained
from ackfsm.verify._watch import folded_properties, needs_configuration, prefetch_of, window_of

__all__ = ["examine"]

_UNDECIDED: Final = "undecided"
"""Beside the anomalies: the transactions of which nobody can tell whether they were torn."""


_MAY_BE_UNTOLD: Final = frozenset(
    (Anomaly.UNPROCESSED, Anomaly.REPROCESSED, Anomaly.DUPLICATE, Anomaly.UNFLAGGED_DUPLICATE)
)
"""Where none of these is found, it does not matter who tells what was processed: nothing came twice."""


class _Names(NamedTuple):
    """How many have a label, and the first of them by code point."""

    total: int
    first: tuple[str, ...]


def examine(
    path: str | Path,
    specification: Specification,
    configuration: Configuration | None,
    session: SparkSession,
    *,
    skew: int | None = 0,
) -> Findings:
    """Count every anomaly that the history at ``path`` can show, on ``session``.

    Args:
        path: a file or a folder of parts on a file system that this process and Spark's workers see alike.
        specification: the tables, whose properties define the anomalies of a single message.
        configuration: what the history was recorded under; without one, the counts that depend on it are unknown.
        session: where to count; its workers need this package.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.

    Returns:
        what :func:`ackfsm.verify.examine` finds in the same history, to the letter but for ``engine``.

    Raises:
        InputError: the file as a whole is at fault; the sentence is that of :func:`ackfsm.verify.read`.
        AckfsmError: Spark gave up.
    """
    source = source_of(path)
    try:
        with contextlib.ExitStack() as kept:
            findings = _examine(source, specification, configuration, session, kept, skew or 0)
            if skew is None and findings.anomalies[Anomaly.PHANTOM].doubted:
                findings = _examine(source, specification, configuration, session, kept, skew)
        return with_model(findings, source.path, specification)
    except (PySparkException, Py4JError) as error:
        raise _failure(source, str(error)) from error


def _failure(source: Source, told: str) -> AckfsmError:
    reason = " ".join(told.partition("\tat ")[0].split())
    if "FAILED_READ_FILE" in told:
        return input_error(source, reason)
    return AckfsmError(f"Spark gave up on {source.name_of(source.path)}: {reason}")


def _examine(  # noqa: PLR0913, PLR0917 - as :func:`examine`
    source: Source,
    specification: Specification,
    configuration: Configuration | None,
    session: SparkSession,
    kept: contextlib.ExitStack,
    skew: int | None,
) -> Findings:
    lines = read_lines(session, source)
    rows = keep(lines.rows, kept) if lines.costly else lines.rows
    overview, names = names_in(rows, kept)
    parse_errors, unreadable = (0, ()) if overview.complete else unreadable_of(lines, source)
    if not overview.events:
        raise input_error(source, "it has no event")
    if overview.naming and impossible(names.kinds):
        raise input_error(source, "a fault names what it cannot have hit")
    clocks = Clocks() if skew == 0 else clocks_of(demands_of(rows, skew), ESTIMATED if skew is None else skew)
    skew = clocks.latest if skew is None else skew
    study = study_of(put_right(rows, clocks), overview, names, specification, configuration, kept)
    groups = _groups(study)
    counters = _counters(study, groups)
    found = _collected(_found(study))
    anomalies = _anomalies(study, found, _undrained(study, groups))
    anomalies |= _phantoms(study, anomalies.get(Anomaly.PHANTOM), clocks, skew) | _unrecorded(study, anomalies)
    if overview.kinds.intersection(SEEN_AT_REST):
        at_rest = stuck_at(source.path, overview.events, specification, configuration)
        anomalies = in_order(anomalies | {Anomaly.STUCK: at_rest})
    return Findings(
        history=str(source.path),
        engine="spark",
        configuration=configuration,
        events=overview.events,
        messages=counters.pop(MESSAGES),
        parse_errors=parse_errors,
        unreadable=unreadable,
        faults=overview.faults,
        of_calls=overview.of_calls,
        actions=tuple(action for action in ACTIONS if action in found),
        anomalies=MappingProxyType(anomalies),
        ends=MappingProxyType({name: counters.pop(name) for name in specification.guarantees.monitors}),
        counters=MappingProxyType(counters),
        skew=skew,
        offsets=clocks.offsets,
    )


def _groups(study: PreparedHistory) -> list[Row]:
    """How many messages have which life, are judged or not, belong to an undrained queue; and their counters."""
    plain, suspects = study.lived.where("life is not null"), _suspects(study)
    nothing = {name: sf.lit(0) for name in _counted_names(study)}
    groups = _counted(plain, nothing)
    if suspects is not None:
        shows = {name: sf.count_if(shown(name, sf.col("judged"))) for name in nothing}
        groups = groups.unionByName(_counted(suspects, shows))
    return groups.collect()


def _counted(messages: DataFrame, counters: Mapping[str, Column]) -> DataFrame:
    left = sf.when(~sf.col("judged"), sf.col("queue")).alias("left")
    columns = (column.alias(name) for name, column in counters.items())
    return messages.groupBy("life", "judged", left).agg(sf.count("*").alias("number"), *columns)


def _suspects(study: PreparedHistory) -> DataFrame | None:
    """The lives of the suspects with their marks; ``None`` if there are no suspects."""
    return None if study.marks is None else study.lived.where("life is null").join(study.marks, "message")


def _counters(study: PreparedHistory, groups: list[Row]) -> dict[str, int]:
    """How many messages are marked with each counter or end: suspects by their folds, the others by their lives."""
    plain = marks_of_clean_patterns(study.machines)
    return {
        name: sum(
            group[name] if group.life is None else group.number * (plain[group.life][name] + group.judged > 1)
            for group in groups
        )
        for name in _counted_names(study)
    }


def _counted_names(study: PreparedHistory) -> tuple[str, ...]:
    return (*(counter.name for counter in COUNTERS), *study.specification.guarantees.monitors)


def _undrained(study: PreparedHistory, groups: list[Row]) -> str | None:
    """Why some message cannot be judged at rest, if so."""
    left = {group.left for group in groups if not group.judged}
    if not left:
        return None
    names = study.names.of("queue").where(sf.col("queue").isin(*left)).collect() if left != {None} else ()
    return undrained(tuple(sorted([*(row.name for row in names), *([""] if None in left else [])])))


def _anomalies(study: PreparedHistory, found: Mapping[str, _Names], not_at_rest: str | None) -> dict[Anomaly, Finding]:
    unknown = _unknown(study, not_at_rest, undecided=_UNDECIDED in found)
    return {
        anomaly: Finding(
            anomaly=anomaly,
            found=found[anomaly].total if anomaly in found else 0,
            unknown=unknown[anomaly],
            needs_every_line=study.specification.properties[anomaly].needs_every_line,
            examples=found[anomaly].first if anomaly in found else (),
        )
        for anomaly in Anomaly
        if anomaly in unknown
    }


def _unknown(study: PreparedHistory, not_at_rest: str | None, *, undecided: bool) -> dict[Anomaly, str | None]:
    """The anomalies that a history can show, each with the reason why there may be more than were found."""
    in_doubt = "no `drained` follows a commit in doubt" if undecided else None
    reasons = {
        anomaly: UNCONFIGURED if _left_out(study, definition) else not_at_rest if definition.rest == "drained" else None
        for anomaly, definition in folded_properties(study.specification).items()
    }
    return reasons | {
        Anomaly.TORN_TRANSACTION: not_at_rest or in_doubt,
        Anomaly.REORDER: None,
        Anomaly.WINDOW_OVERRUN: UNCONFIGURED if study.configuration is None else None,
        Anomaly.PREFETCH_OVERRUN: UNCONFIGURED if study.configuration is None else None,
        Anomaly.COUNT_REGRESSION: None,
        Anomaly.OVER_DELIVERED: UNCONFIGURED if study.configuration is None else None,
    }


def _phantoms(study: PreparedHistory, finding: Finding | None, clocks: Clocks, skew: int) -> dict[Anomaly, Finding]:
    """What clocks may have to do with phantoms."""
    if finding is None or not finding.found:
        return {}
    return {Anomaly.PHANTOM: unless_early(finding, came_early(study, clocks), skew)}


def _unrecorded(study: PreparedHistory, findings: Mapping[Anomaly, Finding]) -> dict[Anomaly, Finding]:
    """What those who do not tell what they have processed may have to do with what was counted."""
    suspects = _suspects(study)
    if (
        suspects is None
        or not (findings.keys() >= _MAY_BE_UNTOLD)
        or not any(findings[a].found for a in _MAY_BE_UNTOLD)
    ):
        return {}
    unrecorded = silent_of(study)
    if unrecorded is None:
        return {}
    silent, taken = unrecorded
    unprocessed, reprocessed = (shown(name, sf.col("judged")) for name in (Anomaly.UNPROCESSED, Anomaly.REPROCESSED))
    doubted, repeated = (
        suspects.join(taken, "message")
        .agg(sf.count_if(unprocessed), sf.count_if((sf.col("times") > 1) & ~reprocessed))
        .collect()[0]
    )
    return {
        Anomaly.UNPROCESSED: unless_unrecorded(findings[Anomaly.UNPROCESSED], silent, doubted),
        Anomaly.REPROCESSED: unless_unrecorded_again(findings[Anomaly.REPROCESSED], silent, repeated),
    }


def _left_out(study: PreparedHistory, definition: Property) -> bool:
    return study.configuration is None and needs_configuration(definition)


def _found(study: PreparedHistory) -> Iterator[DataFrame]:
    """Rows of ``label`` (an anomaly, or one of the two others) and ``name`` (of a message or transaction)."""
    suspects = _suspects(study)
    if suspects is not None:
        yield _marked(suspects, study)
    yield _labelled(Anomaly.REORDER, reordered(study.lived))
    if study.overview.counted:
        yield _labelled(Anomaly.COUNT_REGRESSION, count_regressions(study.events))
    yield from _overruns(study)
    if study.overview.transacted:
        transactions = torn_transactions(study.events, study.lived)
        torn = transactions.where("torn").select("tx").distinct().join(study.names.of("tx"), "tx").select("name")
        yield _labelled(Anomaly.TORN_TRANSACTION, torn)
        yield _labelled(_UNDECIDED, transactions.where("in_doubt and not judged").select(sf.lit("")))
    if study.mine is not None and study.overview.kinds.intersection(RECOVERING):
        yield _labelled(RECOVER, redelivered_after_recover(study.mine, study.events))
        yield _labelled(RECOVER, closed_early(study.mine, study.events))
    yield _labelled(TAKEN_ELSEWHERE, competing_consumer_failed(study.events))


def _overruns(study: PreparedHistory) -> Iterator[DataFrame]:
    if study.configuration is None:
        return
    window, prefetch = (
        window_of(study.specification, study.configuration),
        prefetch_of(study.specification, study.configuration),
    )
    if window is not None:
        yield _labelled(Anomaly.WINDOW_OVERRUN, window_overruns(study.sends(), study.events, window))
    if prefetch is not None:
        yield _labelled(Anomaly.PREFETCH_OVERRUN, prefetch_overruns(study.events, study.overview, prefetch))
    limit = study.configuration.max_delivery_attempts
    if study.mine is not None and (limit or Event.EXPIRED in study.overview.kinds):
        yield _labelled(Anomaly.OVER_DELIVERED, over_delivered(study.mine, limit))


def _labelled(label: str, names: DataFrame) -> DataFrame:
    return names.toDF("name").select(sf.lit(str(label)).alias("label"), "name")


def _marked(suspects: DataFrame, study: PreparedHistory) -> DataFrame:
    """What ``suspects`` are marked with, by the property machines."""
    labels = []
    for anomaly, definition in folded_properties(study.specification).items():
        if not _left_out(study, definition):
            rested = sf.col("judged") if definition.rest == "drained" else sf.lit(col=True)
            labels.append(sf.when(shown(anomaly, rested), sf.lit(str(anomaly))))
    return suspects.select(
        sf.explode(sf.array_compact(sf.array(*labels))).alias("label"), sf.col("message").alias("name")
    )


def _collected(frames: Iterator[DataFrame]) -> Mapping[str, _Names]:
    rows = functools.reduce(DataFrame.unionByName, frames).groupBy("label", "name").agg(sf.count("*").alias("number"))
    mine = Window.partitionBy("label")
    ranked = rows.withColumns(
        {"total": sf.sum("number").over(mine), "rank": sf.row_number().over(mine.orderBy("name"))}
    )
    found: dict[str, _Names] = {}
    for row in ranked.where(sf.col("rank") <= EXAMPLES).orderBy("label", "rank").collect():
        names = found.get(row.label, _Names(row.total, ()))
        found[row.label] = _Names(names.total, (*names.first, row.name))
    return found
