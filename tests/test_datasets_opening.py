import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import savemat

from comes.answers import Answers, LongAnswers
from comes.datasets import (
    Dataset,
    ReadOptions,
    join_features,
    open_dataset,
    read_features,
    table_datasets,
    write_dataset,
)
from comes.datasets.matrices import write_npz
from comes.datasets.table import write_table
from comes.errors import ComesError, ComesWarning
from refusals import refused

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


def test_wide_indicator_columns(tmp_path: Path) -> None:
    for ending in (".csv", ".parquet"):
        path = written(WIDE, tmp_path / f"photos{ending}")
        dataset = open_dataset(
            path, labels=["has_*"], relevant=["is_sky", "is_sea"], ignore=["item"]
        )
        np.testing.assert_array_equal(np.asarray(dataset.X), X)
        assert list(dataset.X.columns) == ["age", "size"]
        assert dataset.label_names == ["has_sky", "has_sea"]
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
        np.testing.assert_array_equal(dataset.relevant, RELEVANT)
        assert str(dataset) == (
            "3 rows, 2 features, 2 labels, 1.33 candidates per row, 0.67 relevant per row, "
            "1 row without a relevant label"
        )


def test_a_column_of_label_names(tmp_path: Path) -> None:
    for ending in (".csv", ".parquet"):
        path = written(SETS, tmp_path / f"photos{ending}")
        dataset = open_dataset(path, labels=["maybe"], relevant=["truth"])
        assert dataset.label_names == ["sea", "sky"]
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])
        np.testing.assert_array_equal(dataset.relevant, RELEVANT[:, ::-1])


def test_complementary_columns(tmp_path: Path) -> None:
    path = written(
        pd.DataFrame({"x": [1, 2, 3], "not": ["", "sea", "sky"]}), tmp_path / "photos.csv"
    )
    dataset = open_dataset(path, labels=["not"], labels_are="complementary")
    assert dataset.label_names == ["sea", "sky"]
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])


def test_an_empty_cell_of_candidates_is_not_guessed(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "maybe": ["sky", ""]})
    path = written(table, tmp_path / "photos.csv")
    with refused(r"1 cell .* is empty \(first: row 3\).*\(none\)"):
        open_dataset(path, labels=["maybe"])
    table.loc[1, "maybe"] = "(none)"
    dataset = open_dataset(written(table, path), labels=["maybe"])
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True], [False]]


def test_the_label_names_asked_for_decide_the_order(tmp_path: Path) -> None:
    path = written(SETS, tmp_path / "sets.csv")
    dataset = open_dataset(
        path, relevant=["truth"], feature_columns=["size"], label_names=["sky", "tree", "sea"]
    )
    assert dataset.relevant is not None
    assert dataset.relevant.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    wide = WIDE.rename(columns={"is_sky": "sky", "is_sea": "sea"})
    dataset = open_dataset(
        written(wide, path),
        relevant=["sky", "sea"],
        feature_columns=["age"],
        label_names=["sea", "sky"],
    )
    np.testing.assert_array_equal(dataset.relevant, RELEVANT[:, ::-1])


def test_npz_written_is_npz_read(tmp_path: Path) -> None:
    for container in (np.asarray, sparse.csr_array, pd.DataFrame):
        written = Dataset(container(X), ["sky", "sea"], CANDIDATES, RELEVANT)
        write_npz(written, tmp_path / "photos.npz")
        dataset = open_dataset(tmp_path / "photos.npz")
        assert sparse.issparse(dataset.X) == sparse.issparse(written.X)
        dense = dataset.X.toarray() if sparse.issparse(dataset.X) else dataset.X
        np.testing.assert_array_equal(dense, X)
        assert dataset.label_names == ["sky", "sea"]
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
        np.testing.assert_array_equal(dataset.relevant, RELEVANT)


def read_csv_text(folder: Path, text: str, **options: Any) -> Dataset:
    (folder / "text.csv").write_text(text)
    return open_dataset(folder / "text.csv", **options)


