"""`CandidateClassifier` as an estimator of scikit-learn: what it takes, gives and refuses."""

import functools
import math
import pickle
import warnings
from copy import deepcopy
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

from comes.answers import Answers, LongAnswers
from comes.answers.convert import match_names
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier
from comes.generation import case_b, simulate_answers
from comes.methods import CCMN
from comes.metrics import average_precision
from comes.models import mlp
from comes.selection import candidate_scorer
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > np.array([0.0, 0.5, 1.0])
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=1)
PRIOR = RELEVANT.mean(axis=0)
NAMES = ["sky", "sea", "sun"]
NO, YES = np.array([0.8, 0.7, 0.6]), np.array([0.9, 0.5, 0.4])
LONG: dict[str, Any] = {"epochs": 15, "hidden": 100}


def classifier(method: Any = "comes-hl", **options: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"class_prior": PRIOR, "epochs": 2, "batch_size": 50, "hidden": 8}
    return CandidateClassifier(method, **{"random_state": 0} | defaults | options)


def of_answers(**options: Any) -> CandidateClassifier:
    """Return a classifier of answers, who knows how often each is given."""
    known: dict[str, Any] = {"rates": {"no": NO, "yes": YES}, "n_networks": 1}
    return classifier("likelihood", **known | {"learning_rate": 5e-3} | options)


def named(values: Any) -> pd.DataFrame:
    return pd.DataFrame(values, columns=pd.Index(NAMES))


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    return classifier().fit(X, CANDIDATES)


# scikit-learn's habits

# scikit-learn's checks hand a classifier one column of classes; ours has a matrix of 0 and 1.
ONE_COLUMN = "hands fit a y of one dimension"
NOT_01 = "hands fit a column of class numbers such as 1 and 2, not 0 and 1"
# The order of rows is drawn, so batches differ; tests/test_estimator_sample_weight.py has the same
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
    "check_classifier_multioutput": "takes classes_ for 0 and 1; they are the names of the labels",
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
    with warnings.catch_warnings():
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


# What a classifier takes


def test_candidates_and_answers_are_the_same_whichever_way_they_are_given(
    fitted: CandidateClassifier,
) -> None:
    """The truth beside them is checked, and not trained on."""
    ways: list[dict[str, Any]] = [
        {"complementary": ~CANDIDATES},
        {"candidates": CANDIDATES},
        {"y": RELEVANT, "candidates": CANDIDATES},
        {"answers": Answers.from_candidates(CANDIDATES)},
    ]
    for given in ways:
        scores = classifier().fit(X, **given).decision_function(X)
        np.testing.assert_array_equal(scores, fitted.decision_function(X), err_msg=str(given))
    first = of_answers(**LONG).fit(X, ANSWERS)
    assert first.method_.name == "likelihood" and first.score(X, RELEVANT) > 0.85
    ways = [{"answers": ANSWERS}, {"y": RELEVANT, "answers": ANSWERS}]
    for given in ways:
        scores = of_answers(**LONG).fit(X, **given).decision_function(X)
        np.testing.assert_array_equal(scores, first.decision_function(X), err_msg=str(given))
    with refused("not several"):
        classifier().fit(X, candidates=CANDIDATES, complementary=~CANDIDATES)
    wrong = Answers(no=RELEVANT, yes=~RELEVANT)  # by people, who may be wrong
    of_answers(epochs=1).fit(X, RELEVANT, answers=wrong)
    for given in ({"candidates": ~RELEVANT}, {"answers": Answers(no=RELEVANT)}):
        with refused("relevant label outside their candidates"):
            classifier().fit(X, RELEVANT, **given)
    with refused("got Answers. Pass them as answers=, or take"):
        classifier().fit(X, candidates=Answers(~CANDIDATES))


def test_cross_validation_trains_on_what_is_beside_the_truth_and_scores_on_the_truth() -> None:
    cases: list[tuple[CandidateClassifier, dict[str, Any]]] = [
        (classifier(**LONG), {"candidates": CANDIDATES}),
        (of_answers(**LONG), {"answers": ANSWERS}),
    ]
    for model, params in cases:
        model.set_params(require_candidates=True)
        result = cross_validate(model, X, RELEVANT, params=params, cv=2, return_estimator=True)
        assert result["test_score"].mean() > 0.85
        assert {one.method_.name for one in result["estimator"]} == {model.method}
        assert len(result["estimator"][0].history_.risk) == 15
        with config_context(enable_metadata_routing=True):
            routed = clone(model).set_fit_request(**dict.fromkeys(params, True))
            pipeline = make_pipeline(MinMaxScaler(), routed)
            result = cross_validate(pipeline, X, RELEVANT, params=params, cv=2)
        assert result["test_score"].mean() > 0.8


