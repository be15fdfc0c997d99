"""How near a step comes to the limits of the machine: its products, its memory, torch's calls.

    python benchmarks/roofline.py

measures, in one process: the rate of a large product of float32 matrices; the rate at which
``torch.add`` reads and writes arrays of a given size; and the time of the smallest call of torch.
Then it measures a step of the ranking risk (batch 64, forward and backward) and one of the
network of ``fit_time.py`` on sparse rows (batch 256), counts what each must at least do, and writes
``benchmarks/results/roofline.json``. All times are the shortest of several.

- Ranking: two sums and three evaluations of n_terms polynomials for every score; memory is scores
  and candidates read, the mask written and read, and scores, mask and gradient again: 25 bytes.
- Sparse rows: products of the output layer; memory is the touched weights of the input layer read,
  its gradient written, and the update of all weights. One follows the other, so times add up.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from fit_time import BATCH, EPOCHS, ours, read_task, updates
from measuring import significant, write
from pair_sums import problem, step
from torch.utils._python_dispatch import TorchDispatchMode

from comes.risks import ranking_risk
from comes.risks.pair_sums import centre, count_terms
from comes.training.rows import SparseRows

HIDDEN = 500
SIDE = 2048


def shortest(action: Callable[[], object], repeats: int, calls: int = 1) -> float:
    """Return the seconds per call of the fastest of several turns, after a first one."""
    action()
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(calls):
            action()
        found.append((time.perf_counter() - started) / calls)
    return min(found)


def peak_flops() -> float:
    """Return operations per second of a large product."""
    a, b, out = (torch.ones(SIDE, SIDE) for _ in range(3))
    return 2 * SIDE**3 / shortest(lambda: torch.mm(a, b, out=out), 5)


def bandwidth(size: int) -> float:
    """Return bytes per second of a sum of arrays of this many float32: two read, one written."""
    a, b, out = (torch.ones(size) for _ in range(3))
    calls = max(1, 2**24 // size)
    return 12 * size / shortest(lambda: torch.add(a, b, out=out), 7, calls)


def smallest_call() -> float:
    """Return the seconds of an operation on one number."""
    a = torch.ones(1)
    return shortest(lambda: torch.add(a, a, out=a), 7, 1000)


class Counter(TorchDispatchMode):
    """Counts the operations of torch inside a block."""

    calls = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def ranking_limits(q: int, peak: float, call: float) -> dict[str, float]:
    """Return the seconds of a step of the ranking risk, and of what it must at least do."""
    scores, *known = problem(q)
    action = functools.partial(step, ranking_risk, scores, *known)
    seconds = shortest(action, 25 if q < 10000 else 5, 10 if q < 1000 else 1)
    centred = centre(scores, torch.sigmoid)
    assert centred is not None
    n_terms = count_terms(centred.level, scores.dtype)
    with Counter() as counter:  # type: ignore[no-untyped-call]
        action()
    limits = {
        "products": 10 * n_terms * scores.numel() / peak,
        "memory": 25 * scores.numel() / bandwidth(scores.numel()),
        "calls": counter.calls * call,
    }
    row = {name: significant(value) for name, value in limits.items()}
    return row | {
        "n_calls": counter.calls,
        "n_terms": n_terms,
        "seconds": significant(seconds),
        "share": significant(max(limits.values()) / seconds),
    }


def sparse_limits(name: str, peak: float) -> dict[str, float]:
    """Return the seconds of an epoch on sparse rows, and of what it must at least do."""
    X, candidates, risk, model = read_task(name)
    assert isinstance(X, SparseRows)
    seconds = shortest(functools.partial(ours, model, X, candidates, risk), 4) / EPOCHS
    d, q = X.matrix.shape[1], candidates.shape[1]
    n_batches = -(-len(X) // BATCH)
    touched = updates(X, model)["touched_share"]
    limits = {
        "products": (6 * len(X) * HIDDEN * q + 4 * X.matrix.nnz * HIDDEN) / peak,
        "memory": n_batches * (touched + 6) * 4 * d * HIDDEN / bandwidth(d * HIDDEN),
    }
    row = {name: significant(value) for name, value in limits.items()}
    return row | {
        "seconds": significant(seconds),
        "share": significant(sum(limits.values()) / seconds),
    }


def main() -> None:
    """Measure all and write the result."""
    peak, call = peak_flops(), smallest_call()
    result: dict[str, Any] = {
        "gigaflops": significant(peak / 1e9),
        "gigabytes_per_second": {
            str(size): significant(bandwidth(size) / 1e9) for size in (2**16, 2**20, 2**24)
        },
        "microseconds_per_call": significant(1e6 * call),
    }
    print(result, flush=True)
    result["ranking"] = {}
    for q in (217, 4000, 64000):
        result["ranking"][str(q)] = ranking_limits(q, peak, call)
        print(q, result["ranking"][str(q)], flush=True)
    result["sparse"] = {}
    for name in ("YeastBP", "bibtex"):
        result["sparse"][name] = sparse_limits(name, peak)
        print(name, result["sparse"][name], flush=True)
    write("roofline", result)


if __name__ == "__main__":
    main()
