"""`CandidateClassifier` as an estimator of scikit-learn: what it takes, gives and refuses."""

import functools
import pickle
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier, first_stage, preparation
from comes.estimator.scaling import is_scaled_for_priors
from comes.generation import case_b
from comes.methods import METHODS
from comes.metrics import average_precision
from comes.models import mlp
from comes.priors import (
    estimate_class_prior,
    estimate_flip_rate,
    estimate_transition,
)
from comes.priors.noise import flip_rate_from_prior
from comes.risks import BceRisk, ranking_risk
from comes.training import train
from quick_priors import quick_priors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > np.array([0.0, 0.5, 1.0])
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)


def classifier(method: Any = "comes-hl", **options: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"class_prior": PRIOR, "epochs": 2, "batch_size": 50, "hidden": 8}
    return CandidateClassifier(method, **{"random_state": 0} | defaults | options)


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    return classifier().fit(X, CANDIDATES)


@pytest.fixture(autouse=True, scope="module")
def quickly_estimated() -> Iterator[None]:
    with quick_priors():
        yield


# scikit-learn's checks hand a classifier one column of classes; ours has a matrix of 0 and 1.
ONE_COLUMN = "hands fit a y of one dimension"
NOT_01 = "hands fit a column of class numbers such as 1 and 2, not 0 and 1"
# The order of rows is drawn, so batches differ; tests/test_estimator_row_weights.py has the same
# property for the risk of all rows, and for trainings in one batch.
IN_BATCHES = "wants the same weights to 1e-7 from other rows, whose batches are others"
FAILING_CHECKS = {
    "check_sample_weights_pandas_series": NOT_01,
    "check_sample_weights_not_an_array": NOT_01,
    "check_sample_weights_shape": NOT_01,
    "check_sample_weights_not_overwritten": NOT_01,
    "check_sample_weight_equivalence_on_dense_data": IN_BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": IN_BATCHES,
    "check_classifiers_one_label_sample_weights": ONE_COLUMN,
    "check_classifier_data_not_an_array": NOT_01,
    "check_classifier_not_supporting_multiclass": "wants 'Only binary classification' of y = 2",
    "check_classifiers_classes": ONE_COLUMN,
    "check_classifiers_one_label": ONE_COLUMN,
    "check_classifiers_train": "wants predictions of one dimension",
    "check_decision_proba_consistency": ONE_COLUMN,
    "check_estimator_sparse_array": NOT_01,
    "check_estimator_sparse_matrix": NOT_01,
    "check_estimators_dtypes": NOT_01,
    "check_fit2d_1feature": NOT_01,
}


def test_scikit_learns_checks_but_for_those_that_cannot_apply() -> None:
    with quick_priors(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)  # single labels that no row excludes
        results = check_estimator(
            CandidateClassifier(epochs=1, batch_size=100, hidden=4, n_networks=1),
            expected_failed_checks=FAILING_CHECKS,
            on_skip=None,
        )
    by_status: dict[str, set[str]] = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert by_status["xfail"] == set(FAILING_CHECKS)
    assert len(by_status["passed"]) >= 40


@pytest.mark.parametrize("method", METHODS)
def test_every_variant_learns_from_candidates(method: str) -> None:
    quick: dict[str, Any] = {"epochs": 15, "batch_size": 100, "hidden": 100, "learning_rate": 2e-2}
    known = {"flip_rate": 0.5} if method == "ccmn" else {}
    for place, variant in enumerate(METHODS[method].variants):
        clf = classifier(method, variant=variant, **quick, **known)
        with quick_priors(100):
            clf.fit(X, CANDIDATES)
        scores = clf.decision_function(X)
        assert scores.shape == (300, 3)
        is_of_the_paper = METHODS[method].paper_rank is not None and method != "mlcl"
        least = 0.85 if is_of_the_paper and place == 0 else 0.8
        assert average_precision(scores, RELEVANT) > least, variant
        assert clf.score(X, RELEVANT) == average_precision(scores, RELEVANT), variant
        assert clf.history_.risk[-1] < clf.history_.risk[0], variant
        assert clone(clf).get_params()["variant"] == variant


