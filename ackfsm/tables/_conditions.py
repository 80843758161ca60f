"""The condition language of the tables: parsed, checked, and evaluated by walking; never ``eval``ed.

A condition is a Python expression over settings and named conditions, of ``and``, ``or``,
``not``, ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``, names, texts, whole numbers,
``True``, ``False``, ``None`` and tuples of these.  It is static: it reads the configuration
(and the index of the instance), never the state.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from ackfsm import terms

__all__ = ["ALWAYS", "STATIC_NAMES", "Condition", "parse_condition"]

STATIC_NAMES = {"copy": int, "messages": int, "faults": frozenset, "max_faults": int}
"""Names besides the settings: the number of this copy (from 1), and the bounds of a check."""

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition; ``text`` is how it stands in the table."""

    text: str
    _tree: ast.expr = dataclasses.field(compare=False, repr=False)
    _named: Mapping[str, Condition] = dataclasses.field(compare=False, repr=False)

    def holds(self, environment: Mapping[str, Any]) -> bool:
        """Whether the condition holds for the settings in ``environment``."""
        return bool(_value(self._tree, environment, self._named))

    def names(self) -> frozenset[str]:
        """Every name that the condition reads: settings, static names and named conditions."""
        return frozenset(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))

    def settings(self) -> frozenset[str]:
        """Every setting that the condition reads, also through named conditions."""
        through = {n for name in self.names() & self._named.keys() for n in self._named[name].settings()}
        return (self.names() - self._named.keys()) | through


ALWAYS = Condition("True", ast.Constant(value=True), {})


def parse_condition(text: str, named: Mapping[str, Condition]) -> Condition:
    """Parse ``text``; ``named`` are the named conditions that it may use.

    Raises :class:`ValueError` with a sentence that says what is wrong with it.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"condition {text!r} is not an expression ({error.msg})") from None
    for node in _walk(tree):
        _check(node, text, named)
    return Condition(text, tree, named)


def _walk(tree: ast.expr) -> Iterator[ast.expr]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.expr))


def _check(node: ast.expr, text: str, named: Mapping[str, Condition]) -> None:
    if isinstance(node, ast.Name):
        if node.id not in named and node.id not in STATIC_NAMES:
            _check_setting(node.id, text)
    elif isinstance(node, ast.Compare):
        _check_comparison(node, text)
    elif not isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Constant, ast.Tuple)) or (
        isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not)
    ):
        raise ValueError(  # noqa: TRY004 - a text is at fault, not a type
            f"condition {text!r} may not contain {ast.unparse(node)!r}"
        )


def _check_setting(name: str, text: str) -> None:
    try:
        terms.key_type(name)
    except terms.InputError as error:
        raise ValueError(f"condition {text!r}: {error}") from None


def _check_comparison(node: ast.Compare, text: str) -> None:
    if any(type(op) not in _COMPARISONS for op in node.ops):
        raise ValueError(f"condition {text!r} uses a comparison that tables do not have")
    sides = [node.left, *node.comparators]
    kinds = {kind for side in sides if (kind := _kind(side)) is not None}
    for kind in kinds:
        for side in sides:
            _check_constants(side, kind, text)


def _kind(side: ast.expr) -> type[StrEnum] | None:
    if not isinstance(side, ast.Name):
        return None
    if side.id == "faults":
        return terms.Fault
    if side.id in STATIC_NAMES:
        return None
    kind = terms.key_type(side.id)
    return kind if issubclass(kind, StrEnum) else None


def _check_constants(side: ast.expr, kind: type[StrEnum], text: str) -> None:
    for node in ast.walk(side):
        if isinstance(node, ast.Constant) and node.value not in set(kind):
            legal = ", ".join(member.value for member in kind)
            raise ValueError(f"condition {text!r}: {node.value!r} is not one of {legal}")


def _value(node: ast.expr, environment: Mapping[str, Any], named: Mapping[str, Condition]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return named[node.id].holds(environment) if node.id in named else environment[node.id]
        case ast.Tuple():
            return tuple(_value(item, environment, named) for item in node.elts)
        case ast.UnaryOp():
            return not _value(node.operand, environment, named)
        case ast.BoolOp():
            fold = all if isinstance(node.op, ast.And) else any
            return fold(_value(item, environment, named) for item in node.values)
        case ast.Compare():
            return _compare(node, environment, named)
    raise AssertionError(f"{ast.dump(node)} passed the check of parse_condition")


def _compare(node: ast.Compare, environment: Mapping[str, Any], named: Mapping[str, Condition]) -> bool:
    values = [_value(side, environment, named) for side in (node.left, *node.comparators)]
    return all(_COMPARISONS[type(op)](values[i], values[i + 1]) for i, op in enumerate(node.ops))
