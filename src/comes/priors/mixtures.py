"""Mixture proportion estimation: the share of a component in a mixture, from a sample of each.

For label j, the component is the rows that exclude j, the mixture is all rows, and the proportion
is 1 - pi_j. Each function takes the two samples and returns one number in (0, 1].
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

FloatArray = npt.NDArray[np.float64]

LARGEST_LAMBDA, TOLERANCE = 8.0, 0.04  # of KM2, as published
QP_STEPS = 200
BINS = 30  # of the densities of DEDPUL


def bbe(
    component: npt.ArrayLike, mixture: npt.ArrayLike, delta: float = 0.1, gamma: float = 0.01
) -> float:
    """Return the proportion by best bin estimation: the lowest ratio of tails, penalised.

    The penalty is the uncertainty of the ratio.

    Parameters
    ----------
    component, mixture : arrays of shape (n_component,), (n_mixture,)
        Scores, higher for rows that look more like the component.
    delta, gamma : float
        Of the penalty, as published.

    References
    ----------
    Garg et al., "Mixture Proportion Estimation and PU Learning: A Modern Approach", NeurIPS 2021.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mixture = np.concatenate([rng.normal(3, 1, 3000), rng.normal(-3, 1, 7000)])
    >>> bool(abs(bbe(rng.normal(3, 1, 3000), mixture) - 0.3) < 0.05)
    True
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


def dedpul(component: npt.ArrayLike, mixture: npt.ArrayLike) -> float:
    """Return the proportion by DEDPUL: from the ratio of the two densities of scores.

    A simplified form: the densities are histograms with equally many rows of the mixture per bin,
    instead of kernel estimates; isotonic regression makes their ratio rise with the score; then
    kappa <- mean of min(1, kappa * ratio), from 1 until it converges.

    Parameters
    ----------
    component, mixture : arrays of shape (n_component,), (n_mixture,)
        Scores, higher for rows that look more like the component.

    References
    ----------
    Ivanov, "DEDPUL: Difference-of-Estimated-Densities-based Positive-Unlabeled Learning", 2020.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mixture = np.concatenate([rng.normal(3, 1, 3000), rng.normal(-3, 1, 7000)])
    >>> bool(abs(dedpul(rng.normal(3, 1, 3000), mixture) - 0.3) < 0.1)
    True
    """
    inside, everything = (np.asarray(x, dtype=float) for x in (component, mixture))
    edges = np.unique(np.quantile(everything, np.linspace(0, 1, BINS + 1)))
    if len(edges) < 3:
        return 1.0
    edges[0], edges[-1] = -np.inf, np.inf
    of_all, of_inside = (np.histogram(x, edges)[0] / len(x) for x in (everything, inside))
    rising = IsotonicRegression().fit_transform(
        np.arange(len(of_all)), of_inside / of_all, sample_weight=of_all
    )
    ratio = rising / (rising @ of_all)
    kappa = 1.0
    for _ in range(1000):
        following = float(np.minimum(1, kappa * ratio) @ of_all)
        if abs(following - kappa) < 1e-5:
            break
        kappa = following
    return kappa


def km2(component: npt.ArrayLike, mixture: npt.ArrayLike) -> float:
    """Return the proportion by kernel mean embedding with the gradient threshold KM2.

    The distance from lambda F - (lambda - 1) H to the set of distributions is nearly 0 until lambda
    passes a value that gives the proportion; bisection finds where its slope passes a threshold. As
    published, lambda is at most 8 and the proportion at most 7/8: priors below 1/8 are not found.

    Parameters
    ----------
    component, mixture : arrays of shape (n, d) or (n,)
        The cost grows with the cube of their number: take a few hundred each.

    References
    ----------
    Ramaswamy, Scott and Tewari, "Mixture Proportion Estimation via Kernel Embeddings of
    Distributions", ICML 2016.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mixture = np.concatenate([rng.normal(3, 1, 60), rng.normal(-3, 1, 60)])
    >>> bool(abs(km2(rng.normal(3, 1, 120), mixture) - 0.5) < 0.1)
    True
    """
    samples = (np.asarray(x, dtype=float) for x in (component, mixture))
    inside, everything = (x.reshape(len(x), -1) for x in samples)
    n, m = len(everything), len(inside)
    points = np.concatenate([everything, inside])
    of_all = np.concatenate([np.full(n, 1 / n), np.zeros(m)])
    of_inside = np.concatenate([np.zeros(n), np.full(m, 1 / m)])
    kernel, distance = _choose_kernel(points, of_all - of_inside)
    if distance <= 1e-12:
        return 1.0
    embeddings = _Embeddings(kernel, of_all, of_inside, float(1 / np.linalg.eigvalsh(kernel)[-1]))
    threshold = 1 / math.sqrt(min(n, m))
    if threshold > 0.9 * distance:  # the rule KM1
        threshold = 0.8 * embeddings.slope(1 + TOLERANCE / 4) + 0.2 * distance
    left, right = 1.0, LARGEST_LAMBDA
    while right - left > TOLERANCE:
        middle = (left + right) / 2
        if embeddings.slope(middle) > threshold:
            right = middle
        else:
            left = middle
    factor = (left + right) / 2
    return float(1 - 1 / factor) if factor > 1 else 1e-6


@dataclass(frozen=True)
class _Embeddings:
    """The kernel embeddings of the two samples, by the weights of the pooled points."""

    kernel: FloatArray  # (n + m, n + m)
    of_all: FloatArray  # F, (n + m,)
    of_inside: FloatArray  # H, (n + m,)
    step_size: float

    def slope(self, factor: float) -> float:
        """Return the slope, at lambda = factor, of the distance to the set of distributions."""
        above, below = (self._measure_distance(factor + h * TOLERANCE / 4) for h in (1, -1))
        return (above - below) / (TOLERANCE / 2)

    def _measure_distance(self, factor: float) -> float:
        """Return the distance at lambda = factor."""
        target = factor * self.of_all + (1 - factor) * self.of_inside
        return _measure_distance(self.kernel, target, self.step_size)


def _choose_kernel(points: FloatArray, difference: FloatArray) -> tuple[FloatArray, float]:
    """Return the Gaussian kernel, of five widths, that separates the two samples best."""
    squares = (points**2).sum(axis=1)
    gaps = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0)
    median = float(np.median(gaps[gaps > 0], axis=None)) if gaps.any() else 1.0
    widths = np.geomspace(0.1, 10, 5) * math.sqrt(max(median, 1e-12))
    kernels = [np.exp(-gaps / (2 * width**2)) for width in widths]
    distances = [math.sqrt(max(float(difference @ K @ difference), 0)) for K in kernels]
    best = int(np.argmax(distances))
    return kernels[best], distances[best]


def _measure_distance(kernel: FloatArray, target: FloatArray, step_size: float) -> float:
    """Return the distance from an embedding to the embeddings of distributions on the points."""
    weights = before = _project_on_simplex(target)
    momentum = 1.0
    for _ in range(QP_STEPS):  # accelerated projected gradient
        after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = weights + (momentum - 1) / after * (weights - before)
        before, momentum = weights, after
        weights = _project_on_simplex(ahead - step_size * (kernel @ (ahead - target)))
    gap = weights - target
    return math.sqrt(max(float(gap @ kernel @ gap), 0))


def _project_on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest point whose entries are at least 0 and sum to 1."""
    falling = np.sort(values)[::-1]
    excess = (falling.cumsum() - 1) / np.arange(1, len(values) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(values - shift, 0))
