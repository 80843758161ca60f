"""What a command loads: the packages and the parts of this one that it needs, and no others."""

from __future__ import annotations

import sys

import pytest

from ackfsm.cli._groups import GROUPS
from model_tests.support.commands import AS_PROMISED, UNDETERMINED, ended
from model_tests.support.verify.large_history import Planted, write_lines, write_parquet

LOADED = """
import sys
from ackfsm.cli import main
try:
    code = main()
except SystemExit as end:
    code = end.code
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""

MESSAGES = 6_250
NOTHING = Planted((), (), (), ())

HEAVY = ("numpy", "numba", "pyarrow", "pandas", "pyspark")
SELDOM = ("numba", "pandas", "pyspark", "pyarrow.dataset", "pyarrow.csv", "matplotlib", "jsonschema", "argcomplete")
FOR_ANYTHING = (*HEAVY, "rich", "yaml", "ackfsm.tables", "ackfsm.checking.network")


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """25,000 lines, as JSONL and as Parquet."""
    folder = tmp_path_factory.mktemp("histories")
    files = {"LINES": folder / "h.jsonl", "PARQUET": folder / "h.parquet"}
    write_lines(files["LINES"], MESSAGES, NOTHING)
    write_parquet(files["PARQUET"], MESSAGES, NOTHING)
    return {name: str(file) for name, file in files.items()}


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("--version", FOR_ANYTHING),
        ("check --fault rejection", HEAVY),
        ("explain --fault consumer_crash --anomaly duplicate", HEAVY),
        ("draw delivery", HEAVY),
        ("systems rabbitmq", HEAVY),
        ("verify LINES", (*SELDOM, "pyarrow.parquet")),
        ("verify PARQUET", SELDOM),
    ],
)
def test_a_command_loads_only_what_it_needs(line: str, others: tuple[str, ...], histories: dict[str, str]) -> None:
    loaded = loaded_by(*(histories.get(word, word) for word in line.split()))
    assert sorted(loaded & {*others}) == []


@pytest.mark.parametrize("line", ["--version", "where loss", "verify LINES", "--json check --fault rejection"])
def test_of_all_commands_only_one_is_loaded(line: str, histories: dict[str, str]) -> None:
    loaded = loaded_by(*(histories.get(word, word) for word in line.split()))
    of_others = {f"ackfsm.cli._{name}" for names in GROUPS.values() for name in names if name not in line.split()}
    assert sorted(loaded & of_others - {"ackfsm.cli._import"}) == [], "what reads logs is a part of verify"


def loaded_by(*line: str) -> set[str]:
    """The modules that are there when a command has ended."""
    done = ended(*line, program=[sys.executable, "-c", LOADED])
    assert done.code in {AS_PROMISED, UNDETERMINED}, done.err
    return {*done.err.splitlines()[-1].split()}