def test_class_numbers_are_label_names_unless_all_are_0_or_1(tmp_path: Path) -> None:
    options: dict[str, Any] = {"labels": ["not"], "labels_are": "complementary"}
    dataset = read_csv_text(tmp_path, "x,not\n1,0\n2,2\n3,\n4,1;2\n", **options)
    assert dataset.label_names == ["0", "1", "2"]
    assert dataset.candidates is not None
    expected = [[0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert dataset.candidates.astype(int).tolist() == expected
    dataset = read_csv_text(tmp_path, "x,not\n1,0\n2,1\n", **options)
    assert dataset.label_names == ["not"]
    table = pd.DataFrame({"x": [1, 2], "not": [3, 7]})
    dataset = open_dataset(written(table, tmp_path / "numbers.parquet"), **options)
    assert dataset.label_names == ["3", "7"]


def test_cells_are_what_is_written_in_them(tmp_path: Path) -> None:
    """A label may be called NA, and a parquet cell may be a list."""
    dataset = read_csv_text(tmp_path, "x,maybe\n1,NA;None\n2,null\n", labels=["maybe"])
    assert dataset.label_names == ["NA", "None", "null"]
    table = pd.DataFrame({"x": [1, 2], "maybe": [["Fe", "K"], ["K"]]})
    dataset = open_dataset(written(table, tmp_path / "lists.parquet"), labels=["maybe"])
    assert dataset.label_names == ["Fe", "K"]
    table["maybe"] = pd.Categorical(["Fe", None])
    path = written(table, tmp_path / "categories.parquet")
    dataset = open_dataset(path, labels=["maybe"], labels_are="complementary")
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False], [True]]

    table = pd.DataFrame({"x": [1, 2], "maybe": [1234567.0, 1234568.0]})
    dataset = open_dataset(written(table, tmp_path / "n.parquet"), labels=["maybe"])
    assert dataset.label_names == ["1234567", "1234568"]

    table = pd.DataFrame({"x": [1, 2], "maybe": [[3, 7], [7]]})
    dataset = open_dataset(written(table, tmp_path / "lists.parquet"), labels=["maybe"])
    assert dataset.label_names == ["3", "7"]
    table["maybe"] = [[3], []]  # unlike an empty cell of text, an empty list says that none applies
    dataset = open_dataset(written(table, tmp_path / "lists.parquet"), labels=["maybe"])
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[True], [False]]


def test_an_unclear_csv_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("x,maybe\n1,a\n2,;\n", "1 cell of label names in column .* is empty"),
        ("x,maybe\n1,a\n2,(None);b\n", r"row 3 has \(none\) beside other labels"),
        ("x,maybe\n1,2,a\n3,4,b\n", "cannot be read as csv"),
        ("x,x,maybe\n1,2,a\n", "column 'x' occurs more than once"),
        (",x,maybe\n7,2,a\n", "without a name is not taken for a feature.*--ignore 'Unnamed: 0'"),
        ("x;maybe\n1;a\n2\n", "no column 'maybe'.*as many cells"),
        ('x,maybe\n"1,a\n', "cannot be read as csv"),
    ]
    for text, message in cases:
        with refused(message):
            read_csv_text(tmp_path, text, labels=["maybe"])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with refused("cannot be read as csv"):
            read_csv_text(tmp_path, "x,maybe\n1,2,a\n3,4,b\n", labels=["maybe"])


def test_what_is_ignored_is_no_label_either(tmp_path: Path) -> None:
    path = written(WIDE, tmp_path / "photos.CSV")
    dataset = open_dataset(path, labels=["has_*"], ignore=["item", "is_*", "has_sea"])
    assert dataset.label_names == ["has_sky"]
    assert list(dataset.X.columns) == ["age", "size"]

    path = written(WIDE, tmp_path / "photos.csv")
    with refused("expected the labels 'has_sky', 'dog'; got 'has_sky', 'has_sea'"):
        open_dataset(path, labels=["has_*"], ignore=["item"], label_names=["has_sky", "dog"])


