"""A linear layer that reproduces probabilities: at its optimum, and at the edges."""

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import LogisticRegression

from comes.training import fit_soft_targets

Numbers = npt.NDArray[np.float64]


def problem(n: int = 60, d: int = 5, q: int = 3, seed: int = 0) -> tuple[Numbers, Numbers]:
    """Return centred features, and probabilities that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3, d)
    X -= X.mean(axis=0)
    noise = rng.normal(size=(n, q))
    return X, 1 / (1 + np.exp(-X @ rng.normal(size=(d, q)) - noise))


def fit(X: Numbers, targets: Numbers, **settings: float) -> tuple[Numbers, Numbers]:
    layer = fit_soft_targets(torch.tensor(X), torch.tensor(targets), **settings)  # type: ignore[arg-type]
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def test_the_gradient_by_plain_loops_is_zero_at_the_end() -> None:
    X, targets = problem()
    W, b = fit(X, targets, ridge=0.05, n_steps=2000)
    n, d = X.shape
    for j in range(targets.shape[1]):
        slope, slope_of_bias = [0.05 * W[j, k] for k in range(d)], 0.0
        for i in range(n):
            score = b[j] + sum(W[j, k] * X[i, k] for k in range(d))
            residual = (1 / (1 + np.exp(-score)) - targets[i, j]) / n
            slope_of_bias += residual
            for k in range(d):
                slope[k] += residual * X[i, k]
        np.testing.assert_allclose([*slope, slope_of_bias], 0, atol=1e-9)


def test_sixty_steps_are_about_enough() -> None:
    X, targets = problem()
    few, many = fit(X, targets), fit(X, targets, n_steps=5000)
    np.testing.assert_allclose(few[0], many[0], atol=0.01)
    np.testing.assert_allclose(few[1], many[1], atol=0.01)


def test_hard_targets_are_those_of_logistic_regression() -> None:
    X, targets = problem()
    hard = (targets > 0.6).astype(float)
    W, b = fit(X, hard, ridge=0.1, n_steps=3000)
    for j in range(hard.shape[1]):
        theirs = LogisticRegression(C=1 / (0.1 * len(X)), tol=1e-10, max_iter=1000)
        theirs.fit(X, hard[:, j])
        np.testing.assert_allclose(W[j], theirs.coef_[0], atol=1e-5)
        np.testing.assert_allclose(b[j], theirs.intercept_[0], atol=1e-5)


def test_features_whose_rows_sum_to_zero_do_not_overshoot() -> None:
    X, targets = problem(d=4)
    X = 10 * (X - X.mean(axis=1, keepdims=True))
    X -= X.mean(axis=0)
    W, _ = fit(X, targets)
    assert np.abs(W).max() < 10


def test_targets_of_zero_and_one_alone_and_features_of_zero_are_no_problem() -> None:
    X = np.zeros((4, 2))
    targets = np.array([[0.0, 1.0, 0.5]] * 4)
    W, b = fit(X, targets)
    assert (W == 0).all() and np.isfinite(b).all()
    assert b[0] < -5 and b[1] > 5 and abs(b[2]) < 1e-6


def test_one_label_does_not_change_another() -> None:
    X, targets = problem()
    W, _ = fit(X, targets)
    alone, _ = fit(X, targets[:, 1:2])
    np.testing.assert_allclose(alone[0], W[1], atol=1e-12)
