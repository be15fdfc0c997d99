"""Networks that map pixels to features, and heads that map features to scores."""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from comes.models.preprocessing import Preprocessing

Module = TypeVar("Module", bound=nn.Module)


class Backbone(nn.Module):
    """A network from pixels, uint8 of shape (n, 3, h, w), to features of shape (n, n_features).

    Parameters
    ----------
    network : module
        Maps normalised images to features, or to feature maps, which are averaged.
    classifier : linear layer, optional
        Maps these to scores of the classes that the network was trained on. With it, the features
        are square roots of class probabilities: few are far from zero, and each has a meaning.
    preprocessing : Preprocessing
        How pictures become pixels; `forward` normalises these by its mean and spread.
    temperature : float
        Divides the class scores; at 1, the probabilities of most classes are nearly 0.
    config : dict, optional
        What a network that came in a folder is made of, as json holds it.

    Examples
    --------
    >>> from comes.models import ResNet
    >>> backbone = Backbone(ResNet((1, 1, 1, 1), width=4))
    >>> backbone(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 128])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        classifier: nn.Linear | None = None,
        preprocessing: Preprocessing | None = None,
        temperature: float = 2.0,
        config: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.classifier, self.temperature = network, classifier, temperature
        self.preprocessing, self.config = preprocessing or Preprocessing(), config
        for name in ("mean", "std"):
            numbers = torch.tensor(getattr(self.preprocessing, name))
            self.register_buffer(name, 255 * numbers[:, None, None])

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the features of a batch."""
        x = (pixels - self.mean) / self.std
        features = self.network(x.contiguous(memory_format=torch.channels_last))
        if isinstance(features, tuple):  # some networks of torchvision add outputs in training
            features = features[0]
        if features.ndim == 4:
            features = features.mean(dim=(2, 3))
        if self.classifier is None:
            return features  # type: ignore[no-any-return]
        return self.class_features(features)

    def class_features(self, pooled: Tensor) -> Tensor:
        """Return square roots of class probabilities, from the features before the classifier."""
        assert self.classifier is not None
        with torch.autocast(pooled.device.type, enabled=False):
            return root_probabilities(self.classifier(pooled.float()), self.temperature)

    @torch.no_grad()
    def count_features(self, size: int | None = None) -> int:
        """Return the number of features of images with this side length, or with its own."""
        was_training = self.training
        size = size or self.preprocessing.size
        features: Tensor = self.eval()(torch.zeros(1, 3, size, size, device=self.mean.device))
        self.train(was_training)
        return int(features.shape[1])


class ImageNetwork(nn.Module):
    """A network from pixels to scores: a backbone, scaling of its features, and a head.

    Parameters
    ----------
    backbone : Backbone
    head : module
        Maps scaled features to scores.
    shift, scale : float tensors of shape (n_features,), optional
        The head sees (features - shift) / scale.
    power : bool
        Apply `power_normalised` to the features first.
    freezes_statistics : bool
        Keep the statistics of batch normalisation as they are, also in training.
    views : module, optional
        Maps the features, in place of the power, to what is scaled: `comes.models.Views`.

    Examples
    --------
    >>> from comes.models import ResNet
    >>> backbone = Backbone(ResNet((1, 1, 1, 1), width=4))
    >>> network = ImageNetwork(backbone, zero_linear(128, 5), power=True)
    >>> network(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 5])
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


def place_network(module: Module, device: torch.device) -> Module:
    """Move a network for images to a device, in the faster memory format (channels last).

    Examples
    --------
    >>> network = place_network(nn.Conv2d(3, 4, 3), torch.device("cpu"))
    >>> network.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def zero_linear(d: int, q: int) -> nn.Module:
    """Return a linear layer whose weights start at zero, so that no label is favoured.

    Examples
    --------
    >>> zero_linear(3, 2)(torch.ones(1, 3))
    tensor([[0., 0.]], grad_fn=<AddmmBackward0>)
    """
    layer = nn.Linear(d, q)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def root_probabilities(scores: Tensor, temperature: float | Tensor) -> Tensor:
    """Return square roots of the softmax of scores: vectors of length 1, without zeros.

    Examples
    --------
    >>> root_probabilities(torch.zeros(1, 4), temperature=2.0)
    tensor([[0.5000, 0.5000, 0.5000, 0.5000]])
    """
    return (0.5 * (scores / temperature).log_softmax(dim=1)).exp()


def power_normalised(features: Tensor) -> Tensor:
    """Return signed square roots, with rows scaled to length 1, so that no feature dominates.

    Examples
    --------
    >>> power_normalised(torch.tensor([[9.0, 0.0, 16.0]]))
    tensor([[0.6000, 0.0000, 0.8000]])
    """
    roots = features * (features.abs() + 1e-6).rsqrt()  # its slope at 0 is finite
    return F.normalize(roots, dim=1)
