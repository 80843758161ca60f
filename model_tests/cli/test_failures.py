"""Whatever fails, a command ends with one sentence and a code that means something, and never with a traceback."""

from __future__ import annotations

import concurrent.futures
import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.certificates import write_certificate
from ackfsm.showing.views import matrix_files
from ackfsm.surveys import matrix
from ackfsm.terms import AckfsmError, HostError, InputError, SpecError
from model_tests.support.checker.certified import certified
from model_tests.support.commands import (
    AS_PROMISED,
    COMMAND,
    FAILED,
    INTERRUPTED,
    UNDETERMINED,
    USAGE,
    VIOLATION,
    Ended,
    ended,
    environment,
)
from model_tests.support.places import SPEC
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, few

HISTORY = '{"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m"}\n'
WAY = "explain --fault consumer_crash --anomaly duplicate"
ALL_WAYS = "explain --fault consumer_crash"
TINY_MATRIX = (
    "matrix --no-pairs --jobs 1 --max-states 3 --profile solace --set ack_mode=AUTO_ACKNOWLEDGE "
    "--set delivery_mode=DIRECT --set consumption=listener"
)

COMMANDS = {
    "check": ("check --fault rejection --max-faults 0", AS_PROMISED),
    "explain": (WAY, AS_PROMISED),
    "claims": ("claims --id C02 --jobs 1 --max-states 5", None),
    "matrix": (TINY_MATRIX, UNDETERMINED),
    "plan": ("plan", AS_PROMISED),
    "advise": ("advise --need no-loss --profile rabbitmq --messages 1 --max-faults 1 --jobs 1", AS_PROMISED),
    "verify": ("verify {history}", UNDETERMINED),
    "draw": ("draw delivery", AS_PROMISED),
    "export": ("export --max-faults 0", AS_PROMISED),
    "systems": ("systems", AS_PROMISED),
    "where": ("where confirm", AS_PROMISED),
    "journal": ("journal verify {journal}", AS_PROMISED),
    "certificate": ("certificate verify {certificate}", AS_PROMISED),
    "help": ("--help", AS_PROMISED),
}
"""A cheap one of each, and the code with which it ends; ``None``: with any that is its own."""


def _closed() -> None:
    os.close(1)


def _full() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _unread() -> None:
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(reading)
    os.close(writing)


LOST: dict[str, Callable[[], None]] = {"closed": _closed, "full": _full, "unread": _unread}
"""What may be the matter with standard output."""


FEW = ("check", "draw", "systems", "verify", "help")
LOSING = [("full", name) for name in few([*COMMANDS], 5)] + [
    (output, name) for output in ("closed", "unread") for name in few(FEW, 2)
]
ENCODED = [("ascii", name) for name in (COMMANDS if WHOLE else ("explain", *FEW[:1]))] + [("latin-1", "explain")]
CASES = [*LOSING, *ENCODED]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("places")
    history = folder / "history.jsonl"
    history.write_text(HISTORY, encoding="utf-8")
    from ackfsm.engine.journal import SqliteJournal

    SqliteJournal(folder / "journal.db").close()
    write_certificate(folder / "made.certificate", certified(only=["phantom"]))
    return {
        "history": str(history),
        "journal": str(folder / "journal.db"),
        "certificate": str(folder / "made.certificate"),
    }


@pytest.fixture(scope="module")
def all_ended(places: dict[str, str]) -> dict[tuple[str, str], Ended]:
    """Commands with every kind of output, as many at a time as there are processors."""

    def run(output: str, name: str) -> Ended:
        line = COMMANDS[name][0].format(**places).split()
        if output in LOST:
            return ended(*line, before=LOST[output])
        return ended(*line, env=environment(PYTHONIOENCODING=output))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
        return dict(zip(CASES, several.map(lambda case: run(*case), CASES), strict=True))


def assert_one_sentence(done: Ended, code: int) -> None:
    assert (done.code, done.err.count("\n")) == (code, 1), done.err
    assert done.err.startswith("ackfsm")
    assert "Traceback" not in done.err


# standard output


