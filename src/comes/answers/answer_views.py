"""What can be seen of answers, whether all pairs are stored or only those with an answer."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from comes.answers.indicators import BoolMatrix
from comes.answers.masks import GIVEN
from comes.answers.people import Codes, LongAnswers
from comes.answers.sparse_states import as_dense, as_states, count_states, is_sparse
from comes.answers.states import State

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["answers", "candidates", "positives"]


class AnswerViews:
    """The views of `comes.Answers`: masks, states and counts, made when they are asked for."""

    kind: Kind
    label_names: list[str] | None
    annotations: LongAnswers | None
    _stored: Any  # states of all pairs, int8 (n, q), or a CSR matrix of those with an answer

    @property
    def is_sparse(self) -> bool:
        """Whether only the pairs with an answer are stored."""
        return is_sparse(self._stored)

    @property
    def codes(self) -> Codes:
        """The `State` of every pair, (n_samples, n_labels)."""
        return as_dense(self._stored) if self.is_sparse else self._stored

    @property
    def states(self) -> Any:
        """The `State` of every pair with an answer, an int8 CSR matrix (n_samples, n_labels)."""
        return self._stored if self.is_sparse else as_states(self._stored)

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
        """The `State` of every pair, for risks that take silence as an answer where it is one.

        A label that is still possible, or not ticked, was asked about as far as anybody knows, and
        counts as MAYBE. A pair that nobody was asked about stays NOT_ASKED.
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
        return np.array(self.codes, dtype=dtype)

    def count_state(self, state: State) -> npt.NDArray[np.int64]:
        """Return how many pairs of each label are in a state, (n_labels,); not for NOT_ASKED."""
        if self.is_sparse:
            return count_states(self._stored, state)
        return np.asarray((self._stored == state).sum(axis=0))

    def has(self, state: State) -> bool:
        """Return whether anything is in a state; not for NOT_ASKED."""
        stored = self._stored.data if self.is_sparse else self._stored
        return bool((stored == state).any())

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

        states = {name: self.count_state(state) for name, state in GIVEN.items()}
        names = self.label_names or [str(number) for number in range(self.shape[1])]
        return pd.DataFrame({"label": names, "asked": sum(states.values()), **states})

    def __repr__(self) -> str:
        n, q = self.shape
        no, yes, maybe = (int(self.count_state(state).sum()) for state in GIVEN.values())
        if self.kind == "candidates":
            said = f"{no} of {n * q} pairs excluded; who was asked is not known"
            return f"Candidates of {n} rows and {q} labels: {said}"
        if self.kind == "positives":
            said = f"{yes} of {n * q} pairs ticked; nobody says no"
            return f"Ticked labels of {n} rows and {q} labels: {said}"
        said = f"{no + yes + maybe} of {n * q} pairs asked, {no} no, {yes} yes, {maybe} maybe"
        if self.annotations is not None:
            said += f"; {len(self.annotations.people)} people"
        return f"Answers about {n} rows and {q} labels: {said}"
