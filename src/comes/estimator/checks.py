"""What the estimator looks at in data and priors before it trains."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import validate_data

from comes.errors import ComesError, ComesWarning, listed
from comes.estimator.methods import Method, find_method
from comes.labels import (
    BoolMatrix,
    as_candidates,
    as_relevant,
    check_names,
    check_relevant_inside,
    from_complementary,
    match_names,
)
from comes.training import AUGMENTATIONS


def check_fits_float32(X: Any) -> None:
    """Raise if an entry is too large to train on."""
    values = X.data if sparse.issparse(X) else X
    if values.size and max(values.max(), -values.min()) > np.finfo(np.float32).max:
        raise ComesError(
            "X contains values too large for float32 (over 3.4e38): divide that feature, take its "
            "logarithm, or drop it."
        )


def align(matrix: BoolMatrix, values: Any, label_names: list[str]) -> BoolMatrix:
    """Return the columns in the order of the label names, if the values name their columns."""
    if not hasattr(values, "columns"):
        return matrix
    return matrix[:, match_names([str(name) for name in values.columns], label_names)]


def per_label(values: Any, name: str, label_names: list[str]) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1] per label; a Series is matched by name, a number is for all."""
    q = len(label_names)
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.full(q, np.nan)
    if name == "flip_rate" and numbers.shape == ():
        numbers = np.full(q, float(numbers))
    if numbers.shape != (q,) or not ((numbers >= 0) & (numbers <= 1)).all():
        raise ComesError(
            f"{name} must hold one number in [0, 1] for each of the {q} labels; got {values!r}."
        )
    names = getattr(values, "index", None)
    if names is not None and not callable(names):  # a Series; lists have a method index
        numbers = numbers[match_names([str(name) for name in names], label_names)]
    return numbers


def warn_of_idle_labels(S: BoolMatrix, label_names: list[str], method: Method) -> None:
    """Warn of labels from which nothing, or only one thing, can be learned."""
    n_candidate = S.sum(axis=0)
    never = [label_names[j] for j in np.flatnonzero(n_candidate == len(S))]
    always = [label_names[j] for j in np.flatnonzero(n_candidate == 0)]
    says_little = method.unit == "own" or method.needs == "transition"
    if never:
        effect = "it is taken for relevant everywhere."
        if method.unit == "pairs":
            effect = "nothing pushes its scores down, and they mean nothing."
        elif method.needs == "class_prior":
            effect = (
                "it is left out of the risk, since nothing shows where it is irrelevant, and its "
                "scores mean nothing."
            )
        elif says_little:
            effect = "nothing shows where it is irrelevant."
        _warn(f"No row excludes label {listed(never)}: {effect}")
    if always:
        effect = "nothing shows where it is relevant."
        if not says_little and not method.keeps_one_excluded:
            effect = "it is learned as irrelevant."
        if method.needs == "class_prior":
            effect = "it is learned as irrelevant; its class prior is taken as 0."
        _warn(f"Every row excludes label {listed(always)}: {effect}")
    if S.shape[1] == 1 and (method.unit == "pairs" or method.needs == "transition"):
        _warn("This risk needs two labels; with one nothing is learned. Take method='comes-hl'.")


def warn_of_impossible_prior(
    prior: npt.NDArray[np.float64], S: BoolMatrix, label_names: list[str]
) -> None:
    """Warn of priors above the share of rows in which the label is a candidate at all."""
    rate = S.mean(axis=0)
    sampling_error = np.sqrt(prior * (1 - prior) / len(S))
    too_high = [label_names[j] for j in np.flatnonzero(prior > rate + 4 * sampling_error + 1e-9)]
    if too_high:
        _warn(
            f"The class prior of label {listed(too_high)} is above the share of rows in which it "
            "is a candidate, so it cannot be right; or are these complementary labels? Then pass "
            "them as complementary=."
        )


def _warn(message: str) -> None:
    warnings.warn(message, ComesWarning, stacklevel=5)


LEARNED = ("prior", "risk", "f1")  # thresholds from rows that training did not see
FEATURES = ("auto", "classes", "pooled")
PRECISIONS = ("auto", "bfloat16", "float32")
THRESHOLDS = ("auto", "zero", "prior", "risk", "f1", "minmax")


def check_numbers(classifier: Any) -> None:
    """Raise unless every setting that is a number or one of some names makes sense."""
    for name, least in (("epochs", 1), ("batch_size", 1), ("hidden", 1)):
        check_count(name, getattr(classifier, name), least)
    check_choices(classifier)


