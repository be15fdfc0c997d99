"""Heads on features: penalties from noise, teacher and student, answers of every kind."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from comes.answers import Answers, posterior_probability
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier
from comes.estimator.prepare import split_rows
from comes.generation import case_a, case_b, simulate_answers
from comes.images import heads
from comes.images.heads import (
    Evidence,
    Head,
    class_head,
    cross_score,
    fit_view_head,
    gradient_error,
    view_probe,
)
from comes.images.network import zero_linear
from comes.methods import Likelihood
from comes.metrics import mean_average_precision
from comes.risks import hamming_risk
from comes.training.convex import fit_soft_targets

N, N_SPARSE, N_POOLED = 400, 30, 8
PRIOR = [0.3, 0.3, 0.3]


def draw(seed: int = 0, n: int = N) -> tuple[Any, Any]:
    """Return features, flags that are labels first and mirrors of them last, and true labels."""
    rng = np.random.default_rng(seed)
    sparse = (rng.random((n, N_SPARSE)) < 0.3).astype(np.float32)
    relevant = sparse[:, :3] > 0
    pooled = rng.normal(size=(n, N_POOLED)) + 0.0
    pooled[:, :3] += 2 * relevant
    return np.hstack([sparse, pooled]).astype(np.float32), relevant


X, RELEVANT = draw()
CANDIDATES = Answers.from_candidates(case_b(RELEVANT, exclude_rate=0.4, seed=0))


def evidence(answers: Any = CANDIDATES, features: Any = X, pooled: bool = True) -> Evidence:
    shown = features if pooled else np.ascontiguousarray(features[:, :N_SPARSE])
    return Evidence(shown, answers, N_SPARSE)


def probe(**settings: Any) -> CandidateClassifier:
    known: dict[str, Any] = {"class_prior": PRIOR, "random_state": 0, "verbose": -1}
    return view_probe(**known | settings)


def fit_head(evidence: Evidence, **settings: Any) -> Head:
    return fit_view_head(probe(**settings), evidence)[0]


def weights(head: Head) -> Any:
    assert isinstance(head.layer, nn.Linear)
    return head.layer.weight.detach().numpy()


def test_the_penalty_is_that_of_noise_by_plain_loops() -> None:
    """Of candidates: the posterior of the prior minus the prior, times what features vary."""
    _, training, _ = fit_view_head(probe(), evidence(pooled=False))
    penalty = training.options.optimizer.keywords["penalty"].numpy()  # type: ignore[attr-defined]
    S, p = CANDIDATES.candidates, training.rates.no_rate
    weight = 1 / p.mean()  # of the losses: so few pairs say something
    for j in (0, 2):
        squares = 0.0
        for i in range(N):
            # Of a candidate: pi / (pi + (1 - pi)(1 - p)), of an excluded label 0.
            given = PRIOR[j] / (PRIOR[j] + (1 - PRIOR[j]) * (1 - p[j])) if S[i, j] else 0.0
            squares += (weight * (PRIOR[j] - given)) ** 2 / N
        for k in (0, 17):
            spread = np.std(X[:, k].astype(float))
            expected = 2 * squares**0.5 * spread / N**0.5
            assert penalty[j, k] == pytest.approx(expected, rel=0.02)


def test_a_weight_leaves_zero_on_evidence_only() -> None:
    found = weights(fit_head(evidence(pooled=False)))
    assert found.shape == (3, N_SPARSE) and (found >= 0).all()
    assert (np.argmax(found, axis=1) == [0, 1, 2]).all()
    assert (found > 0).sum() <= 12


def test_of_permuted_answers_little_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = evidence(CANDIDATES[np.random.default_rng(1).permutation(N)], pooled=False)
    counts = []
    for errors in (0.0, heads.STANDARD_ERRORS, 1000.0):
        monkeypatch.setattr(heads, "STANDARD_ERRORS", errors)
        counts.append((weights(fit_head(shuffled)) > 0).mean())
    assert counts[0] > 0.3 and counts[1] < 0.08 and counts[2] == 0


def test_the_head_is_the_mean_of_teacher_and_student() -> None:
    head, training, _ = fit_view_head(probe(), evidence())
    alone = fit_head(evidence(pooled=False))
    teacher = alone.score(X[:, :N_SPARSE])
    # The student: logistic regression on what teacher and candidates say together.
    S, p = CANDIDATES.candidates, training.rates.no_rate
    before = expit(teacher.astype(np.float64))
    targets = np.where(S, before / (before + (1 - before) * (1 - p)), 0)
    own = X[:, N_SPARSE:].astype(np.float64)
    own = torch.tensor((own - own.mean(axis=0)) / own.std(axis=0))
    student = fit_soft_targets(own, torch.tensor(targets))
    with torch.no_grad():
        expected = (teacher + student(own).numpy()) / 2
    np.testing.assert_allclose(head.score(X), expected, atol=1e-3)
    np.testing.assert_allclose(weights(head)[:, :N_SPARSE], weights(alone) / 2, atol=1e-5)
    with torch.no_grad():  # the training has the rows as the layer reads them
        np.testing.assert_allclose(training.network(training.X), head.score(X), atol=1e-5)
    np.testing.assert_allclose(training.scaling(X), training.X, atol=1e-6)


def test_a_student_adds_to_a_teacher_that_sees_little() -> None:
    rng = np.random.default_rng(3)
    blind = X.copy()
    blurred = rng.random((N, 3)) < 0.4
    blind[:, :3] = np.where(blurred, rng.random((N, 3)) < 0.3, blind[:, :3])
    with_it = fit_head(evidence(features=blind))
    without = fit_head(evidence(features=blind, pooled=False))
    both = mean_average_precision(with_it.score(blind), RELEVANT)
    assert both > mean_average_precision(without.score(blind[:, :N_SPARSE]), RELEVANT) + 0.02


def test_what_is_held_out_trains_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    taught: list[int] = []

    def spy(rows: Any, targets: Any) -> nn.Linear:
        taught.append(len(rows))
        return fit_soft_targets(rows, targets)

    monkeypatch.setattr(heads, "fit_soft_targets", spy)
    clf = probe(early_stopping=0.25, epochs=20)
    head, training, history = fit_view_head(clf, evidence())
    trained, held = split_rows(N, 0.25, training.options.seed)
    assert taught == [300] and len(history.validation) == 20
    assert training.held_out is not None
    for shown, rows in ((training.X, trained), (training.held_out.X, held)):
        assert isinstance(shown, torch.Tensor)
        np.testing.assert_allclose(shown.numpy(), head.scaled(X[rows]), atol=1e-6)
    # Other answers about held-out rows change neither prior, which is given, nor weights.
    codes = CANDIDATES.candidates.copy()
    codes[held[:40]] = ~codes[held[:40]]
    last: dict[str, Any] = {"early_stopping": 0.25, "epochs": 1, "rates": {"exclude": 0.4}}
    one, other = (
        fit_head(evidence(Answers.from_candidates(S)), **last)
        for S in (CANDIDATES.candidates, codes)
    )
    np.testing.assert_array_equal(weights(one), weights(other))


ASKED = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.8, yes_rate=0.7, seed=1)
KNOWN: dict[str, Any] = {"rates": {"no": 0.8, "yes": 0.7}}


@pytest.mark.parametrize(
    ("answers", "settings"),
    [
        (CANDIDATES, {"class_prior": None, "rates": {"exclude": 0.4}}),
        pytest.param(
            ASKED, {"class_prior": None, "rates": {"mistake": 0.02}}, marks=pytest.mark.long
        ),
        (ASKED, {"method": Likelihood(uses_maybe=False), **KNOWN}),
        (
            Answers.from_positives(RELEVANT & (np.random.default_rng(0).random((N, 3)) < 0.7)),
            {"rates": {"yes": 0.7}},
        ),
    ],
    ids=["candidates", "rates not known", "without maybe", "ticks"],
)
def test_answers_of_every_kind_are_learned_and_cross_scored(answers: Any, settings: Any) -> None:
    clf = probe(**settings)
    head, training, _ = fit_view_head(clf, evidence(answers))
    fresh, truth = draw(seed=1)
    assert mean_average_precision(head.score(fresh), truth) > 0.9
    crossed = cross_score(clf, evidence(answers), training.rates)
    assert mean_average_precision(crossed, RELEVANT) > 0.85


def test_rows_are_scored_by_heads_that_were_trained_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing is estimated again."""
    clf = probe()
    _, training, _ = fit_view_head(clf, evidence())
    seen: list[Any] = []

    def spy(fold: Any, own: Evidence, rates: Any) -> Any:
        head, of_fold, history = fit_view_head(fold, own, rates)
        assert of_fold.rates is rates is training.rates
        seen.append((own, head))
        return head, of_fold, history

    monkeypatch.setattr(heads, "fit_view_head", spy)
    crossed = cross_score(clf, evidence(), training.rates, seed=4)
    assert len(seen) == 3
    for own, head in seen:
        rows = {row.tobytes() for row in own.X}
        unseen = [i for i in range(N) if X[i].tobytes() not in rows]
        assert 130 < len(unseen) <= 134
        np.testing.assert_allclose(crossed[unseen], head.score(X[unseen]), atol=1e-6)


