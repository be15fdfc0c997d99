"""Draw the plots of the documents: from committed results, a small simulation, or their own code.

    python docs/draw.py    # writes voc2012.svg, trust.svg, plot-*.svg and explain-*.svg

The text of the plots stays text, and the same seeds and results give the same files.
"""

import re
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.preprocessing import SplineTransformer
from torch import Tensor

from comes.report import plots
from comes.risks import bce_risk, likelihood_risk
from result_tables import ROOT, mean, read_experiment, stored

IMAGES = ROOT / "docs" / "images"
INK = "#7a7a7a"  # readable on light and on dark ground
STYLE: Any = {key: INK if value == plots.INK else value for key, value in plots.STYLE.items()} | {
    "svg.hashsalt": "comes",
    "font.size": 10,
}
LEARNED, NAIVE = "#239cda", "#7d9998"
LOOKS: list[dict[str, Any]] = [
    {"color": colour, "marker": marker}
    for colour, marker in zip(("#239cda", "#d55e00", "#4b6795", "#c80d4b"), "os^D", strict=True)
]
SMALL = [look | {"markersize": 4} for look in LOOKS]


def main() -> None:
    """Write all plots."""
    with rc_context(STYLE):
        draw_bars()
        draw_trust()
        draw_bias()
        draw_correction()
        draw_flood()
        draw_assumption()
    draw_guide()


