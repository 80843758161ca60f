"""Who imports whom in the package, read from its source: no circle in a package, and what is private stays in it.

``import-linter`` holds the order of the packages; these are rules within and between them that it does not know.
"""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import ackfsm

ROOT = Path(ackfsm.__file__).parent

CIRCULAR: Mapping[str, str] = {}
"""Packages whose modules still import each other in a circle, and why."""

OPEN = {
    "ackfsm.checking.explore": {  # what needs NumPy
        f"ackfsm.checking.explore.search.{name}" for name in ("distributed", "reached", "successors")
    },
    "ackfsm.verify": {  # Spark is another driver of the fold
        *(f"ackfsm.verify.folding.{name}" for name in ("chunks", "monitor", "observations", "passes", "summary")),
        *(f"ackfsm.verify.findings.{name}" for name in ("judgements", "performed", "reasons")),
        *(f"ackfsm.verify.{name}" for name in ("results.tables", "words")),
    },
}
"""Packages of packages, with those of their modules that others may import beside the package itself."""


def modules_of(root: Path, name: str) -> dict[str, Path]:
    """The modules in a folder, by their names; a package is the module that its ``__init__.py`` is."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join((name, *(parts[:-1] if parts[-1] == "__init__" else parts)))] = path
    return found


def imported(source: str, modules: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """The modules that a source imports, also within functions or for types, each with a name from it (or none)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole, "") if whole in modules else (str(node.module), alias.name)


def imports(modules: Mapping[str, Path]) -> dict[str, list[tuple[str, str]]]:
    """What each module imports of the others."""
    return {
        name: [(other, part) for other, part in imported(path.read_text(encoding="utf-8"), modules) if other in modules]
        for name, path in modules.items()
    }


def circle(package: str, found: Mapping[str, list[tuple[str, str]]]) -> list[str]:
    """Modules of a package that import each other in a circle, if there are any."""
    inside = {name for name in found if name.startswith(f"{package}.") or name == package}
    graph = {name: {other for other, _ in found[name] if other in inside and other != name} for name in inside}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


ROOMS = {"ackfsm.checking", "ackfsm.driving", "ackfsm.history", "ackfsm.rates", "ackfsm.showing", "ackfsm.surveys"}
"""Packages that have no face: each package or module in them is one of its own."""

INNER = {"ackfsm.engine.journal", "ackfsm.tables.lookup"}
"""Packages with a face of their own in a package that has one."""


def top(module: str) -> str:
    """The package whose private names a module may import: ``ackfsm.checking.explore``."""
    room, inner = (".".join(module.split(".")[:words]) for words in (2, 3))
    return inner if room in ROOMS or inner in INNER else room


def trespasses(found: Mapping[str, list[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    """Importers, and the modules or names of another package that they import although they are private."""
    for name, others in found.items():
        for other, part in others:
            private = any(word.startswith("_") and not word.startswith("__") for word in (*other.split("."), part))
            inner = top(other) in OPEN and other != top(other) and other not in OPEN[top(other)]
            if top(name) != top(other) and (private or inner):
                yield name, f"{other}.{part}".rstrip(".")


MODULES = modules_of(ROOT, "ackfsm")
PACKAGES = sorted({top(name) for name in MODULES if name.count(".")} | ROOMS)


@functools.cache
def found_imports() -> Mapping[str, list[tuple[str, str]]]:
    """Those of the package, read when a test asks for them."""
    return imports(MODULES)


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_of_a_package_import_each_other_in_no_circle(package: str) -> None:
    found = circle(package, found_imports())
    assert bool(found) is (package in CIRCULAR), " -> ".join(found) or f"take {package} off the list: no circle is left"


def test_what_is_private_is_imported_by_its_own_package_alone() -> None:
    assert list(trespasses(found_imports())) == []


def test_a_circle_and_a_trespass_are_noticed(tmp_path: Path) -> None:
    texts = {
        "one/__init__.py": "from top.one._a import f\n",
        "one/_a.py": "def f():\n    from top.one import _b\n",
        "one/_b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from top.one._a import f\n",
        "two/__init__.py": "import top.one\nfrom top.one import __all__, _b\nfrom top.one._a import f\n",
        "two/c.py": "from top.one import _hidden, shown\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = imports(modules_of(tmp_path, "top"))
    assert {*circle("top.one", found)} == {"top.one._a", "top.one._b"}
    assert not circle("top.two", found)
    assert sorted(trespasses(found)) == [
        ("top.two", "top.one._a.f"),
        ("top.two", "top.one._b"),
        ("top.two.c", "top.one._hidden"),
    ]
