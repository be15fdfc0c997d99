"""Features of 10^4 small pictures by a cluster of one and of two workers, and without one.

    python benchmarks/cluster_features.py                     # 10^4 pictures
    python benchmarks/cluster_features.py --images 1000       # prints, and writes nothing

writes ``benchmarks/results/cluster_features.json``. Draws pictures of 64 px and computes features
by a small network with random weights, in turns: in this process, and on Dask and Ray with one and
with two workers of one thread, each time for all pictures and for a tenth of them. The cluster runs
before the clock does. ``pictures_per_second`` is the slope between the two sizes, ``fixed_seconds``
what is left at no pictures: joining the cluster and loading the network; Ray also starts processes
for every run, which import torch. ``hours_for_a_million`` puts both together: linear in the
pictures, as a folder of a million was not run. ``largest_difference`` is that of the features from
those of this process, relative to the largest of them.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from local_clusters import STARTS
from measuring import significant, write
from PIL import Image

from comes.clusters import Cluster
from comes.jobs import compute_features
from comes.models import make_backbone

BACKBONE, SIDE, TURNS = "timm:resnet10t", 64, 3
SEEN = 32  # pixels
MILLION = 10**6
WAYS: dict[str, tuple[Callable[[int], Any], int]] = {"here": (lambda _: nullcontext(None), 1)}
WAYS |= {f"{name}_{n}": (start, n) for name, start in STARTS.items() for n in (1, 2)}


def draw_pictures(folder: Path, n: int) -> None:
    """Write n pictures of noise, as jpg."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for row in range(n):
        picture = Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8))
        picture.save(folder / f"{row:06}.jpg")


def compute(home: Path, photos: str, cluster: Cluster | None) -> tuple[float, Any]:
    """Return the seconds for the features of a folder, and the features; nothing was kept."""
    shutil.rmtree(home / "cache", ignore_errors=True)
    started = time.perf_counter()
    found = compute_features(
        home / photos,
        backbone=BACKBONE,
        weights=home / "weights.pth",
        image_size=SEEN,
        device="cpu",
        cluster=cluster,
    ).X
    return time.perf_counter() - started, found


def in_turns(home: Path, n: int) -> dict[str, Any]:
    """Measure every way on both folders, in turns; a cluster computes the small one first."""
    seconds: dict[str, dict[str, list[float]]] = {}
    found: dict[str, Any] = {}
    for _ in range(TURNS):
        for name, (start, workers) in WAYS.items():
            with start(workers) as started:
                cluster = started and started.cluster
                compute(home, "few", cluster)
                for photos in ("few", "many"):
                    spent, found[name] = compute(home, photos, cluster)
                    seconds.setdefault(name, {}).setdefault(photos, []).append(spent)
            print(name, {photos: values[-1] for photos, values in seconds[name].items()})
    return {name: describe(seconds[name], found, name, n) for name in WAYS}


def describe(seconds: dict[str, list[float]], found: Any, name: str, n: int) -> dict[str, float]:
    """Return the rate and the fixed cost from medians, and what they say of a million pictures."""
    few, many = (statistics.median(seconds[photos]) for photos in ("few", "many"))
    each = (many - few) / (n - n // 10)
    fixed = many - n * each
    difference = np.abs(found[name] - found["here"]).max() / np.abs(found["here"]).max()
    return {
        "seconds": significant(many),
        "pictures_per_second": significant(1 / each),
        "fixed_seconds": significant(fixed),
        "hours_for_a_million": significant((fixed + MILLION * each) / 3600),
        "largest_difference": significant(float(difference), 2),
    }


def main() -> None:
    """Measure all and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000)
    n = parser.parse_args().images
    torch.set_num_threads(1)  # as a worker
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        os.environ["COMES_CACHE"] = str(home / "cache")
        draw_pictures(home / "many", n)
        draw_pictures(home / "few", n // 10)
        torch.manual_seed(0)
        torch.save(make_backbone(BACKBONE).network.state_dict(), home / "weights.pth")
        rows = in_turns(home, n)
    for name, row in rows.items():
        print(name, row)
    if n == parser.get_default("images"):
        write(
            "cluster_features",
            {"images": n, "side": SIDE, "seen": SEEN, "turns": TURNS, "ways": rows},
        )


if __name__ == "__main__":
    main()
