"""What deserves a look in a data set before training."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, State
from comes.datasets.dataset import Dataset, is_table
from comes.datasets.images import Images, find_broken
from comes.datasets.indicators import count_marks, marks_of_state
from comes.datasets.labels import find_similar
from comes.errors import ComesError, counted, listed
from comes.tables import describe_columns

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
        number the rows; categories and labels whose names differ in case or blanks alone; images
        that cannot be read; labels that nothing or everything excludes, that nobody was asked
        about or could tell, that are never or always ticked or relevant; pairs about which people
        disagree; rows without a candidate; candidates that are the truth.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    >>> dataset = Dataset(X, ["sky"], relevant=np.array([[True], [True], [False]]))
    >>> for finding in check_dataset(dataset):
    ...     print(finding.text)
    1 row repeats the features of an earlier row, 1 with other labels (first: row 2).
    1 of 2 features are constant: 1.
    """
    findings = (*_check_features(dataset), *_check_labels(dataset))
    return [finding for finding in findings if finding.number]


def _check_features(dataset: Dataset) -> Iterator[Finding]:
    """Give what deserves a look in the features or images."""
    X = dataset.X
    if X is None:
        return
    broken: list[int] = []
    if isinstance(X, Images):
        broken = find_broken(X)
        text = f"{counted(len(broken), 'image')} cannot be read: "
        text += f"{listed([X.names[row] for row in broken])}."
        yield Finding("broken_images", len(broken), text)
    hashes = pd.Series(row_hashes(X))
    is_copy = hashes.duplicated().to_numpy(copy=True)
    is_copy[broken] = False
    n_copies = int(is_copy.sum())
    if n_copies:
        both = pd.DataFrame({"row": hashes, "labels": _hash_labels(dataset)})
        n_others = n_copies - int(both.duplicated().to_numpy()[is_copy].sum())
        what = "image" if isinstance(X, Images) else "features"
        text = counted(n_copies, "row", f"repeat the {what} of an earlier row")
        first = X.index[is_copy][0] if isinstance(X, pd.DataFrame) else is_copy.argmax()
        text += f", {n_others} with other labels (first: row {first})."
        yield Finding("duplicate_rows", n_copies, text)
    if is_table(X):
        names = [
            column.name
            for place, column in enumerate(describe_columns(X))
            if column.kind == "category"
            and find_similar([str(value) for value in X.iloc[:, place].dropna().unique()]).any()
        ]
        text = f"values of {listed(names)} differ in case or blanks alone, and count as different."
        yield Finding("similar_values", len(names), text)
    elif not isinstance(X, Images):
        yield from _check_numbers(X)


def _check_numbers(X: Any) -> Iterator[Finding]:
    """Give features with one value in every row, and those that number the rows as an id does."""
    n, d = X.shape
    names = [str(name) for name in (X.columns if isinstance(X, pd.DataFrame) else range(d))]
    numbers_rows: npt.NDArray[np.bool_] = np.zeros(d, dtype=bool)
    if sparse.issparse(X):
        low, high = (np.asarray(part.toarray()).ravel() for part in (X.min(axis=0), X.max(axis=0)))
        is_constant = low == high
    else:
        values = np.asarray(X)
        is_constant = (values == values[0]).all(axis=0)
        if n >= 3:
            start = values[:3].astype(np.float64)
            for column in np.flatnonzero((np.diff(start, axis=0) == 1).all(axis=0)):
                expected = start[0, column] + np.arange(n)
                numbers_rows[column] = (values[:, column] == expected).all()
    constant = [names[column] for column in np.flatnonzero(is_constant)]
    shown = ", ".join(constant[:5]) + (" ..." if len(constant) > 5 else "")
    text = f"{len(constant)} of {d} features are constant: {shown}."
    yield Finding("constant_features", len(constant), text)
    ids = [names[column] for column in np.flatnonzero(numbers_rows)]
    text = counted(len(ids), "feature", "number the rows, as an id does")
    yield Finding("row_numbers", len(ids), f"{text}: {listed(ids)}. Leave them out (--ignore).")