def test_an_archive_is_matched_by_name_or_by_position(tmp_path: Path) -> None:
    path = tmp_path / "photos.npz"
    write_npz(Dataset(X, ["sky", "sea"], CANDIDATES), path)
    dataset = open_dataset(path, label_names=["sea", "sky"])
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES[:, ::-1])
    np.savez(path, X=X, candidates=CANDIDATES)
    dataset = open_dataset(path, label_names=["sea", "sky"])
    np.testing.assert_array_equal(dataset.candidates, CANDIDATES)

    np.savez(tmp_path / "photos.npz", X=X, complementary=~CANDIDATES)
    for reading in (ReadOptions(), ReadOptions(labels_are="complementary")):
        dataset = open_dataset(tmp_path / "photos.npz", reading)
        np.testing.assert_array_equal(dataset.candidates, CANDIDATES)
        assert dataset.label_names == ["0", "1"]


def test_features_alone(tmp_path: Path) -> None:
    table = written(WIDE, tmp_path / "new.parquet")
    found, items = read_features(table, ["size", "age"])
    np.testing.assert_array_equal(found, X[:, ::-1])
    assert items == ["p", "q", "r"]
    np.savez(tmp_path / "new.npz", X=X)
    found, items = read_features(tmp_path / "new.npz")
    np.testing.assert_array_equal(found, X)
    assert items is None

    write_npz(
        Dataset(pd.DataFrame(X, columns=["u", "v"]), ["a", "c"], CANDIDATES), tmp_path / "a.npz"
    )
    assert list(open_dataset(tmp_path / "a.npz", feature_columns=["v"]).X.columns) == ["v"]
    assert read_features(tmp_path / "a.npz", ["v"])[0].shape == (3, 1)
    np.savez(tmp_path / "nan.npz", X=X * np.nan)
    with refused("nan.npz: features must be finite"):
        read_features(tmp_path / "nan.npz")


def test_a_bad_table_is_one_sentence_with_the_place(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({}, {}, "which columns hold the labels"),
        ({}, {"labels": ["has_sku"]}, "no column 'has_sku'.*Did you mean 'has_sky'"),
        ({"item": ["p", "q", "p"]}, {"ignore": []}, "items must differ; 'p' occurs again at row 4"),
        ({"item": ["p", "", "q"]}, {"ignore": []}, "'item' is empty at row 3"),
        ({"age": [1, np.inf, 2]}, {}, "finite; 1 entries.*row 3, column 'age'"),
        ({"has_sky": [0, 2, 1]}, {}, "0 and 1, .*found '2' .1 cell.*'0=no,1=yes,2=...'"),
        ({"has_sky": [0, np.nan, 1]}, {}, "'has_sky' must be 0 or 1; row 3 is empty .1 of 6 cells"),
        ({"is_sea": [0, 1, 0]}, {"relevant": ["is_*"]}, "outside their.*row 3, label 'has_sea'"),
        ({}, {"relevant": ["is_sky"]}, "expected the labels 'has_sky', 'has_sea'; got 'is_sky'"),
    ]
    for change, options, message in cases:
        path = written(WIDE.assign(**change), tmp_path / "photos.csv")
        if change or "relevant" in options:
            options = {"labels": ["has_*"], "ignore": ["item"]} | options
        with refused(message):
            open_dataset(path, **options)


