"""``--plot``: curves in a file, or in characters on the screen."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from ackfsm.cli._output import console
from ackfsm.support.files import check_place
from ackfsm.terms import InputError
from ackfsm.text import shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ackfsm.showing.views.curves import Curves

_SCREEN: Final = "-"
_WIDEST: Final = 80


def check_plot(arguments: argparse.Namespace) -> None:
    """Raise :class:`InputError` for a ``--plot`` that cannot be drawn, before anything is computed."""
    if arguments.plot is None:
        return
    if arguments.plot == _SCREEN:
        if arguments.json:
            raise InputError(
                "--plot - draws on the screen; name a file that ends with .svg or .png, or leave --json out"
            )
        return
    path = Path(arguments.plot)
    if path.suffix not in {".svg", ".png"}:
        raise InputError(f"--plot {shown(arguments.plot)} ends with neither .svg nor .png; name a file that does, or -")
    importlib.import_module("matplotlib")
    check_place(path)


def plot_files(arguments: argparse.Namespace, curves: Curves | None) -> dict[Path, bytes]:
    """The picture of ``curves`` that is asked for, by its file; none where it is for the screen."""
    if curves is None or arguments.plot in {None, _SCREEN}:
        return {}
    from ackfsm.showing.views.plot import plotted

    path = Path(arguments.plot)
    return {path: plotted(curves, path.suffix[1:])}


def plot_on_screen(arguments: argparse.Namespace, curves_of: Callable[[], Curves]) -> Iterator[RenderableType]:
    """The plot in characters, where it is asked for, or can be shown on a terminal."""
    asked, screen = arguments.plot == _SCREEN, console()
    if not asked and not screen.is_terminal:
        return
    from ackfsm.showing.views.text_plot import text_plot

    try:
        curves = curves_of()
    except InputError:
        if asked:
            raise
        return
    yield Text()
    yield text_plot(curves, min(screen.width, _WIDEST))