def test_predictions_and_probabilities_agree_and_probabilities_fit_the_prior() -> None:
    for method, tolerance in (("comes-hl", 0.1), ("comes-rl", 1e-6)):
        clf = classifier(method, epochs=30, hidden=100).fit(X, CANDIDATES)
        probabilities, predictions = clf.predict_proba(X), clf.predict(X)
        assert predictions.dtype.kind == "i", method
        np.testing.assert_array_equal(predictions, probabilities > 0.5, err_msg=method)
        np.testing.assert_allclose(probabilities.mean(axis=0), PRIOR, atol=tolerance)
        assert (predictions != RELEVANT).mean() < 0.25, method


def test_same_seed_same_scores_and_another_seed_others(fitted: CandidateClassifier) -> None:
    again, other = (classifier(random_state=seed).fit(X, CANDIDATES) for seed in (0, 1))
    np.testing.assert_array_equal(fitted.decision_function(X), again.decision_function(X))
    assert (fitted.decision_function(X) != other.decision_function(X)).any()


def test_complementary_labels_are_the_other_view_of_candidates(fitted: CandidateClassifier) -> None:
    expected = fitted.decision_function(X)
    views: list[dict[str, Any]] = [{"complementary": ~CANDIDATES}, {"candidates": CANDIDATES}]
    for given in views:
        scores = classifier().fit(X, **given).decision_function(X)
        np.testing.assert_array_equal(scores, expected, err_msg=str(list(given)))
    with pytest.raises(ComesError, match="not several"):
        classifier().fit(X, candidates=CANDIDATES, complementary=~CANDIDATES)


def test_the_truth_beside_candidates_is_checked_and_not_trained_on(
    fitted: CandidateClassifier,
) -> None:
    beside = classifier().fit(X, RELEVANT, candidates=CANDIDATES)
    np.testing.assert_array_equal(beside.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ComesError, match="relevant label outside their candidates"):
        classifier().fit(X, np.ones_like(RELEVANT), candidates=CANDIDATES)


def test_cross_validation_trains_on_candidates_and_scores_on_the_truth() -> None:
    result = cross_validate(
        classifier(require_candidates=True, epochs=15, hidden=100),
        X,
        RELEVANT,
        params={"candidates": CANDIDATES},
        cv=2,
        return_estimator=True,
    )
    assert result["test_score"].mean() > 0.85
    assert len(result["estimator"][0].history_.risk) == 15


def test_require_candidates_forbids_training_on_the_truth_by_accident() -> None:
    cross_val_score(classifier(epochs=1), X, RELEVANT, cv=2)  # allowed, and documented
    with pytest.raises(ComesError, match="require_candidates=True.*params="):
        classifier(require_candidates=True).fit(X, RELEVANT)


def test_grid_search_pipeline_and_clone() -> None:
    search = GridSearchCV(classifier(), {"learning_rate": [1e-4, 1e-1]}, cv=2)
    search.fit(X, RELEVANT, candidates=CANDIDATES)
    assert search.best_params_ == {"learning_rate": 1e-1}
    pipeline = make_pipeline(MinMaxScaler(), PCA(4), classifier())
    pipeline.fit(X, RELEVANT, candidateclassifier__candidates=CANDIDATES)
    assert pipeline.predict(X).shape == RELEVANT.shape
    copy = clone(classifier(hidden=7))
    assert copy.get_params()["hidden"] == 7
    assert not hasattr(copy, "module_")


