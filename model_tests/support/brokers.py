"""Brokers of others for tests: they run as long as they are needed, and tests without them are skipped."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ackfsm.driving.live import campaign, java
from ackfsm.driving.live.brokers import LiveBroker
from model_tests.support.tools import missing

if TYPE_CHECKING:
    import pytest

_Broker = TypeVar("_Broker", bound=LiveBroker)
Lent: TypeAlias = Callable[[type[_Broker]], _Broker]
"""Lends the broker of a kind, which runs as long as the tests; whoever ends it starts it again."""
_CAMPAIGNS: Final = itertools.count(1)


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


@contextlib.contextmanager
def lending() -> Iterator[Lent[Any]]:
    """Brokers without settings, each started when it is first asked for; tests have queues of their own in it."""
    started: dict[type[LiveBroker], LiveBroker] = {}
    with contextlib.ExitStack() as stack:

        def lent(kind: type[LiveBroker]) -> LiveBroker:
            if kind not in started:
                started[kind] = stack.enter_context(running(kind))
            return started[kind]

        yield lent


def driven_by(patch: pytest.MonkeyPatch, broker: LiveBroker) -> None:
    """Have ``ackfsm live`` drive this broker, by queues of its own, in the place of one that it starts."""
    patch.setattr(campaign, "_running", lambda *_: contextlib.nullcontext(broker))
    patch.setattr(broker, "own", f"{{}}-{next(_CAMPAIGNS)}".format)