def test_only_a_prior_that_was_given_has_a_weight() -> None:
    """Of answers without a yes it keeps probabilities near it; folds have the same rates."""
    rng = np.random.default_rng(2)
    no = ~RELEVANT & (rng.random(RELEVANT.shape) < 0.5)
    answers = Answers(no=no, maybe=~no & (rng.random(RELEVANT.shape) < 0.5))
    for prior, weight in ((PRIOR, 0.3), (None, 0.0)):
        clf = probe(rates={"no": 0.5, "yes": 0.0}, class_prior=prior)
        _, training, _ = fit_view_head(clf, evidence(answers))
        assert training.rates.prior_weight == weight


def test_a_label_that_nobody_was_asked_about_stays_at_its_prior() -> None:
    no, yes = ASKED.excluded.copy(), ASKED.confirmed.copy()
    no[:, 1] = yes[:, 1] = False
    answers = evidence(Answers(no=no, yes=yes), pooled=False)
    with pytest.warns(ComesWarning, match="Nobody was asked about label '1'"):
        head = fit_head(answers, **KNOWN)
    assert np.abs(weights(head)[1]).max() < 1e-5
    np.testing.assert_allclose(expit(head.score(X[:, :N_SPARSE])[:, 1]), 0.3, atol=1e-3)


