"""The event loop of an asynchronous application under test, and its termination.

The tasks of an application wait for the engine, which they drive themselves; nothing sleeps.  When no task can be
woken any more, the application has nothing to do: its connections are closed, as an operator would stop it, so
that ``async for`` ends; tasks that still wait then are cancelled.  The tasks of a dead process are not resumed: an
exception is raised in each where it waits.
"""

from __future__ import annotations

import asyncio
import inspect
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from ackfsm.driving.pytest_plugin._crash import Endless, ProcessCrashed
from ackfsm.driving.pytest_plugin._process import Process, close_coroutine
from ackfsm.driving.pytest_plugin._watchdog import Watchdog
from ackfsm.terms import InputError

_Given = TypeVarTuple("_Given")
_Result = TypeVar("_Result")

_SELF_PIPE = 1
"""How many files a loop has open that waits for nothing outside: its own pipe."""


def is_asynchronous(application: Callable[..., object]) -> bool:
    """Whether ``application`` is declared to return a coroutine."""
    return inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(
        getattr(application, "__call__", None)  # noqa: B004 - not whether it can be called, but how
    )


def run_tasks(process: Process, watchdog: Watchdog, work: Awaitable[object], is_busy: Callable[[], bool]) -> None:
    """Await ``work`` and, as long as ``is_busy``, what its listeners do; then close the connections of ``process``."""
    task_run = _TaskRun(process, watchdog, is_busy)
    with asyncio.Runner(loop_factory=task_run.loop) as runner:
        runner.run(task_run.live(work))


class _TaskRun:
    """One run of an asynchronous application, until its process ends."""

    def __init__(self, process: Process, watchdog: Watchdog, is_busy: Callable[[], bool]) -> None:
        self._process = process
        self._watchdog = watchdog
        self._is_busy = is_busy
        self._cancelled = False
        self._loop: _Loop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """Make its event loop."""
        self._loop = _Loop(self._process, self._idle)
        self._process.on_death = self._cancel
        return self._loop

    async def live(self, work: Awaitable[object]) -> None:
        """Await ``work`` and what its listeners do, then close the connections."""
        await work
        driver = self._process.driver
        while driver is not None and self._is_busy() and not self._process.stopped:
            number = driver.number
            if not await driver.next():
                await driver.wait_for_change(number)
        self._process.close()

    def _idle(self) -> None:
        """Nothing in the loop can wake a task: let the engine perform a step, or end the application."""
        if self._process.driver is not None and self._process.is_alive and self._process.step():
            self._process.driver.notify()
        else:
            self._end()

    def _end(self) -> None:
        """End it: first close its connections, then cancel its tasks, then fail."""
        process = self._process
        if process.is_alive and not process.stopped:
            process.stop()
        elif not self._cancelled:
            self._cancelled = True
            self._cancel()
        else:
            raise self._watchdog.end(
                "the application waits for ever: nothing is left that could wake its tasks, its connections are closed "
                "and it has caught asyncio.CancelledError; let it end when it is cancelled"
            )

    def _cancel(self) -> None:
        if self._loop is not None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()


class _Loop(asyncio.SelectorEventLoop):
    """A loop that calls back when it would wait for ever."""

    def __init__(self, process: Process, idle: Callable[[], None]) -> None:
        self._process = process
        self._in_threads = 0
        self._when_idle = idle
        super().__init__(_Selector(self._waits))
        self.set_task_factory(self._task)
        self.set_exception_handler(_report)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Given], _Result], *args: *_Given
    ) -> asyncio.Future[_Result]:
        """As in the base class; while another thread works, it may still wake a task."""
        future = super().run_in_executor(executor, func, *args)
        self._in_threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self._in_threads -= 1

    def _waits(self) -> bool:
        """Do something instead of waiting; ``False`` if the loop has to wait for another thread."""
        if self._in_threads:
            return False
        self._when_idle()
        return True

    def _task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **how: Any
    ) -> asyncio.Task[Any]:
        return asyncio.Task(_ProcessTask(self._process, work), loop=loop, **how)


class _Selector(selectors.DefaultSelector):
    """A selector that calls back before it waits for ever."""

    def __init__(self, instead: Callable[[], bool]) -> None:
        super().__init__()
        self._instead = instead

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the ready files; a loop passes no time-out if nothing is scheduled."""
        if timeout is None and len(self.get_map()) <= _SELF_PIPE and self._instead():
            return []
        return super().select(timeout)


class _ProcessTask(Coroutine[Any, Any, Any]):
    """The coroutine of a task, which is resumed as long as its process lives."""

    def __init__(self, process: Process, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any]) -> None:
        self._process = process
        self._work = work

    def send(self, value: Any) -> Any:
        """Resume it."""
        return self._work.send(value) if self._process.is_alive else self._work.throw(self._end())

    def throw(self, kind: Any, value: Any = None, trace: Any = None) -> Any:
        """Resume it with an error."""
        del trace
        if not self._process.is_alive:
            return self._work.throw(self._end())
        return self._work.throw(value if isinstance(value, BaseException) else kind)

    def _end(self) -> Any:
        return self._process.end() or asyncio.CancelledError

    def close(self) -> None:
        """Close it."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        while True:
            try:
                yield self.send(None)
            except StopIteration as end:
                return end.value


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report the exceptions of tasks that are not awaited, except the ones that end the process."""
    if not isinstance(context.get("exception"), ProcessCrashed | Endless):
        loop.default_exception_handler(context)


def refuse_nesting(work: object) -> None:
    """Raise :class:`InputError` in a thread in which an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    close_coroutine(work)
    raise InputError(
        "ackfsm.run() runs an event loop of its own; call it from a test that is no coroutine (def, not async)"
    )
