from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import savemat

from comes.datasets import (
    Dataset,
    read_dataset,
    read_features,
    tables,
    write_dataset,
    write_npz,
    write_table,
)
from comes.errors import ComesError

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
CANDIDATES = np.array([[True, True], [True, False], [False, True]])
RELEVANT = np.array([[True, False], [True, False], [False, False]])
WIDE = pd.DataFrame(
    {
        "item": ["p", "q", "r"],
        "age": X[:, 0],
        "size": X[:, 1],
        "has_sky": CANDIDATES[:, 0].astype(int),
        "has_sea": CANDIDATES[:, 1].astype(int),
        "is_sky": RELEVANT[:, 0].astype(int),
        "is_sea": RELEVANT[:, 1].astype(int),
    }
)
SETS = pd.DataFrame(
    {
        "age": X[:, 0],
        "size": X[:, 1],
        "maybe": ["sky;sea", " sky ", "sea"],
        "truth": ["sky", "sky", "(none)"],
    }
)


def written(table: pd.DataFrame, path: Path) -> Path:
    write_table(table, path)
    return path


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_wide_indicator_columns(tmp_path: Path, ending: str) -> None:
    path = written(WIDE, tmp_path / f"photos{ending}")
    dataset = read_dataset(path, labels=["has_*"], relevant=["is_sky", "is_sea"], ignore=["item"])
    np.testing.assert_array_equal(np.asarray(dataset.X), X)
    assert list(dataset.X.columns) == ["age", "size"]
    assert dataset.label_names == ["has_sky", "has_sea"]
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
    np.testing.assert_array_equal(dataset.relevant, RELEVANT)
    assert str(dataset) == (
        "3 rows, 2 features, 2 labels, 1.33 candidates per row, 0.67 relevant per row, "
        "1 rows without a relevant label"
    )


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_of_label_names(tmp_path: Path, ending: str) -> None:
    path = written(SETS, tmp_path / f"photos{ending}")
    dataset = read_dataset(path, labels=["maybe"], relevant=["truth"])
    assert dataset.label_names == ["sea", "sky"]
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])
    np.testing.assert_array_equal(dataset.relevant, RELEVANT[:, ::-1])


def test_complementary_columns(tmp_path: Path) -> None:
    path = written(
        pd.DataFrame({"x": [1, 2, 3], "not": ["", "sea", "sky"]}), tmp_path / "photos.csv"
    )
    dataset = read_dataset(path, labels=["not"], complementary=True)
    assert dataset.label_names == ["sea", "sky"]
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])


def test_an_empty_cell_of_candidates_is_not_guessed(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "maybe": ["sky", ""]})
    path = written(table, tmp_path / "photos.csv")
    with pytest.raises(ComesError, match=r"1 cells .* empty \(first: row 1\).*\(none\)"):
        read_dataset(path, labels=["maybe"])
    table.loc[1, "maybe"] = "(none)"
    dataset = read_dataset(written(table, path), labels=["maybe"])
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True], [False]]


def test_the_label_names_asked_for_decide_the_order(tmp_path: Path) -> None:
    path = written(SETS, tmp_path / "sets.csv")
    dataset = read_dataset(
        path, relevant=["truth"], feature_columns=["size"], label_names=["sky", "tree", "sea"]
    )
    assert dataset.relevant is not None
    assert dataset.relevant.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    wide = WIDE.rename(columns={"is_sky": "sky", "is_sea": "sea"})
    dataset = read_dataset(
        written(wide, path),
        relevant=["sky", "sea"],
        feature_columns=["age"],
        label_names=["sea", "sky"],
    )
    np.testing.assert_array_equal(dataset.relevant, RELEVANT[:, ::-1])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_npz_written_is_npz_read(tmp_path: Path, container: Any) -> None:
    written = Dataset(container(X), ["sky", "sea"], CANDIDATES, RELEVANT)
    write_npz(written, tmp_path / "photos.npz")
    dataset = read_dataset(tmp_path / "photos.npz")
    assert sparse.issparse(dataset.X) == sparse.issparse(written.X)
    dense = dataset.X.toarray() if sparse.issparse(dataset.X) else dataset.X
    np.testing.assert_array_equal(dense, X)
    assert dataset.label_names == ["sky", "sea"]
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
    np.testing.assert_array_equal(dataset.relevant, RELEVANT)


