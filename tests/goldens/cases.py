"""What the goldens store: cases by name, each a function of an empty folder.

`FIXED` spells every setting out, and no refactoring may change it. `DEFAULT` is what the defaults
give: only a change of defaults may. `STORED` reads what version 1.0.0 wrote to disk, once.
"""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from goldens import adapter, problems

Numbers = dict[str, Any]
Case = Callable[[Path], Numbers]
HOME = Path(__file__).parent
ROOT = HOME.parents[1]
WRITTEN = HOME / "written_by_1.0.0"

PRIOR = [0.35, 0.4, 0.3, 0.45]
# Every setting of version 1.0.0 for rows. Three epochs, so that rounding has no time to grow.
ROWS: Mapping[str, Any] = {
    "variant": None,
    "class_prior": PRIOR,
    "exclude_rate": None,
    "no_rate": None,
    "yes_rate": None,
    "mistake_rate": 0.0,
    "uses_maybe": True,
    "prior_weight": None,
    "flip_rate": None,
    "model": "mlp",
    "hidden": 6,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "scale": "dense",
    "encoder": None,
    "epochs": 3,
    "batch_size": 32,
    "optimizer": "sgd",
    "learning_rate": 0.05,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "cosine": True,
    "threshold": "half",
    "early_stopping": False,
    "validation_share": 0.2,
    "patience": None,
    "device": "cpu",
    "random_state": 0,
    "progress": False,
}
NETWORKS: dict[str, Any] = {  # how the likelihood trains by default, but for its length
    "dropout": 0.5,
    "n_networks": 2,
    "starts_at_prior": True,
    "optimizer": "adam",
    "learning_rate": 5e-3,
    "cosine": False,
    "scale": "columns",
}
RATES: dict[str, Any] = {"no_rate": 0.75, "yes_rate": 0.7}
IMAGES: Mapping[str, Any] = {
    "variant": None,
    "class_prior": [0.4, 0.35, 0.45],
    "weights": None,
    "image_size": 32,
    "centre_crop": False,
    "features": "auto",
    "standard_errors": 2.0,
    "temperature": 2.0,
    "probe_epochs": 3,
    "epochs": 0,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "backbone_learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "cosine": True,
    "augment": "flip",
    "soft_targets": False,
    "freezes_statistics": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "threshold": "half",
    "early_stopping": False,
    "precision": "float32",
    "device": "cpu",
    "random_state": 0,
    "progress": False,
}


def rows(_: Path, method: str, kind: str = "candidates", **changes: Any) -> Numbers:
    """Fit a method on labels of a kind."""
    X, relevant = problems.rows()
    labels = problems.labels_of_kind(kind, relevant)
    return adapter.fit_rows(X, kind, labels, {**ROWS, "method": method, **changes})


def weighted_rows(_: Path) -> Numbers:
    """Fit on rows that count once to three times."""
    X, relevant = problems.rows()
    weight = 1.0 + np.arange(len(X)) % 3
    settings = {**ROWS, "method": "comes-hl"}
    labels = problems.candidates(relevant)
    return adapter.fit_rows(X, "candidates", labels, settings, sample_weight=weight)


def rows_with_clean_sample(_: Path) -> Numbers:
    """Fit with estimated priors that a clean sample sharpens, and a learned threshold."""
    X, relevant = problems.rows()
    clean = problems.rows(seed=0)[0][:60], relevant[:60]
    settings = {**ROWS, "method": "comes-hl", "class_prior": None, "threshold": "f1"}
    labels = problems.candidates(relevant)
    return adapter.fit_rows(X, "candidates", labels, settings, clean=clean)


def parts_of_rows(_: Path) -> Numbers:
    """Fit part by part."""
    X, relevant = problems.rows()
    settings = {**ROWS, "method": "comes-hl"}
    return adapter.fit_in_parts(X, problems.candidates(relevant), settings, 3)


def sparse_rows(_: Path, *, sparse_answers: bool) -> Numbers:
    """Fit on word counts with many labels."""
    X, relevant = problems.counts()
    said = problems.answers(relevant)
    settings = {**ROWS, **NETWORKS, **RATES, "method": "likelihood", "class_prior": [0.1] * 40}
    return adapter.fit_sparse(X, said["no"], said["yes"], settings, sparse_answers=sparse_answers)


def shards(folder: Path, method: str) -> Numbers:
    """Fit on a stream of Parquet files."""
    X, relevant = problems.rows(480)
    settings = {**ROWS, "method": method, "exclude_rate": 0.5 if method == "likelihood" else None}
    return adapter.fit_shards(X, problems.candidates(relevant), settings, folder, 4)


