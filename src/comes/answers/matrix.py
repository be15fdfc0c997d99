"""`Answers`: the answers about pairs of item and label, dense or sparse.

Dense answers are an int8 matrix with the `State` of every pair. Sparse answers are an int8 CSR
matrix with the `State` of every pair that has an answer, in sorted order: ten answers about each of
a million rows take 54 MB, whatever the number of labels, where a dense matrix with 100000 labels
would take 100 GB.
"""

import copy
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from comes.answers.annotators import Codes, LongAnswers, State
from comes.answers.convert import (
    BoolMatrix,
    as_candidates,
    as_indicators,
    check_indices,
    check_names,
    check_paired,
    from_sets,
    match_names,
    refuse_huge,
    row_index,
    show_label,
)
from comes.errors import ComesError, listed

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["answers", "candidates", "positives"]  # what a pair without an answer means
MASKS = {"no": State.NO, "yes": State.YES, "maybe": State.MAYBE}
MASK_ADVICE = "1 means that somebody gave this answer; a pair without this answer is 0."
MOST_INT32 = np.iinfo(np.int32).max


class _Cell(int):
    """A state that cannot be encoded as a class: a fit would take the classes for candidates."""

    def __hash__(self) -> int:
        raise ComesError(
            "answers cannot be made classes, as scikit-learn's LabelEncoder and "
            "cross_val_predict(method='predict_proba') want; write the loop: for train, test in "
            "KFold(5).split(X): probabilities[test] = clone(classifier).fit(X[train], "
            "answers[train]).predict_proba(X[test])."
        )


CELLS = np.array([_Cell(state) for state in sorted(State)], dtype=object)


