r"""How often each label is relevant, estimated before training from X and candidates.

Row x excludes label j with probability p_j (1 - eta_j(x)): p_j is the *exclude rate*, and the mean
of eta_j is the *class prior* pi_j. So the share of rows that exclude j, which can be counted, gives

.. math:: \mathrm{share}_j = p_j (1 - \pi_j), \qquad \pi_j = 1 - \mathrm{share}_j / p_j,

and an estimate of p_j (`comes.priors.rate_model`) is one of pi_j. Without further assumptions only
bounds are known: pi_j is at most 1 - share_j (p_j = 1), and at least the value that follows if the
rows that look most like excluding j are all irrelevant. docs/guide/priors.md says when that is near
the truth.

Where p_j is known, counts suffice. Of n rows, n (1 - pi_j) do not have label j, and each of them
excludes it with probability p_j:

.. math:: n_j \sim \mathrm{Binomial}(n (1 - \pi_j), p_j), \qquad \pi_j \sim \mathrm{Beta}.

The plug-in 1 - n_j / (n p_j) has the standard error sqrt((1 - p_j)(1 - pi_j) / (n p_j)), which is
large where the rate is small; the beta distribution, itself estimated from all labels, shrinks it.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaln, gammaln

from comes.answers import Answers
from comes.answers.convert import BoolMatrix, as_candidates, as_relevant, check_paired, match_names
from comes.errors import ComesError, ComesWarning, listed
from comes.files import expanded
from comes.priors.rate_model import (
    RatePosterior,
    bbe,
    best_bin_rate,
    beta_parameters,
    check_features,
    count_bins,
    draw_seed,
    fit_exclude_rates,
    prior_bounds,
    scale_features,
    score_out_of_fold,
    share_bounds,
    shrink_rates,
)

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
Mpe = Callable[[Any, Any], float]

METHODS = ("hierarchical", "best-bin", "bbe")
MIN_ROWS, FEW_EXCLUDED = 20, 20  # of all rows; of those that exclude a label
UNCERTAIN = 0.15  # a standard error of the class prior that is too large to trust it
KNOWN_PRIOR = "known_prior"  # the column of a table to fill in; where empty, the estimate counts
FLAGS = {
    "never excluded": "no row excludes it, so it cannot be estimated and is set to 1",
    "always excluded": "every row excludes it, so it is set to 0",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, so the estimate is uncertain",
    "rate too low": "more rows exclude it than exclude_rate allows, so it is set to 0 or near",
    "uncertain": f"its standard error is above {UNCERTAIN}, so it is not to be trusted",
}


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Class priors estimated for every label; ``np.asarray`` gives ``class_prior``.

    Attributes
    ----------
    class_prior, exclude_rate : arrays of shape (n_labels,)
        pi_j and p_j. (Share of rows that exclude j) = (1 - class_prior) exclude_rate holds up to
        sampling error; where that is large, both are shrunk towards what other labels have. From
        answers the exclude rate is NaN: `estimate_answer_rates` gives their rates. Of a label that
        nothing excludes it is 0, which stands for "not known"; with fewer than 20 rows it is 1.
    lower, upper : arrays of shape (n_labels,)
        Bounds of the class prior that hold nine times in ten if the exclude rate is constant.
        They are wide. From answers, 95 % limits by the standard error.
    standard_error : array of shape (n_labels,)
        Of the class prior. It includes the error of the exclude rate, what cannot be known where
        features hardly tell which rows have a label, and 1 % of 1 - pi_j for what the model of the
        rates misses.
    flags : tuple of str
        On the class prior: "ok", "never excluded", "always excluded", "few excluded", "rate too
        low" or "uncertain", per label; "known" where `fill_class_prior` put a number that is known;
        from answers the flags of `RatesEstimate`.
    exclude_rate_error : array of shape (n_labels,), optional
        Standard error of the exclude rate, in the same sense; 0 where it was given.

    Examples
    --------
    >>> prior, rate, error = np.array([0.2]), np.array([0.5]), np.array([0.01])
    >>> estimate = ClassPriorEstimate(prior, rate, prior - 0.1, prior + 0.3, error, ("ok",))
    >>> np.asarray(estimate), estimate.flags
    (array([0.2]), ('ok',))
    """

    class_prior: FloatArray
    exclude_rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    standard_error: FloatArray
    flags: tuple[str, ...]
    exclude_rate_error: FloatArray | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.class_prior, dtype=dtype)


