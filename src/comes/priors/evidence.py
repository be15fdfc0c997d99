"""How certain it is, from candidates, that a feature is informative about a label."""

from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers.convert import BoolMatrix


def gradient_error(
    X: Any, candidates: BoolMatrix, class_prior: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""Return the standard error of the gradient of COMES-HL with respect to each weight.

    A linear head with zero weights, and biases that match the class prior, has the gradient
    :math:`(1 - \pi_j) (\bar x_k^{(j)} - \bar x_k)`: the mean of feature k over the :math:`n_j` rows
    that exclude label j, minus the mean over all n rows. If the feature is not informative about
    the label, the former rows are a random sample of the latter, and the standard error is
    :math:`(1 - \pi_j) \sigma_k \sqrt{1 / n_j - 1 / n}`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    class_prior : array of shape (n_labels,)

    Returns
    -------
    error : array of shape (n_labels, n_features)

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