class Answers:
    """Answers about pairs of item and label: no, yes, maybe, or nobody was asked.

    Only ``no`` given are candidates: what is not excluded is still possible, and who was asked is
    not known. As soon as ``yes`` or ``maybe`` is given, a pair without an answer was not asked.
    Ticked tags, where nobody says no, are `Answers.from_positives`.

    Parameters
    ----------
    no, yes, maybe : array, sparse matrix, DataFrame (n_samples, n_labels), or list of sets of names
        1 where somebody gave this answer: surely irrelevant, surely relevant, cannot tell. Columns
        of DataFrames and names in sets are matched by name. A pair may have one answer. Where all
        are sparse they stay so, unless questions are ``chosen``: memory grows with the answers.
    label_names : sequence of str, optional
        For arrays; for sets, all labels in the order wanted.
    chosen : as no, optional
        1 where a model chose the question. Such answers count in the likelihood, but not in
        estimated rates and priors, nor in the sums of COMES, which need questions drawn at random.

    Attributes
    ----------
    codes : int8 array of shape (n_samples, n_labels)
        The `State` of every pair; of sparse answers made when it is asked for, and refused where it
        would be huge. The masks below are made of it.
    states : int8 CSR matrix of shape (n_samples, n_labels)
        The `State` of every pair with an answer.
    is_sparse : bool
        Whether only the pairs with an answer are stored.
    kind : {"answers", "candidates", "positives"}
        What a pair without an answer means: not asked; still possible; not ticked.
    label_names : list of str, or None
    index : pandas Index, or None
        That of the DataFrames they were made from. Features in a DataFrame with another index are
        refused.
    annotations : LongAnswers, or None
        Who answered what, where several people may answer about one pair.
    chosen : bool array of shape (n_samples, n_labels), or None

    Examples
    --------
    >>> answers = Answers(no=[[1, 0], [0, 0]], yes=[[0, 1], [0, 0]])
    >>> answers
    Answers about 2 rows and 2 labels: 2 of 4 pairs asked, 1 no, 1 yes, 0 maybe
    >>> answers.candidates
    array([[False,  True],
           [ True,  True]])
    >>> Answers(no=[[1, 0], [0, 0]]).asked is None  # who was asked is not known
    True
    """

    def __init__(
        self,
        no: Any = None,
        yes: Any = None,
        maybe: Any = None,
        *,
        label_names: Sequence[str] | None = None,
        chosen: Any = None,
    ) -> None:
        if no is None:
            raise ComesError("Answers needs no=; where only yes can be said, use from_positives.")
        masks = {"no": no, "yes": yes, "maybe": maybe, "chosen": chosen}
        masks = {name: values for name, values in masks.items() if values is not None}
        states, marked, names = _read_masks(masks, label_names)
        kind: Kind = "answers" if {"yes", "maybe"} & set(masks) else "candidates"
        indexes = (row_index(values) for values in masks.values())
        index = next((index for index in indexes if index is not None), None)
        self._set(states, kind, names, chosen=marked, index=index)

    def _set(
        self,
        stored: Any,  # states of all pairs, int8 (n, q), or a CSR matrix of those with an answer
        kind: Kind,
        label_names: list[str] | None,
        *,
        annotations: LongAnswers | None = None,
        chosen: BoolMatrix | None = None,
        index: Any = None,
    ) -> "Answers":
        """Set all attributes."""
        if chosen is not None and kind != "answers":
            raise ComesError(
                "chosen marks questions that a model chose, so it must be known who was asked; "
                f"got {kind}. Give yes= or maybe= too."
            )
        self._stored, self.kind, self.label_names, self.index = stored, kind, label_names, index
        self.annotations, self.chosen = annotations, chosen
        return self

    @classmethod
    def from_codes(
        cls,
        codes: Any,
        kind: Kind = "answers",
        label_names: Sequence[str] | None = None,
        *,
        annotations: LongAnswers | None = None,
        chosen: BoolMatrix | None = None,
        index: Any = None,
    ) -> "Answers":
        """Return answers from `State` numbers, an array or sparse matrix (n_samples, n_labels).

        Examples
        --------
        >>> Answers.from_codes([[0, 1, 2, 3]])
        Answers about 1 rows and 4 labels: 3 of 4 pairs asked, 1 no, 1 yes, 1 maybe
        """
        states = _as_states(codes, "codes", State.MAYBE, label_names)
        names = None if label_names is None else check_names(label_names, states.shape[1])
        return cls.__new__(cls)._set(
            states, kind, names, annotations=annotations, chosen=chosen, index=index
        )

    @classmethod
    def from_candidates(
        cls, candidates: Any, label_names: Sequence[str] | None = None
    ) -> "Answers":
        """Return candidates, (n_samples, n_labels), as answers: what is not possible is "no".

        Examples
        --------
        >>> Answers.from_candidates([[1, 0], [1, 1]])
        Candidates of 2 rows and 2 labels: 1 of 4 pairs excluded; who was asked is not known
        """
        names = _find_names([candidates], label_names)
        codes = ~as_candidates(candidates) * np.int8(State.NO)
        return cls.from_codes(codes, "candidates", names, index=row_index(candidates))

    @classmethod
    def from_positives(cls, yes: Any, label_names: Sequence[str] | None = None) -> "Answers":
        """Return ticked tags as answers: a tag that is not ticked may still be relevant.

        Parameters
        ----------
        yes : array, sparse matrix, DataFrame (n_samples, n_labels), or list of sets of names
        label_names : sequence of str, optional

        Examples
        --------
        >>> Answers.from_positives([{"sea", "sky"}, {"sky"}])
        Ticked labels of 2 rows and 2 labels: 3 of 4 pairs ticked; nobody says no
        """
        states, _, names = _read_masks({"yes": yes}, label_names)
        return cls.__new__(cls)._set(states, "positives", names, index=row_index(yes))

    @classmethod
    def from_long(
        cls,
        annotations: LongAnswers,
        shape: tuple[int, int],
        label_names: Sequence[str] | None = None,
        *,
        chosen: BoolMatrix | None = None,
        index: Any = None,
    ) -> "Answers":
        """Return the answers of several people; in the matrix a disagreement is maybe.

        Examples
        --------
        >>> people = ["ann", "bob", "ann"]
        >>> annotations = LongAnswers.read([0, 0, 1], [0, 0, 1], ["no", "yes", "no"], people)
        >>> Answers.from_long(annotations, (2, 2))
        Answers about 2 rows and 2 labels: 2 of 4 pairs asked, 1 no, 0 yes, 1 maybe; 2 people
        """
        row, label = annotations.row, annotations.label
        inside = (row >= 0) & (row < shape[0]) & (label >= 0) & (label < shape[1])
        if not inside.all():
            first = int(np.argmin(inside))
            raise ComesError(
                f"every answer must be about one of {shape[0]} rows and {shape[1]} labels; got "
                f"row {row[first]}, label {label[first]}."
            )
        return cls.from_codes(
            annotations.combine(shape),
            label_names=label_names,
            annotations=annotations,
            chosen=chosen,
            index=index,
        )

    def __getitem__(self, rows: Any) -> "Answers":
        """Return the answers about some rows: a slice, numbers, or a bool mask."""
        if isinstance(rows, tuple):  # as scikit-learn writes it: answers[rows, ...]
            if len(rows) != 2 or rows[1] is not Ellipsis:
                raise ComesError(
                    "answers are indexed by rows; take labels with select_labels(names)."
                )
            rows = rows[0]
        numbers = np.arange(len(self))[rows]
        if numbers.ndim == 0:
            raise ComesError(
                f"answers are indexed by several rows; got {rows!r}. Write [[{rows}]]."
            )
        if numbers.size == 0:
            raise ComesError("answers must keep at least one row; got none.")
        long = self.annotations
        return self._replace(
            _stored=self._stored[numbers],
            index=None if self.index is None else self.index[numbers],
            annotations=None if long is None else long.take(numbers, len(self)),
            chosen=None if self.chosen is None else self.chosen[numbers],
        )

    def select_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers about some labels, in the order of these names."""
        names = self._names_or_numbers()
        position = {name: number for number, name in enumerate(names)}
        missing = [name for name in label_names if name not in position]
        if missing:
            raise ComesError(
                f"the answers have no label {missing[0]!r}; they have {listed(names)}."
            )
        return self._take_labels([position[name] for name in label_names], label_names)

    def align_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers with their labels matched to these names, and in their order."""
        if self.label_names is None:
            return self.rename_labels(label_names)
        return self._take_labels(match_names(self.label_names, label_names), label_names)

    def rename_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers with these label names in place of theirs."""
        return self._replace(label_names=check_names(label_names, self.shape[1]))

    def without_chosen(self) -> "Answers":
        """Return the answers without those to questions that a model chose."""
        if self.chosen is None or not self.chosen.any():
            return self
        stored, long = (
            np.where(self.chosen, np.int8(State.NOT_ASKED), self._stored),
            self.annotations,
        )
        if long is not None:
            long = long.select(~self.chosen[long.row, long.label])
        return self._replace(_stored=stored, annotations=long, chosen=None)

    def without_maybe(self) -> "Answers":
        """Return the answers with every "maybe" taken for not asked."""
        if self.kind != "answers":
            return self
        if self.annotations is not None:
            sure = self.annotations.select(self.annotations.code != State.MAYBE)
            return self._replace(_stored=sure.combine(self.shape), annotations=sure)
        if not self.is_sparse:
            is_maybe = self._stored == State.MAYBE
            return self._replace(_stored=np.where(is_maybe, np.int8(State.NOT_ASKED), self._stored))
        states = self._stored.copy()
        states.data[states.data == State.MAYBE] = State.NOT_ASKED
        states.eliminate_zeros()
        return self._replace(_stored=states)

    def _take_labels(self, positions: Sequence[int], label_names: Sequence[str]) -> "Answers":
        """Return the answers about the labels at these positions, each at most once."""
        labels, q = np.asarray(positions, dtype=np.int64), self.shape[1]
        names = check_names(label_names, len(labels))
        if np.array_equal(labels, np.arange(q)):
            return self._replace(label_names=names)
        stored, long = self._stored[:, labels], self.annotations
        if self.is_sparse:
            stored.sort_indices()
        return self._replace(
            _stored=stored,
            label_names=names,
            annotations=None if long is None else long.take_labels(labels, q),
            chosen=None if self.chosen is None else self.chosen[:, labels],
        )

    def _replace(self, **changes: Any) -> "Answers":
        """Return a copy with some attributes replaced."""
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    @property
    def is_sparse(self) -> bool:
        """Whether only the pairs with an answer are stored."""
        return is_sparse(self._stored)

    @property
    def codes(self) -> Codes:
        """The `State` of every pair, (n_samples, n_labels)."""
        if not self.is_sparse:
            return np.asarray(self._stored)
        refuse_huge(self.shape, "Take answers.states, or some rows: answers[:1000].")
        return np.asarray(self._stored.toarray())

    @property
    def states(self) -> Any:
        """The `State` of every pair with an answer, an int8 CSR matrix (n_samples, n_labels)."""
        from scipy import sparse

        return self._stored if self.is_sparse else sparse.csr_array(self._stored)

    @property
    def excluded(self) -> BoolMatrix:
        """True where somebody said no: surely irrelevant."""
        return np.asarray(self.codes == State.NO)

    @property
    def candidates(self) -> BoolMatrix:
        """True where the label is still possible."""
        return np.asarray(self.codes != State.NO)

    @property
    def confirmed(self) -> BoolMatrix:
        """True where somebody said yes: surely relevant."""
        return np.asarray(self.codes == State.YES)

    @property
    def doubtful(self) -> BoolMatrix:
        """True where somebody was asked and could not tell, or people disagree."""
        return np.asarray(self.codes == State.MAYBE)

    @property
    def asked(self) -> BoolMatrix | None:
        """True where somebody answered; None if it is not known who was asked."""
        return np.asarray(self.codes != State.NOT_ASKED) if self.kind == "answers" else None

    @property
    def filled_codes(self) -> Codes:
        """The `State` of every pair, as the likelihood uses it, (n_samples, n_labels).

        In candidates and ticked labels a pair without an answer is MAYBE: it was not excluded, or
        not ticked. In answers it stays NOT_ASKED.
        """
        if self.kind == "answers":
            return self.codes
        return np.where(self.codes == State.NOT_ASKED, np.int8(State.MAYBE), self.codes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        n, q = self._stored.shape
        return n, q

    @property
    def ndim(self) -> int:
        """Two: rows and labels."""
        return 2

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the `State` numbers; without a dtype as objects that cannot be made classes."""
        if dtype is None or np.dtype(dtype).kind == "O":
            return CELLS[self.codes]
        return np.array(self.codes, dtype=dtype)

    def has(self, state: State) -> bool:
        """Return whether any pair is in a state; not for NOT_ASKED."""
        stored = self._stored.data if self.is_sparse else self._stored
        return bool((stored == state).any())

    def count_state(self, state: State) -> npt.NDArray[np.int64]:
        """Return how many pairs of each label are in a state, (n_labels,); not for NOT_ASKED."""
        if self.is_sparse:
            labels = self._stored.indices[self._stored.data == state]
            return np.bincount(labels, minlength=self.shape[1])
        return np.asarray((self._stored == state).sum(axis=0))

    def count(self) -> "pd.DataFrame":
        """Return how many pairs were asked, no, yes and maybe, by label.

        Examples
        --------
        >>> from comes import Answers
        >>> Answers(no=[[1, 0]], yes=[[0, 1]], label_names=["sea", "sky"]).count()
          label  asked  no  yes  maybe
        0   sea      1   1    0      0
        1   sky      1   0    1      0
        """
        import pandas as pd

        counts = {name: self.count_state(state) for name, state in MASKS.items()}
        columns = {"label": self._names_or_numbers(), "asked": sum(counts.values())}
        return pd.DataFrame(columns | counts)

    def _names_or_numbers(self) -> list[str]:
        """Return the label names, or their numbers as names."""
        return self.label_names or [str(number) for number in range(self.shape[1])]

    def __repr__(self) -> str:
        n, q = self.shape
        no, yes, maybe = (int(self.count_state(state).sum()) for state in MASKS.values())
        if self.kind == "candidates":
            counts = f"{no} of {n * q} pairs excluded; who was asked is not known"
            return f"Candidates of {n} rows and {q} labels: {counts}"
        if self.kind == "positives":
            counts = f"{yes} of {n * q} pairs ticked; nobody says no"
            return f"Ticked labels of {n} rows and {q} labels: {counts}"
        counts = f"{no + yes + maybe} of {n * q} pairs asked, {no} no, {yes} yes, {maybe} maybe"
        if self.annotations is not None:
            counts += f"; {len(self.annotations.people)} people"
        return f"Answers about {n} rows and {q} labels: {counts}"