def estimate_class_prior(
    X: Any,
    candidates: npt.ArrayLike | Answers,
    method: str | Mpe = "hierarchical",
    random_state: int | np.random.RandomState | None = 0,
    label_names: Sequence[str] | None = None,
    *,
    exclude_rate: npt.ArrayLike | None = None,
) -> ClassPriorEstimate:
    """Estimate how often each label is relevant, from candidates or answers alone.

    Classifiers of the excluded labels score every row out of fold, all labels at once. For each
    label, the rows are sorted by how much they look like excluding it, and cut into ten bins. All
    bins of all labels are explained together: by exclude rates p_j whose spread over labels is
    estimated (none at all, if one rate explains the bins), by class priors, and by how well scores
    tell relevant rows. Rates above 0.97 count as 1.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        May be None if ``exclude_rate`` is given.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        True where the label is still possible. Answers other than candidates go to
        `estimate_answer_rates`.
    method : {"hierarchical", "best-bin", "bbe"} or callable
        For candidates. "hierarchical" is described above. "best-bin" takes the highest share of
        excluding rows among those that look most like it as p_j, shrunk towards the mean over
        labels. "bbe" is the published two-sample best bin on the same scores, label by label. A
        function ``mpe(component, mixture)`` takes the rows of X that exclude a label, and all
        rows, and returns the share of the component in the mixture, 1 - pi_j.
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default those of the answers, or the numbers of the labels.
    exclude_rate : float or array of shape (n_labels,), optional
        P(j excluded | j irrelevant) where it is known, in (0, 1]: then nothing else is estimated
        than the class prior, from counts alone, shrunk over labels.

    Returns
    -------
    estimate : ClassPriorEstimate
        A label that no row excludes gets prior 1 (it cannot be estimated), one that every row
        excludes prior 0. With fewer than 20 rows the estimate is the upper bound. A warning names
        the labels whose flag is not "ok".

    References
    ----------
    Appendix "Class Prior Estimation" of the COMES paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> relevant = X > 1
    >>> candidates = relevant | (rng.random(X.shape) < 0.5)
    >>> estimate = estimate_class_prior(X, candidates)
    >>> bool(abs(estimate.class_prior - relevant.mean(axis=0)).max() < 0.1)
    True
    >>> estimate.flags
    ('ok', 'ok')
    >>> known = estimate_class_prior(None, candidates, exclude_rate=0.5)
    >>> bool(abs(known.class_prior - relevant.mean(axis=0)).max() < 0.1)
    True
    """
    if not callable(method) and method not in METHODS:
        was_removed = method in ("km2", "dedpul", "candidate-rate")
        raise ComesError(
            f"method must be one of {', '.join(METHODS)}, or a function mpe(component, mixture); "
            f"got {method!r}{', which was removed after version 1.0.0' if was_removed else ''}."
        )
    if exclude_rate is not None and method != "hierarchical":
        raise ComesError("exclude_rate leaves nothing to method. Give one of them.")
    check_paired(X=X, candidates=candidates)
    if isinstance(candidates, Answers) and candidates.kind != "candidates":
        from comes.priors.answer_rates import estimate_answer_rates  # which uses this module

        if method != "hierarchical" or exclude_rate is not None:
            raise ComesError(
                f"method and exclude_rate are for candidates; got {candidates.kind}. Leave them "
                "out."
            )
        found = estimate_answer_rates(
            X, candidates, random_state=random_state, label_names=label_names
        )
        prior, error = found.class_prior, found.class_prior_error
        lower, upper = np.clip([prior - 1.96 * error, prior + 1.96 * error], 0, 1)  # 95 %
        no_rate = np.full_like(prior, np.nan)
        return ClassPriorEstimate(prior, no_rate, lower, upper, error, found.flags)
    if isinstance(candidates, Answers):
        label_names = candidates.label_names if label_names is None else label_names
        candidates = candidates.candidates
    excluded = ~as_candidates(candidates)
    if exclude_rate is not None:
        estimate = _estimate_given_rate(excluded, exclude_rate)
    else:
        X = check_features(X, len(excluded))
        seed = draw_seed(random_state)
        estimate = _estimate_with_rate(X, excluded, method, seed)
    warn_of_flags("The class prior of label", estimate.flags, FLAGS, label_names)
    return estimate