def test_copies_keep_scores_and_what_was_known() -> None:
    original = classifier("ccmn", flip_rate=0.5, threshold="f1").fit(X, CANDIDATES)
    for copy in (pickle.loads(pickle.dumps(original)), deepcopy(original)):
        np.testing.assert_array_equal(copy.decision_function(X), original.decision_function(X))
        np.testing.assert_array_equal(copy.predict(X), original.predict(X))
        np.testing.assert_array_equal(copy.class_prior_, PRIOR)
        np.testing.assert_array_equal(copy.flip_rate_, np.full(3, 0.5))
        assert copy.transition_ is None
    assert original.__getstate__()["module_"] is not original.module_  # which stays on its device
    assert not hasattr(clone(original), "class_prior_")


def test_data_frames_name_features_and_labels(fitted: CandidateClassifier) -> None:
    features = pd.DataFrame(X, columns=pd.Index(list("abcde")))
    labels = pd.DataFrame(CANDIDATES, columns=pd.Index(["sky", "sea", "sun"]))
    named = classifier().fit(features, labels)
    assert named.label_names_ == ["sky", "sea", "sun"]
    assert named.feature_names == list("abcde")
    np.testing.assert_array_equal(named.decision_function(features), fitted.decision_function(X))


def test_sparse_x_stays_sparse_and_gives_the_scores_of_dense_x() -> None:
    nonnegative = np.where(X > 0.5, X, 0)
    dense = classifier(scale="maxabs").fit(nonnegative, CANDIDATES)
    for container in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        fitted = classifier(scale="maxabs").fit(container(nonnegative), CANDIDATES)
        np.testing.assert_allclose(
            fitted.decision_function(sparse.csr_array(nonnegative)),
            dense.decision_function(nonnegative),
            atol=1e-5,
        )
    with pytest.raises(ComesError, match="would fill a sparse X.*maxabs"):
        classifier(scale="standard").fit(sparse.csr_array(nonnegative), CANDIDATES)


def test_scaling_is_part_of_the_model(fitted: CandidateClassifier) -> None:
    stretched = classifier().fit(1000 * X + 7, CANDIDATES).decision_function(1000 * X + 7)
    np.testing.assert_allclose(stretched, fitted.decision_function(X), atol=1e-3)
    assert classifier(scale=None).fit(X, CANDIDATES).scaling_.shift is None
    constant = np.column_stack([X, np.full(300, 4.0)])
    assert np.isfinite(classifier().fit(constant, CANDIDATES).decision_function(constant)).all()


class Own(nn.Module):
    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, q))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output


def test_any_model_and_any_optimiser() -> None:
    adam = functools.partial(torch.optim.NAdam, lr=0.02)
    for model in (Own, functools.partial(mlp, hidden=9), Own(5, 3), "linear"):
        fitted = classifier(model=model, optimizer=adam, epochs=15).fit(X, CANDIDATES)
        assert fitted.score(X, RELEVANT) > 0.85