def test_a_bad_archive_is_one_sentence(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"X": X}, "needs an array 'candidates'.*it has X"),
        (
            {"X_data": [1.0], "candidates": CANDIDATES},
            "bad.npz cannot be read as npz.*'X_indices' is missing",
        ),
        ({"X": X, "candidates": CANDIDATES, "items": ["p"]}, "3 rows need as many names"),
        (
            {"X": X, "candidates": CANDIDATES, "feature_names": ["a"]},
            "bad.npz .*Shape of passed values",
        ),
        (
            {"X": X, "candidates": CANDIDATES, "asked": CANDIDATES},
            "'asked' in bad.npz must be 1 wherever a label is excluded",
        ),
        ({"X": X, "relevant": CANDIDATES, "asked": CANDIDATES}, "needs an array 'candidates'"),
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
        ({"X": X.astype(str), "candidates": CANDIDATES}, "features must be real numbers"),
        ({"X": np.array([{}, 1]), "candidates": CANDIDATES}, "cannot be read as npz"),
        (
            {
                "X_data": [1.0],
                "X_indices": [9],
                "X_indptr": [0, 1],
                "X_shape": [1, 2],
                "candidates": [[1]],
            },
            "bad.npz cannot be read as npz.*indices",
        ),
        (
            {"X": 3, "feature_names": ["a"], "candidates": CANDIDATES},
            "bad.npz.*Must pass 2-d input",
        ),
        ({"X": X, "candidates": CANDIDATES, "label_names": ["a", ""]}, "bad.npz.*not be empty"),
        (
            {"X_shape": 5, "X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1]},
            "bad.npz cannot be read as npz",
        ),
    ]
    for arrays, message in cases:
        np.savez(tmp_path / "bad.npz", **arrays)
        with refused(message):
            open_dataset(tmp_path / "bad.npz")


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    for name in ("damaged.npz", "damaged.parquet", "damaged.mat"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 not what it says")
        with refused(f"{name} (cannot be read as|is not an npz)"):
            open_dataset(tmp_path / name, labels=["a"] if name.endswith("parquet") else None)


def test_missing_empty_and_foreign_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "mirflickr.npz", X=X, candidates=CANDIDATES)
    with refused("mirflick.npz does not exist.*mean .*mirflickr.npz"):
        open_dataset(tmp_path / "mirflick.npz")
    (tmp_path / "empty.csv").touch()
    with refused("empty.csv is empty"):
        open_dataset(tmp_path / "empty.csv", labels=["a"])
    (tmp_path / "header.csv").write_text("a,b\n")
    with refused("header.csv has columns but no rows"):
        open_dataset(tmp_path / "header.csv", labels=["a"])
    (tmp_path / "photos.xls").write_text("x")
    with refused("should end in .csv, .tsv, .*.parquet, .*; got .xls"):
        open_dataset(tmp_path / "photos.xls")
    with refused("'labels' does not apply to .npz files"):
        open_dataset(tmp_path / "mirflickr.npz", labels=["a"])
    with refused("says that its labels are candidates"):
        open_dataset(tmp_path / "mirflickr.npz", labels_are="complementary")
    with refused("is a folder"):
        open_dataset(tmp_path)
    savemat(tmp_path / "other.mat", {"data": X})
    with refused("with the matrices 'data', 'target'.*: it has 'data'"):
        open_dataset(tmp_path / "other.mat")


def test_labels_that_are_not_there_are_asked_for() -> None:
    with refused("candidates or complementary labels are needed"):
        Dataset(X, ["a", "b"], relevant=RELEVANT).known_candidates()
    with refused("true labels are needed"):
        Dataset(X, ["a", "b"], candidates=CANDIDATES).known_relevant()

    with refused("needs candidates, complementary or true labels"):
        Dataset(X, ["a", "c"])


def test_the_index_of_a_parquet_file_is_a_column_if_it_has_a_name(tmp_path: Path) -> None:
    labels: dict[str, Any] = {"labels": ["has_*"], "ignore": ["is_*"]}
    WIDE.set_index("item").to_parquet(tmp_path / "named.parquet")
    dataset = open_dataset(tmp_path / "named.parquet", **labels)
    assert dataset.items == ["p", "q", "r"]
    shuffled = WIDE.drop(columns="item").iloc[[2, 0, 1]]
    shuffled.to_parquet(tmp_path / "unnamed.parquet")
    dataset = open_dataset(tmp_path / "unnamed.parquet", **labels)
    assert list(dataset.X.columns) == ["age", "size"] and dataset.X["age"].tolist() == [5, 1, 3]


