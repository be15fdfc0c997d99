"""Terms of texts, counted in one pass over blocks of rows, as TF-IDF needs them."""

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer

from comes.columns.raw_cells import Cells, read_texts
from comes.columns.text_columns import MOST_TERMS, TERMS, TfidfPart

MOST_COUNTED = 2**20  # different terms that are counted at a time

Counts = npt.NDArray[np.int64]


class TermCounts:
    """In how many texts each word, and pair of words, stands, and how often.

    Counts are exact while there are at most ``most`` different terms. With more, the rarer half is
    forgotten (lossy counting), which the commonest terms hardly feel: only they become features.
    """

    def __init__(self, most: int = MOST_COUNTED) -> None:
        self.most = most
        self.n_texts = 0
        self._place: dict[str, int] = {}
        self._n_rows: Counts = np.zeros(0, dtype=np.int64)
        self._n_times: Counts = np.zeros(0, dtype=np.int64)

    def add(self, cells: Cells) -> None:
        """Count the terms of some texts."""
        texts = read_texts(cells)
        self.n_texts += len(texts)
        vectorizer = CountVectorizer(**TERMS)
        try:
            counts = vectorizer.fit_transform(texts).tocsc()
        except ValueError:  # no term is there
            return
        terms = vectorizer.get_feature_names_out()
        place = self._place
        where = np.array([place.setdefault(str(term), len(place)) for term in terms])
        n_new = len(place) - len(self._n_rows)
        self._n_rows = np.concatenate([self._n_rows, np.zeros(n_new, dtype=np.int64)])
        self._n_times = np.concatenate([self._n_times, np.zeros(n_new, dtype=np.int64)])
        self._n_rows[where] += np.diff(counts.indptr)
        self._n_times[where] += np.asarray(counts.sum(axis=0), dtype=np.int64).ravel()
        if len(place) > self.most:
            self._forget_rare()

    def _forget_rare(self) -> None:
        """Keep the half of the terms that stand in the most texts."""
        kept = np.sort(np.argsort(-self._n_rows, kind="stable")[: self.most // 2])
        terms = list(self._place)
        self._place = {terms[old]: new for new, old in enumerate(kept)}
        self._n_rows, self._n_times = self._n_rows[kept], self._n_times[kept]

    def fit_part(self, column: str) -> TfidfPart:
        """Return what makes features of the column, as `TfidfPart.fit` would of all texts."""
        names = np.array(list(self._place), dtype=object)
        order = np.argsort(names)
        for least in (2, 1):  # a few texts may share no word
            known = order[self._n_rows[order] >= least]
            if not len(known):
                continue
            if len(known) > MOST_TERMS:
                # As scikit-learn breaks ties, whose counts are of this type.
                often = self._n_times[known].astype(np.float32)
                known = known[np.sort((-often).argsort()[:MOST_TERMS])]
            ratio = np.float32(self.n_texts + 1) / (self._n_rows[known] + 1).astype(np.float32)
            idf = np.log(ratio) + np.float32(1)
            return TfidfPart(column, [str(term) for term in names[known]], idf.astype(np.float32))
        return TfidfPart(column, [], np.zeros(0, dtype=np.float32))
