"""`Dataset`: features or images with answers about labels, true labels, or both."""

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from comes.answers import Answers, LongAnswers, State
from comes.answers.convert import (
    BoolMatrix,
    check_names,
    check_paired,
    match_names,
    outside_candidates_error,
    set_members,
)
from comes.datasets.images import Images, open_images
from comes.datasets.options import LabelsAre
from comes.errors import ComesError, counted, listed
from comes.tables.columns import match_by_name, needs_encoding

Marks = Any  # which labels are marked in every row, bool (n, q): an array, or CSR if few are
Places = npt.NDArray[np.int64]

MANY_PAIRS = 2**24  # of which at most the share FEW is marked: a sparse matrix
FEW = 0.05
MOST_DENSE = 2**30  # pairs of a bool matrix that is made of a sparse one


class ColumnRole(NamedTuple):
    """What a column of a table is that is no feature: "label", "truth", "item" or "ignored"."""

    role: str
    n_missing: int


@dataclass(frozen=True, init=False)
class Dataset:
    """Features of rows, and what is known of their labels, checked when made.

    Parameters
    ----------
    X : array, DataFrame, CSR matrix of shape (n_samples, n_features), Images, or None
        None where a file holds labels alone; `join_features` brings the two together.
    label_names : list of str
    candidates : bool array of shape (n_samples, n_labels), optional
        Instead of ``answers``, where only what is excluded is known.
    relevant : bool array or CSR matrix of shape (n_samples, n_labels), optional
        The truth, where it is known.
    items : list of str, optional
        The names of the rows, each once.
    from_complementary : bool
        Whether the candidates were read from complementary labels.
    answers : Answers of shape (n_samples, n_labels), optional
    roles : mapping of str to ColumnRole, optional
        The columns that are no features, of a data set that was read from a table.
    n_left_out : int
        How many rows a file of features has beside these, which have no labels.

    Attributes
    ----------
    X, label_names, answers, relevant, items, from_complementary, roles, n_left_out
        As given; ``answers`` have the label names.

    Examples
    --------
    >>> print(Dataset(np.eye(2), ["sky", "sea"], candidates=np.array([[1, 1], [0, 1]], dtype=bool)))
    2 rows, 2 features, 2 labels, 1.50 candidates per row
    >>> answers = Answers(no=[[1, 0], [0, 0]], yes=[[0, 1], [0, 0]])
    >>> print(Dataset(np.eye(2), ["sky", "sea"], answers=answers))
    2 rows, 2 features, 2 labels, 2 of 4 pairs asked: 1 no, 1 yes, 0 maybe
    """

    X: Any
    label_names: list[str]
    answers: Answers | None
    relevant: Marks | None
    items: list[str] | None
    from_complementary: bool
    roles: Mapping[str, ColumnRole]
    n_left_out: int

    def __init__(
        self,
        X: Any,
        label_names: list[str],
        candidates: BoolMatrix | None = None,
        relevant: Marks | None = None,
        items: list[str] | None = None,
        from_complementary: bool = False,
        *,
        answers: Answers | None = None,
        roles: Mapping[str, ColumnRole] | None = None,
        n_left_out: int = 0,
    ) -> None:
        if answers is not None and candidates is not None:
            raise ComesError(
                "a data set has candidates or answers; got both. Leave one out, and with "
                "dataclasses.replace change answers."
            )
        if X is not None and not isinstance(X, Images):
            check_features(X)
            check_paired(X=X, answers=answers)
        known = (X, candidates if answers is None else answers, relevant)
        shape = (_count_rows(known), len(label_names))
        check_size(*shape)
        if candidates is not None:
            _check_shape(candidates, "candidates", shape)
            answers = Answers.from_candidates(candidates)
        self._set(
            X=X,
            label_names=label_names,
            answers=answers,
            relevant=relevant,
            items=items,
            from_complementary=from_complementary,
            roles=roles or {},
            n_left_out=n_left_out,
        )
        self._check_rows()

    def _set(self, **values: Any) -> None:
        """Set attributes of this frozen object."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_rows(self) -> None:
        """Raise unless names and matrices fit together; features are not looked at."""
        check_names(self.label_names)
        shape = (len(self), len(self.label_names))
        _check_shape(self.relevant, "relevant", shape)
        _check_shape(self.answers, "answers", shape)
        if self.items is not None:
            check_item_names(self.items)
            if len(self.items) != len(self):
                raise ComesError(
                    f"{len(self)} rows need as many names of items; got {len(self.items)}."
                )
        if self.answers is None:
            if self.relevant is None:
                raise ComesError(
                    "a data set needs candidates, complementary or true labels; got none."
                )
            return
        if self.answers.label_names is None:
            self._set(answers=self.answers.rename_labels(self.label_names))
        if self.answers.label_names != self.label_names:
            raise ComesError(
                f"the answers must be about the labels {listed(self.label_names)}, in this order; "
                f"got {listed(self.answers.label_names or [])}. Use answers.align_labels."
            )
        if self.answers.kind == "candidates" and self.relevant is not None:
            check_none_excluded(self.relevant, self.answers, self.label_names)

    @property
    def candidates(self) -> BoolMatrix | None:
        """True where a label is still possible, (n_samples, n_labels); None without answers."""
        return None if self.answers is None else self.answers.candidates

    @property
    def asked(self) -> BoolMatrix | None:
        """True where somebody answered, (n_samples, n_labels); None where that is not known."""
        return None if self.answers is None else self.answers.asked

    def _replace(self, **changes: Any) -> "Dataset":
        """Return a copy whose features are those of this data set, and need no second check."""
        changed = copy.copy(self)
        changed._set(**changes)
        changed._check_rows()
        return changed

    def __len__(self) -> int:
        return _count_rows((self.X, self.answers, self.relevant))

    def take(self, rows: npt.ArrayLike) -> "Dataset":
        """Return the data set of some rows, given by number or as a bool mask."""
        index = np.arange(len(self))[np.asarray(rows)]
        check_size(len(index), len(self.label_names))
        return self._replace(
            X=take_rows(self.X, index),
            answers=None if self.answers is None else self.answers[index],
            relevant=None if self.relevant is None else self.relevant[index],
            items=None if self.items is None else [self.items[row] for row in index],
            n_left_out=0,
        )

    def align_labels(self, label_names: Sequence[str]) -> "Dataset":
        """Return the data set with its labels matched to these names, and in their order."""
        order = match_names(self.label_names, label_names)
        answers = self.answers
        if answers is not None:
            answers = answers.select_labels([self.label_names[place] for place in order])
            answers = answers.rename_labels(label_names)
        return self._replace(
            label_names=list(label_names),
            answers=answers,
            relevant=None if self.relevant is None else self.relevant[:, order],
        )

    def with_labels_as(self, labels_are: LabelsAre | None, source: str) -> "Dataset":
        """Return the data set with its truth taken for candidates, complementary or ticked labels.

        Answers stay what they are. It is an error if the source says that its labels are of
        another kind; the error names the source.
        """
        if labels_are is None:
            return self
        if self.answers is not None:
            kind = "complementary" if self.from_complementary else self.answers.kind
            if labels_are == kind or (labels_are, kind) == ("candidates", "answers"):
                return self
            raise ComesError(
                f"{source} says that its labels are {kind}, not {labels_are}. Complementary labels "
                "and positives are arrays 'complementary' and 'positives' in an .npz file, or "
                "columns of a .csv or .parquet file."
            )
        return self._replace(
            answers=answers_of_marks(self.relevant, labels_are),
            relevant=None,
            from_complementary=labels_are == "complementary",
        )

    def known_features(self) -> Any:
        """Return X as a matrix; raise if there is none."""
        if self.X is None:
            raise ComesError(
                "the data has labels alone, and features are needed too. Name the file that holds "
                "them (--features on the command line), with the same items."
            )
        if isinstance(self.X, Images):
            raise ComesError(
                "the data has images, and a matrix of features is needed. Use ImageClassifier, or "
                "'comes fit', for images; or name a file of features (--features)."
            )
        return self.X

    def known_images(self) -> Images:
        """Return the images; raise if there are none."""
        if not isinstance(self.X, Images):
            raise ComesError(
                "images are needed, and the data has none. Name their folder (--images)."
            )
        return self.X

    def known_answers(self) -> Answers:
        """Return the answers; raise if there are none."""
        if self.answers is None:
            raise ComesError(
                "candidates or complementary labels are needed, and the data has only true "
                "labels. Name the columns of the candidates, draw some ('comes datasets convert "
                "--simulate'), or say with --candidates that the labels of the file are candidates."
            )
        return self.answers

    def known_candidates(self) -> BoolMatrix:
        """Return the candidates; raise if there are none.

        Answers to questions that a model chose are left out: the risks of candidates, and
        estimated rates and priors, need questions drawn at random.
        """
        answers = self.known_answers().without_chosen()
        if answers.kind == "positives":
            raise ComesError(
                "candidates are needed, and the data has ticked labels, which exclude nothing. "
                "Use a method that takes them (likelihood)."
            )
        return answers.candidates

    def known_relevant(self) -> BoolMatrix:
        """Return the true labels as an array; raise if they are not known, or far too many."""
        if self.relevant is None:
            raise ComesError(
                "true labels are needed, and the data has none. Name their columns "
                "(--relevant on the command line), or add an array 'relevant' to the npz file."
            )
        return fill_marks(self.relevant, "the truth", "Take some rows (take), or .relevant.")

    def __str__(self) -> str:
        if self.X is None:
            rows = f"{counted(len(self), 'row')} without features"
        elif isinstance(self.X, Images):
            rows = counted(len(self), "image")
        else:
            what = "column" if is_table(self.X) else "feature"
            rows = f"{counted(len(self), 'row')}, {counted(self.X.shape[1], what)}"
        parts = [rows, counted(len(self.label_names), "label")]
        if self.answers is not None:
            parts.append(_describe_answers(self.answers))
        if self.relevant is not None:
            per_row = count_marks(self.relevant, axis=1)
            parts.append(f"{per_row.mean():.2f} relevant per row")
            n_empty = int((per_row == 0).sum())
            parts.append(f"{counted(n_empty, 'row')} without a relevant label")
        if self.n_left_out:
            parts.append(f"{counted(self.n_left_out, 'row')} of features without labels left out")
        return ", ".join(parts)


def join_features(dataset: Dataset, X: Any, items: Sequence[str] | None) -> Dataset:
    """Return the data set with these features, matched by the names of the items.

    Examples
    --------
    >>> answers = Dataset(None, ["sky"], np.array([[True], [False]]), items=["b", "a"])
    >>> join_features(answers, np.array([[1.0], [2.0]]), ["a", "b"]).X
    array([[2.],
           [1.]])
    """
    if dataset.items is None or items is None:
        if dataset.items is None and items is None and X.shape[0] == len(dataset):
            return replace(dataset, X=X)
        raise ComesError(
            f"features are matched by the names of the items: {len(dataset)} rows of labels "
            f"{'have' if dataset.items is not None else 'lack'} them, {X.shape[0]} rows of "
            f"features {'have' if items is not None else 'lack'} them. Add a column 'item' (an "
            "array 'items' in .npz)."
        )
    check_item_names(items)
    rows = pd.Index(items).get_indexer(pd.Index(dataset.items))
    missing = [name for name, row in zip(dataset.items, rows, strict=True) if row < 0]
    if missing:
        raise ComesError(
            f"{len(missing)} items have labels and no features (first: {missing[0]!r}). Add them "
            "to the file of features, or leave them out of the labels."
        )
    return replace(dataset, X=take_rows(X, rows), n_left_out=len(items) - len(dataset))


def join_rows(first: Dataset, second: Dataset) -> Dataset:
    """Return a data set with the rows of two, which have the same labels and kind of features.

    Examples
    --------
    >>> one = Dataset(np.eye(2), ["sky"], relevant=np.array([[True], [False]]))
    >>> join_rows(one, one).X.shape
    (4, 2)
    """
    if first.label_names != second.label_names:
        other = listed(sorted({*first.label_names} ^ {*second.label_names}))
        raise ComesError(
            "two files must have the same labels in the same order; got others"
            f"{f': {other}' if other else ''}. Read both with the same label_names."
        )
    X, answers = _stack_rows(first.X, second.X), None
    if first.answers is not None and second.answers is not None:
        answers = _stack_answers(first.answers, second.answers)
        if isinstance(X, pd.DataFrame) and answers.index is not None:
            X = X.set_axis(answers.index)
    relevant = _stack_rows(first.relevant, second.relevant)
    return Dataset(X, first.label_names, relevant=relevant, answers=answers)


def _stack_answers(first: Answers, second: Answers) -> Answers:
    """Return the answers about the rows of one after those of another."""
    if first.kind != second.kind:
        raise ComesError(f"two files must have labels of one kind; got {first!r} and {second!r}.")
    index = annotations = chosen = None
    if first.index is not None and second.index is not None:
        index = first.index.append(second.index)
    if first.annotations is not None and second.annotations is not None:
        one, other = first.annotations, second.annotations
        names = [np.asarray(part.people, str)[part.person] for part in (one, other)]
        people, person = np.unique(np.concatenate(names), return_inverse=True)
        annotations = LongAnswers(
            np.concatenate([one.row, other.row + len(first)]),
            np.concatenate([one.label, other.label]),
            person,
            np.concatenate([one.code, other.code]),
            tuple(map(str, people)),
        )
    if first.chosen is not None or second.chosen is not None:
        marks = [np.zeros(a.shape, bool) if a.chosen is None else a.chosen for a in (first, second)]
        chosen = np.concatenate(marks)
    if chosen is None and (first.is_sparse or second.is_sparse):
        states = sparse.vstack([first.states, second.states], "csr")
    else:
        states = np.concatenate([first.codes, second.codes])
    return Answers.from_codes(
        states, first.kind, first.label_names, annotations=annotations, chosen=chosen, index=index
    )


def _stack_rows(first: Any, second: Any) -> Any:
    """Return the rows of one part after those of another; None unless both have it."""
    if first is None or second is None:
        return None
    if isinstance(first, Images):
        return Images(first.sources + second.sources, first.names + second.names)
    if isinstance(first, pd.DataFrame) and isinstance(second, pd.DataFrame):
        return pd.concat([first, match_by_name(second, list(first.columns))], ignore_index=True)
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], "csr")
    return np.concatenate([first, second])


def join_images(dataset: Dataset, source: str | Path, skip_broken: bool = False) -> Dataset:
    """Return the data set with the images of a folder or zip that its items name."""
    if dataset.items is None:
        raise ComesError(
            "images are found by the names of the items, and the data has none. Name them in a "
            "column 'image'."
        )
    images, kept = open_images(source, dataset.items, skip_broken)
    return replace(dataset if len(kept) == len(dataset) else dataset.take(kept), X=images)


def _count_rows(parts: Sequence[Any]) -> int:
    """Return the number of rows of the first part that is there."""
    first = next((part for part in parts if part is not None), None)
    if first is None:
        raise ComesError("a data set needs features, candidates or true labels; got none.")
    return int(first.shape[0])


def check_size(n: int, q: int) -> None:
    """Raise if there are no rows or no labels."""
    if not (n and q):
        raise ComesError(
            f"a data set needs at least one row and one label; got {n} rows and {q} labels."
        )


def _check_shape(matrix: Any, name: str, shape: tuple[int, int]) -> None:
    """Raise unless a matrix of labels, where there is one, has this shape."""
    if matrix is not None and matrix.shape != shape:
        raise ComesError(
            f"there are {shape[0]} rows and {shape[1]} labels, so {name} must have shape {shape}; "
            f"got {matrix.shape}."
        )


def check_none_excluded(
    relevant: Marks, answers: Answers, label_names: Sequence[str], first_row: int = 0
) -> None:
    """Raise if a relevant label is excluded; nothing that is sparse becomes dense."""
    row, label = (marks_of_state(answers, State.NO) * relevant).nonzero()
    if len(row):
        order = np.lexsort((label, row))
        raise outside_candidates_error(row[order] + first_row, label[order], label_names)


def check_item_names(items: Sequence[str], first_row: int = 0) -> None:
    """Raise if the name of an item occurs more than once."""
    if len(set(items)) < len(items):
        row = int(pd.Series(items).duplicated().to_numpy().argmax())
        raise ComesError(
            f"the names of items must differ; {items[row]!r} occurs again at row "
            f"{row + first_row}. Keep one row per item."
        )


def _describe_answers(answers: Answers) -> str:
    n, q = answers.shape
    if answers.kind == "candidates":
        return f"{(n * q - answers.count_state(State.NO).sum()) / n:.2f} candidates per row"
    if answers.kind == "positives":
        return f"{answers.count_state(State.YES).sum() / n:.2f} ticked labels per row"
    count = answers.count()[["asked", "no", "yes", "maybe"]].sum()
    text = f"{count['asked']} of {n * q} pairs asked: "
    text += f"{count['no']} no, {count['yes']} yes, {count['maybe']} maybe"
    if answers.annotations is not None:
        text += f"; {len(answers.annotations.people)} people"
    return text


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of features or images, by number; None of None."""
    if X is None:
        return None
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def is_table(X: Any) -> bool:
    """Return whether X is a table that is more than complete numbers."""
    return isinstance(X, pd.DataFrame) and needs_encoding(X)


