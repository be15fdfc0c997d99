"""What separates label names is found where it is clear, and asked for where it is not."""

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from comes.datasets import Dataset, check_dataset, open_dataset, write_dataset
from comes.errors import ComesWarning
from refusals import refused

NAMES = ["sea", "sky", "sun", "tree"]
SETS = [list(s) for k in range(1, 5) for s in itertools.combinations(NAMES, k)]
WRITTEN: dict[str, Callable[[list[str]], str]] = {
    ";": ";".join,
    ",": ",".join,
    ", ": ", ".join,
    "|": "|".join,
    "tab": "\t".join,
    "space": " ".join,
    "json": json.dumps,
    "python": repr,
    "set": lambda names: repr(set(names)),
    "tuple": lambda names: repr(tuple(names)),
    "newline": "\n".join,
    "quoted": lambda names: ", ".join(f'"{name}"' for name in names),
    "bare list": lambda names: f"[{', '.join(names)}]",
}


def tags(folder: Path, cells: list[str], **fields: Any) -> Dataset:
    pd.DataFrame({"x": range(len(cells)), "tags": cells}).to_csv(folder / "a.csv", index=False)
    return open_dataset(folder / "a.csv", labels=["tags"], **fields)


@pytest.mark.filterwarnings("error")
def test_a_clear_separator_is_found(tmp_path: Path) -> None:
    for form in list(WRITTEN):
        for n in (15, 300):
            sets = SETS if n == 15 else random.Random(0).choices(SETS, k=n)
            read = tags(tmp_path, [WRITTEN[form](names) for names in sets])
            assert read.label_names == NAMES
            assert read.known_candidates().tolist() == [[name in s for name in NAMES] for s in sets]


def test_a_few_cells_are_enough_where_names_come_back(tmp_path: Path) -> None:
    assert tags(tmp_path, ["sky,sea", "sea", "sky,sun"]).label_names == ["sea", "sky", "sun"]
    assert len(tags(tmp_path, ["sky,sea", "sea", "sky,sun"], separator=";").label_names) == 3
    assert tags(tmp_path, ["sky,sea", "sea"], separator="comma").label_names == ["sea", "sky"]
    assert tags(tmp_path, ["sea,sky,sun", "sky,sun"]).label_names == ["sea", "sky", "sun"]
    with refused("between label names, or a part of them"):
        tags(tmp_path, ["sea,sky,sun,tree,wood", "sea,hill"])


@pytest.mark.filterwarnings("error")
def test_a_separator_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    assert tags(tmp_path, ["sky, blue", "sea", "sun"]).label_names == ["sea", "sky, blue", "sun"]
    cells = ["sky, blue;sea", "sea, blue", "sky, blue"]
    assert tags(tmp_path, cells).label_names == ["sea", "sea, blue", "sky, blue"]
    names = ["Rome, Italy", "Pisa, Italy"]
    assert len(tags(tmp_path, names, label_names=names).label_names) == 2

    cells = ["Tom; Jerry|Disney", "Tom; Jerry|Pixar", "Disney|Pixar"]
    assert tags(tmp_path, cells).label_names == ["Disney", "Pixar", "Tom; Jerry"]

    names = ["living room", "dining room", "kitchen", "room", "bath"]
    assert tags(tmp_path, random.Random(0).choices(names, k=60)).label_names == sorted(names)


def test_what_may_be_a_part_of_names_is_asked_for(tmp_path: Path) -> None:
    cases: list[list[str]] = [
        ["Rome, Italy", "Pisa, Italy"],
        [f"{first}, {last}" for first in ("Doe", "Roe", "Poe") for last in ("Ann", "Bob", "Eve")],
        ["red wine", "white wine", "red", "white", "wine"],
        [" ".join({"sea": "red sea"}.get(n, n) for n in names) for names in SETS],
        ["Pop", "Rock", "Rock/Pop"],
        ["/".join(names) for names in SETS],
        [" + ".join(names) for names in SETS],
        ["_".join(names) for names in SETS],
    ]
    for cells in cases:
        with refused(r"between label names, or a part of them\? .*--separator"):
            tags(tmp_path, cells)
        assert tags(tmp_path, cells, separator=";").label_names == sorted(cells)


