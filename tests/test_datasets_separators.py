"""Another separator than expected does not make other labels of a column of names."""

import warnings
from pathlib import Path

import pandas as pd
import pytest

from comes.datasets import Dataset, read_dataset
from comes.errors import ComesError, ComesWarning


def tags(folder: Path, cells: list[str], **fields: str) -> Dataset:
    pd.DataFrame({"x": range(len(cells)), "tags": cells}).to_csv(folder / "a.csv", index=False)
    return read_dataset(folder / "a.csv", labels=["tags"], **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("separator", [",", "|", "\t"])
def test_another_usual_separator_is_named(tmp_path: Path, separator: str) -> None:
    cells = [separator.join(names) for names in (("sky", "sea"), ("sea",), ("sky", "sun"))]
    with pytest.raises(ComesError, match=r"'s.*' stands beside .* --separator .* or that it is"):
        tags(tmp_path, cells)
    assert tags(tmp_path, cells, separator=separator).label_names == ["sea", "sky", "sun"]
    assert len(tags(tmp_path, cells, separator=";").label_names) == 3


@pytest.mark.filterwarnings("error")
def test_a_comma_in_a_name_is_part_of_it(tmp_path: Path) -> None:
    assert tags(tmp_path, ["sky, blue", "sea", "sun"]).label_names == ["sea", "sky, blue", "sun"]
    cells = ["sky, blue;sea", "sea, blue", "sky, blue"]
    assert tags(tmp_path, cells).label_names == ["sea", "sea, blue", "sky, blue"]
    names = ["Rome, Italy", "Pisa, Italy"]
    assert len(tags(tmp_path, names, label_names=names).label_names) == 2  # type: ignore[arg-type]


def test_a_list_written_as_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"a list written as text, .*'sky', 'sea'"):
        tags(tmp_path, ["['sky', 'sea']", "['sea']"])


def test_a_name_of_its_own_in_every_cell_is_a_warning(tmp_path: Path) -> None:
    cells = [f"sky{k} sea{k % 7}" for k in range(40)]
    with pytest.warns(ComesWarning, match="40 labels stand in 40 cells.*--separator"):
        tags(tmp_path, cells)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tags(tmp_path, [f"sky{k % 9}" for k in range(40)])


def test_sets_of_answers_have_one_separator(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "no": ["sky", "sea"], "yes": ["sea,sun", "sun"]})
    table.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ComesError, match="--separator ','"):
        read_dataset(tmp_path / "a.csv")
