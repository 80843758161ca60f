"""The package as a stranger gets it: what an import costs, what a wheel holds, that it works far from the checkout."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

import ackfsm
from model_tests.support.places import PROJECT

SPEC = {path.relative_to(PROJECT / "spec").as_posix(): path for path in (PROJECT / "spec").rglob("*") if path.is_file()}


def _python(*arguments: str, cwd: Path, **environment: str) -> str:
    """Standard output of this interpreter, run in ``cwd``; its exit code must be 0."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel built from it: what either lacks, the wheel lacks."""
    folder = tmp_path_factory.mktemp("dist")
    _python("-m", "build", "--no-isolation", "--outdir", str(folder), str(PROJECT), cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Iterator[zipfile.ZipFile]:
    """The built wheel, open."""
    (path,) = dist.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_vocabulary_imports_nothing_beyond_the_standard_library(tmp_path: Path) -> None:
    new = "import sys; old = set(sys.modules); import ackfsm, ackfsm.terms; print(*set(sys.modules) - old)"
    loaded = {name.partition(".")[0] for name in _python("-c", new, cwd=tmp_path).split()}
    assert loaded - sys.stdlib_module_names == {"ackfsm"}


@pytest.mark.slow
def test_wheel_holds_the_tables_unchanged(wheel: zipfile.ZipFile) -> None:
    prefix = PurePosixPath("ackfsm/_spec")
    shipped = {name for name in wheel.namelist() if PurePosixPath(name).is_relative_to(prefix)}
    assert {"README.md", "machines/broker.yaml"} <= SPEC.keys()
    assert shipped == {str(prefix / name) for name in SPEC}
    assert all(wheel.read(str(prefix / name)) == path.read_bytes() for name, path in SPEC.items())


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    metadata = f"ackfsm-{ackfsm.__version__}.dist-info"
    assert {PurePosixPath(name).parts[0] for name in wheel.namelist()} == {"ackfsm", metadata}
    assert "ackfsm/py.typed" in wheel.namelist()


@pytest.mark.slow
def test_wheel_holds_the_sources_of_the_clients_in_java(wheel: zipfile.ZipFile) -> None:
    folder = PurePosixPath("ackfsm/driving/live/clients/java")
    recorder = PROJECT / "docs" / "java" / "RecordingConnectionFactory.java"
    sources = {path.name: path for path in [*(PROJECT / folder).glob("*.java"), recorder]}
    assert {name for name in wheel.namelist() if PurePosixPath(name).parent == folder} == {
        str(folder / name) for name in sources
    }
    assert all(wheel.read(str(folder / name)) == path.read_bytes() for name, path in sources.items())


@pytest.mark.slow
def test_wheel_states_version_licence_and_command(wheel: zipfile.ZipFile) -> None:
    folder = f"ackfsm-{ackfsm.__version__}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
    assert metadata["Version"] == ackfsm.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert "ackfsm = ackfsm.cli:main" in wheel.read(f"{folder}/entry_points.txt").decode().splitlines()


@pytest.mark.slow
def test_source_distribution_can_be_tested(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "model_tests/package/test_package.py"} <= held
    assert {f"spec/{name}" for name in SPEC} <= held


@pytest.mark.slow
def test_wheel_checks_a_configuration_away_from_the_checkout(dist: Path, tmp_path: Path) -> None:
    (path,) = dist.glob("*.whl")
    _python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), str(path), cwd=tmp_path)
    where = _python("-c", "import ackfsm; print(ackfsm.__file__)", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert Path(where.strip()).is_relative_to(tmp_path)
    command = ("-m", "ackfsm.cli", "check", "--profile", "jms", "--json")
    assert json.loads(_python(*command, cwd=tmp_path, PYTHONPATH=str(tmp_path)))["complete"]
