"""One training loop for any ``risk(scores, candidates)``.

Features and candidates stay on the device; a batch is an index into them. Nothing is drawn from
or written to torch's global random state, and the same seed gives the same weights.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning
from comes.training.checkpoints import Checkpoint
from comes.training.gradients import add_gradient, random_state, set_random_state
from comes.training.graphs import GraphedStep
from comes.training.memory import kept_memory
from comes.training.pixels import PixelRows, fastest_convolutions
from comes.training.processes import (
    count_processes,
    my_share,
    of_all_processes,
    of_each_process,
    process_number,
    wrap,
)
from comes.training.rows import SparseRows

Risk = Callable[[Tensor, Tensor], Tensor]  # risk(scores, candidates) -> scalar
Rows = Tensor | SparseRows | PixelRows
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS = ("sgd", "adam", "adamw")


@dataclass
class History:
    """What happened in a training."""

    risk: list[float] = field(default_factory=list)  # mean over the batches of each epoch
    seconds: float = 0.0
    interrupted: bool = False
    validation: list[float] = field(default_factory=list)  # after each epoch, if asked for
    best_epoch: int | None = None  # from 1; whose weights were kept


def make_optimizer(
    name: str, *, learning_rate: float, momentum: float = 0.9, weight_decay: float = 0.0
) -> MakeOptimizer:
    """Return a function of parameters that makes the named optimiser.

    Examples
    --------
    >>> make_optimizer("adam", learning_rate=1e-3)(nn.Linear(2, 1).parameters()).defaults["lr"]
    0.001
    """
    if name not in OPTIMIZERS:
        raise ComesError(
            f"optimizer must be one of {', '.join(OPTIMIZERS)}, or a function of the parameters; "
            f"got {name!r}."
        )

    for value, limit in ((learning_rate, math.inf), (momentum, 1), (weight_decay, math.inf)):
        if not 0 <= value < limit:
            raise ComesError(
                "learning_rate and weight_decay must be finite and at least 0, momentum in [0, 1); "
                f"got {learning_rate}, {weight_decay} and {momentum}."
            )

    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        options: dict[str, Any] = {
            "lr": learning_rate,
            "weight_decay": weight_decay,
            "fused": all(p.device.type in ("cpu", "cuda") for p in parameters),
        }
        if name == "sgd":
            return torch.optim.SGD(parameters, momentum=momentum, **options)
        return (torch.optim.Adam if name == "adam" else torch.optim.AdamW)(parameters, **options)

    return make


def train(
    model: nn.Module,
    X: Rows,
    candidates: Tensor,
    risk: Risk,
    *,
    optimizer: MakeOptimizer,
    epochs: int = 200,
    batch_size: int = 256,
    risk_scale: float = 1.0,
    cosine: bool = True,
    seed: int = 0,
    progress: bool | None = None,
    description: str = "training",
    return_on_interrupt: bool = True,
    graph: bool = False,
    validation_score: Callable[[], float] | None = None,
    patience: int | None = None,
    part_size: int | None = None,
    precision: torch.dtype | None = None,
    checkpoint: Checkpoint | None = None,
    is_shared: bool = False,
) -> History:
    """Minimise a risk over the weights of a model, in place.

    Parameters
    ----------
    model : module
        Maps rows of X to scores of shape (rows, n_labels); on the device of X.
    X : float tensor of shape (n_samples, n_features), SparseRows, or PixelRows
    candidates : bool tensor of shape (n_samples, n_labels)
    risk : callable (scores, candidates) -> scalar tensor
        Called on batches; a `comes.risks` module or a function of your own.
    optimizer : callable parameters -> torch optimiser
        See `make_optimizer`.
    epochs, batch_size : int
        Rows are shuffled every epoch and split into batches of equal size, give or take a row.
    risk_scale : float
        Multiplies the risk for the gradient; the history keeps the plain risk.
    cosine : bool
        Let the learning rate fall to zero along a half cosine, epoch by epoch.
    seed : int
        Order of the rows, and dropout in the model.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.
    return_on_interrupt : bool
        On Ctrl-C keep the weights so far and return, with a warning, instead of raising.
    graph : bool
        On a GPU that holds X, and for one process, record the step as a CUDA graph. Model, risk and
        optimiser must then not read numbers from the device, as all of ours but the risks over
        pairs of many labels.
    validation_score : callable () -> float, optional
        Called after every epoch, lower is better; the weights with the best are kept.
    patience : int, optional
        Stop after so many epochs without a better one.
    part_size : int, optional
        Compute the gradient of a batch in parts of so many rows, for what does not fit into memory;
        the result is the same, at the cost of another pass.
    precision : torch dtype, optional
        Run the model under autocast, as bfloat16; risks stay in float32.
    checkpoint : Checkpoint, optional
        Keep the state after every epoch, and go on from it if there is one.
    is_shared : bool
        Share every batch with the other processes (`comes.training.join_processes`), which all call
        this. The gradient is that of one process, if the model treats rows one by one.

    Returns
    -------
    history : History
    """
    n, device = len(X), candidates.device
    n_batches = count_batches(n, epochs, batch_size)
    if n != len(candidates):
        raise ComesError(f"X and candidates must have the same rows; got {n}, {len(candidates)}.")
    optimiser = optimizer(model.parameters())
    network, whole_risk = (wrap(model), of_all_processes(risk)) if is_shared else (model, risk)

    def step(x: Tensor, rows: Tensor) -> Tensor:
        optimiser.zero_grad()
        s = candidates.index_select(0, rows)  # faster than [rows]
        value = add_gradient(
            network, x, s, whole_risk, scale=risk_scale, part_size=part_size, precision=precision
        )
        optimiser.step()
        return value

    def step_on_device(rows: Tensor) -> Tensor:
        assert not isinstance(X, SparseRows)
        return step(X.index_select(0, rows) if isinstance(X, Tensor) else X.to_train(rows), rows)

    is_on_device = isinstance(X, Tensor) or (isinstance(X, PixelRows) and X.decode() == "device")
    if graph and is_on_device and device.type == "cuda" and network is model and part_size is None:
        take_step: Callable[[Tensor], Tensor] = GraphedStep(step_on_device, optimiser, device)
    else:
        take_step = step_on_device
    shuffle = torch.Generator().manual_seed(seed)

    def epoch() -> Tensor:
        order = torch.randperm(n, generator=shuffle)
        on_host = order.tensor_split(n_batches)
        on_device = order.to(device).tensor_split(n_batches)
        if is_shared:
            on_host, on_device = (tuple(map(my_share, rows)) for rows in (on_host, on_device))
        if is_on_device:
            values: Iterable[Tensor] = map(take_step, on_device)
        elif isinstance(X, PixelRows):
            values = map(step, X.batches(on_host, training=True), on_device)
        else:
            values = map(step, (X[rows] for rows in on_host), on_device)
        total = torch.zeros((), device=device)
        for value, rows in zip(values, order.tensor_split(n_batches), strict=True):
            total += value * (len(rows) / n)
        return total[None]

    number, n_processes = (process_number(), count_processes()) if is_shared else (0, 1)
    best = _Best(model, validation_score, patience, is_shared)
    before = None if checkpoint is None else checkpoint.read(n_processes)
    if before is not None:
        rates = [group["lr"] for group in optimiser.param_groups]
        model.load_state_dict(before["model"])
        optimiser.load_state_dict(before["optimiser"])
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate  # of the first epoch, from which the others follow
        shuffle.set_state(before["shuffle"])
        best.load_state_dict(before["best"])

    def after_epoch(history: History) -> bool:
        enough = best.is_enough()
        if checkpoint is not None:
            own = random_state(device)
            state = {
                "model": model.state_dict(),
                "optimiser": optimiser.state_dict(),
                "shuffle": shuffle.get_state(),
                "best": best.state_dict(),
                "random": of_each_process(own) if is_shared else [own],
                "risk": history.risk,
                "is_enough": enough,
            }
            if number == 0:
                checkpoint.write(state)
        return enough

    model.train()
    with seeded(seed + number, device):
        if before is not None:
            set_random_state(before["random"][number], device)
        (history,) = run_epochs(
            epoch,
            optimiser,
            epochs if before is None or not before["is_enough"] else len(before["risk"]),
            done=[] if before is None else before["risk"],
            cosine=cosine,
            progress=progress,
            description=description,
            return_on_interrupt=return_on_interrupt,
            after_epoch=after_epoch,
        )
    best.restore(history)
    check_weights(model.parameters(), history)
    model.eval()
    return history


class _Best:
    """The weights with the best score so far; nothing if there is no score."""

    def __init__(
        self,
        model: nn.Module,
        score: Callable[[], float] | None,
        patience: int | None,
        is_shared: bool = False,
    ) -> None:
        self._model, self._score, self._is_shared = model, score, is_shared
        self._patience = math.inf if patience is None else patience
        self._scores: list[float] = []
        self._best, self._epoch, self._waiting = math.inf, 0, 0
        self._weights: dict[str, Tensor] = {}

    def is_enough(self) -> bool:
        """Look at the weights after an epoch; return whether there is no more to hope for."""
        if self._score is None:
            return False
        self._model.eval()
        score = float(self._score())
        if self._is_shared:  # all decide as the first does
            score = float(of_each_process(score)[0])
        self._model.train()
        self._scores.append(score)
        self._waiting = 0 if score < self._best else self._waiting + 1
        if score <= self._best and math.isfinite(score):  # of equal ones the last
            self._best, self._epoch = score, len(self._scores)
            self._weights = {k: v.clone() for k, v in self._model.state_dict().items()}
        return self._waiting >= self._patience

    def state_dict(self) -> dict[str, Any]:
        """Return what has been seen, for a checkpoint."""
        return {
            "scores": self._scores,
            "best": (self._best, self._epoch, self._waiting),
            "weights": self._weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what a checkpoint has."""
        self._scores, self._weights = state["scores"], state["weights"]
        self._best, self._epoch, self._waiting = state["best"]

    def restore(self, history: History) -> None:
        """Give the best weights back to the model."""
        if not self._scores:
            return
        history.validation = self._scores
        if not self._weights:
            raise ComesError(
                "no epoch had a finite risk on the held-out rows: there may be too few of them, or "
                "none that exclude anything. Train without early stopping, or hold out more."
            )
        self._model.load_state_dict(self._weights)
        history.best_epoch = self._epoch