def read_csv_text(folder: Path, text: str, **options: Any) -> Dataset:
    (folder / "text.csv").write_text(text)
    return read_dataset(folder / "text.csv", **options)


def test_class_numbers_are_label_names_unless_all_are_0_or_1(tmp_path: Path) -> None:
    options: dict[str, Any] = {"labels": ["not"], "complementary": True}
    dataset = read_csv_text(tmp_path, "x,not\n1,0\n2,2\n3,\n4,1;2\n", **options)
    assert dataset.label_names == ["0", "1", "2"]
    assert dataset.candidates is not None
    expected = [[0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert dataset.candidates.astype(int).tolist() == expected
    dataset = read_csv_text(tmp_path, "x,not\n1,0\n2,1\n", **options)
    assert dataset.label_names == ["not"]
    table = pd.DataFrame({"x": [1, 2], "not": [3, 7]})
    dataset = read_dataset(written(table, tmp_path / "numbers.parquet"), **options)
    assert dataset.label_names == ["3", "7"]


def test_cells_are_what_is_written_in_them(tmp_path: Path) -> None:
    """A label may be called NA, and a parquet cell may be a list."""
    dataset = read_csv_text(tmp_path, "x,maybe\n1,NA;None\n2,null\n", labels=["maybe"])
    assert dataset.label_names == ["NA", "None", "null"]
    table = pd.DataFrame({"x": [1, 2], "maybe": [["Fe", "K"], ["K"]]})
    dataset = read_dataset(written(table, tmp_path / "lists.parquet"), labels=["maybe"])
    assert dataset.label_names == ["Fe", "K"]
    table["maybe"] = pd.Categorical(["Fe", None])
    path = written(table, tmp_path / "categories.parquet")
    dataset = read_dataset(path, labels=["maybe"], complementary=True)
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False], [True]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,maybe\n1,a\n2,;\n", "1 cells of label names are empty"),
        ("x,maybe\n1,a\n2,(None);b\n", r"row 1 has \(none\) beside other labels"),
        ("x,maybe\n1,2,a\n3,4,b\n", "cannot be read as csv"),
        ("x,x,maybe\n1,2,a\n", "column 'x' occurs more than once"),
        (",x,maybe\n0,2,a\n", "without a name, probably row numbers.*--ignore 'Unnamed: 0'"),
        ("x;maybe\n1;a\n", "no column 'maybe'.*separated by commas"),
        ('x,maybe\n"1,a\n', "cannot be read as csv"),
    ],
)
def test_an_unclear_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ComesError, match=message):
        read_csv_text(tmp_path, text, labels=["maybe"])


def test_what_is_ignored_is_no_label_either(tmp_path: Path) -> None:
    path = written(WIDE, tmp_path / "photos.CSV")
    dataset = read_dataset(path, labels=["has_*"], ignore=["item", "is_*", "has_sea"])
    assert dataset.label_names == ["has_sky"]
    assert list(dataset.X.columns) == ["age", "size"]


def test_labels_that_agree_only_in_part_are_refused(tmp_path: Path) -> None:
    path = written(WIDE, tmp_path / "photos.csv")
    with pytest.raises(ComesError, match="'has_sky', 'dog' were wanted; got 'has_sky', 'has_sea'"):
        read_dataset(path, labels=["has_*"], ignore=["item"], label_names=["has_sky", "dog"])


def test_an_archive_is_matched_by_name_or_by_position(tmp_path: Path) -> None:
    path = tmp_path / "photos.npz"
    write_npz(Dataset(X, ["sky", "sea"], CANDIDATES), path)
    dataset = read_dataset(path, label_names=["sea", "sky"])
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])
    np.savez(path, X=X, candidates=CANDIDATES)
    dataset = read_dataset(path, label_names=["sea", "sky"])
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES)