def test_names_of_labels_come_from_all_columns(tmp_path: Path) -> None:
    text = "x,not,truth\n1,sea,sky\n2,,sun\n"
    dataset = read_csv_text(
        tmp_path, text, labels=["not"], relevant=["truth"], labels_are="complementary"
    )
    assert dataset.label_names == ["sea", "sky", "sun"]
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False, True, True], [True, True, True]]

    dataset = read_csv_text(
        tmp_path, "item,complementary,relevant,x\np,1;2,0,3\nq,(none),(none),4\n"
    )
    assert dataset.label_names == ["0", "1", "2"] and dataset.items == ["p", "q"]


def test_names_that_could_not_be_read_again_are_told(tmp_path: Path) -> None:
    dataset = Dataset(X, ["a;b", "c"], CANDIDATES)
    with refused("'a;b' cannot be one of names joined by ';'"):
        write_dataset(dataset, tmp_path / "photos.csv", form="names")

    excluded = np.array([[False, True, False]] * 3)
    dataset = Dataset(X, ["sea", "sky", "sun"], ~excluded, from_complementary=True)
    with pytest.warns(ComesWarning, match="loses 'sea', 'sun'.*--label-names"):
        write_dataset(dataset, tmp_path / "a.csv", form="names")
    again = open_dataset(tmp_path / "a.csv", label_names=["sea", "sky", "sun"])
    np.testing.assert_array_equal(again.candidates, ~excluded)
    with refused("no cell of a.csv would show a label"):
        write_dataset(
            Dataset(X, ["sea", "sky", "sun"], excluded & False),
            tmp_path / "a.csv",
            form="names",
        )


def test_a_name_that_cannot_be_written_to(tmp_path: Path) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("photos.arff", "wide", "photos.arff should end in .csv, .*.parquet, .xlsx, .npz, .mat"),
        ("photos", "wide", "got no ending"),
        ("photos.npz", "long", ".npz files do not have the form 'long'; expected wide"),
        ("photos.csv", "tall", "not have the form 'tall'; expected wide or names or long"),
    ]
    for name, form, message in cases:
        with refused(message):
            write_dataset(Dataset(X, ["a", "c"], CANDIDATES), tmp_path / name, form)


def test_a_sparse_matrix_is_written_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_datasets, "ROWS_AT_ONCE", 2)
    dataset = Dataset(sparse.csr_array(X), ["a", "c"], CANDIDATES, items=["p", "q", "r"])
    for ending in (".csv", ".parquet"):
        write_dataset(dataset, tmp_path / f"photos{ending}")
        read = open_dataset(tmp_path / f"photos{ending}")
        np.testing.assert_array_equal(read.X, X)
        np.testing.assert_array_equal(read.candidates, CANDIDATES)
        assert read.items == ["p", "q", "r"]


def test_what_pandas_writes_by_default_is_read(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0, 2.0], "maybe": ["a", "b"]}).to_csv(tmp_path / "index.csv")
    dataset = open_dataset(tmp_path / "index.csv", labels=["maybe"])
    assert list(dataset.X.columns) == ["x"]
    dataset = read_csv_text(tmp_path, "x,maybe,,\n1,a,,\n2,b,,\n", labels=["maybe"])
    assert list(dataset.X.columns) == ["x"]
    text = ",x,maybe\n7,1,a\n9,2,b\n"
    dataset = read_csv_text(tmp_path, text, labels=["maybe"], ignore=["Unnamed: 0"])
    assert list(dataset.X.columns) == ["x"]


