"""Does the verifier in Go, which reads no tables, verify what the one in Python does, and refute what was changed?"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ackfsm import cli
from ackfsm.checking.certificates import Certificate, Invariant, network_of, write_certificate
from ackfsm.checking.unbounded import Level
from ackfsm.terms import Fault
from model_tests.support.checker.certified import FEW, certified, claiming, network_bytes, sealed, verified
from model_tests.support.places import PROJECT
from model_tests.support.tables import shipped
from model_tests.support.tools import missing
from model_tests.support.whole import WHOLE, few

VERIFIED, REFUTED, NOT_UNDERSTOOD = 0, 1, 2

Network = dict[str, Any]


class Verifier(NamedTuple):
    """The program, and a folder for what it reads."""

    program: Path
    folder: Path

    def __call__(self, certificate: Certificate, other: bytes | None = None) -> tuple[int, str]:
        """Its exit code and what it prints of a certificate, and of its own network where no other one is given."""
        paths = self.folder / "certificate", self.folder / "network"
        write_certificate(paths[0], certificate)
        paths[1].write_bytes(network_bytes(certificate) if other is None else other)
        done = subprocess.run([self.program, *paths], capture_output=True, text=True, timeout=300, check=False)
        assert not done.stderr
        return done.returncode, done.stdout

    def of_network(self, certificate: Certificate, other: Network) -> tuple[int, str]:
        """The same of a certificate that is about the network ``other``."""
        data = json.dumps(other).encode()
        return self(dataclasses.replace(certificate, network=hashlib.sha256(data).hexdigest()), data)


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    go = shutil.which("go")
    if go is None:
        missing("no go to build the second verifier: apt install golang-go")
    folder = tmp_path_factory.mktemp("verifier")
    done = subprocess.run(
        [go, "build", "-o", folder / "program", "."],
        cwd=PROJECT / "verifier",
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return Verifier(folder / "program", folder)


@pytest.fixture(scope="module")
def related() -> Certificate:
    """The order of messages, and that none is stuck, by related messages."""
    return certified(only=["reorder", "stuck"], levels=[Level.RELATED])


TORN = {"ack_mode": "SESSION_TRANSACTED", "consumption": "receive"}
THROWS = {*FEW, Fault.LISTENER_EXCEPTION}

PROVED: Mapping[str, tuple[set[str], Callable[[], Certificate]]] = {
    "chaos": ({"alone", "chaos"}, certified),
    "ghosts": ({"chaos"}, lambda: certified("qpid", {"prefetch": 1})),
    "window": ({"chaos"}, lambda: certified("jms", {"publish_window": 5, "send_mode": "asynchronous"})),
    "delayed": ({"chaos"}, lambda: certified("qpid", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, ["prefetch_overrun"])),
    "related": (
        {"alone", "related"},
        lambda: certified(only=["reorder", "stuck", "loss"], faults=THROWS, levels=[Level.RELATED]),
    ),
    "few machines": (
        {"alone", "related"},
        lambda: certified(only=["reorder", "stuck", "phantom"], levels=[Level.RELATED], localize=True),
    ),
    "followed": (
        {"alone", "related"},
        lambda: certified("jms", TORN, ["torn_transaction"], levels=[Level.FOLLOWED]),
    ),
    "transacted": ({"chaos"}, lambda: certified("jms", {"ack_mode": "SESSION_TRANSACTED"})),
    "rabbitmq": ({"chaos"}, lambda: certified("rabbitmq", {})),
}
"""Certificates by what they take: the levels of the invariants that they have, and how they are made."""

of_each = pytest.mark.parametrize("name", [*PROVED] if WHOLE else [*PROVED][:6])


@functools.cache
def _made(name: str) -> Certificate:
    return PROVED[name][1]()


@pytest.fixture(scope="module")
def auto() -> Certificate:
    """AUTO_ACKNOWLEDGE at the level chaos."""
    return _made("chaos")


@of_each
def test_what_is_proved_is_verified_by_the_first(name: str) -> None:
    levels, _ = PROVED[name]
    certificate = _made(name)
    found = verified(certificate)
    assert (dict(found.refuted), dict(found.undetermined), found.verified) == ({}, {}, True)
    assert levels <= {each.level.value for each in certificate.invariants}
    if name in {"ghosts", "window"}:
        assert {"window_overrun", "prefetch_overrun"} <= {*certificate.proved}


@of_each
def test_what_is_proved_is_verified_by_the_second(name: str, verifier: Verifier) -> None:
    certificate = _made(name)
    code, out = verifier(certificate)
    assert (code, out.splitlines()[-1]) == (VERIFIED, "verified"), out
    assert out.count("invariant ") == len(certificate.invariants)
    for proved in certificate.proved:
        assert f"\n{proved}: shown\n" in out


def test_the_command_prints_the_network(
    auto: Certificate, verifier: Verifier, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = verifier.folder / "made"
    write_certificate(path, auto)
    assert cli.main(["certificate", "network", str(path)]) == 0
    assert capfdbinary.readouterr().out == network_of(auto, shipped())


# what is changed


def _several(certificate: Certificate) -> int:
    """Which of its invariants is for several messages."""
    return next(number for number, each in enumerate(certificate.invariants) if each.most is None)


def _with(certificate: Certificate, number: int, invariant: Invariant) -> Certificate:
    every = certificate.invariants
    return sealed(dataclasses.replace(certificate, invariants=(*every[:number], invariant, *every[number + 1 :])))


def _without(invariant: Invariant, at: int) -> Invariant:
    return dataclasses.replace(invariant, views=(*invariant.views[:at], *invariant.views[at + 1 :]))


def _without_pair(invariant: Invariant, at: int) -> Invariant:
    assert invariant.relation is not None
    return dataclasses.replace(invariant, relation=_without(invariant.relation, at))


def _sample(many: int) -> Sequence[int]:
    return range(0, many, max(1, many // (5 if WHOLE else 2)))


def test_without_any_one_view_it_is_refuted(related: Certificate, auto: Certificate, verifier: Verifier) -> None:
    for certificate in (related, auto):
        number = _several(certificate)
        invariant = certificate.invariants[number]
        for at in _sample(len(invariant.views)):
            code, out = verifier(_with(certificate, number, _without(invariant, at)))
            assert code == REFUTED, at
            assert "not among" in out


def test_without_the_first_view_it_is_refuted(auto: Certificate, verifier: Verifier) -> None:
    """Nothing leads back to it, so that the others are closed."""
    number = next(n for n, each in enumerate(auto.invariants) if each.level.value == "alone")
    code, out = verifier(_with(auto, number, _without(auto.invariants[number], 0)))
    assert code == REFUTED
    assert "the first view" in out


def test_without_any_one_pair_of_its_relation_it_is_refuted(related: Certificate, verifier: Verifier) -> None:
    number = _several(related)
    relation = related.invariants[number].relation
    assert relation is not None
    for at in _sample(len(relation.views)):
        code, out = verifier(_with(related, number, _without_pair(related.invariants[number], at)))
        assert code == REFUTED, at
        assert "not among" in out


def test_what_is_possible_is_not_shown(auto: Certificate, verifier: Verifier) -> None:
    more = dataclasses.replace(auto, proved=(*auto.proved, "duplicate"))
    code, out = verifier(sealed(more))
    assert code == REFUTED
    assert "duplicate: REFUTED: no invariant is for" in out
    every = tuple(claiming(each, more.proved) for each in auto.invariants)
    code, out = verifier(sealed(dataclasses.replace(more, invariants=every)))
    assert code == REFUTED
    assert "): REFUTED: it is marked beside one of its views" in out


def test_what_is_possible_at_rest_is_not_shown(related: Certificate, verifier: Verifier) -> None:
    """Each state of what watches is a mark: a system that has nothing to do is in one."""
    network = json.loads(network_bytes(related))
    changed = 0
    for family in network["families"]:
        for watcher in family["watchers"]:
            machine = next(each for each in family["machines"] if each["machine"] == watcher["machine"])
            watcher["at_rest"], changed = machine["states"], changed + 1
    assert changed
    code, out = verifier.of_network(related, network)
    assert code == REFUTED
    assert "marked beside views that can be at rest" in out


def test_another_network_is_refused(related: Certificate, verifier: Verifier) -> None:
    code, out = verifier(related, network_bytes(related).replace(b"true", b"false", 1))
    assert (code, "the network is not the one" in out) == (NOT_UNDERSTOOD, True)


def _refusals(network: Network) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each event what earlier and later messages refuse, as it is written for several messages."""
    for event in network["families"][-1]["events"]:
        for part in event["participants"]:
            if part["role"] in {"earlier", "later"} and [] in part["moves"].values():
                yield event["event"], part


