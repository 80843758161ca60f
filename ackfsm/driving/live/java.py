"""Java for brokers and clients: jars of Maven Central and compiled classes, both kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import platformdirs

from ackfsm.terms import HostError, InputError

__all__ = ["OPTIONS", "UnavailableError", "compiled", "jars", "lacks"]

OPTIONS: Final = ("-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-XX:TieredStopAtLevel=1")
"""Of a JVM that starts soon and stays small."""

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_PACKAGES: Final = {"javac": "default-jdk-headless", "mvn": "maven"}
_FETCHING: Final = 600
_COMPILING: Final = 120


class UnavailableError(InputError):
    """A program of others is not on this machine.  Says how it is had."""


def lacks(*coordinates: str) -> str:
    """What is missing to run ``coordinates``, and how that is had; empty if nothing is, but perhaps a download."""
    tools = ["javac"] if all(_kept(each).exists() for each in coordinates) else ["javac", "mvn"]
    for tool in tools:
        if shutil.which(tool) is None:
            return f"there is no {tool}; install it with: apt-get install {_PACKAGES[tool]}"
    return ""


def jars(coordinates: str) -> Path:
    """The folder of the jars of ``GROUP:NAME:VERSION`` or, of a distribution, ``GROUP:NAME:VERSION:tar.gz:bin``.

    They are fetched with Maven unless they are kept; a jar comes without those that it needs.  Raises
    :class:`UnavailableError` if they cannot be had.
    """
    kept = _kept(coordinates)
    if not kept.exists():
        if lack := lacks(coordinates):
            raise UnavailableError(lack)
        sys.stderr.write(f"fetching {coordinates} from Maven Central to {kept}\n")
        with _made(kept) as folder:
            _fetch(coordinates, folder)
    return kept


def compiled(sources: Sequence[Path], *path: str) -> str:
    """Compile ``sources`` against ``path``; the class path to run them with."""
    digest = hashlib.sha256("\n".join([*path, *(file.read_text(encoding="utf-8") for file in sources)]).encode())
    kept = _cache() / f"classes-{digest.hexdigest()[:16]}"
    if not kept.exists():
        if lack := lacks():
            raise UnavailableError(lack)
        with _made(kept) as folder:
            command = ["javac", "-Xlint:all", "-Werror", "-proc:none", "-cp", ":".join(path), "-d", str(folder)]
            if failure := _failure([*command, *map(str, sources)], folder, _COMPILING):
                raise HostError(f"{sources[-1].name} cannot be compiled: {failure}")
    return ":".join([*path, str(kept)])


def _cache() -> Path:
    return Path(platformdirs.user_cache_dir("ackfsm")) / "brokers"


def _kept(coordinates: str) -> Path:
    _, name, version, *_ = coordinates.split(":")
    return _cache() / f"{name}-{version}"


def _fetch(coordinates: str, folder: Path) -> None:
    """Put the jars into ``folder``."""
    command = ["mvn", "-q", "-B", "-ntp", "-U", _COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"]
    if failure := _failure(command, folder, _FETCHING):
        raise UnavailableError(f"{coordinates} cannot be had of Maven Central; reach it, and try again: {failure}")
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as members:
            for member in members:
                if member.name.endswith(".jar") and Path(member.name).parent.name == "lib":
                    member.name = Path(member.name).name
                    members.extract(member, folder, filter="data")
        archive.unlink()


@contextlib.contextmanager
def _made(kept: Path) -> Iterator[Path]:
    """A folder to fill, which then is ``kept``, unless another process was faster."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as folder:
        full = Path(folder) / "full"
        full.mkdir()
        yield full
        with contextlib.suppress(OSError):
            full.rename(kept)


def _failure(command: list[str], folder: Path, seconds: int) -> str:
    """What a command says that fails; empty if it does not fail."""
    try:
        done = subprocess.run(  # noqa: S603 - Maven and javac, as found on the path
            command, check=False, capture_output=True, text=True, cwd=folder, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stdout + done.stderr)[-500:].strip() or "it says nothing" if done.returncode else ""
