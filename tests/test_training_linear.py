"""The linear part of a network: its weights minimise the risk, and the ridge fits the features."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from torch import Tensor

from comes.models import InputLayer
from comes.risks import BceRisk, LikelihoodRisk
from comes.training import linear
from comes.training.linear import N_FOLDS, RIDGES, fit_linear_part

Numbers = npt.NDArray[np.float64]
N, D, Q = 150, 4, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * np.array([0.5, 1.0, 2.0, 1.0])
RELEVANT = X @ RNG.normal(size=(D, Q)) + RNG.normal(size=(N, Q)) > np.array([0.0, 0.5, 1.0])
EXCLUDE, PRIOR = np.array([0.3, 0.5, 0.8]), RELEVANT.mean(axis=0)
CANDIDATES = RELEVANT | (RNG.random((N, Q)) > EXCLUDE)
NO_SIGNAL = RNG.random((N, Q)) < 0.4
TIMES = RNG.integers(1, 4, N)
COPIES = np.repeat(np.arange(N), TIMES)


def likelihood(prior: Numbers | None = PRIOR) -> LikelihoodRisk:
    known = None if prior is None else torch.from_numpy(prior)
    return LikelihoodRisk(torch.from_numpy(EXCLUDE), class_prior=known)


def fit(
    features: Any, targets: Any, risk: Any, *, start: float = 0.0, **given: Any
) -> tuple[float, Numbers, Numbers]:
    """Return the ridge, and weights and biases in double precision, from those of a start."""
    layer = InputLayer(features.shape[1], targets.shape[1]).double()
    with torch.no_grad():
        for part in layer.parameters():
            part.fill_(start)
    ridge = fit_linear_part(layer, features, torch.as_tensor(targets), risk, **given)
    return ridge, layer.weight.detach().numpy(), layer.bias.detach().numpy()


def bce_by_loops(scores: Numbers, weight: Numbers) -> float:
    """Return the sum over labels of mean losses of the true labels."""
    total = 0.0
    for i in range(len(scores)):
        for j in range(Q):
            sign = 1 if RELEVANT[i, j] else -1
            total += float(weight[i] / weight.sum() * np.logaddexp(0, -sign * scores[i, j]))
    return total


def likelihood_by_loops(scores: Numbers, weight: Numbers) -> float:
    """Return the same of candidates: -log(1 - p (1 - eta)), and the divergence from the prior."""
    eta, total = expit(scores), 0.0
    for j in range(Q):
        mean = 0.0
        for i in range(len(scores)):
            if CANDIDATES[i, j]:
                loss = -np.log(1 - EXCLUDE[j] * (1 - eta[i, j])) + np.log(1 - EXCLUDE[j])
            else:
                loss = -np.log(1 - eta[i, j])
            total += float(weight[i] / weight.sum() * loss)
            mean += weight[i] / weight.sum() * eta[i, j]
        pi = PRIOR[j]
        total += float(xlogy(pi, pi / mean) + xlogy(1 - pi, (1 - pi) / (1 - mean)))
    return total


PROBLEMS: dict[str, tuple[Any, Any, Callable[[Numbers, Numbers], float]]] = {
    "bce": (BceRisk(), RELEVANT, bce_by_loops),
    "likelihood": (likelihood(), CANDIDATES, likelihood_by_loops),
}


# The solution


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_other_weights_have_less_risk_and_length_together(name: str, is_weighted: bool) -> None:
    """The risk by plain loops, up to a constant; the best of many steps of another search."""
    risk, targets, by_loops = PROBLEMS[name]
    rows = slice(0, 40)
    features, weight = X[rows], TIMES[rows].astype(float) if is_weighted else np.ones(40)
    given = torch.from_numpy(weight) if is_weighted else None
    ridge, slopes, level = fit(features, targets[rows], risk, weight=given)
    assert ridge in RIDGES
    length = float(np.average(np.square(features).sum(axis=1), weights=weight))

    def objective(numbers: Numbers) -> float:
        W, b = numbers[:-Q].reshape(D, Q), numbers[-Q:]
        return by_loops(features @ W + b, weight) + ridge / 2 * length * float((W**2).sum())

    found = np.concatenate([slopes.ravel(), level])
    least, step = objective(found), 1e-4
    for k in range(len(found)):
        move = np.zeros(len(found))
        move[k] = step
        gradient = (objective(found + move) - objective(found - move)) / (2 * step)
        assert gradient == pytest.approx(0, abs=2e-3), k
    rng = np.random.default_rng(0)
    for size in (0.03, 0.3):
        for _ in range(10):
            assert objective(found + size * rng.normal(size=len(found))) > least
    without = np.concatenate([slopes.ravel() * 1.1, level])
    assert objective(without) > least, "longer weights would be better: the ridge is not counted"


def test_the_solution_is_that_of_another_search() -> None:
    """Of BCE, which is convex; also of longer rows."""
    for scale, near in ((1.0, 1e-6), (5.0, 1e-4)):
        features = scale * X
        ridge, slopes, level = fit(features, RELEVANT, BceRisk())
        strength = ridge * float(np.square(features).sum(axis=1).mean())
        for j in range(Q):
            sign = np.where(RELEVANT[:, j], 1.0, -1.0)

            def objective(v: Numbers, sign: Any, features: Numbers, strength: float) -> float:
                losses = np.logaddexp(0, -sign * (features @ v[:-1] + v[-1]))
                return float(losses.mean() + strength / 2 * np.square(v[:-1]).sum())

            given = (sign, features, strength)
            best = minimize(objective, np.zeros(D + 1), given, tol=1e-10)
            found = objective(np.append(slopes[:, j], level[j]), *given)
            assert found == pytest.approx(best.fun, abs=near)
            np.testing.assert_allclose(scale * slopes[:, j], scale * best.x[:-1], atol=0.05)


def test_features_that_say_nothing_have_the_strongest_ridge_and_telling_ones_a_weak_one() -> None:
    for make in (BceRisk, likelihood):
        nothing, slopes, level = fit(X, NO_SIGNAL, BceRisk())
        assert nothing == RIDGES[0]
        assert np.abs(X @ slopes).mean() < 0.3
        np.testing.assert_allclose(expit(level), NO_SIGNAL.mean(axis=0), atol=0.03)
        clear = X[:, :Q] > 0
        telling, slopes, _ = fit(X, clear, make())
        assert telling < RIDGES[0] / 10
        right = ((X @ slopes > 0) == clear).mean()
        assert right > 0.95 and np.abs(X @ slopes).mean() > 1


def test_weaker_ridges_are_tried_until_rows_that_are_left_out_fit_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[float] = []

    def watch(function: Any, start: Any, ridge: tuple[float], *rest: Any, **given: Any) -> Any:
        tried.append(*ridge)
        return minimize(function, start, ridge, *rest, **given)

    monkeypatch.setattr(linear, "minimize", watch)
    length = float(np.square(X).sum(axis=1).mean())
    for targets in (NO_SIGNAL, RELEVANT):
        ridge, _, _ = fit(X, targets, BceRisk())
        n_tried = min(RIDGES.index(ridge) + 2, len(RIDGES))  # the next one was worse
        path = np.repeat(RIDGES[:n_tried], N_FOLDS)
        np.testing.assert_allclose(tried, length * np.append(path, ridge))
        tried.clear()


def test_sparse_rows_give_what_dense_ones_give() -> None:
    features = np.where(RNG.random((N, D)) < 0.6, 0, X)
    for risk, targets, _ in PROBLEMS.values():
        dense = fit(features, targets, risk)
        for as_sparse in (sparse.csr_array, sparse.csr_matrix):
            found = fit(as_sparse(features), targets, risk)
            assert found[0] == dense[0]
            for ours, theirs in zip(found[1:], dense[1:], strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-4)


# Weights of rows


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_row_of_weight_k_is_k_rows(name: str) -> None:
    risk, targets, _ = PROBLEMS[name]
    weighted = fit(X, targets, risk, weight=torch.from_numpy(TIMES).float())
    repeated = fit(X[COPIES], targets[COPIES], risk)
    plain = fit(X, targets, risk)
    assert weighted[0] == repeated[0]
    for ours, theirs, unweighted in zip(weighted[1:], repeated[1:], plain[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
        assert np.abs(ours - unweighted).max() > 0.02


def test_repeated_rows_do_not_make_the_ridge_weaker() -> None:
    """A copy in another fold would tell the answer by heart."""
    rng = np.random.default_rng(1)
    few, many_features = NO_SIGNAL[:40], rng.normal(size=(40, 30))
    alone = fit(many_features, few, BceRisk())
    again = np.tile(np.arange(40), 5)
    repeated = fit(many_features[again], few[again], BceRisk())
    assert repeated[0] == alone[0] == RIDGES[0]
    np.testing.assert_allclose(repeated[1], alone[1], atol=1e-3)


def test_equal_rows_have_one_fold_and_others_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6, 1e6):
        length = float(np.square(scale * X).sum(axis=1).mean())
        fold = linear._draw_folds(scale * X[COPIES], length, rng)
        for row in range(N):
            assert len(set(fold[row == COPIES])) == 1
        shares = np.bincount(fold[np.searchsorted(COPIES, np.arange(N))], minlength=N_FOLDS)
        assert shares.tolist() == [N // N_FOLDS] * N_FOLDS


# Edges


def test_one_label_is_what_it_is_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the ridge, which all labels share."""
    monkeypatch.setattr(linear, "RIDGES", (1e-3,))
    _, slopes, level = fit(X, np.repeat(RELEVANT[:, :1], 2, axis=1), BceRisk())
    _, own_slopes, own_level = fit(X, RELEVANT[:, :1], BceRisk())
    np.testing.assert_allclose(slopes, np.repeat(own_slopes, 2, axis=1), atol=1e-3)
    np.testing.assert_allclose(level, np.repeat(own_level, 2), atol=1e-3)


