"""A small sample with true labels, read and matched to the data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from comes.datasets import Dataset, Images, ReadOptions
from comes.datasets.opening import open_truth
from comes.errors import ComesError
from comes.priors import CleanSample
from comes.tables import ColumnEncoder
from comes.tables.columns import needs_encoding


def read_clean(
    dataset: Dataset, clean: Dataset | str | Path | None, reading: ReadOptions | None
) -> CleanSample | None:
    """Return the clean sample, with the answers about its rows if they are items of the data.

    The columns of a file have the names that those of the data have, and hold the truth.
    """
    if clean is None:
        return None
    if reading is not None and reading.labels is not None:
        reading = replace(reading, label_names=dataset.label_names)  # a file may miss some
    sample = _read_truth(clean, reading).align_labels(dataset.label_names)
    relevant = sample.known_relevant()
    if sample.answers is not None:
        return CleanSample(sample.X, relevant, sample.answers)
    if sample.items is None or dataset.items is None or dataset.answers is None:
        return CleanSample(sample.X, relevant)
    place = {name: row for row, name in enumerate(dataset.items)}
    found = [place.get(name, -1) for name in sample.items]
    if max(found) < 0:
        return CleanSample(sample.X, relevant)
    if min(found) < 0:
        missing = [name for name, row in zip(sample.items, found, strict=True) if row < 0]
        raise ComesError(
            f"{len(missing)} of {len(found)} clean items are not in the data (first: "
            f"{missing[0]!r}). Give items of the data only, or none of them."
        )
    of_data = dataset.take(found).X
    _refuse_other_features(sample, of_data, dataset.X)
    return CleanSample(of_data, relevant, dataset.answers[found])


def _read_truth(clean: Dataset | str | Path, reading: ReadOptions | None) -> Dataset:
    """Return the clean data, with true labels."""
    found = clean if isinstance(clean, Dataset) else open_truth(clean, reading)
    if found.relevant is None:
        raise ComesError(
            "the clean sample (--clean) must have true labels; got none. Call their columns "
            "'relevant:NAME', or as the labels of the data are called."
        )
    return found


def _refuse_other_features(sample: Dataset, of_data: Any, whole: Any) -> None:
    """Raise an error if clean items have other features than the items of that name in the data."""
    if sample.X is None or isinstance(of_data, Images):
        return
    pair = (sample.X, of_data)
    if isinstance(whole, pd.DataFrame) and needs_encoding(whole):
        encoder = ColumnEncoder().fit(whole)
        pair = (encoder.transform(sample.X), encoder.transform(of_data))
    first, second = (np.asarray(X.todense() if issparse(X) else X) for X in pair)
    if first.shape != second.shape:
        return  # the estimator says what it wants
    differ = ~np.isclose(first, second, rtol=1e-4, atol=1e-6).all(axis=1)
    if differ.any() and sample.items is not None:
        name = sample.items[int(differ.argmax())]
        raise ComesError(
            f"{int(differ.sum())} clean items have other features than the data has for items of "
            f"that name (first: {name!r}). Name other items otherwise, or leave the names out."
        )
