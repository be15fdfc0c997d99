"""Choosing a classifier on candidates of rows that it did not see; ties, and edges of a grid."""

import math
from typing import Any

import numpy as np
import pytest

from comes import CandidateClassifier
from comes.errors import ComesError
from comes.estimator import Choice, choose_classifier, fit_together, together
from comes.estimator.choose import Contest, choose_each, describe_settings, vary_settings
from comes.methods import CCMN, COMESRL, METHODS, Likelihood
from comes.priors import ClassPriorEstimate
from comes.risks import bce_risk
from comes.training.stacked import train_together
from noisy_halves import CANDIDATES, PRIOR, X, classifier

SPLITS = [(np.arange(k, k + 200), np.arange(k + 200, k + 280)) for k in (0, 60, 120)]


def test_the_better_classifier_is_chosen_and_the_table_says_why() -> None:
    bce = classifier("bce", epochs=1, n_networks=1, model="mlp")
    models = [classifier(learning_rate=1e-9, model="mlp"), classifier(epochs=40), bce]
    for criterion in ("ranking", "hamming", "auc", "log_likelihood"):
        options: dict[str, Any] = {"criterion": criterion, "folds": 2}
        choice = choose_classifier(models, X, CANDIDATES, PRIOR, **options)
        assert choice.best == 1 and choice.classifier is models[1], criterion
        table = choice.table
        assert table["behind"][1] == 0, criterion
        assert (table["behind"].drop(1) > 0).all(), criterion
        assert table["behind"].between(table["behind_low"], table["behind_high"]).all(), criterion
        assert table["behind_low"][0] > 0, criterion  # one that learned nothing is surely worse


def vary(names: list[str], method: Any = "comes-hl", **settings: Any) -> list[Any]:
    return vary_settings(classifier(**{"method": method} | settings), names)


def test_variations() -> None:
    found = vary(["method", "lr", "epochs"], epochs=20, learning_rate=0.01)
    selected = [name for name, method in METHODS.items() if method.is_selectable]
    assert len(found) == len(selected) * 3 * 2
    assert {c.method.name for c in found} == set(selected)
    assert {c.epochs for c in found} == {2, 20}
    assert sorted({c.learning_rate for c in found}) == pytest.approx([0.002, 0.01, 0.05])
    assert {c.method.flip_rate for c in found if c.method.name == "ccmn"} == {"class_prior"}
    assert len({id(c.method) for c in found}) == len(found)
    assert [c.epochs for c in vary(["epochs"], epochs=1)] == [1]
    whole = [c.learning_rate for c in vary(["lr"], learning_rate=1)]
    assert whole == pytest.approx([0.2, 1, 5])
    own = {c.method.name: c.method for c in vary(["method"], CCMN(flip_rate=0.3))}
    assert own["ccmn"].flip_rate == 0.3  # an object keeps its settings
    assert len(vary(["method"], "gdf")) == len(selected) + 1
    assert len(vary(["method"], bce_risk)) == len(selected)
    with pytest.raises(ComesError, match="what varies must be method, lr or epochs; got 'hidden'"):
        vary(["hidden"])


