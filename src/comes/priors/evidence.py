"""How sure candidates make us that a feature says something about a label."""

from typing import Any

import numpy as np
import numpy.typing as npt

from comes.labels import BoolMatrix


def gradient_error(
    X: Any, candidates: BoolMatrix, class_prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""Return the standard error of the gradient of COMES-HL in each weight, shape (n_labels, d).

    A linear head without weights, at the level of the class prior, has the gradient
    :math:`(1 - \pi_j) (\bar x_k^{(j)} - \bar x_k)`: the mean of feature k over the :math:`n_j` rows
    that exclude label j, less that over all n rows. Where the feature says nothing about the label,
    the former are a random part of the latter, and the difference has the standard error
    :math:`(1 - \pi_j) \sigma_k \sqrt{1 / n_j - 1 / n}`.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [0.0], [2.0]])
    >>> candidates = np.array([[False], [True], [False], [False]])
    >>> gradient_error(X, candidates, np.array([0.25])).round(3)
    array([[0.217]])
    """
    n_excluded = np.maximum((~candidates).sum(axis=0), 1)
    per_label = (1 - class_prior) * np.sqrt(1 / n_excluded - 1 / len(candidates))
    return np.outer(per_label, np.asarray(X).std(axis=0))
