"""Draw the plots of docs/explain: one from a small simulation, the others from committed results.

    python docs/draw_explain.py    # writes docs/images/explain-*.svg

The same seeds and results give the same files.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.preprocessing import SplineTransformer
from torch import Tensor

from comes.risks import bce_risk, likelihood_risk
from draw import INK, STYLE, save
from result_tables import mean, read_experiment, stored

COLOURS = ("#239cda", "#d55e00", "#4b6795", "#c80d4b")
MARKERS = "os^D"
RATES = (1.0, 0.5, 0.2, 0.1)
STRENGTHS = {
    "independent 0.5": 0,
    "instance-dependent 0.5, strength 1": 1,
    "instance-dependent 0.5, strength 2": 2,
}
LEARNERS = {
    "constant": "priors estimated",
    "constant, true priors": "true priors",
    "p(x) known, true priors": "true priors and rates p(x)",
}
CHECKED = {
    "mirflickr5000": "mirflickr5000,\nits own",
    "scene": "scene,\ncase b",
    "yeast": "yeast,\ncase b",
}


def main() -> None:
    """Write all plots."""
    with rc_context(STYLE):
        draw_bias()
        draw_correction()
        draw_flood()
        draw_assumption()


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
        for rate, look in zip(RATES, _looks(), strict=True):
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
    for (name, title), look in zip(titles.items(), _looks(), strict=False):
        history = found[name]
        epochs = range(1, len(history) + 1)
        look |= {"markevery": 10}
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
    for (data, title), look in zip(titles.items(), _looks(), strict=False):
        own = sorted((float(r.at or 0), r) for r in results if r.names.data == data)
        values = [r.values("average_precision").mean() for _, r in own]
        axes.plot([at for at, _ in own], values, label=title, **look)
    axes.set_xlabel("flood level / floor of the risk")
    axes.set_ylabel("average precision")
    axes.legend(loc="lower left")
    save(figure, "explain-flood")


def draw_assumption() -> None:
    """Draw what rates that depend on the item cost, and where they are found."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    cost, found = figure.subplots(1, 2)
    rows = [
        r for r in stored("instance_rates")["rows"] if r["set"] in ("yeast", "scene", "emotions")
    ]
    for (learner, title), look in zip(LEARNERS.items(), _looks(), strict=False):
        values = [
            mean(
                r["average_precision"] for r in rows if (r["learner"], r["draw"]) == (learner, draw)
            )
            for draw in STRENGTHS
        ]
        cost.plot(list(STRENGTHS.values()), values, label=title, **look)
    cost.set_xticks(list(STRENGTHS.values()), ["0", "1", "2"])
    cost.set_xlabel("how strongly the rate depends on the item")
    cost.set_ylabel("average precision")
    cost.legend(loc="lower left")
    _draw_checks(found)
    save(figure, "explain-assumption")


def _draw_checks(axes: Axes) -> None:
    """Draw how well exclusion of irrelevant labels can be predicted, a dot for each label."""
    for place, row in enumerate(stored("assumption")):
        values = [value for value in row["auc"] if value is not None]
        axes.plot([place] * len(values), values, "o", color=COLOURS[0], alpha=0.7)
    axes.axhline(0.5, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(CHECKED)), list(CHECKED.values()))
    axes.set_xlim(-0.5, len(CHECKED) - 0.5)
    axes.set_ylim(0.4, 1)
    axes.set_ylabel("AUC of predicting exclusion\namong irrelevant rows")


def _looks() -> Iterable[dict[str, Any]]:
    return [
        {"color": colour, "marker": marker, "markersize": 4}
        for colour, marker in zip(COLOURS, MARKERS, strict=True)
    ]


if __name__ == "__main__":
    main()
