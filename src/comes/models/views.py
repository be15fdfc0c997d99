"""Three views of the features of a picture, side by side, for one linear head.

A head that learns from few answers needs features of which few matter to a label. Two views have
that: which classes of another task, and which clusters of pictures, a picture belongs to. The third
is the features themselves.
"""

import torch
from torch import Tensor, nn

from comes.models.backbones import power_normalised, root_probabilities


class Clusters(nn.Module):
    """Square roots of memberships in clusters of pictures, from features of shape (n, d).

    Features are normalised and projected, and compared with the centres by their angle.

    Parameters
    ----------
    mean : float tensor of shape (d,)
        Of the normalised features.
    directions : float tensor of shape (n_directions, d)
    centres : float tensor of shape (n_clusters, n_directions)
        Of length 1.
    width : float
        Divides the similarities; the larger, the more clusters a picture belongs to.

    Examples
    --------
    >>> eye = torch.eye(2)
    >>> clusters = Clusters(torch.zeros(2), eye, eye, width=0.1)
    >>> clusters(torch.tensor([[4.0, 0.0], [1.0, 1.0]])).square().round(decimals=2)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """

    mean: Tensor
    directions: Tensor
    centres: Tensor
    width: Tensor

    def __init__(
        self, mean: Tensor, directions: Tensor, centres: Tensor, width: float | Tensor
    ) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("directions", directions)
        self.register_buffer("centres", centres)
        self.register_buffer("width", torch.as_tensor(width, dtype=torch.float32))

    def forward(self, features: Tensor) -> Tensor:
        """Return the roots of memberships of a batch, (n, n_clusters)."""
        return root_probabilities(self.compare(features), self.width)

    def compare(self, features: Tensor) -> Tensor:
        """Return cosines of the angles between pictures and centres, (n, n_clusters)."""
        return project(features, self.mean, self.directions) @ self.centres.T


def project(features: Tensor, mean: Tensor, directions: Tensor) -> Tensor:
    """Return normalised features in a few directions, as rows of length 1.

    Examples
    --------
    >>> project(torch.tensor([[9.0, 0.0, 16.0]]), torch.zeros(3), torch.eye(3)[:1])
    tensor([[1.]])
    """
    projected = (power_normalised(features) - mean) @ directions.T
    return nn.functional.normalize(projected, dim=1)


class Views(nn.Module):
    """Features of shape (n, d) as a head reads them: the views that are given, side by side.

    Parameters
    ----------
    clusters : Clusters, optional
    classifier : linear layer, optional
        Gives scores of classes that the network was trained on.
    temperature : float
        Divides the class scores before they become probabilities.
    pooled : bool
        Whether the normalised features themselves are read, too; they come last.

    Examples
    --------
    >>> eye = torch.eye(2)
    >>> views = Views(Clusters(torch.zeros(2), eye, eye, 0.1), nn.Linear(2, 5), pooled=True)
    >>> views(torch.ones(3, 2)).shape
    torch.Size([3, 9])
    """

    def __init__(
        self,
        clusters: Clusters | None = None,
        classifier: nn.Linear | None = None,
        temperature: float = 2.0,
        *,
        pooled: bool = False,
    ) -> None:
        super().__init__()
        self.clusters, self.classifier = clusters, classifier
        self.temperature, self.pooled = temperature, pooled

    @property
    def n_sparse(self) -> int:
        """How many of the numbers, the first ones, are memberships in classes and clusters."""
        n_classes = 0 if self.classifier is None else self.classifier.out_features
        return n_classes + (0 if self.clusters is None else len(self.clusters.centres))

    def forward(self, features: Tensor) -> Tensor:
        """Return the views of a batch."""
        parts = []
        if self.classifier is not None:
            parts.append(root_probabilities(self.classifier(features), self.temperature))
        if self.clusters is not None:
            parts.append(self.clusters(features))
        if self.pooled:
            parts.append(power_normalised(features))
        return torch.cat(parts, dim=1)
