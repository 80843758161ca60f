"""The folder of the tables, and the JSON Schema of their files (``spec/schema.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ackfsm.terms import SpecError
from ackfsm.text import shown


def shipped_tables() -> Path:
    """The folder of the tables that ship with this version."""
    package = Path(__file__).parent.parent
    inside = package / "_spec"
    return inside if inside.is_dir() else package.parent / "spec"


def schema_of(directory: Path) -> dict[str, Any]:
    """The schema in ``directory``; raises :class:`SpecError` unless it is the one that ships with this version."""
    file, shipped = directory / "schema.json", shipped_tables() / "schema.json"
    schema = _json(file)
    if directory != shipped_tables() and schema != _json(shipped):
        raise SpecError(f"{file}:1: not the form that this version of ackfsm reads; copy {shipped} there")
    return schema


def _json(file: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(
            f"{shown(str(file.parent))}: no tables here (schema.json is missing); name the folder that holds spec/"
        ) from None
    except OSError as error:
        raise SpecError(f"{shown(str(file))}: cannot be read ({error.strerror}); name a folder of tables") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file}:1: not JSON ({error}); restore the file") from None
    return read


def form_of(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The definition ``name`` of ``schema.json``, as a schema of its own."""
    return {"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
