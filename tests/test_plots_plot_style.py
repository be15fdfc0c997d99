"""The style of plots: what can be told apart on light and dark ground, in grey, and in names."""

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import comes.plots
from comes.answers import Answers
from comes.plots import COLOURS, Look, plot_answers
from comes.plots.plot_style import FEW, LONGEST_NAME, MARKERS, shorten_name

GROUNDS = {"light": "#ffffff", "dark": "#15171c"}
# Linear RGB as seen without the cones for green or red (Machado and others, 2009).
VISIONS = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


def linear(colour: str) -> npt.NDArray[np.float64]:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(rgb: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=list(GROUNDS))
def test_colours_stand_out_from_the_ground(ground: str) -> None:
    for colour in COLOURS:
        light, dark = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, colour


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_stand_out_from_each_other(vision: str) -> None:
    seen = [lab(np.array(VISIONS[vision]) @ linear(colour)) for colour in COLOURS]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 20


def test_every_method_has_a_look_of_its_own() -> None:
    look = Look([f"method {k}" for k in range(40)])
    looks = {tuple(look(f"method {k}").items()) for k in range(40)}
    assert len(looks) == 40
    assert len(MARKERS) == len(set(MARKERS)) == len(COLOURS)


def test_what_is_no_method_has_colours_and_markers_of_its_own() -> None:
    assert len(set(FEW)) == len({colour for colour, _ in FEW}) == len({m for _, m in FEW})
    assert {colour for colour, _ in FEW} <= set(COLOURS)


def test_long_names_keep_their_beginning_and_end() -> None:
    names = [f"a disease of which there are many, of the {k} kind" for k in ("first", "second")]
    short = [shorten_name(name) for name in names]
    assert [len(name) for name in short] == [LONGEST_NAME] * 2
    assert short[0] != short[1]
    assert short[0].startswith("a disease") and short[0].endswith("first kind")
    assert shorten_name("two\nlines") == "two lines"


def test_axes_of_the_caller_are_drawn_on_and_keep_their_style() -> None:
    mine = Figure().add_subplot()
    mine.xaxis.label.set_color("#ff0000")
    answers = Answers(no=[[1]], yes=[[0]])
    assert plot_answers(answers, [0.3], axes=mine) is mine
    assert mine.lines[-1].get_color() == "#ff0000"  # the ink of the caller
    own = plot_answers(answers)
    assert own.figure is not mine.figure


def test_no_plot_has_a_state_that_others_share() -> None:
    """Pyplot keeps figures open, and may ask for a window."""
    for path in Path(comes.plots.__file__).parent.glob("*.py"):
        assert "import pyplot" not in (text := path.read_text(encoding="utf-8"))
        assert "matplotlib.pyplot" not in text
