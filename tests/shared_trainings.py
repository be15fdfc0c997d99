"""Trainings that two processes share, and what stops and resumes one of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from scipy import sparse
from torch import Tensor, nn

from comes.answers import State
from comes.models import Ensemble, mlp
from comes.models.tabular import EnsembleRisk
from comes.risks import HammingRisk, LikelihoodRisk, RankingRisk
from comes.training import TrainOptions, Validation, make_optimizer, predict_scores, train
from comes.training.checkpoint import Checkpoint
from comes.training.label_chunks import LabelChunks, SparseTargetRows
from comes.training.pixels import PixelRows
from comes.training.rows import StreamedRows
from comes.training.seeding import seeded
from drawn_problems import annotate, prior_of, problem
from pictures import pictures

CPU = torch.device("cpu")
X, _ = problem(seed=5, n=43, q=3)
_, RELEVANT = problem(seed=6, n=43)
CANDIDATES = annotate(RELEVANT, 0.5, seed=7)
PRIOR = prior_of(RELEVANT)
STATES = torch.randint(0, 4, (43, 4), generator=torch.Generator().manual_seed(8)).to(torch.int8)
EVIDENCE = torch.linspace(-1, 1, 43 * 4).reshape(43, 4)
ADAM = make_optimizer("adam", learning_rate=0.05)
SGD = make_optimizer("sgd", learning_rate=0.1)


def risk_of(name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    if name == "hamming":
        return HammingRisk(PRIOR.to(dtype))
    if name.startswith("likelihood"):
        yes_rate = None if name == "likelihood of candidates" else PRIOR.to(dtype) / 2
        return LikelihoodRisk(PRIOR.to(dtype), yes_rate, class_prior=PRIOR.to(dtype))
    return RankingRisk(PRIOR.to(dtype), flood_level=2.4)  # in the range of the risks of batches


def network(dtype: torch.dtype = torch.float64, seed: int = 0, dropout: float = 0.0) -> nn.Module:
    with seeded(seed, CPU):
        layers = [nn.Linear(3, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 4)]
        return nn.Sequential(*layers).to(dtype)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained(
    name: str,
    dtype: torch.dtype = torch.float64,
    answers: Tensor = CANDIDATES,
    **options: Any,
) -> dict[str, Any]:
    """Train in batches of 8 and 9 rows, which two processes share as 4 and 4 or 5 and 4."""
    model, risk = network(dtype), risk_of(name, dtype)
    settings = TrainOptions(SGD, epochs=4, batch_size=9, seed=3)
    distributed = dist.is_initialized()
    history = train(
        model, X.to(dtype), answers, risk, replace(settings, **options), distributed=distributed
    )
    return {"weights": weights(model), "risk": history.risk}


def trained_on(
    rows: Any = None,
    candidates: Any = CANDIDATES,
    make: Callable[[], nn.Module] = network,
    risk: Any = None,
    weight: Tensor | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train on other rows, or another network."""
    with seeded(2, CPU):
        model = make().double()
    history = train(
        model,
        X if rows is None else rows,
        candidates,
        risk or risk_of("hamming"),
        TrainOptions(SGD, epochs=4, batch_size=9, seed=3, **options),
        sample_weight=weight,
        distributed=dist.is_initialized(),
    )
    return {"weights": weights(model), "risk": history.risk}


def weighted(scores: Tensor, candidates: Tensor, weight: Tensor) -> Tensor:
    mean = (weight[:, None] * torch.where(candidates, -scores, scores).exp()).mean(dim=0)
    return (mean - 0.3).abs().sum()  # not a sum over rows


class Opaque:
    """Candidates whose selected rows only a risk understands."""

    device = CPU

    def __len__(self) -> int:
        return len(CANDIDATES)

    def index_select(self, dim: int, index: Tensor) -> tuple[str, Tensor]:
        return "selected", CANDIDATES.index_select(dim, index)


def streamed(targets: Any = CANDIDATES) -> StreamedRows:
    """Return the rows in blocks; with targets as a tensor, or as `SparseTargetRows`."""
    sizes = (10, 3, 12, 7, 11)

    def read(block: int) -> tuple[Any, Any]:
        rows = slice(sum(sizes[:block]), sum(sizes[: block + 1]))
        if isinstance(targets, Tensor):
            return X[rows].numpy(), targets[rows]
        return X[rows].numpy(), replace(targets, matrix=targets.matrix[rows])

    return StreamedRows(sizes, 15, read, CPU)


def on_pixels(augment: Any, **options: Any) -> dict[str, Any]:
    def make() -> nn.Module:
        return nn.Sequential(ToDouble(), nn.Linear(3 * 6 * 6, 4))

    rows = PixelRows(list(pictures(43)[0]), 6, CPU, augment)
    candidates = CANDIDATES.double() if "mixes_pairs" in options else CANDIDATES
    risk = (lambda scores, targets: (scores - targets).square().mean()) if options else None
    return trained_on(rows, candidates, make, risk, **options)


class ToDouble(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).double() / 255


def sparse_targets(default: State) -> SparseTargetRows:
    states = sparse.csr_array((STATES * (STATES != State.MAYBE)).numpy())
    return SparseTargetRows(states, default, CPU)


