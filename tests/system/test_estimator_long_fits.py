"""Fits as long as by default: what is estimated on the way, and what is said of the result."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from comes import Answers, CandidateClassifier
from comes.answers import State
from comes.errors import ComesWarning
from comes.estimator import fit_together
from comes.generation import case_b, independent, simulate_answers
from comes.methods import METHODS
from comes.metrics import average_precision
from comes.priors import ClassPriorEstimate

N = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(N, 3)) > np.array([0.0, 0.5, 1.0])
PRIOR = RELEVANT.mean(axis=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)
NO_YES = Answers(no=ANSWERS.excluded, maybe=ANSWERS.confirmed | ANSWERS.doubtful)
CANDIDATES = independent(RELEVANT, 0.5, seed=1)
VARIANTS = [(name, one) for name, method in METHODS.items() for one in method.variants or (None,)]


def fit(answers: Any, *, clean: Any = None, **settings: Any) -> Any:
    settings = {"epochs": 2, "hidden": 16, "random_state": 0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        return CandidateClassifier(**settings).fit(X, answers, clean=clean)


def test_rates_and_priors_of_answers_are_estimated_with_an_error() -> None:
    fitted = fit(ANSWERS)
    assert abs(fitted.no_rate_ - 0.9).max() < 0.1
    assert abs(fitted.yes_rate_ - 0.6).max() < 0.15
    assert abs(fitted.class_prior_ - PRIOR).max() < 0.1
    assert (fitted.class_prior_error_ > 0).all()


def test_a_clean_sample_sharpens_class_prior_and_rates() -> None:
    rows = slice(0, 400)
    blind, prior_only = fit(ANSWERS), fit(ANSWERS, clean=(X[rows], RELEVANT[rows]))
    both = fit(ANSWERS, clean=(X[rows], RELEVANT[rows], ANSWERS[rows]))
    for sharp in (prior_only, both):
        assert (sharp.class_prior_error_ < blind.class_prior_error_).all()
        ends = np.stack([blind.class_prior_, RELEVANT[rows].mean(axis=0)])
        assert (ends.min(axis=0) - 0.01 < sharp.class_prior_).all()
        assert (sharp.class_prior_ < ends.max(axis=0) + 0.01).all()
    np.testing.assert_array_equal(prior_only.no_rate_, blind.no_rate_)
    assert not np.array_equal(both.no_rate_, blind.no_rate_)
    asked = ANSWERS[rows].codes != State.NOT_ASKED
    counted = ANSWERS[rows].excluded.sum() / (asked & ~RELEVANT[rows]).sum()
    assert abs(both.no_rate_ - counted).mean() <= abs(blind.no_rate_ - counted).mean() + 1e-3


def test_an_estimate_of_ones_own_is_worth_what_ours_is() -> None:
    """Where nobody said yes, a prior that is known keeps mean probabilities near it."""
    own = fit(NO_YES)
    prior, error = own.class_prior_, own.class_prior_error_
    passed = ClassPriorEstimate(prior, prior, prior, prior, error, ("ok",) * 3)
    scores = own.decision_function(X)
    np.testing.assert_array_equal(fit(NO_YES, class_prior=passed).decision_function(X), scores)
    known = fit(NO_YES, class_prior=prior).decision_function(X)
    assert not np.array_equal(known, scores)


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_variant_learns_from_candidates(name: str, variant: str | None) -> None:
    method = clone(METHODS[name]).set_params(**{"variant": variant} if variant else {})
    settings: dict[str, Any] = {"class_prior": PRIOR, "epochs": 30, "batch_size": 50}
    fitted = fit(CANDIDATES, method=method, hidden=500, **settings)
    is_of_the_paper = method.paper_rank is not None and name != "mlcl"
    is_default = variant in (None, *method.variants[:1])
    least = 0.9 if is_of_the_paper and is_default else 0.7 if name == "mlcl" else 0.8
    assert average_precision(fitted.decision_function(X), RELEVANT) > least
    assert fitted.history_.risk[-1] < fitted.history_.risk[0]


def test_a_sound_fit_gives_no_warning() -> None:
    candidates = case_b(RELEVANT, exclude_rate=0.5)
    for method in ("likelihood", "comes-hl"):
        clf = CandidateClassifier(method, class_prior=PRIOR, epochs=300, random_state=0)
        assert clf.fit(X, candidates).history_.warnings == [], method


def test_sparse_rows_go_to_two_workers() -> None:
    data = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
    settings: dict[str, Any] = {"class_prior": PRIOR, "device": "cpu", "epochs": 2, "hidden": 8}
    given = [CandidateClassifier("comes-hl", random_state=k, **settings) for k in range(4)]
    rows = [np.arange(k, N, 2) for k in range(4)]
    found = fit_together(given, data, CANDIDATES, rows, n_jobs=2)
    for one, clf, own in zip(found, given, rows, strict=True):
        alone = clf.fit(data[own], CANDIDATES[own])
        scores = alone.decision_function(data)
        np.testing.assert_allclose(one.decision_function(data), scores, atol=1e-4)