@pytest.mark.parametrize(("output", "name"), LOSING)
def test_a_result_that_cannot_be_written_is_a_failure_of_the_machine(
    output: str, name: str, all_ended: dict[tuple[str, str], Ended]
) -> None:
    done = all_ended[output, name]
    assert_one_sentence(done, FAILED)
    assert "standard output" in done.err


@pytest.mark.parametrize(("encoding", "name"), ENCODED)
def test_what_an_encoding_lacks_is_replaced(name: str, encoding: str, all_ended: dict[tuple[str, str], Ended]) -> None:
    done = all_ended[encoding, name]
    code = COMMANDS[name][1]
    assert (done.code == code) if code is not None else done.code in {AS_PROMISED, UNDETERMINED}
    assert done.err == ""
    assert done.out


def test_arrows_stay_legible_without_utf_8(all_ended: dict[tuple[str, str], Ended]) -> None:
    assert b" -> " in all_ended["ascii", "explain"].out
    assert b"\\u" not in all_ended["ascii", "explain"].out


def test_a_file_that_is_printed_is_utf_8_whatever_the_terminal_has() -> None:
    done = ended(*WAY.split(), "--as", "pytest", env=environment(PYTHONIOENCODING="latin-1"))
    assert done.code == AS_PROMISED
    assert "→" in done.out.decode("utf-8")


def test_closed_and_full_standard_error_change_no_exit_code() -> None:
    assert ended("check", "--fault", "no", before=lambda: os.close(2)).code == USAGE
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        assert ended("check", "--fault", "no", stderr=full).code == USAGE
        assert ended("frobnicate", stderr=full).code == USAGE


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What a library prints to a stream that is closed must not end up in what is written."""

    def close_all() -> None:
        os.closerange(0, 3)

    assert ended("draw", "delivery", "--output", str(tmp_path / "x.md"), before=close_all).code == AS_PROMISED
    assert (tmp_path / "x.md").read_text(encoding="utf-8").startswith("# delivery")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_nobody_reads_to_its_end_is_a_failure(unbuffered: str) -> None:
    """As ``verify --json | head -1`` does; Python loses the rest without a word where its streams are not buffered."""
    with subprocess.Popen(
        [*COMMAND, "export", "--json", "--messages", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED=unbuffered),
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == b"{\n"
        run.stdout.close()
        err = run.stderr.read().decode()
    assert run.returncode == FAILED, "a pipe does not hold all of it"
    assert err == "ackfsm export: nobody read standard output to its end; what was not read is lost\n"


# what is raised, and what it means


MEANINGS = [
    (InputError("no"), USAGE, "no"),
    (SpecError("no"), USAGE, "no"),
    (HostError("no"), FAILED, "no"),
    (AckfsmError("no"), FAILED, "no"),
    (
        explore.NotReplayedError("loss", "no"),
        FAILED,
        "the search's witness of loss cannot be performed (no)",
    ),
    (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
    (MemoryError(), FAILED, "there is not enough memory"),
    (OSError(errno.ENOMEM, "no"), FAILED, "there is not enough memory"),
    (OSError(errno.EIO, "broken", "/a\nb"), FAILED, "/a\\nb: broken"),
    (OSError("bare"), FAILED, "a defect of ackfsm: OSError: bare"),
    (RuntimeError("can't start new thread"), FAILED, "the machine has no thread left"),
    (ImportError("cannot map", name="numpy"), FAILED, "a Python package cannot be loaded (cannot map)"),
    (ModuleNotFoundError("x", name="pyarrow"), USAGE, "this needs the Python package pyarrow; install it with pip "),
    (ModuleNotFoundError("x", name="yaml"), FAILED, "a Python package cannot be loaded"),
    (ModuleNotFoundError("x", name="ackfsm.gone"), FAILED, "a defect of ackfsm: ModuleNotFoundError: x"),
    (KeyError("\x1b[2Jx"), FAILED, "a defect of ackfsm: KeyError: '\\x1b[2Jx'"),
    (RecursionError("deep"), FAILED, "a defect of ackfsm: RecursionError: deep"),
    (SystemExit(1), FAILED, "a defect of ackfsm: RuntimeError: a library asked for the exit code 1"),
    (InputError("\x1b[2J\nackfsm: valid " + "x" * 5000), USAGE, "\\x1b[2J\\nackfsm: valid xxx"),
]


@pytest.mark.parametrize(("error", "code", "sentence"), MEANINGS, ids=range(len(MEANINGS)))
def test_every_error_has_its_code_and_its_sentence(  # noqa: PLR0913, PLR0917 - three of them are the case
    error: BaseException,
    code: int,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(tables, "load", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["check"]) == code
    err = capsys.readouterr().err
    assert err.startswith(f"ackfsm check: {sentence}")
    assert err.count("\n") == 1
    assert len(err) < 2_300
    assert err.replace("\n", "").isprintable()
    kept = [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()]
    assert len(kept) == ("a defect" in sentence)
    assert all("Traceback" in text and "in fails" in text for text in kept), "it is kept for whoever mends it"


def test_a_defect_is_told_where_no_traceback_can_be_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "load", lambda: 1 / 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert cli.main(["check"]) == FAILED
    err = capsys.readouterr().err
    assert "a defect of ackfsm: ZeroDivisionError: division by zero; report it" in err
    assert "set TMPDIR" in err
    assert "Traceback" not in err


def test_too_little_memory_is_one_sentence() -> None:
    program = """
