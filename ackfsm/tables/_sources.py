"""Check the sources that tables cite: each begins with a tag of ``spec/sources.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ackfsm.tables._source import Document

_Path: TypeAlias = tuple[str | int, ...]


def check_sources(documents: Iterable[Document], sources: Mapping[str, str]) -> set[str]:
    """The tags of ``sources`` that ``documents`` cite.

    Raises :class:`SpecError` naming file and line of a source that begins with no tag.
    """
    tags = sorted(sources, key=len, reverse=True)
    cited = dict[str, str]()  # most sources are cited again and again
    for document, path, text in _cited(documents):
        for part in (part.strip() for part in text.split(";")):
            if part in cited:
                continue
            tag = next((tag for tag in tags if part == tag or part.startswith(f"{tag} ")), None)
            if tag is None:
                raise document.error(path, f"source {part!r} begins with no tag of sources.yaml; add the tag")
            cited[part] = tag
    return set(cited.values())


def _cited(documents: Iterable[Document]) -> Iterator[tuple[Document, _Path, str]]:
    for document in documents:
        yield from ((document, path, text) for path, text in texts_under(document.data, "source"))


def texts_under(data: Any, key: str, path: tuple[str | int, ...] = ()) -> Iterator[tuple[_Path, str]]:
    """Each text under ``key``, however deep it is in ``data``, with its path."""
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in steps:
        if step == key and isinstance(value, str):
            yield (*path, step), value
        else:
            yield from texts_under(value, key, (*path, step))