def count_batches(n: int, epochs: int, batch_size: int) -> int:
    """Return how many batches an epoch has; refuse counts below 1."""
    for name, count in (("epochs", epochs), ("batch_size", batch_size)):
        if count < 1:
            raise ComesError(f"{name} must be at least 1; got {count}.")
    return math.ceil(n / batch_size)


def run_epochs(
    epoch: Callable[[], Tensor],  # trains for one epoch; mean risk of each model, (n_models,)
    optimiser: torch.optim.Optimizer,
    epochs: int,
    *,
    n_models: int = 1,
    cosine: bool,
    progress: bool | None,
    description: str,
    return_on_interrupt: bool,
    done: Sequence[float] = (),  # risks of epochs that were run before
    after_epoch: Callable[[History], bool] = lambda history: False,  # whether that was enough
) -> list[History]:
    """Run the epochs with their learning rates, and return the history of each model."""
    histories = [History(risk=list(done)) for _ in range(n_models)]
    rates = [float(group["lr"]) for group in optimiser.param_groups]
    started = time.perf_counter()
    bar = _progress_bar(epochs, description, progress)
    with kept_memory(), fastest_convolutions(), bar as advance:
        try:
            for risk in done:
                advance(risk)
            for number in range(len(done), epochs):
                if cosine:
                    _set_rates(optimiser, rates, 0.5 * (1 + math.cos(math.pi * number / epochs)))
                for history, risk in zip(histories, epoch().tolist(), strict=True):
                    history.risk.append(_finite(risk, number))
                advance(histories[0].risk[-1])
                if after_epoch(histories[0]):
                    break
        except KeyboardInterrupt:
            if not return_on_interrupt:
                raise
            for history in histories:
                history.interrupted = True
            warnings.warn(
                f"Interrupted after {len(histories[-1].risk)} of {epochs} epochs; "
                "the weights so far are kept.",
                ComesWarning,
                stacklevel=3,
            )
    for history in histories:
        history.seconds = (time.perf_counter() - started) / n_models
    return histories


