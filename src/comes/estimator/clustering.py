"""Clusters of pictures by the features of a frozen network, found without any label."""

import warnings

import numpy as np
import numpy.typing as npt
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from torch import Tensor

from comes.models.backbones import root_probabilities
from comes.models.views import Clusters, power_normalised, project

MOST_ROWS = 20000  # that clusters are found on
MOST_CLUSTERS, ROWS_PER_CLUSTER = 600, 10
N_DIRECTIONS = 128
SHARE = 0.1  # of all clusters that a picture belongs to


def find_clusters(features: npt.NDArray[np.floating], seed: int = 0) -> Clusters:
    """Return clusters of pictures, and how widely a picture belongs to them.

    k-means on the leading principal components of normalised features, scaled to length 1. The
    width is chosen so that pictures belong, in the mean, to a tenth of the clusters: memberships
    are about as even as if they were spread over that many.

    Parameters
    ----------
    features : array of shape (n_samples, n_features)
        Of the frozen network, as `comes.estimator.features_of` returns them.
    seed : int

    Returns
    -------
    clusters : comes.models.views.Clusters

    Examples
    --------
    >>> features = np.repeat(np.eye(3), 10, axis=0) + 0.01
    >>> clusters = find_clusters(features)
    >>> clusters(torch.as_tensor(features, dtype=torch.float32)).shape
    torch.Size([30, 3])
    """
    rows = np.arange(len(features))
    if len(rows) > MOST_ROWS:
        rows = np.sort(check_random_state(seed).choice(rows, MOST_ROWS, replace=False))
    own = torch.as_tensor(np.array(features[rows], dtype=np.float32))
    mean, directions = _find_directions(power_normalised(own).numpy(), seed)
    n_clusters = max(1, min(MOST_CLUSTERS, len(rows) // ROWS_PER_CLUSTER))
    centres = _find_centres(project(own, mean, directions), n_clusters, seed)
    clusters = Clusters(mean, directions, centres, 1.0)
    # Of few clusters a picture belongs to more than one, or memberships would jump.
    wanted = max(SHARE * n_clusters, min(2.0, 1 + SHARE * (n_clusters - 1)))
    clusters.width.fill_(_find_width(clusters.compare(own), wanted))
    return clusters


def _find_directions(normalised: npt.NDArray[np.float32], seed: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the leading principal components, (d,) and (n_directions, d)."""
    n, d = normalised.shape
    if n == 1:
        return torch.from_numpy(normalised[0]), torch.eye(1, d)
    with np.errstate(divide="ignore", invalid="ignore"):  # shares of a variance of 0
        found = PCA(min(N_DIRECTIONS, n - 1, d), random_state=seed).fit(normalised)
    mean, directions = (
        torch.as_tensor(values, dtype=torch.float32) for values in (found.mean_, found.components_)
    )
    return mean, directions


def _find_centres(projected: Tensor, n_clusters: int, seed: int) -> Tensor:
    """Return the centres of k-means, as rows of length 1."""
    means = KMeans(n_clusters, n_init=1, max_iter=20, random_state=seed)
    with warnings.catch_warnings():  # some rows may be the same: then there are fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(projected.numpy())
    centres = torch.as_tensor(means.cluster_centers_, dtype=torch.float32)
    return torch.nn.functional.normalize(centres, dim=1)


def _find_width(similarity: Tensor, wanted: float) -> float:
    """Return the width at which pictures belong to so many clusters, in the mean, by bisection."""
    low, high = 1e-3, 10.0
    for _ in range(30):
        width = float(np.sqrt(low * high))
        if _count_memberships(root_probabilities(similarity, width)) < wanted:
            low = width
        else:
            high = width
    return width


def _count_memberships(roots: Tensor) -> float:
    """Return the mean over rows of exp(entropy): how many equal memberships are as even."""
    p = roots.square()
    return float(torch.special.entr(p).sum(dim=1).exp().mean())
