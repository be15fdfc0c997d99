"""The job that splits data into rows to train on and rows to test with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from comes.answers import Answers, State
from comes.datasets import Dataset, ReadOptions
from comes.datasets.split import RowFile, find_copies, open_row_file
from comes.errors import ComesError, listed
from comes.files import check_file_target, expanded, refuse_inputs, refuse_same
from comes.workflows.data import count_labels, reading_files

Rows = npt.NDArray[np.int64]
SIDES = ("train", "test")


@dataclass(frozen=True)
class Split:
    """Two files that one was split into, and what went where.

    Attributes
    ----------
    train, test : Path
    n_rows : (int, int)
        Rows of the two files.
    n_groups : (int, int)
        Sets of rows that were kept together: of one group, or with the same features.
    n_copies : int
        Rows with the features of an earlier row; they are in the same file.
    labels : DataFrame
        One row per label: what is known of it in the two files, such as ``relevant in train``.
    absent : list of str
        Sentences about labels of which one of the files says nothing.

    Examples
    --------
    >>> Split(Path("a-train.csv"), Path("a-test.csv"), (8, 2), (8, 2), 0, pd.DataFrame()).n_rows
    (8, 2)
    """

    train: Path
    test: Path
    n_rows: tuple[int, int]
    n_groups: tuple[int, int]
    n_copies: int
    labels: pd.DataFrame
    absent: list[str] = field(default_factory=list)

    @property
    def counted(self) -> list[str]:
        """What is counted of labels, such as relevant."""
        ending = " in train"
        return [c.removesuffix(ending) for c in self.labels.columns if c.endswith(ending)]

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        files = zip(SIDES, (self.train, self.test), self.n_rows, self.n_groups, strict=True)
        sides = {
            side: {"file": str(path), "rows": rows, "groups": groups}
            for side, path, rows, groups in files
        }
        labels = self.labels.to_dict("records")
        return {**sides, "copies": self.n_copies, "labels": labels, "absent": self.absent}


def split_data(
    data: str | Path,
    *,
    test_share: float = 0.2,
    groups: str | None = None,
    seed: int = 0,
    train: str | Path | None = None,
    test: str | Path | None = None,
    reading: ReadOptions | None = None,
) -> Split:
    r"""Split a file into rows to train on and rows to test with, in its own format.

    Rows of one group, and rows with the same features, go to the same file: else a model could be
    tested with what it knows by heart. Sets of rows are drawn at random; no label has a say.

    Parameters
    ----------
    data : path or name
        A .csv, .parquet, LIBSVM, .npz or .mat file, a table of answers, or the name of a data set.
        Lines of text are copied as they are.
    test_share : float
        Share of the rows to test with.
    groups : str, optional
        A column of the table: rows with the same word there are kept together, and it is not a
        feature. Rows without a word are groups of their own.
    seed : int
    train, test : paths, optional
        By default NAME-train and NAME-test beside the file, which must not exist.
    reading : ReadOptions, optional
        What the columns of the file mean.

    Returns
    -------
    split : Split

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photos.csv"
    >>> lines = [f"{k},{k * k},{k % 2}" for k in range(10)]
    >>> _ = path.write_text("\n".join(["red,blue,has_sky", *lines, "0,0,1"]))
    >>> split = split_data(path, test_share=0.3, reading=ReadOptions(labels=["has_sky"]))
    >>> split.test.name, split.n_rows, split.n_copies
    ('photos-test.csv', (8, 3), 1)
    """
    if not 0 < test_share < 1:
        raise ComesError(f"test_share (--test-share) must lie between 0 and 1; got {test_share:g}.")
    file = open_row_file(data, reading, groups=groups)
    targets = [
        _name_target(file, side, data, given)
        for side, given in zip(SIDES, (train, test), strict=True)
    ]
    for target in targets:
        check_file_target(target)
        refuse_inputs(target, data, *reading_files(reading))
    refuse_same(*targets)
    copies = find_copies(file.dataset)
    together = link_rows(copies, file.groups)
    rows = draw_test_rows(together, test_share, seed)
    n = len(file.dataset)
    sides = (np.setdiff1d(np.arange(n), rows), rows)
    counts = [count_labels(file.dataset.take(side)) for side in sides]
    for side, target in zip(sides, targets, strict=True):
        file.write(side, target)
    return Split(
        targets[0],
        targets[1],
        n_rows=(len(sides[0]), len(sides[1])),
        n_groups=(len(np.unique(together[sides[0]])), len(np.unique(together[sides[1]]))),
        n_copies=n - len(np.unique(copies)),
        labels=_join_counts(counts),
        absent=describe_absent(file.dataset, dict(zip(SIDES, sides, strict=True))),
    )


def link_rows(copies: Rows, pairs: Sequence[tuple[int, str]]) -> Rows:
    """Return a number for every row, (n,): equal where rows are linked, directly or by others.

    Rows are linked if they have the same number in ``copies``, or a word in common.
    """
    n = len(copies)
    words = {word: number for number, word in enumerate(dict.fromkeys(word for _, word in pairs))}
    nodes = n + int(copies.max()) + 1
    start = [*range(n), *(row for row, _ in pairs)]
    end = [*(n + copies).tolist(), *(nodes + words[word] for _, word in pairs)]
    size = nodes + len(words)
    graph = sparse.coo_array((np.ones(len(start)), (start, end)), shape=(size, size))
    _, parts = connected_components(graph, directed=False)
    return np.asarray(np.unique(parts[:n], return_inverse=True)[1], dtype=np.int64)


def draw_test_rows(together: Rows, test_share: float, seed: int) -> Rows:
    """Return the rows to test with: sets in random order, each that brings the share closer."""
    sizes = np.bincount(together)
    if len(sizes) < 2:
        raise ComesError(
            f"all {len(together)} rows belong together, and cannot be split. Choose another column "
            "for the groups (--groups)."
        )
    wanted = test_share * len(together)
    chosen, n_chosen = [], 0
    for one in np.random.default_rng(seed).permutation(len(sizes)):
        if abs(n_chosen + sizes[one] - wanted) < abs(n_chosen - wanted):
            chosen.append(one)
            n_chosen += sizes[one]
    if not chosen or len(chosen) == len(sizes):
        chosen = [int(sizes.argmin())]  # one set on either side, whatever their sizes
    return np.flatnonzero(np.isin(together, chosen))


def describe_absent(dataset: Dataset, sides: dict[str, Rows]) -> list[str]:
    """Return a sentence for every file whose rows say nothing of some labels."""
    found = []
    answers, relevant = dataset.answers, dataset.relevant
    parts = {
        side: _count_known(
            None if answers is None else answers[rows], None if relevant is None else relevant[rows]
        )
        for side, rows in sides.items()
    }
    for words, known in _count_known(answers, relevant).items():
        for side, counts in parts.items():
            absent = (known > 0) & (counts[words] == 0)
            names = [dataset.label_names[label] for label in np.flatnonzero(absent)]
            if names:
                labels = "labels are" if len(names) > 1 else "label is"
                purpose = "train on" if side == "train" else "test with"
                found.append(
                    f"{len(names)} {labels} {words} no row to {purpose}: {listed(names)}. Try "
                    "another seed (--seed) or share (--test-share)."
                )
    return found


def _count_known(answers: Answers | None, relevant: Any) -> dict[str, npt.NDArray[np.int64]]:
    """Return in how many rows something is known of a label, (q,), by the words for it."""
    found: dict[str, npt.NDArray[np.int64]] = {}
    if answers is not None:
        n_no, n_yes = (answers.count_state(state) for state in (State.NO, State.YES))
        if answers.kind == "answers":
            found["asked about in"] = n_no + n_yes
        elif answers.kind == "positives":
            found["ticked in"] = n_yes
        else:
            found = {"excluded by": n_no, "a candidate of": len(answers) - n_no}
    if relevant is not None:
        found["relevant to"] = np.asarray(relevant.sum(axis=0)).ravel()
    return found


def _name_target(file: RowFile, side: str, data: str | Path, given: str | Path | None) -> Path:
    """Return where the rows go; raise if something is in the way, or has another ending."""
    if given is None:
        source = Path(str(data).replace(":", "-")) if file.path is None else file.path
        stem = source.name if file.path is None else source.name[: -len(file.ending)]
        target = source.with_name(f"{stem}-{side}{file.ending}")
        if target.exists():
            raise ComesError(
                f"{target} exists already. Name another file (--{side}), which is replaced if it "
                "exists; or remove this one."
            )
    else:
        target = expanded(given)
    if not target.name.lower().endswith(file.ending):
        raise ComesError(
            f"{target.name} must end in {file.ending}, as the file that is split; got "
            f"{target.suffix or 'no ending'}."
        )
    return target


def _join_counts(counts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the counts of both files beside each other."""
    first, second = (
        table.set_index("label").add_suffix(f" in {side}")
        for table, side in zip(counts, SIDES, strict=True)
    )
    mixed = [column for pair in zip(first, second, strict=True) for column in pair]
    return first.join(second)[mixed].reset_index()