def in_chunks(name: str, default: State) -> dict[str, Any]:
    """Train in chunks of a label, of which a process has every second."""
    many = name == "networks at once"
    risk: Any = risk_of("hamming" if many else name)
    return trained_on(
        candidates=sparse_targets(default),
        make=lambda: Ensemble(3, 4, 8, dropout=0.0) if many else mlp(3, 4, 8),
        risk=LabelChunks(EnsembleRisk(risk) if many else risk, 4, chunk=1),
    )


TRAININGS: dict[str, Callable[[], dict[str, Any]]] = {
    "hamming": lambda: trained("hamming"),
    "ranking": lambda: trained("ranking"),
    "hamming in float32": lambda: trained("hamming", torch.float32),
    "ranking in float32": lambda: trained("ranking", torch.float32),
    "hamming in parts": lambda: trained("hamming", part_size=3),
    "ranking in parts": lambda: trained("ranking", part_size=3),
    "adam, in one batch": lambda: trained("hamming", optimizer=ADAM, batch_size=99),
    "scaled": lambda: trained("hamming", risk_scale=4.0, cosine=False),
    # Of batches of 9 rows one process has 5, in two parts, and the other 4, at once.
    "in parts in one process only": lambda: trained("hamming", part_size=4),
    "hamming on states": lambda: trained("hamming", answers=STATES),
    "likelihood": lambda: trained("likelihood of candidates"),
    "likelihood of states": lambda: trained("likelihood", answers=STATES),
    "likelihood of states, in parts": lambda: trained("likelihood", answers=STATES, part_size=3),
    "likelihood of evidence": lambda: trained("likelihood", answers=EVIDENCE),
    "networks at once": lambda: trained_on(
        make=lambda: Ensemble(3, 4, 8, dropout=0.0), risk=EnsembleRisk(risk_of("hamming"))
    ),
    "weights of rows": lambda: trained_on(risk=weighted, weight=torch.linspace(0, 2, 43).double()),
    "opaque candidates": lambda: trained_on(
        candidates=Opaque(), risk=lambda scores, seen: risk_of("hamming")(scores, seen[1])
    ),
    "a stream": lambda: trained_on(streamed(), None, lambda: nn.Sequential(ToDouble(), network())),
    "a stream in chunks of labels": lambda: trained_on(
        streamed(sparse_targets(State.MAYBE)),
        None,
        lambda: nn.Sequential(ToDouble(), *network().children()),
        LabelChunks(risk_of("hamming"), 4, chunk=1),
    ),
    "hamming in chunks of labels": lambda: in_chunks("hamming", State.MAYBE),
    "likelihood in chunks of labels": lambda: in_chunks("likelihood", State.NOT_ASKED),
    "asked labels alone": lambda: in_chunks("hamming", State.NOT_ASKED),
    "networks in chunks of labels": lambda: in_chunks("networks at once", State.MAYBE),
    "pictures": lambda: on_pixels("none"),
}
# Each process draws its own random numbers, so these only agree between processes.
DRAWN: dict[str, Callable[[], dict[str, Any]]] = {
    "dropout": lambda: trained_on(make=lambda: mlp(3, 4, 8, dropout=0.5)),
    "dropout in chunks of labels": lambda: trained_on(
        candidates=sparse_targets(State.MAYBE),
        make=lambda: mlp(3, 4, 8, dropout=0.5),
        risk=LabelChunks(risk_of("hamming"), 4, chunk=1),
    ),
    "cut pictures": lambda: on_pixels("crop"),
    "mixed pictures": lambda: on_pixels("mixup", mixes_pairs=True),
}


class StoppedError(Exception):
    """The training was stopped on purpose."""


def stop() -> None:
    raise StoppedError


def resumable(
    folder: Path,
    stops_after: int = 99,  # epochs ...
    stops_in: int = 99,  # ... or in this step ...
    then: Callable[[], None] = stop,  # ... by this
    seed: int = 0,
    every: float | None = None,
) -> dict[str, Any]:
    """Train with dropout and a checkpoint, and stop."""
    model, risk = network(seed=seed, dropout=0.5), risk_of("hamming")
    calls = n_steps = 0

    def counted(scores: Tensor, candidates: Tensor) -> Tensor:
        nonlocal n_steps
        n_steps += 1
        if n_steps == stops_in:
            then()
        value: Tensor = risk(scores, candidates)
        return value

    def score() -> float:
        nonlocal calls
        calls += 1
        if calls > stops_after:
            then()
        return risk_of("hamming")(predict_scores(model, X).double(), CANDIDATES).item()  # type: ignore[no-any-return]

    history = train(
        model,
        X,
        CANDIDATES,
        counted,
        TrainOptions(ADAM, epochs=4, batch_size=9),
        validation=Validation(score),
        checkpoint=Checkpoint(folder / "training.pt", "the same", every),
        distributed=dist.is_initialized(),
    )
    found = {"risk": history.risk, "validation": history.validation, "best": history.best_epoch}
    return found | {"weights": weights(model), "calls": calls, "steps": n_steps}


def my_rows(rank: int) -> slice:
    """Return the rows of a process, of thirty, in a loop of one's own."""
    return slice(0, 13) if rank == 0 else slice(13, 30)


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
