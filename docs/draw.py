"""Draw the plots of the documents from committed results, or by their own code.

    python docs/draw.py    # writes voc2012.svg, trust.svg and plot-*.svg in docs/images

The text of the plots stays text, and the same results give the same files.
"""

import re
import shutil
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from comes.report import plots
from result_tables import ROOT, read_experiment, stored

IMAGES = ROOT / "docs" / "images"
INK = "#7a7a7a"  # readable on light and on dark ground
STYLE: Any = {key: INK if value == plots.INK else value for key, value in plots.STYLE.items()} | {
    "svg.hashsalt": "comes",
    "font.size": 10,
}
LEARNED, NAIVE = "#239cda", "#7d9998"
CASES = {"a": "candidates, case a", "b": "candidates, case b", "answers": "answers to a tenth"}
MARKERS = {"a": "o", "b": "s", "answers": "^"}
COLOURS = {"a": "#239cda", "b": "#d55e00", "answers": "#4b6795"}


def main() -> None:
    """Write all plots."""
    draw_bars()
    draw_trust()
    draw_guide()


def bars() -> list[tuple[str, float, str]]:
    """Return what is compared on VOC2012: title, mAP and colour."""
    found = {
        (result.names.method, result.names.data): result.values("mean_average_precision").mean()
        for name in ("images-views", "images-clean")
        for result in read_experiment(name)
    }
    case_a, said = "VOC2012, case a", "VOC2012, answers"
    return [
        ("candidates, BCE", found["bce, pooled", case_a], NAIVE),
        ("candidates, COMES-HL", found["comes-hl, classes", case_a], LEARNED),
        ("candidates, likelihood", found["likelihood (default)", case_a], LEARNED),
        ("a tenth of the pairs asked, likelihood", found["likelihood (default)", said], LEARNED),
        ("all true labels", found["likelihood (default head)", "VOC2012, true labels"], NAIVE),
    ]


def draw_bars() -> None:
    """Draw mAP on VOC2012 by what was known in training."""
    with rc_context(STYLE):
        figure = Figure(figsize=(7, 2.2), layout="constrained")
        axes = figure.subplots()
        rows = bars()[::-1]
        for place, (_, value, colour) in enumerate(rows):
            axes.barh(place, value, color=colour, height=0.7)
            axes.text(value + 0.01, place, f"{value:.3f}", va="center")
        axes.set_yticks(range(len(rows)), [title for title, *_ in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1)
        axes.set_xlabel("mAP on VOC2012 val, frozen ResNet-50")
        save(figure, "voc2012")


def draw_trust() -> None:
    """Draw how often labels are relevant against the probability that the default head gives."""
    runs = stored("image_choice")["runs"]
    with rc_context(STYLE):
        figure = Figure(figsize=(4.2, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        for case, title in CASES.items():
            own = [run["about_default"] for run in runs if run["case"] == case]
            weight = np.array([about["pairs"] for about in own], dtype=float)
            said, true = (
                (np.array([about[name] for about in own]) * weight).sum(axis=0)
                / np.maximum(weight.sum(axis=0), 1)
                for name in ("said", "true")
            )
            axes.plot(said, true, marker=MARKERS[case], color=COLOURS[case], label=title)
        axes.set_xlabel("probability that the head gives")
        axes.set_ylabel("share of pairs that are relevant")
        axes.legend()
        save(figure, "trust")


def draw_guide() -> None:
    """Run the code of the page about plots, and keep the plots that it writes."""
    page = (ROOT / "docs" / "guide" / "plots.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "plots"}
    with TemporaryDirectory() as folder, chdir(folder):
        for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            exec(compile(code, "plots.md", "exec"), names)
        for path in sorted(Path(folder).glob("plot-*.svg")):
            shutil.copyfile(path, IMAGES / path.name)


def save(figure: Figure, name: str) -> None:
    """Write a plot without the date."""
    path: Path = IMAGES / f"{name}.svg"
    figure.savefig(path, format="svg", metadata={"Date": None}, transparent=True)


if __name__ == "__main__":
    main()