def _estimate_with_rate(
    X: Any, excluded: BoolMatrix, method: str | Mpe, seed: int
) -> ClassPriorEstimate:
    """Estimate class priors together with the exclude rates."""
    n, share = len(excluded), excluded.mean(axis=0)
    # Labels of which there is nothing to estimate, and all labels of too few rows: the class prior
    # is its upper bound, with the error of a number that may be anywhere between 0 and that.
    rate, prior = np.where(share > 0, 1.0, 0.0), 1 - share
    lower, upper = np.zeros(len(share)), np.where(share > 0, 1 - share, 1.0)
    error = np.where(share == 0, 0.5, (1 - share) / math.sqrt(3) + 1 / n)
    rate_error, error_by_model = error.copy(), error.copy()
    some = (share > 0) & (share < 1)
    if n >= MIN_ROWS and some.any():
        excludes, share = excluded[:, some], share[some]
        scaled = scale_features(X)
        scores = -score_out_of_fold(scaled, ~excluded, seed)[:, some]
        fit = fit_exclude_rates(*count_bins(excludes, scores))
        is_one = fit.exclude_rate > 0.97  # a few relevant rows in the bins explain the rest
        fit = fit._replace(
            exclude_rate=np.where(is_one, 1.0, fit.exclude_rate),
            class_prior=np.where(is_one, 1 - share, fit.class_prior),
        )
        error_by_model[some] = fit.standard_error
        if method != "hierarchical":
            other = np.clip(_other_rate(method, X, excludes, scores), share, 1)
            other_prior = 1 - share / other
            fit = RatePosterior(
                other,
                np.hypot(fit.exclude_rate_error, other - fit.exclude_rate),
                other_prior,
                np.hypot(fit.standard_error, other_prior - fit.class_prior),
            )
        lower[some], upper[some] = prior_bounds(excludes, scores)
        rate[some], rate_error[some] = fit.exclude_rate, fit.exclude_rate_error
        prior[some] = np.clip(fit.class_prior, lower[some], upper[some])
        error[some] = fit.standard_error
    n_excluded = excluded.sum(axis=0)
    flags = choose_flags(
        {
            "never excluded": n_excluded == 0,
            "always excluded": n_excluded == n,
            "few excluded": n_excluded < FEW_EXCLUDED,
            "uncertain": error_by_model > UNCERTAIN,  # whatever the method
        }
    )
    return ClassPriorEstimate(prior, rate, lower, upper, error, flags, rate_error)


def _other_rate(method: str | Mpe, X: Any, excluded: BoolMatrix, scores: Any) -> FloatArray:
    """Return the exclude rate of every label by a method other than the default."""
    if method == "best-bin":
        rate = shrink_rates(*best_bin_rate(excluded, scores))
        return np.where(rate > 0.98, 1.0, rate)
    irrelevant = []  # 1 - pi_j
    for j, excludes in enumerate(excluded.T):
        if callable(method):
            share = method(X[excludes], X)
        else:
            share = bbe(scores[excludes, j], scores[:, j])
        if not 0 <= share <= 1:
            raise ComesError(f"mpe must return a share in [0, 1]; got {share!r} for label {j}.")
        irrelevant.append(max(float(share), 1e-6))
    return np.asarray(excluded.mean(axis=0) / np.array(irrelevant))


