"""The colours of the pages: those of the reports, and readable."""

import re
from importlib.resources import files

import pytest

from comes.report.plots import ANSWER_COLOURS, css_name

CSS = files("comes.annotate").joinpath("web/static/annotate.css").read_text(encoding="utf-8")
LIGHT, DARK = (
    dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root \{([^}]*)\}", CSS)
)


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("colours", "k"), [(LIGHT, 0), (DARK, 1)], ids=["light", "dark"])
def test_an_answer_has_the_colour_that_it_has_in_reports(colours: dict[str, str], k: int) -> None:
    expected = {css_name(answer): pair[k] for answer, pair in ANSWER_COLOURS.items()}
    assert {name: colours[name] for name in expected} == expected


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_the_focus_stand_out(colours: dict[str, str]) -> None:
    for name in ("--yes", "--no", "--maybe", "--not-asked", "--mark", "--bar", "--faint", "--ink"):
        assert contrast(colours[name], colours["--ground"]) >= 4.5, name
    for name in ("--yes", "--no", "--maybe", "--bar"):  # under text
        assert contrast(colours[name], colours["--on"]) >= 4.5, name
    assert contrast(colours["--mark"], colours["--alarm"]) >= 4.5
    assert contrast(colours["--faint"], colours["--shade"]) >= 4.5
    assert contrast(colours["--bar"], colours["--shade"]) >= 3  # the focus


def test_errors_and_the_focus_have_colours_of_their_own() -> None:
    for colours in (LIGHT, DARK):
        assert colours["--mark"] not in [colours[css_name(answer)] for answer in ANSWER_COLOURS]
    (focus,) = re.findall(r":focus-visible \{ outline: 3px solid var\((--[\w-]+)\)", CSS)
    assert focus == "--bar"
