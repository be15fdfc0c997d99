"""Fits with very many labels: what a fit on a matrix gives, without the matrix."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from comes import Answers, CandidateClassifier
from comes.answers import State
from comes.errors import ComesError
from comes.estimator import fit_together, inputs, prepare
from comes.methods import Likelihood

N, D, Q = 300, 12, 30
RNG = np.random.default_rng(0)
X = sparse.csr_array(RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.5))
RELEVANT = np.asarray(X @ RNG.normal(size=(D, Q))) > 1.5
NO = ~RELEVANT & (RNG.random((N, Q)) < 0.3)
YES = RELEVANT & (RNG.random((N, Q)) < 0.3)
MAYBE = ~NO & ~YES & (RNG.random((N, Q)) < 0.05)
PRIOR = RELEVANT.mean(axis=0).clip(0.01)
ANSWERS = {
    "candidates": Answers(no=NO),
    "answers": Answers(no=NO, yes=YES, maybe=MAYBE),
    "no and maybe": Answers(no=NO, maybe=MAYBE),
    "positives": Answers.from_positives(YES),
}
KNOWN: dict[str, dict[str, Any]] = {
    "candidates": {"class_prior": PRIOR},
    "answers": {"class_prior": PRIOR, "rates": {"no": 0.9, "yes": 0.8}},
    "no and maybe": {"class_prior": PRIOR, "rates": {"no": 0.9, "yes": 0.0}},
    "positives": {"rates": {"yes": 0.3}},
}
KINDS_OF_METHOD = {
    "likelihood": ["candidates", "answers", "no and maybe", "positives"],
    "bce": ["candidates", "answers", "no and maybe", "positives"],
    "comes-hl": ["candidates", "answers"],
    "comes-hl-unbiased": ["candidates"],
}
# So few rows leave labels without answers, or too few of them, and short trainings learn little.
pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")


@pytest.fixture(autouse=True)
def few_pairs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MANY_PAIRS", 1000)


def as_sparse(answers: Answers) -> Answers:
    return Answers.from_codes(answers.states, answers.kind)


def make(method: Any = "likelihood", **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 2, "hidden": 8, "device": "cpu", "random_state": 0}
    given["model"] = "mlp"  # as very many labels have it
    method = Likelihood(prior_weight=0.0) if method == "likelihood" else method
    return CandidateClassifier(method, **(given | settings))


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    """A model of sparse candidates whose rates were estimated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "MANY_PAIRS", 1000)
        return make().fit(X, answers=as_sparse(ANSWERS["candidates"]))


