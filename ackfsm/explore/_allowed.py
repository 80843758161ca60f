"""What a configuration can reach under kinds of faults: the yardstick of recorded histories, kept between runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

import platformdirs

from ackfsm.explore._check import check
from ackfsm.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Configuration, Fault

__all__ = ["allowed"]

_PACKAGE = Path(__file__).parent.parent


def allowed(
    specification: Specification,
    configuration: Configuration,
    faults: Collection[Fault],
    *,
    actions: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> dict[Anomaly, bool | None]:
    """For each anomaly whether ``configuration`` can reach it when these faults and actions happen, however often.

    ``None`` where the tables cannot tell: a setting that they do not cover, or an anomaly of
    which they have no property.  The search is for one message and complete; its result is kept
    in the user's cache folder, under a name made of the tables, the code and the question.
    """
    verdicts: dict[Anomaly, bool | None] = dict.fromkeys(Anomaly)
    if specification.gaps_of(configuration):
        return verdicts
    bounds = Bounds(faults=frozenset(faults), max_faults=None, actions=frozenset(actions))
    kept = _file(specification, configuration, bounds)
    found = _read(kept)
    if found is None:
        answer = check(specification, configuration, bounds, progress=progress)
        found = {anomaly: finding.reachable is True for anomaly, finding in answer.findings.items()}
        _write(kept, found)
    return verdicts | found


def _file(specification: Specification, configuration: Configuration, bounds: Bounds) -> Path:
    asked = [sorted(bounds.faults), sorted(bounds.actions)]
    question = json.dumps([specification.digest, configuration.as_dict(), *asked])
    digest = hashlib.sha256(question.encode() + _code()).hexdigest()
    return Path(platformdirs.user_cache_dir("ackfsm")) / "allowed" / f"{digest}.json"


def _code() -> bytes:
    """The source of what decides the answer, so that a changed explorer does not believe an old one."""
    files = [_PACKAGE / "terms.py", _PACKAGE / "network.py"]
    files += sorted((_PACKAGE / "tables").glob("*.py")) + sorted((_PACKAGE / "explore").glob("*.py"))
    return b"".join(file.read_bytes() for file in files)


def _read(file: Path) -> dict[Anomaly, bool] | None:
    """What is kept; ``None`` if nothing is, or if it is damaged (then it is found again)."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return {Anomaly(name): reachable is True for name, reachable in kept.items()}
    except (OSError, ValueError, AttributeError):
        return None


def _write(file: Path, found: dict[Anomaly, bool]) -> None:
    """Keep ``found``, all of it or nothing; where nothing can be kept it is found again next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as half:
            json.dump({anomaly.value: reachable for anomaly, reachable in found.items()}, half)
        Path(half.name).replace(file)
