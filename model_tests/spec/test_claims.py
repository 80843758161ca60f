"""Claims: every sentence is there, every kind of check can fail, unknown is no pass, traces are compared rightly."""

from __future__ import annotations

import collections
import json
import shutil
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.support import throughput
from ackfsm.surveys import claims
from ackfsm.surveys.claims import ClaimResult, Status
from ackfsm.surveys.claims._questions import Search, SimulationResult
from ackfsm.terms import Fault, InputError, SpecError
from model_tests.support.places import SPEC
from model_tests.support.tables import copy_of_spec, networks, replace, shipped
from model_tests.support.whole import WHOLE, few

SEEDS = {
    "000_be388292969c6445.txt": 5,
    "001_58bee69f83099773.txt": 11,
    "002_b2f67897fd2a56da.txt": 10,
    "003_b77b6ec286305aaa.txt": 13,
    "004_e4a41ca9d7686dee.txt": 11,
    "JMS 6.2.10": 1,
    "JMS 6.2.11": 2,
    "JMS 6.2.15": 1,
    "JMS 6.2.7": 1,
    "JMS 3.5.11": 1,
    "JMS 4.2": 2,
    "JMS 7.3.4": 1,
    "ART duplicate-detection": 1,
    "ART client-reconnection": 1,
    "ART send-guarantees": 1,
    "JMS 3.4.9": 1,
    "A10": 1,
    "RMQ confirms": 1,
    "SOL-C": 1,
    "SOL-NET IMessage.AckImmediately": 1,
}
"""How many sentences each document has."""

BEYOND_THE_SEEDS = list(range(51, 68))
"""The numbers of the sentences that no seed document states."""


def written(folder: Path, claim: str) -> Path:
    """A folder with the forms and one claim; ``claim`` is what follows its statement."""
    shutil.copyfile(SPEC / "schema.json", folder / "schema.json")
    head = "- id: C01\n  seed: a.txt\n  kind: always\n  statement: a sentence\n"
    (folder / "claims.yaml").write_text(f"{head}{claim}\n", encoding="utf-8")
    return folder


def decided(folder: Path, check: str, max_states: int = claims.MAX_STATES) -> ClaimResult:
    """What the shipped tables say of a claim with this one check (YAML in flow style)."""
    read = claims.read(shipped(), written(folder, f"  checks:\n  - {check}"))
    return claims.decide(shipped(), read, max_states=max_states)[0]


# the file


def test_every_sentence_of_the_documents_is_there() -> None:
    read = claims.read(shipped())
    assert [claim.id for claim in read] == [f"C{n:02}" for n in [*range(1, 51), *BEYOND_THE_SEEDS]]
    assert collections.Counter(claim.seed for claim in read) == SEEDS
    assert {claim.kind for claim in read} == {"always", "possible", "equal", "default", "refused", "rate"}
    assert all(claim.checks for claim in read)


def test_a_sentence_is_of_a_seed_document_or_has_the_tag_of_a_source() -> None:
    tags = shipped().sources
    for claim in claims.read(shipped()):
        assert claim.seed.endswith(".txt") or claim.seed.split()[0] in tags, claim.id


