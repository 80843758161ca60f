"""Histories and journals that are whole, damaged or odd, and places to write to."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from ackfsm import engine
from ackfsm.checking.certificates import write_certificate
from ackfsm.engine import journal
from model_tests.fuzz.words import JUNK, KEYS, mostly, values
from model_tests.support.checker.certified import certified
from model_tests.support.verify.random_histories import histories

__all__ = ["Laboratory", "damage", "write_parquet"]


class Laboratory:
    """A folder with files to verify, journals, and places to write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        write_certificate(folder / "made.certificate", certified(only=["phantom"]))
        self._certificate = (folder / "made.certificate").read_bytes()
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
                st.none(), st.just({}), st.dictionaries(mostly(KEYS), st.sampled_from(JUNK), max_size=2), _config()
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

    def certificate(self, draw_: st.DrawFn) -> str:
        """The name of a certificate: whole, cut, with a byte changed, or with something else in header or payload."""
        data = bytearray(self._certificate)
        damage = draw_(st.sampled_from(["none", "cut", "byte", "header", "payload", "payload"]))
        at = draw_(st.integers(0, len(data) - 1))
        if damage == "cut":
            data = data[:at]
        elif damage == "byte":
            data[at] ^= 1 << draw_(st.integers(0, 7))
        elif damage != "none":
            data = bytearray(_resealed(draw_, bytes(data), of_header=damage == "header"))
        path = self.fresh(".certificate")
        path.write_bytes(data)
        return str(path)

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
            damage(draw_, draw_(st.sampled_from(files)))
        elsewhere = st.sampled_from([str(self.folder), str(self.folder / "nothing"), *JUNK])
        return draw_(elsewhere) if draw_(st.integers(0, 9)) == 0 else str(copy)


def _resealed(draw_: st.DrawFn, data: bytes, *, of_header: bool) -> bytes:
    """A certificate with a part of its header or of its payload replaced by anything, and a digest that is right."""
    line, _, payload = data.partition(b"\n")
    header, body = json.loads(line), json.loads(gzip.decompress(payload))
    where: Any = header if of_header else body["invariants"]
    while True:
        key = draw_(st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where))))
        inner = where[key]
        if not inner or not isinstance(inner, (dict, list)) or draw_(st.integers(0, 4)) == 0:
            break
        where = inner
    where[key] = draw_(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.integers(0, 3),
            st.text(max_size=5),
            st.sampled_from(["loss", "entry", "pairs", "chaos", [], {}, [1], ["a"], {"a": "b"}]),
        )
    )
    payload = gzip.compress(json.dumps(body).encode())
    if isinstance(header["payload"], dict):
        header["payload"] |= {"bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return json.dumps(header).encode() + b"\n" + payload


def _config() -> st.SearchStrategy[dict[str, Any]]:
    def fill(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({key: st.sampled_from(values(key)) for key in keys})

    return st.lists(st.sampled_from(KEYS), max_size=4, unique=True).flatmap(fill)


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
            write_parquet(part, rows)
            if draw_(st.integers(0, 4)) == 0:
                damage(draw_, part)
        return file
    file.write_bytes(gzip.compress(data) if form == ".jsonl.gz" else data)
    if draw_(st.integers(0, 4)) == 0:
        damage(draw_, file)
    return file


def write_parquet(part: Path, rows: list[Any]) -> None:
    """A file of what of these rows are events, each field as text where Parquet has no type for all of its values."""
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


def damage(draw_: st.DrawFn, file: Path) -> None:
    """Change the bytes of a file at some place."""
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
