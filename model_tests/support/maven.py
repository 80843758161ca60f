"""Programs for the JVM that Maven Central has: what they are started from, in a folder."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from model_tests.support.tools import missing

__all__ = ["ARTEMIS", "BROKER_J", "compiled", "jars_of"]

ARTEMIS: Final = "org.apache.artemis:apache-artemis:2.56.0"
"""A broker of JMS, AMQP 1.0, STOMP and OpenWire, its own client, and Qpid JMS."""
BROKER_J: Final = "org.apache.qpid:apache-qpid-broker-j:10.1.0"
"""Qpid's broker of AMQP 0-8 to 1.0, written in Java."""

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_REPOSITORY: Final = Path.home() / ".m2" / "repository"
_MINUTES: Final = 300
_SOON: Final = 90


def jars_of(coordinates: str, folder: Path) -> Path:
    """A folder of all jars of a distribution, below ``folder``; what is there already is not fetched again.

    Skips the test, which for a command means that it ends, without a JDK, Maven or Maven Central.
    """
    for tool, package in (("javac", "default-jdk-headless"), ("mvn", "maven")):
        if shutil.which(tool) is None:
            missing(f"there is no {tool}; install it with: apt-get install {package}")
    group, name, version = coordinates.split(":")
    jars = folder / f"{name}-{version}"
    if jars.exists():
        return jars
    file = f"{name}-{version}-bin.tar.gz"
    kept = _REPOSITORY.joinpath(*group.split("."), name, version, file)
    if not kept.exists():
        artifact = [f"-Dartifact={coordinates}:tar.gz:bin", f"-DoutputDirectory={folder}"]
        command = ["mvn", "-q", "-B", "-ntp", "-U", _PLUGIN, *artifact]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=_MINUTES)
        kept = folder / file
        if done.returncode or not kept.exists():
            missing(f"{name} cannot be had of Maven Central: {done.stdout[-500:]}")
    _unpack(kept, jars)
    return jars


def compiled(jars: Path, folder: Path, sources: list[Path]) -> str:
    """Compile ``sources`` against ``jars`` into ``folder``, without a warning; the class path to run them with."""
    classes = f"{jars}/*"
    command = ["javac", "-Xlint:all", "-Werror", "-proc:none", "-cp", classes, "-d", str(folder), *map(str, sources)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SOON)
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{classes}:{folder}"


def _unpack(archive: Path, jars: Path) -> None:
    partial = jars.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    with tarfile.open(archive) as members:
        for member in members:
            if member.name.endswith(".jar") and Path(member.name).parent.name == "lib":
                member.name = Path(member.name).name
                members.extract(member, partial, filter="data")
    partial.rename(jars)
