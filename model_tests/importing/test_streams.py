"""Do blocks of lines hold all lines of a file, wherever they are cut?"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.history.importing.streams import blocks, lines
from ackfsm.terms import InputError
from model_tests.support.whole import WHOLE

TEXTS = st.lists(st.text("ab ", max_size=12), max_size=12).map("\n".join)


@settings(max_examples=80 if WHOLE else 27, deadline=None)
@given(text=TEXTS, size=st.integers(1, 40), packed=st.booleans(), end=st.sampled_from(["", "\n", "\r\n"]))
def test_blocks_hold_the_lines_of_a_file_in_their_order(text: str, size: int, packed: bool, end: str) -> None:  # noqa: FBT001
    whole = (text + end).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_bytes(gzip.compress(whole) if packed else whole)
        found = list(blocks(path, size))
        numbered = enumerate((line for block in found for line in block.lines()), 1)
        assert [(number, line) for number, line in numbered if line.strip()] == list(lines(path))
    assert sum(block.size for block in found) == len(whole)
    assert all(block.size >= size for block in found[:-1])


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a\n" * 10, encoding="utf-8")
    (block,) = blocks(path, 1_000)
    path.write_text("a\n" * 5, encoding="utf-8")
    with pytest.raises(InputError, match="text was cut off while it was read"):
        list(block.lines())


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.history.importing.streams.LONGEST_LINE", 50)
    path = tmp_path / "text"
    path.write_text("a" * 60, encoding="utf-8")
    for read in (lambda: list(lines(path)), lambda: [list(block.lines()) for block in blocks(path, 10)]):
        with pytest.raises(InputError, match="has a line of more than"):
            read()