import resource, sys
from ackfsm import tables
from ackfsm.cli import _run, main
tables.load()
with open("/proc/self/statm") as told:
    taken = int(told.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (24 << 20),) * 2)
sys.exit(main())
"""
    line = ["check", "--messages", "2", "--max-faults", "any", "--action", "recover", "--set", "resend_in_doubt=true"]
    done = ended(*line, program=[sys.executable, "-c", program])
    assert_one_sentence(done, FAILED)
    assert done.out == b""


def test_a_home_that_cannot_be_read_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``Path.is_file`` raises where a folder may not be searched."""
    kept = Path.is_file

    def refused(path: Path) -> bool:
        if path.is_relative_to(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return kept(path)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "is_file", refused)
    assert tables.load(SPEC).digest == shipped().digest


def test_without_a_home_no_folder_of_that_name_is_made(tmp_path: Path) -> None:
    """Where neither HOME nor the list of users tells, ``~`` stays what it is."""
    program = """
import pwd, sys
def unknown(_): raise KeyError
pwd.getpwuid = unknown
from ackfsm.cli import main
sys.exit(main())
"""
    env = {key: value for key, value in environment().items() if key not in {"HOME", "XDG_CACHE_HOME"}}
    done = ended("systems", program=[sys.executable, "-c", program], env=env, cwd=tmp_path)
    assert (done.code, done.err) == (AS_PROMISED, "")
    assert list(tmp_path.iterdir()) == []


# what is written


