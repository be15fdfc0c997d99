"""Many labels of many rows: what was said is read and written without a matrix of all pairs."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers, State, from_sets
from comes.datasets import (
    Dataset,
    check_dataset,
    combine_answers,
    join_rows,
    open_dataset,
    write_dataset,
)
from comes.datasets.dataset import marks_of_sets, stays_sparse
from comes.datasets.long import long_table
from comes.errors import ComesWarning
from refusals import refused


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more than twenty pairs count as many, and half of them as few."""
    monkeypatch.setattr("comes.datasets.dataset.MANY_PAIRS", 20)
    monkeypatch.setattr("comes.datasets.dataset.FEW", 0.5)


def drawn_answers(n: int = 12, q: int = 7, seed: int = 0) -> Answers:
    """Return sparse answers with all three states, and an item about which nothing was said."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 4, (n, q)) * (rng.random((n, q)) < 0.3)
    codes[3] = 0
    codes[0, :3] = 1, 2, 3
    return Answers.from_codes(sparse.csr_array(codes), "answers", [f"t{j}" for j in range(q)])


def as_dense(dataset: Dataset) -> Dataset:
    """Return the same data set, nothing of it sparse."""
    answers = dataset.answers
    if answers is not None:
        answers = Answers.from_codes(answers.codes, answers.kind, answers.label_names)
    relevant = dataset.relevant
    return Dataset(
        dataset.X,
        dataset.label_names,
        relevant=None if relevant is None else dataset.known_relevant(),
        items=dataset.items,
        from_complementary=dataset.from_complementary,
        answers=answers,
    )


def test_few_marks_among_many_pairs_are_stored_sparse() -> None:
    assert not stays_sparse(0, (4096, 4096))  # 2**24 pairs
    assert stays_sparse(10, (4096, 4097))
    assert not stays_sparse(4096 * 4097 // 10, (4096, 4097))


@pytest.mark.usefixtures("few_are_many")
def test_sets_make_the_same_marks_sparse_or_not() -> None:
    sets = [{"a", "c"}, set(), {"b"}, {"e"}, {"d", "a"}]
    marked, names = marks_of_sets(sets)
    assert sparse.issparse(marked)
    np.testing.assert_array_equal(marked.toarray(), from_sets(sets)[0])
    assert names == ["a", "b", "c", "d", "e"]


@pytest.mark.usefixtures("few_are_many")
def test_sparse_answers_come_back_from_a_file(tmp_path: Path) -> None:
    for name in ("a.npz", "a.csv", "a.parquet"):
        answers = drawn_answers()
        items = [f"i{k}" for k in range(len(answers))]
        X = np.arange(len(answers) * 2.0).reshape(-1, 2) ** 2 + 0.5
        dataset = Dataset(X, answers.label_names or [], answers=answers, items=items)
        write_dataset(dataset, tmp_path / name, "wide" if name == "a.npz" else "names")
        again = open_dataset(tmp_path / name)
        assert again.answers is not None and again.answers.is_sparse
        assert again.answers.kind == "answers"
        np.testing.assert_array_equal(again.answers.codes, answers.codes)
        assert again.items == items


@pytest.mark.usefixtures("few_are_many")
def test_sparse_truth_and_exclusions_come_back_from_npz(tmp_path: Path) -> None:
    answers = drawn_answers()
    relevant = sparse.csr_array(answers.states == State.YES, dtype=bool)
    no = sparse.csr_array(answers.states == State.NO)
    names = answers.label_names or []
    dataset = Dataset(
        None, names, relevant=relevant, answers=Answers(no=no), from_complementary=True
    )
    write_dataset(dataset, tmp_path / "a.npz")
    again = open_dataset(tmp_path / "a.npz")
    assert sparse.issparse(again.relevant) and again.answers is not None
    assert again.relevant is not None
    np.testing.assert_array_equal(again.relevant.toarray(), relevant.toarray())
    assert again.answers.kind == "candidates" and again.from_complementary
    np.testing.assert_array_equal(again.answers.codes, no.toarray())


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", format=np.array(3), relevant=np.eye(2))
    with refused("format 3; this version of comes reads up to 2. Update"):
        open_dataset(tmp_path / "a.npz")


@pytest.mark.usefixtures("few_are_many")
def test_long_tables_make_the_same_answers_sparse_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = drawn_answers()
    dataset = Dataset(None, answers.label_names or [], answers=answers)
    table = long_table(dataset)
    pd.testing.assert_frame_equal(table, long_table(as_dense(dataset)))
    again = combine_answers(table["item"], table["label"], table["answer"], answers.label_names)
    assert again.answers is not None and again.answers.is_sparse
    np.testing.assert_array_equal(again.answers.codes, answers.codes)


@pytest.mark.usefixtures("few_are_many")
def test_different_sparse_answers_about_a_pair_are_maybe() -> None:
    items = ["p", "p", *(f"i{k}" for k in range(8))]
    labels = ["sky", "sky", *(f"l{k}" for k in range(8))]
    with pytest.warns(UserWarning, match="1 pairs of item and label have different answers"):
        made = combine_answers(items, labels, ["maybe", "yes"] + ["no"] * 8)
    assert made.answers is not None and made.answers.is_sparse
    assert made.answers.states[0, 0] == State.MAYBE
    only_no = combine_answers(items, labels, ["no"] * 10)
    assert only_no.answers is not None and only_no.answers.kind == "candidates"


@pytest.mark.usefixtures("few_are_many")
def test_a_data_set_says_the_same_of_sparse_labels() -> None:
    for kind in ("answers", "candidates", "positives"):
        answers = drawn_answers()
        states = {"answers": answers.states, "candidates": answers.states == State.NO}
        states["positives"] = (answers.states == State.YES) * np.int8(State.YES)
        said = Answers.from_codes(sparse.csr_array(states[kind], dtype=np.int8), kind)
        X = np.repeat(np.arange(4.0), 3)[:, None]
        relevant = sparse.csr_array(answers.states == State.YES, dtype=bool)
        thin = Dataset(X, answers.label_names or [], relevant=relevant, answers=said)
        full = as_dense(thin)
        assert str(thin) == str(full)
        assert check_dataset(thin) == check_dataset(full)
        part = thin.take([5, 0, 2])
        assert (
            sparse.issparse(part.relevant) and part.answers is not None and part.answers.is_sparse
        )
        assert str(part) == str(full.take([5, 0, 2]))
        names = [f"t{j}" for j in (3, 1, 0, 2, 6, 5, 4)]
        assert str(thin.align_labels(names)) == str(full.align_labels(names))
        assert check_dataset(thin.align_labels(names)) == check_dataset(full.align_labels(names))
        both = join_rows(thin, full)
        assert (
            both.answers is not None and both.answers.is_sparse and sparse.issparse(both.relevant)
        )
        assert str(both) == str(join_rows(full, full))


def test_relevant_labels_lie_inside_sparse_candidates() -> None:
    no = sparse.csr_array(np.array([[0, 0], [0, 1]]))
    relevant = sparse.csr_array(np.array([[True, False], [False, True]]))
    with refused("1 rows have a relevant label .* row 1, label 'sea'"):
        Dataset(None, ["sky", "sea"], relevant=relevant, answers=Answers(no=no))


@pytest.mark.usefixtures("few_are_many")
def test_labels_of_a_libsvm_file_may_be_many(tmp_path: Path) -> None:
    lines = ["5 3 9", "0,8 0:1", "1 1:2", " 2:1", "8 0:1", "3,2 1:1"]
    path = tmp_path / "pages.txt"
    path.write_text("\n".join(lines) + "\n")
    dataset = open_dataset(path)
    assert sparse.issparse(dataset.relevant) and dataset.relevant is not None
    assert dataset.relevant.shape == (5, 9)
    assert [list(row) for row in dataset.relevant.tolil().rows] == [[0, 8], [1], [], [8], [2, 3]]
    ticked = open_dataset(path, labels_are="positives").answers
    assert ticked is not None and ticked.is_sparse and ticked.kind == "positives"
    excluded = open_dataset(path, labels_are="complementary").answers
    assert excluded is not None and excluded.is_sparse
    assert excluded.states[4, 3] == State.NO
    possible = open_dataset(path, labels_are="candidates").answers
    assert possible is not None and not possible.is_sparse  # most pairs are excluded
    assert possible.candidates[4].tolist() == [False, False, True, True] + [False] * 5


def test_matrices_of_too_many_pairs_are_refused(tmp_path: Path) -> None:
    marked = sparse.csr_array((100_000, 100_000), dtype=bool)
    dataset = Dataset(None, [str(j) for j in range(100_000)], relevant=marked)
    with refused("all other labels, would be a matrix .* 9 GB. Read them as"):
        dataset.with_labels_as("candidates", "pages.txt")
    with refused("the truth would be a matrix .* Take some rows"):
        dataset.known_relevant()
    with refused("a column for each label would be .* Write .npz"):
        write_dataset(dataset, tmp_path / "a.parquet")


def test_many_labels_of_many_rows_take_little_memory(tmp_path: Path) -> None:
    """Twenty-five million pairs would take 25 MB, were they stored in one byte each."""
    n = q = 5000
    ticked = np.sort(np.random.default_rng(0).integers(0, q, (n, 3)), axis=1)
    lines = [f"{n} 50 {q}"]
    for k, row in enumerate(ticked.tolist()):
        lines.append(",".join(map(str, sorted(set(row)))) + f" {k % 50}:1")
    (tmp_path / "pages.txt").write_text("\n".join(lines) + "\n")
    tracemalloc.start()
    dataset = open_dataset(tmp_path / "pages.txt", labels_are="positives")
    answers = dataset.known_answers()
    assert answers.is_sparse and answers.shape == (n, q)
    assert str(dataset).startswith("5000 rows, 50 features, 5000 labels")
    check_dataset(dataset)
    write_dataset(dataset, tmp_path / "pages.npz")
    again = open_dataset(tmp_path / "pages.npz").take(np.arange(0, n, 2)).known_answers()
    assert (again.states != answers.states[::2]).nnz == 0
    long = Dataset(None, dataset.label_names, answers=answers)
    with pytest.warns(ComesWarning, match="cannot hold that the labels were ticked"):
        write_dataset(long, tmp_path / "pages.parquet", "long")
    again = open_dataset(tmp_path / "pages.parquet", labels_are="positives").known_answers()
    assert again.is_sparse
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
