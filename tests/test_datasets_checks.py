from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers
from comes.datasets import Dataset, check_dataset
from comes.datasets.checks import row_hashes
from comes.datasets.dataset import join_images
from image_folders import save_images

SKY_SEA = ["sky", "sea"]


def found(dataset: Dataset) -> dict[str, str]:
    return {finding.name: finding.text for finding in check_dataset(dataset)}


def test_nothing_to_find() -> None:
    relevant = np.array([[True, False], [False, True], [False, False]])
    candidates = np.array([[True, False], [False, True], [True, True]])
    assert found(Dataset(np.eye(3), SKY_SEA, candidates, relevant)) == {}

    assert found(Dataset(None, SKY_SEA, np.array([[True, False], [False, True]]))) == {}


def test_duplicates_and_constant_columns() -> None:
    for container in (np.asarray, sparse.csr_array, pd.DataFrame):
        X = np.array([[1.0, 5.0, 0.0], [0.0, 5.0, 0.0], [1.0, 5.0, -0.0], [1.0, 5.0, 0.0]])
        relevant = np.array([[True, False], [False, True], [True, False], [True, True]])
        findings = found(Dataset(container(X), SKY_SEA, relevant=relevant))
        assert findings == {
            "duplicate_rows": "2 rows repeat the features of an earlier row, 1 with other "
            "labels (first: row 2).",
            "constant_features": "2 of 3 features are constant: 1, 2.",
        }


def test_rows_are_called_as_in_the_index_of_a_table() -> None:
    relevant = np.array([[True, False], [False, True], [True, False]])
    for values in ([1.0, 2.0, 1.0], ["red", "blue", "red"]):
        X = pd.DataFrame({"a": values}, index=[2, 3, 4])  # as rows are numbered in a file
        text = found(Dataset(X, SKY_SEA, relevant=relevant))["duplicate_rows"]
        assert text.endswith("0 with other labels (first: row 4).")


def test_labels_and_rows_without_use() -> None:
    candidates = np.array([[True, False, True], [True, False, True], [False, False, False]])
    relevant = np.array([[True, False, False], [True, False, False], [False, False, False]])
    findings = found(Dataset(np.eye(3), ["a", "b", "c"], candidates, relevant))
    assert findings["always_excluded"] == "1 label is excluded by every row: 'b'."
    assert findings["never_relevant"] == "2 labels are relevant to no row: 'b', 'c'."
    assert findings["rows_without_candidate"].startswith("1 row has no candidate")
    findings = found(Dataset(np.eye(3), ["a", "b", "c"], candidates[:, [0, 1, 0]] | True))
    assert findings == {"never_excluded": "3 labels are excluded by no row: 'a', 'b', 'c'."}
    findings = found(Dataset(np.eye(3), ["a"], relevant=np.ones((3, 1), dtype=bool)))
    assert findings == {"always_relevant": "1 label is relevant to every row: 'a'."}


def test_images_that_repeat_or_cannot_be_read(tmp_path: Path) -> None:
    save_images(tmp_path, ["a.png", "b.png", "c.png"])
    (tmp_path / "c.png").write_text("no image")
    relevant = np.array([[True], [False], [True]])
    labels = Dataset(None, ["sky"], relevant=relevant, items=["a.png", "b.png", "c.png"])
    assert found(join_images(labels, tmp_path)) == {
        "broken_images": "1 image cannot be read: 'c.png'.",
        "duplicate_rows": "1 row repeats the image of an earlier row, 1 with other labels "
        "(first: row 1).",
    }


def test_hashes_are_equal_exactly_for_equal_rows() -> None:
    for values in ("normal", "counts", "binary"):
        rng = np.random.default_rng(0)
        X = {
            "normal": rng.normal(size=(3000, 5)),
            "counts": rng.poisson(0.5, size=(3000, 12)),
            "binary": rng.integers(0, 2, size=(3000, 11)),
        }[values].astype(float)
        X[1500:] = X[rng.integers(0, 1500, size=1500)]
        _, same = np.unique(X, axis=0, return_inverse=True)
        expected = pd.factorize(same.ravel())[0]
        for container in (X, X.astype(np.float32), sparse.csr_array(X), pd.DataFrame(X)):
            exact = container if values != "normal" else X
            np.testing.assert_array_equal(pd.factorize(row_hashes(exact))[0], expected)
        np.testing.assert_array_equal(row_hashes(X), row_hashes(sparse.csr_array(X)))

    X = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]])
    np.testing.assert_array_equal(row_hashes(sparse.csc_array(X)), row_hashes(X))


def test_other_candidates_or_answers_are_other_labels_too() -> None:
    X = np.ones((2, 1)) * np.array([[1.0], [1.0]])
    candidates = np.array([[True, True], [True, False]])
    relevant = np.array([[True, False], [True, False]])
    text = found(Dataset(X, SKY_SEA, candidates, relevant))["duplicate_rows"]
    assert "1 with other labels" in text

    X = np.ones((2, 2)) * [1.0, 2.0]
    answers = Answers(no=[[1, 0], [1, 0]], yes=[[0, 1], [0, 0]])
    text = found(Dataset(X, SKY_SEA, answers=answers))["duplicate_rows"]
    assert "1 with other labels" in text


def test_labels_that_nobody_was_asked_about_or_could_tell() -> None:
    codes = [[1, 2, 0, 3], [0, 2, 0, 3], [2, 0, 0, 0]]
    dataset = Dataset(None, ["a", "b", "c", "d"], answers=Answers.from_codes(codes))
    assert found(dataset) == {
        "never_asked": "1 label was never asked about: 'c'.",
        "only_maybe": "1 label has no answer but maybe: 'd'.",
        "never_excluded": "1 label is excluded by no row: 'b'.",
    }


def test_people_who_disagree() -> None:
    said = LongAnswers.read([0, 0, 1], [0, 0, 0], ["no", "yes", "no"], ["ann", "bob", "ann"])
    dataset = Dataset(None, ["a"], answers=Answers.from_long(said, (2, 1)))
    assert found(dataset)["disagreements"] == "people disagree about 1 pair: yes and no."


def test_ticks_are_not_exclusions() -> None:
    dataset = Dataset(None, ["a", "b", "c"], answers=Answers.from_positives([[1, 0, 1], [1, 0, 0]]))
    assert found(dataset) == {
        "never_ticked": "1 label is ticked in no row: 'b'.",
        "always_ticked": "1 label is ticked in every row: 'a'.",
    }


def test_features_that_number_the_rows() -> None:
    for container in (np.asarray, pd.DataFrame):
        X = np.array([[7.0, 1.0, 0.0], [8.0, 2.0, 1.0], [9.0, 3.0, 0.0], [10.0, 5.0, 1.0]])
        relevant = np.array([[True], [False], [True], [False]])
        findings = found(Dataset(container(X), ["sky"], relevant=relevant))
        text = "1 feature numbers the rows, as an id does: '0'. Leave them out (--ignore)."
        assert findings == {"row_numbers": text}
        assert found(Dataset(X[:, 2:] > 0, ["sky"], relevant=relevant)).keys() == {"duplicate_rows"}


def test_labels_with_almost_the_same_name() -> None:
    relevant = np.array([[True, False, True], [False, True, False]])
    findings = found(Dataset(None, ["Mexican", "thai", "mexican "], relevant=relevant))
    text = "2 labels differ from another in case or blanks alone: 'Mexican', 'mexican '."
    assert findings == {"similar_labels": text}
