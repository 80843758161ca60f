"""The condition language of the tables: parsed, type-checked, made a function part by part; never ``eval``.

A condition is a Python expression over settings and named conditions, built from ``and``, ``or``,
``not``, ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``, names, texts, whole numbers,
``True``, ``False``, ``None`` and tuples of these.  It is static: it reads the configuration
(and the index of the instance), never the state.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

from ackfsm import terms
from ackfsm.tables._source import Document

_Function: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Computes a value from the settings."""

STATIC_NAMES: Mapping[str, tuple[type, bool]] = {
    "copy": (int, False),
    "messages": (int, False),
    "consumers": (int, False),
    "sessions": (int, False),
    "durable_beside": (bool, False),
    "faults": (frozenset, False),
    "max_faults": (int, True),
    "window": (int, True),
    "threshold": (int, True),
    "prefetched": (int, True),
    "attempts": (int, True),
}
"""Names besides the settings: the number of this copy (from 1), and the bounds of a check.

``durable_beside`` is whether the message goes to another subscription too, which is durable.

Each with its type and whether it may be ``None``.  The last four are settings, as far as a check can
reach (:data:`BOUND_SETTINGS`).
"""

BOUND_SETTINGS: Mapping[str, str] = {
    "window": "publish_window",
    "threshold": "confirm_threshold",
    "prefetched": "prefetch",
    "attempts": "max_delivery_attempts",
}
"""The setting from which each of these bounds is computed."""

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
    """A condition; ``text`` is its source in the table, which is parsed again where a configuration is asked about.

    Most conditions of the tables are never asked about by one command.
    """

    text: str
    _named: Mapping[str, Condition] = dataclasses.field(compare=False, repr=False)
    _names: frozenset[str] = dataclasses.field(compare=False, repr=False)
    _settings: frozenset[str] = dataclasses.field(compare=False, repr=False)
    _function: _Function | None = dataclasses.field(init=False, compare=False, repr=False, default=None)

    def __reduce__(self) -> tuple[type[Condition], tuple[object, ...]]:
        """All but the function, which cannot be pickled."""
        return Condition, (self.text, self._named, self._names, self._settings)

    def holds(self, environment: Mapping[str, Any]) -> bool:
        """Whether the condition holds for the settings in ``environment``."""
        function = self._function
        if function is None:
            function = _function(ast.parse(self.text, mode="eval").body, self._named)
            object.__setattr__(self, "_function", function)
        return bool(function(environment))

    def names(self) -> frozenset[str]:
        """Every name that the condition reads: settings, static names and named conditions."""
        return self._names

    def settings(self) -> frozenset[str]:
        """Every setting that the condition reads, also through named conditions."""
        return self._settings


