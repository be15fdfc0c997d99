"""A test of the central assumption: an irrelevant label is excluded at a constant rate.

Lemma 1 of the paper needs p(label j excluded | row, j irrelevant) to be the same for all rows.
Since it is unknown which labels are irrelevant, candidates alone cannot show it. The test needs
rows that are irrelevant to j *for other reasons*: a small clean sample, or rules such as "indoors,
so no ski slope". Among those, exclusion must not depend on anything.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from comes.answers.convert import as_candidates, as_relevant
from comes.columns import encode_table
from comes.errors import ComesError

FEWEST = 20  # rows that exclude the label, and rows that do not, needed for a test
LEVEL = 0.05


@dataclass(frozen=True)
class AssumptionCheck:
    """The result of `check_constant_rate`.

    Attributes
    ----------
    per_label : DataFrame
        One row per label: n_known, n_excluded, rate, auc, p and says.
    conclusion : str
        One sentence for a report.

    Examples
    --------
    >>> check = check_constant_rate([[0.0], [1.0]], [[1], [0]], [[1], [1]])
    >>> check.per_label[["n_known", "n_excluded", "says"]].values.tolist()
    [[2, 1, 'too few rows']]
    >>> check.conclusion[:47]
    'No label has 20 excluded and 20 kept rows that '
    """

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
        Per label: the rate at which known irrelevant rows exclude it, how well exclusion can be
        predicted (AUC on held-out rows; 0.5 means not at all), and a p-value of "not at all". A p
        below 0.05 / number of labels means that the assumption fails for the label. A large p means
        that these rows and a linear model show no dependence, not that there is none.

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
    known = as_relevant(surely_irrelevant)  # 0 or 1, checked
    if known.shape != excluded.shape or len(values) != len(excluded):
        raise ComesError(
            "X, candidates and surely_irrelevant must have the same rows, and the last two the "
            f"same labels; got {values.shape}, {excluded.shape} and {known.shape}."
        )
    if groups is not None and len(np.asarray(groups)) != len(excluded):
        raise ComesError(f"groups must have {len(excluded)} entries, one for each row.")
    rows = []
    for j in range(excluded.shape[1]):
        here = known[:, j]
        own = None if groups is None else np.asarray(groups)[here]
        rows.append(_test_label(values[here], excluded[here, j], own, seed))
    table = pd.DataFrame(rows)
    is_significant = table["p"] < LEVEL / max(1, int(table["p"].notna().sum()))
    table["says"] = np.where(is_significant, "not constant", "nothing found")
    table.loc[table["p"].isna(), "says"] = "too few rows"
    return AssumptionCheck(table, _conclude(table, "features" if groups is None else "groups"))


def _test_label(
    X: npt.NDArray[np.float64],
    excluded: npt.NDArray[np.bool_],
    groups: npt.NDArray[np.generic] | None,
    seed: int,
) -> dict[str, float]:
    """Return the exclude rate of one label, and the AUC and p-value of predicting exclusion."""
    n, n_excluded = len(excluded), int(excluded.sum())
    row = {"n_known": n, "n_excluded": n_excluded, "rate": n_excluded / n if n else np.nan}
    if min(n_excluded, n - n_excluded) < FEWEST:
        return row | {"auc": np.nan, "p": np.nan}
    if groups is not None:
        counts = pd.crosstab(groups, excluded).to_numpy()
        p = float(stats.chi2_contingency(counts).pvalue) if len(counts) > 1 else 1.0
        return row | {"auc": np.nan, "p": p}
    return row | _predict_exclusion(X, excluded, seed)


def _predict_exclusion(
    X: npt.NDArray[np.float64], excluded: npt.NDArray[np.bool_], seed: int
) -> dict[str, float]:
    """Return how well a linear model predicts exclusion on the half it was not trained on."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    aucs, ps = [], []
    for fitted, rest in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, excluded):
        score = model.fit(X[fitted], excluded[fitted]).decision_function(X[rest])
        is_out = excluded[rest]
        aucs.append(roc_auc_score(is_out, score))
        above = stats.mannwhitneyu(score[is_out], score[~is_out], alternative="greater")
        ps.append(above.pvalue)
    # Each half is a valid test of the model of the other half; pooled scores are not.
    return {"auc": float(np.mean(aucs)), "p": float(min(1, 2 * min(ps)))}


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
