"""Bugs to be seeded into the explorer: one line of its code reads differently.

A :class:`Bug` is planted for a while in a function of the kernel, or in what drives it.  Compiled code is made from the
functions as they are in their files, so a bug in the kernel shows in plain Python alone; one in what drives the kernel
shows in both.
"""

from __future__ import annotations
import __future__

import contextlib
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest

from ackfsm.explore.search import kernel, layout
from ackfsm.explore.search.search import Search

__all__ = ["BUGS", "Bug"]


@dataclasses.dataclass(frozen=True)
class Bug:
    """In the function ``name`` of ``owner`` the text ``old`` reads ``new``.

    ``seed`` is that of a drawn network (:mod:`model_tests.shapes`) that shows it; ``told`` that of one in which a
    search itself notices it, ``None`` if it does not: it breaks down, or a way is not the shortest.  ``divided`` says
    that states have to be divided into shards.
    """

    what: str
    owner: Any
    name: str
    old: str
    new: str
    seed: int
    told: int | None
    divided: bool = False

    def __str__(self) -> str:
        return self.what

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """The explorer has the bug."""
        function = getattr(self.owner, self.name)
        text = textwrap.dedent(inspect.getsource(function))
        if text.count(self.old) != 1:
            raise AssertionError(f"{self.old!r} stands {text.count(self.old)} times in {self.name}")
        code = compile(
            text.replace(self.old, self.new), f"<{self.what}>", "exec", flags=__future__.annotations.compiler_flag
        )
        made: dict[str, Any] = {}
        exec(code, function.__globals__, made)  # noqa: S102 - our own text, changed in one place
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.owner, self.name, made[self.name])
            yield


BUGS = (
    Bug(
        "steps stay where they were when a state has fewer words",
        *(Search, "_lay_out"),
        *("if layout.words != before.words:  #", "if layout.words > before.words:  #"),
        seed=12,
        told=28,
    ),
    Bug(
        "boxes are not made anew for states of more words",
        *(Search, "_lay_out"),
        *('!= before.words and hasattr(self, "boxes")', '< before.words and hasattr(self, "boxes")'),
        seed=38,
        told=None,
    ),
    Bug(
        "a component has more local states than its bits can number",
        *(kernel, "crowded"),
        *("> layout.mask[component]", "> 2 * layout.mask[component] + 1"),
        seed=4,
        told=4,
    ),
    Bug(
        "what a state is laid out anew from goes to its old place",
        *(kernel, "widened"),
        *("<< new.shift[c]", "<< old.shift[c]"),
        seed=0,
        told=4,
    ),
    Bug(
        "the key of a step forgets where it came from",
        *(kernel, "describe_step"),
        *(" ^ rows.head[row * system.head + KEY]", ""),
        seed=0,
        told=0,
    ),
    Bug(
        "states that agree in their first word are taken for one",
        *(kernel, "insert"),
        *(
            "for w in range(words):\n                    differs |=",
            "for w in range(1):\n                    differs |=",
        ),
        seed=12,
        told=12,
    ),
    Bug(
        "local states that agree in their first word are taken for one",
        *(kernel, "entered"),
        *(
            "for w in range(words):\n            if rows.local[other",
            "for w in range(1):\n            if rows.local[other",
        ),
        seed=2,
        told=49,
    ),
    Bug(
        "what is refused is looked up in the first mask for all",
        *(kernel, "look_up"),
        *("&= rows.head[row + HEAD + m]", "&= rows.head[row + HEAD]"),
        seed=8,
        told=10,
    ),
    Bug(
        "what a system at rest waits for is looked up in the first mask alone",
        *(kernel, "listed"),
        *("busy |= able & system.must[m]", "busy |= able & system.must[m] * (m == 0)"),
        seed=167,
        told=167,
    ),
    Bug(
        "an event that moves several components moves the first of them",
        *(kernel, "steps"),
        *("word += rows.step[at + 1]\n", "word += rows.step[at + 1] * (i == begin)\n"),
        seed=0,
        told=3,
    ),
    Bug(
        "events that cannot come before another are not taken after it",
        *(layout, "worth_taking"),
        *("[(a | b) & c for", "[b & c for"),
        seed=0,
        told=0,
    ),
    Bug(
        "an event is spared that another one does not absorb",
        *(layout, "worth_taking"),
        *("not_absorbing |= outside", "not_absorbing |= 0"),
        seed=5,
        told=5,
    ),
    Bug(
        "the first state spares events",
        *(layout, "_worth"),
        *("for events in worth:", "for events in [*worth[:-1], worth[-2]]:"),
        seed=0,
        told=0,
    ),
    Bug(
        "shards forget the parents",
        *(Search, "_divide"),
        *("shard.parent[: len(place)] = parents[place]", "shard.parent[: len(place)] = 0"),
        seed=0,
        told=0,
        divided=True,
    ),
    Bug(
        "shards keep the parents' numbers as they were",
        *(Search, "_divide"),
        *("(number * self.pace.shards + owner)[whole.parent[:count]]", "whole.parent[:count]"),
        seed=0,
        told=0,
        divided=True,
    ),
    Bug(
        "shards take all that they have for expanded",
        *(Search, "_divide"),
        *("np.count_nonzero(place < whole.expanded)", "len(place)"),
        seed=0,
        told=0,
        divided=True,
    ),
    Bug(
        "the nearest state of an anomaly is replaced by a later one",
        *(Search, "_note"),
        *("place < nearest", "place > nearest"),
        seed=0,
        told=None,
        divided=True,
    ),
)