def test_every_monitor_is_watched_by_some_claim_or_excludes_a_guarantee() -> None:
    text = "".join((SPEC / table).read_text(encoding="utf-8") for table in ("claims.yaml", "guarantees.yaml"))
    assert not [name for name in shipped().monitors if name not in text]


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("  checks: []", "C01|checks"),
        ("  checks:\n  - {never: loss, possible: loss}", "checks/0"),
        ("  checks:\n  - {never: loss, by: [send]}", "by"),
        ("  checks:\n  - {never: loss, faults: [fire]}", "fire"),
        (
            "  checks: [{never: loss}]\n  contradiction: [{says: x, source: hearsay, checks: [{never: loss}]}]",
            "hearsay",
        ),
        (
            "  checks: [{never: loss}]\n- {id: C01, seed: a, kind: rate, statement: b, checks: [{never: loss}]}",
            "two claims C01",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(claim: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=sentence) as error:
        claims.read(shipped(), written(tmp_path, claim))
    assert "claims.yaml:" in str(error.value)


def test_without_its_monitors_the_specification_is_not_whole(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    shutil.rmtree(spec / "monitors")
    with pytest.raises(SpecError, match="monitors: the folder is missing"):
        tables.load(spec)


def test_a_monitor_has_a_name_of_its_own_and_only_watches(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "monitors/journal.yaml", ("unsynced:\n  per: routed_copy", "loss:\n  per: routed_copy"))
    with pytest.raises(SpecError, match=r"journal.yaml:\d+: 'loss' is the name of another monitor or anomaly"):
        tables.load(spec)
    replace(spec, "monitors/journal.yaml", ("loss:\n  per: routed_copy", "unsynced:\n  per: routed_copy"))
    replace(spec, "monitors/journal.yaml", ("{ignore: nothing is accepted}", "{refuse: never}"))
    with pytest.raises(SpecError, match="unsynced refuses sync_record; a property only watches"):
        tables.load(spec)


# every kind of check holds where it should and fails where it should


LISTENER = "in: {profile: qpid, consumption: listener}"
RECEIVE = "in: {profile: qpid, consumption: receive}"
PRE_AND_AUTO = "{left: {ack_mode: PRE_ACKNOWLEDGE}, right: {ack_mode: AUTO_ACKNOWLEDGE}}"
BY_TIMER = "send: closed_form, rtt: 1 ms, timer: 9 ms, in: {profile: solace, send_mode: blocking}"
CLIENT = "faults: [], messages: 2, in: {profile: jms, ack_mode: CLIENT_ACKNOWLEDGE"


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        pytest.param(
            "{never: loss, although: [confirmed, broker_crash], in: {profile: jms}}",
            "{never: loss, although: confirmed, in: {profile: jms, journal_sync_non_transactional: any}}",
            id="never",
        ),
        pytest.param(
            "{never: happens(settle), although: processed, in: {profile: ems, ack_mode: NO_ACKNOWLEDGE}}",
            "{never: happens(settle), although: [acknowledge], in: {profile: ems, ack_mode: NO_ACKNOWLEDGE}}",
            id="never, for a reason",
        ),
        pytest.param(
            "{possible: duplicate, by: [consumer_crash, dispatch_again(m1)], faults: [consumer_crash]}",
            "{possible: duplicate, by: [consumer_crash, delivered_clear], faults: [consumer_crash]}",
            id="possible, by a way",
        ),
        pytest.param(
            "{possible: [unprocessed, loss], faults: [consumer_crash], in: {profile: qpid, ack_mode: NO_ACKNOWLEDGE}}",
            "{possible: [unprocessed, loss], faults: [consumer_crash], in: {profile: qpid}}",
            id="possible",
        ),
        pytest.param(
            "{possible: unprocessed, in: {consumption: receive}}",
            "{possible: unprocessed, in: {consumption: any}, faults: [consumer_crash]}",
            id="possible, everywhere",
        ),
        pytest.param(
            f"{{equal: {PRE_AND_AUTO}, {RECEIVE}, max_faults: 1}}",
            f"{{equal: {PRE_AND_AUTO}, {LISTENER}, max_faults: 1}}",
            id="equal",
        ),
        pytest.param(
            f"{{differ: {PRE_AND_AUTO}, {LISTENER}, max_faults: 1}}",
            f"{{differ: {PRE_AND_AUTO}, {RECEIVE}, max_faults: 1}}",
            id="differ",
        ),
        pytest.param(
            f"{{equal: {PRE_AND_AUTO}, events: [send, delivered_clear], faults: [], {LISTENER}}}",
            f"{{equal: {PRE_AND_AUTO}, events: [send, acknowledge, delivered_clear], faults: [], {LISTENER}}}",
            id="equal, to who sees less",
        ),
        pytest.param(
            f"{{same_effect: [acknowledge(m1), acknowledge(m2)], {CLIENT}, client_ack_scope: session}}}}",
            f"{{same_effect: [acknowledge(m1), acknowledge(m2)], {CLIENT}, client_ack_scope: up_to}}}}",
            id="same effect",
        ),
        pytest.param(
            f"{{same_effect: [acknowledge(m1), acknowledge(m1)], {CLIENT}}}}}",
            f"{{same_effect: [send(m1), send(m2)], {CLIENT}}}}}",
            id="same effect, of what can happen",
        ),
        pytest.param(
            "{default: {profile: artemis, key: send_mode, value: unconfirmed, given: {delivery_mode: NON_PERSISTENT}}}",
            "{default: {profile: artemis, key: send_mode, value: unconfirmed}}",
            id="default",
        ),
        pytest.param(
            "{refused: {profile: solace, settings: {confirm_timer: false}}}",
            "{refused: {profile: solace, settings: {confirm_timer: true}}}",
            id="refused",
        ),
        pytest.param(
            "{refused: {profile: jms, api: JMS 1.1, settings: {send_mode: asynchronous}}}",
            "{refused: {profile: jms, settings: {send_mode: asynchronous}}}",
            id="refused by an API",
        ),
        pytest.param(
            "{accepted: {profile: ems, settings: {ack_mode: NO_ACKNOWLEDGE}}}",
            "{accepted: {profile: ems, api: JMS 2.0 simplified, settings: {ack_mode: NO_ACKNOWLEDGE}}}",
            id="accepted",
        ),
        pytest.param(
            "{constant: {profile: ems, key: ack_mode, value: NO_ACKNOWLEDGE, number: 22}}",
            "{constant: {profile: qpid, key: ack_mode, value: NO_ACKNOWLEDGE, number: 22}}",
            id="constant",
        ),
        pytest.param(
            "{row: {machine: entry, state: ready, event: dispatch_first, to: removed}, in: {ack_mode: NO_ACKNOWLEDGE}}",
            "{row: {machine: entry, state: ready, event: dispatch_first, to: removed}, in: {ack_mode: any}}",
            id="row",
        ),
        pytest.param(
            "{row: {machine: broker, state: down, event: accept, refuse: true}}",
            "{row: {machine: broker, state: up, event: accept, refuse: true}}",
            id="row that refuses",
        ),
        pytest.param(
            "{default: {profile: qpid, key: delivery_mode, value: PERSISTENT, given: {consumption: any}}}",
            "{default: {profile: artemis, key: send_mode, value: blocking, given: {delivery_mode: any}}}",
            id="default, whatever else is set",
        ),
        pytest.param(
            "{rate: {send: blocking, rtt: 0.25 ms, at_most: 4000}}",
            "{rate: {send: blocking, rtt: 0.25 ms, at_most: 4001}}",
            id="rate",
        ),
        pytest.param(
            "{rate: {send: transaction, rtt: 1 ms, sizes: [1, 2, 3], grows: true}}",
            "{rate: {send: unblocked, sizes: [1, 2, 3], grows: true}}",
            id="rate that grows",
        ),
        pytest.param(
            "{rate: {send: blocking, rtt: 1 ms, in: {profile: jms}}}",
            "{rate: {send: blocking, rtt: 1 ms, in: {profile: solace, send_mode: blocking}}}",
            id="rate that is simulated",
        ),
        pytest.param(
            f"{{rate: {{at_most: 100, {BY_TIMER}}}}}",
            f"{{rate: {{at_most: 101, {BY_TIMER}}}}}",
            id="rate by the closed form",
        ),
    ],
)
def test_a_check_that_is_turned_round_is_refuted(holds: str, fails: str, tmp_path: Path) -> None:
    for check, status in ((holds, Status.PROVED), (fails, Status.REFUTED)):
        answer = decided(tmp_path, check)
        assert answer.status is status, answer.sentence
        assert answer.sentence


