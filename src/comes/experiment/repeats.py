"""The repeats of a task: which rows are trained and tested on, with which labels."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, train_test_split

from comes.datasets import Dataset, join_rows, make_scenes, open_dataset
from comes.errors import ComesError
from comes.experiment.protocols import Rows, draw_labels
from comes.results import DataSpec, TaskSpec
from comes.tables.columns import needs_encoding


class Repeat(NamedTuple):
    """Rows to train and to test on, and labels; those of test rows are never used."""

    train: Rows
    test: Rows
    labels: Any  # (n, q): candidates as a bool matrix, or what the method sees as Answers


class Loaded(NamedTuple):
    """A data set, and how many of its rows are to be trained on; None where that is drawn."""

    dataset: Dataset
    n_train: int | None


def load_data(spec: DataSpec) -> Loaded:
    """Return the data set of a task, followed by the rows of its test set if it names one."""
    dataset = _open_part(spec, spec.name)
    if spec.test is None:
        return Loaded(dataset, None)
    test = _open_part(spec, spec.test).align_labels(dataset.label_names)
    return Loaded(join_rows(dataset, test), len(dataset))


def _open_part(spec: DataSpec, name: str) -> Dataset:
    """Return the data set to train on, or the one to test on."""
    if name == "scenes":
        dataset = make_scenes(n=2000 if spec.rows is None else spec.rows)
    else:
        dataset = open_dataset(name, **(spec.read or {}))
    dataset.known_relevant()
    if spec.case is None and spec.answers is None and dataset.candidates is None:
        raise ComesError(f"{name} comes without candidates; give it a case, or answers.")
    if isinstance(dataset.X, pd.DataFrame) and not needs_encoding(dataset.X):
        return replace(dataset, X=dataset.X.to_numpy(dtype=np.float64))
    return dataset


def draw_repeats(spec: TaskSpec, dataset: Dataset, n_train: int | None = None) -> Iterator[Repeat]:
    """Yield the folds, or the label seeds, of a task."""
    for k, (train, test) in enumerate(_split_rows(spec, len(dataset), n_train)):
        label_seed = spec.seed if spec.folds is not None else spec.seed + k
        labels = draw_labels(spec, dataset, train, label_seed)
        yield Repeat(_draw_rows(train, spec.train_rows, spec.seed + k), test, labels)


def _split_rows(spec: TaskSpec, n: int, n_train: int | None) -> list[tuple[Rows, Rows]]:
    """Return the rows to train and to test on of every repeat; label seeds share them."""
    if spec.folds is not None:
        if spec.folds > n:
            raise ComesError(f"folds must be at most the number of rows, {n}; got {spec.folds}.")
        folds = KFold(spec.folds, shuffle=True, random_state=spec.seed)
        return list(folds.split(np.zeros(n)))[: spec.first_folds]
    assert spec.label_seeds is not None
    if n_train is not None:
        train, test = np.split(np.arange(n), [n_train])
    else:
        train, test = train_test_split(
            np.arange(n), test_size=spec.test_share, random_state=spec.seed
        )
    return [(train, test)] * spec.label_seeds


def _draw_rows(rows: Rows, train_rows: float | None, seed: int) -> Rows:
    """Return the rows to train on: all, or as many as the task wants."""
    most = len(rows) if train_rows is None else int(train_rows)
    if most > len(rows):
        raise ComesError(f"train_rows is {most}, and there are {len(rows)} rows to train on.")
    return rows if most == len(rows) else np.random.default_rng(seed).permutation(rows)[:most]
