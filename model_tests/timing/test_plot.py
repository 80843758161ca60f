"""Pictures of a sweep: which curves, in characters, as SVG and PNG."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ackfsm import cli
from ackfsm.rates.timing import Row, plan_cells
from ackfsm.showing.views.curves import Axis, Curve, Curves, label
from ackfsm.showing.views.plot import plotted
from ackfsm.showing.views.sweep_curves import curves_of
from ackfsm.showing.views.text_plot import text_plot
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.timing.test_sweep import grid

SWEEP = ["plan", "--profile", "solace", "--sweep", "rtt=0.1ms..100ms*10", "--sweep", "publish_window=1,100"]


def drawn(*swept: str, profile: str | None = None, **settings: str) -> Curves:
    found = grid(*swept, profile=profile, settings=settings)
    return curves_of(found, plan_cells(found, shipped(), range(len(found))))


def test_the_dimension_with_most_numbers_is_the_x_axis_and_the_others_are_the_curves() -> None:
    found = drawn("publish_window=1,10", "rtt=10ms,1ms,0.1ms", "profile=artemis,rabbitmq")
    assert found.x == Axis("round trip", "s", is_logarithmic=True)
    assert found.y == Axis("messages published a second", "", is_logarithmic=True)
    assert [curve.name for curve in found.curves] == [
        f"publish_window={window}, profile={profile}" for window in (1, 10) for profile in ("artemis", "rabbitmq")
    ]
    assert list(found.curves[0].xs) == [0.0001, 0.001, 0.01]
    by_window = drawn("publish_window=none,1,2,4,256", "rtt=1ms,2ms", profile="solace")
    assert by_window.x == Axis("publish window", "", is_logarithmic=False)
    assert list(by_window.curves[0].xs) == [1, 2, 4], "what is no number, or cannot be, has no place"


def test_the_side_that_the_sweep_changes_is_drawn() -> None:
    found = drawn("processing_time=1ms,2ms")
    assert found.y.name == "messages delivered a second"
    assert list(found.curves[0].high) == [800, pytest.approx(1 / (0.002 + 0.00025))], "its answer is waited for"
    assert found.curves[0].name == "delivered"
    unanswered = drawn("processing_time=1ms,2ms", block_on_acknowledge="false")
    assert list(unanswered.curves[0].high) == [1000, 500]


def test_where_only_bounds_are_known_both_are_there() -> None:
    (curve,) = drawn("sync_time=1ms,2ms", "producers=4").curves
    assert all(low < high for low, high in zip(curve.low, curve.high, strict=True))


@pytest.mark.parametrize(
    ("swept", "said"),
    [
        (["send_mode=blocking,asynchronous"], "no dimension of the sweep has two"),
        (["rtt=1ms"], "no dimension of the sweep has two"),
        (["rtt=1ms..10ms+1ms", "producers=1..9+1"], "would have 9 curves, and 8 can be told"),
    ],
)
def test_what_cannot_be_drawn_is_refused(swept: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        drawn(*swept)


def test_rates_without_a_bound_have_no_curve() -> None:
    rows = [Row(cell, {"rtt": value}) for cell, value in enumerate(("1ms", "2ms"))]
    with pytest.raises(InputError, match="nothing takes time"):
        curves_of(grid("rtt=1ms,2ms"), rows)


def test_numbers_have_three_digits_and_a_prefix() -> None:
    told = [label(*one) for one in ((89478.4, ""), (1e-4, "s"), (0.0, ""), (1000, ""), (999, "B"), (2.5e-9, "s"))]
    assert told == ["89.5 k", "100 µs", "0", "1 k", "999 B", "2.5 ns"]


def test_characters_show_the_curves() -> None:
    axes = Axis("x", "", is_logarithmic=False), Axis("y", "", is_logarithmic=False)
    curves = [Curve("up", (0, 10), (0, 13), (0, 13)), Curve("level", (0, 5, 10), (6, 6, 6), (6, 6, 6))]
    assert (
        text_plot(Curves(*axes, curves), 30).plain
        == """\
y
        13 |                 o
           |                o
           |              oo
           |             o
           |            o
           |          oo
         7 |         o
           |xxxxxxxxxxxxxxxxxx
           |      oo
           |     o
           |    o
           |  oo
           | o
         0 |o
           +------------------
            0        4.71   10
                             x
  o up
  x level"""
    )


def test_the_screen_of_a_terminal_has_the_plot_and_other_output_has_it_if_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(SWEEP) == 0
    assert "messages published a second" not in capsys.readouterr().out
    assert cli.main([*SWEEP, "--plot", "-"]) == 0
    screen = capsys.readouterr().out
    assert "messages published a second" in screen
    assert "  x publish_window=100" in screen
    assert max(map(len, screen.splitlines())) <= 80
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(SWEEP) == 0
    assert "messages published a second" in capsys.readouterr().out
    assert cli.main(["plan", "--sweep", "send_mode=blocking,asynchronous"]) == 0, (
        "a plot that cannot be is not asked for"
    )


def test_the_same_curves_are_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        assert cli.main([*SWEEP, "--plot", str(tmp_path / name)]) == 0
        assert f"{tmp_path / name} written" in capsys.readouterr().out
    svg = (tmp_path / "a.svg").read_bytes()
    assert svg == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    words = {"".join(text.itertext()).strip() for text in ET.fromstring(svg).iter() if text.tag.endswith("text")}  # noqa: S314 - our own
    assert {"round trip", "messages published a second", "publish_window=1", "publish_window=100", "1 ms"} <= words


def test_a_band_is_drawn_where_only_bounds_are_known() -> None:
    exact, bounds = drawn("rtt=1ms,2ms"), drawn("sync_time=1ms,2ms", "producers=4")
    assert b"fill-opacity" not in plotted(exact, "svg")
    assert b"fill-opacity" in plotted(bounds, "svg")


def test_the_settings_of_the_user_change_nothing() -> None:
    import matplotlib as mpl

    before = plotted(drawn("rtt=1ms,2ms"), "svg")
    with mpl.rc_context({"lines.linewidth": 9, "font.size": 30}):
        assert plotted(drawn("rtt=1ms,2ms"), "svg") == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plot", "x.txt"], "--plot x.txt ends with neither .svg nor .png"),
        (["--plot", "no/such/x.svg"], "cannot be written"),
        (["--plot", "-", "--json"], "--plot - draws on the screen"),
    ],
)
def test_a_picture_that_cannot_be_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert cli.main([*SWEEP, *words]) == 2
    assert said in capsys.readouterr().err


def test_without_matplotlib_it_is_told_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main([*SWEEP, "--plot", str(tmp_path / "x.svg")]) == 2
    assert "needs the Python package matplotlib; install it with pip install 'ackfsm[plot]'" in capsys.readouterr().err
