"""Tables as people have them: tabs, semicolons, gzip, Excel, and commas in numbers."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd

from comes.datasets import open_dataset, read_features, write_dataset
from comes.datasets.table import read_table, write_table
from refusals import refused

TABLE = pd.DataFrame(
    {
        "item": ["001", "002", "003"],
        "x": [0.5, -1.25, 3.0],
        "n": [7, 8, 9],
        "tags": ["sky;sea", "NA", "sky"],
    }
)


def write(path: Path) -> Path:
    """Write the table as the name says; "semicolon.csv" and the like have other delimiters."""
    if path.suffix == ".xlsx":
        TABLE.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        TABLE.to_parquet(path, index=False)
    else:
        known = {"semicolon": ";", "tab": "\t", "bar": "|", "decimal": ";"}
        sep = known.get(path.name.split(".")[0], "\t" if ".tsv" in path.name else ",")
        TABLE.to_csv(path, index=False, sep=sep, decimal="," if "decimal" in path.name else ".")
    return path


def test_every_form_of_a_table_is_the_same_data(tmp_path: Path) -> None:
    cases: list[str] = [
        "a.csv",
        "a.tsv",
        "a.csv.gz",
        "a.TSV.gz",
        "a.xlsx",
        "a.parquet",
        "semicolon.csv",
        "tab.csv",
        "bar.csv",
        "semicolon.tsv",
        "decimal.csv",
        "decimal.csv.gz",
    ]
    for name in cases:
        path = write(tmp_path / name)
        read = open_dataset(path, labels=["tags"])
        assert read.label_names == ["NA", "sea", "sky"]
        assert read.items == ["001", "002", "003"]
        np.testing.assert_array_equal(np.asarray(read.X), [[0.5, 7], [-1.25, 8], [3, 9]])
        X, items = read_features(path, ["n", "x"])
        assert X["x"].tolist() == [0.5, -1.25, 3.0] and items == read.items


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.csv.gz", "a.tsv.gz", "a.xlsx"):
        for form in ("wide", "names"):
            data = open_dataset(write(tmp_path / "b.csv"), labels=["tags"])
            write_dataset(data, tmp_path / name, form)
            again = open_dataset(tmp_path / name)
            assert again.label_names == data.label_names and again.items == data.items
            np.testing.assert_array_equal(again.known_candidates(), data.known_candidates())
            np.testing.assert_array_equal(np.asarray(again.X, float), np.asarray(data.X, float))
            if name.endswith(".gz"):
                gzip.decompress((tmp_path / name).read_bytes())


def test_a_comma_in_numbers_is_the_point_where_that_is_sure(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a;b;c;d\n1,5;1,234;1.234,5;x,y\n-2;5,678;2,5;1,5\n;;;\n")
    table = read_table(path)
    assert table["a"].tolist()[:2] == [1.5, -2.0] and np.isnan(table["a"][2])
    assert table["b"].tolist()[:2] == [1.234, 5.678]  # as in the other columns
    assert table["c"].tolist()[:2] == [1234.5, 2.5]
    assert table["d"].tolist()[:2] == ["x,y", "1,5"]


def test_integers_of_more_than_64_bits_are_read(tmp_path: Path) -> None:
    rows = [f"{10**40 + row},{row % 2}" for row in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["id,is_a", *rows]))
    assert len(open_dataset(tmp_path / "d.csv", relevant=["is_*"])) == 30


def test_label_names_with_commas_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;y\n1;1,5\n2;5\n3;1\n")
    assert open_dataset(path, labels=["y"]).label_names == ["1", "5"]


def test_commas_inside_quotes_do_not_part_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,y\n"a;b;c",1\n"one, two",0\n')
    assert read_table(path).columns.tolist() == ["text", "y"]
    path.write_text("a;b\n1;2\n3\n")
    with refused("no column 'b'"):
        open_dataset(path, labels=["b"])


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz")
    for damaged in (path.read_bytes()[:-9], b"x,y\n1,2\n"):
        path.write_bytes(damaged)
        with refused(r"a\.csv\.gz cannot be read as csv\.gz"):
            open_dataset(path, labels=["tags"])


def test_excel_says_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    with refused(r"does not fit an Excel file .*Write \.csv"):
        write_table(pd.DataFrame({"a": ["\x01"]}), path)
    path.write_bytes(b"not a zip")
    with refused(r"a\.xlsx cannot be read as xlsx"):
        open_dataset(path, labels=["y"])
    with pd.ExcelWriter(path) as writer:
        TABLE.to_excel(writer, sheet_name="one", index=False)
        TABLE.to_excel(writer, sheet_name="two", index=False)
    with refused(r"2 sheets \(one, two\), and one table is read"):
        open_dataset(path, labels=["tags"])
    with pd.ExcelWriter(path) as writer:
        TABLE.to_excel(writer, sheet_name="one", index=False)
        pd.DataFrame().to_excel(writer, sheet_name="two", index=False)
    assert len(open_dataset(path, labels=["tags"])) == 3
