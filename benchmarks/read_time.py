"""Seconds and memory to read every named data set that is at hand.

    python benchmarks/read_time.py [--checkout FOLDER]

writes ``benchmarks/results/read_time.json``. Each turn is a process of its own that reads all sets,
with this version and, if its checkout is given, with another, in turns; medians are kept. Memory is
what Python and numpy allocate: at the peak, and what the data set keeps.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring import write

TURNS = 5

READ = """
import json, sys, time, tracemalloc
from comes.datasets import KNOWN, open_dataset
from comes.errors import ComesError
names = [
    f"{known.name}:{split}" if split else known.name
    for known in KNOWN.values() for split in known.rows if known.is_at_hand(split)
]
measured = {}
for name in names:
    started = time.process_time()
    try:
        open_dataset(name)
    except ComesError:  # it needs a package that is not installed
        continue
    measured[name] = {"cpu_seconds": time.process_time() - started}
for name in measured if sys.argv[1] == "memory" else ():
    tracemalloc.start()
    dataset = open_dataset(name)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del dataset
    measured[name] |= {"peak_megabytes": peak / 1e6, "kept_megabytes": kept / 1e6}
print(json.dumps(measured))
"""


def measure(source: Path, what: str) -> dict[str, dict[str, float]]:
    """Read all sets in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-c", READ, what],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, dict[str, float]] = json.loads(made.stdout.splitlines()[-1])
    return measured


def main() -> None:
    """Measure every data set in turns, and write medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path)
    given = parser.parse_args()
    sources = {"now": Path(__file__).parents[1] / "src"}
    if given.checkout is not None:
        sources["before"] = given.checkout / "src"
    turns: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in sources}
    for turn in range(TURNS):
        for name, source in sources.items():
            turns[name].append(measure(source, "time" if turn else "memory"))
    sets: dict[str, Any] = {}
    for dataset in turns["now"][0]:
        sets[dataset] = {}
        for name, measured in turns.items():
            if dataset in measured[0]:
                seconds = [turn[dataset]["cpu_seconds"] for turn in measured]
                memory = measured[0][dataset]
                sets[dataset][name] = {
                    "cpu_seconds": round(statistics.median(seconds), 3),
                    "peak_megabytes": round(memory["peak_megabytes"], 1),
                    "kept_megabytes": round(memory["kept_megabytes"], 1),
                }
        print(dataset, sets[dataset])
    write("read_time", {"turns": TURNS, "sets": sets})


if __name__ == "__main__":
    main()
