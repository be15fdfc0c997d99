"""Very many labels: likelihood and BCE beside LibMultiLabel, by quality, time and memory.

    python experiments/extreme.py --libmultilabel ENVIRONMENT/bin/python

writes ``experiments/results/extreme.json``. Three sets: one that is generated, a tenth of the size
of Amazon-670K (``extreme_rows.py``), written to LIBSVM with a first line ``n d q`` and read from
there; bibtex and delicious, four fifths of the rows for training. Learners know all labels of the
training rows, or half of them: each relevant label is ticked with probability .5, and a label that
is not ticked may be relevant; the likelihood estimates that rate, or is told. All are judged by
the five best labels of the test rows, against all true labels: P@1, 3, 5 and nDCG@5.

Each learner is a process of its own with two threads (``extreme_learner.py``), whose time and peak
memory are measured. LibMultiLabel is in an environment of its own, whose interpreter is named;
without it only ours run. What the result holds already is not run again. Settings of ours are the
defaults on bibtex and delicious; on the generated set they were chosen on held-out training rows.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from extreme_rows import SMALL, TENTH, make_rows, write_rows
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split

from comes.datasets import open_dataset
from comes.files import replacing_file
from comes.metrics import ndcg_at_k, precision_at_k

RESULT = Path(__file__).parent / "results" / "extreme.json"
LEARNER = Path(__file__).with_name("extreme_learner.py")
SETS, KINDS = ("generated", "bibtex", "delicious"), ("all", "half")
TICKED, TEST_SHARE = 0.5, 0.2
THREADS = "2"
LIBLINEAR = f"-m {THREADS}"  # all else is the default of its tutorials
LEARNERS: dict[str, dict[str, Any]] = {
    "likelihood": {"method": "likelihood"},
    "likelihood, rate known": {"method": "likelihood", "yes_rate": TICKED},
    "bce": {"method": "bce"},
    "LibMultiLabel tree": {"technique": "tree", "options": LIBLINEAR},
    "LibMultiLabel linear": {"technique": "1vsrest", "options": LIBLINEAR},
}
# The best P@1 on held-out training rows among those of rank 256; rank 512 is better by .04 there,
# at twice the cost, and the least loss is at a rate of .01.
MANY_LABELS: dict[str, Any] = {
    "model": "low_rank",
    "hidden": 256,
    "dropout": 0.2,
    "learning_rate": 0.03,
    "batch_size": 256,
    "epochs": 5,
}


def settings_of(name: str, kind: str, learner: str) -> dict[str, Any]:
    """Return the settings of a learner; that all labels are known is a rate of 1."""
    settings = dict(LEARNERS[learner])
    if name == "generated" and not is_theirs(learner):
        settings |= MANY_LABELS
    if learner == "likelihood" and kind == "all":
        settings["yes_rate"] = 1.0
    return settings


def is_theirs(learner: str) -> bool:
    """Return whether a learner is LibMultiLabel's."""
    return learner.startswith("LibMultiLabel")