def test_what_cannot_happen_for_want_of_anything_is_not_proved(tmp_path: Path) -> None:
    answer = decided(tmp_path, "{never: loss, although: rejected, faults: []}")
    assert answer.status is Status.REFUTED
    assert "says nothing, for happens(rejected) is in none" in answer.sentence


# unknown is not a pass


@pytest.mark.parametrize(
    ("check", "max_states", "why"),
    [
        ("{never: loss}", 50, "stopped at its limit"),
        ("{possible: duplicate}", 5, "before the limit"),
        (f"{{equal: {PRE_AND_AUTO}, {RECEIVE}}}", 50, "stopped at its limit"),
        (f"{{same_effect: [acknowledge(m1), acknowledge(m2)], {CLIENT}}}}}", 50, "stopped at its limit"),
        ("{never: ghosts}", 1000, "nothing called 'ghosts'"),
        ("{never: happens(committed)}", 1000, "no machine of the tables decides 'committed'"),
        ("{never: loss, without: [sleep]}", 1000, "no event 'sleep'"),
        ("{never: loss, in: {profile: solace, confirm_timer: false}}", 1000, "the profile solace does not have"),
        ("{never: loss, in: {publish_window: any}}", 1000, "has to list the numbers"),
        ("{row: {machine: broker, state: up, event: dream, refuse: true}}", 1000, "no row for dream"),
        ("{rate: {send: closed_form, rtt: 1 ms, in: {profile: any}}}", 1000, "no one rate for all configurations"),
        ("{rate: {send: blocking, in: {profile: solace, confirm_timer: false}}}", 1000, "solace does not have"),
        ("{accepted: {profile: ems, api: REST, settings: {prefetch: 1}}}", 1000, "no API 'REST'"),
    ],
)
def test_what_cannot_be_told_is_unknown(check: str, max_states: int, why: str, tmp_path: Path) -> None:
    answer = decided(tmp_path, check, max_states)
    assert answer.status is Status.UNKNOWN, answer.sentence
    assert why in answer.sentence