def is_sparse(values: Any) -> bool:
    """Return whether values are a sparse matrix of scipy's."""
    return hasattr(values, "tocsr") and hasattr(values, "nnz")


def _read_masks(
    masks: dict[str, Any], label_names: Sequence[str] | None
) -> tuple[Any, BoolMatrix | None, list[str] | None]:
    """Return the state of every pair, the mask ``chosen``, and the names of the labels.

    States are an int8 CSR matrix if all masks are sparse, and there is no ``chosen``.
    """
    names: Sequence[str] | None
    matrices: dict[str, Any] = {}
    if any(map(_is_sets, masks.values())):
        if not all(_is_sets(values) or _is_blank(values) for values in masks.values()):
            raise ComesError("no, yes and maybe must all be matrices or all be sets; got both.")
        occurring = {name for rows in masks.values() for row in rows for name in row}
        names = sorted(occurring) if label_names is None else label_names
        matrices = {name: from_sets(rows, names)[0] for name, rows in masks.items()}
    else:
        check_paired(**masks)
        names = _find_names(masks.values(), label_names)
        stay_sparse = "chosen" not in masks and all(map(is_sparse, masks.values()))
        for name, values in masks.items():
            if stay_sparse:
                matrices[name] = _as_states(values, name, State.NO, names)
            else:
                matrices[name] = as_indicators(values, name, MASK_ADVICE)
            if names is not None and hasattr(values, "columns"):
                columns = match_names([str(column) for column in values.columns], names)
                matrices[name] = matrices[name][:, columns]
    first, *_ = matrices
    shape = matrices[first].shape
    for name, matrix in matrices.items():
        if matrix.shape != shape:
            raise ComesError(
                f"{first} and {name} must have one shape (n, q); got {shape} and {matrix.shape}."
            )
    checked = None if names is None else check_names(names, shape[1])
    chosen = matrices.pop("chosen", None)
    return _combine(matrices, checked), chosen, checked


