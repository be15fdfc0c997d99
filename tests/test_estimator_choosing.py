"""Choosing a classifier on candidates of rows that it did not see; ties, and edges of a grid."""

import math
from typing import Any

import numpy as np
import pytest

from comes import CandidateClassifier
from comes.errors import ComesError
from comes.estimator import (
    Contest,
    choose_classifier,
    choose_each,
    fit_together,
    together,
    vary_settings,
)
from comes.estimator.contests import describe_edges, find_best, go_beyond
from comes.methods import METHODS
from comes.priors import ClassPriorEstimate
from comes.training.stacked import train_together
from noisy_halves import CANDIDATES, PRIOR, X, classifier

SPLITS = [(np.arange(k, k + 200), np.arange(k + 200, k + 280)) for k in (0, 60, 120)]


def test_the_better_classifier_is_chosen_and_the_table_says_why() -> None:
    bce = classifier("bce", epochs=1, n_networks=1)
    models = [classifier(learning_rate=1e-9), classifier(epochs=40), bce]
    criteria: tuple[Any, ...] = ("ranking", "hamming", "auc", "log_likelihood")
    for criterion in criteria:
        choice = choose_classifier(models, X, CANDIDATES, PRIOR, criterion=criterion, folds=2)
        assert choice.best == 1 and choice.classifier is models[1], criterion
        table = choice.table
        assert table["behind"][1] == 0, criterion
        assert (table["behind"].drop(1) > 0).all(), criterion
        assert (table["behind_low"] <= table["behind"]).all(), criterion
        assert (table["behind"] <= table["behind_high"]).all(), criterion
        assert table["behind_low"][0] > 0, criterion  # one that learned nothing is surely worse


def test_variations() -> None:
    found = vary_settings(classifier(epochs=20, learning_rate=0.01), ["method", "lr", "epochs"])
    selected = [name for name, method in METHODS.items() if method.is_selectable]
    assert len(found) == len(selected) * 3 * 2
    assert {c.method for c in found} == set(selected)
    assert {c.epochs for c in found} == {2, 20}
    assert sorted({c.learning_rate or 0.0 for c in found}) == pytest.approx([0.002, 0.01, 0.05])
    assert {c.flip_rate for c in found if c.method == "ccmn"} == {"class_prior"}
    assert {c.flip_rate for c in found if c.method != "ccmn"} == {None}
    assert [c.epochs for c in vary_settings(classifier(epochs=1), ["epochs"])] == [1]
    whole = [c.learning_rate for c in vary_settings(classifier(learning_rate=1), ["lr"])]
    assert whole == pytest.approx([0.2, 1, 5])
    with pytest.raises(ComesError, match="variant and flip_rate belong to one method"):
        vary_settings(classifier("ccmn", flip_rate=0.3), ["method"])
    with pytest.raises(ComesError, match="what varies must be method, lr or epochs; got 'hidden'"):
        vary_settings(classifier(), ["hidden"])


def contests(learning_rates: list[float]) -> list[Contest]:
    return [
        Contest(
            [classifier(learning_rate=rate, class_prior=PRIOR + k / 50) for rate in learning_rates],
            CANDIDATES,
            [split],
        )
        for k, split in enumerate(SPLITS)
    ]


