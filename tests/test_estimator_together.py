"""Many classifiers fitted at once: each as its own fit."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import CandidateClassifier, fit_together, together
from comes.estimator.together import Fitting
from comes.generation import case_b, simulate_answers
from comes.methods import CCMN, COMESRL, METHODS, Likelihood
from comes.models import mlp
from comes.risks import bce_risk
from comes.tables import ColumnEncoder
from comes.training import loop
from comes.training.stacked import train_together

RNG = np.random.default_rng(0)
X = RNG.normal(size=(203, 5))
RELEVANT = X[:, :3] + X[:, 2:] > 0
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
FOLDS = [train for train, _ in KFold(4).split(X)]  # 152 or 153 rows
PRIOR = RELEVANT.mean(axis=0)
# Of priors that are estimated in a few steps.
pytestmark = pytest.mark.filterwarnings("ignore:.*standard error is:comes.errors.ComesWarning")
PLAIN: dict[str, Any] = {"model": "mlp", "n_networks": 1, "dropout": 0.0}  # what can be batched


def classifiers(method: Any = "comes-hl", **options: Any) -> list[CandidateClassifier]:
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 50, "hidden": 8, "verbose": -1}
    settings |= options
    return [CandidateClassifier(method, random_state=k, **settings) for k in range(4)]


def can_be_batched(classifier: CandidateClassifier, data: Any) -> bool:
    rows = np.arange(data.shape[0])
    return Fitting(classifier, data, np.zeros((len(rows), 7)), rows).make_key() is not None


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of batches that will have been trained as one."""
    trained: list[Any] = []

    def spy(trainees: Any, *arguments: Any, **options: Any) -> Any:
        trained.append(trainees)
        return train_together(trainees, *arguments, **options)

    monkeypatch.setattr(together, "train_together", spy)
    return trained


def assert_as_alone(
    found: list[CandidateClassifier], given: list[CandidateClassifier], data: Any, labels: Any
) -> None:
    for which, (one, classifier, rows) in enumerate(zip(found, given, FOLDS, strict=True)):
        own = labels[which] if isinstance(labels, list) else labels
        pick = data.iloc[rows] if isinstance(data, pd.DataFrame) else data[rows]
        own = own.iloc[rows] if isinstance(own, pd.DataFrame) else own[rows]
        kind = "answers" if isinstance(own, Answers) else "candidates"
        alone = classifier.fit(pick, **{kind: own})
        assert_allclose(one.decision_function(pick), alone.decision_function(pick), atol=1e-4)
        assert_allclose(one.score_offset_, alone.score_offset_, atol=1e-4)
        assert_allclose(one.history_.risk, alone.history_.risk, rtol=1e-4)
        assert one.label_names_ == alone.label_names_


def test_every_method_is_trained_as_alone(batches: list[Any]) -> None:
    for method in METHODS.values():
        chosen = CCMN(flip_rate=0.5) if method.needs_flip_rate else method
        given = classifiers(chosen, class_prior=PRIOR, **PLAIN)
        batches.clear()
        assert_as_alone(fit_together(given, X, CANDIDATES, FOLDS), given, X, CANDIDATES)
        assert [len(batch) for batch in batches] == [4], method


