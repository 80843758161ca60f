"""Some seconds of ``python -m model_tests.fuzz``: no traceback, and exit codes that say what the JSON says."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_tests.fuzz import calls as fuzz_calls
from model_tests.fuzz.commands import command_lines
from model_tests.fuzz.files import Laboratory
from model_tests.fuzz.outcomes import Outcome, complaints, run
from model_tests.support.whole import WHOLE

FEW = settings(max_examples=120 if WHOLE else 25, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    folder = Path(tempfile.mkdtemp())
    yield Laboratory(folder)
    shutil.rmtree(folder)


@FEW
@given(st.data())
def test_every_command_line_ends_with_what_its_json_means(laboratory: Laboratory, data: st.DataObject) -> None:
    outcome = run(data.draw(command_lines(laboratory)))
    assert not list(complaints(outcome)), outcome.argv


@FEW
@given(st.data())
def test_every_call_answers_or_raises_an_error_of_ours(laboratory: Laboratory, data: st.DataObject) -> None:
    called = fuzz_calls.perform(data.draw(fuzz_calls.calls(laboratory)))
    assert called.escaped is None, called


# what the fuzz itself would notice


def _outcome(**changes: Any) -> Outcome:
    return Outcome(**{"argv": ("verify", "x", "--json"), "code": 0, "out": "{}", "err": "", **changes})


WRONG: Mapping[str, tuple[Outcome, str]] = {
    "a traceback": (_outcome(err="Traceback (most recent call last):\n", code=2), "a traceback is shown"),
    "an exception": (_outcome(escaped="Traceback ..."), "a traceback got out"),
    "a code of its own": (_outcome(code=70, err="a defect"), "it ends with 70"),
    "no code": (_outcome(code=None), "it ends with None"),
    "an escape sequence": (_outcome(out="\x1b[2J", code=2, err="x\n"), "it shows"),
    "two sentences": (_outcome(argv=("check",), code=2, err="a\nb\n"), "told in 2 lines"),
    "silence": (_outcome(code=2), "told in 0 lines"),
    "a pass that is none": (_outcome(out='{"verdict": "invalid"}'), "its JSON means 1"),
    "an open pass": (_outcome(out='{"verdict": "unknown"}'), "its JSON means 3"),
    "a violation that is none": (_outcome(out='{"verdict": "valid"}', code=1), "its JSON means 0"),
    "a loss that was forbidden": (
        _outcome(out='{"verdict": "valid", "never": {"loss": {"found": true}}}'),
        "its JSON means 1",
    ),
    "half a JSON": (_outcome(out="{"), "cannot be read"),
}


@pytest.mark.parametrize(("outcome", "says"), WRONG.values(), ids=WRONG.keys())
def test_the_fuzz_notices(outcome: Outcome, says: str) -> None:
    assert any(says in complaint for complaint in complaints(outcome))


ERRORS: Mapping[str, Callable[[], object]] = {
    "a KeyError": lambda: dict[str, str]()["x"],
    "a TypeError": lambda: len(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("broken", ERRORS.values(), ids=ERRORS.keys())
def test_the_fuzz_notices_what_a_call_raises(broken: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fuzz_calls.PUBLIC, "parse_workload", broken)
    assert "Error" in str(fuzz_calls.perform(("parse_workload", (), {})).escaped)
