"""Loops that Numba compiles when they are first called: loading Numba and its cache takes half a second."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class compiled:  # noqa: N801 - it is a decorator
    """A function that is compiled when it is first called, with the functions that it calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """What ``function`` returns."""
        return self.made(*arguments)

    @functools.cached_property
    def made(self) -> Any:
        """The function as Numba has it."""
        from ackfsm.support.numba_cache import compiled as compile_now

        names = self.function.__globals__
        called = {name: names[name] for name in self.function.__code__.co_names if name in names}
        return compile_now(self.function, {name: one.made for name, one in called.items() if isinstance(one, compiled)})