def draw_bars() -> None:
    """Draw mAP on VOC2012 by what was known in training."""
    found = {
        (result.names.method, result.names.data): result.values("mean_average_precision").mean()
        for name in ("images-views", "images-clean")
        for result in read_experiment(name)
    }
    case_a, answers = "VOC2012, case a", "VOC2012, answers"
    rows = [
        ("all true labels", "likelihood (default head)", "VOC2012, true labels", NAIVE),
        ("a tenth of the pairs asked, likelihood", "likelihood (default)", answers, LEARNED),
        ("candidates, likelihood", "likelihood (default)", case_a, LEARNED),
        ("candidates, COMES-HL", "comes-hl, classes", case_a, LEARNED),
        ("candidates, BCE", "bce, pooled", case_a, NAIVE),
    ]
    figure = Figure(figsize=(7, 2.2), layout="constrained")
    axes = figure.subplots()
    for place, (_, method, data, colour) in enumerate(rows):
        value = found[method, data]
        axes.barh(place, value, color=colour, height=0.7)
        axes.text(value + 0.01, place, f"{value:.3f}", va="center")
    axes.set_yticks(range(len(rows)), [title for title, *_ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1)
    axes.set_xlabel("mAP on VOC2012 val, frozen ResNet-50")
    save(figure, "voc2012")


def draw_trust() -> None:
    """Draw how often labels are relevant against the probability that the default head gives."""
    titles = {"a": "candidates, case a", "b": "candidates, case b", "answers": "answers to a tenth"}
    figure = Figure(figsize=(4.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for (case, title), look in zip(titles.items(), LOOKS, strict=False):
        own = [r["about_default"] for r in stored("image_choice")["runs"] if r["case"] == case]
        weight = np.array([about["pairs"] for about in own], dtype=float)
        predicted, true = (
            (np.array([about[name] for about in own]) * weight).sum(axis=0)
            / np.maximum(weight.sum(axis=0), 1)
            for name in ("said", "true")
        )
        axes.plot(predicted, true, label=title, **look)
    axes.set_xlabel("probability that the head gives")
    axes.set_ylabel("share of pairs that are relevant")
    axes.legend()
    save(figure, "trust")


def draw_bias() -> None:
    """Draw what BCE and the likelihood learn from candidates, against the truth."""
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    for axes, title, learn in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        ("BCE on candidates", "likelihood of candidates"),
        (_bce, _likelihood),
        strict=True,
    ):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        for rate, look in zip((1.0, 0.5, 0.2, 0.1), SMALL, strict=True):
            truth, learned = learn_probability(learn, rate)
            axes.plot(truth, learned, label=f"exclude rate {rate:g}", markevery=18, **look)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("true probability of the label")
    figure.axes[0].set_ylabel("learned probability")
    figure.axes[1].legend()
    save(figure, "explain-bias")


def _bce(scores: Tensor, candidates: Tensor, rate: Tensor) -> Tensor:
    return bce_risk(scores, candidates)


def _likelihood(scores: Tensor, candidates: Tensor, rate: Tensor) -> Tensor:
    return likelihood_risk(scores, candidates, rate)


def learn_probability(
    learn: Callable[[Tensor, Tensor, Tensor], Tensor], rate: float, n: int = 20000
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Fit a smooth curve to one label; return the true and the learned probability on a grid."""
    rng = np.random.default_rng(0)
    x, grid = rng.uniform(-3, 3, size=(n, 1)), np.linspace(-2.7, 2.7, 109)[:, None]
    eta, truth = (1 / (1 + np.exp(-1.7 * z)) for z in (x, grid))
    relevant = rng.random((n, 1)) < eta
    candidates = torch.tensor(relevant | (rng.random((n, 1)) >= rate))
    curve = SplineTransformer(n_knots=5).fit([[-3], [3]])
    rows, at = (torch.tensor(curve.transform(z)) for z in (x, grid))
    weight = torch.zeros(rows.shape[1], 1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=200, line_search_fn="strong_wolfe")

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = learn(rows @ weight, candidates, torch.tensor([rate])) + 1e-6 * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(step)
    return truth[:, 0], torch.sigmoid(at @ weight).detach().numpy()[:, 0]


def draw_correction() -> None:
    """Draw how the unbiased estimate runs away in training, and what the absolute value does."""
    found = stored("correction")
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    risks, precision = figure.subplots(1, 2)
    titles = {"unbiased": "without the correction", "corrected": "with the correction"}
    for (name, title), look in zip(titles.items(), SMALL, strict=False):
        history = found[name]
        epochs = range(1, len(history) + 1)
        look = look | {"markevery": 10}
        risks.plot(epochs, [epoch["estimate"] for epoch in history], **look)
        risks.plot(epochs, [epoch["truth"] for epoch in history], linestyle="--", **look)
        shown = [epoch["average_precision"] for epoch in history]
        precision.plot(epochs, shown, label=title, **look)
    risks.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    risks.set_yscale("symlog", linthresh=0.5)
    risks.set_yticks([-10, -1, 0, 1, 10], ["-10", "-1", "0", "1", "10"])
    risks.set_title("risk on training rows:\nestimated (solid) and true (dashed)", fontsize=10)
    precision.set_title("average precision\non new rows", fontsize=10)
    for axes in (risks, precision):
        axes.set_xlabel("epoch")
    precision.legend(loc="lower right")
    save(figure, "explain-correction")


def draw_flood() -> None:
    """Draw the average precision of COMES-RL against its flood level."""
    results = [r for r in read_experiment("flood") if r.names.method == "comes-rl"]
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    titles = {
        "mirflickr5000": "mirflickr5000: Lemma 1 fails",
        "scenes, case b 0.5": "scenes, case b: it holds",
    }
    for (data, title), look in zip(titles.items(), SMALL, strict=False):
        own = sorted((float(r.at or 0), r) for r in results if r.names.data == data)
        values = [r.values("average_precision").mean() for _, r in own]
        axes.plot([at for at, _ in own], values, label=title, **look)
    axes.set_xlabel("flood level / floor of the risk")
    axes.set_ylabel("average precision")
    axes.legend(loc="lower left")
    save(figure, "explain-flood")


def draw_assumption() -> None:
    """Draw what rates that depend on the item cost, and where they are found."""
    strengths = {
        "independent 0.5": 0,
        "instance-dependent 0.5, strength 1": 1,
        "instance-dependent 0.5, strength 2": 2,
    }
    learners = {
        "constant": "priors estimated",
        "constant, true priors": "true priors",
        "p(x) known, true priors": "true priors and rates p(x)",
    }
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    cost, found = figure.subplots(1, 2)
    rows = [
        r for r in stored("instance_rates")["rows"] if r["set"] in ("yeast", "scene", "emotions")
    ]
    for (learner, title), look in zip(learners.items(), SMALL, strict=False):
        values = [
            mean(
                r["average_precision"] for r in rows if (r["learner"], r["draw"]) == (learner, draw)
            )
            for draw in strengths
        ]
        cost.plot(list(strengths.values()), values, label=title, **look)
    cost.set_xticks(list(strengths.values()), ["0", "1", "2"])
    cost.set_xlabel("how strongly the rate depends on the item")
    cost.set_ylabel("average precision")
    cost.legend(loc="lower left")
    _draw_checks(found)
    save(figure, "explain-assumption")


def _draw_checks(axes: Axes) -> None:
    """Draw how well exclusion of irrelevant labels can be predicted, a dot for each label."""
    checked = ["mirflickr5000,\nits own", "scene,\ncase b", "yeast,\ncase b"]
    for place, row in enumerate(stored("assumption")):
        values = [value for value in row["auc"] if value is not None]
        axes.plot([place] * len(values), values, "o", color=LEARNED, alpha=0.7)
    axes.axhline(0.5, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(checked)), checked)
    axes.set_xlim(-0.5, len(checked) - 0.5)
    axes.set_ylim(0.4, 1)
    axes.set_ylabel("AUC of predicting exclusion\namong irrelevant rows")


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
