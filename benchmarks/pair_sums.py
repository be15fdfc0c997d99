"""The ranking risk in linear time against the plain broadcast, forward and backward.

    python benchmarks/pair_sums.py

measures batches of 64 with normal scores, in turns in one process, and writes
``benchmarks/results/pair_sums.json``: seconds, ratios, and differences of value and gradient; both
sums near the number of labels at which they take equal time; and how time and memory grow with the
labels. Memory is the peak of a fresh process above what it held before.
"""

import functools
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measuring import compared, seconds_in_turns, significant, write
from torch import Tensor

from comes.risks import pair_sums, ranking_risk

BATCH = 64
REPEATS = 7


def plain_risk(scores: Tensor, candidates: Tensor, class_prior: Tensor) -> Tensor:
    """Return the risk as one would write it: a (b, q, q) broadcast, left to autograd."""
    excluded = (~candidates).to(scores.dtype)
    above = torch.sigmoid(scores[:, :, None] - scores[:, None, :]).sum(dim=2) - 0.5
    weight = (1 - class_prior) / excluded.sum(dim=0).clamp(min=1)
    return (weight * (excluded * above).sum(dim=0)).sum()


def problem(q: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores, candidates and a class prior."""
    generator = torch.Generator().manual_seed(q)
    scores = scale * torch.randn(BATCH, q, generator=generator)
    candidates = torch.rand(BATCH, q, generator=generator) < 0.7
    return scores, candidates, torch.full((q,), 0.1)


def step(risk: Callable[..., Tensor], scores: Tensor, *known: Tensor) -> tuple[Tensor, Tensor]:
    """Return the risk and its gradient."""
    scores = scores.clone().requires_grad_()
    value = risk(scores, *known)
    value.backward()
    assert scores.grad is not None
    return value.detach(), scores.grad


def differences(q: int) -> dict[str, float]:
    """Return the relative differences to the plain risk."""
    (value, gradient), (other, expected) = (
        step(risk, *problem(q)) for risk in (ranking_risk, plain_risk)
    )
    return {
        "value_difference": significant(abs(value / other - 1).item(), 2),
        "gradient_difference": significant(
            ((gradient - expected).abs().max() / expected.abs().max()).item(), 2
        ),
    }


def against_plain(q: int) -> dict[str, Any]:
    """Return seconds, ratio and differences; one turn of the plain risk is enough at 4000."""
    data = problem(q)
    actions = {
        "comes": functools.partial(step, ranking_risk, *data),
        "plain": functools.partial(step, plain_risk, *data),
    }
    if q < 4000:
        return compared(seconds_in_turns(actions, REPEATS, calls=20 if q < 500 else 3), "comes") | (
            differences(q)
        )
    ours = sorted(seconds_in_turns({"comes": actions["comes"]}, REPEATS)["comes"])[REPEATS // 2]
    started = time.perf_counter()
    actions["plain"]()
    plain = time.perf_counter() - started
    row = {"comes": significant(ours), "plain": significant(plain)}
    return row | {"plain_over_comes": significant(plain / ours)} | differences(q)


def crossover() -> dict[str, dict[str, float]]:
    """Return the seconds of both sums, and their ratio, for about `MANY_LABELS` labels."""
    found: dict[str, dict[str, float]] = {}
    kept = dict(pair_sums.MANY_LABELS)
    for q in (32, 48, 64, 96, 128):
        data = problem(q)

        def run(many: int, data: Any = data) -> None:
            pair_sums.MANY_LABELS["cpu"] = many
            step(ranking_risk, *data)

        actions = {
            "linear": functools.partial(run, 1),
            "pair_by_pair": functools.partial(run, 10**9),
        }
        found[str(q)] = compared(seconds_in_turns(actions, REPEATS, calls=20), "linear")
    pair_sums.MANY_LABELS.update(kept)
    return found


def growth() -> dict[str, Any]:
    """Return seconds and memory at 4000 and at 64000 labels, and their ratios.

    A turn is one step of 64000 labels and 16 steps of 4000, which take about as long.
    """
    sizes = (4000, 64000)
    actions = {str(q): functools.partial(steps, q, 64000 // q) for q in sizes}
    seconds = seconds_in_turns(actions, REPEATS)
    seconds["4000"] = [total / 16 for total in seconds["4000"]]
    ratios = [many / few for few, many in zip(*seconds.values(), strict=True)]
    row: dict[str, Any] = compared(seconds, "4000")
    row |= {"least_ratio": significant(min(ratios)), "most_ratio": significant(max(ratios))}
    row |= {f"page_faults_{q}": count_page_faults(q) for q in sizes}
    memory = {
        q: float(subprocess.check_output([sys.executable, __file__, str(q)]).decode().split()[-1])
        for q in sizes
    }
    row |= {f"megabytes_{q}": significant(megabytes) for q, megabytes in memory.items()}
    return row | {"memory_ratio": significant(memory[64000] / memory[4000])}


@functools.cache
def cached_problem(q: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `problem`, made once."""
    return problem(q)


def steps(q: int, n: int) -> None:
    """Take some steps."""
    for _ in range(n):
        step(ranking_risk, *cached_problem(q))


def count_page_faults(q: int) -> float:
    """Return how many pages of fresh memory the system clears for a step."""
    steps(q, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    steps(q, 5)
    return significant((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 5)


def print_peak(q: int) -> None:
    """Print the megabytes that one step takes at its peak."""
    step(ranking_risk, *problem(100))
    data = problem(q)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak (Linux)
    before = peak_kilobytes()
    step(ranking_risk, *data)
    print((peak_kilobytes() - before) / 1024)


def peak_kilobytes() -> int:
    """Return the largest resident size of this process since its peak was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def main() -> None:
    """Measure all and write the result."""
    result: dict[str, Any] = {"batch": BATCH, "repeats": REPEATS, "against_plain": {}}
    result["crossover"] = crossover()
    print(result["crossover"], flush=True)
    result["growth"] = growth()
    print(result["growth"], flush=True)
    for q in (217, 1000, 4000):
        result["against_plain"][str(q)] = against_plain(q)
        print(q, result["against_plain"][str(q)], flush=True)
    write("pair_sums", result)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print_peak(int(sys.argv[1]))
    else:
        main()