def test_a_module_is_trained_on_from_its_weights_and_left_as_it_was() -> None:
    torch.manual_seed(0)
    module = Own(5, 3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    fitted = classifier(model=module).fit(X, CANDIDATES)
    torch.testing.assert_close(dict(module.state_dict()), before)
    changed = fitted.module_.state_dict()["layers.0.weight"] - before["layers.0.weight"]
    assert 0 < changed.abs().max() < 1


def test_the_normaliser_of_the_data_set_is_another_training() -> None:
    """Without a flood, above which the noise of ten rows would lift the risk of either."""
    settings: dict[str, Any] = {"batch_size": 10, "epochs": 4, "hidden": 100, "flood_level": 0.0}
    for method in ("comes-hl", "comes-rl"):
        batch = classifier(method, normaliser="batch", **settings).fit(X, CANDIDATES)
        dataset = classifier(method, **settings).fit(X, CANDIDATES)
        assert (batch.decision_function(X) != dataset.decision_function(X)).any(), method
        assert dataset.score(X, RELEVANT) > 0.85, method


def test_flood_level_reaches_the_risk() -> None:
    plain, flooded = (
        classifier("comes-rl", epochs=10, hidden=100, flood_level=level).fit(X, CANDIDATES)
        for level in (0.0, 2.5)
    )
    assert plain.history_.risk[-1] < 2.5 <= min(flooded.history_.risk)


def test_the_flood_level_follows_from_the_class_prior_by_default() -> None:
    left = 1 - PRIOR
    rule = 0.75 * sum(left[j] * left[k] for j in range(3) for k in range(j))
    auto, given, none = (
        classifier("comes-rl", hidden=100, **level).fit(X, CANDIDATES).decision_function(X)
        for level in ({}, {"flood_level": rule}, {"flood_level": 0.0})
    )
    np.testing.assert_allclose(auto, given, atol=1e-5)
    high = classifier("comes-rl", hidden=100, flood_level=100.0).fit(X, CANDIDATES)
    assert np.abs(none - high.decision_function(X)).max() > 0.01


def test_the_risk_on_other_rows_is_not_flooded() -> None:
    """Or levels could not be compared by it."""
    fitted = classifier("comes-rl", flood_level=100.0).fit(X, CANDIDATES)
    scores = torch.as_tensor(fitted.decision_function(X))
    prior = torch.as_tensor(PRIOR)
    share = torch.as_tensor(1 - CANDIDATES.mean(axis=0))
    risk = ranking_risk(scores, torch.as_tensor(CANDIDATES), prior, exclude_share=share)
    assert fitted.risk(X, CANDIDATES) == pytest.approx(float(risk), rel=1e-5)


def test_every_parameter_reaches_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def spying_train(
        module: Any, X: Any, candidates: Any, risk: Any, options: Any, **more: Any
    ) -> Any:
        seen.update(vars(options), module=module, risk=risk)
        return train(module, X, candidates, risk, options, **more)

    def spying_estimate(X: Any, answers: Any, random_state: Any, **options: Any) -> Any:
        seen["prior_seed"] = random_state
        return SimpleNamespace(class_prior=PRIOR)

    monkeypatch.setattr(preparation, "train", spying_train)
    monkeypatch.setattr(first_stage, "estimate_class_prior", spying_estimate)
    settings: dict[str, Any] = {
        "normaliser": "batch",
        "hidden": 7,
        "momentum": 0.3,
        "weight_decay": 0.02,
    }
    settings |= {"cosine": False, "reduction": "mean", "epochs": 1, "random_state": 5}
    classifier(class_prior=None, **settings).fit(X, CANDIDATES)
    assert seen["risk"].exclude_share is None
    optimizer = seen["optimizer"](seen["module"].parameters())
    assert optimizer.defaults["momentum"] == 0.3
    assert optimizer.defaults["weight_decay"] == 0.02
    assert seen["cosine"] is False
    assert seen["risk_scale"] == 1
    assert seen["module"][2].in_features == 7
    assert seen["seed"] == seen["prior_seed"] != 0
    classifier(epochs=1).fit(X, CANDIDATES)
    share = torch.tensor((~CANDIDATES).mean(axis=0), dtype=torch.float32)
    by_default: Any = seen["risk"].exclude_share
    torch.testing.assert_close(by_default.cpu(), share)
    assert seen["risk_scale"] == 3


def test_what_was_passed_is_not_changed() -> None:
    prior, never = PRIOR.copy(), CANDIDATES.copy()
    never[:, 1] = False
    with pytest.warns(ComesWarning):
        fitted = classifier(epochs=1, class_prior=prior).fit(X, never)
    np.testing.assert_array_equal(prior, PRIOR)
    assert fitted.__getstate__()["module_"] is not fitted.module_


@pytest.mark.filterwarnings("ignore:.*standard error is above:comes.errors.ComesWarning")
def test_class_prior_none_is_estimated() -> None:
    clf = classifier(class_prior=None, epochs=1).fit(X, CANDIDATES)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    expected = estimate_class_prior(X, CANDIDATES, random_state=seed)
    np.testing.assert_array_equal(clf.class_prior_, expected)
    assert classifier("bce", class_prior=None, epochs=1).fit(X, CANDIDATES).class_prior_ is None


def test_a_label_excluded_nowhere_or_everywhere_is_a_warning_with_its_name() -> None:
    odd = pd.DataFrame(CANDIDATES, columns=pd.Index(["sky", "sea", "sun"]))
    odd["sea"] = True
    with pytest.warns(ComesWarning, match="No row excludes label 'sea': it is left out"):
        never = classifier().fit(X, odd)
    assert np.isfinite(never.decision_function(X)).all()
    odd["sea"] = False
    with pytest.warns(ComesWarning, match="Every row excludes label 'sea'.*prior is taken as 0"):
        always = classifier(epochs=30, hidden=100).fit(X, odd)
    assert always.class_prior_ is not None and always.class_prior_[1] == 0
    assert not always.predict(X)[:, 1].any()


def test_a_prior_above_the_candidate_rate_is_a_warning() -> None:
    """As when complementary labels are passed for candidates."""
    with pytest.warns(ComesWarning, match="above the share of rows.*complementary="):
        classifier(epochs=1, class_prior=[0.9, 0.3, 0.2]).fit(X, CANDIDATES)
    with pytest.warns(ComesWarning, match="prior of label '0' is above"):
        classifier(epochs=1).fit(X, ~CANDIDATES)


def test_columns_are_matched_by_name() -> None:
    def named(values: Any) -> pd.DataFrame:
        return pd.DataFrame(values, columns=pd.Index(["sky", "sea", "sun"]))

    order = ["sun", "sky", "sea"]
    fitted = classifier(hidden=100).fit(X, named(RELEVANT)[order], candidates=named(CANDIDATES))
    assert fitted.score(X, named(RELEVANT)[order]) == fitted.score(X, RELEVANT)
    with pytest.raises(ComesError, match="expected the labels 'sky', 'sea', 'sun'"):
        fitted.score(X, named(RELEVANT).rename(columns={"sun": "dog"}))
    prior = pd.Series(PRIOR, index=["sky", "sea", "sun"])
    by_name = classifier(epochs=1, class_prior=prior[order]).fit(X, named(CANDIDATES))
    np.testing.assert_array_equal(by_name.class_prior_, PRIOR)


def test_a_failed_fit_leaves_an_earlier_one_as_it_was() -> None:
    clf = classifier(epochs=1).fit(X, CANDIDATES)
    scores = clf.decision_function(X)
    with pytest.raises(ComesError):
        clf.fit(X[:, :2], CANDIDATES[:50])
    clf.learning_rate = 1e30
    with pytest.raises(ComesError, match="became"):
        clf.fit(X, CANDIDATES)
    np.testing.assert_array_equal(clf.decision_function(X), scores)
    never = classifier(learning_rate=1e30)
    with pytest.raises(ComesError, match="became"):
        never.fit(X, CANDIDATES)
    assert not [name for name in vars(never) if name.endswith("_")]


def test_metadata_routing_through_a_pipeline() -> None:
    with config_context(enable_metadata_routing=True):
        routed = classifier(epochs=15, hidden=100).set_fit_request(candidates=True)
        pipeline = make_pipeline(MinMaxScaler(), routed)
        result = cross_validate(pipeline, X, RELEVANT, params={"candidates": CANDIDATES}, cv=2)
    assert result["test_score"].mean() > 0.8


@pytest.mark.filterwarnings("ignore:The class prior of label:comes.errors.ComesWarning")
def test_one_label_and_one_row_are_not_errors() -> None:
    single = classifier(class_prior=PRIOR[:1]).fit(X, CANDIDATES[:, :1])
    assert single.predict(X).shape == (300, 1)
    with pytest.warns(ComesWarning, match="risk needs two labels"):
        classifier("comes-rl", class_prior=PRIOR[:1]).fit(X, CANDIDATES[:, :1])
    with pytest.warns(ComesWarning, match="excludes label"):
        one_row = classifier(class_prior=None).fit(X[:1], [[True, False, True]])
    assert one_row.predict_proba(X[:1]).shape == (1, 3)


def test_a_wrong_parameter_is_named_in_fit() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"method": "comes"}, "method must be one of comes-hl, comes-rl, bce, .*; got 'comes'"),
        ({"class_prior": [0.1, 0.2]}, "one number in .0, 1. for each of the 3 labels; got"),
        ({"class_prior": [0.1, 0.2, 1.2]}, "one number in .0, 1. for each of the 3 labels"),
        ({"class_prior": [0.1, 0.2, np.nan]}, "one number in .0, 1. for each of the 3 labels"),
        ({"model": "resnet"}, "'mlp', 'low_rank', 'linear', a module or a function.*got 'resnet'"),
        ({"reduction": "max"}, "auto, sum, mean or per_label; got 'max'"),
        ({"normaliser": "global"}, "'batch' or 'dataset'; got 'global'"),
        ({"scale": "minmax"}, "'maxabs' or None; got 'minmax'"),
        ({"optimizer": "adagrad"}, "sgd, adam, adamw.*got 'adagrad'"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number of at least 1; got 2.5"),
        ({"hidden": 0}, "hidden must be a whole number of at least 1; got 0"),
        ({"class_prior": "auto"}, "one number in .0, 1. for each of the 3 labels; got 'auto'"),
        ({"learning_rate": np.inf}, "learning_rate and weight_decay must be finite"),
        ({"learning_rate": -1.0}, "learning_rate and weight_decay must be finite"),
        ({"momentum": 1.0}, "momentum in .0, 1."),
        ({"flood_level": np.nan}, "flood_level must be 'auto', or a number of 0 or more; got nan"),
        ({"flood_level": "much"}, "flood_level must be 'auto', .*; got 'much'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used here"),
    ]
    for options, message in wrong:
        with pytest.raises(ComesError, match=message):
            classifier(**options).fit(X, CANDIDATES)


