"""Worker processes end with the block that started them, whatever is under way."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from ackfsm.workers import workers

LARGE = b"x" * 1_000_000
"""More than a pipe holds: until a worker reads it, the pool is still writing."""


def _sleep_over(argument: bytes) -> None:
    time.sleep(600 if argument else 0)


def _fails_while_the_pool_is_writing() -> None:
    before = set(multiprocessing.active_children())
    with workers(2) as others:
        answers = others.map(_sleep_over, [b"", *[LARGE] * 8])
        assert next(answers) == (0, None)
        assert set(multiprocessing.active_children()) > before
        raise ValueError("enough")


def test_an_error_ends_workers_to_which_the_pool_is_still_writing() -> None:
    """Before 3.11.5 Python waits for ever if it is left alone; later versions end without our help."""
    before = set(multiprocessing.active_children())
    with pytest.raises(ValueError, match="enough"):
        _fails_while_the_pool_is_writing()
    assert set(multiprocessing.active_children()) == before