@pytest.mark.parametrize("unknown", [np.nan, 0.5, -5.0])
def test_a_mat_with_other_values_than_two_is_refused(tmp_path: Path, unknown: float) -> None:
    partial = np.where(CANDIDATES, 1.0, unknown).T
    savemat(tmp_path / "bad.mat", {"data": X, "target": 0 * partial, "partial_labels": partial})
    with pytest.raises(ComesError, match="must be 0 and 1, or -1 and 1"):
        read_dataset(tmp_path / "bad.mat")


def test_npz_of_complementary_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "photos.npz", X=X, complementary=~CANDIDATES)
    for complementary in (True, False):  # the name of the array says it already
        dataset = read_dataset(tmp_path / "photos.npz", complementary=complementary)
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
        assert dataset.label_names == ["0", "1"]


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("signed", [True, False])
def test_pml_mat_in_both_orientations_and_codes(
    tmp_path: Path, transposed: bool, signed: bool
) -> None:
    def coded(labels: np.ndarray) -> np.ndarray:
        values = 2 * labels.astype(int) - 1 if signed else labels.astype(int)
        return values.T if transposed else values

    content = {"data": X, "target": coded(RELEVANT), "partial_labels": coded(CANDIDATES)}
    savemat(tmp_path / "photos.mat", content)
    dataset = read_dataset(tmp_path / "photos.mat")
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
    np.testing.assert_array_equal(dataset.relevant, RELEVANT)


def test_mostly_zero_features_of_a_mat_become_sparse(tmp_path: Path) -> None:
    data = np.zeros((3, 100), dtype=np.uint8)
    data[1, 7] = 3
    content = {"data": data, "target": RELEVANT * 1, "partial_labels": CANDIDATES * 1}
    savemat(tmp_path / "counts.mat", content)
    dataset = read_dataset(tmp_path / "counts.mat")
    assert sparse.issparse(dataset.X)
    np.testing.assert_array_equal(dataset.X.toarray(), data)


