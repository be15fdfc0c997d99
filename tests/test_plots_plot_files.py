"""Plots as files: whole or not at all, the same bytes, on white ground, text as text."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from comes.answers import Answers
from comes.errors import ComesError
from comes.plots import as_svg, check_plot_name, plot_answers, save_plot

NAMES = ["$\\frac{$", "_hidden", "<b>&", "plain"]
ANSWERS = Answers(no=np.eye(4), yes=np.eye(4)[::-1], label_names=NAMES)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_plot_gives_the_same_bytes(tmp_path: Path, ending: str) -> None:
    paths = [save_plot(plot_answers(ANSWERS), tmp_path / f"{k}.{ending}") for k in (1, 2)]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == paths  # nothing else is left


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