def test_few_rows_and_features_that_are_all_alike_have_the_strongest_ridge() -> None:
    for name, (risk, targets, _) in PROBLEMS.items():
        for rows in (X[:1], np.zeros((N, D)), np.ones((N, D)), sparse.csr_array((N, D))):
            ridge, slopes, level = fit(rows, targets[: rows.shape[0]], risk)
            assert ridge == RIDGES[0], name
            assert np.abs(slopes).max() < 1e-3 and np.isfinite(level).all(), name
            if name == "bce" and rows.shape[0] == N:
                np.testing.assert_allclose(expit(level), RELEVANT.mean(axis=0), atol=1e-3)
        for n in (2, 3):
            _, slopes, level = fit(X[:n], targets[:n], risk)
            assert np.isfinite(slopes).all() and np.isfinite(level).all(), name


def test_a_constant_column_is_a_second_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "RIDGES", (1e-3,))
    with_one = np.column_stack([X, np.full(N, 0.1)])
    _, slopes, level = fit(with_one, RELEVANT, BceRisk())
    _, own, own_level = fit(X, RELEVANT, BceRisk())
    np.testing.assert_allclose(with_one @ slopes + level, X @ own + own_level, atol=0.02)


def test_of_very_many_rows_and_labels_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    follow = linear._follow_path

    def watch(features: Any, targets: Tensor, *rest: Any) -> Any:
        assert features.shape[0] == len(targets)
        seen.append((len(targets), targets.shape[1]))
        return follow(features, targets, *rest)

    monkeypatch.setattr(linear, "_follow_path", watch)
    monkeypatch.setattr(linear, "MOST_ROWS", 90)
    monkeypatch.setattr(linear, "MOST_LABELS", 2)
    weight = torch.from_numpy(TIMES).float()
    for features in (X, sparse.csr_array(X)):
        ridge, slopes, level = fit(features, CANDIDATES, likelihood(), weight=weight, seed=3)
        assert seen == [(60, 2)] * N_FOLDS + [(90, Q)]  # to choose the ridge, and at the end
        seen.clear()
        assert ridge in RIDGES and slopes.shape == (D, Q)
        assert (((X @ slopes + level) > 0) == RELEVANT).mean() > 0.8
        assert fit(features, CANDIDATES, likelihood(), weight=weight, seed=3)[0] == ridge
        seen.clear()


