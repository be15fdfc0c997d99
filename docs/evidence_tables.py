"""Tables that sum up: what holds of the paper, and what each kind of label is worth."""

from collections.abc import Sequence

from comes.report.paper import published
from result_tables import FIRST_SEED, FOUR, PHOTOS, Table, mean, read_experiment, stored

BASELINES = ("bce", "ccmn", "gdf", "ctl", "mlcl")
SETS = {
    "mirflickr": [PHOTOS],
    "three Yeast sets": ["YeastBP", "YeastCC", "YeastMF"],
    "VOC2012": ["VOC2012, case a", "VOC2012, case b"],
}
LEADS = [  # the claim, the method of the paper and of ours, the data
    ("COMES-HL leads by AP, mirflickr", "comes-hl", "comes-hl", "mirflickr"),
    ("COMES-RL leads by AP, mirflickr", "comes-rl", "comes-rl", "mirflickr"),
    ("the same, with the flood level of `comes`", "comes-rl", "comes-rl flooded", "mirflickr"),
    ("COMES-HL leads by AP, three Yeast sets", "comes-hl", "comes-hl", "three Yeast sets"),
    ("COMES-RL leads by AP, three Yeast sets", "comes-rl", "comes-rl", "three Yeast sets"),
    ("COMES-HL leads by mAP, VOC2012", "comes-hl", "comes-hl", "VOC2012"),
    ("COMES-RL leads by mAP, VOC2012", "comes-rl", "comes-rl", "VOC2012"),
]
LEVEL = 0.01  # a smaller difference is none
LEARNERS = {  # of experiments/answers.py: what it learns from, and by which method
    "BCE on candidates": ("candidates", "BCE"),
    "likelihood on candidates": ("candidates", "likelihood"),
    "COMES-HL on candidates, true priors": ("candidates, class priors known", "COMES-HL"),
    "likelihood on candidates, true rate and priors": (
        "candidates, exclude rate and class priors known",
        "likelihood",
    ),
    "likelihood on no and maybe": ("no and maybe", "likelihood"),
    "BCE on all answers": ("no, yes and maybe", "BCE"),
    "likelihood on all answers": ("no, yes and maybe", "likelihood"),
    "BCE on true labels": ("all true labels", "BCE"),
    "likelihood on true labels": ("all true labels", "likelihood"),
}
CANDIDATE_LEARNERS = {  # of experiments/defaults.py
    "default": "likelihood (the default)",
    "COMES-HL, trained as the default": "COMES-HL, trained as the default",
    "COMES-HL, as published": "COMES-HL, as published",
    "COMES-RL, flooded": "COMES-RL, flooded",
    "CCMN, as published": "CCMN, as published",
    "BCE": "BCE, trained as the default",
    "BCE, as published": "BCE, as published",
}
METRICS = ("average_precision", "mean_average_precision")
Values = dict[tuple[str, str], float]  # by method and data set


def claims_table() -> Table:
    """Return the paper's claims, its numbers, those of the stored results, and a verdict."""
    paper, ours = _read_published(), _read_ours()
    table = [["the paper says", "its numbers", "here", "holds?"]]
    for claim, method, own_method, data in LEADS:
        found = [
            _lead(values, name, SETS[data])
            for values, name in ((paper, method), (ours, own_method))
        ]
        shown = [f"{value:.3f}, next {next_best:.3f}" for value, next_best in found]
        leads = [value - next_best for value, next_best in found]
        table.append([claim, *shown, verdict(*leads)])
    return [*table, _correction_row(), _noise_row(), _sample_row(), _flood_row()]


def verdict(paper: float, ours: float) -> str:
    """Return whether a lead is there: at least half of the paper's, a smaller one, or none."""
    if ours > LEVEL:
        return "yes" if ours >= paper / 2 else "in part"
    return "no: level" if ours >= -LEVEL else "no"


def _lead(values: Values, method: str, data: Sequence[str]) -> tuple[float, float]:
    """Return the means over data sets of a method and of the best baseline of each."""
    best = mean(max(values[other, name] for other in BASELINES) for name in data)
    return mean(values[method, name] for name in data), best


def _read_published() -> Values:
    """Return average precision of the paper's tables, mAP of its images, named as ours."""
    ours = {"mirflickr": PHOTOS}
    found = published()[published()["metric"].isin(METRICS)]
    names = [
        f"{data}, case {case}" if case else ours.get(data, data)
        for data, case in zip(found["data"], found["case"], strict=True)
    ]
    return dict(zip(zip(found["method"], names, strict=True), found["mean"], strict=True))


def _read_ours() -> Values:
    """Return the same of the stored results, trained as the paper says."""
    metrics = {
        "paper": "average_precision",
        "images-paper": "mean_average_precision",
        "images-paper-others": "mean_average_precision",
    }
    return {
        (result.names.method, result.names.data): float(result.values(metric).mean())
        for experiment, metric in metrics.items()
        for result in read_experiment(experiment)
    }


