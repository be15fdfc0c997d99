"""What deserves a look in a data set before training."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import State
from comes.datasets.dataset import Dataset, count_marks, is_table, marks_of_state
from comes.datasets.images import Images, find_broken
from comes.datasets.labels import find_similar
from comes.errors import ComesError, counted, listed
from comes.tables import describe_columns

ROWS_AT_ONCE = 1024


class Finding(NamedTuple):
    """Something that deserves a look: its name, how often it occurs, and a sentence."""

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
    hashes = [row_hashes(X)]
    is_copy = pd.Series(hashes[0]).duplicated().to_numpy(copy=True)
    is_copy[broken] = False
    n_copies = int(is_copy.sum())
    if n_copies:
        states = None if dataset.answers is None else dataset.answers.states
        hashes += [row_hashes(part) for part in (states, dataset.relevant) if part is not None]
        n_others = n_copies - int(pd.DataFrame(dict(enumerate(hashes))).duplicated()[is_copy].sum())
        what = "image" if isinstance(X, Images) else "features"
        text = counted(n_copies, "row", f"repeat the {what} of an earlier row")
        first = X.index[is_copy][0] if isinstance(X, pd.DataFrame) else is_copy.argmax()
        text += f", {n_others} with other labels (first: row {first})."
        yield Finding("duplicate_rows", n_copies, text)
    if not isinstance(X, Images) and not is_table(X):
        yield from _check_numbers(X)


def _check_numbers(X: Any) -> Iterator[Finding]:
    """Give features with one value in every row, and those that number the rows as an id does."""
    n, d = X.shape
    names = [str(name) for name in (X.columns if isinstance(X, pd.DataFrame) else range(d))]
    ids = []
    if sparse.issparse(X):
        low, high = (extreme.toarray().ravel() for extreme in (X.min(axis=0), X.max(axis=0)))
        is_constant = low == high
    else:
        values = np.asarray(X)
        is_constant = (values == values[0]).all(axis=0)
        numbers = values[0].astype(np.float64) + np.arange(min(n, 3))[:, np.newaxis]
        for column in np.flatnonzero((values[:3] == numbers).all(axis=0) & (n >= 3)):
            if (values[:, column] == numbers[0, column] + np.arange(n)).all():
                ids.append(names[column])
    constant = [names[column] for column in np.flatnonzero(is_constant)]
    shown = ", ".join(constant[:5]) + (" ..." if len(constant) > 5 else "")
    text = f"{len(constant)} of {d} features are constant: {shown}."
    yield Finding("constant_features", len(constant), text)
    text = counted(len(ids), "feature", "number the rows, as an id does")
    yield Finding("row_numbers", len(ids), f"{text}: {listed(ids)}. Leave them out (--ignore).")


def _check_labels(dataset: Dataset) -> Iterator[Finding]:
    """Give what deserves a look in the names of the labels, the answers and the truth."""
    names, answers, relevant = dataset.label_names, dataset.answers, dataset.relevant
    n, verb = len(dataset), "differ from another in case or blanks alone"
    found: list[tuple[str, str, Any]] = [("similar_labels", verb, find_similar(names))]
    if answers is not None:
        n_no, n_yes, n_maybe = (answers.count_state(s) for s in (State.NO, State.YES, State.MAYBE))
        is_known, is_asked = n_no + n_yes > 0, n_no + n_yes + n_maybe > 0
        if answers.kind == "positives":
            found.append(("never_ticked", "are ticked in no row", n_yes == 0))
            found.append(("always_ticked", "are ticked in every row", n_yes == n))
        else:
            if answers.kind == "candidates":
                is_known = is_asked = np.ones(len(names), dtype=bool)
            found.append(("never_asked", "were never asked about", ~is_asked))
            found.append(("only_maybe", "have no answer but maybe", is_asked & ~is_known))
            found.append(("never_excluded", "are excluded by no row", is_known & (n_no == 0)))
            found.append(("always_excluded", "are excluded by every row", n_no == n))
    if relevant is not None:
        n_relevant = count_marks(relevant, axis=0)
        found.append(("never_relevant", "are relevant to no row", n_relevant == 0))
        found.append(("always_relevant", "are relevant to every row", n_relevant == n))
    for name, verb, mask in found:
        labels = [label for label, is_listed in zip(names, mask, strict=True) if is_listed]
        text = f"{counted(len(labels), 'label', verb)}: {listed(labels)}."
        yield Finding(name, len(labels), text)
    if answers is None or answers.kind == "positives":
        return
    if answers.annotations is not None:
        n_pairs = answers.annotations.count_disagreements(answers.shape)
        text = f"people disagree about {counted(n_pairs, 'pair')}: yes and no."
        yield Finding("disagreements", n_pairs, text)
    excluded = marks_of_state(answers, State.NO)
    n_empty = int((count_marks(excluded, axis=1) == len(names)).sum())
    text = f"{counted(n_empty, 'row', 'have no candidate')}: all labels are excluded."
    yield Finding("rows_without_candidate", n_empty, text)
    if relevant is not None:
        n_possible = n * len(names) - excluded.sum()
        is_truth = relevant.sum() == n_possible and not (excluded * relevant).sum()
        text = "the candidates are the same as the true labels in every row. Is that meant?"
        yield Finding("candidates_are_the_truth", int(is_truth), text)


def row_hashes(X: Any) -> npt.NDArray[Any]:
    """Return a number per row that equal rows share, dense or sparse; images by their bytes.

    It is the product with a random vector, modulo 2^64, of the mixed bits of every entry: a zero
    adds nothing. Of a table, columns that are not used (ids) do not count.
    """
    if isinstance(X, Images):
        return np.array([_hash_image(X, row) for row in range(len(X))])
    if is_table(X):
        is_used = [column.is_used for column in describe_columns(X)]
        return pd.util.hash_pandas_object(X.loc[:, is_used], index=False).to_numpy(dtype=np.uint64)
    factors = np.random.default_rng(0).integers(0, 2**63, X.shape[1], dtype=np.uint64) * 2 + 1
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        mixed = sparse.csr_array((_mix_bits(X.data), X.indices, X.indptr), shape=X.shape)
        return np.asarray(mixed @ factors)
    blocks = np.split(np.asarray(X), range(ROWS_AT_ONCE, len(X), ROWS_AT_ONCE))
    return np.concatenate([_mix_bits(block) @ factors for block in blocks])


def _hash_image(images: Images, row: int) -> int:
    try:
        return hash(images.read_bytes(row))
    except ComesError:
        return -row - 1  # an image that cannot be read equals no other


def _mix_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the bits of numbers, mixed: those of small integers are zero but for the highest."""
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # -0 becomes 0
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return bits ^ (bits >> np.uint64(32))
