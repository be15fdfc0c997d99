"""A small problem with drawn candidates, in float64, and the risks of the paper as plain loops."""

import itertools
import math

import torch
from torch import Tensor

from comes.risks.losses import BinaryLoss

N, Q = 40, 4


def problem(seed: int = 0, n: int = N, q: int = Q) -> tuple[Tensor, Tensor]:
    """Return scores and relevant labels, every label relevant somewhere and not everywhere."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, q, generator=generator, dtype=torch.float64)
    relevant = torch.rand(n, q, generator=generator) < torch.linspace(0.2, 0.6, q)
    relevant[0], relevant[1] = True, False
    return scores, relevant


def prior_of(relevant: Tensor) -> Tensor:
    return relevant.double().mean(dim=0)


def annotate(relevant: Tensor, exclude_rate: float, seed: int) -> Tensor:
    """Exclude every irrelevant entry with one probability: the paper's process."""
    draws = torch.rand(relevant.shape, generator=torch.Generator().manual_seed(seed))
    return relevant | (draws >= exclude_rate)


def value(loss: BinaryLoss, score: float, target: int) -> float:
    return loss(torch.tensor([score], dtype=torch.float64), target).item()


def hamming_by_loops(
    scores: Tensor, candidates: Tensor, prior: Tensor, loss: BinaryLoss, corrected: bool
) -> tuple[float, list[float]]:
    """Return Equation 8 (or 7), and each label's part under the absolute value."""
    n, q = scores.shape
    total, parts = 0.0, []
    for j in range(q):
        rows = [i for i in range(n) if not candidates[i, j]]
        if not rows:
            continue
        weight = (1 - prior[j].item()) / len(rows)
        part = sum(value(loss, scores[i, j].item(), 1) for i in range(n)) / n
        part -= weight * sum(value(loss, scores[i, j].item(), 1) for i in rows)
        parts.append(part)
        total += abs(part) if corrected else part
        total += weight * sum(value(loss, scores[i, j].item(), 0) for i in rows)
    return total / q, parts


def ranking_by_loops(scores: Tensor, candidates: Tensor, prior: Tensor, loss: BinaryLoss) -> float:
    """Return Equation 13 as the paper writes it: a sum over pairs j < k."""
    n, q = scores.shape
    rows = [[i for i in range(n) if not candidates[i, j]] for j in range(q)]
    total = 0.0
    for j, k in itertools.combinations(range(q), 2):
        for label, target in ((j, 0), (k, 1)):
            for i in rows[label]:
                difference = (scores[i, j] - scores[i, k]).item()
                weight = (1 - prior[label].item()) / len(rows[label])
                total += weight * value(loss, difference, target)
    return total


def supervised_ranking_risk(scores: Tensor, relevant: Tensor, loss: BinaryLoss) -> float:
    """Return the empirical form of Equation 4."""
    n, q = scores.shape
    total = 0.0
    for i, (j, k) in itertools.product(range(n), itertools.combinations(range(q), 2)):
        if relevant[i, j] != relevant[i, k]:
            target = int(relevant[i, j])
            total += value(loss, (scores[i, j] - scores[i, k]).item(), target)
    return total / n


def share_both_irrelevant(relevant: Tensor) -> float:
    """Return the sum over pairs of p(y_j = 0, y_k = 0): the constant of Theorem 4 at M = 1."""
    irrelevant = (~relevant).double()
    both = irrelevant.T @ irrelevant / len(relevant)
    return (both.sum() - both.trace()).item() / 2


def softplus(x: float) -> float:
    return math.log1p(math.exp(-abs(x))) + max(x, 0)


def mean_over_possible_sets(scores: Tensor, candidates: Tensor) -> float:
    """Return the mean supervised loss over all non-empty label sets inside the candidates."""
    q = len(scores)
    losses = []
    for size in range(1, q + 1):
        for chosen in itertools.combinations(range(q), size):
            if all(candidates[j] for j in chosen):
                terms = (softplus(-g) if j in chosen else softplus(g) for j, g in enumerate(scores))
                losses.append(sum(terms))
    return float(sum(losses) / len(losses))
