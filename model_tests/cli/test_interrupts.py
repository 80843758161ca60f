"""An interrupt ends every command, and every process that it has started, with one word and the code 130."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model_tests.support.commands import (
    AS_PROMISED,
    FAILED,
    INTERRUPTED,
    begun,
    ended,
    environment,
    nobody_is_left,
    workers_of,
)
from model_tests.support.whole import WHOLE, few

MOMENTS = [round(random.Random(seed).uniform(0, 1), 3) for seed in range(8 if WHOLE else 4)]


def _interrupted_after(seconds: float, run: subprocess.Popen[str], times: int = 1) -> tuple[int, str, str]:
    """Interrupt all processes of a command after some time, or see it end before."""
    try:
        out, err = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        for _ in range(times):
            os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=120)
    return run.returncode, out, err


@pytest.mark.parametrize("seconds", MOMENTS)
def test_an_interrupt_at_any_moment_is_one_line_and_its_code(seconds: float) -> None:
    with begun("draw", "delivery") as run:
        code, out, err = _interrupted_after(seconds, run)
        if code == AS_PROMISED:  # it was ready before
            assert (out.startswith("delivery\n\n"), err) == (True, "")
        else:
            assert (code, err) in {(INTERRUPTED, "ackfsm draw: interrupted\n"), (INTERRUPTED, "ackfsm: interrupted\n")}
        assert nobody_is_left(run.pid)


SLOW_IMPORT = """
import importlib.abc, time
class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "rich":
            os.write(1, b"now\\n")
            time.sleep(60)
sys.meta_path.insert(0, Slow())
"""


def test_an_interrupt_while_the_command_is_being_loaded_ends_it_at_once() -> None:
    with begun("check", before=SLOW_IMPORT) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "now\n"
        os.kill(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=30)
        assert (run.returncode, err) == (INTERRUPTED, "ackfsm: interrupted\n")


PRINTED = """
import {package}
run = {package}.{function}
printing = lambda what, done, of: done and print(what, flush=True)  # nobody works yet where nothing is done
{package}.{function} = lambda *given, **named: run(*given, **named | {{"progress_bar": printing}})
"""
TELLING = {
    "claims --jobs 2": PRINTED.format(package="ackfsm.surveys.claims", function="decide"),
    "systems ems --jobs 2": PRINTED.format(package="ackfsm.surveys.matrix", function="mode_sweep"),
    "matrix --messages 2 --jobs 2": PRINTED.format(package="ackfsm.surveys.matrix", function="run"),
}
"""Commands that spread their work, and what makes each print a line as soon as its workers have done some."""


@pytest.mark.parametrize("line", few([*TELLING], 1))
def test_an_interrupt_ends_workers_too(line: str) -> None:
    with begun(*line.split(), before=TELLING[line]) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        assert workers_of(run.pid)
        os.killpg(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=60)
        assert (run.returncode, err) == (INTERRUPTED, f"ackfsm {line.split(maxsplit=1)[0]}: interrupted\n")
        assert nobody_is_left(run.pid)


@pytest.mark.parametrize("times", few([1, 2, 3], 2))
def test_interrupts_while_workers_are_being_started_leave_nobody(times: int) -> None:
    with begun("claims", "--jobs", "2") as run:
        while not workers_of(run.pid):
            assert run.poll() is None
        code, _, err = _interrupted_after(0.05 * times, run, times)
        said, *more = err.splitlines(keepends=True)
        assert code == INTERRUPTED
        if said != "ackfsm claims: interrupted\n":
            assert (times > 1, said) == (True, "ackfsm: interrupted\n")  # the second one ended the command at once
        assert "Traceback" not in err
        assert times > 1 or not more
        assert nobody_is_left(run.pid)


SOON_AFTER_THE_TASKS_WERE_GIVEN = """
import signal, sys
from ackfsm.tables import batch

def interrupt(*_):
    raise KeyboardInterrupt

def and_soon(how, mask, right=signal.pthread_sigmask):
    before = right(how, mask)
    if how == signal.SIG_SETMASK:
        signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    return before

