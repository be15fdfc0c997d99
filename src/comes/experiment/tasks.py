"""One task is one cell of a table: a method on a data set, with all its repeats."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, train_test_split

from comes.datasets import Dataset, make_scenes, open_dataset
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


def load(spec: dict[str, Any]) -> Dataset:
    """Return the data set of a task, whose truth must be known."""
    name = spec["data"]["name"]
    dataset = make_scenes(n=2000) if name == "scenes" else open_dataset(name)
    dataset.known_relevant()
    if spec["data"]["case"] is None and dataset.candidates is None:
        raise ComesError(f"{name} has no candidates of its own; give it a case.")
    return dataset


def repeats_of(spec: dict[str, Any], dataset: Dataset) -> Iterator[Repeat]:
    """Give the folds, or the seeds of candidates, of a task."""
    relevant, n, seed = dataset.known_relevant(), len(dataset), spec["seed"]
    case, rate = spec["data"]["case"], spec["data"]["rate"]

    def candidates(rows: Rows, seed: int) -> BoolMatrix:
        """Return the data set's own, or make some for these rows."""
        if case is None:
            assert dataset.candidates is not None
            return dataset.candidates
        made = np.ones_like(relevant)
        made[rows] = generate(case, relevant[rows], dataset.X[rows], rate=rate, seed=seed)
        return made

    if spec["folds"] is not None:
        folds = KFold(spec["folds"], shuffle=True, random_state=seed)
        for train, test in list(folds.split(np.zeros(n)))[: spec["first_folds"]]:
            yield Repeat(train, test, candidates(train, seed))
        return
    train, test = train_test_split(np.arange(n), test_size=spec["test_share"], random_state=seed)
    for more in range(spec["label_seeds"]):
        yield Repeat(train, test, candidates(train, seed + more))