# Where the exclude rate is known


def _estimate_given_rate(excluded: BoolMatrix, exclude_rate: npt.ArrayLike) -> ClassPriorEstimate:
    """Estimate class priors from counts, given the exclude rate."""
    n, q = excluded.shape
    try:
        rate = np.asarray(exclude_rate, dtype=float)
        if rate.shape not in ((), (q,)) or not ((rate > 0) & (rate <= 1)).all():
            raise ValueError
    except (TypeError, ValueError):
        raise ComesError(
            f"exclude_rate must be a number above 0 and at most 1, or one for each of {q} labels; "
            f"got {exclude_rate!r}. Leave it out to estimate it."
        ) from None
    rate, n_excluded = np.broadcast_to(rate, (q,)).copy(), excluded.sum(axis=0)
    prior, error = shrink_priors(n_excluded, n, rate)
    lowest, highest = share_bounds(n_excluded, n)
    lower, upper = np.clip([1 - highest / rate, 1 - lowest / rate], 0, 1)
    by_chance = 3 * np.sqrt(rate * (1 - rate) / n)  # above the rate, without a relevant row
    flags = choose_flags(
        {
            "few excluded": n_excluded < FEW_EXCLUDED,
            "rate too low": n_excluded / n - rate > by_chance + 1e-9,
            "uncertain": error > UNCERTAIN,
        }
    )
    prior = np.clip(prior, lower, upper)
    return ClassPriorEstimate(prior, rate, lower, upper, error, flags, np.zeros_like(rate))


def shrink_priors(n_excluded: Counts, n: int, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of every class prior, given the exclude rates."""
    low, high = bound_priors(n_excluded, n, rate)
    nodes = low[:, None] + (high - low)[:, None] * (np.arange(120) + 0.5) / 120
    likelihood = prior_likelihood(nodes, n_excluded, n, rate)
    a, b, weight = beta_parameters()  # (betas,)
    inside = np.clip(nodes, 1e-9, 1 - 1e-9)
    log_density = np.multiply.outer(a - 1, np.log(inside)) + np.multiply.outer(
        b - 1, np.log1p(-inside)
    )
    joint = likelihood * np.exp(log_density - betaln(a, b)[:, None, None])  # (betas, q, nodes)
    total = np.maximum(joint.sum(axis=2), 1e-300)
    evidence = np.log(total).sum(axis=1) + np.log(weight)
    of_beta = np.exp(evidence - evidence.max())
    of_beta /= of_beta.sum()
    posterior = np.tensordot(of_beta, joint / total[:, :, None], 1)  # (q, nodes)
    mean = (posterior * nodes).sum(axis=1)
    error = np.sqrt((posterior * (nodes - mean[:, None]) ** 2).sum(axis=1))
    return np.asarray(mean), np.asarray(error)


def bound_priors(
    n_excluded: Counts, n: npt.ArrayLike, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return between which class priors the likelihood is not negligible: six standard errors."""
    n = np.asarray(n)
    highest = 1 - n_excluded / n
    plug_in = np.clip(1 - n_excluded / (n * rate), 0, highest)
    reach = 6 * np.sqrt((1 - rate) * (n_excluded + 1)) / (n * rate) + 1 / n
    return np.maximum(plug_in - reach, 0), np.minimum(plug_in + reach, highest)


def prior_likelihood(
    prior: FloatArray, n_excluded: Counts, n: npt.ArrayLike, rate: FloatArray
) -> FloatArray:
    """Return the likelihood of class priors, (q, nodes), relative to the highest of the label.

    ``n`` is the number of rows, or one for each label.
    """
    irrelevant = np.broadcast_to(n, len(rate))[:, None] * (1 - prior)
    log_likelihood = (
        gammaln(irrelevant + 1)
        - gammaln(np.maximum(irrelevant - n_excluded[:, None], 0) + 1)
        + irrelevant * np.log1p(-np.minimum(rate, 1 - 1e-9))[:, None]
    )
    return np.asarray(np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))


