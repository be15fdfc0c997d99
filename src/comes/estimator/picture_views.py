"""Pictures as a head of several views reads them: made once, from features of a frozen network."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.clustering import find_clusters
from comes.models.views import Views

Array = npt.NDArray[np.float32]
AT_ONCE = 4096  # rows
KINDS = ("classes", "clusters", "both", "all")
WITH_CLASSES = ("classes", "both")  # not without a classifier


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a head of views is trained on.

    Attributes
    ----------
    X : float32 array of shape (n_samples, n_sparse + n_pooled)
        From `show_views`.
    answers : Answers
    n_sparse : int
        How many features, the first ones, say which classes and clusters a picture belongs to; the
        others are the normalised features of the network, if the head reads them: `Views.n_sparse`.

    Examples
    --------
    >>> said = Answers.from_candidates([[True], [False]])
    >>> evidence = Evidence(np.ones((2, 5), np.float32), said, n_sparse=3)
    >>> evidence.sparse.shape, evidence.pooled.shape, len(evidence[[0]].answers)
    ((2, 3), (2, 2), 1)
    """

    X: Array
    answers: Answers
    n_sparse: int

    def __getitem__(self, rows: Any) -> "Evidence":
        return Evidence(self.X[rows], self.answers[rows], self.n_sparse)

    @property
    def sparse(self) -> Array:
        """What the teacher reads: classes and clusters."""
        return self.X[:, : self.n_sparse]

    @property
    def pooled(self) -> Array | None:
        """What the student reads: normalised features; None if there is none."""
        return None if self.n_sparse == self.X.shape[1] else self.X[:, self.n_sparse :]


def make_views(
    features: npt.NDArray[np.floating],
    kind: str = "all",
    classifier: nn.Linear | None = None,
    temperature: float = 2.0,
    seed: int = 0,
) -> Views:
    """Return the views of features that a head is to read.

    Parameters
    ----------
    features : array of shape (n_samples, n_features)
        Of pictures to train on, from below the classifier of a frozen network: `features_of`.
    kind : {"all", "both", "classes", "clusters"}
        What is read: memberships in classes, in clusters, or ``both``; ``all`` adds the normalised
        features themselves, and does without classes where there is no classifier.
    classifier : linear layer from n_features to classes, optional
        That the network was trained with.
    temperature : float
        Divides the scores of classes before they become probabilities.
    seed : int
        Of the clusters, which are found without any label.

    Returns
    -------
    views : comes.models.views.Views

    Examples
    --------
    >>> features = np.random.default_rng(0).random((40, 6), dtype=np.float32)
    >>> views = make_views(features, classifier=nn.Linear(6, 5))
    >>> views(torch.from_numpy(features)).shape, views.n_sparse  # 5 classes and 4 clusters
    (torch.Size([40, 15]), 9)
    """
    if kind not in KINDS or (kind in WITH_CLASSES and classifier is None):
        raise ComesError(
            f"kind must be one of {', '.join(KINDS)}, and {' and '.join(WITH_CLASSES)} need a "
            f"classifier; got {kind!r} and {classifier}."
        )
    clusters = None if kind == "classes" else find_clusters(features, seed)
    classes = None if kind == "clusters" else classifier
    return Views(clusters, classes, temperature, pooled=kind == "all")


@torch.no_grad()
def show_views(views: Views, features: Any, device: str | torch.device = "cpu") -> Array:
    """Return features of pictures as a head reads them.

    Parameters
    ----------
    views : comes.models.views.Views
        Is moved to the device.
    features : array of shape (n_samples, n_features)
    device : str or torch device

    Returns
    -------
    X : float32 array of shape (n_samples, n_sparse + n_pooled)

    Examples
    --------
    >>> features = np.random.default_rng(0).random((40, 6), dtype=np.float32)
    >>> show_views(make_views(features, "clusters"), features).shape
    (40, 4)
    """
    views = views.to(device).float()
    n_pooled = features.shape[1] if views.pooled else 0
    X = np.empty((len(features), views.n_sparse + n_pooled), np.float32)
    for start in range(0, len(features), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        part = torch.as_tensor(np.array(features[rows], np.float32), device=device)
        X[rows] = views(part).cpu().numpy()
    return X
