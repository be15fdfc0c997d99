from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comes.answers import Answers, State
from comes.datasets import Dataset, combine_answers, open_dataset, write_dataset
from comes.datasets.long import long_table
from comes.datasets.matrices import write_npz
from comes.errors import ComesWarning
from refusals import refused

LONG = """item,label,answer,who
p,sky,no,ann
p,sea,maybe,ann
q,sea,no,bob
r,sky,,bob
r,sun,not asked,bob
"""


def written(folder: Path, text: str) -> Path:
    (folder / "answers.csv").write_text(text)
    return folder / "answers.csv"


def test_of_all_states_only_no_excludes(tmp_path: Path) -> None:
    dataset = open_dataset(written(tmp_path, LONG))
    assert dataset.items == ["p", "q", "r"]
    assert dataset.label_names == ["sky", "sea", "sun"]
    assert dataset.candidates is not None and dataset.asked is not None
    assert dataset.candidates.astype(int).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 1]]
    assert dataset.asked.astype(int).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    assert (
        str(dataset)
        == "3 rows without features, 3 labels, 3 of 9 pairs asked: 2 no, 0 yes, 1 maybe"
    )


def test_a_maybe_outweighs_a_no() -> None:
    said = ["p"] * 3, ["sky"] * 3, ["no", "maybe", "no"]
    with pytest.warns(ComesWarning, match="1 pairs of item and label have different answers"):
        dataset = combine_answers(*said)
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[True]]
    quiet = combine_answers(*said, warn_of_disagreements=False)  # a warning would be an error
    assert quiet.candidates is not None and quiet.candidates.tolist() == [[True]]


def test_all_items_there_are_can_be_named() -> None:
    dataset = combine_answers(["q"], ["sky"], ["no"], item_names=["p", "q"])
    assert dataset.items == ["p", "q"] and dataset.candidates is not None
    assert dataset.candidates.tolist() == [[True], [False]]
    with refused("item 'r' occurs in an answer but is none of the item"):
        combine_answers(["r"], ["sky"], ["no"], item_names=["p", "q"])
    with refused("'p' occurs again at row 1"):
        combine_answers(["p"], ["sky"], ["no"], item_names=["p", "p"])


def test_other_columns_and_other_words(tmp_path: Path) -> None:
    """As in Open Images: verified labels, 1 present and 0 absent."""
    path = written(tmp_path, "ImageID,LabelName,Confidence\n7,cat,1\n7,dog,0\n8,dog,\n")
    columns = ["ImageID", "LabelName", "Confidence"]
    with refused(r"'Confidence' should hold no, yes, .*; found '1' .*--answers '0=no,1=yes'"):
        open_dataset(path, long=columns)
    dataset = open_dataset(path, long=columns, words={"0": "no", "1": "maybe"})
    assert dataset.candidates is not None and dataset.asked is not None
    assert dataset.candidates.tolist() == [[True, False], [True, True]]
    assert dataset.asked.tolist() == [[True, True], [False, False]]
    table = pd.read_csv(path)
    table.to_parquet(tmp_path / "answers.parquet")  # numbers with a gap are floats there
    parquet = open_dataset(
        tmp_path / "answers.parquet", long=columns, words={"0": "no", "1": "maybe"}
    )
    assert parquet.items == ["7", "8"]
    np.testing.assert_array_equal(parquet.candidates, dataset.candidates)


def test_wide_columns_hold_states_or_words_of_ones_own(tmp_path: Path) -> None:
    """As in CheXpert: 1 present, 0 absent, -1 uncertain, blank not mentioned."""
    text = "item,x,sky,sea\np,1,no,Maybe\nq,2,,NO\n"
    dataset = open_dataset(written(tmp_path, text), labels=["sky", "sea"])
    assert dataset.candidates is not None and dataset.asked is not None
    assert dataset.candidates.tolist() == [[False, True], [True, False]]
    assert dataset.asked.tolist() == [[True, True], [False, True]]
    assert list(dataset.X.columns) == ["x"] and dataset.items == ["p", "q"]

    path = written(tmp_path, "x,edema,fracture\n1,0.0,\n2,-1.0,1.0\n3,,0.0\n")
    with refused("should hold 0 and 1, or no, .*found '-1'"):
        open_dataset(path, labels=["edema", "fracture"])
    words = {"0": "no", "1.0": "maybe", "-1": "maybe"}
    dataset = open_dataset(path, labels=["edema", "fracture"], words=words)
    assert dataset.candidates is not None and dataset.asked is not None
    assert dataset.candidates.tolist() == [[False, True], [True, True], [True, False]]
    assert dataset.asked.tolist() == [[True, False], [True, True], [False, True]]


