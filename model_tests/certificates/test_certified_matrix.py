"""What ``model_tests.certified_matrix`` says of systems of the matrix, and what it does not let pass."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable

import pytest

from ackfsm.checking.certificates import Certificate
from ackfsm.checking.unbounded import Decision
from ackfsm.terms import Configuration
from model_tests import certified_matrix
from model_tests.any_number import configurations_of_matrix
from model_tests.support.checker.certified import sealed
from model_tests.support.tables import shipped
from model_tests.support.whole import few


@functools.cache
def small() -> list[Configuration]:
    """Systems of the matrix that are decided in a second, with one copy of a message and with two."""
    fixed = {"profile": "rabbitmq", "ack_mode": "NO_ACKNOWLEDGE", "delivery_mode": "NON_PERSISTENT"}
    return [each for each in configurations_of_matrix(shipped()) if fixed.items() <= each.as_dict().items()]


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(certified_matrix, "configurations_of_matrix", lambda _: small())
    monkeypatch.setattr(sys, "argv", ["certified_matrix", *options])
    return certified_matrix.main()


@pytest.mark.parametrize("sent", few(["once", "twice"], 1))
def test_drawn_systems_have_certificates_of_all_that_is_proved(
    sent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--draw", "1", "--sent", sent) == 0
    *_, system, of_all, _ = capsys.readouterr().out.splitlines()
    assert system.startswith("rabbitmq NON_PERSISTENT NO_ACKNOWLEDGE ")
    assert ("resend_in_doubt=True" in system) == (sent == "twice")
    assert of_all.startswith("1 of 1 verified; ")


def without_phantom(certificate: Certificate) -> Certificate:
    kept = tuple(name for name in certificate.proved if name != "phantom")
    left = [
        dataclasses.replace(one, watchers=tuple(each for each in one.watchers if each[0] in kept))
        for one in certificate.invariants
    ]
    return dataclasses.replace(certificate, proved=kept, invariants=tuple(one for one in left if one.anomalies))


def without_invariants(certificate: Certificate) -> Certificate:
    return dataclasses.replace(certificate, invariants=())


@pytest.mark.parametrize(
    ("damage", "says", "of_all"),
    [
        pytest.param(without_phantom, ", without phantom;", "1 of 1 verified; ", id="it lacks what is proved"),
        pytest.param(
            without_invariants, "phantom: no invariant is for phantom", "0 of 1 verified; ", id="it is refuted"
        ),
    ],
)
def test_a_certificate_with_a_defect_does_not_pass(
    damage: Callable[[Certificate], Certificate],
    says: str,
    of_all: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Decision.certificate
    monkeypatch.setattr(Decision, "certificate", lambda *known: sealed(damage(made(*known))))
    assert run(monkeypatch, "--draw", "1", "--sent", "once") == 1
    printed = capsys.readouterr().out
    assert says in printed
    assert of_all in printed
