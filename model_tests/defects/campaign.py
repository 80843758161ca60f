"""Whether the tests notice a defect in the engine, in a journal or in what judges histories: each is put in by hand.

``python -m model_tests.defects`` takes one defect after the other (:mod:`model_tests.defects.engine`,
:mod:`model_tests.defects.journal`, :mod:`model_tests.defects.verify`), copies the project, changes the copy, and runs
the tests of the room that it is in, and then those of the others, on it until one fails.  A defect that keeps the
engine from being imported, or from delivering one message, is too coarse to count.  The command fails if a defect goes
unnoticed without a reason, or is noticed though it has one.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from model_tests.defects.engine import ENGINE
from model_tests.defects.form import Defect
from model_tests.defects.journal import JOURNAL
from model_tests.defects.recording import RECORDING
from model_tests.defects.verify import VERIFY
from model_tests.support.places import PROJECT

__all__ = ["DEFECTS", "PROJECT", "Interrupted", "Result", "TooCoarse", "Trials", "main", "problems"]

DEFECTS: tuple[Defect, ...] = (*ENGINE, *JOURNAL, *VERIFY, *RECORDING)


def file_of(name: str) -> Path:
    """The file of tests, below the project, that a defect calls ``engine/dispatch``."""
    folder, _, file = name.rpartition("/")
    return Path("model_tests", folder, f"test_{file}.py")


_COPIED = ("ackfsm", "spec", "model_tests", "docs", "pyproject.toml")
_OF_ENGINE = """
    engine/execution_table spec/names engine/tables engine/history engine/acknowledgements engine/sends
    engine/several_consumers engine/reopened engine/recovery engine/connections engine/asyncio engine/threads
    engine/closing engine/messages engine/metrics engine/queues engine/asyncio_closing engine/dead_letters
    engine/macro_steps spec/lost_work engine/calls engine/arguments engine/stateful engine/regressions
    engine/delivery_counts engine/dispatch engine/transactions engine/refinement engine/faults_inside engine/kill
    engine/applications engine/sessions engine/completion engine/reattachment engine/consumer_reattachment
    engine/restored_history engine/subscriptions
"""
_OF_JOURNALS = """
    journal/reopened journal/full_disk journal/report journal/checksums journal/frames journal/sql journal/disk
    journal/machine journal/postgres journal/flips journal/forks journal/ends journal/protocol
    journal/interrupts journal/file journal/system_calls journal/crashes
"""
_OF_VERIFY = """
    verify/life verify/judgements verify/conformance verify/counts verify/verdict verify/fold verify/expand
    verify/prefetch verify/actions
    verify/clocks verify/recording verify/read verify/headers verify/sources verify/bad_input verify/rest verify/spelled
    verify/drift verify/after_an_exception verify/closed_consumers verify/last_message verify/optional_lines
    verify/dead_letters verify/subscriptions verify/cases verify/allowed verify/allowed_cache
    verify/labels verify/given_back verify/model_runs verify/timeline verify/unrecorded verify/queues
    verify/monitor verify/performed checker/successors
    verify/tables verify/folded_cases verify/fold_chunks verify/plain_lines verify/legal_histories cli/reports
    importing/cannot_show importing/bad_input importing/round_trip importing/times
"""
_OF_PLUGIN = """
    plugin/text plugin/quiescence plugin/refusals plugin/plugin plugin/endless
    plugin/asyncio
