"""Spark finds the state space that one process finds, also after an interruption; foreign checkpoints are refused."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import cli, spark
from ackfsm.checking import explore
from ackfsm.checking.explore import Exploration
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.spark._chunks import Batches, minus_visited, rows_of
from ackfsm.spark._levels import METADATA, Levels, states_in
from ackfsm.surveys import matrix
from ackfsm.terms import DefectError, Fault, InputError, SpecError
from model_tests.searches import fitting
from model_tests.support.checker.drawn_networks import drawn
from model_tests.support.checker.plain_search import shows
from model_tests.support.tables import shipped
from model_tests.support.whole import few

pytestmark = pytest.mark.spark

SPEC = shipped()
SETTINGS = {
    "jms": {"ack_mode": "CLIENT_ACKNOWLEDGE"},
    "artemis": {"ack_mode": "PRE_ACKNOWLEDGE"},
    "solace": {},
}


DEFAULT = SPEC.configure(None, {"profile": "jms"})
LARGE = 3_000
"""Three levels of two messages have more states than that."""


def _network(profile: str, *, messages: int = 1) -> Network:
    configuration = SPEC.configure(None, SPEC.resolve_aliases(profile, SETTINGS[profile]))
    return compose(SPEC, configuration, Bounds(messages=messages, faults=frozenset(Fault), max_faults=1))


@functools.cache
def _of_two() -> tuple[Network, Exploration]:
    """A network of two messages, and what one process finds."""
    network = _network("jms", messages=2)
    return network, explore.explore(network)


def _same(network: Network, found: Exploration, local: Exploration) -> None:
    """The same counts, and witnesses that can happen and are as short."""
    assert (found.states, found.transitions, found.depth) == (local.states, local.transitions, local.depth)
    assert (found.complete, found.stopped_by) == (True, None)
    assert {a: len(steps) for a, steps in found.witnesses.items()} == {a: len(s) for a, s in local.witnesses.items()}
    assert all(shows(network, steps, anomaly) for anomaly, steps in found.witnesses.items())


@pytest.mark.parametrize("profile", few([*SETTINGS], 1))
def test_small_levels_are_searched_as_in_one_process(profile: str, spark_session: SparkSession) -> None:
    network = _network(profile)
    _same(network, spark.explore(network, session=spark_session), explore.explore(network))


def test_spark_finds_what_one_process_finds(spark_session: SparkSession, tmp_path: Path) -> None:
    """The three largest levels go through Spark, the others do not; each sees what the other found."""
    network, local = _of_two()
    found = spark.explore(network, session=spark_session, checkpoint=tmp_path, small=LARGE)
    _same(network, found, local)
    assert (tmp_path / "level=00027" / "bucket=3").exists(), "divided by Spark"
    assert (tmp_path / "level=00001" / "bucket=-2").exists(), "not divided"
    assert spark.explore(network, session=spark_session, checkpoint=tmp_path) == found, "read again from both kinds"


@pytest.mark.parametrize("seed", few([2, 12, 16, 49], 2))
def test_spark_finds_what_a_plain_search_finds(seed: int, spark_session: SparkSession) -> None:
    """Networks of many components, of several masks, of local states of several words."""
    network, expected = fitting(drawn(seed), 200)
    found = spark.explore(network, session=spark_session)
    assert (found.states, found.transitions, found.complete) == (len(expected.depth), expected.transitions, True)
    assert {anomaly: len(steps) for anomaly, steps in found.witnesses.items()} == expected.anomalies


@pytest.mark.parametrize("small", [10**6, 100], ids=["small levels", "large levels"])
def test_a_search_on_spark_that_loses_states_says_so_and_gives_no_answer(
    small: int, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackfsm.spark._explore.minus_visited", _losing)
    with pytest.raises(DefectError, match="states were not found that others lead to"):
        spark.explore(_network("jms"), session=spark_session, small=small)


def _losing(words: int, folder: Path, levels: int) -> Callable[[Batches], Batches]:
    """From the tenth level on half of the states are lost."""
    whole = minus_visited(words, folder, levels)

    def sifted(batches: Batches) -> Batches:
        for one in whole(batches):
            bucket = one["bucket"][0].as_py()
            if levels < 10 or bucket == METADATA:
                yield one
            else:
                yield from rows_of(states_in(one["states"][0], words)[::2], bucket)

    return sifted


def test_a_limit_leaves_the_search_incomplete(spark_session: SparkSession) -> None:
    network, _ = _of_two()
    found = spark.explore(network, session=spark_session, max_states=5_000)
    assert (found.complete, found.stopped_by) == (False, "max_states")
    assert 5_000 < found.states < 10_000
    assert all(shows(network, steps, anomaly) for anomaly, steps in found.witnesses.items())
    assert set(found.witnesses) == {"duplicate", "reprocessed"}


class _Killed(Exception):  # noqa: N818 - not an error of the program
    """The process ended here."""


def _interrupted(network: Network, session: SparkSession, folder: Path, level: int, patch: pytest.MonkeyPatch) -> None:
    """Search until the files of ``level`` are written, but not yet counted as there."""
    commit = Levels.commit

    def killed(levels: Levels) -> None:
        if len(levels.levels) == level:
            raise _Killed
        commit(levels)

    with patch.context() as patched:
        patched.setattr(Levels, "commit", killed)
        with pytest.raises(_Killed):
            spark.explore(network, session=session, checkpoint=folder)


@pytest.fixture(scope="module")
def interrupted(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a search that ended on its way to level 20."""
    folder = tmp_path_factory.mktemp("interrupted")
    with pytest.MonkeyPatch.context() as patch:
        _interrupted(_of_two()[0], spark_session, folder, 20, patch)
    return folder


