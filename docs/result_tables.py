"""Tables of the documents that take more than a template, made from committed results.

A table is a list of rows of cells, the first row the heads. ``TABLES`` has them by the name that
pages ask for (``fill.py``).
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets import KNOWN
from comes.experiment.results import RepeatResult, Result, read_results
from comes.methods import table_rank
from comes.metrics import METRICS
from comes.report.experiment_page import list_means, metric_table, title_of
from comes.report.paper import published
from command_tables import options_table

ROOT = Path(__file__).parent.parent
PHOTOS = "mirflickr5000"
FOUR = ("emotions", "yeast", "scene", "enron")
SIX = (*FOUR, "scenes", "bibtex")
DRAWS = {
    "answers": "a tenth asked",
    "0.1": "0.1 excluded",
    "0.5": "0.5 excluded",
    "real": "its own candidates",
}
RECIPES = ("default", "blend", "trees", "1.0.0", "BCE", "BCE, as published")
FIRST_SEED = 0
BOTH = ("average_precision", "mean_average_precision")

Table = list[list[str]]


def read_records(source: str) -> list[dict[str, Any]]:
    """Return the records of a result; those of a table have their key as name."""
    folder, file, *keys = source.split("/")
    value = json.loads((ROOT / folder / "results" / f"{file}.json").read_text(encoding="utf-8"))
    for key in keys:
        value = value[key]
    if isinstance(value, list):
        return value
    return [
        {"name": name} | (row if isinstance(row, dict) else {"value": row})
        for name, row in value.items()
    ]


def stored(name: str) -> Any:
    """Return a result of a script in ``experiments/``."""
    return json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())


def measured(name: str) -> Any:
    """Return a result of a script in ``benchmarks/``."""
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def read_experiment(name: str) -> list[Result]:
    """Return the results of an experiment that ``comes bench`` has run."""
    return read_results([ROOT / "experiments" / "results" / name])


def mean(values: Iterable[float]) -> float:
    """Return the mean."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def show_frame(frame: pd.DataFrame, heads: Sequence[str]) -> Table:
    """Return a frame to three decimals, its index first; what is not known is empty."""
    rows = [
        [str(part) for part in (at if isinstance(at, tuple) else (at,))]
        + ["" if math.isnan(value) else f"{value:.3f}" for value in values]
        for at, values in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    return [[*heads, *map(str, frame.columns)], *rows]


# Experiments of `comes bench`


def show_metric(results: Sequence[Result], metric: str) -> Table:
    """Return a metric of every method: best in bold, • where the best is significantly better."""
    table = metric_table(results, metric)
    rows = [[table.title, *table.data]]
    for method in table.methods:
        texts = [
            "–" if e is None else f"**{e.text}**" if e.is_best else e.text
            for e in table.row(method)
        ]
        marks = [" •" if e and "•" in e.marks else "" for e in table.row(method)]
        rows.append([method, *map("".join, zip(texts, marks, strict=True))])
    return rows


def runs_table(experiment: str, metric: str) -> Table:
    """Return a metric of a stored experiment."""
    return show_metric(read_experiment(experiment), metric)


def sweep_table(experiment: str, metric: str) -> Table:
    """Return the means of a metric of a stored sweep, its values across."""
    results = read_experiment(experiment)
    means = pd.DataFrame(list_means(results))
    means["name"] = means["method"] + " on " + means["data"]
    names, at = means["name"].unique(), str(results[0].names.sweep)
    frame = means.pivot(index="name", columns=at, values=metric).loc[names]
    table = show_frame(frame.set_axis([f"{value:g}" for value in frame], axis=1), [""])
    return [[title_of(metric), *table[0][1:]], *table[1:]]


def scores_code(experiment: str, metric: str) -> str:
    """Return a metric of a stored experiment as code: methods in columns, data sets in rows."""
    means = pd.DataFrame(list_means(read_experiment(experiment)))
    scores = means.pivot_table(index="data", columns="method", values=metric)
    lines = [f"        {name!r}: {scores[name].round(4).tolist()}," for name in scores]
    code = ["scores = pd.DataFrame(", "    {", *lines, "    }", ")"]
    return "\n".join(["```python", "import pandas as pd", "", *code, "```"]).replace("'", '"')


def read_fair() -> list[Result]:
    """Return the results of a budget for each method; of sets not run again, the early ones."""
    now = read_experiment("fair")
    again = {result.names.data for result in now}
    early = [r for r in read_experiment("fair-early") if r.names.data not in again]
    return now + [replace(r, names=replace(r.names, experiment="fair")) for r in early]


def fair_table(metric: str) -> Table:
    """Return a metric with a budget for each method."""
    return show_metric(read_fair(), metric)


def search_table() -> Table:
    """Return what two criteria of a search chose on the same folds, and what came of it."""
    early = {r.names.method: r for r in read_experiment("fair-early") if r.names.data == PHOTOS}
    table = [["method", "chosen by the risk of training", "AP", "by the likelihood", "AP"]]
    for result in sorted(read_experiment("fair"), key=lambda r: table_rank(r.names.method)):
        cells = [result.names.method]
        for own in (early[result.names.method], result):
            repeats = own.repeats[: len(result.repeats)]
            values = own.values("average_precision")[: len(repeats)]
            cells += [show_choices(repeats), f"{values.mean():.3f}"]
        table.append(cells)
    return table


def show_choices(repeats: Sequence[RepeatResult]) -> str:
    """Return the learning rates and numbers of epochs that a search found, and how often."""
    found = Counter(tuple((repeat.chosen or {}).values()) for repeat in repeats)
    return "; ".join(f"{rate:g}, {epochs} ({n})" for (rate, epochs), n in found.most_common())


# What holds of the paper

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
    found = published()[published()["metric"].isin(BOTH)]
    names = [
        f"{data}, case {case}" if case else {"mirflickr": PHOTOS}.get(data, data)
        for data, case in zip(found["data"], found["case"], strict=True)
    ]
    return dict(zip(zip(found["method"], names, strict=True), found["mean"], strict=True))


def _read_ours() -> Values:
    """Return the same of the stored results, trained as the paper says."""
    metrics = {"paper": BOTH[0], "images-paper": BOTH[1], "images-paper-others": BOTH[1]}
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
    shown = f"AP {kept:.3f} with it, {left:.3f} without"
    return ["the correction of COMES-HL helps", "–", shown, verdict(0, kept - left)]


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
    shown = f"{hl:.3f} to {hl_end:.3f}, BCE {bce:.3f} to {bce_end:.3f}"
    claim = "more rows lower the Hamming loss"
    return [claim, "Theorem 3", shown, verdict(0, hl - hl_end)]


def _flood_row() -> list[str]:
    """Return what a flood level above the floor of the risk does."""
    found = _read_sweep("flood", "average_precision", "scenes, case b 0.5")
    none, high = found["comes-rl", 0.0], found["comes-rl", 1.25]
    shown = f"AP {none:.3f} without, {high:.3f} above the floor"
    claim = "too high a flood level ruins COMES-RL"
    return [claim, "a figure", shown, verdict(0, none - high)]


# Methods and defaults


def methods_table(data: str) -> Table:
    """Return every method and variant on one data set."""
    rows = stored("methods")[data]
    names = [name for name in METRICS if name in rows[0]["metrics"]]
    table = [["method", "variant", *map(title_of, names)]]
    for row in rows:
        method = row["method"] + (" (rates of the prior)" if "flip_rate" in row else "")
        method += f" (Adam, {row['learning_rate']})" if "optimizer" in row else ""
        method += " (no flood)" if row.get("flood_level") == 0 else ""
        cells = ["runs away", *[""] * (len(names) - 1)]
        if "metrics" in row:
            cells = [f"{row['metrics'][name]:.3f}" for name in names]
        table.append([method, row["variant"], *cells])
    return table


def read_defaults(*, first_seed: bool = False) -> pd.DataFrame:
    """Return what the default and other ways to train make of a set and a draw, over seeds."""
    rows = pd.DataFrame(stored("defaults")["rows"])
    rows = rows[rows["seed"] == FIRST_SEED] if first_seed else rows
    of_each = rows.groupby(["draw", "set", "learner"], sort=False)
    means = of_each[[*BOTH, "held_out"]].mean()
    return means.assign(seeds=of_each["seed"].nunique()).reset_index()


def defaults_table(draw: str) -> Table:
    """Return means over six sets, for learners that were run on all of them."""
    found = read_defaults()
    found = found[(found["draw"] == draw) & found["set"].isin(SIX)]
    by_set = found.pivot(index="learner", columns="set", values="average_precision").dropna()
    means = found.groupby("learner", sort=False)[[*BOTH, "held_out"]].mean()
    table = [["learner", "AP ↑", "mAP ↑", "held-out loss ↓", "AP against the default: least, most"]]
    for name in means.index.intersection(by_set.index, sort=False):
        apart = by_set.loc[name] - by_set.loc["default"]
        span = "" if name == "default" else f"{apart.min():+.3f}, {apart.max():+.3f}"
        ap, mean_ap, loss = means.loc[name]
        table.append([str(name), f"{ap:.3f}", f"{mean_ap:.3f}", f"{loss:.4f}", span])
    return table


def read_recipes() -> pd.DataFrame:
    """Return what the default and others make of a set, a draw and a size, over seeds."""
    rows = pd.DataFrame(stored("recipes")["rows"])
    keys = ["draw", "set", "learner"]
    found = rows.groupby(keys, sort=False)[[*BOTH, "macro_f1", "seconds"]].mean().reset_index()
    parts = found["set"].str.partition(":")
    return found.assign(name=parts[0], size=parts[2].replace("", "all"))


def _draws_of(found: pd.DataFrame) -> list[str]:
    """Return the draws that were run, in the order of `DRAWS`."""
    return [draw for draw in DRAWS if (found["draw"] == draw).any()]


def recipes_table() -> Table:
    """Return means over sets by draw and learner, and how far each is from 1.0.0 on its sets."""
    found = read_recipes()
    by_set = found.pivot(index=["draw", "set"], columns="learner", values="average_precision")
    table = [
        ["draw", "learner", "sets", "AP ↑", "mAP ↑", "macro F1 ↑", "AP - 1.0.0", "least, most"]
    ]
    table[0].append("CPU s")
    for draw, learner in itertools.product(_draws_of(found), RECIPES):
        own = found[(found["draw"] == draw) & (found["learner"] == learner)]
        change = (by_set[learner] - by_set["1.0.0"]).loc[draw].dropna()
        ap, mean_ap, f1, seconds = own[[*BOTH, "macro_f1", "seconds"]].mean()
        cells = [f"{ap:.3f}", f"{mean_ap:.3f}", f"{f1:.3f}"]
        is_base = learner == "1.0.0"
        cells += ["", ""] if is_base else [f"{change.mean():+.3f}"]
        cells += [] if is_base else [f"{change.min():+.3f}, {change.max():+.3f}"]
        table.append([DRAWS[draw], learner, str(len(own)), *cells, f"{seconds:.1f}"])
    return table


def recipes_sizes_table() -> Table:
    """Return average precision by draw and size; the set where the default is furthest behind."""
    found = read_recipes()
    table = [
        ["draw", "rows", "sets", *(name for name in RECIPES if name not in ("blend", "trees"))]
    ]
    table[0].append("least: default - the better BCE")
    by_set = found.pivot(index=["draw", "set"], columns="learner", values="average_precision")
    behind = by_set["default"] - by_set[["BCE", "BCE, as published"]].max(axis=1)
    for draw, size in itertools.product(_draws_of(found), ("300", "1000", "all")):
        own = found[(found["draw"] == draw) & (found["size"] == size)]
        if own.empty:
            continue
        means = own.groupby("learner")["average_precision"].mean()
        cells = [f"{means[name]:.3f}" for name in RECIPES if name not in ("blend", "trees")]
        sets = own["set"].unique()
        part = behind.loc[draw].loc[sets]
        least = f"{part.min():+.3f} ({str(part.idxmin()).partition(':')[0]})"
        table.append([DRAWS[draw], size, str(len(sets)), *cells, least])
    return table


def read_backbones() -> pd.DataFrame:
    """Return what other backbones change against the default, by learner, draw and set."""
    rows = pd.DataFrame(stored("backbones")["rows"])
    keys = ["learner", "draw", "set"]
    means = rows.groupby(keys, sort=False)[[*BOTH, "seconds"]].mean().reset_index()
    usual = means[means["learner"] == "default"].drop(columns="learner")
    found = means[means["learner"] != "default"].merge(usual, on=keys[1:], suffixes=("", "_usual"))
    for metric in BOTH:
        found[metric] -= found[f"{metric}_usual"]
    return found


def backbones_table() -> Table:
    """Return mean changes of AP and mAP by draw, those of the worst set, and the cost."""
    draws = {"answers": "a tenth asked", "0.1": "0.1 excluded", "0.5": "0.5 excluded"}
    heads = [f"{title}: AP, mAP" for title in draws.values()]
    table = [["instead of the default", "sets", *heads, "AP least", "mAP least", "cost"]]
    for learner, own in read_backbones().groupby("learner", sort=False):
        cells = []
        for draw in draws:
            of_draw = own[own["draw"] == draw]
            cells.append(", ".join(f"{of_draw[metric].mean():+.3f}" for metric in BOTH))
        for metric in BOTH:
            values = zip(own[metric], own["set"], own["draw"], strict=True)
            change, name, draw = min(values)
            cells.append(f"{change:+.3f} ({name}, {draw})")
        cost = own["seconds"].sum() / own["seconds_usual"].sum()
        table.append([str(learner), str(own["set"].nunique()), *cells, f"{cost:.2f}"])
    return table


def methods_choice_table() -> Table:
    """Return what methods make of candidates, everything estimated: means over four sets."""
    titles = {
        "default": "likelihood (the default)",
        "COMES-HL, trained as the default": "COMES-HL, trained as the default",
        "COMES-HL, as published": "COMES-HL, as published",
        "COMES-RL, flooded": "COMES-RL, flooded",
        "CCMN, as published": "CCMN, as published",
        "BCE": "BCE, trained as the default",
        "BCE, as published": "BCE, as published",
    }
    found = read_defaults(first_seed=True)
    found = found[found["set"].isin(FOUR)]
    means = found.pivot_table(list(BOTH), "learner", "draw").loc[list(titles)].rename(titles)
    columns = [(metric, draw) for draw in ("0.1", "0.5") for metric in BOTH]
    heads = [f"{name} at {draw} ↑" for draw in ("0.1", "0.5") for name in ("AP", "mAP")]
    return show_frame(means[columns].set_axis(heads, axis=1), ["method"])


def fit_checks_table() -> Table:
    """Return what is warned of after normal fits, and after fits that went wrong."""
    kinds = ("undertrained", "nothing learned", "predicts nothing", "predicts everything")
    table = [["fit", "data", "exclude rate", "warnings", "average precision"]]
    for row in stored("fit_checks")["fits"]:
        found = ", ".join(kind for kind in kinds if row[kind]) or "–"
        rate = "truth" if row["rate"] is None else f"{row['rate']:g}"
        table.append([row["fit"], row["set"], rate, found, f"{row['average_precision']:.3f}"])
    return table


# Priors, rates and answers


def prior_errors_table() -> Table:
    """Return the errors of the estimators of class priors."""
    rows = pd.DataFrame(stored("priors")["estimators"])
    errors = rows.pivot_table("error", ["data", "exclude_rate"], "method", sort=False)
    table = show_frame(errors, ["data", "exclude rate"])
    for key, name in (("error", "mean"), ("seconds", "seconds")):
        means = rows.groupby("method")[key].mean()
        table.append([name, "", *(f"{means[method]:.3f}" for method in errors.columns)])
    return table


def prior_training_table() -> Table:
    """Return the average precision of COMES-HL by where its priors come from."""
    rows = pd.DataFrame(stored("priors")["training"]).replace({"prior": {"true": "true priors"}})
    keys = ["data", "exclude_rate"]
    means = rows.pivot_table("average_precision", keys, "prior", sort=False)
    return show_frame(means, ["data", "exclude rate"])


def answers_table(metric: str) -> Table:
    """Return a metric of every learner on simulated answers, by set and on average."""
    rows = pd.DataFrame(stored("answers")["rows"])
    means = rows.pivot_table(metric, "learner", "set", sort=False)
    return show_frame(means.assign(mean=means.mean(axis=1)), [title_of(metric)])


def answer_rates_table() -> Table:
    """Return estimated rates of answers beside those that the truth counts, over sets and seeds."""
    table = [["answers", "rate of", "mean distance", "mean standard error", "within two of them"]]
    rows = pd.DataFrame(stored("answers")["rates"])
    rows["distance"] = (rows["estimated"] - rows["counted"]).abs()
    for (answers, rate), own in rows.groupby(["sees", "rate"], sort=False):
        near = (own["distance"] <= 2 * own["error"]).sum()
        means = (f"{own[name].mean():.3f}" for name in ("distance", "error"))
        table.append([str(answers), str(rate), *means, f"{near} of {len(own)}"])
    return table


def instance_rates_table(metric: str, *names: str) -> Table:
    """Return a metric of every learner with rates that depend on x, by how candidates were drawn.

    Means over seeds and then over the named sets.
    """
    rows = pd.DataFrame(stored("instance_rates")["rows"])
    rows = rows[rows["set"].isin(names)].replace({"draw": {"its own": PHOTOS}})
    by_set = rows.groupby(["learner", "draw", "set"], sort=False)[metric].agg(mean).reset_index()
    title = "error of the class prior ↓" if metric == "prior_error" else title_of(metric)
    means = by_set.pivot_table(metric, "learner", "draw", mean, sort=False)
    order = [*dict.fromkeys(rows["draw"])]
    return show_frame(means.loc[[*dict.fromkeys(rows["learner"])], order], [title])


def assumption_table() -> Table:
    """Return for how many labels exclusion depends on the features."""
    table = [["data", "labels", "exclusion depends on features", "AUC of predicting it"]]
    for row in stored("assumption"):
        aucs = f"{min(row['auc']):.2f} to {max(row['auc']):.2f}"
        n_labels, n_broken = len(row["says"]), row["says"].count("not constant")
        table.append([row["data"], str(n_labels), str(n_broken), aucs])
    return table


def text_terms_table() -> Table:
    """Return the likelihood loss of held-out comments, by the terms that are counted."""
    rows = pd.DataFrame(stored("text_terms")["rows"])
    table = [["terms", "at most", "candidates ↓", "answers ↓", "seconds of training"]]
    for (longest, most), own in rows.groupby(["longest", "most_terms"], sort=False):
        losses = own.set_index("labels")["held_out_loss"]
        cells = [f"{losses[labels]:.4f}" for labels in ("candidates", "answers")]
        words = "words" if longest == 1 else "words and pairs"
        table.append([words, str(most), *cells, f"{own['seconds'].mean():.0f}"])
    return table


# Selection


def intervals_table(which: str = "intervals") -> Table:
    """Return how often intervals with estimated priors are given, and hold the truth."""
    result, parts = stored(which), {}
    parts["all"] = result["metrics"]
    for key, title in (
        ("data", "{}"),
        ("rows", "{} rows"),
        ("rate", "exclude rate {}"),
        ("features", "{} features"),
    ):
        parts |= {title.format(v): row for v, row in result.get(f"by_{key}", {}).items()}
    names = list(result["metrics"])
    return [
        ["draws of", *(name.replace("_", " ") for name in names)],
        *(
            [part, *(f"{c['held']} of {c['printed']} of {c['draws']}" for c in map(row.get, names))]
            for part, row in parts.items()
        ),
    ]


def criteria_table() -> Table:
    """Return what choosing by each criterion costs, by average precision and by mAP."""
    runs = sorted(stored("criteria")["runs"], key=lambda run: (run["said"], run["rate"] or 0))
    parts = {
        said if rate is None else f"{said}, {rate}": list(own)
        for (said, rate), own in itertools.groupby(runs, lambda run: (run["said"], run["rate"]))
    }
    table = [["criterion", *parts, "all", "all, within a method"]]
    for name in runs[0]["found"][0]["criteria"]:
        cells = [
            "" if "risk" in name else show_regret(own, name) for own in (*parts.values(), runs)
        ]
        table.append([name, *cells, show_regret(runs, name, within=True)])
    return table


def show_regret(runs: list[Any], criterion: str, *, within: bool = False) -> str:
    """Return how far the models chosen are behind the best, on average over runs and methods."""
    costs = (mean(find_regrets(runs, criterion, metric, within=within)) for metric in BOTH)
    return " / ".join(f"{cost:.3f}" for cost in costs)


def find_regrets(runs: list[Any], criterion: str, metric: str, *, within: bool) -> list[float]:
    """Return how far the model that a criterion chooses is behind the best, for every choice."""
    regrets = []
    for run in runs:
        groups: dict[str, list[Any]] = {}
        for model in run["found"]:
            groups.setdefault(model["model"][0] if within else "", []).append(model)
        for models in groups.values():
            chosen = min(models, key=lambda model: model["criteria"][criterion])
            regrets.append(max(model[metric] for model in models) - chosen[metric])
    return regrets


def calibration_table(which: str) -> Table:
    """Return what calibration does to the calibration error and the log loss, by method."""
    development = ("emotions", "scene", "yeast")  # as in experiments/calibration.py
    wanted = which == "development"
    runs = [run for run in stored("calibration") if (run["set"] in development) == wanted]
    heads = ["method", "known rows", "calibration error ↓", "worst change", "log loss ↓"]
    table = [[*heads, "worst change"]]
    for method in ("likelihood", "comes-hl", "comes-rl", "bce"):
        own = [run["found"] for run in runs if run["method"] == method]
        table.append([method, "not calibrated", *_calibration_cells(own, "none")])
        for source, shown in (("said", "answers"), ("truth", "true labels")):
            for n in (100, 500):
                key = f"{source}, {n}, default"
                if key in own[0]:
                    table.append(["", f"{n}, {shown}", *_calibration_cells(own, key)])
    return table


def _calibration_cells(found: list[dict[str, Any]], key: str) -> list[str]:
    """Return mean and worst change of both measures."""
    cells = []
    for metric in ("error", "loss"):
        values = [run[key][metric] for run in found]
        changes = [run[key][metric] - run["none"][metric] for run in found]
        cells += [f"{mean(values):.3f}", "" if key == "none" else f"{max(changes):+.3f}"]
    return cells


CUTS = {
    "half": "one half",
    "auto": "`auto`",
    "expected": "as often as probabilities say",
    "f1": "greatest expected F1",
    "prior": "as often as the prior says",
}


def cuts_table(which: str) -> Table:
    """Return what cuts of the same models do on true labels, by what was said or by method."""
    runs = [
        r for r in stored("cuts")["rows"] if (r["method"] == "likelihood") == (which != "others")
    ]
    metrics = {"macro_f1": "macro F1 ↑", "micro_f1": "micro F1 ↑", "hamming_loss": "Hamming loss ↓"}
    heads = [part for title in metrics.values() for part in (title, "worst")]
    group, groups = "method", ["comes-hl", "comes-rl", "ccmn", "mlcl", "ctl", "bce"]
    if which == "likelihood":
        group, groups = "draw", ["0.1", "0.5", "answers"]
    table = [["labels" if group == "draw" else "method", "cut", *heads, "never"]]
    shown = {"0.1": "a tenth excluded", "0.5": "half excluded", "answers": "a tenth asked"}
    for name in groups:
        found = [run["found"] for run in runs if run[group] == name]
        first = shown.get(name, name)
        for cut in CUTS if which == "likelihood" else ("half", "auto", "f1"):
            cells = []
            for metric in metrics:
                changes = [run[cut][metric] - run["half"][metric] for run in found]
                worst = max(changes) if metric == "hamming_loss" else min(changes)
                value = mean(run[cut][metric] for run in found)
                cells += [f"{value:.3f}", "" if cut == "half" else f"{worst:+.3f}"]
            never = sum(r[cut]["never"] for r in found) / sum(r[cut]["labels"] for r in found)
            table.append([first, CUTS[cut], *cells, f"{never:.0%}"])
            first = ""
    return table


# Data sets, and measurements


def names_table() -> Table:
    """Return the data sets that have a name."""
    table = [["name", "rows", "features", "labels", ""]]
    for known in KNOWN.values():
        for split, n in known.rows.items():
            name = f"{known.name}:{split}" if split else known.name
            features = str(known.n_features or "images")
            table.append([name, str(n or "varies"), features, str(known.n_labels), known.about])
    return table


def image_features_table() -> Table:
    """Return images per second and memory of features of many pictures, and what a kill cost."""
    result = measured("image_features")
    machine, killed = result["machine"], result["killed"]
    again = killed["kept"] + killed["computed_after"] - killed["images"]
    return [
        ["", "images", "decoding alone", "features", "memory", "computed again after a kill"],
        *(
            [
                f"{result['backbone']}, {machine['cores']} cores",
                str(run["images"]),
                f"{result['decoding_images_per_second']:.0f} per second",
                f"{run['images_per_second']:.0f} per second",
                f"{run['memory_mib']} MiB",
                str(again) if run["images"] == killed["images"] else "",
            ]
            for run in result["runs"]
        ),
    ]


def annotation_scale_table() -> Table:
    """Return what a large annotation project costs, before and now."""
    found = measured("annotation_scale")
    page, answer = found["lead_milliseconds"], found["answer_milliseconds"]
    rows = [
        (title, found[key]["before"], found[key]["after"])
        for title, key in (
            ("init, CPU seconds", "init_cpu_seconds"),
            ("export as .csv, CPU seconds", "export_cpu_seconds"),
        )
    ]
    rows.append(("the lead's page, p95, milliseconds", page["before_p95"], page["after_p95"]))
    for state in ("closed", "open"):
        title = f"an answer while that page is {state}, p95, milliseconds"
        rows.append((title, *(answer[f"{when}_{state}_p95"] for when in ("before", "after"))))
    return [
        ["", "before", "now", "now over before"],
        *([title, f"{old:g}", f"{new:g}", f"{new / old:.2f}"] for title, old, new in rows),
    ]


def likelihood_step_table() -> Table:
    """Return the time of a training step of the likelihood, over that of BCE."""
    heads = ["data", "answers", "on", "likelihood / BCE", "with class priors that are known / BCE"]
    names = ("likelihood_over_bce", "likelihood_near_prior_over_bce")
    return [
        heads,
        *(
            [*title.split(", "), *(f"{row[name]:.2f}" for name in names)]
            for file in ("likelihood_step", "likelihood_step_cuda")
            for title, row in measured(file).items()
            if isinstance(row, dict) and "bce" in row
        ),
    ]


def clusters_table() -> Table:
    """Return what came back from clusters, with and without a kill."""
    found = measured("clusters")
    alone = found["alone"]
    table = [["", "results", "same bytes", "seconds"]]
    table.append(["one process", str(alone["results"]), "", f"{alone['seconds']:.3g}"])
    for backend, title in (("dask", "Dask"), ("ray", "Ray")):
        for name, row in found[backend].items():
            killed = f", a kill after {row['results_at_the_kill']}" if name == "killed" else ""
            same, taken = str(row["same"]), f"{row['seconds']:.3g}"
            table.append([f"{title}{killed}", str(row["results"]), same, taken])
    return table


def hostile_inputs_table() -> Table:
    """Return how many bad inputs were judged how, before anything was mended and now."""
    result = measured("hostile_inputs")
    verdicts = ("ok", "unclear", "traceback", "silent")
    heads = [f"{verdict}, {when}" for when in ("first", "now") for verdict in verdicts]
    return [
        ["where", "cases", *heads],
        *(
            [area, str(now["cases"])]
            + [str(of[v]) for of in (result["found"]["counts"][area], now) for v in verdicts]
            for area, now in result["counts"].items()
        ),
    ]


TABLES: dict[str, Callable[..., Table | str]] = {
    "runs": runs_table,
    "sweep": sweep_table,
    "scores-code": scores_code,
    "fair": fair_table,
    "search": search_table,
    "paper-claims": claims_table,
    "methods": methods_table,
    "methods-choice": methods_choice_table,
    "defaults": defaults_table,
    "recipes": recipes_table,
    "recipes-sizes": recipes_sizes_table,
    "backbones": backbones_table,
    "fit-checks": fit_checks_table,
    "prior-errors": prior_errors_table,
    "prior-training": prior_training_table,
    "answers": answers_table,
    "answer-rates": answer_rates_table,
    "instance-rates": instance_rates_table,
    "assumption": assumption_table,
    "text-terms": text_terms_table,
    "intervals": intervals_table,
    "criteria": criteria_table,
    "calibration": calibration_table,
    "cuts": cuts_table,
    "names": names_table,
    "options": options_table,
    "image-features": image_features_table,
    "annotation-scale": annotation_scale_table,
    "likelihood-step": likelihood_step_table,
    "clusters": clusters_table,
    "hostile-inputs": hostile_inputs_table,
}
