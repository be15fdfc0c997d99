"""`CorrectedClassifier`: what it learns from answers with classifiers of scikit-learn."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from comes import AnswerRates, Answers, CandidateClassifier, CorrectedClassifier, load_model
from comes.answers.annotators import LongAnswers, State
from comes.estimator import corrected, skops_files
from comes.estimator.corrected import PRIOR_WEIGHT, correct
from comes.estimator.prepare import draw_seed
from comes.generation import independent, simulate_answers
from comes.selection import choose_thresholds
from comes.tables import ColumnEncoder
from mixed_tables import make_table
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
ETA = expit(3 * X[:, :3] - np.array([0.0, 1.0, 3.0]))
RELEVANT = RNG.random(ETA.shape) < ETA
PRIOR = ETA.mean(axis=0)
CANDIDATES = independent(RELEVANT, exclude_rate=0.5, seed=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.4, no_rate=0.9, yes_rate=0.6, seed=0)
KNOWN: dict[str, Any] = {"class_prior": PRIOR, "rates": {"no": 0.9, "yes": 0.6}}
EXCLUDE: dict[str, Any] = {"class_prior": PRIOR, "rates": {"exclude": 0.5}}


class Oracle(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Knows how often an answer is given about a row whose feature is eta."""

    def __init__(self, a: float = 0.0, b: float = 0.0) -> None:
        self.a, self.b = a, b

    def fit(self, X: Any, y: Any) -> "Oracle":
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        eta = X[:, 0]
        no, yes = self.a * (1 - eta), self.b * eta
        return np.stack([1 - no - yes, no, yes, 1 - no - yes], axis=1)[:, self.classes_]


def make_shares(eta: Any, a: Any, b: Any, f: float = 0.0) -> Any:
    """Return how often each answer is given, (4, n, q)."""
    no, yes = a * (1 - eta) + f * eta, b * eta + f * (1 - eta)
    return np.stack([np.zeros_like(eta), no, yes, 1 - no - yes])


# The correction


def test_exact_shares_give_back_the_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corrected, "PRIOR_WEIGHT", 0.0)
    prior = np.full(3, 0.5)
    for a, b, f in ((0.9, 0.6, 0), (0.3, 0.8, 0), (0.5, 0, 0), (0, 0.4, 0), (0.7, 0.7, 0.1)):
        rates = AnswerRates(np.full(3, a), np.full(3, b), f)
        found = correct(make_shares(ETA, a, b, f), rates, prior)
        np.testing.assert_allclose(found, ETA, atol=1e-9, err_msg=f"{a} {b} {f}")


def test_the_correction_maximises_the_likelihood_of_the_answers() -> None:
    """Of any shares, also those that no probability explains, against a search pair by pair."""
    n, a, b, prior = 5, np.array([0.9, 0.3, 0.5, 0.0]), np.array([0.6, 0.8, 0.0, 0.4]), 0.2
    shares = np.zeros((4, n, 4))
    shares[1:] = RNG.dirichlet(np.ones(3), (n, 4)).transpose(2, 0, 1)
    shares[State.NO, :, 3] = shares[State.YES, :, 2] = 0
    found = correct(shares, AnswerRates(a, b), np.full(4, prior))
    for i in range(n):
        for j in range(4):

            def loss(eta: float, i: int = i, j: int = j) -> float:
                no, yes = a[j] * (1 - eta), b[j] * eta
                given = np.array([no, yes, 1 - no - yes])
                total = xlogy(shares[1:, i, j], np.maximum(given, 1e-300)).sum()
                sure = prior * np.log(eta) + (1 - prior) * np.log(1 - eta)
                return -float(total + PRIOR_WEIGHT * sure)

            best = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded").x
            assert found[i, j] == pytest.approx(best, abs=1e-4), (i, j)


def test_equal_rates_leave_yes_among_sure_answers_and_candidates_one_minus_the_share() -> None:
    shares = make_shares(np.array([[0.3]]), 0.8, 0.8)
    shares[State.YES] *= 2  # maybe says nothing where the rates are equal
    rates, prior = AnswerRates(np.array([0.8]), np.array([0.8])), np.array([0.3])
    assert correct(shares, rates, prior)[0, 0] == pytest.approx(0.6 / 1.3, abs=0.01)
    shares[1:, 0, 0] = 0.2, 0, 0.8
    rates = AnswerRates(np.array([0.5]), np.array([0.0]))
    assert correct(shares, rates, prior)[0, 0] == pytest.approx(1 - 0.2 / 0.5, abs=0.01)


