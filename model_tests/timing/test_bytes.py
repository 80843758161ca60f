"""Windows and batches in bytes: how many messages they are, whom they hold up, and who refuses them."""

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ackfsm import cli, tables
from ackfsm.rates.timing import Grid, Interval, Waits, Workload, in_messages, plan, plan_cells, read_dimension, waits_of
from ackfsm.rates.timing._plan import publish_rate
from ackfsm.terms import InputError
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE
from model_tests.timing.test_plan import WAITS, WORKS

MILLISECOND = Fraction(1, 1000)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["plan", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


@pytest.mark.parametrize(
    ("setting", "value", "size", "messages"),
    [
        ("consumerWindowSize", "1MiB", 1500, ("prefetch", 700)),  # the last one overdraws the credit
        ("consumerWindowSize", "1500", 1500, ("prefetch", 1)),
        ("consumerWindowSize", "1501", 1500, ("prefetch", 2)),
        ("CONSUMERWINDOWSIZE", "0", 1500, ("prefetch", 1)),
        ("consumerWindowSize", "-1", 1500, ("prefetch", 0)),
        ("prefetch", "30KiB", 1024, ("prefetch", 30)),
        ("publish_window", "10MiB", 1024, ("publish_window", 2**31 - 1)),  # kept for replay, nobody waits for room
        ("producerWindowSize", "64KiB", 1500, ("credit", 21)),  # half of it comes in a round trip
        ("producerWindowSize", "64KiB", 1 << 20, ("credit", 1)),
        ("producerWindowSize", "-1", 1500, ("credit", None)),
        ("ackBatchSize", "1MiB", 1500, ("lazy_batch", 700)),
        ("dupsOKBatchSize", "0", 1500, ("lazy_batch", 1)),
    ],
)
def test_bytes_are_as_many_messages_as_the_vendor_has_in_them(
    setting: str, value: str, size: int, messages: tuple[str, int | None]
) -> None:
    found = in_messages(shipped(), "artemis", {setting: value, "ack_mode": "AUTO_ACKNOWLEDGE"}, size)
    key, number = messages
    assert {**found.settings, **found.changes} == {"ack_mode": "AUTO_ACKNOWLEDGE", key: number}
    assert found.told == ((f"{setting}={value}", f"{key}={'none' if number is None else number}"),)


def test_what_is_a_number_of_messages_stays_one() -> None:
    given: dict[str, object] = {"prefetch": "100", "publish_window": 7}
    found = in_messages(shipped(), "artemis", given, 1500)
    assert (found.settings, found.changes, found.told) == (given, {}, ())


@pytest.mark.parametrize(
    ("profile", "given", "said"),
    [
        ("rabbitmq", {"prefetch": "1MiB"}, "rabbitmq counts prefetch in messages, not in bytes as '1MiB' is"),
        ("solace", {"publish_window": "10KiB"}, "solace counts publish_window in messages"),
        (
            "artemis",
            {"consumerWindowSize": "much"},
            "consumerWindowSize of artemis is a size in bytes as 1MiB is, -1, 0",
        ),
        ("artemis", {"producerWindowSize": "0"}, "producerWindowSize of artemis is a size in bytes"),
        ("artemis", {"prefetch": "1", "consumerWindowSize": "1MiB"}, "prefetch and consumerWindowSize are one setting"),
        ("artemis", {"ackBatchSize": "1", "dupsOKBatchSize": "1"}, "ackBatchSize and dupsOKBatchSize are one setting"),
    ],
)
def test_bytes_that_nobody_counts_are_refused(profile: str, given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        in_messages(shipped(), profile, given, 1500)


def test_an_unconfirmed_sender_goes_as_fast_as_its_credit_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--profile", "artemis", "--rtt", "20ms", "--set", "blockOnDurableSend=false"]
    free = printed(capsys, *words)
    held = printed(capsys, *words, "--set", "producerWindowSize=64KiB")
    assert free["publish"]["binds"] == "bandwidth up"
    assert held["publish"]["binds"] == "credit"
    assert held["publish"]["rate"] == pytest.approx(21 / (0.02 + 8 * 1500 / 2**30))
    assert held["workload"]["credit"] == 21
    by_url = printed(capsys, *words[:4], "--url", "tcp://host:61616?blockOnDurableSend=false&producerWindowSize=64KiB")
    assert by_url["publish"] == held["publish"]
    assert cli.main(["plan", *words, "--set", "producerWindowSize=64KiB"]) == 0
    assert "producerWindowSize=64KiB is credit=21 with messages of 1,500 bytes." in capsys.readouterr().out


def test_credit_holds_up_whoever_does_not_wait_for_answers() -> None:
    work = Workload(rtt=20 * MILLISECOND, credit=21, messages_per_commit=21)
    ways: dict[str, dict[str, object]] = {
        "blocking": {},
        "window": {"send_mode": "asynchronous", "publish_window": 10},
        "wide": {"send_mode": "asynchronous", "publish_window": 100},
        "transaction": {"ack_mode": "SESSION_TRANSACTED"},
    }
    rates = {
        mode: plan(work, waits_of(shipped(), shipped().configure("artemis", settings_))).publish.rate
        for mode, settings_ in ways.items()
    }
    assert {mode: rate.high for mode, rate in rates.items()} == {
        "blocking": 50,
        "window": 500,
        "wide": 1050,
        "transaction": 1050,
    }
    transacted = waits_of(shipped(), shipped().configure("artemis", {"ack_mode": "SESSION_TRANSACTED"}))
    longer = publish_rate(dataclasses.replace(work, messages_per_commit=22), transacted)
    assert longer == Interval(Fraction(22 * 1000, 40), Fraction(1050))


@settings(max_examples=300 if WHOLE else 100)
@given(WORKS, WAITS)
def test_credit_never_makes_anything_faster(work: Workload, waits: Waits) -> None:
    free = publish_rate(dataclasses.replace(work, credit=None), waits)
    held = publish_rate(work, waits)
    for bound in ("low", "high"):
        least, most = getattr(held, bound), getattr(free, bound)
        assert most is None or (least is not None and least <= most)
    assert held.low is None or held.high is None or held.low <= held.high


def test_a_sweep_counts_the_bytes_anew_for_each_size() -> None:
    swept = tuple(map(read_dimension, ("message_size=1KiB,1MiB", "consumerWindowSize=-1,0,64KiB")))
    grid = Grid("artemis", {}, Workload(rtt=MILLISECOND), swept)
    grid.check(shipped())
    rows = plan_cells(grid, shipped(), range(len(grid)))
    assert [row.deliver_at_most for row in rows] == [None, 1000, 64_000, None, 1000, 1000]
    wrong = Grid("artemis", {}, Workload(), (read_dimension("consumerWindowSize=much"),))
    with pytest.raises(InputError, match="consumerWindowSize of artemis is a size in bytes"):
        wrong.check(shipped())
    ranged = read_dimension("prefetch=16KiB..256KiB*4")
    assert ranged.values == ("16KiB", "64KiB", "256KiB")


def test_the_checker_counts_messages_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--profile", "artemis", "--set", "consumerWindowSize=1MiB"]) == 2
    assert "it counts bytes, not messages" in capsys.readouterr().err
    assert cli.main(["check", "--profile", "artemis", "--set", "prefetch=1MiB"]) == 2
    assert "prefetch" in capsys.readouterr().err


def test_a_simulation_knows_no_credit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--profile", "artemis", "--set", "producerWindowSize=64KiB", "--simulate", "10"]
    assert cli.main(words) == 2
    assert "--simulate knows no credit of a producer" in capsys.readouterr().err


def test_the_rows_decide(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(
        spec,
        "timing.yaml",
        ("divided_by: 2", "divided_by: 4"),
        ("is: prefetch\n      rounded: up", "is: prefetch\n      rounded: down"),
    )
    changed = tables.load(spec)
    for name, key, number in (("producerWindowSize", "credit", 10), ("consumerWindowSize", "prefetch", 43)):
        found = in_messages(changed, "artemis", {name: "64KiB"}, 1500)
        assert {**found.settings, **found.changes} == {key: number}
