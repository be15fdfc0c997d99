"""The numbers of the paper's Tables 2 and 3 (``published.csv``), beside ours."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from comes.experiment.results import Result
from comes.flat_settings import frozen_settings
from comes.metrics import METRICS
from comes.significance import standard_deviation

# Data sets that are part of one of the paper's.
PART_OF = {
    "mirflickr5000": ("mirflickr", "5000 of the 10433 rows"),
    "VOC2012-160px": ("VOC2012", "every image, resized to 160 x 160,"),
}
PAPER_RATE = {"a": 0.9, "b": 0.1}


@cache
def published() -> pd.DataFrame:
    """Return the paper's means and standard deviations: data, case, method, metric, mean, std."""
    with files("comes.report").joinpath("published.csv").open("rb") as file:
        return pd.read_csv(file, keep_default_na=False)


def beside_paper(results: Sequence[Result]) -> list[list[str]]:
    """Return data, method, metric, ours, the paper's and the difference, where it has the same."""
    rows = []
    for result in results:
        names, data, table = result.names, result.spec.data, published()
        name = PART_OF.get(source_name(result), (source_name(result),))[0]
        case = data.case or ""
        is_its_rate = not case or data.rate in (None, PAPER_RATE.get(case))
        if names.method != result.spec.method or names.sweep is not None or not is_its_rate:
            continue
        same = (table["data"] == name) & (table["case"] == case)
        for paper in table[same & (table["method"] == names.method)].to_dict("records"):
            metric = paper["metric"]
            found = {METRICS[metric].title: result.values(metric)}
            if metric == "hamming_loss":  # of which the paper does not say how it cuts scores
                by_row = [repeat.hamming_loss.minmax for repeat in result.repeats]
                found["Hamming loss, min-max"] = np.array(by_row)
            for title, values in found.items():
                mean, std = round(float(values.mean()), 3), round(standard_deviation(values), 3)
                theirs = f"{paper['mean']:.3f} ± {paper['std']:.3f}"
                if not np.isnan(mean):
                    gap = f"{mean - paper['mean']:+.3f}"
                    ours = f"{mean:.3f} ± {std:.3f}"
                    rows.append([names.data, names.method, title, ours, theirs, gap])
    return rows


def source_name(result: Result) -> str:
    """Return the name of the data set, without the part of it that is trained on."""
    return result.spec.data.name.partition(":")[0]


def is_papers_data(result: Result) -> bool:
    """Return whether the paper has this data set, or one that it is part of."""
    name = source_name(result)
    return PART_OF.get(name, (name, ""))[0] in set(published()["data"])


# What the paper says of its trainings, on tables and on pictures; the rest is not in it.
STATED = {
    "repeats": "10 of 10 folds",
    "sees": "candidates",
    "class_prior": "true",
    "epochs": "200",
    "learning_rate": "0.005",
    "weight_decay": "0.0001",
    "optimizer": "sgd",
    "cosine": "True",
    "model": "mlp",
}
STATED_OF_IMAGES = {
    "sees": "candidates",
    "class_prior": "true",
    "backbone": "resnet50",
    "weights": "imagenet",
    "epochs": "30",
    "learning_rate": "0.0001",
}
FLOODED = (
    "The paper names no flood level. It is 0, or by the rule of the class priors, whose factor was "
    "read off test rows of mirflickr5000, so that numbers on this set are too good"
)
CUTS = (
    "Metrics follow the convention pml of docs/reference/metrics.md; metrics.csv has also that of "
    "scikit-learn. The Hamming loss cuts scores at zero, or for risks over pairs where the class "
    "prior is met; min-max cuts each row halfway between its least and its greatest probability."
)


def describe_run(results: Sequence[Result]) -> list[list[str]]:
    """Return how results were made: what, here, and of the paper's data what the paper says."""
    every = [_describe_result(result) for result in results]
    stated = STATED_OF_IMAGES if any(result.spec.images for result in results) else STATED
    is_papers = any(map(is_papers_data, results))
    rows = []
    for key in dict.fromkeys(key for own in every for key in own):
        found: dict[str, dict[str, None]] = {}
        for result, own in zip(results, every, strict=True):
            whose = result.names.data if key in ("drawn", "tested_on") else result.names.method
            found.setdefault(own.get(key, "–"), {})[whose] = None
        most = max(found, key=lambda value: len(found[value]))
        names = {value: ", ".join(whose) for value, whose in found.items()}
        names |= {most: "others"} if len(found[most]) > 1 else {}
        here = "; ".join(found if len(found) == 1 else (f"{v} ({n})" for v, n in names.items()))
        theirs = [stated.get(key, "not said")] if is_papers else []
        rows.append([key.replace("_", " "), here, *theirs])
    return rows


def _describe_result(result: Result) -> dict[str, str]:
    """Return in words what a result was made with."""
    spec, data, search = result.spec, result.spec.data, result.spec.search
    n = len(result.repeats)
    told = {
        "repeats": f"{n} of {spec.folds} folds" if spec.folds else f"{n} label seeds",
        "tested_on": data.test or "rows of the same data",
        "sees": spec.sees or "candidates",
        "class_prior": spec.class_prior,
        "software": f"comes {result.versions['comes']}, torch {result.versions['torch']}",
        "device": result.device.partition(":")[0],
    }
    if data.answers is not None:
        told["drawn"] = f"answers: {data.answers.title}"
        told["answer_rates"] = spec.answer_rates or "estimated"
    if search is not None:
        chosen = " and ".join(name.replace("_", " ") for name in search.grid)
        told["search"] = (
            f"{chosen}, by {search.criterion or 'trained_risk'}, on what was said about "
            f"{search.held_out:.0%} of the training rows"
        )
    settings = frozen_settings(spec.method, spec.training, spec.images, spec.settings)
    settings |= dict.fromkeys(search.grid if search else (), "searched")
    auto = "by what was said"
    return told | {k: auto if value is None else str(value) for k, value in settings.items()}


def list_notes(results: Sequence[Result]) -> list[str]:
    """Return in sentences what must be known to read the numbers."""
    names = dict.fromkeys(source_name(result) for result in results)
    notes = [f"{n} is {PART_OF[n][1]} of {PART_OF[n][0]}." for n in names if n in PART_OF]
    flooded = {
        result.names.method
        for result in results
        if result.spec.settings.get("flood_level") == "auto" and is_papers_data(result)
    }
    if flooded:
        notes.append(f"{FLOODED}: {', '.join(sorted(flooded))}.")
    repeats = [r for result in results for r in result.repeats if r.tied is not None]
    if repeats:
        n_tied = sum(bool(r.tied) for r in repeats)
        rates = [e for r in repeats for e in r.edges or () if e.startswith("learning_rate")]
        notes.append(
            f"Of {len(repeats)} choices, {n_tied} were level with others (fewer epochs win, then "
            f"a smaller learning rate), and {len(rates)} have the least or greatest learning rate "
            "that was tried."
        )
    return [*notes, CUTS]
