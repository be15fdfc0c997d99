"""Rows with very many labels, generated: a tenth of the published size of Amazon-670K.

    python experiments/extreme_rows.py FOLDER

writes ``train.txt`` and ``test.txt``, LIBSVM after a first line ``n d q``, features counted from 0,
as the extreme classification repository has them. Labels are leaves of a tree of topics, and how
often they are used has the tail of a power law. The labels of a row are mostly of one topic; its
words are those of its labels and of the topics above them, and noise. Features are TF-IDF, with the
document counts of the training rows.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer

from comes.files import replacing_file

Numbers = npt.NDArray[np.int64]


class Size(NamedTuple):
    """Rows, features and labels of a generated set."""

    train: int
    test: int
    words: int
    labels: int


TENTH = Size(49_045, 15_303, 13_591, 67_009)
SMALL = Size(2_400, 800, 1_500, 3_000)

GROUPS = (20, 200, 4000)  # about how many labels a topic has, from the finest topics up
NODE_WORDS = (6, 12, 20, 60)  # words of a label, and of a topic of each of the three sizes
NODE_SHARE = (0.1, 0.15, 0.35, 0.4)  # of the words of a row that are not noise
NEAR_SHARE = (0.6, 0.2, 0.1, 0.1)  # further labels: of the same topic of each size, of anywhere
MOST_LABELS, NEXT_LABEL = 9, 0.7  # a row has 1 + binomial(8, .7) draws, less what falls together
TAIL = 0.7  # a label's weight is 1 / (rank + q / 5000) ** TAIL
NOISE = 0.5
MEAN_TOKENS = 82


def make_rows(size: Size = TENTH, seed: int = 0) -> tuple[Any, Any]:
    """Return TF-IDF features and labels of all rows, CSR, the test rows last."""
    rng = np.random.default_rng(seed)
    rows, labels = draw_labels(size, rng)
    n = size.train + size.test
    relevant = sparse.csr_array((np.ones(len(rows), np.int8), (rows, labels)), (n, size.labels))
    relevant.data[:] = 1  # what fell together
    counts = draw_words(relevant, size, rng)
    weighting = TfidfTransformer(sublinear_tf=True).fit(counts[: size.train])
    return weighting.transform(counts).astype(np.float32), relevant


def draw_labels(size: Size, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Return pairs of row and label: one label by its weight, further ones mostly near it."""
    q, n = size.labels, size.train + size.test
    ends = np.cumsum((rng.permutation(q) + q / 5000) ** -TAIL)
    first = np.searchsorted(ends, rng.random(n) * ends[-1])
    rows = np.repeat(np.arange(n), rng.binomial(MOST_LABELS - 1, NEXT_LABEL, n))
    nearness = rng.choice(4, len(rows), p=NEAR_SHARE)
    groups = np.array([*GROUPS, q])[nearness]
    start = first[rows] // groups * groups
    low = np.where(start > 0, ends[start - 1], 0)
    high = ends[np.minimum(start + groups, q) - 1]
    further = np.searchsorted(ends, low + rng.random(len(rows)) * (high - low))
    return np.r_[np.arange(n), rows], np.minimum(np.r_[first, further], q - 1)


def draw_words(relevant: Any, size: Size, rng: np.random.Generator) -> Any:
    """Return how often each word is in each row, CSR."""
    n, q = relevant.shape
    often = 1 / (np.arange(size.words) + 10.0)
    often /= often.sum()
    nodes = [-(-q // group) for group in (1, *GROUPS)]
    words_of = [
        rng.integers(size.words, size=(m, w)) for m, w in zip(nodes, NODE_WORDS, strict=True)
    ]
    rows = np.repeat(np.arange(n), rng.poisson(MEAN_TOKENS, n))
    n_labels = np.diff(relevant.indptr)[rows]
    label = relevant.indices[relevant.indptr[rows] + rng.integers(n_labels)]
    level = rng.choice(4, len(rows), p=NODE_SHARE)
    words = rng.choice(size.words, len(rows), p=often)  # the noise
    told = rng.random(len(rows)) >= NOISE
    for place, (group, own) in enumerate(zip((1, *GROUPS), words_of, strict=True)):
        here = np.flatnonzero(told & (level == place))
        words[here] = own[label[here] // group, rng.integers(own.shape[1], size=len(here))]
    ones = np.ones(len(rows), np.float32)
    return sparse.csr_array((ones, (rows, words)), (n, size.words))


def write_rows(path: Path, X: Any, relevant: Any) -> None:
    """Write rows as LIBSVM after a line ``n d q``."""
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {relevant.shape[1]}\n".encode())
        dump_svmlight_file(X, sparse.csr_matrix(relevant), file, multilabel=True)


def main() -> None:
    """Write the two parts."""
    parser = argparse.ArgumentParser(description="Generate rows with very many labels.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="3000 labels, for a trial")
    options = parser.parse_args()
    size = SMALL if options.small else TENTH
    X, relevant = make_rows(size)
    options.folder.mkdir(parents=True, exist_ok=True)
    write_rows(options.folder / "train.txt", X[: size.train], relevant[: size.train])
    write_rows(options.folder / "test.txt", X[size.train :], relevant[size.train :])


if __name__ == "__main__":
    main()
