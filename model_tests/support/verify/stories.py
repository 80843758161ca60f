"""Histories examined so that their messages can be explained."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from ackfsm import verify
from ackfsm.showing.views.history import Stories, stories_of
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import NamedHistory, named_histories

RECORDED = sorted([*DATA.glob("*.jsonl.gz"), *DATA.glob("pairs-*.jsonl"), *(DATA / "synthetic").glob("*.jsonl")])
"""Histories that were recorded from brokers, drawn at random, or made by hand."""


def examined_history(history: NamedHistory) -> tuple[verify.Examination, verify.Result]:
    """What is found in a named history, and the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        examination = verify.examination(
            history.write(Path(folder)),
            shipped(),
            lambda _: history.configuration(shipped()),
            skew=history.skew * 10**6,
            folded_from=None,
        )
    return examination, verify.verdict(examination.findings, shipped())


@functools.cache
def named_stories(name: str) -> Stories:
    """What tells the stories of the named history of this name."""
    examination, result = examined_history(named_histories()[name])
    return stories_of(examination, result)


@functools.cache
def examined_file(path: Path) -> Stories:
    """The same of a file, judged by its own header."""
    specification = shipped()

    def configured(header: verify.Header | None) -> object:
        return None if header is None or not header.config else specification.configure(None, header.config)

    examination = verify.examination(path, specification, configured, skew=None, folded_from=None)  # type: ignore[arg-type]
    return stories_of(examination, verify.verdict(examination.findings, specification))
