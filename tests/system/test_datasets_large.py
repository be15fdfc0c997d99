"""A hundred thousand labels of as many rows: ten thousand million pairs."""

import subprocess
import sys
from pathlib import Path

LARGE = """
import re, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from comes.answers import Answers
from comes.datasets import Dataset, check_dataset, open_dataset, write_dataset

def peak():  # of this process alone, in MB; ru_maxrss begins with that of its parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

n = q = 100_000
folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
ticked = np.sort(rng.integers(0, q, (n, 3)), axis=1)
with open(folder / "pages.txt", "w") as file:
    file.write(f"{n} 50 {q}\\n")
    for k, row in enumerate(ticked.tolist()):
        file.write(",".join(map(str, sorted(set(row)))) + f" {k % 50}:1\\n")
before = peak()
dataset = open_dataset(folder / "pages.txt", labels_are="positives")
assert dataset.answers.is_sparse and dataset.answers.shape == (n, q)
print(dataset, file=sys.stderr)
check_dataset(dataset)
write_dataset(dataset, folder / "pages.npz")
again = open_dataset(folder / "pages.npz").take(np.arange(0, n, 2))
assert (again.answers.states != dataset.answers.states[::2]).nnz == 0
long = Dataset(None, dataset.label_names, answers=dataset.answers)
write_dataset(long, folder / "pages.parquet", "long")
assert open_dataset(folder / "pages.parquet", labels_are="positives").answers.is_sparse
print(peak() - before)
"""


def test_a_hundred_thousand_labels_of_as_many_rows_take_little_memory(tmp_path: Path) -> None:
    """Ten thousand million pairs would take 9 GB, were they stored."""
    code = [sys.executable, "-c", LARGE, str(tmp_path)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "100000 rows, 50 features, 100000 labels" in done.stderr
    assert int(done.stdout) < 600  # MB
