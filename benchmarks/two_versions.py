"""CPU seconds of this checkout against those of another one, in turns.

    git worktree add ../before 9c225c8
    python benchmarks/two_versions.py ../before

Every turn starts a process for each checkout, which runs the same work with one thread: whole fits
of drawn rows with every kind of risk, and steps of the risks alone. Imports are measured apart. The
ratio is the median over turns of this checkout's seconds divided by the other's, with the smallest
and the largest; ``benchmarks/results/two_versions.json`` has all of it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent


def measure() -> dict[str, float]:
    """Return the CPU seconds of everything that is measured, in this process."""
    started = time.process_time()
    import numpy as np
    import torch

    from comes import Answers, CandidateClassifier

    try:
        from comes.flat_settings import from_flat
    except ImportError:  # settings are flat before 1.1
        from_flat = dict  # type: ignore[assignment]
    seconds = {"import": time.process_time() - started}
    from scipy import sparse

    from comes.generation import independent
    from comes.risks import hamming_risk, likelihood_risk, ranking_risk

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50))
    relevant = X @ rng.normal(size=(50, 10)) / 50**0.5 > 0.8
    candidates = independent(relevant, exclude_rate=0.5, seed=0)
    asked = rng.random(relevant.shape) < 0.3
    answers = Answers(no=asked & ~relevant, yes=asked & relevant)
    bags = sparse.random_array((2000, 2000), density=0.01, rng=rng, format="csr")
    prior = relevant.mean(axis=0)

    def fit(X: Any, labels: Any, **settings: Any) -> None:
        settings |= {"random_state": 0, "device": "cpu", "progress": False}
        CandidateClassifier(**from_flat(settings)).fit(X, labels)

    def step(risk: Callable[..., Any], q: int, calls: int) -> None:
        scores = torch.randn(256, q, requires_grad=True)
        possible, rate = torch.rand(256, q) < 0.6, torch.full((q,), 0.3)
        for _ in range(calls):
            risk(scores, possible, rate).backward()

    work: dict[str, Callable[[], None]] = {
        "fit, default, candidates": lambda: fit(X, candidates, epochs=20),
        "fit, default, answers": lambda: fit(X, answers, epochs=20),
        "fit, default, sparse rows": lambda: fit(bags, candidates, epochs=10, class_prior=prior),
        "fit, comes-hl": lambda: fit(
            X, candidates, method="comes-hl", epochs=60, class_prior=prior
        ),
        "fit, comes-rl": lambda: fit(
            X, candidates, method="comes-rl", epochs=60, class_prior=prior
        ),
        "step, hamming_risk, 200 labels": lambda: step(hamming_risk, 200, 1500),
        "step, likelihood_risk, 200 labels": lambda: step(likelihood_risk, 200, 1500),
        "step, ranking_risk, 20 labels": lambda: step(ranking_risk, 20, 1500),
        "step, ranking_risk, 2000 labels": lambda: step(ranking_risk, 2000, 100),
    }
    for name, action in work.items():
        action()
        started = time.process_time()
        action()
        seconds[name] = time.process_time() - started
    return seconds


def run(checkout: Path) -> dict[str, float]:
    """Measure a checkout in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--measure"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    """Measure both checkouts in turns; print and write medians and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure()))
        return
    if arguments.other is None:
        parser.error("name another checkout")
    from measuring import significant, write

    turns = [(run(HERE), run(arguments.other.resolve())) for _ in range(arguments.turns)]
    result = {}
    for name in turns[0][0]:
        ratios = [ours[name] / others[name] for ours, others in turns]
        result[name] = {
            "seconds": significant(statistics.median(ours[name] for ours, _ in turns)),
            "seconds_before": significant(statistics.median(other[name] for _, other in turns)),
            "ratio": significant(statistics.median(ratios)),
            "smallest": significant(min(ratios)),
            "largest": significant(max(ratios)),
        }
        print(name, result[name])
    write("two_versions", {"turns": arguments.turns, "work": result})


if __name__ == "__main__":
    main()
