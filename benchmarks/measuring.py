"""What the benchmarks share: measuring in turns, describing the machine, writing results."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from comes.files import replacing_file

RESULTS = Path(__file__).parent / "results"


def seconds_in_turns(
    actions: Mapping[str, Callable[[], object]], repeats: int, calls: int = 1
) -> dict[str, list[float]]:
    """Return the seconds per call of every action, measured in turns, after a first call of each.

    In turns, a noisy machine disturbs all actions alike; the ratio within a turn is fair.
    """
    for action in actions.values():
        action()
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            started = time.perf_counter()
            for _ in range(calls):
                action()
            seconds[name].append((time.perf_counter() - started) / calls)
    return seconds


def compared(seconds: Mapping[str, list[float]], ours: str, digits: int = 3) -> dict[str, float]:
    """Return the median of each, and of the ratios of the others to ours within a turn."""
    row = {name: significant(statistics.median(values), digits) for name, values in seconds.items()}
    for name, values in seconds.items():
        if name != ours:
            ratios = [other / our for other, our in zip(values, seconds[ours], strict=True)]
            row[f"{name}_over_{ours}"] = significant(statistics.median(ratios), digits)
    return row


def significant(value: float, digits: int = 3) -> float:
    """Return a number rounded to significant digits."""
    return float(f"{value:.{digits}g}")


def machine() -> dict[str, Any]:
    """Return a description of the machine and the versions."""
    model = platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        names = [line for line in cpu.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    words: dict[str, Any] = {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if torch.cuda.is_available():
        words["gpu"] = torch.cuda.get_device_name()
    return words


def write(name: str, result: Mapping[str, Any]) -> None:
    """Write a result under ``benchmarks/results``, with the command and the machine."""
    whole = {"command": f"python benchmarks/{name}.py", "machine": machine(), **result}
    RESULTS.mkdir(exist_ok=True)
    with replacing_file(RESULTS / f"{name}.json") as path:
        path.write_text(json.dumps(whole, indent=1) + "\n")