def test_names_of_columns_mean_what_they_say(tmp_path: Path) -> None:
    dataset = read_csv_text(tmp_path, "item,l,file\n1,0,5\n0,1,6\n", labels=["item", "l"])
    assert dataset.items is None and list(dataset.X.columns) == ["file"]
    dataset = read_csv_text(tmp_path, "a[1],b,x\n1,0,5\n", labels=["a[1]", "b"])
    assert dataset.label_names == ["a[1]", "b"]
    text = "item,excluded:a,excluded:b,x\n001,1,0,5\n"
    dataset = read_csv_text(tmp_path, text, labels=["excluded:*"])
    assert dataset.items == ["001"] and dataset.label_names == ["a", "b"]
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[False, True]]
    dataset = read_csv_text(tmp_path, "id,l,x\n1,0,5\n", labels=["l"], item="i*")
    assert dataset.items == ["1"]
    with refused("say that they are candidates, not complementary"):
        read_csv_text(tmp_path, "candidate:a,x\n1,5\n", labels_are="complementary")
    assert read_features(written(WIDE, tmp_path / "w.csv"), ["age"])[1] == ["p", "q", "r"]


def test_the_truth_may_say_yes_and_no_and_must_be_known(tmp_path: Path) -> None:
    text = "a,b,x\nyes,No,1\nno,YES,2\n"
    dataset = read_csv_text(tmp_path, text, relevant=["a", "b"])
    assert dataset.known_relevant().tolist() == [[True, False], [False, True]]
    with refused(r"text.csv: label column 'b'.*The truth must be known"):
        read_csv_text(tmp_path, "a,b,x\n1,,1\n", relevant=["a", "b"])
    with refused("1 cell of label names in column .* is empty"):
        read_csv_text(tmp_path, "l,x\na,1\n,2\n", relevant=["l"])
    dataset = open_dataset(
        written(WIDE, tmp_path / "w.csv"), relevant=["is_*"], ignore=["is_sea", "item", "has_*"]
    )
    assert dataset.label_names == ["is_sky"]


def test_0_and_1_written_as_text_are_read(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "a": ["0", "1"], "b": ["1", "1"]})
    dataset = open_dataset(written(table, tmp_path / "text.parquet"), labels=["a", "b"])
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False, True], [True, True]]


def test_a_cell_that_holds_no_names_is_refused(tmp_path: Path) -> None:
    for cell in (["sea", None], {"a": 1}, b"a"):
        table = pd.DataFrame({"x": [1], "maybe": pd.Series([cell], dtype=object)})
        with refused("names"):
            open_dataset(written(table, tmp_path / "odd.parquet"), labels=["maybe"])


def test_a_feature_whose_name_means_something_is_not_written(tmp_path: Path) -> None:
    cases: list[str] = ["item", "relevant", "candidate:z", "Unnamed: 0", "answer:b"]
    for name in cases:
        dataset = Dataset(pd.DataFrame(X, columns=[name, "v"]), ["a", "c"], CANDIDATES)
        with refused("would be taken for something else"):
            write_dataset(dataset, tmp_path / "a.csv")
        write_npz(dataset, tmp_path / "a.npz")
        assert list(open_dataset(tmp_path / "a.npz").X.columns) == [name, "v"]


def test_a_carriage_return_would_be_lost_in_a_csv(tmp_path: Path) -> None:
    dataset = Dataset(X, ["a", "c"], CANDIDATES, items=["p", "q\rr", "s"])
    with refused("carriage return"):
        write_dataset(dataset, tmp_path / "a.csv")
    write_dataset(dataset, tmp_path / "a.parquet")
    assert open_dataset(tmp_path / "a.parquet").items == dataset.items


