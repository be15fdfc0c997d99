"""The arguments of an estimator, read and checked: features, answers, weights, class priors."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import assert_all_finite

from comes.answers import Answers, State, from_complementary
from comes.answers.convert import (
    BoolMatrix,
    as_relevant,
    check_indices,
    check_relevant_inside,
    match_names,
    refuse_huge,
    row_index,
)
from comes.answers.matrix import Kind
from comes.errors import ComesError, listed, warn_user
from comes.priors.pooled import AnswerCounts

Array = npt.NDArray[np.float64]

FEW = 100  # rows that are looked at first
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 1e-150  # the square of a smaller number is lost, and with it the spread of a feature
WEIGHTS = 1e-30, 1e30  # between which the largest weight lies: sums of them are float32
# Though float takes some of them.
NO_NUMBERS = np.datetime64, np.timedelta64, date, timedelta, bytes, complex, np.complexfloating
REFUSED_KINDS = {  # of numpy's types
    "mM": "X holds dates; expected numbers. Pass a DataFrame with a column of dates, or turn them "
    "into numbers.",
    "c": "Complex data not supported: X must be finite and real. Take X.real, or "
    "np.hstack([X.real, X.imag]).",
    "S": "X must hold numbers; got bytes. Write X.astype(float).",
    "V": "X must hold numbers; got a structured array. Make a DataFrame: pd.DataFrame(X).",
}
ADVICE: dict[type, str] = {
    Iterator: "np.array(list(X))",
    dict: "a DataFrame of its columns",
    set: "a DataFrame of its columns",
    Answers: "them after the features: fit(X, answers)",
}
MANY_PAIRS = 2**26  # sparse answers about more pairs than these are not made a matrix
MOST_REMEMBERED = 100_000  # rows of a model
TOLERANCE = 1e-9  # relative: the same row may come as a dense or a sparse one
WORDS = {"no": State.NO, "n": State.NO, "yes": State.YES, "y": State.YES}
WORDS |= {"maybe": State.MAYBE, "?": State.MAYBE, "": State.NOT_ASKED}


class NoNumberError(ComesError, TypeError):
    """A cell that is no number, for which scikit-learn wants a TypeError."""


# Features


def as_matrix(X: Any) -> Any:
    """Return X as a float array or CSR matrix, as scikit-learn checks it; a DataFrame as it is."""
    if isinstance(X, pd.DataFrame):
        texts = [name for name in X.columns if isinstance(name, str)]
        others = [name for name in X.columns if not isinstance(name, str)]
        empty = [name for name in others if pd.api.types.is_scalar(name) and pd.isna(name)]
        if empty or (texts and others):
            got = " and ".join(str(name) for name in (texts[:1] + (empty or others)[:1]))
            raise ComesError(
                f"the columns of X must all be named, and by one type; got the names {got}. Write "
                "X.columns = X.columns.map(str)."
            )
        return X
    if sparse.issparse(X):
        check_indices(X, "X")
        matrix: Any = X.tocsr()
    else:
        matrix = _as_array(X)
    for kinds, message in REFUSED_KINDS.items():
        if matrix.dtype.kind in kinds:
            raise ComesError(message)
    if matrix.dtype.kind in "OUT":
        return _as_numbers(matrix)
    return matrix.astype(np.float32 if matrix.dtype == np.float32 else np.float64, copy=False)


def _as_array(X: Any) -> npt.NDArray[Any]:
    """Return a list, array or tensor as an array of whatever type."""
    wanted = "X must be an array, DataFrame or sparse matrix with a row of numbers per sample"
    if np.ma.is_masked(X):
        raise ComesError(
            f"X must not have masked entries; got {int(np.ma.getmaskarray(X).sum())}. Fill or drop "
            "them."
        )
    for kind, advice in ADVICE.items():
        if isinstance(X, kind):
            raise ComesError(f"{wanted}; got a value of type {type(X).__name__}. Pass {advice}.")
    try:
        return np.asarray(_as_numpy(X))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ComesError(
            f"{wanted}; numpy cannot read this {type(X).__name__}: {str(error).rstrip('.')}. Give "
            "all rows the same length."
        ) from None


def _as_numpy(values: Any) -> Any:
    """Return a tensor of torch as an array, bfloat16 as float32; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    is_short = values.is_floating_point() and values.itemsize < 4
    return (values.float() if is_short else values).numpy()


def _as_numbers(array: npt.NDArray[Any]) -> Array:
    """Return an array of objects or of text as numbers; raise at the first that is none."""
    wrong = {kind for kind in map(type, array.flat) if issubclass(kind, NO_NUMBERS)}
    if not wrong:
        with suppress(TypeError, ValueError, OverflowError):
            return np.asarray(array, dtype=np.float64)
    cells = enumerate(array.flat)
    first = next((i for i, one in cells if type(one) in wrong or _as_number(one) is None), 0)
    position = [int(number) for number in np.unravel_index(first, array.shape)]
    raise NoNumberError(
        f"X must hold numbers; got {array.flat[first]!r} at X{position}. An argument must be a "
        "number or a string that is a number; pass a DataFrame to have other columns encoded."
    )


