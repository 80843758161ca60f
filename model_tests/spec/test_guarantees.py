"""Guarantees: their order, which of them stand, and that what the table says of anomalies is so in the machines."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli, tables, verify
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Guarantees, Implication
from ackfsm.terms import Anomaly, Fault, SpecError
from ackfsm.verify import Finding, Findings
from model_tests.support.checker.plain_search import anomalies_in, breadth_first
from model_tests.support.places import DATA, SPEC
from model_tests.support.tables import HERE, configurations, copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE

LATTICE = shipped().guarantees
ONCE = ("at_most_once", "at_least_once", "exactly_once")
FINDINGS: tuple[str, ...] = (*Anomaly, *LATTICE.monitors)
ABSENT: dict[str, bool | None] = dict.fromkeys(FINDINGS, False)

happenings = st.dictionaries(st.sampled_from(FINDINGS), st.sampled_from([True, False, None]))


# the implications, on every state of drawn systems


def _unfounded(network: Network, implications: tuple[Implication, ...]) -> list[Implication]:
    """The implications that some reachable state of ``network`` refutes."""
    refuted = []
    for state in breadth_first(network).depth:
        quiet = all(event.may_never_happen for event in network.events if network.step(state, event) is not None)
        here = set(anomalies_in(network, state, at_rest=quiet))
        refuted += [i for i in implications if i.anomaly in here and not i.implies & here]
    return refuted


@settings(max_examples=12 if WHOLE else 4)
@given(configurations(), st.frozensets(st.sampled_from(Fault), max_size=2))
def test_where_an_anomaly_is_there_one_that_it_implies_is_there(configuration: Any, faults: frozenset[Fault]) -> None:
    bounds = Bounds(faults=faults, max_faults=1, actions=frozenset({"recover"}))
    assert _unfounded(compose(shipped(), configuration, bounds), LATTICE.implications) == []


def test_every_implying_anomaly_happens_somewhere_and_a_wrong_implication_is_refuted() -> None:
    """Otherwise the test above would hold of anything."""
    lost = {"journal_sync_non_transactional": False, "block_on_acknowledge": True}
    configuration = shipped().configure("jms", lost)
    network = compose(shipped(), configuration, Bounds(faults=frozenset({Fault.BROKER_CRASH}), max_faults=1))
    reachable = breadth_first(network).anomalies
    assert {implication.anomaly for implication in LATTICE.implications} <= reachable.keys()
    wrong = Implication(Anomaly.LOSS, frozenset({Anomaly.DUPLICATE}), "x", "model")
    assert _unfounded(network, (wrong,))


# the order


def test_the_guarantees_of_jms_are_ordered() -> None:
    assert LATTICE.is_above("exactly_once", "at_most_once")
    assert LATTICE.is_above("exactly_once", "at_least_once")
    assert not LATTICE.is_above("at_least_once", "at_most_once")
    assert not LATTICE.is_above("at_most_once", "at_least_once")
    assert not LATTICE.is_above("exactly_once", "exactly_once")


def test_an_implication_puts_one_guarantee_above_another() -> None:
    """Nowhere is it stated: who is never handed a message twice cannot process it twice."""
    assert "processed_at_most_once" not in LATTICE["strictly_at_most_once"].above
    assert Anomaly.REPROCESSED not in LATTICE.excluded_by("strictly_at_most_once")
    assert LATTICE.is_above("strictly_at_most_once", "processed_at_most_once")


def test_the_order_is_a_strict_order() -> None:
    for one in LATTICE:
        assert not LATTICE.is_above(one, one)
        for two in LATTICE:
            assert not (LATTICE.is_above(one, two) and LATTICE.is_above(two, one))
            for three in LATTICE:
                if LATTICE.is_above(one, two) and LATTICE.is_above(two, three):
                    assert LATTICE.is_above(one, three)


@pytest.mark.parametrize("stronger", LATTICE)
def test_what_is_stated_to_be_above_is_above(stronger: str) -> None:
    assert all(LATTICE.is_above(stronger, weaker) for weaker in LATTICE[stronger].above)


# what stands


def test_without_anomalies_everything_stands() -> None:
    assert set(LATTICE.evaluate(ABSENT).values()) == {True}


@pytest.mark.parametrize("name", LATTICE)
def test_each_finding_that_a_guarantee_rules_out_excludes_it_and_no_other_does(name: str) -> None:
    for finding in FINDINGS:
        stands = LATTICE.evaluate({**ABSENT, finding: True})[name]
        assert stands is (finding not in LATTICE.rules_out(name))


@pytest.mark.parametrize("name", LATTICE)
def test_an_unknown_anomaly_leaves_a_guarantee_open(name: str) -> None:
    for finding in LATTICE.excluded_by(name):
        unknown = {**ABSENT, finding: None}
        implied = any(i.anomaly == finding for i in LATTICE.implications)
        assert LATTICE.evaluate(unknown)[name] is (True if implied else None)
        del unknown[finding]
        assert LATTICE.evaluate(unknown)[name] is (True if implied else None)


def test_nothing_known_leaves_everything_open() -> None:
    assert set(LATTICE.evaluate({}).values()) == {None}
    assert LATTICE.strongest(LATTICE.evaluate({})) == ()


@given(happenings)
def test_a_stronger_guarantee_stands_only_where_the_weaker_one_does(happens: Mapping[str, bool | None]) -> None:
    standing = LATTICE.evaluate(happens)
    for one in LATTICE:
        for two in LATTICE:
            if LATTICE.is_above(one, two):
                assert standing[two] is True or standing[one] is not True
                assert standing[one] is False or standing[two] is not False


@given(happenings)
def test_the_strongest_stand_and_every_other_that_stands_is_below_one(happens: Mapping[str, bool | None]) -> None:
    standing = LATTICE.evaluate(happens)
    strongest = LATTICE.strongest(standing)
    for name, stands in standing.items():
        below = any(LATTICE.is_above(other, name) for other in strongest)
        assert (stands is True) == (below or name in strongest)
        assert not (below and name in strongest)


@given(happenings, st.sampled_from(FINDINGS), st.booleans())
def test_learning_more_never_takes_an_answer_back(
    happens: dict[str, bool | None],
    finding: str,
    happened: bool,  # noqa: FBT001
) -> None:
    if happens.get(finding) is None:
        before, after = LATTICE.evaluate(happens), LATTICE.evaluate({**happens, finding: happened})
        consistent = not (happened and before != after and any(before[n] is True and after[n] is False for n in before))
        implied = any(
            i.anomaly == finding and all(happens.get(a) is False for a in i.implies) for i in LATTICE.implications
        )
        assert consistent or implied, "only an anomaly that was ruled out by implication can contradict"


# what stands in known systems


@pytest.mark.parametrize(
    ("profile", "chosen", "fault", "stand", "excluded"),
    [
        (
            "jms",
            {},
            Fault.CONSUMER_CRASH,
            {"once_and_only_once", "at_least_once"},
            {"exactly_once", "strictly_at_most_once"},
        ),
        ("jms", {"consumption": "receive"}, Fault.CONSUMER_CRASH, {"at_most_once"}, {"delivered_at_least_once"}),
        (
            "jms",
            {"ack_mode": "DUPS_OK_ACKNOWLEDGE", "consumption": "receive"},
            Fault.CONSUMER_CRASH,
            {"once_and_only_once"},
            {"at_least_once", "exactly_once"},
        ),
        (
            "jms",
            {"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": True},
            Fault.BROKER_CRASH,
            {"strictly_at_most_once"},
            {"at_least_once"},
        ),
        ("jms", {"delivery_mode": "NON_PERSISTENT"}, Fault.BROKER_KILL, {"at_most_once"}, {"at_least_once"}),
        ("jms", {"resend_in_doubt": True}, Fault.PRODUCER_LINK_LOSS, {"at_least_once"}, {"at_most_once"}),
        ("artemis", {}, Fault.BROKER_KILL, {"at_least_once"}, {"at_most_once"}),
    ],
)
def test_what_stands_in_a_known_system(
    profile: str, chosen: dict[str, object], fault: Fault, stand: set[str], excluded: set[str]
) -> None:
    configuration = shipped().configure(profile, chosen)
    answer = explore.check(shipped(), configuration, Bounds(faults=frozenset({fault}), max_faults=1))
    assert {name for name in stand if answer.guarantees[name] is not True} == set()
    assert {name for name in excluded if answer.guarantees[name] is not False} == set()


def test_a_search_that_stopped_lets_nothing_stand() -> None:
    answer = explore.check(shipped(), shipped().configure("jms"), Bounds(), max_states=5)
    assert True not in answer.guarantees.values()
    assert answer.strongest == ()


# what the commands say


def test_check_names_the_strongest(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", "--set", "consumption=receive", "--fault", "consumer_crash"]
    assert cli.main([*line, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["guarantees"]) == list(LATTICE)
    assert [found["guarantees"][name] for name in ONCE] == [True, False, False]
    assert found["strongest"] == list(LATTICE.strongest(found["guarantees"]))
    assert cli.main(line) == 0
    screen = capsys.readouterr().out
    assert "strongest guarantees\n  delivery: strictly_at_most_once, ordered\n" in screen
    assert "  processing: processed_at_most_once\n  transaction: atomic" in screen
    assert "excluded: delivered_at_least_once" in screen


def _findings(*anomalies: Finding, parse_errors: int = 0, messages: int = 2) -> Findings:
    rest = [a for a in Anomaly if a not in {finding.anomaly for finding in anomalies}]
    return Findings(
        history="h",
        engine="local",
        configuration=None,
        events=9,
        messages=messages,
        parse_errors=parse_errors,
        unreadable=(),
        faults=(),
        actions=(),
        anomalies={f.anomaly: f for f in (*anomalies, *map(_finding, rest))},
        ends=dict.fromkeys(LATTICE.monitors, 0),
        counters={},
    )


def _finding(anomaly: Anomaly, found: int = 0, unknown: str | None = None) -> Finding:
    needs = anomaly in shipped().properties and shipped().properties[anomaly].needs_every_line
    return Finding(anomaly=anomaly, found=found, unknown=unknown, needs_every_line=needs, examples=())


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (_findings(), [True, True, True]),
        (_findings(_finding(Anomaly.LOSS, 1)), [True, False, False]),
        (_findings(_finding(Anomaly.UNFLAGGED_DUPLICATE, 3)), [False, True, False]),
        (_findings(_finding(Anomaly.DUPLICATE, 3)), [True, True, True]),
        (_findings(_finding(Anomaly.LOSS, 0, "not drained")), [True, None, None]),
        (_findings(_finding(Anomaly.LOSS, 1, "not drained")), [True, False, False]),
        (_findings(parse_errors=1), [None, None, None]),
        (_findings(_finding(Anomaly.LOSS, 1), parse_errors=1), [None, None, None]),
        (_findings(_finding(Anomaly.UNFLAGGED_DUPLICATE, 1), parse_errors=1), [False, None, False]),
        (_findings(messages=0), [None, None, None]),
    ],
)
def test_what_stood_in_a_history(findings: Findings, expected: list[bool | None]) -> None:
    result = verify.judge(findings, {}, guarantees=LATTICE)
    assert [result.guarantees[name] for name in ONCE] == expected
    assert result.strongest == LATTICE.strongest(result.guarantees)


def test_verify_names_the_strongest(capsys: pytest.CaptureFixture[str]) -> None:
    lost = str(DATA / "synthetic" / "loss.jsonl")
    assert cli.main(["verify", lost, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [found["guarantees"][name] for name in ONCE] == [True, False, False]
    assert found["strongest"] == list(LATTICE.strongest(found["guarantees"]))
    cli.main(["verify", lost, "--all"])
    strictest = "  delivery: strictly_at_most_once, ordered\n  processing: processed_at_most_once\n"
    assert strictest in capsys.readouterr().out


# what is refused at load


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "    above: [at_most_once, delivered_at_least_once]",
            f"{HERE}    above: [at_most_once, nothing_at_all]",
            "there is no guarantee 'nothing_at_all'; define it or drop it",
        ),
        (
            "    above: [delivered_at_least_once]",
            f"{HERE}    above: [exactly_once]",
            "above itself; drop one of these",
        ),
        (
            "      - anomaly: reorder",
            "      - anomaly: reprocessed",
            "rule out the same; keep one",
        ),
        (
            "  - anomaly: reprocessed\n    implies: [duplicate, unflagged_duplicate]",
            f"{HERE}  - anomaly: reprocessed\n    implies: [duplicate, reprocessed]",
            "reprocessed implies itself",
        ),
        ("      - anomaly: reorder", f"{HERE}      - anomaly: disorder", "disorder"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "guarantees.yaml", (old, new))
    with pytest.raises(SpecError) as refused:
        tables.load(spec)
    assert sentence in str(refused.value)
    assert "guarantees.yaml:" in str(refused.value)
    if line and "itself" not in sentence:
        assert f"guarantees.yaml:{line}:" in str(refused.value)


def test_every_anomaly_that_excludes_a_guarantee_is_given_with_a_reason() -> None:
    for guarantee in LATTICE.values():
        assert guarantee.means
        assert guarantee.above or guarantee.excluded_by
        assert all(exclusion.because and exclusion.source for exclusion in guarantee.excluded_by)


def test_a_lattice_is_an_ordinary_value() -> None:
    again = Guarantees(LATTICE.named, LATTICE.implications)
    assert again == LATTICE
    shuffled = random.Random(1).sample(list(LATTICE), len(LATTICE))
    assert sorted(LATTICE) == sorted(shuffled)
    assert SPEC.joinpath("guarantees.yaml").is_file()
