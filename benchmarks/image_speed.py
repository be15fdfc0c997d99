"""Images per second of a training step: what a risk costs, and what bringing the images costs.

    python benchmarks/image_speed.py

needs a GPU, and VOC2012-160px under ``$COMES_DATA``, and writes
``benchmarks/results/image_speed.json``. An epoch of a ResNet-50 at 224 px in bfloat16, batches of
64, with each of three risks, measured in turns; and the same network with plain BCE on one batch of
numbers that is on the device already.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from measuring import compared, seconds_in_turns, significant, write
from torch import Tensor, nn
from torch.nn import functional as F

from comes.datasets import open_dataset
from comes.generation import case_b
from comes.models import Backbone, ImageNetwork, ResNet, place_network, zero_linear
from comes.priors import count_class_prior
from comes.risks import BceRisk, HammingRisk, RankingRisk
from comes.training import PixelRows, make_optimizer, train

DEVICE = torch.device("cuda")
SIZE, BATCH, REPEATS = 224, 64, 3


def network(n_labels: int) -> ImageNetwork:
    """Return a ResNet-50 with a head, on the device."""
    made = ImageNetwork(Backbone(ResNet()), zero_linear(2048, n_labels), freezes_statistics=False)
    return place_network(made, DEVICE)


def epoch_of(pixels: PixelRows, candidates: Tensor, risk: nn.Module) -> Callable[[], object]:
    """Return a function that trains for one epoch."""
    model = network(candidates.shape[1])
    options: dict[str, Any] = {
        "optimizer": make_optimizer("adam", learning_rate=1e-4),
        "epochs": 1,
        "batch_size": BATCH,
        "precision": torch.bfloat16,
        "progress": False,
    }
    risk = risk.to(DEVICE)

    def run() -> None:
        train(model, pixels, candidates, risk, **options)
        torch.cuda.synchronize()

    return run


def synthetic_epoch(n_labels: int, n_batches: int) -> Callable[[], object]:
    """Return a function that takes as many steps on one batch that is on the device."""
    model = network(n_labels)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    pixels = torch.rand(BATCH, 3, SIZE, SIZE, device=DEVICE)
    target = torch.rand(BATCH, n_labels, device=DEVICE)

    def run() -> None:
        model.train()
        for _ in range(n_batches):
            optimiser.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                scores = model(pixels)
            F.binary_cross_entropy_with_logits(scores, target).backward()
            optimiser.step()
        torch.cuda.synchronize()

    return run


def main() -> None:
    """Measure and write."""
    torch.backends.cudnn.benchmark = True
    dataset = open_dataset("VOC2012-160px:train")
    relevant = dataset.known_relevant()
    candidates = torch.as_tensor(case_b(relevant), device=DEVICE)
    prior = torch.as_tensor(count_class_prior(relevant), dtype=torch.float32)
    pixels = PixelRows(dataset.X, SIZE, DEVICE, augment="flip")
    started = time.perf_counter()
    pixels.decode()
    decoding = time.perf_counter() - started
    n, q = relevant.shape
    epochs = {
        "bce": epoch_of(pixels, candidates, BceRisk()),
        "comes_hl": epoch_of(pixels, candidates, HammingRisk(prior)),
        "comes_rl": epoch_of(pixels, candidates, RankingRisk(prior)),
        "synthetic": synthetic_epoch(q, -(-n // BATCH)),
    }
    print(f"decoded in {decoding:.1f} s", flush=True)
    seconds = seconds_in_turns(epochs, REPEATS)
    write(
        "image_speed",
        {
            "images": n,
            "seconds_to_decode_once": significant(decoding),
            "seconds_per_epoch": compared(seconds, "bce", 4),
            "images_per_second": {
                name: significant(n / sorted(values)[len(values) // 2], 4)
                for name, values in seconds.items()
            },
        },
    )


if __name__ == "__main__":
    main()