def test_require_candidates_forbids_training_on_the_truth_by_accident() -> None:
    cross_val_score(classifier(epochs=1), X, RELEVANT, cv=2)  # allowed, and documented
    with refused("require_candidates=True.*params="):
        classifier(require_candidates=True).fit(X, RELEVANT)


def test_grid_search_pipeline_and_clone() -> None:
    cases: list[tuple[CandidateClassifier, dict[str, Any]]] = [
        (classifier(), {"candidates": CANDIDATES}),
        (of_answers(), {"answers": ANSWERS}),
    ]
    for model, params in cases:
        search = GridSearchCV(model, {"learning_rate": [1e-6, 1e-1]}, cv=2)
        search.fit(X, RELEVANT, **params)
        assert search.best_params_ == {"learning_rate": 1e-1}
        pipeline = make_pipeline(MinMaxScaler(), PCA(4), model)
        pipeline.fit(X, RELEVANT, **{f"candidateclassifier__{k}": v for k, v in params.items()})
        assert pipeline.predict(X).shape == RELEVANT.shape
    copy = clone(classifier(hidden=7))
    assert copy.get_params()["hidden"] == 7
    assert not hasattr(copy, "module_")


def test_data_frames_name_features_and_labels(fitted: CandidateClassifier) -> None:
    features = pd.DataFrame(X, columns=pd.Index(list("abcde")))
    framed = classifier().fit(features, named(CANDIDATES))
    assert framed.label_names_ == NAMES == list(framed.classes_)
    assert framed.feature_names == list("abcde")
    np.testing.assert_array_equal(framed.decision_function(features), fitted.decision_function(X))
    for beside in (
        classifier(epochs=1).fit(X, CANDIDATES, label_names=NAMES),
        of_answers(epochs=1).fit(X, ANSWERS.rename_labels(NAMES)),
    ):
        assert beside.label_names_ == list(beside.classes_) == NAMES
    assert isinstance(fitted.classes_, np.ndarray) and list(fitted.classes_) == ["0", "1", "2"]


def test_columns_are_matched_by_name() -> None:
    order = ["sun", "sky", "sea"]
    fitted = classifier(hidden=100).fit(X, named(RELEVANT)[order], candidates=named(CANDIDATES))
    assert fitted.score(X, named(RELEVANT)[order]) == fitted.score(X, RELEVANT)
    with refused("expected the labels 'sky', 'sea', 'sun'"):
        fitted.score(X, named(RELEVANT).rename(columns={"sun": "dog"}))
    prior = pd.Series(PRIOR, index=NAMES)
    by_name = classifier(epochs=1, class_prior=prior[order]).fit(X, named(CANDIDATES))
    np.testing.assert_array_equal(by_name.class_prior_, PRIOR)
    many = [f"label {k}" for k in range(20)]
    with refused(r"missing: 'label 19'; not among them: 'other'\)"):
        match_names([*many[:19], "other"], many)


def test_rows_in_another_order_are_refused() -> None:
    frame, labels = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(CANDIDATES).add_prefix("l")
    moved = labels.set_axis(range(300, 600))
    model = classifier(epochs=1)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (frame.iloc[::-1], {"y": labels}, "rows in the same order; got DataFrames"),
        (frame, {"y": moved}, r"different indexes, 0 and .* at row 0\. .*set_index"),
        (frame, {"candidates": moved.rename("p{}".format)}, "different indexes"),
    ]
    for rows, given, message in wrong:
        with refused(message):
            model.fit(rows, **given)
    model.fit(frame, moved.to_numpy(), label_names=list(map(str, labels)))
    with refused("different indexes"):
        model.calibrate(frame, relevant=moved)
    scorer = functools.partial(candidate_scorer("hamming"), model)
    for use in (model.risk, model.score, scorer):
        with refused("different indexes|same order"):
            use(frame, moved)
        assert use(frame, labels[labels.columns[::-1]]) == pytest.approx(use(frame, labels))


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
    with refused("would fill a sparse X.*maxabs"):
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