def test_dropout_and_several_networks_are_trained_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of a batch would draw other numbers than alone."""
    monkeypatch.delattr(together, "train_together")
    for settings in (PLAIN | {"dropout": 0.5}, PLAIN | {"n_networks": 2}, {}):
        given = classifiers("bce", **settings)[:2]
        found = fit_together(given, X, CANDIDATES, FOLDS[:2], n_jobs=1)
        for fitted, classifier, rows in zip(found, given, FOLDS, strict=False):
            alone = clone(classifier).fit(X[rows], CANDIDATES[rows])
            assert_array_equal(fitted.decision_function(X), alone.decision_function(X))


def test_each_with_its_own_prior_and_candidates() -> None:
    given = classifiers()
    for which, classifier in enumerate(given):
        classifier.set_params(class_prior=PRIOR * (0.6 + 0.1 * which))
    labels = [case_b(RELEVANT, exclude_rate=0.5, seed=k) for k in range(4)]
    assert_as_alone(fit_together(given, X, labels, FOLDS), given, X, labels)


def test_each_with_its_own_flood_level_or_flip_rate(batches: list[Any]) -> None:
    """Given, or by the rule from its own prior; one without a flood has another risk."""
    given = classifiers("comes-rl")
    levels: list[Any] = ["auto", 1.5, "auto", 0.0]
    for k, (classifier, level) in enumerate(zip(given, levels, strict=True)):
        own = COMESRL(flood_level=level) if k else "comes-rl"  # the same as "auto"
        classifier.set_params(class_prior=PRIOR * (0.6 + 0.1 * k), method=own)
    assert_as_alone(fit_together(given, X, CANDIDATES, FOLDS), given, X, CANDIDATES)
    (floods,) = [[float(trainee.risk.flood_level) for trainee in batch] for batch in batches]
    assert len(set(floods)) == 3 and 1.5 in floods
    given = [classifiers(CCMN(flip_rate=0.2 + 0.2 * k))[k] for k in range(4)]
    given[3].set_params(method__variant="ranking", class_prior=PRIOR)
    batches.clear()
    assert_as_alone(fit_together(given, X, CANDIDATES, FOLDS), given, X, CANDIDATES)
    assert [len(batch) for batch in batches] == [3]


def test_answers_candidates_and_known_priors_side_by_side() -> None:
    """Whose risks have other parts, so that they cannot be stacked."""
    answers = simulate_answers(RELEVANT, asked_rate=0.6)
    people = {"ann": (0.9, 0.9), "bob": (0.7, 0.9)}
    said = simulate_answers(RELEVANT, asked_rate=0.6, people=people, people_per_pair=2)
    given = classifiers("likelihood", **PLAIN)
    given[1].set_params(class_prior=PRIOR)
    labels = [said, answers, CANDIDATES, said]
    assert_as_alone(fit_together(given, X, labels, FOLDS), given, X, labels)


def test_answers_with_and_without_a_yes_side_by_side(batches: list[Any]) -> None:
    """Whose class priors have other weights, unless these are given; and mistakes, or none."""
    answers = simulate_answers(RELEVANT, asked_rate=0.6)
    no_yes = Answers(no=answers.excluded, maybe=answers.confirmed | answers.doubtful)
    labels = [answers, answers, no_yes, no_yes]
    for prior, method in ((None, "likelihood"), (PRIOR, Likelihood(prior_weight=1.0))):
        given = classifiers(method, rates={"no": 0.8, "yes": 0.8}, class_prior=prior, **PLAIN)
        for classifier in given[2:]:
            classifier.set_params(rates={"no": 0.7})
        given[3].set_params(rates={"no": 0.8, "mistake": 0.1})
        batches.clear()
        assert_as_alone(fit_together(given, X, labels, FOLDS), given, X, labels)
        assert [len(batch) for batch in batches] == [2]


def test_many_labels_over_pairs() -> None:
    """Whose sums are made in linear time, which is not vectorised over models."""
    rng = np.random.default_rng(1)
    labels = rng.random((203, 70)) < 0.8
    given = classifiers("comes-rl", class_prior=np.full(70, 0.3), epochs=1)
    assert_as_alone(fit_together(given, X, labels, FOLDS), given, X, labels)


def test_data_frames_keep_their_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    labels = pd.DataFrame(CANDIDATES, columns=["x", "y", "z"])
    given = classifiers(class_prior=PRIOR)
    found = fit_together(given, frame, labels, FOLDS)
    assert_as_alone(found, given, frame, labels)
    assert found[0].feature_names == list("abcde")


def test_sparse_rows_are_fitted_apart() -> None:
    """In processes of their own; tests/system has those of several processes."""
    data = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    given = classifiers(class_prior=PRIOR, device="cpu")
    found = fit_together(given, data, CANDIDATES, FOLDS, n_jobs=1)
    assert_as_alone(found, given, data, CANDIDATES)


def test_different_settings_are_fitted_apart() -> None:
    """Also networks of one's own, and sizes that make another number of batches."""
    given = [
        *classifiers(class_prior=PRIOR)[:2],
        classifiers(class_prior=PRIOR, hidden=9)[2],
        classifiers(class_prior=PRIOR, model=partial(mlp, hidden=4))[3],
    ]
    found = fit_together(given, X, CANDIDATES, FOLDS, n_jobs=1)
    assert_as_alone(found, given, X, CANDIDATES)
    networks: list[Any] = [model.module_ for model in found]
    assert [network[2].in_features for network in networks] == [8, 8, 9, 4]
    rows = [np.arange(60), np.arange(160), np.arange(61), np.arange(161)]
    found = fit_together(classifiers(class_prior=PRIOR), X, CANDIDATES, rows)
    assert [len(model.history_.risk) for model in found] == [2] * 4


