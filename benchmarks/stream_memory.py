"""Memory and time of one pass over shards, of so many rows and of ten times as many.

    python benchmarks/stream_memory.py

writes ``benchmarks/results/stream_memory.json``. Generated rows are written as a parquet folder
(40 numbers, ten complementary labels of 1000), as csv files of the same, and as lines of json (a
text and ticked labels). For each, a process of its own opens the shards with an empty cache in
blocks of 8192 rows, gathers the statistics of all rows with a sample of as many, and reads every
block once. Memory is the peak of the process with all that it imports, beside what the imports
alone take; the ratio of the peaks should be near 1. Linux only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import significant, write

ROWS = 20_000
AT_ONCE = 2**13

PASS = """
import json, re, sys, time
from comes.datasets import open_shards
from comes.estimator.stream import gather_statistics
import sklearn.feature_extraction.text, pyarrow.dataset, pyarrow.parquet

def peak():  # of this process alone; ru_maxrss begins with that of its parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

before, started = peak(), time.perf_counter()
shards = open_shards(sys.argv[1], rows_at_once=int(sys.argv[3]), **json.loads(sys.argv[2]))
opened = time.perf_counter()
statistics = gather_statistics(shards, sample_rows=int(sys.argv[3]))
gathered = time.perf_counter()
shards = shards.prepared(statistics.prepare)
rows = sum(len(shards.read(block)[1]) for block in range(len(shards.sizes)))
read = time.perf_counter()
assert rows == statistics.counts.n_rows.sum()
print(json.dumps({
    "rows": rows,
    "labels": len(shards.label_names),
    "blocks": len(shards.sizes),
    "peak_megabytes": peak(),
    "import_megabytes": before,
    "open_seconds": opened - started,
    "statistics_seconds": gathered - opened,
    "read_seconds": read - gathered,
}))
"""


def draw_sets(rng: np.random.Generator, n: int, q: int, names: list[str]) -> list[str]:
    """Return ten labels for each row, joined."""
    drawn = rng.integers(0, q, (n, 10))
    return [";".join(names[j] for j in sorted(set(row))) for row in drawn.tolist()]


def draw_table(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows of numbers and complementary labels."""
    names = [f"label{j}" for j in range(1000)]
    X = rng.normal(size=(n, 40)).astype(np.float32)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(40)])
    table["complementary"] = draw_sets(rng, n, 1000, names)
    return table


def write_parquet(path: Path, n: int, rng: np.random.Generator) -> None:
    """Write rows of numbers and complementary labels."""
    table = draw_table(n, rng)
    table.to_parquet(path.with_suffix(".parquet"), index=False, row_group_size=AT_ONCE)


def write_csv(path: Path, n: int, rng: np.random.Generator) -> None:
    """Write the same rows as text."""
    draw_table(n, rng).to_csv(path.with_suffix(".csv"), index=False)


def write_texts(path: Path, n: int, rng: np.random.Generator) -> None:
    """Write a text and ticked labels as a line of json each."""
    words = (50_000 * rng.random((n, 30)) ** 4).astype(int).tolist()
    names = [f"label{j}" for j in range(1000)]
    ticked = draw_sets(rng, n, 1000, names)
    with path.with_suffix(".jsonl").open("w") as file:
        for row, sets in zip(words, ticked, strict=True):
            text = " ".join(f"word{w}" for w in row)
            file.write(json.dumps({"text": text, "positives": sets.split(";")}) + "\n")


FORMS: dict[str, tuple[Callable[[Path, int, np.random.Generator], None], dict[str, Any]]] = {
    "parquet": (write_parquet, {}),
    "csv": (write_csv, {}),
    "jsonl": (write_texts, {"text": ["text"]}),
}


def list_parts(n: int) -> Iterator[int]:
    """Give the rows of each file."""
    for first in range(0, n, 2 * AT_ONCE):
        yield min(2 * AT_ONCE, n - first)


def measure(form: str, n: int) -> dict[str, Any]:
    """Return what one pass over n generated rows takes, in a process of its own."""
    make, fields = FORMS[form]
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts"
        parts.mkdir()
        for number, size in enumerate(list_parts(n)):
            make(parts / f"{number:04d}", size, np.random.default_rng([n, number]))
        stored = sum(path.stat().st_size for path in parts.iterdir())
        done = subprocess.run(
            [sys.executable, "-c", PASS, str(parts), json.dumps(fields), str(AT_ONCE)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COMES_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"},
        )
    row = json.loads(done.stdout)
    found = {name: significant(value) for name, value in row.items() if name != "rows"}
    return {"rows": row["rows"], "stored_megabytes": significant(stored / 2**20), **found}


def main() -> None:
    """Measure every form, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    n = parser.parse_args().rows
    forms: dict[str, Any] = {}
    for form in FORMS:
        started = time.perf_counter()
        once, ten_times = measure(form, n), measure(form, 10 * n)
        ratio = significant(ten_times["peak_megabytes"] / once["peak_megabytes"])
        forms[form] = {"once": once, "ten_times": ten_times, "ratio": ratio}
        print(form, forms[form], f"{time.perf_counter() - started:.0f} s")
    write("stream_memory", {"forms": forms})


if __name__ == "__main__":
    main()
