"""Words that command lines, histories and calls are made of: right ones, and now and then a wrong one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from hypothesis import strategies as st

from ackfsm.terms import Configuration, key_type

__all__ = ["FLAGS", "JUNK", "KEYS", "NUMBERS", "mostly", "values"]

JUNK = (
    *("", " ", "-", "--", "x", "0", "-1", "1.5", "any", "none", "²", "٣", "9" * 30, "1e9", "true", "NaN"),
    *("a=b", "=", "==", "a=", "=b", "\n", "\x1b[2J", "\u202e", "\udcff", "*", "../..", "/", ".", "x" * 300, "é", "💥"),
    *("{}", "[bold]x[/bold]", "'", '"'),
)
"""What is no word of the vocabulary, or one at the wrong place."""

KEYS = tuple(field.name for field in dataclasses.fields(Configuration))
FLAGS = ("true", "false")
NUMBERS = ("0", "1", "2", "3", "10")


def values(key: str) -> tuple[str, ...]:
    """Right values of a setting."""
    kind = key_type(key)
    if kind is bool:
        return FLAGS
    return NUMBERS if kind is int else tuple(kind)  # type: ignore[arg-type]


def mostly(right: Sequence[str]) -> st.SearchStrategy[str]:
    """A right word, now and then a wrong one."""
    return st.integers(0, 29).flatmap(
        lambda n: st.sampled_from(right) if n else st.one_of(st.sampled_from(JUNK), _argument())
    )


def _argument() -> st.SearchStrategy[str]:
    """Any text that the system lets through as an argument."""
    return st.text(st.characters(exclude_characters="\0"), max_size=12)
