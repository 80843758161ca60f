"""What a defect is that is put into a copy of the project by hand: a small change of the source, and who sees it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

__all__ = ["Defect"]


@dataclasses.dataclass(frozen=True, slots=True)
class Defect:
    """A change that somebody might make by mistake.

    Attributes:
        name: short, unique.
        wrong: what goes wrong for a user.
        file: the module, below ``ackfsm``.
        old: text of that module, which stands there once.
        new: what stands there instead.
        noticed_by: tried first, as ``engine/dispatch`` or ``engine/dispatch::test_consumers_take_turns``; then come all
            others.
        unnoticed_because: why no test notices it; empty if one has to.
    """

    name: str
    wrong: str
    file: str
    old: str
    new: str
    noticed_by: str = ""
    unnoticed_because: str = ""

    def apply(self, project: Path) -> None:
        """Put the defect into the copy in ``project``.

        Raises :class:`ValueError` unless the text stands there once.
        """
        file = project / "ackfsm" / self.file
        source = file.read_text(encoding="utf-8")
        file.write_text(self.changed(source), encoding="utf-8")

    def changed(self, source: str) -> str:
        """The source of the module with the defect; raises :class:`ValueError` unless the text stands there once."""
        count = source.count(self.old)
        if count != 1 or self.old == self.new:
            raise ValueError(f"its text stands {count} times in ackfsm/{self.file}; write it anew")
        return source.replace(self.old, self.new)
