"""Tables as people have them: opened once, columns and labels read right, or said aloud."""

import csv
import gzip
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.datasets import Dataset, ReadOptions, join_features, open_dataset, read_features
from comes.datasets.separators import are_all_names
from comes.datasets.split import open_row_file
from comes.datasets.table import Table, read_table, write_table
from comes.errors import ComesWarning
from refusals import refused

LISTINGS = pd.DataFrame(
    {
        "photo": ["p", "q", "r"],
        "size": [1.0, 2.0, 3.0],
        "colour": ["red", "blue", "red"],
        "has_sky": [1, 0, 1],
        "has_sea": [1, 1, 0],
    }
)
WRITERS: dict[str, Any] = {
    ".csv": LISTINGS.to_csv,
    ".tsv.gz": lambda path, index: LISTINGS.to_csv(path, index=index, sep="\t"),
    ".parquet": LISTINGS.to_parquet,
    ".xlsx": LISTINGS.to_excel,
}

opened: list[str] = []
watching = threading.local()


def note_open(event: str, arguments: tuple[Any, ...]) -> None:
    """Note the files that are opened; an audit hook stays for the life of the process."""
    if event == "open" and getattr(watching, "is_on", False):
        opened.append(os.path.basename(str(arguments[0])))


sys.addaudithook(note_open)