def check_weights(parameters: Iterable[nn.Parameter], history: History) -> None:
    """Raise if a weight is not finite, which a risk that ignores it would not show."""
    if not all(p.isfinite().all() for p in parameters):
        _finite(math.nan, len(history.risk) - 1)


@torch.no_grad()
def predict_scores(
    model: nn.Module, X: Rows, batch_size: int | None = None, precision: torch.dtype | None = None
) -> Tensor:
    """Return the scores of every row, on the device of X."""
    model.eval()
    rows = torch.arange(len(X), device=X.device if isinstance(X, Tensor) else "cpu")
    parts = rows.split(batch_size or (256 if isinstance(X, PixelRows) else 4096))
    batches = X.batches(parts) if isinstance(X, PixelRows) else (X[part] for part in parts)
    with torch.autocast(X.device.type, precision, enabled=precision is not None):
        return torch.cat([model(batch).float() for batch in batches])


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block and leave its random state as it was."""
    is_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if is_cuda else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach every device
        if is_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _set_rates(optimiser: torch.optim.Optimizer, rates: Sequence[float], factor: float) -> None:
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * factor)
        else:
            group["lr"] = rate * factor


def _finite(risk: float, epoch: int) -> float:
    if not math.isfinite(risk):
        raise ComesError(
            f"the risk or the weights became {risk} in epoch {epoch + 1}. Lower the learning rate, "
            "scale the features, or use a corrected risk (an unbiased one has no lower bound)."
        )
    return risk


@contextmanager
def _progress_bar(
    epochs: int, description: str, show: bool | None
) -> Iterator[Callable[[float], None]]:
    """Give a function that advances a bar by one epoch; a function of nothing if not shown."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda risk: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed:.0f}/{task.total:.0f}  risk {task.fields[risk]:.4f}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, force_terminal=show)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=epochs, risk=math.nan)
        yield lambda risk: bar.update(task, advance=1, risk=risk)
