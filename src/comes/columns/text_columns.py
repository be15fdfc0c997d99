"""Texts of a table as features: TF-IDF of words and pairs of words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from comes.columns.column_kinds import Column
from comes.columns.encoded_columns import Arrays, Encoded, Part
from comes.columns.raw_cells import Cells, read_texts

MOST_TERMS = 2_000  # more are no likelier on held-out rows, and cost time: docs/guide/texts.md
TERMS: dict[str, Any] = {"ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}


@dataclass(frozen=True, eq=False)
class TfidfPart(Part):
    """How much each word, and pair of words, of a text says; each row has length 1 or is empty."""

    kind: ClassVar[str] = "tfidf"

    terms: list[str]
    idf: npt.NDArray[np.float32] = field(repr=False)

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn which terms there are: those of two rows or more, the commonest first."""
        texts = read_texts(cells)
        for least in (2, 1):  # a few texts may share no word
            try:
                found = _make_vectorizer(min_df=least, max_features=MOST_TERMS).fit(texts)
            except ValueError:
                continue  # no term is left
            terms = [str(term) for term in found.get_feature_names_out()]
            return cls(column.name, terms, np.asarray(found.idf_, dtype=np.float32))
        return cls(column.name, [], np.zeros(0, dtype=np.float32))

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [f"{self.column}: {term}" for term in self.terms]

    @cached_property
    def _vectorizer(self) -> TfidfVectorizer:
        vectorizer = _make_vectorizer(vocabulary=self.terms)
        vectorizer.idf_ = self.idf.astype(np.float64)
        return vectorizer

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        if not self.terms:
            return Encoded(sparse.csr_array((len(cells), 0), dtype=np.float32))
        matrix = self._vectorizer.transform(read_texts(cells))
        return Encoded(sparse.csr_array(matrix, dtype=np.float32))

    def spec(self) -> tuple[dict[str, Any], Arrays]:
        """Return what json can hold, and arrays; terms have no line breaks."""
        terms = np.frombuffer("\n".join(self.terms).encode(), dtype=np.uint8).copy()
        return {"kind": self.kind, "column": self.column}, {"terms": terms, "idf": self.idf}

    @classmethod
    def restore(cls, spec: dict[str, Any], arrays: Arrays) -> Self:
        """Return the part that `spec` wrote."""
        text = arrays["terms"].tobytes().decode()
        return cls(spec["column"], text.split("\n") if text else [], arrays["idf"])


def _make_vectorizer(**options: Any) -> TfidfVectorizer:
    """Return scikit-learn's vectorizer with our settings, to be fitted or with a vocabulary."""
    return TfidfVectorizer(**TERMS, sublinear_tf=True, dtype=np.float32, **options)
