"""Good files, to be spoiled: small tables of every form, a model of them, pictures, a project."""

import atexit
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes import Answers, CandidateClassifier
from comes.datasets import Dataset, write_dataset
from comes.errors import ComesWarning
from comes.generation import case_b, simulate_answers

LABELS = ["sea", "sky", "sun", "tree"]
FEATURES = ["red", "green", "blue"]
ROWS = 60
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@cache
def features() -> Floats:
    """Return features of shape (60, 3)."""
    return np.random.default_rng(0).normal(size=(ROWS, len(FEATURES))).round(3)


@cache
def relevant() -> Bools:
    """Return true labels of shape (60, 4); every row has one, and none has all."""
    X = features()
    found = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.3, X[:, 2] > 0.5, X.sum(axis=1) > 1])
    found[~found.any(axis=1), 0] = True
    found[found.all(axis=1), 3] = False
    return found


@cache
def candidates() -> Bools:
    """Return candidates of shape (60, 4)."""
    return case_b(relevant(), exclude_rate=0.5, seed=0)


@cache
def answers() -> Answers:
    """Return answers about half the pairs."""
    drawn = simulate_answers(relevant(), asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=0)
    return drawn.rename_labels(LABELS)


def frame(**columns: Any) -> pd.DataFrame:
    """Return the features as a table, with other columns beside them."""
    return pd.DataFrame(features(), columns=FEATURES).assign(**columns)


def joined(labels: Bools, separator: str = ";") -> list[str]:
    """Return the names of the labels in each row."""
    names = np.array(LABELS)
    return [separator.join(names[row]) or "(none)" for row in labels]


def wide(labels: Bools, prefix: str) -> dict[str, npt.NDArray[np.int64]]:
    """Return a column of 0 and 1 per label."""
    return {f"{prefix}{name}": labels[:, j].astype(int) for j, name in enumerate(LABELS)}


def text_of(table: pd.DataFrame, **options: Any) -> str:
    """Return a table as csv."""
    return str(table.to_csv(index=False, **options))


@cache
def _materials() -> Path:
    """Write the good files once; return their folder."""
    folder = Path(tempfile.mkdtemp(prefix="comes-materials-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frame(maybe=joined(candidates())).to_csv(folder / "names.csv", index=False)
    both = wide(candidates(), "has_") | wide(relevant(), "is_")
    frame(**both).to_csv(folder / "wide.csv", index=False)
    frame(**wide(relevant(), "is_")).to_csv(folder / "truth.csv", index=False)
    frame().to_csv(folder / "new.csv", index=False)
    items = [f"p{k}" for k in range(ROWS)]
    frame(item=items).to_csv(folder / "features.csv", index=False)
    said = Dataset(None, LABELS, answers=answers(), items=items)
    write_dataset(said, folder / "long.csv", form="long")
    write_dataset(Dataset(features(), LABELS, answers=answers()), folder / "answers.npz")
    priors = pd.DataFrame({"label": LABELS, "class_prior": relevant().mean(axis=0)})
    priors.to_csv(folder / "priors.csv", index=False)
    return folder


def copy_materials(folder: Path) -> list[Path]:
    """Copy the good files into a folder; return their new paths."""
    return [
        Path(shutil.copy(path, folder / path.name))
        for path in sorted(_materials().iterdir())
        if path.is_file()
    ]


@cache
def fitted() -> CandidateClassifier:
    """Return a classifier that has seen the good table for two epochs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        said = pd.DataFrame(candidates(), columns=LABELS)
        return small(random_state=0).fit(frame(), said)


def small(**settings: Any) -> CandidateClassifier:
    """Return a classifier that trains in a moment."""
    return CandidateClassifier(
        **{"epochs": 2, "hidden": 8, "n_networks": 1, "device": "cpu", "verbose": -1} | settings
    )


@cache
def _model() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="comes-model-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fitted().save(folder / "model")
    return folder / "model"


def copy_model(folder: Path, name: str = "model") -> Path:
    """Copy the model of the good table into a folder; return its path."""
    return Path(shutil.copytree(_model(), folder / name))