def test_one_label_and_few_rows_are_enough() -> None:
    one = Answers.from_candidates(CANDIDATES.candidates[:, :1])
    head = fit_head(evidence(one), class_prior=[0.3])
    assert head.score(X).shape == (N, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        few = Evidence(X[:2], Answers.from_candidates([[True], [False]]), N_SPARSE)
        clf = probe(class_prior=[0.3])
        head, training, _ = fit_view_head(clf, few)
    assert np.isfinite(head.score(X)).all()
    with pytest.raises(ComesError, match="2 rows cannot be split into 3 folds"):
        cross_score(clf, few, training.rates)


def test_features_that_do_not_vary_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "STANDARD_ERRORS", 0.0)
    still = X.copy()
    still[:, [5, N_SPARSE + 5]] = 0.1
    head = fit_head(evidence(features=still))
    moved = still.copy()
    moved[:, [5, N_SPARSE + 5]] = 0.9
    np.testing.assert_allclose(head.score(moved), head.score(still), atol=1e-3)


def test_priors_at_the_edge_give_finite_scores() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        head = fit_head(evidence(), class_prior=[0.0, 1.0, 0.3])
    assert np.isfinite(head.score(X)).all()


def test_more_features_than_rows_are_no_harm() -> None:
    rng = np.random.default_rng(0)
    wide = rng.random((30, 500), dtype=np.float32)
    S = Answers.from_candidates(case_b(wide[:, :2] > 0.5, exclude_rate=0.5))
    head = fit_head(Evidence(wide, S, 300), class_prior=[0.5, 0.5])
    assert np.isfinite(head.score(wide)).all() and np.abs(head.score(wide)).max() < 50


def test_scores_are_those_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    head = fit_head(evidence())
    whole = head.score(X)
    monkeypatch.setattr(heads, "AT_ONCE", 33)
    np.testing.assert_allclose(head.score(X), whole, atol=1e-6)


def test_batches_of_the_probe_do_not_matter() -> None:
    one, other = (fit_head(evidence(pooled=False), batch_size=size) for size in (8, N))
    np.testing.assert_array_equal(weights(one), weights(other))


def test_a_label_of_which_far_more_is_said_than_of_others_does_not_run_away() -> None:
    """Losses are divided by what is said in the mean, and its gradient is many times longer."""
    rng = np.random.default_rng(0)
    features = (rng.random((1000, 40)) < 0.3).astype(np.float32)
    relevant = (features[:, :20] > 0) ^ (rng.random((1000, 20)) < 0.25)  # noisy
    rate = np.full(20, 0.04)
    rate[0] = 0.95
    drawn = rng.random(relevant.shape) < rate
    for answers in (
        Answers(no=drawn & ~relevant, yes=drawn & relevant),
        Answers.from_candidates(relevant | ~drawn),
    ):
        known: dict[str, Any] = {"class_prior": relevant.mean(axis=0), "epochs": 300}
        if answers.kind == "answers":
            known["rates"] = {"no": 1.0, "yes": 1.0}
        head, _, history = fit_view_head(probe(**known), Evidence(features, answers, 40))
        found = weights(head)[0]
        # Nearly everything is known of it, so it is about a logistic regression on true labels.
        assert 1.0 < found[0] < 3.0 and found[1:].max() < 0.5
        assert abs(expit(head.score(features)[:, 0]).mean() - relevant[:, 0].mean()) < 0.05
        assert history.risk[-1] == pytest.approx(min(history.risk), abs=0.01)


