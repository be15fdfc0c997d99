import copy
from collections.abc import Callable, Iterator
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
from comes.generation import case_a, case_b
from comes.labels import BoolMatrix
from comes.models import mlp, zero_linear
from comes.priors import gradient_error
from comes.risks import hamming_risk, ranking_risk
from comes.training import PixelRows, ProximalGradient, add_gradient, predict_scores, seeded, train
from comes.training.pixels import Augmentation, augmented, fastest_convolutions
from drawn_problems import annotate, prior_of, problem
from pictures import SIZE, pictures

CPU = torch.device("cpu")
PICTURES = list(pictures(50)[0])
BATCHES = list(torch.randperm(50, generator=torch.Generator().manual_seed(0)).split(3))


def unequal_pictures() -> list[npt.NDArray[np.uint8]]:
    rng = np.random.default_rng(0)
    sides = [(9, 20), (32, 32), (16, 16), (40, 17), (1, 3)]
    return [rng.integers(0, 256, (*side, 3)).astype(np.uint8) for side in sides]


@pytest.mark.parametrize("keep", ["memory", "nowhere", "device"])
def test_batches_are_pictures_as_pillow_resizes_them(keep: str) -> None:
    images = unequal_pictures()
    (batch,) = PixelRows(images, 16, CPU, keep=keep).batches([torch.tensor([4, 0, 2, 1, 3, 0])])
    assert batch.dtype == torch.uint8
    for row, pixels in zip([4, 0, 2, 1, 3, 0], batch, strict=True):
        resized = Image.fromarray(images[row]).resize((16, 16), Image.Resampling.BILINEAR)
        assert np.array_equal(pixels.permute(1, 2, 0).numpy(), np.asarray(resized))
    assert np.array_equal(batch[2].permute(1, 2, 0).numpy(), images[2])  # as it was


@pytest.mark.parametrize("keep", ["memory", "nowhere", "device", None])
def test_where_pictures_are_kept_changes_no_batch(keep: str | None) -> None:
    rows = PixelRows(PICTURES, SIZE, CPU, keep=keep)
    for _ in range(2):  # epochs
        found = list(rows.batches(BATCHES))
        assert len(found) == len(BATCHES)
        for numbers, pixels in zip(BATCHES, found, strict=True):
            expected = np.stack([PICTURES[row] for row in numbers]).transpose(0, 3, 1, 2)
            assert np.array_equal(pixels.numpy(), expected)


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


@pytest.mark.parametrize("keep", ["memory", "nowhere"])
def test_an_epoch_can_be_left_early(keep: str) -> None:
    rows = PixelRows(PICTURES, 8, CPU, keep=keep)
    first = next(rows.batches(BATCHES))
    again = next(rows.batches(BATCHES))
    assert torch.equal(first, again)


@pytest.mark.parametrize("keep", ["memory", "nowhere"])
def test_a_broken_picture_is_named_from_whatever_thread(keep: str, tmp_path: Path) -> None:
    for name in ("a.png", "c.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "b.png").write_bytes(b"no picture")
    rows: Any = PixelRows(Images(tmp_path, ["a.png", "b.png", "c.png"]), 4, CPU, keep=keep)  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="the image 'b.png' cannot be read"):
        list(rows.batches([torch.tensor([0]), torch.tensor([2, 1]), torch.tensor([0, 2])]))


def test_another_augmentation_is_refused() -> None:
    wrong: Any = "rotate"
    with pytest.raises(ComesError, match="augment must be one of none, flip, crop; got 'rotate'"):
        PixelRows(PICTURES, 8, CPU, wrong)


def as_batch(n: int = 40) -> Tensor:
    return torch.from_numpy(np.stack(PICTURES[:n])).permute(0, 3, 1, 2)


def test_without_augmentation_a_batch_is_the_same_object() -> None:
    pixels = as_batch()
    assert augmented(pixels, "none") is pixels