def compare(contest: Contest, criterion: Any, **options: Any) -> Choice:
    return choose_each([contest], X, criterion=criterion, n_jobs=1, **options)[0]


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
    all_splits, *apart = (
        compare(Contest(models, CANDIDATES, splits), "own_risk").table["own_risk"]
        for splits in (SPLITS, *([split] for split in SPLITS))
    )
    np.testing.assert_allclose(all_splits, np.mean(apart, axis=0), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverges_loses() -> None:
    """Also the others of its batch are judged; if all diverge, one of them is what is left."""
    choices = choose_each(contests([1e30, 1e-2]), X, criterion="own_risk", n_jobs=1)
    assert [choice.best for choice in choices] == [1, 1, 1]
    assert [choice.table["own_risk"][0] for choice in choices] == [math.inf] * 3
    assert compare(contests([1e30])[0], "own_risk").best == 0
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
    choice = compare(contests([1e-9, 1e-2])[0], "own_risk")
    assert choice.best == 1
    assert choice.table["own_risk"].tolist() == [math.inf, 1.0]


def test_rows_that_no_split_holds_out_judge_nothing() -> None:
    models = [classifier(epochs=epochs, early_stopping=True) for epochs in (2, 1)]
    changed = CANDIDATES.copy()
    unused = np.setdiff1d(np.arange(400), np.concatenate(SPLITS[0]))
    changed[unused] = ~changed[unused]
    first, second = (
        compare(Contest(models, candidates, SPLITS[:1], PRIOR), "log_likelihood").table
        for candidates in (CANDIDATES, changed)
    )
    assert first.equals(second)


def test_all_of_a_contest_have_one_class_prior_and_learn_no_threshold() -> None:
    """Thresholds would cost three trainings more; training keeps less to an estimated prior."""
    given = classifier(threshold="risk", class_prior=None)
    (copied,) = Contest([given], CANDIDATES, SPLITS, PRIOR / 2).make_clones()
    assert copied.threshold == "auto"
    np.testing.assert_array_equal(copied.class_prior, PRIOR / 2)
    assert (given.threshold, given.class_prior) == ("risk", None)
    prior = ClassPriorEstimate(PRIOR, PRIOR, PRIOR, PRIOR, PRIOR / 10, ("ok",) * 3)
    (copied,) = Contest([given], CANDIDATES, SPLITS, prior).make_clones()
    assert isinstance(copied.class_prior, ClassPriorEstimate)


def test_what_cannot_be_a_criterion_is_named() -> None:
    with pytest.raises(
        ComesError, match="one of hamming, ranking, auc, log_likelihood, own_risk; got 'best'"
    ):
        choose_classifier([classifier()], X, CANDIDATES, PRIOR, criterion="best")  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="criterion 'log_likelihood' needs a class_prior"):
        choose_classifier([classifier(epochs=1)], X, CANDIDATES, None)
    with pytest.raises(ComesError, match="400 rows cannot be split into 1 folds"):
        choose_classifier([classifier()], X, CANDIDATES, PRIOR, folds=1)
    with pytest.raises(ComesError, match="at least one classifier"):
        choose_classifier([], X, CANDIDATES, PRIOR)


SPLIT = [(np.arange(200), np.arange(200, 400))]


def grid(*pairs: tuple[float, int], **settings: Any) -> list[Any]:
    """Return classifiers with these learning rates and numbers of epochs."""
    return [classifier(learning_rate=rate, epochs=epochs, **settings) for rate, epochs in pairs]


def test_of_those_that_are_level_the_cheaper_and_then_the_more_careful_wins() -> None:
    models = grid((0.01, 20), (0.1, 5), (0.01, 5), (0.001, 20), (0.001, 5))
    nan, inf = math.nan, math.inf
    expected: dict[tuple[float, ...], Any] = {
        (1.0, 1.0, 1.0, 1.0, 2.0): (2, (0, 1, 3)),
        (1.0, 1.0 + 1e-9, 1.0, 1.0, 2.0): (2, (0, 1, 3)),
        (1.0, 1.0, 1.01, 1.01, 2.0): (1, (0,)),
        (0.0,) * 5: (4, (0, 1, 2, 3)),
        (-1.0, -1.0 - 1e-9, -0.9, 0.0, inf): (1, (0,)),
        (inf,) * 5: (4, (0, 1, 2, 3)),
        (nan, 3.0, nan, 3.0, inf): (1, (3,)),
    }
    for losses, best in expected.items():
        assert Contest(models, CANDIDATES, SPLIT).find_best(losses) == best, losses
    same = Contest(grid((0.01, 5), (0.01, 5)), CANDIDATES, SPLIT)
    assert same.find_best([1.0, 1.0]) == (0, (1,))


def test_the_order_of_a_grid_does_not_decide_a_tie() -> None:
    """Learning rates too small to move anything: all are level, and a choice says with whom."""
    pairs = [(1e-12, 3), (1e-12, 2), (1e-13, 2), (1e-13, 3)]
    for order in (pairs, pairs[::-1]):
        choice = compare(Contest(grid(*order), CANDIDATES, SPLIT, PRIOR), "hamming")
        assert (choice.classifier.learning_rate, choice.classifier.epochs) == (1e-13, 2)
        assert len(choice.tied) == 3 and choice.best not in choice.tied
        ends = ("learning_rate 1e-13 is the least tried", "epochs 2 is the least tried")
        assert choice.edges == ends
        assert choice.table["behind"].tolist() == pytest.approx([0] * 4, abs=1e-5)


