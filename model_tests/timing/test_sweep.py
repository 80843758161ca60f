"""A grid of plans: its cells, what is skipped and why, the files, the screen; the same with several processes."""

import contextlib
import csv
import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ackfsm import cli
from ackfsm.cli import _sweep
from ackfsm.rates.timing import Grid, Planner, Row, Waits, Workload, plan, plan_cells, read_dimension, waits_of
from ackfsm.tables import batch
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE
from model_tests.timing.test_plan import WAITS, WORKS

WORK = Workload(rtt=Fraction(1, 4000), bandwidth=Fraction(2**30), bandwidth_back=Fraction(2**30))


def grid(*swept: str, profile: str | None = None, **more: Any) -> Grid:
    return Grid(profile, more.pop("settings", {}), WORK, tuple(map(read_dimension, swept)), **more)


def rows(found: Grid) -> list[Row]:
    found.check(shipped())
    return plan_cells(found, shipped(), range(len(found)))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["plan", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@settings(max_examples=150 if WHOLE else 50)
@given(st.lists(st.tuples(WORKS, WAITS), min_size=1, max_size=3), st.data())
def test_a_planner_that_remembers_answers_as_one_that_does_not(
    drawn: list[tuple[Workload, Waits]], data: st.DataObject
) -> None:
    """Each case is planned again with one number or word of another, which has to change what depends on it."""
    planner = Planner()
    for work, waits in drawn:
        other_work, other_waits = data.draw(WORKS), data.draw(WAITS)
        one = data.draw(st.sampled_from([field.name for field in dataclasses.fields(Workload)]))
        word = data.draw(st.sampled_from([field.name for field in dataclasses.fields(Waits)]))
        for case in (
            (work, waits),
            (dataclasses.replace(work, **{one: getattr(other_work, one)}), waits),
            (work, dataclasses.replace(waits, **{word: getattr(other_waits, word)})),
        ):
            assert planner.plan(*case) == plan(*case)


def test_a_cell_is_the_plan_of_its_values() -> None:
    found = rows(grid("rtt=0.1ms,10ms", "publish_window=none,100", "per-commit=1,10", profile="rabbitmq"))
    assert [tuple(row.swept.values()) for row in found[:3]] == [
        ("0.1ms", "none", "1"),
        ("0.1ms", "none", "10"),
        ("0.1ms", "100", "1"),
    ]
    assert [row.cell for row in found] == list(range(8))
    work = dataclasses.replace(WORK, rtt=Fraction(1, 100), messages_per_commit=10)
    waits = waits_of(shipped(), shipped().configure("rabbitmq", {"publish_window": 100}))
    one = plan(work, waits)
    assert found[7].publish_at_most == float(one.publish.rate.high or 0)
    assert (found[7].publish_binds, found[7].publish_next_binds) == (one.publish.binds, one.publish.next_binds)
    assert found[7].window_that_fills == one.fills
    assert found[7].delivery_at_least == float(one.delivery)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rtt=0.1ms..100ms*10", ("0.1ms", "1ms", "10ms", "100ms")),
        ("rtt = 1ms , 2ms", ("1ms", "2ms")),
        ("publish_window=1..1000*10,none", ("1", "10", "100", "1000", "none")),
        ("producers=1..8+3", ("1", "4", "7")),
        ("message_size=1KiB..4KiB*2", ("1KiB", "2KiB", "4KiB")),
        ("message-size=1..5*1.5", ("1", "2", "3")),
        ("timer=0.5s..1.5s+500ms", ("0.5s", "1s", "1.5s")),
    ],
)
def test_a_range_has_the_values_that_one_would_write(text: str, values: tuple[str, ...]) -> None:
    assert read_dimension(text).values == values


def test_both_directions_have_the_swept_bandwidth_unless_one_is_said() -> None:
    unanswered = {"block_on_acknowledge": "false"}
    slow = rows(grid("bandwidth=1Mb,any", settings=unanswered))
    assert slow[0].deliver_binds == "bandwidth down"
    assert slow[1].deliver_at_most is None
    both = Grid(None, unanswered, WORK, (read_dimension("bandwidth=1Mb", both_ways=False),))
    assert int(rows(both)[0].deliver_at_most or 0) == 89_478


def test_what_cannot_be_is_a_row_with_the_reason() -> None:
    found = rows(grid("publish_window=255,256", "send_mode=asynchronous,blocking", profile="solace"))
    assert [row.illegal is None for row in found] == [True, True, False, False]
    assert found[2].illegal is not None
    assert "a window is from 1 to 255 messages" in found[2].illegal
    assert found[2].publish_at_most is None
    assert found[2].swept == {"publish_window": "256", "send_mode": "asynchronous"}


