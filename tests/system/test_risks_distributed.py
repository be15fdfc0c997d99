"""Two processes with half of a batch each must get the gradient of one with the whole."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

from comes.risks import (
    HammingSums,
    RankingSums,
    hamming_risk,
    hamming_risk_from_sums,
    hamming_sums,
    ranking_risk,
    ranking_risk_from_sums,
    ranking_sums,
)
from drawn_problems import annotate, prior_of, problem
from two_processes import TwoProcesses

X, _ = problem(seed=5, q=3)
_, RELEVANT = problem(seed=6)
CANDIDATES = annotate(RELEVANT, 0.3, seed=7)
PRIOR = prior_of(RELEVANT)
FLOOD = 100.0  # above the risk, so that the flooding acts


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 4).double()


def whole_risk(name: str, scores: Tensor, candidates: Tensor) -> Tensor:
    if name == "hamming":
        return hamming_risk(scores, candidates, PRIOR)
    return ranking_risk(scores, candidates, PRIOR, flood_level=FLOOD)


def reduced_risk(name: str, scores: Tensor, candidates: Tensor) -> Tensor:
    """Return the risk of all processes' rows: per-label sums added up, then combined."""
    if name == "hamming":
        sums = HammingSums(*(all_reduce(part) for part in hamming_sums(scores, candidates)))
        return hamming_risk_from_sums(sums, PRIOR)
    pair_sums = RankingSums(*(all_reduce(part) for part in ranking_sums(scores, candidates)))
    return ranking_risk_from_sums(pair_sums, PRIOR, flood_level=FLOOD)


def one_process(rank: int, folder: str) -> None:
    """Write the gradients that data-parallel training would average, one file per variant."""
    rows = slice(0, 13) if rank == 0 else slice(13, None)
    for name in ("hamming", "ranking"):
        for variant, risk in (("reduced", reduced_risk), ("naive", whole_risk)):
            network = model()
            risk(name, network(X[rows]), CANDIDATES[rows]).backward()
            gradient = network.weight.grad
            assert isinstance(gradient, Tensor)
            dist.all_reduce(gradient)
            if rank == 0:
                torch.save(gradient / 2, f"{folder}/{name}-{variant}.pt")


@pytest.mark.smoke
def test_two_processes_get_the_gradient_of_the_whole_batch(
    tmp_path: Path, two_processes: TwoProcesses
) -> None:
    two_processes.run(one_process, str(tmp_path))
    for name in ("hamming", "ranking"):
        network = model()
        whole_risk(name, network(X), CANDIDATES).backward()
        expected = network.weight.grad
        torch.testing.assert_close(torch.load(tmp_path / f"{name}-reduced.pt"), expected)
        naive = torch.load(tmp_path / f"{name}-naive.pt")
        assert (naive - expected).norm() > 1e-3 * naive.norm()
