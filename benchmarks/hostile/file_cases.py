"""Files: encodings, separators, broken rows, numbers that are none, archives and sheets."""

import gzip
import io
import json

import numpy as np
import openpyxl
import pandas as pd
import scipy.io

from comes.datasets import open_dataset
from hostile.casework import Place, handled, refused, refused_commands, said
from hostile.materials import FEATURES, ROWS, candidates, features, frame, joined, text_of, wide

AREA = "files"
SHOW = "datasets {} --labels maybe"


def _table(**columns: object) -> pd.DataFrame:
    return frame(maybe=joined(candidates()), **columns)


def _reads_all(name: str) -> bool:
    """Return whether a file holds the good table."""
    read = open_dataset(name, labels=["maybe"])
    assert read.X is not None
    same_labels = np.array_equal(read.known_candidates(), candidates())
    return same_labels and np.allclose(np.asarray(read.X, dtype=float), features(), atol=1e-3)


@refused(AREA, r"empty|no columns|holds nothing")
def _an_empty_file(place: Place) -> object:
    place.write("d.csv", "")
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"no rows")
def _a_header_alone(place: Place) -> object:
    place.write("d.csv", "red,green,blue,maybe\n")
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"line 7|row|fields|cells")
def _a_row_with_a_cell_too_many(place: Place) -> object:
    lines = text_of(_table()).splitlines()
    lines[6] += ",extra"
    place.write("d.csv", "\n".join(lines))
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"row 5|missing|empty|cells")
def _a_row_with_cells_missing(place: Place) -> object:
    lines = text_of(_table()).splitlines()
    lines[6] = lines[6].split(",")[0]
    place.write("d.csv", "\n".join(lines))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@refused(AREA, r"quote|line|cannot be read|string")
def _a_quote_that_is_never_closed(place: Place) -> object:
    lines = text_of(_table()).splitlines()
    lines[9] = '"' + lines[9]
    place.write("d.csv", "\n".join(lines))
    return place.comes(SHOW.format("d.csv"))


@handled(AREA)
def _a_byte_order_mark(place: Place) -> object:
    place.write("d.csv", text_of(_table()).encode("utf-8-sig"))
    return _reads_all("d.csv")


@refused(AREA, r"utf-8|encod")
def _latin_1_accents(place: Place) -> object:
    place.write("d.csv", text_of(_table(stadt="Köln")).encode("latin-1"))
    return place.comes(SHOW.format("d.csv") + " --ignore stadt")


@refused(AREA, r"utf-8|utf-16|encod")
def _utf_16_as_excel_writes_it(place: Place) -> object:
    place.write("d.csv", text_of(_table()).encode("utf-16"))
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"NUL|binary|\\x00|byte")
def _nul_bytes_in_the_middle(place: Place) -> object:
    content = text_of(_table()).encode()
    place.write("d.csv", content[:500] + b"\0" * 40 + content[500:])
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@handled(AREA)
def _line_ends_of_windows(place: Place) -> object:
    place.write("d.csv", text_of(_table(), lineterminator="\r\n"))
    return _reads_all("d.csv")


@handled(AREA)
def _line_ends_of_an_old_mac(place: Place) -> object:
    place.write("d.csv", text_of(_table(), lineterminator="\r"))
    return _reads_all("d.csv")


@handled(AREA)
def _blank_lines_between_and_after(place: Place) -> object:
    place.write("d.csv", text_of(_table()).replace("\n", "\n\n") + "\n\n")
    return _reads_all("d.csv")


@handled(AREA)
def _semicolons_and_decimal_commas(place: Place) -> object:
    table = frame(maybe=joined(candidates(), ","))
    place.write("d.csv", text_of(table, sep=";", decimal=","))
    return _reads_all("d.csv")


@refused(AREA, r"thousand|decimal|1,234|comma")
def _a_comma_that_may_be_a_thousand(place: Place) -> object:
    table = pd.DataFrame({"money": ["1,234", "2,500", "3,125"] * 20, "maybe": joined(candidates())})
    place.write("d.csv", text_of(table, sep="\t"))
    return place.comes(SHOW.format("d.csv"))


@handled(AREA)
def _tabs_in_a_tsv(place: Place) -> object:
    place.write("d.tsv", text_of(_table(), sep="\t"))
    return _reads_all("d.tsv")


@said(AREA, r"comma|separat|tab|one column|no column")
def _commas_in_a_tsv(place: Place) -> object:
    place.write("d.tsv", text_of(_table()))
    return _reads_all("d.tsv") and "comma"


@handled(AREA)
def _a_zipped_csv(place: Place) -> object:
    place.write("d.csv.gz", gzip.compress(text_of(_table()).encode()))
    return _reads_all("d.csv.gz")


