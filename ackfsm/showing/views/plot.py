"""Curves as SVG or PNG, by Matplotlib, which is the extra ``plot``; the same curves are the same bytes."""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING, Any, Final

from ackfsm.showing.views.curves import Axis, Curves, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES: Final = (7.2, 4.5)
_DPI: Final = 150
_MARKS: Final = "osD^vP*X"

_COLOURS: Final = ("0072B2", "D55E00", "009E73", "CC79A7", "56B4E9", "E69F00", "000000", "777777")
"""Those of Okabe and Ito, which people tell apart who do not see all colours."""

_LOOK: Final[dict[Any, Any]] = {
    "axes.prop_cycle": f"cycler('color', {list(_COLOURS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "svg.fonttype": "none",  # text stays text, which can be read, searched and copied
    "svg.hashsalt": "ackfsm",  # ids are otherwise random
}


def plotted(curves: Curves, form: str) -> bytes:
    """A picture in ``form``, ``svg`` or ``png``.  Raises :class:`ModuleNotFoundError` without Matplotlib."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells where it keeps what it knows of fonts
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()  # whatever a matplotlibrc says
        mpl.rcParams.update(_LOOK)
        figure = Figure(_INCHES, layout="constrained")
        axes = figure.add_subplot()
        style: dict[str, Any] = {"linestyle": "none", "alpha": 0.7} if curves.dots else {}
        for mark, curve in zip(_MARKS, curves.curves, strict=False):
            (line,) = axes.plot(curve.xs, curve.high, marker=mark, markersize=4, label=curve.name, **style)
            if curve.low != curve.high:
                axes.fill_between(curve.xs, curve.low, curve.high, color=line.get_color(), alpha=0.2, linewidth=0)
        _guide(axes, curves)
        _dress(axes, curves)
        out = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=_DPI, metadata=metadata)
    return out.getvalue()


def _guide(axes: Axes, curves: Curves) -> None:
    xs = [x for curve in curves.curves for x in curve.xs]
    for part in curves.guides:
        ends = min(xs), max(xs)
        axes.plot(ends, [x * part for x in ends], color="0.3" if part == 1 else "0.7", linewidth=0.8, zorder=1)


def _dress(axes: Axes, curves: Curves) -> None:
    for name, axis in (("x", curves.x), ("y", curves.y)):
        _scale(axes, name, axis)
    axes.set_xlabel(curves.x.name)
    axes.set_ylabel(curves.y.name)
    axes.grid(which="major", color="0.85")
    if len(curves.curves) > 1:
        axes.legend(frameon=False)


def _scale(axes: Axes, name: str, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    of = axes.xaxis if name == "x" else axes.yaxis
    if axis.is_logarithmic:
        axes.set(**{f"{name}scale": "log"})
        of.set_minor_formatter(NullFormatter())
    elif name == "y":
        axes.set_ylim(bottom=0)
    of.set_major_formatter(FuncFormatter(lambda number, _: label(number, axis.unit)))
