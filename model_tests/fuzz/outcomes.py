"""What a command said and how it ended, and what is wrong with that: its exit code has to mean what its JSON means."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ackfsm.cli import main

__all__ = ["Outcome", "complaints", "run"]

VIOLATION, INPUT, UNDETERMINED = 1, 2, 3


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a command said and how it ended."""

    argv: tuple[str, ...]
    code: object
    out: str
    err: str
    escaped: str | None = None


def run(argv: Sequence[str]) -> Outcome:
    """One command, in this process; ``escaped`` is the traceback of what got out of it."""
    escaped: str | None = None
    code: object = None
    raw = io.BytesIO(), io.BytesIO()
    out, err = (
        io.TextIOWrapper(bare, "utf-8", errors, write_through=True) for bare, errors in zip(raw, _ERRORS, strict=True)
    )
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(argv))
        except SystemExit as ended:
            code = ended.code if ended.code is not None else 0
        except Exception:  # noqa: BLE001 - whatever gets out is what is looked for
            escaped = traceback.format_exc()
    said, told = (bare.getvalue().decode("utf-8", "replace") for bare in raw)
    return Outcome(tuple(argv), code, said, told, escaped)


_ERRORS = ("strict", "backslashreplace")
"""What Python's own standard output and standard error do with what they cannot encode."""


def complaints(outcome: Outcome) -> Iterator[str]:
    """What is wrong with an outcome, if anything."""
    if outcome.escaped is not None:
        yield f"a traceback got out:\n{outcome.escaped}"
        return
    if "Traceback" in outcome.err or "Traceback" in outcome.out:
        yield f"a traceback is shown:\n{outcome.err}"
    if outcome.code not in {0, VIOLATION, INPUT, UNDETERMINED}:
        yield f"it ends with {outcome.code!r}: {outcome.err}"
    layout = "\n\t" if "draw" in outcome.argv else "\n"  # DOT is indented by tabs
    strange = {c for c in outcome.out + outcome.err if not c.isprintable() and c not in layout}
    if strange:
        yield f"it shows {sorted(strange)!r}"
    if outcome.code == INPUT:
        lines = [line for line in outcome.err.strip().splitlines() if ": note: " not in line]
        several = outcome.argv[:1] in {(), ("--json",), ("verify",)}  # without a command there is the overview
        if not lines or ((len(lines) > 1 or outcome.out) and not several):  # one line for each bad history
            yield f"bad input is told in {len(lines)} lines, with {len(outcome.out)} characters of output"
    else:
        yield from _disagreement(outcome)


def _disagreement(outcome: Outcome) -> Iterator[str]:
    """Where the exit code is not what the JSON of the same command means."""
    if not outcome.argv or not {"--help", "-h", "--version", "--"}.isdisjoint(outcome.argv):
        return  # nothing is answered, or no option can be added
    said = outcome if "--json" in outcome.argv else run([*outcome.argv, "--json"])
    if said.code != outcome.code:
        yield f"with --json it ends with {said.code!r}, not {outcome.code!r}: {said.err}"
        return
    try:
        answer = json.loads(said.out)
    except ValueError as error:
        yield f"its JSON cannot be read ({error}): {said.out[:200]!r}"
        return
    meant = _MEANING.get(outcome.argv[0], lambda _: 0)(answer)
    stalls = "progress" in answer and not all(found["holds"] for found in answer["progress"].values())
    if meant != outcome.code and not (stalls and outcome.code == VIOLATION):
        yield f"it ends with {outcome.code!r}, and its JSON means {meant}"


def _of_explain(answer: Any) -> int:
    """Of a query, as of ``check``; of a history, its verdict."""
    return _of_verify(answer) if "verdict" in answer else _of_check(answer)


def _of_check(answer: Any) -> int:
    if any(finding["reachable"] and finding["promised_absent"] for finding in answer["anomalies"].values()):
        return VIOLATION
    return 0 if answer["complete"] else UNDETERMINED


def _of_verify(answer: Any) -> int:
    found = [answer] if isinstance(answer, dict) else answer
    if any(one.get("verdict") == "invalid" or _forbidden(one, found=True) for one in found):
        return VIOLATION
    if any("verdict" not in one for one in found):
        return INPUT
    return UNDETERMINED if any(one["verdict"] == "unknown" or _forbidden(one, found=None) for one in found) else 0


def _forbidden(answer: Any, *, found: bool | None) -> bool:
    return any(one["found"] is found for one in answer.get("never", {}).values())


def _of_claims(answer: Any) -> int:
    found = {claim["status"] for claim in answer}
    return VIOLATION if "refuted" in found else UNDETERMINED if "unknown" in found else 0


def _of_matrix(answer: Any) -> int:
    return VIOLATION if answer["broken"] else 0 if answer["complete"] else UNDETERMINED


def _of_systems(answer: Any) -> int:
    checked = answer.get("checked", []) if isinstance(answer, dict) else []
    broken = (
        set(cause["anomalies"]) & set(mode["promised_absent"]) for mode in checked for cause in mode["causes"].values()
    )
    proved = (set((mode["any_number"] or {}).get("possible", ())) & set(mode["promised_absent"]) for mode in checked)
    return VIOLATION if any(broken) or any(proved) else 0


def _of_import(answer: Any) -> int:
    return UNDETERMINED if answer.get("not_found") or answer.get("unread") else 0


def _of_journal(answer: Any) -> int:
    return {"whole": 0, "damaged": VIOLATION}.get(answer["verdict"], UNDETERMINED)


def _of_certificate(answer: Any) -> int:
    return VIOLATION if answer["refuted"] else 0 if answer["verified"] else UNDETERMINED


def _of_advise(answer: Any) -> int:
    """Of a front, which is an answer; of an advice, whether there is a proposal."""
    if "points" in answer or answer["proposals"]:
        return 0
    return UNDETERMINED if answer["undecided"] else VIOLATION


_MEANING: Mapping[str, Callable[[Any], int]] = {
    "check": _of_check,
    "explain": _of_explain,
    "verify": _of_verify,
    "import": _of_import,
    "claims": _of_claims,
    "matrix": _of_matrix,
    "plan": lambda _: 0,
    "advise": _of_advise,
    "systems": _of_systems,
    "journal": _of_journal,
    "certificate": _of_certificate,
}
