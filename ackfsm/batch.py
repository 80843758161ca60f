"""Other processes of this machine that do part of the work, and what becomes of them when it does not end well.

They are started afresh (``spawn``): a copy of this process (``fork``) would have its locks and none of its threads.  An
interrupt reaches this process alone, which ends them; if it dies itself, so do they.  One that is killed, as the
kernel does where memory runs out, is an error of one sentence.  What they warn of is warned of here.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any, TypeAlias, TypeVar

from ackfsm.terms import HostError

__all__ = ["Workers", "workers"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_Warned: TypeAlias = "tuple[tuple[str, type[Warning]], ...]"


@contextlib.contextmanager
def workers(number: int) -> Iterator[Workers]:
    """Up to ``number`` processes that live as long as the block; they are killed if it ends in an error."""
    strangers = set(multiprocessing.active_children())
    resource_tracker.ensure_running()  # its own start would let interrupts through, see _not_interrupted
    spawn = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(number, mp_context=spawn, initializer=_begin)
    try:
        yield Workers(pool)
    except BaseException:
        if sys.version_info < (3, 11, 5):
            _stop_reading(pool)
        for process in set(multiprocessing.active_children()) - strangers:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _stop_reading(pool: concurrent.futures.ProcessPoolExecutor) -> None:
    """Close the end of the pipe to the processes that a pool keeps open in this one.

    Before Python 3.11.5 a pool does not close it when its processes are dead, and waits for ever for a thread of its
    own that is still writing to them (https://github.com/python/cpython/issues/94777).  Later versions close it
    themselves; if both did at the same moment, one would fail.
    """
    with contextlib.suppress(OSError):  # that thread, if it had nothing left to write, may be closing it too
        pool._call_queue._reader.close()  # type: ignore[attr-defined] # noqa: SLF001 - there is no public way


class Workers:
    """Processes to which work can be given."""

    def __init__(self, pool: concurrent.futures.ProcessPoolExecutor) -> None:
        self._pool = pool

    def map(
        self, function: Callable[[_Argument], _Result], arguments: Sequence[_Argument]
    ) -> Iterator[tuple[int, _Result]]:
        """The results of ``function`` for all ``arguments``, with their places, as they come; all of it is pickled.

        Raises :class:`ackfsm.terms.HostError` if a process is killed, and whatever ``function`` raises.
        """
        with _told_plainly():
            with _not_interrupted():
                places = {self._pool.submit(_done, function, one): place for place, one in enumerate(arguments)}
            for future in concurrent.futures.as_completed(places):
                result, warned = future.result()
                for text, kind in warned:
                    warnings.warn(text, kind, stacklevel=2)
                yield places[future], result


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise HostError(
            "a worker process was killed, probably for want of memory; use fewer with --jobs, or search less"
        ) from None


@contextlib.contextmanager
def _not_interrupted() -> Iterator[None]:
    """Processes that are started here never see an interrupt; this one sees it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Follow the first process: if it dies, this one does."""
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(first: multiprocessing.process.BaseProcess | None) -> None:
    if first is not None:
        first.join()
        os._exit(1)


def _done(function: Callable[[Any], Any], argument: Any) -> tuple[Any, _Warned]:
    """The result, and what was warned of on the way, which only the first process can tell once."""
    with warnings.catch_warnings(record=True) as heard:
        result = function(argument)
    return result, tuple((str(one.message), one.category) for one in heard)