"""
"""The files of tests that run the engine or a journal, or judge histories: the quickest first."""

_ROOMS = MappingProxyType(
    {
        "driving": _OF_PLUGIN,
        "engine": _OF_ENGINE,
        "engine/journal": _OF_JOURNALS,
    }
)
"""The tests that are the nearest to a package; to all others, and to the tables, those that judge histories are."""

_LIMITS = (120, 1200)
"""Seconds that a run of one file has, and one of all: some three times what they take on a busy machine."""
_END = 20
"""Seconds in which tests that are told to stop can stop their servers."""
_FAILED, _NONE = 1, 5
"""Exit codes of pytest: a test failed; there was none."""

_FIRST = """
import pathlib, sys
import ackfsm, ackfsm.engine, ackfsm.engine.aio, ackfsm.engine.journal
assert pathlib.Path(ackfsm.__file__).is_relative_to(sys.argv[1]), ackfsm.__file__
broker = ackfsm.engine.Broker()
session = broker.connect().session("CLIENT_ACKNOWLEDGE")
session.producer("q").send(b"tea")
message = session.consumer("q").receive()
assert message is not None and message.body == b"tea"
message.acknowledge()
assert broker.queue("q").length == 0
broker.close()
"""
"""A program that every copy has to run: the copy itself is imported, and a message is sent, received, acknowledged."""


class TooCoarse(Exception):  # noqa: N818 - it says what the defect is
    """A copy that cannot be used at all, so that noticing the defect shows nothing."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a defect: the first test that failed, ``None`` if none did, and the seconds until then."""

    defect: Defect | None
    noticed: str | None
    seconds: float


def order(defect: Defect | None) -> list[list[str]]:
    """Files of tests, run by run: the one, or the test of it, that should notice the defect, and then all others."""
    rooms = [_OF_ENGINE, _OF_PLUGIN, _OF_JOURNALS, _OF_VERIFY]
    file = defect.file if defect is not None else "engine"
    own = next((_ROOMS[room] for room in map(str, PurePosixPath(file, "_").parents) if room in _ROOMS), _OF_VERIFY)
    rooms.sort(key=lambda room: room is not own)
    files = " ".join(rooms).split()
    if defect is None or not defect.noticed_by:
        return [files]
    return [[defect.noticed_by], [name for name in files if name != defect.noticed_by]]


