"""Seconds and memory to turn the 43410 training comments of GoEmotions into features.

    python benchmarks/text_features.py

writes ``benchmarks/results/text_features.json``: TF-IDF, and the vectors of ``wordllama``, computed
and read again from disk. Each is measured in a process of its own, with an empty cache. The memory
is the peak of the process, less what it held before; the size is that of the matrix.
"""

import multiprocessing
import os
import resource
import tempfile
import time
from typing import Any

from measuring import write
from scipy import sparse

from comes.datasets import open_dataset
from comes.tables import ColumnEncoder

WAYS = ("tfidf", "wordllama")


def measure(text: str) -> dict[str, Any]:
    """Return what it takes to encode the comments twice."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["COMES_CACHE"] = cache
        X = open_dataset("GoEmotions:train").X
        encoder = ColumnEncoder(kinds={"text": "text"}, text=text)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        matrix = encoder.fit_transform(X)
        done = time.perf_counter()
        encoder.transform(X)
        again = time.perf_counter()
    parts = (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "features": matrix.shape[1],
        "seconds": round(done - started, 2),
        "seconds_again": round(again - done, 2),
        "peak_megabytes": round((peak - before) / 1024),
        "matrix_megabytes": round(sum(part.nbytes for part in parts) / 1e6, 1),
    }


def main() -> None:
    """Measure every way in a process of its own."""
    start = multiprocessing.get_context("spawn")
    found = {}
    for way in WAYS:
        with start.Pool(1) as pool:
            found[way] = pool.apply(measure, (way,))
        print(way, found[way], flush=True)
    write("text_features", {"ways": found})


if __name__ == "__main__":
    main()
