"""Features of many pictures: images per second, peak memory, and a kill in the middle.

    python benchmarks/image_features.py                                       # 10^5 pictures
    python benchmarks/image_features.py --images 10000 --backbone small       # on two cores

writes ``benchmarks/results/image_features.json`` (``image_features_cuda.json`` with ``--device
cuda``). Draws pictures (JPEG, 160 px; a few thousand different ones, the rest are links to them, so
all are read from memory) and measures, each in a process of its own: decoding alone, features of
all pictures and of a tenth of them, with the largest resident memory of either; then features of
the tenth (of all, where the tenth takes no time) once more, killed with SIGKILL half way and
started again: how many pictures were computed twice, and whether the file is the same, byte for
byte. Weights are random; the network ``small`` sees pictures at 64 px.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import significant, write
from PIL import Image

from comes.datasets import Images
from comes.datasets.images import image_names
from comes.images import Backbone, compute_features, make_backbone
from comes.training.pixels import PixelRows

DIFFERENT = 4000
SIDES = (160, 120)
SEED = 0
SECONDS_TO_KILL = 5  # a run that takes less may end before it is killed


def draw_pictures(folder: Path, n: int) -> None:
    """Write n pictures, coarse noise with fine noise on it, about 8 kB each."""
    rng = np.random.default_rng(SEED)
    folder.mkdir()
    for row in range(n):
        path = folder / f"{row:06}.jpg"
        if row >= DIFFERENT:
            os.link(folder / f"{row % DIFFERENT:06}.jpg", path)
            continue
        coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
        picture = np.asarray(coarse.resize(SIDES, Image.Resampling.BICUBIC)).astype(np.int16)
        picture = picture + rng.integers(-12, 13, picture.shape, dtype=np.int16)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(path, quality=85)


def make_network(name: str, device: torch.device) -> Backbone:
    """Return a network with random weights, the same each time."""
    torch.manual_seed(SEED)
    if name == "small":
        return make_backbone("timm:resnet10t", size=64, device=device)
    return make_backbone(name, device=device)


class Counted:
    """Counts the pictures that go through a network."""

    def __init__(self, backbone: Backbone) -> None:
        self.rows = 0
        backbone.register_forward_hook(self.add)

    def add(self, _: Any, inputs: Any, __: Any) -> None:
        """Add a batch; a single picture only tells the number of features."""
        self.rows += len(inputs[0]) if len(inputs[0]) > 1 else 0


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compute features in this process; return seconds, pictures and the largest memory."""
    device = torch.device(arguments.device)
    images: Any = Images(arguments.folder, image_names(arguments.folder)[: arguments.measure])
    backbone = make_network(arguments.backbone, device)
    if arguments.decode_only:
        rows = torch.arange(len(images)).split(256)
        started = time.perf_counter()
        for _ in PixelRows(images, backbone.preprocessing, device, keep="nowhere").batches(rows):
            pass
        return {"seconds": time.perf_counter() - started}
    precision = torch.bfloat16 if device.type == "cuda" else None
    compute_features(backbone, images[:256], device, precision, cache=False)  # warms up
    counted, before = Counted(backbone), memory()
    started = time.perf_counter()
    hashed = images.fingerprint()
    hashing = time.perf_counter() - started
    X = compute_features(backbone, images, device, precision)
    return {
        "seconds": time.perf_counter() - started,
        "seconds_to_hash": hashing,
        "pictures": hashed,
        "computed": counted.rows,
        "shape": list(X.shape),
        "memory_before": before,
        "memory": memory(),
    }


def memory() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def start(arguments: argparse.Namespace, folder: Path, cache: Path, n: int, *more: str) -> Any:
    """Start this program in a process of its own, to measure n pictures."""
    options = ["--backbone", arguments.backbone, "--device", arguments.device, "--measure", str(n)]
    command = [sys.executable, __file__, *options, "--folder", str(folder), *more]
    environment = os.environ | {"COMES_CACHE": str(cache)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: Any) -> dict[str, Any]:
    """Return what a process measured."""
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"measuring ended with {process.returncode}.")
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


def marks(cache: Path, process: Any) -> Iterator[int]:
    """Give how many rows are marked as done, again and again while the process runs."""
    while process.poll() is None:
        time.sleep(0.01)
        for mark in (cache / "features").glob("*.json"):
            try:
                yield int(json.loads(mark.read_text())["done"])
            except (OSError, ValueError):
                continue


def kill_and_resume(
    arguments: argparse.Namespace, folder: Path, home: Path, n: int, name: str
) -> dict[str, Any]:
    """Compute features, kill the process half way, start again; compare with the run ``name``."""
    cache = home / "killed"
    process = start(arguments, folder, cache, n)
    if next((done for done in marks(cache, process) if done >= n / 2), None) is None:
        raise SystemExit("the process ended before it could be killed. Take more images.")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (mark,) = (cache / "features").glob("*.json")
    kept = int(json.loads(mark.read_text())["done"])
    resumed = finish(start(arguments, folder, cache, n))
    whole, again = (next((home / name / "features").glob("*.npy")) for name in (name, "killed"))
    difference = np.abs(np.load(whole) - np.load(again)).max()
    return {
        "images": n,
        "kept": kept,
        "computed_after": resumed["computed"],
        "same_bytes": file_hash(whole) == file_hash(again),
        "largest_difference": float(difference),
    }


def file_hash(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(arguments: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Draw the pictures and measure all there is."""
    folder, n = home / "pictures", arguments.images
    started = time.perf_counter()
    draw_pictures(folder, n)
    print(f"{n} pictures drawn in {time.perf_counter() - started:.0f} s", flush=True)
    some = max(n // 10, 1)
    decoding = finish(start(arguments, folder, home / "none", some, "--decode-only"))
    print(f"decoding: {some / decoding['seconds']:.0f} images/s", flush=True)
    runs, slow = [], []
    for count, name in ((some, "part"), (n, "whole")):
        found = finish(start(arguments, folder, home / name, count))
        slow += [(count, name)] if found["seconds"] > SECONDS_TO_KILL else []
        rate = significant(count / found["seconds"])
        print(f"{count} images: {rate} images/s, {found['memory']:.0f} MiB", flush=True)
        runs.append(
            {
                "images": count,
                "features": found["shape"][1],
                "images_per_second": rate,
                "seconds_to_hash": significant(found["seconds_to_hash"]),
                "memory_mib": round(found["memory"]),
                "memory_before_mib": round(found["memory_before"]),
            }
        )
    resumed = kill_and_resume(arguments, folder, home, *(slow or [(n, "whole")])[0])
    print(resumed, flush=True)
    return {
        "backbone": arguments.backbone,
        "device": arguments.device,
        "different_pictures": min(DIFFERENT, n),
        "decoding_images_per_second": significant(some / decoding["seconds"]),
        "runs": runs,
        "killed": resumed,
    }


def main() -> None:
    """Read the options, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--backbone", default="resnet50", help="or small, or another of ours")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--decode-only", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(measure(arguments)))
        return
    with tempfile.TemporaryDirectory() as home:
        result = run(arguments, Path(home))
    write("image_features" + ("_cuda" if arguments.device.startswith("cuda") else ""), result)


if __name__ == "__main__":
    main()
