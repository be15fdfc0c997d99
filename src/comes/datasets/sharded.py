"""`ShardedDataset`: more rows than memory holds, read from files in blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from comes.answers import Answers
from comes.answers.matrix import Kind
from comes.datasets.dataset import Dataset
from comes.datasets.images import Images
from comes.datasets.reading import Reading, as_reading
from comes.datasets.shard_blocks import SVM_ENDINGS, Block
from comes.datasets.shard_files import ShardFile, list_shards
from comes.datasets.shard_index import ShardIndex, find_index
from comes.datasets.shard_matrices import load_npz, plan_lines, read_npz_names, survey_lines
from comes.datasets.shard_tables import gather_names, plan_tables
from comes.datasets.sparse_marks import FEW, MANY_PAIRS
from comes.errors import ComesError, counted

ROWS_AT_ONCE = 2**15
PICTURES_AT_ONCE = 2**10
MATRIX_FIELDS = ("labels_are", "label_names")
TABLE_FIELDS = (
    *MATRIX_FIELDS,
    "labels",
    "relevant",
    "ignore",
    "text",
    "category",
    "feature_columns",
    "item",
    "words",
    "separator",
    "long",
)

Load = Callable[[ShardFile, Block], Dataset]


@dataclass(frozen=True)
class ShardedDataset:
    """Rows of features and what was said about their labels, in blocks that are read when needed.

    `open_shards` makes one. A block is read by opening its file anew, and nothing is kept of it:
    several threads or processes may read at the same time.

    Attributes
    ----------
    files : tuple of ShardFile
    blocks : tuple of Block
        In the order of the files.
    label_names : list of str
    feature_names : list of str, or None
        None for matrices and images.
    kind : {"answers", "candidates", "positives"}, or None
        What a pair without an answer means; None if only the truth is known.
    is_sparse : bool
        Whether the answers are sparse.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = pd.DataFrame({"red": [0.1, 0.7, 0.3], "candidates": ["sky;sea", "sky", "sea"]})
    >>> for k in range(2):
    ...     table.to_csv(folder / f"part-{k}.csv", index=False)
    >>> shards = open_shards(folder)
    >>> print(shards)
    6 rows in 2 blocks of 2 files, 1 feature, 2 labels, candidates
    >>> X, answers = shards.read(1)
    >>> X.dtype, answers
    (dtype('float32'), Candidates of 3 rows and 2 labels: 2 of 6 pairs excluded; who was asked \
is not known)
    """

    files: tuple[ShardFile, ...]
    blocks: tuple[Block, ...]
    label_names: list[str]
    feature_names: list[str] | None
    kind: Kind | None
    is_sparse: bool
    load_rows: Load
    features: str  # what X is: "numbers", "sparse", "table", "images" or "none"
    n_features: int | None
    prepare: Callable[[Any], Any] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of rows of every block."""
        return tuple(block.n_rows for block in self.blocks)

    @property
    def n_rows(self) -> int:
        """The number of rows of all blocks."""
        return sum(self.sizes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        return self.n_rows, len(self.label_names)

    def load(self, block: int) -> Dataset:
        """Return a block as a data set: features as they are stored, answers, truth and items."""
        place = self.blocks[block]
        file = self.files[place.file]
        dataset = self.load_rows(file, place)
        if len(dataset) != place.n_rows:
            raise ComesError(
                f"{file.name} has {len(dataset)} rows where {place.n_rows} were counted; it has "
                "changed. Open the shards again."
            )
        d = getattr(dataset.X, "shape", (0, 0))[-1]
        if self.features in ("numbers", "sparse") and d != self.n_features:
            raise ComesError(
                f"{file.name} has {d} features; the first block has {self.n_features}. Write the "
                "same features in every shard."
            )
        answers = dataset.answers
        if answers is None or answers.is_sparse == self.is_sparse:
            return dataset
        if self.is_sparse:
            said = Answers.from_codes(answers.states, answers.kind, answers.label_names)
        else:
            said = Answers.from_codes(answers.codes, answers.kind, answers.label_names)
        return replace(dataset, answers=said)

    def read(self, block: int) -> tuple[Any, Answers]:
        """Return features and answers of a block.

        Returns
        -------
        X : float32 array or CSR matrix (n_rows, n_features), DataFrame or Images
            Prepared, if a way to do so was given (`prepared`).
        answers : Answers (n_rows, n_labels)
        """
        dataset = self.load(block)
        X, answers = dataset.X, dataset.known_answers()
        if self.prepare is not None:
            return self.prepare(X), answers
        if isinstance(X, np.ndarray) or sparse.issparse(X):
            X = X.astype(np.float32, copy=False)
        return X, answers

    def prepared(self, prepare: Callable[[Any], Any]) -> "ShardedDataset":
        r"""Return the same rows, their features prepared when read, from what is stored.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "part.csv"
        >>> _ = path.write_text("red,candidates\n0.5,sea\n0.7,sky\n")
        >>> open_shards(path).prepared(lambda X: 2 * X).read(0)[0].tolist()
        [[1.0], [1.4]]
        """
        return replace(self, prepare=prepare)

    def __iter__(self) -> Iterator[Dataset]:
        """Give the blocks as data sets, one after the other."""
        return (self.load(block) for block in range(len(self.blocks)))

    def __str__(self) -> str:
        blocks = f"{counted(len(self.blocks), 'block')} of {counted(len(self.files), 'file')}"
        parts = [f"{counted(self.n_rows, 'row')} in {blocks}"]
        if self.features == "images":
            parts.append("images")
        elif self.n_features is not None:
            what = "column" if self.features == "table" else "feature"
            parts.append(counted(self.n_features, what))
        parts.append(counted(len(self.label_names), "label"))
        return ", ".join([*parts, self.kind or "the truth alone"])


def open_shards(
    source: str | Path,
    reading: Reading | None = None,
    *,
    rows_at_once: int | None = None,
    **fields: Any,
) -> ShardedDataset:
    r"""Open a data set that lies in many files, or in one that is larger than memory.

    Parameters
    ----------
    source : str or Path
        A folder, a file, a pattern such as "parts/*.parquet", or an address of any of them, such
        as "s3://bucket/parts" (fsspec; ``pip install 'comes[remote]'``). All files have one format:
        .parquet, .csv or .tsv, .jsonl (each also with .gz, but for parquet), LIBSVM, .npz, or .tar
        with pictures.
    reading : Reading, optional
        What the columns and labels mean. It is resolved with the first block; a block that
        disagrees is an error when it is read.
    rows_at_once : int, optional
        The most rows of a block; by default 32768, of pictures 1024. An .npz file is one block.
    **fields
        The fields of a `Reading`, instead of one.

    Returns
    -------
    shards : ShardedDataset

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.svm").write_text("1,3 5:0.2\n2 1:1\n")
    >>> _ = (folder / "b.svm").write_text("3 2:0.5\n")
    >>> shards = open_shards(folder, labels_are="positives")
    >>> shards.sizes, shards.label_names
    ((2, 1), ['1', '2', '3'])
    """
    reading = as_reading(reading, fields)
    if rows_at_once is not None and rows_at_once < 1:
        raise ComesError(f"rows_at_once must be at least 1; got {rows_at_once}.")
    files = tuple(list_shards(source))
    ending = files[0].ending
    default = PICTURES_AT_ONCE if ending == ".tar" else ROWS_AT_ONCE
    most_rows = rows_at_once or default
    is_table = ending not in (*SVM_ENDINGS, ".npz")
    _refuse_fields(reading, ending, is_table)
    load: Load
    names: list[str] | None = None
    if is_table:
        index, load, names = _open_tables(files, most_rows, reading)
    elif ending == ".npz":
        index = find_index(files, most_rows, reading, lambda _: (None, None))
        names = read_npz_names(files[0])
        load = partial(load_npz, names)
    else:
        index, load = _open_lines(files, most_rows, reading)
    if not is_table or reading.labels_are == "candidates":
        load = partial(_complete, load, reading)
    return _look_at_first(files, index, load, names)


def _refuse_fields(reading: Reading, ending: str, is_table: bool) -> None:
    """Raise at the first field that does not apply to shards of a format."""
    known = TABLE_FIELDS if is_table else MATRIX_FIELDS
    known = (*known, "n_features") if ending in SVM_ENDINGS else known
    foreign = [name for name in reading.given if name not in known]
    if foreign:
        raise ComesError(f"{foreign[0]!r} does not apply to shards of {ending}. Leave it out.")


def _list_rows(
    files: Sequence[ShardFile], blocks: Sequence[Block]
) -> Iterator[tuple[ShardFile, Block]]:
    return ((files[block.file], block) for block in blocks)


def _open_tables(
    files: Sequence[ShardFile], most_rows: int, reading: Reading
) -> tuple[ShardIndex, Load, list[str]]:
    """Return the index of tables, how their blocks are read, and the names of their features."""

    def survey(blocks: tuple[Block, ...]) -> tuple[list[str] | None, int | None]:
        plan = plan_tables(files[0], blocks[0], reading, most_rows)
        return gather_names(plan, _list_rows(files, blocks)), None

    index = find_index(files, most_rows, reading, survey)
    plan = plan_tables(files[0], index.blocks[0], reading, most_rows)
    if index.label_names is not None:
        plan = replace(plan, reading=replace(plan.reading, label_names=index.label_names))
    return index, plan.load, plan.features


def _open_lines(
    files: Sequence[ShardFile], most_rows: int, reading: Reading
) -> tuple[ShardIndex, Load]:
    """Return the index of LIBSVM files, and how their blocks are read."""
    plan = plan_lines(files, reading)
    index = find_index(
        files, most_rows, reading, lambda blocks: survey_lines(plan, _list_rows(files, blocks))
    )
    plan = replace(
        plan,
        n_features=plan.n_features or index.n_features,
        label_names=plan.label_names or index.label_names,
    )
    return index, plan.load


def _complete(load: Load, reading: Reading, file: ShardFile, block: Block) -> Dataset:
    """Return a block with its labels taken for what the reading says."""
    dataset = load(file, block).with_labels_as(reading.labels_are, file.name)
    if reading.label_names is not None and dataset.label_names != list(reading.label_names):
        dataset = dataset.align_labels(reading.label_names)
    return dataset


def _look_at_first(
    files: tuple[ShardFile, ...], index: ShardIndex, load: Load, names: list[str] | None
) -> ShardedDataset:
    """Return the shards as the first block shows them to be."""
    first = load(files[0], index.blocks[0])
    answers, X, q = first.answers, first.X, len(first.label_names)
    is_sparse = False
    if answers is not None:
        most = max(block.n_rows for block in index.blocks)
        n_said = answers.count()["asked"].sum()
        is_sparse = most * q > MANY_PAIRS and n_said <= FEW * len(answers) * q
    return ShardedDataset(
        files,
        index.blocks,
        first.label_names,
        names or None,
        None if answers is None else answers.kind,
        bool(is_sparse),
        load,
        _find_features(X),
        None if X is None or isinstance(X, Images) else int(X.shape[1]),
    )


def _find_features(X: Any) -> str:
    """Return what the features of a block are."""
    if X is None or isinstance(X, Images):
        return "none" if X is None else "images"
    if isinstance(X, pd.DataFrame):
        return "table"
    return "sparse" if sparse.issparse(X) else "numbers"
