"""Whether two versions of the project give the same answers: what a change of names or walls must not touch.

``python -m model_tests.same_answers BEFORE AFTER`` asks two checkouts, in a process each, by commands that both have:

* ``check``: states, transitions and which anomalies are reachable and promised absent, for every profile,
  acknowledgement mode and way of consumption, without a fault and with each fault once, and with two messages;
* ``claims``: the status of each; ``matrix`` of one profile: its lines; ``verify``: the verdict of each history.

Names of events are not compared, nor are times.  It prints how many answers are equal, and each that is not.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_KEYS = ("complete", "states", "transitions")
_HERE = Path(__file__).parent
_FAULTS = ("broker_crash", "broker_kill", "consumer_crash", "consumer_link_loss", "listener_exception", "rejection")


def questions(*, quick: bool) -> Iterator[list[str]]:
    """The command lines that both versions are asked."""
    from ackfsm.terms import AckMode, Profile

    for profile in Profile:
        for mode in AckMode:
            for consumption in ("receive", "listener"):
                chosen = ["--profile", profile, "--set", f"ack_mode={mode}", "--set", f"consumption={consumption}"]
                yield ["check", *chosen]
                yield from (["check", *chosen, "--fault", fault] for fault in _FAULTS)
                if not quick:
                    yield ["check", *chosen, "--messages", "2"]
    histories = _HERE / "data"
    yield from (["verify", str(path)] for path in sorted(histories.rglob("*.jsonl*")))
    if not quick:
        yield ["claims", "--jobs", "1"]
        yield ["matrix", "--profile", "jms", "--jobs", "1"]


def answered(line: list[str]) -> Any:
    """What may be compared of the answer to a command line."""
    from ackfsm import cli

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main([*line, "--json"])
    return {"code": code, "answer": _comparable(line[0], json.loads(said.getvalue() or "null"))}


def _comparable(command: str, answer: Any) -> Any:
    if answer is None:
        return None
    if command == "check":
        anomalies = {
            name: {
                "reachable": found["reachable"],
                "promised_absent": bool(found["promised_absent"]),
                "steps": found["steps"] and len(found["steps"]),
            }
            for name, found in answer["anomalies"].items()
        }
        return {key: answer[key] for key in _KEYS} | {"anomalies": anomalies}
    if command == "claims":
        return {claim["id"]: claim["status"] for claim in answer}
    if command == "matrix":
        for line in answer["lines"]:
            for found in line["anomalies"].values():
                found["steps"] = len(found["steps"])
        return answer["lines"]
    return {key: answer[key] for key in ("events", "messages", "parse_errors", "verdict", "anomalies")}


def _asked(checkout: Path, *, quick: bool) -> dict[str, Any]:
    """The answers of the version in ``checkout``."""
    command = [sys.executable, str(Path(__file__).resolve()), "--answer", *(["--quick"] if quick else [])]
    found = subprocess.run(
        command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, stdout=subprocess.PIPE, check=True
    )
    answers: dict[str, Any] = json.loads(found.stdout)
    return answers


def main() -> int:
    """Ask both; 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", type=Path, metavar="CHECKOUT", help="before and after")
    parser.add_argument("--quick", action="store_true", help="one message, no claims and no matrix")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.answer:
        answers = {" ".join(line): answered(line) for line in questions(quick=asked.quick)}
        sys.stdout.write(json.dumps(answers))
        return 0
    before, after = (_asked(checkout.resolve(), quick=asked.quick) for checkout in asked.versions)
    different = [line for line in before.keys() | after.keys() if before.get(line) != after.get(line)]
    print(f"{len(before) - len(different)} of {len(before)} answers are equal")  # noqa: T201
    for line in sorted(different):
        print(f"{line}\n  before: {before.get(line)}\n  after:  {after.get(line)}")  # noqa: T201
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
