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
import contextlib
import dataclasses
import functools
import gzip
import io
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import draw, engine, explore, export, history, journal, matrix, network, tables, timing
from ackfsm.cli import main
from ackfsm.terms import AckfsmError, Anomaly, Configuration, Fault, Profile, key_type, parse_value
from model_tests._tables import read_once
from model_tests.soups import histories

__all__ = ["Called", "Laboratory", "Outcome", "calls", "command_lines", "complaints", "perform", "run"]

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


# What must hold of every outcome


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
        lines, several = outcome.err.strip().splitlines(), outcome.argv[:1] == ("verify",)
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
    return VIOLATION if any(broken) else 0


def _of_journal(answer: Any) -> int:
    return {"whole": 0, "damaged": VIOLATION}.get(answer["verdict"], UNDETERMINED)


_MEANING: Mapping[str, Callable[[Any], int]] = {
    "check": _of_check,
    "explain": _of_check,
    "verify": _of_verify,
    "claims": _of_claims,
    "matrix": _of_matrix,
    "systems": _of_systems,
    "journal": _of_journal,
}

# Words of command lines

JUNK = (
    *(
        "",
        " ",
        "-",
        "--",
        "x",
        "0",
        "-1",
        "1.5",
        "any",
        "none",
        "²",
        "٣",
        "9" * 30,
        "1e9",
        "true",
        "NaN",
        "a=b",
        "=",
        "==",
        "a=",
        "=b",
    ),
    *(
        "\n",
        "\x1b[2J",
        "\x00"[:0] + "\u202e",
        "\udcff",
        "*",
        "../..",
        "/",
        ".",
        "x" * 300,
        "é",
        "💥",
        "{}",
        "[bold]x[/bold]",
        "'",
        '"',
    ),
)
"""What is no word of the vocabulary, or one at the wrong place."""

_KEYS = tuple(field.name for field in dataclasses.fields(Configuration))
_FLAGS = ("true", "false")
_NUMBERS = ("0", "1", "2", "3", "10")


def _values(key: str) -> tuple[str, ...]:
    kind = key_type(key)
    if kind is bool:
        return _FLAGS
    return _NUMBERS if kind is int else tuple(kind)  # type: ignore[arg-type]


def _mostly(right: Sequence[str]) -> st.SearchStrategy[str]:
    """A right word, now and then a wrong one."""
    return st.integers(0, 29).flatmap(
        lambda n: st.sampled_from(right) if n else st.one_of(st.sampled_from(JUNK), _argument())
    )


def _argument() -> st.SearchStrategy[str]:
    """Any text that the system lets through as an argument."""
    return st.text(st.characters(exclude_characters="\0"), max_size=12)


def _setting() -> st.SearchStrategy[str]:
    right = st.sampled_from(_KEYS).flatmap(lambda key: _mostly(_values(key)).map(lambda value: f"{key}={value}"))
    return st.integers(0, 29).flatmap(lambda n: right if n else st.sampled_from(JUNK))


def _options(most: int, **each: st.SearchStrategy[str] | None) -> st.SearchStrategy[list[str]]:
    """Some of these options, each with a value unless it takes none; a name may come twice."""
    pieces = [
        st.just([_flag(name)]) if value is None else value.map(functools.partial(_option, name))
        for name, value in each.items()
    ]
    return st.lists(st.one_of(pieces), max_size=most).map(lambda found: [word for piece in found for word in piece])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(name: str, value: str) -> list[str]:
    return [_flag(name), value]


_PROFILES = _mostly(tuple(Profile))
_FAULTS = _mostly(tuple(Fault))
_CONFIGURED: dict[str, st.SearchStrategy[str] | None] = {"profile": _PROFILES, "set": _setting()}
_BOUNDED = _CONFIGURED | {
    "fault": _FAULTS,
    "max_faults": _mostly(("0", "1", "2", "any")),
    "messages": _mostly(("1", "1", "2")),
    "action": _mostly(("recover", "rollback", "taken_elsewhere")),
    "without": _mostly(("acknowledge", "timer_fires", "accept", "send")),
}
_SEARCHED = _BOUNDED | {
    "reduce": _mostly(("none", "partial-order")),
    "workers": _mostly(("1", "2")),
    "progress": None,
    "forever": _mostly(("listener_exception", "broker_crash", "recover")),
    "as": _mostly(("steps", "mermaid", "plantuml", "svg", "pytest", "itf")),
    "anomaly": _mostly(tuple(Anomaly)),
    "max_memory": _mostly(("1MiB", "1GiB", "1")),
    "json": None,
    "engine": st.just("local"),
}


