r"""Where in a picture the evidence for a label is.

With A the last feature maps of a network, of c channels over places p, and g the score of a label,

.. math:: E_p = \sum_c A_{cp} \, \frac{\partial g}{\partial A_{cp}}

is what place p adds to the score. Where everything above the maps is linear, the sum over places is
the score without its bias, and the map is an exact class activation map. Where the maps are
averaged, whatever follows, it is Grad-CAM's map before its ReLU. Where the head divides features by
their length ("pooled"), the score does not depend on the strength of all features together, and the
sum is about 0: the map says which places speak more for the label than others.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional as F

from comes.errors import ComesError, listed
from comes.images.backbones import place_network
from comes.images.features import as_pictures
from comes.images.network import ImageNetwork
from comes.training.pixels import PixelRows
from comes.training.rows import choose_device

if TYPE_CHECKING:
    from comes.images.classifier import ImageClassifier

Array = npt.NDArray[np.float32]
AT_ONCE = 16  # pictures, of which the outputs of all layers are kept
LONGEST_SIDE = 96  # of a map that covers a picture of which the network sees a part
MOST_OTHER_TOKENS = 16  # of a transformer, beside those of patches


def evidence_maps(
    classifier: "ImageClassifier", images: Any, labels: Any, *, size: int | None = None
) -> Array:
    """Return where in each picture the evidence for a label is.

    Parameters
    ----------
    classifier : ImageClassifier
        Fitted.
    images : comes.datasets.Images, or sequence of n uint8 arrays of shape (height, width, 3)
    labels : str or int, or sequence of n of these
        The label of all pictures, or one for each: its name, or its column.
    size : int, optional
        Height and width of the maps; by default that of the network's last feature maps.

    Returns
    -------
    maps : array of shape (n, height, width)
        What every place adds to the score; below 0 it speaks against the label. A map covers what
        the network sees, which is the whole picture, stretched.

    Examples
    --------
    >>> from comes import ImageClassifier
    >>> rng = np.random.default_rng(0)
    >>> colours = rng.integers(0, 255, size=(40, 1, 1, 3), dtype=np.uint8)
    >>> images = np.tile(colours, (1, 16, 16, 1))
    >>> clf = ImageClassifier(
    ...     backbone=nn.AvgPool2d(8), weights=None, image_size=16, class_prior=[0.5]
    ... ).fit(images, colours[:, 0, 0, :1] > 127)
    >>> evidence_maps(clf, images[:3], "0").shape
    (3, 2, 2)
    """
    check_is_fitted(classifier)
    if size is not None and size < 1:
        raise ComesError(f"size must be 1 or more, or None; got {size}.")
    images = as_pictures(images)
    columns = torch.tensor(_number_labels(labels, classifier.label_names_, len(images)))
    device = choose_device(classifier.device)
    network = place_network(classifier.network_, device).eval()
    pixels = PixelRows(images, network.backbone.preprocessing, device, keep="nowhere")
    rows = torch.arange(len(pixels)).split(min(AT_ONCE, classifier.part_size or AT_ONCE))
    parts = []
    with classifier._explaining_memory():
        for own, batch in zip(rows, pixels.batches(rows), strict=True):
            found = trace_evidence(network, batch, columns[own].to(device))
            if size is not None:
                found = F.interpolate(found[:, None], (size, size), mode="bilinear")[:, 0]
            parts.append(found.cpu())
    return np.asarray(torch.cat(parts).numpy(), dtype=np.float32)


def lay_over(classifier: "ImageClassifier", images: Any, maps: Array) -> list[Array]:
    """Return maps that cover whole pictures, 0 where the network does not look."""
    preprocessing = classifier.network_.backbone.preprocessing
    if preprocessing.short_side is None:
        return list(maps)
    from PIL import Image

    images, covering = as_pictures(images), []
    for row, evidence in enumerate(maps):
        height, width = images[row].shape[:2]
        scale = LONGEST_SIDE / max(height, width)
        box = preprocessing.find_box(height, width)
        left, top, right, bottom = (round(scale * side) for side in box)
        whole = np.zeros((round(scale * height), round(scale * width)), np.float32)
        inside = (right - left, bottom - top)
        resized = Image.fromarray(evidence).resize(inside, Image.Resampling.BILINEAR)
        whole[top:bottom, left:right] = np.asarray(resized)
        covering.append(whole)
    return covering


def trace_evidence(network: ImageNetwork, pixels: Tensor, labels: Tensor) -> Tensor:
    """Return what every place of the last feature maps adds to a score, (n, height, width).

    ``labels`` are n columns of the scores, one for each picture.
    """
    inner, outputs, found = network.backbone.network, list[Tensor](), None

    def keep(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(output, tuple) and output:  # some networks add outputs
            output = output[0]
        is_attention = isinstance(module, nn.Dropout | nn.Softmax)  # tokens by tokens
        if isinstance(output, Tensor) and output.requires_grad and not is_attention:
            outputs.append(output)

    hooks = [module.register_forward_hook(keep) for module in inner.modules()]
    try:
        with torch.enable_grad():
            scores = network(pixels.float().requires_grad_())
    finally:
        for hook in hooks:
            hook.remove()
    score = scores.gather(1, labels[:, None]).sum()  # rows do not see each other
    for output in reversed(outputs):
        grad: Any = torch.autograd.grad
        (gradient,) = grad(score, output, retain_graph=True, allow_unused=True)
        if gradient is None:
            continue
        evidence = _sum_channels(output.detach() * gradient, inner)
        if evidence is not None and evidence.any():
            return evidence
        found = evidence if found is None else found  # of a label without weights: nothing
    if found is None:
        raise ComesError(
            "maps of evidence need a network with feature maps, (n, channels, height, width), or "
            "with tokens of square patches; this one has neither. Leave the maps (--maps) out."
        )
    return found


def _sum_channels(product: Tensor, network: nn.Module) -> Tensor | None:
    """Return the sums over channels as maps, (n, height, width); None of fewer than two places."""
    if product.ndim == 4:  # maps of square pictures; else heads of attention, over tokens
        first, second, third = product.shape[1:]
        if second < 2 or second not in (first, third):
            return None
        return product.sum(dim=1 if second == third else 3)
    if product.ndim != 3:
        return None
    n_tokens, prefix = product.shape[1], getattr(network, "num_prefix_tokens", None)  # of timm
    n_patches = n_tokens - prefix if isinstance(prefix, int) else math.isqrt(n_tokens) ** 2
    side = math.isqrt(max(n_patches, 0))
    if side < 2 or side**2 != n_patches or n_tokens - n_patches > MOST_OTHER_TOKENS:
        return None
    return product.sum(dim=2)[:, -n_patches:].reshape(-1, side, side)  # patches come last


def _number_labels(labels: Any, names: Sequence[str], n: int) -> list[int]:
    """Return one column for each of n pictures."""
    if labels is None:
        raise ComesError("labels must be a name or number, or one for each picture; got None.")
    given = [labels] * n if isinstance(labels, (str, int, np.integer)) else list(labels)
    if len(given) != n:
        raise ComesError(f"labels must be one, or one for each of {n} pictures; got {len(given)}.")
    place = {name: number for number, name in enumerate(names)}
    numbers = [place.get(label, -1) if isinstance(label, str) else int(label) for label in given]
    for label, number in zip(given, numbers, strict=True):
        if not 0 <= number < len(names):
            raise ComesError(f"the model has no label {label!r}; it has {listed(names)}.")
    return numbers
