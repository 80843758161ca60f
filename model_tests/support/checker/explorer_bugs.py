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

from ackfsm.checking.explore.search import kernel, layout
from ackfsm.checking.explore.search.search import Search


@dataclasses.dataclass(frozen=True)
class Bug:
    """In the function ``name`` of ``owner`` the text ``old`` reads ``new``.

    ``seed`` is that of a drawn network (``drawn_networks.py``) that shows it; ``told`` that of one in which a search
    itself notices it, ``None`` if it does not: it breaks down, or a way is not the shortest.  ``divided`` says
    that a level has to be divided among processors.
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
        "deltas stay where they were when a state has fewer words",
        *(Search, "_change_layout"),
        *("if layout.words != before.words:  #", "if layout.words > before.words:  #"),
        seed=12,
        told=28,
    ),
    Bug(
        "buffers stay as they are for states of more words",
        *(Search, "_change_layout"),
        *('!= before.words and hasattr(self, "buffers")', '< before.words and hasattr(self, "buffers")'),
        seed=120,
        told=None,
    ),
    Bug(
        "a component has more local states than its bits can number",
        *(kernel, "is_full"),
        *("> layout.mask[component]", "> 2 * layout.mask[component] + 1"),
        seed=4,
        told=4,
    ),
    Bug(
        "what a state is repacked from goes to its old place",
        *(kernel, "repack"),
        *("<< new.shift[c]", "<< old.shift[c]"),
        seed=0,
        told=4,
    ),
    Bug(
        "states that agree in their first word are taken for one",
        *(kernel, "insert_visited"),
        *(
            "for w in range(words):\n                            differs |=",
            "for w in range(1):\n                            differs |=",
        ),
        seed=38,
        told=13,
    ),
    Bug(
        "local states that agree in their first word are taken for one",
        *(kernel, "intern"),
        *(
            "for w in range(words):\n            if interned.machines[other",
            "for w in range(1):\n            if interned.machines[other",
        ),
        seed=2,
        told=35,
    ),
    Bug(
        "what is refused is looked up in the first mask for all",
        *(kernel, "look_up_block"),
        *("&= interned.head[head + HEAD + m]", "&= interned.head[head + HEAD]"),
        seed=8,
        told=10,
    ),
    Bug(
        "what a system at rest waits for is looked up in the first mask alone",
        *(kernel, "enumerate_enabled"),
        *("busy |= enabled & system.must[m]", "busy |= enabled & system.must[m] * (m == 0)"),
        seed=167,
        told=167,
    ),
    Bug(
        "an event that moves several components moves the first of them",
        *(kernel, "compute_successors"),
        *("word += interned.delta[at + 1]\n", "word += interned.delta[at + 1] * (i == begin)\n"),
        seed=0,
        told=3,
    ),
    Bug(
        "events that cannot come before another are not taken after it",
        *(layout, "awake_events"),
        *("[(a | b) & c for", "[b & c for"),
        seed=0,
        told=0,
    ),
    Bug(
        "an event is spared that another one does not absorb",
        *(layout, "awake_events"),
        *("not_absorbing |= outside", "not_absorbing |= 0"),
        seed=5,
        told=5,
    ),
    Bug(
        "the first state spares events",
        *(layout, "_awake_masks"),
        *("for events in awake:", "for events in [*awake[:-1], awake[-2]]:"),
        seed=0,
        told=0,
    ),
    Bug(
        "a lane that has no room does not end those after it",
        *(Search, "_expand_lanes"),
        *("if expanded < stop:", "if expanded < 0:"),
        seed=0,
        told=0,
        divided=True,
    ),
    Bug(
        "the states that wait in a lane are left",
        *(Search, "_expand_lanes"),
        *("self._expand_waiting(lanes - 1)", "self._expand_waiting(lanes - 1) if lanes == 1 else EMPTY"),
        seed=0,
        told=0,
        divided=True,
    ),
    Bug(
        "lanes append their states where the one before them does",
        *(Search, "_insert"),
        *("lane, ends[lane], *queue", "lane, ends[0], *queue"),
        seed=0,
        told=0,
        divided=True,
    ),
)
