"""Command lines, files and calls that nobody would write, by the thousand: what must never come of them.

``python -m model_tests.fuzz --minutes 60`` draws command lines of every command, over histories and journals that are
whole, damaged or odd, and calls of the public functions.  What a command says to the shell has to be what it says to a
machine: exit code 1 only where its JSON shows a violation, 0 only where it shows none and nothing open, 2 with one
sentence and nothing else; no other code, no traceback, nothing unprintable.  A call gives an answer or raises an error
of ackfsm's own.  ``test_fuzz.py`` does the same for some seconds.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings

from model_tests.fuzz.calls import calls, perform
from model_tests.fuzz.commands import KINDS, command_lines
from model_tests.fuzz.files import Laboratory
from model_tests.fuzz.outcomes import complaints, run
from model_tests.support.tables import read_once


def _session(minutes: float, seed: int, kinds: Sequence[str]) -> int:
    """Draw until the time is over; how many things are wrong."""
    wrong: dict[str, str] = {}
    codes = collections.Counter[str]()
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        while time.monotonic() < end:
            seed += 1
            _round(Laboratory(Path(tempfile.mkdtemp(dir=folder))), seed, end, codes, wrong, kinds)
    for line, count in sorted(codes.items()):
        sys.stdout.write(f"{count:8,}  {line}\n")
    for what in wrong.values():
        sys.stdout.write(f"\nWRONG: {what}\n")
    return len(wrong)


def _round(  # noqa: PLR0913, PLR0917 - what a session has
    laboratory: Laboratory,
    seed: int,
    end: float,
    codes: collections.Counter[str],
    wrong: dict[str, str],
    kinds: Sequence[str],
) -> None:
    common = settings(
        max_examples=150,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @hypothesis.seed(seed)
    @common
    @given(command_lines(laboratory, kinds))
    def commands(argv: list[str]) -> None:
        if time.monotonic() > end:
            return
        outcome = run(argv)
        codes[f"{(argv or ['nothing'])[0][:12]!r} ended with {outcome.code}"] += 1
        for what in complaints(outcome):
            wrong.setdefault(what.splitlines()[-1][:80], f"{argv}\n{what}")

    @hypothesis.seed(seed)
    @common
    @given(calls(laboratory))
    def functions(call: tuple[str, tuple[object, ...], Mapping[str, object]]) -> None:
        if time.monotonic() > end:
            return
        called = perform(call)
        codes[f"{called.name}()"] += 1
        if called.escaped is not None:
            wrong.setdefault(called.escaped.splitlines()[-1][:80], f"{call}\n{called.escaped}")

    commands()
    if kinds == KINDS:
        functions()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=sorted({*KINDS}), help="only this; may be repeated")
    arguments = parser.parse_args()
    return min(1, _session(arguments.minutes, 1000 * arguments.seed, arguments.kind or KINDS))