def _as_number(cell: Any) -> float | None:
    """Return a cell as a number, NaN if it is empty, None if it is no number."""
    with suppress(TypeError, ValueError, OverflowError):
        return float(np.nan if cell is None else cell)
    return None


def check_entries(X: Any) -> None:
    """Raise unless every entry is finite and fits into float32."""
    if has_finite_entries(X, LARGEST):
        return
    try:
        assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X")
    except ValueError as error:
        advice = "X must be finite and real: fill or drop those entries."
        raise ComesError(f"{str(error).splitlines()[0]} {advice}") from error
    raise ComesError(
        "X contains values too large for float32 (over 3.4e38): divide that feature, take its "
        "logarithm, or drop it."
    )


def has_finite_entries(X: Any, largest: float = np.inf) -> bool:
    """Return whether all entries are finite and none is larger, in one pass over X."""
    values = X.data if sparse.issparse(X) else X
    if values.size == 0:
        return True
    with np.errstate(invalid="ignore"):
        extreme = max(float(values.max()), -float(values.min()))  # NaN if there is one
    return extreme < np.inf and extreme <= largest


def warn_of_constant(X: Any) -> None:
    """Warn if all rows are the same, or so small that they are the same once scaled."""
    if sparse.issparse(X):
        largest = np.abs(X.data).max(initial=0, keepdims=True)
        smallest = float(np.finfo(np.float32).tiny)  # sparse features need not be scaled
    else:
        largest, smallest = np.maximum(X.max(axis=0), -X.min(axis=0)), SMALLEST
    tiny, messages = np.flatnonzero((largest > 0) & (largest < smallest)), []
    if len(tiny):
        messages.append(
            f"every value of feature {tiny[0]} is below {smallest:.0e}, too small to be told from "
            "0. Multiply it."
        )
    can_be_constant = not sparse.issparse(X) and len(X) > 1 and (X[:FEW] == X[0]).all()
    if can_be_constant and (X[0] == X).all():
        messages.append(
            "every feature is constant, so nothing tells the rows apart: every prediction will be "
            "the same. Add features."
        )
    for message in messages:
        warn_user(message)


def check_same_rows(X: Any, answers: Answers) -> None:
    """Raise an error unless features and answers have the same number of rows."""
    if len(answers) != X.shape[0]:
        raise ComesError(
            f"X and candidates must have the same number of rows; got {X.shape[0]} and "
            f"{len(answers)}. Found input variables with inconsistent numbers of samples."
        )


# Whether rows are rows that a model was trained on, by one number per row


def fingerprint_rows(X: Any) -> Array:
    """Return a number for every row of a matrix, (n,): equal for equal rows, else hardly ever."""
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    return np.asarray(X @ direction, dtype=np.float64)


def remember_rows(X: Any) -> Array:
    """Return the sorted numbers of up to 100,000 rows, evenly spread over the matrix."""
    return np.sort(_thin_out(fingerprint_rows(X)))


def add_rows(earlier: Array | None, new: Array) -> Array:
    """Return the numbers of earlier rows and of others, up to 100,000 of them, sorted."""
    return new if earlier is None else _thin_out(np.sort(np.concatenate([earlier, new])))


def _thin_out(numbers: Array) -> Array:
    chosen = np.linspace(0, len(numbers) - 1, min(len(numbers), MOST_REMEMBERED)).astype(int)
    return np.asarray(numbers[chosen])


def count_seen(remembered: Array | None, X: Any) -> int:
    """Return how many rows of a matrix are among those remembered."""
    if remembered is None or len(remembered) == 0:
        return 0
    numbers = fingerprint_rows(X)
    after = np.searchsorted(remembered, numbers)
    neighbours = np.stack([after - 1, after]).clip(0, len(remembered) - 1)
    gap = np.abs(numbers - remembered[neighbours]).min(axis=0)
    return int((gap <= TOLERANCE * (np.abs(numbers) + np.abs(remembered).mean())).sum())


# Numbers by row and by label


