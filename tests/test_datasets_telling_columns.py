from pathlib import Path

import pandas as pd
import pytest

from comes.datasets import Reading, open_dataset, read_features
from comes.datasets.telling_columns import find_telling
from comes.errors import ComesWarning
from refusals import refused

TABLE = pd.DataFrame(
    {
        "size": [1.0, 2.0, 3.0],
        "maybe": ["sky; sea", "sea; hill", "hill"],
        "truth": ["sky", "sea, hill", "hill"],
        "place": ["Rome", "sea", "Lima"],
    }
)


def test_a_column_of_label_names_is_no_feature_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    TABLE.to_csv(path, index=False)
    with pytest.warns(ComesWarning, match=r"'truth' holds nothing but label names.*--relevant tru"):
        read = open_dataset(path, Reading(labels=["maybe"]))
    assert list(read.X.columns) == ["size", "place"]
    kept = open_dataset(path, Reading(labels=["maybe"], category=["truth"]))
    assert list(kept.X.columns) == ["size", "truth", "place"]


def test_other_columns_are_not_taken_for_labels() -> None:
    cases: list[list[object]] = [
        ["sea", "sea", "sea"],
        ["sea", "town", "sky"],
        [None, None, None],
        [1, 2, 3],
        [["sea"], "sky", "sea"],
    ]
    for cells in cases:
        table = pd.DataFrame({"of": pd.Series(cells, dtype=object)})
        assert find_telling(table, ["of"], ["sea", "sky"]) == []


def test_columns_of_words_are_read_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("code,a[1],x\n007,01,1.5\n008,02,2.5\n")
    for words, expected in ((["co*"], ["007", 1.0]), (["a[1]"], [7.0, "01"])):
        X, _ = read_features(tmp_path / "a.csv", words=words)
        assert X.iloc[0].tolist() == [*expected, 1.5], words


def test_an_empty_truth_asks_what_it_means(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    TABLE.assign(truth=["sky", "", "hill"]).to_csv(path, index=False)
    with refused(r"row 1\).*write \(none\); if the truth is not known, le"):
        open_dataset(path, Reading(labels=["maybe"], relevant=["truth"]))