def _is_sets(values: Any) -> bool:
    """Return whether values are a list of sets or lists of names."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not len(values):
        return False
    if any(isinstance(row, set | frozenset) for row in values):
        return True
    named = [row for row in values if isinstance(row, Sequence) and len(row)]
    return bool(named) and all(isinstance(name, str) for name in named[0])


def _is_blank(values: Any) -> bool:
    """Return whether values are a list of empty lists: sets, if other masks are."""
    return isinstance(values, Sequence) and all(row == [] for row in values)


def _find_names(masks: Iterable[Any], label_names: Sequence[str] | None) -> list[str] | None:
    """Return the label names, else the columns of the first DataFrame."""
    frames = [values for values in masks if hasattr(values, "columns")]
    if frames and label_names is not None:
        raise ComesError("label_names are for arrays; a DataFrame names its columns.")
    names = frames[0].columns if frames else label_names
    return None if names is None else [str(name) for name in names]


def _as_states(values: Any, name: str, highest: State, names: Sequence[str] | None) -> Any:
    """Return numbers from 0 to highest as int8: an array, or, if sparse, CSR without zeros."""
    matrix: Any = values if is_sparse(values) else np.asarray(values)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ComesError(f"{name} must be a matrix with rows and labels; got {matrix.shape}.")
    if is_sparse(matrix):
        check_indices(matrix, name)
        matrix = _as_sorted_rows(matrix)
    numbers = matrix.data if is_sparse(matrix) else matrix
    if numbers.dtype.kind in "biu":  # without the copies that isin makes
        wrong = (numbers < 0) | (numbers > highest)
    else:
        wrong = ~np.isin(numbers, np.arange(highest + 1))
    if wrong.any():
        first = wrong.argmax()
        if is_sparse(matrix):
            row, label = (int(numbers[first]) for numbers in matrix.nonzero())
        else:
            row, label = (int(number) for number in np.unravel_index(first, matrix.shape))
        got = f"got {matrix[row, label]} at row {row}, label {show_label(label, names)}."
        if highest == State.MAYBE:
            raise ComesError(f"{name} must be 0 not asked, 1 no, 2 yes or 3 maybe; {got}")
        raise ComesError(f"{name} must be 0 or 1; {got} {MASK_ADVICE}")
    return matrix.astype(np.int8, copy=not is_sparse(matrix))


def _as_sorted_rows(matrix: Any) -> Any:
    """Return a sparse matrix as CSR with sorted labels, without zeros, with short indices."""
    from scipy import sparse

    rows: Any = sparse.csr_array(matrix)
    if not (rows.has_canonical_format and rows.data.all()):
        rows = rows.copy()  # the arrays may be the user's
        rows.sum_duplicates()
    if rows.nnz < matrix.nnz:
        raise ComesError(
            f"a pair may have one state; {matrix.nnz - rows.nnz} are stored twice. Keep one, or "
            "say who answered (comes.answers.LongAnswers)."
        )
    if not rows.data.all():
        rows.eliminate_zeros()
    if max(rows.nnz, *rows.shape) <= MOST_INT32:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows


def _combine(masks: dict[str, Any], names: list[str] | None) -> Any:
    """Return the state of every pair, dense or sparse as the masks; raise if a pair has two."""
    states = sum(mask * np.int8(MASKS[name]) for name, mask in masks.items())
    n_pairs, *n_answers = (
        matrix.nnz if is_sparse(matrix) else np.count_nonzero(matrix)
        for matrix in (states, *masks.values())
    )
    if n_pairs < sum(n_answers):
        for one, other in combinations(masks, 2):
            rows, labels = (masks[one] * masks[other]).nonzero()
            if len(rows):
                raise ComesError(
                    f"{len(rows)} pairs have two answers; row {rows[0]}, label "
                    f"{show_label(labels[0], names)} has {one!r} and {other!r}. Keep one, or say "
                    "who answered (comes.answers.LongAnswers)."
                )
    return states