@contextlib.contextmanager
def copied(defect: Defect | None) -> Iterator[Path]:
    """A copy of the project with the defect in it."""
    with tempfile.TemporaryDirectory(prefix="ackfsm-defect-", ignore_cleanup_errors=True) as folder:
        project = Path(folder, "project")
        for name in _COPIED:
            source = PROJECT / name
            if source.is_dir():
                shutil.copytree(source, project / name)
            else:
                shutil.copy2(source, project / name)
        if defect is not None:
            defect.apply(project)
        yield project


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Somebody wants no more results."""


class Trials:
    """Runs the tests on copies; several threads may."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End what is running."""
        self._stopped.set()

    def trial(self, defect: Defect | None) -> Result:
        """Run the tests on a copy with ``defect``, or on one that is as it is.

        Raises :class:`TooCoarse` if the copy cannot be used, :class:`ValueError` if the defect does not apply,
        :class:`Interrupted` after :meth:`stop`.
        """
        begin = time.monotonic()
        with copied(defect) as project:
            try:
                first = self._run(project, _LIMITS[0], "-c", _FIRST, str(project))
            except subprocess.TimeoutExpired:
                raise TooCoarse("it is of no use at all: the first message is never delivered") from None
            if first.returncode:
                last = (first.stdout.strip().splitlines() or ["no word"])[-1]
                raise TooCoarse(f"it is of no use at all: {last}")
            noticed = None
            for files in order(defect):
                noticed = noticed or self._failing(project, files)
            return Result(defect, noticed, time.monotonic() - begin)

    def _failing(self, project: Path, files: Sequence[str]) -> str | None:
        """The first test of these files that fails on the copy, ``None`` if none does."""
        limit = _LIMITS[len(files) > 1]
        pairs = [name.partition("::") for name in files]
        tests = [f"{file_of(name)}{sep}{test}" for name, sep, test in pairs]
        options = ["-x", "-v", "-rfE", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
        try:
            ended = self._run(project, limit, "-m", "pytest", *options, *tests)
        except subprocess.TimeoutExpired:
            if len(files) == 1:
                return None  # a busy machine, perhaps: what all tests say counts
            raise TooCoarse("the tests do not end, which tells nobody what is wrong") from None
        if not ended.returncode:
            return None
        found = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        if ended.returncode != _FAILED or not found:
            raise TooCoarse(f"the tests cannot be run: {ended.stdout[-500:]}")
        return found[0].split(" ", 1)[1].split(" - ")[0].removeprefix("model_tests/")

    def _run(self, project: Path, limit: float, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, which comes before any installed package; all that it started ends with it."""
        environment = {**os.environ, "PYTHONPATH": str(project), "CI": "1", "PYTHONUNBUFFERED": "1"}
        environment.pop("PYTEST_ADDOPTS", None)
        process = subprocess.Popen(
            (sys.executable, *arguments),
            cwd=project,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = time.monotonic() + limit
        while True:
            try:
                out, _ = process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                if self._stopped.is_set():
                    _ended(process)
                    raise Interrupted from None
                if time.monotonic() > end:
                    raise subprocess.TimeoutExpired(arguments, limit, _ended(process)) from None
            except BaseException:
                _ended(process)
                raise
            else:
                return subprocess.CompletedProcess(arguments, process.returncode, out)


def _ended(process: subprocess.Popen[str]) -> str:
    """Interrupt tests, so that they stop their servers, then kill what is left; what they said."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=_END)[0]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def problems(results: Sequence[Result]) -> list[str]:
    """The defects that nobody noticed, without a reason; and those that have a reason and were noticed."""
    found = []
    for result in results:
        if result.defect is not None and result.noticed is None and not result.defect.unnoticed_because:
            found.append(f"{result.defect.name} is noticed by no test, and no reason is given: {result.defect.wrong}")
        if result.defect is not None and result.noticed is not None and result.defect.unnoticed_because:
            found.append(f"{result.defect.name} is noticed, and needs no reason any more: {result.noticed}")
    return found


def _told(result: Result) -> str:
    name = result.defect.name if result.defect else "(the project as it is)"
    why = f"survives: {result.defect.unnoticed_because or 'NO REASON IS GIVEN'}" if result.defect else "passes"
    return f"{result.seconds:6.1f} s  {name}: {result.noticed or why}\n"


def _chosen(names: Sequence[str]) -> list[Defect]:
    known = {defect.name: defect for defect in DEFECTS}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"there is no defect {unknown[0]!r}; --list names them")
    return [known[name] for name in names] or list(DEFECTS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the defects, and print for each the first test that fails; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.defects", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this defect; may be given again")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument("--list", action="store_true", help="print the defects and what each breaks, and run nothing")
    parser.add_argument("--trust", action="store_true", help="do not run the tests on the project as it is first")
    options = parser.parse_args(arguments)
    chosen, out = _chosen(options.only), sys.stdout.write
    if options.list:
        out("".join(f"{defect.name} ({defect.file}): {defect.wrong}\n" for defect in chosen))
        return 0
    trials = Trials()
    if not options.trust:
        try:
            plain = trials.trial(None)
        except TooCoarse as error:
            out(f"the project itself: {error}\n")
            return 1
        out(_told(plain))
        if plain.noticed is not None:
            out("the project itself fails its tests; mend that first\n")
            return 1
    results: list[Result] = []
    coarse: list[str] = []
    with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        try:
            for defect, future in [(defect, pool.submit(trials.trial, defect)) for defect in chosen]:
                try:
                    results.append(future.result())
                except (TooCoarse, ValueError) as error:
                    coarse.append(f"{defect.name} says nothing: {error}")
                    out(f"{coarse[-1]}\n")
                else:
                    out(_told(results[-1]))
                sys.stdout.flush()
        finally:
            trials.stop()
            pool.shutdown(cancel_futures=True)
    noticed = [result for result in results if result.noticed is not None]
    out(f"{len(results)} defects, {len(noticed)} noticed ({100 * len(noticed) / max(len(results), 1):.1f} %)\n")
    wrong = [*problems(results), *coarse]
    out("".join(f"{line}\n" for line in wrong))
    return int(bool(wrong))
