"""What `train` takes and returns: its options, optimisers by name, validation, history."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from comes.errors import ComesError

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
Callback = Callable[["TrainedEpoch"], bool | None]  # True ends the training


@dataclass(frozen=True)
class TrainOptions:
    """How to train a model; only the optimiser has no default.

    Parameters
    ----------
    optimizer : callable parameters -> torch optimiser
        See `make_optimizer`.
    epochs, batch_size : int
        Rows are shuffled every epoch and split into batches of equal size, give or take a row.
    risk_scale : float
        Multiplies the risk for the gradient; the history keeps the plain risk.
    cosine : bool
        Let the learning rate fall to zero along a half cosine, epoch by epoch.
    seed : int
        Decides the order of the rows, and dropout in the model.
    progress : bool, optional
        Show a progress bar; by default if standard error is a terminal.
    description : str
        Shown before the progress bar.
    return_on_interrupt : bool
        On Ctrl-C keep the weights so far and return, with a warning, instead of raising.
    graph : bool
        On a GPU that holds X, and for one process, record the step as a CUDA graph. Model, risk and
        optimiser must then not read numbers from the device; of ours, only the risks over pairs
        of many labels do.
    part_size : int, optional
        Compute the gradient of a batch in parts of at most this many rows, for batches that do not
        fit into memory. The result is the same, at the cost of another forward pass.
    precision : torch dtype, optional
        Run the model under autocast, for example in bfloat16; risks stay in float32.
    mixes_pairs : bool
        Mix the rows of a batch in pairs, and their targets, which are probabilities then.
    callbacks : sequence of callables TrainedEpoch -> bool or None
        Called after every epoch; one that returns True ends the training.

    Examples
    --------
    >>> from comes.training import make_optimizer
    >>> options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=20)
    >>> options.batch_size
    256
    """

    optimizer: MakeOptimizer
    epochs: int = 200
    batch_size: int = 256
    risk_scale: float = 1.0
    cosine: bool = True
    seed: int = 0
    progress: bool | None = None
    description: str = "training"
    return_on_interrupt: bool = True
    graph: bool = False
    part_size: int | None = None
    precision: torch.dtype | None = None
    mixes_pairs: bool = False
    callbacks: Sequence[Callback] = ()

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "part_size"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ComesError(f"{name} must be at least 1; got {count}.")


def _not_compiled(optimizer: type[torch.optim.Optimizer]) -> Any:
    """Return the optimiser without the wrappers that import torch's compiler, over a second."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    plain: dict[str, Any] = {name: inspect.unwrap(getattr(optimizer, name)) for name in names}
    plain["step"] = torch.no_grad()(inspect.unwrap(optimizer.step))
    return type(optimizer.__name__, (optimizer,), plain)


def make_optimizer(
    name: str, *, learning_rate: float, momentum: float = 0.9, weight_decay: float = 0.0
) -> MakeOptimizer:
    """Return a callable that makes the named optimiser for the parameters it is given.

    Parameters
    ----------
    name : {"sgd", "adam", "adamw"}
    learning_rate, weight_decay : float
        Finite and at least 0.
    momentum : float
        In [0, 1), for "sgd" only.

    Returns
    -------
    make : callable parameters -> torch optimiser

    Examples
    --------
    >>> make_optimizer("adam", learning_rate=1e-3)(nn.Linear(2, 1).parameters()).defaults["lr"]
    0.001
    """
    if name not in OPTIMIZERS:
        raise ComesError(
            f"optimizer must be one of {', '.join(OPTIMIZERS)}, or a callable that takes the "
            f"parameters; got {name!r}."
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
            options["momentum"] = momentum
        made: torch.optim.Optimizer = _not_compiled(OPTIMIZERS[name])(parameters, **options)
        return made

    return make


@dataclass(frozen=True)
class Validation:
    """Judges the weights after every epoch; the weights with the best score are kept.

    Parameters
    ----------
    score : callable () -> float
        Scores the current weights; lower is better. Of equal scores the last is the best. Weights
        of held-out rows are up to this function.
    patience : int, optional
        Stop after this many epochs without a better score.

    Examples
    --------
    >>> from comes.training import make_optimizer, train
    >>> model, rows = nn.Linear(1, 1), torch.ones(4, 1)
    >>> scores = iter([0.5, 0.2, 0.3, 0.4])
    >>> history = train(
    ...     model,
    ...     rows,
    ...     rows > 0,
    ...     lambda scores, targets: scores.mean(),
    ...     TrainOptions(make_optimizer("sgd", learning_rate=0.1)),
    ...     validation=Validation(lambda: next(scores), patience=2),
    ... )
    >>> history.validation, history.best_epoch
    ([0.5, 0.2, 0.3, 0.4], 2)
    """

    score: Callable[[], float]
    patience: int | None = None


@dataclass(frozen=True)
class History:
    """What happened in a training. Stored models keep these fields by name.

    Parameters
    ----------
    risk : list of float
        Mean over the batches of each epoch, by the weight of their rows.
    seconds : float
        Wall time.
    interrupted : bool
        Whether Ctrl-C ended the training.
    validation : list of float
        Score after each epoch; empty without a `Validation`.
    best_epoch : int, optional
        Number of the epoch whose weights were kept, from 1.
    warnings : list of str
        What an estimator found wrong with the result.

    Examples
    --------
    >>> history = History(risk=[0.7, 0.4], validation=[0.5, 0.6], best_epoch=1)
    >>> history.risk[history.best_epoch - 1]
    0.7
    """

    risk: list[float] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    validation: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TrainedEpoch:
    """An epoch that is done, as a callback gets it.

    Parameters
    ----------
    epoch, epochs : int
        Its number, from 1, and how many there are to be.
    risk : float
        Mean over the batches of the epoch.
    held_out_risk : float or None
        On held-out rows after the epoch; None without early stopping.
    model : module
        The network as it is now, in training mode: what changes it changes the training.

    Examples
    --------
    >>> print(TrainedEpoch(3, 20, 0.41, None, nn.Linear(2, 1)))
    epoch  3 of 20: risk 0.4100
    """

    epoch: int
    epochs: int
    risk: float
    held_out_risk: float | None
    model: nn.Module

    def __str__(self) -> str:
        held_out = "" if self.held_out_risk is None else f", held out {self.held_out_risk:.4f}"
        number = f"{self.epoch:{len(str(self.epochs))}d} of {self.epochs}"
        return f"epoch {number}: risk {self.risk:.4f}{held_out}"
