"""Networks for rows of features and, pretrained, for images.

`linear` and `mlp` make networks for rows: functions of (number of features, number of labels) that
return a module; an `Ensemble` is several at once. A network for images is a `Backbone`, which maps
pixels to features, with a head.
"""

from comes.models.backbones import (
    Backbone,
    ImageNetwork,
    place_network,
    power_normalised,
    root_probabilities,
    zero_linear,
)
from comes.models.ensembles import Ensemble, OfEachNetwork
from comes.models.label_heads import LabelHead, find_label_head
from comes.models.making import make_backbone
from comes.models.network_files import read_network, write_network
from comes.models.preprocessing import Preprocessing, stored_preprocessing
from comes.models.resnet import ResNet
from comes.models.tabular import (
    Dropout,
    InputLayer,
    Stack,
    as_csr_tensor,
    linear,
    low_rank,
    mlp,
)
from comes.models.views import Clusters, Views, project
from comes.models.weights import choose_strides, load_weights

__all__ = [
    "Backbone",
    "Clusters",
    "Dropout",
    "Ensemble",
    "ImageNetwork",
    "InputLayer",
    "LabelHead",
    "OfEachNetwork",
    "Preprocessing",
    "ResNet",
    "Stack",
    "Views",
    "as_csr_tensor",
    "choose_strides",
    "find_label_head",
    "linear",
    "load_weights",
    "low_rank",
    "make_backbone",
    "mlp",
    "place_network",
    "power_normalised",
    "project",
    "read_network",
    "root_probabilities",
    "stored_preprocessing",
    "write_network",
    "zero_linear",
]