def check_count(name: str, count: Any, least: int) -> None:
    """Raise unless a setting is a whole number that is large enough."""
    if not isinstance(count, (int, np.integer)) or count < least:
        raise ComesError(f"{name} must be a whole number of at least {least}; got {count!r}.")


def check_choices(classifier: Any) -> None:
    """Raise unless the settings that tables and images share make sense."""
    if not 0 <= classifier.flood_level < np.inf:
        raise ComesError(f"flood_level must be 0 or more; got {classifier.flood_level!r}.")
    if classifier.normaliser not in ("batch", "dataset"):
        raise ComesError(f"normaliser must be 'batch' or 'dataset'; got {classifier.normaliser!r}.")
    if classifier.threshold not in THRESHOLDS:
        raise ComesError(
            f"threshold must be one of {', '.join(THRESHOLDS)}; got {classifier.threshold!r}."
        )
    patience = classifier.patience
    if patience is not None and not (isinstance(patience, (int, np.integer)) and patience >= 1):
        raise ComesError(
            f"patience must be a whole number of at least 1, or None; got {patience!r}."
        )
    if not 0 < classifier.validation_share < 1:
        raise ComesError(
            f"validation_share must lie between 0 and 1; got {classifier.validation_share!r}."
        )


def check_image_settings(classifier: Any) -> None:
    """Raise unless all settings of an image classifier make sense, before anything takes long."""
    counts = {"epochs": 0, "batch_size": 1, "image_size": 8, "probe_epochs": 0, "part_size": 1}
    for name, least in counts.items():
        may_be_none = name in ("probe_epochs", "part_size")
        if not (may_be_none and getattr(classifier, name) is None):
            check_count(name, getattr(classifier, name), least)
    if classifier.probe_epochs == classifier.epochs == 0:
        raise ComesError("probe_epochs and epochs are both 0: nothing would be learned.")
    for name, choices in (
        ("features", FEATURES),
        ("precision", PRECISIONS),
        ("augment", AUGMENTATIONS),
    ):
        value = getattr(classifier, name)
        if value not in choices:
            raise ComesError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    temperature, errors = classifier.temperature, classifier.standard_errors
    if not (0 < temperature < np.inf and 0 <= errors < np.inf):
        raise ComesError(
            "temperature must be above 0 and standard_errors at least 0; got "
            f"{temperature!r} and {errors!r}."
        )
    check_choices(classifier)
    find_method(classifier.method, classifier.variant)
    if classifier.threshold in LEARNED and classifier.epochs and not classifier.early_stopping:
        raise ComesError(
            f"threshold={classifier.threshold!r} of a fine-tuned network is learned on held-out "
            "pictures: set early_stopping=True."
        )


def choose_candidates(
    y: Any, candidates: Any, complementary: Any, require_candidates: bool
) -> tuple[BoolMatrix, list[str]]:
    """Return the candidates, from wherever they were given, and the label names."""
    if candidates is not None and complementary is not None:
        raise ComesError("fit takes candidates= or complementary=, not both; got both.")
    named = candidates if candidates is not None else complementary
    if named is None:
        if y is None:
            raise ComesError(
                "CandidateClassifier requires y to be passed, but the target y is None. "
                "Call fit(X, candidates), or fit(X, complementary=...)."
            )
        if require_candidates:
            raise ComesError(
                "require_candidates=True: fit wants candidates= or complementary=, and got "
                "only y, which may be the truth. In cross_validate pass "
                "params={'candidates': ...}."
            )
        named = y
    S = as_candidates(named) if complementary is None else from_complementary(named)
    label_names = [str(name) for name in getattr(named, "columns", range(S.shape[1]))]
    check_names(label_names)
    if named is not y and y is not None:
        check_relevant_inside(align(as_relevant(y), y, label_names), S, label_names)
    return S, label_names


def check_features(classifier: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a finite float matrix, dense or CSR."""
    try:
        X = validate_data(
            classifier, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32)
        )
    except ValueError as error:
        lines = str(error).splitlines()
        message = " ".join(line.strip() for line in lines)
        if "NaN" in message or "infinity" in message or "Complex" in message:
            message = f"{lines[0]} X must be finite and real: fill or drop those entries."
        raise ComesError(message) from error
    check_fits_float32(X)
    return X
