"""The rows of what was judged: which flags a case has, and what decides whether it is allowed."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from ackfsm.terms import Anomaly
from ackfsm.verify.conformance.explain import Explained
from ackfsm.verify.findings.judgements import JUDGED, judged_of, with_allowed

_FLAGS = ("unexplained", "undecided", "by_kind", "doubted")


def _codes(*codes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(codes, np.int64)


def test_each_case_has_the_flags_that_are_its_own() -> None:
    explained = Explained(unexplained=_codes(1), undecided=_codes(3), causes={}, by_kind=_codes(5))
    counted = {Anomaly.REORDER: _codes(1, 3, 5, 7), Anomaly.LOSS: _codes(1)}
    found = judged_of(counted, {Anomaly.REORDER: explained}, {Anomaly.REORDER: _codes(3, 9)}).to_pylist()
    flags = {(row["anomaly"], row["case"]): [row[name] for name in _FLAGS] for row in found}
    assert flags == {
        ("loss", 1): [None, False, True, False],
        ("reorder", 1): [True, False, False, False],
        ("reorder", 3): [False, True, False, True],
        ("reorder", 5): [False, False, True, False],
        ("reorder", 7): [False, False, False, False],
    }


def test_a_case_is_allowed_by_the_first_that_decides_it() -> None:
    """A doubt of the recording, what nothing explains, what is undecided, and what its kind is allowed."""
    every = list(itertools.product([True, False, None], [True, False], [True, False], [True, False]))
    rows = [{"anomaly": "loss", "case": 0, **dict(zip(_FLAGS, flags, strict=True))} for flags in every]
    for kind in (True, False, None):
        found = with_allowed(pa.Table.from_pylist(rows, schema=JUDGED), {Anomaly.LOSS: kind})["allowed"].to_pylist()
        assert found == [_allowed(kind, *flags) for flags in every]


def _allowed(
    kind: bool | None,  # noqa: FBT001 - a cell
    unexplained: bool | None,  # noqa: FBT001
    undecided: bool,  # noqa: FBT001
    by_kind: bool,  # noqa: FBT001
    doubted: bool,  # noqa: FBT001
) -> bool | None:
    if doubted:
        return kind or None
    if unexplained or undecided:
        return False if unexplained else None
    return kind if by_kind else True
