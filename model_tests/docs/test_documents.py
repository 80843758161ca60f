"""What documents show is what happens."""

from __future__ import annotations

import functools
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackfsm.history.format import Event
from model_tests import architecture, documents
from model_tests.alike import alike_modes, alike_page, digest_line, rows_digest
from model_tests.support.engine.calls import shared_wiring
from model_tests.support.places import EXAMPLES, PROJECT
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]

_ENGINE = PROJECT / "docs" / "engine.md"


@pytest.mark.parametrize(
    ("line", "code"), [pytest.param(line, code, id=f"line {line}") for line, code in documents.blocks(_ENGINE)]
)
def test_the_examples_of_the_engine_run(line: int, code: str) -> None:
    names: dict[str, Any] = {}
    exec(compile("\n" * line + code, _ENGINE, "exec"), names)  # noqa: S102 - only text of the project
    assert "broker" in names, "an example has a broker"


def test_the_examples_of_the_engine_are_there() -> None:
    assert len(list(documents.blocks(_ENGINE))) == 10


def test_the_page_of_the_modes_that_behave_alike_is_made_from_the_rows_as_they_are() -> None:
    """By their digest; making all of it takes minutes, so one system is made again."""
    text = documents.ALIKE.read_text(encoding="utf-8")
    digest = rows_digest(shipped())
    assert text.startswith(digest_line(digest)), "run python -m model_tests.documents"
    again = alike_page(shipped(), {"solace-jms": alike_modes(shipped(), "solace-jms")}, digest)
    introduction, section = again.split("\n## ")
    assert text.startswith(introduction)
    assert section in text


def test_the_first_page_shows_what_its_commands_and_its_example_print(capsys: pytest.CaptureFixture[str]) -> None:
    text = documents.README.read_text(encoding="utf-8")
    assert text == documents.current(documents.README), "run python -m model_tests.documents"
    assert re.findall(r"^<!-- printed by ackfsm (\w+)", text, flags=re.MULTILINE) == ["draw", "verify"]
    ((code, shown),) = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    exec(compile(code, documents.README, "exec"), {})  # noqa: S102 - only text of the project
    assert capsys.readouterr().out == shown


def test_the_guide_names_every_example() -> None:
    text = documents.GUIDE.read_text(encoding="utf-8")
    shown = {path.name for path in EXAMPLES.glob("*.py")}
    assert len(shown) == 5
    assert all(f"model_tests/examples/{name}" in text for name in shown)


def test_the_page_of_explanations_shows_what_its_commands_print() -> None:
    text = documents.EXPLAINING.read_text(encoding="utf-8")
    assert text == documents.current(documents.EXPLAINING), "run python -m model_tests.documents"
    messages, witnesses = text.split("## The way to an anomaly")
    commands = re.findall(r"^<!-- printed by ackfsm (\w+)", messages, flags=re.MULTILINE)
    assert commands == ["explain", "explain"]
    assert re.findall(r"^<!-- printed by ackfsm (\w+)", witnesses, flags=re.MULTILINE) == ["explain"]
    pictures = documents.files(documents.EXPLAINING)
    assert [path.name for path in pictures] == ["explained-message.svg", "witness-loss.svg"]
    for path, made in pictures.items():
        assert path.read_text(encoding="utf-8") == made, "run python -m model_tests.documents"


def test_the_page_of_the_format_shows_the_lines_of_the_table() -> None:
    text = documents.HISTORY.read_text(encoding="utf-8")
    assert text == documents.current(documents.HISTORY), "run python -m model_tests.documents"
    assert set(re.findall(r"^\| `(\w+)`[<| ]", text.partition("<!-- made from")[2], flags=re.MULTILINE)) >= {
        row.line for row in shipped().recording.signs.values() if row.leaving
    }


def test_a_source_that_is_the_format_names_a_line_or_a_section_of_its_page() -> None:
    text = documents.HISTORY.read_text(encoding="utf-8")
    sections = {title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.+)$", text, flags=re.MULTILINE)}
    cited = {part for row in shipped().recording.signs.values() for part in row.source.split("; ")}
    assert {part.removeprefix("H1 ") for part in cited if part.startswith("H1 ")} <= sections | set(Event)


def test_the_python_of_the_page_of_explanations_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ((_, code),) = documents.blocks(documents.EXPLAINING)
    exec(compile(code, "explaining.md", "exec"), {})  # noqa: S102 - only text of the project
    shown = capsys.readouterr().out
    assert "loss ['send(m1)', 'accept(m1)', " in shown
    assert "\ndef test_loss() -> None:\n" in shown


# What documents say of the project is so.

PAGES = sorted(path for path in PROJECT.rglob("*.md") if not {".venv", "node_modules"} & {*path.parts})


def test_the_picture_of_the_packages_is_that_of_the_imports() -> None:
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.picture(), (
        "run python -m model_tests.architecture"
    )


def test_no_package_imports_one_above_it() -> None:
    """What the picture is made of agrees with import-linter."""
    depth = {name: i for i, layer in enumerate(architecture.layers()) for name in layer}
    upwards = {
        (name, other) for name, used in architecture.imports().items() for other in used if depth[other] <= depth[name]
    }
    assert not upwards


def _text_of(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@functools.cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _text_of(page), flags=re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", _text_of(page)):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(there.resolve()), f"{page.name} links to {target}#{anchor}"


def test_every_command_has_a_section() -> None:
    text = (PROJECT / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## ackfsm (\w+)", text, flags=re.MULTILINE))
    usage = subprocess.run(
        [sys.executable, "-m", "ackfsm.cli", "--help"], capture_output=True, text=True, check=True, cwd=PROJECT
    ).stdout
    assert sections == set(re.findall(r"^    (\w+) ", usage, flags=re.MULTILINE))


def test_the_page_of_the_tables_names_every_file() -> None:
    spec = PROJECT / "spec"
    text = (spec / "README.md").read_text(encoding="utf-8")
    for path in spec.iterdir():
        name = f"`{path.name}/*.yaml`" if path.is_dir() else f"`{path.name}`"
        assert path.name == "README.md" or name in text, f"spec/README.md does not name {path.name}"


def test_the_index_of_the_documents_names_each() -> None:
    text = (PROJECT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in (PROJECT / "docs").glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in text
    decisions = PROJECT / "docs" / "decisions"
    text = (decisions / "README.md").read_text(encoding="utf-8")
    for path in decisions.glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in text


def test_what_docstrings_refer_to_exists() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (PROJECT / "ackfsm").rglob("*.py"))
    for target in {*re.findall(r":(?:func|class|meth|mod|data|exc|attr):`~?(ackfsm[\w.]*)`", text)}:
        assert pkgutil.resolve_name(target) is not None


def test_the_picture_of_a_plan_is_what_the_command_draws() -> None:
    ((path, made),) = documents.files(documents.PLANNING).items()
    assert path.name == "plan.svg"
    assert path.read_text(encoding="utf-8") == made, "run python -m model_tests.documents"
