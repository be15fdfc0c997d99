"""`Table`: a csv, tsv, Excel or parquet file, opened once; and tables written to such files."""

import csv
import difflib
import fnmatch
import gzip
import io
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from comes.errors import ComesError, listed, warn_user
from comes.files import replacing_file

TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLE_ENDINGS = (*TEXT_ENDINGS, ".parquet", ".xlsx")
DELIMITERS = (",", ";", "\t", "|")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "None", "n/a", "<NA>")  # in cells of numbers
HEAD_SIZE = 2**20  # characters that show what separates the columns, and which of them hold codes
HEAD_LINES = 100  # that must have as many cells
NAMELESS = re.compile(r"Unnamed: \d+|")  # what pandas calls a column without a name
DIGITS = re.compile(r"[0-9]+")
INDEX_LEVEL = re.compile(r"__index_level_\d+__")
DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # may as well be 1234
MERGED = re.compile(rb'<mergeCell ref="([^"]+)"')
FORMULA = re.compile(r"'*[=+\-@\x00-\x1f]")  # how a text begins that spreadsheets would compute
ESCAPED = re.compile(r"'[=+\-@\x00-\x1f]|'\Z")  # or perhaps, at the end of what was read
NEVER_COMPUTED = re.compile(rb"</f>\s*(<v\s*/>|<v></v>)?\s*</c>")