def check_features(X: Any, first_row: int = 0) -> None:
    """Raise unless X has a row and a column, and is a matrix of finite numbers or a table."""
    if len(X.shape) != 2 or 0 in X.shape:
        raise ComesError(
            f"features must be a matrix with at least one row and one column; got shape {X.shape}."
        )
    if is_table(X):
        return  # a classifier encodes it, and knows what is wrong with a column
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if values.dtype.kind not in "buif":
        raise ComesError(f"features must be real numbers; got {values.dtype}.")
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    if sparse.issparse(X):
        place = f"in row {int(np.searchsorted(X.indptr, np.argmax(wrong), side='right')) - 1}"
    else:
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        shown = repr(str(X.columns[column])) if isinstance(X, pd.DataFrame) else column
        place = f"at row {row + first_row}, column {shown}"
    raise ComesError(
        f"features must be finite; {int(wrong.sum())} entries are empty, NaN or infinite, the "
        f"first {place}. Fill them in (a median, say) or drop those rows."
    )


def stays_sparse(n_marked: int, shape: tuple[int, int]) -> bool:
    """Return whether so many marked pairs are stored as a sparse matrix of this shape."""
    n_pairs = shape[0] * shape[1]
    return n_pairs > MANY_PAIRS and n_marked <= FEW * n_pairs