def test_systems_are_swept_too_each_with_its_own_names() -> None:
    found = rows(grid("profile=artemis,activemq", "blockOnDurableSend=true,false"))
    assert [row.publish_binds for row in found[:2]] == ["round trip", "bandwidth up"]
    assert all("blockOnDurableSend is a name that artemis has" in (row.illegal or "") for row in found[2:])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sweep", "rtt"], "'rtt' is not NAME=VALUE,VALUE…"),
        (["--sweep", "rtt=1"], "--sweep: rtt: '1' is no quantity here"),
        (["--sweep", "rtt=1ms,,2ms"], "rtt has an empty value"),
        (["--sweep", "rtt=1ms,1ms"], "rtt says '1ms' twice"),
        (["--sweep", "rtt=1ms..2ms"], "'1ms..2ms' is no range; write FIRST..LAST*FACTOR"),
        (["--sweep", "rtt=2ms..1ms*2"], "ends before it begins"),
        (["--sweep", "rtt=1ms..2ms*1"], "'1' is no factor of a range"),
        (["--sweep", "prefetch=0..8*2"], "never leaves 0"),
        (["--sweep", "prefetch=0..8+0"], "never ends"),
        (["--sweep", "producers=1..20000+1"], "has more than 10,000 values"),
        (["--sweep", "send_mode=a..b*2"], "'a' is no number that a range could begin or end with"),
        (["--sweep", "send_mode=blokcing"], "did you mean blocking?"),
        (["--sweep", "producers=0"], "producers: '0' is not a whole number from 1"),
        (["--sweep", "rate=-1"], "rate: '-1' is no rate"),
        (["--sweep", "group_commit=yes"], "'yes' is neither true nor false"),
        (["--sweep", "message-size=0"], "'0' is not a size"),
        (["--sweep", "foo=1"], "there is no setting 'foo'"),
        (["--sweep", "rtt=1ms", "--sweep", "rtt=2ms"], "--sweep rtt is given twice"),
        (["--sweep", "prefetch=1", "--set", "prefetch=2"], "--set and --sweep both say prefetch"),
        (["--sweep", "profile=ems", "--profile", "jms"], "--profile and --sweep profile= say the same thing"),
        (["--sweep", "profile=emms"], "emms"),
        (
            ["--profile", "solace", "--sweep", "publish_window=256,300"],
            "no cell of the sweep can be: the profile solace",
        ),
        (["--sweep", "producers=1..9999+1", "--sweep", "consumers=1..9999+1"], "the sweep has 99,980,001 cells"),
        (["--sweep", "rtt=1ms", "--output", "x.txt"], "ends with neither .parquet nor .csv"),
        (["--sweep", "rtt=1ms", "--output", "no/such/x.csv"], "cannot be written"),
        (["--sweep", "rtt=1ms", "--master", "local"], "--master is for --engine spark"),
        (["--output", "x.csv"], "--output is for a grid of plans"),
        (["--jobs", "2"], "--jobs is for a grid of plans"),
        (["--engine", "spark"], "--engine spark is for a grid of plans"),
    ],
)
def test_what_is_no_grid_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert cli.main(["plan", *words]) == 2
    found = capsys.readouterr()
    assert said in found.err
    assert len(found.err.splitlines()) == 1
    assert not found.out


def test_the_files_have_what_the_json_has(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--profile", "solace", "--sweep", "rtt=0.1ms,10ms", "--sweep", "publish_window=1,256"]
    told = printed(capsys, *words)
    assert (told["cells"], told["illegal"]) == (4, 2)
    assert told["sweep"] == {"rtt": ["0.1ms", "10ms"], "publish_window": ["1", "256"]}
    for name in ("t.parquet", "t.csv"):
        answer = printed(capsys, *words, "--output", str(tmp_path / name))
        assert answer["written"] == [str(tmp_path / name)]
        assert "rows" not in answer
    table = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    with (tmp_path / "t.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for row, line, one in zip(table, lines, told["rows"], strict=True):
        swept = one.pop("swept")
        assert (line.pop("rtt"), line.pop("publish_window")) == (swept["rtt"], swept["publish_window"])
        assert row.pop("rtt") == {"0.1ms": 0.0001, "10ms": 0.01}[swept["rtt"]]
        assert row.pop("publish_window") == swept["publish_window"]
        assert row == one
        assert line == {key: "" if value is None else json.dumps(value).strip('"') for key, value in one.items()}


def test_a_small_grid_is_a_table_and_of_a_large_one_the_extremes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["plan", "--profile", "solace", "--sweep", "rtt=0.1ms,10ms", "--sweep", "publish_window=1,100,256"]
    assert cli.main(small) == 0
    screen = capsys.readouterr().out
    assert max(map(len, screen.splitlines())) <= 80
    assert "8,994" in screen
    assert "Skipped 2 cells (rtt=0.1ms, publish_window=256, …): the profile solace does not" in screen
    assert cli.main(["plan", "--sweep", "rtt=1ms..100ms+1ms"]) == 0
    screen = capsys.readouterr().out
    assert "100 cells" in screen
    assert "fewest published: 10/s with rtt=100ms" in screen
    assert "bound by, in so many cells: round trip 100" in screen
    assert max(map(len, screen.splitlines())) <= 80


def test_several_processes_find_what_one_finds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sweep, "_CELLS_A_TASK", 50)
    words = ["--profile", "artemis", "--sweep", "rtt=1ms..100ms+1ms", "--sweep", "prefetch=0,1,2"]
    one = printed(capsys, *words, "--jobs", "1")
    pools, whole = list[int](), batch.process_pool

    def pool(jobs: int) -> contextlib.AbstractContextManager[batch.ProcessPool]:
        pools.append(jobs)
        return whole(jobs)

    monkeypatch.setattr(batch, "process_pool", pool)
    assert printed(capsys, *words, "--jobs", "2") == one
    assert pools == [2]
    assert len(one["rows"]) == 300


def test_a_grid_can_be_checked_before_it_is_planned() -> None:
    with pytest.raises(InputError, match="there is no setting 'prefetsch'"):
        grid("prefetsch=1").check(shipped())
