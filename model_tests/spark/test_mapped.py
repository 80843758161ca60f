"""Does a mapping make of a table of Spark what it makes of the same file, and is the verdict the same?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ackfsm import spark, verify
from ackfsm.history.importing import Options, Problems, format_named
from ackfsm.history.importing.mapping import read_mapping
from ackfsm.history.importing.write import import_history
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SPEC = shipped()
MAPPING = """
ackfsm_mapping: 1
config: {profile: jms, ack_mode: CLIENT_ACKNOWLEDGE}
time: {column: at, format: "%d.%m.%Y %H:%M:%S.%f", zone: Europe/Berlin}
process: who
message: {template: "{shop}-{id}"}
scope: {constant: message}
redelivered: {column: tries, above: 1}
delivery_count: tries
event:
  column: what
  values: {S: send, C: confirmed, D: delivered, A: [processed, acknowledge, acknowledged], X: ignore}
"""


def rows(messages: int) -> list[str]:
    lines = ["at,who,shop,id,tries,what"]
    for number in range(messages):
        second = f"01.03.2026 10:{number // 60 % 60:02}:{number % 60:02}"
        told = [("000", "p", "", "S"), ("100", "p", "", "C"), ("200", "c", "1", "D"), ("300", "c", "", "A")]
        if number % 50 == 7:
            told += [("350", "c", "", "X"), ("400", "c", "", "Z"), ("500", "c", "2", "D")]
        lines += [f"{second}.{millis},{who},s1,{number},{tries},{what}" for millis, who, tries, what in told]
    return lines


def test_the_events_and_the_verdict_are_those_of_the_file(spark_session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MAPPING, encoding="utf-8")
    (tmp_path / "t.csv").write_text("".join(f"{line}\n" for line in rows(300)), encoding="utf-8")
    importer = format_named("table").importer(Options(mapping=tmp_path / "m.yaml"))
    problems = Problems()
    here = [row for batch in importer.batches([tmp_path / "t.csv"], problems) for row in batch.to_pylist()]

    mapping = read_mapping(tmp_path / "m.yaml")
    table = spark_session.read.csv(str(tmp_path / "t.csv"), header=True).repartition(3)
    events = spark.mapped(table, mapping)
    there = [row.asDict() for row in events.collect()]
    unread = [row for row in there if row["unreadable"] is not None]
    names = list(here[0])
    key = repr
    assert sorted(([row[name] for name in names] for row in there if row["unreadable"] is None), key=key) == sorted(
        ([row[name] for name in names] for row in here), key=key
    )
    assert len(unread) == problems.count == 6
    assert {row["unreadable"] for row in unread} == {each.reason for each in problems.reasons()}

    import_history(importer, [tmp_path / "t.csv"], tmp_path / "h.parquet", dict(mapping.header))
    found = verify.examination(
        tmp_path / "h.parquet", SPEC, lambda header: SPEC.configure(None, header.config if header else {}), skew=None
    )
    local = verify.verdict(found.findings, SPEC)
    remote = spark.verify(events, mapping.header["config"], cannot_show=mapping.cannot_show, rows=500)
    leave = {"history": None, "unreadable": None, "explanation": None}  # these name lines
    assert {**comparable(remote.findings), **leave} == {**comparable(local.findings), **leave}
    for each in (local, remote):
        assert each.findings.explanation is not None
        assert each.findings.explanation.contradicted == 6
    assert local.verdict is remote.verdict
    assert local.violated == remote.violated
    assert any("the source cannot show" in why for why in remote.reasons)


def test_a_column_that_is_missing_and_a_name_that_there_is_not_are_refused(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text(MAPPING, encoding="utf-8")
    table = spark_session.createDataFrame([("p", "S")], "who string, what string")
    with pytest.raises(InputError, match=r"the table has no column 'at', which .*m\.yaml names; it has 'who', 'what'"):
        spark.mapped(table, tmp_path / "m.yaml")
    with pytest.raises(InputError, match="`cannot_show` names 'nothing'"):
        spark.verify(table, cannot_show=["nothing"])
