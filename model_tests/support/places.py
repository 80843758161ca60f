"""Where the project is, and in it what tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
SPEC: Final = PROJECT / "spec"
DATA: Final = PROJECT / "model_tests" / "data"
EXAMPLES: Final = PROJECT / "model_tests" / "examples"
