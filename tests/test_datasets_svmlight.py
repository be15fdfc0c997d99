from pathlib import Path

import numpy as np
from scipy import sparse

from comes.datasets import read_dataset, read_features
from refusals import refused


def written(folder: Path, text: str, name: str = "pages.svm") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_labels_are_the_truth_named_by_their_numbers(tmp_path: Path) -> None:
    dataset = read_dataset(written(tmp_path, "1,10 1:0.5 3:2 # a comment\n 2:1\n2 3:-1\n"))
    assert sparse.issparse(dataset.X)
    assert dataset.X.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, -1]]
    assert dataset.label_names == ["1", "2", "10"]
    assert dataset.relevant is not None and dataset.candidates is None
    assert dataset.relevant.astype(int).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_the_list_of_labels_can_be_fixed(tmp_path: Path) -> None:
    path = written(tmp_path, "1,3 1:1\n0 2:1\n")
    dataset = read_dataset(path, label_names=["0", "1", "2", "3"])
    assert dataset.relevant is not None
    assert dataset.relevant.astype(int).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    with refused("'1' occurs in a set but is not one of the label names"):
        read_dataset(path, label_names=["0", "2"])


def test_a_first_line_of_sizes_counts_from_0(tmp_path: Path) -> None:
    """The form of the extreme classification repository."""
    dataset = read_dataset(written(tmp_path, "2 5 4\n0,3 0:1\n1 4:2\n", "train.txt"))
    assert dataset.X.shape == (2, 5)
    assert dataset.X.toarray()[1].tolist() == [0, 0, 0, 0, 2]
    assert dataset.label_names == ["0", "1", "2", "3"]
    with refused("first line of train.txt says 9 rows; got 1"):
        read_dataset(written(tmp_path, "9 5 4\n0 0:1\n", "train.txt"))


def test_labels_can_be_candidates_or_complementary(tmp_path: Path) -> None:
    path = written(tmp_path, "1,2 1:1\n2 1:2\n")
    marked = np.array([[True, True], [False, True]])
    np.testing.assert_array_equal(read_dataset(path, labels_are="candidates").candidates, marked)
    np.testing.assert_array_equal(
        read_dataset(path, labels_are="complementary").candidates, ~marked
    )
    with refused("must be 'candidates', 'complementary' or 'positives'; got 'both'"):
        read_dataset(path, labels_are="both")


def test_a_bad_file_is_one_sentence(tmp_path: Path) -> None:
    cases: list[str] = ["a,b 1:2\n", "1 2\n", "1 2:x\n", "\x00\x01\n", "1 3:1 2:1:1\n"]
    for text in cases:
        with refused("pages.svm cannot be read as LIBSVM"):
            read_dataset(written(tmp_path, text))

    (tmp_path / "mark.svm").write_bytes(b"\xef\xbb\xbf1 1:2\n")
    assert read_dataset(tmp_path / "mark.svm").label_names == ["1"]
    with refused("cannot be read as LIBSVM"):
        read_dataset(written(tmp_path, "1 99999999999999999999:1\n"))


def test_large_label_numbers_are_not_rounded(tmp_path: Path) -> None:
    dataset = read_dataset(written(tmp_path, "1000001,3 1:0.5\n1000002 1:0.2\n"))
    assert dataset.label_names == ["3", "1000001", "1000002"]


def test_sizes_and_names_that_are_given_come_first(tmp_path: Path) -> None:
    assert read_dataset(written(tmp_path, "1 5 4\n0 0:1\n")).X.shape == (1, 5)
    names = ["0", "1", "2", "3", "4"]
    assert read_dataset(written(tmp_path, "1 5 4\n0 0:1\n"), label_names=names).label_names == names
    dataset = read_dataset(written(tmp_path, "1,2 1:1\n"), n_features=7)
    assert dataset.X.shape == (1, 7)
    assert read_dataset(written(tmp_path, "1 1:1\n"), labels_are="complementary").from_complementary

    assert read_features(written(tmp_path, "1 1:1\n"), n_features=5)[0].shape == (1, 5)


def test_features_are_counted_from_1_unless_the_file_says_how_many(tmp_path: Path) -> None:
    assert read_dataset(written(tmp_path, "1 2:1\n")).X.toarray().tolist() == [[0, 1]]
    with refused("counted from 1 .from 0 after a first line"):
        read_dataset(written(tmp_path, "1 0:1 2:1\n"))