def mark_places(row: Places, label: Places, shape: tuple[int, int]) -> Marks:
    """Return the marks at these pairs, sparse if they are few among many."""
    if not stays_sparse(len(row), shape):
        marked = np.zeros(shape, dtype=bool)
        marked[row, label] = True
        return marked
    marks = sparse.csr_array((np.ones(len(row), dtype=bool), (row, label)), shape=shape)
    marks.sum_duplicates()
    return marks


def marks_of_sets(
    sets: Collection[Iterable[str]], label_names: Sequence[str] | None = None
) -> tuple[Marks, list[str]]:
    """Return the marks of label sets, and the names of the labels, as `from_sets` does."""
    row, label, names = set_members(sets, label_names)
    return mark_places(row, label, (len(sets), len(names))), names


def answers_of_marks(
    marked: Marks, labels_are: LabelsAre, names: Sequence[str] | None = None
) -> Answers:
    """Return answers from marks of candidates, complementary or ticked labels."""
    if labels_are == "positives":
        return Answers.from_positives(marked, names)
    if labels_are == "complementary":
        if sparse.issparse(marked):
            return Answers(no=marked, label_names=names)
        return Answers.from_candidates(~marked, names)
    advice = "Read them as complementary or ticked labels (labels_are)."
    possible = fill_marks(marked, "candidates, which exclude all other labels,", advice)
    return Answers.from_candidates(possible, names)


