"""What all tests share: how Hypothesis runs, and what is not done twice."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from model_tests._tables import read_once

# No deadline: a first call may compile a kernel.  On CI (which sets CI) the examples are the same in every run.
settings.register_profile("ackfsm", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("ackfsm")


@pytest.fixture(scope="session", autouse=True)
def no_waste() -> Iterator[None]:
    """Tables are read once; searches are compiled from the first state (``test_explore.py`` compares plain ones)."""
    with pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        patch.setattr("ackfsm.explore._search._PLAIN_STATES", 1)
        yield
