"""``sample_weight`` of `CandidateClassifier`: a row of weight k is k rows, wherever rows count."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from comes import Answers, CandidateClassifier
from comes.errors import ComesError
from comes.estimator.rates import reweight_prior
from comes.estimator.scaling import fit_scaling
from comes.generation import case_a, case_b
from comes.methods import CCMN, METHODS, Counts, CustomRisk, Method
from comes.models import linear
from comes.risks import BceRisk, HammingRisk
from comes.training import TrainOptions, make_optimizer, train

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 4)) * [1, 2, 3, 4]
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(N, 3)) > [0.0, 0.5, 1.0]
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
ANSWERS = Answers(
    no=~RELEVANT & (RNG.random((N, 3)) < 0.4),
    yes=RELEVANT & (RNG.random((N, 3)) < 0.4),
)
TIMES = RNG.integers(0, 5, N)
COPIES = np.repeat(np.arange(N), TIMES)
PRIOR = [0.5, 0.4, 0.3]
ONE_BATCH: dict[str, Any] = {
    "epochs": 12,
    "batch_size": 10**6,
    "dropout": 0.0,
    "hidden": 8,
    "random_state": 0,
    "class_prior": PRIOR,
}


def own(scores: Any, candidates: Any) -> Any:
    return (scores - candidates.float()).square().mean()


def own_weighted(scores: Any, candidates: Any, sample_weight: Any = None) -> Any:
    each = (scores - candidates.float()).square().mean(dim=1)
    return each.mean() if sample_weight is None else each @ sample_weight / sample_weight.sum()


def list_variants() -> Iterator[Method]:
    """Give every method that neither draws a label of each row nor estimates a matrix of them."""
    for known in METHODS.values():
        for variant in known.variants or (None,):
            method = clone(known).set_params(**{"variant": variant} if variant else {})
            if isinstance(method, CCMN):
                method.set_params(flip_rate=0.5)
            if not (method.keeps_one_excluded or method.needs_transition):
                yield method
    yield CustomRisk(own_weighted)


@pytest.mark.filterwarnings("ignore:Method .* takes candidates only")
@pytest.mark.parametrize("method", [*list_variants()], ids=str)
def test_in_one_batch_a_row_of_weight_k_trains_as_k_rows(method: Method) -> None:
    for labels in (Answers.from_candidates(CANDIDATES), ANSWERS):
        rates = {"no": 0.8, "yes": 0.7} if method.needs_rates and labels is ANSWERS else None
        n_networks = None if method.needs_class_prior else 2
        clf: Any = CandidateClassifier(method, **ONE_BATCH, rates=rates, n_networks=n_networks)
        weighted = clf.fit(X, answers=labels, sample_weight=TIMES).decision_function(X)
        level, scale = clf.score_offset_, clf.scaling_.scale
        repeated = clf.fit(X[COPIES], answers=labels[COPIES]).decision_function(X)
        # A linear model is trained to its end in steps that depend on rounding.
        near = 2e-3 if method.training["model"] == "wide_and_deep" else 2e-4
        np.testing.assert_allclose(weighted, repeated, atol=near, err_msg=labels.kind)
        np.testing.assert_allclose(level, clf.score_offset_, atol=2e-4, err_msg=labels.kind)
        np.testing.assert_allclose(scale, clf.scaling_.scale, rtol=1e-9, err_msg=labels.kind)
        plain = clf.fit(X, answers=labels).decision_function(X)
        assert np.abs(plain - repeated).max() > 0.01, f"the weights change nothing: {labels.kind}"


def test_rows_of_weight_0_are_left_out() -> None:
    clf = CandidateClassifier("comes-hl", epochs=2, hidden=8, random_state=0, class_prior=PRIOR)
    kept = TIMES > 0
    weighted = clf.fit(X, CANDIDATES, sample_weight=kept).predict_proba(X)
    apart = clf.fit(X[kept], CANDIDATES[kept]).predict_proba(X)
    np.testing.assert_allclose(weighted, apart, atol=1e-6)


def test_the_risk_of_an_epoch_is_that_of_all_rows_however_they_are_divided() -> None:
    weight = torch.tensor(TIMES + 0.5).float()
    counts = Counts.of(Answers.from_candidates(CANDIDATES), weight.double().numpy())
    share = torch.tensor(counts.exclude_share).float()
    by_dataset = HammingRisk(torch.tensor(PRIOR), exclude_share=share, correction=torch.positive)
    model, rows, candidates = linear(4, 3), torch.tensor(X).float(), torch.tensor(CANDIDATES)
    still = make_optimizer("sgd", learning_rate=0.0)
    for risk, size in product((BceRisk(), by_dataset), (7, 16, 50, N)):
        expected = float(risk(model(rows), candidates, weight).detach())
        options = TrainOptions(still, epochs=1, batch_size=size)
        history = train(model, rows, candidates, risk, options, sample_weight=weight)
        assert history.risk[0] == pytest.approx(expected, rel=1e-4), (risk, size)


def test_weighted_counts_are_counts_of_repeated_rows() -> None:
    for answers in (ANSWERS, Answers.from_candidates(CANDIDATES)):
        weighted, repeated = Counts.of(answers, TIMES.astype(float)), Counts.of(answers[COPIES])
        assert weighted.n == repeated.n == TIMES.sum()
        np.testing.assert_allclose(weighted.possible, repeated.possible)
        if answers is ANSWERS:
            assert weighted.asked is not None and repeated.asked is not None
            np.testing.assert_allclose(weighted.asked, repeated.asked)
        halves = Counts.of(answers[: N // 2]) + Counts.of(answers[N // 2 :])
        np.testing.assert_allclose(halves.possible, Counts.of(answers).possible)


@pytest.mark.parametrize("kind", ["candidates", "no and yes", "positives"])
def test_an_estimated_prior_is_carried_over_to_the_weighted_rows(kind: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.random(60_000)
    relevant = rng.random((60_000, 2)) < np.stack([x, 0.2 + 0.3 * x], axis=1)
    weight = 3 * x  # heavy rows are more often relevant
    if kind == "candidates":
        answers = Answers.from_candidates(case_a(relevant, 0.6, seed=0))
    else:
        no = ~relevant & (rng.random(relevant.shape) < 0.5) & (kind != "positives")
        yes = relevant & (rng.random(relevant.shape) < 0.3)
        answers = Answers(no=no, yes=yes, maybe=~(no | yes))
        if kind == "positives":
            answers = Answers.from_positives(yes)
    plain, weighted = relevant.mean(axis=0), np.average(relevant, axis=0, weights=weight)
    assert (weighted - plain > 0.04).all()
    np.testing.assert_allclose(reweight_prior(plain, answers, weight), weighted, atol=0.015)
    np.testing.assert_allclose(reweight_prior(plain, answers, np.ones(60_000)), plain)


def test_an_estimated_prior_of_a_weighted_fit_is_that_of_the_weighted_rows() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(3000, 3))
    relevant = features[:, :2] > 0.3
    candidates = case_b(relevant, 0.8, seed=0)
    weight = np.where(features[:, 0] > 0, 4.0, 1.0)
    clf = CandidateClassifier(epochs=1, hidden=4, n_networks=1, random_state=0)
    clf.fit(features, candidates, sample_weight=weight)
    plain = clone(clf).fit(features, candidates)
    assert clf.class_prior_ is not None
    expected = np.average(relevant, axis=0, weights=weight)
    np.testing.assert_allclose(clf.class_prior_, expected, atol=0.08)
    assert abs(clf.class_prior_ - relevant.mean(axis=0))[0] > 0.15
    assert clf.no_rate_ is not None and plain.no_rate_ is not None
    np.testing.assert_allclose(clf.no_rate_, plain.no_rate_, atol=0.01)  # of who answers


def test_scaling_counts_rows_with_their_weights() -> None:
    for how in ("rows", "columns", "standard", "centre", "maxabs"):
        weighted = fit_scaling(X[TIMES > 0], how, TIMES[TIMES > 0].astype(float))
        repeated = fit_scaling(X[COPIES], how)
        np.testing.assert_allclose(weighted(X), repeated(X), atol=1e-6, err_msg=how)


def test_weights_go_through_a_pipeline_and_early_stopping() -> None:
    weight = pd.Series(TIMES, index=[f"row {i}" for i in range(N)])
    clf = CandidateClassifier("bce", epochs=2, hidden=4, random_state=0, early_stopping=True)
    pipe = make_pipeline(StandardScaler(), clf)
    pipe.fit(X, CANDIDATES, candidateclassifier__sample_weight=weight)
    assert len(clf.history_.validation) == 2


def test_what_cannot_be_weighted_is_said() -> None:
    wrong: list[tuple[Any, str]] = [
        (np.ones(5), r"one number for each of the 120 rows; got shape \(5,\)"),
        (np.where(np.arange(N) == 3, -1.0, 1.0), "at least 0; got -1 for row 3"),
        (np.where(np.arange(N) == 4, np.nan, 1.0), "got nan for row 4"),
        (np.zeros(N), "above 0 for some row; got zero for all"),
        (["much"] * N, "must hold one number"),
    ]
    settings: list[tuple[dict[str, Any], str]] = [
        ({"threshold": "f1"}, "threshold='f1' is learned .* take 'auto'"),
        ({"method": own}, r"by that name, risk\(scores, candidates, sample_weight=None\)"),
    ]
    cases = [*(({}, *one) for one in wrong), *((given, TIMES, text) for given, text in settings)]
    for given, weight, message in cases:
        with pytest.raises(ComesError, match=message):
            CandidateClassifier(epochs=1, class_prior=PRIOR, **given).fit(
                X, CANDIDATES, sample_weight=weight
            )


def test_the_standard_of_scikit_learn_on_labels_that_are_all_known() -> None:
    """A weighted fit on known labels is as near to logistic regression as a plain one."""
    weight = RNG.random(N) * 3
    known = RELEVANT[:, :1]
    clf = CandidateClassifier(
        "bce", model="linear", epochs=800, batch_size=N, learning_rate=0.5, weight_decay=0.0
    )
    clf.set_params(random_state=0, scale="standard")
    scores = clf.fit(X, known, sample_weight=weight).decision_function(X)[:, 0]
    with np.errstate(all="ignore"):
        exact = LogisticRegression(C=1e6, max_iter=10_000).fit(X, known[:, 0], sample_weight=weight)
        plain = LogisticRegression(C=1e6, max_iter=10_000).fit(X, known[:, 0])
    ours, theirs, unweighted = (
        found / found.std()
        for found in (scores, exact.decision_function(X), plain.decision_function(X))
    )
    assert np.abs(ours - theirs).max() < np.abs(ours - unweighted).max()