def test_bad_data_is_one_sentence() -> None:
    wrong: list[tuple[tuple[Any, Any], str]] = [
        ((X[:10], CANDIDATES), "same number of rows; got 10 and 300"),
        ((np.where(X > 2, np.nan, X), CANDIDATES), "contains NaN.*fill or drop"),
        ((np.where(X > 2, np.inf, X), CANDIDATES), "contains infinity.*fill or drop"),
        ((X, CANDIDATES * 2), "0 or 1; got 2"),
        ((X, CANDIDATES[:, 0]), "Unknown label type"),
        ((X, None), "requires y to be passed"),
        ((X[:, 0], CANDIDATES), "Expected 2D array"),
        ((1e300 * X, CANDIDATES), "too large for float32"),
        ((X + 1j, CANDIDATES), "Complex data not supported"),
        ((X, np.ma.masked_array(CANDIDATES, ~CANDIDATES)), "must not have masked entries"),
        ((X, pd.DataFrame(CANDIDATES, dtype="boolean").where(CANDIDATES)), "are missing"),
        ((X, CANDIDATES.astype(str)), "0 or 1; got 'True'"),
        ((X, pd.DataFrame(CANDIDATES, columns=list("aba"))), "'a' more than once"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ComesError, match=message) as raised:
            classifier().fit(*arguments)
        assert "\n" not in str(raised.value), message


def test_rows_to_predict_are_checked_too(fitted: CandidateClassifier) -> None:
    plain = classifier(epochs=1, scale=None).fit(X, CANDIDATES)
    holes = np.where(X > 2, np.nan, X)
    for clf in (plain, fitted):
        for data, message in (
            (holes, "contains NaN.*fill or drop"),
            (np.where(X > 2, -np.inf, X), "contains infinity.*fill or drop"),
            (np.where(X > 2, 1e300, X), "too large for float32"),
            (X[:, :4], "X has 4 features.*expecting 5"),
        ):
            with pytest.raises(ComesError, match=message):
                clf.predict(data)
    with pytest.raises(ComesError, match="contains NaN.*fill or drop"):
        plain.predict(sparse.csr_array(holes))
    tiny = classifier(epochs=1).fit(1e-20 * X, CANDIDATES)
    with pytest.raises(ComesError, match="too large for float32 after scaling"):
        tiny.predict(np.full((1, 5), 1e30))


def test_names_may_come_beside_an_array_of_candidates() -> None:
    names = ["sky", "sea", "sun"]
    named = classifier(epochs=1).fit(X, CANDIDATES, label_names=names)
    assert named.label_names_ == names
    framed = pd.DataFrame(CANDIDATES, columns=pd.Index(names))
    for given, wrong, message in (
        (CANDIDATES, names[:2], "must name each of 3 labels; got 2 names"),
        (CANDIDATES, ["a", "b", "a"], "'a' more than once"),
        (framed, names, "got a DataFrame, which names its columns"),
    ):
        with pytest.raises(ComesError, match=message):
            classifier().fit(X, given, label_names=wrong)


def test_features_are_scaled_once_for_training_and_priors() -> None:
    """Where that is the same to the bit; else each scales for itself."""
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    raw = 3 * X + 7
    found: Any = classifier("mlcl", epochs=1).fit(raw, CANDIDATES).transition_
    expected = estimate_transition(raw, CANDIDATES, random_state=seed)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for data, how in ((raw.astype(np.float32), "auto"), (raw, None), (raw, "maxabs")):
        assert not is_scaled_for_priors(data, how)
    assert is_scaled_for_priors(raw, "standard")


def test_ccmn_takes_rates_estimated_given_or_of_the_prior(tmp_path: Path) -> None:
    estimated = classifier("ccmn").fit(X, CANDIDATES)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    expected = estimate_flip_rate(X, CANDIDATES, random_state=seed)
    np.testing.assert_array_equal(estimated.flip_rate_, expected)
    assert estimated.class_prior_ is None
    given = classifier("ccmn", flip_rate=0.5).fit(X, CANDIDATES)
    assert given.flip_rate_ is not None and given.flip_rate_.tolist() == [0.5, 0.5, 0.5]
    of_prior = classifier("ccmn", flip_rate="class_prior").fit(X, CANDIDATES)
    np.testing.assert_array_equal(of_prior.flip_rate_, flip_rate_from_prior(PRIOR, CANDIDATES))
    np.testing.assert_array_equal(of_prior.class_prior_, PRIOR)
    of_prior.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.flip_rate_, of_prior.flip_rate_)


