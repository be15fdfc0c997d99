"""One task is one cell of a table: a method on a data set, with all its repeats."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import KFold, train_test_split

from comes.datasets import Dataset, join_rows, make_scenes, open_dataset
from comes.errors import ComesError
from comes.generation import generate
from comes.labels import BoolMatrix

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """A method on a data set. Its spec is plain json, and decides the result alone."""

    experiment: str
    data: str  # name in tables
    method: str  # name in tables
    spec: dict[str, Any]
    sweep: str = ""  # the key of the spec that the experiment varies, if it does

    @property
    def names(self) -> dict[str, str]:
        """The names that its result goes by; the same work may have others elsewhere."""
        return {
            "experiment": self.experiment,
            "data": self.data,
            "method": self.method,
            "sweep": self.sweep,
        }

    @property
    def name(self) -> str:
        """What a person would call it; no other task of the experiment has the same."""
        at = f", {self.sweep} {self.spec[self.sweep]:g}" if self.sweep else ""
        return f"{self.method} on {self.data}{at}"

    @cached_property
    def key(self) -> str:
        """Name of its folder: equal specs have equal keys, in whatever experiment they are."""
        text = json.dumps(self.spec, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Repeat(NamedTuple):
    """Rows to train and to test on, and candidates, of which test rows have none that is used."""

    train: Rows
    test: Rows
    candidates: BoolMatrix  # (n, q)


class Loaded(NamedTuple):
    """A data set, and how many of its rows are to be trained on; None where that is drawn."""

    dataset: Dataset
    n_train: int | None


def load(spec: dict[str, Any]) -> Loaded:
    """Return the data set of a task, whose truth must be known, with that to test on behind it."""
    dataset = _open(spec, spec["data"]["name"])
    if "test" not in spec["data"]:
        return Loaded(dataset, None)
    test = _open(spec, spec["data"]["test"]).with_labels(dataset.label_names)
    return Loaded(join_rows(dataset, test), len(dataset))


def _open(spec: dict[str, Any], name: str) -> Dataset:
    if name == "scenes":
        dataset = make_scenes(n=spec["data"].get("rows", 2000))
    else:
        dataset = open_dataset(name, **spec["data"].get("read", {}))
    dataset.known_relevant()
    if "case" not in spec["data"] and dataset.candidates is None:
        raise ComesError(f"{name} has no candidates of its own; give it a case.")
    if isinstance(dataset.X, pd.DataFrame):  # rows are taken by number
        return replace(dataset, X=dataset.X.to_numpy(dtype=np.float64))
    return dataset


def repeats_of(
    spec: dict[str, Any], dataset: Dataset, n_train: int | None = None
) -> Iterator[Repeat]:
    """Give the folds, or the seeds of candidates, of a task."""
    relevant, n, seed = dataset.known_relevant(), len(dataset), spec["seed"]
    case, rate = spec["data"].get("case"), spec["data"].get("rate")

    def candidates(rows: Rows, seed: int) -> BoolMatrix:
        """Return the data set's own, or make some for these rows."""
        if case is None:
            assert dataset.candidates is not None
            return dataset.candidates
        made = np.ones_like(relevant)
        X = dataset.X[rows] if case == "instance" else None
        made[rows] = generate(case, relevant[rows], X, rate=rate, seed=seed)
        return made

    def some(rows: Rows, seed: int) -> Rows:
        """Return the rows to train on: all, or as many as asked for."""
        most = int(spec.get("train_rows", len(rows)))
        if most > len(rows):
            raise ComesError(f"train_rows is {most}, and there are {len(rows)} rows to train on.")
        return rows if most == len(rows) else np.random.default_rng(seed).permutation(rows)[:most]

    if "folds" in spec:
        folds = KFold(spec["folds"], shuffle=True, random_state=seed)
        splits = list(folds.split(np.zeros(n)))[: spec.get("first_folds")]
        for k, (train, test) in enumerate(splits):
            yield Repeat(some(train, seed + k), test, candidates(train, seed))
        return
    if n_train is not None:
        train, test = np.split(np.arange(n), [n_train])
    else:
        train, test = train_test_split(
            np.arange(n), test_size=spec["test_share"], random_state=seed
        )
    for k in range(spec["label_seeds"]):
        yield Repeat(some(train, seed + k), test, candidates(train, seed + k))