def test_a_refutation_needs_no_complete_search(tmp_path: Path) -> None:
    assert decided(tmp_path, "{never: happens(send)}", 20).status is Status.REFUTED


def test_a_search_that_was_cut_short_by_a_witness_is_a_shortest_one(tmp_path: Path) -> None:
    answer = decided(tmp_path, "{possible: duplicate, messages: 2, max_faults: 1}")
    (evidence,) = answer.evidence
    assert not evidence.data["complete"]
    bounds = Bounds(messages=2, faults=frozenset(Fault))
    whole = explore.check(shipped(), shipped().configure(), bounds)
    steps = next(f.steps for name, f in whole.findings.items() if name == "duplicate")
    assert len(evidence.data["witnesses"]["duplicate"]["steps"]) == len(steps)


def test_a_way_is_performed_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_faults(specification: tables.Specification, question: Search) -> Network:
        return compose(specification, question.configuration, Bounds())

    monkeypatch.setattr("ackfsm.surveys.claims._reachability.network_of", without_faults)
    for check in ("{possible: duplicate}", "{never: duplicate}"):
        with pytest.raises(explore.NotReplayedError, match="witness of duplicate cannot be performed"):
            decided(tmp_path, check)


# end to end


@pytest.fixture(scope="module")
def every() -> Mapping[str, ClaimResult]:
    """Each claim, as the shipped tables decide it."""
    return {one.claim.id: one for one in claims.decide(shipped(), claims.read(shipped()))}


def test_every_claim_is_proved_on_the_tables_as_they_are(every: Mapping[str, ClaimResult]) -> None:
    """So that what refutes it is a mutant.  What a contradicting source says is proved where that source is right."""
    assert {name: one.sentence for name, one in every.items() if one.status is not Status.PROVED} == {}
    contradictions = [each for one in every.values() for each in one.contradictions]
    assert {each.status for each in contradictions} == {Status.PROVED}


def test_claims_are_proved_with_evidence(every: Mapping[str, ClaimResult]) -> None:
    never = every["C10"].evidence[1].data
    assert (never["configurations"], never["complete"]) == (4, True)
    assert never["states"] > 500
    steps = every["C45"].evidence[0].data["witnesses"]["loss"]["steps"]
    assert steps[0] == "send(m1)"
    assert "confirmed(m1)" in steps
    assert every["C31"].contradictions, "what AMQP 1.0 does is shown, not hidden"


