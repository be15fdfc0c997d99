"""Two processes with half of a batch each must get the gradient of one with the whole."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_reduce

from comes.training import of_all_processes
from drawn_problems import Q
from every_risk import BY_SUMS, RISKS, X, linear_model, whole_batch
from two_processes import TwoProcesses

NOT_A_SUM_OVER_ROWS = ("hamming", "ranking, flooded", "mlcl")


def sums_of_all_processes(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the risk of all processes' rows: per-label sums added up, then combined."""
    sum_rows, combine = BY_SUMS[name]
    return lambda g, s: combine([all_reduce(part) for part in sum_rows(g, s)])


def one_process(rank: int, folder: str) -> None:
    """Write the risks, and the gradients that data-parallel training would average."""
    rows = slice(0, 13) if rank == 0 else slice(13, None)
    for name, case in RISKS.items():
        risk = case.make(Q)[1]
        ways: dict[str, Callable[..., Tensor]] = {"gathered": of_all_processes(risk), "naive": risk}
        if name in BY_SUMS:
            ways["summed"] = sums_of_all_processes(name)
        for way, each in ways.items():
            model = linear_model()
            value = each(model(X[rows]), case.targets[rows])
            value.backward()
            gradient = model.weight.grad
            assert isinstance(gradient, Tensor)
            dist.all_reduce(gradient)
            if rank == 0:
                torch.save((value.detach(), gradient / 2), f"{folder}/{name}-{way}.pt")


@pytest.mark.smoke
def test_two_processes_get_the_gradient_of_the_whole_batch(
    tmp_path: Path, two_processes: TwoProcesses
) -> None:
    two_processes.run(one_process, str(tmp_path))
    for name in RISKS:
        expected = whole_batch(name)
        for way in ("gathered", "summed") if name in BY_SUMS else ("gathered",):
            found = torch.load(tmp_path / f"{name}-{way}.pt")
            for one, other in zip(found, expected, strict=True):
                assert torch.allclose(one, other, rtol=1e-10, atol=1e-13), (name, way)
        if name in NOT_A_SUM_OVER_ROWS:
            _, naive = torch.load(tmp_path / f"{name}-naive.pt")
            assert (naive - expected[1]).norm() > 1e-3 * naive.norm(), name