if __name__ == "__main__":
    signal.signal(signal.SIGALRM, interrupt)
    batch.signal.pthread_sigmask = and_soon
    try:
        with batch.process_pool(2) as pool:
            for _ in pool(abs, range(20_000)):
                pass
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("seconds", few(["0.008", "0.012", "0.016", "0.04"], 2))
def test_an_interrupt_while_many_results_are_awaited_leaves_no_lock_taken(seconds: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SOON_AFTER_THE_TASKS_WERE_GIVEN)
    run = subprocess.run(
        [sys.executable, str(program), seconds], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout) == (0, "interrupted\n"), run.stderr


@pytest.mark.parametrize("line", TELLING)
def test_a_worker_that_is_killed_is_one_sentence(line: str) -> None:
    with begun(*line.split(), before=TELLING[line]) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        os.kill(workers_of(run.pid)[0], signal.SIGKILL)
        _, err = run.communicate(timeout=60)
        said = "a worker process was killed, probably for want of memory; use fewer with --jobs, or search less\n"
        assert (run.returncode, err) == (FAILED, f"ackfsm {line.split(maxsplit=1)[0]}: {said}")
        assert nobody_is_left(run.pid)


def test_workers_do_not_outlive_a_process_that_is_killed() -> None:
    line = "claims --jobs 2"
    with begun(*line.split(), before=TELLING[line]) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        run.kill()
        run.wait()
        assert nobody_is_left(run.pid)


BEGIN = """
import signal, sys
from ackfsm import tables
from ackfsm.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


def _alone(program: str, *line: str) -> tuple[int, str]:
    """How the command ends after ``program``, which changes what is below it, in a process of its own."""
    done = ended(*line, program=[sys.executable, "-c", BEGIN + program + "sys.exit(main())"], env=environment())
    return done.code, done.err


LOST = """
class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
load = tables.load
def interrupted(*given):
    Deleted()
    while True:
        pass
tables.load = interrupted
"""


def test_an_interrupt_that_python_would_lose_is_heard() -> None:
    """An exception where an object is deleted is printed with a traceback, and goes no further."""
    assert _alone(LOST, "systems") == (INTERRUPTED, "ackfsm systems: interrupted\n")


TURNED = """
def interrupted(*_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ValueError("a library takes it for something else") from None
tables.load = interrupted
"""


def test_an_interrupt_that_became_another_error_is_an_interrupt() -> None:
    assert _alone(TURNED, "systems") == (INTERRUPTED, "ackfsm systems: interrupted\n")


STUBBORN = """
def stubborn(*_):
    while True:
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            continue
tables.load = stubborn
"""


def test_the_second_interrupt_ends_what_ignores_the_first() -> None:
    assert _alone(STUBBORN, "systems") == (INTERRUPTED, "ackfsm: interrupted\n")


IGNORING = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
load = tables.load
def interrupted(*given):
    signal.raise_signal(signal.SIGINT)
    return load(*given)
tables.load = interrupted
"""


def test_where_interrupts_are_ignored_they_are() -> None:
    """As what a shell runs in the background."""
    assert _alone(IGNORING, "systems") == (AS_PROMISED, "")


AFTERWARDS = """
import atexit
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
atexit.register(signal.raise_signal, signal.SIGINT)
sys.last = Last()
code = main()
if sys.argv[1] == "systems":
    signal.raise_signal(signal.SIGINT)
sys.exit(code)
"""


@pytest.mark.parametrize(("line", "code"), [("systems", AS_PROMISED), ("--help", AS_PROMISED)])
def test_when_all_is_said_an_interrupt_changes_nothing(line: str, code: int) -> None:
    assert _alone(AFTERWARDS, line) == (code, "")


THREAD = """
import threading
def waits(*_):
    def fails():
        raise MemoryError
    threading.Thread(target=fails).start()
    threading.Event().wait()
tables.load = waits
"""


def test_a_thread_that_dies_is_not_waited_for() -> None:
    code, err = _alone(THREAD, "systems")
    assert (code, err.count("\n")) == (FAILED, 1)
    assert err.startswith("ackfsm: there is not enough memory")