def test_evidence_says_how_many_consumers_were_asked_about(every: Mapping[str, ClaimResult]) -> None:
    assert {one.data["consumers"] for one in every["C65"].evidence} == {2}
    assert "consumers" not in every["C45"].evidence[0].data


def test_a_rate_is_computed_and_simulated(every: Mapping[str, ClaimResult]) -> None:
    small = every["C22"].evidence[7]
    assert small.sentence.endswith("; simulated 988.9 with 1, 9,889.5 with 10, 89,005.3 with 90 (solace)")
    for case in small.data["simulated"]:
        assert case["simulated"] == pytest.approx(case["computed"], rel=small.data["tolerance"])
        assert case["configuration"]["publish_window"] == case["size"]


@pytest.mark.parametrize("off", [0.998, 1.002])
def test_a_simulation_that_is_off_by_two_in_a_thousand_refutes(
    off: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def simulated(*_: object) -> SimulationResult:
        return SimulationResult(1000 * off)

    monkeypatch.setattr("ackfsm.surveys.claims._questions._simulate", simulated)
    answer = decided(tmp_path, "{rate: {send: blocking, rtt: 1 ms, at_most: 1000, in: {profile: jms}}}")
    assert answer.status is Status.REFUTED
    assert f"gives 1,000 messages a second; simulated {1000 * off:,.1f} (jms)" in answer.sentence


def test_several_processes_find_what_one_finds(every: Mapping[str, ClaimResult]) -> None:
    chosen = claims.choose(claims.read(shipped()), few(["C12", "C28", "C37", "C48"], 2))
    asked: list[tuple[str, int, int]] = []
    several = claims.decide(shipped(), chosen, jobs=2, progress_bar=lambda *part: asked.append(part))
    assert [one.as_json() for one in several] == [every[one.claim.id].as_json() for one in several]
    assert [done for _, done, _ in asked] == list(range(asked[-1][2] + 1)), "one step for each question"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["claims", "--jobs", "1", *arguments])
    return code, *capsys.readouterr()


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--json", "--id", "C48", "--id", "C16")
    assert code == 0
    final, rates = json.loads(out)
    assert list(rates) == ["id", "seed", "statement", "status", "evidence"]
    assert (rates["id"], rates["status"]) == ("C48", "proved")
    assert [check["rates"] for check in rates["evidence"]["checks"]] == [{"1": "4000"}, {"1": "33554432/375"}]
    assert final["evidence"]["contradiction"][0]["status"] == "proved"


def test_the_command_speaks_to_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--id", "C16")
    assert code == 0
    assert "C16 proved" in out
    assert "but store files are written asynchronously" in out
    assert "1 proved" in out


def test_what_hits_its_bound_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--id", "C12", "--max-states", "20")[0] == 3