def _small_files() -> None:
    """A disk that is full after 2 kB of each file; a limit works for every user, and on every file system."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))


OUTPUTS = {
    "draw": ("draw delivery --output {}/x.md", "x.md"),
    "draw --all": ("draw --all --output {}", "README.md"),
    "systems": ("systems --jobs 1 --output {}", "README.md"),
    "explain": (f"{WAY} --output {{}}/x.svg", "x.svg"),
    "check": ("check --fault consumer_crash --output {}/x.py", "x.py"),
    "export": ("export --output {}/x.tla", "x.tla"),
    "matrix": (f"{TINY_MATRIX} --output {{}}", "matrix.parquet"),
}


@pytest.fixture(scope="module")
def on_a_full_disk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ended, Path]]:
    """Every command that writes files, each over an old one."""

    def run(name: str) -> tuple[Ended, Path]:
        line, file = OUTPUTS[name]
        program = [sys.executable, "-c", UNSEARCHED] if name == "systems" else COMMAND
        folder = folders[name]
        (folder / file).write_text("old", encoding="utf-8")
        env = environment(PYTHONDONTWRITEBYTECODE="1")  # Python keeps half of what it has compiled, for others to load
        return ended(*line.format(folder).split(), before=_small_files, program=program, env=env), folder

    folders = {name: tmp_path_factory.mktemp("full") for name in OUTPUTS}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
        return dict(zip(OUTPUTS, several.map(run, OUTPUTS), strict=True))


# What systems searches for takes a while, and is not looked at here.
UNSEARCHED = """
import sys
from ackfsm.cli import main
from ackfsm.surveys import matrix
matrix.mode_sweep = lambda _, profiles, **__: dict.fromkeys(profiles, ())
sys.exit(main())
"""


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_full_disk_leaves_what_was_there_and_names_the_file(
    name: str, on_a_full_disk: dict[str, tuple[Ended, Path]]
) -> None:
    done, folder = on_a_full_disk[name]
    assert_one_sentence(done, FAILED)
    assert f"{folder}/" in done.err
    assert "cannot be written (File too large); nothing there was changed" in done.err
    file = OUTPUTS[name][1]
    assert (folder / file).read_text(encoding="utf-8") == "old"
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / file]


@pytest.mark.parametrize(
    ("name", "result"), [("matrix", b"configuration"), ("explain", b"<svg"), ("check", b"def test_")]
)
def test_the_result_of_a_search_is_told_even_if_it_cannot_be_written(
    name: str, result: bytes, on_a_full_disk: dict[str, tuple[Ended, Path]]
) -> None:
    assert result in on_a_full_disk[name][0].out


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work must not begin."""

    def begun(*_: object, **__: object) -> None:
        raise AssertionError("it has begun")

    for place in (
        "ackfsm.checking.explore.check",
        "ackfsm.surveys.matrix.run",
        "ackfsm.surveys.matrix.mode_sweep",
        "ackfsm.showing.draw.write_all",
    ):
        monkeypatch.setattr(place, begun)
    monkeypatch.setattr("ackfsm.cli._export.compose", begun)


def _odd_places(folder: Path) -> Iterator[Path]:
    (folder / "file").touch()
    (folder / "folder").mkdir()
    (folder / "dangling").symlink_to("nowhere/at/all")
    (folder / "loop").symlink_to("pool")
    (folder / "pool").symlink_to("loop")
    yield folder / "folder"
    yield folder / "dangling"
    yield folder / "loop"
    yield folder / "nowhere" / "x"
    yield folder / "file" / "x"
    yield folder / ("x" * 300)
    yield folder / "\n" / "x"
    yield folder / os.fsdecode(b"\xff") / "x"


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("line", ["check --as svg", "explain --as itf", "draw delivery --as table", "export --as json"])
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in _odd_places(tmp_path):
        assert cli.main([*line.split(), "--output", str(place)]) == USAGE, place
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err.replace("\n", "").isprintable()
        assert "cannot be written (" in err
        assert err.endswith("; name another file\n")


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("line", ["draw --all", "systems", TINY_MATRIX])
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path / "file", tmp_path / "file" / "x", tmp_path / ("x" * 300), tmp_path / "loop"):
        assert cli.main([*line.split(), "--output", str(place)]) == USAGE, place
        err = capsys.readouterr().err
        assert (err.count("\n"), "Traceback" in err) == (1, False)
        assert err.endswith("; name another folder\n")


def test_where_several_witnesses_went_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    way = tmp_path / "[bold]way.mmd"
    assert cli.main([*ALL_WAYS.split(), "--output", str(way)]) == AS_PROMISED
    written = sorted(tmp_path.iterdir())
    assert len(written) > 1
    assert sorted(capsys.readouterr().out.splitlines()) == [f"{path} written" for path in written]
    assert cli.main([*ALL_WAYS.split(), "--output", str(way), "--json"]) == AS_PROMISED
    assert sorted(json.loads(capsys.readouterr().out)["written"]) == [str(path) for path in written]


