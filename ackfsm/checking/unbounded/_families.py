"""For which numbers of messages the tables are the same: rows may read ``messages``, as long as they compare numbers.

A row that reads the number of messages divides the systems ``S_1``, ``S_2`` … into a few *families*: those in which all
conditions have the same values.  Each is proved by itself, and the last one has no end.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.tables import Condition, Machine, Specification

_MOST = 8
"""Each number that a row is compared with is a family more."""

_READ = "messages"


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """The systems of ``least`` to ``most`` messages (``None``: without end), which have the same rows."""

    least: int
    most: int | None

    @property
    def has_one(self) -> bool:
        """Whether the system of a single message is among them."""
        return self.least == 1

    @property
    def has_several(self) -> bool:
        """Whether systems of two messages or more are among them."""
        return self.most is None or self.most > 1

    @property
    def has_third(self) -> bool:
        """Whether systems of three messages or more are among them."""
        return self.most is None or self.most > 2  # noqa: PLR2004 - a pair and one more

    def __str__(self) -> str:
        """``1 message``, ``3 messages or more``."""
        if self.most is None:
            return "any number of messages" if self.least == 1 else f"{self.least} messages or more"
        several = self.most > 1
        return (
            f"{self.least} to {self.most} messages"
            if self.least < self.most
            else f"{self.least} message{'s' * several}"
        )


def families(specification: Specification, machines: Sequence[Machine], least: int = 1) -> tuple[Family, ...]:
    """The families of systems in which the rows of ``machines`` are the same whatever the configuration.

    They are of ``least`` messages and more.

    Raises :class:`NotProvedError` where a row does something else with the number of messages than comparing it.
    """
    conditions = dict.fromkeys(condition for machine in machines for condition in machine.conditions)
    compared = {n for condition in conditions for n in _compared(condition, specification.conditions)}
    last = max(compared, default=0)
    if last > _MOST:
        raise NotProvedError(f"a row compares the number of messages with {last}; {_MOST} is the most that is covered")
    if not compared:
        return (Family(least, None),)
    return (*(Family(n, n) for n in range(least, last + 1)), Family(max(least, last + 1), None))


def _compared(condition: Condition, named: Mapping[str, Condition]) -> Iterator[int]:
    """The numbers that the number of messages is compared with in ``condition``, and in those that it names."""
    if _READ not in condition.settings():
        return
    tree = ast.parse(condition.text, mode="eval").body
    for name in condition.names() & named.keys():
        yield from _compared(named[name], named)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(_reads(side) for side in (node.left, *node.comparators)):
            for side in (node.left, *node.comparators):
                yield from () if _reads(side) else _numbers(side, condition)


def _reads(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == _READ


def _numbers(node: ast.expr, condition: Condition) -> Iterator[int]:
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    for item in items:
        if not (isinstance(item, ast.Constant) and isinstance(item.value, int)):
            raise NotProvedError(f"the condition {condition.text!r} compares the number of messages with a setting")
        yield item.value
