"""All metrics of the best labels at once."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from comes.top_metrics.gains import find_ndcg, find_precision
from comes.top_metrics.propensities import find_scored_ndcg, find_scored_precision, invert
from comes.top_metrics.rankings import check_k, compare


def evaluate_top(
    ranking: npt.ArrayLike,
    relevant: Any,
    ks: Sequence[int] = (1, 3, 5),
    propensity: npt.ArrayLike | None = None,
) -> dict[str, float]:
    """Return every metric at every k by name, such as ``precision@5``.

    Parameters
    ----------
    ranking, relevant
        As in `precision_at_k`.
    ks : sequence of int
    propensity : array of shape (n_labels,), optional
        Of the training rows, for the propensity-scored metrics; without it they are left out.

    Returns
    -------
    metrics : dict of str to float

    Examples
    --------
    >>> evaluate_top([[0.9, 0.5, 0.1]], [[1, 0, 1]], ks=[1, 2])["precision@2"]
    0.5
    """
    compared = compare(ranking, relevant, max(ks, default=1))
    heads = {k: compared.within(check_k(k)) for k in ks}
    found = {f"precision@{k}": find_precision(head, k) for k, head in heads.items()}
    found |= {f"ndcg@{k}": find_ndcg(head, k) for k, head in heads.items()}
    if propensity is not None:
        weight = invert(propensity, compared)
        for k, head in heads.items():
            found[f"propensity_precision@{k}"] = find_scored_precision(head, weight, k)
        for k, head in heads.items():
            found[f"propensity_ndcg@{k}"] = find_scored_ndcg(head, weight, k)
    return found