# Flags


def choose_flags(
    conditions: Mapping[str, BoolArray], default: Sequence[str] | str = "ok"
) -> tuple[str, ...]:
    """Return the flag of every label: the first condition that holds, else the default."""
    chosen = np.select(list(conditions.values()), list(conditions), np.asarray(default))
    return tuple(map(str, chosen))


def warn_of_flags(
    subject: str, flags: Sequence[str], meanings: Mapping[str, str], names: Sequence[str] | None
) -> None:
    """Warn the caller's caller of every flag that is not "ok", with the names of its labels."""
    names = [str(j) for j in range(len(flags))] if names is None else names
    for flag, meaning in meanings.items():
        concerned = [name for name, one in zip(names, flags, strict=True) if one == flag]
        if concerned:
            warnings.warn(f"{subject} {listed(concerned)}: {meaning}.", ComesWarning, stacklevel=3)


# Priors that are known, and tables of priors


def fill_class_prior(known: npt.ArrayLike, estimate: ClassPriorEstimate) -> ClassPriorEstimate:
    """Return an estimate with the class priors of some labels replaced by known ones.

    Parameters
    ----------
    known : array of shape (n_labels,)
        Class priors; NaN where they are not known.
    estimate : ClassPriorEstimate
        Of all labels.

    Returns
    -------
    filled : ClassPriorEstimate
        Labels that are known have a standard error of 0 and the flag "known".

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> estimate = ClassPriorEstimate(half, half, half, half, half / 10, ("ok", "ok"))
    >>> filled = fill_class_prior([0.2, np.nan], estimate)
    >>> filled.class_prior, filled.standard_error, filled.flags
    (array([0.2, 0.5]), array([0.  , 0.05]), ('known', 'ok'))
    """
    value = np.asarray(known, dtype=float)
    q, is_known = len(estimate.class_prior), np.isfinite(value)
    if value.shape != (q,) or not ((value >= 0) & (value <= 1) | ~is_known).all():
        raise ComesError(
            f"known class priors must be one number in [0, 1] for each of {q} labels, or NaN where "
            f"they are not known; got {known!r}."
        )
    return replace(
        estimate,
        class_prior=np.where(is_known, value, estimate.class_prior),
        # The exclude rate is what the class prior implies, together with the data.
        exclude_rate=np.where(is_known, np.nan, estimate.exclude_rate),
        lower=np.where(is_known, value, estimate.lower),
        upper=np.where(is_known, value, estimate.upper),
        standard_error=np.where(is_known, 0.0, estimate.standard_error),
        flags=tuple(map(str, np.where(is_known, "known", estimate.flags))),
        exclude_rate_error=None,
    )


def count_class_prior(relevant: npt.ArrayLike) -> FloatArray:
    """Return the share of rows that each label is relevant to, from true labels.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)

    Returns
    -------
    class_prior : array of shape (n_labels,)

    Examples
    --------
    >>> count_class_prior([[1, 0], [1, 1]])
    array([1. , 0.5])
    """
    return np.asarray(as_relevant(relevant).mean(axis=0))