class Laboratory:
    """A folder with files to verify, journals, and places to write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        self._journals = [self._file_journal(folder / "kept"), self._sqlite_journal(folder / "kept.db")]

    def _broker(self, kept: journal.Journal) -> None:
        with engine.Broker("artemis", journal=kept) as broker, broker.connect() as connection:
            session = connection.session("CLIENT_ACKNOWLEDGE")
            for number in range(12):
                session.producer("orders").send(b"x" * number)
            consumer = session.consumer("orders")
            for _ in range(5):
                received = consumer.receive()
            if received is not None:
                received.acknowledge()

    def _file_journal(self, path: Path) -> Path:
        self._broker(journal.FileJournal(path))
        return path

    def _sqlite_journal(self, path: Path) -> Path:
        self._broker(journal.SqliteJournal(path))
        return path

    def fresh(self, ending: str) -> Path:
        """A name that nothing has yet."""
        self.written += 1
        return self.folder / f"{self.written}{ending}"

    def output(self) -> st.SearchStrategy[str]:
        """Where outputs go: right and wrong places."""
        endings = (".mmd", ".json", ".svg", ".dot", ".pml", ".tla", ".txt", "", ".x")
        places = ["no/such/folder/x.mmd", "kept", "\x1b[2J.mmd", "x" * 300 + ".mmd", "a\nb.mmd"]
        inside = st.sampled_from([*(f"out{ending}" for ending in endings), *places])
        return inside.map(lambda name: str(self.folder / name))

    def history(self, draw_: st.DrawFn) -> str:
        """The name of a history: drawn, damaged, in some form."""
        header = draw_(
            st.one_of(
                st.none(), st.just({}), st.dictionaries(_mostly(_KEYS), st.sampled_from(JUNK), max_size=2), _config()
            )
        )
        rows: list[Any] = draw_(histories())
        for _ in range(draw_(st.integers(0, 2))):
            _spoil(draw_, rows)
        lines = [json.dumps(row) for row in rows]
        if header is not None:
            lines.insert(0, json.dumps({"ackfsm_history": 1, "config": header}))
        data = "\n".join(lines).encode() + draw_(st.sampled_from([b"\n", b"", b"\n\n", b"\n{"]))
        return str(_stored(draw_, self, data, rows))

    def journal(self, draw_: st.DrawFn) -> str:
        """The name of a journal, whole or damaged, or of something else."""
        kept = draw_(st.sampled_from(self._journals))
        copy = self.fresh(".db" if kept.suffix else "")
        if kept.is_dir():
            shutil.copytree(kept, copy)
        else:
            shutil.copy(kept, copy)
        files = sorted(file for file in copy.rglob("*") if file.is_file()) or [copy]
        for _ in range(draw_(st.integers(0, 3))):
            _damage(draw_, draw_(st.sampled_from(files)))
        elsewhere = st.sampled_from([str(self.folder), str(self.folder / "nothing"), *JUNK])
        return draw_(elsewhere) if draw_(st.integers(0, 9)) == 0 else str(copy)


def _config() -> st.SearchStrategy[dict[str, Any]]:
    def fill(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({key: st.sampled_from(_values(key)) for key in keys})

    return st.lists(st.sampled_from(_KEYS), max_size=4, unique=True).flatmap(fill)


def _spoil(draw_: st.DrawFn, rows: list[Any]) -> None:
    """Change a row to something that may be no event."""
    at = draw_(st.integers(0, len(rows) - 1))
    odd = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from(JUNK), st.just([])
    )
    if draw_(st.booleans()) and isinstance(rows[at], dict):
        key = draw_(st.sampled_from(sorted(rows[at]) or ["t"]))
        rows[at] = {**rows[at], key: draw_(odd)}
    else:
        rows[at] = draw_(odd)


def _stored(draw_: st.DrawFn, laboratory: Laboratory, data: bytes, rows: list[Any]) -> Path:
    form = draw_(st.sampled_from([".jsonl", ".jsonl", ".jsonl.gz", ".parquet", "folder", ".txt"]))
    file = laboratory.fresh("" if form == "folder" else form)
    if form in {".parquet", "folder"}:
        parts = (
            [file]
            if form == ".parquet"
            else [
                file / name
                for name in ("part-0.parquet", draw_(st.sampled_from(["_part.parquet", "part-1.parquet", "x.jsonl"])))
            ]
        )
        for part in parts:
            part.parent.mkdir(exist_ok=True)
            _write_parquet(part, rows)
            if draw_(st.integers(0, 4)) == 0:
                _damage(draw_, part)
        return file
    file.write_bytes(gzip.compress(data) if form == ".jsonl.gz" else data)
    if draw_(st.integers(0, 4)) == 0:
        _damage(draw_, file)
    return file


def _write_parquet(part: Path, rows: list[Any]) -> None:
    columns = {key for row in rows if isinstance(row, dict) for key in row}
    events = [row for row in rows if isinstance(row, dict)]
    arrays: dict[str, pa.Array] = {}
    for key in sorted(columns):
        values = [row.get(key) for row in events]
        try:
            arrays[key] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError):
            arrays[key] = pa.array([ascii(value) for value in values])
    names = [name.encode("utf-8", "replace").decode() for name in arrays]
    pq.write_table(pa.Table.from_arrays(list(arrays.values()), names=names), part)


def _damage(draw_: st.DrawFn, file: Path) -> None:
    data = bytearray(file.read_bytes())
    if not data:
        return
    at = draw_(st.integers(0, len(data) - 1))
    how = draw_(st.sampled_from(["flip", "cut", "repeat", "empty", "noise"]))
    if how == "flip":
        data[at] ^= 1 << draw_(st.integers(0, 7))
    elif how == "cut":
        del data[at:]
    elif how == "repeat":
        data += data[at:]
    elif how == "empty":
        data.clear()
    else:
        data[at : at + 4] = draw_(st.binary(min_size=4, max_size=4))
    file.write_bytes(data)


@st.composite
def command_lines(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    """A command with its options, most of them right."""
    kinds = [
        *("check",) * 6,
        *("verify",) * 6,
        *("journal",) * 3,
        "explain",
        "explain",
        "draw",
        "export",
        "claims",
        "matrix",
        "systems",
        "odd",
    ]
    return _LINES[draw_(st.sampled_from(kinds))](draw_, laboratory)


def _check_line(draw_: st.DrawFn, laboratory: Laboratory, command: str = "check") -> list[str]:
    words = [command, *draw_(_options(6, **_SEARCHED, output=laboratory.output()))]
    return (
        words if "--max-states" in words else [*words, "--max-states", draw_(st.sampled_from(["300", "3000", "3000"]))]
    )


def _verify_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    files = [laboratory.history(draw_) for _ in range(draw_(st.sampled_from([1, 1, 1, 2])))]
    never = _mostly(("loss", "unprocessed", "duplicate,loss", "stuck"))
    skew = _mostly(("0", "100us", "1ms", "2s"))
    return ["verify", *files, *draw_(_options(3, **_CONFIGURED, json=None, never=never, skew=skew))]


def _journal_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    action = draw_(_mostly(("inspect", "verify", "verify", "compact")))
    return ["journal", action, laboratory.journal(draw_), *draw_(_options(1, json=None))]


def _draw_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    machine = draw_(st.one_of(st.just([]), _mostly(("entry", "delivery", "loss", "broker")).map(lambda name: [name])))
    form = _mostly(("dot", "mermaid", "plantuml", "table"))
    return ["draw", *machine, *draw_(_options(3, **_CONFIGURED, format=form, output=laboratory.output(), json=None))]


def _export_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    form = _mostly(("promela", "tla", "json", "scxml"))
    return ["export", *draw_(_options(4, **_BOUNDED, format=form, output=laboratory.output(), json=None))]


def _claims_line(draw_: st.DrawFn, _: Laboratory) -> list[str]:
    one = draw_(_mostly(("C01", "C05", "C14", "C22", "C33", "C50")))
    return ["claims", "--id", one, "--jobs", "1", *draw_(_options(2, max_states=_mostly(("1", "50")), json=None))]


def _matrix_line(draw_: st.DrawFn, laboratory: Laboratory) -> list[str]:
    """Every switch is set, so that one configuration is left."""
    profile = draw_(st.sampled_from(["jms", "artemis"]))
    fixed = [word for key in _KEYS[1:] for word in ("--set", f"{key}={_DEFAULTS[key]}")]
    options = _options(2, set=_setting(), max_states=_mostly(("5", "2000")), json=None, output=laboratory.output())
    return ["matrix", "--profile", profile, *fixed, "--jobs", "1", "--no-pairs", *draw_(options)]


_DEFAULTS = {
    key: "none" if value is None else str(value) for key, value in tables.load().configure("jms").as_dict().items()
}


def _systems_line(draw_: st.DrawFn, _: Laboratory) -> list[str]:
    return [
        "systems",
        *draw_(st.one_of(st.just([]), st.sampled_from(JUNK).map(lambda name: [name]))),
        *draw_(_options(1, json=None)),
    ]


def _odd_line(draw_: st.DrawFn, _: Laboratory) -> list[str]:
    names = ("check", "verify", "draw", "journal", "--help", "--version", "explain", "--json")
    return draw_(st.lists(_mostly(names), max_size=3).filter(lambda words: words != ["check"]))


_LINES: Mapping[str, Callable[[st.DrawFn, Laboratory], list[str]]] = {
    "check": _check_line,
    "explain": lambda draw_, laboratory: _check_line(draw_, laboratory, "explain"),
    "verify": _verify_line,
    "journal": _journal_line,
    "draw": _draw_line,
    "export": _export_line,
    "claims": _claims_line,
    "matrix": _matrix_line,
    "systems": _systems_line,
    "odd": _odd_line,
}

# Calls of public functions


@dataclasses.dataclass(frozen=True)
class Called:
    """A call, and what it raised that is no error of ackfsm's own."""

    name: str
    arguments: tuple[object, ...]
    named: Mapping[str, object]
    escaped: str | None


