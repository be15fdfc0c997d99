"""Excel files as tables: their first sheet, or the only one that holds anything."""

import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comes.datasets.answer_words import as_text
from comes.datasets.delimited import MISSING
from comes.errors import ComesError, ComesWarning, listed

MERGED = re.compile(rb'<mergeCell ref="([^"]+)"')
NEVER_COMPUTED = re.compile(rb"</f>\s*(<v\s*/>|<v></v>)?\s*</c>")


def read_excel(path: Path, text_columns: Collection[str] = ()) -> pd.DataFrame:
    """Read the sheet of an Excel file; cells of text columns as a person would write them."""
    sheet = _read_sheet(path)
    names = _name_columns(sheet)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} occurs more than once")
    table = sheet.iloc[1:].set_axis(names, axis=1).reset_index(drop=True)
    for name in names:
        if name in text_columns:
            table[name] = table[name].map(as_text)
        else:
            is_missing = table[name].map(lambda cell: isinstance(cell, str) and cell in MISSING)
            table[name] = table[name].mask(is_missing.astype(bool)).infer_objects()
    return table


def read_excel_columns(path: Path) -> list[str]:
    """Return the names of the columns."""
    return _name_columns(_read_sheet(path))


def write_excel(table: pd.DataFrame, path: Path) -> None:
    """Write an Excel file with one sheet."""
    from openpyxl.utils.exceptions import IllegalCharacterError

    try:
        table.to_excel(path, index=False, engine="openpyxl")
    except (ValueError, IllegalCharacterError) as error:
        raise ComesError(f"this table does not fit an Excel file ({error}). Write .csv.") from None


def copy_excel_rows(path: Path, records: Sequence[int], target: Path) -> None:
    """Write an Excel file with the head and some rows of another, counted from 0."""
    sheet = _read_sheet(path).iloc[[0, *(record + 1 for record in records)]]
    sheet.to_excel(target, index=False, header=False, engine="openpyxl")


def _read_sheet(path: Path) -> pd.DataFrame:
    """Return the cells of the only sheet that holds anything; raise if there are several."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and filters of cells
            found: dict[Any, pd.DataFrame] = pd.read_excel(
                path,
                sheet_name=None,
                header=None,
                dtype=object,
                keep_default_na=False,
                na_values="",
                engine="openpyxl",
            )
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"it is damaged, or not an Excel file ({error})") from None
    _check_cells(path)
    sheets = {name: sheet for name, sheet in found.items() if not sheet.dropna(how="all").empty}
    if len(sheets) > 1:
        raise ComesError(
            f"{path.name} has {len(sheets)} sheets ({', '.join(map(str, sheets))}), and one table "
            "is read. Save the one that you mean in a file of its own."
        )
    if not sheets:
        raise ComesError(f"{path.name} is empty; expected a data set with at least one row.")
    (sheet,) = sheets.values()
    return sheet.dropna(how="all")


def _check_cells(path: Path) -> None:
    """Raise at formulas that were never computed; warn of merged cells: one has a value."""
    with zipfile.ZipFile(path) as packed:
        sheets = [packed.read(n) for n in packed.namelist() if n.startswith("xl/worksheets/sheet")]
    if any(NEVER_COMPUTED.search(sheet) for sheet in sheets):
        raise ComesError(
            f"{path.name} has formulas that were never computed, and so no values. Open it in a "
            "spreadsheet program and save it, or write values."
        )
    merged = [match.decode() for sheet in sheets for match in MERGED.findall(sheet)]
    if merged:
        warnings.warn(
            f"{path.name} has merged cells ({listed(merged, 3)}): the first of them holds the "
            "value, and the others are read as empty. Unmerge them if all should have it.",
            ComesWarning,
            stacklevel=2,
        )


def _name_columns(sheet: pd.DataFrame) -> list[str]:
    """Return the cells of the first row; a column without a name is called as pandas does."""
    return [as_text(cell) or f"Unnamed: {j}" for j, cell in enumerate(sheet.iloc[0])]
