"""Files of other formats: workbooks, parquet, json, arrays, ARFF and LIBSVM."""

import io
import json

import numpy as np
import openpyxl
import pandas as pd
import scipy.io

from hostile.casework import Place, handled, refused, said
from hostile.file_cases import AREA, SHOW, good_table, reads_all
from hostile.materials import ROWS, candidates, features, frame, joined, text_of


@refused(AREA, r"sheet")
def _two_sheets_in_a_workbook(place: Place) -> object:
    with pd.ExcelWriter("d.xlsx") as book:
        good_table().to_excel(book, sheet_name="a", index=False)
        good_table().to_excel(book, sheet_name="b", index=False)
    return place.comes(SHOW.format("d.xlsx"))


@said(AREA, r"merge")
def _merged_cells(place: Place) -> object:
    good_table().to_excel("d.xlsx", index=False)
    book = openpyxl.load_workbook("d.xlsx")
    book.active.merge_cells("A3:A6")
    book.save("d.xlsx")
    return place.comes("fit d.xlsx --labels maybe --priors priors.csv --epochs 1 -o m")


@said(AREA, r"formula|sum|calculat|computed")
def _formulas_that_were_never_computed(place: Place) -> object:
    good_table().to_excel("d.xlsx", index=False)
    book = openpyxl.load_workbook("d.xlsx")
    for row in range(2, ROWS + 2):
        book.active[f"A{row}"] = f"=B{row}+C{row}"
    book.save("d.xlsx")
    return place.comes("fit d.xlsx --labels maybe --priors priors.csv --epochs 1 -o m")


@refused(AREA, r"title|header|name|maybe|line")
def _a_title_above_the_header(place: Place) -> object:
    good_table().to_excel("d.xlsx", index=False, startrow=2)
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
    place.write("d.xlsx", text_of(good_table()))
    return place.comes(SHOW.format("d.xlsx"))


@refused(AREA, r"parquet")
def _a_csv_called_parquet(place: Place) -> object:
    place.write("d.parquet", text_of(good_table()))
    return place.comes(SHOW.format("d.parquet"))


@refused(AREA, r"parquet")
def _a_parquet_that_was_cut(place: Place) -> object:
    whole = io.BytesIO()
    good_table().to_parquet(whole)
    place.write("d.parquet", whole.getvalue()[:-200])
    return place.comes(SHOW.format("d.parquet"))


@said(AREA, r"camera")
def _a_column_of_structs_in_parquet(place: Place) -> object:
    good_table(camera=[{"make": "a", "iso": k} for k in range(ROWS)]).to_parquet("d.parquet")
    return place.comes("fit d.parquet --labels maybe --priors priors.csv --epochs 1 -o m")


@handled(AREA)
def _lists_of_names_in_parquet(_: Place) -> object:
    lists = [row.split(";") for row in joined(candidates())]
    frame(maybe=lists).to_parquet("d.parquet")
    return reads_all("d.parquet")


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