def test_flip_mirrors_about_half_of_the_pictures_and_leaves_the_others() -> None:
    pixels = as_batch()
    with seeded(0, CPU):
        flipped = augmented(pixels, "flip")
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
        cut = augmented(coordinates(200), "crop")
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
    cut = augmented(pixels, "crop")
    assert cut.shape == pixels.shape
    assert (cut.amax(dim=(2, 3)) <= pixels.amax(dim=(2, 3)) + 1e-3).all()
    assert (cut.amin(dim=(2, 3)) >= pixels.amin(dim=(2, 3)) - 1e-3).all()


@pytest.mark.parametrize("augment", ["flip", "crop"])
def test_the_seed_of_torch_decides_the_augmentation(augment: Augmentation) -> None:
    rows = PixelRows(PICTURES, SIZE, CPU, augment)
    results = []
    for seed in (0, 0, 1):
        with seeded(seed, CPU):
            results.append(torch.cat([b.float() for b in rows.batches(BATCHES, training=True)]))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    plain = torch.cat(list(rows.batches(BATCHES)))  # only in training
    assert torch.equal(plain, torch.cat(list(PixelRows(PICTURES, SIZE, CPU).batches(BATCHES))))


def test_training_and_scoring_see_the_rows_of_a_tensor() -> None:
    """A network on PixelRows and on a tensor with the same numbers."""
    tensor = as_batch(50).float()
    candidates = torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) < 0.6
    scores = []
    for rows in (tensor, PixelRows(PICTURES, SIZE, CPU, keep="nowhere")):
        with seeded(0, CPU):
            network = nn.Sequential(nn.Flatten(), ToFloat(), zero_linear(3 * SIZE**2, 3))
        train(
            network, rows, candidates, risk_of("hamming", 3), optimizer=sgd, epochs=2, batch_size=9
        )
        scores.append(predict_scores(network, rows, batch_size=7))
    torch.testing.assert_close(scores[0], scores[1], rtol=1e-5, atol=1e-6)
    assert scores[0].std() > 0


class ToFloat(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float() / 255


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01)


@pytest.mark.parametrize("before", [True, False])
def test_the_choice_of_algorithms_is_restored(before: bool) -> None:
    was = torch.backends.cudnn.benchmark
    try:
        torch.backends.cudnn.benchmark = before
        with pytest.raises(ZeroDivisionError), fastest_convolutions():
            assert torch.backends.cudnn.benchmark
            _ = 1 / 0
        assert torch.backends.cudnn.benchmark == before
    finally:
        torch.backends.cudnn.benchmark = was


# Gradients

X, _ = problem(seed=5, q=6)
_, RELEVANT = problem(seed=6)
CANDIDATES = annotate(RELEVANT, 0.3, seed=7)
PRIOR = prior_of(RELEVANT)


def risk_of(name: str, q: int = 4) -> Callable[[Tensor, Tensor], Tensor]:
    prior = PRIOR[:q]
    if name == "hamming":
        return lambda scores, candidates: hamming_risk(scores, candidates, prior.to(scores.dtype))
    return lambda scores, candidates: ranking_risk(
        scores, candidates, prior.to(scores.dtype), flood_level=100.0
    )


def network(*extra: nn.Module) -> nn.Module:
    with seeded(0, CPU):
        made = nn.Sequential(nn.Linear(6, 8), *extra, nn.ReLU(), nn.Linear(8, 4)).double()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
            assert module.running_var is not None
            module.running_var.copy_(torch.linspace(0.5, 2, 8))
    return made


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("name", ["hamming", "ranking"])
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("part_size", [1, 7, 20, 39])
def test_in_parts_risk_and_gradient_are_those_of_the_batch(
    name: str, normalised: bool, part_size: int
) -> None:
    found = []
    for size in (None, part_size):
        model = network(nn.BatchNorm1d(8)) if normalised else network()
        value = add_gradient(model, X, CANDIDATES, risk_of(name), scale=3.0, part_size=size)
        assert not value.requires_grad
        found.append((value, gradients(model)))
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[0][0], risk_of(name)(model(X), CANDIDATES).detach())


