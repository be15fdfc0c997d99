"""csv, parquet and Excel files as tables, whose cells are read as they are written."""

import difflib
import fnmatch
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comes.columns import needs_encoding
from comes.datasets.answer_words import as_text
from comes.datasets.delimited import MISSING, find_delimiter, read_decimal_commas
from comes.datasets.spreadsheets import read_excel, read_excel_columns, write_excel
from comes.errors import ComesError, listed
from comes.files import replacing_file

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", ".xlsx")
CODE_CELLS = 100_000  # that are looked at to find codes
NAMELESS = re.compile(r"Unnamed: \d+|")  # what pandas calls a column without a name


def read_table(path: Path, text_columns: Collection[str] = ()) -> pd.DataFrame:
    r"""Read a csv, parquet or Excel file.

    Parameters
    ----------
    path : Path
    text_columns : collection of str
        Columns whose cells are kept as they are written: a label may be called NA.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item,label\n001,NA\n")
    >>> read_table(path, ["item", "label"]).to_dict("records")
    [{'item': '001', 'label': 'NA'}]
    """
    with explain_errors(path):
        if is_csv(path):
            table = _read_csv(path, text_columns)
        elif find_ending(path) == ".xlsx":
            table = drop_superfluous(read_excel(path, text_columns))
        else:
            table = _read_parquet(path)
    if table.empty:
        raise ComesError(f"{path.name} has columns but no rows; expected at least one row.")
    return table.set_axis([str(name) for name in table.columns], axis=1)


def read_columns(path: Path) -> list[str]:
    """Return the names of the columns of a csv, parquet or Excel file."""
    with explain_errors(path):
        if find_ending(path) == ".xlsx":
            return read_excel_columns(path)
        if not is_csv(path):
            names = [str(name) for name in pq.read_schema(path).names]
            return [name for name in names if not re.fullmatch(r"__index_level_\d+__", name)]
        header = pd.read_csv(
            path,
            sep=find_delimiter(path),
            header=None,
            nrows=1,
            dtype=str,
            keep_default_na=False,
        )
    return [str(name) or f"Unnamed: {j}" for j, name in enumerate(header.iloc[0])]


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write a csv, parquet or Excel file, replacing it if the whole of it could be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "priors.csv"
    >>> write_table(pd.DataFrame({"label": ["sky"], "class_prior": [0.25]}), path)
    >>> path.read_text().split()
    ['label,class_prior', 'sky,0.25']
    """
    write_blocks(iter([table]), path)


def write_blocks(blocks: Iterator[pd.DataFrame], path: str | Path) -> None:
    """Write a table that comes in blocks of rows, replacing the file if all could be written."""
    check_table_name(path)
    with replacing_file(path) as temporary:
        ending = find_ending(Path(path))
        if ending in TEXT_ENDINGS:
            sep = "\t" if ending.startswith(".tsv") else ","
            for number, block in enumerate(blocks):
                block.to_csv(
                    temporary,
                    sep=sep,
                    mode="a" if number else "w",
                    header=not number,
                    index=False,
                )
            return
        if ending == ".xlsx":
            write_excel(pd.concat(blocks, ignore_index=True), temporary)
            return
        first = pa.Table.from_pandas(next(blocks), preserve_index=False)
        with pq.ParquetWriter(temporary, first.schema) as writer:
            writer.write_table(first)
            for block in blocks:
                writer.write_table(pa.Table.from_pandas(block, first.schema, preserve_index=False))


def is_table_name(path: str | Path) -> bool:
    """Return whether the name has the ending of a table.

    Examples
    --------
    >>> is_table_name("answers.csv.gz"), is_table_name("answers.json")
    (True, False)
    """
    return find_ending(Path(path)) in TABLE_ENDINGS


def check_table_name(path: str | Path) -> None:
    """Raise unless the name has the ending of a table.

    Examples
    --------
    >>> check_table_name("priors.doc")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: priors.doc should end in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or \
.xlsx; got .doc.
    """
    path = Path(path)
    if not is_table_name(path):
        *endings, last = TABLE_ENDINGS
        raise ComesError(
            f"{path.name} should end in {', '.join(endings)} or {last}; got "
            f"{path.suffix or 'no ending'}."
        )


def select_features(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the named columns, as floats if all are complete numbers; raise if one is missing."""
    if not columns:
        raise ComesError(f"no feature column is left of {listed(list(table.columns))}.")
    for name in columns:
        if name not in table.columns:
            raise no_column(name, list(table.columns))
        if NAMELESS.fullmatch(name):
            raise ComesError(
                "a column without a name is not taken for a feature. Ignore it "
                f"(--ignore '{name}' on the command line), or name it."
            )
    chosen = table[list(columns)]
    return chosen if needs_encoding(chosen) else chosen.astype(float)


