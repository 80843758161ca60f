"""The picture of the packages and who imports whom, made from the source: ``python -m model_tests.architecture``.

The layers are those that import-linter holds (``pyproject.toml``).  ``docs/test_documents.py`` keeps the picture fresh.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from model_tests.support.places import PROJECT

__all__ = ["PICTURE", "imports", "layers", "picture"]

PICTURE: Final = PROJECT / "docs" / "architecture.svg"
_WIDTH, _ROW, _BOX, _HIGH, _TOP = 860, 92, 124, 44, 16


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first, as the first import-linter contract has them."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract, *_) = settings["tool"]["importlinter"]["contracts"]
    found = [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]
    return [[name for name in layer if _files(name)] for layer in found]


@functools.cache
def imports() -> dict[str, set[str]]:
    """For each package (or module) directly under ``ackfsm``, those that it imports."""
    names = [name for layer in layers() for name in layer]
    return {name: {other for file in _files(name) for other in _imported(file)} - {name} for name in names}


def picture() -> str:
    """The layers as rows of boxes, an arrow from each package to each that it imports."""
    rows, used = layers(), imports()
    at = {
        name: (_x(len(row), i), _TOP + _ROW * number) for number, row in enumerate(rows) for i, name in enumerate(row)
    }
    arrows = [_arrow(at[name], at[other]) for name in at for other in sorted(used[name])]
    boxes = [text for name, place in at.items() for text in _drawn(name, *place)]
    height = _TOP + _ROW * len(rows)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    return "\n".join(
        [head, "<title>The packages of ackfsm, and who imports whom</title>", *arrows, *boxes, "</svg>", ""]
    )


def _files(name: str) -> list[Path]:
    module = PROJECT / "ackfsm" / f"{name}.py"
    return [module] if module.is_file() else sorted((PROJECT / "ackfsm" / name).rglob("*.py"))


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom) and node.module == "ackfsm":
            yield from names
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ackfsm."):
            yield str(node.module).split(".")[1]
        else:
            yield from (name.split(".")[1] for name in names if name.startswith("ackfsm."))


def _x(boxes: int, number: int) -> int:
    gap = (_WIDTH - boxes * _BOX) // (boxes + 1)
    return gap + number * (gap + _BOX)


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y, to, down = start[0] + _BOX // 2, start[1] + _HIGH, end[0] + _BOX // 2, end[1]
    bend = (y + down) // 2
    return f'<path d="M{x},{y} C{x},{bend} {to},{bend} {to},{down}" fill="none" stroke="#9aa7b5" stroke-width="1"/>'


def _drawn(name: str, x: int, y: int) -> Iterator[str]:
    files = _files(name)
    (first, *_) = files
    doc = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or ""
    means = re.split(r"(?<=[.:])\s", " ".join(doc.split()))[0]
    yield f'<g><title>{escape(means)}</title><rect x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="6" '
    yield 'fill="#eef3f8" stroke="#46607a"/>'
    yield f'<text x="{x + _BOX // 2}" y="{y + 19}" text-anchor="middle" font-weight="bold">{name}</text>'
    size = f"{len(files)} files" if len(files) > 1 else "1 file"
    yield f'<text x="{x + _BOX // 2}" y="{y + 36}" text-anchor="middle" font-size="11" fill="#46607a">{size}</text></g>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