def mixed_table(_: Path) -> Numbers:
    """Fit on a table with dates, categories, texts and gaps."""
    frame, relevant = problems.table()
    settings = {**ROWS, **NETWORKS, **RATES, "method": "likelihood", "class_prior": [0.5, 0.3, 0.5]}
    return adapter.fit_table(frame, problems.answers(relevant), settings)


def images(_: Path, method: str, kind: str, **changes: Any) -> Numbers:
    """Fit on small pictures."""
    pixels, relevant = problems.pictures()
    labels = problems.labels_of_kind(kind, relevant)
    settings = {**IMAGES, "method": method, **changes}
    return adapter.fit_images(pixels, kind, labels, relevant.shape, settings)


def judged(_: Path, kind: str, error: float | None) -> Numbers:
    """Estimate metrics of noisy scores."""
    relevant = problems.rows()[1]
    prior_error = None if error is None else [error] * 4
    labels = problems.labels_of_kind(kind, relevant)
    return adapter.judge(kind, labels, problems.scores(relevant), PRIOR, prior_error)


def judged_more(_: Path) -> Numbers:
    """Compare models, calibrate, and check the assumption."""
    relevant = problems.rows()[1]
    scores, others = problems.scores(relevant), problems.scores(relevant, seed=9)
    return adapter.judge_more(problems.candidates(relevant), relevant, scores, others, PRIOR)


def priors(_: Path, method: str) -> Numbers:
    """Estimate class priors."""
    X, relevant = problems.rows()
    return adapter.estimate_priors(X, problems.candidates(relevant), method)


def rates(_: Path, kind: str) -> Numbers:
    """Estimate rates of answers."""
    X, relevant = problems.rows()
    labels = problems.labels_of_kind(kind, relevant)
    return adapter.estimate_rates(X, kind, labels, relevant.shape)


def noise(_: Path) -> Numbers:
    """Estimate flip rates and transitions."""
    X, relevant = problems.rows()
    return adapter.estimate_noise(X, problems.candidates(relevant))


EXPERIMENT = {
    "name": "golden",
    "folds": 3,
    "data": [{"name": "scenes", "case": "b", "rate": 0.5, "rows": 240}],
    "methods": [{"method": "comes-hl"}, {"method": "bce"}],
    "settings": {"epochs": 2, "hidden": 8, "device": "cpu"},
}


def planned(_: Path) -> Numbers:
    """Plan every experiment file of the repository."""
    files = sorted((ROOT / "experiments").glob("*.toml"))
    return {path.name: adapter.plan_experiment(path) for path in files}


def tabulated(_: Path) -> Numbers:
    """Read every result of the repository into its table."""
    folders = sorted(path for path in (ROOT / "experiments/results").iterdir() if path.is_dir())
    tables = {folder.name: adapter.tabulate_results(folder) for folder in folders}
    joined = pd.concat(tables, names=["experiment"]).reset_index(level=0)
    sizes = {name: len(table) for name, table in tables.items()}
    return {"rows": sizes, "tables.csv": joined.to_csv(index=False, float_format="%.6f")}


def stored_model(_: Path, name: str) -> Numbers:
    """Predict with a model folder of version 1.0.0."""
    inputs = {
        "rows": problems.rows()[0],
        "rows_bent": problems.rows()[0],
        "table": problems.table()[0],
        "images": problems.pictures()[0],
    }
    return adapter.predict_stored(WRITTEN / name, inputs[name])


def measured(_: Path) -> Numbers:
    """Measure noisy scores against the truth."""
    relevant = problems.rows()[1]
    return adapter.measure(problems.scores(relevant), relevant)


def drawn(_: Path) -> Numbers:
    """Draw candidates and answers."""
    return adapter.draw(problems.rows()[1])


def experiment(folder: Path) -> Numbers:
    """Run two methods, and report them."""
    return adapter.run_experiment(EXPERIMENT, folder)


def stored_project(folder: Path) -> Numbers:
    """Export a copy of an annotation project of version 1.0.0: what is opened may be migrated."""
    copied = shutil.copytree(WRITTEN / "project", folder / "project")
    return adapter.export_stored(copied, folder)


PAPER = ("comes-hl", "comes-rl", "ccmn", "gdf", "ctl", "mlcl", "bce")
KINDS = ("candidates", "answers", "annotators")

