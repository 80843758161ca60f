"""Is a sweep on Spark that of one process?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ackfsm import cli, spark
from ackfsm.rates.timing import plan_cells
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.timing.test_sweep import grid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GRID = grid("rtt=0.1ms..100ms*3", "publish_window=1,50,256", "sync_time=1ms,2ms", profile="solace")


def test_the_rows_are_those_of_one_process(spark_session: SparkSession) -> None:
    local = plan_cells(GRID, shipped(), range(len(GRID)))
    assert {row.illegal is None for row in local} == {True, False}
    assert spark.sweep(spark_session, GRID, shipped()) == local
    some = spark.swept(spark_session.range(3, 9).withColumnRenamed("id", "cell"), GRID, shipped())
    assert some.schema == spark.SWEEP_SCHEMA
    assert sorted(row.cell for row in some.collect()) == list(range(3, 9))


def test_a_table_without_numbers_of_cells_is_refused(spark_session: SparkSession) -> None:
    with pytest.raises(InputError, match="no column cell or id"):
        spark.swept(spark_session.range(3).withColumnRenamed("id", "x"), GRID, shipped())


def test_the_command_says_the_same(
    spark_session: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "session", lambda _: spark_session)
    monkeypatch.setattr(type(spark_session), "stop", lambda _: None)
    words = ["plan", "--profile", "artemis", "--sweep", "rtt=1ms,2ms", "--sweep", "prefetch=1,2", "--json"]
    told: list[Any] = []
    for more in ([], ["--engine", "spark"]):
        assert cli.main([*words, *more]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert cli.main([*words, "--engine", "spark", "--jobs", "2"]) == 2
