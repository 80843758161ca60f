"""Run tasks on the tables: in this process, in a pool of processes, or on other machines.

Processes are started afresh (``spawn``): a copy of this process (``fork``) would have its locks and none of its
threads.  An interrupt reaches this process alone, which ends them; if it dies itself, so do they.  One that is killed,
as the kernel does where memory runs out, is an error of one sentence.  Their warnings are repeated here.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from ackfsm import tables
from ackfsm.tables import Specification
from ackfsm.terms import HostError, SpecError

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_Warnings: TypeAlias = "tuple[tuple[str, type[Warning]], ...]"
_Future: TypeAlias = "concurrent.futures.Future[tuple[Any, _Warnings]]"


class ParallelMap(Protocol):
    """Calls a function for many arguments, in other processes that have this package."""

    def __call__(self, function: Callable[[Any], Any], arguments: Sequence[Any], /) -> Iterator[tuple[int, Any]]:
        """The results as they come, each with the index of its argument; all of it is pickled."""


class ProgressBar(Protocol):
    """Called whenever part of the work is done."""

    def __call__(self, what: str, done: int, of: int, /) -> None:
        """``what`` goes on, and ``done`` of its ``of`` parts are finished."""


@contextlib.contextmanager
def batch(
    specification: Specification,
    jobs: int = 1,
    *,
    directory: Path | None = None,
    parallel_map: ParallelMap | None = None,
    progress_bar: ProgressBar | None = None,
) -> Iterator[Batch]:
    """What runs tasks on ``specification``: ``parallel_map``, else ``jobs`` processes (1: this one).

    Other processes read the tables from ``directory`` (those that ship with the package if ``None``), once each.
    """
    with contextlib.ExitStack() as stack:
        if parallel_map is None and jobs > 1:
            parallel_map = stack.enter_context(process_pool(jobs))
        yield Batch(specification, directory, parallel_map, progress_bar)


class Batch:
    """Runs tasks on the tables, see :func:`batch`."""

    def __init__(
        self,
        specification: Specification,
        directory: Path | None,
        parallel_map: ParallelMap | None,
        progress_bar: ProgressBar | None,
    ) -> None:
        self._specification = specification
        self._directory = directory
        self._parallel_map = parallel_map
        self._progress_bar = progress_bar

    def run(
        self,
        what: str,
        task: Callable[[Specification, Sequence[_Argument]], Sequence[_Result]],
        groups: Sequence[Sequence[_Argument]],
    ) -> list[_Result]:
        """The results of all ``groups``, in their order; ``task`` has a result for each argument of a group.

        ``what`` names the progress bar, which is there from the beginning and moves after each group.  Raises what
        ``task`` raises, :class:`ackfsm.terms.HostError` if a process is killed, and :class:`ackfsm.terms.SpecError` if
        other processes find other tables.
        """
        results: dict[int, Sequence[_Result]] = {}
        total = sum(map(len, groups))
        if self._progress_bar is not None and total:
            self._progress_bar(what, 0, total)
        for index, found in self.as_they_come(task, groups):
            results[index] = found
            if self._progress_bar is not None:
                self._progress_bar(what, sum(map(len, results.values())), total)
        return [result for index in range(len(groups)) for result in results[index]]

    def as_they_come(
        self,
        task: Callable[[Specification, Sequence[_Argument]], Sequence[_Result]],
        groups: Sequence[Sequence[_Argument]],
    ) -> Iterator[tuple[int, Sequence[_Result]]]:
        """The results of each group when it is done, with its index; see :meth:`run`."""
        if self._parallel_map is None:
            return enumerate(map(functools.partial(task, self._specification), groups))
        run = functools.partial(_run_in_worker, loader(self._specification, self._directory), task)
        return self._parallel_map(run, groups)


def chunks(items: Sequence[_Argument], size: int) -> list[Sequence[_Argument]]:
    """``items`` in groups of ``size``, the last perhaps smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def loader(specification: Specification, directory: Path | None = None) -> Callable[[], Specification]:
    """What reads the same tables in another process, once in each; it can be pickled, which they cannot.

    ``directory`` is where they are from, that of the package if ``None``.  It raises
    :class:`ackfsm.terms.SpecError` if the other process finds other tables.
    """
    own = tuple(specification.profile_files.values())
    return functools.partial(_loaded, directory, own, specification.digest)


def _run_in_worker(load: Callable[[], Specification], task: Callable[..., Any], group: Any) -> Any:
    return task(load(), group)