FIXED: dict[str, Case] = {}
for _kind in KINDS:
    for _method in PAPER:
        _flip: dict[str, Any] = {"flip_rate": 0.5} if _method == "ccmn" else {}
        FIXED[f"{_method} on {_kind}"] = partial(rows, method=_method, kind=_kind, **_flip)
    _known: dict[str, Any] = {"exclude_rate": 0.5} if _kind == "candidates" else RATES
    FIXED[f"likelihood on {_kind}"] = partial(
        rows, method="likelihood", kind=_kind, **NETWORKS, **_known
    )
    FIXED[f"likelihood on {_kind}, estimated"] = partial(
        rows, method="likelihood", kind=_kind, **NETWORKS, class_prior=None
    )
FIXED |= {
    "bce on ticks": partial(rows, method="bce", kind="ticks"),
    "likelihood on ticks, estimated": partial(
        rows, method="likelihood", kind="ticks", **NETWORKS, class_prior=None
    ),
    "ccmn ranking": partial(rows, method="ccmn", variant="ranking", flip_rate=0.5),
    "comes-hl unbiased": partial(rows, method="comes-hl-unbiased"),
    "comes-hl, batch counts": partial(rows, method="comes-hl", normaliser="batch"),
    "comes-hl, linear model": partial(rows, method="comes-hl", model="linear", optimizer="adamw"),
    "comes-hl, early stopping": partial(rows, method="comes-hl", early_stopping=True),
    "comes-hl, threshold by risk": partial(rows, method="comes-hl", threshold="risk"),
    "comes-hl, threshold by prior": partial(rows, method="comes-hl", threshold="prior"),
    "comes-rl, flooded": partial(rows, method="comes-rl", flood_level="auto", reduction="mean"),
    "likelihood with mistakes": partial(
        rows,
        method="likelihood",
        kind="answers",
        **NETWORKS,
        **RATES,
        mistake_rate=0.05,
        prior_weight=0.5,
    ),
    "likelihood without maybe": partial(
        rows, method="likelihood", kind="answers", **NETWORKS, **RATES, uses_maybe=False
    ),
    "weighted rows": weighted_rows,
    "clean sample": rows_with_clean_sample,
    "parts of rows": parts_of_rows,
    "sparse rows": partial(sparse_rows, sparse_answers=False),
    "sparse rows and answers": partial(sparse_rows, sparse_answers=True),
    "mixed table": mixed_table,
    "images, likelihood on answers": partial(
        images, method="likelihood", kind="answers", no_rate=0.75, yes_rate=0.7
    ),
    "images, comes-hl on candidates": partial(images, method="comes-hl", kind="candidates"),
    "images, fine-tuned": partial(images, method="comes-rl", kind="candidates", epochs=1),
    "priors, hierarchical": partial(priors, method="hierarchical"),
    "priors, bbe": partial(priors, method="bbe"),
    "rates of annotators": partial(rates, kind="annotators"),
    "noise": noise,
    "judged by candidates": partial(judged, kind="candidates", error=0.03),
    "judged by answers": partial(judged, kind="answers", error=None),
    "judged by annotators": partial(judged, kind="annotators", error=None),
    "judged more": judged_more,
    "metrics": measured,
    "generation": drawn,
    "stream, comes-hl": partial(shards, method="comes-hl"),
    "stream, likelihood": partial(shards, method="likelihood"),
    "experiment": experiment,
    "experiment files": planned,
    "stored results": tabulated,
    "annotation": adapter.annotate,
}

STORED: dict[str, Case] = {
    "model of rows": partial(stored_model, name="rows"),
    "model with rates by instance": partial(stored_model, name="rows_bent"),
    "model of table": partial(stored_model, name="table"),
    "model of images": partial(stored_model, name="images"),
    "annotation project": stored_project,
}


def default(_: Path, n: int, kind: str, seed: int) -> Numbers:
    """Fit with all defaults."""
    X, relevant = problems.rows(n, d=8, seed=seed)
    labels = problems.labels_of_kind(kind, relevant)
    settings = {"random_state": 0, "device": "cpu", "progress": False}
    return adapter.fit_rows(X, kind, labels, settings)


DEFAULT: dict[str, Case] = {
    "candidates, 200 rows": partial(default, n=200, kind="candidates", seed=20),
    "answers, 200 rows": partial(default, n=200, kind="answers", seed=21),
    "annotators, 300 rows": partial(default, n=300, kind="annotators", seed=22),
    "ticks, 300 rows": partial(default, n=300, kind="ticks", seed=23),
}