def test_a_held_out_risk_is_not_clamped_and_not_flooded() -> None:
    """A clamp would call all of them 0, and a flood would hide what is below it."""
    fit: dict[str, Any] = {"X": X, "candidates": CANDIDATES, "rows": [SPLIT[0][0]]}
    held = X[200:], CANDIDATES[200:]
    (sure,) = grid((0.1, 60), method=CCMN(flip_rate=0.9))
    (ccmn,) = fit_together([sure], **fit)
    assert ccmn.risk(*held) < 0 == ccmn.risk(*held, corrected=True)
    (flooded,) = grid((0.1, 10), method=COMESRL(flood_level=50.0))
    (ranking,) = fit_together([flooded], **fit)
    assert ranking.risk(*held) < 50 <= ranking.risk(*held, corrected=True)
    ranking.method_.set_params(flood_level=0.0)
    assert ranking.risk(*held) == ranking.risk(*held, corrected=True)


def test_clamped_risks_do_not_let_the_first_of_a_grid_win() -> None:
    models = grid((1e-2, 60), (1e-1, 60), method=CCMN(flip_rate=0.9))
    contest = Contest(models, CANDIDATES, SPLIT)
    own, trained = (compare(contest, criterion) for criterion in ("own_risk", "trained_risk"))
    assert trained.table["trained_risk"].tolist() == [0, 0] and trained.best == 0
    assert (own.table["own_risk"] < 0).all() and own.tied == ()
    assert own.best == own.table["own_risk"].idxmin()


def test_edges_are_those_of_the_method() -> None:
    """Each with the value that was tried beside it."""
    models = [*grid((0.01, 20), (0.1, 20), (0.1, 5)), classifier("bce", learning_rate=9.0)]
    contest = Contest(models, CANDIDATES, SPLIT)
    assert contest.find_edges(0) == [("learning_rate", 0.01, 0.1), ("epochs", 20, 5)]
    assert contest.find_edges(2) == [("learning_rate", 0.1, 0.01), ("epochs", 5, 20)]
    assert contest.find_edges(3) == []  # the only one of its method
    inside = Contest(grid((0.01, 20), (0.1, 20), (1.0, 20)), CANDIDATES, SPLIT)
    assert inside.find_edges(1) == []


def test_a_step_beyond_an_edge_is_a_step_of_the_grid_and_epochs_are_a_budget() -> None:
    def beyond(best: int, *pairs: tuple[float, int]) -> list[Any]:
        found = Contest(grid(*pairs), CANDIDATES, SPLIT).extend_grid(best)
        return [(c.learning_rate, c.epochs) for c in found]

    pairs = [(0.01, 20), (0.1, 20), (0.1, 5)]
    assert beyond(1, *pairs) == [(pytest.approx(1), 20)]
    assert beyond(2, *pairs) == [(pytest.approx(1), 5), (0.1, 1)]
    assert beyond(0, *pairs) == [(pytest.approx(0.001), 20)]
    assert beyond(0, (0.01, 1), (0.01, 20)) == []
    assert beyond(0, (1e-9, 20), (1.0, 20)) == [(pytest.approx(1e-10), 20)]
    assert beyond(0, (0.01, 20)) == []


def test_a_table_names_the_method_and_what_is_not_set() -> None:
    chosen = describe_settings(CandidateClassifier(Likelihood(uses_maybe=False)))
    assert chosen == {"method": "likelihood", "learning_rate": 5e-4, "epochs": 25}
    assert describe_settings(CandidateClassifier(bce_risk))["method"] is bce_risk


@pytest.mark.long
def test_a_grid_is_extended_where_its_best_lies_at_an_edge() -> None:
    rates = [1e-5, 1e-4]
    contest = Contest(grid(*((rate, 30) for rate in rates)), CANDIDATES, SPLIT, PRIOR)
    for criterion in ("own_risk", "log_likelihood"):
        short = compare(contest, criterion)
        assert short.classifier.learning_rate == 1e-4, criterion
        assert short.edges == ("learning_rate 0.0001 is the greatest tried",), criterion
        choice = compare(contest, criterion, extend=True)
        tried = choice.table["learning_rate"].tolist()
        assert tried == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1]), criterion
        assert choice.classifier.learning_rate == pytest.approx(1e-1), criterion
        assert choice.edges == ("learning_rate 0.1 is the greatest tried",)  # after three steps
    wide = grid(*((rate, 30) for rate in (1e-4, 1e-2, 1e30)))
    inside = choose_classifier(
        wide, X, CANDIDATES, PRIOR, criterion="ranking", extend=True, folds=2
    )
    assert len(inside.table) == 3 and inside.edges == ()
