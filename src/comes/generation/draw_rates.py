"""Rates of random processes: one number, or one per label."""

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

Rate = float | npt.ArrayLike
Seed = int | np.random.Generator


def make_generator(seed: Seed) -> np.random.Generator:
    """Return a generator of random numbers; raise an error for a seed that is none."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ComesError(
            f"seed must be a whole number of 0 or more, or a Generator; got {seed!r}."
        ) from None


def check_rate(rate: Rate, q: int, name: str) -> npt.NDArray[np.float64]:
    """Return one rate per label, or raise an error."""
    rates = np.asarray(rate, dtype=float)
    if rates.shape not in ((), (q,)) or not ((rates >= 0) & (rates <= 1)).all():
        raise ComesError(
            f"{name} must be one number in [0, 1], or one for each of the {q} labels; got {rate!r}."
        )
    return np.broadcast_to(rates, (q,))
