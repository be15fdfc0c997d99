"""What deserves a look in a data set before training."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix
from comes.columns import describe_columns
from comes.datasets.dataset import Dataset
from comes.datasets.feature_matrices import is_table
from comes.datasets.images import Images, find_broken
from comes.datasets.similar_names import find_similar
from comes.datasets.sparse_marks import count_marks, marks_of_state
from comes.errors import counted, listed

ROWS_AT_ONCE = 1024


class Finding(NamedTuple):
    """Something that deserves a look: its name, how often it occurs, and a sentence.

    Examples
    --------
    >>> Finding("duplicate_rows", 2, "2 rows repeat the features of an earlier row.").number
    2
    """

    name: str
    number: int
    text: str


def check_dataset(dataset: Dataset) -> list[Finding]:
    """Return what deserves a look before training.

    Parameters
    ----------
    dataset : Dataset

    Returns
    -------
    findings : list of Finding
        Duplicate rows, and those among them with other labels; constant columns, and those that
        number the rows; images that cannot be read; labels that nothing or everything excludes,
        that nobody was asked about or could tell, that are never or always ticked or relevant;
        pairs about which people disagree; rows without a candidate; labels whose names differ in
        case or blanks alone. (That relevant labels are
        candidates is checked whenever a data set of candidates is made.)

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    >>> dataset = Dataset(X, ["sky"], relevant=np.array([[True], [True], [False]]))
    >>> for finding in check_dataset(dataset):
    ...     print(finding.text)
    1 row repeats the features of an earlier row, 1 with other labels (first: row 2).
    1 of 2 features are constant: 1.
    """
    return [found for found in (*_check_rows(dataset), *_check_labels(dataset)) if found.number]


def _check_rows(dataset: Dataset) -> list[Finding]:
    """Return what deserves a look in the features or images."""
    if dataset.X is None:
        return []
    if is_table(dataset.X):
        return [_find_duplicates(row_hashes(dataset.X), dataset), _find_spellings(dataset.X)]
    if not isinstance(dataset.X, Images):
        duplicates = _find_duplicates(row_hashes(dataset.X), dataset)
        return [duplicates, _find_constant_columns(dataset.X), _find_row_numbers(dataset.X)]
    broken = find_broken(dataset.X)
    readable = np.setdiff1d(np.arange(len(dataset)), broken)
    hashes = [hash(dataset.X.read_bytes(row)) for row in readable]
    return [
        _describe_broken([dataset.X.names[row] for row in broken]),
        _find_duplicates(np.array(hashes), dataset.take(readable), readable),
    ]


def _check_labels(dataset: Dataset) -> list[Finding]:
    """Return what deserves a look in the answers and in the truth."""
    names = dataset.label_names
    findings = [_find_similar_names(names)]
    if dataset.answers is not None and dataset.answers.kind == "positives":
        findings += _check_ticks(dataset.answers, names)
    elif dataset.answers is not None:
        findings += _check_answers(dataset.answers, names)
    if dataset.relevant is not None:
        n_relevant = count_marks(dataset.relevant, axis=0)
        findings += [
            _describe_labels("never_relevant", n_relevant == 0, names, "are relevant to no row"),
            _find_copied_truth(dataset),
            _describe_labels(
                "always_relevant", n_relevant == len(dataset), names, "are relevant to every row"
            ),
        ]
    return findings


def _find_spellings(table: pd.DataFrame) -> Finding:
    """Return the columns of categories with values that differ in case or blanks alone."""
    names = [
        column.name
        for column in describe_columns(table)
        if column.kind == "category"
        and find_similar([str(v) for v in table[column.name].dropna().unique()]).any()
    ]
    text = f"values of {listed(names)} differ in case or blanks alone, and count as different."
    return Finding("similar_values", len(names), text)


def _find_copied_truth(dataset: Dataset) -> Finding:
    """Return whether the candidates are the true labels, so that nothing is left to find out."""
    answers, is_copy = dataset.answers, False
    if answers is not None and dataset.relevant is not None:
        excluded = marks_of_state(answers, State.NO)
        n_possible = len(dataset) * len(dataset.label_names) - excluded.sum()
        is_copy = bool(dataset.relevant.sum() == n_possible)
        is_copy = is_copy and not (excluded * dataset.relevant).sum()
    text = "the candidates are the same as the true labels in every row. Is that meant?"
    return Finding("candidates_are_the_truth", int(is_copy), text)


def _check_ticks(answers: Answers, names: Sequence[str]) -> list[Finding]:
    """Return what deserves a look in ticked labels."""
    n_ticked = answers.count_state(State.YES)
    never, always = n_ticked == 0, n_ticked == len(answers)
    return [
        _describe_labels("never_ticked", never, names, "are ticked in no row"),
        _describe_labels("always_ticked", always, names, "are ticked in every row"),
    ]


def _check_answers(answers: Answers, names: Sequence[str]) -> list[Finding]:
    """Return what deserves a look in answers, of which candidates are the simplest."""
    n_no, n_yes, n_maybe = (answers.count_state(s) for s in (State.NO, State.YES, State.MAYBE))
    per_row = count_marks(marks_of_state(answers, State.NO), axis=1)
    n_empty = int((per_row == len(names)).sum())
    findings = []
    is_known: BoolMatrix = np.ones(len(names), dtype=bool)
    if answers.kind == "answers":
        is_known = np.asarray(n_no + n_yes + n_maybe > 0)
        unsure = is_known & (n_no + n_yes == 0)
        n_disagreements = (
            0
            if answers.annotations is None
            else answers.annotations.count_disagreements(answers.shape)
        )
        pairs = counted(n_disagreements, "pair")
        findings += [
            _describe_labels("never_asked", ~is_known, names, "were never asked about"),
            _describe_labels("only_maybe", unsure, names, "have no answer but maybe"),
            Finding(
                "disagreements", n_disagreements, f"people disagree about {pairs}: yes and no."
            ),
        ]
        is_known = is_known & ~unsure
    never, always = is_known & (n_no == 0), n_no == len(answers)
    return [
        *findings,
        _describe_labels("never_excluded", never, names, "are excluded by no row"),
        _describe_labels("always_excluded", always, names, "are excluded by every row"),
        Finding(
            "rows_without_candidate",
            n_empty,
            f"{counted(n_empty, 'row', 'have no candidate')}: all labels are excluded.",
        ),
    ]


def row_hashes(X: Any) -> npt.NDArray[np.uint64]:
    """Return a number per row that equal rows share, be they stored dense or sparse.

    It is the sum of the mixed bits of every entry times an odd random number of its column, modulo
    2^64: a zero adds nothing, and the order of the entries does not matter.
    """
    if is_table(X):
        return _hash_cells(X)
    d = X.shape[1]
    factor = np.random.default_rng(0).integers(0, 2**63, size=d, dtype=np.uint64) * 2 + 1
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        terms = _mix_bits(X.data) * factor[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)
    blocks = np.split(values, range(ROWS_AT_ONCE, len(values), ROWS_AT_ONCE))
    return np.concatenate([(_mix_bits(b) * factor).sum(axis=1, dtype=np.uint64) for b in blocks])


def _hash_cells(frame: pd.DataFrame) -> npt.NDArray[np.uint64]:
    """Return a number per row of a table that equal rows share, names of rows left out."""
    names = [c.name for c in describe_columns(frame) if c.is_used]
    cells = frame.set_axis([str(name) for name in frame.columns], axis=1)[names]
    return np.asarray(pd.util.hash_pandas_object(cells, index=False).to_numpy(dtype=np.uint64))


def _mix_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the bits of numbers, mixed: those of small integers are zero but for the highest."""
    floats = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0 becomes 0
    bits = floats.view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return bits ^ (bits >> np.uint64(32))