@pytest.mark.parametrize("most", [1, 2 * D])  # one label at a time, or two
def test_weights_that_fill_much_memory_are_found_label_by_label(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(X, CANDIDATES, likelihood())
    monkeypatch.setattr(linear, "MOST_NUMBERS", most)
    monkeypatch.setattr(linear, "_choose_ridge", lambda *given: whole[0])
    _, slopes, level = fit(X, CANDIDATES, likelihood())
    np.testing.assert_allclose(slopes, whole[1], atol=2e-3)
    np.testing.assert_allclose(level, whole[2], atol=2e-3)


def test_the_risk_that_is_handed_in_stays_as_it_was() -> None:
    risk = likelihood().float()
    before = copy.deepcopy(risk.state_dict())
    targets, weight = torch.as_tensor(CANDIDATES), torch.ones(N)
    layer = InputLayer(D, Q)
    fit_linear_part(layer, X, targets, risk, weight)
    for name, value in risk.state_dict().items():
        assert value.dtype == torch.float32, name
        assert torch.equal(value, before[name]), name
    assert layer.weight.dtype == torch.float32 and layer.weight.grad is None
    features = X.copy()
    fit(features, CANDIDATES, risk, weight=weight)
    np.testing.assert_array_equal(features, X)
    assert (weight == 1).all() and torch.equal(targets, torch.as_tensor(CANDIDATES))


def test_it_goes_on_from_the_weights_that_the_layer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps from the solution stay there, and two from zero are not enough."""
    far, zero = (fit(X, RELEVANT, BceRisk(), start=start) for start in (1.0, 0.0))
    assert far[0] == zero[0]
    np.testing.assert_allclose(far[1], zero[1], atol=0.01)
    monkeypatch.setattr(linear, "LAST_STEPS", 2)
    layer = InputLayer(D, Q).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(far[1]))
        layer.bias.copy_(torch.from_numpy(far[2]))
    fit_linear_part(layer, X, torch.as_tensor(RELEVANT), BceRisk())
    np.testing.assert_allclose(layer.weight.detach().numpy(), far[1], atol=0.01)
    short = fit(X, RELEVANT, BceRisk())
    assert np.abs(short[1] - far[1]).max() > 0.05


def test_the_seed_decides_the_folds_and_nothing_else_is_drawn() -> None:
    layers = [InputLayer(D, Q), InputLayer(D, Q)]
    layers[1].load_state_dict(layers[0].state_dict())
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # type: ignore[index]
    for layer in layers:
        fit_linear_part(layer, X, torch.as_tensor(CANDIDATES), likelihood(), seed=7)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[index]
    for ours, theirs in zip(*(layer.parameters() for layer in layers), strict=True):
        assert torch.equal(ours, theirs)
