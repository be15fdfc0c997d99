"""Optimisers by name."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from comes.errors import ComesError

OPTIMIZERS = ("sgd", "adam", "adamw")  # names that `make_optimizer` knows
MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


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
            return torch.optim.SGD(parameters, momentum=momentum, **options)
        return (torch.optim.Adam if name == "adam" else torch.optim.AdamW)(parameters, **options)

    return make
