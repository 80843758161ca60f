"""What all tests share: how Hypothesis runs, and that searches are compiled."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: a first call may compile a kernel.  On CI (which sets CI) the examples are the same in every run.
settings.register_profile("ackfsm", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("ackfsm")


@pytest.fixture(scope="session", autouse=True)
def compiled_searches() -> Iterator[None]:
    """Every search is compiled from the first state, as in whoever searches often; ``test_explore.py`` compares."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ackfsm.explore._search._PLAIN_STATES", 1)
        yield
