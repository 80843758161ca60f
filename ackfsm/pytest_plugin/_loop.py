"""The event loop in which an asynchronous application lives, and how it comes to its end.

The tasks of an application wait for the engine, which they turn, and nothing sleeps.  When nothing is left that
could wake a task, the application has nothing to do: its connections are closed, as an operator would stop it, so
that ``async for`` ends; what still waits then is cancelled.  A process that is dead resumes no task: each is told
so where it waits.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from ackfsm.pytest_plugin._crash import Endless, ProcessCrashed
from ackfsm.pytest_plugin._process import Process, give_up
from ackfsm.pytest_plugin._watchdog import Watch
from ackfsm.terms import InputError

__all__ = ["is_asynchronous", "refuse_nesting", "run_tasks"]

_Given = TypeVarTuple("_Given")
_Result = TypeVar("_Result")

_SELF_PIPE = 1
"""What a loop that waits for nothing outside has open: its own pipe."""


def is_asynchronous(application: Callable[..., object]) -> bool:
    """Whether it is known before it is called that it returns a coroutine."""
    return inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(
        getattr(application, "__call__", None)  # noqa: B004 - not whether it can be called, but how
    )


def run_tasks(process: Process, watch: Watch, work: Awaitable[object], is_busy: Callable[[], bool]) -> None:
    """Await ``work`` and, as long as ``is_busy``, what its listeners do; then close the connections of ``process``."""
    life = _Life(process, watch, is_busy)
    with asyncio.Runner(loop_factory=life.loop) as runner:
        runner.run(life.live(work))


class _Life:
    """One life of an asynchronous application."""

    def __init__(self, process: Process, watch: Watch, is_busy: Callable[[], bool]) -> None:
        self._process = process
        self._watch = watch
        self._is_busy = is_busy
        self._cancelled = False
        self._loop: _Loop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """A loop for it."""
        self._loop = _Loop(self._process, self._idle)
        self._process.unwinds = self._cancel
        return self._loop

    async def live(self, work: Awaitable[object]) -> None:
        """All of it."""
        await work
        turns = self._process.turns
        while turns is not None and self._is_busy() and not self._process.stopped:
            number = turns.number
            if not await turns.next():
                await turns.wait_for_change(number)
        self._process.close()

    def _idle(self) -> None:
        """Nothing in the loop could wake a task: let the engine go on, or bring the application to its end."""
        if self._process.turns is not None and self._process.is_alive and self._process.go_on():
            self._process.turns.notify()
        else:
            self._end()

    def _end(self) -> None:
        """Bring it to its end, each time by harder means."""
        process = self._process
        if process.is_alive and not process.stopped:
            process.stop()
        elif not self._cancelled:
            self._cancelled = True
            self._cancel()
        else:
            raise self._watch.end(
                "the application waits for ever: nothing is left that could wake its tasks, its connections are closed "
                "and it has caught asyncio.CancelledError; let it end when it is cancelled"
            )

    def _cancel(self) -> None:
        if self._loop is not None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()


class _Loop(asyncio.SelectorEventLoop):
    """A loop that tells when it would wait for ever."""

    def __init__(self, process: Process, idle: Callable[[], None]) -> None:
        self._process = process
        self._elsewhere = 0
        self._when_idle = idle
        super().__init__(_Selector(self._waits))
        self.set_task_factory(self._task)
        self.set_exception_handler(_report)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Given], _Result], *args: *_Given
    ) -> asyncio.Future[_Result]:
        """As ever; while another thread works, somebody may yet wake a task."""
        future = super().run_in_executor(executor, func, *args)
        self._elsewhere += 1
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: object) -> None:
        self._elsewhere -= 1

    def _waits(self) -> bool:
        """Whether it is not to wait, as something was done instead."""
        if self._elsewhere:
            return False
        self._when_idle()
        return True

    def _task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **how: Any
    ) -> asyncio.Task[Any]:
        return asyncio.Task(_Living(self._process, work), loop=loop, **how)


class _Selector(selectors.DefaultSelector):
    """Asks before it waits for ever."""

    def __init__(self, instead: Callable[[], bool]) -> None:
        super().__init__()
        self._instead = instead

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; a loop gives no time-out if it has nothing to do at any time."""
        if timeout is None and len(self.get_map()) <= _SELF_PIPE and self._instead():
            return []
        return super().select(timeout)


class _Living(Coroutine[Any, Any, Any]):
    """The work of a task: it goes on as long as its process lives."""

    def __init__(self, process: Process, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any]) -> None:
        self._process = process
        self._work = work

    def send(self, value: Any) -> Any:
        """Go on."""
        return self._work.send(value) if self._process.is_alive else self._work.throw(self._end())

    def throw(self, kind: Any, value: Any = None, trace: Any = None) -> Any:
        """Go on with an error."""
        del trace
        if not self._process.is_alive:
            return self._work.throw(self._end())
        return self._work.throw(value if isinstance(value, BaseException) else kind)

    def _end(self) -> Any:
        return self._process.end() or asyncio.CancelledError

    def close(self) -> None:
        """Give up."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        while True:
            try:
                yield self.send(None)
            except StopIteration as end:
                return end.value


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a task leaves behind that nobody asks for, but for the end of its process."""
    if not isinstance(context.get("exception"), ProcessCrashed | Endless):
        loop.default_exception_handler(context)


def refuse_nesting(work: object) -> None:
    """Raise :class:`InputError` in a thread in which an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    give_up(work)
    raise InputError(
        "ackfsm.run() runs an event loop of its own; call it from a test that is no coroutine (def, not async)"
    )
