r"""The exclude rate of every label: out-of-fold scores, bins of rows, and a model of the bins.

An irrelevant label j is excluded with probability p_j, whatever the row, so a row with features x
excludes it with probability

.. math:: P(j \text{ excluded} \mid x) = p_j (1 - \eta_j(x)).

Three steps estimate p_j:

1. `score_out_of_fold` scores how much every row looks like excluding each label.
2. `count_bins` sorts the rows of a label by their scores and cuts them into ten bins. A share
   eta_jk of bin k has the label, so its rows exclude it with probability p_j (1 - eta_jk).
3. `fit_exclude_rates` explains all bins of all labels together, with

   .. math:: \mathrm{logit}\, p_j \sim N(\mu, \tau^2), \qquad \pi_j \sim \mathrm{Beta}, \qquad
             \eta_{jk} = \mathrm{sigmoid}(a_j + b_j z_k)^{\theta_j},

   where z_k is the normal score of the bin, and a_j makes the mean of eta_jk over bins the class
   prior pi_j. With tau = 0 all labels have one rate, and rare labels tell it; with a large tau the
   bins of each label do. Rates, priors and shapes (b_j, theta_j), and the parameters of their
   distributions, lie on grids, so that every integral is a sum.

The estimate of p_j is the median of its posterior, that of pi_j the mean. Where scores hardly tell
rows apart, the shares of all bins of a label are nearly equal. With any slopes b_j, most of these
say so if the label is rare, so that all labels look rare, and surely so. The standard errors are
root mean square distances from the estimates in a wider posterior: in it, perhaps all labels have
gentle slopes, or none (`GENTLE_SLOPES`), as likely as the bins make that. `MISFIT` is added.

`comes.priors.class_prior` has the edge cases (few rows, labels that nothing or everything excludes,
rates above 0.97), and `comes.priors.pooled` the rate of very many labels.

Below are the simpler estimates of p_j (`best_bin_rate`, `bbe`) and bounds of pi_j that assume
nothing of eta (`prior_bounds`).
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, cholesky
from scipy.special import expit, logit, ndtri, softmax, xlogy
from scipy.stats import beta
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_array, check_random_state

from comes.answers import State
from comes.answers.convert import BoolMatrix
from comes.errors import ComesError
from comes.tables.encoder import encode_table

FloatArray = npt.NDArray[np.float64]
Scores = npt.NDArray[np.floating]

N_FOLDS = 5
STRENGTHS = (30.0, 3.0, 0.3)  # of ridge regression, relative to the mean eigenvalue
MOST_COLUMNS, MOST_SUMMED = 2000, 20_000  # columns and rows of the sums that give the weights

# The model of the bins
MOST_ROWS = 3000  # more rows count as 3000: with these, bins differ from the model beyond chance
SLOPES, POWERS = (0.5, 1.0, 2.0, 3.0, 4.5), (0.15, 0.4, 1.0)  # b and theta; b = 0 beside them
GENTLE_SLOPES = ((0.5, 1.0), ())  # where scores hardly tell rows apart, or say nothing
PRIOR_EDGES = np.concatenate([[0, 0.002, 0.005], np.linspace(0.01, 1, 100)])  # cells of pi_j
PRIOR_VALUES = (PRIOR_EDGES[1:] + PRIOR_EDGES[:-1]) / 2
# Values of tau and their probabilities. One procedure for all labels is the usual case.
SPREADS, SPREAD_WEIGHTS = np.array([0.0, 0.3, 1.2]), np.array([0.8, 0.05, 0.15])
# Mean and concentration of the beta distribution. That most labels have most rows is rare.
MEANS = np.array([0.01, 0.03, 0.07, 0.12, 0.2, 0.3, 0.45, 0.6])
MEAN_WEIGHTS = np.array([0.1, 0.2, 0.5, 1, 1, 0.8, 0.4, 0.1])
CONCENTRATIONS = np.array([1.0, 3.0, 8.0, 20.0, 60.0])
MISFIT = 0.01  # of the model, relative to p_j and 1 - pi_j: no data make the errors smaller
LABELS_AT_ONCE = 200


# Scores


def check_features(X: Any, n: int) -> Any:
    """Return X as a finite matrix of n rows, else raise an error."""
    X = encode_table(X)
    try:
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
    except ValueError as error:
        raise ComesError(f"{str(error).splitlines()[0]} X must be a finite matrix.") from error
    if X.shape[0] != n:
        raise ComesError(f"X and candidates must have the same rows; got {X.shape[0]} and {n}.")
    return X


def scale_features(X: Any) -> Any:
    """Return X with features on a common scale; zeros of a sparse matrix stay zeros."""
    return (MaxAbsScaler() if sparse.issparse(X) else StandardScaler()).fit_transform(X)


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed for everything random in an estimate."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def score_out_of_fold(
    X: Any, targets: BoolMatrix | npt.NDArray[np.int8], seed: int
) -> npt.NDArray[np.float32]:
    r"""Return logits of the targets by linear models that were not fitted to the row, (n, q).

    Targets are candidates, or states of answers: YES is scored against NO. With Y = 1 or 0 less
    their mean by label, and 0 where there is neither, the weights for the rows of a fold are those
    of ridge regression on all others,

    .. math:: W = (X^T X + \lambda I)^{-1} X^T Y,

    with the lambda, one for all labels, whose scores tell YES from NO best. Scores become logits as
    if those of YES and those of NO were normal with one variance.
    """
    is_yes = targets if targets.dtype == bool else targets == State.YES
    is_no = ~targets if targets.dtype == bool else targets == State.NO
    n_yes, n_no = is_yes.sum(axis=0), is_no.sum(axis=0)
    share = (n_yes + 0.5) / (n_yes + n_no + 1)
    Y = (is_yes - share * (is_yes | is_no)).astype(np.float32)
    X, rng = _shorten_rows(X), np.random.default_rng(seed)
    folds = [fold for _, fold in KFold(N_FOLDS, shuffle=True, random_state=seed).split(Y)]
    parts = [rng.permutation(fold)[: MOST_SUMMED // N_FOLDS] for fold in folds]
    mean = np.asarray(X.mean(axis=0), dtype=np.float32).ravel()
    grams, moments = [], []
    for rows in parts:  # a sparse X stays as it is: the means are taken out of its products
        lift = np.outer(np.asarray(X[rows].sum(axis=0)) - len(rows) / 2 * mean, mean)
        grams.append(_dense(X[rows].T @ X[rows]) - lift - lift.T)
        moments.append(X[rows].T @ Y[rows] - np.outer(mean, Y[rows].sum(axis=0)))
    gram_of_all, moment_of_all, n_summed = sum(grams), sum(moments), sum(map(len, parts))
    # The mean eigenvalue; constant columns of a sparse X are rounding errors, so they count, too.
    size = (np.trace(gram_of_all) + 0.01 * n_summed * mean @ mean) / len(mean) + 1e-9
    best, logits = -np.inf, np.zeros_like(Y)
    for strength in STRENGTHS:
        score = np.empty_like(Y)
        for fold, gram, moment in zip(folds, grams, moments, strict=True):
            rest = gram_of_all - gram
            rest[np.diag_indices_from(rest)] += strength * size
            weights = cho_solve(cho_factor(rest, overwrite_a=True), moment_of_all - moment)
            score[fold] = X[fold] @ weights - mean @ weights
        high = (score * is_yes).sum(axis=0) / np.maximum(n_yes, 1)
        low = (score * is_no).sum(axis=0) / np.maximum(n_no, 1)
        inside = (score**2 * (is_yes | is_no)).sum(axis=0) - n_yes * high**2 - n_no * low**2
        n_both = np.maximum(n_yes + n_no, 1)
        slope = (high - low) / np.maximum(inside / n_both, 1e-12) * (n_yes > 0) * (n_no > 0)
        gain = (slope * abs(high - low) * n_yes * n_no / n_both).sum()
        if gain > best:
            slope = np.maximum(slope, 1e-3)  # scores that say nothing still have an order
            best, logits = gain, logit(share) + slope * (score - (high + low) / 2)
    return np.asarray(logits, dtype=np.float32)


def _shorten_rows(X: Any) -> Any:
    """Return X with fewer columns if it is wide.

    With fewer rows than columns, as many columns as rows hold all products of two rows; of more
    than 2000, those of the longest columns count.
    """
    n, d = X.shape
    X = X.astype(np.float32)
    if d > MOST_COLUMNS and n > MOST_COLUMNS:
        length = (X.multiply(X) if sparse.issparse(X) else X**2).sum(axis=0)
        X = X[:, np.sort(np.argsort(-np.asarray(length).ravel())[:MOST_COLUMNS])]
    elif d > n:
        products = _dense(X @ X.T).astype(np.float64)
        products -= products.mean(axis=0)
        products -= products.mean(axis=1, keepdims=True)
        products[np.diag_indices(n)] += 1e-6 * max(np.trace(products) / n, 1e-9)
        X = cholesky(products, lower=True).astype(np.float32)
    return X


def _dense(X: Any) -> npt.NDArray[np.floating]:
    """Return a product as an array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