def test_without_a_refusal_the_views_are_not_closed(related: Certificate, verifier: Verifier) -> None:
    """A row of the tables is another one, and the digest is that of the network with it."""
    data = network_bytes(related)
    assert verifier.of_network(related, json.loads(data))[0] == VERIFIED, "whatever the spaces in it"
    codes = {}
    every = [f"{name} {part['machine']} {part['role']}" for name, part in _refusals(json.loads(data))]
    for at in {every.index("dispatch_first entry later"), *few(range(len(every)), len(every) // 3)}:
        network = json.loads(data)
        _, part = list(_refusals(network))[at]
        part["moves"] = {state: to for state, to in part["moves"].items() if to}
        codes[every[at]] = verifier.of_network(related, network)[0]
    assert codes["dispatch_first entry later"] == REFUTED, codes
    assert set(codes.values()) <= {VERIFIED, REFUTED}


def _level(network: Network) -> None:
    network["families"][0]["levels"] = 3


def _refusing(network: Network) -> None:
    family = network["families"][-1]
    watches = {each["machine"] for each in family["machines"] if each["watches"]}
    parts = (part for event in family["events"] for part in event["participants"] if part["machine"] in watches)
    moves = next(parts)["moves"]
    moves[next(iter(moves))] = []


def _fewer(network: Network) -> None:
    network["families"] = network["families"][:-1]


def _counting(network: Network) -> None:
    counter = network["families"][0]["counters"][0]
    counter["up"] = counter["up"][1:]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (_level, "unknown field"),
        (_refusing, "which watches and refuses"),
        (_fewer, "famil"),
        (_counting, "which is not counted"),
    ],
)
def test_a_network_that_is_not_understood_is_refused(
    changed: Callable[[Network], None], said: str, verifier: Verifier
) -> None:
    certificate = certified("qpid", only=["phantom"])
    network = json.loads(network_bytes(certificate))
    changed(network)
    code, out = verifier.of_network(certificate, network)
    assert (code, said in out) == (NOT_UNDERSTOOD, True), out


