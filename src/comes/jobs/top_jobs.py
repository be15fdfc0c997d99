"""Jobs for very many labels: the best of them for every item, written or judged part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from comes.datasets import Dataset, ReadOptions
from comes.datasets.predictions import check_top, top_table, write_prediction_table
from comes.images import ImageClassifier
from comes.jobs.fitted_models import Classifier, as_model, open_for_model
from comes.jobs.judge_jobs import count_seen
from comes.jobs.predict_jobs import check_targets, read_inputs, warn_of_repeated
from comes.top_metrics import count_empty_rows, evaluate_top

COMPARED = (1, 3, 5)  # what the field prints


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

    write_prediction_table(make_tables(), output)
    return WrittenTop(n_items, len(names))


@dataclass(frozen=True)
class JudgedTop:
    """How good the best labels of a model are on one data set.

    Examples
    --------
    >>> JudgedTop(10, {"precision@1": 0.5}, 2).as_dict()
    {'precision@1': 0.5, 'rows': 10, 'rows_without_relevant': 2}
    """

    n_rows: int
    metrics: dict[str, float]
    n_empty: int  # rows without a relevant label, which count 0
    n_seen: int = 0  # rows with the features of a row that training saw

    def as_dict(self) -> dict[str, float]:
        """Return it for json."""
        seen = {"rows_seen_in_training": self.n_seen} if self.n_seen else {}
        return self.metrics | {"rows": self.n_rows, "rows_without_relevant": self.n_empty} | seen


def judge_top(
    model: Classifier | str | Path,
    data: Dataset | str | Path,
    top: int = 5,
    *,
    reading: ReadOptions | None = None,
) -> JudgedTop:
    """Compare the best labels of every row with the true labels, without a matrix of all scores.

    Parameters
    ----------
    model : fitted classifier, or the folder of one
    data : Dataset, path or name
        Rows that training did not see, with their true labels.
    top : int
        P@k and nDCG@k are computed for k = 1, 3 and 5 up to this number, and for itself.
    reading : ReadOptions, optional
        What the columns of a file mean.

    Returns
    -------
    judged : JudgedTop

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> from comes.datasets import make_scenes
    >>> scenes = make_scenes(n=100)
    >>> model = CandidateClassifier("bce", epochs=1).fit(scenes.X, scenes.relevant)
    >>> list(judge_top(model, scenes, top=2).metrics)
    ['precision@1', 'precision@2', 'ndcg@1', 'ndcg@2']
    """
    classifier = as_model(model)
    check_top(top, len(classifier.label_names_))
    dataset = open_for_model(classifier, data, reading)
    relevant = dataset.known_relevant()
    is_of_images = isinstance(classifier, ImageClassifier)
    X = dataset.known_images() if is_of_images else dataset.known_features()
    ks = sorted({k for k in COMPARED if k < top} | {top})
    metrics = evaluate_top(classifier.predict_top(X, top).labels, relevant, ks)
    n_seen = count_seen(classifier, dataset)
    return JudgedTop(len(dataset), metrics, count_empty_rows(relevant), n_seen)
