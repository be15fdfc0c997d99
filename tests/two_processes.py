"""Two processes that meet in a group of torch, started once: each start imports torch."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

PATIENCE = timedelta(minutes=30)  # of one process that waits for the other


class TwoProcesses:
    """Calls functions in two processes at a time."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call ``function(rank, *arguments)`` in both; raise what one of them raises."""
        with tempfile.TemporaryDirectory() as folder:
            meeting = str(Path(folder) / "meet")
            calls = [
                self._pool.submit(_call_in_group, meeting, function, rank, arguments)
                for rank in range(2)
            ]
            for call in calls:
                call.result()

    def close(self) -> None:
        """End both."""
        self._pool.shutdown()


def _call_in_group(
    meeting: str, function: Callable[..., None], rank: int, arguments: tuple[Any, ...]
) -> None:
    """Call the function in a process group; leave group and environment as they were."""
    before = dict(os.environ)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=2, timeout=PATIENCE
    )
    try:
        function(rank, *arguments)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        os.environ.clear()
        os.environ.update(before)