def test_what_is_refuted_ends_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    false = claims.read(shipped(), written(tmp_path, "  checks: [{never: happens(send)}]"))
    monkeypatch.setattr(claims, "read", lambda _: false)
    code, out, _ = run(capsys)
    assert code == 1
    assert "happens(send) can happen, by send(m1)" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--id", "C99"), "there is no claim 'C99'; the claims are C01 to C67"),
        (("--id", "C68"), "there is no claim 'C68'; the claims are C01 to C67"),
        (("--id", "C1"), "there is no claim 'C1'; the claims are C01 to C67"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert sentence in err


# traces, against all runs up to a length


LENGTH = 3


def traces(network: Network, observable: set[str]) -> set[tuple[str, ...]]:
    """Every trace of up to ``LENGTH`` observations, by walking every run."""
    first: tuple[tuple[str, ...], tuple[str, ...]] = (network.initial, ())
    seen, waiting = {first}, [first]
    while waiting:
        state, trace = waiting.pop()
        for after in observed(network, state, trace, observable):
            if len(after[1]) <= LENGTH and after not in seen:
                seen.add(after)
                waiting.append(after)
    return {trace for _, trace in seen}


def observed(
    network: Network, state: tuple[str, ...], trace: tuple[str, ...], observable: set[str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    steps = [(event, after) for event in network.events if (after := network.step(state, event)) is not None]
    if all(event.may_never_happen for event, _ in steps):
        yield state, (*trace, "at rest")
    for event, after in steps:
        yield after, (*trace, event.label) if event.name in observable else trace


def agree(left: Network, right: Network, observable: set[str]) -> None:
    found = explore.compare(left, right, observable)
    mine, others = traces(left, observable), traces(right, observable)
    if found.equal:
        assert mine == others
        return
    assert found.equal is False
    if len(found.trace) > LENGTH:
        assert mine == others, "the difference is farther away"
        return
    assert {trace for trace in mine ^ others if len(trace) < len(found.trace)} == set(), "there is no shorter one"
    assert (found.trace in mine, found.trace in others) == (found.only == "left", found.only == "right")


OBSERVABLE = st.sets(st.sampled_from([f"event_{n}" for n in range(5)]))


@settings(max_examples=120 if WHOLE else 40)
@given(networks(), networks(), OBSERVABLE)
def test_the_traces_of_random_systems_are_compared(left: Network, right: Network, observable: set[str]) -> None:
    agree(left, right, observable)


@settings(max_examples=60 if WHOLE else 20)
@given(networks(), OBSERVABLE)
def test_a_system_is_equal_to_itself(network: Network, observable: set[str]) -> None:
    found = explore.compare(network, network, observable)
    assert found.equal
    assert found.pairs >= 1
    assert found.trace == ()


def test_a_difference_is_told_by_a_shortest_trace() -> None:
    bounds = Bounds(messages=1, faults=frozenset())
    left, right = [
        compose(shipped(), shipped().configure("jms", {"ack_mode": mode}), bounds, ())
        for mode in ("AUTO_ACKNOWLEDGE", "NO_ACKNOWLEDGE")
    ]
    found = explore.compare(left, right, {"send", "delivered_clear", "processed", "acknowledge"})
    assert (found.equal, found.only) == (False, "left")
    assert found.trace == ("send(m1)", "delivered_clear(m1)", "processed(m1)", "acknowledge(m1)")


# throughput


def test_the_arithmetic_is_exact() -> None:
    rtt, gibibit = throughput.parse_duration("0.25 ms"), throughput.parse_bandwidth("1 Gib/s")
    assert throughput.blocking_rate(rtt) == 4000
    assert throughput.bandwidth_bound(gibibit, 1500) == Fraction(2**30, 8 * 1500)
    assert int(throughput.bandwidth_bound(gibibit, 1500)) == 89478
    carried = throughput.bandwidth_bound(gibibit, 1500)
    assert throughput.window_rate(2, rtt, gibibit, 1500) == 2 / (rtt + 1 / carried), "each message has to be sent too"
    assert [throughput.window_rate(window, rtt, gibibit, 1500) < carried for window in (23, 24)] == [True, False]
    assert throughput.window_rate(10**6, rtt, gibibit, 1500) == throughput.bandwidth_bound(gibibit, 1500)
    assert throughput.transaction_rate(1, rtt, gibibit, 1500) < throughput.blocking_rate(rtt), (
        "the message has to be sent too"
    )


@settings(max_examples=50 if WHOLE else 17)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_larger_batch_is_never_slower_and_never_faster_than_the_line(batch: int, more: int) -> None:
    given_ = (Fraction(1, 1000), Fraction(2**30), 1500)
    rates = [throughput.transaction_rate(size, *given_) for size in (batch, batch + more)]
    assert rates[0] < rates[1] < throughput.bandwidth_bound(given_[1], given_[2])


@pytest.mark.parametrize("text", ["1", "ms", "-1 ms", "0 ms", "1 h", "1 Gib"])
def test_what_is_no_duration_is_refused_with_the_units(text: str) -> None:
    with pytest.raises(InputError, match="s, ms, us, ns"):
        throughput.parse_duration(text)


def test_a_gibibit_is_no_gigabit() -> None:
    assert throughput.parse_bandwidth("1Gib") == 2**30
    assert throughput.parse_bandwidth("1 Gb/s") == 10**9
