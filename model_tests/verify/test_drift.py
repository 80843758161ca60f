"""Clocks that run at different rates: what is demanded over time, what meets it, and what is told of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.cli import main
from ackfsm.history.clocks import ESTIMATED, Clocks, Demands, clocks_of
from ackfsm.history.drift import FAR, FASTEST, Hulls, hulls_of, lines_of, united
from ackfsm.terms import Anomaly
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.notation import write
from model_tests.verify.test_fold_chunks import folded, whole

SPEC = shipped()
MS, SECOND, HOUR = 10**6, 10**9, 3_600 * 10**9

_POINTS = st.lists(st.tuples(st.integers(0, 40), st.integers(-30, 30)), min_size=1, max_size=200)


def _hulls(points: Sequence[tuple[int, int]]) -> Hulls:
    t, late = (np.array(column, np.int64) for column in zip(*points, strict=True))
    return hulls_of(["p", "c"], np.zeros(len(t), np.int32), np.ones(len(t), np.int32), t, late)


@given(points=_POINTS)
def test_a_hull_is_above_all_points_and_each_corner_is_one_of_them(points: list[tuple[int, int]]) -> None:
    hull = _hulls(points)["p", "c"]
    assert set(hull) <= set(points)
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull)]
    assert all(first > second for first, second in pairwise(rates)), "the hull turns down at each corner"
    times, highest = (np.array(column) for column in zip(*hull, strict=True))
    for t, late in points:
        assert late <= np.interp(t, times, highest) + 1e-9
    assert (hull[0][0], hull[-1][0]) == (min(t for t, _ in points), max(t for t, _ in points))


@given(points=_POINTS, cuts=st.lists(st.integers(0, 200), max_size=3))
def test_the_hull_of_hulls_is_that_of_all_points(points: list[tuple[int, int]], cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(points)]
    parts = [points[a:b] for a, b in pairwise(bounds) if points[a:b]]
    assert united(_hulls(each) for each in parts) == _hulls(points)
    assert Demands.merged([Demands({}, _hulls(each)) for each in parts]) == Demands({}, _hulls(points))


def _drifted(
    rates: dict[str, float], *, every: int = 2 * SECOND, length: int = HOUR, start: dict[str, int] | None = None
) -> list[dict[str, Any]]:
    """Messages that go on from process to process, each with a clock that loses so many parts in a million."""
    draw, began = random.Random(7), start or {}
    names = list(rates)

    def at(process: str, t: int) -> int:
        return HOUR + t - began.get(process, 0) - int(rates[process] * t / 10**6)

    events = list[dict[str, Any]]()
    for number, t in enumerate(range(0, length, every)):
        for hop, (sender, receiver) in enumerate(pairwise(names)):
            fields = {"message": f"m{number}.{hop}", "queue": f"q{hop}"}
            later = t + hop * 4 * MS + draw.randrange(MS // 10, MS)
            events += [
                {"t": at(sender, t + hop * 4 * MS), "process": sender, "event": "send", **fields},
                {"t": at(sender, later + MS), "process": sender, "event": "confirmed", **fields},
                {"t": at(receiver, later), "process": receiver, "event": "delivered", "redelivered": False, **fields},
                {"t": at(receiver, later + MS), "process": receiver, "event": "processed", **fields},
            ]
    events.append({"t": 3 * HOUR, "process": "nemesis", "event": "drained"})
    return sorted(events, key=lambda event: int(event["t"]))


def _file(tmp_path: Path, events: Sequence[dict[str, Any]]) -> Path:
    file = tmp_path / "h.jsonl"
    header = {"ackfsm_history": 1, "config": {"profile": "jms"}}
    return write((header, *events), file)


DRIFTS: dict[str, tuple[dict[str, float], dict[str, int]]] = {
    "a consumer that loses 50 ppm": ({"p": 0, "c": 50}, {}),
    "a consumer behind that loses 40 ppm": ({"p": 0, "c": 40}, {"c": 80 * MS}),
    "a consumer behind that catches up": ({"p": 0, "c": -40}, {"c": 144 * MS}),
    "a producer that gains": ({"p": -60, "c": 0}, {}),
    "three in a row": ({"p": 0, "c": 40, "d": 80}, {}),
}


@pytest.mark.parametrize(("rates", "start"), DRIFTS.values(), ids=DRIFTS)
def test_clocks_that_drift_apart_are_put_right(rates: dict[str, float], start: dict[str, int]) -> None:
    """Beyond what a constant is estimated to: without drift these are phantoms that leave the verdict open."""
    found = whole(_drifted(rates, start=start), SPEC.configure("jms"), None)
    assert found.anomalies[Anomaly.PHANTOM].count == 0
    first = next(iter(rates))
    for process, drift in found.drifts.items():
        assert drift == pytest.approx(rates[process] - rates[first], abs=1)
    assert found.skew > ESTIMATED
    assert all(not finding.found for finding in found.anomalies.values())


def test_the_command_tells_the_drift_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(_file(tmp_path, _drifted({"p": 0, "c": 50})))
    assert main(["verify", file]) == 0
    assert "corrected: 'c' +" in (shown := " ".join(capsys.readouterr().out.split()))
    assert " ppm" in shown
    assert main(["verify", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["drifts"]["c"] == pytest.approx(50, abs=1)
    assert main(["verify", file, "--skew", "1ms", "--json"]) == 3
    assert "drifts" not in json.loads(capsys.readouterr().out)


def test_a_clock_that_was_set_is_no_drift() -> None:
    """No straight line explains a jump of half a second: the phantoms stay, and leave the verdict open."""
    events = _drifted({"p": 0, "c": 0})
    jumped = [
        {**each, "t": each["t"] - SECOND // 2 * (each["process"] == "c" and each["t"] > HOUR + HOUR // 2)}
        for each in events
    ]
    found = whole(sorted(jumped, key=lambda each: int(each["t"])), SPEC.configure("jms"), None)
    assert found.drifts == {}
    phantoms = found.anomalies[Anomaly.PHANTOM]
    assert phantoms.doubted == phantoms.found > 0


def test_a_loss_and_a_repetition_are_found_beside_clocks_that_drift() -> None:
    events = _drifted({"p": 0, "c": 50})
    again = next(each for each in events if each["event"] == "delivered" and each["message"] == "m800.0")
    lost = [each for each in events if each.get("message") != "m1300.0" or each["process"] == "p"]
    spoiled = [*lost, {**again, "t": again["t"] + 100 * SECOND}]
    found = whole(sorted(spoiled, key=lambda each: int(each["t"])), SPEC.configure("jms"), None)
    assert found.anomalies[Anomaly.LOSS].examples == ("m1300.0",)
    assert found.anomalies[Anomaly.UNFLAGGED_DUPLICATE].examples == ("m800.0",)


@pytest.mark.parametrize("cuts", [[1_000], [3, 3_000, 5_000]])
@pytest.mark.parametrize(("rates", "start"), DRIFTS.values(), ids=DRIFTS)
def test_chunks_demand_what_the_whole_demands(rates: dict[str, float], start: dict[str, int], cuts: list[int]) -> None:
    events = _drifted(rates, start=start)
    found, _ = folded(events, cuts, SPEC.configure("jms"), None)
    assert found.drifts
    assert comparable(found) == comparable(whole(events, SPEC.configure("jms"), None))


_FEW_HULLS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc")).filter(lambda pair: pair[0] != pair[1]),
    st.lists(st.tuples(st.integers(0, HOUR), st.integers(-FAR, FAR // 20)), min_size=1, max_size=6),
    max_size=4,
)


@given(demands=_FEW_HULLS)
def test_what_is_put_right_meets_every_demand_and_keeps_the_order_of_each_process(
    demands: dict[tuple[str, str], list[tuple[int, int]]],
) -> None:
    hulls = {pair: _hulls(points)["p", "c"] for pair, points in demands.items()}
    clocks = clocks_of(Demands({}, hulls), None)
    for name in clocks.drifts:
        assert abs(clocks.drifts[name]) <= FASTEST
        times = SECOND * np.arange(HOUR // SECOND)
        assert (np.diff(times + clocks.shifts([name], np.zeros(len(times), np.int32), times)) > 0).all()
    if clocks.drifts:
        for (before, after), points in demands.items():
            for t, late in points:
                assert t + _shift(clocks, after, t) > t + late + _shift(clocks, before, t + late)
                assert 0 <= _shift(clocks, after, t) <= clocks.latest


def _shift(clocks: Clocks, name: str, t: int) -> int:
    return int(clocks.shifts([name], np.zeros(1, np.int32), np.array([t]))[0])


def test_a_circle_that_no_lines_satisfy_is_none() -> None:
    hulls = {("a", "b"): ((0, 10), (HOUR, 10)), ("b", "a"): ((0, 10), (HOUR, 10))}
    assert lines_of(hulls, -FAR, HOUR + FAR, ESTIMATED) is None
    assert clocks_of(Demands({}, hulls), None) == Clocks()


def test_a_drift_that_no_clock_has_is_none() -> None:
    hulls = {("a", "b"): ((0, 0), (HOUR, int(2 * FASTEST * HOUR)))}
    assert lines_of(hulls, -FAR, HOUR + FAR, ESTIMATED) is None