def perform(call: tuple[str, tuple[object, ...], Mapping[str, object]]) -> Called:
    """Make a call that :func:`calls` has drawn."""
    name, arguments, named = call
    escaped = None
    try:
        _PUBLIC[name](*arguments, **named)
    except AckfsmError as error:
        if not str(error).strip():
            escaped = f"{type(error).__name__} says nothing"
    except Exception:  # noqa: BLE001 - whatever is not ackfsm's own is what is looked for
        escaped = traceback.format_exc()
    return Called(name, arguments, named, escaped)


def _spec() -> tables.Specification:
    return tables.load()


def _composed(bounds: network.Bounds) -> network.Network:
    return network.compose(_spec(), _spec().configure("jms"), bounds)


def _exported(form: object, name: str) -> dict[str, str]:
    return export.files(_composed(network.Bounds()), form, name)  # type: ignore[arg-type]


_PUBLIC: Mapping[str, Callable[..., object]] = {
    "tables.load": tables.load,
    "configure": lambda profile, given_: _spec().configure(profile, given_),
    "in_vocabulary": lambda profile, given_: _spec().in_vocabulary(profile, given_),
    "parse_value": parse_value,
    "compose": lambda **bounds: _composed(network.Bounds(**bounds)),
    "check": lambda bounds, **named: explore.check(
        _spec(), _spec().configure("jms"), network.Bounds(**bounds), **named
    ),
    "replay": lambda anomaly, labels: explore.replay(_composed(network.Bounds()), anomaly, labels),
    "perform": lambda name, labels: explore.perform(_composed(network.Bounds()), name, labels),
    "draw": lambda name, form: draw.draw(_spec(), name, form),
    "overview": lambda form: draw.overview(_spec(), form),
    "export.files": _exported,
    "history.read": history.read,
    "history.read_header": history.read_header,
    "make_plan": lambda profile, given_, **named: matrix.make_plan(_spec(), profile, given_, **named),
    "parse_run": journal.parse_run,
    "inspect_file": journal.inspect_file,
    "inspect_sqlite": journal.inspect_sqlite,
    "parse_bandwidth": timing.parse_bandwidth,
    "parse_duration": timing.parse_duration,
    "Broker": lambda profile, **named: engine.Broker(profile, **named).close(),
}