def test_an_unclear_answer_is_refused_with_its_place(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("item,label,answer\np,sky,rarely\n", "'answer' should hold no, .*found 'rarely'"),
        ("item,label,answer\np,,no\n", "column 'label' is empty at row 2"),
        ("item,label,answer\n,sky,no\n", "column 'item' is empty at row 2"),
        (
            "item,x,sky,sea\np,1,no,never\n",
            "'sky', 'sea' should .*found 'never' .*'never=...,no=no'",
        ),
    ]
    for text, message in cases:
        labels = ["sky", "sea"] if "sea" in text else None
        with refused(message):
            open_dataset(written(tmp_path, text), labels=labels)


def test_answers_take_no_other_view_in_tables_or_columns(tmp_path: Path) -> None:
    with refused("is read as a table of answers.*'no' excludes"):
        open_dataset(written(tmp_path, LONG), labels_are="complementary")
    with refused("long must name three columns"):
        open_dataset(written(tmp_path, LONG), long=["item", "label"])

    path = written(tmp_path, "a,b,x\nyes,no,1\nno,,2\n")
    with refused("are answers, and 'no' excludes"):
        open_dataset(path, labels=["a", "b"], labels_are="complementary")


def test_all_labels_there_are_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, LONG)
    dataset = open_dataset(path, label_names=["sun", "sea", "sky", "tree"])
    assert dataset.candidates is not None
    assert dataset.candidates[0].astype(int).tolist() == [1, 1, 0, 1]
    with refused("'sky' occurs in an answer but is none of"):
        open_dataset(path, label_names=["sun", "sea"])

    with refused("'a' more than once"):
        combine_answers(["p"], ["a"], ["no"], ["a", "a"])
    with refused("no column 'x'"):
        open_dataset(written(tmp_path, LONG), long=["x", "y", "z"])


def test_the_long_table_names_every_item_and_label() -> None:
    candidates = np.array([[True, True], [True, False], [True, True]])
    asked = np.array([[False, False], [True, True], [False, False]])
    answers = Answers(no=~candidates, maybe=candidates & asked)
    dataset = Dataset(None, ["sky", "sea"], answers=answers, items=["p", "q", "r"])
    assert long_table(dataset).to_numpy().tolist() == [
        ["p", "sky", "not asked"],
        ["p", "sea", "not asked"],
        ["q", "sky", "maybe"],
        ["q", "sea", "no"],
        ["r", "sky", "not asked"],
    ]


def test_features_are_joined_by_item_or_by_place(tmp_path: Path) -> None:
    for ending in (".npz", ".csv", ".parquet"):
        answers = written(tmp_path, LONG)
        names = ["r", "q", "s", "p"]
        X = pd.DataFrame({"size": [3.0, 2.0, 9.0, 1.0]})
        table = tmp_path / f"features{ending}"
        if ending == ".npz":
            np.savez(table, X=X.to_numpy(), items=names)
        elif ending == ".csv":
            X.assign(item=names).to_csv(table, index=False)
        else:
            X.assign(item=names).to_parquet(table, index=False)
        dataset = open_dataset(answers, features=table)
        assert np.asarray(dataset.X).ravel().tolist() == [1.0, 2.0, 3.0]
        assert dataset.items == ["p", "q", "r"]

    labels, features = tmp_path / "labels.csv", tmp_path / "features.csv"
    labels.write_text("photo,text,maybe\np,hello,sky\nq,you,sea\n")
    features.write_text("photo,x\nq,2\np,1\n")
    dataset = open_dataset(labels, labels=["maybe"], item="photo", features=features)
    assert dataset.X["x"].tolist() == [1, 2] and dataset.items == ["p", "q"]

    write_npz(Dataset(None, ["sky"], np.array([[True], [False]])), tmp_path / "labels.npz")
    np.savez(tmp_path / "X.npz", X=np.eye(2))
    dataset = open_dataset(tmp_path / "labels.npz", features=tmp_path / "X.npz")
    np.testing.assert_array_equal(dataset.X, np.eye(2))


def test_items_without_features_or_names_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "X.npz", X=np.eye(2), items=["p", "q"])
    with refused(r"1 items have labels and no features \(first: 'r'\)"):
        open_dataset(written(tmp_path, LONG), features=tmp_path / "X.npz")
    np.savez(tmp_path / "X.npz", X=np.eye(3))
    with refused("3 rows of labels have them, 3 rows of features lack"):
        open_dataset(written(tmp_path, LONG), features=tmp_path / "X.npz")

    np.savez(tmp_path / "X.npz", X=np.eye(2), items=["p", "p"])
    with refused(r"X.npz: the names of items must differ"):
        open_dataset(written(tmp_path, LONG), features=tmp_path / "X.npz")
    write_npz(Dataset(None, ["sky"], np.array([[True], [False]])), tmp_path / "labels.npz")
    np.savez(tmp_path / "X.npz", X=np.eye(3))
    with refused("matched by the names of the items"):
        open_dataset(tmp_path / "labels.npz", features=tmp_path / "X.npz")
    with refused("features or images; got both"):
        open_dataset(tmp_path / "labels.npz", features=tmp_path / "X.npz", images=tmp_path)


