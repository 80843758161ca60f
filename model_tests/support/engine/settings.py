"""Random settings that the profiles have, and paces, for the suites of the engine."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from enum import StrEnum

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ackfsm.terms import Configuration, InputError, Profile
from model_tests.support.tables import shipped, values

_KEYS = [field.name for field in dataclasses.fields(Configuration) if field.name != "profile"]

_FIRST = [
    "max_delivery_attempts",
    "ack_mode",
    "delivery_mode",
    "send_mode",
    "consumption",
    "destination",
    "prefetch",
    "publish_window",
]
"""What decides most is chosen first, so that nothing else rules a value of it out; and counters, to be small ones."""


def effort(examples: int, steps: int) -> settings:
    """So many examples of so many steps by default; ``ACKFSM_EXAMPLES`` multiplies them."""
    many = max(1, round(examples * float(os.environ.get("ACKFSM_EXAMPLES", "1"))))
    return settings(
        max_examples=many, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
    )


@st.composite
def profiles_and_settings(draw: st.DrawFn, most: int = 6) -> tuple[str, dict[str, object]]:
    """A system, and up to ``most`` settings besides the modes that it has."""
    profile = draw(st.sampled_from(Profile)).value
    others = st.lists(st.sampled_from([key for key in _KEYS if key not in _FIRST]), max_size=most, unique=True)
    chosen: dict[str, object] = {}
    for key in (*_FIRST, *draw(others)):
        had = _had(profile, key, tuple(chosen.items()))
        if had:
            chosen[key] = draw(st.sampled_from(had))
    return profile, {key: value.value if isinstance(value, StrEnum) else value for key, value in chosen.items()}


@functools.lru_cache(maxsize=4096)
def _had(profile: str, key: str, chosen: tuple[tuple[str, object], ...]) -> tuple[StrEnum | bool | int | None, ...]:
    """The values of ``key`` that the system has together with what is ``chosen``."""
    return tuple(value for value in values(key) if _is_had(profile, {**dict(chosen), key: value}))


def _is_had(profile: str, chosen: Mapping[str, object]) -> bool:
    try:
        shipped().configure(profile, chosen)
    except InputError:
        return False
    return True


PACES = ("AtOnce()", "Timed(seed={seed})", "Timed(seed={seed}, loss=0.1)", "Shuffled({seed})")
"""As the source of a test has them."""


def paces() -> st.SearchStrategy[str]:
    """A pace, as the source of a test has it."""
    return st.builds(lambda pace, seed: pace.format(seed=seed), st.sampled_from(PACES), st.integers(0, 1000))
