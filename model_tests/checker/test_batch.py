"""Tasks give the same results wherever they are run, and worker processes end with the block that started them."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ackfsm.tables import Specification
from ackfsm.tables.batch import ParallelMap, _interrupts_blocked, batch, chunks, process_pool
from ackfsm.terms import SpecError
from model_tests.support.tables import shipped

LARGE = b"x" * 1_000_000
"""More than a pipe holds: until a worker reads it, the pool is still writing."""

NUMBERS = range(7)


def _labels(specification: Specification, numbers: Sequence[int]) -> list[str]:
    return [f"{specification.digest}{number}" for number in numbers]


def _last_first(function: Callable[[Any], Any], arguments: Sequence[Any], /) -> Iterator[tuple[int, Any]]:
    return ((index, function(arguments[index])) for index in reversed(range(len(arguments))))


@pytest.mark.parametrize(
    ("jobs", "parallel_map"), [(1, None), (2, None), (1, _last_first)], ids=["one process", "processes", "elsewhere"]
)
def test_results_are_in_the_order_of_the_arguments(jobs: int, parallel_map: ParallelMap | None) -> None:
    shown: list[tuple[str, int, int]] = []
    with batch(shipped(), jobs, parallel_map=parallel_map, progress_bar=lambda *part: shown.append(part)) as work:
        found = work.run("labels", _labels, chunks(NUMBERS, 3))
    assert found == _labels(shipped(), NUMBERS)
    assert len(shown) == 4
    assert shown[0] == ("labels", 0, 7), "before the first result, which may take long"
    assert shown[-1] == ("labels", 7, 7)
    assert sorted(done for _, done, _ in shown) == [done for _, done, _ in shown]


def test_what_is_done_elsewhere_is_done_on_the_same_tables() -> None:
    other = dataclasses.replace(shipped(), digest="of other tables")
    with (
        batch(other, parallel_map=_last_first) as work,
        pytest.raises(SpecError, match="the tables were changed while they were being explored; start again"),
    ):
        work.run("labels", _labels, chunks(NUMBERS, 3))


def _sleep_over(argument: bytes) -> None:
    time.sleep(600 if argument else 0)


def _fails_while_the_pool_is_writing() -> None:
    before = set(multiprocessing.active_children())
    with process_pool(2) as pool:
        answers = pool(_sleep_over, [b"", *[LARGE] * 8])
        assert next(answers) == (0, None)
        assert set(multiprocessing.active_children()) > before
        raise ValueError("enough")


def test_an_error_ends_workers_to_which_the_pool_is_still_writing() -> None:
    """Before 3.11.5 Python waits for ever if it is left alone; later versions end without our help."""
    before = set(multiprocessing.active_children())
    with pytest.raises(ValueError, match="enough"):
        _fails_while_the_pool_is_writing()
    assert set(multiprocessing.active_children()) == before


def test_results_in_order_come_while_few_arguments_are_taken() -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in NUMBERS:
            taken.append(number)
            yield number

    with process_pool(2) as pool:
        for place, result in enumerate(pool.in_order(_negated, numbers(), ahead=2)):
            assert result == -place
            assert len(taken) <= place + 3
    assert taken == list(NUMBERS)


def _negated(number: int) -> int:
    return -number


def test_an_interrupt_that_another_thread_is_given_waits_until_a_process_has_started() -> None:
    """One of a library, that blocks no signal: what an interrupt calls is run in the first thread all the same."""
    ended, block, interrupted = threading.Event(), "was cut off", False
    threading.Thread(target=ended.wait, daemon=True).start()
    # A shell starts what runs in its background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _interrupts_blocked():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            block = "came to its end"
    except KeyboardInterrupt:
        interrupted = True
    finally:
        signal.signal(signal.SIGINT, before)
        ended.set()
    assert (block, interrupted) == ("came to its end", True)
