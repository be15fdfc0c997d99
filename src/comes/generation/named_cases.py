"""Processes by name."""

from typing import Any, Literal

import numpy.typing as npt

from comes.answers import BoolMatrix
from comes.errors import ComesError
from comes.generation.candidate_draws import case_a, case_b, independent, one_uniform, random_size
from comes.generation.draw_rates import Rate, Seed
from comes.generation.feature_draws import instance_dependent

Case = Literal["a", "b", "independent", "one", "size", "instance"]


def generate(
    case: Case,
    relevant: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    rate: Rate | None = None,
    strength: float | None = None,
    seed: Seed = 0,
) -> BoolMatrix:
    """Generate candidates by a named process; an option that is None takes the process's default.

    Parameters
    ----------
    case : {"a", "b", "independent", "one", "size", "instance"}
        For `case_a`, `case_b`, `independent`, `one_uniform`, `random_size` and
        `instance_dependent`.
    relevant : bool array of shape (n_samples, n_labels)
    X : array or CSR matrix of shape (n_samples, n_features), optional
        Needed by "instance".
    rate : float or array of shape (n_labels,), optional
        The flip rate of "a", the exclude rate of "b", "independent" and "instance". The others have
        none.
    strength : float, optional
        Only for "instance".
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> (~generate("b", [[0]] * 40, rate=0.25)).sum()
    np.int64(10)
    """
    if rate is not None and case in ("one", "size"):
        raise ComesError(f"case {case} has no rate; got {rate}. Leave it out.")
    if strength is not None and case != "instance":
        raise ComesError(f"case {case} has no strength; got {strength}. Leave it out.")
    if case == "a":
        return case_a(relevant, seed=seed) if rate is None else case_a(relevant, rate, seed)
    if case == "b":
        return case_b(relevant, seed=seed) if rate is None else case_b(relevant, rate, seed)
    if case == "independent":
        return independent(relevant, 0.1 if rate is None else rate, seed)
    if case == "one":
        return one_uniform(relevant, seed)
    if case == "size":
        return random_size(relevant, seed)
    if X is None:
        raise ComesError("case instance needs features; got none. Pass X, or take another case.")
    given = {"exclude_rate": rate, "strength": strength}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return instance_dependent(relevant, X, seed=seed, **options)