def test_what_was_passed_is_not_changed() -> None:
    """A module is trained on from its weights."""
    torch.manual_seed(0)
    module = Own(5, 3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    fitted = classifier(model=module).fit(X, CANDIDATES)
    torch.testing.assert_close(dict(module.state_dict()), before)
    changed = fitted.module_.state_dict()["layers.0.weight"] - before["layers.0.weight"]
    assert 0 < changed.abs().max() < 1
    prior, never = PRIOR.copy(), CANDIDATES.copy()
    never[:, 1] = False
    with pytest.warns(ComesWarning):
        classifier(epochs=1, class_prior=prior).fit(X, never)
    np.testing.assert_array_equal(prior, PRIOR)


@pytest.mark.filterwarnings("ignore:The class prior of label:comes.errors.ComesWarning")
def test_one_label_and_one_row_are_not_errors() -> None:
    single = classifier(class_prior=PRIOR[:1]).fit(X, CANDIDATES[:, :1])
    assert single.predict(X).shape == (300, 1)
    with pytest.warns(ComesWarning, match="risk needs two labels"):
        classifier("comes-rl", class_prior=PRIOR[:1]).fit(X, CANDIDATES[:, :1])
    with pytest.warns(ComesWarning, match="excludes label"):
        one_row = classifier(class_prior=None).fit(X[:1], [[True, False, True]])
    assert one_row.predict_proba(X[:1]).shape == (1, 3)


# What it gives


@pytest.mark.filterwarnings("ignore:Label .* will hardly:comes.errors.ComesWarning")
def test_predictions_and_probabilities_agree_and_probabilities_fit_the_prior() -> None:
    for method, tolerance in (("comes-hl", 0.1), ("comes-rl", 1e-6)):
        clf = classifier(method, epochs=30, hidden=100, threshold="half").fit(X, CANDIDATES)
        probabilities, predictions = clf.predict_proba(X), clf.predict(X)
        assert predictions.dtype.kind == "i", method
        np.testing.assert_array_equal(predictions, probabilities > 0.5, err_msg=method)
        np.testing.assert_allclose(probabilities.mean(axis=0), PRIOR, atol=tolerance)
        assert (predictions != RELEVANT).mean() < 0.25, method


def test_same_seed_same_scores_and_another_seed_others(fitted: CandidateClassifier) -> None:
    again, other = (classifier(random_state=seed).fit(X, CANDIDATES) for seed in (0, 1))
    np.testing.assert_array_equal(fitted.decision_function(X), again.decision_function(X))
    assert (fitted.decision_function(X) != other.decision_function(X)).any()


def test_predictions_may_be_data_frames_with_the_names_of_the_labels() -> None:
    features = pd.DataFrame(X, columns=list("abcde")).rename("row {}".format)
    asked = classifier(epochs=1).set_output(transform="pandas")
    framed, plain = asked.fit(features, named(CANDIDATES).set_axis(features.index)), clone(asked)
    for use in ("predict", "predict_proba", "decision_function"):
        found = getattr(framed, use)(features)
        assert list(found.columns) == NAMES and found.index.equals(features.index)
        framed.set_output(transform="default")
        np.testing.assert_array_equal(found, getattr(framed, use)(features), err_msg=use)
        assert isinstance(getattr(framed, use)(features), np.ndarray)
        framed.set_output(transform="pandas")
    assert framed.score(features, named(RELEVANT).set_axis(features.index)) == average_precision(
        framed.decision_function(features).to_numpy(), RELEVANT
    )
    framed.set_output()  # changes nothing, and clones keep it
    for kept in (framed, plain.fit(X, CANDIDATES)):
        assert isinstance(kept.predict(X if kept is plain else features), pd.DataFrame)
    with refused("transform must be 'default' or 'pandas'; got 'polars'"):
        framed.set_output(transform="polars")


def test_copies_keep_scores_and_what_was_known() -> None:
    original = classifier(CCMN(flip_rate=0.5), threshold="f1").fit(X, CANDIDATES)
    for copy in (pickle.loads(pickle.dumps(original)), deepcopy(original)):
        np.testing.assert_array_equal(copy.decision_function(X), original.decision_function(X))
        np.testing.assert_array_equal(copy.predict(X), original.predict(X))
        np.testing.assert_array_equal(copy.class_prior_, PRIOR)
        np.testing.assert_array_equal(copy.flip_rate_, np.full(3, 0.5))
        assert copy.transition_ is None
    assert original.__getstate__()["module_"] is not original.module_  # which stays on its device
    assert not hasattr(clone(original), "class_prior_")


def loop_over_answers(
    p: Any, triples: Any, no: Any, yes: Any, mistake: float = 0.0, people: Any = None
) -> float:
    """Return the mean of log P(answer) over (row, label, answer, person), one by one."""
    total = []
    for row, label, answer, person in triples:
        a, b = (rate[label] for rate in (people or {}).get(person, (no, yes)))
        place = ["no", "yes", "maybe"].index(answer)
        if_irrelevant = (a, mistake, 1 - a - mistake * (b > 0))[place]
        if_relevant = (mistake, b, 1 - b - mistake * (a > 0))[place]
        eta = float(p[row, label])
        total.append(math.log((1 - eta) * if_irrelevant + eta * if_relevant))
    return math.fsum(total) / len(total)


def list_answers(answers: Answers) -> list[tuple[int, int, str, str]]:
    words = {1: "no", 2: "yes", 3: "maybe"}
    codes = answers.filled_codes
    return [(i, j, words[codes[i, j]], "") for i, j in zip(*np.nonzero(codes), strict=True)]


def test_the_score_of_answers_is_their_mean_log_likelihood() -> None:
    ticks = Answers.from_positives(ANSWERS.confirmed)
    candidates, nothing = Answers.from_candidates(CANDIDATES), np.zeros(3)
    cases: list[tuple[Answers, dict[str, Any], tuple[Any, ...]]] = [
        (ANSWERS, {"no": NO, "yes": YES}, (NO, YES)),
        (ANSWERS, {"no": NO, "yes": YES, "mistake": 0.05}, (NO, YES, 0.05)),
        (candidates, {"exclude": NO}, (NO, nothing)),
        (ticks, {"yes": YES}, (nothing, YES)),
    ]
    for answers, known, rates in cases:
        model = of_answers(rates=known).fit(X, answers)
        p = model.predict_proba(X).astype(np.float64)
        expected = loop_over_answers(p, list_answers(answers), *rates)
        assert model.score(X, answers) == pytest.approx(expected, rel=1e-9), known
        half = answers[:150]
        expected = loop_over_answers(p, list_answers(half), *rates)
        assert model.score(X[:150], half) == pytest.approx(expected, rel=1e-6), known


def test_the_score_of_several_annotators_is_that_of_each_answer() -> None:
    """With the rates of who gave it, and at least one mistake in a hundred."""
    rows, labels = RNG.integers(0, 300, 900), RNG.integers(0, 3, 900)
    words, people = RNG.choice(["no", "yes", "maybe"], 900), RNG.choice(["ann", "bob", "cy"], 900)
    long = pd.DataFrame({"row": rows, "label": labels, "answer": words, "person": people})
    long = long.drop_duplicates(["row", "label", "person"])
    answers = Answers.from_long(LongAnswers.read(*(long[name].tolist() for name in long)), (300, 3))
    own = {"ann": (NO, YES), "bob": (YES, NO)}
    known = {"no": NO, "yes": NO, "people": own}
    model = of_answers(rates=known).fit(X, answers)
    assert list(model.people_rates_) == ["ann", "bob"]
    p = model.predict_proba(X).astype(np.float64)
    expected = loop_over_answers(p, long.to_numpy(), NO, NO, 0.01, own)
    assert model.score(X, answers) == pytest.approx(expected, rel=1e-9)


def test_the_score_of_answers_without_rates() -> None:
    """With a class prior those that it implies; else every answer is taken at its word."""
    bce = classifier("bce", n_networks=1).fit(X, ANSWERS)
    p = bce.predict_proba(X).astype(np.float64)
    sure = [one for one in list_answers(ANSWERS) if one[2] != "maybe"]
    nearly = np.full(3, 1 - 1e-6)  # as rates are kept away from 1
    expected = loop_over_answers(p, sure, nearly, nearly)
    assert bce.score(X, ANSWERS) == pytest.approx(expected, rel=1e-6)
    comes = classifier().fit(X, CANDIDATES)
    rate = (~CANDIDATES).mean(axis=0) / (1 - PRIOR)
    p = comes.predict_proba(X).astype(np.float64)
    candidates = Answers.from_candidates(CANDIDATES)
    expected = loop_over_answers(p, list_answers(candidates), rate, np.zeros(3))
    assert comes.score(X, candidates) == pytest.approx(expected, rel=1e-9)
    with refused("the likelihood needs an answer; got none"):
        comes.score(X, Answers(no=0 * RELEVANT, yes=0 * RELEVANT))


# What it refuses


def test_a_failed_fit_leaves_an_earlier_one_as_it_was() -> None:
    clf = classifier(epochs=1).fit(X, CANDIDATES)
    scores = clf.decision_function(X)
    with refused("same number of rows"):
        clf.fit(X[:, :2], CANDIDATES[:50])
    clf.learning_rate = 1e30
    with refused("became"):
        clf.fit(X, CANDIDATES)
    np.testing.assert_array_equal(clf.decision_function(X), scores)
    never = classifier(learning_rate=1e30)
    with refused("became"):
        never.fit(X, CANDIDATES)
    assert not [name for name in vars(never) if name.endswith("_")]


def test_a_prior_that_cannot_be_is_a_warning() -> None:
    """As when complementary labels are passed for candidates."""
    cases: list[tuple[Any, Any, str]] = [
        ([0.9, 0.3, 0.2], CANDIDATES, "above the share of rows.*complementary="),
        (PRIOR, ~CANDIDATES, "prior of label '0' is above"),
        ([0.3, 0.0, 0.1], RELEVANT, "label '1' is 0: it is learned as never relevant"),
    ]
    for prior, given, message in cases:
        with pytest.warns(ComesWarning, match=message):
            classifier(epochs=1, class_prior=prior).fit(X, given)


def test_a_wrong_parameter_is_named_in_fit() -> None:
    by_label = "one number in .0, 1. for each of the 3 labels"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"class_prior": [0.1, 0.2]}, f"{by_label}; got"),
        ({"class_prior": [0.1, 0.2, 1.2]}, by_label),
        ({"class_prior": [0.1, 0.2, np.nan]}, by_label),
        ({"class_prior": "auto"}, f"{by_label}; got 'auto'"),
        ({"class_prior": [0, 0, 0]}, "got 0 for every one"),
        ({"model": "resnet"}, "'mlp', 'low_rank', 'linear', a module or a function.*got 'resnet'"),
        ({"scale": "minmax"}, "'maxabs' or None; got 'minmax'"),
        ({"optimizer": "adagrad"}, "sgd, adam, adamw.*got 'adagrad'"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1; got 0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number of at least 1; got 2.5"),
        ({"hidden": 0}, "hidden must be a whole number of at least 1; got 0"),
        ({"verbose": -2}, "verbose must be a whole number of at least -1; got -2"),
        ({"callbacks": 3}, "callbacks must be a function of a comes.training.TrainedEpoch"),
        ({"learning_rate": 0}, "a finite number above 0, else nothing is learned; got 0"),
        ({"learning_rate": "auto"}, "a finite number above 0, .*; got 'auto'"),
        ({"learning_rate": np.inf}, "learning_rate and weight_decay must be finite"),
        ({"learning_rate": -1.0}, "learning_rate and weight_decay must be finite"),
        ({"random_state": "a"}, "random_state must be a whole number.*; got 'a'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used here"),
    ]
    for options, message in wrong:
        with refused(message):
            classifier(**options).fit(X, CANDIDATES)


