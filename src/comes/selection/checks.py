"""Checks of what everything rests on: a constant exclude rate, and class priors that are right.

`check_constant_rate` tests Lemma 1's condition, that p(label j excluded | row, j irrelevant) is the
same for all rows. Candidates alone cannot show it, since it is unknown which labels are irrelevant.
The test needs rows that are irrelevant to j *for other reasons*: a small clean sample, or rules
such as "indoors, so no ski slope". Among those, exclusion must not depend on anything.

`check_ranking_risk` needs no true label. Where rates are constant and the priors right, Theorem 4
gives, for any scores of held-out rows,

    R = sum_j (1 - pi_j) E[labels that score below j | j excluded]
      = (its ranking loss, at least 0) + sum_{j<k} p(y_j = 0, y_k = 0)
     >= sum_{j<k} max(0, 1 - pi_j - pi_k)

which the class priors alone give. A risk below this floor is impossible: the assumption or the
priors are wrong. A risk above it proves neither.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comes.answers import Answers
from comes.answers.convert import as_candidates, as_relevant
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.estimates import labels_below, read_rows
from comes.selection.intervals import MIN_ROWS, prior_error
from comes.tables.encoder import encode_table

FloatArray = npt.NDArray[np.float64]

FEWEST = 20  # rows that exclude the label, and rows that do not, needed for a test
LEVEL = 0.05


@dataclass(frozen=True)
class AssumptionCheck:
    """The result of `check_constant_rate`, which documents it."""

    per_label: pd.DataFrame
    conclusion: str


def check_constant_rate(
    X: npt.ArrayLike,
    candidates: npt.ArrayLike,
    surely_irrelevant: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    seed: int = 0,
) -> AssumptionCheck:
    """Test whether, among irrelevant rows, exclusion depends on the features or on who answered.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    surely_irrelevant : bool array of shape (n_samples, n_labels)
        True where a label is known to be irrelevant, by evidence other than its exclusion: a clean
        sample (``~relevant`` on its rows), or rules. Do not mark labels because they are excluded.
    groups : array of shape (n_samples,), optional
        Who answered, or where the row comes from; tested instead of the features.
    seed : int

    Returns
    -------
    check : AssumptionCheck
        ``conclusion``, one sentence for a report, and ``per_label``, a DataFrame with n_known and
        n_excluded (known irrelevant rows, and those of them that exclude the label), rate (their
        share), auc (how well exclusion is predicted on held-out rows; 0.5 means not at all), p (of
        "not at all") and says: "not constant" if p is below 0.05 / number of labels, "nothing
        found", or "too few rows". A large p means that these rows and a linear model show no
        dependence, not that there is none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> relevant = rng.random((2000, 2)) < 0.3
    >>> depends = rng.random(2000) < np.where(X[:, 0] > 0, 0.8, 0.2)  # on the row
    >>> excluded = ~relevant & np.column_stack([rng.random(2000) < 0.5, depends])
    >>> check_constant_rate(X, ~excluded, ~relevant).per_label["says"].tolist()
    ['nothing found', 'not constant']
    """
    X = encode_table(X)
    values = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    excluded = ~as_candidates(candidates)
    irrelevant = as_relevant(surely_irrelevant)  # 0 or 1, checked
    if irrelevant.shape != excluded.shape or len(values) != len(excluded):
        raise ComesError(
            "X, candidates and surely_irrelevant must have the same rows, and the last two the "
            f"same labels; got {values.shape}, {excluded.shape} and {irrelevant.shape}."
        )
    if groups is not None and len(np.asarray(groups)) != len(excluded):
        raise ComesError(f"groups must have {len(excluded)} entries, one for each row.")
    rows = []
    for j in range(excluded.shape[1]):
        tested = irrelevant[:, j]
        group = None if groups is None else np.asarray(groups)[tested]
        rows.append(_test_label(values[tested], excluded[tested, j], group, seed))
    table = pd.DataFrame(rows)
    is_significant = table["p"] < LEVEL / max(1, int(table["p"].notna().sum()))
    table["says"] = np.where(is_significant, "not constant", "nothing found")
    table.loc[table["p"].isna(), "says"] = "too few rows"
    return AssumptionCheck(table, _conclude(table, "features" if groups is None else "groups"))


def _test_label(
    X: FloatArray,
    excluded: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.generic] | None,
    seed: int,
) -> dict[str, float]:
    """Return the exclude rate of one label, and the AUC and p-value of predicting exclusion."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    n, n_excluded = len(excluded), int(excluded.sum())
    row = {"n_known": n, "n_excluded": n_excluded, "rate": n_excluded / n if n else np.nan}
    if min(n_excluded, n - n_excluded) < FEWEST:
        return row | {"auc": np.nan, "p": np.nan}
    if groups is not None:
        counts = pd.crosstab(groups, excluded).to_numpy()
        p = float(stats.chi2_contingency(counts).pvalue) if len(counts) > 1 else 1.0
        return row | {"auc": np.nan, "p": p}
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    aucs, ps = [], []
    for half, rest in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, excluded):
        score = model.fit(X[half], excluded[half]).decision_function(X[rest])
        aucs.append(roc_auc_score(excluded[rest], score))
        of_excluded, of_kept = score[excluded[rest]], score[~excluded[rest]]
        ps.append(stats.mannwhitneyu(of_excluded, of_kept, alternative="greater").pvalue)
    # Each half is a valid test of the model of the other half; pooled scores are not.
    return row | {"auc": float(np.mean(aucs)), "p": float(min(1, 2 * min(ps)))}