def test_ccmn_with_the_rates_of_the_prior_is_comes_but_for_the_correction() -> None:
    """Same seed, same information: where neither correction acts, the same weights."""
    options: dict[str, Any] = {"normaliser": "dataset", "epochs": 1, "batch_size": 300}
    comes = classifier("comes-hl-unbiased", **options).fit(X, CANDIDATES)
    ccmn = classifier("ccmn", flip_rate="class_prior", **options).fit(X, CANDIDATES)
    np.testing.assert_allclose(ccmn.decision_function(X), comes.decision_function(X), atol=1e-5)
    ranking = {**options, "reduction": "sum"}
    comes = classifier("comes-rl", **ranking).fit(X, CANDIDATES)
    ranking |= {"variant": "ranking", "flip_rate": "class_prior"}
    ccmn = classifier("ccmn", **ranking).fit(X, CANDIDATES)
    np.testing.assert_allclose(ccmn.decision_function(X), comes.decision_function(X), atol=1e-5)


def test_ranking_variants_are_cut_where_the_prior_says() -> None:
    known: dict[str, Any] = {"class_prior": None, "flip_rate": 0.5}  # a rate implies the prior
    given = classifier("ccmn", variant="ranking", flip_rate=0.5).fit(X, CANDIDATES)
    np.testing.assert_array_equal(given.class_prior_, PRIOR)
    for method, variant in (("ccmn", "ranking"), ("comrank", "all")):
        fitted = classifier(method, variant=variant, **known).fit(X, CANDIDATES)
        known = {}
        assert fitted.class_prior_ is not None
        mean = fitted.predict_proba(X).mean(axis=0)
        np.testing.assert_allclose(mean, np.clip(fitted.class_prior_, 1e-3, 1), atol=2e-3)


