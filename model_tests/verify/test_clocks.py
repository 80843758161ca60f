"""Clocks of different processes may differ: what that explains, by how much each is put right, and what stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.history import clocks as clocks_
from ackfsm.history.clocks import constants_of
from ackfsm.support.throughput import parse_duration
from ackfsm.terms import Anomaly, InputError, Verdict
from ackfsm.verify import Findings, judge
from ackfsm.verify.words import span
from model_tests.support.tables import shipped
from model_tests.support.verify.counting import as_counted
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
US = 1_000
NEVER: Mapping[Anomaly, bool | None] = dict.fromkeys(Anomaly, False)


def timed(text: str) -> list[dict[str, Any]]:
    """Events in the short notation, each with ``at=`` microseconds from a second on, by its own clock."""
    return [
        {
            **{name: value for name, value in event.items() if name != "at"},
            "t": 10**9 + US * event.get("at", event["t"]),
        }
        for event in events_of(text)
    ]


def _file(tmp_path: Path, text: str, config: Mapping[str, object] | None = None) -> Path:
    header = {"ackfsm_history": 1, "config": {"profile": "jms", **(config or {})}}
    file = tmp_path / "h.jsonl"
    return write([header, *timed(text)], file)


def _examined(file: Path, skew: int | None = 0) -> Findings:
    recorded = verify.read(file)
    assert recorded.header is not None
    return verify.examine(recorded, SPEC, SPEC.configure(None, recorded.header.config or {}), skew=skew)


BEHIND = """
    p send m1 at=1000; p confirmed m1 at=1100; c delivered m1 clear at=900; c processed m1 at=950
    p send m2 at=2000; p confirmed m2 at=2100; c delivered m2 clear at=1910; c processed m2 at=1950
    p send m3 at=3000; p confirmed m3 at=3100; c delivered m3 clear at=3300; c processed m3 at=3350
    n drained at=9000