def _names_in(tree: ast.expr) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def parse_condition(text: str, named: Mapping[str, Condition]) -> Condition:
    """Parse ``text``; ``named`` are the named conditions that it may use.

    Raises :class:`ValueError` with a sentence that says what is wrong with it.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = getattr(error, "msg", str(error))
        raise ValueError(f"condition {text!r} is not an expression ({reason})") from None
    try:
        _condition(tree, named)
    except ValueError as error:
        raise ValueError(f"condition {text!r}: {error}") from None
    names = _names_in(tree)
    through = (named[name].settings() for name in names & named.keys())
    return Condition(text, named, names, (names - named.keys()).union(*through))


def condition_of(
    document: Document,
    path: tuple[str | int, ...],
    row: Mapping[str, Any],
    named: Mapping[str, Condition],
    what: str = "",
) -> Condition:
    """The condition of the row at ``path``; :data:`ALWAYS` if it has none.

    Raises :class:`ackfsm.terms.SpecError` for one that cannot be parsed, which says ``what`` it is about.
    """
    if "when" not in row:
        return ALWAYS
    with document.at((*path, "when"), what):
        return parse_condition(str(row["when"]), named)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """The type of a name: the ``words`` that it may be compared with, beside true and false."""

    of: type
    optional: bool = False
    words: tuple[str, ...] = ()

    def admits(self, value: object) -> bool:
        if value is None:
            return self.optional
        if issubclass(self.of, StrEnum):
            return value in set(self.of)
        return type(value) is self.of or value in self.words

    def legal(self) -> str:
        if issubclass(self.of, StrEnum):
            return ", ".join(member.value for member in self.of)
        words = ", ".join(["True or False" if self.of is bool else "a whole number", *self.words])
        return f"{words} or None" if self.optional else words


def _condition(node: ast.expr, named: Mapping[str, Condition]) -> None:
    """Refuse expressions that are not boolean: conditions, true or false settings, and comparisons are."""
    match node:
        case ast.BoolOp():
            for part in node.values:
                _condition(part, named)
        case ast.UnaryOp(op=ast.Not()):
            _condition(node.operand, named)
        case ast.Compare():
            _comparison(node, named)
        case ast.Constant(value=True | False):
            pass
        case ast.Name() if _kind(node, named) == _Kind(bool):
            pass
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is neither true nor false")


def _comparison(node: ast.Compare, named: Mapping[str, Condition]) -> None:
    sides = [node.left, *node.comparators]
    for i, op in enumerate(node.ops):
        if isinstance(op, (ast.In, ast.NotIn)):
            _membership(sides[i], sides[i + 1], named)
        elif type(op) in _COMPARISONS:
            _relation(sides[i], sides[i + 1], named, ordered=not isinstance(op, (ast.Eq, ast.NotEq)))
        else:
            raise ValueError(f"{ast.unparse(node)!r} uses a comparison that tables do not have")


def _membership(left: ast.expr, right: ast.expr, named: Mapping[str, Condition]) -> None:
    if isinstance(right, ast.Name) and right.id == "faults":
        _admit(_Kind(terms.Fault), left)
    elif isinstance(right, ast.Tuple) and isinstance(left, ast.Name):
        for item in right.elts:
            _admit(_kind(left, named), item)
    else:
        raise ValueError("'in' wants a setting and a tuple of values, or a fault and 'faults'")


def _relation(left: ast.expr, right: ast.expr, named: Mapping[str, Condition], *, ordered: bool) -> None:
    names = [side for side in (left, right) if isinstance(side, ast.Name)]
    if not names:
        raise ValueError("a comparison needs the name of a setting")
    kind = _kind(names[0], named)
    if ordered and kind != _Kind(int):
        raise ValueError(f"{names[0].id} has no order; only numbers that are never None have one")
    for side in (left, right):
        if isinstance(side, ast.Name):
            if _kind(side, named) != kind:
                raise ValueError(f"{ast.unparse(left)} and {ast.unparse(right)} are not of one kind")
        else:
            _admit(kind, side)


def _admit(kind: _Kind, node: ast.expr) -> None:
    if not (isinstance(node, ast.Constant) and kind.admits(node.value)):
        raise ValueError(f"{ast.unparse(node)} is not one of {kind.legal()}")


def _kind(name: ast.Name, named: Mapping[str, Condition]) -> _Kind:
    if name.id in named:
        return _Kind(bool)
    if name.id in STATIC_NAMES:
        return _Kind(*STATIC_NAMES[name.id])
    if name.id == "profile":
        raise ValueError("a table reads settings, not the profile; give what the system does a setting of its own")
    try:
        kind = terms.key_type(name.id)
        words = [str(value) for value in terms.legal_values(name.id) if not isinstance(value, kind)]
        return _Kind(kind, terms.is_optional(name.id), tuple(words))
    except terms.InputError:
        raise ValueError(f"{name.id!r} is neither a setting nor a condition of conditions.yaml") from None


def _function(node: ast.expr, named: Mapping[str, Condition]) -> _Function:
    """What computes the value of ``node`` from the settings."""
    match node:
        case ast.Constant(value=value):
            return lambda _: value
        case ast.Name(id=name):
            return named[name].holds if name in named else operator.itemgetter(name)
        case ast.Tuple(elts=items):
            parts = [_function(item, named) for item in items]
            return lambda environment: tuple([part(environment) for part in parts])
        case ast.UnaryOp(operand=operand):
            inner = _function(operand, named)
            return lambda environment: not inner(environment)
        case ast.BoolOp(values=items):
            return _fold([_function(item, named) for item in items], until=isinstance(node.op, ast.Or))
        case ast.Compare():
            return _comparing(node, named)
    raise AssertionError(f"{ast.dump(node)} passed the check of parse_condition")


def _fold(parts: Sequence[_Function], *, until: bool) -> _Function:
    """``or`` (which ends at the first that is true) or ``and`` of ``parts``."""

    def fold(environment: Mapping[str, Any]) -> bool:
        for part in parts:
            if bool(part(environment)) is until:
                return until
        return not until

    return fold


def _comparing(node: ast.Compare, named: Mapping[str, Condition]) -> _Function:
    first, second, *others = (_function(side, named) for side in (node.left, *node.comparators))
    compare, *more = (_COMPARISONS[type(op)] for op in node.ops)
    if not others:
        return lambda environment: compare(first(environment), second(environment))

    def compared(environment: Mapping[str, Any]) -> bool:
        values = [side(environment) for side in (first, second, *others)]
        return all(one(values[i], values[i + 1]) for i, one in enumerate((compare, *more)))

    return compared


ALWAYS = Condition("True", {}, frozenset(), frozenset())