def _read_sweep(experiment: str, metric: str, data: str) -> dict[tuple[str, float], float]:
    """Return the mean of a metric by method and the value of what varies."""
    return {
        (result.names.method, float(result.at or 0)): float(result.values(metric).mean())
        for result in read_experiment(experiment)
        if result.names.data == data
    }


def _correction_row() -> list[str]:
    """Return what the absolute value is worth on the scenes of the demo."""
    rows = {
        row["method"]: row["metrics"] for row in stored("methods")["scenes"] if "metrics" in row
    }
    kept, left = (rows[name]["average_precision"] for name in ("comes-hl", "comes-hl-unbiased"))
    told = f"AP {kept:.3f} with it, {left:.3f} without"
    return ["the correction of COMES-HL helps", "–", told, verdict(0, kept - left)]


def _noise_row() -> list[str]:
    """Return how much AP noise on class priors costs, on average over its strengths."""
    losses = []
    for data in (PHOTOS, "scenes, case b 0.5"):
        found = _read_sweep("prior-noise", "average_precision", data)
        for method in ("comes-hl", "comes-rl"):
            noisy = mean(value for (name, at), value in found.items() if name == method and at > 0)
            losses.append(found[method, 0.0] - noisy)
    hl, rl = f"{losses[0]:.3f}, {losses[2]:.3f}", f"{losses[1]:.3f}, {losses[3]:.3f}"
    least = min(losses[0] - losses[1], losses[2] - losses[3])
    claim = "wrong class priors cost COMES-HL more"
    return [claim, "a figure", f"AP lost {hl}; RL {rl}", verdict(0, least)]


def _sample_row() -> list[str]:
    """Return what rows bring to COMES-HL, and to BCE on the same candidates."""
    found = _read_sweep("rows", "hamming_loss", "scenes, case b 0.5")
    sizes = [at for name, at in found if name == "comes-hl"]
    few, many = min(sizes), max(sizes)
    (hl, hl_end), (bce, bce_end) = (
        (found[name, few], found[name, many]) for name in ("comes-hl", "bce")
    )
    told = f"{hl:.3f} to {hl_end:.3f}, BCE {bce:.3f} to {bce_end:.3f}"
    claim = "more rows lower the Hamming loss"
    return [claim, "Theorem 3", told, verdict(0, hl - hl_end)]


def _flood_row() -> list[str]:
    """Return what a flood level above the floor of the risk does."""
    found = _read_sweep("flood", "average_precision", "scenes, case b 0.5")
    none, high = found["comes-rl", 0.0], found["comes-rl", 1.25]
    told = f"AP {none:.3f} without, {high:.3f} above the floor"
    claim = "too high a flood level ruins COMES-RL"
    return [claim, "a figure", told, verdict(0, none - high)]


def kinds_table() -> Table:
    """Return what is learned from each kind of label: means over six sets and five seeds."""
    rows = stored("answers")["rows"]
    table = [["you have", "method", "average precision ↑", "mAP ↑"]]
    for learner, (known, method) in LEARNERS.items():
        own = [row for row in rows if row["learner"] == learner]
        values = (mean(row[name] for row in own) for name in METRICS)
        table.append([known, method, *(f"{value:.3f}" for value in values)])
    return table


def methods_choice_table() -> Table:
    """Return what methods make of candidates, everything estimated: means over four sets."""
    rows = [r for r in stored("defaults")["rows"] if r["set"] in FOUR and r["seed"] == FIRST_SEED]
    heads = (f"{name} at {draw} ↑" for draw in ("0.1", "0.5") for name in ("AP", "mAP"))
    table = [["method", *heads]]
    for learner, title in CANDIDATE_LEARNERS.items():
        values = (
            mean(r[metric] for r in rows if (r["learner"], r["draw"]) == (learner, draw))
            for draw in ("0.1", "0.5")
            for metric in METRICS
        )
        table.append([title, *(f"{value:.3f}" for value in values)])
    return table


def broken_assumptions_table() -> Table:
    """Return what fails with each assumption: what is true, and what would be believed."""
    rows = stored("broken_assumptions")["rows"]
    heads = ["what was said", "average precision ↑", "mean class prior (true)"]
    table = [[*heads, "Hamming loss (true)", "found by `comes check`"]]
    for draw in dict.fromkeys(row["draw"] for row in rows):
        own = [row for row in rows if row["draw"] == draw]
        found = {
            key: f"{mean(row[key] for row in own):.3f}"
            for key, value in own[0].items()
            if isinstance(value, float)
        }
        not_constant = [row["labels_not_constant"] for row in own if "labels_not_constant" in row]
        table.append(
            [
                draw,
                found["average_precision"],
                f"{found['estimated_class_prior']} ({found['class_prior']})",
                f"{found['estimated_hamming_loss']} ({found['hamming_loss']})",
                f"{sum(not_constant)} of {10 * len(not_constant)}" if not_constant else "–",
            ]
        )
    return table


TABLES = {
    "broken-assumptions": broken_assumptions_table,
    "methods-choice": methods_choice_table,
    "paper-claims": claims_table,
    "kinds": kinds_table,
}
