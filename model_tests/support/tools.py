"""Programs of others that some tests need: without one a test is skipped here, and fails where all have to be there."""

from __future__ import annotations

import os
from typing import Final, NoReturn

import pytest

REQUIRED: Final = "ACKFSM_TESTS_REQUIRE_TOOLS"
"""Set in the environment by ``.ci/run``: a cross-check that did not happen is no pass there."""


def are_required() -> bool:
    """Whether a test fails for want of a tool."""
    return bool(os.environ.get(REQUIRED))


def missing(reason: str) -> NoReturn:
    """Skip the test for ``reason``, which says how to get the tool; fail it where tools are required."""
    if are_required():
        pytest.fail(f"{reason} ({REQUIRED} is set)", pytrace=False)
    pytest.skip(reason)