def test_what_is_above_the_rate_still_ranks_and_what_is_unknown_is_the_prior() -> None:
    shares = np.zeros((4, 4, 1))
    shares[State.NO, :3, 0] = 0.6, 0.7, 1
    shares[State.MAYBE] = 1 - shares[State.NO]
    shares[:, 3] = [[1], [0], [0], [0]]  # nobody was asked
    found = correct(shares, AnswerRates(np.array([0.5]), np.array([0.0])), np.array([0.1]))[:, 0]
    assert 0.02 > found[0] > found[1] > found[2] > 0
    assert found[3] == pytest.approx(0.1)


# Fits


@pytest.mark.parametrize("kind", ["candidates", "complementary", "answers", "positives"])
def test_known_rates_recover_the_probabilities(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle's exactly, but for the prior; those of trees better than the prior does."""
    monkeypatch.setattr(corrected, "PRIOR_WEIGHT", 1e-6)
    rows = np.concatenate([ETA[:, :1], X], axis=1)
    truth = RELEVANT[:, :1]
    named: dict[str, Any]
    if kind == "answers":
        said = simulate_answers(truth, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)
        named, rates = {"answers": said}, {"no": 0.9, "yes": 0.6}
    elif kind == "positives":
        ticked = truth & (RNG.random(truth.shape) < 0.4)
        named, rates = {"answers": Answers.from_positives(ticked)}, {"yes": 0.4}
    else:
        candidates = independent(truth, exclude_rate=0.5, seed=1)
        rates = {"exclude": 0.5}
        named = {kind: candidates if kind == "candidates" else ~candidates}
    a, b = rates.get("no", rates.get("exclude", 0.0)), rates.get("yes", 0.0)
    clf = CorrectedClassifier(Oracle(a, b), class_prior=PRIOR[:1], rates=rates).fit(rows, **named)
    np.testing.assert_allclose(clf.predict_proba(rows), ETA[:, :1], atol=1e-3)
    np.testing.assert_array_equal(clf.predict(rows), clf.predict_proba(rows) > 0.5)
    forest = CorrectedClassifier(class_prior=PRIOR[:1], rates=rates, random_state=0)
    found = forest.fit(X[:400], **{k: v[:400] for k, v in named.items()}).predict_proba(X[400:])
    assert np.abs(found - ETA[400:, :1]).mean() < 0.8 * np.abs(PRIOR[0] - ETA[400:, :1]).mean()


@pytest.mark.filterwarnings("ignore:The rates of answers are uncertain")
def test_rates_and_priors_are_those_of_the_default() -> None:
    default = CandidateClassifier(epochs=1, hidden=2, n_networks=1, random_state=0)
    clf = CorrectedClassifier(GaussianNB(), random_state=0).fit(X, ANSWERS)
    default.fit(X, ANSWERS)
    for name in ("class_prior_", "no_rate_", "yes_rate_", "class_prior_error_"):
        found, expected = getattr(clf, name), getattr(default, name)
        assert np.abs(found - expected).max() < 1e-6, name


@pytest.mark.parametrize("base", [RandomForestClassifier(10), KNeighborsClassifier()])
def test_labels_with_the_same_rows_are_learned_in_one_fit(base: Any) -> None:
    clf = CorrectedClassifier(base, random_state=0, **EXCLUDE).fit(X, CANDIDATES)
    assert len(clf.estimators_) == 1 and clf.base is base and not hasattr(base, "classes_")
    alone = CorrectedClassifier(base, random_state=0, class_prior=PRIOR[:1], rates={"exclude": 0.5})
    found = alone.fit(X, CANDIDATES[:, :1]).predict_proba(X)
    if isinstance(base, KNeighborsClassifier):  # the same neighbours
        np.testing.assert_allclose(clf.predict_proba(X)[:, :1], found, atol=1e-9)
    sure = Answers(no=~RELEVANT, yes=RELEVANT)
    clf = CorrectedClassifier(base, **KNOWN)
    assert len(clf.fit(X, sure).estimators_) == 1 and len(clf.fit(X, ANSWERS).estimators_) == 3


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_network_of_all_labels_and_an_ensemble_of_one_agree_about_classes() -> None:
    network = CorrectedClassifier(MLPClassifier(max_iter=20), random_state=0, **EXCLUDE)
    assert len(network.fit(X, CANDIDATES).estimators_) == 1
    assert network.score(X, RELEVANT) > 0.7
    by_label = CorrectedClassifier(HistGradientBoostingClassifier(max_iter=10), **EXCLUDE)
    assert len(by_label.fit(X, CANDIDATES).estimators_) == 3


def test_only_asked_pairs_count_and_every_person_does() -> None:
    """Rows that nobody was asked about change nothing; two answers about one pair are two rows."""
    known: dict[str, Any] = {"class_prior": [0.5], "rates": {"no": 0.9, "yes": 0.9}}
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0)
    clf = CorrectedClassifier(tree, **known)
    answers = Answers.from_codes([[1], [1], [2], [2], [0], [0]])
    rows = np.array([[0.0], [1], [2], [3], [9], [-9]])
    found = clf.fit(rows, answers).predict_proba(rows[:4])
    np.testing.assert_allclose(found, clf.fit(rows[:4], answers[:4]).predict_proba(rows[:4]))
    assert (np.diff(found[:, 0]) >= 0).all() and found[0, 0] < 0.1 < 0.9 < found[3, 0]
    words, people = ["no", "yes", "yes", "no", "no", "yes"], ["ann", "bob"] * 3
    long = LongAnswers.read([0, 0, 1, 2, 2, 3], [0] * 6, words, people)
    several = Answers.from_long(long, (4, 1))
    single = Answers.from_codes([[1], [2], [2], [1], [1], [2]])
    found = clf.fit(rows[:4], several).predict_proba(rows)
    repeated = clf.fit(rows[[0, 0, 1, 2, 2, 3]], single).predict_proba(rows)
    np.testing.assert_allclose(found, repeated, atol=0.05)


