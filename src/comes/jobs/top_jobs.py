"""A job for very many labels: the best of them for every item, written as they are found."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from comes.datasets import Dataset, check_top, top_table, write_top_tables
from comes.jobs.fitted_models import Classifier, as_model
from comes.jobs.predict_jobs import check_targets, read_inputs, warn_of_repeated


@dataclass(frozen=True)
class WrittenTop:
    """How much was written.

    Examples
    --------
    >>> WrittenTop(n_items=200, n_labels=10).n_items
    200
    """

    n_items: int
    n_labels: int


def write_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    output: str | Path,
    top: int,
    *,
    images: str | Path | None = None,
    skip_broken: bool = False,
    item: str | None = None,
    scores: bool = False,
) -> WrittenTop:
    """Write the labels of highest score of every row or image, with their probabilities.

    Items are scored and written in parts, so that memory does not grow with the number of items
    times the number of labels, as that of `predict_items` does.

    Parameters
    ----------
    model, data, images, skip_broken, item
        As in `predict_items`.
    output : path
        A table with the columns item, rank, label and probability (.csv, .parquet and others), or
        lines of json (.jsonl).
    top : int
        How many labels of each item.
    scores : bool
        Add a column of scores.

    Returns
    -------
    written : WrittenTop

    Examples
    --------
    >>> import tempfile
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> path = Path(tempfile.mkdtemp()) / "top.csv"
    >>> write_top(model, scenes, path, top=3).n_items
    100
    >>> list(pd.read_csv(path).columns), len(pd.read_csv(path))
    (['item', 'rank', 'label', 'probability'], 300)
    """
    check_targets((data, images, model), output)
    classifier = as_model(model)
    names = np.array(classifier.label_names_, dtype=object)
    check_top(top, len(names))
    X, items = read_inputs(classifier, data, images, skip_broken, item)
    warn_of_repeated(items)
    n_items = 0

    def make_tables() -> Iterator[pd.DataFrame]:
        nonlocal n_items
        for part in classifier.stream_top(X, top):
            rows = range(n_items, n_items + len(part))
            own = rows if items is None else items[rows.start : rows.stop]
            found = part.scores if scores else None
            yield top_table(part.labels, part.probabilities, names, own, scores=found)
            n_items = rows.stop

    write_top_tables(make_tables(), output)
    return WrittenTop(n_items, len(names))