def written(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_a_table_is_opened_once(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table{ending}"
    WRITERS[ending](path, index=False)
    options = ReadOptions(labels=["has_*"], item="photo")
    for read in (open_dataset, open_row_file):
        opened.clear()
        watching.is_on = True
        try:
            read(path, options)
        finally:
            watching.is_on = False
        assert opened.count(path.name) == 1, read


def test_what_columns_are_that_are_no_features(tmp_path: Path) -> None:
    text = "photo,size,has_sky,has_sea,note\np,1,yes,,a\nq,2,,no,\n"
    options = ReadOptions(labels=["has_*"], item="photo", ignore=["note"])
    roles = open_dataset(written(tmp_path, text), options).roles
    assert {name: (role, n) for name, (role, n) in roles.items()} == {
        "photo": ("item", 0),
        "has_sky": ("label", 1),
        "has_sea": ("label", 1),
        "note": ("ignored", 1),
    }


def test_cells_of_a_text_file(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, "\ufeffa;b;c\n1,5;x;007\n2;NA;010\n"), ["c"])
    assert frame["a"].tolist() == [1.5, 2.0]
    assert frame["c"].tolist() == ["007", "010"] and frame["b"].isna().tolist() == [False, True]
    with Table(written(tmp_path, "code,n\n007,0\n010,1\n")) as table:
        assert table.columns == ["code", "n"] and table.codes == ["code"]
        assert table.read().index.tolist() == [2, 3]  # as a spreadsheet numbers them
    packed = written(tmp_path, gzip.compress(b"a,b\n1,2\n"), "packed.csv.gz")
    assert read_table(packed)["b"].tolist() == [2]


def test_numbers_that_become_words_far_down_stay_as_they_are_written(tmp_path: Path) -> None:
    """pandas reads blocks of rows, and guesses the type of each."""
    frame = read_table(written(tmp_path, "a,b\n" + "007,1\n" * 300_000 + "x,2\n,3\n"))
    assert frame["a"].iloc[0] == "007" and frame["a"].iloc[-2] == "x"
    assert frame["a"].isna().sum() == 1 and frame["b"].dtype == np.int64


def test_bytes_that_are_no_text_are_found_wherever_they_are(tmp_path: Path) -> None:
    for n_rows in (1, 600_000):
        path = written(tmp_path, b"a,b\n" + b"1,2\n" * n_rows + b"1,\x002\n")
        with refused("table.csv cannot be read as csv: it holds NUL characters"):
            read_table(path)
    with refused("table.csv is not text in UTF-8"):
        read_table(written(tmp_path, "a,b\n1,2\n".encode("utf-16")))


def test_a_comma_that_may_part_thousands_is_left_to_the_encoder(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,is_red\n"1,234",1\n"2,500",0\n')
    assert open_dataset(path, labels=["is_red"]).X["a"].tolist() == ["1,234", "2,500"]
    path = written(tmp_path, 'a;b;is_red\n"1,234";0,5;1\n"2,500";1,5;0\n')
    assert open_dataset(path, labels=["is_red"]).X["a"].tolist() == [1.234, 2.5]


def test_wildcards_and_names_that_look_like_them(tmp_path: Path) -> None:
    path = written(tmp_path, "x,is_*,is_a,a[1],a1\n1,0,1,0,1\n2,1,0,1,0\n")
    dataset = open_dataset(path, labels=["is_*"], ignore=["a*"])
    assert dataset.label_names == ["is_*", "is_a"] and list(dataset.X.columns) == ["x"]
    assert open_dataset(path, labels=["a[1]"]).label_names == ["a[1]"]


@pytest.mark.parametrize("words", [("y", "n", "?"), ("Y", "N", "unsure"), ("yes", "no", "maybe")])
def test_answers_as_people_write_them(tmp_path: Path, words: tuple[str, str, str]) -> None:
    yes, no, maybe = words
    path = written(tmp_path, f"x,sky,sea\n1,{yes},{no}\n2,{maybe},\n3,,{yes}\n")
    answers = open_dataset(path, labels=["sky", "sea"]).known_answers()
    assert answers.confirmed.tolist() == [[True, False], [False, False], [False, True]]
    assert answers.excluded.tolist() == [[False, True], [False, False], [False, False]]
    assert answers.doubtful.tolist() == [[False, False], [True, False], [False, False]]


def test_unknown_words_are_named_with_the_option_to_paste(tmp_path: Path) -> None:
    cases = [
        ("ja,nein\nnein,\n", "found 'nein' .2 cells.*'ja' .1 cell.*--answers 'ja=...,nein=...'"),
        ("1,-1\n0,1\n", "0 and 1, or no, .*found '-1' .1 cell.*--answers '-1=...,0=no,1=yes'"),
        ("1,?\n0,1\n", "found '1' .2 cells.*'0' .*--answers '0=no,1=yes,.=maybe'"),
    ]
    for cells, message in cases:
        path = written(tmp_path, "sky,sea\n" + cells)
        with refused(message):
            open_dataset(path, labels=["sky", "sea"])
    texts = "".join(f"word {k},no\n" for k in range(30))
    with refused("30 other words, such as .*Name other columns"):
        open_dataset(written(tmp_path, "sky,sea\n" + texts), labels=["sky", "sea"])


def test_an_empty_label_column(tmp_path: Path) -> None:
    path = written(tmp_path, "x,sky,sea\n1,yes,\n2,no,\n")
    with pytest.warns(ComesWarning, match="1 label has no answer in any row: 'sea'"):
        assert open_dataset(path, labels=["sky", "sea"]).label_names == ["sky", "sea"]
    with refused("label columns 'sky', 'sea' are empty. Name others"):
        open_dataset(written(tmp_path, "x,sky,sea\n1,,\n2,,\n"), labels=["sky", "sea"])


def test_far_too_many_label_columns_are_one_sentence_at_once(tmp_path: Path) -> None:
    names = [f"is_{k}" for k in range(100_000)]
    path = written(tmp_path, "\n".join([",".join(["x", *names]), ",".join(["1"] * 100_001)] * 1))
    with refused("100000 columns are named as labels, 'is_0', 'is_1' and 99998 more; .*Name fewer"):
        open_dataset(path, labels=["is_*"])


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with refused("pipe.csv is a pipe or a device; expected a file"):
        open_dataset(tmp_path / "pipe.csv", labels=["a"])
    with refused("null is a pipe or a device"):
        open_dataset("/dev/null")
    with refused(r"y{50}.*\.\.\. does not exist"):
        open_dataset(f"{'y' * 5000}.csv")


def test_a_column_of_label_names_is_no_feature_unless_asked_for(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "size": [1.0, 2.0, 3.0],
            "maybe": ["sky; sea", "sea; hill", "hill"],
            "truth": ["sky", "sea, hill", "hill"],
            "place": ["Rome", "sea", "Lima"],
        }
    )
    path = tmp_path / "photos.csv"
    table.to_csv(path, index=False)
    with pytest.warns(ComesWarning, match=r"'truth' holds nothing but label names.*--relevant tru"):
        read = open_dataset(path, labels=["maybe"])
    assert list(read.X.columns) == ["size", "place"]
    kept = open_dataset(path, labels=["maybe"], category=["truth"])
    assert list(kept.X.columns) == ["size", "truth", "place"]
    table.assign(truth=["sky", "", "hill"]).to_csv(path, index=False)
    with refused(r"first: row 3\).*write \(none\); if the truth is not known, le"):
        open_dataset(path, labels=["maybe"], relevant=["truth"])

    cases: list[list[object]] = [
        ["sea", "sea", "sea"],
        ["sea", "town", "sky"],
        [None, None, None],
        [1, 2, 3],
        [["sea"], "sky", "sea"],
    ]
    for cells in cases:
        assert not are_all_names(pd.Series(cells, dtype=object), {"sea", "sky"})


def test_columns_of_words_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = written(tmp_path, "code,a[1],x\n007,01,1.5\n008,02,2.5\n")
    for words, expected in ((["co*"], ["007", 1.0]), (["a[1]"], [7.0, "01"])):
        X, _ = read_features(path, words=words)
        assert X.iloc[0].tolist() == [*expected, 1.5], words
    kinds = {"x": "1.5 2.5", "code": "7 8"}
    X = open_dataset(path, relevant=["a[1]"], number=["code"], label_names=["01", "02"]).X
    assert [" ".join(f"{cell:g}" for cell in X[name]) for name in kinds] == list(kinds.values())


def test_rows_of_features_without_labels_are_counted() -> None:
    labels = Dataset(None, ["sky"], np.array([[True], [False]]), items=["b", "a"])
    X = np.arange(4.0)[:, None]
    joined = join_features(labels, X, ["a", "b", "c", "d"])
    assert joined.X.ravel().tolist() == [1.0, 0.0]
    assert str(joined).endswith(", 2 rows of features without labels left out")


def test_no_text_is_a_formula_and_all_come_back_as_they_were(tmp_path: Path) -> None:
    texts = ["=1", "+a", "-1 b", "@c", "\td", "\re", "'=f", "''g", "a\rb", "'", "-", "plain"]
    frame = pd.DataFrame({"item": texts, "=label": range(12), "-1": 0.5})
    for ending in (".csv", ".tsv", ".csv.gz"):
        write_table(frame, tmp_path / f"t{ending}")
        pd.testing.assert_frame_equal(read_table(tmp_path / f"t{ending}", ["item"]), frame)
    with (tmp_path / "t.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    with Table(tmp_path / "t.csv") as table:
        assert pd.concat(table.read_blocks(["item"], [], 5))["item"].tolist() == texts


def test_no_cell_of_an_excel_file_is_a_formula(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=a": ["=1+1", "-1", "plain"]})
    write_table(frame, tmp_path / "t.xlsx")
    assert read_table(tmp_path / "t.xlsx", ["=a"]).equals(frame)
