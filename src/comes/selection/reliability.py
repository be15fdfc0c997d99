"""Whether predicted probabilities are right, from answers of any kind.

Pairs with similar probabilities are put together. If a share eta of them is relevant, a pair of
label j gets, by docs/guide/answers.md,

    no with a_j (1 - eta),   yes with b_j eta,   neither with 1 - a_j (1 - eta) - b_j eta

so that what was said has a likelihood for every eta: its maximum is the estimate, and the eta whose
log-likelihood is less than half a quantile of chi squared below it are the interval. Candidates
have b = 0 and ticked labels a = 0; with a = b = 1 (the truth) the estimate is a share.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import xlogy
from scipy.stats import chi2

from comes.answers import Answers
from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]

ETA = np.linspace(0, 1, 1001)


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities beside the shares of relevant pairs that answers speak for.

    Attributes
    ----------
    bins : DataFrame
        One row for every range of probabilities that has pairs: n_pairs, predicted (their mean
        probability), relevant (the estimated share), low and high.

    Examples
    --------
    >>> bins = pd.DataFrame({"n_pairs": [9], "predicted": [0.3], "low": [0.1], "high": [0.2]})
    >>> Reliability(bins).n_held
    0
    """

    bins: pd.DataFrame

    @property
    def n_held(self) -> int:
        """In how many ranges the mean probability lies in the interval."""
        inside = (self.bins["low"] <= self.bins["predicted"]) & (
            self.bins["predicted"] <= self.bins["high"]
        )
        return int(inside.sum())


def check_reliability(
    probabilities: npt.ArrayLike,
    answers: Answers,
    no_rate: npt.ArrayLike,
    yes_rate: npt.ArrayLike,
    *,
    n_bins: int = 10,
    level: float = 0.95,
) -> Reliability:
    """Compare predicted probabilities with what was said.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of rows that training did not see.
    answers : Answers of shape (n_samples, n_labels)
        Of the same rows. The truth is ``Answers(no=~relevant, yes=relevant)`` with rates of 1.
        Answers to questions that a model chose are left out, and so are pairs that nobody was
        asked about.
    no_rate, yes_rate : arrays of shape (n_labels,), or floats
        How often an irrelevant pair is called so (or excluded), and a relevant one (or ticked).
        Only one of them counts for candidates and for ticked labels.
    n_bins : int
        Ranges of equal width.
    level : float
        Confidence level of the intervals, which take pairs as independent.

    Returns
    -------
    reliability : Reliability

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.random((4000, 1))
    >>> relevant = rng.random((4000, 1)) < eta
    >>> truth = Answers(no=~relevant, yes=relevant)
    >>> found = check_reliability(eta, truth, 1.0, 1.0, n_bins=4)
    >>> found.bins[["predicted", "relevant"]].round(2).values.tolist()
    [[0.12, 0.14], [0.38, 0.39], [0.62, 0.64], [0.87, 0.86]]
    """
    eta = np.asarray(probabilities, dtype=np.float64)
    said = answers.without_chosen()
    if eta.shape != said.shape or not ((eta >= 0) & (eta <= 1)).all():
        raise ComesError(
            f"probabilities must lie in [0, 1] and have the shape of the answers, {said.shape}; "
            f"got {eta.shape}. Pass what predict_proba returns."
        )
    q = eta.shape[1]
    a, b = (np.broadcast_to(np.asarray(rate, dtype=np.float64), q) for rate in (no_rate, yes_rate))
    a = np.zeros(q) if said.kind == "positives" else a
    b = np.zeros(q) if said.kind == "candidates" else b
    counts = said.asked if said.asked is not None else np.ones(said.shape, dtype=bool)
    place = np.minimum((eta * n_bins).astype(int), n_bins - 1)
    rows = []
    for k in range(n_bins):
        here = counts & (place == k)
        n_pairs = here.sum(axis=0)
        if not n_pairs.any():
            continue
        no, yes = (here & said.excluded).sum(axis=0), (here & said.confirmed).sum(axis=0)
        fit = _fit_share(no, yes, n_pairs - no - yes, a, b, level)
        rows.append((int(n_pairs.sum()), float(eta[here].mean()), *fit))
    return Reliability(
        pd.DataFrame(rows, columns=["n_pairs", "predicted", "relevant", "low", "high"])
    )


def _fit_share(
    no: npt.ArrayLike,
    yes: npt.ArrayLike,
    neither: npt.ArrayLike,
    a: FloatArray,
    b: FloatArray,
    level: float,
) -> tuple[float, float, float]:
    """Return the most likely share of relevant pairs and its interval, from counts by label."""
    grid = ETA[:, None]
    likelihood = xlogy(no, a * (1 - grid)) + xlogy(yes, b * grid)
    likelihood += xlogy(neither, np.clip(1 - a * (1 - grid) - b * grid, 0, None))
    total = likelihood.sum(axis=1)  # over labels
    best = total.max()
    if not np.isfinite(best) or best - total.min() < 1e-9:  # what was said tells nothing
        return np.nan, 0.0, 1.0
    inside = ETA[total >= best - chi2.ppf(level, 1) / 2]
    return float(ETA[total.argmax()]), float(inside.min()), float(inside.max())