def _conclude(table: pd.DataFrame, by: str) -> str:
    """Return one sentence about the labels that were tested."""
    says = table["says"].value_counts()
    tested = len(table) - int(says.get("too few rows", 0))
    if tested == 0:
        return (
            f"No label has {FEWEST} excluded and {FEWEST} kept rows that are surely irrelevant: "
            "nothing can be said. Label a small sample by hand."
        )
    broken = int(says.get("not constant", 0))
    if broken:
        return (
            f"For {broken} of {tested} labels exclusion depends on {by}: the constant-rate "
            "assumption fails there. Priors and metrics estimated from candidates are misleading "
            "for these labels; ask about rows drawn at random."
        )
    return (
        f"For none of {tested} labels was a dependence of exclusion on {by} found. That does not "
        "prove a constant rate: these rows and a linear model cannot show every dependence."
    )


@dataclass(frozen=True)
class RankingFloor:
    """The result of `check_ranking_risk`, which documents it."""

    risk: float
    high: float
    floor: float

    @property
    def is_possible(self) -> bool:
        """Whether the risk may lie at its floor or above."""
        return not self.high < self.floor

    @property
    def conclusion(self) -> str:
        """One sentence for a report."""
        numbers = (
            f"the estimated ranking risk of held-out rows is {self.risk:.4g} (at most "
            f"{self.high:.4g}), and the class priors allow {self.floor:.4g} or more"
        )
        if self.is_possible:
            return f"{numbers}: nothing speaks against the assumption or the priors."
        return (
            f"{numbers}: the class priors are wrong, or irrelevant labels are not excluded at a "
            "constant rate. Give priors that are known, or check the assumption on rows with true "
            "labels (comes priors --check)."
        )


def check_ranking_risk(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    class_prior_error: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> RankingFloor:
    """Compare the ranking risk of held-out rows with the least that the class priors allow.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Of any model; the better it is, the more the check can find.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of the same rows. Answers to questions that a model chose are left out.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
    class_prior_error : array of shape (n_labels,), optional
        Standard error of a class prior that was estimated, NaN where it is not known; by default
        that of a ClassPriorEstimate. Labels without a known error are left out, as are those that
        fewer than 5 rows exclude.
    level : float
        Confidence level of the interval whose upper end is compared, by the normal approximation
        over rows.

    Returns
    -------
    found : RankingFloor
        ``risk`` with the 0-1 loss of pairs, ``high``, its upper confidence limit, ``floor``, the
        least that the class priors allow, ``is_possible``, whether the risk may lie there or above,
        and ``conclusion``, one sentence for a report. If priors were estimated, the limit is higher
        by what their error does to the difference of risk and floor.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(2000, 4))
    >>> relevant = scores == scores.max(axis=1, keepdims=True)  # one label per row
    >>> at_random = ~relevant & (rng.random((2000, 4)) < 0.5)
    >>> check_ranking_risk(scores, ~at_random, [0.25] * 4).is_possible
    True
    >>> only_the_last = scores == scores.min(axis=1, keepdims=True)  # what is easy to exclude
    >>> check_ranking_risk(scores, ~only_the_last, [0.25] * 4).is_possible
    False
    """
    values, answers, prior = read_rows(scores, candidates, class_prior)
    error = prior_error(class_prior, class_prior_error)
    error = np.zeros(len(prior)) if error is None else error
    excluded = answers.excluded.astype(float)
    labels = (excluded.sum(axis=0) >= MIN_ROWS) & np.isfinite(error)
    excluded, below = excluded[:, labels], labels_below(values)[:, labels]
    prior, error = prior[labels], error[labels]
    share = excluded.mean(axis=0)  # n_j / n
    mean_below = (excluded * below).mean(axis=0) / share  # E[labels below j | j excluded]
    # What each row adds to the risk, to first order: each mean is a ratio of two sums over rows.
    by_row = (excluded * (below - mean_below)) @ ((1 - prior) / share)
    # One number moves the priors of all labels, as in `draw_priors`.
    up, down = (np.clip(prior + step, 0, 1) for step in (error, -error))
    by_prior = (down - up) @ mean_below - _floor(up) + _floor(down)
    standard_error = np.sqrt(by_row.var() / len(by_row) + (by_prior / 2) ** 2)
    risk = float((1 - prior) @ mean_below)
    high = risk + float(stats.norm.ppf((1 + level) / 2) * standard_error)
    return RankingFloor(risk, high, _floor(prior))


def _floor(prior: FloatArray) -> float:
    """Return the sum over pairs j < k of max(0, 1 - pi_j - pi_k)."""
    both = np.maximum(0, 1 - prior[:, None] - prior[None, :])
    return float((both.sum() - np.trace(both)) / 2)