_ODD = st.one_of(st.sampled_from(JUNK), st.text(max_size=8))
_ANY = st.one_of(
    _ODD, st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.just(()), st.just({}), st.binary(max_size=3)
)


def _settings() -> st.SearchStrategy[dict[str, object]]:
    keys = st.one_of(st.sampled_from(_KEYS), _ODD)
    return st.dictionaries(keys, st.one_of(st.sampled_from([*_FLAGS, *_NUMBERS]), _ANY), max_size=3)


def _bounds() -> st.SearchStrategy[dict[str, object]]:
    """Right bounds, with a wrong one now and then, of a wrong type too."""
    names = st.lists(_mostly(tuple(Fault)), max_size=2)
    right = {
        "messages": st.integers(-1, 2),
        "faults": st.one_of(names.map(lambda some: frozenset(map(_fault, some))), names.map(frozenset), names),
        "max_faults": st.one_of(st.none(), st.integers(-1, 2), st.just(10**6)),
        "actions": st.lists(_mostly(("recover", "rollback")), max_size=2).map(frozenset),
        "without": st.lists(_mostly(("acknowledge", "accept")), max_size=2).map(frozenset),
    }
    wrong = st.dictionaries(st.sampled_from(sorted(right)), _ANY, max_size=1)
    return st.tuples(st.fixed_dictionaries({}, optional=right), st.one_of(st.just({}), st.just({}), wrong)).map(
        lambda both: {**both[0], **both[1]}
    )


