"""LIBSVM multi-label files, ``1,3 5:0.2 9:1``: the labels of a row, then its non-zeros.

Features are counted from 1. Files of the extreme classification repository are the same after a
first line ``n d q``, with features counted from 0. Labels are the truth, and are named by their
numbers.
"""

import re
from codecs import BOM_UTF8
from pathlib import Path

from scipy import sparse

from comes.answers import from_sets
from comes.datasets.answer_words import as_text
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.errors import ComesError


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
        try:
            X, labels = load_svmlight_file(
                file, multilabel=True, n_features=d or reading.n_features, zero_based=bool(header)
            )
        except (ValueError, OverflowError, UnicodeDecodeError) as error:
            raise ComesError(
                f"{path.name} cannot be read as LIBSVM ({error}); lines such as '1,3 5:0.2' were "
                "wanted, features counted from 1 (from 0 after a first line 'n d q')."
            ) from None
    if n is not None and X.shape[0] != n:
        raise ComesError(f"the first line of {path.name} says {n} rows; got {X.shape[0]}.")
    names = [[as_text(float(label)) for label in row] for row in labels]
    label_names = reading.label_names
    if label_names is None and q is not None:
        label_names = [str(label) for label in range(q)]
    if label_names is None:
        label_names = sorted({name for row in names for name in row}, key=float)
    relevant, _ = from_sets(names, label_names)
    return Dataset(sparse.csr_array(X), list(label_names), relevant=relevant)
