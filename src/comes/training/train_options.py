"""How to train: the options of `train` and `train_together`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from comes.errors import ComesError
from comes.training.optimizers import MakeOptimizer
from comes.training.row_order import BlockOrder
from comes.training.watching import Callback


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
    order : BlockOrder, optional
        Shuffle rows by blocks, as `StreamedRows` needs it; by default all rows at once.

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
    order: BlockOrder | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "part_size"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ComesError(f"{name} must be at least 1; got {count}.")


@dataclass(frozen=True)
class Validation:
    """Judges the weights after every epoch; the weights with the best score are kept.

    Parameters
    ----------
    score : callable () -> float
        Scores the current weights; lower is better. Of equal scores the last is the best.
    patience : int, optional
        Stop after this many epochs without a better score.

    Examples
    --------
    >>> import torch
    >>> from comes.training import make_optimizer, train
    >>> model, rows = torch.nn.Linear(1, 1), torch.ones(4, 1)
    >>> scores = iter([0.5, 0.2, 0.3, 0.4])
    >>> history = train(
    ...     model,
    ...     rows,
    ...     rows > 0,
    ...     lambda scores, candidates: scores.mean(),
    ...     TrainOptions(make_optimizer("sgd", learning_rate=0.1)),
    ...     validation=Validation(lambda: next(scores), patience=2),
    ... )
    >>> history.validation, history.best_epoch
    ([0.5, 0.2, 0.3, 0.4], 2)
    """

    score: Callable[[], float]
    patience: int | None = None
