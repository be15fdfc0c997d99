"""How far a gradient goes by chance."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from comes.answers.convert import BoolMatrix
from comes.estimator.heads import gradient_error
from comes.generation import case_a, case_b
from comes.images.network import zero_linear
from comes.risks import hamming_risk


def redrawn(case: str, relevant: BoolMatrix) -> Iterator[BoolMatrix]:
    rng = np.random.default_rng(0)
    for _ in range(300):
        shuffled = rng.permutation(relevant)  # the features say nothing about a label
        if case == "a":
            yield case_a(shuffled, flip_rate=[0.9, 0.95], seed=rng)
        else:
            yield case_b(shuffled, exclude_rate=[0.1, 0.05], seed=rng)


def test_the_error_of_the_gradient_is_its_spread_over_annotations() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack(
        [rng.normal(3, 2, 600), rng.random(600) < 0.2, rng.exponential(1, 600)]
    )
    relevant = np.column_stack([np.arange(600) < 180, np.arange(600) % 10 == 0])
    prior = relevant.mean(axis=0)
    head = zero_linear(3, 2).double()
    assert isinstance(head, nn.Linear)
    head.bias.data.copy_(torch.logit(torch.from_numpy(prior)))
    rows, shares = torch.from_numpy(features), torch.from_numpy(prior)
    for case in ("a", "b"):
        slopes, errors = [], []
        for candidates in redrawn(case, relevant):
            risk = 2 * hamming_risk(head(rows), torch.from_numpy(candidates), shares)
            slope = torch.autograd.grad(risk, head.weight)[0]  # of the sum over labels
            slopes.append(slope.numpy())
            if len(slopes) % 20 == 0:
                errors.append(gradient_error(features, candidates, prior))
        spread = np.std(slopes, axis=0)
        assert spread.shape == (2, 3)
        assert np.mean(errors, axis=0) == pytest.approx(spread, rel=0.13), case


def test_an_unexcluded_label_has_a_finite_error() -> None:
    error = gradient_error(np.eye(3), np.ones((3, 2), dtype=bool), np.array([0.5, 0.2]))
    assert np.isfinite(error).all()
    assert (error > 0).all()