def item_names(table: pd.DataFrame, column: str) -> list[str]:
    """Return the names of the items; raise if one is empty."""
    names = [as_text(cell) for cell in table[column]]
    if "" in names:
        raise ComesError(
            f"column {column!r} is empty at row {names.index('')}; expected the name of an item."
        )
    return names


def find_columns(columns: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the columns named, wildcards filled in, each once, in the order asked for."""
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = [name for name in columns if fnmatch.fnmatchcase(name, pattern)]
        hits = [pattern] if pattern in columns else matching
        if not hits:
            raise no_column(pattern, columns)
        found.update(dict.fromkeys(hits))
    return list(found)


def no_column(name: str, columns: Sequence[str]) -> ComesError:
    """Return the error that there is no such column."""
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        hint = " Its columns are not all separated alike: every row must have as many cells."
    return ComesError(f"there is no column {name!r}; there are {listed(columns)}.{hint}")


def is_numeric(cells: "pd.Series[Any]") -> bool:
    """Return whether a column holds numbers, or True and False."""
    return pd.api.types.is_numeric_dtype(cells)


def is_csv(path: Path) -> bool:
    """Return whether the name is that of cells in text: .csv, .tsv, or one of them with .gz."""
    return find_ending(path) in TEXT_ENDINGS


def find_ending(path: Path) -> str:
    """Return the ending of a name in small letters, with what stands before .gz."""
    ending = path.suffix.lower()
    return f"{path.with_suffix('').suffix.lower()}{ending}" if ending == ".gz" else ending


def _read_csv(path: Path, text_columns: Collection[str]) -> pd.DataFrame:
    names = read_columns(path)
    refuse_repeated(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # more cells than column names
        table = read_csv_cells(path, names, find_delimiter(path), text_columns, index_col=False)
    return read_decimal_commas(drop_superfluous(table), text_columns)


def refuse_repeated(names: Sequence[str]) -> None:
    """Raise if two columns have one name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"column {repeated[0]!r} occurs more than once")


def read_csv_cells(
    source: Any,
    names: Sequence[str],
    delimiter: str,
    text_columns: Collection[str] = (),
    word_columns: Collection[str] = (),
    index_col: Literal[False] | None = None,
) -> pd.DataFrame:
    """Return the cells of a csv file or stream: texts as written, words as text or missing."""
    return pd.read_csv(
        source,
        sep=delimiter,
        index_col=index_col,
        dtype=dict.fromkeys([*text_columns, *word_columns], str),
        keep_default_na=False,
        na_values={name: list(MISSING) for name in names if name not in text_columns},
    )


def find_code_columns(path: Path) -> list[str]:
    """Return the columns of digits that begin with 0, as in 00123: codes, and no numbers."""
    if not is_csv(path):
        return []
    with explain_errors(path):
        cells = pd.read_csv(
            path,
            sep=find_delimiter(path),
            index_col=False,
            dtype=str,
            keep_default_na=False,
            nrows=max(CODE_CELLS // len(read_columns(path)), 1),
        )
    return list_codes(cells)


def list_codes(cells: pd.DataFrame) -> list[str]:
    """Return the columns of digits that begin with 0, of cells that are texts."""
    found = []
    for place, name in enumerate(cells.columns):
        words = [word for word in cells.iloc[:, place] if word]
        if any(word[0] == "0" and word[1:].isdigit() for word in words):
            found += [str(name)] if all(word.isdigit() for word in words) else []
    return found


def drop_superfluous(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that have no name and say nothing."""
    return table.drop(columns=[c for c in table.columns if _is_superfluous(str(c), table[c])])


def _is_superfluous(name: str, cells: "pd.Series[Any]") -> bool:
    """Return whether a column without a name is empty, or counts the rows."""
    if not NAMELESS.fullmatch(name):
        return False
    numbers = pd.api.types.is_integer_dtype(cells)
    return bool(cells.isna().all() or (numbers and (cells == np.arange(len(cells))).all()))


def _read_parquet(path: Path) -> pd.DataFrame:
    """Read a parquet file; an index with a name is a column."""
    table = pd.read_parquet(path)
    named = [name for name in table.index.names if name is not None]
    return table.reset_index(named) if named else table


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of pandas and pyarrow into a sentence that names the file."""
    try:
        yield
    except ComesError:
        raise
    except UnicodeDecodeError:
        raise ComesError(f"{path.name} is not text in UTF-8; save it as UTF-8.") from None
    except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        ending = find_ending(path)[1:]
        raise ComesError(f"{path.name} cannot be read as {ending}: {reason}.") from None