@functools.lru_cache(maxsize=1)
def _loaded(directory: Path | None, own: tuple[Path, ...], digest: str) -> Specification:
    """The tables, read once in each process."""
    specification = tables.load(directory, own)
    if specification.digest != digest:
        raise SpecError("the tables were changed while they were being explored; start again")
    return specification


@contextlib.contextmanager
def process_pool(number: int) -> Iterator[ProcessPool]:
    """Up to ``number`` processes that live as long as the block; they are killed if it ends in an error."""
    before = set(multiprocessing.active_children())
    resource_tracker.ensure_running()  # its own start would let interrupts through, see _interrupts_blocked
    spawn = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(number, mp_context=spawn, initializer=_exit_with_parent)
    try:
        yield ProcessPool(pool)
    except BaseException:
        if sys.version_info < (3, 11, 5):
            _close_call_queue(pool)
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _close_call_queue(pool: concurrent.futures.ProcessPoolExecutor) -> None:
    """Close the end of the pipe to the processes that a pool keeps open in this one.

    Before Python 3.11.5 a pool does not close it when its processes are dead, and waits for ever for a thread of its
    own that is still writing to them (https://github.com/python/cpython/issues/94777).  Later versions close it
    themselves; if both did at the same moment, one would fail.
    """
    with contextlib.suppress(OSError):  # that thread, if it had nothing left to write, may be closing it too
        pool._call_queue._reader.close()  # type: ignore[attr-defined] # noqa: SLF001 - there is no public way


class ProcessPool:
    """A :class:`ParallelMap` in processes of this machine."""

    def __init__(self, pool: concurrent.futures.ProcessPoolExecutor) -> None:
        self._pool = pool

    def __call__(
        self, function: Callable[[_Argument], _Result], arguments: Sequence[_Argument], /
    ) -> Iterator[tuple[int, _Result]]:
        """As :class:`ParallelMap` says.

        Raises :class:`ackfsm.terms.HostError` if a process is killed, and whatever ``function`` raises.
        """
        with _killed_worker_as_host_error():
            # Not ``as_completed``: an interrupt while it takes the locks of all futures leaves them taken.
            done: queue.SimpleQueue[_Future] = queue.SimpleQueue()
            with _interrupts_blocked():
                indices: dict[_Future, int] = {}
                for index, argument in enumerate(arguments):
                    future = self._pool.submit(_call, function, argument)
                    indices[future] = index
                    future.add_done_callback(done.put)
            for _ in arguments:
                future = done.get()
                yield indices[future], _result_of(future)

    def in_order(
        self, function: Callable[[_Argument], _Result], arguments: Iterable[_Argument], ahead: int
    ) -> Iterator[_Result]:
        """Yield the results in the order of the arguments; so many of them are taken ``ahead`` of a result.

        Raises as :meth:`__call__`, and what ``arguments`` raises.
        """
        running: collections.deque[_Future] = collections.deque()
        with _killed_worker_as_host_error():
            for argument in arguments:
                with _interrupts_blocked():
                    running.append(self._pool.submit(_call, function, argument))
                if len(running) > ahead:
                    yield _result_of(running.popleft())
            while running:
                yield _result_of(running.popleft())


def _result_of(future: _Future) -> Any:
    result, warned = future.result()
    for text, kind in warned:
        warnings.warn(text, kind, stacklevel=2)
    return result


@contextlib.contextmanager
def _killed_worker_as_host_error() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise HostError(
            "a worker process was killed, probably for want of memory; use fewer with --jobs, or search less"
        ) from None


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that are started here never see an interrupt; this one sees it afterwards.

    A thread that blocks no signals, as libraries have them, may be given the interrupt: Python then calls the handler
    in the first thread, whatever that blocks.
    """
    waiting: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.getsignal(signal.SIGINT)
    held = callable(handler) and threading.current_thread() is threading.main_thread()
    if held:
        signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        if held:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def _exit_with_parent() -> None:
    """Have this process end when the one that started it does."""
    threading.Thread(target=_exit_after, args=(multiprocessing.parent_process(),), daemon=True).start()


def _exit_after(parent: multiprocessing.process.BaseProcess | None) -> None:
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(function: Callable[[Any], Any], argument: Any) -> tuple[Any, _Warnings]:
    """The result and the warnings, which only the first process can show once each."""
    with warnings.catch_warnings(record=True) as caught:
        result = function(argument)
    return result, tuple((str(one.message), one.category) for one in caught)