def prior_table(
    estimate: ClassPriorEstimate,
    label_names: Sequence[str],
    relevant: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return an estimate as a table with one row per label, and its error if the truth is known.

    Parameters
    ----------
    estimate : ClassPriorEstimate
    label_names : sequence of n_labels str
    relevant : bool array of shape (n_samples, n_labels), optional

    Returns
    -------
    table : DataFrame
        label, class_prior, lower, upper, standard_error, exclude_rate and flag; with relevant
        labels also true_prior and error.

    Examples
    --------
    >>> one = np.array([0.5])
    >>> estimate = ClassPriorEstimate(one, one, one, one, one, ("ok",))
    >>> table = prior_table(estimate, ["sky"], relevant=[[1], [0], [0], [0]])
    >>> table[["label", "class_prior", "true_prior", "error"]].values.tolist()
    [['sky', 0.5, 0.25, 0.25]]
    """
    table = pd.DataFrame(
        {
            "label": list(label_names),
            "class_prior": estimate.class_prior,
            "lower": estimate.lower,
            "upper": estimate.upper,
            "standard_error": estimate.standard_error,
            "exclude_rate": estimate.exclude_rate,
            "flag": estimate.flags,
        }
    )
    if relevant is not None:
        table["true_prior"] = count_class_prior(relevant)
        table["error"] = table["class_prior"] - table["true_prior"]
    return table


def read_priors(
    path: str | Path, label_names: Sequence[str] | None = None
) -> "ClassPriorEstimate | pd.Series[float]":
    r"""Read class priors from a table, with their standard errors if it has them.

    Parameters
    ----------
    path : str or Path
        A csv or parquet file with the columns label and class_prior, and standard_error if the
        priors were estimated: a file that ``comes priors -o`` wrote. Numbers in its column
        known_prior take the place of estimates.
    label_names : sequence of n_labels str, optional
        The order in which an estimate has the labels; by default that of the file.

    Returns
    -------
    class_prior : ClassPriorEstimate, or Series indexed by label
        An estimate if there are standard errors, unless all priors are known; what else the file
        does not have is NaN in it. Labels with neither a number nor an estimate are NaN in both.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "priors.csv"
    ...     _ = path.write_text("label,class_prior,standard_error\nsky,0.25,0.02\nsea,0.1,0.01\n")
    ...     estimate = read_priors(path, ["sea", "sky"])
    ...     _ = path.write_text("label,class_prior\nsky,0.25\nsea,0.1\n")
    ...     series = read_priors(path)
    >>> estimate.standard_error, series.to_dict()
    (array([0.01, 0.02]), {'sky': 0.25, 'sea': 0.1})
    """
    from comes.datasets.table import check_ending, read_table

    path = expanded(path)
    check_ending(path)
    table = read_table(path, ["label"])
    missing = [name for name in ("label", "class_prior") if name not in table.columns]
    if missing:
        raise ComesError(
            f"{path.name} has no column {missing[0]!r}; the columns label and class_prior are "
            f"needed, as 'comes priors -o' writes them. It has {listed(list(table.columns))}."
        )
    label = table["label"].astype(str)
    repeated = label[label.duplicated()]
    if len(repeated):
        raise ComesError(
            f"{path.name} must have one row for each label; got {repeated.iloc[0]!r} more than "
            "once. Keep one."
        )
    columns = ["class_prior", "exclude_rate", "lower", "upper", "standard_error", KNOWN_PRIOR]
    numbers = table.reindex(columns=columns).apply(pd.to_numeric, errors="coerce").astype(float)
    for name in table.columns.intersection(["class_prior", "standard_error", KNOWN_PRIOR]):
        highest = math.inf if name == "standard_error" else 1
        wrong = table[name].notna() & ~numbers[name].between(0, highest)
        if wrong.any():
            raise ComesError(
                f"the column {name} of {path.name} must hold numbers in [0, {highest}], or nothing "
                f"where one is not known; got {table[name][wrong].tolist()[0]!r} for label "
                f"{label[wrong].tolist()[0]!r}. Correct it."
            )
    known = numbers[KNOWN_PRIOR]
    if "standard_error" not in table or known.notna().all():
        return pd.Series(known.fillna(numbers["class_prior"]).to_numpy(), index=label)
    numbers["flag"] = table["flag"].fillna("ok").astype(str) if "flag" in table else "ok"
    if label_names is not None:
        numbers = numbers.iloc[match_names(label.tolist(), label_names)]
    prior, rate, lower, upper, error, value = numbers[columns].to_numpy().T.copy()
    estimate = ClassPriorEstimate(prior, rate, lower, upper, error, tuple(numbers["flag"]))
    return estimate if np.isnan(value).all() else fill_class_prior(value, estimate)
