"""Shards that are matrices: LIBSVM files, whose rows are lines, and .npz files."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.datasets.answer_words import as_text
from comes.datasets.archive import load_arrays, npz_dataset
from comes.datasets.dataset import Dataset
from comes.datasets.reading import Reading
from comes.datasets.shard_blocks import Block, read_sizes
from comes.datasets.shard_files import ShardFile
from comes.datasets.shard_frames import read_lines
from comes.datasets.svmlight import explain_lines, mark_numbers
from comes.datasets.tables import no_column
from comes.errors import ComesError, listed


@dataclass(frozen=True)
class LinePlan:
    """How the blocks of LIBSVM files are read."""

    is_sized: bool  # each file begins with n, d and q, and counts features from 0
    n_features: int | None
    label_names: list[str] | None

    def read(self, file: ShardFile, block: Block) -> tuple[Any, list[tuple[float, ...]]]:
        """Return the features and the numbers of the labels of a block."""
        from sklearn.datasets import load_svmlight_file  # takes a second to import

        content = io.BytesIO(read_lines(file, block))
        with explain_lines(f"{file.name}, from row {block.first} on,"):
            X, labels = load_svmlight_file(
                content,
                multilabel=True,
                n_features=self.n_features,
                zero_based=self.is_sized,
                dtype=np.float32,
            )
        return sparse.csr_array(X), labels

    def load(self, file: ShardFile, block: Block) -> Dataset:
        """Return the rows of a block as a data set; labels are the truth."""
        X, labels = self.read(file, block)
        try:
            relevant, names = mark_numbers(labels, self.label_names)
        except ComesError as error:
            raise ComesError(f"{file.name}: {error}") from None
        return Dataset(X, names, relevant=relevant)


def plan_lines(files: Iterable[ShardFile], reading: Reading) -> LinePlan:
    """Return how LIBSVM files are read, as far as their first lines say."""
    sizes = {file.name: read_sizes(file) for file in files}
    known = [size for size in sizes.values() if size is not None]
    if known and len(known) < len(sizes):
        other = [name for name, size in sizes.items() if size is None]
        raise ComesError(
            f"some shards begin with a line 'n d q', and {listed(other)} do not. Write it in all "
            "of them, or in none."
        )
    names = None if reading.label_names is None else list(reading.label_names)
    if not known:
        return LinePlan(False, reading.n_features, names)
    if names is None:
        names = [str(label) for label in range(max(q for _, _, q in known))]
    return LinePlan(True, max(d for _, d, _ in known), names)


def survey_lines(
    plan: LinePlan, rows: Iterable[tuple[ShardFile, Block]]
) -> tuple[list[str] | None, int | None]:
    """Return the labels that occur and the number of features, from one pass over the blocks."""
    if plan.n_features is not None and plan.label_names is not None:
        return None, None
    found: set[float] = set()
    n_features = 0
    for file, block in rows:
        X, labels = plan.read(file, block)
        found.update(label for row in labels for label in row)
        n_features = max(n_features, X.shape[1])
    return [as_text(float(label)) for label in sorted(found)], n_features


def load_npz(names: Sequence[str] | None, file: ShardFile, _: Block) -> Dataset:
    """Return an .npz file as a data set, with the features of these names, if they have any."""
    dataset = _load_npz(file)
    X = dataset.X
    if not isinstance(X, pd.DataFrame) or names is None:
        return dataset
    missing = [name for name in names if name not in X]
    if missing:
        raise ComesError(f"{file.name}: {no_column(missing[0], list(X.columns))}")
    return replace(dataset, X=X[list(names)].to_numpy())


def read_npz_names(file: ShardFile) -> list[str] | None:
    """Return the names of the features of an .npz file, None if they have none."""
    X = _load_npz(file).X
    return list(X.columns) if isinstance(X, pd.DataFrame) else None


def _load_npz(file: ShardFile) -> Dataset:
    path = Path(file.name)
    with file.open() as stream:
        arrays = load_arrays(path, io.BytesIO(stream.read()))
    try:
        return npz_dataset(arrays, path)
    except ComesError as error:
        shown = str(error)
        raise ComesError(shown if file.name in shown else f"{file.name}: {shown}") from None