def test_gdf_single_trains_on_one_excluded_label_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(model: Any, X: Any, candidates: Any, *args: Any, **options: Any) -> Any:
        seen.append(candidates.numpy())
        return train(model, X, candidates, *args, **options)

    monkeypatch.setattr(preparation, "train", spy)
    classifier("gdf", epochs=1).fit(X, CANDIDATES)
    classifier("gdf", variant="all", epochs=1).fit(X, CANDIDATES)
    single, every = seen
    assert ((~single).sum(axis=1) == (~CANDIDATES).any(axis=1)).all()
    assert (single | ~CANDIDATES).all()
    np.testing.assert_array_equal(every, CANDIDATES)


def own_risk(scores: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, candidates.float())


def test_a_risk_of_ones_own(tmp_path: Path) -> None:
    """A function or a module, minimised as it is, in the place of a name."""
    own = classifier(own_risk).fit(X, CANDIDATES)
    bce = CandidateClassifier.as_published("bce", reduction="mean", epochs=2, batch_size=50)
    bce.set_params(hidden=8, random_state=0).fit(X, CANDIDATES)
    np.testing.assert_allclose(own.decision_function(X), bce.decision_function(X), atol=1e-5)
    module = classifier(BceRisk()).fit(X, CANDIDATES)
    np.testing.assert_allclose(module.decision_function(X), bce.decision_function(X), atol=1e-5)
    assert clone(own).method is own_risk
    own.save(tmp_path / "own")
    loaded = CandidateClassifier.load(tmp_path / "own")
    np.testing.assert_allclose(loaded.decision_function(X), own.decision_function(X))
    with pytest.raises(ComesError, match="method must be one of .*; got 'your own'"):
        loaded.fit(X, CANDIDATES)