def test_networks_of_a_matrix_go_on_with_very_many_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their linear model stays, as it is fitted to a matrix."""
    answers, known = as_sparse(ANSWERS["positives"]), KNOWN["positives"]
    monkeypatch.setattr(inputs, "MANY_PAIRS", N * Q)
    clf = make(model="auto", warm_start=True, **known).fit(X, answers=answers)
    before = {name: value.clone() for name, value in clf.module_.state_dict().items()}
    assert before["linear.weight"].abs().max() > 0.01
    monkeypatch.setattr(inputs, "MANY_PAIRS", 1000)
    after = clf.fit(X, answers=answers).module_.state_dict()
    for name, value in before.items():
        assert bool((after[name] == value).all()) == name.startswith("linear."), name


@pytest.mark.parametrize("method", KINDS_OF_METHOD)
def test_a_fit_in_chunks_is_the_fit_on_a_matrix(method: str) -> None:
    for kind in KINDS_OF_METHOD[method]:
        known = {} if method == "bce" else KNOWN[kind]
        known = {n: v for n, v in known.items() if method == "likelihood" or n == "class_prior"}
        whole, chunked = (
            make(method, **known).fit(X, answers=answers).decision_function(X)
            for answers in (ANSWERS[kind], as_sparse(ANSWERS[kind]))
        )
        np.testing.assert_allclose(chunked, whole, rtol=1e-3, atol=2e-5, err_msg=kind)


def test_sparse_complementary_labels_are_candidates() -> None:
    fits = [
        make(rates={"exclude": 0.3}, class_prior=PRIOR).fit(X, **given)
        for given in (
            {"answers": as_sparse(ANSWERS["candidates"])},
            {"complementary": sparse.csr_array(NO)},
        )
    ]
    np.testing.assert_array_equal(*(fit.decision_function(X) for fit in fits))


def test_rates_are_estimated_from_counts(fitted: CandidateClassifier) -> None:
    assert fitted.no_rate_ is not None
    assert np.abs(fitted.no_rate_ - 0.3).max() < 0.1
    for kind in ("answers", "no and maybe", "positives"):
        clf = make(epochs=1).fit(X, as_sparse(ANSWERS[kind]))
        assert clf.class_prior_ is not None, kind
        assert ((clf.class_prior_ >= 0) & (clf.class_prior_ <= 1)).all(), kind


def test_early_stopping_judges_held_out_rows_in_chunks() -> None:
    settings = {"early_stopping": True, "class_prior": PRIOR, "epochs": 4}
    fits = [
        make("comes-hl", **settings).fit(X, answers=answers)
        for answers in (ANSWERS["candidates"], as_sparse(ANSWERS["candidates"]))
    ]
    np.testing.assert_allclose(fits[1].history_.validation, fits[0].history_.validation, rtol=1e-4)
    assert fits[1].history_.best_epoch == fits[0].history_.best_epoch


def test_a_model_of_sparse_answers_is_saved_and_knows_its_rows(
    fitted: CandidateClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert fitted.count_seen_rows(X) == loaded.count_seen_rows(X) == N
    risks = [clf.risk(X, ANSWERS["candidates"]) for clf in (fitted, loaded)]
    assert risks == [clf.risk(X, as_sparse(ANSWERS["candidates"])) for clf in (loaded, fitted)]


def test_maybe_can_be_left_out() -> None:
    answers = as_sparse(ANSWERS["answers"])
    with_it, without = (make(Likelihood(uses_maybe=uses)).fit(X, answers) for uses in (True, False))
    assert not np.array_equal(with_it.decision_function(X), without.decision_function(X))


def test_what_needs_a_matrix_is_refused() -> None:
    wrong: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"method": "comes-rl"}, {}, "'comes-rl' needs the scores of all labels at once"),
        ({"method": "ctl"}, {}, "Take method='comes-hl', 'bce', 'comes-hl-unbiased' or 'likel"),
        ({"threshold": "f1"}, {}, "threshold='f1' is learned from the scores of all pairs"),
        ({"rates": {"exclude": "instance"}}, {}, "depend on the instance were removed"),
        ({"model": "linear"}, {}, "a network that ends in one linear layer"),
        ({}, {"sample_weight": np.ones(N)}, "sample_weight and clean need a matrix"),
    ]
    for settings, given, message in wrong:
        with pytest.raises(ComesError, match=message):
            make(**settings).fit(X, answers=as_sparse(ANSWERS["candidates"]), **given)


def test_a_network_that_no_memory_holds_is_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("mlp", "Ensemble", "low_rank", "determine_rates"):
        monkeypatch.setattr(prepare, name, None)  # so that calling it would be another error
    settings: list[tuple[dict[str, Any], str]] = [
        ({"model": "mlp", "n_networks": 1}, "1 x 1000000000000 hidden units .* 156462 GiB"),
        ({"model": "mlp", "n_networks": 4}, "4 x 1000000000000 hidden units"),
        ({"model": "low_rank"}, "1 x 1000000000000 hidden units .*Lower hidden"),
    ]
    for given, message in settings:
        for answers in ANSWERS["candidates"], as_sparse(ANSWERS["candidates"]):
            with pytest.raises(ComesError, match=message):
                make(hidden=10**12, **given).fit(X, answers=answers)


def test_small_sparse_answers_are_a_matrix_for_every_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "MANY_PAIRS", 2**26)
    fits = [
        make("comes-rl", class_prior=PRIOR, threshold="prior").fit(X, answers=answers)
        for answers in (ANSWERS["candidates"], as_sparse(ANSWERS["candidates"]))
    ]
    np.testing.assert_array_equal(*(fit.predict(X) for fit in fits))
    assert as_sparse(ANSWERS["candidates"]).has(State.NO)


def test_a_linear_model_of_low_rank_is_trained_in_chunks_and_loaded(tmp_path: Path) -> None:
    fits = [
        make("bce", model="low_rank", dropout=0.0).fit(X, answers=answers)
        for answers in (ANSWERS["answers"], as_sparse(ANSWERS["answers"]))
    ]
    scores = [fit.decision_function(X) for fit in fits]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-3, atol=2e-5)
    assert np.linalg.matrix_rank(scores[0] - scores[0].mean(axis=0), tol=1e-4) <= 8
    fits[1].save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), scores[1])


def test_parts_of_a_stream_are_counted_together() -> None:
    parts = [slice(0, 150), slice(150, N)]
    counts = []
    for answers in (ANSWERS["candidates"], as_sparse(ANSWERS["candidates"])):
        fitted = make("comes-hl", class_prior=PRIOR)
        for rows in parts:
            fitted.partial_fit(X[rows], answers=answers[rows])
        counts.append(fitted.partial_fit_state_.counts)
    assert counts[0].n == counts[1].n == N
    np.testing.assert_array_equal(counts[0].possible, counts[1].possible)


def test_all_rows_decide_whether_a_prior_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MANY_PAIRS", N * Q - 1)  # fewer rows are not many
    fits = [
        make(Likelihood(prior_weight=weight), early_stopping=True).fit(
            X, answers=as_sparse(ANSWERS["candidates"])
        )
        for weight in (None, 0.0)
    ]
    np.testing.assert_array_equal(*(fit.decision_function(X) for fit in fits))


def test_many_fits_at_once_are_trained_one_by_one() -> None:
    settings = {"n_networks": 1, "dropout": 0.0, "class_prior": PRIOR}
    one, dense, answers = (
        make("comes-hl", **settings),
        X.toarray(),
        as_sparse(ANSWERS["candidates"]),
    )
    fitted = fit_together([one, one], dense, answers, [np.arange(N)] * 2, n_jobs=1)
    alone = make("comes-hl", **settings).fit(dense, answers=answers)
    np.testing.assert_allclose(fitted[1].decision_function(dense), alone.decision_function(dense))
