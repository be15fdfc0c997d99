"""Image classifiers in two processes: they stop together, and find the model of one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from safetensors.numpy import load_file
from torch.multiprocessing.spawn import spawn

from comes.generation import case_b
from comes.images import make_backbone
from pictures import pictures, write_pictures
from pictures import small_classifier as classifier

BACKBONE = "timm:resnet10t"


def one_of_two(rank: int, folder: str) -> None:
    """Fine-tune with live statistics, early stopping and no seed, and write what was found."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    pixels, relevant = pictures()
    clf = classifier(
        random_state=None,
        epochs=8,
        batch_size=24,
        early_stopping=True,
        patience=1,
        optimizer={"freezes_statistics": False},
        learning_rate=1e-3,
        backbone_learning_rate=1e-3,
    ).fit(pixels, case_b(relevant, exclude_rate=0.5, seed=0))
    dist.destroy_process_group()
    head = clf.network_.head.state_dict()
    torch.save({"validation": clf.history_.validation, "head": head}, f"{folder}/{rank}.pt")


def test_two_processes_stop_together_whatever_they_draw(tmp_path: Path) -> None:
    spawn(one_of_two, args=(str(tmp_path),), nprocs=2)
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert one["validation"] == two["validation"]
    assert all(torch.equal(one["head"][name], two["head"][name]) for name in one["head"])


def test_two_processes_find_the_model_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    write_pictures(tmp_path, n=60)
    torch.manual_seed(0)
    torch.save(make_backbone(BACKBONE).network.state_dict(), tmp_path / "weights.pth")
    options = f"""
        --labels has_* --relevant is_* --images {tmp_path / "photos"} --set features=pooled
        --set weights={tmp_path / "weights.pth"} --backbone {BACKBONE} --set image_size=32
        --device cpu --epochs 2 --set batch_size=16 --set augment=none --learning-rate 1e-3
    """.split()
    command = [sys.executable, "-m", "comes", "fit", str(tmp_path / "photos.csv"), *options]
    subprocess.run([*command, "-o", str(tmp_path / "one")], check=True, capture_output=True)
    # What torchrun sets, without the seconds that it takes to start; as there, the processes meet
    # at a store that is there before them.
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )
    together = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    processes = [
        subprocess.Popen(
            [*command, "-o", str(tmp_path / "two")],
            env={**os.environ, **together, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    ended = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    for name, weights in one.items():
        np.testing.assert_allclose(two[name], weights, atol=2e-4, err_msg=name)
    assert [stdout.count("model:") for stdout, _ in ended] == [1, 0]  # one process speaks