# The model of all bins


class RatePosterior(NamedTuple):
    """What the bins say of every label, arrays of shape (n_labels,)."""

    exclude_rate: FloatArray  # median
    exclude_rate_error: FloatArray
    class_prior: FloatArray  # mean
    standard_error: FloatArray


def count_bins(excluded: BoolMatrix, scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return how many rows exclude each label in each bin, (q, bins), and the sizes of the bins."""
    n = len(excluded)
    order = np.argsort(-scores, axis=0, kind="stable")
    running = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)
    ends = np.unique(np.round(np.linspace(0, n, 11)).astype(int))[1:]
    return np.diff(running[ends - 1], axis=0, prepend=0).T.astype(float), np.diff(ends, prepend=0.0)


def fit_exclude_rates(count: FloatArray, size: FloatArray) -> RatePosterior:
    """Return the posterior of exclude rates and class priors, given the bins of `count_bins`."""
    scale = min(1.0, MOST_ROWS / size.sum())
    count, size = count * scale, size * scale
    fits = [_fit_bins(count, size, slopes) for slopes in (SLOPES, *GENTLE_SLOPES)]
    usual = fits[0]
    step = usual.grid[1] - usual.grid[0]
    edges = expit(np.append(usual.grid - step / 2, usual.grid[-1] + step / 2))
    rate, prior = _median(usual.of_rate, edges), usual.of_prior @ PRIOR_VALUES
    weight = softmax([fit.log_evidence for fit in fits])
    squares = np.array([fit.deviations(rate, prior) for fit in fits]) ** 2
    rate_error, prior_error = np.sqrt(np.tensordot(weight, squares, 1))
    return RatePosterior(
        rate,
        np.hypot(rate_error, MISFIT * rate),
        prior,
        np.hypot(prior_error, MISFIT * (1 - prior)),
    )


class _BinFit(NamedTuple):
    """The posterior on a grid of rates, and how likely the bins are, for some slopes."""

    grid: FloatArray  # logits of rates
    of_rate: FloatArray  # (q, rates)
    of_prior: FloatArray  # (q, priors)
    log_evidence: float

    def deviations(self, rate: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return root mean square distances from these rates and priors, (q,) each."""
        return (
            _deviation(self.of_rate, expit(self.grid), rate),
            _deviation(self.of_prior, PRIOR_VALUES, prior),
        )


def _fit_bins(count: FloatArray, size: FloatArray, slopes: tuple[float, ...]) -> _BinFit:
    """Return the posterior with these slopes.

    The grid of rates is laid twice: over all rates, then over those that some label may have.
    """
    share = count.sum(axis=1) / size.sum()
    grid = np.linspace(logit(np.clip(0.6 * share.min(), 1e-4, 0.9)), 7.6, 40)  # p_j <= 0.9995
    below = _posterior(count, size, grid, slopes)[0].sum(axis=2).cumsum(axis=1)
    first = int((below <= 0.001).sum(axis=1).min()) - 1
    last = int((below <= 1 - 0.001).sum(axis=1).max()) + 1
    grid = np.linspace(grid[max(first, 0)], grid[min(last, len(grid) - 1)], 80)
    posterior, log_evidence = _posterior(count, size, grid, slopes)
    log_evidence += math.log(grid[1] - grid[0])  # the rates of a wide grid are each likelier
    return _BinFit(grid, posterior.sum(axis=2), posterior.sum(axis=1), log_evidence)


def _posterior(
    count: FloatArray, size: FloatArray, grid: FloatArray, slopes: tuple[float, ...]
) -> tuple[FloatArray, float]:
    r"""Return the probability of every rate and prior of every label, (q, rates, priors).

    Beside it, the logarithm of how likely all bins are.

    With :math:`Z_j` the evidence of label j given (tau, Beta, mu), rate and prior summed out,

    .. math:: P(p_j, \pi_j) \propto L_j(p_j, \pi_j) \sum_{\tau, \mathrm{Beta}, \mu} w
        \prod_{i \ne j} Z_i \; P(p_j \mid \mu, \tau) \; P(\pi_j \mid \mathrm{Beta}).
    """
    likelihood = _likelihood(count, size, grid, slopes)
    q, n_rates, n_priors = likelihood.shape
    a, b, of_beta = beta_parameters()
    n_betas = len(of_beta)
    beta_weights = np.diff(beta.cdf(PRIOR_EDGES, a[:, None], b[:, None]), axis=1)  # of cells
    # (betas, labels, rates): the prior pi_j summed out.
    given_rate = np.moveaxis(likelihood @ beta_weights.T, 2, 0).reshape(-1, n_rates)
    rate_weights = [_rate_weights(grid, spread) for spread in SPREADS]  # (mu, rates) for each tau
    # Z_j for each tau, (betas * labels, mu): the rate p_j summed out.
    evidence = [np.maximum(given_rate @ weights.T, 1e-300) for weights in rate_weights]
    of_all = np.stack(
        [np.log(values).reshape(n_betas, q, n_rates).sum(axis=1) for values in evidence]
    ) + np.log(SPREAD_WEIGHTS[:, None, None] * of_beta[:, None])
    weight_of_all = np.exp(of_all - of_all.max())  # w and the product of all Z, (tau, betas, mu)
    posterior = np.zeros((q * n_rates, n_priors))
    for weights, values, of_spread in zip(rate_weights, evidence, weight_of_all, strict=True):
        of_others = of_spread[:, None] / values.reshape(n_betas, q, n_rates)
        by_rate = of_others.reshape(-1, n_rates) @ weights
        posterior += by_rate.reshape(n_betas, -1).T @ beta_weights
    product = posterior.reshape(likelihood.shape) * likelihood
    log_evidence = float(of_all.max() + math.log(weight_of_all.sum()))
    total = product.sum(axis=(1, 2), keepdims=True)
    # Of a label that these slopes cannot explain at all, nothing is known.
    posterior = np.full_like(product, 1 / (n_rates * n_priors))
    return np.divide(product, total, out=posterior, where=total > 0), log_evidence


def _likelihood(
    count: FloatArray, size: FloatArray, grid: FloatArray, slopes: tuple[float, ...]
) -> FloatArray:
    """Return the likelihood of every rate and prior, (q, rates, priors), shapes summed out.

    It is relative to the likelihood of the shares that the bins have, the highest there is.
    """
    irrelevant, of_shape = _bin_shapes(len(size), slopes)
    best = (xlogy(count, count / size) + xlogy(size - count, 1 - count / size)).sum(axis=1)
    result = np.zeros((len(count), len(grid) * (len(PRIOR_EDGES) - 1)))
    for shape, weight in zip(irrelevant, of_shape, strict=True):
        f = np.clip(expit(grid)[:, None, None] * shape, 1e-12, 1 - 1e-9).reshape(-1, len(size))
        log_f, log_rest = np.log(f).T, np.log1p(-f).T
        for start in range(0, len(count), LABELS_AT_ONCE):
            part = slice(start, start + LABELS_AT_ONCE)
            logs = count[part] @ log_f + (size - count[part]) @ log_rest
            result[part] += weight * np.exp(logs - best[part, None])
    return result.reshape(len(count), len(grid), -1)


@cache
def _bin_shapes(n_bins: int, slopes: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Return 1 - eta for every shape, prior and bin, and the weights of the shapes."""
    score = ndtri((np.arange(n_bins) + 0.5) / n_bins)  # the last bin is the most relevant
    offsets = np.linspace(-80, 80, 8001)
    shapes = [np.repeat(1 - PRIOR_VALUES[:, None], n_bins, axis=1)]  # b = 0
    for slope in slopes:
        for power in POWERS:
            mean = (expit(offsets[:, None] + slope * score) ** power).mean(axis=1)
            offset = np.interp(PRIOR_VALUES, mean, offsets)
            shapes.append(1 - expit(offset[:, None] + slope * score) ** power)
    weights = np.array([1.0, *[1 / len(POWERS)] * (len(shapes) - 1)])
    return np.array(shapes), weights / weights.sum()


@cache
def beta_parameters() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the two parameters of every beta distribution of priors, and their weights."""
    mean = np.repeat(MEANS, len(CONCENTRATIONS))
    concentration = np.tile(CONCENTRATIONS, len(MEANS))
    weight = np.repeat(MEAN_WEIGHTS, len(CONCENTRATIONS))
    return mean * concentration, (1 - mean) * concentration, weight / weight.sum()


def _rate_weights(grid: FloatArray, spread: float) -> FloatArray:
    """Return the probability of every rate, for every mean mu of their logits on the same grid."""
    if spread == 0:
        return np.eye(len(grid))
    density = np.exp(-((grid - grid[:, None]) ** 2) / (2 * spread**2))
    return np.asarray(density / density.sum(axis=1, keepdims=True))


def _median(probability: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the median of every row, the probability spread evenly over each cell."""
    below = probability.cumsum(axis=1)
    cell = np.minimum((below < 0.5).sum(axis=1), probability.shape[1] - 1)
    rows = np.arange(len(probability))
    part = 1 - (below[rows, cell] - 0.5) / np.maximum(probability[rows, cell], 1e-300)
    return np.asarray(edges[cell] + np.clip(part, 0, 1) * np.diff(edges)[cell])


def _deviation(probability: FloatArray, values: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the root mean square distance of the values from the centre of every row."""
    return np.asarray(np.sqrt((probability * (values - centre[:, None]) ** 2).sum(axis=1)))


# Simpler estimates


def best_bin_rate(excluded: BoolMatrix, scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return, per label, the share of excluding rows in the best bin, and the size of that bin.

    A bin is the k rows with the highest scores. Without relevant rows in it, its share of excluding
    rows is p_j, else lower: the best bin has the highest share, judged by Wilson's lower bound.
    It has a tenth of all rows at least, or where few rows exclude the label up to three tenths.
    """
    n, k = len(excluded), np.arange(1.0, len(excluded) + 1)[:, None]
    order = np.argsort(-scores, axis=0)
    rate = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0) / k
    z = 0.67  # standard errors
    spread = z * np.sqrt(rate * (1 - rate) / k + z**2 / (4 * k**2))
    lower = (rate + z**2 / (2 * k) - spread) / (1 + z**2 / k)
    smallest = np.maximum(0.1 * n, 25 / np.maximum(rate[-1], 1e-9))
    allowed = k >= np.minimum(smallest, 0.3 * n)
    best = np.where(allowed, lower, -1).argmax(axis=0)
    return rate[best, np.arange(rate.shape[1])], k[best, 0]


def shrink_rates(rate: FloatArray, n_bin: FloatArray) -> FloatArray:
    """Shrink rates towards their mean: a DerSimonian-Laird random-effects model of their logits."""
    rate = np.clip(rate, 0.5 / n_bin, 1 - 0.5 / n_bin)
    logits = np.log(rate / (1 - rate))
    variance = 1 / (n_bin * rate * (1 - rate))
    weight = 1 / variance
    mean = (weight * logits).sum() / weight.sum()
    excess = (weight * (logits - mean) ** 2).sum() - (len(rate) - 1)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(0.0, excess / scale) if scale > 0 else 0.0  # a single label has none
    weight = 1 / (variance + between)
    mean = (weight * logits).sum() / weight.sum()
    shrunk = (between * logits + variance * mean) / (between + variance)
    return np.asarray(1 / (1 + np.exp(-shrunk)))


def bbe(
    component: npt.ArrayLike, mixture: npt.ArrayLike, delta: float = 0.1, gamma: float = 0.01
) -> float:
    """Return the share of a component in a mixture by best bin estimation, from scores of each.

    It is the lowest ratio of the tails above a threshold, where its uncertainty is a penalty: Garg
    et al., "Mixture Proportion Estimation and PU Learning: A Modern Approach", NeurIPS 2021.
    """
    inside, everything = (np.sort(np.asarray(x, dtype=float)) for x in (component, mixture))
    thresholds = np.unique(inside)
    n_inside, n_all = len(inside), len(everything)
    share = 1 - np.searchsorted(inside, thresholds) / n_inside
    share_of_all = 1 - np.searchsorted(everything, thresholds) / n_all
    noise = math.sqrt(math.log(4 / delta) / (2 * n_all))
    noise += math.sqrt(math.log(4 / delta) / (2 * n_inside))
    ratio = share_of_all / share
    best = np.argmin(ratio + (1 + gamma) * noise / share)
    return float(min(1.0, ratio[best]))


def prior_bounds(excluded: BoolMatrix, scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the class prior that assume only a constant exclude rate.

    They hold together with a probability of at least 0.9. The upper bound is the share of rows in
    which the label is a candidate. The lower bound uses the highest lower confidence limit of the
    exclude rate, over bins of 20 rows and more that grow by a quarter.
    """
    n, error = len(excluded), (1 - 0.9) / 2
    lowest, highest = share_bounds(excluded.sum(axis=0), n, error)
    n_steps = math.ceil(math.log(max(n / 20, 1)) / math.log(1.25)) + 1
    sizes = np.ceil(20 * 1.25 ** np.arange(n_steps))
    sizes = np.unique(np.minimum(n, sizes.astype(int)))
    order = np.argsort(-scores, axis=0)
    count = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0)[sizes - 1]  # (bins, q)
    sure = share_bounds(count, sizes[:, None], error / len(sizes))[0].max(axis=0)
    lower = np.maximum(1 - highest / np.maximum(sure, 1e-9), 0)
    return np.minimum(lower, 1 - lowest), 1 - lowest


def share_bounds(
    count: npt.NDArray[np.int64], n: npt.ArrayLike, error: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return Clopper-Pearson bounds of a share, each wrong with at most the probability error."""
    count, n = np.broadcast_arrays(count, n)
    lower = np.where(count > 0, beta.ppf(error, np.maximum(count, 1), n - count + 1), 0)
    upper = np.where(count < n, beta.ppf(1 - error, count + 1, np.maximum(n - count, 1)), 1)
    return np.asarray(lower), np.asarray(upper)