def test_every_loss_is_named(tmp_path: Path) -> None:
    cases: list[tuple[str, Any, str]] = [
        (".mat", "wide", "feature names and items and who said what"),
        (".jsonl", "wide", "features and feature names and relevant"),
        (".csv", "names", "who said what and which questions a model chose"),
        (".csv", "wide", "who said what and which questions a model chose"),
        (".csv", "long", "features and feature names and relevant"),
    ]
    for ending, form, lost in cases:
        said = LongAnswers.read([0, 1], [1, 0], ["no", "yes"], ["ann", "bob"])
        chosen = np.array([[False, True]] + [[False, False]] * 2)
        dataset = Dataset(
            pd.DataFrame(X, columns=["u", "v"]),
            ["a", "c"],
            relevant=RELEVANT,
            items=["p", "q", "r"],
            answers=Answers.from_long(said, (3, 2), chosen=chosen),
        )
        with pytest.warns(ComesWarning, match=f"cannot hold {lost};"):
            write_dataset(dataset, tmp_path / f"a{ending}", form)

    dataset = Dataset(X, ["a", "c"], CANDIDATES, from_complementary=True)
    with pytest.warns(ComesWarning, match="cannot hold that the labels were complementary"):
        write_dataset(dataset, tmp_path / "a.mat")

    answers = Answers(no=~CANDIDATES, maybe=CANDIDATES & False)
    dataset = Dataset(X, ["a", "c"], answers=answers, from_complementary=True)
    with pytest.warns(ComesWarning, match="cannot hold that the answers were complementary labels"):
        write_dataset(dataset, tmp_path / "a.csv")


def test_rows_and_labels_are_taken_with_all_that_belongs_to_them() -> None:
    frame = pd.DataFrame(X, columns=["u", "v"], index=[2, 0, 1])
    asked = ~CANDIDATES | np.array([[True, False]] * 3)
    answers = Answers(no=~CANDIDATES, maybe=CANDIDATES & asked)
    dataset = Dataset(frame, ["a", "c"], answers=answers, items=["p", "q", "r"])
    one = dataset.take([1])
    assert one.X.to_numpy().tolist() == [[3.0, 4.0]] and one.items == ["q"]
    assert one.asked is not None and one.asked.tolist() == asked[[1]].tolist()
    turned = dataset.align_labels(["c", "a"])
    np.testing.assert_array_equal(turned.asked, asked[:, ::-1])
    joined = join_features(
        Dataset(None, ["a", "c"], CANDIDATES, items=["r", "p", "q"]), frame, ["p", "q", "r"]
    )
    assert joined.X["u"].tolist() == [5.0, 1.0, 3.0]

    dataset = Dataset(X, ["a", "c"], CANDIDATES, items=["p", "q", "r"])
    with refused("at least one row"):
        dataset.take([False, False, False])
    with refused("'p' occurs again at row 1"):
        dataset.take([0, 0])