def read_weight(sample_weight: Any, n: int) -> Array | None:
    """Return the weights of n rows; None where there are none."""
    if sample_weight is None:
        return None
    try:
        weight = np.array(np.ma.filled(_as_numpy(sample_weight), np.nan), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        weight = np.full(1, np.nan)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ComesError(
            f"sample_weight must hold one number for each of the {n} rows; got shape "
            f"{np.shape(sample_weight)}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(wrong):
        raise ComesError(
            f"sample_weight must be finite numbers of at least 0; got {weight[wrong[0]]:g} for row "
            f"{wrong[0]}. Set what should not count to 0."
        )
    if not weight.any():
        raise ComesError("sample_weight must be above 0 for some row; got zero for all of them.")
    if not WEIGHTS[0] < weight.max() < WEIGHTS[1]:
        raise ComesError(
            f"the largest sample_weight must be between {WEIGHTS[0]:g} and {WEIGHTS[1]:g}; got "
            f"{weight.max():g}. Divide them all: sample_weight / sample_weight.max()."
        )
    return weight


def per_label(values: Any, name: str, label_names: list[str]) -> Array:
    """Return one number in [0, 1] per label: a Series by name, one rate for all labels."""
    names, q = label_names, len(label_names)
    if isinstance(values, pd.Series):
        names, values = [str(label) for label in values.index], values.tolist()
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        cells = map(_as_number, values) if isinstance(values, list | tuple) else [None]
        numbers = np.array([np.nan if cell is None else cell for cell in cells])
    if name != "class_prior" and numbers.shape == () and np.isfinite(numbers):
        numbers = np.full(q, float(numbers))
    wanted = f"{name} must hold one number in [0, 1] for each of the {q} labels"
    named = set(names)
    missing = [label for label in label_names if label not in named]
    if numbers.ndim == 1 and missing and len(missing) < q:
        raise ComesError(f"{wanted}; got none for {listed(missing)}. Add it.")
    if numbers.shape != (q,):
        is_list = isinstance(values, list | tuple | np.ndarray) and numbers.ndim == 1
        raise ComesError(f"{wanted}; got {f'{len(numbers)} numbers' if is_list else repr(values)}.")
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))
    if len(wrong):
        value = values[wrong[0]] if isinstance(values, list | tuple) else numbers[wrong[0]]
        shown = repr(value) if isinstance(value, str) else value
        raise ComesError(f"{wanted}; got {shown} for label {names[wrong[0]]!r}. Correct it.")
    if name == "class_prior" and not numbers.any():
        raise ComesError(
            "class_prior must be above 0 for some label; got 0 for every one, as if nothing were "
            "ever relevant. Correct it, or leave it out: then it is estimated."
        )
    return numbers if names is label_names else numbers[match_names(names, label_names)]


# Answers


def match_columns(matrix: BoolMatrix, values: Any, label_names: list[str]) -> BoolMatrix:
    """Return the columns in the order of the label names, if the values name their columns."""
    if not hasattr(values, "columns"):
        return matrix
    return matrix[:, match_names([str(name) for name in values.columns], label_names)]


def read_answers(
    y: Any = None,
    candidates: Any = None,
    complementary: Any = None,
    answers: Any = None,
    label_names: Sequence[str] | None = None,
    *,
    require_candidates: bool = False,
    may_be_encoded: bool = False,
) -> Answers:
    """Return the answers among the arguments of ``fit``, checked, with names of their labels."""
    arguments = {"candidates": candidates, "complementary": complementary, "answers": answers}
    passed = {name: values for name, values in arguments.items() if values is not None}
    if len(passed) > 1:
        raise ComesError(
            "fit takes one of candidates=, complementary= and answers=, not several; got "
            f"{' and '.join(passed)}."
        )
    name, values = next(iter(passed.items()), ("y", y))
    if not (isinstance(values, Answers) or sparse.issparse(values)):
        refuse_huge(getattr(values, "shape", ()), "Give sparse no=, yes= and maybe= to Answers.")
    if name in ("y", "answers") and isinstance(values, Answers):
        read = values
    elif name in ("y", "answers") and _holds_words(values):
        read = _read_words(values, name)
    elif name == "answers":
        raise ComesError(
            f"answers must be a comes.Answers; got {type(values).__name__}. Make one: "
            "Answers(no=..., yes=..., maybe=...)."
        )
    elif name == "complementary":
        read = Answers(no=values if sparse.issparse(values) else ~from_complementary(values))
    else:
        if values is None:
            raise ComesError(
                "CandidateClassifier requires y to be passed, but the target y is None. "
                "Call fit(X, candidates), fit(X, complementary=...) or fit(X, answers=...)."
            )
        if name == "y" and require_candidates:
            raise ComesError(
                "require_candidates=True: fit wants candidates=, complementary= or answers=, and "
                "got only y, which may be the truth. In cross_validate pass params={'candidates': "
                "...}."
            )
        _refuse_gaps(values, name)
        read = Answers.from_candidates(values)
    names = getattr(values, "columns", read.label_names)
    if names is not None and label_names is not None:
        raise ComesError(
            f"label_names are for an array of candidates; got a {type(values).__name__}, which "
            "names its columns. Leave label_names out, or rename the columns."
        )
    names = label_names if names is None else names
    names = range(read.shape[1]) if names is None else names
    read = read.rename_labels([str(label) for label in names])
    if name == "y" and may_be_encoded:
        _refuse_encoded(values, read)
    if name != "y" and y is not None:
        assert read.label_names is not None
        relevant = match_columns(as_relevant(y), y, read.label_names)
        if relevant.shape != read.shape or read.kind != "answers":  # people may be mistaken
            check_relevant_inside(relevant, read.candidates, read.label_names)
    return read