def test_numbers_as_names_keep_all_their_digits(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"item": [1234567.0, 1234568.0], "label": ["a", "a"], "answer": ["no", ""]}
    )
    table.to_parquet(tmp_path / "long.parquet")
    assert open_dataset(tmp_path / "long.parquet").items == ["1234567", "1234568"]
    dataset = open_dataset(written(tmp_path, "item,label,answer\n001,NA, no \n002,NA,Yes\n"))
    assert dataset.items == ["001", "002"] and dataset.label_names == ["NA"]
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[False], [True]]


def test_words_of_ones_own_are_the_only_ones(tmp_path: Path) -> None:
    with refused("should hold 'nein' or nothing .not asked.; found 'no' .2 cells"):
        open_dataset(written(tmp_path, LONG), words={"nein": "no"})

    path = written(tmp_path, "x,sky,sea\n1,NA,1\n2,1,NA\n")
    dataset = open_dataset(path, labels=["sky", "sea"], words={"NA": "no", "1": "maybe"})
    assert dataset.candidates is not None
    assert dataset.candidates.tolist() == [[False, True], [True, False]]


def test_one_column_of_answers_is_one_label(tmp_path: Path) -> None:
    path = written(tmp_path, "photo,sky,x\np,no,1\nq,Maybe,2\n")
    dataset = open_dataset(path, labels=["sky"], item="photo")
    assert dataset.label_names == ["sky"] and dataset.items == ["p", "q"]
    assert dataset.candidates is not None and dataset.candidates.tolist() == [[False], [True]]
    path = written(tmp_path, "x,sky\n1,no\n2,sea\n")  # names: one of them is "no"
    assert open_dataset(path, labels=["sky"]).label_names == ["no", "sea"]


def test_tables_of_labels_alone_and_of_ours_hold_no_features(tmp_path: Path) -> None:
    dataset = open_dataset(written(tmp_path, LONG))
    for form in ("wide", "long"):
        write_dataset(dataset, tmp_path / "again.csv", form)
        again = open_dataset(tmp_path / "again.csv")
        assert again.X is None and again.items == dataset.items
        np.testing.assert_array_equal(again.asked, dataset.asked)

    whole = Dataset(
        pd.DataFrame({"u": [1.0, 2.0]}), ["sky"], np.array([[True], [False]]), items=["p", "q"]
    )
    write_dataset(whole, tmp_path / "whole.csv")
    answers = written(tmp_path, "item,label,answer\nq,sky,no\n")
    dataset = open_dataset(answers, features=tmp_path / "whole.csv")
    assert list(dataset.X.columns) == ["u"] and dataset.X["u"].tolist() == [2.0]


def test_features_of_another_file_by_column(tmp_path: Path) -> None:
    pd.DataFrame({"item": ["r", "q", "p"], "a": [3.0, 2, 1], "b": [6.0, 5, 4]}).to_csv(
        tmp_path / "X.csv", index=False
    )
    options = {"features": tmp_path / "X.csv", "feature_columns": ["b"]}
    dataset = open_dataset(written(tmp_path, LONG), **options)  # type: ignore[arg-type]
    assert list(dataset.X.columns) == ["b"] and dataset.X["b"].tolist() == [4, 5, 6]
    with refused("broken images can be skipped where there are images"):
        open_dataset(written(tmp_path, LONG), features=tmp_path / "X.csv", skip_broken=True)


def test_what_a_model_asked_is_marked_and_no_sample(tmp_path: Path) -> None:
    """The likelihood may use them; rates and candidates need questions drawn at random."""
    text = "item,label,answer,source\np,sky,no,model\nq,sky,yes,random\nr,sky,yes,model\n"
    dataset = open_dataset(written(tmp_path, text + "r,sky,yes,import\n"))
    answers = dataset.known_answers()
    assert answers.codes.ravel().tolist() == [State.NO, State.YES, State.YES]
    assert answers.chosen is not None  # r was asked of a model and without one
    assert answers.chosen.ravel().tolist() == [True, False, False]
    assert dataset.known_candidates().ravel().tolist() == [True, True, True]

    path = written(tmp_path, "item,label,answer,source\np,sky,no,model\nq,sky,no,random\n")
    with pytest.warns(ComesWarning, match="1 answers to questions that a model chose are left out"):
        dataset = open_dataset(path)
    assert dataset.items == ["p", "q"] and dataset.known_answers().kind == "candidates"
    assert dataset.known_candidates().tolist() == [[True], [False]]
