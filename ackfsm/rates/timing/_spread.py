"""How times are distributed where they are not the same each time."""

from __future__ import annotations

import enum
from typing import Final


class Spread(enum.IntEnum):
    """How a time is distributed around its mean; uniform is from 0 to twice the mean."""

    CONSTANT = 0
    EXPONENTIAL = 1
    UNIFORM = 2


SPREAD_TIMES: Final = ("broker_time", "processing_time", "rtt", "send_time", "sync_time")
"""The times of a workload that may be distributed; each way of a round trip is drawn by itself."""
