"""`Answers`: what people said about pairs of item and label."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.answer_views import AnswerViews, Kind
from comes.answers.indicators import BoolMatrix, as_candidates
from comes.answers.label_names import match_names
from comes.answers.masks import (
    check_count,
    combine_masks,
    find_first,
    find_names,
    read_masks,
    show_label,
)
from comes.answers.people import LongAnswers
from comes.answers.sparse_states import (
    as_states,
    combine_sparse_masks,
    is_sparse,
    keep_states,
)
from comes.answers.states import State
from comes.errors import ComesError, listed


class Answers(AnswerViews):
    """What was said about pairs of item and label: no, yes, maybe, or nobody was asked.

    Only ``no`` given are candidates: what is not excluded is still possible, and who was asked is
    not known. As soon as ``yes`` or ``maybe`` is given, a pair without an answer was not asked.
    Ticked tags, where nobody says no, are `Answers.from_positives`.

    Parameters
    ----------
    no, yes, maybe : array, sparse matrix, DataFrame (n_samples, n_labels), or list of sets of names
        1 where somebody said so: surely irrelevant, surely relevant, cannot tell. Columns of
        DataFrames and names in sets are matched by name. A pair may have one answer. Where all are
        sparse they stay so, unless questions are ``chosen``: memory grows with what was said.
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
    annotations : LongAnswers, or None
        Who said what, where several people may answer about one pair.
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
        given = {"no": no, "yes": yes, "maybe": maybe, "chosen": chosen}
        given = {name: values for name, values in given.items() if values is not None}
        kind: Kind = "answers" if {"yes", "maybe"} & set(given) else "candidates"
        if chosen is None and all(map(is_sparse, given.values())):
            states, names = combine_sparse_masks(given, label_names)
            self._set(states, kind, names)
            return
        matrices, names = read_masks(given, label_names)
        marked = matrices.pop("chosen", None)
        self._set(combine_masks(matrices, names), kind, names, chosen=marked)

    def _set(
        self,
        stored: Any,  # states of all pairs, int8 (n, q), or a CSR matrix of those with an answer
        kind: Kind,
        label_names: list[str] | None,
        *,
        annotations: LongAnswers | None = None,
        chosen: BoolMatrix | None = None,
    ) -> None:
        """Fill in what an object of this class holds."""
        self._stored, self.kind, self.label_names = stored, kind, label_names
        self.annotations, self.chosen = annotations, chosen
        if chosen is not None and kind != "answers":
            raise ComesError(
                "chosen marks questions that a model chose, so it must be known who was asked; "
                f"got {kind}. Give yes= or maybe= too."
            )

    @classmethod
    def from_codes(
        cls,
        codes: npt.ArrayLike,
        kind: Kind = "answers",
        label_names: Sequence[str] | None = None,
        *,
        annotations: LongAnswers | None = None,
        chosen: BoolMatrix | None = None,
    ) -> "Answers":
        """Return answers from a matrix of `State` numbers, (n_samples, n_labels).

        Examples
        --------
        >>> Answers.from_codes([[0, 1, 2, 3]])
        Answers about 1 rows and 4 labels: 3 of 4 pairs asked, 1 no, 1 yes, 1 maybe
        """
        numbers = np.asarray(codes)
        if numbers.ndim != 2 or 0 in numbers.shape:
            raise ComesError(f"codes must be a matrix with rows and labels; got {numbers.shape}.")
        names = None if label_names is None else check_count(label_names, numbers.shape[1])
        if numbers.dtype.kind in "iu":  # without the copies that isin makes
            wrong = (numbers < State.NOT_ASKED) | (numbers > State.MAYBE)
        else:
            wrong = ~np.isin(numbers, list(State))
        if wrong.any():
            row, label = find_first(wrong)
            raise ComesError(
                "codes must be 0 not asked, 1 no, 2 yes or 3 maybe; got "
                f"{numbers[row, label]} at row {row}, label {show_label(label, names)}."
            )
        made = cls.__new__(cls)
        made._set(numbers.astype(np.int8), kind, names, annotations=annotations, chosen=chosen)
        return made

    @classmethod
    def from_states(
        cls, states: Any, kind: Kind = "answers", label_names: Sequence[str] | None = None
    ) -> "Answers":
        """Return sparse answers from a sparse matrix of `State` numbers, (n_samples, n_labels).

        Examples
        --------
        >>> from scipy import sparse
        >>> Answers.from_states(sparse.csr_array([[0, 1, 0], [2, 0, 0]]))
        Answers about 2 rows and 3 labels: 2 of 6 pairs asked, 1 no, 1 yes, 0 maybe
        """
        checked = as_states(states, label_names)
        names = None if label_names is None else check_count(label_names, checked.shape[1])
        made = cls.__new__(cls)
        made._set(checked, kind, names)
        return made

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
        names = find_names({"candidates": candidates}, label_names)
        possible, excluded = np.int8(State.NOT_ASKED), np.int8(State.NO)
        codes = np.where(as_candidates(candidates), possible, excluded)
        return cls.from_codes(codes, "candidates", names)

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
        if is_sparse(yes):
            states, names = combine_sparse_masks({"yes": yes}, label_names)
            return cls.from_states(states, "positives", names)
        matrices, names = read_masks({"yes": yes}, label_names)
        return cls.from_codes(combine_masks(matrices, names), "positives", names)

    @classmethod
    def from_long(
        cls,
        said: LongAnswers,
        shape: tuple[int, int],
        label_names: Sequence[str] | None = None,
        *,
        chosen: BoolMatrix | None = None,
    ) -> "Answers":
        """Return the answers of several people; in the matrix a disagreement is maybe.

        Examples
        --------
        >>> people = ["ann", "bob", "ann"]
        >>> said = LongAnswers.read([0, 0, 1], [0, 0, 1], ["no", "yes", "no"], people)
        >>> Answers.from_long(said, (2, 2))
        Answers about 2 rows and 2 labels: 2 of 4 pairs asked, 1 no, 0 yes, 1 maybe; 2 people
        """
        inside = (said.row >= 0) & (said.row < shape[0])
        inside &= (said.label >= 0) & (said.label < shape[1])
        if not inside.all():
            first = int(np.argmin(inside))
            raise ComesError(
                f"every answer must be about one of {shape[0]} rows and {shape[1]} labels; got "
                f"row {said.row[first]}, label {said.label[first]}."
            )
        return cls.from_codes(
            said.combine(shape), "answers", label_names, annotations=said, chosen=chosen
        )

    def __getitem__(self, rows: Any) -> "Answers":
        """Return the answers about some rows: a slice, numbers, or a bool mask."""
        if isinstance(rows, tuple):  # as scikit-learn writes it: answers[rows, ...]
            if len(rows) != 2 or rows[1] is not Ellipsis:
                raise ComesError(
                    "answers are indexed by rows; take labels with select_labels(names)."
                )
            rows = rows[0]
        index = np.arange(len(self))[rows]
        if index.ndim == 0:
            raise ComesError(
                f"answers are indexed by several rows; got {rows!r}. Write [[{rows}]]."
            )
        if self.is_sparse:
            return self._with(self._stored[index])
        said = None if self.annotations is None else self.annotations.take(index, len(self))
        chosen = None if self.chosen is None else self.chosen[index]
        codes = self.codes[index]
        return Answers.from_codes(
            codes, self.kind, self.label_names, annotations=said, chosen=chosen
        )

    def select_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers about some labels, in the order of these names."""
        own = self.label_names or [str(number) for number in range(self.shape[1])]
        place = {name: number for number, name in enumerate(own)}
        missing = [name for name in label_names if name not in place]
        if missing:
            raise ComesError(f"the answers have no label {missing[0]!r}; they have {listed(own)}.")
        return self._take_labels([place[name] for name in label_names], list(label_names))

    def align_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers with their labels matched to these names, and in their order."""
        if self.label_names is None:
            return self.rename_labels(label_names)
        return self._take_labels(match_names(self.label_names, label_names), list(label_names))

    def rename_labels(self, label_names: Sequence[str]) -> "Answers":
        """Return the answers with these names of labels, in place of their own."""
        return self._take_labels(range(self.shape[1]), check_count(label_names, self.shape[1]))

    def _take_labels(self, places: Sequence[int], names: list[str]) -> "Answers":
        """Return the answers about the labels at these places, each at most once."""
        index = np.asarray(places, dtype=np.int64)
        if self.is_sparse:
            is_same = len(index) == self.shape[1] and (index[:-1] < index[1:]).all()
            return self._with(self._stored if is_same else self._stored[:, index], names)
        said = (
            None if self.annotations is None else self.annotations.take_labels(index, self.shape[1])
        )
        chosen = None if self.chosen is None else self.chosen[:, index]
        return Answers.from_codes(
            self.codes[:, index], self.kind, names, annotations=said, chosen=chosen
        )

    def _with(self, states: Any, label_names: list[str] | None = None) -> "Answers":
        """Return sparse answers with other states, of the same kind."""
        return Answers.from_states(states, self.kind, label_names or self.label_names)

    def without_chosen(self) -> "Answers":
        """Return the answers without those to questions that a model chose."""
        if self.chosen is None or not self.chosen.any():
            return self
        codes = np.where(self.chosen, np.int8(State.NOT_ASKED), self.codes)
        said = None if self.annotations is None else self.annotations.keep(~self.chosen)
        return Answers.from_codes(codes, self.kind, self.label_names, annotations=said)

    def without_maybe(self) -> "Answers":
        """Return the answers with every "maybe" taken for not asked."""
        if self.kind != "answers":
            return self
        if self.annotations is not None:
            sure = self.annotations.without_maybe()
            return Answers.from_long(sure, self.shape, self.label_names, chosen=self.chosen)
        if self.is_sparse:
            return self._with(keep_states(self._stored, self._stored.data != State.MAYBE))
        codes = np.where(self.codes == State.MAYBE, np.int8(State.NOT_ASKED), self.codes)
        return Answers.from_codes(codes, self.kind, self.label_names, chosen=self.chosen)
