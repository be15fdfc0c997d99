"""Networks for rows of features and, pretrained, for images.

`linear`, `mlp` and `low_rank` make networks for rows: functions of (number of features, number of
labels) that return a module; an `Ensemble` is several at once. `make_backbone` makes a network for
images, a `Backbone`, which maps pixels to features.
"""

from comes.models.backbones import Backbone, Preprocessing, make_backbone
from comes.models.resnet import ResNet
from comes.models.tabular import Dropout, Ensemble, InputLayer, linear, low_rank, mlp

__all__ = [
    "Backbone",
    "Dropout",
    "Ensemble",
    "InputLayer",
    "Preprocessing",
    "ResNet",
    "linear",
    "low_rank",
    "make_backbone",
    "mlp",
]
