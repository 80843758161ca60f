"""Each message is held to the model: what explains an anomaly, and where a message stops to be a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import verify
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import NamedHistory, named_histories

SPEC = shipped()
NAMED = named_histories()


def _examined(history: NamedHistory, folder: Path) -> verify.Findings:
    read, configuration = verify.read(history.write(folder)), SPEC.configure(None, history.config)
    return verify.examine(read, SPEC, configuration, skew=history.skew * 10**6)


@pytest.mark.parametrize("name", [name for name, each in NAMED.items() if each.invalid is not None])
def test_what_nothing_explains_is_held_against_the_right_message(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    found = _examined(history, tmp_path)
    unexplained = {
        anomaly.value: list(finding.unexplained_examples)
        for anomaly, finding in found.anomalies.items()
        if finding.unexplained
    }
    assert unexplained == history.invalid
    assert found.explanation is not None
    assert [each.message for each in found.explanation.examples if not each.anomalies] == list(history.run)


@pytest.mark.parametrize("name", [name for name, each in NAMED.items() if each.valid is not None])
def test_what_is_explained_names_its_cause(name: str, tmp_path: Path) -> None:
    history = NAMED[name]
    found = _examined(history, tmp_path)
    assert found.explanation is not None
    assert found.explanation.examples == ()
    causes = {anomaly.value: finding.causes for anomaly, finding in found.anomalies.items() if finding.found}
    assert {anomaly: " and ".join(each) for anomaly, each in causes.items()} == history.valid