def test_a_student_is_told_of_maybe_only_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []

    def spy(scores: Any, evidence: Any) -> Any:
        told.append(evidence)
        return posterior_probability(scores, evidence)

    monkeypatch.setattr(heads, "posterior_probability", spy)
    for uses in (True, False):
        method = Likelihood(uses_maybe=uses)
        fit_head(evidence(ASKED), method=method, rates={"no": 0.8, "yes": 0.3})
        known = told.pop()
        assert (known[ASKED.excluded] == -1).all() and (known[ASKED.confirmed] == 1).all()
        assert ((known[ASKED.doubtful] != 0) == uses).all()


def test_evidence_is_cut_by_columns_and_rows() -> None:
    shown = np.arange(20, dtype=np.float32).reshape(4, 5)
    said = Answers(no=np.eye(4, 2, dtype=bool), yes=np.zeros((4, 2), dtype=bool))
    evidence = Evidence(shown, said, n_sparse=3)
    np.testing.assert_array_equal(evidence.sparse, shown[:, :3])
    np.testing.assert_array_equal(evidence.pooled, shown[:, 3:])
    assert np.shares_memory(evidence.sparse, shown)
    some = evidence[[2, 0]]
    np.testing.assert_array_equal(some.sparse, shown[[2, 0], :3])
    np.testing.assert_array_equal(some.answers.codes, said.codes[[2, 0]])
    assert Evidence(shown, said, n_sparse=5).pooled is None


# COMES-HL on classes


def test_the_error_of_the_gradient_is_its_spread_over_annotations() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack(
        [rng.normal(3, 2, 600), rng.random(600) < 0.2, rng.exponential(1, 600)]
    )
    relevant = np.column_stack([np.arange(600) < 180, np.arange(600) % 10 == 0])
    prior = relevant.mean(axis=0)
    layer = zero_linear(3, 2).double()
    assert isinstance(layer, nn.Linear)
    layer.bias.data.copy_(torch.logit(torch.from_numpy(prior)))
    rows, shares = torch.from_numpy(features), torch.from_numpy(prior)
    for case in ("a", "b"):
        slopes, errors, draws = [], [], np.random.default_rng(0)
        for number in range(300):
            shuffled = draws.permutation(relevant)  # the features say nothing about a label
            if case == "a":
                candidates = case_a(shuffled, flip_rate=[0.9, 0.95], seed=draws)
            else:
                candidates = case_b(shuffled, exclude_rate=[0.1, 0.05], seed=draws)
            risk = 2 * hamming_risk(layer(rows), torch.from_numpy(candidates), shares)
            slopes.append(torch.autograd.grad(risk, layer.weight)[0].numpy())  # of the sum
            if number % 20 == 19:
                errors.append(gradient_error(features, candidates, prior))
        spread = np.std(slopes, axis=0)
        assert spread.shape == (2, 3)
        assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.13), case


def test_an_unexcluded_label_has_a_finite_error() -> None:
    error = gradient_error(np.eye(3), np.ones((3, 2), dtype=bool), np.array([0.5, 0.2]))
    assert np.isfinite(error).all() and (error > 0).all()


def test_a_head_on_classes_is_sparse_and_starts_at_the_prior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    S, sparse, prior = CANDIDATES.candidates, X[:, :N_SPARSE], np.array(PRIOR)
    for errors in (heads.STANDARD_ERRORS, 1000.0):
        monkeypatch.setattr(heads, "STANDARD_ERRORS", errors)
        head = class_head(sparse, S, prior, random_state=0, verbose=-1).fit(sparse, S)
        weight, bias = (p.detach().numpy() for p in head.module_.parameters())
        assert (weight >= 0).all() and (weight == 0).any()
        assert (weight > 0).any() == (errors < 1000)
        assert np.abs(head.predict_proba(sparse).mean(axis=0) - prior).max() < 0.15
    np.testing.assert_allclose(expit(bias), prior, atol=0.1)