def test_the_gradient_is_added_and_scaled() -> None:
    model = network()
    risk_of("hamming")(model(X), CANDIDATES).backward()
    expected = 3.5 * gradients(model)
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), scale=2.0, part_size=9)
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), scale=0.5)
    torch.testing.assert_close(gradients(model), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_risks_of_parts_have_another_gradient(name: str) -> None:
    whole, naive = network(), network()
    add_gradient(whole, X, CANDIDATES, risk_of(name), part_size=7)
    for part in torch.arange(40).split(7):
        share = len(part) / 40
        add_gradient(naive, X[part], CANDIDATES[part], risk_of(name), scale=share)
    difference = gradients(whole) - gradients(naive)
    assert difference.norm() > 0.01 * gradients(whole).norm()


def test_in_parts_dropout_is_that_of_the_scores_in_the_risk() -> None:
    model = network(nn.Dropout(0.5))
    seen: list[Tensor] = []

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        seen.append(scores.detach().clone())
        return risk_of("hamming")(scores, candidates)

    with seeded(3, CPU):
        add_gradient(model, X, CANDIDATES, risk, part_size=7)
        after = torch.rand(1)
    found = gradients(model)
    model.zero_grad()
    with seeded(3, CPU):
        scores = torch.cat([model(part) for part in X.split(7)])
        assert torch.equal(torch.rand(1), after)  # as many numbers are drawn as once through
    torch.testing.assert_close(seen, [scores.detach()], rtol=0, atol=0)
    risk_of("hamming")(scores, CANDIDATES).backward()
    torch.testing.assert_close(found, gradients(model), rtol=1e-12, atol=1e-12)
    assert not torch.equal(seen[0], model(X))


def test_running_statistics_see_every_part_once() -> None:
    model, expected = (network(nn.BatchNorm1d(8)).train() for _ in range(2))
    add_gradient(model, X, CANDIDATES, risk_of("hamming"), part_size=10)
    with torch.no_grad():
        for part in X.split(10):
            expected(part)
    torch.testing.assert_close(dict(model.named_buffers()), dict(expected.named_buffers()))
    assert dict(model.named_buffers())["1.num_batches_tracked"] == 4


@pytest.mark.parametrize("part_size", [None, 7])
def test_half_precision_gives_gradients_in_full_precision(part_size: int | None) -> None:
    exact, half = network().float(), network().float()
    add_gradient(exact, X.float(), CANDIDATES, risk_of("hamming"))
    value = add_gradient(
        half,
        X.float(),
        CANDIDATES,
        risk_of("hamming"),
        part_size=part_size,
        precision=torch.bfloat16,
    )
    assert value.dtype == torch.float32
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in half.parameters())
    difference = (gradients(half) - gradients(exact)).norm()
    assert 0 < difference < 0.05 * gradients(exact).norm()


# Proximal gradient


def test_one_proximal_step_has_a_closed_form() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, bias = nn.Parameter(torch.rand(2, 5, generator=generator)), nn.Parameter(torch.ones(2))
    still = nn.Parameter(torch.full((2, 5), -1.0))
    penalty = torch.rand(2, 5, generator=generator)
    slope = torch.randn(2, 5, generator=generator)
    start = weight.detach().clone()
    groups = [{"params": [weight, still], "lr": 0.3}, {"params": [bias], "lr": 0.7}]
    ((weight * slope).sum() + (bias * torch.tensor([4.0, -1.0])).sum()).backward()
    ProximalGradient(groups, penalty).step()
    expected = (start - 0.3 * (slope + penalty)).clamp(min=0)
    torch.testing.assert_close(weight.detach(), expected)
    assert (weight == 0).any()
    assert (weight > 0).any()
    torch.testing.assert_close(bias.detach(), torch.tensor([1 - 0.7 * 4.0, 1 + 0.7]))
    assert (still == -1).all()  # no gradient, no step


def test_proximal_steps_follow_a_schedule_of_the_rate() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimiser = ProximalGradient([{"params": [weight], "lr": 1.0}], torch.tensor([0.5]))
    optimiser.param_groups[0]["lr"] = 0.1
    weight.grad = torch.tensor([-1.0])
    optimiser.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([0.05]))