def fill_marks(marked: Marks, what: str, advice: str) -> BoolMatrix:
    """Return marks as an array; refuse what memory should not be spent on."""
    if not sparse.issparse(marked):
        return np.asarray(marked)
    n, q = marked.shape
    if n * q > MOST_DENSE:
        raise ComesError(
            f"{what} would be a matrix of {n} rows and {q} labels, {n * q / 2**30:.0f} GB. {advice}"
        )
    return np.asarray(marked.toarray())


def marks_of_state(answers: Answers, state: State) -> Marks:
    """Return where answers have a state, sparse if they are."""
    if answers.is_sparse:
        return sparse.csr_array(answers.states == state, dtype=bool)
    return np.asarray(answers.codes == state)


def count_marks(marked: Marks, axis: int) -> npt.NDArray[np.int64]:
    """Return how many pairs are marked in each column (axis 0) or row (axis 1)."""
    return np.asarray(marked.sum(axis=axis, dtype=np.int64)).ravel()


def find_sets(marked: Marks, names: Sequence[str]) -> list[list[str]]:
    """Return the names of the marked labels of every row."""
    marks = sparse.csr_array(marked)
    marks.sort_indices()
    members = np.asarray(names, dtype=object)[marks.indices]
    return [list(part) for part in np.split(members, marks.indptr[1:-1])]