class Table:
    """A table in a file, opened once: its columns, and its cells when they are read.

    Rows of the frame have the numbers that they have in the file: that of the first after a line
    of names is 2.
    """

    columns: list[str]
    commas: Sequence[str] = ()  # columns of numbers such as 1,5, once they are read
    frame: pd.DataFrame

    def __init__(self, path: Path, file: Any = None) -> None:
        self.path, self.ending = path, find_ending(path)
        self._head: list[list[str]] = []  # the first rows of a text file
        self.first_row = 1 if self.ending == ".parquet" else 2
        with explain_errors(path):
            # Closed by read, or at the end of with.
            self._file = open(path, "rb") if file is None else file  # noqa: SIM115
            try:
                if self.ending in TEXT_ENDINGS:
                    is_packed = self.ending.endswith(".gz")
                    self._text = _Text(
                        gzip.GzipFile(fileobj=self._file) if is_packed else self._file
                    )
                    self._read_head()
                elif self.ending == ".xlsx":
                    self._sheet = _read_sheet(self._file, path)
                    names = enumerate(self._sheet.iloc[0])
                    self.columns = [as_text(name) or f"Unnamed: {j}" for j, name in names]
                else:
                    names = pq.ParquetFile(self._file).schema_arrow.names
                    self.columns = [n for n in map(str, names) if not INDEX_LEVEL.fullmatch(n)]
                repeated = [name for name, n in Counter(self.columns).items() if n > 1]
                if repeated:
                    raise ValueError(f"column {repeated[0]!r} occurs more than once")
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, text_columns: Collection[str] = (), n_rows: int | None = None) -> pd.DataFrame:
        """Return the cells; those of text columns as they are written: a label may be called NA.

        With ``n_rows``, those of the first rows of a text file.
        """
        with explain_errors(self.path):
            if self.ending in TEXT_ENDINGS:
                frame = self._read_text(text_columns, n_rows)
            elif self.ending == ".xlsx":
                frame = self._read_excel(text_columns)
            else:
                frame = pd.read_parquet(self._file)
                named = [name for name in frame.index.names if name is not None]
                frame = frame.reset_index(named) if named else frame
        self._file.close()
        if frame.empty:
            raise ComesError(
                f"{self.path.name} has columns but no rows; expected at least one row."
            )
        rows = pd.RangeIndex(self.first_row, self.first_row + len(frame))
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1).set_axis(rows)
        self.frame = frame
        return frame

    @property
    def codes(self) -> list[str]:
        """The columns of digits that begin with 0, such as 00123, which are no numbers."""
        codes = []
        for name, cells in zip(self.columns, zip_longest(*self._head, fillvalue=""), strict=False):
            words = [cell for cell in cells if cell]
            if all(map(DIGITS.fullmatch, words)) and any(len(w) > 1 and w[0] == "0" for w in words):
                codes.append(name)
        return codes

    def _read_head(self) -> None:
        """Find what separates the columns, and their names."""
        text = self._text.read(HEAD_SIZE)
        usual = "\t" if self.ending.startswith(".tsv") else ","
        self._delimiter = choose_delimiter(text, usual)
        rows = []
        with suppress(csv.Error):  # a cell that is too long for this reader
            for cells in csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter):
                rows += [cells] if len(cells) > 1 or any(map(str.strip, cells)) else []
        written = [name or f"Unnamed: {j}" for j, name in enumerate(rows[0] if rows else [])]
        self.columns = [_unescape(name) for name in written]
        self._written = dict(zip(self.columns, written, strict=True))
        self._head = rows[1:-1] if len(text) == HEAD_SIZE else rows[1:]  # the last may be cut

    def read_blocks(
        self, text_columns: Collection[str], words: Collection[str], n_rows: int
    ) -> Iterator[pd.DataFrame]:
        """Give the cells of a text file, so many rows at a time; those of words are no numbers."""
        with explain_errors(self.path):
            blocks = self._parse(text_columns, words, chunksize=n_rows)
        while True:
            with explain_errors(self.path):
                block = next(blocks, None)
            if block is None:
                return
            yield self._unescape(block).set_axis(block.index + self.first_row)

    def _read_text(self, text_columns: Collection[str], n_rows: int | None) -> pd.DataFrame:
        written = self._unescape(self._parse(text_columns, nrows=n_rows))
        mixed = [
            name
            for name in written.columns
            if written[name].dtype == object
            and pd.api.types.infer_dtype(written[name], skipna=True).startswith("mixed")
        ]
        if mixed:  # pandas found numbers in some blocks of rows, and words in others
            usecols = [self._written[name] for name in mixed]
            words = self._unescape(self._parse(text_columns, mixed, nrows=n_rows, usecols=usecols))
            written = written.assign(**{name: words[name] for name in mixed})
        written = _drop_superfluous(written)
        frame = read_decimal_commas(written, text_columns)
        self.commas = [c for c in frame.columns if frame[c].dtype != written[c].dtype]
        return frame

    def _parse(
        self, text_columns: Collection[str], words: Collection[str] = (), **options: Any
    ) -> Any:
        """Return the cells as pandas reads them, under the names that are written."""
        self._text.seek(0)
        texts = {*text_columns, *words} & {*self.columns}
        numbers = [name for name in self.columns if name not in text_columns]
        return pd.read_csv(
            self._text,
            sep=self._delimiter,
            index_col=False,
            dtype={self._written[name]: str for name in texts},
            keep_default_na=False,
            na_values={self._written[name]: list(MISSING) for name in numbers},
            **options,
        )

    def _unescape(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return cells and names as they were before `escape_formulas`."""
        if not self._text.may_be_escaped:
            return frame
        names = {written: name for name, written in self._written.items() if written != name}
        return _change_texts(frame.rename(columns=names) if names else frame, _unescape)

    def _read_excel(self, text_columns: Collection[str]) -> pd.DataFrame:
        frame = self._sheet.iloc[1:].set_axis(self.columns, axis=1).reset_index(drop=True)
        for name in self.columns:
            if name in text_columns:
                frame[name] = frame[name].map(as_text)
            else:
                is_missing = frame[name].map(lambda cell: isinstance(cell, str) and cell in MISSING)
                frame[name] = frame[name].mask(is_missing.astype(bool)).infer_objects()
        return _drop_superfluous(frame)


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each text that a spreadsheet would compute.

    The apostrophe is taken away when a table is read.
    """
    return _change_texts(frame.set_axis([_escape(name) for name in frame], axis=1), _escape)


def _change_texts(frame: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Return a table with its texts changed, each distinct one once."""
    columns: dict[str, Any] = {}
    for name, cells in frame.items():
        if pd.api.types.is_string_dtype(cells.dtype) or cells.dtype == object:
            codes, found = pd.factorize(cells, use_na_sentinel=False)
            distinct = found.tolist()
            changed = [change(cell) for cell in distinct]
            if any(new is not old for new, old in zip(changed, distinct, strict=True)):
                columns[str(name)] = np.array(changed, dtype=object)[codes]
    return frame.assign(**columns) if columns else frame


def _has_returns(frame: pd.DataFrame) -> bool:
    texts = [name for name in frame if isinstance(name, str)]
    for _, cells in frame.select_dtypes(["object", "string"]).items():
        texts += [cell for cell in cells.unique().tolist() if isinstance(cell, str)]
    return any("\r" in text for text in texts)


def _escape(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell


def _unescape(cell: Any) -> Any:
    is_escaped = isinstance(cell, str) and cell[:1] == "'" and FORMULA.match(cell)
    return cell[1:] if is_escaped else cell


def read_table(path: Path, text_columns: Collection[str] = ()) -> pd.DataFrame:
    """Return the cells of a csv, parquet or Excel file, rows numbered from 0."""
    with Table(path) as table:
        return table.read(text_columns).reset_index(drop=True)


class _Text(io.TextIOWrapper):
    """Text in UTF-8; a NUL, as damaged files have them, is an error."""

    may_be_escaped = False  # in what was read so far

    def __init__(self, file: Any) -> None:
        super().__init__(file, "utf-8-sig", newline="")

    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise ValueError("it holds NUL characters, so it is damaged or not text")
        self.may_be_escaped = self.may_be_escaped or ESCAPED.search(text) is not None
        return text


def choose_delimiter(text: str, usual: str) -> str:
    """Return what separates the columns: with it, the first lines have as many cells, two or more.

    Of several the usual one, and where none does, too.
    """
    for delimiter in (usual, *DELIMITERS):
        try:
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            counts = {len(cells) for cells in islice(lines, HEAD_LINES) if cells}
        except csv.Error:  # a cell that is too long: pandas says what is wrong, if anything is
            continue
        if len(counts) == 1 and max(counts) > 1:
            return delimiter
    return usual


def _drop_superfluous(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that have no name, and are empty or count the rows."""
    superfluous = [
        name
        for name in frame.columns
        if NAMELESS.fullmatch(str(name))
        and (
            frame[name].isna().all()
            or (
                pd.api.types.is_integer_dtype(frame[name])
                and (frame[name] == np.arange(len(frame))).all()
            )
        )
    ]
    return frame.drop(columns=superfluous) if superfluous else frame


def read_decimal_commas(frame: pd.DataFrame, kept: Collection[str]) -> pd.DataFrame:
    """Return a table whose columns of numbers such as 1,5 are numbers.

    Where all numbers of all columns are like 1,234 it is not clear what they mean, and they stay
    texts: who encodes them decides, and says so.
    """
    with_commas, is_clear = {}, False
    for name in frame.columns:
        cells = frame[name]
        if str(name) in kept or not pd.api.types.is_string_dtype(cells.dtype):
            continue
        shown = cells.dropna()
        first = (
            shown.iloc[0] if len(shown) else None
        )  # no str where integers are too long for 64 bits
        if isinstance(first, str) and DECIMAL_COMMA.fullmatch(first.strip()):
            texts = shown.str.strip().unique()
            commas = [text for text in texts if "," in text]
            if commas and all(map(DECIMAL_COMMA.fullmatch, texts)):
                with_commas[str(name)] = cells
                is_clear |= not all(map(THOUSANDS.fullmatch, commas))
    if not is_clear:
        return frame
    numbers = {
        name: cells.str.strip().str.replace(".", "").str.replace(",", ".").astype(float)
        for name, cells in with_commas.items()
    }
    return frame.assign(**numbers)


def _read_sheet(file: Any, path: Path) -> pd.DataFrame:
    """Return the cells of the only sheet of an Excel file that holds anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and filters of cells
            sheets: dict[Any, pd.DataFrame] = pd.read_excel(
                file,
                sheet_name=None,
                header=None,
                dtype=object,
                keep_default_na=False,
                na_values="",
                engine="openpyxl",
            )
        with zipfile.ZipFile(file) as packed:
            names = [name for name in packed.namelist() if name.startswith("xl/worksheets/sheet")]
            stored = [packed.read(name) for name in names]
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"it is damaged, or not an Excel file ({error})") from None
    if any(NEVER_COMPUTED.search(sheet) for sheet in stored):
        raise ComesError(
            f"{path.name} has formulas that were never computed, and so no values. Open it in a "
            "spreadsheet program and save it, or write values."
        )
    merged = [match.decode() for sheet in stored for match in MERGED.findall(sheet)]
    if merged:
        warn_user(
            f"{path.name} has merged cells ({listed(merged, 3)}): the first of them holds the "
            "value, and the others are read as empty. Unmerge them if all should have it."
        )
    filled = {name: sheet for name, sheet in sheets.items() if not sheet.dropna(how="all").empty}
    if len(filled) > 1:
        raise ComesError(
            f"{path.name} has {len(filled)} sheets ({', '.join(map(str, filled))}), and one table "
            "is read. Save the one that you mean in a file of its own."
        )
    if not filled:
        raise ComesError(f"{path.name} is empty; expected a data set with at least one row.")
    (sheet,) = filled.values()
    return sheet.dropna(how="all")


def as_text(cell: Any) -> str:
    """Return a cell as a person would write it: 3.0 in a column with gaps is 3, a gap is ""."""
    if pd.isna(cell):
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def as_texts(cells: "pd.Series[Any]") -> np.ndarray[Any, Any]:
    """Return cells as text, each distinct one converted once."""
    if isinstance(cells.dtype, pd.StringDtype):
        return cells.fillna("").to_numpy(dtype=object)
    codes, distinct = pd.factorize(cells, use_na_sentinel=False)
    return np.array([as_text(cell) for cell in distinct], dtype=object)[codes]


def find_columns(columns: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the columns named, wildcards filled in, each once, in the order asked for."""
    matched: dict[str, None] = {}
    for pattern in patterns:
        names = [name for name in columns if fnmatch.fnmatchcase(name, pattern)]
        if pattern in columns and not ("*" in pattern or "?" in pattern):
            names = [pattern]  # a name with brackets is no pattern
        if not names:
            raise no_column(pattern, columns)
        matched.update(dict.fromkeys(names))
    return list(matched)


def no_column(name: str, columns: Sequence[str]) -> ComesError:
    """Return the error that there is no such column."""
    near = difflib.get_close_matches(name, columns, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(columns) == 1 and re.search(r"[;\t]", columns[0]):
        hint = " Its columns are not all separated alike: every row must have as many cells."
    return ComesError(f"there is no column {name!r}; there are {listed(columns)}.{hint}")


def find_ending(path: Path) -> str:
    """Return the ending of a name in small letters, with what stands before .gz."""
    ending = path.suffix.lower()
    return f"{path.with_suffix('').suffix.lower()}{ending}" if ending == ".gz" else ending


def is_table_name(path: str | Path) -> bool:
    """Return whether the name has the ending of a table."""
    return find_ending(Path(path)) in TABLE_ENDINGS


def check_ending(path: str | Path, endings: Iterable[str] = TABLE_ENDINGS) -> str:
    """Return the ending of a name; raise unless it is one of these."""
    ending = find_ending(Path(path))
    *others, last = endings
    if ending not in (*others, last):
        raise ComesError(
            f"{Path(path).name} should end in {', '.join(others)} or {last}; got "
            f"{ending or 'no ending'}."
        )
    return ending


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a csv, parquet or Excel file, replacing it if the whole of it could be written."""
    write_blocks(iter([frame]), path)


def write_blocks(blocks: Iterator[pd.DataFrame], path: str | Path) -> None:
    """Write a table that comes in blocks of rows, replacing the file if all could be written."""
    ending = check_ending(path)
    with replacing_file(path) as temporary:
        if ending in TEXT_ENDINGS:
            sep = "\t" if ending.startswith(".tsv") else ","
            for number, block in enumerate(blocks):
                mode: Literal["a", "w"] = "a" if number else "w"
                # A carriage return ends a line where nothing quotes it, and pandas does not.
                quoting: Literal[0, 2] = (
                    csv.QUOTE_NONNUMERIC if _has_returns(block) else csv.QUOTE_MINIMAL
                )
                safe, named = escape_formulas(block), not number
                safe.to_csv(
                    temporary, sep=sep, mode=mode, header=named, index=False, quoting=quoting
                )
        elif ending == ".xlsx":
            write_excel(pd.concat(blocks, ignore_index=True), temporary)
        else:
            first = pa.Table.from_pandas(next(blocks), preserve_index=False)
            with pq.ParquetWriter(temporary, first.schema) as writer:
                writer.write_table(first)
                for block in blocks:
                    rows = pa.Table.from_pandas(block, first.schema, preserve_index=False)
                    writer.write_table(rows)


def write_excel(frame: pd.DataFrame, path: Path, *, header: bool = True) -> None:
    """Write an Excel file with one sheet, in which no text is a formula."""
    from openpyxl.utils.exceptions import IllegalCharacterError

    try:
        with pd.ExcelWriter(path, engine="openpyxl") as writer:
            frame.to_excel(writer, index=False, header=header)
            for sheet in writer.sheets.values():
                for cell in chain.from_iterable(sheet.iter_rows()):
                    if cell.data_type == "f":
                        cell.data_type, cell.quotePrefix = "s", True
    except (ValueError, IllegalCharacterError) as error:
        raise ComesError(f"this table does not fit an Excel file ({error}). Write .csv.") from None


def copy_excel_rows(path: Path, records: Sequence[int], target: Path) -> None:
    """Write an Excel file with the head and some rows of another, counted from 0."""
    with explain_errors(path), open(path, "rb") as file:
        sheet = _read_sheet(file, path).iloc[[0, *(record + 1 for record in records)]]
    write_excel(sheet, target, header=False)


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn errors of pandas and pyarrow into a sentence that names the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # more cells than column names
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            yield
    except ComesError:
        raise
    except UnicodeDecodeError:
        raise ComesError(f"{path.name} is not text in UTF-8; save it as UTF-8.") from None
    except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserWarning) as error:
        reason = str(error).strip().splitlines()[0]
        ending = find_ending(path)[1:]
        raise ComesError(f"{path.name} cannot be read as {ending}: {reason}.") from None