def test_bad_data_is_one_sentence() -> None:
    wrong: list[tuple[Any, Any, str]] = [
        (X[:10], CANDIDATES, "same number of rows; got 10 and 300"),
        (np.where(X > 2, np.nan, X), CANDIDATES, "contains NaN.*fill or drop"),
        (np.where(X > 2, np.inf, X), CANDIDATES, "contains infinity.*fill or drop"),
        (X, CANDIDATES * 2, "0 or 1; got 2"),
        (X, CANDIDATES[:, 0], "Unknown label type"),
        (X, None, "requires y to be passed"),
        (X[:, 0], CANDIDATES, "Expected 2D array"),
        (1e300 * X, CANDIDATES, "too large for float32"),
        (X + 1j, CANDIDATES, "Complex data not supported"),
        (X, np.ma.masked_array(CANDIDATES, ~CANDIDATES), "must not have masked entries"),
        (X, CANDIDATES.astype(str), "0 or 1; got 'True'"),
        (X, pd.DataFrame(CANDIDATES, columns=list("aba")), "'a' more than once"),
    ]
    for features, labels, message in wrong:
        with pytest.raises(ComesError, match=message) as raised:
            classifier().fit(features, labels)
        assert "\n" not in str(raised.value), message
    for labels, names, message in (
        (CANDIDATES, NAMES[:2], "must name each of 3 labels; got 2 names"),
        (CANDIDATES, ["a", "b", "a"], "'a' more than once"),
        (named(CANDIDATES), NAMES, "got a DataFrame, which names its columns"),
    ):
        with refused(message):
            classifier().fit(X, labels, label_names=names)


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
            with refused(message):
                clf.predict(data)
    with refused("contains NaN.*fill or drop"):
        plain.predict(sparse.csr_array(holes))
    tiny = classifier(epochs=1).fit(1e-20 * X, CANDIDATES)
    with refused("too large for float32 after scaling"):
        tiny.predict(np.full((1, 5), 1e30))


def test_an_unfitted_classifier_says_so() -> None:
    model = classifier()
    for use in (
        functools.partial(model.score, X, RELEVANT),
        functools.partial(model.cut_scores, X),
        functools.partial(model.squash_scores, RELEVANT),
    ):
        with pytest.raises(NotFittedError):
            use()