def test_features_alone(tmp_path: Path) -> None:
    table = written(WIDE, tmp_path / "new.parquet")
    np.testing.assert_array_equal(read_features(table, ["size", "age"]), X[:, ::-1])
    np.savez(tmp_path / "new.npz", X=X)
    np.testing.assert_array_equal(read_features(tmp_path / "new.npz"), X)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {}, "which columns hold the labels"),
        ({}, {"labels": ["has_sku"]}, "no column 'has_sku'.*Did you mean 'has_sky'"),
        ({"age": ["a", "b", "c"]}, {}, "column 'age' must be numeric.*--ignore"),
        ({"item": ["p", "q", "p"]}, {"ignore": []}, "items must differ; 'p' occurs again at row 2"),
        ({"item": ["p", "", "q"]}, {"ignore": []}, "'item' is empty at row 1"),
        ({"age": [1, np.nan, 2]}, {}, "finite; 1 entries.*row 1, column 'age'"),
        ({"age": [1, np.inf, 2]}, {}, "finite; 1 entries.*row 1, column 'age'"),
        ({"has_sky": [0, 2, 1]}, {}, "0 or 1; got 2 at row 1, label 'has_sky'"),
        ({"has_sky": [0, np.nan, 1]}, {}, "'has_sky' must be 0 or 1; row 1 is empty"),
        ({"is_sea": [0, 1, 0]}, {"relevant": ["is_*"]}, "outside their.*row 1, label 'has_sea'"),
        ({}, {"relevant": ["is_sky"]}, "'has_sky', 'has_sea' were wanted; got 'is_sky'"),
    ],
)
def test_a_bad_table_is_one_sentence_with_the_place(
    tmp_path: Path, change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    path = written(WIDE.assign(**change), tmp_path / "photos.csv")
    if change or "relevant" in options:
        options = {"labels": ["has_*"], "ignore": ["item"]} | options
    with pytest.raises(ComesError, match=message):
        read_dataset(path, **options)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "needs an array 'candidates'.*it has X"),
        ({"X_data": [1.0], "candidates": CANDIDATES}, "needs an array 'X', or X_data, X_indices"),
        ({"X": X, "candidates": CANDIDATES, "items": ["p"]}, "3 rows need as many names"),
        ({"X": X, "candidates": CANDIDATES, "feature_names": ["a"]}, "2 features and 1 feature_n"),
        (
            {"X": X, "candidates": CANDIDATES, "asked": CANDIDATES},
            "excluded where nobody was asked",
        ),
        ({"X": X, "relevant": CANDIDATES, "asked": CANDIDATES}, "needs candidates"),
        ({"X": X, "candidates": CANDIDATES[:2]}, r"must have shape \(3, 2\); got \(2, 2\)"),
        ({"X": X, "candidates": CANDIDATES, "complementary": CANDIDATES}, "keep one of them"),
        (
            {"X": X, "candidates": CANDIDATES, "label_names": ["a"]},
            r"3 rows and 1 labels.*\(3, 1\)",
        ),
        ({"X": X, "candidates": CANDIDATES, "label_names": ["a", "a"]}, "'a' more than once"),
        ({"X": X, "candidates": CANDIDATES, "label_names": [b"a", b"b"]}, "one row of text"),
        ({"X": X, "candidates": CANDIDATES, "label_names": "a"}, "one row of text"),
        ({"X": X[:, 0], "candidates": CANDIDATES}, r"features must be a matrix.*\(3,\)"),
        ({"X": X.astype(str), "candidates": CANDIDATES}, "features must be numbers"),
        ({"X": np.array([{}, 1]), "candidates": CANDIDATES}, "cannot be read as npz"),
        (
            {
                "X_data": [1.0],
                "X_indices": [9],
                "X_indptr": [0, 1],
                "X_shape": [1, 2],
                "candidates": [[1]],
            },
            "sparse matrix in bad.npz is damaged",
        ),
    ],
)
def test_a_bad_archive_is_one_sentence(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ComesError, match=message):
        read_dataset(tmp_path / "bad.npz")


