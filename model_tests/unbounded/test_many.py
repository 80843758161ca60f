"""A run of hundreds of messages: is it one of the system, and what is made of a way where a small bound is full?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose, observers_of
from ackfsm.checking.unbounded import Level, _filled, decide, prove
from ackfsm.checking.unbounded._columns import Scope
from ackfsm.checking.unbounded._many import Many
from ackfsm.checking.unbounded._tables import Role
from ackfsm.tables import load
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE, few

THROWS = frozenset({Fault.LISTENER_EXCEPTION})
FEW = frozenset({Fault.LISTENER_EXCEPTION, Fault.CONSUMER_LINK_LOSS, Fault.BROKER_KILL})
SWALLOWS: dict[str, object] = {"send_mode": "blocking", "consumption": "listener"}
"""With these qpid confirms a send, and a listener that throws fills its prefetch of 500."""

CASES: Mapping[str, tuple[str, dict[str, object]]] = {
    "swallowed": ("qpid", SWALLOWS | {"prefetch": 2}),
    "up to": ("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "up_to"}),
    "transacted": ("rabbitmq", {"ack_mode": "SESSION_TRANSACTED", "prefetch": 1}),
    "resent": ("qpid-jms", {}),
    "window": ("solace", {}),
}


def _differences(case: str, seed: int, messages: int = 3, steps: int = 600) -> list[str]:
    """Where a random run of a composed network is another one to :class:`Many`: what can happen, and what it shows."""
    profile, settings = CASES[case]
    configuration, drawn = shipped().configure(profile, settings), random.Random(seed)
    observers = observers_of(shipped())
    bounds = Bounds(messages=messages, faults=FEW, max_faults=None)
    network = compose(shipped(), configuration, bounds, observers)
    many = Many(Scope(shipped(), configuration, FEW), messages, observers)
    state = network.initial
    for _ in range(steps):
        event = drawn.choice(network.events)
        after = network.step(state, event)
        if many.fire(event.label) != (after is not None):
            return [f"{event.label} is {'refused' if after is None else 'possible'} in the network alone"]
        state = state if after is None else after
    rest = all(event.may_never_happen or network.step(state, event) is None for event in network.events)
    shown = {
        instance.anomaly
        for instance, its in zip(network.instances, state, strict=True)
        if its in instance.marked or (rest and its in instance.marked_at_rest)
    }
    return [f"{name} is shown by one alone" for name in shown ^ many.shown()]


@pytest.mark.parametrize("case", CASES)
def test_runs_are_those_of_the_composed_network(case: str) -> None:
    assert [line for seed in range(20 if WHOLE else 6) for line in _differences(case, seed)] == []


def test_a_run_that_takes_earlier_for_later_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: what messages hear of others is not the same to both sides."""
    made, other = Many.__init__, {Role.EARLIER: Role.LATER, Role.LATER: Role.EARLIER}

    def swapped(self: Many, *arguments: Any) -> None:
        made(self, *arguments)
        self._of_each = {(other.get(role, role), number): how for (role, number), how in self._of_each.items()}

    monkeypatch.setattr(Many, "__init__", swapped)
    assert any(_differences("up to", seed) for seed in range(10))


def test_what_fills_a_prefetch_is_found_where_the_search_of_two_messages_does_not_end() -> None:
    """What happens with the bound as it is set is performed, so that nothing depends on what that search has missed."""
    bounds = Bounds(faults=THROWS)
    configuration = shipped().configure("qpid", SWALLOWS)
    found = decide(shipped(), configuration, bounds, only=["loss"], max_states=200)
    assert [answer.exploration.complete for answer in found.searches[:2]] == [True, False]
    (loss,) = found.findings.values()
    assert (loss.reachable, loss.messages) == (True, 501)
    beside = explore.small_bounds(shipped(), found.searches[1], max_states=200)
    assert beside == (), "a check of few messages does not say of a bound what may happen without it"


