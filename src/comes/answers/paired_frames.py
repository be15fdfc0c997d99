"""DataFrames whose rows and labels are paired by position: they must name them alike."""

from itertools import pairwise
from typing import Any

from comes.errors import ComesError, listed


def check_paired(*, same_labels: bool = False, **values: Any) -> None:
    """Raise an error if DataFrames name their rows, or their labels, differently.

    Rows are paired by position, which is wrong if two frames have them in another order, or have
    other rows. Arrays and None name nothing.

    Parameters
    ----------
    same_labels : bool
        The columns of all are labels, in one order.
    **values : DataFrame or anything
        Under the name by which an error calls them. Frames of other lengths are not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> X, y = pd.DataFrame({"red": [1, 2]}), pd.DataFrame({"sky": [1, 0]}, index=[1, 0])
    >>> check_paired(X=X, y=y.loc[X.index])
    >>> check_paired(X=X, y=y)
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: X and y must have their rows in the same order; got DataFrames with \
the same index in another order. Write y.loc[X.index], or reset both (reset_index(drop=True)).
    """
    frames = {name: frame for name, frame in values.items() if hasattr(frame, "columns")}
    frames = {name: frame for name, frame in frames.items() if hasattr(frame, "index")}
    for (first, one), (second, other) in pairwise(frames.items()):
        if len(one) == len(other) and not one.index.equals(other.index):
            raise _make_error(first, second, one.index, other.index)
        labels, others = ([str(name) for name in frame.columns] for frame in (one, other))
        if same_labels and labels != others:
            raise ComesError(
                f"{first} and {second} must have the same labels in the same order; got "
                f"{listed(labels)} and {listed(others)}. Write {second}[{first}.columns]."
            )


def _make_error(first: str, second: str, index: Any, other: Any) -> ComesError:
    """Return the error for two indexes that differ."""
    if set(index) == set(other):
        return ComesError(
            f"{first} and {second} must have their rows in the same order; got DataFrames with the "
            f"same index in another order. Write {second}.loc[{first}.index], or reset both "
            "(reset_index(drop=True))."
        )
    place = next(k for k, (a, b) in enumerate(zip(index, other, strict=True)) if a != b)
    return ComesError(
        f"{first} and {second} must have the same rows; got DataFrames with different indexes, "
        f"{index[place]!r} and {other[place]!r} at row {place}. Write {second}.loc[{first}.index] "
        f"or, if they belong together as they stand, {second}.set_index({first}.index)."
    )