def test_a_file_that_is_not_understood_is_refused(related: Certificate, verifier: Verifier) -> None:
    code, _ = verifier(related)
    assert code == VERIFIED
    paths = verifier.folder / "certificate", verifier.folder / "network"
    data = paths[0].read_bytes()
    for damaged in (b"", data[:-1], data + b" ", data.replace(b'"version":5', b'"version":6'), data[:400]):
        paths[0].write_bytes(damaged)
        done = subprocess.run([verifier.program, *paths], capture_output=True, text=True, check=False)
        assert done.returncode == NOT_UNDERSTOOD, damaged[:40]
        assert "NOT UNDERSTOOD" in done.stdout


# drawn


def _damaged(certificate: Certificate, draw: random.Random) -> Certificate:
    """The certificate with one drawn thing changed."""
    number = draw.randrange(len(certificate.invariants))
    invariant = certificate.invariants[number]
    kinds = {
        "view": lambda: _without(invariant, draw.randrange(len(invariant.views))),
        "least": lambda: dataclasses.replace(invariant, least=draw.randrange(4)),
        "most": lambda: dataclasses.replace(invariant, most=draw.choice([None, 1, 2, 3])),
        "watchers": lambda: dataclasses.replace(invariant, watchers=tuple(draw.choices(invariant.watchers, k=3))),
        "state": lambda: _with_another_state(invariant, draw),
        "machine": lambda: dataclasses.replace(invariant, message=(*invariant.message[1:], *invariant.message[:1])),
        "pair": lambda: (
            invariant
            if invariant.relation is None
            else _without_pair(invariant, draw.randrange(len(invariant.relation.views)))
        ),
        "covering": lambda: dataclasses.replace(invariant, covering=invariant.ghosts),
        "nothing": lambda: invariant,
    }
    return _with(certificate, number, kinds[draw.choice(list(kinds))]())


def _with_another_state(invariant: Invariant, draw: random.Random) -> Invariant:
    """One machine is in a state that another view has it in."""
    states = [list(state) for state in invariant.message_states]
    if states and states[0]:
        machine = draw.randrange(len(states[0]))
        draw.choice(states)[machine] = draw.choice(states)[machine]
    return dataclasses.replace(invariant, message_states=tuple(map(tuple, states)))


@pytest.mark.parametrize("seed", few(range(3), 1))
def test_of_damaged_certificates_both_verifiers_say_the_same(
    seed: int, related: Certificate, auto: Certificate, verifier: Verifier
) -> None:
    draw = random.Random(seed)
    ghosts = certified("qpid", {"prefetch": 2}, ["prefetch_overrun", "phantom"])
    said = []
    for _ in range(12 if WHOLE else 8):
        damaged = _damaged(draw.choice([related, auto, ghosts]), draw)
        try:
            in_python = verified(damaged).verified
        except ValueError:
            in_python = False
        code, out = verifier(damaged)
        assert (code == VERIFIED) == in_python, out
        said.append(in_python)
    assert {*said} == {False, True}
