"""The numbers of the paper's Tables 2 and 3 (``published.csv``), and what differs from it here."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from comes.metrics import METRICS
from comes.report.runs import Cell, standard_deviation

# Data sets that are part of one of the paper's.
PART_OF = {
    "mirflickr5000": ("mirflickr", "5000 of the 10433 rows"),
    "VOC2012-160px": ("VOC2012", "every image, resized to 160 x 160,"),
}
# What the paper says of its training on tables; the rest is not in it.
STATED = {
    "epochs": 200,
    "learning_rate": 5e-3,
    "weight_decay": 1e-4,
    "optimizer": "sgd",
    "cosine": True,
    "model": "mlp",
}
# What it does not say, with the default of `CandidateClassifier`.
OPEN = {
    "batch_size": 256,
    "momentum": 0.9,
    "hidden": "500 units",
    "scale": "standardised where dense",
    "reduction": "auto",
    "normaliser": "dataset",
}
PAPER_RATE = {"a": 0.9, "b": 0.1}


@dataclass(frozen=True)
class Beside:
    """A result of ours and the paper's for the same method on the same data set."""

    data: str
    method: str
    metric: str  # its title
    ours: float
    ours_std: float
    paper: float
    paper_std: float


@cache
def published() -> pd.DataFrame:
    """Return the paper's means and standard deviations: data, case, method, metric, mean, std."""
    with files("comes.report").joinpath("published.csv").open("rb") as file:
        return pd.read_csv(file, keep_default_na=False)


def beside_paper(cells: Sequence[Cell]) -> list[Beside]:
    """Return all that the paper also has, for methods that go by their own name."""
    rows = []
    for cell in cells:
        if cell.method != cell.spec["method"] or cell.sweep:
            continue
        source = cell.spec["data"]
        name = source["name"].partition(":")[0]
        name, case = PART_OF.get(name, (name, ""))[0], source.get("case", "")
        if case and source.get("rate", PAPER_RATE.get(case)) != PAPER_RATE.get(case):
            continue
        table = published()
        same = table[
            (table["data"] == name) & (table["case"] == case) & (table["method"] == cell.method)
        ]
        for row in same.itertuples():
            metric = str(row.metric)
            found = {METRICS[metric].title: cell.values(metric)}
            if metric == "hamming_loss":  # of which the paper does not say how it cuts scores
                minmax = [repeat["hamming_loss"]["minmax"] for repeat in cell.repeats]
                found["Hamming loss, min-max"] = np.array(minmax)
            for title, values in found.items():
                ours = (round(float(values.mean()), 3), round(standard_deviation(values), 3))
                paper = (float(str(row.mean)), float(str(row.std)))
                rows.append(Beside(cell.data, cell.method, title, *ours, *paper))
    return rows


def what_differs(cells: Sequence[Cell]) -> list[str]:
    """Return in sentences how an experiment differs from the paper's, and what was chosen."""
    lines = []
    for name in dict.fromkeys(cell.spec["data"]["name"].partition(":")[0] for cell in cells):
        if name in PART_OF:
            whole, part = PART_OF[name]
            lines.append(f"{name} is {part} of {whole}.")
    if any("images" in cell.spec for cell in cells):
        return [*lines, *_differs_on_images(cells)]
    if any("label_seeds" in cell.spec for cell in cells):
        lines.append(
            "The paper has synthetic labels on images alone, with a ResNet-50, Adam and 30 epochs; "
            "these are its settings for tables."
        )
    for key, stated in STATED.items():
        used = _used(cells, key, stated)
        if used != str(stated):
            lines.append(f"{key.replace('_', ' ')}: {used}; the paper says {stated}.")
    for cell in cells:
        if cell.spec.get("folds", 10) != 10 or "first_folds" in cell.spec:
            lines.append(
                f"Repeats are {len(cell.repeats)} of {cell.spec['folds']} folds; the paper has 10 "
                "of 10."
            )
            break
    searches = [cell.spec["search"] for cell in cells if "search" in cell.spec]
    if searches:
        lines.append(
            "Learning rate and epochs are chosen for each method and repeat, by its own risk on "
            f"the candidates of {searches[0]['held_out']:.0%} of the training rows."
        )
    estimated = {cell.method for cell in cells if cell.spec["class_prior"] == "estimated"}
    if estimated:
        lines.append(
            "What must be known is estimated from candidates, and the paper takes the true class "
            f"priors: {', '.join(sorted(estimated))}."
        )
    chosen = "; ".join(f"{key.replace('_', ' ')} {_used(cells, key, v)}" for key, v in OPEN.items())
    lines.append(f"The paper does not say, and here is: {chosen}; scores of the last epoch.")
    lines.append(
        "Metrics follow the convention pml of docs/metrics.md, which fits the paper's numbers. The "
        "Hamming loss cuts scores at zero, or for risks over pairs where the class prior is met; "
        "min-max cuts each row halfway between its least and its greatest probability."
    )
    return lines


def _differs_on_images(cells: Sequence[Cell]) -> list[str]:
    """Return the same for the paper's experiments on images."""
    tests = ", ".join(sorted({str(cell.spec["data"].get("test")) for cell in cells}))
    lines = [
        "The paper fine-tunes a ResNet-50 with ImageNet weights by Adam, learning rate 1e-4, for "
        "30 epochs. It does not say the size of images, the batches, or what is tested on.",
        f"Tested on: {tests}. Objects marked as difficult count as irrelevant.",
        "Candidates are drawn once per label seed, for the images trained on; every method has "
        "the same.",
    ]
    for cell in cells:
        used = ", ".join(f"{key} {value}" for key, value in sorted(cell.spec["settings"].items()))
        line = f"{cell.method}: {used}; class prior {cell.spec['class_prior']}."
        if line not in lines:
            lines.append(line)
    return lines


def _used(cells: Sequence[Cell], key: str, default: object) -> str:
    """Return the values of a setting, in words."""
    return ", ".join(sorted({str(cell.spec["settings"].get(key, default)) for cell in cells}))
