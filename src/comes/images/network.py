"""From the features of a backbone to scores.

A head that learns from few answers needs features of which few matter to a label. Two views of the
features have that: which classes of another task, and which clusters of pictures, a picture belongs
to. The third view is the features themselves, normalised. A linear head reads the `Views` that are
there, side by side; an `ImageNetwork` is backbone, views or one of them, scaling and head.
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn
from torch.nn import functional as F

from comes.images.backbones import Backbone, root_probabilities

AT_ONCE = 4096  # rows
MOST_ROWS = 20000  # that clusters are found on
MOST_CLUSTERS, ROWS_PER_CLUSTER = 600, 10
N_DIRECTIONS = 128
SHARE = 0.1  # of all clusters that a picture belongs to


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
        cosines = project(features, self.mean, self.directions) @ self.centres.T
        return root_probabilities(cosines, self.width)


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


def make_views(
    features: npt.NDArray[np.floating],
    classifier: nn.Linear | None = None,
    temperature: float = 2.0,
    seed: int = 0,
) -> Views:
    """Return all views of features: classes, if there is a classifier, clusters, and features."""
    return Views(find_clusters(features, seed), classifier, temperature, pooled=True)


@torch.no_grad()
def show_views(
    views: Views, features: Any, device: str | torch.device = "cpu"
) -> npt.NDArray[np.float32]:
    """Return features as a head reads them; the views are moved to the device."""
    views = views.to(device).float()
    n_pooled = features.shape[1] if views.pooled else 0
    X = np.empty((len(features), views.n_sparse + n_pooled), np.float32)
    for start in range(0, len(features), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        part = torch.as_tensor(np.array(features[rows], np.float32), device=device)
        X[rows] = views(part).cpu().numpy()
    return X


def find_clusters(features: npt.NDArray[np.floating], seed: int = 0) -> Clusters:
    """Return clusters of pictures, and how widely a picture belongs to them.

    k-means on the leading principal components of normalised features, scaled to length 1. The
    width is chosen so that pictures belong, in the mean, to a tenth of the clusters: memberships
    are about as even as if they were spread over that many.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = np.arange(len(features))
    if len(rows) > MOST_ROWS:
        rows = np.sort(check_random_state(seed).choice(rows, MOST_ROWS, replace=False))
    own = torch.as_tensor(np.array(features[rows], dtype=np.float32))
    mean, directions = _find_directions(power_normalised(own).numpy(), seed)
    projected = project(own, mean, directions)
    n_clusters = max(1, min(MOST_CLUSTERS, len(rows) // ROWS_PER_CLUSTER))
    means = KMeans(n_clusters, n_init=1, max_iter=20, random_state=seed)
    with warnings.catch_warnings():  # some rows may be the same: then there are fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(projected.numpy())
    centres = F.normalize(torch.as_tensor(means.cluster_centers_, dtype=torch.float32), dim=1)
    # Of few clusters a picture belongs to more than one, or memberships would jump.
    wanted = max(SHARE * n_clusters, min(2.0, 1 + SHARE * (n_clusters - 1)))
    return Clusters(mean, directions, centres, _find_width(projected @ centres.T, wanted))


def _find_directions(normalised: npt.NDArray[np.float32], seed: int) -> tuple[Tensor, Tensor]:
    """Return the mean and the leading principal components, (d,) and (n_directions, d)."""
    from sklearn.decomposition import PCA

    n, d = normalised.shape
    if n == 1:
        return torch.from_numpy(normalised[0]), torch.eye(1, d)
    with np.errstate(divide="ignore", invalid="ignore"):  # shares of a variance of 0
        found = PCA(min(N_DIRECTIONS, n - 1, d), random_state=seed).fit(normalised)
    mean, directions = (
        torch.as_tensor(values, dtype=torch.float32) for values in (found.mean_, found.components_)
    )
    return mean, directions


def _find_width(cosines: Tensor, wanted: float) -> float:
    """Return the width at which memberships are, in the mean, as even as ``wanted`` equal ones."""
    low, high = 1e-3, 10.0
    for _ in range(30):
        width = float(np.sqrt(low * high))
        p = root_probabilities(cosines, width).square()
        n_equal = float(torch.special.entr(p).sum(dim=1).exp().mean())
        low, high = (width, high) if n_equal < wanted else (low, width)
    return width