def _list_types(values: Any) -> list[Any]:
    """Return the types of the columns of a table or array, (n, q); none of anything else."""
    if not isinstance(values, pd.DataFrame | np.ndarray) or values.ndim != 2:
        return []
    return list(values.dtypes) if isinstance(values, pd.DataFrame) else [values.dtype]


def _holds_words(values: Any) -> bool:
    """Return whether a table or array, (n, q), holds text."""
    if np.ma.is_masked(values) or not any(kind.kind in "OUT" for kind in _list_types(values)):
        return False
    return any(isinstance(cell, str) for cell in np.asarray(values, dtype=object).flat)


def _read_words(values: Any, name: str) -> Answers:
    """Return the answers in a table of words; an empty cell was not asked."""
    cells = np.asarray(values, dtype=object)
    is_empty = np.asarray(pd.isna(cells))
    words = [
        cell.strip().lower() if isinstance(cell, str) else "" if empty else repr(cell)
        for cell, empty in zip(cells.flat, is_empty.flat, strict=True)
    ]
    wrong = [repr(cell) for cell, word in zip(cells.flat, words, strict=True) if word not in WORDS]
    if wrong:
        raise ComesError(
            f"{name} must hold the words yes, no and maybe (an empty cell: not asked), or be "
            f"numbers 0 or 1; got {', '.join(list(dict.fromkeys(wrong))[:8])}. Replace them."
        )
    codes = np.array([WORDS[word] for word in words], dtype=np.int8).reshape(cells.shape)
    names = [str(column) for column in getattr(values, "columns", [])]
    return Answers.from_codes(codes, label_names=names or None, index=row_index(values))


def _refuse_gaps(values: Any, name: str) -> None:
    """Raise an error if there are gaps among 0 and 1: these are answers, no candidates."""
    types = _list_types(values)
    gaps = np.asarray(pd.isna(values)) if types else np.zeros(1, dtype=bool)
    if not gaps.any() or not {*np.asarray(values, dtype=object)[~gaps].tolist()} <= {0, 1}:
        return
    is_plain = all(isinstance(kind, np.dtype) and kind.kind == "f" for kind in types)
    first = "" if is_plain else "y = pd.DataFrame(y).astype('Float64').astype(float); "
    raise ComesError(
        f"{name} must be 0 or 1; some entries are missing. Where 1 is yes, 0 is no and a gap means "
        f"not asked, pass answers: {first}fit(X, Answers(no=y == 0, yes=y == 1))."
    )


def _refuse_encoded(y: Any, read: Answers) -> None:
    """Raise an error if y may be what scikit-learn made of a label that is 1 in every row."""
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "iu" or y.any(axis=0).all():
        return
    label = (read.label_names or [])[int(y.any(axis=0).argmin())]
    raise ComesError(
        f"label {label!r} is 0 in every row of y, an array of integers. scikit-learn's "
        "cross_val_predict(method='predict_proba') makes that of a label that is 1 in every row. "
        "If 0 is right, pass y.astype(bool); in place of cross_val_predict write the loop: "
        "for train, test in KFold(5).split(X): probabilities[test] = clone(classifier).fit("
        "X[train], candidates=y[train]).predict_proba(X[test])."
    )


@dataclass(frozen=True, eq=False)
class CountedAnswers:
    """The part of `comes.Answers` that a fit needs and that counts can give."""

    counts: AnswerCounts
    kind: Kind
    label_names: list[str]
    is_sparse: bool  # as the answers are that were counted

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        return len(self), self.counts.n_labels

    def __len__(self) -> int:
        return int(self.counts.n_rows.sum())

    def count_state(self, state: State) -> npt.NDArray[np.int64]:
        """Return how many pairs of each label are in a state, (q,); not for NOT_ASKED."""
        counts = {State.NO: "no", State.YES: "yes", State.MAYBE: "maybe"}
        return np.asarray(getattr(self.counts, counts[state]).sum(axis=0))

    def has(self, state: State) -> bool:
        """Return whether anything is in a state."""
        return bool(self.count_state(state).any())

    def without_chosen(self) -> "CountedAnswers":
        """Return the same: what a model asked for was not counted."""
        return self


def has_many_labels(answers: Any) -> bool:
    """Return whether answers are trained on without a matrix of all pairs."""
    n, q = answers.shape
    is_large = isinstance(answers, CountedAnswers) or n * q > MANY_PAIRS
    return bool(answers.is_sparse and is_large)
