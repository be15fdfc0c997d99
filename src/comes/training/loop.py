"""One training loop for any ``risk(scores, candidates)``.

Features and candidates stay on the device; a batch is an index into them. Torch's global random
state stays as it was, and the same seed gives the same weights.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.training.batch_sources import Rows, find_source
from comes.training.best_weights import BestWeights
from comes.training.checkpoints import Checkpoint
from comes.training.epochs import check_weights, run_epochs
from comes.training.gradients import Risk
from comes.training.history import History
from comes.training.label_chunks import LabelChunks
from comes.training.pixels import PixelRows
from comes.training.processes import count_processes, process_number, wrap_model
from comes.training.random_states import read_random_state, seeded, set_random_state
from comes.training.resuming import TrainingState
from comes.training.row_order import BlockOrder, draw_order
from comes.training.shared_random import SharedRandom
from comes.training.steps import Epoch, SeenRows, Step, plan_steps
from comes.training.streamed_rows import StreamedRows
from comes.training.train_options import TrainOptions, Validation
from comes.training.watching import TrainedEpoch, call_each


def train(
    model: nn.Module,
    X: Rows | StreamedRows,
    candidates: SeenRows | None,
    risk: Risk,
    options: TrainOptions,
    *,
    sample_weight: Tensor | None = None,
    validation: Validation | None = None,
    checkpoint: Checkpoint | None = None,
    is_shared: bool = False,
) -> History:
    """Minimise a risk over the weights of a model, in place.

    Parameters
    ----------
    model : module
        Maps rows of X to scores of shape (rows, n_labels); on the device of X.
    X : float tensor of shape (n_samples, n_features), SparseRows, PixelRows or StreamedRows
    candidates : bool tensor of shape (n_samples, n_labels), or SparseTargetRows with `LabelChunks`
        None with `StreamedRows`, which bring them along.
    risk : callable (scores, candidates) -> scalar tensor
        Called on batches; a `comes.risks` module or a function of your own.
    options : TrainOptions
    sample_weight : float tensor of shape (n_samples,), optional
        How much every row counts. The risk gets those of a batch as its third argument, and is
        multiplied by their mean over the mean of all rows.
    validation : Validation, optional
        Scores the weights after every epoch; the model ends with the best.
    checkpoint : Checkpoint, optional
        Keeps the state after every epoch, and within long ones; if it holds one, training goes on
        from there, in any number of processes.
    is_shared : bool
        Share every batch with the other processes (`comes.training.join_processes`), which all call
        this. The result is that of one process, if the model treats rows one by one and draws
        random numbers by `comes.models.Dropout` alone.

    Returns
    -------
    history : History

    Examples
    --------
    >>> from comes.risks import BceRisk
    >>> from comes.training import make_optimizer
    >>> X = torch.randn(100, 5)
    >>> model = nn.Linear(5, 2)
    >>> options = TrainOptions(make_optimizer("sgd", learning_rate=0.1), epochs=10)
    >>> history = train(model, X, X[:, :2] > 0, BceRisk(), options)
    >>> history.risk[-1] < history.risk[0]
    True
    """
    is_shared = is_shared and count_processes() > 1
    n, device = len(X), X.device if isinstance(X, StreamedRows) else _device_of(candidates)
    _check_rows(X, candidates, options.order)
    _check_weight(sample_weight, n)
    mean_weight = None if sample_weight is None else sample_weight.mean()
    if is_shared and process_number() > 0:
        options = replace(options, progress=False)
    optimiser = options.optimizer(model.parameters())
    network = wrap_model(model) if is_shared and not isinstance(risk, LabelChunks) else model
    step = Step(network, risk, optimiser, options, sample_weight, mean_weight, is_shared)
    record = options.graph and not is_shared
    take_steps = plan_steps(step, find_source(X), candidates, device, record=record)
    shuffle = torch.Generator().manual_seed(options.seed)
    best = BestWeights(model, validation, is_shared)
    state = TrainingState(checkpoint, model, optimiser, shuffle, best, device, is_shared)
    draw = partial(draw_order, n, options.order)
    epoch = Epoch(take_steps, draw, math.ceil(n / options.batch_size), state)
    done = state.resume()
    if done.is_enough:
        options = replace(options, epochs=len(done.risk))
    model.train()
    with seeded(options.seed, device):
        if done.random is not None:
            set_random_state(done.random, device)
        finish = partial(_finish_epoch, state, options, model)
        with _sharing_random(state, model, X, options):
            (history,) = run_epochs(epoch, optimiser, options, done=done.risk, finish_epoch=finish)
    history = best.restore(history)
    check_weights(model.parameters(), history)
    model.eval()
    return history


def _device_of(candidates: SeenRows | None) -> torch.device:
    """Return the device of what the risk sees."""
    if candidates is None:
        raise ComesError("candidates must be given; only StreamedRows bring them along.")
    return candidates.device


def _check_rows(
    X: Rows | StreamedRows, candidates: SeenRows | None, order: BlockOrder | None
) -> None:
    """Raise an error unless features, candidates and the order have the same rows."""
    if candidates is not None and len(X) != len(candidates):
        raise ComesError(
            f"X and candidates must have the same rows; got {len(X)}, {len(candidates)}."
        )
    if order is not None and len(order) != len(X):
        raise ComesError(f"the order must be one of {len(X)} rows; got one of {len(order)}.")
    if not isinstance(X, StreamedRows):
        return
    if candidates is not None:
        raise ComesError("StreamedRows bring candidates along; pass None for them.")
    if order is None or order.sizes != X.sizes:
        raise ComesError(
            "StreamedRows need an order of their blocks: set options.order to "
            "BlockOrder(X.sizes, buffer), with as many rows as may be in memory twice."
        )


def _check_weight(weight: Tensor | None, n: int) -> None:
    """Raise an error unless the weights can be used."""
    if weight is not None and weight.shape != (n,):
        raise ComesError(f"sample_weight must have shape {(n,)}; got {tuple(weight.shape)}.")


@contextmanager
def _sharing_random(
    state: TrainingState, model: nn.Module, X: Any, options: TrainOptions
) -> Iterator[None]:
    """Let several processes draw as one does; in parts of batches, each draws its own."""
    if not state.is_shared:
        yield
        return
    state.random = SharedRandom(options.seed, state.device, read_random_state(state.device))
    with nullcontext() if options.part_size else state.random.used_by(model, X):
        yield


def _finish_epoch(
    state: TrainingState, options: TrainOptions, model: nn.Module, risk: list[float]
) -> bool:
    """Keep the state and tell the callbacks; return whether to stop."""
    is_enough = state.finish_epoch(risk)
    if not options.callbacks:
        return is_enough
    done = TrainedEpoch(len(risk), options.epochs, risk[-1], state.best.last_score, model)
    return call_each(options.callbacks, done) or is_enough


@torch.no_grad()
def predict_scores(
    model: nn.Module,
    X: Rows | StreamedRows,
    batch_size: int | None = None,
    precision: torch.dtype | None = None,
) -> Tensor:
    """Return the scores of every row, on the device of X.

    Parameters
    ----------
    model : module
        Is put into evaluation mode.
    X : float tensor of shape (n_samples, n_features), SparseRows, PixelRows or StreamedRows
    batch_size : int, optional
        Rows at a time; by default 4096, and 256 pictures.
    precision : torch dtype, optional
        Run the model under autocast, for example in bfloat16.

    Returns
    -------
    scores : float tensor of shape (n_samples, n_labels)

    Examples
    --------
    >>> predict_scores(nn.Linear(5, 2), torch.randn(100, 5), batch_size=30).shape
    torch.Size([100, 2])
    """
    model.eval()
    if isinstance(X, StreamedRows):
        return torch.cat(
            [predict_scores(model, part, batch_size, precision) for part in X.read_features()]
        )
    rows = torch.arange(len(X), device=X.device if isinstance(X, Tensor) else "cpu")
    parts = rows.split(batch_size or (256 if isinstance(X, PixelRows) else 4096))
    batches = X.batches(parts) if isinstance(X, PixelRows) else (X[part] for part in parts)
    with torch.autocast(X.device.type, precision, enabled=precision is not None):
        return torch.cat([model(batch).float() for batch in batches])
