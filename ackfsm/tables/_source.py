"""Read a YAML table so that every value knows its file and line, and check it against the schema."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from ackfsm.terms import InputError, SpecError

if TYPE_CHECKING:
    import jsonschema

_Path: TypeAlias = tuple[str | int, ...]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_DEEPEST = 50
"""The limit of nesting; the tables need no more than 10 levels."""

_MOST_VALUES = 200_000
"""The limit of values in one file, aliases expanded; the largest table has some thousands."""

_HARMLESS = 1_000
"""Up to this possible depth a text is parsed without counting it first; libyaml needs stack for each level."""


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """One YAML file: its data, and the line of every value by its path.

    ``name`` is how the file is called in the places of rows (``spec/machines/broker.yaml``).
    """

    file: Path
    name: str
    data: Any
    lines: dict[_Path, int]

    def line(self, path: _Path) -> int:
        """The 1-based line of the value at ``path``, or of its nearest ancestor."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: _Path, sentence: str) -> SpecError:
        """A :class:`SpecError` that names this file and the line of ``path``."""
        return SpecError(f"{self.file}:{self.line(path)}: {sentence}")

    @contextlib.contextmanager
    def at(self, path: _Path, what: str = "") -> Iterator[None]:
        """Have what is wrong with a value say this file and the line of ``path``, and ``what`` it is about."""
        try:
            yield
        except (InputError, ValueError) as error:
            raise self.error(path, f"{what}{error}") from None


def read_document(file: Path, name: str, schema: dict[str, Any] | None) -> Document:
    """Read ``file`` and validate it against ``schema`` (JSON Schema 2020-12), unless that is ``None``.

    Raises :class:`SpecError` naming file, line and what is expected there.
    """
    try:
        text = file.read_text(encoding="utf-8")
        _refuse_depth(file, text)
        node = yaml.compose(text, Loader=_LOADER)
    except OSError as error:
        raise SpecError(f"{file}: cannot be read ({error.strerror}); restore the file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _not_yaml(file, error) from None
    if node is None:
        raise SpecError(f"{file}:1: the table is empty; restore the file")
    reader = _Reader(file)
    document = Document(file, name, reader.plain(node), reader.lines)
    if schema is not None:
        _validate(document, schema)
    return document


def _refuse_depth(file: Path, text: str) -> None:
    """Raise :class:`SpecError` for a text that is nested so deeply that composing it would exhaust the stack."""
    opening = text.count("[") + text.count("{")
    if opening + max(map(len, text.splitlines()), default=0) <= _HARMLESS:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _too_deep(file, event.start_mark.line + 1 if event.start_mark else 1)


def _too_deep(file: Path, line: int) -> SpecError:
    return SpecError(f"{file}:{line}: values are more than {_DEEPEST} deep inside each other; write a flatter table")


def _not_yaml(file: Path, error: Exception) -> SpecError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = mark.line if mark else file.read_bytes()[: _offset(error)].count(b"\n")
    return SpecError(f"{file}:{line + 1}: not YAML: {problem}; correct the line")


def _offset(error: Exception) -> int:
    """Where a character stands that no YAML has, in bytes."""
    return error.start if isinstance(error, UnicodeDecodeError) else getattr(error, "position", None) or 0


class _Reader:
    """Turns the nodes of one file into plain data and remembers the line of each."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[_Path, int] = {}
        self._inside: list[yaml.Node] = []
        self._scalars = yaml.constructor.SafeConstructor()

    def plain(self, node: yaml.Node, path: _Path = ()) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(self._inside) > _DEEPEST:
            raise _too_deep(self.file, node.start_mark.line + 1)
        if len(self.lines) > _MOST_VALUES:
            raise SpecError(f"{self.file}: it has more than {_MOST_VALUES:,} values, aliases counted; write fewer")
        if any(node is outer for outer in self._inside):
            raise SpecError(f"{self.file}:{node.start_mark.line + 1}: this contains itself; write out what is meant")
        self._inside.append(node)
        plain = self._of(node, path)
        self._inside.pop()
        return plain

    def _of(self, node: yaml.Node, path: _Path) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            line, tag = node.start_mark.line + 1, node.tag.removeprefix("tag:yaml.org,2002:")
            raise SpecError(f"{self.file}:{line}: {node.value!r} is no {tag}; put it in quotes") from None

    def _mapping(self, node: yaml.MappingNode, path: _Path) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in plain:
                raise SpecError(f"{self.file}:{line}: {key!r} stands twice in one mapping; keep one of them")
            self.lines[(*path, key)] = line
            plain[key] = self.plain(value_node, (*path, key))
        return plain


def _validate(document: Document, schema: dict[str, Any]) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    error = jsonschema.exceptions.best_match(validator.iter_errors(document.data))
    if error is not None:
        raise document.error((*error.absolute_path, *_unexpected(error)), _sentence(error))


def _unexpected(error: jsonschema.ValidationError) -> list[str]:
    """The unknown key, if that is the error."""
    if error.validator != "additionalProperties" or not isinstance(error.schema, dict):
        return []
    known = error.schema.get("properties", {})
    return [key for key in error.instance if key not in known][:1] if isinstance(error.instance, dict) else []


def _sentence(error: jsonschema.ValidationError) -> str:
    where = "/".join(str(step) for step in error.absolute_path) or "the file"
    message = error.message.replace(repr(error.instance), "this") if isinstance(error.instance, dict) else error.message
    return f"{where}: {message}; see spec/schema.json for the form"
