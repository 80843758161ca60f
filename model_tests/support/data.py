"""What stands in the YAML files of ``model_tests/data/``."""

from __future__ import annotations

from typing import Any

import yaml

from model_tests.support.places import DATA

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_data(name: str) -> Any:
    """The data of a file, read by libyaml where that is there: without it the large files take seconds."""
    return yaml.load((DATA / name).read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - both loaders are safe