def test_a_wrong_method_is_explained() -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ("ccmn", {"variant": "all"}, "variant of ccmn must be hamming or ranking; got 'all'"),
        (own_risk, {"variant": "all"}, "a risk of your own has no variants"),
        (own_risk, {"reduction": "sum"}, "reduction must be auto; got 'sum'"),
        (3, {}, "a name or a function"),
        ("ccmn", {"flip_rate": "prior"}, "'class_prior' or None; got 'prior'"),
        ("ccmn", {"flip_rate": [0.1, 0.2]}, "flip_rate must hold one number"),
        ("ccmn", {"flip_rate": 1.5}, "flip_rate must hold one number"),
        ("comes-hl", {"flip_rate": 0.5}, "flip_rate is for method 'ccmn'"),
    ]
    for method, options, message in wrong:
        with pytest.raises(ComesError, match=message):
            classifier(method, **options).fit(X, CANDIDATES)


def test_an_unfitted_classifier_says_so() -> None:
    with pytest.raises(NotFittedError):
        classifier().score(X, RELEVANT)
    with pytest.raises(NotFittedError):
        classifier().cut_scores(X)
    with pytest.raises(NotFittedError):
        classifier().squash_scores(RELEVANT)


def test_what_an_idle_label_means_depends_on_the_method() -> None:
    for method, never, always in (
        ("comes-rl", "nothing pushes its scores down", "prior is taken as 0"),
        ("comes-hl", "it is left out of the risk", "prior is taken as 0"),
        ("likelihood", "nothing shows where it is irrelevant", "it is learned as irrelevant"),
        ("bce", "taken for relevant everywhere", "it is learned as irrelevant"),
        ("mlcl", "nothing shows where it is irrelevant", "nothing shows where it is relevant"),
        ("gdf", "taken for relevant everywhere", "nothing shows where it is relevant"),
    ):
        for value, effect in ((True, never), (False, always)):
            odd = CANDIDATES.copy()
            odd[:, 1] = value
            with pytest.warns(ComesWarning, match=effect):
                classifier(method, epochs=1).fit(X, odd)
