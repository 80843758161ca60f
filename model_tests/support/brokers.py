"""Brokers of others for tests: they run as long as they are needed, and tests without them are skipped."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ackfsm.driving.live import java
from ackfsm.driving.live.brokers import LiveBroker
from model_tests.support.tools import missing

_Broker = TypeVar("_Broker", bound=LiveBroker)


@contextlib.contextmanager
def had() -> Iterator[None]:
    """Skip the test where something of others cannot be had; fail it where that is required."""
    try:
        yield
    except java.UnavailableError as error:
        missing(str(error))


@contextlib.contextmanager
def running(
    kind: type[_Broker],
    settings: Mapping[str, str] | None = None,
    *,
    below: Path | None = None,
    jvm: Sequence[str] = java.OPTIONS,
) -> Iterator[_Broker]:
    """A broker over a fresh folder, which lies in ``below``."""
    with tempfile.TemporaryDirectory(prefix=f"{kind.name}-", dir=below) as folder:
        with had():
            broker = kind(Path(folder), settings or {}, jvm=jvm)
            broker.start()
        try:
            yield broker
        finally:
            broker.kill()
