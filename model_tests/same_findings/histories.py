"""The histories that two versions are asked about: recorded ones, named ones, and drawn ones."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ackfsm.checking.export import run_lines
from ackfsm.terms import Configuration, InputError, Profile
from model_tests.histories.composite import Line, laid_out, write
from model_tests.histories.damage import DAMAGES, damaged
from model_tests.histories.systems import system
from model_tests.histories.walker import Walker
from model_tests.support.places import DATA
from model_tests.support.tables import shipped, values
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.random_histories import MOODS, PHANTOM, Recorder

__all__ = ["CHUNKS", "write_histories"]

CHUNKS: Final = (1, 3, 5)
_KEYS: Final = tuple(key for key in Configuration.__dataclass_fields__ if key != "profile")
_DAMAGED: Final = 0.3


def write_histories(folder: Path, drawn: int) -> None:
    """Write each into a folder of its own: whole, as folders of so many parts, and the options for it."""
    for path in sorted(DATA.rglob("*.jsonl*")):
        if "imports" not in path.parts:
            data = path.read_bytes()
            _write(folder / f"recorded {path.name}", gzip.decompress(data) if path.suffix == ".gz" else data)
    for name, history in named_histories().items():
        with tempfile.TemporaryDirectory() as place:
            data = history.write(Path(place)).read_bytes()
        _write(
            folder / f"named {name.replace('/', ' ')}", data, ["--skew", f"{history.skew}ms" if history.skew else "0"]
        )
    for number in range(drawn):
        data = (_of_runs if number % 2 else _of_moves)(number)
        _write(folder / f"drawn {number}", data, ["--skew", "0"] if number % 3 else [])


def _write(folder: Path, data: bytes, options: Sequence[str] = ()) -> None:
    if folder.exists():
        return
    folder.mkdir(parents=True)
    (folder / "whole.jsonl").write_bytes(data)
    lines = data.splitlines(keepends=True)
    head = lines[:1] if lines and b'"ackfsm_history"' in lines[0] else []
    for count in CHUNKS:
        (folder / str(count)).mkdir()
        size = -(-len(lines) // count)
        for part in range(count):
            its = lines[part * size : (part + 1) * size]
            (folder / str(count) / f"part-{part}.jsonl").write_bytes(b"".join([*(head if part else []), *its]))
    (folder / "options.json").write_text(json.dumps(options))


def _of_moves(number: int) -> bytes:
    """What clients may write that keep to their own rules, of a broker that does not."""
    draw, recorder, header = random.Random(f"moves {number}"), Recorder(), dict[str, Any](ackfsm_history=1)
    mood = draw.choice(MOODS)
    for _ in range(draw.choice((20, 60, 150))):
        first, second, third = (draw.randint(0, PHANTOM) for _ in range(3))
        recorder.play((draw.choice(mood), first, second, third, draw.choice((True, False))))
    recorder.write("nemesis", "drained")
    while number % 10:
        own, other = ({key: draw.choice(values(key)) for key in draw.sample(_KEYS, draw.randint(0, 3))} for _ in "12")
        config = {"profile": draw.choice(list(Profile)).value, **own}
        try:
            for each in (config, {**config, **other}):
                shipped().configure(None, each)
        except InputError:
            continue
        header |= {"config": config, **({"queues": {"q1": other}} if number % 4 == 0 else {})}
        break
    return "".join(f"{json.dumps(each)}\n" for each in (header, *recorder.events)).encode()


def _of_runs(number: int) -> bytes:
    """Runs of a drawn system, some of them damaged."""
    network, draw = system(51, number), random.Random(f"runs {number}")
    walker = Walker(network)
    runs: list[Sequence[Line]] = [
        run_lines(shipped(), network.configuration, walker.run(draw), at_rest=True) for _ in range(8)
    ]
    runs = [damaged(run, draw.choice([*DAMAGES]), draw) if run and draw.random() < _DAMAGED else run for run in runs]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "history.jsonl"
        write(file, network.configuration, laid_out(runs, draw))
        return file.read_bytes()
