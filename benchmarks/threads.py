"""What a second thread brings to a step of the default network, idle and beside busy processes.

    python benchmarks/threads.py

takes steps of four networks of 500 hidden units on batches of 256 dense rows, with one thread and
with all, in turns; then again while every core also runs another process. It writes
``benchmarks/results/threads.json``: milliseconds and CPU milliseconds of a step, and the ratio of
all threads to one. `comes.training.speed.few_threads` rests on it.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from measuring import significant, write

from comes.models import Ensemble
from comes.models.tabular import EnsembleRisk
from comes.risks import BceRisk
from comes.training import make_optimizer

SHAPES = ((20, 10), (100, 7), (300, 14), (1000, 53), (2000, 160), (5000, 200))  # features, labels
TURNS = 7
BUSY = [sys.executable, "-c", "while True: pass"]


def make_step(d: int, q: int) -> Callable[[], None]:
    """Return a function that takes one step of the network for d features and q labels."""
    network, risk = Ensemble(d, q), EnsembleRisk(BceRisk())
    rows, targets = torch.randn(256, d), torch.rand(256, q) < 0.3
    optimizer = make_optimizer("adam", learning_rate=1e-3)(network.parameters())

    def step() -> None:
        optimizer.zero_grad()
        risk(network(rows), targets).backward()
        optimizer.step()

    return step


def measure(step: Callable[[], None], all_threads: int) -> dict[str, float]:
    """Return the medians over turns of a step with one thread and with all."""
    found: dict[str, list[float]] = {}
    for _ in range(TURNS + 1):  # the first is not counted
        for title, threads in (("one thread", 1), ("all threads", all_threads)):
            torch.set_num_threads(threads)
            step()
            wall, cpu, calls = time.perf_counter(), time.process_time(), 5
            for _ in range(calls):
                step()
            for name, began, now in (
                ("", wall, time.perf_counter()),
                (", CPU", cpu, time.process_time()),
            ):
                found.setdefault(title + name, []).append(1000 * (now - began) / calls)
    medians = {name: statistics.median(values[1:]) for name, values in found.items()}
    medians["all over one"] = medians["all threads"] / medians["one thread"]
    return {name: significant(value) for name, value in medians.items()}


@contextlib.contextmanager
def busy_processes(n: int) -> Iterator[None]:
    """Let n processes compute inside the block."""
    processes = [subprocess.Popen(BUSY) for _ in range(n)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def main() -> None:
    """Measure and write medians."""
    all_threads, rows = torch.get_num_threads(), []
    for n_busy in (0, os.cpu_count() or 1):
        with busy_processes(n_busy):
            for d, q in SHAPES:
                row: dict[str, Any] = {"features": d, "labels": q, "busy processes": n_busy}
                row["million multiplications"] = round(3 * 256 * 2000 * (d + q) / 1e6)
                rows.append(row | measure(make_step(d, q), all_threads))
                print(rows[-1], flush=True)
    torch.set_num_threads(all_threads)
    write("threads", {"turns": TURNS, "milliseconds": rows})


if __name__ == "__main__":
    main()
