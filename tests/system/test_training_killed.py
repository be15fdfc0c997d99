"""A process that is killed while it trains leaves what another goes on from."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from stopped_trainings import BATCHES, assert_equal, streamed, trained

WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "memory": dict,
    "stream": lambda: {"rows": streamed()},
}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_until_killed(path: Path, every: float | None, way: str) -> None:
    torch.set_num_threads(1)
    trained(path, every=every, at_batch=BATCHES * 4 + 3, then=kill, **WAYS[way]())


@pytest.mark.parametrize(
    ("way", "every", "n_steps"),
    [("memory", None, BATCHES * 4), ("memory", 0, BATCHES * 4 + 2), ("stream", 0, BATCHES * 4 + 2)],
)
def test_a_killed_process_leaves_what_another_goes_on_from(
    way: str, every: float | None, n_steps: int, tmp_path: Path
) -> None:
    path = tmp_path / "training.pt"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "comes.training"])
    process = context.Process(target=train_until_killed, args=(path, every, way))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert path.is_file()
    expected, found = trained(**WAYS[way]()), trained(path, every=every, **WAYS[way]())
    assert_equal(found, expected)
    assert found[2] == expected[2] - n_steps