@pytest.mark.parametrize("name", few(["/dev/stdout", "-", "/proc/self/fd/1"], 2))
def test_standard_output_by_its_name_gets_all_of_them(name: str, tmp_path: Path) -> None:
    asked = [*ALL_WAYS.split(), "--as", "mermaid"]
    printed = ended(*asked)
    target = tmp_path / "target"
    target.write_text("before\n", encoding="utf-8")
    with target.open("ab") as file:
        done = ended(*asked, "--output", name, stdout=file)
    assert (done.code, done.err) == (AS_PROMISED, "")
    assert target.read_bytes() == b"before\n" + printed.out, "after what it had, with nothing else said in it"
    assert printed.out.count(b"sequenceDiagram") > 1
    assert list(tmp_path.iterdir()) == [target]


def test_a_pipe_gets_all_of_them_in_one_piece(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:  # noqa: S607 - any cat will do
        done = ended(*ALL_WAYS.split(), "--as", "mermaid", "--output", str(pipe))
        read = reader.communicate()[0]
    assert (done.code, done.out, done.err) == (AS_PROMISED, b"", "")
    assert read.count(b"sequenceDiagram") > 1
    assert list(tmp_path.iterdir()) == [pipe]


def test_others_files_among_the_pages_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a pipe, which would be read for ever, and a folder."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.setattr("ackfsm.surveys.matrix.mode_sweep", lambda _, profiles, **__: dict.fromkeys(profiles, ()))
    assert cli.main(["systems", "--output", str(tmp_path)]) == AS_PROMISED
    assert (tmp_path / "pipe.md").is_fifo()


# what is said twice


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--set prefetch=1 --set prefetch=2", "--set says 'prefetch' more than once; say it once"),
        ("--set prefetch=1 --set prefetch=1", "--set says 'prefetch' more than once; say it once"),
        ("--set prefetch=1 --set prefetch =1", "--set says 'prefetch' more than once; say it once"),
        ("--profile ems --set profile=jms", "--profile and --set profile= say the same thing; leave one of them out"),
        ("--profile ems --set profile=ems", "--profile and --set profile= say the same thing; leave one of them out"),
        ("--profile ems --profile jms", "--profile is given more than once; give it once"),
    ],
)
@pytest.mark.parametrize("command", few(["check", "explain", "matrix", "draw", "export", "verify {history}"], 2))
def test_settings_that_are_said_twice_are_refused(
    command: str, line: str, sentence: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*command.format(**places).split(), *line.replace(" =", "_=").split()]
    assert _code([part.replace("_=", " =") if part.startswith("prefetch_") else part for part in asked]) == USAGE
    assert sentence in capsys.readouterr().err


def _code(line: list[str]) -> int:
    try:
        return cli.main(line)
    except SystemExit as end:
        return int(end.code or 0)


def test_no_limit_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def check(*_: object, **named: Any) -> None:
        asked.append(named["max_states"])
        raise InputError("enough")

    monkeypatch.setattr("ackfsm.checking.explore.check", check)
    assert [cli.main(["check", "--max-states", number]) for number in ("any", "7")] == [USAGE, USAGE]
    assert asked == [None, 7]


def test_violations_alone_end_with_1() -> None:
    """The other side: a violation does end so, whatever else is printed."""
    done = ended("check", "--set", "redelivery_mark_persisted=false", "--fault", "broker_kill")
    assert (done.code, done.err) == (VIOLATION, "")


def test_a_matrix_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Both files or none: here the page cannot be written, for a folder has its name."""
    (tmp_path / "matrix.html").mkdir()
    settings = {"ack_mode": "AUTO_ACKNOWLEDGE", "delivery_mode": "DIRECT", "consumption": "listener"}
    plan = matrix.make_plan(shipped(), "solace", settings, pairs=False, max_states=3)
    found = matrix.run(plan, shipped())
    with pytest.raises(InputError, match=r"matrix\.html: cannot be written"):
        matrix_files.write(found, matrix.summarise(found), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["matrix.html"]


def test_no_room_for_what_spark_is_started_with_is_a_failure_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    from ackfsm import spark

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ackfsm.spark._session._java", lambda: (Path("java"), 21))
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(HostError, match=r"Spark could not be started \(No space left on device\)"):
        spark.session("local[1]")
