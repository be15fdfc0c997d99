"""Images per second of a training step: what a risk costs, and what loading the images costs.

    python benchmarks/image_speed.py

needs a GPU, and VOC2012-160px under ``$COMES_DATA``, and writes
``benchmarks/results/image_speed.json``. Epochs of a ResNet-50 at 224 px in bfloat16, batches of 64,
with each of four risks, the step recorded as a CUDA graph, as `ImageClassifier` trains; with plain
BCE and a step that is not recorded; and with plain BCE, recorded, on one batch of numbers that is
already on the device. Measured in turns; the first epoch of each turn, which records, does not
count.
"""

import statistics
import time
from collections.abc import Callable

import torch
from measuring import compared, significant, write
from torch import Tensor, nn
from torch.nn import functional as F

from comes.datasets import open_dataset
from comes.generation import case_b
from comes.images.backbones import make_backbone, place_network
from comes.images.network import ImageNetwork, zero_linear
from comes.priors import count_class_prior
from comes.risks import BceRisk, HammingRisk, LikelihoodRisk, RankingRisk
from comes.training import TrainOptions, Validation, make_optimizer, train
from comes.training.pixels import PixelRows
from comes.training.speed import GraphedStep

DEVICE = torch.device("cuda")
SIZE, BATCH, TURNS, EPOCHS = 224, 64, 5, 3


def network(n_labels: int) -> ImageNetwork:
    """Return a ResNet-50 with a head, on the device."""
    head = zero_linear(2048, n_labels)
    made = ImageNetwork(make_backbone("resnet50"), head, freezes_statistics=False)
    return place_network(made, DEVICE)


def now() -> float:
    """Return the time after the device has finished its work."""
    torch.cuda.synchronize()
    return time.perf_counter()


def training(
    pixels: PixelRows, candidates: Tensor, risk: nn.Module, is_recorded: bool = True
) -> Callable[[], float]:
    """Return a function that trains a new network and returns the seconds of an epoch."""
    risk = risk.to(DEVICE)
    options = TrainOptions(
        make_optimizer("adam", learning_rate=1e-4),
        epochs=EPOCHS,
        batch_size=BATCH,
        precision=torch.bfloat16,
        graph=is_recorded,
        progress=False,
    )

    def seconds() -> float:
        ends: list[float] = []

        def note_the_time() -> float:
            ends.append(now())
            return -float(len(ends))

        model = network(candidates.shape[1])
        train(model, pixels, candidates, risk, options, validation=Validation(note_the_time))
        return (ends[-1] - ends[0]) / (EPOCHS - 1)

    return seconds


def synthetic(n_labels: int, n_batches: int) -> Callable[[], float]:
    """Return a function that takes as many steps on one batch that is already on the device."""
    pixels = torch.rand(BATCH, 3, SIZE, SIZE, device=DEVICE)
    target = torch.rand(BATCH, n_labels, device=DEVICE)

    def seconds() -> float:
        model = network(n_labels)
        model.train()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

        def step(_: Tensor) -> Tensor:
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                scores = model(pixels)
            value = F.binary_cross_entropy_with_logits(scores, target)
            value.backward()
            optimiser.step()
            return value.detach()

        take_step = GraphedStep(step, optimiser, DEVICE)
        ends = []
        for _ in range(EPOCHS):
            for _ in range(n_batches):
                take_step(target)
            ends.append(now())
        return (ends[-1] - ends[0]) / (EPOCHS - 1)

    return seconds


def main() -> None:
    """Measure and write."""
    torch.backends.cudnn.benchmark = True
    dataset = open_dataset("VOC2012-160px:train")
    relevant = dataset.known_relevant()
    candidates = torch.as_tensor(case_b(relevant), device=DEVICE)
    prior = torch.as_tensor(count_class_prior(relevant), dtype=torch.float32)
    likelihood = LikelihoodRisk(torch.full_like(prior, 0.1), class_prior=prior)  # case b's rate
    pixels = PixelRows(dataset.X, SIZE, DEVICE, augment="flip")
    started = now()
    pixels.decode()
    decoding = now() - started
    n, q = relevant.shape
    ways = {
        "bce": training(pixels, candidates, BceRisk()),
        "comes_hl": training(pixels, candidates, HammingRisk(prior)),
        "comes_rl": training(pixels, candidates, RankingRisk(prior)),
        "likelihood": training(pixels, candidates, likelihood),
        "not_recorded": training(pixels, candidates, BceRisk(), is_recorded=False),
        "synthetic": synthetic(q, -(-n // BATCH)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(TURNS):
        for name, measure in ways.items():
            seconds[name].append(measure())
            print(f"turn {turn + 1}, {name}: {n / seconds[name][-1]:.0f} images/s", flush=True)
    write(
        "image_speed",
        {
            "images": n,
            "turns": TURNS,
            "seconds_to_decode_once": significant(decoding),
            "seconds_per_epoch": compared(seconds, "bce", 4),
            "images_per_second": {
                name: significant(n / statistics.median(values), 4)
                for name, values in seconds.items()
            },
        },
    )


if __name__ == "__main__":
    main()