def test_what_is_large_or_stops_prints_or_encodes_by_itself_is_not_batched() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    momentum = {"name": "sgd", "momentum": 0.5}
    settings: dict[str, Any] = {"hidden": 500, "batch_size": 256, "device": "cpu"}
    plain = classifiers(class_prior=PRIOR, optimizer=momentum, **settings)[0]
    assert all(can_be_batched(plain, data) for data in (X, frame, np.zeros((1000, 100))))
    for data in (np.zeros((1000, 2000)), frame.assign(colour="red"), sparse.csr_array(X)):
        assert not can_be_batched(plain, data)
    assert not can_be_batched(clone(plain).set_params(encoder=ColumnEncoder()), frame)
    changes: list[dict[str, Any]] = [
        {"early_stopping": True},
        {"callbacks": print},
        {"verbose": 1},
        {"model": "low_rank"},
        {"model": partial(mlp, hidden=4)},
        {"optimizer": {"name": torch.optim.Adam}},
        {"method": bce_risk},
    ]
    for change in changes:
        assert not can_be_batched(clone(plain).set_params(**change), X), change


def test_groups_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "NUMBERS_TOGETHER", {"cpu": 2 * 153 * 5})
    fittings = [
        Fitting(c, X, CANDIDATES, r) for c, r in zip(classifiers(device="cpu"), FOLDS, strict=True)
    ]
    assert [len(batch) for batch in together._make_batches(fittings)] == [2, 2]


def test_workers_are_used_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for settings of which there is only one, which makes no batch."""
    seen: list[Any] = []

    def spy(fittings: list[Fitting], n_jobs: int | None, keep_errors: bool) -> Any:
        seen.append((len(fittings), n_jobs))
        return [one.run() for one in fittings]

    monkeypatch.setattr(together, "_fit_in_workers", spy)
    given = [classifiers(class_prior=PRIOR, hidden=4 + k, device="cpu")[k] for k in range(4)]
    fit_together(given, X, CANDIDATES, FOLDS, n_jobs=-1)
    assert seen == [(4, -1)]


def test_an_interrupted_fit_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(risk: float, epoch: int) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "check_finite", interrupt)
    own: dict[str, Any] = {"model": partial(mlp, hidden=4)}
    for options in ({}, own):
        with pytest.raises(KeyboardInterrupt):
            fit_together(classifiers(class_prior=PRIOR, **options), X, CANDIDATES, FOLDS, n_jobs=1)


def test_a_training_that_diverges_is_an_error_of_all() -> None:
    given = classifiers(class_prior=PRIOR, learning_rate=1e30)
    with pytest.raises(ComesError, match="became"):
        fit_together(given, X, CANDIDATES, FOLDS)


def test_what_fit_takes_is_taken() -> None:
    """Lists, other sparse formats, ranges and masks of rows; the classifiers stay as they are."""
    given = classifiers(class_prior=PRIOR)
    expected = fit_together(given, X, CANDIDATES, [np.arange(150)] * 4)
    assert not any(hasattr(classifier, "module_") for classifier in given)
    rows: list[Any] = [range(150), np.arange(203) < 150, list(range(150)), np.arange(150)]
    found = fit_together(given, X.tolist(), CANDIDATES.tolist(), rows)
    for one, two in zip(found, expected, strict=True):
        assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-5)
    few = fit_together(given[:2], sparse.coo_array(X), CANDIDATES, [range(150)] * 2, n_jobs=1)
    assert few[0].n_features_in_ == 5


def test_what_is_wrong_is_refused_first() -> None:
    wrong: list[tuple[dict[str, Any], Any, str]] = [
        ({"batch_size": 0}, CANDIDATES, "batch_size must be a whole number"),
        ({"hidden": [8]}, CANDIDATES, "hidden must be a whole number"),
        ({}, CANDIDATES[:, 0], r"candidates must be a matrix; got .*\(203,\)"),
    ]
    for change, candidates, message in wrong:
        with pytest.raises(ComesError, match=message):
            fit_together(classifiers(**change), X, candidates, FOLDS)
    with pytest.raises(ComesError, match="got 4 classifiers, 3 rows and 4 candidates"):
        fit_together(classifiers(), X, CANDIDATES, FOLDS[:3])


def test_the_risk_on_other_rows_is_that_of_the_method() -> None:
    (bce,) = classifiers("bce")[:1]
    bce.fit(X[:150], CANDIDATES[:150])
    scores = torch.as_tensor(bce.decision_function(X[150:]))
    expected = bce_risk(scores, torch.as_tensor(CANDIDATES[150:])).item()
    assert bce.risk(X[150:], CANDIDATES[150:]) == pytest.approx(expected)
