"""Who wins a tie, where a grid ends, and what lies beyond its edges."""

import math
from typing import Any

import numpy as np
import pytest

from comes.estimator import Contest, choose_classifier, choose_each, fit_together
from comes.estimator.contests import describe_edges, find_best, go_beyond
from comes.priors import ClassPriorEstimate, estimate_class_prior
from noisy_halves import CANDIDATES, PRIOR, RELEVANT, X, classifier

SPLIT = [(np.arange(200), np.arange(200, 400))]


def grid(*pairs: tuple[float, int], **settings: Any) -> list[Any]:
    """Return classifiers with these learning rates and numbers of epochs."""
    return [classifier(learning_rate=rate, epochs=epochs, **settings) for rate, epochs in pairs]


def test_of_those_that_are_level_the_cheaper_and_then_the_more_careful_wins() -> None:
    models = grid((0.01, 20), (0.1, 5), (0.01, 5), (0.001, 20), (0.001, 5))
    assert find_best([1.0, 1.0, 1.0, 1.0, 2.0], models) == (2, (0, 1, 3))
    assert find_best([1.0, 1.0 + 1e-9, 1.0, 1.0, 2.0], models) == (2, (0, 1, 3))
    assert find_best([1.0, 1.0, 1.01, 1.01, 2.0], models) == (1, (0,))
    assert find_best([0.0] * 5, models) == (4, (0, 1, 2, 3))
    assert find_best([-1.0, -1.0 - 1e-9, -0.9, 0.0, math.inf], models) == (1, (0,))
    assert find_best([math.inf] * 5, models)[0] == 4
    assert find_best([math.nan, 3.0, math.nan, 3.0, math.inf], models) == (1, (3,))
    same = grid((0.01, 5), (0.01, 5))
    assert find_best([1.0, 1.0], same) == (0, (1,))


def test_the_order_of_a_grid_does_not_decide_a_tie() -> None:
    """Learning rates too small to move anything: all are level, and a choice says with whom."""
    pairs = [(1e-12, 3), (1e-12, 2), (1e-13, 2), (1e-13, 3)]
    for order in (pairs, pairs[::-1]):
        (choice,) = choose_each(
            [Contest(grid(*order), CANDIDATES, SPLIT, PRIOR)], X, criterion="hamming", n_jobs=1
        )
        assert (choice.classifier.learning_rate, choice.classifier.epochs) == (1e-13, 2)
        assert len(choice.tied) == 3 and choice.best not in choice.tied
        assert choice.table["behind"].tolist() == pytest.approx([0] * 4, abs=1e-5)


def test_a_held_out_risk_is_not_clamped_and_not_flooded() -> None:
    """A clamp would call all of them 0, and a flood would hide what is below it."""
    fit: dict[str, Any] = {"X": X, "candidates": CANDIDATES, "rows": [SPLIT[0][0]]}
    held = X[200:], CANDIDATES[200:]
    sure = classifier("ccmn", flip_rate=0.9, learning_rate=0.1, epochs=60)
    (ccmn,) = fit_together([sure], **fit)
    assert ccmn.risk(*held) < 0 == ccmn.risk(*held, corrected=True)
    flooded = classifier("comes-rl", flood_level=50.0, learning_rate=0.1)
    (ranking,) = fit_together([flooded], **fit)
    assert ranking.risk(*held) < 50 <= ranking.risk(*held, corrected=True)
    plain = ranking.set_params(flood_level=0.0)
    assert (
        plain.risk(*held) == plain.risk(*held, corrected=True) == pytest.approx(plain.risk(*held))
    )


def test_clamped_risks_do_not_let_the_first_of_a_grid_win() -> None:
    models = grid((1e-2, 60), (1e-1, 60), method="ccmn", flip_rate=0.9)
    contest = Contest(models, CANDIDATES, SPLIT)
    own, trained = (
        choose_each([contest], X, criterion=criterion, n_jobs=1)[0]
        for criterion in ("own_risk", "trained_risk")
    )
    assert trained.table["trained_risk"].tolist() == [0, 0] and trained.best == 0
    assert (own.table["own_risk"] < 0).all() and own.tied == ()
    assert own.best == own.table["own_risk"].idxmin()


def test_edges_are_those_of_the_method_and_named() -> None:
    models = [*grid((0.01, 20), (0.1, 20), (0.1, 5)), classifier("bce", learning_rate=9.0)]
    assert describe_edges(models, 0) == (
        "learning_rate 0.01 is the least tried",
        "epochs 20 is the greatest tried",
    )
    assert describe_edges(models, 2) == (
        "learning_rate 0.1 is the greatest tried",
        "epochs 5 is the least tried",
    )
    assert describe_edges(models, 3) == ()  # the only one of its method
    inside = grid((0.01, 20), (0.1, 20), (1.0, 20))
    assert describe_edges(inside, 1) == ()


def test_a_step_beyond_an_edge_is_a_step_of_the_grid_and_epochs_are_a_budget() -> None:
    models = grid((0.01, 20), (0.1, 20), (0.1, 5))
    (only,) = go_beyond(models, 1)
    assert only.learning_rate == pytest.approx(1) and only.epochs == 20
    found = go_beyond(models, 2)
    assert [c.learning_rate for c in found] == pytest.approx([1, 0.1])
    assert [c.epochs for c in found] == [5, 1]
    assert [c.learning_rate for c in go_beyond(models, 0)] == [pytest.approx(0.001)]
    assert go_beyond(grid((0.01, 1), (0.01, 20)), 0) == []
    far = go_beyond(grid((1e-9, 20), (1.0, 20)), 0)
    assert [c.learning_rate for c in far] == [pytest.approx(1e-10)]
    assert go_beyond(grid((0.01, 20)), 0) == []


@pytest.mark.parametrize("criterion", ["own_risk", "log_likelihood"])
def test_a_grid_is_extended_where_its_best_lies_at_an_edge(criterion: Any) -> None:
    rates = [1e-5, 1e-4]
    contest = Contest(grid(*((rate, 30) for rate in rates)), CANDIDATES, SPLIT, PRIOR)
    (short,) = choose_each([contest], X, criterion=criterion, n_jobs=1)
    assert short.classifier.learning_rate == 1e-4
    assert short.edges == ("learning_rate 0.0001 is the greatest tried",)
    (choice,) = choose_each([contest], X, criterion=criterion, extend=True, n_jobs=1)
    assert choice.table["learning_rate"].tolist() == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    assert choice.classifier.learning_rate == pytest.approx(1e-1)
    assert choice.edges == ("learning_rate 0.1 is the greatest tried",)  # after three steps
    wide = grid(*((rate, 30) for rate in (1e-4, 1e-2, 1e30)))
    inside = choose_classifier(wide, X, CANDIDATES, PRIOR, criterion="ranking", extend=True)
    assert len(inside.table) == 3 and inside.edges == ()


def test_an_estimated_prior_stays_an_estimate() -> None:
    """Training keeps less to one than to a prior that is known."""
    prior = estimate_class_prior(X, CANDIDATES, random_state=0)
    (entrant,) = Contest([classifier()], CANDIDATES, SPLIT, prior).entrants()
    assert isinstance(entrant.class_prior, ClassPriorEstimate)
    assert RELEVANT.shape == CANDIDATES.shape
