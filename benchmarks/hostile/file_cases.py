"""Files: encodings, separators, broken rows, numbers that are none, archives and sheets."""

import gzip

import numpy as np
import pandas as pd

from comes.datasets import open_dataset
from hostile.casework import Place, handled, refused, refused_commands, said
from hostile.materials import FEATURES, ROWS, candidates, features, frame, joined, text_of, wide

AREA = "files"
SHOW = "datasets {} --labels maybe"


def good_table(**columns: object) -> pd.DataFrame:
    """Return the good table, with other columns beside its own."""
    return frame(maybe=joined(candidates()), **columns)


def reads_all(name: str) -> bool:
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
    lines = text_of(good_table()).splitlines()
    lines[6] += ",extra"
    place.write("d.csv", "\n".join(lines))
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"row 5|missing|empty|cells")
def _a_row_with_cells_missing(place: Place) -> object:
    lines = text_of(good_table()).splitlines()
    lines[6] = lines[6].split(",")[0]
    place.write("d.csv", "\n".join(lines))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@refused(AREA, r"quote|line|cannot be read|string")
def _a_quote_that_is_never_closed(place: Place) -> object:
    lines = text_of(good_table()).splitlines()
    lines[9] = '"' + lines[9]
    place.write("d.csv", "\n".join(lines))
    return place.comes(SHOW.format("d.csv"))


@handled(AREA)
def _a_byte_order_mark(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).encode("utf-8-sig"))
    return reads_all("d.csv")


@refused(AREA, r"utf-8|encod")
def _latin_1_accents(place: Place) -> object:
    place.write("d.csv", text_of(good_table(stadt="Köln")).encode("latin-1"))
    return place.comes(SHOW.format("d.csv") + " --ignore stadt")


@refused(AREA, r"utf-8|utf-16|encod")
def _utf_16_as_excel_writes_it(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).encode("utf-16"))
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"NUL|binary|\\x00|byte")
def _nul_bytes_in_the_middle(place: Place) -> object:
    content = text_of(good_table()).encode()
    place.write("d.csv", content[:500] + b"\0" * 40 + content[500:])
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@handled(AREA)
def _line_ends_of_windows(place: Place) -> object:
    place.write("d.csv", text_of(good_table(), lineterminator="\r\n"))
    return reads_all("d.csv")


@handled(AREA)
def _line_ends_of_an_old_mac(place: Place) -> object:
    place.write("d.csv", text_of(good_table(), lineterminator="\r"))
    return reads_all("d.csv")


@handled(AREA)
def _blank_lines_between_and_after(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).replace("\n", "\n\n") + "\n\n")
    return reads_all("d.csv")


@handled(AREA)
def _semicolons_and_decimal_commas(place: Place) -> object:
    table = frame(maybe=joined(candidates(), ","))
    place.write("d.csv", text_of(table, sep=";", decimal=","))
    return reads_all("d.csv")


@said(AREA, r"thousand|decimal|1,234|comma")
def _a_comma_that_may_be_a_thousand(place: Place) -> object:
    table = pd.DataFrame({"money": ["1,234", "2,500", "3,125"] * 20, "maybe": joined(candidates())})
    place.write("d.csv", text_of(table, sep="\t"))
    return place.comes(SHOW.format("d.csv"))


@handled(AREA)
def _tabs_in_a_tsv(place: Place) -> object:
    place.write("d.tsv", text_of(good_table(), sep="\t"))
    return reads_all("d.tsv")


@said(AREA, r"comma|separat|tab|one column|no column")
def _commas_in_a_tsv(place: Place) -> object:
    place.write("d.tsv", text_of(good_table()))
    return reads_all("d.tsv") and "comma"


@handled(AREA)
def _a_zipped_csv(place: Place) -> object:
    place.write("d.csv.gz", gzip.compress(text_of(good_table()).encode()))
    return reads_all("d.csv.gz")


@refused(AREA, r"gzip|gz")
def _a_gz_that_is_not_zipped(place: Place) -> object:
    place.write("d.csv.gz", text_of(good_table()))
    return place.comes(SHOW.format("d.csv.gz"))


@refused(AREA, r"gz|end|truncated|broken|cut")
def _a_gz_that_was_cut(place: Place) -> object:
    whole = gzip.compress(text_of(good_table()).encode())
    place.write("d.csv.gz", whole[: len(whole) // 2])
    return place.comes(SHOW.format("d.csv.gz"))


@refused(AREA, r"red.*twice|twice.*red|more than once|duplicate|same name")
def _a_column_twice(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).replace("green", "red", 1))
    return place.comes(SHOW.format("d.csv"))


@refused(AREA, r"name|header|empty")
def _a_column_without_a_name(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).replace("green", "", 1))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@refused(AREA, r"maybe")
def _no_header_line(place: Place) -> object:
    place.write("d.csv", text_of(good_table()).split("\n", 1)[1])
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"inf|finite|infinit")
def _an_infinite_number(place: Place) -> object:
    X = features().copy()
    X[3, 1] = np.inf
    place.write("d.csv", text_of(good_table().assign(green=X[:, 1])))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@said(AREA, r"large|float32|3\.4e38|huge|text|number")
def _integers_of_forty_digits(place: Place) -> object:
    big = [10**40 + k for k in range(ROWS)]
    place.write("d.csv", text_of(good_table(big=big)))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@said(AREA, r"blue")
def _one_word_among_numbers(place: Place) -> object:
    table = good_table().astype({"blue": object})
    table.loc[4, "blue"] = "see notes"
    place.write("d.csv", text_of(table))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@said(AREA, r"when")
def _dates_in_three_forms(place: Place) -> object:
    when = ["2024-01-31", "31/01/2024", "Jan 31, 2024"] * 20
    place.write("d.csv", text_of(good_table(when=when)))
    return place.comes("datasets d.csv --labels maybe") + place.comes(
        "fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m"
    )


@said(AREA, r"price")
def _numbers_with_a_currency(place: Place) -> object:
    place.write("d.csv", text_of(good_table(price=[f"${k}.50" for k in range(ROWS)])))
    return place.comes("datasets d.csv --labels maybe")


@said(AREA, r"share")
def _percentages(place: Place) -> object:
    place.write("d.csv", text_of(good_table(share=[f"{k} %" for k in range(ROWS)])))
    return place.comes("datasets d.csv --labels maybe")


@refused(AREA, r"folder|directory")
def _a_folder_called_csv(place: Place) -> object:
    (place.folder / "d.csv").mkdir()
    return place.comes(SHOW.format("d.csv"))


@said(AREA, r"finite|empty|missing|nothing|constant|blue")
def _a_column_without_a_value(place: Place) -> object:
    place.write("d.csv", text_of(good_table().assign(blue="")))
    return place.comes("fit d.csv --labels maybe --priors priors.csv --epochs 1 -o m")


@handled(AREA)
def _names_of_columns_in_other_scripts(place: Place) -> object:
    columns = dict(zip(FEATURES, ("赤", "zelená", "нил 🌊"), strict=True))
    place.write("данные 🌊.csv", text_of(good_table().rename(columns=columns)))
    return reads_all("данные 🌊.csv")


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