@pytest.mark.filterwarnings("ignore:(Every|Nobody|No row)")
def test_labels_whose_answers_are_all_the_same() -> None:
    codes = np.tile(np.array([1, 2, 3, 0, 0], dtype=np.int8), (60, 1))
    codes[:, 4] = np.where(X[:60, 0] > 0, 2, 1)
    prior = [0.2, 0.7, 0.3, 0.4, 0.5]
    clf = CorrectedClassifier(GaussianNB(), class_prior=prior, rates={"no": 0.8, "yes": 0.8})
    found = clf.fit(X[:60], Answers.from_codes(codes)).predict_proba(X)
    assert clf.estimators_[:4] == [State.NO, State.YES, State.MAYBE, State.NOT_ASKED]
    assert (found[:, 0] < 0.01).all() and (found[:, 1] > 0.99).all()
    np.testing.assert_allclose(found[:, 3], 0.4)
    assert np.isfinite(clf.decision_function(X)).all()
    candidates = np.ones((60, 2), dtype=bool)
    candidates[:, 1] = X[:60, 0] > 0
    forest = CorrectedClassifier(RandomForestClassifier(10), class_prior=[0.9, 0.5])
    assert (forest.fit(X[:60], candidates).predict(X[:60])[:, 0] == 1).all()


def test_sparse_features_and_bases_that_take_none() -> None:
    rows = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    wide = rows.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for base in (RandomForestClassifier(5), HistGradientBoostingClassifier(max_iter=5)):
        clf = CorrectedClassifier(base, random_state=0, **EXCLUDE)
        expected = clf.fit(rows.toarray(), CANDIDATES).predict_proba(rows.toarray())
        found = clf.fit(wide, CANDIDATES).predict_proba(wide)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert wide.indices.dtype == np.int64
        top = clf.predict_top(wide, 3)
        np.testing.assert_allclose(top.to_csr().toarray(), expected, atol=1e-9)


def test_tables_are_encoded_or_left_to_the_base() -> None:
    table, relevant = make_table(200)
    candidates = independent(relevant, exclude_rate=0.5, seed=0)
    forest = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
    known: dict[str, Any] = {"class_prior": relevant.mean(axis=0), "rates": {"exclude": 0.5}}
    encoded = CorrectedClassifier(forest, **known).fit(table, candidates)
    assert encoded.score(table, relevant) > 0.8 and encoded.encoder_.n_features > 10
    pipeline = make_pipeline(ColumnEncoder(), forest)
    own = CorrectedClassifier(pipeline, encode=False, **known).fit(table, candidates)
    np.testing.assert_allclose(own.predict_proba(table), encoded.predict_proba(table))


