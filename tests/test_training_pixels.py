from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from comes.datasets import Images
from comes.errors import ComesError
from comes.images.network import zero_linear
from comes.risks import HammingRisk
from comes.training import TrainOptions, make_optimizer, predict_scores, train
from comes.training.pixels import Augmentation, PixelRows, augment_pixels, mix_pairs
from comes.training.seeding import seeded
from pictures import SIZE, pictures

CPU = torch.device("cpu")
PRIOR = torch.tensor([0.2, 0.3, 0.5])
SGD = make_optimizer("sgd", learning_rate=0.01)
PICTURES = list(pictures(50)[0])
BATCHES = list(torch.randperm(50, generator=torch.Generator().manual_seed(0)).split(3))


def unequal_pictures() -> list[npt.NDArray[np.uint8]]:
    rng = np.random.default_rng(0)
    sides = [(9, 20), (32, 32), (16, 16), (40, 17), (1, 3)]
    return [rng.integers(0, 256, (*side, 3)).astype(np.uint8) for side in sides]


def test_batches_are_pictures_as_pillow_resizes_them() -> None:
    images, order = unequal_pictures(), [4, 0, 2, 1, 3, 0]
    for keep in ("memory", "nowhere", "device"):
        (batch,) = PixelRows(images, 16, CPU, keep=keep).batches([torch.tensor(order)])
        assert batch.dtype == torch.uint8
        for row, pixels in zip(order, batch, strict=True):
            resized = Image.fromarray(images[row]).resize((16, 16), Image.Resampling.BILINEAR)
            assert np.array_equal(pixels.permute(1, 2, 0).numpy(), np.asarray(resized)), keep
        assert np.array_equal(batch[2].permute(1, 2, 0).numpy(), images[2])  # as it was


@pytest.mark.parametrize("keep", ["memory", "nowhere", "device", None])
def test_where_pictures_are_kept_changes_no_batch(keep: str | None) -> None:
    rows = PixelRows(PICTURES, SIZE, CPU, keep=keep)
    first, again = (next(rows.batches(BATCHES)) for _ in range(2))  # epochs that are left early
    assert torch.equal(first, again)
    for _ in range(2):  # epochs
        found = list(rows.batches(BATCHES))
        assert len(found) == len(BATCHES)
        for numbers, pixels in zip(BATCHES, found, strict=True):
            expected = np.stack([PICTURES[row] for row in numbers]).transpose(0, 3, 1, 2)
            assert np.array_equal(pixels.numpy(), expected)


