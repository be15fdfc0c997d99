"""Whatever is written is read as it was."""

import string
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from comes.datasets import Dataset, answers_of, read_dataset, write_dataset
from comes.errors import ComesError, ComesWarning

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
LETTERS = string.ascii_letters + string.digits + " .,:'\"éß中-_/=#%()[]{}|&"
NAME = st.text(LETTERS, min_size=1, max_size=8)


def names(n: int) -> st.SearchStrategy[list[str]]:
    return st.lists(NAME, min_size=n, max_size=n, unique=True)


def matrix(n: int, q: int) -> st.SearchStrategy[npt.NDArray[np.bool_]]:
    return hnp.arrays(bool, (n, q))


@st.composite
def datasets(draw: Any, are_answers: bool = False) -> Dataset:
    n, d, q = (draw(st.integers(1, 5)) for _ in range(3))
    candidates = relevant = asked = None
    if are_answers or draw(st.booleans()):
        candidates = draw(matrix(n, q))
        if draw(st.booleans()):
            asked = ~candidates | draw(matrix(n, q))
    if candidates is None or draw(st.booleans()):
        relevant = draw(matrix(n, q))
        relevant = relevant if candidates is None else relevant & candidates
    X: Any = draw(hnp.arrays(float, (n, d), elements=FINITE))
    container = "array" if are_answers else draw(st.sampled_from(("array", "csr", "frame")))
    if container == "csr":
        X = sparse.csr_array(X)
    elif container == "frame":
        X = pd.DataFrame(X, columns=[f"feature {j}" for j in range(d)])
    items = draw(names(n) if are_answers else st.none() | names(n))
    is_complementary = candidates is not None and asked is None and draw(st.booleans())
    return Dataset(X, draw(names(q)), candidates, relevant, asked, items, is_complementary)


def assert_same(read: Dataset, written: Dataset, parts: tuple[str, ...]) -> None:
    if "X" in parts:
        now, then = (X.toarray() if sparse.issparse(X) else X for X in (read.X, written.X))
        np.testing.assert_array_equal(now, then)
    for part in parts:
        if part in ("candidates", "relevant", "asked"):
            np.testing.assert_array_equal(getattr(read, part), getattr(written, part))
    for part in ("label_names", "items", "from_complementary"):
        if part in parts:
            assert getattr(read, part) == getattr(written, part)


def round_trip(dataset: Dataset, ending: str, form: Any = "wide") -> Dataset:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)  # of what the format cannot hold
        path = Path(folder) / f"data{ending}"
        write_dataset(dataset, path, form)
        return read_dataset(path)


ALL = ("X", "candidates", "relevant", "asked", "label_names", "items", "from_complementary")
TABLES = st.sampled_from([".csv", ".parquet"])
SETTINGS = settings(max_examples=25, deadline=None)


@SETTINGS
@given(dataset=datasets())
def test_npz_holds_everything(dataset: Dataset) -> None:
    read = round_trip(dataset, ".npz")
    assert_same(read, dataset, ALL)
    assert type(read.X) is type(dataset.X)


@SETTINGS
@given(dataset=datasets(), ending=TABLES)
def test_wide_tables_hold_everything(dataset: Dataset, ending: str) -> None:
    read = round_trip(dataset, ending)
    assert_same(read, dataset, ALL)
    if isinstance(dataset.X, pd.DataFrame):
        assert list(read.X.columns) == list(dataset.X.columns)


@SETTINGS
@given(dataset=datasets())
def test_mat_files_hold_features_and_labels(dataset: Dataset) -> None:
    read = round_trip(dataset, ".mat")
    assert_same(read, dataset, ("X", "candidates", "relevant", "label_names"))


@SETTINGS
@given(
    dataset=datasets(are_answers=True),
    target=st.sampled_from([(".csv", "long"), (".parquet", "long"), (".jsonl", "wide")]),
)
def test_long_forms_hold_answers(dataset: Dataset, target: tuple[str, str]) -> None:
    read = round_trip(dataset, *target)
    assert_same(read, dataset, ("candidates", "label_names", "items"))
    np.testing.assert_array_equal(read.asked, answers_of(dataset)[1])


@SETTINGS
@given(dataset=datasets(), ending=TABLES)
def test_names_hold_labels_that_somebody_has(dataset: Dataset, ending: str) -> None:
    """A column of names shows the labels that it marks, sorted."""
    try:
        read = round_trip(dataset, ending, "names")
    except ComesError as error:
        assert "cannot be one of names" in str(error) or "would show a label" in str(error)
        return
    if set(read.label_names) == set(dataset.label_names):
        assert_same(read.with_labels(dataset.label_names), dataset, ("X", "candidates", "relevant"))
