"""One training loop for any ``risk(scores, candidates)``.

Features and candidates stay on the device; a batch is an index into them. Nothing is drawn from
or written to torch's global random state, and the same seed gives the same weights.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning

Risk = Callable[[Tensor, Tensor], Tensor]  # risk(scores, candidates) -> scalar
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS = ("sgd", "adam", "adamw")


@dataclass
class History:
    """What happened in a training."""

    risk: list[float] = field(default_factory=list)  # mean over the batches of each epoch
    seconds: float = 0.0
    interrupted: bool = False


@dataclass(frozen=True)
class SparseRows:
    """A CSR matrix on a device, from which batches of rows are taken as torch CSR tensors."""

    starts: Tensor  # (n + 1,)
    columns: Tensor  # (n_nonzero,)
    values: Tensor  # (n_nonzero,)
    d: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Tensor) -> Tensor:
        starts = self.starts[rows]
        lengths = self.starts[rows + 1] - starts
        ends = lengths.cumsum(0)
        begin = torch.cat([ends.new_zeros(1), ends])
        taken = torch.arange(int(begin[-1]), device=begin.device)
        taken += torch.repeat_interleave(starts - begin[:-1], lengths)
        size = (len(rows), self.d)
        return torch.sparse_csr_tensor(
            begin, self.columns[taken], self.values[taken], size=size, check_invariants=False
        )


def choose_device(device: str) -> torch.device:
    """Return the named device; ``auto`` is the GPU if torch sees one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.zeros(1, device=chosen).cpu()
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ComesError(
            f"device {device!r} cannot be used here ({reason}). Take 'auto', 'cpu' or one that "
            "torch sees."
        ) from None
    return chosen


def to_device(X: Any, device: torch.device) -> Tensor | SparseRows:
    """Return a numpy or scipy matrix as float32 rows on the device."""
    if not sparse.issparse(X):
        return torch.as_tensor(np.require(X, np.float32, ["C", "W"]), device=device)
    X = sparse.csr_array(X)
    with warnings.catch_warnings():  # The first CSR tensor warns, once, that they are in beta.
        warnings.simplefilter("ignore", UserWarning)
        torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1), check_invariants=False)
    return SparseRows(
        starts=torch.as_tensor(X.indptr.astype(np.int64), device=device),
        columns=torch.as_tensor(X.indices.astype(np.int64), device=device),
        values=torch.as_tensor(X.data.astype(np.float32), device=device),
        d=X.shape[1],
    )


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
    X: Tensor | SparseRows,
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
) -> History:
    """Minimise a risk over the weights of a model, in place.

    Parameters
    ----------
    model : module
        Maps rows of X to scores of shape (rows, n_labels); on the device of X.
    X : float tensor of shape (n_samples, n_features), or SparseRows
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

    Returns
    -------
    history : History
    """
    for name, count in (("epochs", epochs), ("batch_size", batch_size)):
        if count < 1:
            raise ComesError(f"{name} must be at least 1; got {count}.")
    n = len(X)
    if n != len(candidates):
        raise ComesError(f"X and candidates must have the same rows; got {n}, {len(candidates)}.")
    history = History()
    optimiser = optimizer(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda epoch: 0.5 * (1 + math.cos(math.pi * epoch / epochs)) if cosine else 1.0
    )
    shuffle = torch.Generator().manual_seed(seed)
    started = time.perf_counter()
    model.train()
    with seeded(seed, candidates.device), _progress_bar(epochs, description, progress) as advance:
        try:
            for epoch in range(epochs):
                order = torch.randperm(n, generator=shuffle).to(candidates.device)
                total = torch.zeros((), device=candidates.device)
                for rows in order.tensor_split(math.ceil(n / batch_size)):
                    optimiser.zero_grad()
                    value = risk(model(X[rows]), candidates[rows])
                    (risk_scale * value).backward()
                    optimiser.step()
                    total += value.detach() * (len(rows) / n)
                schedule.step()
                history.risk.append(_finite(total.item(), epoch))
                advance(history.risk[-1])
        except KeyboardInterrupt:
            if not return_on_interrupt:
                raise
            history.interrupted = True
            warnings.warn(
                f"Interrupted after {len(history.risk)} of {epochs} epochs; "
                "the weights so far are kept.",
                ComesWarning,
                stacklevel=2,
            )
    if not all(p.isfinite().all() for p in model.parameters()):
        _finite(math.nan, len(history.risk) - 1)
    history.seconds = time.perf_counter() - started
    model.eval()
    return history


@torch.no_grad()
def predict_scores(model: nn.Module, X: Tensor | SparseRows, batch_size: int = 4096) -> Tensor:
    """Return the scores of every row, on the device of X."""
    model.eval()
    rows = torch.arange(len(X), device=next(model.parameters()).device)
    return torch.cat([model(X[batch]) for batch in torch.split(rows, batch_size)])


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
