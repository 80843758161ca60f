"""Run the benchmarks, or those named: ``python -m model_tests.benchmarks [engine] [explore] [importing] ...``."""

from __future__ import annotations

import runpy
import sys

ALL = ("engine", "explore", "importing", "journal", "messages", "otlp", "simulation", "verify")
_MORE = {"verify": ("--lines", "--spark")}
"""What is measured beside what each measures by itself."""


def run() -> int:
    """Each of the named benchmarks, as if it were run by itself."""
    chosen = sys.argv[1:] or list(ALL)
    if strange := sorted(set(chosen) - set(ALL)):
        sys.stderr.write(f"there is no benchmark {strange[0]!r}; there are {', '.join(ALL)}\n")
        return 2
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr] # each figure when it is measured
    for name in chosen:
        sys.stdout.write(f"\n== {name}\n")
        sys.argv = [name, *_MORE.get(name, ())]
        runpy.run_module(f"model_tests.benchmarks.{name}", run_name="__main__")
    return 0


sys.exit(run())