def test_the_least_risk_of_its_own_wins_each_contest(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = []

    def spy(*arguments: Any, **options: Any) -> Any:
        batches.append(len(arguments[0]))
        return train_together(*arguments, **options)

    monkeypatch.setattr(together, "train_together", spy)
    given = contests([1e-9, 1e-2])
    choices = choose_each(given, X, criterion="own_risk", n_jobs=1)
    assert batches == [3, 3]  # equal settings of all contests are trained as one
    assert [choice.best for choice in choices] == [1, 1, 1]
    for contest, choice, (train, held) in zip(given, choices, SPLITS, strict=True):
        assert choice.classifier is contest.classifiers[1]
        (alone,) = fit_together([choice.classifier], X, CANDIDATES, [train])
        expected = alone.risk(X[held], CANDIDATES[held])
        assert choice.table["own_risk"][1] == pytest.approx(expected, rel=1e-4)
        assert choice.table["behind"][1] == 0 < choice.table["behind"][0]


def test_own_risks_are_averaged_over_splits() -> None:
    models = [classifier(learning_rate=rate) for rate in (1e-9, 1e-2)]
    together_, *apart = (
        choose_each([Contest(models, CANDIDATES, splits)], X, criterion="own_risk", n_jobs=1)[0]
        for splits in (SPLITS, *([split] for split in SPLITS))
    )
    mean = np.mean([choice.table["own_risk"] for choice in apart], axis=0)
    np.testing.assert_allclose(together_.table["own_risk"], mean, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverges_loses() -> None:
    """Also the others of its batch are judged; if all diverge, one of them is what is left."""
    choices = choose_each(contests([1e30, 1e-2]), X, criterion="own_risk", n_jobs=1)
    assert [choice.best for choice in choices] == [1, 1, 1]
    assert [choice.table["own_risk"][0] for choice in choices] == [math.inf] * 3
    nothing = choose_each(contests([1e30]), X, criterion="own_risk", n_jobs=1)[0]
    assert nothing.best == 0
    models = [classifier(learning_rate=rate) for rate in (1e30, 1e-2)]
    estimated = choose_classifier(models, X, CANDIDATES, PRIOR)
    assert estimated.best == 1
    assert estimated.table["behind"].tolist() == [math.inf, 0]
    with pytest.raises(ComesError, match="became"):
        choose_classifier(models[:1], X, CANDIDATES, PRIOR)


def test_a_risk_that_is_no_number_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a training whose weights became infinite in its last step."""
    risks = iter([math.nan, 1.0])
    monkeypatch.setattr(CandidateClassifier, "risk", lambda *_, **__: next(risks))
    (choice,) = choose_each(contests([1e-9, 1e-2])[:1], X, criterion="own_risk", n_jobs=1)
    assert choice.best == 1
    assert choice.table["own_risk"].tolist() == [math.inf, 1.0]


def test_rows_that_no_split_holds_out_judge_nothing() -> None:
    models = [classifier(epochs=epochs, early_stopping=True) for epochs in (2, 1)]
    changed = CANDIDATES.copy()
    unused = np.setdiff1d(np.arange(400), np.concatenate(SPLITS[0]))
    changed[unused] = ~changed[unused]
    first, second = (
        choose_each([Contest(models, S, SPLITS[:1], PRIOR)], X, n_jobs=1)[0].table
        for S in (CANDIDATES, changed)
    )
    assert first.equals(second)


def test_all_of_a_contest_know_the_same_and_learn_no_threshold() -> None:
    given = classifier(threshold="risk", class_prior=None)
    (entrant,) = Contest([given], CANDIDATES, SPLITS, PRIOR / 2).entrants()
    assert entrant.threshold == "auto"  # which would cost three trainings more, for nothing
    np.testing.assert_array_equal(entrant.class_prior, PRIOR / 2)
    assert (given.threshold, given.class_prior) == ("risk", None)


def test_what_cannot_be_a_criterion_is_named() -> None:
    with pytest.raises(
        ComesError, match="one of hamming, ranking, auc, log_likelihood, own_risk; got 'best'"
    ):
        choose_classifier([classifier()], X, CANDIDATES, PRIOR, criterion="best")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="criterion 'log_likelihood' needs a class_prior"):
        choose_classifier([classifier(epochs=1)], X, CANDIDATES, None)
    with pytest.raises(ComesError, match="400 rows cannot be split into 1 folds"):
        choose_classifier([classifier()], X, CANDIDATES, PRIOR, folds=1)


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


@pytest.mark.long
def test_a_grid_is_extended_where_its_best_lies_at_an_edge() -> None:
    rates = [1e-5, 1e-4]
    contest = Contest(grid(*((rate, 30) for rate in rates)), CANDIDATES, SPLIT, PRIOR)
    criteria: tuple[Any, ...] = ("own_risk", "log_likelihood")
    for criterion in criteria:
        (short,) = choose_each([contest], X, criterion=criterion, n_jobs=1)
        assert short.classifier.learning_rate == 1e-4, criterion
        assert short.edges == ("learning_rate 0.0001 is the greatest tried",), criterion
        (choice,) = choose_each([contest], X, criterion=criterion, extend=True, n_jobs=1)
        tried = choice.table["learning_rate"].tolist()
        assert tried == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1]), criterion
        assert choice.classifier.learning_rate == pytest.approx(1e-1), criterion
        assert choice.edges == ("learning_rate 0.1 is the greatest tried",)  # after three steps
    wide = grid(*((rate, 30) for rate in (1e-4, 1e-2, 1e30)))
    inside = choose_classifier(
        wide, X, CANDIDATES, PRIOR, criterion="ranking", extend=True, folds=2
    )
    assert len(inside.table) == 3 and inside.edges == ()


def test_an_estimated_prior_stays_an_estimate() -> None:
    """Training keeps less to one than to a prior that is known."""
    prior = ClassPriorEstimate(PRIOR, PRIOR, PRIOR, PRIOR, PRIOR / 10, ("ok",) * 3)
    (entrant,) = Contest([classifier()], CANDIDATES, SPLIT, prior).entrants()
    assert isinstance(entrant.class_prior, ClassPriorEstimate)
