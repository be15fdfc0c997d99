"""One epoch over a million rows with 100000 labels: seconds, and the most memory of the process.

Rows, features and exclusions are drawn: 60 of 200000 features and 10 excluded labels a row, as ten
quick questions a row would give. The network has 128 hidden units; batches have 256 rows.

    python benchmarks/many_labels.py                     # two cores; --rows 20000 for a trial
    python benchmarks/many_labels.py --device cuda
    python benchmarks/many_labels.py --rows 20000 --dense    # answers as a matrix of all pairs
"""

import argparse
import json
import resource
import time
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, machine, write
from scipy import sparse

from comes import Answers, CandidateClassifier
from comes.methods import Likelihood

N_LABELS, N_FEATURES, EACH, EXCLUDED = 10**5, 2 * 10**5, 60, 10


def draw_places(n: int, q: int, each: int, seed: int) -> Any:
    """Return (n, q) with about so many ones a row, float32 CSR."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, q, (n, each), dtype=np.int32)
    columns.sort(axis=1)
    kept = np.ones((n, each), dtype=bool)
    kept[:, 1:] = columns[:, 1:] != columns[:, :-1]
    starts = np.concatenate([[0], kept.sum(axis=1).cumsum()])
    return sparse.csr_array(
        (np.ones(int(starts[-1]), dtype=np.float32), columns[kept], starts), shape=(n, q)
    )


def count_bytes(matrix: Any) -> int:
    """Return how many bytes a CSR matrix holds."""
    return int(sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr)))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Draw the data, train for one epoch, and return what it took."""
    X = draw_places(options.rows, N_FEATURES, EACH, seed=0)
    no = draw_places(options.rows, options.labels, EXCLUDED, seed=1).astype(np.int8)
    answers = Answers(no=no.toarray() if options.dense else no)
    states = None if options.dense else answers.states
    del no
    before = peak_memory()
    is_likelihood = options.method == "likelihood"
    classifier = CandidateClassifier(
        Likelihood(prior_weight=0.0) if is_likelihood else options.method,
        rates={"exclude": EXCLUDED / options.labels} if is_likelihood else None,
        class_prior=np.full(options.labels, 1e-4),
        hidden=128,
        n_networks=1,
        dropout=0.0,
        epochs=1,
        batch_size=256,
        optimizer=options.optimizer,
        learning_rate=1e-3,
        device=options.device,
        random_state=0,
    )
    started = time.perf_counter()
    classifier.fit(X, answers)
    seconds, n_steps = time.perf_counter() - started, -(-options.rows // 256)
    trained = classifier.history_.seconds
    found = {
        "method": options.method,
        "rows": options.rows,
        "labels": options.labels,
        "optimizer": options.optimizer,
        "device": options.device,
        "answers": "a matrix" if options.dense else "sparse",
        "seconds_of_fit": round(seconds, 1),
        "seconds_of_epoch": round(trained, 1),
        "seconds_of_step": round(trained / n_steps, 4),
        "gb_of_data": round(before / 2**30, 2),
        "gb_at_most": round(peak_memory() / 2**30, 2),
    }
    if states is not None:
        found["bytes_of_answers"] = count_bytes(states)
        found["bytes_of_their_non_zeros"] = states.nnz * (states.indices.itemsize + 1)
    if options.device == "cuda":
        found["gb_on_gpu"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return found


def peak_memory() -> int:
    """Return the most memory that this process held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Measure one setting and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--labels", type=int, default=N_LABELS)
    parser.add_argument("--method", default="likelihood")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dense", action="store_true")
    options = parser.parse_args()
    found = measure(options) | {"machine": machine()}
    print(json.dumps(found, indent=1))
    path = RESULTS / "many_labels.json"
    kept = json.loads(path.read_text())["runs"] if path.exists() else []
    same = ("method", "rows", "labels", "optimizer", "device", "answers")
    kept = [old for old in kept if any(old[name] != found[name] for name in same)]
    write("many_labels", {"runs": [*kept, found]})


if __name__ == "__main__":
    main()
