"""Seconds and memory to read a csv file of a gigabyte.

    python benchmarks/large_table.py [--gigabytes 1] [--checkout FOLDER]

makes the file in a temporary folder: numbers, a category, a date, a text, an item and three labels.
It is read in a process of its own by pandas alone, by this version and, if its checkout is given,
by another, in turns, and ``benchmarks/results/large_table.json`` is written. Memory is the most
that was resident, less what was before reading; also as a multiple of the frame of pandas.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import write

ROWS_AT_ONCE = 100_000
TURNS = 2

READ = """
import json, resource, sys, time
import pandas as pd
from comes.datasets import open_dataset
import sklearn.feature_extraction.text  # what encoders need, loaded before
resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
opened = 0
def count(event, arguments):
    global opened
    opened += event == "open" and str(arguments[0]) == sys.argv[1]
sys.addaudithook(count)
wall, cpu = time.perf_counter(), time.process_time()
if sys.argv[2] == "pandas":
    read = pd.read_csv(sys.argv[1])
else:
    read = open_dataset(sys.argv[1], labels=["is_*"])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident
frame = read if sys.argv[2] == "pandas" else read.X
print(json.dumps({
    "seconds": wall, "cpu_seconds": cpu, "peak_megabytes": peak / 1024, "opened": opened,
    "kept_megabytes": frame.memory_usage(deep=True).sum() / 2**20,
}))
"""


def make_block(start: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return some rows of the table."""
    n = ROWS_AT_ONCE
    words = rng.choice([f"word{k}" for k in range(2000)], size=(n, 6))
    columns: dict[str, Any] = {"item": [f"row{start + k}" for k in range(n)]}
    columns |= {f"number{k}": rng.normal(size=n).round(6) for k in range(12)}
    columns |= {
        "category": rng.choice(["red", "green", "blue", "grey"], size=n),
        "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        "text": [" ".join(row) for row in words],
    }
    columns |= {f"is_{name}": rng.integers(0, 2, n) for name in ("a", "b", "c")}
    return pd.DataFrame(columns)


def make_file(path: Path, gigabytes: float) -> int:
    """Write the table until it is large enough; return how many rows it has."""
    rng, rows = np.random.default_rng(0), 0
    while rows == 0 or os.path.getsize(path) < gigabytes * 1e9:
        make_block(rows, rng).to_csv(path, mode="a", header=rows == 0, index=False)
        rows += ROWS_AT_ONCE
    return rows


def measure(path: Path, source: Path, reader: str) -> dict[str, float]:
    """Read the file in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-c", READ, str(path), reader],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, float] = json.loads(made.stdout.splitlines()[-1])
    return measured


def main() -> None:
    """Measure in turns, and write medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--checkout", type=Path)
    given = parser.parse_args()
    sources = dict.fromkeys(("pandas", "now"), Path(__file__).parents[1] / "src")
    if given.checkout is not None:
        sources["before"] = given.checkout / "src"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        rows = make_file(path, given.gigabytes)
        size = os.path.getsize(path)
        turns: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
        for _ in range(TURNS):
            for name, source in sources.items():
                turns[name].append(measure(path, source, name))
                print(name, turns[name][-1])
    medians = {
        name: {key: round(statistics.median(t[key] for t in ts), 2) for key in ts[0]}
        for name, ts in turns.items()
    }
    for name in medians:
        peak, frame = medians[name]["peak_megabytes"], medians["pandas"]["kept_megabytes"]
        medians[name]["peak_over_frame"] = round(peak / frame, 2)
    write("large_table", {"rows": rows, "megabytes": round(size / 1e6), "turns": TURNS, **medians})


if __name__ == "__main__":
    main()