def read_set(name: str, small: bool, folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return features and labels of training rows, then of test rows, all CSR."""
    if name == "generated":
        return read_generated(small, folder)
    dataset = open_dataset(name)
    X, relevant = sparse.csr_array(dataset.X), sparse.csr_array(dataset.known_relevant())
    rows = np.arange(X.shape[0])[: 1000 if small else None]
    train, test = train_test_split(rows, test_size=TEST_SHARE, random_state=0)
    return X[train], relevant[train], X[test], relevant[test]


def read_generated(small: bool, folder: Path) -> tuple[Any, Any, Any, Any]:
    """Return what was generated, written as LIBSVM, and read from there."""
    size = SMALL if small else TENTH
    X, relevant = make_rows(size)
    write_rows(folder / "train.txt", X[: size.train], relevant[: size.train])
    write_rows(folder / "test.txt", X[size.train :], relevant[size.train :])
    return *read_rows(folder / "train.txt"), *read_rows(folder / "test.txt")


def read_rows(path: Path) -> tuple[Any, Any]:
    """Return features and labels of LIBSVM rows after a line ``n d q``, both CSR."""
    with path.open("rb") as file:
        n, d, q = (int(number) for number in file.readline().split())
        X, labels = load_svmlight_file(
            file, n_features=d, multilabel=True, zero_based=True, dtype=np.float32
        )
    ends = np.cumsum([0, *map(len, labels)])
    columns = np.concatenate(labels).astype(np.int64)
    return X, sparse.csr_array((np.ones(len(columns), bool), columns, ends), (n, q))


def tick(relevant: Any, rate: float, seed: int = 0) -> Any:
    """Return relevant labels, each kept with a probability."""
    pairs = relevant.tocoo()
    kept = np.random.default_rng(seed).random(pairs.nnz) < rate
    places = pairs.row[kept], pairs.col[kept]
    return sparse.csr_array((pairs.data[kept], places), relevant.shape)


def judge(best: npt.NDArray[np.int64], relevant: Any) -> dict[str, float]:
    """Return P@1, 3, 5 and nDCG@5 of the best labels of each row, (n, 5)."""
    precisions = {f"precision_at_{k}": precision_at_k(best, relevant, k) for k in (1, 3, 5)}
    qualities = precisions | {"ndcg_at_5": ndcg_at_k(best, relevant, 5)}
    return {name: round(quality, 4) for name, quality in qualities.items()}


def run(folder: Path, python: Path, kind: str, learner: str, settings: dict[str, Any]) -> Any:
    """Return the best labels of the test rows, and what they cost, from a process of its own."""
    command = [str(python), str(LEARNER), str(folder), kind, learner, json.dumps(settings)]
    threads = {"OMP_NUM_THREADS": THREADS, "OPENBLAS_NUM_THREADS": THREADS}
    subprocess.run(command, check=True, env=os.environ | threads, stdout=subprocess.DEVNULL)
    return np.load(folder / "best.npy"), json.loads((folder / "cost.json").read_text())


def run_set(name: str, options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Run what is missing of a set, and write the result after every learner."""
    done = {(row["set"], row["known"], row["learner"]) for row in rows}
    tasks = [
        (kind, learner)
        for kind, learner in itertools.product(KINDS, options.learners)
        if (name, kind, learner) not in done
        and (options.libmultilabel or not is_theirs(learner))
        and (kind, learner) != ("all", "likelihood, rate known")  # the same as likelihood
        and (name, learner) != ("generated", "LibMultiLabel linear")  # has 10^9 weights
    ]
    if not tasks:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        X, relevant, X_test, truth = read_set(name, options.small, folder)
        told = {"X": X, "X_test": X_test, "all": relevant, "half": tick(relevant, TICKED)}
        for file, matrix in told.items():
            sparse.save_npz(folder / f"{file}.npz", matrix)
        about = {"set": name, "rows": X.shape[0], "test_rows": X_test.shape[0]}
        about |= {"features": X.shape[1], "labels": relevant.shape[1]}
        for kind, learner in tasks:
            python = options.libmultilabel if is_theirs(learner) else Path(sys.executable)
            settings = settings_of(name, kind, learner)
            best, cost = run(folder, python, kind, learner, settings)
            row = about | {"known": kind, "learner": learner} | judge(best, truth) | cost
            print(json.dumps(row), flush=True)
            rows.append(row | {"settings": settings})
            write(options.out, rows)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the result, in an order that does not depend on what was done first."""
    orders = {"set": list(SETS), "known": list(KINDS), "learner": list(LEARNERS)}
    rows.sort(key=lambda row: [order.index(row[name]) for name, order in orders.items()])
    result = {"command": "python experiments/extreme.py --libmultilabel PYTHON", "rows": rows}
    with replacing_file(path) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    """Run what is missing, set by set."""
    parser = argparse.ArgumentParser(description="Learners of very many labels.")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--libmultilabel", type=Path, help="interpreter that has LibMultiLabel")
    parser.add_argument("--small", action="store_true", help="small sets, for a trial")
    options = parser.parse_args()
    if options.libmultilabel is None:
        print("LibMultiLabel is left out: name an interpreter that has it by --libmultilabel.")
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    for name in options.sets:
        run_set(name, options, rows)


if __name__ == "__main__":
    main()