def test_an_interrupted_search_goes_on_where_it_was(
    spark_session: SparkSession, tmp_path: Path, interrupted: Path
) -> None:
    network, local = _of_two()
    shutil.copytree(interrupted, tmp_path, dirs_exist_ok=True)
    told: list[tuple[int, int]] = []
    expanded: list[int] = []
    found = spark.explore(
        network,
        session=spark_session,
        checkpoint=tmp_path,
        resumed=lambda level, states: told.append((level, states)),
        progress=expanded.append,
    )
    _same(network, found, local)
    recorded = json.loads((tmp_path / "manifest.json").read_text())["levels"]
    assert told == [(19, sum(level["states"] for level in recorded[:20]))]
    assert len(expanded) == local.depth + 1 - 19, "the first 19 levels are not expanded again"
    again = spark.explore(network, session=spark_session, checkpoint=tmp_path, progress=expanded.append)
    assert again == found
    assert len(expanded) == local.depth + 1 - 19, "nothing is left to expand"


def test_a_checkpoint_of_another_question_is_refused(spark_session: SparkSession, tmp_path: Path) -> None:
    spark.explore(_network("solace"), session=spark_session, checkpoint=tmp_path)
    with pytest.raises(
        InputError, match="belongs to another configuration, other bounds or other tables; name another"
    ):
        spark.explore(_network("artemis"), session=spark_session, checkpoint=tmp_path)


def test_a_folder_with_other_files_is_refused(spark_session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"there are other files here \(thesis.tex\); name an empty or a new folder"):
        spark.explore(_network("solace"), session=spark_session, checkpoint=tmp_path)


@pytest.mark.parametrize("damage", ["a file is gone", "a bit is flipped", "the manifest is torn", "its format is new"])
def test_a_damaged_checkpoint_is_refused(
    damage: str, spark_session: SparkSession, tmp_path: Path, interrupted: Path
) -> None:
    shutil.copytree(interrupted, tmp_path, dirs_exist_ok=True)
    file, manifest = tmp_path / "level=00015" / "bucket=-2" / "part.parquet", tmp_path / "manifest.json"
    match damage:
        case "a file is gone":
            file.unlink()
        case "a bit is flipped":
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
        case "the manifest is torn":
            manifest.write_bytes(manifest.read_bytes()[:-40])
        case _:
            manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'), encoding="utf-8")
    with pytest.raises(InputError, match=r"delete the folder and begin anew|format 2 is not 1; name another folder"):
        spark.explore(_of_two()[0], session=spark_session, checkpoint=tmp_path)


def test_damage_that_a_worker_sees_is_told_as_its_own(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, _ = _of_two()
    _interrupted(network, spark_session, tmp_path, 28, monkeypatch)
    file = tmp_path / "level=00020" / "bucket=-2" / "part.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"level=00020.*this part of the checkpoint is damaged"):
        spark.explore(network, session=spark_session, checkpoint=tmp_path, small=1)


def test_a_matrix_on_spark_is_that_of_this_machine(spark_session: SparkSession) -> None:
    settings = {switch.key: getattr(DEFAULT, switch.key) for switch in SPEC.factors if switch.key != "send_mode"}
    plan = matrix.make_plan(SPEC, "jms", settings, pairs=False)
    parallel_map = functools.partial(spark.spread, session=spark_session)
    found, local = matrix.run(plan, SPEC, parallel_map=parallel_map), matrix.run(plan, SPEC)
    assert len(found.plan.configurations) > 1
    assert (found.keys, found.outcomes) == (local.keys, local.outcomes)


def test_what_a_task_raises_is_told_as_its_own(spark_session: SparkSession) -> None:
    plan = matrix.make_plan(SPEC, "jms", {"ack_mode": "AUTO_ACKNOWLEDGE"}, pairs=False)
    other = dataclasses.replace(SPEC, digest="of other tables")
    with pytest.raises(SpecError, match="the tables were changed while they were being explored; start again"):
        matrix.run(plan, other, parallel_map=functools.partial(spark.spread, session=spark_session))


@pytest.fixture
def answer(
    spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command on the session that all tests share: exit code, output, errors."""
    monkeypatch.setattr(spark, "session", lambda _: spark_session)
    monkeypatch.setattr(type(spark_session), "stop", lambda _: None)

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(words)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_check_says_the_same_on_spark_and_where_it_resumed(
    answer: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    words = ("check", "--json", "--profile", "solace", "--fault", "broker_crash")
    folder = ("--engine", "spark", "--checkpoint", str(tmp_path))
    local, (code, told, silent), (_, _, resumed) = answer(*words), answer(*words, *folder), answer(*words, *folder)
    assert (code, silent) == (local[0], "")
    expected, found = json.loads(local[1]), json.loads(told)
    same = ("config", "messages", "faults", "complete", "states", "transitions", "guarantees", "strongest")
    assert {key: found[key] for key in same} == {key: expected[key] for key in same}
    assert resumed.startswith("ackfsm check: resumed at level ")
    assert f"with {found['states']:,} states" in resumed


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("check", "--checkpoint", "x"), "--checkpoint is for --engine spark; add it"),
        (("check", "--engine", "spark", "--master", "spark://host:7077"), "name one that all see with --checkpoint"),
        (("check", "--engine", "spark", "--progress"), "--progress is for --engine local"),
        (("check", "--engine", "spark", "--jobs", "2"), "--jobs is for --engine local"),
        (("matrix", "--engine", "spark", "--jobs", "2"), "--jobs is for --engine local"),
        (("matrix", "--master", "local"), "--master is for --engine spark; add it"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert why in capsys.readouterr().err