"""
"""The clock of ``c`` is 100 us behind, or more."""


def test_a_delivery_before_its_send_is_a_phantom_to_the_letter_and_the_verdict_is_open(tmp_path: Path) -> None:
    found = _examined(_file(tmp_path, BEHIND))
    phantom = found.anomalies[Anomaly.PHANTOM]
    assert (phantom.count, phantom.examples, phantom.doubted) == (2, ("m1", "m2"), 2)
    result = judge(found, NEVER, guarantees=SPEC.guarantees)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == (
        (
            "2 of the phantoms are delivered up to 100us before their send: if the clocks of 'c' and 'p' may differ by"
            " that much, say --skew 100us"
        ),
    )
    assert judge(found, NEVER, never=[Anomaly.PHANTOM]).never == {Anomaly.PHANTOM: None}
    assert result.guarantees["at_most_once"] is None


def test_within_the_tolerance_the_clock_is_put_right_by_as_little_as_it_takes(tmp_path: Path) -> None:
    file = _file(tmp_path, BEHIND)
    for skew in (100 * US, 10**6, 10**12):
        found = _examined(file, skew)
        assert found.anomalies[Anomaly.PHANTOM].count == 0
        assert (found.skew, dict(found.offsets)) == (skew, {"c": 100 * US})
        assert judge(found, NEVER).verdict is Verdict.VALID


def test_beyond_the_tolerance_it_stays_as_it_is(tmp_path: Path) -> None:
    found = _examined(_file(tmp_path, BEHIND), 100 * US - 1)
    assert dict(found.offsets) == {"c": 90 * US}, "that of m2 can be explained"
    assert found.anomalies[Anomaly.PHANTOM].examples == ("m1",)
    result = judge(found, NEVER)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons[0].startswith("1 of the phantoms is delivered up to 100us before its send: if")
    assert result.reasons[0].endswith("say --skew 100us")


def test_the_clocks_that_differ_most_are_named(tmp_path: Path) -> None:
    found = _examined(
        _file(tmp_path, "a send m1 at=100; b delivered m1 clear at=90; p send m2 at=100; q delivered m2 clear at=0")
    )
    assert str(found.anomalies[Anomaly.PHANTOM].doubt).endswith(
        "clocks of 'q' and 'p' may differ by that much, say --skew 100us"
    )


def test_what_nobody_sent_is_a_phantom_whatever_the_clocks(tmp_path: Path) -> None:
    file = _file(tmp_path, f"{BEHIND}; c delivered m9 clear at=100; c processed m9 at=200")
    for skew in (0, 10**9):
        result = judge(_examined(file, skew), NEVER)
        assert result.verdict is Verdict.INVALID
        assert result.findings.anomalies[Anomaly.PHANTOM].certain == 1


def test_one_process_has_one_clock(tmp_path: Path) -> None:
    file = _file(tmp_path, "p delivered m1 clear at=10; p processed m1 at=11; p send m1 at=20; n drained at=99")
    for skew in (0, 10**9):
        found = _examined(file, skew)
        assert not found.offsets
        assert found.anomalies[Anomaly.PHANTOM].doubted == 0
        assert judge(found, NEVER).verdict is Verdict.INVALID


SHIFTED: dict[str, tuple[str, int, dict[str, int]]] = {
    "nothing contradicts": ("p send m1 at=10; c delivered m1 clear at=10; c processed m1 at=11", 5, {}),
    "at one moment, on an earlier line": (
        "c delivered m1 clear at=10; c processed m1 at=11; p send m1 at=10",
        5,
        {"c": 0},
    ),
    "the producer's answers come from another process": (
        "p send m1 at=20; q confirmed m1 at=15; c delivered m1 clear at=30; c processed m1 at=31",
        5,
        {"q": 5},
    ),
    "a chain": (
        (
            "p send m1 at=20; c delivered m1 clear at=17; c processed m1 at=18; c send m2 at=19; "
            "d delivered m2 clear at=17; d processed m2 at=18"
        ),
        5,
        {"c": 3, "d": 5},
    ),
    "a chain that is too long": (
        (
            "p send m1 at=20; c delivered m1 clear at=16; c processed m1 at=17; c send m2 at=19; "
            "d delivered m2 clear at=16; d processed m2 at=18"
        ),
        5,
        {"d": 3},
    ),
    "what is right already stays right": (
        (
            "p send m1 at=20; c delivered m1 clear at=15; c processed m1 at=16; c send m2 at=30; "
            "d delivered m2 clear at=32; d processed m2 at=33"
        ),
        5,
        {"c": 5, "d": 3},
    ),
    "a circle": (
        (
            "p send m1 at=20; c delivered m1 clear at=16; c processed m1 at=17; c send m2 at=29; "
            "p delivered m2 clear at=28; p processed m2 at=28"
        ),
        5,
        {"p": 1},
    ),
    "before the commit": (
        (
            "p begin transaction=t at=1; p send m1 transaction=t at=2; p commit transaction=t at=10; "
            "c delivered m1 clear at=6; c processed m1 at=7; p committed transaction=t at=12"
        ),
        5,
        {"c": 4},
    ),
}


@pytest.mark.parametrize(("text", "skew", "offsets"), SHIFTED.values(), ids=SHIFTED)
def test_clocks_are_put_right(tmp_path: Path, text: str, skew: int, offsets: dict[str, int]) -> None:
    found = _examined(_file(tmp_path, f"{text}; n drained at=999"), skew * US)
    assert dict(found.offsets) == {name: offset * US for name, offset in offsets.items()}
    left = {"a chain that is too long": 1, "a circle": 1}
    wrong = sum(found.anomalies[anomaly].found for anomaly in (Anomaly.PHANTOM, Anomaly.DIRTY_DELIVERY))
    assert wrong == next((number for name, number in left.items() if SHIFTED[name][0] == text), 0)


def test_what_no_constant_shift_explains_stays_open_and_says_so(tmp_path: Path) -> None:
    text, skew, _ = SHIFTED["a circle"]
    allowed = {**dict.fromkeys(Anomaly, True), Anomaly.PHANTOM: False}
    result = judge(as_counted(_examined(_file(tmp_path, f"{text}; n drained at=999"), skew * US)), allowed)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == (
        (
            "1 of the phantoms is delivered up to 4us before its send, which no constant differences of the clocks"
            " within --skew 5us explain all together"
        ),
    )


def test_a_delivery_before_its_commit_is_held_against_the_broker_where_clocks_agree(tmp_path: Path) -> None:
    found = _examined(_file(tmp_path, f"{SHIFTED['before the commit'][0]}; n drained at=999"))
    assert found.anomalies[Anomaly.DIRTY_DELIVERY].certain == 1
    assert judge(found, NEVER).verdict is Verdict.INVALID


def test_an_estimate_takes_a_delivery_before_its_send_for_a_clock_and_one_before_its_commit_for_the_broker(
    tmp_path: Path,
) -> None:
    assert _examined(_file(tmp_path, BEHIND), None).anomalies[Anomaly.PHANTOM].count == 0
    early = _file(tmp_path, f"{SHIFTED['before the commit'][0]}; n drained at=999")
    assert _examined(early, None).anomalies[Anomaly.DIRTY_DELIVERY].certain == 1
    received = "c delivered m1 clear at=1; c processed m1 at=2"
    far = f"p send m1 at=200000; p confirmed m1 at=200001; {received}; n drained at=900000"
    found = _examined(_file(tmp_path, far), None)
    assert (found.anomalies[Anomaly.PHANTOM].count, found.skew, found.offsets) == (1, 0, {})


def test_times_near_the_greatest_number_can_be_shifted(tmp_path: Path) -> None:
    rows = [
        {"t": 2**63 - 1, "process": "p", "event": "send", "message": "m1"},
        {"t": 2**63 - 2, "process": "c", "event": "delivered", "message": "m1", "redelivered": False},
        {"t": 0, "process": "p", "event": "send", "message": "m2"},
        {"t": 2**63 - 1, "process": "c", "event": "delivered", "message": "m2", "redelivered": False},
    ]
    file = tmp_path / "h.jsonl"
    write(rows, file)
    found = verify.examine(verify.read(file), SPEC, SPEC.configure(), skew=10**18)
    assert dict(found.offsets) == {"c": 1}
    assert found.anomalies[Anomaly.PHANTOM].count == 0


_DEMANDS = st.dictionaries(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")).filter(lambda pair: pair[0] != pair[1]),
    st.integers(-20, 20),
    max_size=8,
)


@given(demands=_DEMANDS, skew=st.integers(1, 15))
def test_shifts_are_within_the_tolerance_and_break_nothing_that_was_right(
    demands: dict[tuple[str, str], int], skew: int
) -> None:
    clocks = constants_of(demands, skew)
    assert all(0 <= offset <= skew for offset in clocks.offsets.values())

    def met(pair: tuple[str, str], offsets: Mapping[str, int], ranks: Mapping[str, int]) -> bool:
        before, after = pair
        late, strictly = divmod(demands[pair], 2)
        apart = offsets.get(after, 0) - offsets.get(before, 0)
        later = ranks.get(after, 0) > ranks.get(before, 0)
        return apart > late or (apart == late and (later or not strictly))

    for pair in demands:
        assert met(pair, clocks.offsets, clocks.ranks) or not met(pair, {}, {})
    positive = {pair: demand for pair, demand in demands.items() if demand > 0}
    if len(positive) == len(demands) and not {p for p, _ in demands} & {q for _, q in demands}:
        assert all(met(pair, clocks.offsets, clocks.ranks) for pair, demand in demands.items() if demand >> 1 <= skew)


def test_a_demand_that_many_processes_follow_is_not_given_up() -> None:
    together = [f"p{i:03}" for i in range(320)]
    demands = {(p, q): 0 for p in together for q in together if p != q}
    demands |= {("late", together[0]): 10, (together[-1], "last"): 0}
    assert constants_of(demands, 5).offsets == dict.fromkeys([*together, "last"], 5)


def test_more_shifts_than_can_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks_, "MOST_RANKS", 3)
    demands = {("p", f"c{i}"): 2 * i for i in range(1, 4)}
    assert len(constants_of(dict(list(demands.items())[:2]), 5).offsets) == 2
    with pytest.raises(InputError, match="3 different shifts"):
        constants_of(demands, 5)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (1, "1ns"),
        (999, "999ns"),
        (1_000, "1us"),
        (100_000, "100us"),
        (123_456, "124us"),
        (999_999, "1ms"),
        (1_500_000, "1.5ms"),
        (1_005_000, "1.01ms"),
        (2 * 10**9, "2s"),
        (86_400 * 10**9, "86400s"),
        (12_345_678_901_234, "12400s"),
    ],
)
def test_a_span_is_told_as_the_option_takes_it(nanoseconds: int, text: str) -> None:
    assert span(nanoseconds) == text
    assert nanoseconds <= parse_duration(text) * 10**9 <= nanoseconds * 1.01


def test_the_command_says_what_it_has_put_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(_file(tmp_path, BEHIND))
    assert main(["verify", file]) == 0
    assert "clocks may differ by 100us; corrected: 'c' +100us" in " ".join(capsys.readouterr().out.split())
    assert main(["verify", file, "--skew", "0"]) == 3
    assert "say --skew 100us" in " ".join(capsys.readouterr().out.split())
    assert main(["verify", file, "--skew", "100us"]) == 0
    assert "clocks may differ by 100us; corrected: 'c' +100us" in " ".join(capsys.readouterr().out.split())
    assert main(["verify", file, "--skew", "0.2 ms", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["skew"], told["offsets"], told["verdict"]) == (200_000, {"c": 100_000}, "valid")
    many = "; ".join(f"p send m{i:02} at=1000; c{i:02} delivered m{i:02} clear at={999 - i}" for i in range(12))
    main(["verify", str(_file(tmp_path, many)), "--skew", "100us"])
    assert "'c11' +12us, 'c10' +11us, " in (shown := " ".join(capsys.readouterr().out.split()))
    assert "'c02' +3us, 2 more" in shown
    file = str(_file(tmp_path, BEHIND))
    assert main(["verify", file, "--skew", "0", "--json"]) == 3
    assert "skew" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("text", ["", "much", "100", "-1ms", "1 hour", "1e9s", "99999999999s", "0s"])
def test_a_tolerance_that_is_none_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(_file(tmp_path, BEHIND)), f"--skew={text}"]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "--skew" in told.err
    assert told.err.count("\n") == 1


def test_the_error_names_the_units() -> None:
    with pytest.raises(InputError, match="s, ms, us, ns"):
        parse_duration("1 hour")