def _check_labels(dataset: Dataset) -> Iterator[Finding]:
    """Give what deserves a look in the names of the labels, the answers and the truth."""
    names, answers, relevant = dataset.label_names, dataset.answers, dataset.relevant
    verb = "differ from another in case or blanks alone"
    yield _list_labels("similar_labels", find_similar(names), names, verb)
    if answers is not None:
        yield from _check_answers(answers, names)
    if relevant is None:
        return
    n_relevant = count_marks(relevant, axis=0)
    yield _list_labels("never_relevant", n_relevant == 0, names, "are relevant to no row")
    if answers is not None:
        excluded = marks_of_state(answers, State.NO)
        n_possible = len(dataset) * len(names) - excluded.sum()
        is_truth = relevant.sum() == n_possible and not (excluded * relevant).sum()
        text = "the candidates are the same as the true labels in every row. Is that meant?"
        yield Finding("candidates_are_the_truth", int(is_truth), text)
    is_always = n_relevant == len(dataset)
    yield _list_labels("always_relevant", is_always, names, "are relevant to every row")


def _check_answers(answers: Answers, names: Sequence[str]) -> Iterator[Finding]:
    """Give what deserves a look in answers, of which candidates are the simplest."""
    n_no, n_yes, n_maybe = (answers.count_state(s) for s in (State.NO, State.YES, State.MAYBE))
    n = len(answers)
    if answers.kind == "positives":
        yield _list_labels("never_ticked", n_yes == 0, names, "are ticked in no row")
        yield _list_labels("always_ticked", n_yes == n, names, "are ticked in every row")
        return
    never_excluded = n_no == 0
    if answers.kind == "answers":
        is_asked, is_known = n_no + n_yes + n_maybe > 0, n_no + n_yes > 0
        only_maybe = is_asked & ~is_known
        yield _list_labels("never_asked", ~is_asked, names, "were never asked about")
        yield _list_labels("only_maybe", only_maybe, names, "have no answer but maybe")
        if answers.annotations is not None:
            n_pairs = answers.annotations.count_disagreements(answers.shape)
            text = f"people disagree about {counted(n_pairs, 'pair')}: yes and no."
            yield Finding("disagreements", n_pairs, text)
        never_excluded &= is_known
    yield _list_labels("never_excluded", never_excluded, names, "are excluded by no row")
    yield _list_labels("always_excluded", n_no == n, names, "are excluded by every row")
    per_row = count_marks(marks_of_state(answers, State.NO), axis=1)
    n_empty = int((per_row == len(names)).sum())
    text = f"{counted(n_empty, 'row', 'have no candidate')}: all labels are excluded."
    yield Finding("rows_without_candidate", n_empty, text)


def _list_labels(name: str, mask: Any, names: Sequence[str], verb: str) -> Finding:
    """Return a finding about the labels where a mask is True."""
    labels = [label for label, is_listed in zip(names, mask, strict=True) if is_listed]
    return Finding(name, len(labels), f"{counted(len(labels), 'label', verb)}: {listed(labels)}.")


def row_hashes(X: Any) -> npt.NDArray[Any]:
    """Return a number per row that equal rows share, dense or sparse; images by their bytes.

    It is the sum of the mixed bits of every entry times an odd random number of its column, modulo
    2^64: a zero adds nothing, and the order of the entries does not matter. Of a table, columns
    that are not used (ids) do not count.
    """
    if isinstance(X, Images):
        return np.array([_hash_image(X, row) for row in range(len(X))])
    if is_table(X):
        is_used = [column.is_used for column in describe_columns(X)]
        return pd.util.hash_pandas_object(X.loc[:, is_used], index=False).to_numpy(dtype=np.uint64)
    d = X.shape[1]
    factor = np.random.default_rng(0).integers(0, 2**63, size=d, dtype=np.uint64) * 2 + 1
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        terms = _mix_bits(X.data) * factor[X.indices]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    values = np.asarray(X)
    blocks = np.split(values, range(ROWS_AT_ONCE, len(values), ROWS_AT_ONCE))
    return np.concatenate([(_mix_bits(b) * factor).sum(axis=1, dtype=np.uint64) for b in blocks])


def _hash_image(images: Images, row: int) -> int:
    try:
        return hash(images.read_bytes(row))
    except ComesError:
        return -row - 1  # an image that cannot be read equals no other


def _mix_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the bits of numbers, mixed: those of small integers are zero but for the highest."""
    floats = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0 becomes 0
    bits = floats.view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return bits ^ (bits >> np.uint64(32))


def _hash_labels(dataset: Dataset) -> npt.NDArray[np.uint64]:
    """Return a number per row that rows with equal labels share."""
    answers, labels = dataset.answers, []
    if answers is not None:
        labels.append(answers.states if answers.is_sparse else answers.codes)
    if dataset.relevant is not None:
        labels.append(dataset.relevant)
    if any(map(sparse.issparse, labels)):
        return row_hashes(sparse.hstack(labels, "csr"))
    return row_hashes(np.concatenate(labels, axis=1).astype(np.uint8))
