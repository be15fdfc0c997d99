"""Seconds and memory to read every named data set that is at hand.

    python benchmarks/read_time.py

writes ``benchmarks/results/read_time.json``. Memory is what Python and numpy allocate: at the peak,
and what the data set keeps.
"""

import statistics
import time
import tracemalloc
from typing import Any

from measuring import write

from comes.datasets import KNOWN, open_dataset

REPEATS = 5


def seconds(name: str) -> float:
    """Return how long one reading takes."""
    started = time.perf_counter()
    open_dataset(name)
    return time.perf_counter() - started


def memory(name: str) -> tuple[float, float]:
    """Return the megabytes at the peak and those that are kept."""
    tracemalloc.start()
    dataset = open_dataset(name)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del dataset
    return peak / 1e6, kept / 1e6


def main() -> None:
    """Measure every data set, and write medians."""
    sets: dict[str, Any] = {}
    for known in KNOWN.values():
        for split in known.rows:
            if not known.is_at_hand(split):
                continue
            name = f"{known.name}:{split}" if split else known.name
            times = [seconds(name) for _ in range(REPEATS)]
            peak, kept = memory(name)
            sets[name] = {
                "seconds": round(statistics.median(times), 3),
                "peak_megabytes": round(peak, 1),
                "kept_megabytes": round(kept, 1),
            }
            print(name, sets[name])
    write("read_time", {"repeats": REPEATS, "sets": sets})


if __name__ == "__main__":
    main()
