"""Networks for images: from the features of a backbone to scores.

A head that learns from few answers needs features of which few matter to a label. Two views of the
features have that: which classes of another task, and which clusters of pictures, a picture belongs
to. The third view is the features themselves, normalised. A linear head reads the `Views` that are
there, side by side; an `ImageNetwork` is backbone, views or one of them, scaling and head.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from comes.models.backbones import Backbone, root_probabilities


class ImageNetwork(nn.Module):
    """A network from pixels to scores: a backbone, scaling of its features, and a head.

    The head sees (features - shift) / scale of the features, of their `views`, or of
    `power_normalised` features. With ``freezes_statistics``, batch normalisation of the backbone
    keeps its statistics in training, too.
    """

    shift: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        backbone: Backbone,
        head: nn.Module,
        shift: Tensor | None = None,
        scale: Tensor | None = None,
        power: bool = False,
        freezes_statistics: bool = True,
        views: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.power, self.views = backbone, head, power, views
        self.freezes_statistics = freezes_statistics
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the scores of a batch."""
        return self.score_features(self.backbone(pixels))

    def score_features(self, features: Tensor) -> Tensor:
        """Return the scores of features of the backbone, computed in full precision."""
        with torch.autocast(features.device.type, enabled=False):
            features = features.float()
            if self.views is not None:
                features = self.views(features)
            elif self.power:
                features = power_normalised(features)
            if self.shift is not None:
                features = features - self.shift
            if self.scale is not None:
                features = features / self.scale
            scores: Tensor = self.head(features)
        return scores

    def train(self, mode: bool = True) -> "ImageNetwork":
        """Set the mode; frozen statistics stay in evaluation mode."""
        super().train(mode)
        if self.freezes_statistics:
            for module in self.backbone.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


class Views(nn.Module):
    """Features of shape (n, d) as a head reads them: classes, clusters, and pooled features.

    `classifier` gives scores of the classes that the network was trained on, which `temperature`
    divides. `pooled` says whether the normalised features are read, too; they come last.
    """

    def __init__(
        self,
        clusters: "Clusters | None" = None,
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
        """How many of the columns, the first ones, are memberships in classes and clusters."""
        n_classes = 0 if self.classifier is None else self.classifier.out_features
        return n_classes + (0 if self.clusters is None else len(self.clusters.centres))

    def forward(self, features: Tensor) -> Tensor:
        """Return the views of a batch, side by side."""
        parts = []
        if self.classifier is not None:
            parts.append(root_probabilities(self.classifier(features), self.temperature))
        if self.clusters is not None:
            parts.append(self.clusters(features))
        if self.pooled:
            parts.append(power_normalised(features))
        return torch.cat(parts, dim=1)


class Clusters(nn.Module):
    """Square roots of memberships in clusters of pictures, from features of shape (n, d).

    Memberships are a softmax of the cosines between a picture, projected, and the centres, divided
    by `width`: the larger, the more clusters a picture belongs to.
    """

    mean: Tensor  # of the normalised features, (d,)
    directions: Tensor  # (n_directions, d)
    centres: Tensor  # of length 1, (n_clusters, n_directions)
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
    """Return normalised features in a few directions, as rows of length 1."""
    return F.normalize((power_normalised(features) - mean) @ directions.T, dim=1)


def power_normalised(features: Tensor) -> Tensor:
    """Return signed square roots, with rows scaled to length 1, so that no feature dominates."""
    roots = features * (features.abs() + 1e-6).rsqrt()  # its slope at 0 is finite
    return F.normalize(roots, dim=1)


def zero_linear(d: int, q: int) -> nn.Module:
    """Return a linear layer whose weights start at zero, so that no label is favoured."""
    layer = nn.Linear(d, q)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
