"""Whether the exclude rate is constant: what can be seen of it."""

from typing import Any

import numpy as np
import pytest

from comes.errors import ComesError
from comes.generation import case_b
from comes.selection import check_constant_rate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(400, 3)) > 0
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5)


def exclude(depends: bool, seed: int) -> Any:
    """Return candidates whose exclusion depends on the first feature, or on nothing."""
    rng = np.random.default_rng(seed)
    rate = np.where(X[:, :1] > 0, 0.8, 0.3) if depends else np.full((400, 1), 0.5)
    return RELEVANT | (rng.random(RELEVANT.shape) >= rate)


def test_a_rate_that_depends_on_the_row_is_found() -> None:
    check = check_constant_rate(X[:, ::-1], exclude(depends=True, seed=1), ~RELEVANT)
    assert (check.per_label["says"] == "not constant").sum() >= 2
    assert "assumption fails there" in check.conclusion
    assert check.per_label["rate"].between(0.3, 0.8).all()
    assert check.per_label["auc"].between(0.6, 0.9).sum() >= 2


def test_a_constant_rate_raises_few_alarms_and_is_not_called_proved() -> None:
    alarms = 0
    for seed in range(8):
        check = check_constant_rate(X, exclude(depends=False, seed=seed), ~RELEVANT)
        alarms += int((check.per_label["says"] == "not constant").any())
    assert alarms <= 2
    assert "does not prove a constant rate" in check.conclusion


def test_groups_are_tested_in_the_place_of_features() -> None:
    who = (X[:, 0] > 0).astype(int)
    found = check_constant_rate(X, exclude(depends=True, seed=1), ~RELEVANT, groups=who)
    assert (found.per_label["says"] == "not constant").sum() >= 2
    one = check_constant_rate(X, exclude(depends=True, seed=1), ~RELEVANT, groups=np.zeros(400))
    assert (one.per_label["says"] == "nothing found").all()


def test_too_few_rows_are_said_to_be_too_few() -> None:
    nothing = np.zeros_like(RELEVANT)
    check = check_constant_rate(X, CANDIDATES, nothing)
    assert (check.per_label["says"] == "too few rows").all()
    assert "nothing can be said" in check.conclusion
    with pytest.raises(ComesError, match="must have the same rows"):
        check_constant_rate(X[:5], CANDIDATES, nothing)
    with pytest.raises(ComesError, match="groups must have 400 entries"):
        check_constant_rate(X, CANDIDATES, nothing, groups=np.zeros(5))
