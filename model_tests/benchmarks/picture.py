"""What the picture of a history costs: beside verifying it, in bytes, and until a browser shows it.

Run ``python -m model_tests.benchmarks.picture`` (``--help`` tells more).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ackfsm import tables, verify
from ackfsm.showing.views.history import picture_of
from ackfsm.showing.views.picture import Commands, picture_page
from model_tests.support.browser import browser, opened
from model_tests.support.verify.large_history import CONFIG, Planted, write_parquet

__all__ = ["main"]


def main(line: Sequence[str] | None = None) -> int:
    """Measure; prints a line of a table."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.benchmarks.picture", description=__doc__)
    parser.add_argument("--messages", type=int, default=250_000, help="each has four lines (default: %(default)s)")
    parser.add_argument("--each", type=int, default=300, help="messages of each anomaly (default: %(default)s)")
    parser.add_argument("--times", type=int, default=5, help="how often it is opened (default: %(default)s)")
    asked = parser.parse_args(line)
    specification = tables.load()
    with tempfile.TemporaryDirectory() as folder:
        history, file = Path(folder) / "history.parquet", Path(folder) / "picture.html"
        events = write_parquet(history, asked.messages, Planted.of(asked.messages, asked.each, 1))
        jms = specification.configure(None, CONFIG)
        begun = time.process_time()
        found = verify.examination(history, specification, lambda _: jms, skew=None, binned=True)
        result = verify.verdict(found.findings, specification)
        verified = time.process_time()
        picture = picture_of(found, result)
        drawn = time.process_time()
        file.write_text(picture_page(result, picture, specification, Commands((), (), ())))
        written = time.process_time()
        told = [
            f"{events:,} events: verify {verified - begun:.1f} s",
            f"picture {drawn - verified:.1f} s",
            f"page of {len(picture.stories):,} lives {written - drawn:.1f} s, {file.stat().st_size:,} bytes",
            f"shown after {statistics.median(_shown(file, asked.times)):.2f} s",
        ]
        sys.stdout.write(f"{', '.join(told)}\n")
    return 0


def _shown(file: Path, times: int) -> list[float]:
    """Seconds from asking for the page to its first mark."""
    found = []
    with browser() as started:
        for _ in range(times):
            begun = time.monotonic()
            with opened(started, file) as its:
                its.page.wait_for_selector(".mark")
                found.append(time.monotonic() - begun)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
