"""Features and images joined to labels, and data sets joined row by row."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers
from comes.datasets.dataset import Dataset, check_item_names, take_rows
from comes.datasets.images import Images, open_images
from comes.errors import ComesError, listed
from comes.tables.columns import match_by_name


def join_features(dataset: Dataset, X: Any, items: Sequence[str] | None) -> Dataset:
    """Return the data set with these features, matched by the names of the items.

    Examples
    --------
    >>> answers = Dataset(None, ["sky"], np.array([[True], [False]]), items=["b", "a"])
    >>> join_features(answers, np.array([[1.0], [2.0]]), ["a", "b"]).X
    array([[2.],
           [1.]])
    """
    if dataset.items is None or items is None:
        if dataset.items is None and items is None and X.shape[0] == len(dataset):
            return replace(dataset, X=X)
        raise ComesError(
            f"features are matched by the names of the items: {len(dataset)} rows of labels "
            f"{'have' if dataset.items is not None else 'lack'} them, {X.shape[0]} rows of "
            f"features {'have' if items is not None else 'lack'} them. Add a column 'item' (an "
            "array 'items' in .npz)."
        )
    check_item_names(items)
    rows = pd.Index(items).get_indexer(pd.Index(dataset.items))
    missing = [name for name, row in zip(dataset.items, rows, strict=True) if row < 0]
    if missing:
        raise ComesError(
            f"{len(missing)} items have labels and no features (first: {missing[0]!r}). Add them "
            "to the file of features, or leave them out of the labels."
        )
    return replace(dataset, X=take_rows(X, rows), n_left_out=len(items) - len(dataset))


def join_rows(first: Dataset, second: Dataset) -> Dataset:
    """Return a data set with the rows of two, which have the same labels and kind of features.

    Examples
    --------
    >>> one = Dataset(np.eye(2), ["sky"], relevant=np.array([[True], [False]]))
    >>> join_rows(one, one).X.shape
    (4, 2)
    """
    if first.label_names != second.label_names:
        other = listed(sorted({*first.label_names} ^ {*second.label_names}))
        raise ComesError(
            "two files must have the same labels in the same order; got others"
            f"{f': {other}' if other else ''}. Read both with the same label_names."
        )
    X, answers = _stack_rows(first.X, second.X), None
    if first.answers is not None and second.answers is not None:
        answers = _stack_answers(first.answers, second.answers)
        if isinstance(X, pd.DataFrame) and answers.index is not None:
            X = X.set_axis(answers.index)
    relevant = _stack_rows(first.relevant, second.relevant)
    return Dataset(X, first.label_names, relevant=relevant, answers=answers)


def _stack_answers(first: Answers, second: Answers) -> Answers:
    """Return the answers about the rows of one after those of another."""
    if first.kind != second.kind:
        raise ComesError(f"two files must have labels of one kind; got {first!r} and {second!r}.")
    index = annotations = chosen = None
    if first.index is not None and second.index is not None:
        index = first.index.append(second.index)
    if first.annotations is not None and second.annotations is not None:
        one, other = first.annotations, second.annotations
        names = [np.asarray(part.people, str)[part.person] for part in (one, other)]
        people, person = np.unique(np.concatenate(names), return_inverse=True)
        annotations = LongAnswers(
            np.concatenate([one.row, other.row + len(first)]),
            np.concatenate([one.label, other.label]),
            person,
            np.concatenate([one.code, other.code]),
            tuple(map(str, people)),
        )
    if first.chosen is not None or second.chosen is not None:
        marks = [np.zeros(a.shape, bool) if a.chosen is None else a.chosen for a in (first, second)]
        chosen = np.concatenate(marks)
    if chosen is None and (first.is_sparse or second.is_sparse):
        states = sparse.vstack([first.states, second.states], "csr")
    else:
        states = np.concatenate([first.codes, second.codes])
    return Answers.from_codes(
        states, first.kind, first.label_names, annotations=annotations, chosen=chosen, index=index
    )


def _stack_rows(first: Any, second: Any) -> Any:
    """Return the rows of one part after those of another; None unless both have it."""
    if first is None or second is None:
        return None
    if isinstance(first, Images):
        return Images(first.sources + second.sources, first.names + second.names)
    if isinstance(first, pd.DataFrame) and isinstance(second, pd.DataFrame):
        return pd.concat([first, match_by_name(second, list(first.columns))], ignore_index=True)
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], "csr")
    return np.concatenate([first, second])


def join_images(dataset: Dataset, source: str | Path, skip_broken: bool = False) -> Dataset:
    """Return the data set with the images of a folder or zip that its items name."""
    if dataset.items is None:
        raise ComesError(
            "images are found by the names of the items, and the data has none. Name them in a "
            "column 'image'."
        )
    images, kept = open_images(source, dataset.items, skip_broken)
    return replace(dataset if len(kept) == len(dataset) else dataset.take(kept), X=images)
