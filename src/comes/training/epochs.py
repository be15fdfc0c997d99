"""Epochs with their learning rates and a progress bar; Ctrl-C or an infinite risk ends them."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from comes.errors import ComesError, ComesWarning
from comes.files import defer_from_here, no_longer_defer
from comes.progress import progress_bar
from comes.training.history import History
from comes.training.memory import kept_memory
from comes.training.pixels import fastest_convolutions
from comes.training.train_options import TrainOptions


def run_epochs(
    run_epoch: Callable[[], Tensor],  # trains for one epoch; mean risk of each model, (n_models,)
    optimiser: torch.optim.Optimizer,
    options: TrainOptions,
    *,
    n_models: int = 1,
    done: Sequence[float] = (),  # risks of the epochs before the training was resumed
    finish_epoch: Callable[[list[float]], bool] = lambda risks: False,  # whether to stop
) -> list[History]:
    """Run the epochs with their learning rates, and return the history of each model."""
    risks = [list(done) for _ in range(n_models)]
    rates = [float(group["lr"]) for group in optimiser.param_groups]
    started, is_interrupted = time.perf_counter(), False
    bar = progress_bar(options.epochs, options.description, unit="epoch", show=options.progress)
    with kept_memory(), fastest_convolutions(), bar as advance:
        try:
            no_longer_defer()
            for risk in done:
                advance(f"risk {risk:.4f}")
            for number in range(len(done), options.epochs):
                if options.cosine:
                    factor = 0.5 * (1 + math.cos(math.pi * number / options.epochs))
                    _set_rates(optimiser, rates, factor)
                for own, risk in zip(risks, run_epoch().tolist(), strict=True):
                    own.append(_check_finite(risk, number))
                advance(f"risk {risks[0][-1]:.4f}")
                if finish_epoch(risks[0]):
                    break
        except KeyboardInterrupt:
            if not options.return_on_interrupt:
                raise
            is_interrupted = True
            warnings.warn(
                f"Interrupted after {len(risks[-1])} of {options.epochs} epochs; "
                "the weights so far are kept.",
                ComesWarning,
                stacklevel=3,
            )
        finally:
            defer_from_here()  # who keeps the weights may say how far
    seconds = (time.perf_counter() - started) / n_models
    return [History(risk=own, seconds=seconds, interrupted=is_interrupted) for own in risks]


def check_weights(parameters: Iterable[nn.Parameter], history: History) -> None:
    """Raise if a weight is not finite, which a risk that ignores it would not show."""
    if not all(p.isfinite().all() for p in parameters):
        _check_finite(math.nan, len(history.risk) - 1)


def _check_finite(risk: float, epoch: int) -> float:
    """Return the risk if it is finite, else raise."""
    if not math.isfinite(risk):
        raise ComesError(
            f"the risk or the weights became {risk} in epoch {epoch + 1}. Lower the learning rate, "
            "scale the features, or use a corrected risk (an unbiased one has no lower bound)."
        )
    return risk


def _set_rates(optimiser: torch.optim.Optimizer, rates: Sequence[float], factor: float) -> None:
    """Set the learning rates to a fraction of the first ones; a rate on a device stays there."""
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate * factor)
        else:
            group["lr"] = rate * factor