@refused(AREA, r"gzip|gz")
def _a_gz_that_is_not_zipped(place: Place) -> object:
    place.write("d.csv.gz", text_of(_table()))
    return place.comes(SHOW.format("d.csv.gz"))


@refused(AREA, r"gz|end|truncated|broken|cut")
def _a_gz_that_was_cut(place: Place) -> object:
    whole = gzip.compress(text_of(_table()).encode())
    place.write("d.csv.gz", whole[: len(whole) // 2])
    return place.comes(SHOW.format("d.csv.gz"))


@refused(AREA, r"red.*twice|twice.*red|more than once|duplicate|same name")
def _a_column_twice(place: Place) -> object:
    place.write("d.csv", text_of(_table()).replace("green", "red", 1))
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"name|header|empty")
def _a_column_without_a_name(place: Place) -> object:
    place.write("d.csv", text_of(_table()).replace("green", "", 1))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@refused(AREA, r"maybe")
def _no_header_line(place: Place) -> object:
    place.write("d.csv", text_of(_table()).split("\n", 1)[1])
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"inf|finite|infinit")
def _an_infinite_number(place: Place) -> object:
    X = features().copy()
    X[3, 1] = np.inf
    place.write("d.csv", text_of(_table().assign(green=X[:, 1])))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@said(AREA, r"large|float32|3\.4e38|huge|text|number")
def _integers_of_forty_digits(place: Place) -> object:
    big = [10**40 + k for k in range(ROWS)]
    place.write("d.csv", text_of(_table(big=big)))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@said(AREA, r"blue")
def _one_word_among_numbers(place: Place) -> object:
    table = _table().astype({"blue": object})
    table.loc[4, "blue"] = "see notes"
    place.write("d.csv", text_of(table))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@said(AREA, r"when")
def _dates_in_three_forms(place: Place) -> object:
    when = ["2024-01-31", "31/01/2024", "Jan 31, 2024"] * 20
    place.write("d.csv", text_of(_table(when=when)))
    return place.comes("datasets d.csv --labels maybe") + place.comes(
        "fit d.csv --labels maybe --epochs 1 -o m"
    )


@said(AREA, r"price")
def _numbers_with_a_currency(place: Place) -> object:
    place.write("d.csv", text_of(_table(price=[f"${k}.50" for k in range(ROWS)])))
    return place.comes("datasets d.csv --labels maybe")


@said(AREA, r"share")
def _percentages(place: Place) -> object:
    place.write("d.csv", text_of(_table(share=[f"{k} %" for k in range(ROWS)])))
    return place.comes("datasets d.csv --labels maybe")


@refused(AREA, r"sheet")
def _two_sheets_in_a_workbook(place: Place) -> object:
    with pd.ExcelWriter("d.xlsx") as book:
        _table().to_excel(book, sheet_name="a", index=False)
        _table().to_excel(book, sheet_name="b", index=False)
    return place.comes(SHOW.format("d.xlsx"))


@said(AREA, r"merge")
def _merged_cells(place: Place) -> object:
    _table().to_excel("d.xlsx", index=False)
    book = openpyxl.load_workbook("d.xlsx")
    book.active.merge_cells("A3:A6")
    book.save("d.xlsx")
    return place.comes("fit d.xlsx --labels maybe --epochs 1 -o m")


@said(AREA, r"formula|sum|calculat|computed")
def _formulas_that_were_never_computed(place: Place) -> object:
    _table().to_excel("d.xlsx", index=False)
    book = openpyxl.load_workbook("d.xlsx")
    for row in range(2, ROWS + 2):
        book.active[f"A{row}"] = f"=B{row}+C{row}"
    book.save("d.xlsx")
    return place.comes("fit d.xlsx --labels maybe --epochs 1 -o m")


@refused(AREA, r"title|header|name|maybe|line")
def _a_title_above_the_header(place: Place) -> object:
    _table().to_excel("d.xlsx", index=False, startrow=2)
    book = openpyxl.load_workbook("d.xlsx")
    book.active["A1"] = "Photos of 2024"
    book.save("d.xlsx")
    return place.comes(SHOW.format("d.xlsx"))


