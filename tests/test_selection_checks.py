"""A constant exclude rate, and the floor of the ranking risk: what answers can show of them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.generation import case_b
from comes.priors import ClassPriorEstimate
from comes.selection import check_constant_rate, check_ranking_risk, estimate_metrics

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


# The floor of the ranking risk

Q = 5
DRAWS = np.random.default_rng(0)
SCORES = DRAWS.normal(size=(3000, Q))
RANKED = SCORES + DRAWS.normal(size=(3000, Q)) > 0.8
PRIOR = RANKED.mean(axis=0)
AT_RANDOM = ~RANKED & (DRAWS.random((3000, Q)) < 0.4)
RANKS = SCORES.argsort(axis=1).argsort(axis=1)
EASY = ~RANKED & (RANKS < 2)  # what the model is sure of: the rate depends on the row


def floor_by_loops(prior: npt.NDArray[np.float64]) -> float:
    pairs = [(j, k) for j in range(len(prior)) for k in range(j)]
    return sum(max(0.0, 1 - float(prior[j]) - float(prior[k])) for j, k in pairs)


def test_a_constant_rate_is_possible_and_exclusions_of_easy_labels_are_not() -> None:
    fair, broken = (check_ranking_risk(SCORES, ~no, PRIOR) for no in (AT_RANDOM, EASY))
    assert fair.is_possible and "nothing speaks against" in fair.conclusion
    assert not broken.is_possible and "the class priors are wrong, or" in broken.conclusion
    assert fair.floor == broken.floor == pytest.approx(floor_by_loops(PRIOR))


def test_wrong_priors_are_found_too() -> None:
    """A prior that is too low makes a high floor."""
    found = check_ranking_risk(np.where(RANKED, 9.0, 0.0) + SCORES, ~AT_RANDOM, PRIOR / 4)
    assert not found.is_possible


def test_the_risk_is_the_estimated_one_and_its_limit_that_of_drawn_rows() -> None:
    scores, candidates = SCORES[:800], ~AT_RANDOM[:800]
    found = check_ranking_risk(scores, candidates, PRIOR)
    drawn = estimate_metrics(scores, candidates, PRIOR, n_resamples=1000)["ranking_risk"]
    assert found.risk == pytest.approx(drawn.value)
    assert found.high - found.risk == pytest.approx(drawn.high - drawn.value, rel=0.1)


def test_the_risk_written_as_loops() -> None:
    scores, excluded = SCORES[:40], AT_RANDOM[:40]
    expected = 0.0
    for j in range(Q):
        rows = [i for i in range(40) if excluded[i, j]]
        below = [sum(scores[i, k] < scores[i, j] for k in range(Q) if k != j) for i in rows]
        expected += (1 - PRIOR[j]) * sum(below) / len(rows)
    assert check_ranking_risk(scores, ~excluded, PRIOR).risk == pytest.approx(expected)


def test_it_rarely_alarms_where_the_risk_is_as_low_as_it_can_be() -> None:
    """One relevant label per row and right scores: risk and floor are the same in expectation."""
    rng, alarms = np.random.default_rng(3), 0
    prior = np.array([0.1, 0.3, 0.2, 0.4])
    for _ in range(200):
        relevant = np.eye(4, dtype=bool)[rng.choice(4, size=300, p=prior)]
        scores = rng.normal(size=(300, 4)) + 20 * relevant
        excluded = ~relevant & (rng.random((300, 4)) < 0.4)
        alarms += not check_ranking_risk(scores, ~excluded, prior).is_possible
    assert 0 < alarms <= 12  # 2.5 % of 200 are expected


def test_the_error_of_the_prior_widens_the_limit_and_unknown_labels_are_left_out() -> None:
    error = np.full(Q, 0.05)
    flags = ("ok",) * Q
    estimate = ClassPriorEstimate(PRIOR, PRIOR, PRIOR, PRIOR, error, flags)
    known, unsure, same = (
        check_ranking_risk(SCORES, ~EASY, PRIOR),
        check_ranking_risk(SCORES, ~EASY, PRIOR, class_prior_error=error),
        check_ranking_risk(SCORES, ~EASY, estimate),
    )
    assert known.risk == unsure.risk and known.high < unsure.high == same.high
    error[0] = np.nan
    found = check_ranking_risk(SCORES, ~EASY, PRIOR, class_prior_error=error)
    assert found.floor == pytest.approx(floor_by_loops(PRIOR[1:]))
    few = AT_RANDOM.copy()
    few[:, 2] &= np.cumsum(few[:, 2]) <= 4  # four rows exclude label 2
    left = np.delete(PRIOR, 2)
    assert check_ranking_risk(SCORES, ~few, PRIOR).floor == pytest.approx(floor_by_loops(left))


def test_without_exclusions_nothing_is_said() -> None:
    found = check_ranking_risk(SCORES, np.ones_like(RANKED), PRIOR)
    assert found.is_possible and found.floor == 0


def test_answers_and_candidates_say_the_same() -> None:
    answers = Answers(no=AT_RANDOM, maybe=~AT_RANDOM)
    assert check_ranking_risk(SCORES, answers, PRIOR) == check_ranking_risk(
        SCORES, ~AT_RANDOM, PRIOR
    )
    with pytest.raises(ComesError, match="one shape"):
        check_ranking_risk(SCORES[:2], answers, PRIOR)
