"""Choosing a classifier on candidates of rows that it did not see."""

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
from comes.methods import METHODS
from comes.training import train_together
from noisy_halves import CANDIDATES, PRIOR, X, classifier

SPLITS = [(np.arange(k, k + 200), np.arange(k + 200, k + 280)) for k in (0, 60, 120)]


@pytest.mark.parametrize("criterion", ["ranking", "hamming", "auc", "log_likelihood"])
def test_the_better_classifier_is_chosen_and_the_table_says_why(criterion: Any) -> None:
    models = [classifier(learning_rate=1e-9), classifier(epochs=40), classifier("bce", epochs=1)]
    choice = choose_classifier(models, X, CANDIDATES, PRIOR, criterion=criterion)
    assert choice.best == 1
    assert choice.classifier is models[1]
    table = choice.table
    assert table["behind"][1] == 0
    assert (table["behind"].drop(1) > 0).all()
    assert (table["behind_low"] <= table["behind"]).all()
    assert (table["behind"] <= table["behind_high"]).all()
    assert table["behind_low"][0] > 0  # one that learned nothing is surely worse


def test_variations() -> None:
    found = vary_settings(classifier(epochs=20, learning_rate=0.01), ["method", "lr", "epochs"])
    selected = [name for name, family in METHODS.items() if family.may_be_selected]
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
