"""What a training tells after every epoch, and who may end it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class TrainedEpoch:
    """An epoch that is done, as a callback sees it.

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
    >>> TrainedEpoch(3, 20, 0.41, None, nn.Linear(2, 1)).epoch
    3
    """

    epoch: int
    epochs: int
    risk: float
    held_out_risk: float | None
    model: nn.Module


Callback = Callable[[TrainedEpoch], bool | None]  # True ends the training


def call_each(callbacks: Sequence[Callback], done: TrainedEpoch) -> bool:
    """Call every callback, and return whether one of them ends the training."""
    return any([callback(done) is True for callback in callbacks])


def describe_epoch(done: TrainedEpoch) -> str:
    """Return what an epoch did, in a line.

    Examples
    --------
    >>> describe_epoch(TrainedEpoch(3, 20, 0.41, 0.52, nn.Linear(2, 1)))
    'epoch  3 of 20: risk 0.4100, held out 0.5200'
    """
    width = len(str(done.epochs))
    held_out = "" if done.held_out_risk is None else f", held out {done.held_out_risk:.4f}"
    return f"epoch {done.epoch:{width}d} of {done.epochs}: risk {done.risk:.4f}{held_out}"
