"""A claim falls with what it rests on: a mutant that makes a sentence false is refuted by the check that it names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ackfsm.surveys import claims
from ackfsm.surveys.claims import Claim, Status
from ackfsm.surveys.claims._reachability import Never
from model_tests.support.spec.claim_mutants import ClaimMutant, mutants
from model_tests.support.tables import shipped
from model_tests.support.whole import few


def with_the_check_that_notices(mutant: ClaimMutant) -> Claim:
    (claim,) = claims.choose(claims.read(shipped()), [mutant.claim])
    check = claim.checks[mutant.check - 1]
    if mutant.noticed_in:
        assert isinstance(check, Never)
        check = dataclasses.replace(check, scope=dataclasses.replace(check.scope, groups=(mutant.noticed_in,)))
    return dataclasses.replace(claim, checks=(check,), contradictions=())


def _asked() -> list[ClaimMutant]:
    """One mutant of each of some claims, and where products are whole all."""
    of_claims: dict[str, list[ClaimMutant]] = {}
    for mutant in mutants():
        of_claims.setdefault(mutant.claim, []).append(mutant)
    return [mutant for of_claim in few([*of_claims.values()], 16) for mutant in few(of_claim, 1)]


@pytest.mark.parametrize("mutant", _asked(), ids=str)
def test_what_makes_a_sentence_false_refutes_its_claim(
    mutant: ClaimMutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = mutant.make(tmp_path, monkeypatch)
    (found,) = claims.decide(changed, [with_the_check_that_notices(mutant)])
    assert found.status is Status.REFUTED, found.sentence
    assert "that says nothing" not in found.sentence, "the sentence has to be false, not empty"


def test_every_claim_has_a_mutant_with_a_name_of_its_own() -> None:
    names = [str(mutant) for mutant in mutants()]
    assert len(set(names)) == len(names)
    assert {mutant.claim for mutant in mutants()} == {claim.id for claim in claims.read(shipped())}
    assert all(mutant.because and bool(mutant.edits) is not bool(mutant.formula) for mutant in mutants())
