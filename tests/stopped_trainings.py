"""A training that can be stopped in any step, and its checkpoint."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from comes.risks import HammingRisk
from comes.training import History, TrainOptions, Validation, train
from comes.training.checkpoint import Checkpoint
from comes.training.loop import Rows
from comes.training.pixels import PixelRows
from comes.training.rows import StreamedRows
from comes.training.seeding import seeded
from drawn_problems import annotate, prior_of, problem

CPU = torch.device("cpu")
X, _ = problem(seed=5, n=60, q=3)
_, RELEVANT = problem(seed=6, n=60)
CANDIDATES = annotate(RELEVANT, 0.5, seed=7)
EPOCHS, BATCHES = 12, 3  # batches of an epoch


class StoppedError(Exception):
    """The training was stopped on purpose."""


def stop() -> None:
    raise StoppedError


def interrupt() -> None:
    raise KeyboardInterrupt


def network(d: int = 3) -> nn.Module:
    with seeded(0, CPU):
        layers = [nn.Flatten(), ToDouble(), nn.Linear(d, 8), nn.BatchNorm1d(8), nn.ReLU()]
        return nn.Sequential(*layers, nn.Dropout(0.3), nn.Linear(8, 4)).double()


class ToDouble(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.double()


def adam_with_two_rates(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    *first, weight, bias = parameters
    groups: list[dict[str, Any]] = [{"params": first}, {"params": [weight, bias], "lr": 0.1}]
    return torch.optim.Adam(groups, lr=0.03)


def trained(
    path: Path | None = None,
    *,
    rows: Rows | StreamedRows = X,
    fingerprint: str = "the same",
    every: float | None = None,
    at_ends: bool = True,
    at_score: int = 0,  # in which call of the validation score ...
    at_batch: int = 0,  # ... or of the risk ...
    then: Callable[[], None] = stop,  # ... what happens
    patience: int | None = 3,
    validates: bool = True,
    as_score: Callable[[float], float] = float,
) -> tuple[dict[str, Tensor], History, int]:
    """Train; return the state, the history and how many batches were computed."""
    model = network(3 * 8 * 8 if isinstance(rows, PixelRows) else 3)
    risk, n_scores, n_batches = HammingRisk(prior_of(RELEVANT)), 0, 0

    def counted(scores: Tensor, candidates: Tensor) -> Tensor:
        nonlocal n_batches
        n_batches += 1
        if n_batches == at_batch:
            then()
        value: Tensor = risk(scores, candidates)
        return value

    def score() -> float:
        """Has its best in the fifth epoch, for a validation that is about something else."""
        nonlocal n_scores
        n_scores += 1
        if n_scores == at_score:
            then()
        number = round(model.get_buffer("3.num_batches_tracked").item() / BATCHES)
        return as_score(abs(number - 5) + weights(model)[0].item() / 1e3)

    history = train(
        model,
        rows,
        None if isinstance(rows, StreamedRows) else CANDIDATES,
        counted,
        TrainOptions(adam_with_two_rates, epochs=EPOCHS, batch_size=20, seed=4),
        validation=Validation(score, patience) if validates else None,
        checkpoint=None if path is None else Checkpoint(path, fingerprint, every, at_ends),
    )
    return model.state_dict(), history, n_batches


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def assert_equal(
    found: tuple[dict[str, Tensor], History, int], expected: tuple[dict[str, Tensor], History, int]
) -> None:
    """Compare to the last bit."""
    assert found[0].keys() == expected[0].keys()
    for name, tensor in found[0].items():
        assert torch.equal(tensor, expected[0][name]), name
    for name in ("risk", "validation", "best_epoch", "interrupted"):
        assert getattr(found[1], name) == getattr(expected[1], name)


SIZES = (7, 13, 5, 20, 9, 6)
STARTS = [sum(SIZES[:block]) for block in range(len(SIZES))]


def streamed(read: list[int] | None = None) -> StreamedRows:
    """Return the rows as a stream, which notes the blocks that are read."""

    def read_block(block: int) -> tuple[Any, Tensor]:
        if read is not None:
            read.append(block)
        rows = slice(STARTS[block], STARTS[block] + SIZES[block])
        return X[rows].numpy(), CANDIDATES[rows]

    return StreamedRows(SIZES, 21, read_block, CPU)