def test_what_fills_a_prefetch_of_500_happens_with_501_messages_and_a_certificate_leaves_it_out() -> None:
    """Its verifier composes a network for each way; those with a smaller bound are of another configuration."""
    asked = ["loss", "phantom", "stuck"]
    configuration = shipped().configure("qpid", SWALLOWS)
    found = decide(shipped(), configuration, Bounds(faults=THROWS), only=asked, keep_invariants=True)
    loss = found.findings[Anomaly.LOSS]
    assert (loss.reachable, loss.messages, len(loss.steps)) == (True, 501, 500 * 10 + 6)
    assert loss.filled is not None
    assert (loss.filled.tried, loss.filled.times, len(loss.filled.few)) == ((("prefetch", 1),), 500, 16)
    made = found.certificate(shipped())
    assert (made.proved, [way.anomaly for way in made.ways]) == (("phantom",), ["stuck"])
    assert made.not_covered == {"loss": "its run is of 501 messages, which a certificate does not perform"}


@pytest.mark.parametrize("settings", [{}, {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"ack_mode": "DUPS_OK_ACKNOWLEDGE"}])
def test_the_reference_executor_performs_such_a_way(settings: dict[str, object]) -> None:
    """With a bound of 12: a network of 501 messages cannot be composed."""
    configuration = shipped().configure("qpid", SWALLOWS | settings | {"prefetch": 12})
    (loss,) = decide(shipped(), configuration, Bounds(faults=THROWS), only=["loss"]).findings.values()
    assert (loss.reachable, loss.messages) == (True, 13)
    bounds = Bounds(messages=13, faults=THROWS, max_faults=None)
    network = compose(shipped(), configuration, bounds, observers_of(shipped(), ["loss"]))
    explore.replay(network, "loss", [event.label for event in loss.steps])


def test_what_is_not_repeated_is_named_in_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_filled, "_MOST_MESSAGES", 100)
    found = decide(shipped(), shipped().configure("qpid", SWALLOWS), Bounds(faults=THROWS), only=["loss"])
    (loss,) = found.findings.values()
    assert loss.reachable is None
    assert "with prefetch=1 it happens in 16 steps, not repeated with 500" in loss.undecided


WORDS = "check --profile qpid --set send_mode=blocking --set consumption=listener --fault listener_exception"
COMMAND = (*WORDS.split(), "--messages", "any", "--only", "loss")


def test_a_promise_that_501_messages_break_ends_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables as if nobody had thought of what fills the prefetch, with which few messages find nothing."""
    spec = copy_of_spec(tmp_path)
    before = "and not acks_before_delivery and not settled_on_dispatch and not failures_fill_prefetch"
    replace(spec, "promises.yaml", (before, before.removesuffix(" and not failures_fill_prefetch")))
    changed = load(spec)
    monkeypatch.setattr(tables, "load", lambda: changed)
    assert cli.main(COMMAND) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "500 messages take the steps of m1 of this way, which is one with prefetch=1" in said
    assert "Promise broken: loss." in said
    monkeypatch.setattr(tables, "load", shipped)
    assert cli.main(COMMAND) == 0


def test_an_action_takes_a_proof_away() -> None:
    configuration = shipped().configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"})
    for actions, proved in ((frozenset[str](), True), (frozenset({"recover"}), False)):
        asked = prove(shipped(), configuration, ["duplicate"], faults=(), actions=actions, levels=[Level.CHAOS])
        assert asked.verdicts["duplicate"].proved is proved
        (duplicate,) = decide(shipped(), configuration, Bounds(actions=actions), only=["duplicate"]).findings.values()
        assert duplicate.reachable is not proved


@pytest.mark.parametrize("action", few(sorted(name for name, event in shipped().events.items() if event.optional), 2))
def test_no_proof_with_an_action_contradicts_a_search(action: str) -> None:
    configuration = shipped().configure("solace" if action.startswith("settle") else "jms")
    most = 50_000 if WHOLE else 10_000
    proof = prove(shipped(), configuration, actions=[action], faults=THROWS, levels=[Level.CHAOS], max_states=most)
    bounds = Bounds(messages=2, faults=THROWS, max_faults=1, actions=frozenset({action}))
    reached = {str(f.anomaly) for f in explore.check(shipped(), configuration, bounds).findings.values() if f.reachable}
    assert not reached & {name for name, verdict in proof.verdicts.items() if verdict.proved}
    assert any(verdict.proved for verdict in proof.verdicts.values())
    assert Anomaly.PHANTOM not in reached
