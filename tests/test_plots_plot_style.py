"""The style of plots, what can be told apart and how; and plots as files, whole or not at all."""

import itertools
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

import comes.report
from comes.answers import Answers
from comes.errors import ComesError
from comes.report.plots import (
    ANSWER_COLOURS,
    COLOURS,
    FEW,
    LONGEST_NAME,
    MARKERS,
    Look,
    as_svg,
    check_plot_name,
    css_colours,
    plot_answers,
    save_plot,
    shorten_name,
)

NAMES = ["$\\frac{$", "_hidden", "<b>&", "plain"]
ANSWERS = Answers(no=np.eye(4), yes=np.eye(4)[::-1], label_names=NAMES)

GROUNDS = ("#ffffff", "#15171c")
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


def test_colours_stand_out_from_light_and_dark_ground() -> None:
    for colour, ground in itertools.product(COLOURS, GROUNDS):
        light, dark = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, (colour, ground)


def test_colours_stand_out_from_each_other_for_all_eyes() -> None:
    for vision, matrix in VISIONS.items():
        seen = {colour: lab(np.array(matrix) @ linear(colour)) for colour in COLOURS}
        for one, other in itertools.combinations(COLOURS, 2):
            assert np.linalg.norm(seen[one] - seen[other]) > 20, (vision, one, other)


def test_answers_can_be_told_apart_and_read_on_light_and_dark_ground() -> None:
    for ground, colours in zip(GROUNDS, zip(*ANSWER_COLOURS.values(), strict=True), strict=True):
        for colour in colours:
            light, dark = sorted([luminance(colour), luminance(ground)], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (colour, ground)  # as text
        for vision, matrix in VISIONS.items():
            for one, other in itertools.combinations(colours, 2):
                seen = [lab(np.array(matrix) @ linear(colour)) for colour in (one, other)]
                assert np.linalg.norm(seen[0] - seen[1]) > 20, (vision, one, other)


def test_answers_have_one_colour_in_every_plot_and_page() -> None:
    svg = as_svg(plot_answers(ANSWERS), "answers")
    for css in css_colours():
        names = re.findall(r"(--[a-z-]+): #", css)
        assert names == ["--yes", "--no", "--maybe", "--not-asked"]
        assert all(f"var({name})" in svg for name in names)
    folder = Path(comes.report.__file__).parent
    for path in folder.glob("*.jinja"):  # colours come from Python alone
        assert not re.search(r"--(yes|no|maybe|not-asked):", path.read_text(encoding="utf-8"))
    hexes = {colour for pair in ANSWER_COLOURS.values() for colour in pair}
    assert not hexes & set(COLOURS)


def test_every_method_has_a_look_of_its_own() -> None:
    look = Look([f"method {k}" for k in range(40)])
    looks = {tuple(look(f"method {k}").items()) for k in range(40)}
    assert len(looks) == 40
    assert len(MARKERS) == len(set(MARKERS)) == len(COLOURS)
    # What is no method has colours and markers of its own.
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


def test_plots_do_not_import_pyplot() -> None:
    """Pyplot keeps figures open, and may ask for a window."""
    for path in Path(comes.report.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pyplot" not in text and "matplotlib.pyplot" not in text, path.name


@pytest.mark.long
def test_the_same_plot_gives_the_same_bytes(tmp_path: Path) -> None:
    for ending in ("svg", "pdf", "png"):
        folder = tmp_path / ending
        folder.mkdir()
        paths = [save_plot(plot_answers(ANSWERS), folder / f"{k}.{ending}") for k in (1, 2)]
        assert paths[0].read_bytes() == paths[1].read_bytes(), ending
        assert sorted(folder.iterdir()) == paths  # nothing else is left


def test_the_ground_is_white_unless_it_is_left_out(tmp_path: Path) -> None:
    for transparent, corner in ((False, (255, 255, 255, 255)), (True, (255, 255, 255, 0))):
        path = save_plot(plot_answers(ANSWERS), tmp_path / "a.png", transparent=transparent)
        assert Image.open(path).convert("RGBA").getpixel((1, 1)) == corner


def test_names_are_text_that_is_shown_as_it_is(tmp_path: Path) -> None:
    text = save_plot(plot_answers(ANSWERS), tmp_path / "a.svg").read_text(encoding="utf-8")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert {"$\\frac{$", "&lt;b&gt;&amp;", "plain", "not asked"} <= set(shown)
    assert "_hidden" in [name.strip() for name in shown]


def test_a_plot_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    path.write_text("before")
    axes = plot_answers(ANSWERS)
    axes.set_xlabel(r"$\frac{$")  # which matplotlib cannot draw
    with pytest.raises(ValueError, match="ParseException|Expected"):
        save_plot(axes, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_ids_in_a_page_are_unique() -> None:
    svgs = [as_svg(plot_answers(ANSWERS), name) for name in ("one", "two")]
    first, second = (set(re.findall(r' id="([^"]+)"', svg)) for svg in svgs)
    assert first and not first & second
    for svg in svgs:
        assert set(re.findall(r"(?:url\(|href=\")#([^\")]+)", svg)) <= first | second
        assert "#ffffff" not in svg  # the ground is that of the page


def test_a_plot_has_one_of_three_endings(tmp_path: Path) -> None:
    for name in ("a.png", "a.PDF", "a.svg"):
        check_plot_name(name)
    with pytest.raises(ComesError, match=r"plot should end in .png, .pdf or .svg; got no ending"):
        check_plot_name(Path("plot"))
    with pytest.raises(ComesError, match=r"a.txt should end in"):
        save_plot(plot_answers(ANSWERS), tmp_path / "a.txt")
