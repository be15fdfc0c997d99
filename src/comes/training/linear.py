"""The linear part of a network: the weights that minimise its risk, and their ridge.

With few answers a network is either stopped too early or learns them by heart. A linear model can
be trained to its end, and how strongly its weights are held back is found out of fold:

    risk(X W + b) + ridge / 2 * |W|^2 * (mean squared length of a row)

is minimised by L-BFGS for ever weaker ridges, each from the weights of the one before, until the
risk of rows that were left out rises.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.optimize import minimize
from torch import Tensor

from comes.models import InputLayer
from comes.training.gradients import Risk
from comes.training.speed import threads_for

FloatArray = npt.NDArray[np.float64]

RIDGES = tuple(0.03 / 10 ** (step / 2) for step in range(8))  # 0.03 to 1e-5
PATH_STEPS, LAST_STEPS = 15, 40  # of L-BFGS: for every ridge of the path, and with the best
N_FOLDS = 3
MOST_ROWS, MOST_LABELS = 20_000, 24  # more add nothing to weights; to the choice of the ridge
SAME = 1e-6  # rows whose projections differ by less, relative to their length, are one
MOST_NUMBERS = 2**22  # of weights at a time: L-BFGS holds some twenty arrays of them
PAIRS_KEPT = 8  # of steps and gradients, by which L-BFGS knows how the risk bends


def fit_linear_part(
    layer: InputLayer,
    X: Any,  # scaled features, an array or CSR matrix, (n, d)
    targets: Tensor,  # (n, q)
    risk: Any,  # a mean over labels, with select_labels(labels)
    weight: Tensor | None = None,  # of every row, (n,)
    *,
    seed: int = 0,
) -> float:
    """Set the weights of a linear layer, from those it has; return the ridge that was chosen."""
    n, q = targets.shape
    rng = np.random.default_rng(seed)
    targets, risk = targets.cpu(), copy.deepcopy(risk).cpu().double()
    if n > MOST_ROWS:
        rows = np.sort(rng.permutation(n)[:MOST_ROWS])
        X, targets, weight = _take(rows, X, targets, weight)
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, np.float64)
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    mean: Any = np.average(squares, weights=None if weight is None else weight.cpu().numpy())
    length = max(float(mean), np.finfo(np.float64).tiny)
    start = [part.detach().cpu().double().numpy() for part in (layer.weight, layer.bias)]
    n_labels = max(1, MOST_NUMBERS // X.shape[1])
    with threads_for(2 * X.shape[0] * X.shape[1] * q):
        ridge = _choose_ridge(X, targets, weight, risk, start, length, rng)
        for labels in torch.arange(q).split(n_labels):
            own = [part[..., labels.numpy()] for part in start]
            some, told = risk.select_labels(labels), targets[:, labels]
            path = _follow_path(X, told, weight, some, own, [ridge * length], LAST_STEPS)
            slopes, level = next(path)
            layer.weight.data[:, labels] = torch.from_numpy(slopes).to(layer.weight)
            layer.bias.data[labels] = torch.from_numpy(level).to(layer.bias)
    return ridge


def _choose_ridge(
    X: Any,
    targets: Tensor,
    weight: Tensor | None,
    risk: Any,
    start: Sequence[FloatArray],
    length: float,
    rng: np.random.Generator,
) -> float:
    """Return the ridge with the least risk out of fold, by some of the labels."""
    q = targets.shape[1]
    most = min(MOST_LABELS, max(1, MOST_NUMBERS // X.shape[1]))
    labels = np.sort(rng.permutation(q)[:most])
    chosen = torch.from_numpy(labels)
    some, targets = risk.select_labels(chosen), targets[:, chosen]
    start = [np.zeros((X.shape[1], len(labels))), start[1][labels]]
    fold, ridges = _draw_folds(X, length, rng), [ridge * length for ridge in RIDGES]
    paths = []
    for k in range(N_FOLDS):
        part = _take(np.flatnonzero(fold != k), X, targets, weight)
        paths.append(_follow_path(*part, some, start, ridges, PATH_STEPS))
    best, least = RIDGES[0], np.inf
    for ridge, of_folds in zip(RIDGES, zip(*paths, strict=True), strict=True):
        scores = np.empty(targets.shape)
        for k, (slopes, level) in enumerate(of_folds):
            scores[fold == k] = X[fold == k] @ slopes + level
        values = [] if weight is None else [weight]
        left_out = float(some(torch.from_numpy(scores), targets, *values))
        if not left_out < least:
            break
        best, least = ridge, left_out
    return best


def _draw_folds(X: Any, length: float, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return the fold of every row; equal rows have one, as if they were one row of more weight."""
    numbers = np.asarray(X @ rng.standard_normal(X.shape[1]))
    numbers = np.round(numbers / (SAME * math.sqrt(length)))
    _, own = np.unique(numbers, return_inverse=True)
    return np.asarray(rng.permutation(own.max() + 1)[own] % N_FOLDS)


def _follow_path(
    X: Any,
    targets: Tensor,
    weight: Tensor | None,
    risk: Risk,
    start: Sequence[FloatArray],
    ridges: Sequence[float],
    n_steps: int,
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield weights (d, q) and biases (q,) for every ridge, each from those of the one before."""
    d, q = start[0].shape
    values, transposed = [] if weight is None else [weight], X.T
    numbers = np.concatenate([part.ravel() for part in start])

    def split(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        return numbers[:-q].reshape(d, q), numbers[-q:]

    def evaluate(numbers: FloatArray, ridge: float) -> tuple[float, FloatArray]:
        slopes, level = split(numbers)
        scores = torch.from_numpy(np.asarray(X @ slopes) + level).requires_grad_()
        value = q * risk(scores, targets, *values)
        (gradient,) = torch.autograd.grad(value, scores)
        by_slope = transposed @ gradient.numpy() + ridge * slopes
        both = np.concatenate([by_slope.ravel(), gradient.sum(dim=0).numpy()])
        return float(value.detach()) + ridge / 2 * float(np.square(slopes).sum()), both

    for ridge in ridges:
        found = minimize(
            evaluate,
            numbers,
            (ridge,),
            "L-BFGS-B",
            jac=True,
            options={"maxiter": n_steps, "maxcor": PAIRS_KEPT},
        )
        numbers = found.x
        yield split(numbers)


def _take(
    rows: npt.NDArray[np.intp], X: Any, targets: Tensor, weight: Tensor | None
) -> tuple[Any, Tensor, Tensor | None]:
    """Return some rows of features, targets and weights."""
    chosen = torch.from_numpy(rows)
    return X[rows], targets[chosen], None if weight is None else weight[chosen]