def test_proximal_steps_solve_the_lasso_of_weights_above_zero() -> None:
    """At the solution the slope is the penalty where a weight is above 0, and less at 0."""
    generator = torch.Generator().manual_seed(1)
    A = torch.randn(30, 6, generator=generator, dtype=torch.float64)
    b = A @ torch.tensor([2.0, 0.0, 0.5, 0.0, -1.0, 0.1]).double()
    b += 0.1 * torch.randn(30, generator=generator, dtype=torch.float64)
    penalty = torch.tensor([0.1, 0.1, 0.2, 0.3, 0.1, 0.9]).double()
    weight = nn.Parameter(torch.zeros(6, dtype=torch.float64))
    optimiser = ProximalGradient([{"params": [weight], "lr": 0.3}], penalty)
    for _ in range(500):
        optimiser.zero_grad()
        ((A @ weight - b).square().sum() / 60).backward()
        optimiser.step()
    solution = weight.detach()
    slope = A.T @ (b - A @ solution) / 30
    is_free = solution > 0
    assert 2 <= is_free.sum() <= 4
    torch.testing.assert_close(slope[is_free], penalty[is_free], rtol=1e-9, atol=1e-9)
    assert (slope[~is_free] < penalty[~is_free]).all()
    assert (solution >= 0).all()


# The error of a gradient


def redrawn(case: str, relevant: BoolMatrix) -> Iterator[BoolMatrix]:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        shuffled = rng.permutation(relevant)  # the features say nothing about a label
        if case == "a":
            yield case_a(shuffled, flip_rate=[0.9, 0.95], seed=rng)
        else:
            yield case_b(shuffled, exclude_rate=[0.1, 0.05], seed=rng)


@pytest.mark.parametrize("case", ["a", "b"])
def test_the_error_of_the_gradient_is_its_spread_over_annotations(case: str) -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack(
        [rng.normal(3, 2, 600), rng.random(600) < 0.2, rng.exponential(1, 600)]
    )
    relevant = np.column_stack([np.arange(600) < 180, np.arange(600) % 10 == 0])
    prior = relevant.mean(axis=0)
    head = zero_linear(3, 2).double()
    assert isinstance(head, nn.Linear)
    head.bias.data.copy_(torch.logit(torch.from_numpy(prior)))
    rows = torch.from_numpy(features)
    slopes, errors = [], []
    for candidates in redrawn(case, relevant):
        risk = 2 * hamming_risk(head(rows), torch.from_numpy(candidates), torch.from_numpy(prior))
        slopes.append(torch.autograd.grad(risk, head.weight)[0].numpy())  # of the sum over labels
        if len(slopes) % 20 == 0:
            errors.append(gradient_error(features, candidates, prior))
    spread = np.std(slopes, axis=0)
    assert spread.shape == (2, 3)
    assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.1)


def test_an_unexcluded_label_has_a_finite_error() -> None:
    error = gradient_error(np.eye(3), np.ones((3, 2), dtype=bool), np.array([0.5, 0.2]))
    assert np.isfinite(error).all()
    assert (error > 0).all()


def test_networks_for_rows_are_trained_in_parts_to_the_same_weights() -> None:
    weights = []
    for part_size in (None, 5):
        with seeded(0, CPU):
            model = mlp(6, 4, hidden=10).double()
        train(
            model, X, CANDIDATES, risk_of("hamming"), optimizer=sgd, epochs=3, batch_size=13,
            part_size=part_size,
        )  # fmt: skip
        weights.append(copy.deepcopy(model.state_dict()))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("augment", ["none", "flip", "crop"])
def test_a_recorded_step_draws_the_same_pictures_and_gives_the_same_weights(
    augment: Augmentation,
) -> None:
    device, prior = torch.device("cuda"), torch.full((4,), 0.3, device="cuda")
    candidates = torch.rand(50, 4, generator=torch.Generator().manual_seed(1)).to(device) < 0.6
    results = []
    for graph in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 4)).to(device)
        network = nn.Sequential(AsNumbers(), model)
        pixels = PixelRows(PICTURES, SIZE, device, augment)
        train(
            network,
            pixels,
            candidates,
            lambda scores, labels: hamming_risk(scores, labels, prior),
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
            epochs=8,
            batch_size=20,
            graph=graph,
        )
        results.append([p.detach() for p in model.parameters()])
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


class AsNumbers(nn.Module):
    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.float() / 255
