"""LIBSVM multi-label files, ``1,3 5:0.2 9:1``: the labels of a row, then its non-zeros.

Features are counted from 1. Files of the extreme classification repository are the same after a
first line ``n d q``, with features counted from 0. Labels are the truth, and are named by their
numbers.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse

from comes.answers.convert import check_names
from comes.datasets.answer_words import as_text
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.datasets.sparse_marks import Marks, mark_places
from comes.errors import ComesError, listed


def read_svmlight(path: Path, reading: Reading) -> Dataset:
    """Read a LIBSVM multi-label file, with fixed labels and features where they are given."""
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    with path.open("rb") as file:
        mark = len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        file.seek(mark)
        header = re.fullmatch(rb"\s*(\d+)[ \t]+(\d+)[ \t]+(\d+)\s*", file.readline())
        start = file.tell() if header else mark
        n, d, q = (int(size) for size in header.groups()) if header else (None, None, None)
        file.seek(start)
        with explain_lines(path.name):
            X, labels = load_svmlight_file(
                file, multilabel=True, n_features=d or reading.n_features, zero_based=bool(header)
            )
    if n is not None and X.shape[0] != n:
        raise ComesError(f"the first line of {path.name} says {n} rows; got {X.shape[0]}.")
    label_names = None if reading.label_names is None else list(reading.label_names)
    if label_names is None and q is not None:
        label_names = [str(label) for label in range(q)]
    relevant, label_names = mark_numbers(labels, label_names)
    return Dataset(sparse.csr_array(X), label_names, relevant=relevant)


@contextmanager
def explain_lines(name: str) -> Iterator[None]:
    """Say what lines were wanted where they cannot be read."""
    try:
        yield
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        raise ComesError(
            f"{name} cannot be read as LIBSVM ({error}); lines such as '1,3 5:0.2' were "
            "wanted, features counted from 1 (from 0 after a first line 'n d q')."
        ) from None


def mark_numbers(
    labels: Sequence[Sequence[float]], label_names: list[str] | None = None
) -> tuple[Marks, list[str]]:
    """Return the marks of labels that are named by their numbers, and their names."""
    lengths = np.fromiter(map(len, labels), dtype=np.int64, count=len(labels))
    numbers = np.fromiter(chain.from_iterable(labels), dtype=np.float64, count=lengths.sum())
    found, places = np.unique(numbers, return_inverse=True)
    is_whole = (found == np.floor(found)).all()
    names = [str(int(number)) if is_whole else as_text(float(number)) for number in found]
    label_names = names if label_names is None else label_names
    check_names(label_names)
    place = {name: index for index, name in enumerate(label_names)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise ComesError(
            f"label {unknown[0]!r} occurs in a set but is not one of the label names, "
            f"{listed(label_names)}. Add it to the names, or correct the set."
        )
    columns = np.array([place[name] for name in names], dtype=np.int64)[places]
    rows = np.repeat(np.arange(len(labels)), lengths)
    return mark_places(rows, columns, (len(labels), len(label_names))), label_names