@refused(AREA, r"\.xlsx|\.xls|excel|workbook|ending")
def _an_old_xls(place: Place) -> object:
    place.write("d.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 500)
    return place.comes(SHOW.format("d.xls"))


@refused(AREA, r"excel|xlsx|workbook")
def _a_csv_called_xlsx(place: Place) -> object:
    place.write("d.xlsx", text_of(_table()))
    return place.comes(SHOW.format("d.xlsx"))


@refused(AREA, r"parquet")
def _a_csv_called_parquet(place: Place) -> object:
    place.write("d.parquet", text_of(_table()))
    return place.comes(SHOW.format("d.parquet"))


@refused(AREA, r"parquet")
def _a_parquet_that_was_cut(place: Place) -> object:
    whole = io.BytesIO()
    _table().to_parquet(whole)
    place.write("d.parquet", whole.getvalue()[:-200])
    return place.comes(SHOW.format("d.parquet"))


@said(AREA, r"camera")
def _a_column_of_structs_in_parquet(place: Place) -> object:
    _table(camera=[{"make": "a", "iso": k} for k in range(ROWS)]).to_parquet("d.parquet")
    return place.comes("fit d.parquet --labels maybe --epochs 1 -o m")


@handled(AREA)
def _lists_of_names_in_parquet(_: Place) -> object:
    lists = [row.split(";") for row in joined(candidates())]
    frame(maybe=lists).to_parquet("d.parquet")
    return _reads_all("d.parquet")


@refused(AREA, r"jsonl|prodigy|label|line")
def _lines_of_json_with_other_fields(place: Place) -> object:
    place.write("d.jsonl", "\n".join(json.dumps({"a": k, "b": "c"}) for k in range(9)))
    return place.comes("datasets d.jsonl")


@refused(AREA, r"line 2")
def _a_broken_line_of_json(place: Place) -> object:
    good = json.dumps({"text": "t", "label": "sky", "answer": "accept"})
    place.write("d.jsonl", good + '\n{"text": "t", \n')
    return place.comes("datasets d.jsonl")


@refused(AREA, r"json|coco|label studio")
def _json_that_is_nobodys(place: Place) -> object:
    place.write("d.json", '{"hello": [1, 2]}')
    return place.comes("datasets d.json")


@refused(AREA, r"X|candidates|array")
def _an_npz_with_arrays_of_other_names(place: Place) -> object:
    np.savez("d.npz", features=features(), y=candidates())
    return place.comes("datasets d.npz")


@refused(AREA, r"rows|60|59")
def _an_npz_with_a_row_missing(place: Place) -> object:
    np.savez("d.npz", X=features()[1:], candidates=candidates(), label_names=list("abcd"))
    return place.comes("datasets d.npz")


@refused(AREA, r"pickle|object|npz")
def _an_npz_of_pickled_objects(place: Place) -> object:
    objects = np.array([{"a": 1}, None], dtype=object)
    np.savez("d.npz", X=objects, candidates=candidates(), allow_pickle=True)
    return place.comes("datasets d.npz")


@refused(AREA, r"data|target|partial_labels")
def _a_mat_without_labels(place: Place) -> object:
    scipy.io.savemat("d.mat", {"data": features()})
    return place.comes("datasets d.mat")


@refused(AREA, r"arff|line|attribute|label|xml|-C")
def _an_arff_that_names_no_labels(place: Place) -> object:
    place.write("d.arff", "@relation d\n@attribute a numeric\n@data\n1\n2\n")
    return place.comes("datasets d.arff")


@refused(AREA, r"line|svm|number")
def _an_svmlight_line_of_words(place: Place) -> object:
    place.write("d.svm", "1,3 1:0.5\nhello world\n")
    return place.comes("datasets d.svm")


@refused(AREA, r"folder|directory")
def _a_folder_called_csv(place: Place) -> object:
    (place.folder / "d.csv").mkdir()
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"finite|empty|missing|nothing|constant|blue")
def _a_column_without_a_value(place: Place) -> object:
    place.write("d.csv", text_of(_table().assign(blue="")))
    return place.comes("fit d.csv --labels maybe --epochs 1 -o m")


@handled(AREA)
def _names_of_columns_in_other_scripts(place: Place) -> object:
    columns = dict(zip(FEATURES, ("赤", "zelená", "нил 🌊"), strict=True))
    place.write("данные 🌊.csv", text_of(_table().rename(columns=columns)))
    return _reads_all("данные 🌊.csv")


@handled(AREA)
def _wide_labels_as_true_and_false(place: Place) -> object:
    table = frame(**wide(candidates(), "has_"))
    table[[c for c in table if c.startswith("has_")]] = candidates()
    place.write("d.csv", text_of(table))
    read = open_dataset("d.csv", labels=["has_*"])
    return np.array_equal(read.known_candidates(), candidates())


refused_commands(
    AREA,
    {
        "a file that is not there": ("datasets nowhere.csv --labels maybe", r"nowhere\.csv"),
        "an ending that nobody knows": ("datasets new.docx --labels maybe", r"new\.docx"),
        "a name that is near a known one": ("datasets yeestBP", r"YeastBP"),
        "a folder in place of a file": ("datasets . --labels maybe", r"folder|directory"),
        "a web address": ("datasets https://example.org/d.csv --labels a", r"file|download|name"),
        "an empty name": ("datasets '' --labels maybe", r"file|name|empty"),
    },
)