def test_a_name_of_its_own_in_every_cell_is_asked_for(tmp_path: Path) -> None:
    for cells in ([f"recipe{k}" for k in range(365)], [f"The {k}th. A dish!" for k in range(365)]):
        with refused(r"365 labels stand in 365 cells.*What separates"):
            tags(tmp_path, cells)
        assert len(tags(tmp_path, cells, separator=";").label_names) == 365
    assert len(tags(tmp_path, [f"sky{k % 9}" for k in range(40)]).label_names) == 9


def test_lists_are_names_only_where_they_can_be(tmp_path: Path) -> None:
    for cells in (["['sky', 'sea']", "sea"], ["['sky' 'sea']", "['sea']"], ['{"sky": 1}', "[]"]):
        with refused("expected a list of label names"):
            tags(tmp_path, cells)

    with refused("lists of 3 numbers, 0 or 1"):
        tags(tmp_path, ["[0, 1, 1]", "[1, 0, 0]"])
    pd.DataFrame({"x": [1, 2], "tags": [[0, 1], [1, 1]]}).to_parquet(tmp_path / "a.parquet")
    with refused("lists of 2 numbers, 0 or 1"):
        open_dataset(tmp_path / "a.parquet", labels=["tags"])

    assert tags(tmp_path, ["['sky']", "[]"]).known_candidates().tolist() == [[True], [False]]


def test_known_labels_tell_the_separator(tmp_path: Path) -> None:
    for separator in (";", ",", "|", " "):
        read = tags(tmp_path, [separator.join(["sky", "sea"])], label_names=["sky", "sea"])
        assert read.known_candidates().all()

    for separator in (";", ",", "|", "\t"):
        cells = [separator.join(["sky", "sea"]), separator.join(["sea", "moon"])]
        with refused("label 'moon' occurs in a set"):
            tags(tmp_path, cells, label_names=["sky", "sea"])


def test_labels_truth_and_answers_have_their_separators(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": range(15), "tags": [",".join(s) for s in SETS]})
    table.assign(true=[s[0] for s in SETS]).to_csv(tmp_path / "a.csv", index=False)
    read = open_dataset(tmp_path / "a.csv", labels=["tags"], relevant=["true"])
    assert read.label_names == NAMES
    assert (read.known_relevant().sum(axis=1) == 1).all()

    table = pd.DataFrame({"x": [1, 2], "no": ["sky", "sea"], "yes": ["sea,sun", "sun"]})
    table.to_csv(tmp_path / "a.csv", index=False)
    assert open_dataset(tmp_path / "a.csv").label_names == ["sea", "sky", "sun"]

    for separator in ("/", " & "):
        both = [separator.join(s) for s in SETS]
        table = pd.DataFrame({"x": range(15), "no": both, "yes": both[::-1]})
        table.to_csv(tmp_path / "a.csv", index=False)
        with refused(f"is '{separator.strip()}' between label names, or a part of them"):
            open_dataset(tmp_path / "a.csv")


def test_names_that_could_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    names = ["a,b", "b,c", "c,a"]
    data = tags(tmp_path, names, separator=";")
    with refused("Write another form"):
        write_dataset(data, tmp_path / "b.csv", "names")
    write_dataset(data, tmp_path / "b.csv")
    assert open_dataset(tmp_path / "b.csv").label_names == names


def test_blanks_around_names_are_dropped_and_near_duplicates_are_reported(tmp_path: Path) -> None:
    with pytest.warns(ComesWarning, match="2 labels differ .* 'Mexican', 'mexican'"):
        read = tags(tmp_path, ["Mexican;Thai", "mexican ; Thai", " mexican"])
    assert read.label_names == ["Mexican", "Thai", "mexican"]
    assert [f.number for f in check_dataset(read) if f.name == "similar_labels"] == [2]
    with pytest.warns(ComesWarning, match="2 labels differ"):
        tags(tmp_path, ["caf\u00e9;tea", "cafe\u0301"])