def _fault(name: str) -> object:
    return Fault(name) if name in set(Fault) else name


def _limits() -> st.SearchStrategy[dict[str, object]]:
    limit = st.one_of(st.none(), st.integers(-1, 300))
    optional = {
        "max_memory": st.one_of(st.none(), st.integers(-1, 10**9)),
        "workers": st.one_of(st.none(), st.integers(-1, 3)),
        "forever": st.one_of(st.none(), st.lists(_mostly(("recover", *Fault)), max_size=2)),
        "reductions": st.lists(_mostly(("partial-order",)), max_size=2),
        "every_step": st.booleans(),
    }
    return st.fixed_dictionaries({"max_states": limit.filter(lambda most: most is not None)}, optional=optional)


@st.composite
def calls(draw_: st.DrawFn, laboratory: Laboratory) -> tuple[str, tuple[object, ...], dict[str, object]]:
    """The name of a public function with arguments for it."""
    path = st.one_of(
        _ODD.map(lambda name: laboratory.folder / name.replace("\0", "")), st.just(laboratory.folder / "kept")
    )
    profile = st.one_of(st.none(), _PROFILES)
    labels = st.lists(_mostly(("send(m1)", "accept(m1)", "broker_crash", "confirm(m1)")), max_size=4)
    arguments: Mapping[str, Sequence[st.SearchStrategy[object]]] = {
        "tables.load": [path],
        "configure": [profile, _settings()],
        "in_vocabulary": [profile, _settings()],
        "parse_value": [st.one_of(st.sampled_from(_KEYS), _ODD), _ANY],
        "check": [_bounds()],
        "replay": [st.sampled_from(Anomaly), labels],
        "perform": [_mostly(tuple(Anomaly)), labels],
        "draw": [
            _mostly(("entry", "loss")),
            st.sampled_from([draw.Format.DOT, draw.Format.MERMAID, draw.Format.TABLE]),
        ],
        "overview": [st.sampled_from([draw.Format.DOT, draw.Format.TABLE])],
        "export.files": [st.sampled_from(export.Format), _ODD],
        "history.read": [path],
        "history.read_header": [path],
        "make_plan": [profile, _settings()],
        "parse_run": [_ODD],
        "inspect_file": [path],
        "inspect_sqlite": [path],
        "parse_bandwidth": [_ODD],
        "parse_duration": [_ODD],
        "Broker": [profile.filter(lambda name: name is not None)],
    }
    named: Mapping[str, st.SearchStrategy[dict[str, object]]] = {
        "compose": _bounds(),
        "check": _limits(),
        "make_plan": st.fixed_dictionaries(
            {}, optional={"messages": st.integers(-1, 2), "max_states": st.integers(-1, 5)}
        ),
        "Broker": _settings().map(lambda found: {key: value for key, value in found.items() if key in _KEYS[1:]}),
    }
    name = draw_(st.sampled_from(sorted(_PUBLIC)))
    given_ = tuple(draw_(one) for one in arguments.get(name, ()))
    return name, given_, draw_(named.get(name, st.just({})))


# By the thousand


def _session(minutes: float, seed: int) -> int:
    """Draw until the time is over; how many things are wrong."""
    wrong: dict[str, str] = {}
    codes = collections.Counter[str]()
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        while time.monotonic() < end:
            seed += 1
            _round(Laboratory(Path(tempfile.mkdtemp(dir=folder))), seed, end, codes, wrong)
    for line, count in sorted(codes.items()):
        sys.stdout.write(f"{count:8,}  {line}\n")
    for what in wrong.values():
        sys.stdout.write(f"\nWRONG: {what}\n")
    return len(wrong)


def _round(
    laboratory: Laboratory, seed: int, end: float, codes: collections.Counter[str], wrong: dict[str, str]
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
    @given(command_lines(laboratory))
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
    functions()


def _main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    return min(1, _session(arguments.minutes, 1000 * arguments.seed))


if __name__ == "__main__":
    sys.exit(_main())