def test_a_sparse_feature_that_is_not_finite_is_found() -> None:
    bad = sparse.csr_array(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    with pytest.raises(ComesError, match="1 entries .* the first in row 1"):
        Dataset(bad, ["a"], relevant=np.ones((2, 1), dtype=bool))


@pytest.mark.parametrize("name", ["damaged.npz", "damaged.parquet", "damaged.mat"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 not what it says")
    with pytest.raises(ComesError, match=f"{name} cannot be read as"):
        read_dataset(tmp_path / name, labels=["a"] if name.endswith("parquet") else None)


def test_missing_empty_and_foreign_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "mirflickr.npz", X=X, candidates=CANDIDATES)
    with pytest.raises(ComesError, match="mirflick.npz does not exist.*mean .*mirflickr.npz"):
        read_dataset(tmp_path / "mirflick.npz")
    (tmp_path / "empty.csv").touch()
    with pytest.raises(ComesError, match="empty.csv is empty"):
        read_dataset(tmp_path / "empty.csv", labels=["a"])
    (tmp_path / "header.csv").write_text("a,b\n")
    with pytest.raises(ComesError, match="header.csv has columns but no rows"):
        read_dataset(tmp_path / "header.csv", labels=["a"])
    (tmp_path / "photos.xlsx").write_text("x")
    with pytest.raises(ComesError, match="should end in .csv, .parquet, .*; got .xlsx"):
        read_dataset(tmp_path / "photos.xlsx")
    with pytest.raises(ComesError, match="says itself what its labels are"):
        read_dataset(tmp_path / "mirflickr.npz", labels=["a"])
    with pytest.raises(ComesError, match="says itself that its labels are candidates"):
        read_dataset(tmp_path / "mirflickr.npz", complementary=True)
    with pytest.raises(ComesError, match="is a folder"):
        read_dataset(tmp_path)
    savemat(tmp_path / "other.mat", {"data": X})
    with pytest.raises(
        ComesError, match="should have the variables 'data', 'target'.*it has 'data'"
    ):
        read_dataset(tmp_path / "other.mat")


def test_what_is_not_there_is_asked_for() -> None:
    with pytest.raises(ComesError, match="needed to fit"):
        Dataset(X, ["a", "b"], relevant=RELEVANT).candidates_with_names()
    with pytest.raises(ComesError, match="true labels are needed"):
        Dataset(X, ["a", "b"], candidates=CANDIDATES).known_relevant()


def test_the_index_of_a_parquet_file_is_a_column_if_it_has_a_name(tmp_path: Path) -> None:
    labels: dict[str, Any] = {"labels": ["has_*"], "ignore": ["is_*"]}
    WIDE.set_index("item").to_parquet(tmp_path / "named.parquet")
    dataset = read_dataset(tmp_path / "named.parquet", **labels)
    assert dataset.items == ["p", "q", "r"]
    shuffled = WIDE.drop(columns="item").iloc[[2, 0, 1]]
    shuffled.to_parquet(tmp_path / "unnamed.parquet")
    dataset = read_dataset(tmp_path / "unnamed.parquet", **labels)
    assert list(dataset.X.columns) == ["age", "size"] and dataset.X["age"].tolist() == [5, 1, 3]


def test_names_of_complementary_labels_and_of_the_truth_are_all_labels(tmp_path: Path) -> None:
    text = "x,not,truth\n1,sea,sky\n2,,sun\n"
    dataset = read_csv_text(tmp_path, text, labels=["not"], relevant=["truth"], complementary=True)
    assert dataset.label_names == ["sea", "sky", "sun"]
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False, True, True], [True, True, True]]


def test_a_table_of_our_own_needs_no_options(tmp_path: Path) -> None:
    dataset = read_csv_text(
        tmp_path, "item,complementary,relevant,x\np,1;2,0,3\nq,(none),(none),4\n"
    )
    assert dataset.label_names == ["0", "1", "2"] and dataset.items == ["p", "q"]


def test_names_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    dataset = Dataset(X, ["a;b", "c"], CANDIDATES)
    with pytest.raises(ComesError, match="'a;b' cannot be one of names joined by ';'"):
        write_dataset(dataset, tmp_path / "photos.csv", form="names")


def test_a_feature_called_as_a_label_is_refused(tmp_path: Path) -> None:
    clash = pd.DataFrame(X, columns=["candidate:a", "b"])
    with pytest.raises(ComesError, match="two columns would be called 'candidate:a'"):
        write_dataset(Dataset(clash, ["a", "c"], CANDIDATES), tmp_path / "photos.csv")


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("photos.arff", "wide", "photos.arff should end in .csv, .parquet, .npz or .mat or .jsonl"),
        ("photos", "wide", "got no ending"),
        ("photos.npz", "long", "wide, names and long are forms of .csv and .parquet"),
        ("photos.csv", "tall", "the form 'tall' is none"),
    ],
)
def test_a_name_that_cannot_be_written_to(
    tmp_path: Path, name: str, form: Any, message: str
) -> None:
    with pytest.raises(ComesError, match=message):
        write_dataset(Dataset(X, ["a", "c"], CANDIDATES), tmp_path / name, form)


def test_a_sparse_matrix_is_written_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 2)
    dataset = Dataset(sparse.csr_array(X), ["a", "c"], CANDIDATES, items=["p", "q", "r"])
    for ending in (".csv", ".parquet"):
        write_dataset(dataset, tmp_path / f"photos{ending}")
        read = read_dataset(tmp_path / f"photos{ending}")
        np.testing.assert_array_equal(read.X, X)
        np.testing.assert_array_equal(read.candidates, CANDIDATES)
        assert read.items == ["p", "q", "r"]
