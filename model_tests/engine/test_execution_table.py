"""A wrong row of ``spec/execution.yaml`` is refused with its line."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ackfsm.engine.core.table import read_execution
from ackfsm.terms import SpecError
from model_tests.support.places import SPEC
from model_tests.support.tables import shipped


def _changed(folder: Path, old: str, new: str) -> Path:
    """A copy of the tables, with another text in ``execution.yaml``."""
    shutil.copytree(SPEC, folder)
    file = folder / "execution.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    frame: producer\n", "", "has a frame or the engine takes it for one"),
        ("  window:\n", "  window_counter:\n", "the groups are not"),
        ("commits: record", "commits: entry", "there is no record 'entry'"),
        ("  record: {write: write_record", "  records: {write: write_record", "there is no machine 'records'"),
        ("survives: record_survives", "survives: survives", "there is no event 'survives'"),
        ("  rejected: {outcome", "  refused: {outcome", "there is no event 'refused'"),
        ("  requeue:\n    - {by", "  arrive:\n    - {by", "nothing says what decides on requeue"),
        ("stays_with_session: [delivery, ", "stays_with_session: [", "delivery has to stay"),
        (
            "{machine: record, state: unwritten",
            "{machine: record, state: written_on",
            "no state of record 'written_on'",
        ),
    ],
)
def test_a_wrong_row_of_the_execution_table_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    folder = _changed(tmp_path / "spec", old, new)
    roles = ("copy", "producer", "window", "unconfirmed", "consumer", "prefetch", "broker")
    with pytest.raises(SpecError) as caught:
        read_execution(shipped(), folder, roles)
    assert sentence in str(caught.value)
    assert re.search(r"execution\.yaml:\d+", str(caught.value))
