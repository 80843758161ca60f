"""Values as plain JSON values."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any


def fields_as_json(value: Any, **names: str | None) -> dict[str, Any]:
    """Return the fields of a dataclass; ``names`` renames some of them, or (``None``) leaves them out."""
    called = {field.name: names.get(field.name, field.name) for field in dataclasses.fields(value)}
    return {name: plain(getattr(value, field)) for field, name in called.items() if name is not None}


def plain(value: Any) -> Any:
    """A value that is plain, or has ``as_json``, or values of these kinds."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.as_json() if hasattr(value, "as_json") else value