def test_pictures_are_kept_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty pictures of 8 x 8 pixels take 9600 bytes, of 24000 that are free 0.4."""
    free = {"SC_AVPHYS_PAGES": 12001, "SC_PAGE_SIZE": 2}
    monkeypatch.setattr("os.sysconf", free.__getitem__)
    assert PixelRows(PICTURES, 8, CPU).keep == "memory"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # every process keeps as many
    assert PixelRows(PICTURES, 8, CPU).keep == "nowhere"
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    free["SC_AVPHYS_PAGES"] = 12000
    assert PixelRows(PICTURES, 8, CPU).keep == "nowhere"


def test_pictures_are_decoded_once_or_in_every_epoch() -> None:
    class Counted(list[Any]):
        asked = 0

        def __getitem__(self, row: Any) -> Any:
            self.asked += 1
            return super().__getitem__(row)

    for keep, times in (("memory", 1), ("device", 1), ("nowhere", 2)):
        rows = PixelRows(images := Counted(PICTURES), 8, CPU, keep=keep)
        assert len(rows) == 50
        for _ in range(2):
            list(rows.batches(BATCHES))
        assert images.asked == 50 * times


def test_a_broken_picture_is_named_from_whatever_thread(tmp_path: Path) -> None:
    for name in ("a.png", "c.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"no picture")
    images: Any = Images(tmp_path, ["a.png", "b.png", "c.png"])
    for keep in ("memory", "nowhere"):
        rows = PixelRows(images, 4, CPU, keep=keep)
        with pytest.raises(ComesError, match="the image 'b.png' cannot be read"):
            list(rows.batches([torch.tensor([0]), torch.tensor([2, 1]), torch.tensor([0, 2])]))


def test_another_augmentation_and_another_place_are_refused() -> None:
    wrong: Any = "rotate"
    with pytest.raises(ComesError, match="must be one of none, flip, crop, mixup; got 'rotate'"):
        PixelRows(PICTURES, 8, CPU, wrong)


def as_batch(n: int = 40) -> Tensor:
    return torch.from_numpy(np.stack(PICTURES[:n])).permute(0, 3, 1, 2)


def test_without_augmentation_a_batch_is_the_same_object() -> None:
    pixels = as_batch()
    assert augment_pixels(pixels, "none") is pixels


def test_flip_mirrors_about_half_of_the_pictures_and_leaves_the_others() -> None:
    pixels = as_batch()
    with seeded(0, CPU):
        flipped = augment_pixels(pixels, "flip")
    is_mirrored = [torch.equal(a, b.flip(2)) for a, b in zip(flipped, pixels, strict=True)]
    is_same = [torch.equal(a, b) for a, b in zip(flipped, pixels, strict=True)]
    assert flipped.dtype == torch.uint8
    assert is_mirrored == [not same for same in is_same]
    assert 10 < sum(is_mirrored) < 30


def coordinates(n: int) -> Tensor:
    """Pictures whose colours say where one is: row, column, and a constant."""
    line = torch.linspace(0, 255, 64)
    one = torch.stack([line[:, None].expand(64, 64), line.expand(64, 64), torch.full((64, 64), 7)])
    return one.expand(n, 3, 64, 64)


def test_crop_shows_a_part_of_the_picture_larger_and_never_what_is_not_there() -> None:
    with seeded(0, CPU):
        cut = augment_pixels(coordinates(200), "crop")
    assert cut.shape == (200, 3, 64, 64)
    assert cut.is_floating_point()
    torch.testing.assert_close(cut[:, 2], torch.full((200, 64, 64), 7.0))
    assert cut.min() >= 0
    assert cut.max() <= 255
    step = 255 / 63
    down = cut[:, 0].diff(dim=1)[:, 1:-1] / step  # rows of the picture per row of the part
    across = cut[:, 1].diff(dim=2)[:, :, 1:-1] / step
    side = down.mean(dim=(1, 2))
    assert (down - side[:, None, None]).abs().max() < 0.01
    assert (across.abs() - side[:, None, None]).abs().max() < 0.01  # not distorted
    assert 0.6 <= side.min() < 0.65
    assert 0.95 < side.max() <= 1
    mirrored = (across.mean(dim=(1, 2)) < 0).sum().item()
    assert 70 < mirrored < 130
    top, left = cut[:, 0].amin(dim=(1, 2)), cut[:, 1].amin(dim=(1, 2))
    assert abs(np.corrcoef(top, left)[0, 1]) < 0.6  # both depend on the side
    assert (top < 10).any()
    assert (cut[:, 0].amax(dim=(1, 2)) > 245).any()
    assert (top > 60).any()


def test_crop_gives_colours_of_the_picture() -> None:
    pixels = as_batch()
    with seeded(0, CPU):
        cut = augment_pixels(pixels, "crop")
    assert cut.shape == pixels.shape
    assert (cut.amax(dim=(2, 3)) <= pixels.amax(dim=(2, 3)) + 1e-3).all()
    assert (cut.amin(dim=(2, 3)) >= pixels.amin(dim=(2, 3)) - 1e-3).all()


def test_the_seed_of_torch_decides_the_augmentation() -> None:
    unchanged = torch.cat(list(PixelRows(PICTURES, SIZE, CPU).batches(BATCHES)))
    augmentations: list[Augmentation] = ["flip", "crop"]
    for augment in augmentations:
        rows = PixelRows(PICTURES, SIZE, CPU, augment)
        results = []
        for seed in (0, 0, 1):
            with seeded(seed, CPU):
                batches = rows.batches(BATCHES, training=True)
                results.append(torch.cat([batch.float() for batch in batches]))
        assert torch.equal(results[0], results[1])
        assert not torch.equal(results[0], results[2])
        assert torch.equal(torch.cat(list(rows.batches(BATCHES))), unchanged)  # only in training


def test_pictures_train_and_score_as_a_tensor_does() -> None:
    """A network on PixelRows and on a tensor with the same numbers."""
    tensor = as_batch(50).float()
    candidates = torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) < 0.6
    scores = []
    for rows in (tensor, PixelRows(PICTURES, SIZE, CPU, keep="nowhere")):
        with seeded(0, CPU):
            network = nn.Sequential(nn.Flatten(), ToFloat(), zero_linear(3 * SIZE**2, 3))
        train(
            network, rows, candidates, HammingRisk(PRIOR), TrainOptions(SGD, epochs=2, batch_size=9)
        )
        scores.append(predict_scores(network, rows, batch_size=7))
    torch.testing.assert_close(scores[0], scores[1], rtol=1e-5, atol=1e-6)
    assert scores[0].std() > 0


def test_networks_are_trained_on_augmented_pictures() -> None:
    given: list[Tensor] = []

    class Noting(ToFloat):
        def forward(self, x: Tensor) -> Tensor:
            given.append(x)
            return super().forward(x)

    candidates = torch.ones(50, 3, dtype=torch.bool)
    for keep in ("memory", "nowhere", "device"):
        given.clear()
        rows = PixelRows(PICTURES, SIZE, CPU, "crop", keep)
        network = nn.Sequential(nn.Flatten(), Noting(), zero_linear(3 * SIZE**2, 3))
        train(network, rows, candidates, HammingRisk(PRIOR), TrainOptions(SGD, epochs=1))
        assert given[0].is_floating_point(), keep  # a cut is interpolated; the pictures are uint8


class ToFloat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float() / 255


def test_large_photos_are_not_decoded_whole(tmp_path: Path) -> None:
    """At a quarter of its size, a photo looks the same when it is shown at a tenth."""
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    coarse.resize((800, 600), Image.Resampling.BICUBIC).save(tmp_path / "large.jpg", quality=95)
    coarse.resize((120, 90), Image.Resampling.BICUBIC).save(tmp_path / "small.jpg", quality=95)
    images: Any = Images(tmp_path, ["large.jpg", "small.jpg"])
    assert images.read_reduced(0, 128).shape == (150, 200, 3)
    assert images.read_reduced(0, None).shape == images[0].shape == (600, 800, 3)
    np.testing.assert_array_equal(images.read_reduced(1, 128), images[1])
    (pixels,) = PixelRows(images, 64, CPU).batches([torch.arange(2)])
    (whole,) = PixelRows([images[0], images[1]], 64, CPU).batches([torch.arange(2)])
    assert torch.equal(pixels[1], whole[1])
    assert 0 < (pixels[0].int() - whole[0].int()).abs().max() <= 3


def test_a_row_keeps_the_larger_share_and_takes_the_rest_from_the_row_before() -> None:
    torch.manual_seed(0)
    x, targets = torch.rand(50, 3, 4), torch.rand(50, 2)
    mixed, mixed_targets = mix_pairs(x, targets)
    shares = []
    for i in range(50):
        own = ((mixed[i] - x[i - 1]) / (x[i] - x[i - 1])).median()
        shares.append(float(own))
        torch.testing.assert_close(mixed[i], own * x[i] + (1 - own) * x[i - 1])
        expected = own * targets[i] + (1 - own) * targets[i - 1]
        torch.testing.assert_close(mixed_targets[i], expected, rtol=1e-4, atol=1e-5)
    assert 0.5 <= min(shares) < 0.6 and 0.9 < max(shares) <= 1  # even over [1/2, 1]


def test_pixels_that_are_mixed_become_floats() -> None:
    mixed, _ = mix_pairs(torch.full((4, 3, 2, 2), 255, dtype=torch.uint8), torch.ones(4, 1))
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, torch.full((4, 3, 2, 2), 255.0))