def test_a_data_set_checks_its_features_and_names() -> None:
    cases: list[tuple[Any, str]] = [
        (np.empty((3, 0)), "at least one row and one column"),
        (np.eye(3) * 1j, "must be real numbers; got complex128"),
        (np.array([[np.nan, 1], [2, 3], [np.nan, 4]]), "2 entries.*the first at row 0, column 0"),
    ]
    for features, message in cases:
        with refused(message):
            Dataset(features, ["a", "c"], CANDIDATES)

    Dataset(np.eye(3, dtype=bool), ["a", "c"], CANDIDATES)
    with refused("at least one row and one label; got 3 rows and 0"):
        Dataset(X, [], np.zeros((3, 0), dtype=bool))
    with refused("names must not be empty; number 1 is"):
        Dataset(X, ["a", ""], CANDIDATES)

    bad = sparse.csr_array(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    with refused("1 entries .* the first in row 1"):
        Dataset(bad, ["a"], relevant=np.ones((2, 1), dtype=bool))


def test_an_archive_is_not_trusted(tmp_path: Path) -> None:
    write_npz(Dataset(X, ["a", "c"], CANDIDATES), tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    for start in range(30, len(whole), 97):  # bits flipped all over the file
        damaged = bytearray(whole)
        damaged[start] ^= 0xFF
        (tmp_path / "bad.npz").write_bytes(bytes(damaged))
        try:
            open_dataset(tmp_path / "bad.npz")
        except ComesError as error:
            assert "bad.npz" in str(error)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("X.npy", "no array")
    with refused("text.npz"):
        open_dataset(tmp_path / "text.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("X", "no array")
    with refused("text.npz cannot be read as npz, .*: 'X' should be an array"):
        open_dataset(tmp_path / "text.npz")
    np.savez(tmp_path / "numbers.npz", X=X, candidates=CANDIDATES, label_names=[3, 7])
    assert open_dataset(tmp_path / "numbers.npz").label_names == ["3", "7"]
    with refused("null character"):
        write_npz(Dataset(X, ["a\0", "c"], CANDIDATES), tmp_path / "null.npz")


def test_paths_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    written(WIDE, tmp_path / "w.csv")
    assert len(open_dataset("~/w.csv", labels=["has_*"], ignore=["is_*"])) == 3
    with refused("Write the path out"):
        open_dataset("~nobody-of-that-name/w.csv")
    with refused("does not exist"):
        open_dataset(tmp_path / ("x" * 300 + ".csv"))
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with refused("loop.csv does not exist. (?!Did you mean .*loop)"):
        open_dataset(tmp_path / "loop.csv")
    with refused("cannot be written"):
        write_npz(Dataset(X, ["a", "c"], CANDIDATES), tmp_path / "loop.csv")


def test_no_label_of_a_table_of_ours_becomes_a_feature(tmp_path: Path) -> None:
    """Whatever columns are named, the truth never leaks into the features."""
    dataset = Dataset(X, ["a", "c"], CANDIDATES, RELEVANT)
    for form, labels, relevant in (
        ("wide", ["candidate:*"], None),
        ("wide", None, ["relevant:*"]),
        ("names", ["candidates"], None),
        ("names", None, ["relevant"]),
    ):
        write_dataset(dataset, tmp_path / "a.csv", form)  # type: ignore[arg-type]
        read = open_dataset(tmp_path / "a.csv", labels=labels, relevant=relevant)
        assert list(read.X.columns) == ["x0", "x1"]


def test_our_complementary_columns_are_so_however_they_are_named(tmp_path: Path) -> None:
    dataset = Dataset(X, ["a", "c"], CANDIDATES, from_complementary=True)
    write_dataset(dataset, tmp_path / "wide.csv")
    write_dataset(dataset, tmp_path / "names.csv", "names")
    for name, labels in (("wide.csv", ["ex*"]), ("names.csv", ["complementary"])):
        read = open_dataset(tmp_path / name, labels=labels)
        np.testing.assert_array_equal(read.candidates, CANDIDATES)
        assert read.from_complementary
    with refused("candidates or complementary; got both"):
        read_csv_text(tmp_path, "excluded:a,b,x\n1,0,5\n", labels=["excluded:a", "b"])
    write_dataset(Dataset(X, ["a", "c"], CANDIDATES), tmp_path / "names.csv", "names")
    with refused("say that they are candidates, not complementary"):
        open_dataset(tmp_path / "names.csv", labels_are="complementary")


def test_options_about_candidates_need_candidates(tmp_path: Path) -> None:
    path = written(WIDE, tmp_path / "w.csv")
    for options in ({"labels_are": "complementary"}, {"words": {"0": "no", "1": "maybe"}}):
        with refused("apply to candidates, but only the truth is named"):
            open_dataset(path, relevant=["is_*"], ignore=["has_*"], **options)


def test_the_truth_is_matched_by_name_in_any_order(tmp_path: Path) -> None:
    text = "maybe,is_sun,is_sky,is_sea,x\nsun;sea,1,0,0,5\nsky;sea,0,1,1,6\n"
    dataset = read_csv_text(tmp_path, text, labels=["maybe"], relevant=["is_*"])
    assert dataset.label_names == ["sea", "sky", "sun"]
    assert dataset.known_relevant().tolist() == [[False, False, True], [True, True, False]]
