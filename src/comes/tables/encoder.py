"""`ColumnEncoder`: a table of numbers, categories, flags, dates and texts as one matrix.

A part makes features of one column: learned once, stored as json and arrays, then applied.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from comes.errors import ComesError, listed, warn_user
from comes.tables.cells import (
    MOST_STRAY,
    BoolArray,
    Cells,
    FloatArray,
    find_zones,
    fold_word,
    read_dates,
    read_flags,
    read_missing,
    read_numbers,
    read_texts,
    read_words,
)
from comes.tables.columns import Column, describe_columns, match_by_name, needs_encoding
from comes.tables.texts import Embedding, embed_texts, open_embedding

Arrays = dict[str, npt.NDArray[Any]]
Encoded = tuple[Any, str | None]  # float32 features, dense or CSR, and what to warn of

MOST_DENSE = 512  # features, beyond which those of categories are stored sparse
MOST_LEVELS = 200
MOST_TERMS = 2_000  # more are no likelier on held-out rows, and cost time: docs/guide/texts.md
PAIR_SHARE = 100  # a pair of words in fewer than one text of so many is chance
MOST_COUNTED = 2**20  # different terms that are counted at a time
TERMS: dict[str, Any] = {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
FEW_TEXTS = 1000  # fewer are embedded again rather than kept on disk
MANY_ROWS = 5  # in fewer rows, a column without a value is nothing special
SAMPLE_ROWS = 100_000  # of a stream, that an encoder is fitted on
DAY = pd.Timedelta(days=1)


class ColumnEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into a matrix: numbers, categories, true and false, dates and texts.

    Each column is looked at by itself, and never at a label. Columns that name the rows, hold one
    value or none, or are to be ignored, are left out. What was learned can be stored without
    pickle: `state`.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        What columns are taken for, by name, where `describe_columns` would guess wrongly:
        "number", "category", "boolean", "date", "text" or "ignored".
    text : str
        What becomes of texts: "tfidf", or the name of an embedding: "wordllama", an installed
        package that carries its vectors; or a model of model2vec or sentence-transformers: its
        folder, in the working folder or in $COMES_DATA, or its name in the cache of Hugging Face
        ("minishlab/potion-base-8M"). Nothing is downloaded.

    Attributes
    ----------
    columns_ : tuple of Column
        What every column was taken for, and why.
    parts_ : tuple
        What was learned of each column that is used.

    Examples
    --------
    >>> colours = ["red", "blue", "Red ", "red"]
    >>> frame = pd.DataFrame({"size": ["1 m2", "2 m2", None, "3 m2"], "colour": colours})
    >>> encoder = ColumnEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size is missing', 'colour = blue', 'colour = red']
    >>> encoder.transform(frame[["colour", "size"]])[1]
    array([0., 0., 1., 0.], dtype=float32)
    """

    def __init__(self, kinds: Mapping[str, str] | None = None, text: str = "tfidf") -> None:
        self.kinds = kinds
        self.text = text

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Find what every column is, and learn what its features need; y is not used."""
        return self._fit(X, {})

    def _fit(self, X: pd.DataFrame, counted: Mapping[str, "_TermCounts"]) -> Self:
        """Fit to a table; the terms of some columns were counted in more rows than it has."""
        if not isinstance(X, pd.DataFrame):
            raise ComesError(
                f"a table must be a pandas DataFrame, whose columns have names; got {type(X)}."
            )
        columns = describe_columns(X, self.kinds)
        parts: dict[str, Any] = {}
        for place, column in enumerate(columns):
            name, cells = column.name, X.iloc[:, place]
            if column.kind == "text" and self.text == _TfidfPart.kind:
                parts[name] = (counted.get(name) or _TermCounts().add(cells)).fit_part(name)
            elif column.kind == "text":
                opened = open_embedding(self.text)
                parts[name] = _EmbeddingPart(name, self.text, opened.checksum, opened.n_features)
            elif column.is_used:
                parts[name] = PARTS[column.kind].fit(column, cells)
        if not parts:
            shown = "; ".join(f"{c.name!r} is taken for {c.kind} ({c.why})" for c in columns[:5])
            raise ComesError(
                f"no column is left to learn from: {shown}. Add columns, or say what one is "
                "(kinds; --number, --date, --category or --text on the command line)."
            )
        n_features = {name: len(part.names) for name, part in parts.items()}
        self.columns_ = tuple(replace(c, n_features=n_features.get(c.name, 0)) for c in columns)
        self.parts_ = tuple(parts.values())
        doubts = []
        for column in self.columns_:
            taken = f"taken for {column.kind}" if column.is_used else "left out"
            if column.is_doubtful:
                doubts.append(f"column {column.name!r} is {taken}: {column.why}")
            elif column.is_used and not column.n_features:
                doubts.append(f"column {column.name!r} is {taken}, and has no word to use")
        if doubts:
            warn_user("; ".join(doubts) + ".")
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any = None) -> Any:
        """Fit to a table, and return its matrix."""
        return self.fit(X)._encode(X)[0]

    def transform(self, X: pd.DataFrame) -> Any:
        """Return the features of a table, float32, whose columns are found by name.

        A column that is not there is an error, and an unknown one is ignored with a warning. The
        matrix is sparse (CSR) if there are texts or many categories.
        """
        check_is_fitted(self)
        known = [column.name for column in self.columns_]
        matrix, notes = self._encode(match_by_name(X, self.used_columns, known))
        if notes:
            warn_user("; ".join(notes) + ".")
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features, (n_features,)."""
        check_is_fitted(self)
        return np.array([name for part in self.parts_ for name in part.names], dtype=object)

    @property
    def used_columns(self) -> list[str]:
        """The columns that features are made of."""
        return [column.name for column in self.columns_ if column.is_used]

    @property
    def word_columns(self) -> list[str]:
        """The columns whose cells are read as they are written: all but plain numbers and flags."""
        words = ("category", "text", "date")
        return [c.name for c in self.columns_ if c.kind in words or c.form not in (None, ".")]

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(len(part.names) for part in self.parts_)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what was learned, as a value that json can hold, and as arrays by name."""
        check_is_fitted(self)
        kinds = None if self.kinds is None else dict(self.kinds)
        columns = [asdict(column) for column in self.columns_]
        parts: list[dict[str, Any]] = []
        arrays: Arrays = {}
        for number, part in enumerate(self.parts_):
            learned = {"kind": part.kind, **asdict(part)}
            for name in [n for n, value in learned.items() if isinstance(value, np.ndarray)]:
                arrays[f"{number}.{name}"] = learned.pop(name)
            parts.append(learned)
        return {"kinds": kinds, "text": self.text, "columns": columns, "parts": parts}, arrays

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Arrays) -> Self:
        """Return the encoder that `state` described."""
        encoder = cls(state["kinds"], state["text"])
        encoder.columns_ = tuple(Column(**column) for column in state["columns"])
        learned = {str(number): dict(part) for number, part in enumerate(state["parts"])}
        for key, array in arrays.items():
            number, _, name = key.partition(".")
            learned[number][name] = array
        encoder.parts_ = tuple(PARTS[part.pop("kind")](**part) for part in learned.values())
        return encoder

    def _encode(self, X: pd.DataFrame) -> tuple[Any, list[str]]:
        """Return the matrix of a table whose columns are there, and what to warn of."""
        places = {str(name): place for place, name in enumerate(X.columns)}
        matrices, notes = [], []
        for part in self.parts_:
            cells = X.iloc[:, places[part.column]]
            matrix, note = part.encode(cells)
            matrices.append(matrix)
            is_tfidf = part.kind == _TfidfPart.kind
            is_empty = not matrix.count_nonzero() if is_tfidf else read_missing(cells).all()
            if part.names and len(X) >= MANY_ROWS and is_empty:
                note = f"column {part.column!r} holds nothing that training saw in {len(X)} rows"
            notes += [] if note is None else [note]
        kinds = {part.kind for part in self.parts_}
        is_wide = self.n_features > MOST_DENSE and _EmbeddingPart.kind not in kinds
        if is_wide or _TfidfPart.kind in kinds:
            whole = sparse.hstack(matrices, format="csr", dtype=np.float32)
            return sparse.csr_array(whole), notes
        return np.hstack([m.toarray() if sparse.issparse(m) else m for m in matrices]), notes


@dataclass(frozen=True)
class _Part:
    """What was learned of a column, to make features of its cells."""

    kind: ClassVar[str]
    column: str

    @property
    def names(self) -> list[str]:
        missing = [f"{self.column} is missing"] if getattr(self, "marks_missing", False) else []
        return [*self.value_names, *missing]

    @property
    def value_names(self) -> list[str]:
        return [self.column]

    def _stack(
        self, columns: list[FloatArray], missing: BoolArray, cells: Cells, what: str
    ) -> Encoded:
        """Return the features, and a note if more cells are none than in training."""
        is_marked = getattr(self, "marks_missing", False)
        marks = [missing.astype(np.float64)] if is_marked else []
        matrix = np.stack([*columns, *marks], axis=1).astype(np.float32)
        n = int((missing & ~read_missing(cells)).sum()) if missing.any() else 0
        if not n or (is_marked and n <= MOST_STRAY * len(cells)):
            return matrix, None
        return matrix, f"{n} cells of column {self.column!r} are not {what} and count as missing"


@dataclass(frozen=True)
class _NumberPart(_Part):
    """A number, less its mean, over its standard deviation; the median where it is missing."""

    kind: ClassVar[str] = "number"
    median: float
    mean: float
    scale: float
    marks_missing: bool
    decimal: str = "."  # and the unit

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        form = column.form or "."
        return cls(column.name, **_measure(read_numbers(cells, form)), decimal=form)

    def encode(self, cells: Cells) -> Encoded:
        values = read_numbers(cells, self.decimal)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.median, values) - self.mean) / self.scale
        unit = self.decimal[2:]
        return self._stack([scaled], missing, cells, f"numbers in {unit}" if unit else "numbers")


def _measure(values: FloatArray) -> dict[str, Any]:
    """Return median, mean and standard deviation, which is 1 where all values are equal."""
    missing = np.isnan(values)
    median = float(np.median(values[~missing])) if not missing.all() else 0.0
    filled = np.where(missing, median, values)
    largest = float(np.abs(filled).max()) or 1.0  # so that no square is infinite
    mean = float((filled / largest).mean()) * largest
    scale = float((filled / largest).std()) * largest
    scale = scale if scale > 1e-12 * largest else 1.0
    return {"median": median, "mean": mean, "scale": scale, "marks_missing": bool(missing.any())}


@dataclass(frozen=True)
class _FlagPart(_Part):
    """True and false as 1 and 0; the commoner one where it is missing."""

    kind: ClassVar[str] = "boolean"
    common: float
    marks_missing: bool

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        values = read_flags(cells)
        missing = np.isnan(values)
        common = 0.0 if missing.all() else float(values[~missing].mean() > 0.5)
        return cls(column.name, common, bool(missing.any()))

    def encode(self, cells: Cells) -> Encoded:
        values = read_flags(cells)
        missing = np.isnan(values)
        filled = np.where(missing, self.common, values)
        return self._stack([filled], missing, cells, "true or false")


@dataclass(frozen=True)
class _CategoryPart(_Part):
    """A feature for each value that is not rare, one for all that are, one for missing ones."""

    kind: ClassVar[str] = "category"
    levels: Sequence[str]
    has_rare: bool
    marks_missing: bool
    folds_case: bool = False  # and blanks; models of earlier versions do not

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn which values there are: the commonest, each in at least 1 % of up to 500 rows."""
        words = read_words(cells)
        spelled = words.value_counts()
        folded = [fold_word(word) for word in spelled.index]
        commonest = dict(zip(reversed(folded), reversed(spelled.index.tolist()), strict=True))
        counts = spelled.groupby(folded, sort=False).sum()
        counts = counts.sort_values(ascending=False, kind="stable")
        least = max(1, min(5, len(words) // 100))
        kept = counts[counts >= least].index[:MOST_LEVELS]
        levels = sorted(commonest[word] for word in kept)
        is_marked = bool(words.isna().any())
        return cls(column.name, levels, len(levels) < len(counts), is_marked, folds_case=True)

    @property
    def value_names(self) -> list[str]:
        rare = [f"{self.column} is rare"] if self.has_rare else []
        return [*(f"{self.column} = {level}" for level in self.levels), *rare]

    def encode(self, cells: Cells) -> Encoded:
        words, n = read_words(cells), len(self.names)
        places, different = pd.factorize(words)
        fold = fold_word if self.folds_case else str
        code_of = {fold(level): code for code, level in enumerate(self.levels)}
        other = len(self.levels) if self.has_rare else n
        missing = n - 1 if self.marks_missing else n
        code_of_word = [*(code_of.get(fold(word), other) for word in different), missing]
        codes = np.array(code_of_word)[places]
        matrix = sparse.eye_array(n + 1, n, format="csr", dtype=np.float32)[codes]
        unseen = words[codes == n].dropna()
        if not len(unseen):
            return matrix, None
        shown = listed(sorted(map(str, unseen.unique())), most=3)
        return matrix, (
            f"column {self.column!r} holds values that training did not see in {len(unseen)} rows "
            f"({shown}); they count as none of the known ones"
        )


@dataclass(frozen=True)
class _DatePart(_Part):
    """Days since the first date, standardised, and where in year, month, week and day it is."""

    kind: ClassVar[str] = "date"
    form: str | None
    first: str
    median: float
    mean: float
    scale: float
    cycles: Sequence[str]
    marks_missing: bool
    is_zoned: bool | None = None  # None: not known, or mixed

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        form, moments = column.form, read_dates(cells, column.form)
        first = pd.Timestamp(0) if moments.isna().all() else moments.min()
        measured = _measure(((moments - first) / DAY).to_numpy(dtype=np.float64))
        phases = _find_phases(moments.dropna())
        cycles = [name for name, phase in phases.items() if phase.std() > 0]
        zones = find_zones(cells, form)
        is_zoned = zones.pop() if len(zones) == 1 else None
        return cls(column.name, form, str(first), cycles=cycles, is_zoned=is_zoned, **measured)

    @property
    def value_names(self) -> list[str]:
        turns = [f"{self.column}: {name} {of}" for name in self.cycles for of in ("sin", "cos")]
        return [f"{self.column}: days", *turns]

    def encode(self, cells: Cells) -> Encoded:
        moments, first = read_dates(cells, self.form), pd.Timestamp(self.first).as_unit("us")
        missing = moments.isna().to_numpy()
        filled = moments.fillna(first + self.median * DAY)
        days = ((filled - first) / DAY).to_numpy(dtype=np.float64)
        columns, phases = [(days - self.mean) / self.scale], _find_phases(filled)
        for name in self.cycles:
            columns += [np.sin(2 * np.pi * phases[name]), np.cos(2 * np.pi * phases[name])]
        of_form = "" if self.form is None else f" of the form {self.form.replace('|', ' or ')}"
        matrix, note = self._stack(columns, missing, cells, f"dates{of_form}")
        is_known = self.is_zoned is not None and not missing.all()
        if note is None and is_known and (not self.is_zoned) in find_zones(cells, self.form):
            now, then = ("no time zone", "one") if self.is_zoned else ("a time zone", "none")
            note = (
                f"dates of column {self.column!r} have {now}, and those of training had {then}: "
                "without a zone, they are taken for UTC"
            )
        return matrix, note


def _find_phases(moments: Cells) -> dict[str, FloatArray]:
    """Return where in a year, month, week and day moments are, in [0, 1)."""
    of = moments.dt
    phases = {
        "year": (of.day_of_year - 1) / 366,
        "month": (of.day - 1) / 31,
        "week": of.day_of_week / 7,
        "day": (of.hour + of.minute / 60) / 24,
    }
    return {name: phase.to_numpy(dtype=np.float64) for name, phase in phases.items()}


@dataclass(frozen=True, eq=False)
class _TfidfPart(_Part):
    """How much each word, and pair of words, of a text says; each row has length 1 or is empty."""

    kind: ClassVar[str] = "tfidf"
    terms: npt.NDArray[np.uint8] = field(repr=False)  # UTF-8, a line each
    idf: npt.NDArray[np.float32] = field(repr=False)

    @property
    def value_names(self) -> list[str]:
        return [f"{self.column}: {term}" for term in self.vocabulary]

    @cached_property
    def vocabulary(self) -> list[str]:
        return self.terms.tobytes().decode().splitlines()

    @cached_property
    def _vectorizer(self) -> TfidfVectorizer:
        vectorizer = TfidfVectorizer(
            **TERMS, sublinear_tf=True, dtype=np.float32, vocabulary=self.vocabulary
        )
        vectorizer.idf_ = self.idf.astype(np.float64)
        return vectorizer

    def encode(self, cells: Cells) -> Encoded:
        if not self.vocabulary:
            return sparse.csr_array((len(cells), 0), dtype=np.float32), None
        matrix = self._vectorizer.transform(read_texts(cells))
        return sparse.csr_array(matrix, dtype=np.float32), None


class _TermCounts:
    """In how many texts each word, and pair of words, stands, and how often.

    Where more than ``most`` different terms were counted, the rarer half is forgotten before the
    next texts (lossy counting), which the commonest terms hardly feel: only they become features.
    """

    def __init__(self, most: int = MOST_COUNTED) -> None:
        self.most = most
        self.n_texts = 0
        self.n_rows: Counter[str] = Counter()
        self.n_times: Counter[str] = Counter()

    def add(self, cells: Cells) -> Self:
        """Count the terms of some texts."""
        if len(self.n_rows) > self.most:
            self.n_rows = Counter(dict(self.n_rows.most_common(self.most // 2)))
            self.n_times = Counter({term: self.n_times[term] for term in self.n_rows})
        texts = read_texts(cells)
        self.n_texts += len(texts)
        vectorizer = CountVectorizer(**TERMS)
        try:
            counts = vectorizer.fit_transform(texts).tocsc()
        except ValueError:  # no term is there
            return self
        terms = vectorizer.get_feature_names_out().tolist()
        self.n_rows.update(dict(zip(terms, np.diff(counts.indptr).tolist(), strict=True)))
        times = np.asarray(counts.sum(axis=0)).ravel().tolist()
        self.n_times.update(dict(zip(terms, times, strict=True)))
        return self

    def fit_part(self, column: str) -> _TfidfPart:
        """Return what `TfidfVectorizer` would learn of the commonest terms.

        A word stands in two texts or more, a pair of words in as many and in one of a hundred.
        """
        least = 2 if any(n > 1 for n in self.n_rows.values()) else 1  # few texts may share no word
        of_pairs = max(least, self.n_texts // PAIR_SHARE)
        known = (t for t, n in self.n_rows.items() if n >= (of_pairs if " " in t else least))
        terms = np.array(sorted(known), dtype=object)
        if len(terms) > MOST_TERMS:
            # As scikit-learn breaks ties, whose counts are of this type.
            often = np.array([self.n_times[term] for term in terms], dtype=np.float32)
            terms = terms[np.sort((-often).argsort()[:MOST_TERMS])]
        n_rows = np.array([self.n_rows[term] for term in terms], dtype=np.float32)
        idf = np.log(np.float32(self.n_texts + 1) / (n_rows + 1)) + np.float32(1)
        stored = np.frombuffer("\n".join(terms).encode(), dtype=np.uint8).copy()
        return _TfidfPart(column, stored, idf.astype(np.float32))


@dataclass(frozen=True)
class _EmbeddingPart(_Part):
    """The vectors of a text; the model stores the name and checksum of the embedding, not it."""

    kind: ClassVar[str] = "embedding"
    embedding: str  # its name
    checksum: str
    n_features: int

    @property
    def value_names(self) -> list[str]:
        return [f"{self.column}: {number}" for number in range(self.n_features)]

    @cached_property
    def _opened(self) -> Embedding:
        return open_embedding(self.embedding, self.checksum)

    def encode(self, cells: Cells) -> Encoded:
        texts = read_texts(cells)
        vectors = embed_texts(texts, self._opened, cache=len(texts) >= FEW_TEXTS)
        return np.asarray(vectors), None


PARTS: dict[str, Any] = {
    part.kind: part
    for part in (_NumberPart, _FlagPart, _CategoryPart, _DatePart, _TfidfPart, _EmbeddingPart)
}


def encode_table(X: Any) -> Any:
    """Return X as it is, or as a matrix if it is a table that is more than complete numbers."""
    if isinstance(X, pd.DataFrame) and 0 not in X.shape and needs_encoding(X):
        return ColumnEncoder().fit_transform(X)
    return X


class EncoderFold:
    """Fit an encoder in one pass over blocks: from a sample of the rows, and texts from all.

    Terms of columns that are texts in the first block are counted in every row; all else is learned
    from the sample, which is all rows if there are no more than ``sample_rows``.
    """

    def __init__(
        self, encoder: ColumnEncoder | None = None, sample_rows: int = SAMPLE_ROWS, seed: int = 0
    ) -> None:
        self.encoder = ColumnEncoder() if encoder is None else clone(encoder)
        self.sample_rows = sample_rows
        self._terms: dict[str, _TermCounts] | None = None
        self._draws = np.random.default_rng(seed)
        self._keys: FloatArray = np.zeros(0)
        self._blocks: list[pd.DataFrame] = []

    def add(self, frame: pd.DataFrame) -> None:
        """Learn from some rows."""
        if self._terms is None:
            is_counted = self.encoder.text == _TfidfPart.kind
            columns = describe_columns(frame, self.encoder.kinds) if is_counted else ()
            self._terms = {c.name: _TermCounts() for c in columns if c.kind == "text"}
        for name, counts in self._terms.items():
            counts.add(frame[name])
        self._blocks.append(frame)
        self._keys = np.append(self._keys, self._draws.random(len(frame)))
        if len(self._keys) > 2 * self.sample_rows:
            self.sample()

    def sample(self) -> pd.DataFrame:
        """Return at most ``sample_rows`` rows, those with the smallest random keys, in order."""
        rows = pd.concat(self._blocks, ignore_index=True)
        if len(rows) > self.sample_rows:
            smallest = np.argpartition(self._keys, self.sample_rows - 1)[: self.sample_rows]
            kept = np.sort(smallest)
            rows, self._keys = rows.iloc[kept].reset_index(drop=True), self._keys[kept]
        self._blocks = [rows]
        return rows

    def finish(self) -> ColumnEncoder:
        """Return the fitted encoder."""
        return self.encoder._fit(self.sample(), self._terms or {})
