"""Tasks of one event loop, on an engine where nothing waits for anything real."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["run", "until"]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run ``work``, for half a minute at most."""

    async def limited() -> Any:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(limited())


async def until(done: Callable[[], bool]) -> None:
    """Let the other tasks go on until ``done()``."""
    while not done():  # noqa: ASYNC110 - no event of the face says so, and nothing sleeps
        await asyncio.sleep(0)
