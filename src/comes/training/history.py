"""What a training did, epoch by epoch."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class History:
    """What happened in a training. Stored models keep these fields by name.

    Parameters
    ----------
    risk : list of float
        Mean over the batches of each epoch.
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
