"""``ackfsm plan --simulate``: its numbers, its screen, and what it refuses."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import cli
from ackfsm.rates.simulation import PERCENTILES, latencies


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["plan", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_a_simulation_has_the_rates_of_the_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, "--simulate", "1000", "--rtt", "1ms", "--message-size", "1500", "--seed", "7")
    found = answer["simulated"]
    assert (found["messages"], found["seed"], found["spread"], found["stands_still"]) == (1000, 7, {}, False)
    for key, told in (("rate", answer), ("publish", answer["publish"]), ("deliver", answer["deliver"])):
        assert found[key] == pytest.approx(told["rate"], rel=1e-3)
    assert found["latency"]["delivery"]["p50"] == pytest.approx(answer["latency"]["delivery_at_least"])
    assert found["latency"]["confirmation"]["max"] == pytest.approx(answer["latency"]["confirmation_at_least"])


def test_what_is_spread_has_percentiles_and_a_repeatable_chance(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--simulate", "1500", "--rtt", "1ms", "--spread", "rtt=exponential", "--spread", "sync-time=uniform")
    first, again, other = (printed(capsys, *words, "--seed", seed)["simulated"] for seed in ("1", "1", "2"))
    assert first == again
    assert first["latency"] != other["latency"]
    assert first["spread"] == {"rtt": "exponential", "sync_time": "uniform"}
    confirmation = first["latency"]["confirmation"]
    times = [confirmation[key] for key in ("p50", "p90", "p99", "p99.9", "max")]
    assert times == sorted(times)
    assert times[0] < 1e-3 < times[1], "half of it is in less than the mean, for the median of two ways is less"
    assert sum(each["messages"] for each in confirmation["histogram"]) == confirmation["messages"] == 1500


def test_who_hears_nothing_has_no_latency_and_what_stands_still_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    unconfirmed = printed(capsys, "--simulate", "200", "--set", "send_mode=unconfirmed", "--profile", "artemis")
    assert unconfirmed["simulated"]["latency"]["confirmation"] is None
    stuck = ("--profile", "rabbitmq", "--set", "ack_mode=CLIENT_ACKNOWLEDGE", "--set", "prefetch=5")
    answer = printed(capsys, *stuck, "--per-acknowledge", "6", "--simulate", "100")["simulated"]
    assert (answer["stands_still"], answer["deliver"], answer["rate"]) == (True, 0.0, 0.0)


def test_the_screen_fits_into_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--simulate", "1000", "--rtt", "1ms", "--spread", "rtt=exponential"]) == 0
    screen = capsys.readouterr().out
    assert max(map(len, screen.splitlines())) <= 80
    for part in (
        "1,000 messages simulated in",
        "closed form  simulated",
        "99.9 %",
        "confirmation after",
        "delivery after",
    ):
        assert part in screen
    assert "#" * 40 in screen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--simulate", "0"], "'0' is not a whole number from 1"),
        (["--simulate", "10000001"], "--simulate: 10,000,001 messages are too many; take at most 10,000,000"),
        (["--seed", "3"], "--seed is for a simulation; add --simulate N, or leave --seed out"),
        (["--spread", "rtt=uniform"], "--spread is for a simulation; add --simulate N, or leave --spread out"),
        (["--simulate", "1", "--sweep", "rtt=1ms,2ms"], "--simulate is of one configuration"),
        (["--simulate", "1", "--spread", "rtt"], "--spread: 'rtt' has no =; write rtt=exponential"),
        (["--simulate", "1", "--spread", "rt=uniform"], "--spread: 'rt' is none of broker_time, processing_time"),
        (["--simulate", "1", "--spread", "rtt=exponentail"], "(did you mean exponential?)"),
    ],
)
def test_what_cannot_be_simulated_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    try:
        code: object = cli.main(["plan", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=300))
def test_every_latency_is_in_one_bin_and_percentiles_are_those_of_counting(times: list[float]) -> None:
    found = latencies(np.array([*times, -1.0]))
    assert found is not None
    assert (found.count, found.most) == (len(times), max(times))
    assert sum(count for *_, count in found.histogram) == len(times)
    assert found.histogram[0][0] <= min(times) * (1 + 1e-9)
    assert [low for low, *_ in found.histogram[1:]] == [high for _, high, _ in found.histogram[:-1]]
    for percent, time in found.percentiles:
        assert sum(each <= time for each in times) >= percent / 100 * len(times)
        assert sum(each < time for each in times) < percent / 100 * len(times)
    assert [percent for percent, _ in found.percentiles] == [*PERCENTILES]
    assert len(found.histogram) <= 14 + 3 * math.log10(max(times) / min(times)), "few bins, however far apart"


def test_where_nothing_is_heard_there_is_no_distribution() -> None:
    assert latencies(np.array([-1.0, -1.0])) is None
