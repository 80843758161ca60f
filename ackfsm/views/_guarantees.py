"""The line that says which guarantees stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

__all__ = ["guarantees_line"]


def guarantees_line(standing: Mapping[str, bool | None], strongest: Sequence[str]) -> Text:
    """The strongest guarantees that stand, then those that do not, then those that are left open."""
    excluded = [name for name, stands in standing.items() if stands is False]
    undecided = [name for name, stands in standing.items() if stands is None]
    line = Text.assemble(("strongest guarantee: ", "bold"), (", ".join(strongest) or "none", "bold"))
    if excluded:
        line.append(f"\nexcluded: {', '.join(excluded)}")
    if undecided:
        line.append(f"\nleft open: {', '.join(undecided)}", style="dim")
    return line