def test_weights_reach_the_base() -> None:
    weight = np.where(X[:, 0] > 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    for base in (GaussianNB(), make_pipeline(StandardScaler(with_std=False), GaussianNB())):
        clf = CorrectedClassifier(base, **KNOWN)
        found = clf.fit(X, ANSWERS, sample_weight=weight).decision_function(X)
        repeated = clf.fit(X[rows], ANSWERS[rows]).decision_function(X)
        plain = clf.fit(X, ANSWERS).decision_function(X)
        assert np.abs(found - repeated).max() < 0.1 * np.abs(found - plain).max()
    with refused("^KNeighborsClassifier takes no sample_weight"):
        CorrectedClassifier(KNeighborsClassifier(), **KNOWN).fit(X, ANSWERS, sample_weight=weight)


def test_the_default_base_and_random_states() -> None:
    few: dict[str, Any] = {"class_prior": PRIOR, "rates": {"exclude": 0.1}}
    candidates = independent(RELEVANT, exclude_rate=0.1, seed=0)
    clf = CorrectedClassifier(random_state=0, **few).fit(X, candidates)
    assert clf.base_.min_samples_leaf == 10 and clf.base_.n_estimators == 200
    assert clone(clf).set_params(**EXCLUDE).fit(X, CANDIDATES).base_.min_samples_leaf == 3
    forest = CorrectedClassifier(RandomForestClassifier(5), random_state=0, **EXCLUDE)
    found = [clone(forest).fit(X, CANDIDATES).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    own = CorrectedClassifier(RandomForestClassifier(5, random_state=7), random_state=0, **EXCLUDE)
    assert own.fit(X, CANDIDATES).base_.random_state == 7


# scikit-learn


def test_clones_searches_and_cross_validation_reach_the_base() -> None:
    clf = CorrectedClassifier(DecisionTreeClassifier(), random_state=0, **EXCLUDE)
    assert clone(clf).get_params()["base__max_depth"] is None
    grid = {"base__max_depth": [1, 4]}
    search = GridSearchCV(clf, grid, cv=3).fit(X, RELEVANT, candidates=CANDIDATES)
    assert search.best_params_ == {"base__max_depth": 4}
    params = {"candidates": CANDIDATES}
    known: dict[str, Any] = {"params": params, "cv": 3, "method": "predict_proba"}
    found = cross_val_predict(clf, X, RELEVANT, **known)
    assert found.shape == (600, 3) and 0 <= found.min() < found.max() <= 1
    answers = CorrectedClassifier(GaussianNB(), **KNOWN)
    assert cross_val_predict(answers, X, ANSWERS, cv=3).shape == (600, 3)


def test_score_is_the_likelihood_of_answers_or_the_precision_of_the_truth() -> None:
    clf = CorrectedClassifier(GaussianNB(), **KNOWN).fit(X[:400], ANSWERS[:400])
    p, codes = clf.predict_proba(X[400:]), ANSWERS[400:].codes
    total = []
    for i, j in zip(*np.nonzero(codes), strict=True):
        no, yes = 0.9 * (1 - p[i, j]), 0.6 * p[i, j]
        total.append(np.log({1: no, 2: yes, 3: 1 - no - yes}[int(codes[i, j])]))
    assert clf.score(X[400:], ANSWERS[400:]) == pytest.approx(np.mean(total))
    assert clf.score(X[400:], RELEVANT[400:]) > 0.8


def test_thresholds_frames_and_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    named: dict[str, Any] = {"candidates": CANDIDATES, "label_names": ["x", "y", "z"]}
    clf = CorrectedClassifier(GaussianNB(), threshold="prior", random_state=0, **EXCLUDE)
    predicted = clf.fit(frame, **named).set_output(transform="pandas").predict(frame)
    assert list(predicted.columns) == ["x", "y", "z"] == list(clf.classes_)
    np.testing.assert_allclose(predicted.mean(axis=0), PRIOR, atol=0.06)
    out_of_fold = np.empty((600, 3))
    for kept, held in KFold(3, shuffle=True, random_state=draw_seed(0)).split(X):
        part = clone(clf).set_params(threshold="auto").fit(frame.iloc[kept], CANDIDATES[kept])
        out_of_fold[held] = part.decision_function(frame.iloc[held])
    expected = choose_thresholds(out_of_fold, CANDIDATES, PRIOR, "prior")
    np.testing.assert_allclose(clf.threshold_, expected)
    assert clf.count_seen_rows(frame[:9]) == 9
    scores = clf.decision_function(frame)
    pd.testing.assert_frame_equal(clf.decision_function(frame[list("dcba")]), scores)
    top = clf.predict_top(frame, 2).labels
    np.testing.assert_array_equal(top[:, 0], scores.to_numpy().argmax(axis=1))


def test_errors_say_what_to_do() -> None:
    def fit(base: Any = None, **settings: Any) -> Any:
        return CorrectedClassifier(base, **EXCLUDE | settings).fit(X, CANDIDATES)

    with refused(r"predict_proba, and RidgeClassifier has none.*CalibratedClassifierCV"):
        fit(RidgeClassifier())
    with refused(r"a classifier of scikit-learn.*got <class"):
        fit(RandomForestClassifier)
    with refused(r"CalibratedClassifierCV could not learn label '0' from its 600 answers: .*400"):
        fit(CalibratedClassifierCV(cv=400))
    with refused("threshold must be one of"):
        fit(threshold="high")
    with refused("same number of rows"):
        CorrectedClassifier().fit(X[:9], CANDIDATES)
    with refused("require_candidates=True"):
        CorrectedClassifier(require_candidates=True).fit(X, CANDIDATES)
    with refused("learned from rows that all count the same"):
        clf = CorrectedClassifier(GaussianNB(), threshold="f1", **EXCLUDE)
        clf.fit(X, CANDIDATES, sample_weight=np.ones(600))


def test_a_fit_that_fails_leaves_the_classifier_as_it_was() -> None:
    clf = CorrectedClassifier(GaussianNB(), **EXCLUDE).fit(X, CANDIDATES)
    expected = clf.predict_proba(X)
    with refused("same number of rows"):
        clf.fit(X[:9, :2], CANDIDATES)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


# Files


@pytest.mark.needs("skops")
@pytest.mark.parametrize("base", [None, LogisticRegression()])
def test_a_saved_model_comes_back(base: Any, tmp_path: Path) -> None:
    table, relevant = make_table(120)
    candidates = independent(relevant, exclude_rate=0.5, seed=0)
    known: dict[str, Any] = {"class_prior": relevant.mean(axis=0), "rates": {"exclude": 0.5}}
    clf = CorrectedClassifier(base, random_state=0, **known).fit(table, candidates)
    with pytest.warns(match="were trained on"):
        clf.calibrate(table, relevant=relevant)
    clf.set_output(transform="pandas").save(tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert isinstance(loaded, CorrectedClassifier)
    pd.testing.assert_frame_equal(loaded.predict_proba(table), clf.predict_proba(table))
    assert loaded.score(table, relevant) == clf.score(table, relevant)
    assert clone(loaded).get_params().keys() == clf.get_params().keys()


@pytest.mark.needs("skops")
def test_files_that_may_do_harm_are_refused(tmp_path: Path) -> None:
    from skops import io

    path = tmp_path / "model.skops"
    clf = CorrectedClassifier(Oracle(0.5), class_prior=PRIOR[:1], rates={"exclude": 0.5})
    clf.fit(ETA[:, :1], CANDIDATES[:, :1]).save(path)
    name = f"{Oracle.__module__}.Oracle"
    with refused(rf"may do harm.*{name}.*trusted=\['{name}'\]"):
        load_model(path)
    loaded = CorrectedClassifier.load(path, trusted=[name])
    np.testing.assert_array_equal(loaded.predict(ETA[:, :1]), clf.predict(ETA[:, :1]))
    path.write_bytes(b"PK" + bytes(99))
    with refused("not a saved model, or a damaged one"):
        load_model(path)
    io.dump(GaussianNB(), path)
    with refused("it holds a GaussianNB"):
        load_model(path)
    with refused("is no file"):
        CorrectedClassifier.load(tmp_path)


def test_a_tree_that_leads_out_of_itself_is_found() -> None:
    forest = RandomForestClassifier(3, random_state=0).fit(X, CANDIDATES.astype(int))
    trees = list(skops_files._find_trees({"estimators_": [forest]}))
    assert len(trees) == 3
    for tree in trees:
        skops_files._check_tree(tree)
    for name, value in (("left_child", 10**6), ("right_child", 0), ("feature", 4)):
        state = trees[0].__getstate__()
        state["nodes"] = state["nodes"].copy()
        state["nodes"][name][0] = value
        broken = type(trees[0])(4, np.full(3, 2), 3)
        broken.__setstate__(state)
        with pytest.raises(ValueError, match="leads out"):
            skops_files._check_tree(broken)


def test_without_skops_saving_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "skops":
            raise ImportError("no", name="skops")
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    clf = CorrectedClassifier(GaussianNB(), **EXCLUDE).fit(X, CANDIDATES)
    with refused(r"need skops.*pip install 'comes\[trees\]'"):
        clf.save(tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
