"""One training loop for any ``risk(scores, candidates)``.

Features and candidates stay on the device; a batch is an index into them. Torch's global random
state stays as it was, and the same seed gives the same weights.
"""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from comes.errors import ComesError
from comes.training.batch_sources import Rows, find_source
from comes.training.best_weights import BestWeights
from comes.training.checkpoints import Checkpoint
from comes.training.epochs import check_weights, run_epochs
from comes.training.gradients import Risk
from comes.training.history import History
from comes.training.pixels import PixelRows
from comes.training.processes import of_all_processes, process_number, wrap_model
from comes.training.random_states import seeded, set_random_state
from comes.training.resuming import TrainingState
from comes.training.said_rows import SaidRows
from comes.training.steps import Epoch, Step, plan_steps
from comes.training.train_options import TrainOptions, Validation
from comes.training.watching import TrainedEpoch, call_each


def train(
    model: nn.Module,
    X: Rows,
    candidates: Tensor | SaidRows,
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
    X : float tensor of shape (n_samples, n_features), SparseRows, or PixelRows
    candidates : bool tensor of shape (n_samples, n_labels), or SaidRows with `LabelChunks`
    risk : callable (scores, candidates) -> scalar tensor
        Called on batches; a `comes.risks` module or a function of your own.
    options : TrainOptions
    sample_weight : float tensor of shape (n_samples,), optional
        How much every row counts. The risk gets those of a batch as its third argument, and is
        multiplied by their mean over the mean of all rows.
    validation : Validation, optional
        Scores the weights after every epoch; the model ends with the best.
    checkpoint : Checkpoint, optional
        Keeps the state after every epoch; if it holds one, training goes on from there.
    is_shared : bool
        Share every batch with the other processes (`comes.training.join_processes`), which all call
        this. The gradient is that of one process, if the model treats rows one by one.

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
    n, device = len(X), candidates.device
    if n != len(candidates):
        raise ComesError(f"X and candidates must have the same rows; got {n}, {len(candidates)}.")
    _check_weight(sample_weight, n, is_shared)
    mean_weight = None if sample_weight is None else sample_weight.mean()
    optimiser = options.optimizer(model.parameters())
    network, whole_risk = model, risk
    if is_shared:
        network, whole_risk = wrap_model(model), of_all_processes(risk)
    step = Step(network, candidates, whole_risk, optimiser, options, sample_weight, mean_weight)
    take_steps = plan_steps(step, find_source(X), record=options.graph and network is model)
    shuffle = torch.Generator().manual_seed(options.seed)
    n_batches = math.ceil(n / options.batch_size)
    epoch = Epoch(take_steps, n, n_batches, shuffle, device, is_shared)
    best = BestWeights(model, validation, is_shared)
    state = TrainingState(checkpoint, model, optimiser, shuffle, best, device, is_shared)
    done = state.resume()
    if done.is_enough:
        options = replace(options, epochs=len(done.risk))
    model.train()
    with seeded(options.seed + (process_number() if is_shared else 0), device):
        if done.random is not None:
            set_random_state(done.random, device)
        finish = partial(_finish_epoch, state, options, model)
        (history,) = run_epochs(epoch, optimiser, options, done=done.risk, finish_epoch=finish)
    history = best.restore(history)
    check_weights(model.parameters(), history)
    model.eval()
    return history


def _check_weight(weight: Tensor | None, n: int, is_shared: bool) -> None:
    """Raise an error unless the weights can be used."""
    if weight is not None and weight.shape != (n,):
        raise ComesError(f"sample_weight must have shape {(n,)}; got {tuple(weight.shape)}.")
    if weight is not None and is_shared:
        raise ComesError("sample_weight is for one process; leave it out, or train in one.")


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
    model: nn.Module, X: Rows, batch_size: int | None = None, precision: torch.dtype | None = None
) -> Tensor:
    """Return the scores of every row, on the device of X.

    Parameters
    ----------
    model : module
        Is put into evaluation mode.
    X : float tensor of shape (n_samples, n_features), SparseRows, or PixelRows
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
    rows = torch.arange(len(X), device=X.device if isinstance(X, Tensor) else "cpu")
    parts = rows.split(batch_size or (256 if isinstance(X, PixelRows) else 4096))
    batches = X.batches(parts) if isinstance(X, PixelRows) else (X[part] for part in parts)
    with torch.autocast(X.device.type, precision, enabled=precision is not None):
        return torch.cat([model(batch).float() for batch in batches])