def _find_duplicates(
    hashes: npt.NDArray[Any], dataset: Dataset, rows: npt.NDArray[Any] | None = None
) -> Finding:
    """Count rows whose hash occurred before, and those among them with other labels."""
    repeated = pd.Series(hashes).duplicated().to_numpy()
    n = int(repeated.sum())
    if not n:
        return Finding("duplicate_rows", 0, "")
    labels = _hash_labels(dataset)
    both = pd.DataFrame({"row": hashes, "labels": labels})
    others = int(n - both.duplicated().to_numpy()[repeated].sum())
    first = repeated.argmax() if rows is None else rows[repeated.argmax()]
    what = "image" if isinstance(dataset.X, Images) else "features"
    return Finding(
        "duplicate_rows",
        n,
        f"{counted(n, 'row', f'repeat the {what} of an earlier row')}, {others} with other labels "
        f"(first: row {int(first)}).",
    )


def _hash_labels(dataset: Dataset) -> npt.NDArray[np.uint64]:
    """Return a number per row that rows with equal labels share."""
    answers, known = dataset.answers, []
    if answers is not None:
        known.append(answers.states if answers.is_sparse else answers.codes)
    if dataset.relevant is not None:
        known.append(dataset.relevant)
    if any(map(sparse.issparse, known)):
        return row_hashes(sparse.hstack(known, "csr"))
    return row_hashes(np.concatenate(known, axis=1).astype(np.uint8))


def _find_constant_columns(X: Any) -> Finding:
    """Count features with one value in every row."""
    if sparse.issparse(X):
        low, high = (np.asarray(m.toarray()).ravel() for m in (X.min(axis=0), X.max(axis=0)))
        constant = low == high
    else:
        values = X.to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)
        constant = (values == values[0]).all(axis=0)
    columns = X.columns if isinstance(X, pd.DataFrame) else range(X.shape[1])
    names = [str(column) for column, flat in zip(columns, constant, strict=True) if flat]
    shown = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    text = f"{len(names)} of {X.shape[1]} features are constant: {shown}."
    return Finding("constant_features", len(names), text)


def _find_row_numbers(X: Any) -> Finding:
    """Count features that number the rows, as an id does; a model can only learn them by heart."""
    if sparse.issparse(X) or X.shape[0] < 3:
        return Finding("row_numbers", 0, "")
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)
    start = np.asarray(values[:3], dtype=np.float64)
    places = [
        int(j)
        for j in np.flatnonzero((np.diff(start, axis=0) == 1).all(axis=0))
        if (values[:, j] == start[0, j] + np.arange(len(values))).all()
    ]
    columns = X.columns if isinstance(X, pd.DataFrame) else range(X.shape[1])
    names = [str(columns[j]) for j in places]
    text = f"{counted(len(names), 'feature', 'number the rows, as an id does')}: {listed(names)}."
    return Finding("row_numbers", len(names), f"{text} Leave them out (--ignore).")


def _describe_broken(names: Sequence[str]) -> Finding:
    """Return the finding that images cannot be read."""
    return Finding(
        "broken_images",
        len(names),
        f"{counted(len(names), 'image')} cannot be read: {listed(names)}.",
    )


def _find_similar_names(names: Sequence[str]) -> Finding:
    """Count labels whose names differ from another in case or blanks alone."""
    verb = "differ from another in case or blanks alone"
    return _describe_labels("similar_labels", find_similar(names), names, verb)


def _describe_labels(name: str, chosen: Any, names: Sequence[str], verb: str) -> Finding:
    """Return a finding about the labels that a mask chooses."""
    found = [label for label, hit in zip(names, chosen, strict=True) if hit]
    return Finding(name, len(found), f"{counted(len(found), 'label', verb)}: {listed(found)}.")
