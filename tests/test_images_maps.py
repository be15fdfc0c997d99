"""Maps of evidence: where it is by construction, and that it adds up to the score."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from comes import ImageClassifier
from comes.errors import ComesError
from comes.images import Backbone, evidence_maps, make_backbone
from comes.images.maps import lay_over, trace_evidence
from comes.images.network import ImageNetwork
from comes.training.pixels import Preprocessing
from pictures import tiny

SIDE, N_CELLS = 32, 4  # pictures of 32 pixels, in 4 x 4 cells of 8
CELL = SIDE // N_CELLS
COLOURS = ["red", "green", "blue"]


class Cells(nn.Module):
    """Maps of the mean colour above black of every cell, (n, 3, 4, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.average = nn.AvgPool2d(CELL)

    def forward(self, x: Tensor) -> Tensor:
        black = x.new_tensor([-2.1179, -2.0357, -1.8044])[:, None, None]  # after normalising
        maps: Tensor = self.average(x - black)
        return maps


class Last(Cells):
    """The same with channels last, averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.turned = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        turned: Tensor = self.turned(super().forward(x).permute(0, 2, 3, 1))
        return turned.mean(dim=(1, 2))


class Tokens(Cells):
    """The same as tokens after one of its own, which alone makes the features."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.mixed = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        patches = super().forward(x).flatten(2).transpose(1, 2)
        tokens = self.tokens(torch.cat([torch.zeros_like(patches[:, :1]), patches], dim=1))
        first = tokens.mean(dim=1, keepdim=True)
        mixed: Tensor = self.mixed(torch.cat([first, tokens[:, 1:]], dim=1))
        return mixed[:, 0]


class Flat(nn.Module):
    """Features without places."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).mean(dim=2)


def spots(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pictures with a cell of each colour at its place; relevant labels, and places."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < 0.5
    pixels = rng.integers(0, 20, (n, SIDE, SIDE, 3)).astype(np.uint8)
    places = np.stack([rng.permutation(N_CELLS**2)[:3] for _ in range(n)])
    for row, label in np.argwhere(relevant):
        top, left = (CELL * int(k) for k in divmod(places[row, label], N_CELLS))
        pixels[row, top : top + CELL, left : left + CELL, label] = 255
    return pixels, relevant, places


def as_pixels(pixels: np.ndarray) -> Tensor:
    return torch.from_numpy(pixels).permute(0, 3, 1, 2)


def linear_network(make: Callable[[], nn.Module]) -> ImageNetwork:
    torch.manual_seed(0)
    return ImageNetwork(Backbone(make()), nn.Linear(3, 3)).eval()


@pytest.mark.parametrize("make", [Cells, Last, Tokens])
def test_of_a_linear_head_every_place_adds_its_part(make: Callable[[], nn.Module]) -> None:
    """By loops: weight times activation over the number of places; together score minus bias."""
    network, (pixels, _, _) = linear_network(make), spots(5)
    labels = torch.tensor([0, 1, 2, 0, 1])
    found = trace_evidence(network, as_pixels(pixels), labels)
    assert found.shape == (5, N_CELLS, N_CELLS)
    head = network.head
    assert isinstance(head, nn.Linear)
    n_averaged = N_CELLS**2 + (make is Tokens)
    mean, std = network.backbone.mean, network.backbone.std
    maps, weight = Cells()((as_pixels(pixels) - mean) / std), head.weight.detach()
    for row, label in enumerate(labels.tolist()):
        for i in range(N_CELLS):
            for j in range(N_CELLS):
                parts = [float(weight[label, c] * maps[row, c, i, j]) for c in range(3)]
                assert found[row, i, j].item() == pytest.approx(sum(parts) / n_averaged, abs=1e-5)
    scores = network(as_pixels(pixels)).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(found.sum(dim=(1, 2)), (scores - head.bias[labels]).detach())


def test_the_sum_is_the_score_for_a_resnet_with_a_linear_head() -> None:
    network = ImageNetwork(Backbone(tiny()), nn.Linear(256, 3)).eval()
    pixels = as_pixels(np.random.default_rng(0).integers(0, 255, (4, 64, 64, 3), dtype=np.uint8))
    found = trace_evidence(network, pixels, torch.zeros(4, dtype=torch.long))
    assert found.shape == (4, 2, 2)
    assert isinstance(network.head, nn.Linear)
    expected = network(pixels)[:, 0] - network.head.bias[0]
    torch.testing.assert_close(found.sum(dim=(1, 2)), expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def fitted() -> ImageClassifier:
    pixels, relevant, _ = spots(200)
    clf = ImageClassifier(
        "bce", backbone=Cells(), weights=None, image_size=SIDE, random_state=0, features="pooled"
    )
    return clf.fit(pixels, relevant, label_names=COLOURS)


def test_a_fitted_model_points_at_the_spot(fitted: ImageClassifier) -> None:
    pixels, relevant, places = spots(40, seed=1)
    for label, name in enumerate(COLOURS):
        own = np.flatnonzero(relevant[:, label])
        maps = evidence_maps(fitted, pixels[own], name)
        assert maps.reshape(len(own), -1).argmax(axis=1).tolist() == places[own, label].tolist()


def test_every_picture_may_have_its_own_label(fitted: ImageClassifier) -> None:
    pixels, _, _ = spots(40, seed=2)  # more than one batch
    labels = [COLOURS[row % 3] for row in range(40)]
    found = evidence_maps(fitted, pixels, labels)
    for row, label in enumerate(labels):
        alone = evidence_maps(fitted, pixels[row : row + 1], label)[0]
        np.testing.assert_allclose(found[row], alone, atol=1e-5)
    numbers = evidence_maps(fitted, pixels, [row % 3 for row in range(40)])
    np.testing.assert_array_equal(numbers, found)


def test_maps_can_be_as_large_as_is_wanted(fitted: ImageClassifier) -> None:
    pixels, _, _ = spots(3)
    large = evidence_maps(fitted, pixels, 0, size=SIDE)
    assert large.shape == (3, SIDE, SIDE)
    small = evidence_maps(fitted, pixels, 0)
    means = large.reshape(3, N_CELLS, CELL, N_CELLS, CELL).mean(axis=(2, 4))
    assert (means.reshape(3, -1).argmax(axis=1) == small.reshape(3, -1).argmax(axis=1)).all()


def test_a_label_without_weights_has_no_evidence() -> None:
    network = linear_network(Cells)
    assert isinstance(network.head, nn.Linear)
    nn.init.zeros_(network.head.weight)
    found = trace_evidence(network, as_pixels(spots(2)[0]), torch.tensor([0, 1]))
    assert found.shape == (2, N_CELLS, N_CELLS) and not found.any()


def test_networks_of_libraries_have_maps() -> None:
    for name, is_fused, size, side in (
        ("timm:vit_tiny_patch16_224", True, 224, 14),
        ("timm:vit_tiny_patch16_224", False, 224, 14),  # attention passes through its own layers
        ("timm:resnet10t", True, 96, 3),
    ):
        torch.manual_seed(0)
        backbone = make_backbone(name, size=size)
        for module in backbone.modules():
            if hasattr(module, "fused_attn"):
                module.fused_attn = is_fused  # type: ignore[assignment]
        backbone.classifier = None
        network = ImageNetwork(backbone, nn.Linear(backbone.count_features(), 2)).eval()
        pixels = torch.randint(0, 255, (1, 3, size, size), dtype=torch.uint8)
        found = trace_evidence(network, pixels, torch.tensor([1]))
        assert found.shape == (1, side, side) and found.std() > 0, (name, is_fused)


def test_a_network_without_places_is_refused() -> None:
    with pytest.raises(ComesError, match="need a network with feature maps"):
        trace_evidence(linear_network(Flat), as_pixels(spots(2)[0]), torch.tensor([0, 1]))


def test_unknown_labels_are_named(fitted: ImageClassifier) -> None:
    pixels, _, _ = spots(2)
    with pytest.raises(ComesError, match="has no label 'pink'; it has"):
        evidence_maps(fitted, pixels, "pink")
    with pytest.raises(ComesError, match="has no label 3"):
        evidence_maps(fitted, pixels, 3)
    with pytest.raises(ComesError, match="one for each of 2 pictures; got 3"):
        evidence_maps(fitted, pixels, ["red", "red", "red"])
    with pytest.raises(ComesError, match="one for each picture; got None"):
        evidence_maps(fitted, pixels, None)
    with pytest.raises(ComesError, match="size must be 1 or more, or None; got 0"):
        evidence_maps(fitted, pixels, 0, size=0)


def test_a_map_of_a_centre_is_laid_where_the_network_looks() -> None:
    """Of a wide picture a square in the middle is seen: there the map is, beside it nothing."""
    wide = np.zeros((40, 32, 64, 3), dtype=np.uint8)
    clf = ImageClassifier(
        "bce",
        backbone=Backbone(Cells(), preprocessing=Preprocessing(SIDE, short_side=37)),
        weights=None,
        features="pooled",
        probe_epochs=2,
    ).fit(wide, np.arange(80).reshape(40, 2) % 3 > 0)
    maps = np.arange(1.0, 17.0, dtype=np.float32).reshape(1, 4, 4)
    (whole,) = lay_over(clf, wide[:1], maps)
    assert whole.shape == (48, 96)
    left, top, right, bottom = (
        round(1.5 * side) for side in clf.network_.backbone.preprocessing.find_box(32, 64)
    )
    assert 20 < left < 30 and right - left < 48  # less than the middle half
    seen = whole[top:bottom, left:right].copy()
    assert (seen[0, 0], seen[0, -1], seen[-1, 0], seen[-1, -1]) == (1, 4, 13, 16)
    whole[top:bottom, left:right] = 0
    assert (seen > 0).all() and not whole.any()


def test_the_size_of_pictures_may_be_that_of_the_network() -> None:
    pixels, relevant, _ = spots(40)
    own = Backbone(Cells(), preprocessing=Preprocessing(SIDE))
    clf = ImageClassifier("bce", backbone=own, weights=None, probe_epochs=2).fit(pixels, relevant)
    assert clf.image_size is None
    assert evidence_maps(clf, pixels[:2], 0).shape == (2, N_CELLS, N_CELLS)
