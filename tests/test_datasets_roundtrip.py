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

from comes.answers import Answers, LongAnswers, State
from comes.datasets import Dataset, open_dataset, write_dataset
from comes.errors import ComesError, ComesWarning

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
LETTERS = string.ascii_letters + string.digits + " .,:'\"éß中-_/=#%()[]{}|&"
NAME = st.text(LETTERS, min_size=1, max_size=8)


def names(n: int) -> st.SearchStrategy[list[str]]:
    return st.lists(NAME, min_size=n, max_size=n, unique=True)


def matrix(n: int, q: int) -> st.SearchStrategy[npt.NDArray[np.bool_]]:
    return hnp.arrays(bool, (n, q))


def keep_said(chosen: Any, codes: Any) -> Any:
    """Return what a model chose of the questions that have an answer; None if it chose none."""
    chosen = None if chosen is None else chosen & (codes > 0)
    return chosen if chosen is not None and chosen.any() else None


@st.composite
def some_answers(draw: Any, n: int, q: int) -> Answers:
    """Draw candidates, ticked labels, or answers of nobody or of people, to a model's questions."""
    kind = draw(st.sampled_from(("candidates", "positives", "answers", "people")))
    if kind == "candidates":
        return Answers.from_candidates(draw(matrix(n, q)))
    if kind == "positives":
        return Answers.from_positives(draw(matrix(n, q)))
    chosen = draw(st.none() | matrix(n, q))
    if kind == "answers":
        codes = draw(hnp.arrays(np.int8, (n, q), elements=st.integers(0, 3)))
        return Answers.from_codes(codes, chosen=keep_said(chosen, codes))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, q - 1), st.sampled_from(["ann", "bob"]))
    who = draw(st.lists(pairs, min_size=1, max_size=8, unique=True))
    words = [draw(st.sampled_from(["no", "yes", "maybe"])) for _ in who]
    row, label, person = zip(*who, strict=True)
    said = LongAnswers.read(row, label, words, person)
    return Answers.from_long(said, (n, q), chosen=keep_said(chosen, said.combine((n, q))))


@st.composite
def datasets(draw: Any, are_answers: bool = False) -> Dataset:
    n, d, q = (draw(st.integers(1, 5)) for _ in range(3))
    answers = draw(some_answers(n, q) if are_answers else st.none() | some_answers(n, q))
    relevant = None
    if answers is None or draw(st.booleans()):
        relevant = draw(matrix(n, q))
        relevant = relevant if answers is None else relevant & answers.candidates
    X: Any = draw(hnp.arrays(float, (n, d), elements=FINITE))
    container = "array" if are_answers else draw(st.sampled_from(("array", "csr", "frame")))
    if container == "csr":
        X = sparse.csr_array(X)
    elif container == "frame":
        X = pd.DataFrame(X, columns=[f"feature {j}" for j in range(d)])
    items = draw(names(n) if are_answers else st.none() | names(n))
    is_plain = answers is not None and answers.kind == "candidates"
    return Dataset(
        X,
        draw(names(q)),
        relevant=relevant,
        items=items,
        from_complementary=is_plain and draw(st.booleans()),
        answers=answers,
    )


def assert_same(read: Dataset, written: Dataset, parts: tuple[str, ...]) -> None:
    if "X" in parts:
        now, then = (X.toarray() if sparse.issparse(X) else X for X in (read.X, written.X))
        np.testing.assert_array_equal(now, then)
    for part in parts:
        if part in ("candidates", "relevant"):
            np.testing.assert_array_equal(getattr(read, part), getattr(written, part))
    if "answers" in parts:
        assert_same_answers(read.answers, written.answers)
    for part in ("label_names", "items", "from_complementary"):
        if part in parts:
            assert getattr(read, part) == getattr(written, part)


def assert_same_answers(
    read: Answers | None, written: Answers | None, has_people: bool = False
) -> None:
    if read is None or written is None:
        assert read is written
        return
    assert read.kind == written.kind
    np.testing.assert_array_equal(read.codes, written.codes)
    if has_people:
        assert who_said_what(read) == who_said_what(written)
        now, then = (a.codes < 0 if a.chosen is None else a.chosen for a in (read, written))
        np.testing.assert_array_equal(now, then)


def who_said_what(answers: Answers) -> set[tuple[int, int, str, int]]:
    if answers.annotations is None:
        return set()
    said = answers.annotations
    who = [said.people[person] for person in said.person]
    columns = (said.row.tolist(), said.label.tolist(), who, said.code.tolist())
    return set(zip(*columns, strict=True))


def round_trip(dataset: Dataset, ending: str, form: Any = "wide") -> Dataset:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)  # of what the format cannot hold
        path = Path(folder) / f"data{ending}"
        write_dataset(dataset, path, form)
        return open_dataset(path)


ALL = ("X", "answers", "relevant", "label_names", "items", "from_complementary")
TABLES = st.sampled_from([".csv", ".parquet"])
SETTINGS = settings(max_examples=25, deadline=None)


@SETTINGS
@given(dataset=datasets())
def test_npz_holds_everything(dataset: Dataset) -> None:
    read = round_trip(dataset, ".npz")
    assert_same(read, dataset, ALL)
    assert_same_answers(read.answers, dataset.answers, has_people=True)
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
    assert_same(read, dataset, ("X", "answers", "relevant", "label_names"))


@SETTINGS
@given(
    dataset=datasets(are_answers=True),
    target=st.sampled_from([(".csv", "long"), (".parquet", "long"), (".jsonl", "wide")]),
)
def test_long_forms_hold_answers(dataset: Dataset, target: tuple[str, str]) -> None:
    """All answers being no, or yes, a long form does not say what the others mean."""
    read, answers = round_trip(dataset, *target), dataset.known_answers()
    is_clear = (answers.codes > State.NO).any() and answers.kind == "answers"
    assert_same(read, dataset, ("label_names", "items"))
    if is_clear:
        assert_same_answers(read.answers, answers, has_people=True)
    elif answers.chosen is None:
        np.testing.assert_array_equal(read.candidates, dataset.candidates)
        is_answer = [a.codes != State.NOT_ASKED for a in (read.known_answers(), answers)]
        np.testing.assert_array_equal(*is_answer)


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
        assert_same(read.align_labels(dataset.label_names), dataset, ("X", "answers", "relevant"))
