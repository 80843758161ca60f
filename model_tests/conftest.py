"""What all tests share: how Hypothesis runs, and what is not done twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from ackfsm.explore._search import Pace
from model_tests._tables import read_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadline: a first call may compile a kernel.  On CI (which sets CI) the examples are the same in every run.
settings.register_profile("ackfsm", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("ackfsm")


@pytest.fixture(scope="session", autouse=True)
def no_waste() -> Iterator[None]:
    """Tables are read once; searches are compiled from the first state (``test_explore.py`` compares plain ones)."""
    with pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        patch.setattr("ackfsm.explore._search.USUAL", Pace(plain_states=1))
        yield


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """One for all tests; what they do is small, and a compiler that thinks longer costs more than it saves."""
    from ackfsm import spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1", prepend=" ")
        found = spark.session("local[2]")
    yield found
    found.stop()
