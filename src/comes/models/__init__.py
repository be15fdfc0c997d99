"""Networks: for rows of features, and pretrained ones for images.

A network for rows is a function of (number of features, number of labels) that returns a module,
`linear` or `mlp`. A network for images is a `Backbone`, which maps pixels to features, with a head.
"""

from comes.models.backbones import (
    Backbone,
    ImageNetwork,
    choose_strides,
    load_weights,
    make_backbone,
    place_network,
    power_normalised,
    zero_linear,
)
from comes.models.resnet import ResNet
from comes.models.tabular import InputLayer, Stack, as_csr_tensor, linear, mlp

__all__ = [
    "Backbone",
    "ImageNetwork",
    "InputLayer",
    "ResNet",
    "Stack",
    "as_csr_tensor",
    "choose_strides",
    "linear",
    "load_weights",
    "make_backbone",
    "mlp",
    "place_network",
    "power_normalised",
    "zero_linear",
]
